#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/Literal.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hloc {
namespace {

using Update = UpdateSlicePlan::Update;
using Segment = UpdateSlicePlan::Segment;

/// A copy, or another kernel, costs a launch of its own, as long as a device takes to move about so many bytes.
constexpr uint64_t launchOverheadBytes = 1 << 20;
/// Instructions of a fusion whose code may be there twice, for groups that are aligned and for those that are not, and
/// updates that may have code of their own. Estimates.
constexpr size_t maxInstructionsTwice = 24, maxUpdates = 64;

/// The updates of one array, the first one first, and the output that the last one is.
using Chain = llvm::SmallVector<Update, 1>;

/// The updates that an output is, or why it is none.
std::variant<Chain, Rejection> chainOf(const FusionGraph &graph, unsigned number) {
  const FusionRoot &root = graph.roots()[number];
  Chain chain;
  const HloInstruction *array = &behindBitcasts(*root.instr);
  while (array->opcode() == Opcode::DynamicUpdateSlice && chain.size() < maxUpdates) {
    if (!sameArray(array->shape(), array->operand(0)->shape()))
      return Rejection{fmt::format("`{}` changes the layout", array->name().str())};
    chain.push_back({array, number, 0});
    array = &behindBitcasts(*array->operand(0));
  }
  if (chain.empty())
    return Rejection{fmt::format("output {} is no dynamic-update-slice", number)};
  const HloInstruction &first = *chain.back().hero;
  if (array->opcode() != Opcode::Parameter)
    return Rejection{fmt::format("the array that `{}` updates is computed", first.name().str())};
  for (Update &update : chain) {
    if (root.shape.elementType() != update.hero->shape().elementType())
      return Rejection{fmt::format("output {} has another type than `{}`", number, update.hero->name().str())};
    update.parameter = unsigned(array->parameterNumber());
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

/// Does somebody read an updated array, besides the outputs and what updates it further?
bool updatedIsRead(const FusionGraph &graph) {
  llvm::BitVector updated(graph.computation().instructions().size(), false);
  for (const FusionRoot &root : graph.roots())
    for (const HloInstruction *instr = root.instr; instr->opcode() != Opcode::Parameter; instr = instr->operand(0))
      updated[instr->id()] = true;
  return llvm::any_of(graph.instructions(), [&](const HloInstruction *instr) {
    llvm::ArrayRef<HloInstruction *> others = instr->operands().drop_front(updated[instr->id()] ? 1 : 0);
    return llvm::any_of(others, [&](const HloInstruction *operand) { return updated[operand->id()]; });
  });
}

/// Does `instr` read, at an index, the element that the update with that index overwrites?
bool readsWhatIsUpdated(const HloInstruction &instr, const HloInstruction &hero) {
  return instr.opcode() == Opcode::DynamicSlice && instr.operand(0) == hero.operand(0) &&
         instr.shape().sameDims(hero.operand(1)->shape()) &&
         instr.operands().drop_front(1) == hero.operands().drop_front(2);
}

bool contains(llvm::ArrayRef<Update> updates, const HloInstruction &instr) {
  return llvm::any_of(updates, [&](const Update &update) { return update.hero == &instr; });
}

/// Is `instr` an update that the threads of the segment alone make?
bool isOfSegment(const HloInstruction &instr, llvm::ArrayRef<Chain> chains, const Segment &segment) {
  auto ofChains = llvm::count_if(chains, [&](const Chain &chain) { return contains(chain, instr); });
  auto own = llvm::count_if(segment.updates, [&](const Update &update) { return update.hero == &instr; });
  return own > 0 && ofChains == own;
}

/// May the elements of the parameter that `update`, the first one of its array, overwrites in place be overwritten,
/// whoever reads them? A thread of the update's segment overwrites what no other reads, and computes all its values
/// first.
bool readersAreHarmless(const FusionGraph &graph, llvm::ArrayRef<Chain> chains, const Segment &segment,
                        const Update &update) {
  /// The parameter under whatever dimensions; the same if everything is updated, so that whoever reads it at an index
  /// reads what is written there; what depends at an index on the element that the thread of it overwrites.
  enum class Place { Array, Updated, Own };
  const HloInstruction &hero = *update.hero, &array = *graph.parameters()[update.parameter];
  auto arrayAs = [&](const HloInstruction &instr) {
    const bool isUpdated = &instr == hero.operand(0) && instr.shape().sameDims(hero.operand(1)->shape());
    return isUpdated ? Place::Updated : Place::Array;
  };
  Places<Place> places(graph.computation());
  places.set(array, arrayAs(array));
  places.follow(graph.instructions(),
                [&](const HloInstruction &instr, unsigned number, Place read) -> PlaceAnswer<Place> {
                  if (number == 0 && llvm::any_of(chains, [&](const Chain &chain) { return contains(chain, instr); }))
                    return Independent(); // which reads nothing of it
                  if (number == 0 && read != Place::Own && isRenaming(instr))
                    return arrayAs(instr);
                  if (number == 0 && readsWhatIsUpdated(instr, hero))
                    return Place::Own;
                  if (read != Place::Array && number == 1 && isOfSegment(instr, chains, segment))
                    return Independent();
                  const bool isInPlace = readsOperandsInPlace(instr) && instr.shape().isArray() &&
                                         instr.shape().sameDims(instr.operand(number)->shape());
                  return placeIf(read != Place::Array && isInPlace, Place::Own);
                });
  return !places.firstElsewhere();
}

uint64_t bytesOf(const Update &update) {
  return llvm::divideCeil(
      uint64_t(update.hero->operand(1)->shape().numElements()) * deviceBits(update.hero->shape().elementType()), 8);
}

// --- which kernel does what

/// Do two updates of one array write different elements, whatever the starts are that are not known?
bool areApart(const HloInstruction &a, const HloInstruction &b) {
  if (a.operand(1)->shape().numElements() == 0 || b.operand(1)->shape().numElements() == 0)
    return true;
  if (!a.shape().sameDims(b.shape()))
    return false;
  for (unsigned dim = 0; dim < a.shape().rank(); ++dim) {
    std::optional<int64_t> first = knownStart(a, dim), second = knownStart(b, dim);
    if (first && second &&
        (*first + a.operand(1)->shape().dim(dim) <= *second || *second + b.operand(1)->shape().dim(dim) <= *first))
      return true;
  }
  return false;
}

/// The segment of a kernel that `update` belongs to: that of updates of its dimensions of other outputs, if any.
Segment &segmentOf(const Update &update, std::vector<Segment> &segments) {
  const Shape &dims = update.hero->operand(1)->shape();
  bool sharesBytes = deviceBits(update.hero->shape().elementType()) < 8; // each has its own aligned starts
  for (Segment &segment : segments)
    if (!sharesBytes && segment.space.sameDims(dims) &&
        llvm::none_of(segment.updates, [&](const Update &other) { return other.root == update.root; }))
      return segment;
  Segment &segment = segments.emplace_back();
  segment.space = dims.withLayout(update.hero->shape().minorToMajor());
  return segment;
}

/// An update goes to the first kernel after all that wrote where it may write. At least one kernel.
std::vector<UpdateSlicePlan> assignKernels(llvm::ArrayRef<Chain> chains) {
  std::vector<UpdateSlicePlan> kernels(1);
  for (const Chain &chain : chains) {
    llvm::SmallVector<size_t> kernelOf;
    for (const Update &update : chain) {
      size_t own = 0;
      for (auto [before, kernel] : llvm::zip(chain, kernelOf))
        if (!areApart(*before.hero, *update.hero))
          own = std::max(own, kernel + 1);
      kernelOf.push_back(own);
      if (own == kernels.size())
        kernels.emplace_back();
      if (update.hero->operand(1)->shape().numElements() > 0)
        segmentOf(update, kernels[own].segments).updates.push_back(update);
    }
  }
  return kernels;
}

/// Where outputs lie. `refused`: an array that is offered is read by threads that do not overwrite it.
llvm::SmallVector<std::optional<unsigned>> choosePlaces(const FusionGraph &graph, const FusionAliasing &offers,
                                                        llvm::ArrayRef<Chain> chains, const UpdateSlicePlan &first,
                                                        bool &refused) {
  llvm::SmallVector<std::optional<unsigned>> places(chains.size());
  llvm::SmallVector<unsigned> taken;
  for (auto [root, chain] : llvm::enumerate(chains)) {
    const Update &update = chain.front();
    bool offered = root < offers.size() && offers[root] == update.parameter;
    if (!offered || llvm::is_contained(taken, update.parameter))
      continue;
    // The first update of an array is the first kernel's; one of no elements is nobody's.
    Segment none;
    const Segment *segment = &none;
    for (const Segment &candidate : first.segments)
      for (const Update &own : candidate.updates)
        if (own.root == root && own.hero == update.hero)
          segment = &candidate;
    if (readersAreHarmless(graph, chains, *segment, update))
      places[root] = update.parameter;
    refused |= !places[root];
    taken.push_back(update.parameter);
  }
  return places;
}

/// The loop reads and writes whole arrays. Copying them first costs a little more traffic, but at the rate of the
/// device's memory: the loop tests for each element whether it is updated, and has no vectors.
bool copiesAreWorthwhile(llvm::ArrayRef<Chain> chains, size_t kernels, llvm::ArrayRef<std::optional<unsigned>> places) {
  uint64_t loop = 0, own = (kernels - 1) * launchOverheadBytes;
  for (auto [chain, place] : llvm::zip(chains, places)) {
    uint64_t array = chain.front().hero->shape().byteSize();
    loop += 2 * array;
    own += place ? 0 : 2 * array + launchOverheadBytes;
    for (const Update &update : chain)
      own += 2 * bytesOf(update);
  }
  return own <= loop + loop / 4;
}

// --- how many elements a thread takes at once

/// How the elements of an update lie in its array: `whole` elements of the innermost dimensions are updated as a whole,
/// so that what they begin with is a multiple of them; then comes a dimension of which only a part is.
struct Runs {
  int64_t whole = 1;
  std::optional<unsigned> partial;

  explicit Runs(const HloInstruction &hero) {
    for (int64_t dim : hero.shape().minorToMajor()) {
      if (hero.operand(1)->shape().dim(dim) != hero.shape().dim(dim)) {
        partial = unsigned(dim);
        return;
      }
      whole *= hero.shape().dim(dim);
    }
  }
  /// What the start along `partial` must be a multiple of, if groups of `count` elements are to begin at multiples of
  /// `count`; 0: they never do.
  int64_t startFor(int64_t count, const HloInstruction &hero) const {
    if (!partial)
      return whole % count == 0 ? 1 : 0;
    if (whole * hero.shape().dim(*partial) % count != 0 || whole * hero.operand(1)->shape().dim(*partial) % count != 0)
      return 0;
    int64_t start = count / std::gcd(count, whole);
    std::optional<int64_t> known = knownStart(hero, *partial);
    // Half bytes that begin inside of a byte have code for that.
    bool splits = deviceBits(hero.shape().elementType()) == 4 && count == 2;
    return !known || (splits && *known % start != 0) ? start : *known % start == 0 ? 1 : 0;
  }
};

/// Can all groups of `count` elements begin at multiples of `count`, wherever the updates start (`everywhere`) or
/// where they start well?
bool canBeAligned(const Segment &segment, int64_t count, bool everywhere) {
  return llvm::all_of(segment.updates, [&](const Update &update) {
    if (update.hero->shape().minorToMajor() != segment.space.minorToMajor())
      return count == 1;
    int64_t start = Runs(*update.hero).startFor(count, *update.hero);
    return everywhere ? start == 1 : start > 0;
  });
}

/// Vectors are those of the loop, where they can be aligned and the device stays filled. Returns why there are none.
std::optional<Rejection> chooseGroups(Segment &segment, const FusionGraph &graph, const TargetInfo &target) {
  StreamWidths widths;
  unsigned least = 1;
  for (const Update &update : segment.updates) {
    widths.add(update.hero->shape());
    least = std::max(least, 8 / std::min(8u, deviceBits(update.hero->shape().elementType())));
  }
  segment.elements = segment.space.numElements();
  bool mayBeTwice = graph.instructions().size() <= maxInstructionsTwice;
  int64_t oneBlockEach = int64_t(target.multiprocessors) * threadsPerLoopBlock;
  auto isGood = [&](unsigned count) {
    return count == least || (segment.elements / count >= oneBlockEach && canBeAligned(segment, count, !mayBeTwice));
  };
  unsigned count = std::max(widths.elements(target), least);
  while (!isGood(count))
    count /= 2;
  segment.perThread = segment.perThreadElsewhere = count;
  while (segment.perThreadElsewhere > 1 && !canBeAligned(segment, segment.perThreadElsewhere, true))
    segment.perThreadElsewhere /= 2;
  if (!canBeAligned(segment, count, false) || (segment.perThreadElsewhere < least && least > 2))
    return Rejection{"elements share bytes, which threads cannot store one by one"};
  for (Update &update : segment.updates) {
    Runs runs(*update.hero);
    update.alignedStart = count == 1 ? 1 : runs.startFor(count, *update.hero);
    update.alignedDim = runs.partial.value_or(0);
  }
  return std::nullopt;
}

} // namespace

std::optional<int64_t> knownStart(const HloInstruction &hero, unsigned dim) {
  int64_t high = hero.shape().dim(dim) - hero.operand(1)->shape().dim(dim);
  if (high == 0)
    return 0;
  const HloInstruction &start = *hero.operand(2);
  if (start.shape().rank() != 0) // a vector of all
    return std::nullopt;
  const HloInstruction &own = *hero.operand(2 + dim);
  if (own.opcode() != Opcode::Constant || own.literal().isElided())
    return std::nullopt;
  int64_t value = own.literal().getInt(0);
  bool isHuge = value < 0 && isUnsigned(own.shape().elementType());
  return isHuge ? high : std::clamp<int64_t>(value, 0, high);
}

std::optional<unsigned> updatedParameter(const FusionGraph &graph, unsigned root) {
  auto chain = chainOf(graph, root);
  if (const auto *found = std::get_if<Chain>(&chain))
    return found->front().parameter;
  return scatteredParameter(graph, root);
}

template <>
HeroMatch<UpdateSlicePlan> matchHero<UpdateSlicePlan>(const FusionGraph &graph, const FusionAliasing &offers,
                                                      const TargetInfo &target, PlanContext &) {
  std::vector<Chain> chains;
  size_t updates = 0;
  for (unsigned i = 0; i < graph.roots().size(); ++i) {
    auto chain = chainOf(graph, i);
    if (auto *why = std::get_if<Rejection>(&chain))
      return std::move(*why);
    chains.push_back(std::get<Chain>(chain));
    updates += chains.back().size();
  }
  if (updates > std::max(maxUpdates, chains.size()))
    return Rejection{"there are too many updates"};
  if (updatedIsRead(graph))
    return Rejection{"an updated array is also read in the fusion"};

  std::vector<UpdateSlicePlan> kernels = assignKernels(chains);
  bool refused = false;
  auto places = choosePlaces(graph, offers, chains, kernels.front(), refused);
  if (!copiesAreWorthwhile(chains, kernels.size(), places))
    return Rejection{refused ? "an array to be updated in place is also read where other threads write it"
                             : "the outputs do not take the operands' places, and copying these first would not pay"};
  OtherSteps others;
  for (auto [root, place] : llvm::enumerate(places))
    if (!place)
      others.before.push_back(CopyPlan{{PlanBuffer::Kind::Parameter, chains[root].front().parameter},
                                       {PlanBuffer::Kind::Output, unsigned(root)}});
  LaunchGeometry launchOfFirst;
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    kernel.places = places;
    llvm::SmallVector<BlockSegment *> segments;
    for (Segment &segment : kernel.segments) {
      if (auto why = chooseGroups(segment, graph, target))
        return std::move(*why);
      segments.push_back(&segment);
    }
    LaunchGeometry own = launchOf(0, target);
    if (!segments.empty()) {
      std::optional<LaunchGeometry> launch = assignBlocks(segments, graph, target);
      if (!launch)
        return Rejection{"too many blocks"};
      own = *launch;
    }
    if (i == 0)
      launchOfFirst = own;
    else
      others.following.push_back({std::move(kernel), own});
  }
  return {std::move(kernels.front()), launchOfFirst, std::move(others)};
}

/// The part that is updated is overwritten by threads that alone read it, the rest stays as it is.
template <>
bool mayTakePlace<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &, unsigned root,
                                   unsigned parameter) {
  return plan.places[root] == parameter;
}

