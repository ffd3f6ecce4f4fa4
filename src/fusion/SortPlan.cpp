#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc {
namespace {

using SortValue = SortPlan::Value;

/// The sort whose result an output is, and which result; null if it is none.
std::pair<const HloInstruction *, unsigned> sortOf(const FusionRoot &root) {
  const HloInstruction *value = &behindBitcasts(*root.instr);
  unsigned result = root.result;
  if (value->opcode() == Opcode::GetTupleElement) {
    result = unsigned(value->intOr(AttributeKey::Index, 0));
    value = value->operand(0);
  }
  return {value->opcode() == Opcode::Sort ? value : nullptr, result};
}

/// Does the comparator read the elements of that operand?
bool isCompared(const HloComputation &comparator, unsigned operand) {
  auto isElement = [&](const HloInstruction *value) {
    return value->opcode() == Opcode::Parameter && value->parameterNumber() / 2 == int64_t(operand);
  };
  return isElement(comparator.root()) || llvm::any_of(comparator.instructions(), [&](const HloInstruction *instr) {
           return llvm::any_of(instr->operands(), isElement);
         });
}

int64_t bytesOf(const SortPlan &plan, const SortValue &value) {
  return deviceBits(plan.hero->resultShape(value.operand).elementType()) / 8;
}

int64_t bytesOfElement(const SortPlan &plan) {
  int64_t bytes = 0;
  for (const SortValue &value : plan.values)
    bytes += bytesOf(plan, value);
  return bytes;
}

/// The results of one sort that the outputs are, and what the comparator reads; or why they are not.
std::variant<SortPlan, Rejection> valuesOf(const FusionGraph &graph) {
  SortPlan plan{};
  std::vector<SortValue> all;
  for (auto [number, root] : llvm::enumerate(graph.roots())) {
    auto [hero, result] = sortOf(root);
    if (!hero)
      return Rejection{fmt::format("output {} is no sort", number)};
    if (!plan.hero) {
      plan.hero = hero;
      for (unsigned i = 0; i < hero->numOperands(); ++i)
        all.push_back({i, isCompared(*hero->computation(AttributeKey::ToApply), i), {}, {}, {}});
    }
    if (hero != plan.hero)
      return Rejection{"outputs are results of several sorts"};
    if (root.shape.elementType() != hero->resultShape(result).elementType())
      return Rejection{fmt::format("output {} has another type than `{}`", number, hero->name().str())};
    all[result].roots.push_back(unsigned(number));
  }
  for (SortValue &value : all) {
    ElementType from = plan.hero->operand(value.operand)->shape().elementType();
    if (from != plan.hero->resultShape(value.operand).elementType())
      return Rejection{fmt::format("`{}` changes the type of an operand", plan.hero->name().str())};
    if (!value.isKey && value.roots.empty())
      continue;
    if (deviceBits(from) < 8)
      return Rejection{"several elements share a byte"};
    plan.values.push_back(std::move(value));
  }
  return plan;
}

/// How many elements a thread and a block have at once. Nothing if shared memory has not even room for a warp's.
bool chooseTile(SortPlan &plan, const TargetInfo &target) {
  // Comparing is pasted in for each pair of a thread's elements, and those are in registers.
  constexpr int64_t mostThreads = 256, fewInstructions = 24, mostBytesOfThread = 128, leastTile = 32;
  const HloComputation &comparator = *plan.hero->computation(AttributeKey::ToApply);
  int64_t bytes = bytesOfElement(plan);
  plan.perThread = int64_t(comparator.instructions().size()) <= fewInstructions ? 8 : 4;
  plan.perThread = unsigned(std::min(int64_t(plan.perThread), int64_t(llvm::bit_ceil(uint64_t(plan.length)))));
  while (plan.perThread > 1 && plan.perThread * bytes > mostBytesOfThread)
    plan.perThread /= 2;
  int64_t fitting = int64_t(llvm::bit_floor(uint64_t(target.staticSharedBytes / bytes)));
  if (fitting < leastTile)
    return false;
  plan.tile = std::min({plan.length, fitting, mostThreads * int64_t(plan.perThread)});
  if (plan.tile < plan.length)
    return true;
  // Short rows side by side: enough for a warp, and, where rows are neighbours in memory, for whole sectors; more only
  // if there are blocks for all multiprocessors without.
  int64_t most =
      std::min(mostThreads / plan.threadsPerRow(), int64_t(target.staticSharedBytes) / (bytes * plan.stride()));
  int64_t least = int64_t(target.warpSize) / plan.threadsPerRow();
  if (plan.rowsAreMinor())
    least = std::max<int64_t>(least, sectorBits / 8);
  int64_t wanted = std::max(least, plan.rows / (2 * int64_t(target.multiprocessors)));
  plan.rowsPerBlock = std::clamp<int64_t>(std::min(wanted, plan.rows), 1, std::max<int64_t>(most, 1));
  return true;
}

LaunchGeometry launchOf(const SortPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {uint32_t(plan.threads()), 1, 1};
  uint64_t blocks = uint64_t(plan.blocks());
  uint64_t rows = std::max<uint64_t>((blocks + target.maxGridX - 1) / target.maxGridX, 1);
  launch.grid = {uint32_t((blocks + rows - 1) / rows), uint32_t(rows), 1};
  launch.sharedBytes = plan.sharedBytes();
  return launch;
}

/// The kernels after the first, and memory for what lies between them: the last one writes the outputs.
OtherSteps mergingKernels(SortPlan &plan, const TargetInfo &target) {
  OtherSteps result;
  llvm::SmallVector<int64_t> lengths;
  for (int64_t merged = plan.tile; merged < plan.length; merged *= 2)
    lengths.push_back(merged);
  if (lengths.empty())
    return result;
  for (SortValue &value : plan.values) {
    ElementType type = plan.hero->resultShape(value.operand).elementType();
    ScratchBuffer buffer{Shape::array(type, {plan.rows, plan.length})};
    value.scratch = result.scratch.size();
    result.scratch.push_back(buffer);
    if (!value.roots.empty() || lengths.size() < 2)
      continue;
    value.insteadOfOutput = result.scratch.size();
    result.scratch.push_back(buffer);
  }
  plan.toOutputs = lengths.size() % 2 == 0;
  bool inOutputs = plan.toOutputs;
  for (int64_t merged : lengths) {
    SortPlan next = plan;
    next.merged = merged;
    next.fromOutputs = inOutputs;
    next.toOutputs = !inOutputs;
    inOutputs = next.toOutputs;
    result.following.push_back({next, launchOf(next, target), /*writesScratch=*/true});
  }
  return result;
}

} // namespace

