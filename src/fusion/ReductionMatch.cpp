#include "fusion/ReductionMatch.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {
namespace {

// --- reducers

/// Ops that combine numbers in any order. Sums and products of floats round differently each time, as HLO allows. But
/// products of narrow floats overflow and underflow in one order and not in another, and of complex numbers there is
/// none that changes nothing.
bool isReorderable(Opcode opcode, ElementType type) {
  if (!hasTrait(opcode, OpcodeTrait::Combines))
    return false;
  switch (opcode) {
  case Opcode::Add:
    return true;
  case Opcode::Multiply:
    return isInteger(type) || isPred(type) || type == ElementType::F32;
  case Opcode::Maximum:
  case Opcode::Minimum:
    return !isComplex(type);
  case Opcode::And:
  case Opcode::Or:
  case Opcode::Xor:
    return isInteger(type) || isPred(type);
  default:
    HLOC_UNREACHABLE("an op that combines, of no known types");
  }
}

/// The greater of two 16-bit floats is exact, and machines compare two at once.
ElementType carriedType(Opcode combiner, ElementType type) {
  bool isCompared = combiner == Opcode::Maximum || combiner == Opcode::Minimum;
  if (isFloat(type) && bitWidth(type) < 32)
    return isCompared && bitWidth(type) == 16 ? type : ElementType::F32;
  if (isInteger(type) && bitWidth(type) < 32)
    return isSigned(type) ? ElementType::S32 : ElementType::U32;
  return type;
}

const HloInstruction &resultOf(const HloComputation &reducer, unsigned i) {
  const HloInstruction &root = *reducer.root();
  return root.opcode() == Opcode::Tuple ? *root.operand(i) : root;
}

/// The op that makes result `i` of accumulator `i` and element `i` alone.
std::optional<Opcode> ownCombiner(const HloComputation &reducer, unsigned i, unsigned count) {
  const HloInstruction &op = resultOf(reducer, i);
  if (op.numOperands() != 2 || !op.shape().isArray())
    return std::nullopt;
  const HloInstruction &a = *op.operand(0), &b = *op.operand(1);
  if (a.opcode() != Opcode::Parameter || b.opcode() != Opcode::Parameter)
    return std::nullopt;
  int64_t first = std::min(a.parameterNumber(), b.parameterNumber());
  int64_t second = std::max(a.parameterNumber(), b.parameterNumber());
  bool own = first == int64_t(i) && second == int64_t(count + i);
  ElementType type = op.shape().elementType();
  if (!own || a.shape().elementType() != type || b.shape().elementType() != type || !isReorderable(op.opcode(), type))
    return std::nullopt;
  return op.opcode();
}

/// Is each result one of the two arguments at its place, chosen by comparing arguments? Then it does not matter how
/// often an element takes part, and the order only among elements that compare as equal.
bool choosesArguments(const HloComputation &reducer, unsigned count) {
  constexpr int none = -1;
  // By instruction: made of arguments by comparing and choosing alone; the place it is an argument of.
  llvm::BitVector allowed(reducer.instructions().size(), false);
  std::vector<int> place(allowed.size(), none);
  for (const HloInstruction *instr : reducer.instructions()) {
    auto placeOf = [&](unsigned i) { return place[instr->operand(i)->id()]; };
    using enum Opcode;
    const Opcode opcode = instr->opcode();
    if (opcode == Parameter)
      place[instr->id()] = int(instr->parameterNumber() % count);
    else if (opcode == Select)
      place[instr->id()] = placeOf(1) == placeOf(2) ? placeOf(1) : none;
    else if (opcode == Maximum || opcode == Minimum)
      place[instr->id()] = placeOf(0) == placeOf(1) && !isComplex(instr->shape().elementType()) ? placeOf(0) : none;
    else if (!llvm::is_contained({Constant, Compare, And, Or, Xor, Not}, opcode))
      continue;
    allowed[instr->id()] = instr->shape().isScalar() &&
                           llvm::all_of(instr->operands(), [&](const auto *operand) { return allowed[operand->id()]; });
  }
  for (unsigned i = 0; i < count; ++i)
    if (const HloInstruction &result = resultOf(reducer, i); !allowed[result.id()] || place[result.id()] != int(i))
      return false;
  return true;
}

/// Of a reshape, the dimension of the result that `dim` of the operand is; none, if others than those of one element
/// are split or merged.
std::optional<int64_t> dimBehindReshape(const Shape &from, const Shape &to, int64_t dim) {
  auto longDims = [](const Shape &shape) {
    llvm::SmallVector<int64_t> dims;
    for (unsigned i = 0; i < shape.rank(); ++i)
      if (shape.dim(i) != 1)
        dims.push_back(i);
    return dims;
  };
  const llvm::SmallVector<int64_t> own = longDims(from), others = longDims(to);
  const auto *at = llvm::find(own, dim);
  auto isAsLong = [&](int64_t a, int64_t b) { return from.dim(unsigned(a)) == to.dim(unsigned(b)); };
  if (at == own.end() || own.size() != others.size() || !std::equal(own.begin(), own.end(), others.begin(), isAsLong))
    return std::nullopt;
  return others[size_t(at - own.begin())];
}

/// The dimension along which the elements of `value` are 0, 1, 2, ... Looks through `depth` instructions.
std::optional<int64_t> numberedDim(const HloInstruction &value, unsigned depth = 8) {
  if (depth == 0)
    return std::nullopt;
  const HloInstruction &instr = behindTuple(value);
  if (instr.opcode() == Opcode::Iota)
    return instr.intOr(AttributeKey::IotaDimension, 0);
  const bool isReshape =
      instr.opcode() == Opcode::Reshape || (instr.opcode() == Opcode::Bitcast && instr.shape().hasDefaultLayout() &&
                                            instr.operand(0)->shape().hasDefaultLayout() &&
                                            instr.shape().elementType() == instr.operand(0)->shape().elementType());
  if (instr.opcode() != Opcode::Broadcast && instr.opcode() != Opcode::Copy && !isReshape)
    return std::nullopt;
  const std::optional<int64_t> dim = numberedDim(*instr.operand(0), depth - 1);
  if (!dim || instr.opcode() == Opcode::Copy)
    return dim;
  if (isReshape)
    return dimBehindReshape(instr.operand(0)->shape(), instr.shape(), *dim);
  return instr.ints(AttributeKey::Dimensions)[size_t(*dim)];
}

/// Does `operand` of the reduction number the elements of each result, in ascending order?
bool numbersElements(const HloInstruction &reduce, const HloInstruction &operand) {
  const Shape &shape = operand.shape();
  const std::optional<int64_t> dim = numberedDim(operand);
  if (!dim || !isInteger(shape.elementType()))
    return false;
  for (int64_t reduced : reduce.ints(AttributeKey::Dimensions))
    if (reduced != *dim && shape.dim(reduced) != 1)
      return false;
  const ElementType type = shape.elementType();
  const unsigned bits = std::min(bitWidth(type) - (isSigned(type) ? 1 : 0), 62u);
  return llvm::is_contained(reduce.ints(AttributeKey::Dimensions), *dim) && shape.dim(*dim) <= int64_t(1) << bits;
}

/// Adds what the reduction's results are carried as; a reason if its order cannot be changed.
std::optional<Rejection> addHero(const HloInstruction &reduce, ReductionFrame &frame) {
  const HloComputation &reducer = *reduce.computation(AttributeKey::ToApply);
  unsigned count = reduce.numOperands() / 2;
  const HloInstruction &root = *reducer.root();
  if (root.opcode() == Opcode::Tuple ? root.numOperands() != count : count != 1)
    return Rejection{
        fmt::format("the reducer of `{}` has another form than a tuple of its results", reduce.name().str())};
  for (unsigned i = 0; i < count; ++i) {
    ElementType type = reduce.resultShape(i).elementType();
    if (reduce.operand(i)->shape().elementType() != type || reduce.operand(count + i)->shape().elementType() != type ||
        !resultOf(reducer, i).shape().isScalar() || resultOf(reducer, i).shape().elementType() != type)
      return Rejection{fmt::format("`{}` changes the precision", reduce.name().str())};
  }
  ReductionHero hero;
  hero.instr = &reduce;
  unsigned number = frame.heroes.size();
  llvm::SmallVector<Accumulator, 2> own;
  for (unsigned i = 0; i < count; ++i)
    if (std::optional<Opcode> combiner = ownCombiner(reducer, i, count))
      own.push_back({number, i, carriedType(*combiner, reduce.resultShape(i).elementType()), combiner});
  if (own.size() != count) {
    own.clear();
    for (unsigned i = 0; i < count; ++i) {
      ElementType type = reduce.resultShape(i).elementType();
      // Threads hand their accumulators to each other in bytes of their own.
      if (deviceBits(type) < 8)
        return Rejection{fmt::format("`{}` chooses from numbers that share bytes", reduce.name().str())};
      own.push_back({number, i, type, std::nullopt});
    }
    if (count < 2 || !choosesArguments(reducer, count))
      return Rejection{fmt::format("the order in which `{}` applies its reducer may matter", reduce.name().str())};
    for (unsigned i = 0; i < count && !hero.position; ++i)
      if (numbersElements(reduce, *reduce.operand(i)))
        hero.position = i;
    if (!hero.position)
      return Rejection{
          fmt::format("no operand of `{}` numbers the elements that its reducer chooses from", reduce.name().str())};
  }
  frame.heroes.push_back(std::move(hero));
  frame.accumulators.append(own.begin(), own.end());
  return std::nullopt;
}

// --- shapes

/// The operand's memory, and the results' dimensions in its order.
struct Collapsed {
  llvm::SmallVector<int64_t> dims;
  bool minorIsReduced = true;
  Shape kept;
};

Collapsed collapse(const HloInstruction &reduce) {
  const Shape &operand = reduce.operand(0)->shape();
  llvm::ArrayRef<int64_t> reducedDims = reduce.ints(AttributeKey::Dimensions);
  llvm::SmallVector<int64_t> resultDim(operand.rank(), -1);
  llvm::SmallVector<int64_t> keptSizes, keptOrder;
  for (unsigned i = 0; i < operand.rank(); ++i)
    if (!llvm::is_contained(reducedDims, int64_t(i))) {
      resultDim[i] = int64_t(keptSizes.size());
      keptSizes.push_back(operand.dim(i));
    }
  Collapsed result;
  llvm::SmallVector<int64_t> minorToMajor; // merged
  bool lastIsReduced = false;
  for (int64_t dim : operand.minorToMajor()) {
    bool isReduced = resultDim[dim] < 0;
    if (!isReduced)
      keptOrder.push_back(resultDim[dim]);
    if (operand.dim(dim) == 1)
      continue;
    if (minorToMajor.empty())
      result.minorIsReduced = isReduced;
    if (!minorToMajor.empty() && lastIsReduced == isReduced)
      minorToMajor.back() *= operand.dim(dim);
    else
      minorToMajor.push_back(operand.dim(dim));
    lastIsReduced = isReduced;
  }
  result.dims.assign(minorToMajor.rbegin(), minorToMajor.rend());
  result.kept = Shape::array(ElementType::F32, keptSizes).withLayout(keptOrder);
  return result;
}

/// Does an output that reads this read its operand element by element, in the same order?
bool passesOn(const HloInstruction &instr, unsigned operand) {
  if (!instr.shape().isArray())
    return false;
  const HloInstruction &read = *instr.operand(operand);
  if (instr.opcode() == Opcode::GetTupleElement)
    return true;
  if (instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Bitcast)
    return read.shape().isArray() && instr.shape().numElements() == read.shape().numElements();
  return readsOperandsInPlace(instr) && read.shape().isArray() && read.shape().sameDims(instr.shape());
}

/// Of what is made of reductions: its dimensions in the order in which the operands' memory has them.
struct KeptOrder {
  Shape shape;
  bool operator==(const KeptOrder &other) const { return sameArray(shape, other.shape); }
};

/// Of `instr`, which reads `operand`, whose order is known.
PlaceAnswer<KeptOrder> orderThrough(const HloInstruction &instr, unsigned number, const KeptOrder &order) {
  if (!passesOn(instr, number))
    return Elsewhere();
  if (instr.opcode() == Opcode::Bitcast)
    return placeIf<KeptOrder>(isRenaming(instr) && sameArray(order.shape, behindTuple(*instr.operand(number)).shape()),
                              {instr.shape()});
  if (instr.opcode() == Opcode::Reshape)
    return placeIf<KeptOrder>(order.shape.hasDefaultLayout(), {instr.shape().withDefaultLayout()});
  return order;
}

/// What the outputs are made of, or why an instruction cannot be computed from one element of each result.
std::variant<Places<KeptOrder>, Rejection> keptOrders(const FusionGraph &graph, const ReductionFrame &frame) {
  Places<KeptOrder> orders(graph.computation());
  for (const ReductionHero &hero : frame.heroes)
    orders.set(*hero.instr, {hero.kept});
  orders.follow(graph.instructions(), orderThrough);
  if (const HloInstruction *instr = orders.firstElsewhere())
    return Rejection{instr->opcode() == Opcode::Reduce
                         ? fmt::format("`{}` reduces what depends on a reduction", instr->name().str())
                         : fmt::format("`{}` reads a reduction at other indices than its own", instr->name().str())};
  return orders;
}

std::optional<Rejection> assignRoots(const FusionGraph &graph, const Places<KeptOrder> &orders, ReductionFrame &frame) {
  for (auto [i, root] : llvm::enumerate(graph.roots())) {
    if (deviceBits(root.shape.elementType()) < 8)
      return Rejection{fmt::format("output {} shares bytes between elements", i)};
    if (const KeptOrder *order = orders.at(*root.instr))
      frame.roots.push_back({unsigned(i), order->shape});
    else if (root.shape.numElements() == frame.operandShape().numElements())
      frame.sideRoots.push_back(unsigned(i));
    else if (root.shape.numElements() == frame.numResults())
      frame.roots.push_back({unsigned(i), root.shape});
    else
      return Rejection{fmt::format("output {} has neither as many elements as the reduction nor as its operand", i)};
  }
  return std::nullopt;
}

} // namespace

