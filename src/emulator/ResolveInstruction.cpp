// Operands of one instruction checked against the form of its opcode.
#include "ResolveKernel.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <bit>

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr size_t maxCode = 1 << 20;

struct SpecialRegister {
  Special special = Special::None;
  std::optional<uint64_t> constant; ///< instead: of a machine with one multiprocessor
};

std::optional<SpecialRegister> specialOf(StringRef n) {
  auto special = StringSwitch<Special>(n)
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
                     .Case("%clusterid.x", Special::ClusterX)
                     .Case("%clusterid.y", Special::ClusterY)
                     .Case("%clusterid.z", Special::ClusterZ)
                     .Case("%nclusterid.x", Special::NclusterX)
                     .Case("%nclusterid.y", Special::NclusterY)
                     .Case("%nclusterid.z", Special::NclusterZ)
                     .Case("%cluster_ctaid.x", Special::ClusterCtaX)
                     .Case("%cluster_ctaid.y", Special::ClusterCtaY)
                     .Case("%cluster_ctaid.z", Special::ClusterCtaZ)
                     .Case("%cluster_nctaid.x", Special::ClusterNctaX)
                     .Case("%cluster_nctaid.y", Special::ClusterNctaY)
                     .Case("%cluster_nctaid.z", Special::ClusterNctaZ)
                     .Case("%cluster_ctarank", Special::ClusterRank)
                     .Case("%cluster_nctarank", Special::ClusterBlocks)
                     .Case("%is_explicit_cluster", Special::ExplicitCluster)
                     .Case("%laneid", Special::Lane)
                     .Case("%warpid", Special::Warp)
                     .Case("%nwarpid", Special::NumWarps)
                     .Case("%lanemask_eq", Special::LaneMaskEq)
                     .Case("%lanemask_le", Special::LaneMaskLe)
                     .Case("%lanemask_lt", Special::LaneMaskLt)
                     .Case("%lanemask_ge", Special::LaneMaskGe)
                     .Case("%lanemask_gt", Special::LaneMaskGt)
                     .Cases({"%clock", "%clock_lo"}, Special::Clock)
                     .Case("%clock_hi", Special::ClockHigh)
                     .Case("%clock64", Special::Clock64)
                     .Case("%globaltimer_lo", Special::GlobalTimerLow)
                     .Case("%globaltimer_hi", Special::GlobalTimerHigh)
                     .Case("%globaltimer", Special::GlobalTimer)
                     .Case("%dynamic_smem_size", Special::DynamicSharedSize)
                     .Case("%total_smem_size", Special::TotalSharedSize)
                     .Case("%aggr_smem_size", Special::AggregateSharedSize)
                     .Default(Special::None);
  if (special != Special::None)
    return SpecialRegister{special, std::nullopt};
  if (n == "WARP_SZ")
    return SpecialRegister{Special::None, 32};
  if (n == "%smid" || n == "%gridid")
    return SpecialRegister{Special::None, 0};
  if (n == "%nsmid")
    return SpecialRegister{Special::None, 1};
  return std::nullopt;
}

/// What `%reserved_smem_offset_...` is for a kernel whose reserved part of shared memory begins at `begin`. PTX says
/// nothing about where _0 and _1 are in it; cooperative groups expect 288 bytes behind _1.
std::optional<uint64_t> reservedOffset(StringRef name, uint64_t begin) {
  if (!name.consume_front("%reserved_smem_offset_"))
    return std::nullopt;
  return StringSwitch<std::optional<uint64_t>>(name)
      .Cases({"begin", "0"}, begin)
      .Case("1", begin + reservedSharedBytes / 2)
      .Case("end", begin + reservedSharedBytes)
      .Case("cap", reservedSharedBytes)
      .Default(std::nullopt);
}

/// Those that there are, but that mean nothing here: what the driver keeps for itself, and performance counters.
bool isOfDriver(StringRef name) {
  unsigned number = 0;
  if (name.consume_front("%envreg"))
    return !name.getAsInteger(10, number) && number < 32;
  if (!name.consume_front("%pm"))
    return false;
  name.consume_back("_64");
  return !name.getAsInteger(10, number) && number < 8;
}

/// Of setmaxnreg.
bool isRegisterCount(uint64_t count) {
  constexpr uint64_t least = 24, most = 256, unit = 8;
  return count >= least && count <= most && count % unit == 0;
}

