// topk -> sorts and slices; sorts of elements that share bytes -> sorts of bytes, which threads store one by one.

#include "Expansion.h"
#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// A computation of two values and their positions that says whether the first value comes before the other. It stands
/// before all others.
HloComputation *valueOrder(HloModule &module, ElementType type, bool largestFirst) {
  std::string name = std::string(largestFirst ? "largest_first." : "smallest_first.") + text(type).str();
  if (HloComputation *known = module.findComputation(name))
    return known;
  HloComputation *order = module.addComputationBefore(*module.computations().front(), name);
  HloBuilder b(*order);
  Shape value = Shape::scalar(type), position = Shape::scalar(ElementType::S32);
  HloInstruction *x = b.parameter(0, value, "x"), *y = b.parameter(1, value, "y");
  b.parameter(2, position, "position_of_x");
  b.parameter(3, position, "position_of_y");
  llvm::SmallVector<Attribute, 2> attributes = {
      {AttributeKey::Direction, int64_t(largestFirst ? ComparisonDirection::Gt : ComparisonDirection::Lt)}};
  if (isFloat(type))
    attributes.push_back({AttributeKey::Type, int64_t(ComparisonType::TotalOrder)});
  order->setRoot(b.infer(Opcode::Compare, {x, y}, attributes));
  return order;
}

/// Values with their positions.
struct Candidates {
  HloInstruction *values, *positions;
  int64_t length() const { return values->shape().dims().back(); }
};

/// The same range of the last dimension of both.
Candidates rangeOf(Expansion &x, const Candidates &from, int64_t start, int64_t limit) {
  const unsigned last = from.values->shape().rank() - 1;
  return {x.range(from.values, last, start, limit), x.range(from.positions, last, start, limit)};
}

Candidates sorted(HloBuilder &b, const Candidates &from, HloComputation *order) {
  int64_t dim = int64_t(from.values->shape().rank()) - 1;
  HloInstruction *sort =
      b.add(Opcode::Sort, Shape::tuple({from.values->shape(), from.positions->shape()}), {from.values, from.positions},
            {b.ints(AttributeKey::Dimensions, {dim}), Attribute{AttributeKey::IsStable, true},
             Attribute{AttributeKey::ToApply, order}});
  return {b.tupleElement(sort, 0), b.tupleElement(sort, 1)};
}

/// What a block sorts in shared memory, of elements of all sizes.
constexpr int64_t elementsOfBlock = 1024;

/// Fewer of long rows, in the order of their positions where they are equal: of each part that a block sorts the first
/// k, and what is left at the end.
Candidates firstOfParts(Expansion &x, const Candidates &from, int64_t k, HloComputation *order) {
  HloBuilder &b = x.builder();
  int64_t parts = from.length() / elementsOfBlock, whole = parts * elementsOfBlock;
  llvm::SmallVector<int64_t> split(from.values->shape().dims());
  split.back() = parts;
  split.push_back(elementsOfBlock);
  Candidates main = rangeOf(x, from, 0, whole);
  Candidates first =
      rangeOf(x, sorted(b, {b.reshape(main.values, split), b.reshape(main.positions, split)}, order), 0, k);
  split.pop_back();
  split.back() = parts * k;
  Candidates rest = rangeOf(x, from, whole, from.length());
  auto dim = int64_t(split.size()) - 1;
  auto joined = [&](HloInstruction *one, HloInstruction *other) {
    one = b.reshape(one, split);
    return whole == from.length() ? one : b.concatenate({one, other}, dim);
  };
  return {joined(first.values, rest.values), joined(first.positions, rest.positions)};
}

