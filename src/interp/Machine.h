#pragma once
// Machine: runs computations instruction by instruction; Step: what the function of one opcode is given.

#include "hloc/interp/Interpreter.h"
#include "interp/Effort.h"
#include "interp/Value.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Twine.h"

#include <memory>

namespace hloc::interp {

class Machine;

/// One instruction being evaluated.
struct Step {
  const HloInstruction &instr;
  /// The function may take operands out of this list (`Value::take`), which avoids a copy where it is their last use.
  llvm::MutableArrayRef<Value> operands;
  Machine &machine;
  /// Instead of the instruction's own shape: operands that hold other elements in the same places (bounds), or scalar
  /// arithmetic done on a whole array of operands.
  const Shape *as = nullptr;

  const Literal &array(unsigned i) const { return operands[i].array(); }
  const Shape &shape() const { return as ? *as : instr.shape(); }
  /// Reports the reason at the instruction.
  llvm::LogicalResult unsupported(const llvm::Twine &reason, DiagnosticKind kind = DiagnosticKind::UnsupportedFeature);
};

using Evaluator = llvm::FailureOr<Value> (*)(Step &step);

/// What the interpreter does with an opcode: exactly one of the two is set.
struct OpcodeRule {
  Evaluator evaluate = nullptr;
  const char *refusal = nullptr; ///< why not
};
OpcodeRule opcodeRule(Opcode opcode);

/// Bytes that the instruction allocates for its value; some pass on what they are given.
uint64_t ownBytes(const HloInstruction &instr);

class Machine {
public:
  Machine(DiagnosticEngine &diagnostics, const InterpreterOptions &options)
      : diagnostics(diagnostics), options(options), rngState(options.seed), meter(options.progress) {}

  /// Values of parameters in order, given up so that their last use may overwrite them. Reports and fails on anything
  /// unsupported.
  llvm::FailureOr<Value> run(const HloComputation &computation, std::vector<Value> arguments);

  /// One instruction by the rule of its opcode; `as` is Step::as.
  llvm::FailureOr<Value> evaluate(const HloInstruction &instr, llvm::MutableArrayRef<Value> operands,
                                  const Shape *as = nullptr);

  /// Reports that the instruction's value goes beyond InterpreterOptions::maxBytes.
  llvm::LogicalResult refuseForMemory(const HloInstruction &instr);

  DiagnosticEngine &diagnostics;
  const InterpreterOptions &options;
  /// Hidden state of rng and rng-get-and-update-state.
  uint64_t rngState;
  EffortMeter meter;

  /// Calls nest at most this deep: each level takes some of the machine stack.
  static constexpr unsigned maxDepth = 500;

  /// For every instruction, the operands that nobody needs afterwards, and whether its own value is needed at all.
  struct Schedule {
    explicit Schedule(const HloComputation &computation);
    std::vector<uint32_t> lastUse; ///< by id: id of the last user; own id without users, ~0 for the root
  };
  const Schedule &scheduleOf(const HloComputation &computation);

private:
  llvm::LogicalResult admit(const HloInstruction &instr);

  llvm::DenseMap<const HloComputation *, std::unique_ptr<Schedule>> schedules;
  unsigned depth = 0;
  /// Of the values held by the running computations; what a value is moved into or shared with is not counted again.
  uint64_t liveBytes = 0;
};

} // namespace hloc::interp