unsigned widthOf(Special special) { return special == Special::Clock64 || special == Special::GlobalTimer ? 64 : 32; }

} // namespace

bool KernelResolver::mismatch(const ptx::Instruction &i, const std::string &what) {
  error(i.range, DiagnosticKind::TypeMismatch, what + " of `" + i.opcode() + "` does not fit the instruction");
  return false;
}

void KernelResolver::unsupported(const ptx::Instruction &i, StringRef part) {
  error(i.range, DiagnosticKind::UnsupportedFeature,
        "instruction `" + i.opcode() + "` is not supported" + (part.empty() ? "" : " (`." + part.str() + "`)"));
}

void KernelResolver::emit(Decoded d) {
  if (kernel.code.size() >= maxCode)
    return error(entry.where, DiagnosticKind::InputTooLarge, "kernel `" + entry.name + "` is too long");
  kernel.code.push_back(std::move(d));
}

Source KernelResolver::guardOf(Frame &frame, const ptx::Instruction &i) {
  Source guard;
  if (i.guard.empty())
    return guard;
  ptx::Operand o;
  o.kind = ptx::Operand::Kind::Name;
  o.name = i.guard;
  if (bindName(frame, i, o, {OperandForm::Kind::Result, predicateType}, guard))
    guard.negated = i.guardNegated;
  return guard;
}

void KernelResolver::instruction(Frame &frame, const ptx::Instruction &i) {
  StringRef name = i.parts[0];
  if (name == "call")
    return call(frame, i);
  if (name == "brx")
    return indexedBranch(frame, i);
  if (name == "createpolicy")
    return isInTarget(i) ? policy(frame, i) : void();
  if (auto d = decode(frame, i)) {
    if (d->opcode == Opcode::Bra)
      return branch(frame, i);
    if (d->opcode == Opcode::Ret && !frame.isEntry)
      return emitBranch(i, d->guard, frame.returnLabel);
    emit(std::move(*d));
  }
}

std::optional<Decoded> KernelResolver::decode(Frame &frame, const ptx::Instruction &i) {
  auto opcode = opcodeOf(i.parts[0]);
  if (!opcode) {
    unsupported(i, "");
    return std::nullopt;
  }
  Form form(i, *opcode);
  if (!decodeOpcode(form)) {
    unsupported(i, form.next());
    return std::nullopt;
  }
  if (!isInTarget(i))
    return std::nullopt;
  Decoded &d = form.decoded;
  d.form = formOf(i);
  if (d.opcode == Opcode::Cp && d.mode == Mode::None && form.operands.size() > 3)
    markIgnoredSource(frame, form);
  d.line = i.line;
  d.locFile = location[0], d.locLine = location[1], d.locColumn = location[2];
  d.guard = guardOf(frame, i);
  if (d.opcode != Opcode::Bra && (failed || !bindOperands(frame, form)))
    return std::nullopt;
  for (Source *carry : {&d.carryIn, &d.carryOut})
    if (carry->kind == Source::Kind::Register) {
      if (!carrySlot)
        carrySlot = newRegister();
      carry->slot = *carrySlot;
    }
  if (d.opcode == Opcode::Bar || d.opcode == Opcode::Barrier)
    normalizeBarrier(d);
  if (d.opcode == Opcode::Setmaxnreg && !isRegisterCount(d.operands[0].value)) {
    mismatch(i, "number of registers");
    return std::nullopt;
  }
  if (d.opcode == Opcode::Wgmma && !normalizeWarpgroup(i, d))
    return std::nullopt;
  if (d.opcode == Opcode::Cp && d.mode == Mode::None && d.operands.size() == 3)
    d.operands.push_back(d.operands[2]);
  return std::move(d);
}

/// False, with a diagnostic, if the target of the text lacks the instruction.
bool KernelResolver::isInTarget(const ptx::Instruction &i) {
  auto needed = module.target ? missing(*module.target, i) : std::nullopt;
  if (needed)
    error(i.range, DiagnosticKind::UnsupportedTarget,
          "`" + i.opcode() + "` needs " + *needed + ", this text is for " + module.target->name());
  return !needed;
}

uint32_t KernelResolver::formOf(const ptx::Instruction &i) {
  const auto [entry, isNew] = forms.try_emplace(i.opcode(), uint32_t(kernel.forms.size()));
  if (isNew)
    kernel.forms.push_back(i.opcode());
  return entry->second;
}

