#include "hloc/support/Check.h"
#include "hloc/transforms/Transforms.h"

namespace hloc {

llvm::ArrayRef<HloPass> hloPipeline() {
  static constexpr HloPass passes[] = {
      {"expand-async", expandAsync, "Replaces asynchronous pairs by calls and copies where they start"},
      {"fold-collectives", foldCollectives,
       "Replaces collectives of one device, and custom calls that are notes, by what they are given"},
      {"inline-calls", inlineCalls, "Replaces calls by what they call, and drops what nothing uses"},
      {"expand-custom-calls", expandCustomCalls, "Replaces calls of libraries whose meaning is public by ops",
       /*rounds=*/true},
      {"expand-product-calls", expandProductCalls,
       "Replaces calls of cuDNN's attention, and of dots scaled by blocks, by dots and a softmax", /*rounds=*/true},
      {"choose-dot-algorithms", chooseDotAlgorithms,
       "Gives dots and convolutions of f32 the algorithm that is wanted where their text leaves it open"},
      {"choose-softmax", chooseSoftmax,
       "Divides results of dots instead of their weights, where one pass over a softmax is wanted"},
      {"expand-solver-calls", expandSolverCalls, "Replaces calls of LAPACK, cuSOLVER and cuSPARSE by ops and loops",
       /*rounds=*/true},
      {"expand-rng", expandRng, "Passes the state of random numbers along, from which they are made"},
      {"expand-random", expandRandom, "Replaces generators of random bits by their arithmetic"},
      {"expand-linear-algebra", expandLinearAlgebra, "Replaces factorisations and solutions of equations by loops",
       /*rounds=*/true},
      {"expand-ffts", expandFfts, "Replaces Fourier transforms by contractions", /*rounds=*/true},
      {"expand-mixed-precision", expandMixedPrecision,
       "Makes reductions in the types of their reducers and rounds what they give"},
      {"expand-windows", expandWindows, "Replaces wide and cumulative windows by several that do less",
       /*rounds=*/true},
      {"expand-scans", expandScans, "Replaces scans by loops"},
      {"separate-control", separateControl, "Gives loops and conditionals computations of their own, in their layouts"},
      {"simplify-tuples", simplifyTuples, "Takes elements of tuples directly from what the tuples are made of"},
      {"expand-batch-norms", expandBatchNorms, "Replaces batch norms by sums, broadcasts and elementwise ops",
       /*rounds=*/true},
      {"expand-sorts", expandSorts,
       "Replaces topk by sorts, and sorts of elements of less than a byte by those of bytes"},
      {"apply-entry-layout", applyEntryLayout,
       "Gives parameters and results of the entry the layouts of its signature"},
      {"expand-vector-products", expandVectorProducts,
       "Of an entry without fusions: replaces products of a matrix and a vector by sums, and those of no sum by "
       "products",
       /*rounds=*/true},
      {"split-reductions", splitReductions,
       "Of an entry without fusions: makes reductions on both sides of a dimension that stays two", /*rounds=*/true},
      {"simplify", simplify, "Of an entry without fusions: does less for the same results, until nothing is found"},
      {"lay-out-factors", layOutFactors,
       "Of an entry without fusions: copies factors of dots along their sums, where tensor cores multiply such faster"},
      {"choose-libraries", chooseLibraries, "Makes dots and convolutions calls of libraries where that is wanted"},
      {"drop-barriers", dropBarriers, "Takes what opt-barriers are given for what they return"},
      {"count-rounds", countRounds, "Says of loops how often they go round, where a counter tells"},
      {"separate-starts", separateStarts, "Makes constants that loops begin with once for each leaf of their state"},
      {"form-fusions", formFusions,
       "Puts the ops between kernels into fusions, and constants into those that read them"},
      {"lift-constants", liftConstants, "Hands large constants to the fusions that read them"},
  };
  return passes;
}

PassResult runPasses(HloModule &module, llvm::ArrayRef<HloPass> passes, HloPassContext &context) {
  PassResult all = PassResult::Unchanged;
  for (const HloPass &pass : passes) {
    if (context.options.disabled.has("hlo", pass.name))
      continue;
    auto begin = HloPassContext::Clock::now();
    PassResult result = pass.run(module, context);
    if (context.afterPass && (context.nesting == 0 || result != PassResult::Unchanged))
      context.afterPass(pass, result, begin, HloPassContext::Clock::now());
    if (result == PassResult::Failed)
      return result;
    if (result == PassResult::Changed)
      all = result;
  }
  return all;
}

PassResult runToFixpoint(HloModule &module, llvm::ArrayRef<HloPass> passes, HloPassContext &context,
                         unsigned maxRounds) {
  for (unsigned round = 0; round < maxRounds; ++round)
    if (PassResult result = runPasses(module, passes, context); result != PassResult::Changed)
      return result == PassResult::Unchanged ? changedIf(round > 0) : result;
  HLOC_UNREACHABLE("HLO passes that should come to rest undo each other");
}

} // namespace hloc
