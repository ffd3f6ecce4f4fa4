#include "hloc/kernel/Device.h"

#include <algorithm>
#include <cstring>

namespace hloc {

namespace {

class Issuer {
public:
  Issuer(Device &device, const DeviceProgram &program, std::string &error)
      : device(device), program(program), error(error) {}

  bool run(const Steps &steps) {
    return std::all_of(steps.begin(), steps.end(), [&](const Step &step) { return std::visit(*this, step.action); });
  }

  bool operator()(const LaunchStep &launch) {
    const DeviceKernel &kernel = program.kernels[launch.kernel];
    return !kernel.grid.count() || device.launch({kernel, launch}, error);
  }
  bool operator()(const CopyStep &copy) { return device.copy(copy, error); }
  bool operator()(const FillStep &fill) { return device.fill(fill, error); }
  bool operator()(const CallStep &call) {
    error = (call.kind == CallStep::Kind::Library ? "library function `" : "external step `") + call.function +
            "` cannot be carried out here";
    return false;
  }
  bool operator()(const WhileStep &loop) {
    for (;;) {
      uint8_t goesOn = 0;
      if (!run(loop.condition) || !device.download(loop.predicate, &goesOn, error))
        return false;
      if (!goesOn)
        return true;
      if (!run(loop.body))
        return false;
    }
  }
  bool operator()(const ConditionalStep &choice) {
    size_t numBranches = choice.branches.size(), chosen = 0;
    if (choice.selector.bytes == 1) {
      uint8_t holds = 0;
      if (!device.download(choice.selector, &holds, error))
        return false;
      chosen = holds ? 0 : 1;
    } else {
      int32_t index = 0;
      if (!device.download(choice.selector, &index, error))
        return false;
      chosen = index < 0 || size_t(index) >= numBranches ? numBranches - 1 : size_t(index);
    }
    return run(choice.branches[chosen]);
  }

  bool operator()(const UnsupportedStep &unsupported) {
    error = "not compiled: " + unsupported.reason;
    return false;
  }

private:
  Device &device;
  const DeviceProgram &program;
  std::string &error;
};

} // namespace

const Step *findUnsupported(const Steps &steps) {
  const Step *found = nullptr;
  forEachStep(steps, [&](const Step &step) {
    if (!found && std::holds_alternative<UnsupportedStep>(step.action))
      found = &step;
  });
  return found;
}

std::string describeUnsupported(const Step &step) {
  return "step `" + step.name + "` was not compiled: " + std::get<UnsupportedStep>(step.action).reason;
}

bool issueSteps(Device &device, const DeviceProgram &program, const Steps &steps, std::string &error) {
  return Issuer(device, program, error).run(steps);
}

} // namespace hloc
