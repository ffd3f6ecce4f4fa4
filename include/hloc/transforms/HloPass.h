#pragma once
// An HLO pass changes a module in place and says whether it did. What passes share - options, the target, diagnostics,
// statistics - is one context.
//
//   std::unique_ptr<HloModule> fused = cloneModule(module);   // passes change their module: keep the source if needed
//   HloPassContext context(diagnostics);
//   if (runPasses(*fused, hloPipeline(), context) == PassResult::Failed) return;   // reported
//
// A module that passes change is made by cloneModule, which leaves no control predecessors: the order of the
// instructions is the order. Between passes callees come before callers and operands before users.

#include "hloc/fusion/ForcedChoices.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/search/FusionPolicy.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/DisabledPasses.h"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hloc {

enum class PassResult { Unchanged, Changed, Failed };

inline PassResult changedIf(bool changed) { return changed ? PassResult::Changed : PassResult::Unchanged; }

/// How often something was done, by name: `common-subexpressions.merged`, or a rule of the simplifier. In order of the
/// names. `--timing` prints it.
class HloStatistics {
public:
  void add(llvm::StringRef name, size_t count) {
    if (count)
      counts[name.str()] += count;
  }
  size_t of(llvm::StringRef name) const {
    auto found = counts.find(name.str());
    return found == counts.end() ? 0 : found->second;
  }
  const std::map<std::string, size_t> &all() const { return counts; }

private:
  std::map<std::string, size_t> counts;
};

/// What becomes of a module's fusions.
enum class FusionMode {
  Keep, ///< those that arrive stay; modules without any are fused
  Redo, ///< those that arrive are dissolved, and all is fused
  None  ///< those that arrive are dissolved, and every op is a kernel
};

/// As what dots and convolutions of f32 are multiplied where their text leaves it open.
enum class F32Dots {
  F32, ///< as they are
  Tf32 ///< by tensor cores that have it: factors rounded to 11 bits, sums in f32
};

/// Where weights that are a softmax are rounded, if a dot adds up their products.
enum class SoftmaxChoice {
  Strict, ///< divided, as the HLO says
  Online  ///< undivided, at any scale; the dot's results are divided
};

/// What multiplies: dots, or convolutions.
enum class Multiplier {
  Own,     ///< kernels
  Library, ///< cuBLASLt or cuDNN, wherever they can
  Auto     ///< whichever is faster by the cost model
};

struct HloPassOptions {
  FusionMode fusion = FusionMode::Keep;
  F32Dots f32Dots = F32Dots::F32;
  SoftmaxChoice softmax = SoftmaxChoice::Strict;
  Multiplier dots = Multiplier::Own, convolutions = Multiplier::Own;
  /// Inlining refuses to make a computation larger than this. Nested calls multiply: 25 levels of two calls each, a
  /// text of 100 lines, would take 2^25 instructions, 10 GB. The largest real module known here has 44,000.
  size_t maxInstructions = 4'000'000;
  /// Rules that may change the results of floats and are to be applied nevertheless, by name (rewriteRows()).
  std::vector<std::string> fastMath;
  DisabledPasses disabled;        ///< passes, and rules of the simplifier
  std::vector<ForcedEdge> forced; ///< what is to be one kernel, or two
};

struct HloPass;

struct HloPassContext {
  explicit HloPassContext(DiagnosticEngine &diagnostics) : diagnostics(diagnostics) {}

  using Clock = std::chrono::steady_clock;
  /// Called after each pass of runPasses and runToFixpoint, of those within another pass only after those that have
  /// changed something: for dumps and timing.
  std::function<void(const HloPass &pass, PassResult result, Clock::time_point begin, Clock::time_point end)> afterPass;
  DiagnosticEngine &diagnostics;
  HloPassOptions options;
  TargetInfo target = *findTarget("sm_90"); ///< whose kernels fusions become; the default of the command line
  HloStatistics statistics;
  FusionExplanation *explanation = nullptr; ///< null: nobody wants to know
  /// Is told why something is done or not, by the kind of a remark; unset: nobody wants to know.
  std::function<void(DiagnosticKind kind, const HloInstruction &instr, const std::string &message)> remark;
  unsigned nesting = 0; ///< passes that the one that runs is a part of
};

/// A pass that returns Failed has reported why; the module is then of no use. One that returns Unchanged has changed
/// nothing, not even an order or a name.
struct HloPass {
  llvm::StringRef name;
  PassResult (*run)(HloModule &, HloPassContext &);
  llvm::StringRef summary = ""; ///< for `--list-passes`: what it does, one sentence without a full stop
  bool rounds = false;          ///< computes the same by other ops, which may round elsewhere
};

/// Each once, in order, up to the first that fails.
PassResult runPasses(HloModule &module, llvm::ArrayRef<HloPass> passes, HloPassContext &context);

/// Over and over until none of them changes anything. Passes that undo each other are a bug of ours: it ends after
/// `maxRounds`, far more than passes that make something smaller take.
PassResult runToFixpoint(HloModule &module, llvm::ArrayRef<HloPass> passes, HloPassContext &context,
                         unsigned maxRounds = 50);

} // namespace hloc
