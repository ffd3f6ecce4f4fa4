#include "WithLayout.h"

namespace hloc {

HloInstruction *withLayout(HloInstruction *value, const Shape &wanted, HloBuilder &builder) {
  if (value->shape() == wanted || !(wanted.isArray() || wanted.isTuple()))
    return value;
  if (wanted.isArray())
    return builder.add(Opcode::Copy, wanted, {value});
  llvm::SmallVector<HloInstruction *> elements;
  for (unsigned i = 0; i < wanted.elements().size(); ++i) {
    HloInstruction *element = value->opcode() == Opcode::Tuple ? value->operand(i) : builder.tupleElement(value, i);
    elements.push_back(withLayout(element, wanted.element(i), builder));
  }
  return builder.tuple(elements);
}

} // namespace hloc
