#pragma once
// What another right kernel gives, for example: a run in which every op has one of its admissible values, at random.
//
//   FailureOr<DisturbedResult> x = interpretDisturbed(*module, arguments, Backend::Hloc, {/*seed=*/1}, diagnostics);
//
// Where nothing is known of an element (hloc/interp/Bounds.h) a few of these tell how far roundings carry it. They are
// examples, no bounds: what none of them does may still be right. src/decisions/0010.

#include "hloc/interp/Bounds.h"

namespace hloc {

struct Disturbance {
  uint64_t seed = 0;
  /// 1: as a right kernel may. More: every op is off by up to this many times as much. 0: none is.
  double strength = 1;
  /// Each instruction errs in the same direction and by the same part of what it may in all its elements and whenever
  /// it is executed, as one whose function is always a little too large; else by chance.
  bool isBiased = false;
  /// Values are the least or the greatest that are possible, by chance, instead of anything in between.
  bool isExtreme = false;
  /// Each use of a value draws it anew, as kernels do that compute it in several places, and not alike.
  bool isPerUse = false;
  /// Which products of f32 and f64 sums take before they are rounded: any, by chance, or of each sum that of its first
  /// (second) operand, else that of the other one, as fused multiply-adds do.
  enum class Products : uint8_t { ByChance, First, Second } products = Products::ByChance;
};

struct DisturbedResult {
  Literal value;
  /// False if there was an op of which nothing is known even for the values it was given, such as products whose order
  /// is anybody's: what a right kernel does may be anywhere else. Numbers are NaN that were made of it, where ops hand
  /// it on.
  bool isExample = true;
};

/// As interpret(); the same for the same disturbance everywhere. Loops may end later than the reference's, or not
/// before `options.maxLoopSteps`, which is reported.
llvm::FailureOr<DisturbedResult> interpretDisturbed(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                    Backend backend, Disturbance disturbance,
                                                    DiagnosticEngine &diagnostics,
                                                    const InterpreterOptions &options = {});

/// Of an elementwise module (isElementwise), only for some elements: see interpretBoundsAt.
llvm::FailureOr<DisturbedResult> interpretDisturbedAt(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                      llvm::ArrayRef<int64_t> elements, Backend backend,
                                                      Disturbance disturbance, DiagnosticEngine &diagnostics,
                                                      const InterpreterOptions &options = {});

} // namespace hloc
