#include "hloc/search/FusionPolicy.h"

#include "search/AttentionGroups.h"
#include "search/FusionCost.h"
#include "search/GroupSearch.h"
#include "search/OpcodeRoles.h"
#include "search/PlanQuery.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

/// `roots` and what they need up to what is available, operands before users.
llvm::SmallVector<HloInstruction *> closure(llvm::ArrayRef<HloInstruction *> roots,
                                            llvm::function_ref<bool(const HloInstruction &)> isAvailable) {
  llvm::SmallDenseSet<HloInstruction *, 16> needed(roots.begin(), roots.end());
  llvm::SmallVector<HloInstruction *> pending(roots), members;
  while (!pending.empty()) {
    HloInstruction *instr = pending.pop_back_val();
    members.push_back(instr);
    for (HloInstruction *operand : instr->operands())
      if (!isAvailable(*operand) && needed.insert(operand).second)
        pending.push_back(operand);
  }
  llvm::sort(members, [](auto *a, auto *b) { return a->id() < b->id(); });
  return members;
}

/// Needed by the root or by a side effect; by id. Policy sees an entry in which dead code may remain.
llvm::BitVector neededInstructions(const HloComputation &entry) {
  llvm::BitVector needed(entry.instructions().size(), false);
  for (HloInstruction *instr : llvm::reverse(entry.instructions())) {
    if (instr == entry.root() || instr->reachesSideEffect())
      needed[instr->id()] = true;
    if (needed[instr->id()])
      for (HloInstruction *operand : instr->operands())
        needed[operand->id()] = true;
  }
  return needed;
}

/// `root` alone, but for what only its readers compute, where it stands.
FusionGroup wrapped(HloInstruction &root, const llvm::BitVector &available) {
  FusionGroup group;
  group.fusionName = root.name().str();
  group.bodyName = "wrapped_" + group.fusionName;
  group.roots = {&root};
  group.members = closure(group.roots, [&](const HloInstruction &instr) { return available[instr.id()]; });
  group.before = &root;
  return group;
}

/// Reductions, contractions and the like: where the search for groups of rows begins.
llvm::SmallVector<HloInstruction *> structuredOps(const HloComputation &entry, const llvm::BitVector &needed) {
  llvm::SmallVector<HloInstruction *> structured;
  llvm::copy_if(entry.instructions(), std::back_inserter(structured), [&](HloInstruction *instr) {
    return needed[instr->id()] && family(instr->opcode()) == OpcodeFamily::Structured;
  });
  return structured;
}

/// What ends kernels, if it is of none of their groups; by id.
llvm::BitVector endsOfKernels(const HloComputation &entry) {
  llvm::BitVector ends(entry.instructions().size(), false);
  for (const HloInstruction *instr : entry.instructions())
    ends[instr->id()] = !isFusible(*instr) || instr->opcode() == Opcode::Parameter ||
                        family(instr->opcode()) == OpcodeFamily::Structured;
  return ends;
}

/// The plan of a group together with all that it is made of, up to what ends other kernels.
std::optional<PlanSummary> planOf(const RowGroup &group, const llvm::BitVector &ends, const TargetInfo &target,
                                  PlanContext &plans) {
  llvm::SmallPtrSet<const HloInstruction *, 32> own(group.inside.begin(), group.inside.end());
  own.insert(group.roots.begin(), group.roots.end());
  own.insert(group.reductions.begin(), group.reductions.end());
  llvm::SmallVector<HloInstruction *> members = closure(group.roots, [&](const HloInstruction &instr) {
    const HloInstruction *source = &instr;
    while (source->opcode() == Opcode::GetTupleElement)
      source = source->operand(0);
    const bool isOwn = own.contains(source) && family(source->opcode()) == OpcodeFamily::Structured;
    return ends[source->id()] && !isOwn;
  });
  // (There are no plans for dynamic shapes, which are refused as a whole.)
  if (llvm::any_of(members, [](const HloInstruction *instr) { return instr->shape().hasDynamicDims(); }))
    return std::nullopt;
  auto mayUpdate = [](const HloInstruction &) { return false; };
  return askForPlan(members, group.roots, mayUpdate, target, plans);
}

/// Has a group of reductions a hero that makes all of it in one pass?
bool isOnePass(const RowGroup &group, const llvm::BitVector &ends, const TargetInfo &target, PlanContext &plans) {
  std::optional<PlanSummary> answer = planOf(group, ends, target, plans);
  return answer && answer->launches <= 1 + unsigned(answer->besideColumns) && answer->passes == 1 &&
         llvm::all_of(group.reductions, [&](auto *reduction) { return llvm::is_contained(answer->kept, reduction); });
}

