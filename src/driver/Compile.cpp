#include "Compile.h"

#include "KernelStage.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <set>
#include <thread>

namespace hloc {

struct Compiler::KernelJob {
  const HloInstruction *fusion = nullptr;
  std::string name;
  CompiledKernel kernel;
  std::unique_ptr<DiagnosticEngine> diagnostics;
  std::unique_ptr<DumpTrack> dumps;
  bool done = false;
};

namespace {

std::string printed(const HloModule &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, PrintOptions());
  return text;
}

double milliseconds(Timing::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// A PTX identifier as close to the HLO name as possible, different from all in `taken`.
std::string kernelName(llvm::StringRef hloName, llvm::StringSet<> &taken) {
  std::string base;
  for (char c : hloName)
    base += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (base.empty() || llvm::isDigit(base[0]))
    base = "k_" + base;
  std::string name = base;
  for (unsigned i = 1; !taken.insert(name).second; ++i)
    name = base + "_" + std::to_string(i);
  return name;
}

} // namespace

Compiler::Compiler(const CompileOptions &options, const Toolchain &toolchain, Timing &timing,
                   DiagnosticEngine &diagnostics)
    : options(options), toolchain(toolchain), timing(timing), diagnostics(diagnostics),
      moduleDumps(std::make_unique<DumpTrack>(options.dump, "module", /*immediate=*/true)) {}

Compiler::~Compiler() = default;

std::unique_ptr<HloModule> Compiler::load(bool verifyModule) {
  std::string error;
  std::optional<std::string> text;
  {
    Timing::Scope scope(timing, "read");
    text = readFile(options.input == "-" ? "/dev/stdin" : options.input, error);
  }
  if (!text) {
    diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + options.input + "`: " + error);
    return nullptr;
  }
  auto file = std::make_shared<const SourceFile>(options.input == "-" ? "<stdin>" : options.input, std::move(*text));
  diagnostics.setFile(file);
  auto begin = Timing::Clock::now();
  std::unique_ptr<HloModule> module = parseHloModule(file, diagnostics);
  auto parsed = Timing::Clock::now();
  timing.add("parse", "module", begin, parsed, 0);
  if (!module)
    return nullptr;
  moduleDumps->after(DumpStage::Hlo, "parse", milliseconds(parsed - begin), [&] { return printed(*module); }, true);
  if (verifyModule) {
    Timing::Scope scope(timing, "verify");
    if (!verify(*module, diagnostics))
      return nullptr;
  }
  return module;
}

std::unique_ptr<HloModule> Compiler::fuse(const HloModule &module) {
  Timing::Scope scope(timing, "hlo passes");
  std::unique_ptr<HloModule> current;
  for (const HloPass &pass : hloPipeline()) {
    auto begin = Timing::Clock::now();
    current = pass.run(current ? *current : module, diagnostics);
    auto end = Timing::Clock::now();
    timing.add(pass.name, "module", begin, end, 1);
    if (!current)
      return nullptr;
    moduleDumps->after(
        DumpStage::Hlo, pass.name, milliseconds(end - begin), [&] { return printed(*current); },
        &pass == &hloPipeline().back());
  }
  return current;
}

std::vector<Compiler::KernelJob> Compiler::makeJobs(const ExecutionPlan &plan, const TargetInfo &target) {
  std::vector<KernelJob> jobs(plan.launches.size());
  llvm::StringSet<> taken;
  for (auto [job, launch] : llvm::zip_equal(jobs, plan.launches)) {
    job.fusion = launch.fusion;
    job.name = kernelName(launch.fusion->name(), taken);
    job.diagnostics = std::make_unique<DiagnosticEngine>();
    job.diagnostics->setFile(diagnostics.file());
    std::string track = options.targets.size() > 1 ? job.name + "." + target.name : job.name;
    job.dumps = std::make_unique<DumpTrack>(options.dump, track, jobs.size() == 1);
  }
  return jobs;
}

