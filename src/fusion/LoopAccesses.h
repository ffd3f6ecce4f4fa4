#pragma once
// LoopAccesses: which memory the warps of a loop touch when each thread computes some neighbouring elements, counted in
// sectors of 32 bytes from the indexing maps.
//
//   slice of f32[8192], [0:8192:2], by groups of 4 elements: a lane's elements lie 8 bytes apart, so they are four
//   loads, of which each touches 32 sectors, for 32 * 4 elements: 1 sector an element. One element a lane: one load
//   that touches 8 sectors, for 32 elements: 0.25.

#include "fusion/ReadMaps.h"
#include "hloc/kernel/TargetInfo.h"

#include <optional>
#include <vector>

namespace hloc {

/// The most neighbouring elements that one thread computes.
constexpr unsigned maxElementsOfGroup = 32;

class LoopAccesses {
public:
  /// Of the parameters read, and of the outputs, by a loop over the memory order of output `roots[0]`, in which the
  /// others are computed at the same indices. What is read in a way that no map describes is left out.
  LoopAccesses(const FusionGraph &graph, llvm::ArrayRef<unsigned> roots, PlanContext &plans);

  size_t size() const { return accesses.size(); }
  std::string nameOf(size_t access) const;
  /// Looks at a few warps, for groups of up to `most` elements. To be done before sectors().
  void sample(unsigned most);
  /// Sectors touched for each element of the loop, on average over those warps, where a thread's elements come in
  /// groups of `group` neighbours, a power of two.
  double sectors(size_t access, unsigned group, const TargetInfo &target) const;
  /// Is some array read at one place for each `row` neighbouring elements of the loop? To be asked after sample().
  bool readsOneForRow(int64_t row) const;
  /// Bits that a thread loads for one element, of the parameters with at least half as many elements as the loop.
  unsigned streamedBits() const;
  /// Bits of an element of the narrowest array that is as large as the loop.
  unsigned narrowest() const;

private:
  struct Access {
    const HloInstruction *parameter = nullptr; ///< null: an output
    ElementType type = ElementType::Pred;      ///< of an element
    int64_t elements = 0;
    std::optional<IndexingMap> map; ///< position in the loop's order -> position in the array's; none: the same
    /// For some runs of neighbouring positions: where in the array each element is, -1 if it is not read.
    llvm::SmallVector<std::vector<int64_t>, 0> samples;
  };
  void add(const HloInstruction *parameter, const Shape &shape, unsigned read);

  const Shape order; ///< of the first output
  ReadMaps reads;
  std::vector<Access> accesses;
};

} // namespace hloc
