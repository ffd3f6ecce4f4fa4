#include "RunProgram.h"

#include "hloc/kernel/DeviceProgram.h"
#include "hloc/support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace hloc {

bool RunProgram::hasSeveralSteps() const {
  llvm::StringSet<> names;
  bool isControlled = false;
  forEachStep(program.steps, [&](const Step &step) {
    names.insert(step.name);
    isControlled |=
        std::holds_alternative<WhileStep>(step.action) || std::holds_alternative<ConditionalStep>(step.action);
  });
  return isControlled || names.size() > 1;
}

std::optional<RunProgram> RunProgramFinder::compile(const HloModule &module, bool isFused, const TargetInfo &target,
                                                    Executor &executor) {
  RunProgram found;
  found.fused = isFused ? cloneModule(module) : compiler.fuse(module, target);
  std::optional<CompiledModule> compiled =
      found.fused ? compiler.compile(*found.fused, target, Stage::Ptx) : std::nullopt;
  std::optional<DeviceProgram> program = compiled ? executor.programOf(compiled->manifest) : std::nullopt;
  if (!program)
    return std::nullopt;
  found.values = std::move(compiled->values);
  found.image = std::move(compiled->ptx);
  found.imageName = module.name().str() + ".ptx";
  found.program = std::move(*program);
  return found;
}

std::optional<std::string> RunProgramFinder::readText(const std::string &name) {
  std::string error;
  std::optional<std::string> text = readFile(name, error);
  if (!text)
    diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + name + "`: " + error);
  return text;
}

std::optional<RunProgram> RunProgramFinder::read(const HloModule &module, Executor &executor) {
  TimedScope scope(timing, "read program");
  const bool hasManifest = options.launchFile.empty();
  std::optional<std::string> ptx = readText(options.ptxFile);
  std::optional<std::string> text = readText(hasManifest ? options.manifestFile : options.launchFile);
  if (!ptx || !text)
    return std::nullopt;
  RunProgram found;
  found.image = std::move(*ptx);
  found.imageName = options.ptxFile;
  std::optional<DeviceProgram> program;
  if (hasManifest) {
    Manifest manifest;
    if (std::string error; !parseManifest(*text, manifest, error)) {
      diagnostics.report(DiagnosticKind::BadLaunch, options.manifestFile + ": " + error);
      return std::nullopt;
    }
    program = executor.programOf(manifest);
    if (program)
      findSteps(module, manifest, found);
  } else {
    DiagnosticEngine ofLaunch;
    ofLaunch.setFile(std::make_shared<SourceFile>(options.launchFile, std::move(*text)));
    std::optional<LaunchDescription> description = parseLaunchDescription(ofLaunch);
    diagnostics.append(ofLaunch);
    if (description)
      program = executor.programOf(*description);
  }
  if (!program)
    return std::nullopt;
  found.program = std::move(*program);
  return found;
}

/// The module is planned once more. Where the manifest has the same buffers, and steps of the same names, values lie
/// where that plan has them, whatever kernels and steps the manifest has.
void RunProgramFinder::findSteps(const HloModule &module, const Manifest &manifest, RunProgram &found) {
  std::optional<TargetInfo> target = findTarget(manifest.target);
  if (!target)
    return;
  DiagnosticEngine unheard; // that it cannot be planned is no failure of what is given
  CompileObserver nobody;
  Compiler silent(options.compiler, toolchain, nobody, unheard);
  std::unique_ptr<HloModule> fused = silent.fuse(module, *target);
  std::optional<ExecutionPlan> plan = fused ? silent.plan(*fused, *target) : std::nullopt;
  if (!plan)
    return;
  auto isSame = [](const ModuleBuffer &a, const ModuleBuffer &b) { return a.kind == b.kind && a.bytes == b.bytes; };
  if (!llvm::equal(plan->buffers, manifest.buffers, isSame) || !canCompareSteps(*fused, plan->values, manifest.steps))
    return;
  found.fused = std::move(fused);
  found.values = std::move(plan->values);
}

} // namespace hloc
