#include "fuzz/FusionGenerator.h"

#include "fuzz/FusionMaker.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hloc {

namespace {

using Key = AttributeKey;
using Values = llvm::SmallVector<HloInstruction *, 4>;
using Dims = FusionMaker::Dims;

/// Values of `candidates` as further outputs, each now and then, changed elementwise or as it is.
void addSideOutputs(FusionMaker &m, Operands candidates, Values &outputs) {
  for (HloInstruction *candidate : candidates)
    if (m.g.oneIn(6))
      outputs.push_back(m.elementwise(candidate, 1));
}

Values makeLoop(FusionMaker &m) {
  Values outputs;
  HloInstruction *x = m.elementwise(m.parameter(m.anyArray(0, 4)), 3);
  for (int64_t i = m.g.below(3); i > 0; --i) {
    HloInstruction *before = x;
    x = m.elementwise(m.move(x), 3);
    addSideOutputs(m, {before}, outputs);
  }
  outputs.push_back(m.elementwise(x, 2));
  return outputs;
}

/// A permutation that moves something; the minor dimension most often.
Dims movingPermutation(FusionMaker &m, unsigned rank) {
  Dims permutation = m.g.permutation(rank);
  for (int attempt = 0; attempt < 3 && permutation.back() == int64_t(rank) - 1; ++attempt)
    permutation = m.g.permutation(rank);
  return permutation;
}

Values makeTranspose(FusionMaker &m) {
  Shape shape = m.anyArray(2, 4);
  Dims permutation = movingPermutation(m, shape.rank());
  bool isCopy = m.g.oneIn(3);
  auto hero = [&](HloInstruction *x) {
    return isCopy ? m.add(Opcode::Copy, {x}, {}, Shape(), permutation) : m.transpose(x, permutation);
  };
  HloInstruction *x = m.elementwise(m.parameter(shape), 2);
  HloInstruction *t = hero(x);
  Values outputs{m.elementwise(t, 2)};
  if (m.g.oneIn(3)) {
    HloInstruction *other = hero(m.elementwise(m.parameter(shape), 1));
    HloInstruction *sum = m.add(Opcode::Add, {outputs.front(), other});
    outputs.push_back(sum ? sum : other);
  }
  addSideOutputs(m, {x, t, x}, outputs);
  return outputs;
}

enum class Reduced { Minor, Major, All, Any };

/// Of the shape, as it lies in memory.
Dims dimensionsOf(FusionMaker &m, const Shape &shape, Reduced which) {
  Dims order(shape.minorToMajor());
  if (which == Reduced::Any)
    return m.g.someOf(shape.rank());
  if (which == Reduced::Major && order.size() > 1)
    order.erase(order.begin());
  if (which != Reduced::All)
    order.resize(m.g.between(1, std::max<int64_t>(1, int64_t(order.size()) - m.g.below(2))), 0);
  llvm::sort(order);
  return order;
}

/// (value, index) pairs: the greatest value, the first of equal ones. As jax writes argmax, but for the value of a tie,
/// which there is the second: of two zeros that depends on the order.
HloComputation *argumentOfMaximum(GeneratorState &g, ElementType value, ElementType index) {
  Shape v = Shape::scalar(value), i = Shape::scalar(index), p = Shape::scalar(ElementType::Pred);
  return g.function({v, i, v, i}, [&](HloComputation &computation, Operands x) {
    HloBuilder b(computation);
    auto compare = [&](ComparisonDirection direction, HloInstruction *lhs, HloInstruction *rhs) {
      return b.add(Opcode::Compare, p, {lhs, rhs}, {{Key::Direction, static_cast<int64_t>(direction)}});
    };
    HloInstruction *greater = b.add(Opcode::Or, p,
                                    {compare(ComparisonDirection::Gt, x[0], x[2]), // NaN is, too
                                     compare(ComparisonDirection::Ne, x[0], x[0])});
    HloInstruction *tie = b.add(
        Opcode::And, p, {compare(ComparisonDirection::Eq, x[0], x[2]), compare(ComparisonDirection::Lt, x[1], x[3])});
    HloInstruction *first = b.add(Opcode::Or, p, {greater, tie});
    return b.tuple({b.add(Opcode::Select, v, {first, x[0], x[2]}), b.add(Opcode::Select, i, {first, x[1], x[3]})});
  });
}

/// The results of one reduce.
Values reduce(FusionMaker &m, HloInstruction *x, llvm::ArrayRef<int64_t> dimensions) {
  GeneratorState &g = m.g;
  Values operands{x};
  const Shape &shape = x->shape();
  bool isArgument = g.oneIn(6) && shape.rank() && !isComplex(shape.elementType());
  if (isArgument)
    operands.push_back(m.add(Opcode::Iota, {}, {g.integer(Key::IotaDimension, g.below(shape.rank()))},
                             shape.withElementType(ElementType::S32), shape.minorToMajor()));
  else
    for (int64_t more = g.oneIn(5) ? g.between(1, 2) : 0; more > 0; --more)
      operands.push_back(m.elementwise(m.parameter(Shape::array(m.anyType(), shape.dims())), 1));
  llvm::SmallVector<ElementType, 3> types;
  for (HloInstruction *operand : operands)
    types.push_back(operand->shape().elementType());
  // A value that is no element's, lest they tie.
  double least = isArgument && !isPred(types[0]) && !isUnsigned(types[0]) ? -100 : 0;
  for (auto [i, type] : llvm::enumerate(types))
    operands.push_back(g.oneIn(3) ? m.parameter(Shape::scalar(type))
                                  : HloBuilder(*g.entry).scalar(type, i == 0 ? least : 0));
  HloComputation *reducer = isArgument ? argumentOfMaximum(g, types[0], types[1]) : g.reducer(types);
  HloInstruction *made =
      m.add(Opcode::Reduce, operands, {g.ints(Key::Dimensions, dimensions), g.callee(Key::ToApply, reducer)});
  if (!made || types.size() == 1)
    return {made};
  Values results;
  for (size_t i = 0; i < types.size(); ++i)
    results.push_back(HloBuilder(*g.entry).tupleElement(made, i));
  return results;
}

Values makeReduction(FusionMaker &m, Reduced which) {
  GeneratorState &g = m.g;
  Shape shape = m.anyArray(1, 4);
  HloInstruction *x = m.elementwise(m.parameter(shape), 2);
  if (isFloat(x->shape().elementType()) && g.oneIn(3))
    x = m.convert(x, ElementType::F32);
  Dims dimensions = dimensionsOf(m, shape, which);
  Values outputs, results = reduce(m, x, dimensions);
  if (results.size() == 1 && g.oneIn(5) && results[0]) // of the same or a similar array
    llvm::append_range(results, reduce(m, m.elementwise(x, 2), dimensions));
  llvm::erase(results, nullptr);
  for (HloInstruction *result : results)
    outputs.push_back(m.elementwise(result, 2));
  addSideOutputs(m, {x, x}, outputs);
  addSideOutputs(m, results, outputs);
  return outputs;
}

Values makeRowReduction(FusionMaker &m) { return makeReduction(m, Reduced::Minor); }
Values makeColumnReduction(FusionMaker &m) { return makeReduction(m, Reduced::Major); }
Values makeFullReduction(FusionMaker &m) { return makeReduction(m, Reduced::All); }
Values makeAnyReduction(FusionMaker &m) { return makeReduction(m, Reduced::Any); }

/// Sums or maxima, which may be made in any order.
HloComputation *sumOrMaximum(GeneratorState &g, ElementType type) {
  Shape scalar = Shape::scalar(type);
  Opcode opcode = isComplex(type) || g.oneIn(2) ? Opcode::Add : Opcode::Maximum;
  return g.function({scalar, scalar}, [&](HloComputation &computation, Operands x) {
    return HloBuilder(computation).add(opcode, scalar, {x[0], x[1]});
  });
}

/// Reductions over `kept`'s other dimensions, given back to the elements of `x` that they are made of.
HloInstruction *giveBack(FusionMaker &m, HloInstruction *x, HloInstruction *result, llvm::ArrayRef<int64_t> kept) {
  ElementType type = x->shape().elementType();
  HloInstruction *ofAll = m.add(Opcode::Broadcast, {m.convert(result, type)}, {m.g.ints(Key::Dimensions, kept)},
                                x->shape(), x->shape().minorToMajor());
  HloInstruction *next = m.add(m.g.oneIn(2) && !isComplex(type) ? Opcode::Maximum : Opcode::Add, {x, ofAll});
  return next ? next : ofAll;
}

/// No hero of stages stores elements that share bytes.
HloInstruction *inWholeBytes(FusionMaker &m, HloInstruction *x) {
  return deviceBits(x->shape().elementType()) < 8 ? m.convert(x, ElementType::S8) : x;
}

/// Reductions, each given back to the elements that it is made of, which go into the next. Where their order may
/// matter, every element makes its own: no more than one then.
Values makeStages(FusionMaker &m, Reduced which) {
  GeneratorState &g = m.g;
  Shape shape = m.anyArray(which == Reduced::Major ? 2 : 1, 3);
  Dims dimensions = dimensionsOf(m, shape, which), kept, order;
  for (int64_t i = 0; i < int64_t(shape.rank()); ++i)
    if (!llvm::is_contained(dimensions, i))
      kept.push_back(i);
  for (int64_t dim : shape.minorToMajor())
    if (const int64_t *at = llvm::find(kept, dim); at != kept.end())
      order.push_back(at - kept.begin());
  const bool anyOrder = !g.oneIn(4), ownLayout = !g.oneIn(4);
  HloInstruction *x = m.elementwise(m.parameter(shape), 2);
  Values outputs;
  for (int64_t stages = anyOrder ? g.between(1, 3) : 1; stages > 0 && x; --stages) {
    ElementType type = x->shape().elementType();
    HloComputation *reducer = anyOrder ? sumOrMaximum(g, type) : g.reducer({type});
    HloInstruction *result = m.add(Opcode::Reduce, {x, HloBuilder(*g.entry).scalar(type, 0)},
                                   {g.ints(Key::Dimensions, dimensions), g.callee(Key::ToApply, reducer)}, Shape(),
                                   ownLayout ? std::optional<llvm::ArrayRef<int64_t>>(order) : std::nullopt);
    HloInstruction *changed = result ? m.elementwise(result, 1) : nullptr;
    if (!changed)
      break;
    addSideOutputs(m, {x, result}, outputs);
    x = m.elementwise(giveBack(m, x, changed, kept), 2);
  }
  if (x)
    outputs.push_back(inWholeBytes(m, x));
  return outputs;
}

HloInstruction *reduceInAnyOrder(FusionMaker &m, HloInstruction *x, int64_t dimension) {
  ElementType type = x->shape().elementType();
  return m.add(Opcode::Reduce, {x, HloBuilder(*m.g.entry).scalar(type, 0)},
               {m.g.ints(Key::Dimensions, {dimension}), m.g.callee(Key::ToApply, sumOrMaximum(m.g, type))});
}

/// Rows in stages, and beside them columns of what they come to on the way. Plain ones, which the hero of rows takes,
/// are so many that blocks take several rounds. Of others each element may make its row's reduction: one stage of fewer
/// elements.
Values makeRowsWithColumns(FusionMaker &m) {
  constexpr int64_t mostSteps = 1 << 21, mostRows = 1100, longestRow = 300;
  static const ElementType types[] = {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::S32};
  GeneratorState &g = m.g;
  const int64_t mostElements = std::min<int64_t>(m.allowLargest(), 1 << 16);
  const bool isPlain = g.oneIn(2);
  const int64_t length = !isPlain     ? std::max<int64_t>(m.edgeSize(longestRow), 1)
                         : g.oneIn(2) ? int64_t(32) << g.below(3)
                                      : g.between(20, longestRow);
  const int64_t rows = isPlain ? mostElements / length >> g.below(3)
                               : m.edgeSize(std::clamp<int64_t>(mostSteps / (length * length), 1, mostRows));
  const Shape shape = Shape::array(isPlain ? types[g.below(std::size(types))] : m.anyType(), {rows, length});
  HloInstruction *x =
      isPlain ? m.add(Opcode::Multiply, {m.parameter(shape), m.operand(shape)}) : m.elementwise(m.parameter(shape), 2);
  Values outputs;
  for (int64_t stages = isPlain ? g.between(1, 3) : 1; stages > 0 && x; --stages) {
    if (g.oneIn(2))
      outputs.push_back(reduceInAnyOrder(m, x, 0));
    HloInstruction *result = reduceInAnyOrder(m, x, 1);
    if (!isPlain || g.oneIn(4))
      addSideOutputs(m, {x, result}, outputs);
    x = giveBack(m, x, result, {0});
  }
  if (!x)
    return outputs;
  outputs.push_back(reduceInAnyOrder(m, isPlain ? x : m.elementwise(x, 1), 0));
  if (g.oneIn(2))
    outputs.push_back(inWholeBytes(m, x));
  return outputs;
}

Values makeRows(FusionMaker &m) { return m.g.oneIn(4) ? makeRowsWithColumns(m) : makeStages(m, Reduced::Minor); }
Values makeColumns(FusionMaker &m) { return makeStages(m, Reduced::Major); }

Values makeConcatenate(FusionMaker &m) {
  GeneratorState &g = m.g;
  Shape shape = m.anyArray(1, 3);
  int64_t dim = g.below(shape.rank()), count = g.oneIn(6) ? g.between(5, 40) : g.between(1, 4);
  Values operands;
  for (int64_t i = 0; i < count; ++i) {
    Dims sizes(shape.dims());
    if (g.oneIn(2))
      sizes[dim] = g.oneIn(8) ? 0 : m.edgeSize(std::max<int64_t>(sizes[dim], 33));
    Shape part = Shape::array(shape.elementType(), sizes).withLayout(shape.minorToMajor());
    HloInstruction *x = m.elementwise(g.oneIn(4) ? m.parameter(part) : g.parameter(part), g.oneIn(3) ? 2 : 0);
    operands.push_back(m.convert(x, shape.elementType()));
  }
  HloInstruction *c =
      m.add(Opcode::Concatenate, operands, {g.ints(Key::Dimensions, {dim})}, Shape(), shape.minorToMajor());
  if (!c)
    return {};
  Values outputs{m.elementwise(c, 2)};
  addSideOutputs(m, {c, c, operands[0]}, outputs);
  return outputs;
}

Attribute combiner(GeneratorState &g, ElementType type, bool overwrites) {
  Shape scalar = Shape::scalar(type);
  if (overwrites)
    return g.callee(Key::ToApply, g.function({scalar, scalar}, [](HloComputation &, Operands x) { return x[1]; }));
  return g.callee(Key::ToApply, g.reducer({type}));
}

/// Updates of rows, of single elements, or of windows somewhere.
Values makeScatter(FusionMaker &m) {
  GeneratorState &g = m.g;
  ElementType type = m.anyType();
  Dims sizes = m.dims(1, 3);
  Shape shape = Shape::array(type, sizes);
  unsigned rank = sizes.size();
  int64_t indexed = g.between(1, rank), count = m.edgeSize(300);
  Dims map, inserted, window, updateSizes{count};
  for (int64_t i = 0; i < int64_t(rank); ++i) {
    if (i < indexed)
      map.push_back(i);
    if (i < indexed && !g.oneIn(6)) {
      inserted.push_back(i);
      continue;
    }
    window.push_back(updateSizes.size());
    updateSizes.push_back(i < indexed ? g.between(std::min<int64_t>(1, sizes[i]), std::min<int64_t>(sizes[i], 5))
                                      : sizes[i]);
  }
  Shape indexShape = Shape::array(g.oneIn(4) ? ElementType::S64 : ElementType::S32, {count, indexed});
  HloInstruction *updates = m.elementwise(m.parameter(Shape::array(type, updateSizes)), 1);
  bool unique = g.oneIn(3);
  llvm::SmallVector<Attribute, 8> attributes{
      g.ints(Key::UpdateWindowDims, window), g.ints(Key::InsertedWindowDims, inserted),
      g.ints(Key::ScatterDimsToOperandDims, map), g.integer(Key::IndexVectorDim, 1)};
  if (g.oneIn(3))
    attributes.push_back(g.flag(Key::IndicesAreSorted, true));
  if (unique)
    attributes.push_back(g.flag(Key::UniqueIndices, true));
  attributes.push_back(combiner(g, type, g.oneIn(3)));
  HloInstruction *s =
      m.add(Opcode::Scatter, {m.parameter(shape), m.parameter(indexShape), m.convert(updates, type)}, attributes);
  if (!s)
    return {};
  return {g.oneIn(6) ? m.elementwise(s, 1) : s};
}

Values makeInputSlices(FusionMaker &m) {
  HloInstruction *x = m.elementwise(m.parameter(m.anyArray(1, 3)), 3);
  Values outputs;
  for (int64_t i = m.g.between(2, 5); i > 0; --i)
    if (HloInstruction *part = m.slice(x))
      outputs.push_back(m.elementwise(part, m.g.oneIn(3) ? 2 : 0));
  return outputs;
}

HloInstruction *update(FusionMaker &m, HloInstruction *array, const Shape &part) {
  HloInstruction *with = m.convert(m.elementwise(m.parameter(part), 2), part.elementType());
  Values operands{array, with};
  ElementType type = m.g.oneIn(4) ? ElementType::S64 : ElementType::S32;
  for (int64_t size : array->shape().dims())
    operands.push_back(m.index(type, size));
  return m.add(Opcode::DynamicUpdateSlice, operands);
}

Values makeUpdate(FusionMaker &m) {
  GeneratorState &g = m.g;
  Shape shape = m.anyArray(1, 4);
  Dims sizes;
  for (int64_t size : shape.dims())
    sizes.push_back(g.oneIn(2) ? size : g.between(std::min<int64_t>(size, 1), size));
  Shape part = Shape::array(shape.elementType(), sizes).withLayout(shape.minorToMajor());
  Values outputs;
  for (int64_t i = g.oneIn(4) ? 2 : 1; i > 0; --i) {
    HloInstruction *array = g.parameter(shape); // each of its own
    if (HloInstruction *made = update(m, g.oneIn(8) ? m.elementwise(array, 1) : array, part))
      outputs.push_back(g.oneIn(8) ? m.elementwise(made, 1) : made);
  }
  if (!outputs.empty() && g.oneIn(6))
    if (HloInstruction *flat = m.add(Opcode::Bitcast, {outputs[0]}, {},
                                     Shape::array(outputs[0]->shape().elementType(), {shape.numElements()})))
      outputs[0] = flat;
  return outputs;
}

/// Of a type that has an order, and whole bytes.
ElementType orderedType(FusionMaker &m) {
  ElementType type = m.anyType();
  return isComplex(type) || deviceBits(type) < 8 ? ElementType::F32 : type;
}

/// By the first elements, and where these are equal, by the second or not at all.
HloComputation *order(GeneratorState &g, llvm::ArrayRef<HloInstruction *> operands, bool byTwo) {
  llvm::SmallVector<Shape, 4> shapes;
  for (HloInstruction *operand : operands)
    shapes.append(2, Shape::scalar(operand->shape().elementType()));
  Shape p = Shape::scalar(ElementType::Pred);
  auto direction = g.oneIn(2) ? ComparisonDirection::Lt : ComparisonDirection::Gt;
  return g.function(shapes, [&](HloComputation &computation, Operands x) {
    HloBuilder b(computation);
    auto compare = [&](ComparisonDirection way, unsigned number) {
      llvm::SmallVector<Attribute, 2> attributes{{Key::Direction, static_cast<int64_t>(way)}};
      if (isFloat(x[2 * number]->shape().elementType())) // with NaN
        attributes.push_back({Key::Type, static_cast<int64_t>(ComparisonType::TotalOrder)});
      return b.add(Opcode::Compare, p, {x[2 * number], x[2 * number + 1]}, attributes);
    };
    HloInstruction *first = compare(direction, 0);
    if (!byTwo)
      return first;
    HloInstruction *second = b.add(Opcode::And, p, {compare(ComparisonDirection::Eq, 0), compare(direction, 1)});
    return b.add(Opcode::Or, p, {first, second});
  });
}

/// Of what is given, with what is computed: an order of values that are known but to some units is not known.
Values makeSort(FusionMaker &m) {
  GeneratorState &g = m.g;
  constexpr int64_t mostOfLongRow = 5000; // more than two tiles of a block have
  ElementType type = orderedType(m);
  Shape shape = g.oneIn(3) ? Shape::array(type, {m.edgeSize(mostOfLongRow)}) : m.anyArray(1, 3);
  shape = shape.withElementType(type);
  int64_t dim = g.below(shape.rank());
  Values operands{m.parameter(shape)};
  bool byTwo = g.oneIn(4);
  if (byTwo)
    operands.push_back(m.parameter(shape.withElementType(orderedType(m))));
  if (g.oneIn(3))
    operands.push_back(
        m.add(Opcode::Iota, {}, {g.integer(Key::IotaDimension, dim)}, shape.withElementType(ElementType::S32)));
  for (int64_t i = g.below(3); i > 0; --i) {
    HloInstruction *carried = m.elementwise(m.parameter(shape.withElementType(m.anyType())), 2);
    bool isPacked = deviceBits(carried->shape().elementType()) < 8;
    operands.push_back(isPacked ? m.convert(carried, ElementType::S32) : carried);
  }
  if (llvm::is_contained(operands, nullptr))
    return {};
  HloInstruction *sorted = m.add(
      Opcode::Sort, operands,
      {g.ints(Key::Dimensions, {dim}), g.flag(Key::IsStable, true), g.callee(Key::ToApply, order(g, operands, byTwo))});
  if (!sorted || operands.size() == 1)
    return {sorted};
  Values outputs;
  for (size_t i = 0; i < operands.size(); ++i)
    outputs.push_back(HloBuilder(*g.entry).tupleElement(sorted, int64_t(i)));
  return outputs;
}

/// Mostly of those with many products in registers.
ElementType factorType(FusionMaker &m) {
  static const ElementType types[] = {ElementType::F32, ElementType::F32, ElementType::BF16, ElementType::F16,
                                      ElementType::F64, ElementType::S32, ElementType::S8};
  return m.g.oneIn(5) ? m.anyType() : types[m.g.below(std::size(types))];
}

/// An operand of a product: dimensions in some order, computed of something or not.
HloInstruction *factor(FusionMaker &m, ElementType type, llvm::ArrayRef<int64_t> sizes) {
  HloInstruction *x = m.parameter(m.anyLayout(Shape::array(type, sizes)));
  return m.g.oneIn(2) ? x : m.convert(m.elementwise(x, 2), type);
}

constexpr int64_t leastOfLarge = 64, mostOfLarge = 200;

/// lhs [batch, rows, depth] by rhs [batch, columns, depth], the dimensions of each in any order. Large ones are worth
/// the widest tiles, long sums of few results several blocks; a thread for each result is as good for short ones, and
/// often where tiles are not whole.
HloInstruction *makeDot(FusionMaker &m, ElementType type, bool isLarge) {
  GeneratorState &g = m.g;
  const int64_t most =
      isLarge ? std::clamp(int64_t(std::sqrt(double(m.allowLargest()))), leastOfLarge, mostOfLarge) : 0;
  const bool isLong = !isLarge && g.oneIn(3);
  int64_t batch = g.oneIn(4) ? g.between(1, 3) : 1, depth = g.oneIn(6) ? m.edgeSize(80) : g.between(200, 300);
  if (isLarge)
    depth = g.between(leastOfLarge, most);
  if (isLong)
    depth = g.between(200, 600);
  const bool isWhole = g.oneIn(2);
  if (isWhole)
    depth = int64_t(llvm::alignTo(uint64_t(depth), 16));
  auto rows = [&] {
    if (isLarge)
      return g.between(most * 3 / 4, most);
    if (isLong)
      return g.between(2, 16);
    if (isWhole)
      return 16 * g.between(3, 5);
    return g.oneIn(6) ? m.edgeSize(260) : g.between(48, 66);
  };
  auto left = g.permutation(3), right = g.permutation(3);
  Dims lhs(3), rhs(3);
  const int64_t leftSizes[] = {batch, rows(), depth}, rightSizes[] = {batch, rows(), depth};
  for (int i = 0; i < 3; ++i) {
    lhs[left[i]] = leftSizes[i];
    rhs[right[i]] = rightSizes[i];
  }
  HloInstruction *x = factor(m, type, lhs), *y = factor(m, type, rhs);
  if (!x || !y)
    return nullptr; // not every type is converted to every other
  return g.add(Opcode::Dot, {}, {x, y},
               {g.ints(Key::LhsBatchDims, {left[0]}), g.ints(Key::RhsBatchDims, {right[0]}),
                g.ints(Key::LhsContractingDims, {left[2]}), g.ints(Key::RhsContractingDims, {right[2]})});
}

/// Of two spatial dimensions, labels in one of two orders.
HloInstruction *makeConvolution(FusionMaker &m, ElementType type, bool isLarge) {
  GeneratorState &g = m.g;
  bool featureFirst = g.oneIn(2);
  ConvolutionLabels labels;
  labels.lhsBatch = labels.outBatch = 0;
  labels.lhsFeature = labels.outFeature = featureFirst ? 1 : 3;
  labels.lhsSpatial = labels.outSpatial =
      featureFirst ? llvm::SmallVector<int64_t, 4>{2, 3} : llvm::SmallVector<int64_t, 4>{1, 2};
  labels.rhsSpatial = featureFirst ? llvm::SmallVector<int64_t, 4>{2, 3} : llvm::SmallVector<int64_t, 4>{0, 1};
  labels.rhsInput = featureFirst ? 1 : 2;
  labels.rhsOutput = featureFirst ? 0 : 3;
  labels.spelling = featureFirst ? "bf01_oi01->bf01" : "b01f_01io->b01f";
  llvm::SmallVector<WindowDim, 2> window(2);
  for (WindowDim &dim : window) {
    dim.size = g.between(1, 4);
    dim.padLow = g.between(-1, 3);
    dim.padHigh = g.between(-1, 3);
    dim.stride = g.between(1, 2);
    dim.baseDilation = g.oneIn(6) ? 2 : 1;
    dim.windowDilation = g.oneIn(4) ? 2 : 1;
    dim.reversed = g.oneIn(4);
  }
  int64_t groups = g.oneIn(8) ? 2 : 1, features = g.between(1, 16), outFeatures = groups * g.between(8, 32);
  const int64_t height = g.between(4, 12) * (isLarge ? 2 : 1), width = g.between(4, 12);
  Dims input = featureFirst ? Dims{2, features * groups, height, width} : Dims{2, height, width, features * groups};
  Dims kernel = featureFirst ? Dims{outFeatures, features, window[0].size, window[1].size}
                             : Dims{window[0].size, window[1].size, features, outFeatures};
  llvm::SmallVector<Attribute, 4> attributes{g.window(window), {Key::DimLabels, g.module.arena().saveObject(labels)}};
  if (groups > 1)
    attributes.push_back(g.integer(Key::FeatureGroupCount, groups));
  // Where holes and padding meet what is not finite, kernels and the reference do not agree.
  HloInstruction *x = factor(m, type, input), *y = m.parameter(Shape::array(type, kernel));
  return x && y ? g.add(Opcode::Convolution, {}, {x, y}, attributes) : nullptr;
}

Values makeContraction(FusionMaker &m) {
  ElementType type = factorType(m);
  const bool isLarge = m.g.oneIn(3);
  HloInstruction *product = m.g.oneIn(3) ? makeConvolution(m, type, isLarge) : makeDot(m, type, isLarge);
  if (!product)
    return {};
  Values outputs{m.elementwise(product, 2)};
  addSideOutputs(m, {product, product}, outputs);
  return outputs;
}

/// Two dots of one batch, the second of what is made of the first one's results, row by row: small, since on targets
/// that do not multiply fragments each thread computes a row of its own.
Values makeAttention(FusionMaker &m) {
  GeneratorState &g = m.g;
  const ElementType type = g.oneIn(3) ? ElementType::F16 : ElementType::BF16;
  const int64_t batch = g.between(1, 2), rows = g.between(2, 20), keys = g.between(2, 20), terms = g.between(2, 18),
                columns = g.between(2, 9);
  auto multiply = [&](HloInstruction *x, HloInstruction *y, int64_t along) {
    return x && y ? g.add(Opcode::Dot, {}, {x, y},
                          {g.ints(Key::LhsBatchDims, {0}), g.ints(Key::RhsBatchDims, {0}),
                           g.ints(Key::LhsContractingDims, {2}), g.ints(Key::RhsContractingDims, {along})})
                  : nullptr;
  };
  HloInstruction *scores = multiply(factor(m, type, {batch, rows, terms}), factor(m, type, {batch, keys, terms}), 2);
  if (!scores)
    return {};
  HloInstruction *x = m.convert(m.elementwise(scores, 1), ElementType::F32);
  for (int64_t stages = g.below(3); stages > 0 && x; --stages)
    x = giveBack(m, x, reduceInAnyOrder(m, x, 2), {0, 1});
  HloInstruction *product = x ? multiply(m.convert(x, type), factor(m, type, {batch, keys, columns}), 1) : nullptr;
  return product ? Values{m.elementwise(product, 1)} : Values();
}

struct Aim {
  llvm::StringLiteral name;
  unsigned weight;
  Values (*make)(FusionMaker &);
};
constexpr Aim aims[] = {
    {"loop", 3, makeLoop},
    {"transpose", 4, makeTranspose},
    {"row reduction", 3, makeRowReduction},
    {"column reduction", 3, makeColumnReduction},
    {"full reduction", 1, makeFullReduction},
    {"any reduction", 1, makeAnyReduction},
    {"rows", 3, makeRows},
    {"columns", 3, makeColumns},
    {"concatenate", 3, makeConcatenate},
    {"scatter", 3, makeScatter},
    {"input slices", 2, makeInputSlices},
    {"update", 3, makeUpdate},
    {"sort", 2, makeSort},
    {"contraction", 5, makeContraction},
    {"attention", 2, makeAttention},
};

const Aim &chooseAim(GeneratorState &g) {
  unsigned all = 0;
  for (const Aim &aim : aims)
    all += aim.weight;
  int64_t drawn = g.below(all);
  for (const Aim &aim : aims)
    if ((drawn -= aim.weight) < 0)
      return aim;
  return aims[0];
}

/// One array, or a tuple, in which there may be tuples.
HloInstruction *rootOf(GeneratorState &g, HloBuilder builder, Operands outputs) {
  if (outputs.size() == 1 && !g.oneIn(12))
    return outputs.front();
  if (outputs.size() >= 2 && g.oneIn(5))
    return builder.tuple({builder.tuple(outputs.drop_back()), outputs.back()});
  return builder.tuple(outputs);
}

/// Outputs that may lie where an operand of their shape does; an operand is given once.
Attribute outputAliases(GeneratorState &g, const Shape &outputs, Operands operands) {
  llvm::SmallVector<HloInstruction *> left(operands);
  llvm::SmallVector<OutputAlias> aliases;
  for (const Shape::Leaf &leaf : outputs.leaves()) {
    auto same = [&](HloInstruction *operand) { return operand && operand->shape() == leaf.shape; };
    auto found = llvm::find_if(left, same);
    if (found == left.end() || g.oneIn(3))
      continue;
    llvm::ArrayRef<int64_t> index = g.module.arena().saveList(llvm::ArrayRef<int64_t>(leaf.index));
    aliases.push_back({index, found - left.begin(), {}});
    *found = nullptr;
  }
  return {Key::OutputToOperandAliasing, g.module.arena().saveList(llvm::ArrayRef<OutputAlias>(aliases))};
}

/// Makes the state's computation the body of a fusion of an entry.
void wrap(GeneratorState &g) {
  HloComputation *body = g.entry, *entry = g.module.addComputation("entry");
  HloBuilder builder(*entry);
  Values operands;
  for (const HloInstruction *parameter : body->parameters())
    operands.push_back(builder.parameter(operands.size(), parameter->shape(), "p" + std::to_string(operands.size())));
  llvm::SmallVector<Attribute, 3> attributes{g.integer(Key::Kind, g.below(3)), g.callee(Key::Calls, body)};
  if (g.oneIn(3)) {
    Attribute aliases = outputAliases(g, body->root()->shape(), operands);
    if (!std::get<llvm::ArrayRef<OutputAlias>>(aliases.value).empty())
      attributes.push_back(aliases);
  }
  entry->setRoot(builder.add(Opcode::Fusion, body->root()->shape(), operands, attributes, "f"));
  g.entry = entry;
  g.module.setEntry(entry);
}

} // namespace

GeneratedFusion generateFusionModule(uint64_t seed, const FusionOptions &options) {
  GeneratorOptions ofState;
  ofState.randomLayouts = false; // FusionMaker chooses them
  HloModule module("fusion_" + std::to_string(seed));
  GeneratorState g(module, seed, ofState, "fused");
  FusionMaker maker(g, options.maxElements);
  const Aim &aim = chooseAim(g);
  Values outputs = aim.make(maker);
  llvm::erase(outputs, nullptr);
  if (outputs.empty())
    outputs.push_back(maker.elementwise(maker.parameter(maker.anyArray(1, 3)), 3));
  g.entry->setRoot(rootOf(g, HloBuilder(*g.entry), outputs));
  if (!g.oneIn(10)) // else the entry is plain ops
    wrap(g);
  generateDonations(g);
  return {withEntryLast(module), aim.name};
}

} // namespace hloc
