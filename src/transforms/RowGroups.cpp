// Reductions of rows that one kernel makes together with what their rows' elements become of them.

#include "RowGroups.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/StagedReductions.h"

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
constexpr int64_t longestRowBesideColumns = 1024, leastRowsOfColumns = 512;
/// Arrays as large as the rows that one group writes. More of them would be values that is cheaper to compute again.
constexpr unsigned mostElementRoots = 2;

bool sharesBytes(const HloInstruction *instr) {
  return !instr->shape().isArray() || deviceBits(instr->shape().elementType()) < 8;
}

/// What is known of an entry whose kernels end with some ops.
struct Entry {
  const HloComputation &computation;
  std::vector<bool> endsKernel;                     ///< by id
  std::vector<std::optional<ReducedShape>> rows;    ///< of the reductions among them
  std::vector<std::optional<ReducedShape>> columns; ///< of those of columns: the rows that they are in
  std::vector<bool> isGrouped;                      ///< is it a reduction of a group that was found?
  std::vector<unsigned> levelsOf(const ReducedShape &shape) const;
  std::vector<ReducedRole> rolesOf(const ReducedShape &shape, llvm::ArrayRef<unsigned> levels, unsigned level) const;
  llvm::SmallVector<HloInstruction *> columnsBeside(const ReducedShape &shape, llvm::ArrayRef<unsigned> levels,
                                                    unsigned level, llvm::ArrayRef<ReducedRole> roles) const;
  bool isOrdered(llvm::ArrayRef<unsigned> nodes, unsigned numNodes) const;
};

/// How many other ops that end kernels there are on the way to an instruction, by id: reductions of one level do not
/// depend on each other through those.
std::vector<unsigned> Entry::levelsOf(const ReducedShape &shape) const {
  std::vector<unsigned> levels(endsKernel.size(), 0);
  for (const HloInstruction *instr : computation.instructions())
    for (const HloInstruction *operand : instr->operands()) {
      bool isOther = endsKernel[operand->id()] && rows[operand->id()] != shape;
      levels[instr->id()] = std::max(levels[instr->id()], levels[operand->id()] + unsigned(isOther));
    }
  return levels;
}

/// What instructions are to the reductions of one level, by id. Those that depend on them row by row can be made with
/// them.
std::vector<ReducedRole> Entry::rolesOf(const ReducedShape &shape, llvm::ArrayRef<unsigned> levels,
                                        unsigned level) const {
  std::vector<ReducedRole> roles(endsKernel.size(), ReducedRole::Other);
  for (const HloInstruction *instr : computation.instructions()) {
    unsigned id = instr->id();
    bool isOwn = endsKernel[id] && rows[id] == shape && levels[id] == level;
    if (levels[id] > level || (endsKernel[id] && !isOwn) || instr->reachesSideEffect())
      continue;
    std::optional<ReducedRole> role = roleInReductions(
        *instr, shape, [&](const HloInstruction &operand) { return roles[behindTuple(operand).id()]; });
    if (role)
      roles[id] = isOwn ? ReducedRole::Result : *role;
  }
  return roles;
}

/// Reductions of columns that can be made in the pass over the rows: of what is made of rows there, or of what is read.
llvm::SmallVector<HloInstruction *> Entry::columnsBeside(const ReducedShape &shape, llvm::ArrayRef<unsigned> levels,
                                                         unsigned level, llvm::ArrayRef<ReducedRole> roles) const {
  if (shape.columns > 1 || shape.length > longestRowBesideColumns || shape.count < leastRowsOfColumns)
    return {};
  std::vector<bool> isRead(endsKernel.size(), false);
  for (const HloInstruction *instr : computation.instructions())
    if (roles[instr->id()] != ReducedRole::Other)
      for (const HloInstruction *operand : instr->operands())
        isRead[operand->id()] = true;
  llvm::SmallVector<HloInstruction *> beside;
  llvm::copy_if(computation.instructions(), std::back_inserter(beside), [&](HloInstruction *instr) {
    unsigned id = instr->id();
    return endsKernel[id] && !isGrouped[id] && columns[id] == shape && levels[id] <= level &&
           llvm::all_of(llvm::enumerate(instr->operands()), [&](const auto &operand) {
             unsigned read = operand.value()->id();
             bool isInit = operand.index() >= instr->numOperands() / 2;
             return isInit ? roles[read] == ReducedRole::Other : roles[read] == ReducedRole::Element || isRead[read];
           });
  });
  return beside;
}

/// Can instructions be carried out one after the other if those of one node are carried out together? By id.
bool Entry::isOrdered(llvm::ArrayRef<unsigned> nodes, unsigned numNodes) const {
  std::vector<llvm::SmallVector<unsigned, 2>> readers(numNodes);
  std::vector<unsigned> waitsFor(numNodes, 0);
  for (const HloInstruction *instr : computation.instructions())
    for (const HloInstruction *operand : instr->operands())
      if (unsigned from = nodes[operand->id()], to = nodes[instr->id()]; from != to) {
        readers[from].push_back(to);
        ++waitsFor[to];
      }
  llvm::SmallVector<unsigned> ready;
  for (unsigned node = 0; node < numNodes; ++node)
    if (waitsFor[node] == 0)
      ready.push_back(node);
  unsigned done = 0;
  for (; !ready.empty(); ++done)
    for (unsigned reader : readers[ready.pop_back_val()])
      if (--waitsFor[reader] == 0)
        ready.push_back(reader);
  return done == numNodes;
}

} // namespace

