// reduce of dimensions on both sides of one that stays, the minor one staying, too -> two, each of which is of columns:
// the bias of attention heads is such a sum, f32[batch,heads,rows,width] over 0 and 2. What the first leaves is smaller
// by the rows. Only where partial results are exact enough: integers, and floats of 32 bits and more, whose sums are in
// no order.
//
//   r = f32[12,64] reduce(f32[8,12,1024,64] x), dimensions={0,2}   ->   p = f32[8,12,64] reduce(x), dimensions={2}
//                                                                       r = f32[12,64] reduce(p), dimensions={0}

#include "Matching.h"
#include "Simplify.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Dims = llvm::SmallVector<int64_t>;

/// Fewer elements that are combined first leave too much to be read again.
constexpr int64_t leastCombinedFirst = 8;

/// May what is combined be combined again, with what a reduction begins with?
bool mayBeSplit(const HloInstruction &reduce) {
  const HloInstruction &combined = *reduce.computation(AttributeKey::ToApply)->root();
  if (!reduce.shape().isArray() || reduce.numOperands() != 2 || combined.numOperands() != 2 ||
      !is(combined.operand(0), Opcode::Parameter) || !is(combined.operand(1), Opcode::Parameter) ||
      combined.operand(0) == combined.operand(1))
    return false;
  const ElementType type = typeOf(&reduce);
  if (is(&combined, Opcode::Add))
    return isPlainZero(reduce.operand(1)) && (isDiscrete(&reduce) || deviceBits(type) >= 32);
  return !isComplex(type) &&
         llvm::is_contained({Opcode::Maximum, Opcode::Minimum, Opcode::And, Opcode::Or}, combined.opcode());
}

/// The reduced dimensions that are neighbours in memory, inside of others that stay: of major, kept, own, kept; empty
/// if the dimensions are otherwise.
Dims innerReduced(const HloInstruction &reduce) {
  const Shape &shape = reduce.operand(0)->shape();
  const llvm::ArrayRef<int64_t> reduced = reduce.ints(AttributeKey::Dimensions);
  Dims inner;
  unsigned turns = 0; // from minor to major
  bool wasReduced = false;
  for (int64_t dim : shape.minorToMajor()) {
    if (shape.dim(unsigned(dim)) == 1)
      continue;
    const bool isReduced = llvm::is_contained(reduced, dim);
    if (turns == 0 && isReduced)
      return {}; // rows
    turns += turns == 0 || isReduced != wasReduced;
    wasReduced = isReduced;
    if (turns == 2)
      inner.push_back(dim);
  }
  return turns >= 4 ? inner : Dims();
}

HloInstruction *splitReduce(HloInstruction &reduce, HloRewriter &r) {
  if (!mayBeSplit(reduce))
    return nullptr;
  Dims inner = innerReduced(reduce);
  const Shape &shape = reduce.operand(0)->shape();
  int64_t combined = 1;
  for (int64_t dim : inner)
    combined *= shape.dim(unsigned(dim));
  if (inner.empty() || combined < leastCombinedFirst)
    return nullptr;
  llvm::sort(inner);
  Dims left, sizes, layout, outer;
  for (int64_t dim = 0; dim < int64_t(shape.rank()); ++dim)
    if (!llvm::is_contained(inner, dim)) {
      if (llvm::is_contained(reduce.ints(AttributeKey::Dimensions), dim))
        outer.push_back(int64_t(left.size()));
      left.push_back(dim);
      sizes.push_back(shape.dim(unsigned(dim)));
    }
  for (int64_t dim : shape.minorToMajor())
    if (const auto *found = llvm::find(left, dim); found != left.end())
      layout.push_back(found - left.begin());
  auto along = [&](const Shape &result, HloInstruction *operand, llvm::ArrayRef<int64_t> dimensions) {
    llvm::SmallVector<Attribute, 4> attributes = ownAttributes(reduce);
    for (Attribute &attribute : attributes)
      if (attribute.key == AttributeKey::Dimensions)
        attribute = r.builder().ints(AttributeKey::Dimensions, dimensions);
    return r.builder().add(Opcode::Reduce, result, {operand, reduce.operand(1)}, attributes);
  };
  HloInstruction *parts = along(Shape::array(typeOf(&reduce), sizes).withLayout(layout), reduce.operand(0), inner);
  return along(reduce.shape(), parts, outer);
}

constexpr RewriteRule rules[] = {{"split-reductions", Opcode::Reduce, splitReduce}};

} // namespace

PassResult splitReductions(HloModule &module, HloPassContext &context) {
  return rewriteBeforeFusing(module, rules, context);
}

} // namespace hloc
