#include "interp/FusedSums.h"

namespace hloc::interp {

static bool isFusedType(const Shape &shape) {
  return shape.isArray() && (shape.elementType() == ElementType::F32 || shape.elementType() == ElementType::F64);
}

uint64_t FusedSums::keep(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands) {
  if (instr.opcode() != Opcode::Multiply || !isFusedType(instr.shape()))
    return 0;
  factors[&instr] = {operands[0].value, operands[1].value};
  return operands[0].array().bytes().size() + operands[1].array().bytes().size();
}

void FusedSums::apply(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) const {
  const bool subtracts = instr.opcode() == Opcode::Subtract;
  if ((!subtracts && instr.opcode() != Opcode::Add) || !isFusedType(instr.shape()))
    return;
  unsigned number = takesLast ? 1 : 0;
  auto found = factors.find(instr.operand(number));
  if (found == factors.end())
    found = factors.find(instr.operand(number = 1 - number));
  if (found == factors.end())
    return;
  // f32: x * y has at most 48 bits, and what is added is rounded to f64's before it is to f32's.
  const Literal x = asBound(found->second.first.array()), y = asBound(found->second.second.array());
  const Literal z = asBound(operands[1 - number].array());
  const double ofProduct = subtracts && number == 1 ? -1 : 1, ofOther = subtracts && number == 0 ? -1 : 1;
  Literal sums = asBound(result.array());
  auto values = sums.mutableData<double>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::fma(ofProduct * x.data<double>()[i], y.data<double>()[i], ofOther * z.data<double>()[i]);
  result = Bounded(Value(asValue(sums, result.array().shape())), nullptr, result.unrounded);
}

} // namespace hloc::interp