void Compiler::compileKernel(KernelJob &job, const TargetInfo &target, Stage stage, bool keepTexts) {
  // One context a thread: creating and loading it costs as much as a small kernel's passes.
  thread_local std::unique_ptr<mlir::MLIRContext> context = makeKernelContext();
  KernelStage kernelStage{options, toolchain, target, timing, *job.dumps, *job.diagnostics, *context};
  const HloComputation &body = *job.fusion->computation(AttributeKey::Calls);
  job.done = kernelStage.run(body, job.name, stage, keepTexts, job.kernel);
}

bool Compiler::checkKernels(const ExecutionPlan &plan) {
  llvm::DenseSet<const HloComputation *> checked;
  std::set<std::pair<uint32_t, std::string>> said; // fusions may share what they copied
  DiagnosticEngine found;
  for (const PlannedLaunch &launch : plan.launches) {
    const HloComputation &body = *launch.fusion->computation(AttributeKey::Calls);
    if (checked.insert(&body).second)
      checkKernelSupport(body, found);
  }
  for (const Diagnostic &report : found.diagnostics())
    if (said.insert({report.range.begin, report.message}).second)
      diagnostics.report(report.kind, report.range, report.message);
  return !found.hasErrors();
}

std::optional<CompiledModule> Compiler::compile(const HloModule &fused, const TargetInfo &target, Stage stage,
                                                bool keepTexts) {
  std::optional<ExecutionPlan> plan;
  {
    Timing::Scope scope(timing, "plan");
    plan = planModule(fused, diagnostics);
  }
  if (!plan || !checkKernels(*plan))
    return std::nullopt;
  std::vector<KernelJob> jobs = makeJobs(*plan, target);
  unsigned workers = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  workers = unsigned(std::min<size_t>(workers, jobs.size()));
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      compileKernel(jobs[i], target, stage, keepTexts);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();

  CompiledModule compiled;
  std::vector<std::string> texts;
  bool complete = true;
  for (KernelJob &job : jobs) {
    job.dumps->finish(*job.diagnostics);
    diagnostics.append(*job.diagnostics);
    complete &= job.done;
    texts.push_back(job.kernel.ptx);
  }
  if (!complete)
    return std::nullopt;
  compiled.manifest = makeManifest(fused, target, std::move(*plan), jobs);
  for (KernelJob &job : jobs)
    compiled.kernels.push_back(std::move(job.kernel));
  if (stage == Stage::Ptx || stage == Stage::All) {
    if (texts.empty()) {
      compiled.ptx = fmt::format("// no kernels: nothing is computed\n.version {}.{}\n.target {}\n.address_size 64\n",
                                 target.ptxVersion / 10, target.ptxVersion % 10, target.name);
      return compiled;
    }
    llvm::FailureOr<std::string> merged = mergePtx(texts, diagnostics);
    if (failed(merged))
      return std::nullopt;
    compiled.ptx = std::move(*merged);
    compiled.manifest.ptxVersion = llvm::StringRef(compiled.ptx).split(".version ").second.split('\n').first.str();
  }
  return compiled;
}

Manifest Compiler::makeManifest(const HloModule &fused, const TargetInfo &target, ExecutionPlan plan,
                                std::vector<KernelJob> &jobs) {
  Manifest manifest;
  manifest.module = fused.name().str();
  manifest.target = target.name;
  manifest.toolVersions = {{"hloc", HLOC_VERSION}, {"llvm", LLVM_VERSION_STRING}};
  manifest.buffers = std::move(plan.buffers);
  manifest.results = std::move(plan.results);
  for (size_t i = 0; i < jobs.size(); ++i) {
    manifest.kernels.push_back(jobs[i].kernel.spec);
    ModuleStep step;
    step.kernel = uint32_t(i);
    for (const KernelParameter &parameter : jobs[i].kernel.spec.parameters)
      step.arguments.push_back(parameter.role == KernelParameter::Role::Input
                                   ? plan.launches[i].inputs[parameter.index]
                                   : plan.launches[i].outputs[parameter.index]);
    manifest.steps.push_back(std::move(step));
  }
  return manifest;
}

void Compiler::finishDumps() { moduleDumps->finish(diagnostics); }

} // namespace hloc