/// Groups of rows that have nothing of those of attention.
std::vector<RowGroup> apart(llvm::ArrayRef<RowGroup> rows, llvm::ArrayRef<RowGroup> attention, size_t numInstructions) {
  llvm::BitVector taken(numInstructions, false);
  for (const RowGroup &group : attention)
    for (const HloInstruction *instr : llvm::concat<HloInstruction *const>(group.inside, group.roots))
      taken[instr->id()] = true;
  std::vector<RowGroup> result;
  llvm::copy_if(rows, std::back_inserter(result), [&](const RowGroup &group) {
    return llvm::none_of(llvm::concat<HloInstruction *const>(group.inside, group.roots, group.reductions),
                         [&](const HloInstruction *instr) { return taken[instr->id()]; });
  });
  return result;
}

/// Values that have to be in memory: the results first, then what is read by what is no part of kernels.
llvm::SmallVector<HloInstruction *> valuesInMemory(const HloComputation &entry, const llvm::BitVector &needed) {
  llvm::SmallVector<HloInstruction *> values;
  tupleLeaves(entry.root(), values);
  for (HloInstruction *instr : entry.instructions())
    if (needed[instr->id()] && !isFusible(*instr) && instr->opcode() != Opcode::Tuple &&
        instr->opcode() != Opcode::GetTupleElement)
      for (HloInstruction *operand : instr->operands())
        tupleLeaves(operand, values);
  return values;
}

} // namespace

bool isStructure(const HloInstruction &instr) {
  return hasTrait(instr.opcode(), OpcodeTrait::NamesBuffers) || instr.opcode() == Opcode::AfterAll;
}

bool isStep(const HloInstruction &instr) { return isControlFlow(instr) || isExternal(instr); }

bool isFusible(const HloInstruction &instr) {
  if (instr.reachesSideEffect() || isStep(instr))
    return false;
  const PartOfKernel part = roleOf(instr.opcode()).part;
  return part == PartOfKernel::Always || (part == PartOfKernel::IfArray && instr.shape().isArray());
}

void tupleLeaves(HloInstruction *value, llvm::SmallVectorImpl<HloInstruction *> &leaves) {
  if (value->opcode() != Opcode::Tuple) {
    leaves.push_back(value);
    return;
  }
  for (HloInstruction *element : value->operands())
    tupleLeaves(element, leaves);
}

bool belongsToReaders(const HloInstruction &instr, const HloUsers &users) {
  return family(instr.opcode()) == OpcodeFamily::Source && instr.opcode() != Opcode::Parameter && !isExternal(instr) &&
         &instr != instr.parent()->root() &&
         llvm::none_of(users.of(&instr), [](auto *user) { return isStructure(*user) || isStep(*user); });
}

std::vector<FusionGroup> groupEachPlainOp(const HloComputation &entry) {
  HloUsers users(entry);
  llvm::BitVector needed = neededInstructions(entry);
  llvm::BitVector available(entry.instructions().size(), false);
  std::vector<FusionGroup> groups;
  for (HloInstruction *instr : entry.instructions()) {
    if (!needed[instr->id()] || belongsToReaders(*instr, users))
      continue;
    if (!isStructure(*instr) && instr->opcode() != Opcode::Fusion && !isStep(*instr))
      groups.push_back(wrapped(*instr, available));
    available[instr->id()] = true;
  }
  return groups;
}

/// The groups that the search ends with, from groups of rows and of attention.
static FoundGroups findGroups(const HloComputation &entry, const TargetInfo &target,
                              std::vector<FusionDecision> *decisions, llvm::ArrayRef<AskedEdge> edges = {}) {
  llvm::BitVector needed = neededInstructions(entry);
  PlanContext plans;
  plans.comparesTimes = true;
  const llvm::SmallVector<HloInstruction *> inMemory = valuesInMemory(entry, needed);
  const llvm::BitVector ends = endsOfKernels(entry);
  const std::vector<RowGroup> rows =
      groupRows(entry, needed, inMemory, structuredOps(entry, needed),
                [&](const RowGroup &group) { return isOnePass(group, ends, target, plans); });
  const std::vector<RowGroup> attention = groupAttention(entry, needed, inMemory, [&](const RowGroup &group) {
    std::optional<PlanSummary> plan = planOf(group, ends, target, plans);
    return plan && plan->hero == Hero::Attention;
  });
  std::vector<std::vector<RowGroup>> seeds = {rows};
  if (!attention.empty()) {
    seeds.push_back(apart(rows, attention, needed.size()));
    llvm::append_range(seeds.back(), attention);
  }
  return searchGroups(entry, needed, seeds, target, decisions, edges);
}

