// reduce-windows that read each element again and again -> several that do less, where the combiner is one op that is
// associative and the initial value its identity:
//   windows over several dimensions    one after the other over each
//   cumulative windows, [n] of pad n   blocks: within each, over what comes before each, both combined
//   other wide windows                 a window of a * b elements is one of b windows of a
// and cumulative windows of any other combiner, and of several operands, in log2(n) rounds that double the reach. A
// scan that says it is associative is a cumulative window, combined with what it starts from.
//
// A kernel computes an element of a window by a loop, so the work is n times the window otherwise: n^2 for a cumulative
// sum.

#include "Expansion.h"
#include "Rewriter.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/support/Check.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;

/// Elements of a window that one loop goes over.
constexpr int64_t maxWindow = 32;
/// Windows of several dimensions that are not worth an array between them.
constexpr int64_t maxBox = 48;

/// The op that a computation of scalars, or of arrays element by element, consists of: associative and commutative.
std::optional<Opcode> plainCombiner(const HloInstruction &root) {
  const bool isExtreme = root.opcode() == Opcode::Maximum || root.opcode() == Opcode::Minimum;
  if (!hasTrait(root.opcode(), OpcodeTrait::Combines) ||
      (isExtreme && isComplex(root.shape().elementType()))) // a NaN is greater than what comes before it alone
    return std::nullopt;
  bool isPlain = root.operand(0)->opcode() == Opcode::Parameter && root.operand(1)->opcode() == Opcode::Parameter &&
                 root.operand(0) != root.operand(1) && root.operand(0)->shape() == root.operand(1)->shape() &&
                 root.operand(0)->shape() == root.shape() && root.parent()->parameters().size() == 2;
  return isPlain ? std::optional(root.opcode()) : std::nullopt;
}

/// The value that changes nothing: of floats' sums -0, where there is one.
std::optional<Literal> identityOf(Opcode opcode, ElementType type) {
  Literal literal(Shape::scalar(type));
  if (opcode == Opcode::Add && isFloat(type) && bitWidth(type) >= 32) // some narrower types have none
    literal.setDouble(0, -0.0);
  if (opcode == Opcode::Add && isComplex(type))
    literal.setComplex(0, {-0.0, -0.0});
  uint64_t ones = bitWidth(type) >= 64 ? ~uint64_t(0) : (uint64_t(1) << bitWidth(type)) - 1;
  bool isMinimum = opcode == Opcode::Minimum;
  switch (opcode) {
  case Opcode::Add:
  case Opcode::Or:
  case Opcode::Xor:
    return literal;
  case Opcode::And:
    if (isPred(type))
      literal.setInt(0, 1);
    else
      literal.setBits(0, ones);
    return literal;
  case Opcode::Multiply:
    if (isComplex(type))
      literal.setComplex(0, 1);
    else if (isFloat(type))
      literal.setDouble(0, 1);
    else
      literal.setInt(0, 1);
    return literal;
  case Opcode::Maximum:
  case Opcode::Minimum:
    if (isComplex(type))
      return std::nullopt;
    if (isFloat(type)) {
      double infinity = std::numeric_limits<double>::infinity();
      literal.setDouble(0, isMinimum ? infinity : -infinity);
      if (literal.getDouble(0) != (isMinimum ? infinity : -infinity))
        return std::nullopt; // the type has none
    } else if (isPred(type)) {
      literal.setInt(0, isMinimum);
    } else if (isSigned(type)) {
      literal.setBits(0, isMinimum ? ones >> 1 : (ones >> 1) + 1);
    } else {
      literal.setBits(0, isMinimum ? ones : 0);
    }
    return literal;
  default:
    HLOC_UNREACHABLE("an op that combines nothing");
  }
}

/// Of a cumulative window: does it reach from the first element up to each, or from each to the last?
enum class Reach { None, FromFirst, ToLast };

Reach cumulative(const WindowDim &dim, int64_t size) {
  if (dim.size < size || dim.stride != 1 || dim.baseDilation != 1 || dim.windowDilation != 1)
    return Reach::None;
  if (dim.padLow == dim.size - 1 && dim.padHigh == 0)
    return Reach::FromFirst;
  return dim.padLow == 0 && dim.padHigh == dim.size - 1 ? Reach::ToLast : Reach::None;
}