/// cp.async [to], [from], 16, x: x is how many bytes are read, or a predicate that says that none are.
void KernelResolver::markIgnoredSource(Frame &frame, Form &form) {
  const ptx::Operand &o = form.instruction.operands[3];
  uint32_t slot = 0;
  const Entry *e = o.kind == ptx::Operand::Kind::Name ? lookUp(frame, o.name, slot) : nullptr;
  const bool isRegister = e && (e->kind == Entry::Kind::Register || e->kind == Entry::Kind::Range);
  if (!isRegister || e->type.kind != TypeClass::Predicate)
    return;
  form.decoded.ignoreSource = true;
  form.operands[3] = {OperandForm::Kind::Predicate, predicateType};
}

/// {id} -> {id, 0}: every barrier names its count, 0 for the whole block.
void KernelResolver::normalizeBarrier(Decoded &d) {
  if (d.mode == Mode::All)
    return;
  Source zero;
  zero.kind = Source::Kind::Constant;
  zero.bits = 32;
  if (d.operands.empty())
    d.operands.push_back(zero);
  const size_t full = d.results + 2 + (d.mode == Mode::Popc || d.mode == Mode::And || d.mode == Mode::Or);
  if (d.operands.size() < full)
    d.operands.insert(d.operands.begin() + d.results + 1, zero);
}

/// {d, a, b, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b} -> {d, a, b, scale-d, d}. a that comes from
/// registers has no imm-trans-a.
bool KernelResolver::normalizeWarpgroup(const ptx::Instruction &i, Decoded &d) {
  constexpr size_t fixed = 4;
  if (d.mode != Mode::Multiply)
    return d.mode != Mode::WaitGroup || d.operands[0].value <= INT32_MAX || mismatch(i, "number of groups");
  for (size_t k = fixed; k < d.operands.size(); ++k) {
    const uint64_t value = d.operands[k].value;
    const bool scales = k < fixed + 2;
    if (scales ? value != 1 && value != ~uint64_t(0) : value > 1)
      return mismatch(i, scales ? "factor" : "order of an operand");
    if (scales)
      d.negated ^= value != 1;
    else
      (k + 1 == d.operands.size() ? d.transposedB : d.transposed) = value != 0;
  }
  d.operands.resize(fixed);
  d.operands.push_back(d.operands[0]);
  return true;
}

bool KernelResolver::bindOperands(Frame &frame, Form &form) {
  const ptx::Instruction &i = form.instruction;
  Decoded &d = form.decoded;
  if (i.operands.size() != form.operands.size()) {
    error(i.range, DiagnosticKind::OperandCount,
          "`" + i.opcode() + "` has " + utostr(form.operands.size()) + " operands, not " + utostr(i.operands.size()));
    return false;
  }
  for (size_t k = 0; k < form.operands.size(); ++k) {
    Source s;
    if (form.operands[k].kind == OperandForm::Kind::TensorAddress) {
      if (!bindTensorAddress(frame, form, i.operands[k], form.operands[k]))
        return false;
      continue;
    }
    if (!bind(frame, form, i.operands[k], form.operands[k], s))
      return false;
    d.results += form.operands[k].isResult();
    if (form.operands[k].kind != OperandForm::Kind::Dropped)
      d.operands.push_back(std::move(s));
  }
  return true;
}

bool KernelResolver::bind(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule, Source &s) {
  using Kind = ptx::Operand::Kind;
  const ptx::Instruction &i = form.instruction;
  const bool negatable = rule.kind == OperandForm::Kind::Predicate;
  if (o.negated && !negatable)
    return mismatch(i, "operand `!" + o.name + "`");
  switch (o.kind) {
  case Kind::Address:
    return rule.kind == OperandForm::Kind::Address && o.elements.empty() ? bindAddress(frame, form, o, s)
                                                                         : mismatch(i, "address");
  case Kind::Vector:
  case Kind::Pair:
    return bindElements(frame, form, o, rule, s);
  case Kind::Sink:
    return rule.isResult() && rule.elements == 1 ? true : mismatch(i, "operand `_`");
  case Kind::List:
    return mismatch(i, "list");
  case Kind::Integer:
  case Kind::Float32:
  case Kind::Float64:
    return bindConstant(i, o, rule, s);
  case Kind::Name:
    if (rule.kind == OperandForm::Kind::Address || rule.kind == OperandForm::Kind::Immediate ||
        (rule.elements > 1 && rule.kind != OperandForm::Kind::Dropped))
      return mismatch(i, "operand `" + o.name + "`");
    if (!bindName(frame, i, o, rule, s))
      return false;
    s.negated = o.negated;
    return true;
  }
  return false;
}

