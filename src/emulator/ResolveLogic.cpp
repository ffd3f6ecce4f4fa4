// Moves, bitwise logic and shifts.
#include "ResolveForm.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

/// mov.b64 {%r1, %r2}, %rd1 and back: the elements of the side with braces share the bits of the other.
bool decodeMove(Form &f) {
  Type &type = f.decoded.type;
  if (!f.takeTypeInto(type, "pred b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64"))
    return false;
  using Kind = OperandForm::Kind;
  for (size_t side = 0; side < 2; ++side) {
    const bool braces = side < f.numOperands() && f.instruction.operands[side].kind == ptx::Operand::Kind::Vector;
    const size_t elements = braces ? f.instruction.operands[side].elements.size() : 1;
    if (elements == 0 || type.bits % elements || (elements > 1 && type.bits / elements < 8))
      return false;
    Type part = elements == 1 ? type : Type{TypeClass::Bits, uint8_t(type.bits / elements), 1};
    if (side == 0)
      f.add(braces ? Kind::Results : Kind::Result, part, unsigned(elements));
    else
      f.add(braces ? Kind::Values : Kind::Value, part, unsigned(elements));
  }
  return true;
}

bool decodeFunnelShift(Form &f) {
  StringRef direction = f.takeAnyOf("l r"), amount = f.takeAnyOf("wrap clamp");
  f.decoded.transposed = direction == "r";
  f.decoded.wrap = amount == "wrap";
  f.result(b32);
  f.values(3, b32);
  return !direction.empty() && !amount.empty() && f.takeTypeInto(f.decoded.type, "b32");
}

} // namespace

bool decodeLogic(Form &f) {
  Type &type = f.decoded.type;
  switch (f.decoded.opcode) {
  case Opcode::Mov:
    return decodeMove(f);
  case Opcode::Shf:
    return decodeFunnelShift(f);
  case Opcode::Lop3:
    if (!f.takeTypeInto(type, "b32"))
      return false;
    f.result(b32);
    f.values(3, b32);
    f.add(OperandForm::Kind::Immediate, b32);
    return true;
  case Opcode::Shl:
  case Opcode::Shr:
    if (!f.takeTypeInto(type, f.decoded.opcode == Opcode::Shl ? "b16 b32 b64" : "b16 b32 b64 u16 u32 u64 s16 s32 s64"))
      return false;
    f.result(type);
    f.value(type);
    f.value(b32);
    return true;
  case Opcode::And:
  case Opcode::Or:
  case Opcode::Xor:
  case Opcode::Not:
  case Opcode::Cnot:
    if (!f.takeTypeInto(type, f.decoded.opcode == Opcode::Cnot ? "b16 b32 b64" : "pred b16 b32 b64"))
      return false;
    f.result(type);
    f.values(f.decoded.opcode == Opcode::Not || f.decoded.opcode == Opcode::Cnot ? 1 : 2, type);
    return true;
  default:
    return false;
  }
}

} // namespace hloc::emulator
