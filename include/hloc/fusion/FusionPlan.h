#pragma once
// FusionPlan: everything that is decided about a fusion before code is made for it: which steps it takes (kernels,
// copies, fills), the memory they need besides inputs and outputs, which outputs take the place of inputs, and for each
// kernel the hero, its launch and its buffers. Emitters turn a KernelPlan into IR without deciding anything again.
//
//   gelu of bf16[6,512,4096] for sm_90, planned:
//   loop: roots 0, 12582912 elements, 8 per thread; grid 12288, block 128

#include "hloc/fusion/AttentionPlan.h"
#include "hloc/fusion/ColumnsPlan.h"
#include "hloc/fusion/ContractionPlan.h"
#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/HeroPlans.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/fusion/RowsPlan.h"
#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/TargetInfo.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hloc {

enum class Hero : uint8_t {
#define HLOC_HERO(name, ...) name,
#include "hloc/fusion/Heroes.def"
};
llvm::StringRef text(Hero hero);

/// For `--list-heroes`.
struct HeroRow {
  llvm::StringLiteral name, takes, how;
};
/// In the order of Hero.
llvm::ArrayRef<HeroRow> heroRows();

/// In the order of Hero; what comes last is never there.
using HeroPlan = std::variant<
#define HLOC_HERO(name, text, plan, ...) plan,
#include "hloc/fusion/Heroes.def"
    std::monostate>;

/// What the launch of any kernel consists of.
struct LaunchGeometry {
  Dim3 grid; ///< x = 0: nothing to launch
  Dim3 block;
  uint64_t sharedBytes =
      0;                ///< shared memory of a block: static, as far as that goes, else all of it asked for at launch
  uint32_t cluster = 1; ///< blocks of a cluster, along x
  bool isSharedDynamic() const { return sharedBytes > TargetInfo::staticSharedBytes; }
};

/// A buffer that the steps of a fusion work on.
struct PlanBuffer {
  enum class Kind : uint8_t { Parameter, Output, Scratch };
  Kind kind = Kind::Parameter;
  unsigned index = 0; ///< parameter, root or scratch buffer of that number
  bool operator==(const PlanBuffer &) const = default;
};

/// A buffer as one kernel sees it.
struct KernelBuffer {
  PlanBuffer buffer;
  bool written = false; ///< somebody writes this memory while the kernel runs, be it through another of its buffers
  /// Position, among the kernel's buffers, of the one before it that is the same memory.
  std::optional<unsigned> sameAs;
};

/// A value inside a fusion that a kernel of its own makes in the buffer of output `output`, for a later kernel to go on
/// from there.
struct EarlierValue {
  const HloInstruction *instr; ///< an array as large as the output
  unsigned output;
};

/// By which a kernel copies in bulk: the last of its parameters, in this order.
llvm::SmallVector<const TileMap *, 3> tensorMapsOf(const HeroPlan &plan);
/// Why a kernel has not the tile that it was asked to have, with those that it could have: of attention, whose own tile
/// it keeps then. Empty: it has it, as contractions do.
std::string whyNotTile(const HeroPlan &plan, const TileSizes &wanted);

struct KernelPlan {
  LaunchGeometry launch;
  /// In the order of the kernel's parameters: first those of the fusion, then its outputs, then scratch memory.
  llvm::SmallVector<KernelBuffer> buffers;
  std::vector<Shape> scratch; ///< what lies in scratch memory
  HeroPlan plan;
  uint32_t bufferAlignment = 16; ///< of all buffers, in bytes: the widest access may start where they do
  std::optional<EarlierValue> makes = std::nullopt; ///< nothing: the outputs of the fusion

  // Not in the header: what a variant of all plans is copied by takes long to compile in each file that plans pass
  // through.
  KernelPlan();
  KernelPlan(LaunchGeometry launch, HeroPlan plan);
  KernelPlan(const KernelPlan &);
  KernelPlan(KernelPlan &&) noexcept;
  KernelPlan &operator=(const KernelPlan &);
  KernelPlan &operator=(KernelPlan &&) noexcept;
  ~KernelPlan();

  Hero hero() const { return Hero(plan.index()); }
  std::string toString() const;
  /// That a thread may take (KernelSpec::plannedRegisters).
  uint32_t plannedRegisters() const;
  /// The fusion as this kernel sees it: what it makes is the root. `plan` speaks of the roots of this graph.
  FusionGraph graphOf(const FusionGraph &fusion) const { return makes ? fusion.upTo(*makes->instr) : fusion; }
};

struct CopyPlan {
  PlanBuffer from, to;
};
struct FillPlan {
  PlanBuffer to;
  uint8_t value = 0;
};
using FusionStep = std::variant<KernelPlan, CopyPlan, FillPlan>;

/// Memory that lives as long as the fusion runs.
struct ScratchBuffer {
  Shape shape;
  uint32_t alignment = 16;
  bool zeroed = false; ///< the first step finds zeros
  uint64_t bytes() const { return shape.byteSize(); }
};

/// By root: the parameter whose buffer the output may have, or has.
using FusionAliasing = llvm::SmallVector<std::optional<unsigned>>;

/// An output of a fusion that lies in the memory of an operand: leaf `output` of its result in array leaf `operand`,
/// counted over all operands in order.
struct InPlaceOutput {
  const HloInstruction *fusion;
  unsigned output, operand;
};

struct FusionPlan {
  std::vector<ScratchBuffer> scratch;
  std::vector<FusionStep> steps; ///< in order; none if no byte is written
  FusionAliasing aliasing;       ///< which of the offers are taken
  std::vector<HeroRejection> rejections;

  std::string toString() const;
};

/// The parameter that output `root` updates a part of, if it is a dynamic-update-slice or a result of a scatter, or a
/// bitcast of one: worth an offer where nobody reads it afterwards.
std::optional<unsigned> updatedParameter(const FusionGraph &graph, unsigned root);

/// Plans a fusion. `offers`: outputs may have the buffer of a parameter that nobody reads afterwards, where the hero
/// can bear it; empty for none. Arrays of 2^55 and more elements, which no launch covers, are reported and fail.
llvm::FailureOr<FusionPlan> planFusion(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
                                       DiagnosticEngine &diagnostics, PlanContext &context);
/// The same of one fusion alone.
llvm::FailureOr<FusionPlan> planFusion(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
                                       DiagnosticEngine &diagnostics);

/// A planned kernel for the manifest and launchers.
KernelSpec describeKernel(const FusionGraph &graph, const FusionPlan &plan, const KernelPlan &kernel,
                          llvm::StringRef name);

/// Which instruction of the text a kernel is made for. `source` may be null.
void describeOrigin(const HloInstruction &fusion, const SourceFile *source, KernelSpec &spec);

} // namespace hloc
