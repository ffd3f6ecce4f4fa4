// Which instructions translated code does not lower itself.
#include "Program.h"

namespace hloc::emulator {
namespace {

bool isStorageOnly(Type type) {
  return type.kind == TypeClass::Tf32 || type.kind == TypeClass::E4m3 || type.kind == TypeClass::E5m2;
}

} // namespace

bool isCollective(const Decoded &d) {
  switch (d.opcode) {
  case Opcode::Activemask:
  case Opcode::Bfind:
  case Opcode::Bmsk:
  case Opcode::Cnot:
  case Opcode::Cp:
  case Opcode::Dp2a:
  case Opcode::Dp4a:
  case Opcode::Elect:
  case Opcode::Fence:
  case Opcode::Fns:
  case Opcode::Isspacep:
  case Opcode::Ldmatrix:
  case Opcode::Mad24:
  case Opcode::Match:
  case Opcode::Membar:
  case Opcode::Mma:
  case Opcode::Mul24:
  case Opcode::Redux:
  case Opcode::Sad:
  case Opcode::Set:
  case Opcode::Shfl:
  case Opcode::Slct:
  case Opcode::Stmatrix:
  case Opcode::Szext:
  case Opcode::Testp:
  case Opcode::Vote:
  case Opcode::Wmma:
    return true;
  case Opcode::Cvt: // cvt.pack has three operands of integer type
    return isStorageOnly(d.type) || isStorageOnly(d.from) || d.relu || d.satfinite ||
           (d.operands.size() > 2 && !d.from.isFloat());
  case Opcode::Fma:
    return d.relu;
  case Opcode::Max:
  case Opcode::Min:
    return d.xorSign || d.relu || d.operands.size() == 4;
  case Opcode::Prmt:
    return d.mode != Mode::None;
  case Opcode::Setp:
    return d.type.lanes == 2;
  case Opcode::Abs:
  case Opcode::Add:
  case Opcode::Addc:
  case Opcode::And:
  case Opcode::Atom:
  case Opcode::Bar:
  case Opcode::Barrier:
  case Opcode::Bfe:
  case Opcode::Bfi:
  case Opcode::Bra:
  case Opcode::Brev:
  case Opcode::Clz:
  case Opcode::Copysign:
  case Opcode::Cos:
  case Opcode::Cvta:
  case Opcode::Div:
  case Opcode::Ex2:
  case Opcode::Exit:
  case Opcode::Griddepcontrol:
  case Opcode::Ld:
  case Opcode::Lg2:
  case Opcode::Lop3:
  case Opcode::Mad:
  case Opcode::Madc:
  case Opcode::Mov:
  case Opcode::Mul:
  case Opcode::Neg:
  case Opcode::Nop:
  case Opcode::Not:
  case Opcode::Or:
  case Opcode::Popc:
  case Opcode::Rcp:
  case Opcode::Red:
  case Opcode::Rem:
  case Opcode::Ret:
  case Opcode::Rsqrt:
  case Opcode::Selp:
  case Opcode::Shf:
  case Opcode::Shl:
  case Opcode::Shr:
  case Opcode::Sin:
  case Opcode::Sqrt:
  case Opcode::St:
  case Opcode::Sub:
  case Opcode::Subc:
  case Opcode::Tanh:
  case Opcode::Trap:
  case Opcode::Xor:
    return false;
  }
  __builtin_unreachable();
}

} // namespace hloc::emulator
