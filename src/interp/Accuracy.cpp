#include "interp/Accuracy.h"

#include <algorithm>
#include <cmath>

namespace hloc::interp {

bool rounds(Opcode opcode) {
  switch (opcode) {
  case Opcode::Negate:
  case Opcode::Maximum:
  case Opcode::Minimum:
  case Opcode::Clamp:
  case Opcode::Select:
  case Opcode::Floor:
  case Opcode::Ceil:
  case Opcode::RoundNearestAfz:
  case Opcode::RoundNearestEven:
  case Opcode::Real:
  case Opcode::Imag:
  case Opcode::Complex:
  case Opcode::IsFinite:
  case Opcode::Compare:
  case Opcode::Remainder:
  case Opcode::ReducePrecision:
  case Opcode::Copy:
    return false;
  default:
    return true;
  }
}

double permittedUlps(const HloInstruction &instr, Backend backend) {
  (void)backend;
  ElementType type = instr.shape().elementType();
  bool complex = isComplex(instr.operand(0)->shape().elementType());
  switch (instr.opcode()) {
  case Opcode::Add:
  case Opcode::Subtract:
  case Opcode::Convert:
    return 0.5;
  case Opcode::Multiply:
    return complex ? 2 : 0.5;
  case Opcode::Abs:
  case Opcode::Sign:
    return complex ? 3 : 0;
  case Opcode::Divide:
    return complex ? 6 : type == ElementType::F64 ? 0.5 : type == ElementType::F32 ? 2.5 : 0.52;
  case Opcode::Sqrt:
    return complex ? 4 : type == ElementType::F64 ? 0.5 : type == ElementType::F32 ? 1 : 0.51;
  default:
    return type == ElementType::F64 || complex ? 4 : type == ElementType::F32 ? 4 : 0.6;
  }
}

double sumRoundings(double terms) { return std::min(terms, 2 * std::sqrt(terms)); }

} // namespace hloc::interp