std::variant<ReductionFrame, Rejection> frameOf(llvm::ArrayRef<const HloInstruction *> heroes) {
  ReductionFrame frame;
  for (const HloInstruction *hero : heroes) {
    if (hero->operand(0)->shape().numElements() == 0)
      return Rejection{"there is nothing to reduce"};
    Collapsed collapsed = collapse(*hero);
    if (std::optional<Rejection> why = addHero(*hero, frame))
      return *why;
    if (frame.heroes.size() > 1 && (frame.dims != collapsed.dims || frame.minorIsReduced != collapsed.minorIsReduced))
      return Rejection{"reductions of different shapes"};
    frame.dims = std::move(collapsed.dims);
    frame.minorIsReduced = collapsed.minorIsReduced;
    frame.heroes.back().kept = std::move(collapsed.kept);
    for (unsigned i = 1; i < hero->numOperands() / 2; ++i)
      if (!sameArray(hero->operand(i)->shape(), hero->operand(0)->shape()))
        return Rejection{fmt::format("the operands of `{}` have different layouts", hero->name().str())};
  }
  if (frame.numReduced() == 1)
    return Rejection{"each result has one element"};
  return frame;
}

std::variant<ReductionFrame, Rejection> matchReductions(const FusionGraph &graph) {
  auto isReduce = [](const HloInstruction &instr) { return instr.opcode() == Opcode::Reduce; };
  llvm::SmallVector<const HloInstruction *, 2> heroes = findHeroes(graph, isReduce, passesOn);
  if (heroes.empty())
    return Rejection{"no output reads a reduction elementwise"};
  auto isInner = [&](const HloInstruction *instr) { return isReduce(*instr) && !llvm::is_contained(heroes, instr); };
  if (const auto *inner = llvm::find_if(graph.instructions(), isInner); inner != graph.instructions().end())
    return Rejection{
        fmt::format("what is reduced or computed of it depends on another reduction, `{}`", (*inner)->name().str())};
  std::variant<ReductionFrame, Rejection> match = frameOf(heroes);
  if (std::holds_alternative<Rejection>(match))
    return match;
  auto &frame = std::get<ReductionFrame>(match);
  std::variant<Places<KeptOrder>, Rejection> orders = keptOrders(graph, frame);
  if (auto *why = std::get_if<Rejection>(&orders))
    return *why;
  if (std::optional<Rejection> why = assignRoots(graph, std::get<Places<KeptOrder>>(orders), frame))
    return *why;
  return match;
}

