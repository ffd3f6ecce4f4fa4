#pragma once
// What a hero's own file supplies: five functions per row of Heroes.def. Without one of them nothing links.

#include "hloc/fusion/FusionPlan.h"
#include "hloc/fusion/Places.h"
#include "hloc/indexing/IndexingMap.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace hloc {

/// Why a hero does not apply.
struct Rejection {
  std::string reason;
};

/// A kernel after the hero's own.
struct FollowingKernel {
  HeroPlan plan;
  LaunchGeometry launch;
  bool writesScratch; ///< otherwise it only reads what lies there

  // Not in the header, as those of KernelPlan.
  FollowingKernel(HeroPlan plan, LaunchGeometry launch, bool writesScratch = false);
  FollowingKernel(FollowingKernel &&) noexcept;
  FollowingKernel &operator=(FollowingKernel &&) noexcept;
  ~FollowingKernel();
};

/// The other steps of a fusion whose hero has a kernel.
struct OtherSteps {
  std::vector<FusionStep> before;    ///< it: copies and fills of the outputs' buffers
  std::vector<EarlierValue> earlier; ///< what other kernels have to make before it, in the outputs' buffers
  /// Memory that the kernels hand to each other: the first one writes it, others only if they say so.
  std::vector<ScratchBuffer> scratch;
  std::vector<FollowingKernel> following;
  /// Other plans of the hero that estimates spoke against.
  std::vector<Rejection> plansNotTaken;
};

/// A hero's plan with its launch and the steps around it, or the reason why there is none.
template <typename Plan> class HeroMatch {
public:
  HeroMatch(Rejection why) : result(std::move(why)) {}
  HeroMatch(Plan plan, LaunchGeometry launch, OtherSteps others = {})
      : result(Accepted{std::move(plan), launch, std::move(others)}) {}
  explicit operator bool() const { return std::holds_alternative<Accepted>(result); }
  Plan &plan() { return std::get<Accepted>(result).plan; }
  const LaunchGeometry &launch() const { return std::get<Accepted>(result).launch; }
  OtherSteps &others() { return std::get<Accepted>(result).others; }
  const std::string &reason() const { return std::get<Rejection>(result).reason; }

private:
  struct Accepted {
    Plan plan;
    LaunchGeometry launch;
    OtherSteps others;
  };
  std::variant<Accepted, Rejection> result;
};

/// `offers`: by root, the parameter whose buffer it may have (planFusion).
template <typename Plan>
HeroMatch<Plan> matchHero(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
                          PlanContext &context);

/// May output `root` have the buffer of `parameter`? A kernel of many threads may overwrite an element only when all
/// that read it have done so.
template <typename Plan>
bool mayTakePlace(const Plan &plan, const FusionGraph &graph, unsigned root, unsigned parameter);

/// What a kernel computes at the points of one index space, once at each.
struct ComputedSpace {
  struct Value {
    const HloInstruction *instr;
    IndexingMap map; ///< point -> index of the instruction
  };
  std::vector<Value> values;
};

/// Where computing starts, and what is kept: its elements are read from where the kernel put them, not made anew.
struct ComputedSpaces {
  std::vector<ComputedSpace> spaces;
  llvm::SmallVector<const HloInstruction *, 2> kept;
};
template <typename Plan>
ComputedSpaces computedSpaces(const Plan &plan, const FusionGraph &graph, mlir::MLIRContext *context);

/// Least global traffic of a kernel, in bytes.
struct KernelTraffic {
  uint64_t read = 0, written = 0;
};
template <typename Plan> KernelTraffic trafficOf(const Plan &plan, const FusionGraph &graph);
/// Of a hero that leaves no memory alone: all parameters and outputs.
inline KernelTraffic wholeTraffic(const FusionGraph &graph) { return {graph.bytesRead(), graph.bytesWritten()}; }

/// Registers that a thread may take (KernelSpec::plannedRegisters).
template <typename Plan> unsigned plannedRegisters(const Plan &plan);

#define HLOC_HERO(name, text, plan, ...)                                                                               \
  template <>                                                                                                          \
  HeroMatch<plan> matchHero<plan>(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,    \
                                  PlanContext &context);                                                               \
  template <> bool mayTakePlace<plan>(const plan &, const FusionGraph &graph, unsigned root, unsigned parameter);      \
  template <> ComputedSpaces computedSpaces<plan>(const plan &, const FusionGraph &graph, mlir::MLIRContext *context); \
  template <> KernelTraffic trafficOf<plan>(const plan &, const FusionGraph &graph);                                   \
  template <> unsigned plannedRegisters<plan>(const plan &);