bool isTrivial(const WindowDim &dim) {
  return dim.size == 1 && dim.stride == 1 && dim.padLow == 0 && dim.padHigh == 0 && dim.baseDilation == 1;
}

/// The dimension of a cumulative window, alone among trivial ones.
std::optional<unsigned> cumulativeAlone(const Window &window, llvm::ArrayRef<int64_t> sizes) {
  std::optional<unsigned> found;
  for (auto [i, dim] : llvm::enumerate(window.dims)) {
    if (isTrivial(dim))
      continue;
    if (found || cumulative(dim, sizes[i]) == Reach::None)
      return std::nullopt;
    found = unsigned(i);
  }
  return found;
}

/// Windows of one combiner over arrays of one type.
class Windows {
public:
  Windows(Expansion &x, HloModule &module, Opcode opcode, Literal identity)
      : x(x), module(module), opcode(opcode), identity(std::move(identity)) {}

  Value combined(Value a, Value b) { return x.binary(opcode, a, b); }
  Value initial() { return x.builder().constant(identity); }

  Value over(Value array, const Window &window) {
    const Window *saved = module.arena().saveObject(Window(window));
    return x.builder().infer(Opcode::ReduceWindow, {array, initial()},
                             {Attribute{AttributeKey::Window, saved},
                              Attribute{AttributeKey::ToApply, x.reducer(opcode, identity.shape().elementType())}});
  }
  Value over(Value array, unsigned dimension, WindowDim dim) {
    Window window;
    window.dims.resize(array->shape().rank());
    window.dims[dimension] = dim;
    return over(array, window);
  }

  /// Over all elements up to each, or from each on.
  Value cumulative(Value array, unsigned dimension, Reach reach) {
    bool fromFirst = reach == Reach::FromFirst;
    int64_t n = array->shape().dim(dimension);
    auto whole = [&](int64_t size) {
      WindowDim dim;
      dim.size = size;
      (fromFirst ? dim.padLow : dim.padHigh) = size - 1;
      return dim;
    };
    if (n <= maxWindow)
      return over(array, dimension, whole(n));
    int64_t blocks = llvm::divideCeil(n, maxWindow);
    Dims dims(array->shape().dims());
    dims[dimension] = blocks;
    Dims blockDims(dims), split(dims);
    split.insert(split.begin() + dimension + 1, maxWindow);
    Value inner =
        over(x.reshape(padded(array, dimension, 0, blocks * maxWindow - n), split), dimension + 1, whole(maxWindow));
    int64_t last = fromFirst ? maxWindow - 1 : 0;
    Value totals = x.reshape(x.range(inner, dimension + 1, last, last + 1), blockDims);
    Value others = cumulative(padded(totals, dimension, fromFirst ? 1 : -1, fromFirst ? -1 : 1), dimension, reach);
    Dims kept;
    for (unsigned i = 0; i < split.size(); ++i)
      if (i != dimension + 1)
        kept.push_back(i);
    Value spread = x.builder().broadcast(others, inner->shape(), kept);
    dims[dimension] = blocks * maxWindow;
    Value all = x.reshape(fromFirst ? combined(spread, inner) : combined(inner, spread), dims);
    return x.range(all, dimension, 0, n);
  }

  /// A wide window as windows of windows: of a elements, b of these, and what a * b leaves.
  Value wide(Value array, unsigned dimension, const WindowDim &dim) {
    int64_t a = 16;
    for (int64_t divisor = maxWindow; divisor >= 8; --divisor)
      if (dim.size % divisor == 0) {
        a = divisor;
        break;
      }
    int64_t b = dim.size / a, rest = dim.size - a * b, step = dim.windowDilation;
    WindowDim first = dim;
    first.size = a;
    first.stride = 1;
    WindowDim second = dim;
    second.size = b;
    second.padLow = 0;
    second.padHigh = -rest * step;
    second.windowDilation = a * step;
    Value made = over(over(array, dimension, first), dimension, second);
    if (rest == 0)
      return made;
    WindowDim third = dim;
    third.size = rest;
    third.padLow = dim.padLow - a * b * step;
    return combined(made, over(array, dimension, third));
  }

private:
  using Dims = llvm::SmallVector<int64_t>;

