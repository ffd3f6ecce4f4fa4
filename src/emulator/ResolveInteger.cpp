// Integer instructions: bit fields, counts, 24-bit products, dot products, permutation of bytes.
#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr StringLiteral wordTypes = "u32 s32 u64 s64";

bool decodePermute(Form &f) {
  f.decoded.type = b32;
  if (!f.take("b32"))
    return false;
  f.decoded.mode = StringSwitch<Mode>(f.takeAnyOf("f4e b4e rc8 ecl ecr rc16"))
                       .Case("f4e", Mode::Forward4)
                       .Case("b4e", Mode::Backward4)
                       .Case("rc8", Mode::Replicate8)
                       .Case("ecl", Mode::ClampLeft)
                       .Case("ecr", Mode::ClampRight)
                       .Case("rc16", Mode::Replicate16)
                       .Default(Mode::None);
  f.result(b32);
  f.values(3, b32);
  return true;
}

bool decodeDotProduct(Form &f) {
  Decoded &d = f.decoded;
  if (d.opcode == Opcode::Dp2a) {
    StringRef half = f.takeAnyOf("lo hi");
    if (half.empty())
      return false;
    d.mode = half == "lo" ? Mode::Lo : Mode::Hi;
  }
  if (!f.takeTypeInto(d.type, "u32 s32") || !f.takeTypeInto(d.from, "u32 s32"))
    return false;
  f.result(b32);
  f.values(3, b32);
  return true;
}

/// mul24.lo.u32, mad24.hi.sat.s32
bool decode24(Form &f) {
  Decoded &d = f.decoded;
  StringRef half = f.takeAnyOf("lo hi");
  if (half.empty())
    return false;
  d.mode = half == "lo" ? Mode::Lo : Mode::Hi;
  if (d.opcode == Opcode::Mad24 && half == "hi")
    f.takeFlag(d.saturate, "sat");
  if (!f.takeTypeInto(d.type, d.saturate ? "s32" : "u32 s32"))
    return false;
  f.result(d.type);
  f.values(d.opcode == Opcode::Mad24 ? 3 : 2, d.type);
  return true;
}

} // namespace

bool decodeInteger(Form &f) {
  Decoded &d = f.decoded;
  switch (d.opcode) {
  case Opcode::Popc:
  case Opcode::Clz:
  case Opcode::Brev:
    if (!f.takeTypeInto(d.type, "b32 b64"))
      return false;
    f.result(d.opcode == Opcode::Brev ? d.type : b32);
    f.value(d.type);
    return true;
  case Opcode::Bfind:
    f.takeFlag(d.wrap, "shiftamt");
    if (!f.takeTypeInto(d.type, wordTypes))
      return false;
    f.result(b32);
    f.value(d.type);
    return true;
  case Opcode::Bfe:
    if (!f.takeTypeInto(d.type, wordTypes))
      return false;
    f.result(d.type);
    f.value(d.type);
    f.values(2, b32);
    return true;
  case Opcode::Bfi:
    if (!f.takeTypeInto(d.type, "b32 b64"))
      return false;
    f.result(d.type);
    f.values(2, d.type);
    f.values(2, b32);
    return true;
  case Opcode::Bmsk:
  case Opcode::Szext: {
    StringRef kind = f.takeAnyOf("wrap clamp");
    d.wrap = kind == "wrap";
    if (kind.empty() || !f.takeTypeInto(d.type, d.opcode == Opcode::Bmsk ? "b32" : "u32 s32"))
      return false;
    f.result(d.type);
    f.values(2, b32);
    return true;
  }
  case Opcode::Fns:
    if (!f.takeTypeInto(d.type, "b32"))
      return false;
    f.result(b32);
    f.values(3, b32);
    return true;
  case Opcode::Sad:
  case Opcode::Rem:
    if (!f.takeTypeInto(d.type, "u16 s16 u32 s32 u64 s64"))
      return false;
    f.result(d.type);
    f.values(d.opcode == Opcode::Sad ? 3 : 2, d.type);
    return true;
  case Opcode::Mad24:
  case Opcode::Mul24:
    return decode24(f);
  case Opcode::Dp2a:
  case Opcode::Dp4a:
    return decodeDotProduct(f);
  case Opcode::Prmt:
    return decodePermute(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
