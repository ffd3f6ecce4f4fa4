#pragma once
// What `hloc run` executes: compiled from the module, or given by --ptx; and, where the steps can be compared one by
// one, what they were made of.

#include "Execute.h"
#include "StepComparison.h"

#include "hloc/compiler/Compiler.h"

namespace hloc {

struct RunProgram {
  std::string image, imageName; ///< PTX, and what it is called in messages
  DeviceProgram program;
  /// The module in normal form whose fusions, loops and conditionals the program's steps carry out, and where they
  /// leave what. Null: nothing is known about the steps.
  std::unique_ptr<HloModule> fused;
  std::vector<ComputedValue> values; ///< of `fused`

  bool hasSeveralSteps() const;
};

class RunProgramFinder {
public:
  RunProgramFinder(const RunOptions &options, Compiler &compiler, const Toolchain &toolchain, CompileObserver &timing,
                   DiagnosticEngine &diagnostics)
      : options(options), compiler(compiler), toolchain(toolchain), timing(timing), diagnostics(diagnostics) {}

  /// Compiles the module. Nothing after a diagnostic. `isFused`: it is what --only has cut out.
  std::optional<RunProgram> compile(const HloModule &module, bool isFused, const TargetInfo &target,
                                    Executor &executor);
  /// Reads --ptx and its manifest or launch description.
  std::optional<RunProgram> read(const HloModule &module, Executor &executor);

private:
  std::optional<std::string> readText(const std::string &name);
  void findSteps(const HloModule &module, const Manifest &manifest, RunProgram &found);

  const RunOptions &options;
  Compiler &compiler;
  const Toolchain &toolchain;
  CompileObserver &timing;
  DiagnosticEngine &diagnostics;
};

} // namespace hloc
