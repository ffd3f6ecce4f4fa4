#pragma once
// BoundMachine: runs computations as Machine does, with bounds beside the values.

#include "interp/BoundElementwise.h"
#include "interp/FusedSums.h"
#include "interp/NormSteps.h"
#include "interp/RandomDraw.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

namespace hloc::interp {

class BoundMachine {
public:
  BoundMachine(DiagnosticEngine &diagnostics, const InterpreterOptions &options, Backend backend)
      : machine(diagnostics, options), backend(backend) {}

  /// From now on every op has one of its admissible values, drawn at random, and no bounds: the run of a right kernel.
  void drawValues(Disturbance disturbance) {
    draw.emplace(disturbance, backend);
    if (disturbance.products != Disturbance::Products::ByChance)
      fused.emplace(disturbance.products == Disturbance::Products::Second);
  }
  /// From now on there are values alone, those of the reference.
  void leaveOutBounds() { isBounded = false; }
  bool isExample() const { return !draw || !draw->hasMetUnknown(); }

  /// `lift`: the computation is one of scalars, done on all elements of arrays of this shape's dimensions at once.
  llvm::FailureOr<Bounded> run(const HloComputation &computation, std::vector<Bounded> arguments,
                               const Shape *lift = nullptr);

  EffortMeter &meter() { return machine.meter; }
  /// The most steps that a loop has taken.
  uint64_t mostLoopSteps() const { return loopSteps; }

private:
  struct Facts {
    explicit Facts(const HloComputation &computation);
    llvm::DenseSet<const HloInstruction *> mayBeAddedTo; ///< whose results reach a sum, directly or moved
    /// Of x = max(x, y), however its sides are written: x and y.
    llvm::DenseMap<const HloInstruction *, std::pair<const HloInstruction *, const HloInstruction *>> choices;
    llvm::DenseSet<const HloInstruction *> compared; ///< by these
  };
  const Facts &factsOf(const HloComputation &computation);

  using Result = llvm::FailureOr<Bounded>;
  Result evaluate(const HloInstruction &instr, std::vector<Bounded> &operands, const Shape *lift);
  Result evaluateBounds(const HloInstruction &instr, std::vector<Bounded> &operands, const Shape *lift);
  /// Whether the greater or the lesser of two numbers is the one, which is known where their order is.
  Result evaluateChoice(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, const Bounded &one,
                        const Bounded &other, const Shape *lift);
  Result callee(const HloInstruction &instr, std::vector<Bounded> &operands, const Shape *lift);
  Result whileLoop(const HloInstruction &instr, std::vector<Bounded> &operands);
  Result conditional(const HloInstruction &instr, std::vector<Bounded> &operands);
  Result map(const HloInstruction &instr, std::vector<Bounded> &operands, const Shape *lift);
  /// As the steps that are made of it.
  Result batchNorm(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands);
  void admitEitherZero(const HloInstruction &instr, Bounded &result) const;
  void admitOrdersOfProducts(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) const;
  Result reduce(const HloInstruction &instr, std::vector<Bounded> &operands);
  /// Any reducer, combined in a tree.
  llvm::LogicalResult fold(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result);
  /// Does it matter to the floats that a reducer returns which of two floats is the first, or, if one is a NaN, to any
  /// of its results?
  llvm::FailureOr<bool> dependsOnOrder(const HloInstruction &instr, double one, double other);
  /// Of a reducer that does so with NaNs: nothing is known of results that a NaN is among the operands of.
  void openResultsOfNans(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) const;
  void openSignsOfZeros(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result) const;
  /// Bounds of an op that runs no other computations.
  llvm::LogicalResult boundOp(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result,
                              bool keepUnrounded);
  /// Running sums (isSumScan).
  void boundScan(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result);
  /// Everything without rules of its own: the hull of what the op makes of values, lowest and highest operands.
  llvm::LogicalResult boundByEnds(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result);
  llvm::FailureOr<Literal> errorOfLinear(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands);
  /// What follows the keys of a sort, or says where they were, is open where their order is.
  llvm::LogicalResult boundSort(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result);
  llvm::LogicalResult boundTopK(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result);
  llvm::FailureOr<BoundsPtr> boundMovement(const BoundStep &step, bool ofProducts);
  llvm::FailureOr<BoundsPtr> boundOpenMovement(const BoundStep &step, bool ofProducts);
  llvm::LogicalResult boundArray(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, Bounded &result,
                                 bool keepUnrounded);
  llvm::FailureOr<Value> valueOf(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands, const Shape *lift);

  /// Of what a fold combines the bounds of its result say all.
  bool draws() const { return draw && orderRoundings == 0; }

  Machine machine;
  Backend backend;
  llvm::DenseMap<const HloComputation *, std::unique_ptr<Facts>> facts;
  std::map<const HloInstruction *, std::vector<std::unique_ptr<HloModule>>> normSteps;
  std::optional<RandomDraw> draw;
  std::optional<FusedSums> fused;
  bool isBounded = true;
  uint64_t loopSteps = 0;
  double orderRoundings = 0; ///< inside of a fold: BoundStep::orderRoundings
  unsigned depth = 0;
  uint64_t liveBytes = 0; ///< of values and bounds that the running computations hold
};

} // namespace hloc::interp
