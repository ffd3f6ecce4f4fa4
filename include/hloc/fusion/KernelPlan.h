#pragma once
// KernelPlan: what a hero decided about a kernel, as printable data: which elements a thread computes, the launch, the
// shared memory. Emitters turn it into IR without deciding anything again.
//
//   gelu of bf16[6,512,4096] for sm_90:
//   loop: roots 0, 12582912 elements, 8 per thread; grid 12288, block 128
//
// A fusion whose outputs have different element counts gets one nest each, executed one after the other by one grid.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/SmallVector.h"

#include <string>
#include <variant>

namespace hloc {

/// Outputs with equally many elements, computed in one loop over the memory order of the first.
struct LoopNest {
  llvm::SmallVector<unsigned> roots; ///< indices into FusionGraph::roots()
  int64_t elements = 0;
  /// Consecutive elements of one thread; a power of two. The last `elements % perThread` are one thread's.
  unsigned perThread = 1;
  int64_t threads() const { return (elements + perThread - 1) / perThread; }
};

struct LoopPlan {
  llvm::SmallVector<LoopNest, 1> nests; ///< none with 0 elements
  Dim3 grid;                            ///< x = 0: nothing to launch
  Dim3 block;

  std::string toString() const;
};

/// Transpositions through shared memory, all of one shape. A hero is a `transpose` or a layout-changing `copy` whose
/// minor dimension in memory moves; outputs read it elementwise.
///
///   transpose of f32[20,160,170], dimensions={0,2,1}: inputDims {20,160,170}, permutation {0,2,1}, tiles of 32 x 32
///
/// Dimensions are those of memory, major to minor, with neighbours that stay neighbours merged and sizes of 1 dropped.
struct TransposePlan {
  llvm::SmallVector<const HloInstruction *, 2> heroes;
  llvm::SmallVector<unsigned> roots;      ///< have the heroes' shape: computed when a tile is read back
  llvm::SmallVector<unsigned> sideRoots;  ///< have the heroes' operand's shape: computed when a tile is filled
  llvm::SmallVector<int64_t> inputDims;   ///< of the operand
  llvm::SmallVector<int64_t> permutation; ///< result dimension i is operand dimension permutation[i]
  unsigned perThread = 1;                 ///< neighbouring elements that a thread moves at once
  int64_t tile = 32;                      ///< elements along both minor dimensions: 32 lanes times perThread
  uint64_t sharedBytes = 0;
  Dim3 grid;
  Dim3 block;

  /// The operand's dimension that is minor in the result.
  unsigned rowDim() const { return permutation.back(); }
  /// The operand's minor dimension.
  unsigned columnDim() const { return inputDims.size() - 1; }
  /// Rows (columns) of a tile that the block fills (reads) at once.
  int64_t rowsPerStep() const { return block.x / 32; }
  int64_t tilesAlong(unsigned dim) const;
  std::string toString() const;
};

enum class Hero : uint8_t {
#define HLOC_HERO(name, text, plan) name,
#include "hloc/fusion/Heroes.def"
};
llvm::StringRef text(Hero hero);

using KernelPlan = std::variant<
#define HLOC_HERO(name, text, plan) plan,
#include "hloc/fusion/Heroes.def"
    std::monostate>;

struct HeroChoice {
  Hero hero = Hero::Loop;
  std::string why; ///< why this one, and why the more special ones were rejected
  KernelPlan plan;
};

/// Asks the heroes in the order of the table.
HeroChoice selectHero(const FusionGraph &graph, const TargetInfo &target);

} // namespace hloc
