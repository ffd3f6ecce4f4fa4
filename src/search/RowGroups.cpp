// Reductions of rows that one kernel makes together with what their rows' elements become of them.

#include "search/RowGroups.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/StagedReductions.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hloc {
namespace {

/// Rows that fit into registers, whichever device it is; longer ones are worth a block each where they are many.
constexpr int64_t longestHeldRow = 16384, manyRows = 128;
/// Rows whose columns are reduced beside them: a thread keeps its part of a row's arrays and of the sums; and each
/// block leaves as much as a row.
constexpr int64_t longestRowBesideColumns = 4096, leastRowsOfColumns = 512;
/// Arrays as large as the rows that one group writes. More of them would be values that is cheaper to compute again.
constexpr unsigned mostElementRoots = 2;

bool sharesBytes(const HloInstruction *instr) {
  return !instr->shape().isArray() || deviceBits(instr->shape().elementType()) < 8;
}

/// Finds the groups of an entry whose kernels end with some ops, one after the other: what one takes, the next have
/// not.
class RowGroupSearch {
public:
  RowGroupSearch(const HloComputation &computation, const llvm::BitVector &needed,
                 llvm::ArrayRef<HloInstruction *> results, llvm::ArrayRef<HloInstruction *> materialized,
                 llvm::function_ref<bool(const RowGroup &)> isOnePass);
  std::vector<RowGroup> find();

private:
  /// What depends on the reductions of one level, and the reductions of columns beside them.
  struct Members {
    const Places<ReducedRole> &roles;
    llvm::SmallVector<HloInstruction *> columns;
    llvm::SmallVector<HloInstruction *> inside; ///< those that are needed, operands before users
    llvm::BitVector isInside;                   ///< by id: needed or not
  };
  /// Instructions by how many other ops that end kernels there are on the way to them: reductions of one level do not
  /// depend on each other through those. What depends on reductions and is made with them is of their level.
  struct Levels {
    std::vector<unsigned> byId;
    std::vector<std::vector<HloInstruction *>> instructions; ///< of each level, in order
  };

  void addReduction(HloInstruction *instr);
  Levels levelsOf(const ReducedShape &shape) const;
  Places<ReducedRole> rolesOf(const ReducedShape &shape, const Levels &levels, unsigned level) const;
  llvm::SmallVector<HloInstruction *> columnsBeside(const ReducedShape &shape, const Levels &levels, unsigned level,
                                                    const Places<ReducedRole> &roles) const;
  Members membersOf(const Places<ReducedRole> &roles, llvm::ArrayRef<HloInstruction *> columns,
                    llvm::ArrayRef<HloInstruction *> ofLevel) const;
  llvm::SmallVector<HloInstruction *> rootsOf(const Members &members) const;
  bool isWorth(llvm::ArrayRef<HloInstruction *> reductions, llvm::ArrayRef<HloInstruction *> roots,
               const Members &members) const;
  unsigned lastReadBy(llvm::ArrayRef<HloInstruction *> instrs) const;
  bool isOrdered(const Members &members) const;
  std::optional<RowGroup> groupOf(const ReducedShape &shape, llvm::ArrayRef<HloInstruction *> own,
                                  const Members &members);

