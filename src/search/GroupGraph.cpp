#include "search/GroupGraph.h"

#include "hloc/search/FusionPolicy.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <algorithm>
#include <numeric>

namespace hloc {
namespace {

/// Groups looked at to find out whether two wait for each other; after that they are taken to do so.
constexpr unsigned mostVisits = 2000;

/// The instruction whose kernel makes a value.
HloInstruction *sourceOf(HloInstruction *value) {
  while (value->opcode() == Opcode::GetTupleElement)
    value = value->operand(0);
  return value;
}

/// Same bytes in the same order.
bool isRenaming(const HloInstruction &instr) {
  if (instr.opcode() == Opcode::Bitcast)
    return instr.shape().isArray() && instr.operand(0)->shape().isArray();
  return instr.opcode() == Opcode::Reshape && instr.shape().hasDefaultLayout() &&
         instr.operand(0)->shape().hasDefaultLayout();
}

} // namespace

GroupGraph::GroupGraph(const HloComputation &computation, const llvm::BitVector &needed, llvm::ArrayRef<RowGroup> rows,
                       llvm::ArrayRef<AskedEdge> edges)
    : computation(computation), needed(needed), users(computation), makers(computation.instructions().size(), none),
      readers(makers.size()), pinned(makers.size(), false), outside(makers.size(), false), base(makers.size(), false),
      apart(makers.size(), false), stamps(makers.size(), 0) {
  for (const AskedEdge &edge : edges)
    if (!edge.fused)
      apart[edge.producer->id()] = true;
  classify();
  addGroups(rows);
}

bool GroupGraph::isNode(const HloInstruction &instr) const { return !isFusible(instr) && !base[instr.id()]; }

/// Is there a kernel, or what is refused as one?
bool GroupGraph::isEmitted(const HloInstruction &instr) const {
  return !outside[instr.id()] && !isStep(instr) && instr.opcode() != Opcode::Fusion &&
         (isFusible(instr) || !isStructure(instr));
}

void GroupGraph::classify() {
  for (HloInstruction *instr : instructions())
    base[instr->id()] = instr->opcode() == Opcode::Parameter ||
                        (instr->opcode() == Opcode::GetTupleElement && base[sourceOf(instr)->id()]);
  auto pin = [&](HloInstruction *value) {
    HloInstruction *source = sourceOf(value);
    while (canStayOutside(*source)) {
      outside[source->id()] = true;
      source = sourceOf(source->operand(0));
    }
    pinned[source->id()] = true;
  };
  // Operands of what takes part in nothing; those of renamings last, when it is known who else needs what is behind.
  llvm::SmallVector<HloInstruction *> values{computation.root()};
  for (HloInstruction *instr : instructions())
    if (needed[instr->id()] && isNode(*instr) && instr->opcode() != Opcode::GetTupleElement)
      llvm::copy_if(instr->operands(), std::back_inserter(values), [&](HloInstruction *operand) {
        return !isEmitted(*instr) || operand->numOperands() > 0 || base[operand->id()];
      });
  for (HloInstruction *value : values)
    if (!isRenaming(*sourceOf(value)))
      pin(value);
  for (HloInstruction *value : values)
    if (isRenaming(*sourceOf(value)))
      pin(value);
}

/// A renaming that is needed in memory, of what is there anyway.
bool GroupGraph::canStayOutside(const HloInstruction &value) const {
  if (!isRenaming(value))
    return false;
  HloInstruction *behind = sourceOf(value.operand(0));
  if (base[behind->id()])
    return value.opcode() == Opcode::Bitcast;
  return !behind->shape().isTuple() && behind->numOperands() > 0 &&
         (pinned[behind->id()] || outside[value.id()] || users.of(behind).size() > 1 || isNode(*behind));
}

bool mayUpdate(const HloInstruction &value, const HloComputation &computation, const HloUsers &users) {
  const HloInstruction *source = sourceOf(const_cast<HloInstruction *>(&value));
  if (source->opcode() == Opcode::Parameter)
    return !computation.isEntry();
  return users.of(&value).size() == 1;
}

/// Computed where it is read, whatever that costs: next to nothing.
bool GroupGraph::isFree(const HloInstruction &instr) const {
  if (pinned[instr.id()] || apart[instr.id()])
    return false;
  if (instr.numOperands() == 0 || instr.opcode() == Opcode::Broadcast || isRenaming(instr))
    return true;
  if (!isElementwise(instr.opcode()) || users.of(&instr).size() != 1)
    return false;
  const HloInstruction &user = *users.of(&instr).front();
  return needed[user.id()] && isElementwise(user.opcode()) && isFusible(user) && user.shape().isArray() &&
         instr.shape().isArray() && user.shape().sameDims(instr.shape());
}

void GroupGraph::addGroups(llvm::ArrayRef<RowGroup> rows) {
  std::vector<unsigned> seedOf(makers.size(), none);
  llvm::BitVector inside(makers.size(), false);
  for (auto [number, row] : llvm::enumerate(rows)) {
    for (HloInstruction *root : row.roots)
      seedOf[root->id()] = unsigned(number);
    for (HloInstruction *instr : row.inside)
      inside[instr->id()] = true;
  }
  std::vector<unsigned> groupOfSeed(rows.size(), none);
  for (HloInstruction *instr : instructions()) {
    const uint32_t id = instr->id();
    if (!needed[id] || base[id] || instr->opcode() == Opcode::GetTupleElement)
      continue;
    const unsigned seed = seedOf[id];
    if (seed != none) {
      if (groupOfSeed[seed] == none) {
        groupOfSeed[seed] = unsigned(groups.size());
        groups.emplace_back();
      }
      groups[groupOfSeed[seed]].roots.push_back(instr);
      makers[id] = groupOfSeed[seed];
      continue;
    }
    const bool isSource = instr->numOperands() == 0 && !pinned[id] && !instr->reachesSideEffect() && !isStep(*instr);
    if (isSource || (isFusible(*instr) && !outside[id] && (isFree(*instr) || (inside[id] && !pinned[id]))))
      continue;
    makers[id] = unsigned(groups.size());
    Group &group = groups.emplace_back();
    group.roots.push_back(instr);
    group.fixed = !isFusible(*instr) || outside[id];
    group.emitted = isEmitted(*instr);
  }
  for (unsigned number = 0; number < groups.size(); ++number) {
    Group &group = groups[number];
    if (group.fixed && !group.emitted)
      group.members = group.roots;
    else
      group.members = closure(group.roots, {});
    setOperands(number);
  }
  // What is read is raised before what reads it, so that hardly any level changes twice.
  std::vector<unsigned> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(
      order, [&](unsigned a, unsigned b) { return groups[a].roots.back()->id() < groups[b].roots.back()->id(); });
  for (unsigned number : order)
    raiseReaders(number, /*andTheirs=*/false);
  for (unsigned number : order)
    raiseReaders(number);
}

llvm::SmallVector<HloInstruction *> GroupGraph::closure(llvm::ArrayRef<HloInstruction *> roots,
                                                        llvm::ArrayRef<const HloInstruction *> inside) {
  ++stamp;
  llvm::SmallVector<HloInstruction *> pending(roots.begin(), roots.end()), members;
  for (HloInstruction *root : roots)
    stamps[root->id()] = stamp;
  llvm::SmallPtrSet<const HloInstruction *, 8> own(roots.begin(), roots.end());
  own.insert(inside.begin(), inside.end());
  while (!pending.empty()) {
    HloInstruction *instr = pending.pop_back_val();
    members.push_back(instr);
    for (HloInstruction *operand : instr->operands()) {
      if (stamps[operand->id()] == stamp)
        continue;
      HloInstruction *source = sourceOf(operand);
      if (base[operand->id()] || (makers[source->id()] != none && !own.contains(source)))
        continue;
      stamps[operand->id()] = stamp;
      pending.push_back(operand);
    }
  }
  llvm::sort(members, [](auto *a, auto *b) { return a->id() < b->id(); });
  return members;
}

/// It reads nothing any more.
void GroupGraph::release(unsigned number) {
  for (uint32_t old : groups[number].operands)
    llvm::erase(readers[old], number);
  groups[number].operands.clear();
}

void GroupGraph::setOperands(unsigned number) {
  release(number);
  Group &group = groups[number];
  ++stamp;
  for (HloInstruction *member : group.members)
    stamps[member->id()] = stamp;
  for (HloInstruction *member : group.members)
    for (HloInstruction *operand : member->operands()) {
      HloInstruction *source = base[operand->id()] ? operand : sourceOf(operand);
      if (stamps[operand->id()] == stamp || stamps[source->id()] == stamp)
        continue;
      stamps[source->id()] = stamp;
      group.operands.push_back(source->id());
      readers[source->id()].push_back(number);
    }
}

/// Gives the readers of a group higher levels than its own, and so on if `andTheirs`.
void GroupGraph::raiseReaders(unsigned number, bool andTheirs) {
  llvm::SmallVector<unsigned> pending{number};
  while (!pending.empty()) {
    const Group &group = groups[pending.pop_back_val()];
    for (HloInstruction *root : group.roots)
      for (unsigned reader : readers[root->id()])
        if (groups[reader].level <= group.level && &groups[reader] != &group) {
          groups[reader].level = group.level + 1;
          if (andTheirs)
            pending.push_back(reader);
        }
  }
}

bool GroupGraph::waitForEachOther(llvm::ArrayRef<unsigned> all) {
  unsigned highest = 0, visits = 0;
  for (unsigned one : all)
    highest = std::max(highest, groups[one].level);
  ++visit;
  visited.resize(groups.size(), 0);
  llvm::SmallVector<unsigned> pending;
  for (unsigned one : all)
    for (HloInstruction *root : groups[one].roots)
      for (unsigned reader : readers[root->id()])
        if (!llvm::is_contained(all, reader) && groups[reader].level < highest)
          pending.push_back(reader);
  while (!pending.empty()) {
    const unsigned one = pending.pop_back_val();
    if (visited[one] == visit)
      continue;
    visited[one] = visit;
    if (++visits > mostVisits)
      return true;
    for (HloInstruction *root : groups[one].roots)
      for (unsigned reader : readers[root->id()]) {
        if (llvm::is_contained(all, reader))
          return true;
        if (groups[reader].level < highest)
          pending.push_back(reader);
      }
  }
  return false;
}

bool GroupGraph::updatesState(const HloInstruction &instr) const {
  return !computation.isEntry() && instr.opcode() == Opcode::DynamicUpdateSlice && base[instr.operand(0)->id()];
}

bool GroupGraph::replacesWhatIsReadLater(llvm::ArrayRef<unsigned> all, llvm::ArrayRef<HloInstruction *> roots) const {
  if (computation.isEntry() || computation.root()->opcode() != Opcode::Tuple)
    return false;
  unsigned level = 0;
  for (unsigned one : all)
    level = std::max(level, groups[one].level);
  for (auto [index, result] : llvm::enumerate(computation.root()->operands())) {
    if (!llvm::is_contained(roots, result))
      continue;
    for (const HloInstruction *state : instructions())
      if (state->opcode() == Opcode::GetTupleElement && state->operand(0)->opcode() == Opcode::Parameter &&
          state->intOr(AttributeKey::Index, 0) == int64_t(index))
        for (unsigned reader : readers[state->id()])
          if (groups[reader].level > level && !llvm::is_contained(all, reader))
            return true;
  }
  return false;
}

void GroupGraph::unite(llvm::ArrayRef<unsigned> all, const GroupContents &made) {
  const unsigned first = all.front();
  unsigned level = 0;
  for (unsigned one : all) {
    Group &group = groups[one];
    level = std::max(level, group.level);
    for (HloInstruction *root : group.roots)
      makers[root->id()] = none;
    release(one);
    group.alive = one == first;
  }
  Group &group = groups[first];
  group.roots = made.roots;
  group.members = made.members;
  group.cost = made.cost;
  group.level = level;
  for (HloInstruction *root : group.roots)
    makers[root->id()] = first;
  setOperands(first);
  raiseReaders(first);
}

void GroupGraph::dissolve(unsigned producer, llvm::ArrayRef<unsigned> into, llvm::ArrayRef<GroupContents> made) {
  groups[producer].alive = false;
  for (HloInstruction *root : groups[producer].roots)
    makers[root->id()] = none;
  release(producer);
  for (auto [reader, contents] : llvm::zip_equal(into, made)) {
    groups[reader].members = contents.members;
    groups[reader].cost = contents.cost;
    setOperands(reader);
  }
}

} // namespace hloc
