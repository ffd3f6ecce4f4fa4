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

/// A transposition through shared memory. The operand, in memory order, is [outer..., rows, middle..., columns] after
/// merging dimensions that stay neighbours; rows and columns are the minor dimensions of result and operand.
struct TransposePlan {
  const HloInstruction *hero = nullptr;
  llvm::SmallVector<unsigned> roots;      ///< read the hero elementwise: computed when the tile is read back
  llvm::SmallVector<unsigned> sideRoots;  ///< computed when the tile is filled
  llvm::SmallVector<int64_t> inputDims;   ///< merged, operand order
  llvm::SmallVector<int64_t> permutation; ///< result dim i is operand dim permutation[i]
  int64_t tile = 32;                      ///< elements along rows and columns
  int64_t rowsPerStep = 4;                ///< block rows filled at once: threads / 32
  unsigned perThread = 1;                 ///< neighbouring elements a thread moves at once
  int64_t tiles = 0;
  uint64_t sharedBytes = 0;
  Dim3 grid;
  Dim3 block;

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