/// {%a, %b} of as many elements as the form asks for, and the pair %r|%p. `{%a}` is as good as `%a`.
bool KernelResolver::bindElements(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule, Source &s) {
  const ptx::Instruction &i = form.instruction;
  s.kind = Source::Kind::Vector;
  if (o.kind == ptx::Operand::Kind::Pair) {
    if (rule.kind != OperandForm::Kind::ResultPair)
      return mismatch(i, "pair");
    s.elements.resize(2);
    const OperandForm first{OperandForm::Kind::Result, rule.type}, second{OperandForm::Kind::Result, predicateType};
    return bind(frame, form, o.elements[0], first, s.elements[0]) &&
           bind(frame, form, o.elements[1], second, s.elements[1]);
  }
  const bool listed = rule.kind == OperandForm::Kind::Results || rule.kind == OperandForm::Kind::Values;
  const bool single =
      rule.elements == 1 && (rule.kind == OperandForm::Kind::Result || rule.kind == OperandForm::Kind::Value);
  if ((!listed && !single) || o.elements.size() != rule.elements)
    return mismatch(i, "list of " + utostr(o.elements.size()) + " elements");
  OperandForm element = rule;
  element.elements = 1;
  element.kind = rule.isResult() ? OperandForm::Kind::Result : OperandForm::Kind::Value;
  if (single && (i.parts[0] == "ld" || i.parts[0] == "st")) // `{%a}` without .v2
    return bind(frame, form, o.elements[0], element, s = Source());
  s.elements.resize(o.elements.size());
  for (size_t k = 0; k < o.elements.size(); ++k)
    if (!bind(frame, form, o.elements[k], element, s.elements[k]))
      return false;
  return true;
}

bool KernelResolver::bindTensorAddress(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule) {
  const ptx::Instruction &i = form.instruction;
  if (o.kind != ptx::Operand::Kind::Address || o.elements.size() != rule.elements)
    return mismatch(i, "tensor with " + utostr(o.elements.size()) + " coordinates");
  Source map, coordinates;
  if (!bindAddress(frame, form, o, map))
    return false;
  coordinates.kind = Source::Kind::Vector;
  coordinates.elements.resize(o.elements.size());
  for (size_t k = 0; k < o.elements.size(); ++k)
    if (!bind(frame, form, o.elements[k], {OperandForm::Kind::Value, rule.type}, coordinates.elements[k]))
      return false;
  form.decoded.operands.push_back(std::move(map));
  form.decoded.operands.push_back(std::move(coordinates));
  return true;
}

bool KernelResolver::bindAddress(Frame &frame, Form &form, const ptx::Operand &o, Source &s) {
  const ptx::Instruction &i = form.instruction;
  Decoded &d = form.decoded;
  s.address = true;
  if (o.name.empty()) {
    s.kind = Source::Kind::Constant;
    s.value = o.value;
    s.bits = 64;
    return true;
  }
  uint32_t slot = 0;
  if (const Entry *e = lookUp(frame, o.name, slot);
      e && (e->kind == Entry::Kind::Register || e->kind == Entry::Kind::Range)) {
    if (e->type.width() != 64 && e->type.width() != 32)
      return mismatch(i, "address register `" + o.name + "`");
    s.kind = Source::Kind::Register;
    s.slot = slot;
    s.bits = uint8_t(e->type.width());
    s.value = o.value;
    if (d.space == Space::Param && !frame.isEntry)
      d.space = Space::Local;
    return true;
  }
  if (!bindName(frame, i, o, {OperandForm::Kind::Value, b64}, s))
    return false;
  if (s.kind != Source::Kind::Constant)
    return mismatch(i, "address `" + o.name + "`");
  if (const Entry *e = lookUp(frame, o.name, slot); e && d.space == Space::Param)
    d.space = e->symbol.space; // parameters of functions lie in local memory
  return true;
}