/// Values by total order, equal ones by position: a stable sort has them so. Of long rows not all is sorted.
HloInstruction *expandTopK(HloInstruction &instr, HloRewriter &rewriter) {
  HloInstruction *values = instr.operand(0);
  if (isComplex(values->shape().elementType()))
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  HloBuilder &b = x.builder();
  int64_t k = instr.intOr(AttributeKey::K, 0), dim = int64_t(values->shape().rank()) - 1;
  bool isLong = values->shape().dims().back() >= 4 * elementsOfBlock && k > 0 && k <= elementsOfBlock / 8;
  if (isLong)
    values = x.plain(values);
  const Shape &shape = values->shape();
  Candidates candidates = {
      values, b.add(Opcode::Iota, shape.withElementType(ElementType::S32), {}, {{AttributeKey::IotaDimension, dim}})};
  HloComputation *order =
      valueOrder(instr.parent()->module(), shape.elementType(), instr.flag(AttributeKey::Largest, true));
  while (isLong && candidates.length() >= 4 * elementsOfBlock)
    candidates = firstOfParts(x, candidates, k, order);
  Candidates first = rangeOf(x, sorted(b, candidates, order), 0, k);
  llvm::SmallVector<HloInstruction *> results;
  for (auto [made, wanted] : llvm::zip_equal(llvm::ArrayRef({first.values, first.positions}), instr.shape().elements()))
    results.push_back(x.result(made, wanted));
  return b.tuple(results);
}

/// The type of a byte that holds all values of a packed type; the type itself if it is none.
ElementType wideType(ElementType type) {
  if (deviceBits(type) >= 8 || isPred(type))
    return type;
  if (isFloat(type))
    return ElementType::F8E4M3FN;
  return isSigned(type) ? ElementType::S8 : ElementType::U8;
}

/// The comparator for elements of wide types.
HloComputation *widened(const HloComputation &comparator, const HloInstruction &sort) {
  HloModule &module = sort.parent()->module();
  HloComputation *wide =
      module.addComputationBefore(*sort.parent(), freshComputationName(module, comparator.name().str() + ".wide"));
  HloBuilder b(*wide);
  std::vector<HloInstruction *> mapped(comparator.instructions().size());
  for (HloInstruction *parameter : comparator.parameters()) {
    ElementType type = parameter->shape().elementType();
    mapped[parameter->id()] = b.parameter(parameter->parameterNumber(), Shape::scalar(wideType(type)));
  }
  for (HloInstruction *parameter : comparator.parameters())
    mapped[parameter->id()] = b.convert(mapped[parameter->id()], parameter->shape().elementType());
  for (HloInstruction *instr : comparator.instructions()) {
    if (instr->opcode() == Opcode::Parameter)
      continue;
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    b.setRange(instr->range());
    mapped[instr->id()] = b.clone(*instr, operands);
  }
  wide->setRoot(mapped[comparator.root()->id()]);
  return wide;
}

HloInstruction *widenSort(HloInstruction &instr, HloRewriter &rewriter) {
  auto isPacked = [](const HloInstruction *operand) {
    return wideType(operand->shape().elementType()) != operand->shape().elementType();
  };
  if (llvm::none_of(instr.operands(), isPacked))
    return nullptr;
  HloBuilder &b = rewriter.builder();
  llvm::SmallVector<HloInstruction *> operands;
  llvm::SmallVector<Shape> shapes;
  for (auto [i, operand] : llvm::enumerate(instr.operands())) {
    operands.push_back(b.convert(operand, wideType(operand->shape().elementType())));
    const Shape &result = instr.resultShape(unsigned(i));
    shapes.push_back(result.withElementType(wideType(result.elementType())));
  }
  HloInstruction *sorted =
      b.add(Opcode::Sort, shapes.size() == 1 ? shapes.front() : Shape::tuple(shapes), operands,
            {b.ints(AttributeKey::Dimensions, instr.ints(AttributeKey::Dimensions)),
             Attribute{AttributeKey::IsStable, instr.flag(AttributeKey::IsStable)},
             Attribute{AttributeKey::ToApply, widened(*instr.computation(AttributeKey::ToApply), instr)}});
  if (instr.shape().isArray())
    return b.convert(sorted, instr.shape().elementType());
  llvm::SmallVector<HloInstruction *> results;
  for (unsigned i = 0; i < instr.numResults(); ++i)
    results.push_back(b.convert(b.tupleElement(sorted, i), instr.resultShape(i).elementType()));
  return b.tuple(results);
}

constexpr RewriteRule rules[] = {
    {"expand-sorts.top-k", Opcode::TopK, expandTopK},
    {"expand-sorts.of-packed-elements", Opcode::Sort, widenSort},
};

} // namespace

PassResult expandSorts(HloModule &module, HloPassContext &context) { return rewriteModule(module, rules, context); }

} // namespace hloc
