#include "Schedules.h"

#include "fmt/format.h"

namespace hloc {

using emulator::Schedule;

llvm::FailureOr<std::vector<ScheduledResult>> ScheduleRuns::run(Executor &executor, const std::string &image,
                                                                const DeviceProgram &program, Execution execute,
                                                                const Literal &first, DiagnosticEngine &diagnostics) {
  std::vector<ScheduledResult> different;
  for (Schedule schedule : {Schedule{Schedule::Order::Reversed}, Schedule{Schedule::Order::Shuffled, 1}}) {
    std::unique_ptr<EmulatorDevice> &device = devices[schedule.name()];
    bool ready = true;
    std::string error;
    if (device) {
      ready = device->reset(error);
    } else {
      emulator::EmulatorOptions again = options;
      again.schedule = schedule;
      again.countEvents = false;
      device = std::make_unique<EmulatorDevice>(again, imageName, diagnostics);
      prepare(*device);
      ready = executor.load(*device, image, program);
    }
    llvm::FailureOr<Literal> result = llvm::failure();
    if (ready)
      result = execute(*device);
    if (failed(result)) {
      diagnostics.report(DiagnosticKind::KernelFinding,
                         fmt::format("this is found with blocks and warps in the order `{}`, not in the order `{}`; "
                                     "--schedule={} runs it alone",
                                     schedule.name(), options.schedule.name(), schedule.name()));
      return llvm::failure();
    }
    if (!(*result == first))
      different.push_back({schedule.name(), std::move(*result)});
  }
  return different;
}

} // namespace hloc