bool KernelResolver::bindName(Frame &frame, const ptx::Instruction &i, const ptx::Operand &o, const OperandForm &rule,
                              Source &s) {
  uint32_t slot = 0;
  const Entry *e = lookUp(frame, o.name, slot);
  if (e && (e->kind == Entry::Kind::Register || e->kind == Entry::Kind::Range)) {
    const unsigned width = e->type.width(), wanted = rule.type.width();
    const bool isPredicate = e->type.kind == TypeClass::Predicate,
               asksPredicate = rule.type.kind == TypeClass::Predicate;
    // The narrowest registers have 16 bits in text of LLVM, so 8-bit values always travel in wider ones.
    const bool fits = width == wanted || ((rule.wider || wanted == 8) && width > wanted);
    if (isPredicate != asksPredicate || !fits || o.value)
      return mismatch(i, "register `" + o.name + "`");
    s.kind = Source::Kind::Register;
    s.slot = slot;
    s.bits = uint8_t(width);
    return true;
  }
  if (rule.isResult())
    return e || module.globals.contains(o.name) || shared.contains(o.name) || specialOf(o.name)
               ? mismatch(i, "result `" + o.name + "`")
               : (error(i.range, DiagnosticKind::UndefinedName, "`" + o.name + "` is not a known register"), false);
  s.bits = uint8_t(rule.type.width());
  s.kind = Source::Kind::Constant;
  s.value = o.value;
  auto alias = module.aliases.find(o.name);
  StringRef name = alias == module.aliases.end() ? StringRef(o.name) : StringRef(alias->second);
  if (e && e->kind == Entry::Kind::Variable) {
    s.value += e->symbol.address;
  } else if (auto global = module.globals.find(name); global != module.globals.end()) {
    s.value += global->second.address;
  } else if (auto it = shared.find(name); it != shared.end()) {
    s.value += it->second.address;
  } else if (auto special = specialOf(o.name)) {
    if (special->constant) {
      s.value += *special->constant;
      return true;
    }
    s.kind = Source::Kind::Special;
    s.special = special->special;
    return rule.type.width() <= widthOf(special->special) && !o.value ? true : mismatch(i, "`" + o.name + "`");
  } else if (o.name == "%envreg1" || o.name == "%envreg2") {
    kernel.cooperative = true;
    s.value = o.name == "%envreg1" ? module.gridWorkspace >> 32 : module.gridWorkspace & 0xffffffff;
    return rule.type.width() == 32 && !o.value ? true : mismatch(i, "`" + o.name + "`");
  } else if (auto offset = reservedOffset(o.name, kernel.reservedShared.value_or(0))) {
    s.value += *offset;
  } else if (module.function(o.name)) {
    error(i.range, DiagnosticKind::UnsupportedFeature, "the address of function `" + o.name + "` is not supported");
    return false;
  } else {
    if (isOfDriver(o.name))
      error(i.range, DiagnosticKind::UnsupportedFeature, "special register `" + o.name + "` is not supported");
    else
      error(i.range, DiagnosticKind::UndefinedName,
            "`" + o.name + "` is not a known register, variable or special register");
    return false;
  }
  return rule.type.width() >= 32 ? true : mismatch(i, "address `" + o.name + "`");
}

bool KernelResolver::bindConstant(const ptx::Instruction &i, const ptx::Operand &o, const OperandForm &rule,
                                  Source &s) {
  using Kind = ptx::Operand::Kind;
  if (rule.isResult() || rule.kind == OperandForm::Kind::Address || rule.elements > 1)
    return mismatch(i, "constant");
  s.kind = Source::Kind::Constant;
  s.bits = uint8_t(rule.type.width());
  s.value = o.value;
  const bool isFloat = rule.type.kind == TypeClass::Float && rule.type.lanes == 1 && rule.type.bits >= 32;
  if (o.kind == Kind::Integer)
    return isFloat && o.value ? mismatch(i, "integer constant") : true;
  if (rule.type.bits != (o.kind == Kind::Float32 ? 32u : 64u)) {
    if (!isFloat)
      return mismatch(i, "float constant");
    s.value = rule.type.bits == 64 ? std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(o.value))))
                                   : std::bit_cast<uint32_t>(float(std::bit_cast<double>(o.value)));
  }
  return true;
}

} // namespace hloc::emulator