/// The updates and, in every thread, where they begin.
template <>
ComputedSpaces computedSpaces<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &,
                                               mlir::MLIRContext *context) {
  ComputedSpaces result;
  for (const Segment &segment : plan.segments) {
    ComputedSpace &space = result.spaces.emplace_back();
    auto scalar = mlir::AffineMap::get(segment.space.rank(), 0, {}, context);
    for (const Update &update : segment.updates) {
      space.values.push_back({update.hero->operand(1), IndexingMap::identity(context, segment.space.dims())});
      for (const HloInstruction *start : update.hero->operands().drop_front(2))
        if (start->shape().rank() == 0)
          space.values.push_back({start, IndexingMap::fromSizes(scalar, segment.space.dims())});
    }
  }
  return result;
}

template <> unsigned plannedRegisters<UpdateSlicePlan>(const UpdateSlicePlan &) { return KernelSpec::usualRegisters; }

/// What a kernel reads of the arrays that it updates is no more than the updates.
template <> KernelTraffic trafficOf<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &graph) {
  KernelTraffic traffic;
  llvm::SmallVector<const HloInstruction *> values;
  std::vector<uint64_t> overwritten(graph.parameters().size(), std::numeric_limits<uint64_t>::max());
  for (const Segment &segment : plan.segments)
    for (const Update &update : segment.updates) {
      traffic.written += bytesOf(update);
      if (plan.places[update.root])
        overwritten[update.parameter] = std::min(overwritten[update.parameter], bytesOf(update));
      llvm::append_range(values, update.hero->operands().drop_front(1));
    }
  const llvm::BitVector read = readFor(graph, values);
  for (auto [parameter, most] : llvm::zip(graph.parameters(), overwritten))
    if (read[parameter->id()])
      traffic.read += std::min<uint64_t>(most, parameter->shape().byteSize());
  return traffic;
}

int64_t UpdateSlicePlan::Segment::runElements() const {
  int64_t run = space.numElements();
  for (const Update &update : updates)
    if (Runs runs(*update.hero); runs.partial)
      run = std::min(run, runs.whole * space.dim(*runs.partial));
  return run;
}

bool UpdateSlicePlan::Segment::splitsBytes() const {
  return perThread > perThreadElsewhere && llvm::any_of(updates, [&](const Update &update) {
           return int64_t(deviceBits(update.hero->shape().elementType())) * perThreadElsewhere < 8;
         });
}

std::string UpdateSlicePlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "dynamic-update-slice:";
  llvm::ListSeparator separator(";");
  for (const Segment &segment : segments) {
    os << separator << " roots ";
    llvm::interleave(segment.updates, os, [&](const Update &update) { os << update.root; }, ",");
    os << ", " << segment.elements << " elements, " << segment.perThread << " per thread";
    if (segment.perThreadElsewhere != segment.perThread)
      os << " where aligned";
    if (segment.rounds > 1)
      os << " in " << segment.rounds << " rounds";
    if (segments.size() > 1)
      os << ", " << segment.blocks << (segment.blocks == 1 ? " block" : " blocks");
  }
  return result;
}

} // namespace hloc
