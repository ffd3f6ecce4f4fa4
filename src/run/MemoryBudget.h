#pragma once
// --memory: how much of it `hloc run` may take. What is known beforehand to need more is refused before it is made; the
// interpreter refuses what does not fit into the rest (InterpreterOptions::maxBytes).

#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Device.h"
#include "hloc/run/RunOptions.h"
#include "hloc/support/Diagnostics.h"

namespace hloc {

/// Bytes that the machine has, or fewer where the system grants this process no more.
uint64_t machineMemory();

class MemoryBudget {
public:
  explicit MemoryBudget(const RunOptions &options);

  /// What a run on host memory takes besides the reference: arguments, the device's memory, results. `program` is null
  /// where a device of its own, or none, has the memory. False, with a diagnostic, if it is over the budget.
  bool admit(const HloModule &module, const DeviceProgram *program, bool compares, DiagnosticEngine &diagnostics);

  /// For values that the interpreter makes, of the steps of a program and of the program: while a program runs, its
  /// memory is there as well.
  uint64_t forSteps() const { return rest(arguments + results + device); }
  uint64_t forReference() const { return rest(arguments + results); }
  uint64_t forArguments() const { return rest(0); }

private:
  uint64_t rest(uint64_t taken) const;

  uint64_t bytes;
  bool isGiven; ///< else the interpreter's own limit holds as well
  bool checksBounds, checksUninit, checksRaces;
  uint64_t arguments = 0, results = 0, device = 0;
};

} // namespace hloc
