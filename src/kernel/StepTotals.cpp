#include "hloc/kernel/StepTotals.h"

namespace hloc {

namespace {

void add(StepTotals &to, const StepTotals &from, double times) {
  for (size_t i = 0; i < to.launches.size(); ++i)
    to.launches[i] += from.launches[i] * times;
  to.copies += from.copies * times;
  to.fills += from.fills * times;
  to.bytesCopied += from.bytesCopied * times;
  to.bytesFilled += from.bytesFilled * times;
  to.seconds += from.seconds * times;
  to.openLoops += from.openLoops;
}

class Adder {
public:
  Adder(llvm::ArrayRef<double> secondsOfKernel, const DeviceModel &device)
      : secondsOfKernel(secondsOfKernel), device(device) {}

  StepTotals sum(const Steps &steps) const {
    StepTotals all = nothing();
    for (const Step &step : steps)
      add(all, std::visit([&](const auto &action) { return of(action); }, step.action), 1);
    return all;
  }

private:
  StepTotals nothing() const {
    StepTotals none;
    none.launches.resize(secondsOfKernel.size());
    return none;
  }
  StepTotals of(const LaunchStep &launch) const {
    StepTotals one = nothing();
    one.launches[launch.kernel] = 1;
    one.seconds = secondsOfKernel[launch.kernel];
    return one;
  }
  StepTotals of(const CopyStep &copy) const {
    StepTotals one = nothing();
    one.copies = 1;
    one.bytesCopied = double(copy.to.bytes);
    one.seconds = secondsToMove(2 * one.bytesCopied, device);
    return one;
  }
  StepTotals of(const FillStep &fill) const {
    StepTotals one = nothing();
    one.fills = 1;
    one.bytesFilled = double(fill.to.bytes);
    one.seconds = secondsToMove(one.bytesFilled, device);
    return one;
  }
  StepTotals of(const WhileStep &loop) const {
    const double rounds = double(loop.rounds.value_or(1));
    StepTotals all = nothing();
    add(all, sum(loop.condition), rounds + 1);
    add(all, sum(loop.body), rounds);
    all.openLoops += loop.rounds ? 0 : 1;
    return all;
  }
  StepTotals of(const ConditionalStep &choice) const {
    StepTotals longest = nothing();
    for (const Steps &branch : choice.branches)
      if (StepTotals one = sum(branch); one.seconds >= longest.seconds)
        longest = std::move(one);
    return longest;
  }
  StepTotals of(const CallStep &) const { return nothing(); } // nobody knows
  StepTotals of(const UnsupportedStep &) const { return nothing(); }

  llvm::ArrayRef<double> secondsOfKernel;
  const DeviceModel &device;
};

} // namespace

StepTotals totalsOf(const Steps &steps, llvm::ArrayRef<double> secondsOfKernel, const DeviceModel &device) {
  return Adder(secondsOfKernel, device).sum(steps);
}

} // namespace hloc
