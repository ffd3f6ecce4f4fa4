#include "emitters/heroes/CollectedElements.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {

void CollectedElements::addEmpty(Type type, SmallVector<Value> &vectors) const {
  auto complex = dyn_cast<ComplexType>(type);
  Type element = complex ? complex.getElementType() : type;
  auto vectorType = VectorType::get({count}, element);
  for (unsigned i = 0; i < (complex ? 2 : 1); ++i)
    vectors.push_back(arith::ConstantOp::create(*b, cast<TypedAttr>(b->getZeroAttr(vectorType))));
}

void CollectedElements::insert(Value value, OpFoldResult lane, ValueRange vectors, unsigned &next,
                               SmallVector<Value> &inserted) const {
  SmallVector<Value, 2> parts = {value};
  if (isa<ComplexType>(value.getType()))
    parts = {b->real(value), b->imag(value)};
  for (Value part : parts)
    inserted.push_back(vector::InsertOp::create(*b, part, vectors[next++], lane));
}

Value CollectedElements::extract(Type type, OpFoldResult lane, ValueRange vectors, unsigned &next) const {
  auto part = [&]() -> Value { return vector::ExtractOp::create(*b, vectors[next++], lane); };
  if (!isa<ComplexType>(type))
    return part();
  Value re = part(), im = part();
  return b->complex(re, im);
}

CollectedLists::CollectedLists(CodeBuilder &b, ArrayRef<Values> lists)
    : b(&b), collected(b, int64_t(lists.size())), types(ValueRange(lists.front()).getTypes()) {
  for (Type type : types)
    collected.addEmpty(type, vectors);
  for (auto [i, list] : llvm::enumerate(lists)) {
    unsigned vector = 0;
    Values next;
    for (Value value : list)
      collected.insert(value, b.getIndexAttr(int64_t(i)), vectors, vector, next);
    vectors = std::move(next);
  }
}

void CollectedLists::append(TypeRange moreTypes,
                            llvm::function_ref<Values(const CollectedElements &, ValueRange)> make) {
  Values more;
  for (Type type : moreTypes)
    collected.addEmpty(type, more);
  llvm::append_range(types, moreTypes);
  llvm::append_range(vectors, make(collected, more));
}

CollectedLists::Values CollectedLists::at(ValueRange variables) const {
  OpFoldResult number = variables.empty() ? OpFoldResult(b->getIndexAttr(0)) : OpFoldResult(variables.front());
  Values values;
  unsigned vector = 0;
  for (Type type : types)
    values.push_back(collected.extract(type, number, vectors, vector));
  return values;
}

} // namespace hloc