  const HloComputation &computation;
  const llvm::BitVector &needed;
  llvm::function_ref<bool(const RowGroup &)> isOnePass;
  HloUsers users;
  llvm::BitVector endsKernel, isResult;             ///< by id, as all that follow
  std::vector<std::optional<ReducedShape>> rows;    ///< of the reductions that end kernels
  std::vector<std::optional<ReducedShape>> columns; ///< of those of columns: the rows that they are in
  llvm::BitVector isGrouped;                        ///< is it a reduction of a group that was found?
  std::vector<HloInstruction *> columnReductions;   ///< that end kernels, in order
  std::vector<unsigned> nodes;                      ///< instructions of a group are one; all others are one each
  std::map<unsigned, llvm::SmallVector<HloInstruction *>> groupNodes; ///< what was made such a node
  /// Columns first: those that make a group are not taken beside rows.
  using Order = std::pair<bool, ReducedShape>;
  std::map<Order, llvm::SmallVector<HloInstruction *>> reductions;
};

RowGroupSearch::RowGroupSearch(const HloComputation &computation, const llvm::BitVector &needed,
                               llvm::ArrayRef<HloInstruction *> results, llvm::ArrayRef<HloInstruction *> materialized,
                               llvm::function_ref<bool(const RowGroup &)> isOnePass)
    : computation(computation), needed(needed), isOnePass(isOnePass), users(computation),
      endsKernel(computation.instructions().size(), false), isResult(endsKernel.size(), false), rows(endsKernel.size()),
      columns(endsKernel.size()), isGrouped(endsKernel.size(), false), nodes(endsKernel.size()) {
  std::iota(nodes.begin(), nodes.end(), 0);
  for (const HloInstruction *result : results)
    isResult[result->id()] = true;
  for (HloInstruction *instr : materialized) {
    endsKernel[instr->id()] = true;
    if (instr->opcode() == Opcode::Reduce)
      addReduction(instr);
  }
  llvm::copy_if(computation.instructions(), std::back_inserter(columnReductions),
                [&](const HloInstruction *instr) { return columns[instr->id()].has_value(); });
}

void RowGroupSearch::addReduction(HloInstruction *instr) {
  columns[instr->id()] = rowsOfColumnReduction(*instr);
  std::optional<ReducedShape> shape = shapeOfReduction(*instr);
  if (!shape || (shape->columns == 1 && shape->length > longestHeldRow && shape->count < manyRows))
    return;
  rows[instr->id()] = shape;
  reductions[{shape->columns == 1, *shape}].push_back(instr);
}

RowGroupSearch::Levels RowGroupSearch::levelsOf(const ReducedShape &shape) const {
  Levels levels;
  levels.byId.resize(endsKernel.size(), 0);
  for (HloInstruction *instr : computation.instructions()) {
    unsigned &own = levels.byId[instr->id()];
    for (const HloInstruction *operand : instr->operands()) {
      bool isOther = endsKernel[operand->id()] && rows[operand->id()] != shape;
      own = std::max(own, levels.byId[operand->id()] + unsigned(isOther));
    }
    if (own >= levels.instructions.size())
      levels.instructions.resize(own + 1);
    levels.instructions[own].push_back(instr);
  }
  return levels;
}

/// What instructions are to the reductions of one level, by id. Those that depend on them row by row can be made with
/// them.
Places<ReducedRole> RowGroupSearch::rolesOf(const ReducedShape &shape, const Levels &levels, unsigned level) const {
  Places<ReducedRole> roles(computation);
  auto isOwn = [&](const HloInstruction &instr) { return endsKernel[instr.id()] && rows[instr.id()] == shape; };
  auto isLeft = [&](const HloInstruction &instr) {
    return (endsKernel[instr.id()] && !isOwn(instr)) || instr.reachesSideEffect();
  };
  llvm::ArrayRef<HloInstruction *> ofLevel = levels.instructions[level];
  for (const HloInstruction *instr : ofLevel)
    if (isOwn(*instr) && !isLeft(*instr))
      roles.set(*instr, ReducedRole::Result);
  roles.follow(ofLevel,
               [&](const HloInstruction &instr, unsigned operand, ReducedRole read) -> PlaceAnswer<ReducedRole> {
                 if (isLeft(instr))
                   return Independent();
                 return roleThrough(instr, operand, read, shape);
               });
  return roles;
}

/// Reductions of columns that can be made in the pass over the rows: of what is made of rows there, or of what is read.
llvm::SmallVector<HloInstruction *> RowGroupSearch::columnsBeside(const ReducedShape &shape, const Levels &levels,
                                                                  unsigned level,
                                                                  const Places<ReducedRole> &roles) const {
  if (shape.columns > 1 || shape.length > longestRowBesideColumns || shape.count < leastRowsOfColumns)
    return {};
  llvm::BitVector isRead(endsKernel.size(), false);
  for (const HloInstruction *instr : levels.instructions[level])
    if (roles.at(*instr))
      for (const HloInstruction *operand : instr->operands())
        isRead[operand->id()] = true;
  llvm::SmallVector<HloInstruction *> beside;
  llvm::copy_if(columnReductions, std::back_inserter(beside), [&](HloInstruction *instr) {
    unsigned id = instr->id();
    return !isGrouped[id] && columns[id] == shape && levels.byId[id] <= level &&
           llvm::all_of(llvm::enumerate(instr->operands()), [&](const auto &operand) {
             const HloInstruction &read = *operand.value();
             bool isInit = operand.index() >= instr->numOperands() / 2;
             return isInit ? !roles.at(read) : roles.isAt(read, ReducedRole::Element) || isRead[read.id()];
           });
  });
  return beside;
}

/// (What is taken of a tuple is read where it is made.)
RowGroupSearch::Members RowGroupSearch::membersOf(const Places<ReducedRole> &roles,
                                                  llvm::ArrayRef<HloInstruction *> columns,
                                                  llvm::ArrayRef<HloInstruction *> ofLevel) const {
  Members members{roles, {columns.begin(), columns.end()}, {}, llvm::BitVector(nodes.size(), false)};
  auto add = [&](HloInstruction *instr) {
    if (members.isInside[instr->id()])
      return;
    members.isInside[instr->id()] = true;
    if (needed[instr->id()])
      members.inside.push_back(instr);
  };
  llvm::for_each(columns, add);
  for (HloInstruction *instr : ofLevel)
    if (roles.at(*instr) && &behindTuple(*instr) == instr)
      add(instr);
  llvm::sort(members.inside, [](const HloInstruction *a, const HloInstruction *b) { return a->id() < b->id(); });
  return members;
}

/// What others need of a group, operands before users.
llvm::SmallVector<HloInstruction *> RowGroupSearch::rootsOf(const Members &members) const {
  llvm::SmallVector<HloInstruction *> roots;
  llvm::BitVector isRead(nodes.size(), false); // outside
  for (HloInstruction *instr : llvm::reverse(members.inside)) {
    unsigned id = instr->id();
    auto isOutside = [&](HloInstruction *user) { return needed[user->id()] && !members.isInside[user->id()]; };
    if (!isResult[id] && !isRead[id] && llvm::none_of(users.of(instr), isOutside))
      continue;
    // Who reads what a row comes to for each of its elements can do so without a copy for each.
    if (instr->opcode() == Opcode::Broadcast && !isResult[id])
      isRead[instr->operand(0)->id()] = true;
    else
      roots.push_back(instr);
  }
  std::reverse(roots.begin(), roots.end());
  return roots;
}

/// Does one kernel save memory? It does if elements depend on the reductions, or columns are made of the same ones.
bool RowGroupSearch::isWorth(llvm::ArrayRef<HloInstruction *> own, llvm::ArrayRef<HloInstruction *> roots,
                             const Members &members) const {
  auto elementRoots = llvm::count_if(
      roots, [&](const HloInstruction *root) { return members.roles.isAt(*root, ReducedRole::Element); });
  auto isInside = [&](const HloInstruction *instr) { return members.isInside[instr->id()]; };
  auto readsRows = [&](const HloInstruction *instr) { return llvm::any_of(instr->operands(), isInside); };
  return elementRoots <= mostElementRoots &&
         (elementRoots > 0 || !members.columns.empty() || llvm::any_of(own, readsRows)) &&
         llvm::all_of(own, isInside) && llvm::none_of(roots, sharesBytes);
}

/// No instruction with a higher id is read by `instrs`, nor by what is carried out together with one that is, and so
/// on.
unsigned RowGroupSearch::lastReadBy(llvm::ArrayRef<HloInstruction *> instrs) const {
  unsigned last = instrs.back()->id();
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto &[node, group] : groupNodes)
      if (group.front()->id() < last && group.back()->id() > last) {
        last = group.back()->id();
        changed = true;
      }
  }
  return last;
}

