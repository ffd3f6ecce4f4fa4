#pragma once
// Runs a compiled module on a device: inputs to its buffers, steps, results back as literals.

#include "EmulatorDevice.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Literal.h"
#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/run/RunOptions.h"

#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// How the emulator runs.
emulator::EmulatorOptions emulatorOptions(const RunOptions &options);

/// What a value of this shape consists of: one for each leaf, in their order. They are parts of `value`; a token may be
/// the empty tuple that the interpreter has for it.
std::vector<const Literal *> leavesOf(const Literal &value, const Shape &shape);
/// The value of this shape that has these leaves.
Literal joinLeaves(const Shape &shape, std::vector<Literal> leaves);
/// The array of this shape, in its layout, that `slice` of a device begins with; or, without asking the device, the
/// token. None after an error, which is empty where the device has reported it itself.
std::optional<Literal> downloadLeaf(Device &device, BufferSlice slice, const Shape &shape, std::string &error);

/// By buffer: whether a step may write it.
std::vector<bool> findWritten(const DeviceProgram &program);

class Executor {
public:
  Executor(const HloModule &module, CompileObserver &timing, DiagnosticEngine &diagnostics)
      : module(module), timing(timing), diagnostics(diagnostics) {}

  std::optional<DeviceProgram> programOf(const Manifest &manifest);
  std::optional<DeviceProgram> programOf(const LaunchDescription &description);
  /// Makes the device ready for execute(): the kernels of `image` that the program launches.
  bool load(Device &device, const std::string &image, const DeviceProgram &program);
  /// Has the device carry out all steps; false, with `error`, after a failure.
  using Issue = std::function<bool(std::string &error)>;
  /// The entry's result. `issue` is for steps that are carried out otherwise than one by one. Arguments are those of
  /// the entry's parameters. May be repeated after Device::reset.
  llvm::FailureOr<Literal> execute(Device &device, const DeviceProgram &program, llvm::ArrayRef<Literal> arguments,
                                   StepListener *listener = nullptr, const Issue &issue = nullptr);
  /// Both, on a fresh device.
  llvm::FailureOr<Literal> run(Device &device, const std::string &image, const DeviceProgram &program,
                               llvm::ArrayRef<Literal> arguments) {
    if (!load(device, image, program))
      return llvm::failure();
    return execute(device, program, arguments);
  }

private:
  template <typename Source> std::optional<DeviceProgram> make(const Source &source);
  bool prepare(Device &device, const DeviceProgram &program, llvm::ArrayRef<Literal> arguments);
  llvm::FailureOr<Literal> collect(Device &device, const DeviceProgram &program);
  bool check(bool worked, const std::string &error);

  const HloModule &module;
  CompileObserver &timing;
  DiagnosticEngine &diagnostics;
};

} // namespace hloc