int64_t SortPlan::dimension() const { return hero->ints(AttributeKey::Dimensions).front(); }

bool SortPlan::rowsAreMinor() const {
  const Shape &shape = hero->resultShape(values.front().operand);
  for (int64_t dim : shape.minorToMajor())
    if (shape.dim(unsigned(dim)) != 1)
      return dim != dimension();
  return false;
}

uint64_t SortPlan::sharedBytes() const { return uint64_t(rowsPerBlock * stride() * bytesOfElement(*this)); }

template <>
HeroMatch<SortPlan> matchHero<SortPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target,
                                        PlanContext &) {
  std::variant<SortPlan, Rejection> match = valuesOf(graph);
  if (auto *why = std::get_if<Rejection>(&match))
    return std::move(*why);
  SortPlan plan = std::move(std::get<SortPlan>(match));
  const Shape &shape = plan.hero->resultShape(plan.values.front().operand);
  plan.length = shape.dim(unsigned(plan.dimension()));
  plan.rows = shape.numElements() / plan.length;
  if (!chooseTile(plan, target))
    return Rejection{"elements of all operands together are too large for shared memory"};
  OtherSteps others = mergingKernels(plan, target);
  LaunchGeometry launch = launchOf(plan, target);
  return {std::move(plan), launch, std::move(others)};
}

/// Never: what one block reads another may write.
template <> bool mayTakePlace<SortPlan>(const SortPlan &, const FusionGraph &, unsigned, unsigned) { return false; }

/// The operands where the first kernel reads them, the results where the last one has them.
template <>
ComputedSpaces computedSpaces<SortPlan>(const SortPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  ComputedSpaces result;
  result.kept.push_back(plan.hero);
  ComputedSpace read, stored;
  llvm::ArrayRef<int64_t> dims = plan.hero->resultShape(0).dims();
  for (const SortValue &value : plan.values) {
    if (plan.merged == 0)
      read.values.push_back({plan.hero->operand(value.operand), IndexingMap::identity(context, dims)});
    for (unsigned root : value.roots)
      if (plan.isLast())
        stored.values.push_back({graph.roots()[root].instr, bitcastIndexing(plan.hero->resultShape(value.operand),
                                                                            graph.roots()[root].shape, context)});
  }
  for (ComputedSpace *space : {&read, &stored})
    if (!space->values.empty())
      result.spaces.push_back(std::move(*space));
  return result;
}

/// Merging moves the values from where they lie to where they go.
template <> KernelTraffic trafficOf<SortPlan>(const SortPlan &plan, const FusionGraph &graph) {
  KernelTraffic traffic;
  uint64_t elements = uint64_t(plan.rows) * uint64_t(plan.length);
  for (const SortValue &value : plan.values) {
    uint64_t bytes = elements * uint64_t(bytesOf(plan, value));
    traffic.read += plan.merged != 0 ? bytes : 0;
    traffic.written += plan.isLast() ? bytes * value.roots.size() : bytes;
  }
  if (plan.merged == 0)
    traffic.read = graph.bytesRead();
  return traffic;
}

/// A thread's elements, those it merges next, and where they are.
template <> unsigned plannedRegisters<SortPlan>(const SortPlan &plan) {
  constexpr int64_t ofIndices = 40, most = 128;
  int64_t ofElements = (int64_t(plan.perThread) + 3) * ((bytesOfElement(plan) + 3) / 4);
  return unsigned(std::clamp<int64_t>(ofIndices + ofElements, KernelSpec::usualRegisters, most));
}

std::string SortPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::SmallVector<unsigned> roots;
  for (const Value &value : values)
    llvm::append_range(roots, value.roots);
  os << "sort: roots ";
  llvm::interleave(roots, os, ",");
  os << ", " << rows << (rows == 1 ? " row of " : " rows of ") << length;
  if (merged != 0)
    os << ", runs of " << merged << " merged from " << (fromOutputs ? "outputs" : "scratch");
  if (tile < length)
    os << (merged != 0 ? " by " : ", ") << "tiles of " << tile;
  else if (rowsPerBlock > 1)
    os << ", " << rowsPerBlock << " a block";
  os << ", " << perThread << " elements per thread";
  return result;
}

} // namespace hloc