/// Can instructions be carried out one after the other if those of a group, and of each one found before, are carried
/// out together? Not if what reads the group is read by it.
bool RowGroupSearch::isOrdered(const Members &members) const {
  llvm::BitVector isReached(nodes.size(), false); // nodes outside
  llvm::SmallVector<unsigned> reached;
  llvm::BitVector isInside(nodes.size(), false);
  for (const HloInstruction *instr : members.inside)
    isInside[instr->id()] = true;
  const unsigned last = lastReadBy(members.inside);
  auto reachReaders = [&](const HloInstruction *read) {
    for (const HloInstruction *reader : users.of(read))
      if (const unsigned node = nodes[reader->id()];
          reader->id() <= last && !isInside[reader->id()] && !isReached[node]) {
        isReached[node] = true;
        reached.push_back(node);
      }
  };
  auto readsBack = [&](const HloInstruction *read) {
    return llvm::any_of(users.of(read), [&](const HloInstruction *reader) { return isInside[reader->id()]; });
  };
  llvm::for_each(members.inside, reachReaders);
  while (!reached.empty()) {
    const unsigned node = reached.pop_back_val();
    auto group = groupNodes.find(node);
    HloInstruction *const alone = computation.instructions()[node];
    for (const HloInstruction *instr : group == groupNodes.end() ? llvm::ArrayRef(alone) : group->second) {
      if (nodes[instr->id()] != node || isInside[instr->id()])
        continue; // taken by a later group
      if (readsBack(instr))
        return false;
      reachReaders(instr);
    }
  }
  return true;
}

