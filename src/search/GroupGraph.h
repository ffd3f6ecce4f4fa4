#pragma once
// Groups of instructions, each of them a kernel to be, while the search (GroupSearch.h) changes them: which value which
// group makes, who reads it from memory, and which groups wait for which.
//
//   e = exp(p)  s = add(e, p)  r = sort(s)     groups {e}, {s}, {r}: s reads e's result; r is on a higher level than s
//   after e has gone to its readers:           groups {e, s}, {r}

#include "search/FusionCost.h"
#include "search/RowGroups.h"

#include "llvm/ADT/BitVector.h"

namespace hloc {

struct Group {
  llvm::SmallVector<HloInstruction *> members, roots; ///< by id: operands before users
  llvm::SmallVector<uint32_t> operands;               ///< ids of what kernels make and this one reads
  KernelCost cost;
  unsigned level = 0; ///< higher than those of all whose results it reads
  bool alive = true;
  bool fixed = false;  ///< takes part in no step
  bool emitted = true; ///< is a kernel; otherwise control flow and structure
};

/// What a group is to become.
struct GroupContents {
  llvm::SmallVector<HloInstruction *> members, roots;
  KernelCost cost;
};

/// May a kernel overwrite the value?
bool mayUpdate(const HloInstruction &value, const HloComputation &computation, const HloUsers &users);

class GroupGraph {
public:
  static constexpr unsigned none = ~0u;

  /// A group for each instruction that is needed (by id) and not simply computed where it is read, or for each of
  /// `rows`; and for each producer of an edge that is to be two kernels.
  GroupGraph(const HloComputation &computation, const llvm::BitVector &needed, llvm::ArrayRef<RowGroup> rows,
             llvm::ArrayRef<AskedEdge> edges);

  llvm::ArrayRef<HloInstruction *> instructions() const { return computation.instructions(); }
  llvm::ArrayRef<HloInstruction *> usersOf(const HloInstruction &value) const { return users.of(&value); }

  // Values.
  bool isNeeded(const HloInstruction &value) const { return needed[value.id()]; }
  /// Is it a parameter, or an element of one?
  bool isGiven(const HloInstruction &value) const { return base[value.id()]; }
  /// Has it to be in memory, whoever reads it?
  bool isPinned(const HloInstruction &value) const { return pinned[value.id()]; }
  /// A renaming that stays between kernels.
  bool isOutside(const HloInstruction &value) const { return outside[value.id()]; }
  /// A loop's array that is updated where it lies, however large it is.
  bool updatesState(const HloInstruction &instr) const;

  // Groups, by their numbers.
  size_t numGroups() const { return groups.size(); }
  const Group &operator[](unsigned number) const { return groups[number]; }
  llvm::ArrayRef<Group> all() const { return groups; }
  void setCost(unsigned number, KernelCost cost) { groups[number].cost = std::move(cost); }
  /// The one that makes an instruction's value for others, or `none`.
  unsigned groupOf(uint32_t id) const { return makers[id]; }
  /// Those that read it from memory.
  llvm::ArrayRef<unsigned> readersOf(uint32_t id) const { return readers[id]; }
  bool isEntry() const { return computation.isEntry(); }

  /// What kernels of these roots compute: all that no other group makes, and of what others make, `inside`.
  llvm::SmallVector<HloInstruction *> closure(llvm::ArrayRef<HloInstruction *> roots,
                                              llvm::ArrayRef<const HloInstruction *> inside);
  /// Does a group wait for another of them through one that is not among them? Yes, too, where that takes long to find
  /// out.
  bool waitForEachOther(llvm::ArrayRef<unsigned> all);
  /// Would one kernel of all make a loop's next state while another, which seems to wait for it, reads the last one?
  bool replacesWhatIsReadLater(llvm::ArrayRef<unsigned> all, llvm::ArrayRef<HloInstruction *> roots) const;

  /// The first becomes the one of all.
  void unite(llvm::ArrayRef<unsigned> all, const GroupContents &made);
  /// A group goes; each of those that have read its value computes that itself.
  void dissolve(unsigned producer, llvm::ArrayRef<unsigned> into, llvm::ArrayRef<GroupContents> made);

private:
  bool isNode(const HloInstruction &instr) const;
  bool isEmitted(const HloInstruction &instr) const;
  void classify();
  bool canStayOutside(const HloInstruction &value) const;
  bool isFree(const HloInstruction &instr) const;
  void addGroups(llvm::ArrayRef<RowGroup> rows);
  void release(unsigned number);
  void setOperands(unsigned number);
  void raiseReaders(unsigned number, bool andTheirs = true);

  const HloComputation &computation;
  const llvm::BitVector &needed;
  HloUsers users;
  std::vector<Group> groups;
  // By id.
  std::vector<unsigned> makers;
  std::vector<llvm::SmallVector<unsigned, 2>> readers;
  llvm::BitVector pinned, outside, base, apart;
  std::vector<uint32_t> stamps;
  uint32_t stamp = 0;
  std::vector<uint32_t> visited; ///< by group
  uint32_t visit = 0;
};

} // namespace hloc
