#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <numeric>

namespace hloc {
namespace {

using Update = UpdateSlicePlan::Update;

/// A copy costs a launch of its own, as long as a device takes to move about so many bytes.
constexpr uint64_t copyOverheadBytes = 1 << 20;

/// The update that an output is, or why it is none.
std::variant<Update, Rejection> updateOf(const FusionGraph &graph, unsigned number) {
  const FusionRoot &root = graph.roots()[number];
  const HloInstruction &hero = behindBitcasts(*root.instr);
  if (hero.opcode() != Opcode::DynamicUpdateSlice)
    return Rejection{fmt::format("output {} is no dynamic-update-slice", number)};
  const HloInstruction &array = behindBitcasts(*hero.operand(0));
  if (array.opcode() != Opcode::Parameter)
    return Rejection{fmt::format("the array that `{}` updates is computed", hero.name().str())};
  if (!sameArray(hero.shape(), hero.operand(0)->shape()))
    return Rejection{fmt::format("`{}` changes the layout", hero.name().str())};
  if (root.shape.elementType() != hero.shape().elementType())
    return Rejection{fmt::format("output {} has another type than `{}`", number, hero.name().str())};
  if (deviceBits(root.shape.elementType()) < 8)
    return Rejection{"elements share bytes, which threads cannot store one by one"};
  return Update{&hero, number, unsigned(array.parameterNumber()), false};
}

/// Does somebody besides the outputs read an updated array?
bool updatedIsRead(const FusionGraph &graph) {
  std::vector<bool> updated(graph.computation().instructions().size(), false);
  for (const FusionRoot &root : graph.roots())
    for (const HloInstruction *instr = root.instr;; instr = instr->operand(0)) {
      updated[instr->id()] = true;
      if (!isRenaming(*instr))
        break;
    }
  return llvm::any_of(graph.instructions(), [&](const HloInstruction *instr) {
    return !(updated[instr->id()] && isRenaming(*instr)) &&
           llvm::any_of(instr->operands(), [&](const HloInstruction *operand) { return updated[operand->id()]; });
  });
}

/// Does `instr` read, at an index, the element that the update with that index overwrites?
bool readsWhatIsUpdated(const HloInstruction &instr, const HloInstruction &hero) {
  return instr.opcode() == Opcode::DynamicSlice && instr.operand(0) == hero.operand(0) &&
         instr.shape().sameDims(hero.operand(1)->shape()) &&
         instr.operands().drop_front(1) == hero.operands().drop_front(2);
}

/// Who reads the parameter of `update`: may its elements be overwritten? A thread overwrites what no other reads, and
/// computes all its values first.
class ReadersOfUpdated {
public:
  ReadersOfUpdated(const FusionGraph &graph, const UpdateSlicePlan &plan, const Update &update)
      : plan(plan), hero(*update.hero), named(graph.computation().instructions().size(), false),
        own(named.size(), false) {
    const HloInstruction *array = graph.parameters()[update.parameter];
    for (const HloInstruction *instr : graph.instructions()) {
      named[instr->id()] = instr == array;
      for (unsigned i = 0; i < instr->numOperands() && harmless; ++i)
        harmless = isHarmless(*instr, i);
      // Everything is updated: whoever reads the array at an index reads what is written there.
      if (instr == hero.operand(0) && instr->shape().sameDims(hero.operand(1)->shape()))
        own[instr->id()] = true;
    }
  }
  bool areHarmless() const { return harmless; }

private:
  bool isHero(const HloInstruction &instr) const {
    return llvm::any_of(plan.updates, [&](const Update &update) { return update.hero == &instr; });
  }

  /// Notes what `instr` is, if operand `number` is or depends on the parameter.
  bool isHarmless(const HloInstruction &instr, unsigned number) {
    const HloInstruction &operand = *instr.operand(number);
    if (!named[operand.id()] && !own[operand.id()])
      return true;
    if (number == 0 && isHero(instr)) // which reads nothing of it
      return true;
    if (number == 0 && named[operand.id()] && isRenaming(instr))
      return named[instr.id()] = true;
    if (number == 0 && readsWhatIsUpdated(instr, hero))
      return own[instr.id()] = true;
    if (!own[operand.id()])
      return false;
    if (number == 1 && isHero(instr))
      return true;
    if (!readsOperandsInPlace(instr) || !instr.shape().isArray() || !instr.shape().sameDims(operand.shape()))
      return false;
    return own[instr.id()] = true;
  }