llvm::SmallVector<int64_t> ReductionFrame::sizes(bool reduced) const {
  llvm::SmallVector<int64_t> result;
  for (unsigned i = 0; i < dims.size(); ++i)
    if (isReduced(i) == reduced)
      result.push_back(dims[i]);
  return result;
}

int64_t ReductionFrame::numResults() const {
  int64_t product = 1;
  for (int64_t size : sizes(false))
    product *= size;
  return product;
}

int64_t ReductionFrame::numReduced() const {
  int64_t product = 1;
  for (int64_t size : sizes(true))
    product *= size;
  return product;
}

std::string ReductionFrame::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "[";
  llvm::interleave(dims, os, ",");
  os << "] over ";
  auto numbers = llvm::make_filter_range(llvm::seq<unsigned>(0, dims.size()), [&](unsigned i) { return isReduced(i); });
  llvm::interleave(numbers, os, ",");
  if (!roots.empty()) {
    os << "; roots ";
    llvm::interleave(roots, os, [&](const ReducedRoot &root) { os << root.root; }, ",");
  }
  if (!sideRoots.empty()) {
    os << "; side roots ";
    llvm::interleave(sideRoots, os, ",");
  }
  return result;
}

int64_t accumulatorBytes(const ReductionFrame &frame) {
  int64_t bytes = 0;
  for (const Accumulator &accumulator : frame.accumulators)
    bytes += deviceBits(accumulator.type) / 8;
  return bytes;
}

