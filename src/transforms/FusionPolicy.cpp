#include "FusionPolicy.h"

#include "RowGroups.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

/// What `roots` need up to what is `available` (by id), operands before users.
llvm::SmallVector<HloInstruction *> closure(llvm::ArrayRef<HloInstruction *> roots,
                                            const std::vector<bool> &available) {
  llvm::SmallDenseSet<HloInstruction *, 16> needed;
  llvm::SmallVector<HloInstruction *> pending, members;
  auto need = [&](HloInstruction *instr) {
    if (!available[instr->id()] && needed.insert(instr).second)
      pending.push_back(instr);
  };
  llvm::for_each(roots, need);
  while (!pending.empty()) {
    HloInstruction *instr = pending.pop_back_val();
    members.push_back(instr);
    llvm::for_each(instr->operands(), need);
  }
  llvm::sort(members, [](auto *a, auto *b) { return a->id() < b->id(); });
  return members;
}

/// Needed by the root or by a side effect; by id. Policy sees an entry in which dead code may remain.
std::vector<bool> neededInstructions(const HloComputation &entry) {
  std::vector<bool> needed(entry.instructions().size(), false);
  for (HloInstruction *instr : llvm::reverse(entry.instructions())) {
    if (instr == entry.root() || instr->reachesSideEffect())
      needed[instr->id()] = true;
    if (needed[instr->id()])
      for (HloInstruction *operand : instr->operands())
        needed[operand->id()] = true;
  }
  return needed;
}

/// Ops that combine many elements (reductions, contractions) whose results would be computed again and again if
/// everything were one kernel. A single one that is read element by element is not, unless it is a sort.
llvm::SmallVector<HloInstruction *> opsToMaterialize(const HloComputation &entry,
                                                     llvm::ArrayRef<HloInstruction *> leaves) {
  std::vector<bool> needed = neededInstructions(entry);
  llvm::SmallVector<HloInstruction *> structured;
  for (HloInstruction *instr : entry.instructions())
    if (needed[instr->id()] && family(instr->opcode()) == OpcodeFamily::Structured)
      structured.push_back(instr);
  if (structured.size() != 1)
    return structured;
  const Shape &shape = structured.front()->shape();
  // The hero that sorts has no epilogue.
  bool again = !shape.isArray() || structured.front()->opcode() == Opcode::Sort ||
               llvm::any_of(leaves, [&](HloInstruction *leaf) {
                 return !leaf->shape().isArray() || leaf->shape().numElements() != shape.numElements();
               });
  return again ? structured : llvm::SmallVector<HloInstruction *>();
}

/// `root` and what it needs, where it stands.
FusionGroup groupOf(HloInstruction &root, llvm::StringRef bodyPrefix, const std::vector<bool> &available) {
  FusionGroup group;
  group.fusionName = root.name().str();
  group.bodyName = bodyPrefix.str() + group.fusionName;
  group.members = closure({&root}, available);
  group.roots = {&root};
  group.before = &root;
  return group;
}

/// All that a kernel of rows makes, named after what comes last.
FusionGroup groupOf(const RowGroup &rows, std::vector<bool> available) {
  for (HloInstruction *root : rows.roots)
    available[root->id()] = false;
  FusionGroup group;
  group.fusionName = rows.roots.back()->name().str();
  group.bodyName = "fused_" + group.fusionName;
  group.members = closure(rows.roots, available);
  group.roots = rows.roots;
  return group;
}

/// Results of one shape are written by one kernel. (Layouts count: its threads walk memory in order.)
std::vector<llvm::SmallVector<HloInstruction *>> resultsByShape(llvm::ArrayRef<HloInstruction *> leaves,
                                                                const std::vector<bool> &available) {
  std::vector<llvm::SmallVector<HloInstruction *>> results;
  llvm::StringMap<size_t> resultsOf;
  llvm::DenseSet<HloInstruction *> grouped;
  for (HloInstruction *leaf : leaves) {
    if (available[leaf->id()])
      continue;
    std::string key = leaf->shape().isArray() ? leaf->shape().withElementType(ElementType::Pred).toString() : "";
    auto [at, isNew] = resultsOf.try_emplace(key, results.size());
    if (isNew)
      results.emplace_back();
    if (grouped.insert(leaf).second)
      results[at->second].push_back(leaf);
  }
  return results;
}

/// Is it a step of its own between kernels?
bool isStep(const HloInstruction &instr) { return isControlFlow(instr) || isExternal(instr); }

/// The values that a step is given.
void operandLeaves(const HloInstruction &instr, llvm::SmallVectorImpl<HloInstruction *> &leaves) {
  for (HloInstruction *operand : instr.operands())
    tupleLeaves(operand, leaves);
}