  Value padded(Value array, unsigned dimension, int64_t low, int64_t high) {
    if (low == 0 && high == 0)
      return array;
    llvm::SmallVector<PaddingDim> padding(array->shape().rank());
    padding[dimension] = {low, high, 0};
    return x.builder().infer(
        Opcode::Pad, {array, initial()},
        {Attribute{AttributeKey::Padding, module.arena().saveList(llvm::ArrayRef<PaddingDim>(padding))}});
  }

  Expansion &x;
  HloModule &module;
  Opcode opcode;
  Literal identity;
};

/// Sums of narrow floats are carried in f32 as kernels do, and rounded once.
ElementType typeBetween(Opcode opcode, ElementType type) {
  return opcode == Opcode::Add && isFloat(type) && bitWidth(type) < 32 ? ElementType::F32 : type;
}

/// What becomes of a window of a plain combiner.
struct Plan {
  enum Kind { Keep, Split, Cumulative, Wide } kind = Keep;
  unsigned dimension = 0;
};

Plan planOf(const Window &window, llvm::ArrayRef<int64_t> sizes) {
  int64_t elements = 1;
  llvm::SmallVector<unsigned> dimensions;
  for (auto [i, dim] : llvm::enumerate(window.dims)) {
    if (llvm::MulOverflow(elements, dim.size, elements))
      elements = std::numeric_limits<int64_t>::max();
    if (!isTrivial(dim))
      dimensions.push_back(unsigned(i));
  }
  if (elements <= maxWindow || dimensions.empty())
    return {};
  // The one that leaves the fewest elements comes first.
  unsigned first = *llvm::max_element(
      dimensions, [&](unsigned a, unsigned b) { return window.dims[a].stride < window.dims[b].stride; });
  const WindowDim &dim = window.dims[first];
  if (dimensions.size() > 1)
    return elements <= maxBox || dim.size == elements ? Plan() : Plan{Plan::Split, first};
  if (cumulative(dim, sizes[first]) != Reach::None)
    return sizes[first] <= maxWindow ? Plan() : Plan{Plan::Cumulative, first};
  // Elements are read again only where windows overlap.
  bool overlaps = dim.size / dim.stride > maxWindow / 2;
  return overlaps && dim.baseDilation == 1 && sizes[first] > maxWindow && dim.size < (int64_t(1) << 40)
             ? Plan{Plan::Wide, first}
             : Plan();
}

/// Any order gives the same, or nearly: products of floats overflow and vanish in some.
bool mayReorder(Opcode opcode, ElementType type, const Plan &plan, int64_t size) {
  constexpr int64_t tooLongForLoops = 4096;
  return opcode != Opcode::Multiply || isInteger(type) || isPred(type) ||
         (plan.kind == Plan::Cumulative && size > tooLongForLoops);
}

/// Is `init` something that may be combined with any number of times and changes nothing but, at most, -0 to 0?
bool isNeutral(const HloInstruction &init, Opcode opcode, const Literal &identity) {
  if (init.opcode() != Opcode::Constant || init.literal().isElided())
    return false;
  return init.literal() == identity || (opcode == Opcode::Add && init.literal() == Literal(init.shape()));
}

