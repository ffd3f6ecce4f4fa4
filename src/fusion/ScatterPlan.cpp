#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/Literal.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <numeric>

namespace hloc {
namespace {

using Access = ScatterPlan::Access;
using Output = ScatterPlan::Output;

/// The scatter whose result an output is, and which result; null if it is none.
std::pair<const HloInstruction *, unsigned> scatterOf(const FusionRoot &root) {
  const HloInstruction *value = &behindBitcasts(*root.instr);
  unsigned result = root.result;
  if (value->opcode() == Opcode::GetTupleElement) {
    result = unsigned(value->intOr(AttributeKey::Index, 0));
    value = value->operand(0);
  }
  return {value->opcode() == Opcode::Scatter ? value : nullptr, result};
}

std::optional<unsigned> parameterBehind(const HloInstruction &operand) {
  const HloInstruction &array = behindBitcasts(operand);
  if (array.opcode() != Opcode::Parameter)
    return std::nullopt;
  return unsigned(array.parameterNumber());
}

/// Is the `result`-th result of the reducer its update, whatever is there?
bool returnsUpdate(const HloComputation &reducer, unsigned result) {
  const HloInstruction *root = reducer.root();
  if (root->opcode() == Opcode::Tuple)
    root = root->operand(result);
  return root->opcode() == Opcode::Parameter && root->parameterNumber() == reducer.numParameters() / 2 + result;
}

/// The operation if the `result`-th result is one on what is there and its update, whatever becomes of other results.
/// Not the greater of complex numbers, which is the first of those with equal real parts.
std::optional<Opcode> plainOperation(const HloComputation &reducer, unsigned result) {
  const HloInstruction *root = reducer.root();
  if (root->opcode() == Opcode::Tuple)
    root = root->operand(result);
  if (root->numOperands() != 2)
    return std::nullopt;
  auto isParameter = [&](unsigned operand, size_t number) {
    const HloInstruction &value = *root->operand(operand);
    return value.opcode() == Opcode::Parameter && size_t(value.parameterNumber()) == number;
  };
  size_t update = reducer.numParameters() / 2 + result;
  bool isPlain =
      (isParameter(0, result) && isParameter(1, update)) || (isParameter(0, update) && isParameter(1, result));
  const bool depends = isComplex(root->shape().elementType()) &&
                       (root->opcode() == Opcode::Maximum || root->opcode() == Opcode::Minimum);
  return isPlain && !depends ? std::optional(root->opcode()) : std::nullopt;
}

bool isPlainSum(const HloComputation &reducer, unsigned result) {
  return plainOperation(reducer, result) == Opcode::Add;
}

/// May updates of one place be combined in any order, and with each other before what is there?
bool isAssociative(const HloComputation &reducer, unsigned result) {
  constexpr Opcode associative[] = {Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum,
                                    Opcode::And, Opcode::Or,       Opcode::Xor};
  std::optional<Opcode> operation = plainOperation(reducer, result);
  return operation && llvm::is_contained(associative, *operation);
}

/// Do no two updates have the same place? A promise speaks of where windows begin: larger ones may still overlap, and
/// more than there are places do.
bool placesAreDistinct(const HloInstruction &hero, const GatherDims &dims, llvm::ArrayRef<int64_t> updates) {
  double windows = 1, places = 1; // exact as far as it matters
  for (int64_t dim : dims.batch)
    if (!llvm::is_contained(dims.batchOfOperand, dim))
      windows *= double(updates[dim]);
  if (windows <= 1)
    return true;
  bool overlap = false;
  for (unsigned dim = 0; dim < dims.component.size(); ++dim) {
    if (dims.component[dim] < 0)
      continue;
    overlap |= dims.windowSize(dim, updates) != 1;
    places *= double(hero.resultShape().dim(dim));
  }
  return hero.flag(AttributeKey::UniqueIndices) && !overlap && windows <= places;
}

/// Can threads update elements of the arrays one by one, without losing what others do? Null if so, else why not.
const char *whyNotAtomic(const HloInstruction &hero) {
  const HloComputation &reducer = *hero.computation(AttributeKey::ToApply);
  for (unsigned i = 0; i < hero.numResults(); ++i) {
    const Shape &array = hero.resultShape(i);
    unsigned bits = deviceBits(array.elementType());
    // Each array by itself: in what order does not show.
    if (hero.numResults() > 1 && !isAssociative(reducer, i))
      return "updates of several arrays at once may have the same place";
    if (bits > 64 && !isPlainSum(reducer, i))
      return "no atomic instruction updates so large elements";
    // Of less than 16 bits the words that are exchanged must all lie inside the array.
    bool exchangesWords = bits < 8 || (bits == 8 && !returnsUpdate(reducer, i));
    if (exchangesWords && array.numElements() * int64_t(bits) % 16 != 0)
      return "the last elements share a word with what is behind the array";
  }
  return nullptr;
}

/// Neighbouring elements of a window, in the memory of `updates`, that are neighbours in `array` as well, and begin at
/// a multiple of their number there.
int64_t neighbours(const GatherDims &dims, const Shape &updates, const Shape &array) {
  auto larger = [](const Shape &shape) {
    llvm::SmallVector<int64_t> order;
    llvm::copy_if(shape.minorToMajor(), std::back_inserter(order), [&](int64_t dim) { return shape.dim(dim) != 1; });
    return order;
  };
  llvm::SmallVector<int64_t> inUpdates = larger(updates), inArray = larger(array);
  int64_t count = 1, stride = 1, aligned = 0;
  bool whole = true; // so far the window is as large as the array
  for (unsigned i = 0; i < inArray.size(); ++i) {
    int64_t dim = inArray[i];
    whole = whole && i < inUpdates.size() && dims.offset[dim] == inUpdates[i];
    int64_t size = whole ? updates.dim(inUpdates[i]) : 0;
    if (whole)
      count *= size;
    if (!whole || (size != array.dim(dim) && dims.component[dim] >= 0))
      aligned = std::gcd(aligned, stride); // begins somewhere
    whole = whole && size == array.dim(dim);
    stride *= array.dim(dim);
  }
  return std::gcd(count, aligned);
}

/// Reading the updates and indices of several windows at once: one element of each, side by side.
bool windowsAreStreams(const ScatterPlan &plan, const GatherDims &dims) {
  const HloInstruction &indices = *plan.hero->operand(plan.outputs.size());
  int64_t windows = 1, larger = 0;
  for (int64_t dim : dims.batch) {
    windows *= plan.space.dim(dim);
    larger += plan.space.dim(dim) != 1;
  }
  bool oneOrder = larger <= 1 || (indices.shape().hasDefaultLayout() && plan.space.hasDefaultLayout());
  return windows == plan.space.numElements() && windows == indices.shape().numElements() && oneOrder;
}

/// Neighbouring elements of one array that one instruction of the target updates, at most.
unsigned elementsOfAtomic(const HloInstruction &hero, unsigned result, const TargetInfo &target) {
  constexpr unsigned atomicBytes = 16;
  const HloComputation &reducer = *hero.computation(AttributeKey::ToApply);
  ElementType type = hero.resultShape(result).elementType();
  unsigned bits = deviceBits(type);
  if (returnsUpdate(reducer, result))
    return bits < 8 ? 1 : atomicBytes * 8 / bits;
  if (!isPlainSum(reducer, result))
    return 1;
  bool vectors = target.atLeast(9, 0);
  switch (type) {
  case ElementType::F32:
  case ElementType::BF16:
    return vectors ? atomicBytes * 8 / bits : 1;
  case ElementType::F16:
    return vectors ? atomicBytes * 8 / bits : 2;
  default:
    return 1;
  }
}

/// Of all arrays.
unsigned elementsOfAccess(const ScatterPlan &plan, const StreamWidths &widths, const TargetInfo &target) {
  if (plan.access != Access::Atomic)
    return widths.elements(target);
  unsigned least = elementsOfAtomic(*plan.hero, 0, target);
  for (unsigned i = 1; i < plan.outputs.size(); ++i)
    least = std::min(least, elementsOfAtomic(*plan.hero, i, target));
  return least;
}

/// Vectors of neighbours where there are any, as long as the device stays filled.
void chooseVectors(ScatterPlan &plan, const GatherDims &dims, const TargetInfo &target) {
  /// Windows of one element that a thread takes: so many indices and updates it reads at once.
  constexpr unsigned mostWindows = 4;
  int64_t divisor = 0;
  StreamWidths widths;
  for (unsigned i = 0; i < plan.outputs.size(); ++i) {
    const Shape &updates = plan.hero->operand(plan.outputs.size() + 1 + i)->shape();
    const Shape &array = plan.hero->resultShape(i);
    divisor = sameArray(updates, plan.space) ? std::gcd(divisor, neighbours(dims, updates, array)) : 1;
    if (isComplex(array.elementType()))
      divisor = 1;
    widths.add(array);
  }
  unsigned count = elementsOfAccess(plan, widths, target);
  if (divisor == 1 && windowsAreStreams(plan, dims)) {
    count = mostWindows;
    divisor = std::gcd(plan.space.numElements(), int64_t(mostWindows));
    plan.oneWindow = false;
  }
  int64_t twoBlocksEach = 2 * int64_t(target.multiprocessors) * threadsPerLoopBlock;
  while (count > 1 && (divisor % count != 0 || plan.space.numElements() / count < twoBlocksEach))
    count /= 2;
  plan.perThread = count;
  plan.oneWindow |= count == 1;
}

/// How many windows a thread takes, where neighbouring ones are promised to have the same place often.
void chooseRuns(ScatterPlan &plan, const GatherDims &dims, const TargetInfo &target) {
  constexpr unsigned mostRuns = 8, mostStreams = 4;
  const HloInstruction &hero = *plan.hero;
  const HloComputation &reducer = *hero.computation(AttributeKey::ToApply);
  if (plan.access != Access::Atomic || !hero.flag(AttributeKey::IndicesAreSorted) || plan.outputs.size() > 1 ||
      (!isAssociative(reducer, 0) && !returnsUpdate(reducer, 0)))
    return;
  double windows = 1, places = 1;
  for (int64_t dim : dims.batch) {
    if (llvm::is_contained(dims.batchOfOperand, dim))
      continue;
    windows *= double(plan.space.dim(dim));
    if (plan.space.dim(dim) != 1)
      plan.alongWindows = dim;
  }
  for (unsigned dim = 0; dim < dims.component.size(); ++dim)
    if (dims.component[dim] >= 0)
      places *= double(hero.resultShape().dim(dim) - dims.windowSize(dim, plan.space.dims()) + 1);
  // With fewer windows, not one in eight has the place of the one before.
  if (plan.alongWindows < 0 || windows * 4 < places)
    return;
  int64_t length = plan.space.dim(plan.alongWindows), elements = plan.space.numElements();
  // What is read as a stream stays vectors; the last group of others may be smaller.
  bool streams = !plan.oneWindow || windowsAreStreams(plan, dims);
  ElementType type = hero.resultShape().elementType();
  bool divides = streams || isComplex(type) || deviceBits(type) < 16;
  unsigned perThread = plan.oneWindow ? plan.perThread : 1, runs = streams ? mostStreams : mostRuns;
  // Each has as many reads under way as there are runs.
  int64_t twoWarpsEach = 2 * int64_t(target.multiprocessors) * target.warpSize;
  while (runs > 1 && ((divides && length % runs != 0) || elements / perThread / runs < twoWarpsEach))
    runs /= 2;
  if (runs == 1)
    return;
  plan.runs = runs;
  // Where a place has more windows than a few threads take.
  unsigned bits = deviceBits(type), indexBits = deviceBits(hero.operand(1)->shape().elementType());
  plan.acrossLanes = streams && length == elements && elements / runs >= threadsPerLoopBlock &&
                     isAssociative(reducer, 0) && windows >= 16 * places && !isComplex(type) && bits >= 16 &&
                     bits <= 64 && indexBits >= 8;
  plan.perThread = perThread;
  plan.oneWindow = true;
}

/// Does anybody but the scatter's operands read the parameter?
bool isReadElsewhere(const FusionGraph &graph, const HloInstruction &hero, unsigned parameter) {
  Places<Own> named(graph.computation()); // under whatever dimensions
  named.set(*graph.parameters()[parameter], Own());
  named.follow(graph.instructions(), [&](const HloInstruction &instr, unsigned operand, Own own) -> PlaceAnswer<Own> {
    if (&instr == &hero && operand < hero.numOperands() / 2)
      return Independent();
    return placeIf(isRenaming(instr), own);
  });
  return named.firstElsewhere();
}

/// The byte that the array is full of; nothing if there is none.
std::optional<uint8_t> byteOf(const HloInstruction &array) {
  constexpr int64_t mostElements = 4096;
  const HloInstruction *value = &behindBitcasts(array);
  while (value->opcode() == Opcode::Broadcast)
    value = &behindBitcasts(*value->operand(0));
  if (!value->hasLiteral() || value->literal().isElided() || value->shape().numElements() == 0 ||
      value->shape().numElements() > mostElements)
    return std::nullopt;
  std::vector<uint8_t> bytes = toDeviceBytes(value->literal());
  bool packed = deviceBits(value->shape().elementType()) < 8;
  if (!llvm::all_equal(bytes) || (packed && bytes.front() != 0))
    return std::nullopt;
  return bytes.front();
}

/// What makes the operands lie in the outputs.
OtherSteps stepsAround(const ScatterPlan &plan) {
  OtherSteps result;
  for (auto [i, output] : llvm::enumerate(plan.outputs)) {
    PlanBuffer buffer{PlanBuffer::Kind::Output, output.root};
    const HloInstruction &operand = *plan.hero->operand(unsigned(i));
    if (output.inPlace)
      continue;
    if (output.parameter)
      result.before.push_back(CopyPlan{{PlanBuffer::Kind::Parameter, *output.parameter}, buffer});
    else if (std::optional<uint8_t> byte = byteOf(operand))
      result.before.push_back(FillPlan{buffer, *byte});
    else
      result.earlier.push_back({&operand, output.root});
  }
  return result;
}

/// The outputs of a fusion whose roots are the results of one scatter, each once; or why they are not.
std::variant<ScatterPlan, Rejection> outputsOf(const FusionGraph &graph) {
  ScatterPlan plan{};
  llvm::BitVector seen;
  for (auto [number, root] : llvm::enumerate(graph.roots())) {
    auto [hero, result] = scatterOf(root);
    if (!hero)
      return Rejection{fmt::format("output {} is no scatter", number)};
    if (!plan.hero) {
      plan.hero = hero;
      plan.outputs.resize(hero->numResults());
      seen.resize(hero->numResults());
    }
    if (hero != plan.hero || seen[result])
      return Rejection{"several outputs scatter to arrays of their own"};
    if (root.shape.elementType() != hero->resultShape(result).elementType())
      return Rejection{fmt::format("output {} has another type than `{}`", number, hero->name().str())};
    seen[result] = true;
    plan.outputs[result] = {unsigned(number), parameterBehind(*hero->operand(result)), false};
  }
  if (!seen.all())
    return Rejection{fmt::format("not all results of `{}` are outputs", plan.hero->name().str())};
  for (unsigned i = 0; i < plan.outputs.size(); ++i)
    if (!sameArray(plan.hero->operand(i)->shape(), plan.hero->resultShape(i)))
      return Rejection{fmt::format("`{}` changes the layout", plan.hero->name().str())};
  return plan;
}

uint64_t bytesOf(const ScatterPlan &plan, unsigned output) {
  const Shape &array = plan.hero->resultShape(output);
  return std::min<uint64_t>(plan.space.withElementType(array.elementType()).byteSize(), array.byteSize());
}

} // namespace

std::optional<unsigned> scatteredParameter(const FusionGraph &graph, unsigned root) {
  auto [hero, result] = scatterOf(graph.roots()[root]);
  return hero ? parameterBehind(*hero->operand(result)) : std::nullopt;
}

template <>
HeroMatch<ScatterPlan> matchHero<ScatterPlan>(const FusionGraph &graph, const FusionAliasing &offers,
                                              const TargetInfo &target, PlanContext &) {
  auto outputs = outputsOf(graph);
  if (auto *why = std::get_if<Rejection>(&outputs))
    return std::move(*why);
  ScatterPlan plan = std::move(std::get<ScatterPlan>(outputs));
  const HloInstruction &hero = *plan.hero;
  plan.space = hero.operand(plan.outputs.size() + 1)->shape();
  GatherDims dims = scatterDims(hero);
  bool overwrites = true;
  for (unsigned i = 0; i < plan.outputs.size(); ++i)
    overwrites &= returnsUpdate(*hero.computation(AttributeKey::ToApply), i);
  // Of elements that share a byte, not even the own one can be read while others write theirs.
  bool shareBytes = llvm::any_of(llvm::seq<unsigned>(0, plan.outputs.size()),
                                 [&](unsigned i) { return deviceBits(hero.resultShape(i).elementType()) < 8; });
  if (placesAreDistinct(hero, dims, plan.space.dims()) && (overwrites || !shareBytes))
    plan.access = overwrites ? Access::Store : Access::Plain;
  else if (const char *why = whyNotAtomic(hero))
    return Rejection{why};

  llvm::SmallVector<unsigned> taken;
  for (Output &output : plan.outputs) {
    bool offered = output.parameter && output.root < offers.size() && offers[output.root] == output.parameter;
    if (!offered || llvm::is_contained(taken, *output.parameter))
      continue;
    bool alone =
        llvm::count_if(plan.outputs, [&](const Output &other) { return other.parameter == output.parameter; }) == 1;
    output.inPlace = alone && !isReadElsewhere(graph, hero, *output.parameter);
    taken.push_back(*output.parameter);
  }
  chooseVectors(plan, dims, target);
  chooseRuns(plan, dims, target);
  int64_t threads = plan.groups().numElements() / plan.perThread;
  OtherSteps others = stepsAround(plan);
  return {std::move(plan), launchOf(threads, target), std::move(others)};
}

/// Elsewhere the parameter is not read: the kernel finds it in the output.
template <>
bool mayTakePlace<ScatterPlan>(const ScatterPlan &plan, const FusionGraph &, unsigned root, unsigned parameter) {
  return llvm::any_of(plan.outputs, [&](const Output &output) {
    return output.inPlace && output.root == root && output.parameter == parameter;
  });
}

/// The updates, and for each where it goes.
template <>
ComputedSpaces computedSpaces<ScatterPlan>(const ScatterPlan &plan, const FusionGraph &, mlir::MLIRContext *context) {
  ComputedSpace space;
  const HloInstruction *indices = plan.hero->operand(plan.outputs.size());
  for (int64_t component : scatterDims(*plan.hero).component)
    if (component >= 0)
      space.values.push_back({indices, scatterIndexMap(*plan.hero, component, context)});
  for (const HloInstruction *updates : plan.hero->operands().drop_front(plan.outputs.size() + 1))
    space.values.push_back({updates, IndexingMap::identity(context, plan.space.dims())});
  return {{std::move(space)}, {}};
}

template <> unsigned plannedRegisters<ScatterPlan>(const ScatterPlan &) { return KernelSpec::usualRegisters; }

/// Of the arrays no more than what is updated.
template <> KernelTraffic trafficOf<ScatterPlan>(const ScatterPlan &plan, const FusionGraph &graph) {
  KernelTraffic traffic;
  const llvm::BitVector read = readFor(graph, plan.hero->operands().drop_front(plan.outputs.size()));
  for (const HloInstruction *parameter : graph.parameters())
    if (read[parameter->id()])
      traffic.read += parameter->shape().byteSize();
  for (unsigned i = 0; i < plan.outputs.size(); ++i) {
    traffic.written += bytesOf(plan, i);
    if (plan.access == Access::Plain)
      traffic.read += bytesOf(plan, i);
  }
  return traffic;
}

Shape ScatterPlan::groups() const {
  if (runs == 1)
    return space;
  llvm::SmallVector<int64_t> sizes(space.dims());
  sizes[size_t(alongWindows)] = llvm::divideCeil(sizes[size_t(alongWindows)], int64_t(runs));
  return Shape::array(space.elementType(), sizes, space.layout());
}

std::string ScatterPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  const char *accesses[] = {"stored", "read and written", "atomic"};
  os << "scatter: roots ";
  llvm::interleave(outputs, os, [&](const Output &output) { os << output.root; }, ",");
  os << ", " << space.numElements() << " updates, " << accesses[unsigned(access)] << ", " << perThread << " per thread";
  if (!oneWindow)
    os << " of as many windows";
  if (runs > 1)
    os << " and window of " << runs << " together where their place is one";
  if (acrossLanes)
    os << ", across lanes";
  return result;
}

} // namespace hloc
