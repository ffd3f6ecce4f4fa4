#include "hloc/kernel/Device.h"

#include <algorithm>
#include <cstring>

namespace hloc {

namespace {

class Issuer {
public:
  Issuer(Device &device, const DeviceProgram &program, std::string &error, StepListener *listener)
      : device(device), program(program), error(error), listener(listener) {}

  bool run(const Steps &steps) {
    return std::all_of(steps.begin(), steps.end(), [&](const Step &step) {
      return std::visit([&](const auto &action) { return carryOut(action, step); }, step.action) &&
             (!listener || listener->done(step));
    });
  }

private:
  bool runPart(const Steps &steps, const Step &whole, size_t part) {
    return (!listener || listener->enter(whole, part)) && run(steps) && (!listener || listener->leave(whole, part));
  }

  bool carryOut(const LaunchStep &launch, const Step &) {
    const DeviceKernel &kernel = program.kernels[launch.kernel];
    return !kernel.grid.count() || device.launch({kernel, launch}, error);
  }
  bool carryOut(const CopyStep &copy, const Step &) { return device.copy(copy, error); }
  bool carryOut(const FillStep &fill, const Step &) { return device.fill(fill, error); }
  bool carryOut(const CallStep &call, const Step &) {
    if (call.kind == CallStep::Kind::Library)
      return device.call(call, error);
    error = "external step `" + call.function + "` cannot be carried out here";
    return false;
  }
  bool carryOut(const WhileStep &loop, const Step &step) {
    if (loop.isCounted()) {
      uint64_t left = loop.rounds.value_or(0);
      while (left > 0 && runPart(loop.body, step, 1))
        --left;
      return left == 0;
    }
    for (;;) {
      uint8_t goesOn = 0;
      if (!runPart(loop.condition, step, 0) || !device.download(loop.predicate, &goesOn, error))
        return false;
      if (!goesOn)
        return true;
      if (!runPart(loop.body, step, 1))
        return false;
    }
  }
  bool carryOut(const ConditionalStep &choice, const Step &step) {
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
    return runPart(choice.branches[chosen], step, chosen);
  }

  bool carryOut(const UnsupportedStep &unsupported, const Step &) {
    error = "not compiled: " + unsupported.reason;
    return false;
  }

  Device &device;
  const DeviceProgram &program;
  std::string &error;
  StepListener *listener;
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

bool fillAddresses(Device &device, const std::vector<AddressPiece> &pieces, std::string &bytes, std::string &error) {
  for (const AddressPiece &piece : pieces) {
    uint64_t address = 0;
    if (piece.map) {
      error = "a tensor map is among what memory is filled with; it has to be passed to the kernel";
      return false;
    }
    if (!device.address(piece.slice, address, error))
      return false;
    std::memcpy(&bytes[piece.at], &address, sizeof address);
  }
  return true;
}

bool issueSteps(Device &device, const DeviceProgram &program, const Steps &steps, std::string &error,
                StepListener *listener) {
  return Issuer(device, program, error, listener).run(steps);
}

} // namespace hloc