std::vector<RowGroup> groupRows(const HloComputation &entry, const std::vector<bool> &needed,
                                llvm::ArrayRef<HloInstruction *> results, llvm::ArrayRef<HloInstruction *> materialized,
                                llvm::function_ref<bool(const RowGroup &)> isOneKernel) {
  size_t numIds = entry.instructions().size();
  std::vector<std::optional<ReducedShape>> noShapes(numIds);
  Entry all{entry, std::vector<bool>(numIds, false), noShapes, noShapes, std::vector<bool>(numIds, false)};
  // Columns first: those that make a group are not taken beside rows.
  using Order = std::pair<bool, ReducedShape>;
  std::map<Order, llvm::SmallVector<HloInstruction *>> reductions;
  for (HloInstruction *instr : materialized) {
    all.endsKernel[instr->id()] = true;
    if (instr->opcode() != Opcode::Reduce)
      continue;
    all.columns[instr->id()] = rowsOfColumnReduction(*instr);
    std::optional<ReducedShape> rows = shapeOfReduction(*instr);
    if (!rows || (rows->columns == 1 && rows->length > longestHeldRow && rows->count < manyRows))
      continue;
    all.rows[instr->id()] = rows;
    reductions[{rows->columns == 1, *rows}].push_back(instr);
  }
  HloUsers users(entry);
  std::vector<bool> isResult(numIds, false);
  for (const HloInstruction *result : results)
    isResult[result->id()] = true;
  // Instructions of a group are one node; all others are one each.
  std::vector<unsigned> nodes(numIds);
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<RowGroup> groups;
  for (const auto &[order, ofShape] : reductions) {
    const ReducedShape &rows = order.second;
    std::vector<unsigned> levels = all.levelsOf(rows);
    std::map<unsigned, llvm::SmallVector<HloInstruction *>> byLevel;
    for (HloInstruction *reduction : ofShape)
      byLevel[levels[reduction->id()]].push_back(reduction);
    for (const auto &[level, own] : byLevel) {
      std::vector<ReducedRole> roles = all.rolesOf(rows, levels, level);
      llvm::SmallVector<HloInstruction *> columns = all.columnsBeside(rows, levels, level, roles);
      std::vector<bool> isColumn(numIds, false);
      for (const HloInstruction *column : columns)
        isColumn[column->id()] = true;
      auto isInside = [&](const HloInstruction *instr) {
        return roles[instr->id()] != ReducedRole::Other || isColumn[instr->id()];
      };
      auto readsRows = [&](const HloInstruction *instr) { return llvm::any_of(instr->operands(), isInside); };
      llvm::SmallVector<HloInstruction *> roots;
      unsigned elementRoots = 0;
      std::vector<bool> isRead(numIds, false); // outside
      for (HloInstruction *instr : llvm::reverse(entry.instructions())) {
        unsigned id = instr->id();
        if (!needed[id] || !isInside(instr))
          continue;
        auto isOutside = [&](HloInstruction *user) { return needed[user->id()] && !isInside(user); };
        if (!isResult[id] && !isRead[id] && llvm::none_of(users.of(instr), isOutside))
          continue;
        // Who reads what a row comes to for each of its elements can do so without a copy for each.
        if (instr->opcode() == Opcode::Broadcast && !isResult[id]) {
          isRead[instr->operand(0)->id()] = true;
          continue;
        }
        roots.push_back(instr);
        elementRoots += unsigned(roles[id] == ReducedRole::Element);
      }
      std::reverse(roots.begin(), roots.end());
      bool isWorth =
          elementRoots <= mostElementRoots && (elementRoots > 0 || !columns.empty() || llvm::any_of(own, readsRows));
      if (!isWorth || !llvm::all_of(own, isInside) || llvm::any_of(roots, sharesBytes))
        continue;
      std::vector<unsigned> together = nodes;
      for (size_t id = 0; id < numIds; ++id)
        if ((roles[id] != ReducedRole::Other || isColumn[id]) && needed[id])
          together[id] = own.front()->id();
      if (!all.isOrdered(together, unsigned(numIds)))
        continue;
      columns.insert(columns.begin(), own.begin(), own.end());
      RowGroup group{std::move(columns), std::move(roots), {}};
      llvm::copy_if(entry.instructions(), std::back_inserter(group.inside), [&](HloInstruction *instr) {
        return needed[instr->id()] && isInside(instr) && !llvm::is_contained(group.roots, instr);
      });
      // Rows may be of any length; columns have to fit.
      if (rows.columns > 1 && !isOneKernel(group))
        continue;
      nodes = std::move(together);
      for (const HloInstruction *reduction : group.reductions)
        all.isGrouped[reduction->id()] = true;
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

} // namespace hloc