GroupedByCost groupByCost(const HloComputation &entry, llvm::StringRef prefix, const TargetInfo &target,
                          FusionExplanation *explanation, llvm::ArrayRef<AskedEdge> edges) {
  llvm::SmallVector<HloInstruction *> results;
  tupleLeaves(entry.root(), results);
  llvm::BitVector isResult(unsigned(entry.instructions().size()), false);
  for (const HloInstruction *result : results)
    isResult[result->id()] = true;
  FoundGroups found = findGroups(entry, target, explanation ? &explanation->decisions : nullptr, edges);
  // Kernels of nothing but results have the name of the whole, but for what comes from a sort or a scatter.
  auto isOfResults = [&](const FoundGroup &group) {
    Opcode last = group.roots.back()->opcode();
    if (!isFusible(*group.roots.back()) || last == Opcode::Sort || (last == Opcode::Scatter && found.groups.size() > 1))
      return false;
    return llvm::all_of(group.roots, [&](auto *root) { return isResult[root->id()]; });
  };
  const auto numOfResults = llvm::count_if(found.groups, isOfResults);
  GroupedByCost made;
  made.renamings = std::move(found.renamings);
  made.refusals = std::move(found.refusals);
  size_t number = 0;
  for (const FoundGroup &each : found.groups) {
    FusionGroup &group = made.groups.emplace_back();
    group.members = each.members;
    group.roots = each.roots;
    group.before = group.roots.back();
    group.fusionName = group.roots.back()->name().str();
    group.bodyName = "fused_" + group.fusionName;
    if (isOfResults(each)) {
      std::string suffix = numOfResults == 1 ? "" : "_" + std::to_string(number++);
      group.fusionName = prefix.str() + suffix;
      group.bodyName = "fused_" + entry.name().str() + suffix;
    }
    if (explanation)
      explanation->kernels.push_back({group.fusionName, text(each.cost.hero), each.cost.seconds, each.cost.bytes});
  }
  return made;
}

static bool isContraction(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Dot || instr.opcode() == Opcode::Convolution;
}

/// What is in a kernel beside a contraction, in kernels of its own: one for each of its operands, one for the rest.
/// Nothing if there are no such kernels.
static std::optional<double> costAround(const FoundGroup &group, HloInstruction *contraction, FusionCost &cost) {
  auto isOutside = [&](const HloInstruction &instr) {
    return &instr == contraction || !llvm::is_contained(group.members, &instr);
  };
  double seconds = 0;
  llvm::SmallPtrSet<HloInstruction *, 4> made;
  llvm::SmallVector<HloInstruction *> rest;
  llvm::copy_if(group.roots, std::back_inserter(rest), [&](auto *root) { return root != contraction; });
  llvm::SmallVector<llvm::SmallVector<HloInstruction *>> kernels;
  for (HloInstruction *operand : contraction->operands())
    if (!isOutside(*operand) && operand->opcode() != Opcode::Constant && made.insert(operand).second)
      kernels.push_back({operand});
  if (!rest.empty())
    kernels.push_back(rest);
  for (llvm::ArrayRef<HloInstruction *> roots : kernels) {
    const KernelCost &one = cost.of(closure(roots, isOutside), roots);
    if (!one.impossible.empty())
      return std::nullopt;
    seconds += one.seconds;
  }
  return seconds;
}

std::vector<ContractionCost> costsOfContractions(const HloComputation &computation, const TargetInfo &target,
                                                 bool fuses) {
  std::vector<ContractionCost> costs;
  if (llvm::none_of(computation.instructions(), [](auto *instr) { return isContraction(*instr); }))
    return costs;
  FusionCost cost(computation, target, [](const HloInstruction &) { return false; });
  if (!fuses) {
    for (HloInstruction *instr : computation.instructions())
      if (isContraction(*instr))
        costs.push_back({instr, true, cost.of({instr}, {instr}).seconds, 0});
    return costs;
  }
  for (const FoundGroup &group : findGroups(computation, target, nullptr).groups)
    for (HloInstruction *instr : group.members) {
      if (!isContraction(*instr))
        continue;
      const bool isAlone = llvm::count_if(group.members, [](auto *other) { return isContraction(*other); }) == 1;
      std::optional<double> around = isAlone ? costAround(group, instr, cost) : std::nullopt;
      costs.push_back({instr, around.has_value(), group.cost.seconds, around.value_or(0)});
    }
  return costs;
}

} // namespace hloc