std::vector<ScratchBuffer> partialResults(const ReductionFrame &frame, int64_t splits) {
  std::vector<ScratchBuffer> buffers;
  for (const Accumulator &accumulator : frame.accumulators)
    buffers.push_back({Shape::array(accumulator.type, {splits, frame.numResults()})});
  return buffers;
}

ComputedSpaces spacesOfReduction(const ReductionFrame &frame, ReductionStage stage, const FusionGraph &graph,
                                 mlir::MLIRContext *context) {
  ComputedSpaces result;
  for (const ReductionHero &hero : frame.heroes)
    result.kept.push_back(hero.instr);
  const Shape &operandShape = frame.operandShape();
  if (stage != ReductionStage::Combine) {
    ComputedSpace &space = result.spaces.emplace_back();
    for (const ReductionHero &hero : frame.heroes)
      for (unsigned i = 0; i < hero.instr->numOperands() / 2; ++i)
        space.values.push_back(
            {hero.instr->operand(i), bitcastIndexing(operandShape, hero.instr->operand(i)->shape(), context)});
    for (unsigned side : frame.sideRoots)
      space.values.push_back(
          {graph.roots()[side].instr, bitcastIndexing(operandShape, graph.roots()[side].shape, context)});
  }
  if (stage != ReductionStage::Partial) {
    ComputedSpace &space = result.spaces.emplace_back();
    for (const ReducedRoot &root : frame.roots)
      space.values.push_back(
          {graph.roots()[root.root].instr, bitcastIndexing(frame.heroes.front().kept, root.order, context)});
  }
  return result;
}

KernelTraffic trafficOfReduction(const ReductionFrame &frame, ReductionStage stage, int64_t splits,
                                 const FusionGraph &graph) {
  if (stage == ReductionStage::Whole)
    return wholeTraffic(graph);
  uint64_t results = 0, partial = 0;
  for (const ReducedRoot &root : frame.roots)
    results += graph.roots()[root.root].shape.byteSize();
  for (const ScratchBuffer &buffer : partialResults(frame, splits))
    partial += buffer.bytes();
  if (stage == ReductionStage::Partial)
    return {graph.bytesRead(), graph.bytesWritten() - results + partial};
  return {partial, results};
}

} // namespace hloc
