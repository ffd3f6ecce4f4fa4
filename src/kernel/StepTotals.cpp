#include "hloc/kernel/StepTotals.h"

#include <algorithm>

namespace hloc {

namespace {

void add(StepTotals &to, const StepTotals &from, double times) {
  for (size_t i = 0; i < to.launches.size(); ++i)
    to.launches[i] += from.launches[i] * times;
  for (const LibraryTotals &call : from.calls) {
    auto isSame = [&](const LibraryTotals &other) {
      return other.step == call.step && other.configuration == call.configuration;
    };
    auto known = std::find_if(to.calls.begin(), to.calls.end(), isSame);
    if (known == to.calls.end()) {
      to.calls.push_back(call);
      to.calls.back().times = call.times * times;
    } else {
      known->times += call.times * times;
    }
  }
  to.copies += from.copies * times;
  to.fills += from.fills * times;
  to.bytesCopied += from.bytesCopied * times;
  to.bytesFilled += from.bytesFilled * times;
  to.seconds += from.seconds * times;
  to.starts += from.starts * times;
  to.decisions += from.decisions * times;
  to.openLoops += from.openLoops;
}

class Adder {
public:
  Adder(llvm::ArrayRef<double> secondsOfKernel, const DeviceModel &device)
      : secondsOfKernel(secondsOfKernel), device(device) {}

  StepTotals sum(const Steps &steps) const {
    StepTotals all = nothing();
    for (const Step &step : steps)
      add(all, std::visit([&](const auto &action) { return of(action, step); }, step.action), 1);
    return all;
  }

private:
  StepTotals nothing() const {
    StepTotals none;
    none.launches.resize(secondsOfKernel.size());
    return none;
  }
  StepTotals of(const LaunchStep &launch, const Step &) const {
    StepTotals one = nothing();
    one.launches[launch.kernel] = one.starts = 1;
    one.seconds = secondsOfKernel[launch.kernel];
    return one;
  }
  StepTotals of(const CopyStep &copy, const Step &) const {
    StepTotals one = nothing();
    one.copies = one.starts = 1;
    one.bytesCopied = double(copy.to.bytes);
    one.seconds = secondsToMove(2 * one.bytesCopied, device);
    return one;
  }
  StepTotals of(const FillStep &fill, const Step &) const {
    StepTotals one = nothing();
    one.fills = one.starts = 1;
    one.bytesFilled = double(fill.to.bytes);
    one.seconds = secondsToMove(one.bytesFilled, device);
    return one;
  }
  StepTotals of(const WhileStep &loop, const Step &) const {
    const double rounds = double(loop.rounds.value_or(1));
    StepTotals all = nothing();
    add(all, sum(loop.condition), rounds + 1);
    add(all, sum(loop.body), rounds);
    all.decisions += loop.isCounted() ? 0 : rounds + 1;
    all.openLoops += loop.rounds ? 0 : 1;
    return all;
  }
  StepTotals of(const ConditionalStep &choice, const Step &) const {
    StepTotals longest = nothing();
    for (const Steps &branch : choice.branches)
      if (StepTotals one = sum(branch); one.seconds >= longest.seconds)
        longest = std::move(one);
    ++longest.decisions;
    return longest;
  }
  StepTotals of(const CallStep &call, const Step &step) const {
    StepTotals one = nothing();
    if (call.kind == CallStep::Kind::External)
      return one; // nobody knows
    const LibraryCost cost = libraryCost(call, device);
    one.calls.push_back({step.name, call.function, call.configuration, cost, 1});
    one.seconds = cost.seconds;
    one.starts = 1;
    return one;
  }
  StepTotals of(const UnsupportedStep &, const Step &) const { return nothing(); }

  llvm::ArrayRef<double> secondsOfKernel;
  const DeviceModel &device;
};

} // namespace

StepTotals totalsOf(const Steps &steps, llvm::ArrayRef<double> secondsOfKernel, const DeviceModel &device) {
  return Adder(secondsOfKernel, device).sum(steps);
}

} // namespace hloc