  const UpdateSlicePlan &plan;
  const HloInstruction &hero;
  std::vector<bool> named; ///< the parameter under whatever dimensions
  std::vector<bool> own;   ///< at an index, depends on the element of the parameter that the thread of it overwrites
  bool harmless = true;
};

uint64_t bytesOf(const Update &update) {
  return uint64_t(update.hero->operand(1)->shape().numElements()) *
         (deviceBits(update.hero->shape().elementType()) / 8);
}

/// The loop reads and writes whole arrays. Copying them first costs a little more traffic, but at the rate of the
/// device's memory: the loop tests for each element whether it is updated, and has no vectors.
bool copiesAreWorthwhile(const UpdateSlicePlan &plan) {
  uint64_t loop = 0, own = 0;
  for (const Update &update : plan.updates) {
    uint64_t array = update.hero->shape().byteSize();
    loop += 2 * array;
    own += 2 * bytesOf(update) + (update.inPlace ? 0 : 2 * array + copyOverheadBytes);
  }
  return own <= loop + loop / 4;
}

/// Elements of the innermost dimensions, in memory order, that are updated as a whole: what they begin with is a
/// multiple of them.
int64_t wholeElements(const HloInstruction &hero) {
  int64_t count = 1;
  for (int64_t dim : hero.shape().minorToMajor()) {
    if (hero.operand(1)->shape().dim(dim) != hero.shape().dim(dim))
      break;
    count *= hero.shape().dim(dim);
  }
  return count;
}

/// Vectors are those of the loop, where they are aligned and the device stays filled.
unsigned alignedElements(const UpdateSlicePlan &plan, const TargetInfo &target) {
  int64_t aligned = 0;
  StreamWidths widths;
  for (const Update &update : plan.updates) {
    if (update.hero->shape().minorToMajor() != plan.space.minorToMajor())
      return 1;
    aligned = std::gcd(aligned, wholeElements(*update.hero));
    widths.add(update.hero->shape());
  }
  unsigned count = widths.elements(target);
  int64_t oneBlockEach = int64_t(target.multiprocessors) * threadsPerLoopBlock;
  while (count > 1 && (aligned % count != 0 || plan.space.numElements() / count < oneBlockEach))
    count /= 2;
  return count;
}

} // namespace

std::optional<unsigned> updatedParameter(const FusionGraph &graph, unsigned root) {
  auto update = updateOf(graph, root);
  if (const auto *found = std::get_if<Update>(&update))
    return found->parameter;
  return scatteredParameter(graph, root);
}

template <>
HeroMatch<UpdateSlicePlan> matchHero<UpdateSlicePlan>(const FusionGraph &graph, const FusionAliasing &offers,
                                                      const TargetInfo &target) {
  UpdateSlicePlan plan;
  for (unsigned i = 0; i < graph.roots().size(); ++i) {
    auto update = updateOf(graph, i);
    if (auto *why = std::get_if<Rejection>(&update))
      return std::move(*why);
    plan.updates.push_back(std::get<Update>(update));
  }
  const HloInstruction &first = *plan.updates.front().hero;
  for (const Update &update : plan.updates)
    if (!update.hero->operand(1)->shape().sameDims(first.operand(1)->shape()))
      return Rejection{"updates have different dimensions"};
  if (updatedIsRead(graph))
    return Rejection{"an updated array is also read in the fusion"};
  plan.space = first.operand(1)->shape().withLayout(first.shape().minorToMajor());

  llvm::SmallVector<unsigned> taken;
  bool refused = false;
  for (Update &update : plan.updates) {
    bool offered = update.root < offers.size() && offers[update.root] == update.parameter;
    if (!offered || llvm::is_contained(taken, update.parameter))
      continue;
    update.inPlace = ReadersOfUpdated(graph, plan, update).areHarmless();
    refused |= !update.inPlace;
    taken.push_back(update.parameter);
  }
  if (!copiesAreWorthwhile(plan))
    return Rejection{refused ? "an array to be updated in place is also read where other threads write it"
                             : "the outputs do not take the operands' places, and copying these first would not pay"};
  OtherSteps others;
  for (const Update &update : plan.updates)
    if (!update.inPlace)
      others.before.push_back(
          CopyPlan{{PlanBuffer::Kind::Parameter, update.parameter}, {PlanBuffer::Kind::Output, update.root}});
  plan.perThread = alignedElements(plan, target);
  int64_t threads = plan.space.numElements() / plan.perThread;
  return {std::move(plan), launchOf(threads, target), std::move(others)};
}

/// The part that is updated is overwritten by threads that alone read it, the rest stays as it is.
template <>
bool mayTakePlace<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &, unsigned root,
                                   unsigned parameter) {
  return plan.updates[root].inPlace && plan.updates[root].parameter == parameter;
}

/// The updates and, in every thread, where they begin.
template <>
ComputedSpaces computedSpaces<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &,
                                               mlir::MLIRContext *context) {
  ComputedSpace space;
  auto scalar = mlir::AffineMap::get(plan.space.rank(), 0, {}, context);
  for (const Update &update : plan.updates) {
    space.values.push_back({update.hero->operand(1), IndexingMap::identity(context, plan.space.dims())});
    for (const HloInstruction *start : update.hero->operands().drop_front(2))
      if (start->shape().rank() == 0)
        space.values.push_back({start, IndexingMap::fromSizes(scalar, plan.space.dims())});
  }
  return {{std::move(space)}, {}};
}

/// What a kernel reads of the arrays that it updates is no more than the updates.
template <> KernelTraffic trafficOf<UpdateSlicePlan>(const UpdateSlicePlan &plan, const FusionGraph &graph) {
  KernelTraffic traffic;
  std::vector<bool> read(graph.computation().instructions().size(), false);
  for (const Update &update : plan.updates) {
    traffic.written += bytesOf(update);
    for (const HloInstruction *operand : update.hero->operands().drop_front(1))
      read[operand->id()] = true;
  }
  for (const HloInstruction *instr : llvm::reverse(graph.instructions()))
    if (read[instr->id()])
      for (const HloInstruction *operand : instr->operands())
        read[operand->id()] = true;
  for (const HloInstruction *parameter : graph.parameters()) {
    if (!read[parameter->id()])
      continue;
    uint64_t bytes = parameter->shape().byteSize();
    for (const Update &update : plan.updates)
      if (graph.parameters()[update.parameter] == parameter && update.inPlace)
        bytes = std::min(bytes, bytesOf(update));
    traffic.read += bytes;
  }
  return traffic;
}

std::string UpdateSlicePlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "dynamic-update-slice: roots ";
  llvm::interleave(updates, os, [&](const Update &update) { os << update.root; }, ",");
  os << ", " << space.numElements() << " elements, " << perThread << " per thread";
  return result;
}

} // namespace hloc
