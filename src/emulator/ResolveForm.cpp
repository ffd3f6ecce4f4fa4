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

Scope scopeOf(StringRef name) {
  return StringSwitch<Scope>(name).Case("cta", Scope::Block).Case("cluster", Scope::Cluster).Default(Scope::Device);
}

std::optional<Opcode> opcodeOf(StringRef name) {
  static const StringMap<Opcode> table = {
#define HLOC_PTX_OPCODE(name, text, family, counted, execution) {text, Opcode::name},
#define HLOC_PTX_ALIAS(text, name) {text, Opcode::name},
#include "Opcodes.def"
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
  static constexpr bool (*families[])(Form &) = {
#define HLOC_PTX_OPCODE(name, text, family, counted, execution) decode##family,
#include "Opcodes.def"
  };
  return families[size_t(form.decoded.opcode)](form);
}

bool decodeOpcode(Form &form) { return decodeFamily(form) && form.next().empty(); }

} // namespace hloc::emulator