#include "hloc/fusion/Heroes.def"

/// Calls `visit` with the plan of the hero that it is.
template <typename Visit> auto visitHero(const HeroPlan &plan, Visit visit) {
  using Result = decltype(visit(std::get<0>(plan)));
  return std::visit(
      [&](const auto &own) -> Result {
        if constexpr (std::is_same_v<std::decay_t<decltype(own)>, std::monostate>)
          HLOC_UNREACHABLE("hero without a plan");
        else
          return visit(own);
      },
      plan);
}

// Shared by heroes.

/// So many threads in such blocks, in rows of blocks if there are very many; none for 0.
LaunchGeometry launchOf(int64_t threads, const TargetInfo &target);
/// Bits per element of the arrays that are as large as the iteration space: the streams worth wide accesses.
struct StreamWidths {
  unsigned narrowest = 64; ///< as long as there is none
  unsigned widest = 0;
  unsigned asked = 0; ///< PlanChoices::vector: no more than that; 0: as many as there can be
  void add(const Shape &shape);
  /// As many elements as fill an access of `maxVectorBytes` to the narrowest, as long as the widest needs at most two;
  /// a power of two, at most 32.
  unsigned elements(const TargetInfo &target) const;
};
/// Consecutive elements that one thread computes of `roots`, a power of two: as many as fill one access of
/// `maxVectorBytes` to the widest stream, since lanes that need two leave gaps in each and touch their sectors twice.
/// Streams are the outputs and the parameters with `elements` elements. Fewer elements if `elementsOfKernel`, what all
/// threads compute of one output, would not fill the device. Sub-byte outputs always cover whole bytes.
unsigned elementsPerThread(llvm::ArrayRef<unsigned> roots, int64_t elements, int64_t elementsOfKernel,
                           const FusionGraph &graph, const TargetInfo &target);

/// Gives segments their blocks, one after the other, and large ones several rounds; `elements` and `perThread` are
/// known. Nothing if one row of a grid has not enough blocks.
std::optional<LaunchGeometry> assignBlocks(llvm::ArrayRef<BlockSegment *> segments, const FusionGraph &graph,
                                           const TargetInfo &target);
/// Bits of an element of the narrowest output, in device memory.
unsigned narrowestOutput(const FusionGraph &graph);
/// Bytes that memory moves at least, in bits.
constexpr int64_t sectorBits = 32 * 8;
/// The least power of two that is not less; 1 for all that is less than 1.
inline int64_t powerOf2Ceil(int64_t x) { return int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(x, 1)))); }

/// Is what `instr` reads of operand `operand`, for an element of its result, at the same position of the memory order?
bool readsSamePosition(const HloInstruction &instr, unsigned operand);
/// The instruction whose bytes `instr` renames: be it with other dimensions or another type of the same width.
const HloInstruction &behindBitcasts(const HloInstruction &instr);
/// Is `instr` such a renaming of its operand?
bool isRenaming(const HloInstruction &instr);

/// Same dimensions in the same order in memory.
bool sameArray(const Shape &a, const Shape &b);
/// What depends on `origin` at its own index: elsewhere is what reads it at another, or has another shape.
Places<Own> dependentInPlace(const FusionGraph &graph, const HloInstruction &origin);
/// What depends on `heroes` at its own position of the memory order: elsewhere is what reads them at another.
Places<Own> dependentInOrder(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> heroes);
/// Is each element of `parameter` read only for the elements of outputs at its own index, `root` among them, all of the
/// same array? A thread that computes these together, before it stores them, may overwrite it.
bool mayOverwriteElements(const FusionGraph &graph, unsigned root, unsigned parameter);
/// The parameter that output `root` scatters to, if it is a result of a scatter, or a bitcast of one.
std::optional<unsigned> scatteredParameter(const FusionGraph &graph, unsigned root);
/// What `values` are computed of, themselves included, by id; not beyond what is `kept`.
llvm::BitVector readFor(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> values,
                        llvm::ArrayRef<const HloInstruction *> kept = {});
/// Instructions of that kind, operands before users, that outputs read through others of which `passes` holds for the
/// operand.
llvm::SmallVector<const HloInstruction *, 2>
findHeroes(const FusionGraph &graph, llvm::function_ref<bool(const HloInstruction &)> isHero,
           llvm::function_ref<bool(const HloInstruction &, unsigned operand)> passes);

} // namespace hloc
