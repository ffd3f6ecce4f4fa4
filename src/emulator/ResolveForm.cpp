#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {

std::optional<Type> typeOf(StringRef name) {
  const uint8_t lanes = name.consume_back("x2") ? 2 : 1;
  if (name == "pred" && lanes == 1)
    return predicateType;
  if (name == "bf16")
    return Type{TypeClass::Bfloat, 16, lanes};
  if (name == "tf32" && lanes == 1)
    return Type{TypeClass::Tf32, 32, 1};
  if (name == "e4m3" || name == "e5m2")
    return Type{name == "e4m3" ? TypeClass::E4m3 : TypeClass::E5m2, 8, lanes};
  unsigned bits;
  if (name.size() < 2 || name.substr(1).getAsInteger(10, bits))
    return std::nullopt;
  const bool sub = bits == 1 || bits == 4; // of mma
  if (!sub && bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return std::nullopt;
  auto kind = StringSwitch<std::optional<TypeClass>>(name.substr(0, 1))
                  .Case("b", TypeClass::Bits)
                  .Case("u", TypeClass::Unsigned)
                  .Case("s", TypeClass::Signed)
                  .Case("f", bits >= 16 ? std::optional(TypeClass::Float) : std::nullopt)
                  .Default(std::nullopt);
  if (!kind || (lanes == 2 && bits != 16 && !(bits == 32 && *kind == TypeClass::Float)))
    return std::nullopt;
  return Type{*kind, uint8_t(bits), lanes};
}

std::optional<Opcode> opcodeOf(StringRef name) {
  static const StringMap<Opcode> table = {
#define HLOC_PTX_OPCODE(name, text) {text, Opcode::name},
#include "Opcodes.def"
      {"ldu", Opcode::Ld},      {"nanosleep", Opcode::Nop},     {"prefetch", Opcode::Nop},   {"prefetchu", Opcode::Nop},
      {"pmevent", Opcode::Nop}, {"applypriority", Opcode::Nop}, {"setmaxnreg", Opcode::Nop},
  };
  auto it = table.find(name);
  return it == table.end() || name == "nop" ? std::nullopt : std::optional(it->second);
}

StringRef Form::next() const { return at < instruction.parts.size() ? StringRef(instruction.parts[at]) : StringRef(); }

bool Form::take(StringRef part) {
  if (next() != part)
    return false;
  ++at;
  return true;
}

StringRef Form::takeAnyOf(StringRef list) {
  const StringRef part = next();
  while (!part.empty() && !list.empty()) {
    auto [word, rest] = list.split(' ');
    if (word == part) {
      ++at;
      return part;
    }
    list = rest;
  }
  return {};
}

std::optional<Type> Form::takeType(StringRef list) { return typeOf(takeAnyOf(list)); }

bool Form::takeTypeInto(Type &type, StringRef list) {
  auto taken = takeType(list);
  if (taken)
    type = *taken;
  return bool(taken);
}

bool Form::takeNarrowSources(size_t sources) {
  if (decoded.type.kind != TypeClass::Float || decoded.type.width() != 32 || decoded.type.lanes != 1 ||
      !takeTypeInto(decoded.from, "f16 bf16"))
    return false;
  result(decoded.type);
  values(sources - 1, decoded.from);
  value(decoded.type);
  return true;
}

bool Form::takeRounding(bool integral) {
  StringRef part = takeAnyOf(integral ? "rni rzi rmi rpi" : "rn rz rm rp");
  if (part.empty())
    return false;
  decoded.integral = integral;
  decoded.rounding = StringSwitch<Rounding>(part.substr(0, 2))
                         .Case("rn", Rounding::Nearest)
                         .Case("rz", Rounding::Zero)
                         .Case("rm", Rounding::Down)
                         .Default(Rounding::Up);
  return true;
}

static bool decodeFamily(Form &form) {
  switch (form.decoded.opcode) {
  case Opcode::Bfe:
  case Opcode::Bfi:
  case Opcode::Bfind:
  case Opcode::Bmsk:
  case Opcode::Brev:
  case Opcode::Clz:
  case Opcode::Dp2a:
  case Opcode::Dp4a:
  case Opcode::Fns:
  case Opcode::Mad24:
  case Opcode::Mul24:
  case Opcode::Popc:
  case Opcode::Prmt:
  case Opcode::Rem:
  case Opcode::Sad:
  case Opcode::Szext:
    return decodeInteger(form);
  case Opcode::And:
  case Opcode::Cnot:
  case Opcode::Lop3:
  case Opcode::Mov:
  case Opcode::Not:
  case Opcode::Or:
  case Opcode::Shf:
  case Opcode::Shl:
  case Opcode::Shr:
  case Opcode::Xor:
    return decodeLogic(form);
  case Opcode::Abs:
  case Opcode::Add:
  case Opcode::Addc:
  case Opcode::Div:
  case Opcode::Mad:
  case Opcode::Madc:
  case Opcode::Max:
  case Opcode::Min:
  case Opcode::Mul:
  case Opcode::Neg:
  case Opcode::Sub:
  case Opcode::Subc:
    return decodeArithmetic(form);
  case Opcode::Copysign:
  case Opcode::Cos:
  case Opcode::Ex2:
  case Opcode::Fma:
  case Opcode::Lg2:
  case Opcode::Rcp:
  case Opcode::Rsqrt:
  case Opcode::Sin:
  case Opcode::Sqrt:
  case Opcode::Tanh:
  case Opcode::Testp:
    return decodeFloat(form);
  case Opcode::Selp:
  case Opcode::Set:
  case Opcode::Setp:
  case Opcode::Slct:
    return decodeCompare(form);
  case Opcode::Cvt:
  case Opcode::Cvta:
  case Opcode::Isspacep:
    return decodeConvert(form);
  case Opcode::Atom:
  case Opcode::Cp:
  case Opcode::Ld:
  case Opcode::Red:
  case Opcode::St:
    return decodeMemory(form);
  case Opcode::Activemask:
  case Opcode::Bar:
  case Opcode::Barrier:
  case Opcode::Elect:
  case Opcode::Match:
  case Opcode::Redux:
  case Opcode::Shfl:
  case Opcode::Vote:
    return decodeCrossLane(form);
  case Opcode::Ldmatrix:
  case Opcode::Mma:
  case Opcode::Stmatrix:
  case Opcode::Wmma:
    return decodeMatrix(form);
  case Opcode::Bra:
  case Opcode::Exit:
  case Opcode::Fence:
  case Opcode::Griddepcontrol:
  case Opcode::Membar:
  case Opcode::Nop:
  case Opcode::Ret:
  case Opcode::Trap:
    return decodeControl(form);
  }
  __builtin_unreachable();
}

bool decodeOpcode(Form &form) { return decodeFamily(form) && form.next().empty(); }

} // namespace hloc::emulator