/// A group for each shape of `leaves`, in front of `before`.
void addResults(llvm::ArrayRef<HloInstruction *> leaves, const std::string &fusionName, const std::string &bodyName,
                HloInstruction *before, const std::vector<bool> &available, std::vector<FusionGroup> &groups) {
  std::vector<llvm::SmallVector<HloInstruction *>> results = resultsByShape(leaves, available);
  for (auto [number, roots] : llvm::enumerate(results)) {
    std::string suffix = results.size() == 1 ? "" : "_" + std::to_string(number);
    FusionGroup group;
    group.fusionName = fusionName + suffix;
    group.bodyName = bodyName + suffix;
    group.members = closure(roots, available);
    group.roots = roots;
    group.before = before;
    groups.push_back(std::move(group));
  }
}

/// Side effects that no group has yet, each with what leads to it and has none: they are not dropped because no result
/// reads them.
void addEffects(const HloComputation &entry, const std::vector<bool> &available, std::vector<FusionGroup> &groups) {
  llvm::DenseSet<const HloInstruction *> grouped;
  for (const FusionGroup &group : groups)
    grouped.insert(group.members.begin(), group.members.end());
  for (HloInstruction *instr : llvm::reverse(entry.instructions()))
    if (instr->reachesSideEffect() && !isStep(*instr) && !grouped.contains(instr)) {
      groups.push_back(groupOf(*instr, "fused_", available));
      grouped.insert(groups.back().members.begin(), groups.back().members.end());
    }
}

} // namespace

bool isStructure(const HloInstruction &instr) {
  return hasTrait(instr.opcode(), OpcodeTrait::NamesBuffers) || instr.opcode() == Opcode::AfterAll;
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
  std::vector<bool> needed = neededInstructions(entry);
  std::vector<bool> available(entry.instructions().size(), false);
  std::vector<FusionGroup> groups;
  for (HloInstruction *instr : entry.instructions()) {
    if (!needed[instr->id()] || belongsToReaders(*instr, users))
      continue;
    if (!isStructure(*instr) && instr->opcode() != Opcode::Fusion && !isStep(*instr))
      groups.push_back(groupOf(*instr, "wrapped_", available));
    available[instr->id()] = true;
  }
  return groups;
}

std::vector<FusionGroup> groupByResultShape(const HloComputation &entry, llvm::StringRef prefix) {
  llvm::SmallVector<HloInstruction *> results, leaves;
  tupleLeaves(entry.root(), results);
  leaves = results;
  for (HloInstruction *instr : entry.instructions())
    if (isStep(*instr))
      operandLeaves(*instr, leaves);
  std::vector<bool> available(entry.instructions().size(), false);
  std::vector<FusionGroup> groups;
  llvm::SmallVector<HloInstruction *> materialized = opsToMaterialize(entry, leaves);
  // What groups of rows make is available to all others, which need none of their reductions then.
  // (Beside loops, conditionals and external steps, which may stand between what they would be made of, there are none
  // yet.)
  std::vector<RowGroup> rowGroups;
  if (llvm::none_of(entry.instructions(), [](const HloInstruction *instr) { return isStep(*instr); }))
    rowGroups = groupRows(entry, neededInstructions(entry), leaves, materialized);
  for (const RowGroup &group : rowGroups) {
    for (HloInstruction *root : group.roots)
      available[root->id()] = true;
    llvm::erase_if(materialized, [&](HloInstruction *instr) { return llvm::is_contained(group.reductions, instr); });
  }
  auto next = materialized.begin();
  for (HloInstruction *instr : entry.instructions()) {
    if (next != materialized.end() && instr == *next) {
      ++next;
      groups.push_back(groupOf(*instr, "fused_", available));
      available[instr->id()] = true;
    } else if (instr->opcode() == Opcode::Parameter || instr->opcode() == Opcode::GetTupleElement) {
      available[instr->id()] = instr->opcode() == Opcode::Parameter || available[instr->operand(0)->id()];
    } else if (instr->opcode() == Opcode::AfterAll) {
      available[instr->id()] = true;
    } else if (isStep(*instr)) {
      llvm::SmallVector<HloInstruction *> operands;
      operandLeaves(*instr, operands);
      std::string name = (instr->name() + "_operands").str();
      addResults(operands, name, "fused_" + name, instr, available, groups);
      for (HloInstruction *operand : operands)
        available[operand->id()] = true;
      available[instr->id()] = true;
    }
  }
  for (const RowGroup &group : rowGroups)
    groups.push_back(groupOf(group, available));
  addResults(results, prefix.str(), "fused_" + entry.name().str(), nullptr, available, groups);
  addEffects(entry, available, groups);
  return groups;
}

} // namespace hloc
