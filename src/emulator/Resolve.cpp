// Syntax tree -> Program. Each opcode part is consumed by the rule that gives it a meaning; whatever is left over makes
// the instruction unsupported, so that no modifier is ever ignored.
#include "Program.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace llvm;

namespace hloc::emulator {
namespace {

std::optional<Opcode> opcodeOf(StringRef name) {
  static const StringMap<Opcode> table = {
#define HLOC_PTX_OPCODE(name, text) {text, Opcode::name},
#include "Opcodes.def"
  };
  auto it = table.find(name);
  return it == table.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Type> typeOf(StringRef t) {
  if (t == "pred")
    return Type{TypeClass::Predicate, 1, 1};
  if (t == "bf16" || t == "bf16x2")
    return Type{TypeClass::Bfloat, 16, uint8_t(t == "bf16" ? 1 : 2)};
  if (t == "f16x2")
    return Type{TypeClass::Float, 16, 2};
  unsigned bits;
  if (t.size() < 2 || t.substr(1).getAsInteger(10, bits))
    return std::nullopt;
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return std::nullopt;
  switch (t[0]) {
  case 'b':
    return Type{TypeClass::Bits, uint8_t(bits), 1};
  case 'u':
    return Type{TypeClass::Unsigned, uint8_t(bits), 1};
  case 's':
    return Type{TypeClass::Signed, uint8_t(bits), 1};
  case 'f':
    return bits == 8 ? std::nullopt : std::optional(Type{TypeClass::Float, uint8_t(bits), 1});
  default:
    return std::nullopt;
  }
}

std::optional<Compare> compareOf(StringRef t) {
  return StringSwitch<std::optional<Compare>>(t)
      .Case("eq", Compare::Eq)
      .Case("ne", Compare::Ne)
      .Cases({"lt", "lo"}, Compare::Lt)
      .Cases({"le", "ls"}, Compare::Le)
      .Cases({"gt", "hi"}, Compare::Gt)
      .Cases({"ge", "hs"}, Compare::Ge)
      .Case("equ", Compare::Equ)
      .Case("neu", Compare::Neu)
      .Case("ltu", Compare::Ltu)
      .Case("leu", Compare::Leu)
      .Case("gtu", Compare::Gtu)
      .Case("geu", Compare::Geu)
      .Case("num", Compare::Num)
      .Case("nan", Compare::Nan)
      .Default(std::nullopt);
}

std::optional<Mode> modeOf(StringRef t) {
  return StringSwitch<std::optional<Mode>>(t)
      .Case("lo", Mode::Lo)
      .Case("hi", Mode::Hi)
      .Case("wide", Mode::Wide)
      .Case("and", Mode::And)
      .Case("or", Mode::Or)
      .Case("xor", Mode::Xor)
      .Case("exch", Mode::Exch)
      .Case("cas", Mode::Cas)
      .Case("add", Mode::Add)
      .Case("min", Mode::Min)
      .Case("max", Mode::Max)
      .Case("inc", Mode::Inc)
      .Case("dec", Mode::Dec)
      .Case("up", Mode::Up)
      .Case("down", Mode::Down)
      .Case("bfly", Mode::Bfly)
      .Case("idx", Mode::Idx)
      .Case("any", Mode::Any)
      .Case("all", Mode::All)
      .Case("uni", Mode::Uni)
      .Case("ballot", Mode::Ballot)
      .Default(std::nullopt);
}

Special specialOf(StringRef n) {
  return StringSwitch<Special>(n)
      .Case("%tid.x", Special::TidX)
      .Case("%tid.y", Special::TidY)
      .Case("%tid.z", Special::TidZ)
      .Case("%ntid.x", Special::NtidX)
      .Case("%ntid.y", Special::NtidY)
      .Case("%ntid.z", Special::NtidZ)
      .Case("%ctaid.x", Special::CtaX)
      .Case("%ctaid.y", Special::CtaY)
      .Case("%ctaid.z", Special::CtaZ)
      .Case("%nctaid.x", Special::NctaX)
      .Case("%nctaid.y", Special::NctaY)
      .Case("%nctaid.z", Special::NctaZ)
      .Case("%laneid", Special::Lane)
      .Default(Special::None);
}

class KernelResolver {
public:
  KernelResolver(const ptx::Function &f, const StringMap<Symbol> &globals, uint64_t dynamicAlign, DiagnosticEngine &d)
      : f(f), symbols(globals), dynamicAlign(dynamicAlign), diagnostics(d) {}

  std::optional<Kernel> run(uint64_t staticShared) {
    kernel.name = f.name;
    kernel.sharedBytes = staticShared;
    parameters();
    directives();
    declare();
    for (const ptx::Statement &s : f.body)
      if (s.kind == ptx::Statement::Kind::Instruction)
        instruction(s.instruction);
    kernel.sharedBytes = alignTo(kernel.sharedBytes, dynamicAlign);
    return failed ? std::nullopt : std::optional(std::move(kernel));
  }

private:
  void error(SourceRange range, DiagnosticKind kind, std::string message) {
    diagnostics.report(kind, range, std::move(message));
    failed = true;
  }

  void parameters() {
    for (const ptx::Variable &v : f.parameters) {
      auto type = typeOf(v.type);
      uint64_t bytes = type ? type->bytes() * v.length.value_or(1) : 0;
      if (!bytes || v.space != "param")
        return error(v.where, DiagnosticKind::UnsupportedType, "parameter type `" + v.type + "` is not supported");
      kernel.paramBytes = alignTo(kernel.paramBytes, v.pointer ? bytes : std::max<uint64_t>(v.align, type->bytes()));
      symbols[v.name] = {Space::Param, kernel.paramBytes};
      kernel.paramOffsets.push_back(kernel.paramBytes);
      kernel.paramSizes.push_back(unsigned(bytes));
      kernel.paramBytes += bytes;
    }
  }

  void directives() {
    for (StringRef d : f.directives) {
      if (d.consume_front(".reqntid")) {
        kernel.required = {1, 1, 1};
        SmallVector<StringRef, 3> parts;
        d.split(parts, ',');
        for (size_t i = 0; i < std::min<size_t>(parts.size(), 3); ++i)
          (void)parts[i].trim().getAsInteger(10, kernel.required[i]);
      } else if (!d.starts_with(".maxntid") && !d.starts_with(".minnctapersm") && !d.starts_with(".maxnreg")) {
        error({}, DiagnosticKind::UnsupportedFeature, "kernel directive `" + d.str() + "` is not supported");
      }
    }
  }

  void addRegister(const std::string &name, Type type) {
    auto [it, isNew] = registers.try_emplace(name, kernel.registers, type);
    kernel.registers += isNew;
  }

  void declare() {
    uint32_t index = 0;
    for (const ptx::Statement &s : f.body) {
      if (s.kind == ptx::Statement::Kind::Label)
        labels[s.label] = index;
      else if (s.kind == ptx::Statement::Kind::Instruction)
        ++index;
      else
        variable(s.variable);
    }
  }

  void variable(const ptx::Variable &v) {
    auto type = typeOf(v.type);
    if (!type || (v.space != "reg" && !type->bytes()))
      return error(v.where, DiagnosticKind::UnsupportedType, "type `" + v.type + "` is not supported");
    if (v.space == "reg") {
      if (!v.range)
        return addRegister(v.name, *type);
      for (uint64_t i = 0; i < *v.range; ++i)
        addRegister(v.name + utostr(i), *type);
      return;
    }
    bool shared = v.space == "shared";
    uint64_t &bytes = shared ? kernel.sharedBytes : kernel.localBytes;
    bytes = alignTo(bytes, std::max<uint64_t>(v.align, type->bytes()));
    symbols[v.name] = {shared ? Space::Shared : Space::Local, bytes};
    bytes += type->bytes() * v.length.value_or(1);
  }

  Source source(const ptx::Operand &o, SourceRange range) {
    Source s;
    s.negated = o.negated;
    switch (o.kind) {
    case ptx::Operand::Kind::Sink:
      return s;
    case ptx::Operand::Kind::Integer:
    case ptx::Operand::Kind::Float32:
    case ptx::Operand::Kind::Float64:
      s.kind = Source::Kind::Constant;
      s.value = o.value;
      return s;
    case ptx::Operand::Kind::Vector:
    case ptx::Operand::Kind::Pair:
      s.kind = Source::Kind::Vector;
      for (const ptx::Operand &e : o.elements)
        s.elements.push_back(source(e, range));
      return s;
    case ptx::Operand::Kind::Name:
    case ptx::Operand::Kind::Address:
      return named(o, range);
    }
    return s;
  }

  Source named(const ptx::Operand &o, SourceRange range) {
    Source s;
    s.negated = o.negated;
    s.value = o.value;
    if (auto it = registers.find(o.name); it != registers.end()) {
      s.kind = Source::Kind::Register;
      s.slot = it->second.first;
      s.bits = it->second.second.bits;
    } else if (auto symbol = symbols.find(o.name); symbol != symbols.end()) {
      s.kind = Source::Kind::Constant;
      s.value += symbol->second.address;
    } else if (Special special = specialOf(o.name); special != Special::None) {
      s.kind = Source::Kind::Special;
      s.special = special;
    } else if (o.name.empty()) {
      s.kind = Source::Kind::Constant;
    } else {
      error(range, DiagnosticKind::UndefinedName,
            "`" + o.name + "` is not a known register, variable or special register");
    }
    return s;
  }

  void instruction(const ptx::Instruction &i) {
    auto opcode = opcodeOf(i.parts[0]);
    if (!opcode)
      return error(i.range, DiagnosticKind::UnsupportedFeature, "instruction `" + i.opcode() + "` is not supported");
    Decoded d;
    d.opcode = *opcode;
    d.line = i.line;
    bool typed = false;
    for (StringRef part : ArrayRef(i.parts).drop_front())
      if (!modifier(d, part, typed))
        return error(i.range, DiagnosticKind::UnsupportedFeature,
                     "instruction `" + i.opcode() + "` is not supported (`." + part.str() + "`)");
    if (!i.guard.empty()) {
      ptx::Operand guard;
      guard.kind = ptx::Operand::Kind::Name;
      guard.name = i.guard;
      guard.negated = i.guardNegated;
      d.guard = source(guard, i.range);
    }
    if (d.opcode == Opcode::Bra)
      branch(d, i);
    else
      for (const ptx::Operand &o : i.operands)
        d.operands.push_back(source(o, i.range));
    if (!wellFormed(d, i))
      return error(i.range, DiagnosticKind::UnsupportedFeature, "this form of `" + i.opcode() + "` is not supported");
    if (d.opcode == Opcode::Mma)
      d.from = *typeOf(i.parts[7]);
    if (isCollective(d))
      d.results = 1;
    kernel.code.push_back(std::move(d));
  }

  void branch(Decoded &d, const ptx::Instruction &i) {
    auto it = i.operands.size() == 1 ? labels.find(i.operands[0].name) : labels.end();
    if (it == labels.end())
      return error(i.range, DiagnosticKind::UndefinedName, "branch target is not a label of this kernel");
    d.target = it->second;
  }

  /// Modifiers that change nothing here: cache and ordering hints (memory is sequentially consistent), uniformity
  /// promises.
  static bool isHint(Opcode op, StringRef p) {
    switch (op) {
    case Opcode::Ld:
    case Opcode::St:
    case Opcode::Atom:
    case Opcode::Red:
      return StringSwitch<bool>(p)
          .Cases({"nc", "ca", "cg", "cs", "lu"}, true)
          .Cases({"cv", "wb", "wt", "volatile", "weak"}, true)
          .Cases({"relaxed", "acquire", "release", "acq_rel"}, true)
          .Cases({"cta", "gpu", "sys", "cluster"}, true)
          .Default(p.starts_with("L1::") || (p.starts_with("L2::") && p != "L2::cache_hint"));
    case Opcode::Bra:
      return p == "uni";
    case Opcode::Bar:
    case Opcode::Barrier:
      return p == "sync" || p == "aligned" || p == "cta" || p == "warp";
    case Opcode::Griddepcontrol:
      return p == "wait" || p == "launch_dependents";
    case Opcode::Fence:
    case Opcode::Membar:
      return StringSwitch<bool>(p)
          .Cases({"sc", "acq_rel", "cta", "gpu", "sys"}, true)
          .Cases({"gl", "cluster"}, true)
          .Default(false);
    case Opcode::Shfl:
    case Opcode::Vote:
    case Opcode::Redux:
      return p == "sync";
    case Opcode::Mma:
      return p == "sync" || p == "aligned" || p == "row" || p == "col" || p == "m16n8k16";
    case Opcode::Ldmatrix:
      return p == "sync" || p == "aligned" || p == "m8n8";
    case Opcode::Ret:
      return p == "uni";
    case Opcode::Div:
      return p == "full" || p == "approx";
    case Opcode::Ex2:
    case Opcode::Lg2:
    case Opcode::Rcp:
    case Opcode::Rsqrt:
    case Opcode::Sqrt:
    case Opcode::Sin:
    case Opcode::Cos:
    case Opcode::Tanh:
      return p == "approx";
    default:
      return false;
    }
  }

  static bool setRounding(Decoded &d, StringRef p) {
    auto mode = StringSwitch<std::optional<Rounding>>(p.substr(0, 2))
                    .Case("rn", Rounding::Nearest)
                    .Case("rz", Rounding::Zero)
                    .Case("rm", Rounding::Down)
                    .Case("rp", Rounding::Up)
                    .Default(std::nullopt);
    if (!mode || p.size() > 3 || (p.size() == 3 && p[2] != 'i'))
      return false;
    d.rounding = *mode;
    d.integral = p.size() == 3;
    return true;
  }

  bool modifier(Decoded &d, StringRef p, bool &typed) {
    if (d.opcode == Opcode::Bar && p == "warp")
      d.mode = Mode::All;
    if (isHint(d.opcode, p))
      return true;
    if (auto type = typeOf(p)) {
      (typed ? d.from : d.type) = *type;
      typed = true;
      return true;
    }
    if (auto space = StringSwitch<std::optional<Space>>(p)
                         .Cases({"global", "const"}, Space::Global)
                         .Cases({"shared", "shared::cta"}, Space::Shared)
                         .Case("local", Space::Local)
                         .Cases({"param", "param::entry"}, Space::Param)
                         .Default(std::nullopt)) {
      d.space = *space;
      return true;
    }
    if (auto compare = compareOf(p); compare && d.opcode == Opcode::Setp) {
      d.compare = *compare;
      return true;
    }
    if (auto mode = modeOf(p)) {
      d.mode = *mode;
      return true;
    }
    if (p == "to" && d.opcode == Opcode::Cvta)
      return d.reduce = true;
    if (p == "trans" && d.opcode == Opcode::Ldmatrix)
      return d.transposed = true;
    if (p == "x1" || p == "x2" || p == "x4" || p == "v2" || p == "v4" || p == "v8") {
      d.count = uint8_t(p[1] - '0');
      return true;
    }
    if (p == "ftz")
      return d.ftz = true;
    if (p == "sat")
      return d.saturate = true;
    if (p == "NaN" && (d.opcode == Opcode::Min || d.opcode == Opcode::Max))
      return d.nan = true;
    if ((p == "l" || p == "r" || p == "wrap" || p == "clamp") && d.opcode == Opcode::Shf) {
      (p.size() == 1 ? d.transposed : d.wrap) = p == "r" || p == "wrap";
      return true;
    }
    return setRounding(d, p);
  }

  bool wellFormed(const Decoded &d, const ptx::Instruction &i) const {
    auto between = [&](size_t low, size_t high) { return d.operands.size() >= low && d.operands.size() <= high; };
    switch (d.opcode) {
    case Opcode::Abs:
    case Opcode::Brev:
    case Opcode::Clz:
    case Opcode::Cos:
    case Opcode::Cvta:
    case Opcode::Ex2:
    case Opcode::Lg2:
    case Opcode::Mov:
    case Opcode::Neg:
    case Opcode::Not:
    case Opcode::Popc:
    case Opcode::Rcp:
    case Opcode::Rsqrt:
    case Opcode::Sin:
    case Opcode::Sqrt:
    case Opcode::Tanh:
      return between(2, 2) && d.type.bits;
    case Opcode::Cvt:
      return d.type.bits && d.from.bits && !d.nan && between(2, d.type.lanes == 2 ? 3 : 2) &&
             (d.type.lanes == 1 || (d.operands.size() == 3 && d.from.bits == 32));
    case Opcode::Ld:
    case Opcode::St:
      return between(2, 2) && d.type.bits && d.mode == Mode::None && d.type.kind != TypeClass::Predicate &&
             vectorLength(d.operands[d.opcode == Opcode::St]) == d.count;
    case Opcode::Add:
    case Opcode::And:
    case Opcode::Copysign:
    case Opcode::Div:
    case Opcode::Max:
    case Opcode::Min:
    case Opcode::Mul:
    case Opcode::Or:
    case Opcode::Rem:
    case Opcode::Shl:
    case Opcode::Shr:
    case Opcode::Sub:
    case Opcode::Xor:
      return between(3, 3) && d.type.bits && !(d.saturate && !d.type.isFloat());
    case Opcode::Bfe:
    case Opcode::Fma:
    case Opcode::Mad:
    case Opcode::Prmt:
    case Opcode::Selp:
    case Opcode::Shf:
      return between(4, 4) && d.type.bits;
    case Opcode::Bfi:
    case Opcode::Lop3:
      return between(5, 5) && d.type.bits;
    case Opcode::Setp:
      return between(3, 4) && d.type.bits && (d.operands.size() == 4) == (d.mode != Mode::None);
    case Opcode::Atom:
      return between(3, 4) && d.type.bits && d.mode != Mode::None && (d.operands.size() == 4) == (d.mode == Mode::Cas);
    case Opcode::Red:
      return between(2, 2) && d.type.bits && d.mode != Mode::None && d.mode != Mode::Cas;
    case Opcode::Bar:
    case Opcode::Barrier:
      return between(1, 1) && d.operands[0].kind == Source::Kind::Constant &&
             (d.mode == Mode::All || !d.operands[0].value);
    case Opcode::Shfl:
      return between(5, 5) && d.type.bits == 32;
    case Opcode::Vote:
      return between(3, 3) && d.mode != Mode::None;
    case Opcode::Redux:
      return between(3, 3) && d.type.bits == 32 && !d.type.isFloat();
    case Opcode::Mma:
      return between(4, 4) && mmaForm(d, i);
    case Opcode::Ldmatrix:
      return between(2, 2) && d.type.bits == 16 &&
             (d.operands[0].kind == Source::Kind::Vector ? d.operands[0].elements.size() == d.count : d.count == 1);
    case Opcode::Bra:
    case Opcode::Exit:
    case Opcode::Fence:
    case Opcode::Griddepcontrol:
    case Opcode::Membar:
    case Opcode::Ret:
    case Opcode::Trap:
      return true;
    case Opcode::Activemask:
    case Opcode::Addc:
    case Opcode::Bfind:
    case Opcode::Bmsk:
    case Opcode::Cnot:
    case Opcode::Cp:
    case Opcode::Dp2a:
    case Opcode::Dp4a:
    case Opcode::Elect:
    case Opcode::Fns:
    case Opcode::Isspacep:
    case Opcode::Mad24:
    case Opcode::Madc:
    case Opcode::Match:
    case Opcode::Mul24:
    case Opcode::Nop:
    case Opcode::Sad:
    case Opcode::Set:
    case Opcode::Slct:
    case Opcode::Stmatrix:
    case Opcode::Subc:
    case Opcode::Szext:
    case Opcode::Testp:
    case Opcode::Wmma:
      return false;
    }
    return false;
  }

  /// Scalars count as one; `{%r1}` is a scalar too.
  static size_t vectorLength(const Source &s) { return s.kind == Source::Kind::Vector ? s.elements.size() : 1; }

  static bool mmaForm(const Decoded &d, const ptx::Instruction &i) {
    StringRef name = i.parts.size() == 10 ? StringRef(i.parts[7]) : StringRef();
    const size_t sizes[] = {4, 4, 2, 4};
    for (size_t k = 0; k < 4; ++k)
      if (d.operands[k].elements.size() != sizes[k])
        return false;
    return (name == "f16" || name == "bf16") && i.parts[8] == name && i.parts[6] == "f32" && i.parts[9] == "f32" &&
           i.parts[3] == "m16n8k16" && i.parts[4] == "row" && i.parts[5] == "col";
  }

  const ptx::Function &f;
  StringMap<Symbol> symbols;
  uint64_t dynamicAlign;
  DiagnosticEngine &diagnostics;
  StringMap<std::pair<uint32_t, Type>> registers;
  StringMap<uint32_t> labels;
  Kernel kernel;
  bool failed = false;
};

} // namespace

std::string Program::location(const Decoded &instruction) const {
  if (!instruction.locLine || instruction.locFile >= files.size())
    return "";
  return files[instruction.locFile] + ":" + std::to_string(instruction.locLine) + ":" +
         std::to_string(instruction.locColumn);
}

std::unique_ptr<Program> resolve(const ptx::Module &module, DiagnosticEngine &diagnostics) {
  auto program = std::make_unique<Program>();
  StringMap<Symbol> symbols;
  uint64_t shared = 0, dynamicAlign = 16;
  std::vector<std::string> dynamic;
  for (const ptx::Variable &v : module.variables) {
    auto type = typeOf(v.type);
    constexpr uint64_t maxImage = 256 << 20; // far above any constant table, small enough to allocate anywhere
    if (!type || !type->bytes() || v.length.value_or(1) > maxImage / type->bytes() ||
        program->image.size() > maxImage || v.initial.size() > std::max<uint64_t>(v.length.value_or(1), 1)) {
      diagnostics.report(DiagnosticKind::UnsupportedType, v.where, "variable `" + v.name + "` is not supported");
      return nullptr;
    }
    uint64_t align = std::max<uint64_t>(v.align, type->bytes()), bytes = type->bytes() * v.length.value_or(1);
    if (v.space == "shared" && v.linkage == "extern") {
      dynamic.push_back(v.name);
      dynamicAlign = std::max(dynamicAlign, align);
    } else if (v.space == "shared") {
      shared = alignTo(shared, align);
      symbols[v.name] = {Space::Shared, shared};
      shared += bytes;
    } else {
      size_t at = alignTo(program->image.size(), align);
      program->image.resize(at + bytes);
      symbols[v.name] = {Space::Global, (uint64_t(1) << regionShift) + at};
      for (size_t i = 0; i < v.initial.size(); ++i)
        std::memcpy(&program->image[at + i * type->bytes()], &v.initial[i], type->bytes());
    }
  }
  for (const ptx::Function &f : module.functions) {
    uint64_t base = shared;
    for (const ptx::Statement &s : f.body)
      if (s.kind == ptx::Statement::Kind::Variable && s.variable.space == "shared")
        if (auto type = typeOf(s.variable.type); type && type->bytes())
          base = alignTo(base, std::max<uint64_t>(s.variable.align, type->bytes())) +
                 type->bytes() * s.variable.length.value_or(1);
    for (const std::string &name : dynamic) // dynamic memory starts after this kernel's static variables
      symbols[name] = {Space::Shared, alignTo(base, dynamicAlign)};
    auto kernel = KernelResolver(f, symbols, dynamicAlign, diagnostics).run(shared);
    if (kernel)
      program->kernels[f.name] = std::move(*kernel);
  }
  return diagnostics.hasErrors() ? nullptr : std::move(program);
}

} // namespace hloc::emulator