HloInstruction *expandPlain(HloInstruction &instr, HloRewriter &rewriter, Opcode opcode) {
  if (!instr.shape().isArray())
    return nullptr;
  ElementType type = instr.shape().elementType(), between = typeBetween(opcode, type);
  HloInstruction *init = instr.operand(1);
  const Shape &shape = instr.operand(0)->shape();
  std::optional<Literal> identity = identityOf(opcode, type);
  if (!identity || shape.elementType() != type || init->shape().elementType() != type || shape.numElements() == 0 ||
      instr.shape().numElements() == 0)
    return nullptr;
  Window window = instr.windowOr(shape.rank());
  Plan plan = planOf(window, shape.dims());
  unsigned at = plan.dimension;
  if (plan.kind == Plan::Keep || !mayReorder(opcode, type, plan, shape.dim(at)))
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  bool neutral = isNeutral(*init, opcode, *identity);
  Windows windows(x, instr.parent()->module(), opcode,
                  between != type ? *identityOf(opcode, between)
                  : neutral       ? init->literal()
                                  : *identity);
  Value array = x.builder().convert(x.plain(instr.operand(0)), between), made = nullptr;
  switch (plan.kind) {
  case Plan::Keep:
    return nullptr;
  case Plan::Cumulative:
    made = windows.cumulative(array, at, cumulative(window.dims[at], shape.dim(at)));
    break;
  case Plan::Wide:
    made = windows.wide(array, at, window.dims[at]);
    break;
  case Plan::Split: {
    array = windows.over(array, at, window.dims[at]);
    window.dims[at] = WindowDim();
    made = windows.over(array, window);
  }
  }
  if (!neutral || between != type)
    made = windows.combined(x.spread(x.builder().convert(init, between), made->shape().dims()), made);
  return x.result(made, instr.shape());
}

/// Is a computation of scalars elementwise, so that it can be written for arrays?
bool isLiftable(const HloComputation &computation) {
  return llvm::all_of(computation.instructions(), [&](const HloInstruction *instr) {
    if (instr->opcode() == Opcode::Tuple)
      return instr == computation.root();
    return instr->shape().isScalar() && (instr->opcode() == Opcode::Parameter || instr->opcode() == Opcode::Constant ||
                                         isElementwise(instr->opcode()));
  });
}

/// Cumulative windows of any combiner: after k rounds an element has been combined with the 2^k - 1 before it.
HloInstruction *expandDoubling(HloInstruction &instr, HloRewriter &rewriter) {
  const HloComputation &combiner = *instr.computation(AttributeKey::ToApply);
  unsigned count = instr.numOperands() / 2;
  const Shape &shape = instr.operand(0)->shape();
  Window window = instr.windowOr(shape.rank());
  std::optional<unsigned> found = cumulativeAlone(window, shape.dims());
  if (!found || shape.dim(*found) <= maxWindow || shape.dim(*found) > std::numeric_limits<int32_t>::max() / 2 ||
      !isLiftable(combiner) || shape.numElements() == 0)
    return nullptr;
  for (unsigned i = 0; i < count; ++i)
    if (instr.operand(i)->shape().elementType() != instr.resultShape(i).elementType() ||
        instr.operand(count + i)->shape().elementType() != instr.resultShape(i).elementType())
      return nullptr;
  unsigned dimension = *found;
  llvm::SmallVector<int64_t> dims(shape.dims());
  int64_t n = dims[dimension];
  bool fromFirst = cumulative(window.dims[dimension], n) == Reach::FromFirst;
  Expansion x(rewriter.builder(), instr);
  Values state = {x.scalar(ElementType::S32, 1)};
  for (unsigned i = 0; i < count; ++i)
    state.push_back(x.plain(instr.operand(i)));
  auto round = [&](Expansion &x, Value, llvm::ArrayRef<Value> state) {
    HloBuilder &b = x.builder();
    Value reach = state.front(), end = x.scalar(ElementType::S32, double(n));
    Value start = fromFirst ? x.subtract(end, reach) : reach, zero = x.scalar(ElementType::S32, 0);
    Value place = x.iota(ElementType::S32, dims, dimension);
    Value isInside = fromFirst ? b.compare(ComparisonDirection::Ge, place, x.spread(reach, dims))
                               : b.compare(ComparisonDirection::Lt, place, x.spread(x.subtract(end, reach), dims));
    Values moved, arguments;
    for (Value array : state.drop_front()) {
      Values operands = {b.concatenate({array, array}, dimension)};
      for (unsigned i = 0; i < dims.size(); ++i)
        operands.push_back(i == dimension ? start : zero);
      moved.push_back(
          b.add(Opcode::DynamicSlice, array->shape(), operands, {b.ints(AttributeKey::DynamicSliceSizes, dims)}));
    }
    Values here(state.drop_front());
    arguments.append(fromFirst ? moved : here);
    arguments.append(fromFirst ? here : moved);
    Values combined = x.applyToArrays(combiner, arguments, dims), next = {x.add(reach, reach)};
    for (auto [made, array] : llvm::zip_equal(combined, here))
      next.push_back(x.select(isInside, made, array));
    return next;
  };
  Values last = x.repeat(llvm::Log2_64_Ceil(uint64_t(n)), state, "cumulative", round), arguments;
  for (unsigned i = 0; i < count; ++i)
    arguments.push_back(x.spread(instr.operand(count + i), dims));
  arguments.append(last.begin() + 1, last.end());
  Values results = x.applyToArrays(combiner, arguments, dims);
  for (unsigned i = 0; i < count; ++i)
    results[i] = x.result(results[i], instr.resultShape(i));
  return instr.shape().isTuple() ? x.builder().tuple(results) : results.front();
}

