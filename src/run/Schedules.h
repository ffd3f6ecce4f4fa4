#pragma once
// The same program again with blocks and warps in other orders (hloc/emulator, Schedule). A kernel without races whose
// threads meet by barriers and fences alone gives the same results in any order; one with atomics or volatile accesses
// need not, and must then be right in each.

#include "Execute.h"

#include <functional>
#include <map>
#include <memory>

namespace hloc {

struct ScheduledResult {
  std::string schedule;
  Literal value;
};

/// The runs in other orders, each on a device of its own that serves all arguments.
class ScheduleRuns {
public:
  /// `prepare` makes a new device ready as the first one is.
  ScheduleRuns(const emulator::EmulatorOptions &options, std::string imageName,
               std::function<void(EmulatorDevice &)> prepare)
      : options(options), imageName(std::move(imageName)), prepare(std::move(prepare)) {}

  /// Runs `program` on a device that is ready, and gives its result.
  using Execution = llvm::function_ref<llvm::FailureOr<Literal>(EmulatorDevice &)>;

  /// Runs `program` reversed and shuffled. Results that differ from `first` in any bit, for the comparison with the
  /// reference. Fails where a check finds something; the diagnostic names the schedule.
  llvm::FailureOr<std::vector<ScheduledResult>> run(Executor &executor, const std::string &image,
                                                    const DeviceProgram &program, Execution execute,
                                                    const Literal &first, DiagnosticEngine &diagnostics);

private:
  emulator::EmulatorOptions options;
  std::string imageName;
  std::function<void(EmulatorDevice &)> prepare;
  std::map<std::string, std::unique_ptr<EmulatorDevice>> devices; ///< by the name of the schedule
};

} // namespace hloc