/// The group that reductions of one level make, if it is worth a kernel.
std::optional<RowGroup> RowGroupSearch::groupOf(const ReducedShape &shape, llvm::ArrayRef<HloInstruction *> own,
                                                const Members &members) {
  llvm::SmallVector<HloInstruction *> roots = rootsOf(members);
  if (!isWorth(own, roots, members))
    return std::nullopt;
  if (!isOrdered(members))
    return std::nullopt;
  RowGroup group;
  group.reductions.assign(own.begin(), own.end());
  llvm::append_range(group.reductions, members.columns);
  llvm::copy_if(members.inside, std::back_inserter(group.inside),
                [&](HloInstruction *instr) { return !llvm::is_contained(roots, instr); });
  group.roots = std::move(roots);
  // Rows may be of any length; columns have to fit.
  if ((shape.columns > 1 || !members.columns.empty()) && !isOnePass(group))
    return std::nullopt;
  const unsigned node = own.front()->id();
  for (const HloInstruction *instr : members.inside)
    nodes[instr->id()] = node;
  groupNodes[node] = members.inside;
  for (const HloInstruction *reduction : group.reductions)
    isGrouped[reduction->id()] = true;
  return group;
}

std::vector<RowGroup> RowGroupSearch::find() {
  std::vector<RowGroup> groups;
  for (const auto &[order, ofShape] : reductions) {
    const ReducedShape &shape = order.second;
    const Levels levels = levelsOf(shape);
    std::map<unsigned, llvm::SmallVector<HloInstruction *>> byLevel;
    for (HloInstruction *reduction : ofShape)
      byLevel[levels.byId[reduction->id()]].push_back(reduction);
    for (const auto &[level, own] : byLevel) {
      const Places<ReducedRole> roles = rolesOf(shape, levels, level);
      llvm::SmallVector<HloInstruction *> beside = columnsBeside(shape, levels, level, roles);
      std::optional<RowGroup> group = groupOf(shape, own, membersOf(roles, beside, levels.instructions[level]));
      if (!group && !beside.empty())
        group = groupOf(shape, own, membersOf(roles, {}, levels.instructions[level]));
      if (group)
        groups.push_back(std::move(*group));
    }
  }
  return groups;
}

} // namespace

std::vector<RowGroup> groupRows(const HloComputation &entry, const llvm::BitVector &needed,
                                llvm::ArrayRef<HloInstruction *> results, llvm::ArrayRef<HloInstruction *> materialized,
                                llvm::function_ref<bool(const RowGroup &)> isOnePass) {
  return RowGroupSearch(entry, needed, results, materialized, isOnePass).find();
}

} // namespace hloc