HloInstruction *expandWindow(HloInstruction &instr, HloRewriter &rewriter) {
  std::optional<Opcode> opcode = plainCombiner(*instr.computation(AttributeKey::ToApply)->root());
  if (opcode && instr.numOperands() == 2)
    if (HloInstruction *made = expandPlain(instr, rewriter, *opcode))
      return made;
  return expandDoubling(instr, rewriter);
}

/// (output, carry) of one input and one carry, both of them what the combiner gives.
HloInstruction *expandAssociativeScan(HloInstruction &instr, HloRewriter &rewriter) {
  const HloInstruction &root = *instr.computation(AttributeKey::ToApply)->root();
  if (!instr.flag(AttributeKey::IsAssociative) || instr.numOperands() != 2 ||
      instr.intOr(AttributeKey::NumCarries, 0) != 1 || instr.numResults() != 2 || root.opcode() != Opcode::Tuple ||
      root.numOperands() != 2 || root.operand(0) != root.operand(1))
    return nullptr;
  std::optional<Opcode> opcode = plainCombiner(*root.operand(0));
  const Shape &shape = instr.operand(0)->shape();
  ElementType type = shape.elementType();
  if (!opcode || !identityOf(*opcode, type) || (*opcode == Opcode::Multiply && !isInteger(type)) ||
      shape.numElements() == 0 || !instr.resultShape(0).sameDims(shape) || instr.resultShape(0).elementType() != type ||
      instr.resultShape(1).elementType() != type || instr.operand(1)->shape().elementType() != type)
    return nullptr;
  auto dimension = unsigned(instr.ints(AttributeKey::Dimensions).front());
  bool isReverse = instr.flag(AttributeKey::IsReverse);
  int64_t n = shape.dim(dimension);
  Expansion x(rewriter.builder(), instr);
  HloBuilder &b = x.builder();
  ElementType between = typeBetween(*opcode, type);
  Windows windows(x, instr.parent()->module(), *opcode, *identityOf(*opcode, between));
  Value values = b.convert(x.plain(instr.operand(0)), between), first = b.convert(x.plain(instr.operand(1)), between);
  Value sums = windows.cumulative(values, dimension, isReverse ? Reach::ToLast : Reach::FromFirst);
  llvm::SmallVector<int64_t> kept, rest;
  for (unsigned i = 0; i < shape.rank(); ++i)
    if (i != dimension) {
      kept.push_back(i);
      rest.push_back(shape.dim(i));
    }
  Value all = windows.combined(b.broadcast(first, sums->shape(), kept), sums);
  int64_t last = isReverse ? 0 : n - 1;
  Value carry = x.reshape(x.range(all, dimension, last, last + 1), rest);
  return b.tuple({x.result(all, instr.resultShape(0)), x.result(carry, instr.resultShape(1))});
}

constexpr RewriteRule rules[] = {
    {"expand-windows.reduce-window", Opcode::ReduceWindow, expandWindow},
    {"expand-windows.associative-scan", Opcode::Scan, expandAssociativeScan},
};

} // namespace

/// Not within fusions: there all is one kernel, which would compute what stands between again and again.
PassResult expandWindows(HloModule &module, HloPassContext &context) {
  return module.headerless() ? PassResult::Unchanged : rewriteComputations(controlComputations(module), rules, context);
}

} // namespace hloc
