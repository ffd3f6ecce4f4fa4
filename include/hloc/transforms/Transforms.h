#pragma once
// HLO -> HLO passes. Together those of hloPipeline() bring a module into the normal form the planner takes: an entry of
// parameters, constants, fusions, the structure between them (tuple, get-tuple-element, bitcast), and loops and
// conditionals of computations that are in normal form as well and nobody else's.

#include "hloc/transforms/HloPass.h"

namespace hloc {

/// Asynchronous pairs -> what they do, called, copied or exchanged where it starts; domain and add-dependency -> their
/// operand. A start that ends in another computation stays.
PassResult expandAsync(HloModule &module, HloPassContext &context);

/// Collectives in which each device is alone, and custom calls that only note something (`Sharding`) -> their operands.
PassResult foldCollectives(HloModule &module, HloPassContext &context);

/// Replaces every `call`, and every fusion unless HloPassOptions::fusion keeps them, by the body it calls, in all
/// computations reachable from the entry; drops what is unreachable
/// and what nothing uses. jax writes `jax.nn.gelu` as a call, so this comes before fusion. Refuses to make a
/// computation larger than HloPassOptions::maxInstructions.
PassResult inlineCalls(HloModule &module, HloPassContext &context);

/// Gives each while and conditional between kernels computations of its own, with the layouts of its operands and
/// result, with copies where the text has others. Refuses nesting that is very deep, and texts whose copies multiply to
/// more than HloPassOptions::maxInstructions.
PassResult separateControl(HloModule &module, HloPassContext &context);

/// batch-norm-inference, -training and -grad -> sums over the elements of a feature, broadcasts and elementwise ops, in
/// a wider type where that is narrow: results are rounded once.
PassResult expandBatchNorms(HloModule &module, HloPassContext &context);

/// topk -> a stable sort of the values with their positions, and slices of both; a sort of elements of less than a byte
/// -> one of bytes.
PassResult expandSorts(HloModule &module, HloPassContext &context);

/// Custom calls whose meaning is public -> ops: TopK, cuDNN's convolutions, cuBLAS's products, CUB's sorts. Where
/// HloPassOptions::dots or ::convolutions wants libraries, calls of theirs that are steps stay, with the mark of
/// LibraryMark.h.
PassResult expandCustomCalls(HloModule &module, HloPassContext &context);

/// A dot or convolution of f32 of which HloPassOptions::f32Dots decides: it has no algorithm, all of its precisions are
/// the default, no factor has been converted from a type of at most 8 bits, and not both are narrower types' values,
/// which are multiplied as they are.
bool isPlainF32Product(const HloInstruction &instr);
/// These -> the same with `algorithm=dot_tf32_tf32_f32`, where that is wanted.
PassResult chooseDotAlgorithms(HloModule &module, HloPassContext &context);

/// Factors of dots -> copies of them that lie along the sums, where the entry has no fusions and ops are to be fused:
/// of 8 bits and of tf32, for targets whose warpgroups multiply only such, and where that takes less time by the model.
PassResult layOutFactors(HloModule &module, HloPassContext &context);

/// Dots -> calls of cuBLASLt, convolutions -> calls of cuDNN, with the mark of LibraryMark.h, where
/// HloPassOptions::dots and ::convolutions want that and the library has them in their layouts; what is said of each is
/// a remark.
PassResult chooseLibraries(HloModule &module, HloPassContext &context);
/// Calls with the mark -> what they mean, in ops: what steps that carry them out are compared with.
PassResult expandLibraryCalls(HloModule &module, HloPassContext &context);

/// Dots of what a softmax has divided and rounded -> dots of what is rounded undivided, with the mark of
/// OnlineSoftmax.h, whose results are divided, where HloPassOptions::softmax wants that.
PassResult chooseSoftmax(HloModule &module, HloPassContext &context);

/// rng and rng-get-and-update-state -> rng-bit-generator on a counter that is 0 when the entry starts and goes through
/// its loops. Not where branches or conditions of loops draw.
PassResult expandRng(HloModule &module, HloPassContext &context);

/// rng-bit-generator -> the arithmetic of its generator, bit for bit.
PassResult expandRandom(HloModule &module, HloPassContext &context);

/// Calls of cuDNN's attention (hlo/AttentionCall.h) and of dots scaled by blocks -> dots and a softmax.
PassResult expandProductCalls(HloModule &module, HloPassContext &context);
bool isProductCall(const HloInstruction &instr); ///< one of these

/// Calls of LAPACK, cuSOLVER and cuSPARSE that hlo/SolverCall.h knows, but for potrf -> triangular-solve, dots, and
/// loops of Householder's reflections, Gauss's eliminations and Jacobi's rotations, in f64 or c128, rounded once.
PassResult expandSolverCalls(HloModule &module, HloPassContext &context);

/// cholesky, potrf of LAPACK and cuSOLVER and triangular-solve -> loops over columns and rows, in f64 or c128, rounded
/// once.
PassResult expandLinearAlgebra(HloModule &module, HloPassContext &context);

/// fft -> contractions with matrices of roots of one, in c128, rounded once.
PassResult expandFfts(HloModule &module, HloPassContext &context);

/// Windows that read each element again and again, cumulative ones among them, -> several that do less; associative
/// scans of one op -> cumulative windows.
PassResult expandWindows(HloModule &module, HloPassContext &context);

/// Reductions that round what their reducers give -> reductions in the reducers' types, and conversions.
PassResult expandMixedPrecision(HloModule &module, HloPassContext &context);
/// Whether tuples, calls and loops hand on what they are given in the type that it has. HLO lets floats differ there,
/// and says nothing of how. False, with a diagnostic, where they do.
bool handsOnInOneType(const HloModule &module, DiagnosticEngine &diagnostics);

/// scan -> a loop over the positions of its dimension.
PassResult expandScans(HloModule &module, HloPassContext &context);

/// Makes parameters and results of the entry have the layouts of `entry_computation_layout`, with copies where the body
/// has others. Example: `->f32[2,3]{0,1}` over a root f32[2,3]{1,0} adds `copy` to f32[2,3]{0,1}.
PassResult applyEntryLayout(HloModule &module, HloPassContext &context);

/// opt-barrier -> its operand, once nothing moves across any more: what is fused does not depend on it.
PassResult dropBarriers(HloModule &module, HloPassContext &context);

/// while whose counter tells how often it goes round -> the same with a `known_trip_count` in its `backend_config`.
PassResult countRounds(HloModule &module, HloPassContext &context);

/// Constants, their broadcasts and iotas that several leaves of loops begin with, or others read too -> one for each
/// leaf.
PassResult separateStarts(HloModule &module, HloPassContext &context);

/// Forms fusions so that the entry, and the computations that control flow in it runs, are in normal form:
/// * a headerless text without a fusion or sort is one fusion body (as XLA's emitter fixtures are);
/// * computations of plain ops are divided into the fusions that are estimated to take least time together: producers
/// go
///   into all that read them, or stay in memory; what is read together is computed together (decisions/0008);
/// * in a module that calls fusions there, every remaining plain op becomes a fusion of its own.
/// Constants move into the fusions that read them.
PassResult formFusions(HloModule &module, HloPassContext &context);

/// Constants of more than 1 KiB in the bodies of fusions -> operands, equal ones of a computation the same, so that
/// they lie in memory once instead of in the code of each kernel. Not those of equal elements, which are computed.
PassResult liftConstants(HloModule &module, HloPassContext &context);

/// Erases computations that nothing calls and instructions that nothing needs: not the root, no parameter, no side
/// effect, and not used by one that is needed.
PassResult eraseDeadCode(HloModule &module, HloPassContext &context);

/// Of equal instructions of a computation the first is kept: same opcode, shape with layout, operands, attributes
/// (metadata, origin and statistics aside), literal, called computations. Not those with side effects.
PassResult mergeCommonSubexpressions(HloModule &module, HloPassContext &context);

/// get-tuple-element of a tuple -> its element; a tuple of all the elements of a tuple, in order -> that tuple. Copies
/// where an element has another layout than its tuple says.
PassResult simplifyTuples(HloModule &module, HloPassContext &context);

/// Applies rules about an instruction and what it reads: `hloc --list-rewrites` lists them. Every bit of the results
/// stays, but for the payloads of NaNs and where HloPassOptions::fastMath names rules.
PassResult simplifyAlgebra(HloModule &module, HloPassContext &context);

/// A rule of simplifyAlgebra, for lists of them.
struct RewriteRow {
  llvm::StringRef name, summary;
  bool isFastMath; ///< may change the results of floats: applied only where HloPassOptions::fastMath names it
};
/// Each name once, in the order in which they are tried.
std::vector<RewriteRow> rewriteRows();

/// Leaves of the state of loops that are always constants -> these; two that are always equal -> one; those that
/// nothing needs, or that stay what they were -> none.
PassResult simplifyLoops(HloModule &module, HloPassContext &context);

/// while of few rounds that only compute and move elements -> the rounds, one after the other; one round -> its body;
/// no round -> what it is given. jax writes its random numbers as such loops: four rounds of arithmetic on two words.
PassResult unrollLoops(HloModule &module, HloPassContext &context);

/// conditional whose branches only compute and move a few elements -> all branches, and selects of what they give.
PassResult selectBranches(HloModule &module, HloPassContext &context);

/// Ops whose operands are all constants -> constants, where the result is at most 1 KiB and no larger than they are
/// together, and every right implementation gives the same bits.
PassResult foldConstants(HloModule &module, HloPassContext &context);

/// dot of which one side has no dimension of its own of more than one element -> multiply and reduce, where the entry
/// has no fusions and ops are to be fused: these are bound by the bytes of the other side, as reductions are.
PassResult expandVectorProducts(HloModule &module, HloPassContext &context);

/// reduce of dimensions on both sides of one that stays, with another that stays inside of all -> two reductions of
/// columns, where the entry has no fusions and ops are to be fused. Of sums that may be in any order, of extremes and
/// of logic.
PassResult splitReductions(HloModule &module, HloPassContext &context);

/// simplificationPasses() to a fixpoint, where the entry has no fusions: those that arrive are left as they are, and so
/// is a headerless text that is the body of one.
PassResult simplify(HloModule &module, HloPassContext &context);
llvm::ArrayRef<HloPass> simplificationPasses();

/// The passes of a compilation in order; `--dump-after-each-pass` shows the module after each.
llvm::ArrayRef<HloPass> hloPipeline();

} // namespace hloc
