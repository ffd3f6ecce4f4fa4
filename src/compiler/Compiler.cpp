#include "hloc/compiler/Compiler.h"

#include "compiler/EqualKernels.h"
#include "compiler/KernelCache.h"
#include "compiler/KernelStage.h"
#include "compiler/Refusals.h"
#include "compiler/Remarks.h"
#include "compiler/Selection.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/hlo/BesideOne.h"
#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Names.h"
#include "hloc/support/Parallel.h"
#include "hloc/transforms/ExtractFusions.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"

#include <atomic>
#include <numeric>

namespace hloc {

using Clock = CompileObserver::Clock;

struct Compiler::KernelJob {
  size_t number; ///< of the kernel in the plan
  const PlannedKernel *planned = nullptr;
  std::string name, track;
  CompiledKernel kernel;
  std::unique_ptr<DiagnosticEngine> diagnostics;
  bool mayBeEqual = false; ///< to another kernel of the module, as far as plans tell
  bool done = false;
  std::vector<unsigned> untouched; ///< parameters that it writes nothing of, if that was asked for
  std::string refused;             ///< why the compiler goes on without it; empty: it does not have to

  /// What was said so far is forgotten.
  void begin(const DiagnosticEngine &ofModule) {
    diagnostics = std::make_unique<DiagnosticEngine>();
    diagnostics->setFile(ofModule.file());
  }

  /// True if it has its PTX of `first` from here on. What was said of that would have to be said of this one, too.
  bool takeText(const KernelJob &first, const EqualKernels &equal) {
    std::optional<std::string> ptx =
        first.done && first.diagnostics->diagnostics().empty() ? equal.ptxOf(number, first.kernel.ptx) : std::nullopt;
    if (ptx)
      kernel.ptx = std::move(*ptx);
    return ptx.has_value();
  }
};

std::unique_ptr<HloModule> Compiler::parse(std::shared_ptr<const SourceFile> file, bool verifyModule) {
  diagnostics.setFile(file);
  observer.beginTrack("", true);
  auto begin = Clock::now();
  std::unique_ptr<HloModule> module = parseHloModule(file, diagnostics);
  observer.timed("parse", "", begin, Clock::now(), 0);
  if (!module)
    return nullptr;
  auto text = [&] { return hloText(*module); };
  observer.produced({IrKind::Hlo, "parse", "", millisecondsSince(begin), true, text});
  if (verifyModule) {
    TimedScope scope(observer, "verify");
    if (!verify(*module, diagnostics))
      return nullptr;
    markTanhBesideOne(*module); // asks what is known to be right
  }
  return module;
}

std::unique_ptr<HloModule> Compiler::fuse(const HloModule &module, const TargetInfo &target) {
  TimedScope scope(observer, "hlo passes");
  if (!handsOnInOneType(module, diagnostics))
    return nullptr;
  std::unique_ptr<HloModule> fused = cloneModule(module);
  HloPassContext context(diagnostics);
  context.target = target;
  context.options.fastMath = options.fastMath;
  context.options.disabled = options.disabled;
  context.options.fusion = options.fusion;
  context.options.f32Dots = options.f32Dots;
  context.options.softmax = options.softmax;
  context.options.dots = options.dots;
  context.options.convolutions = options.convolutions;
  context.options.forced = options.forced.edges;
  context.explanation = options.explanation;
  if (options.remarks)
    context.remark = [&](DiagnosticKind kind, const HloInstruction &instr, const std::string &message) {
      if (isWanted(kind, *options.remarks))
        diagnostics.report(kind, instr.range(), message);
    };
  auto text = [&] { return hloText(*fused); };
  context.afterPass = [&](const HloPass &pass, PassResult result, Clock::time_point begin, Clock::time_point end) {
    observer.timed(pass.name, "", begin, end, 1 + int(context.nesting));
    double milliseconds = std::chrono::duration<double, std::milli>(end - begin).count();
    if (result != PassResult::Failed)
      observer.produced({IrKind::Hlo, pass.name, "", milliseconds, &pass == &hloPipeline().back(), text});
  };
  PassResult result = runPasses(*fused, hloPipeline(), context);
  for (const auto &[what, count] : context.statistics.all())
    observer.counted(what, count);
  return result == PassResult::Failed ? nullptr : std::move(fused);
}

std::unique_ptr<HloModule> Compiler::only(const HloModule &fused, llvm::ArrayRef<std::string> names,
                                          const TargetInfo &target) {
  TimedScope scope(observer, "select");
  std::vector<const HloInstruction *> selected = selectFusions(fused, names, diagnostics);
  if (selected.empty())
    return nullptr;
  // A kernel that works in place is another one, one may serve several fusions: the plan of the whole module says.
  DiagnosticEngine unheard;
  std::optional<ExecutionPlan> whole = planModule(
      fused, target, unheard, findRefusals(fused, target, /*plansFusions=*/true, options.allowExternal).reasons());
  UniqueNames unique;
  llvm::DenseMap<const HloInstruction *, std::string> kernels = kernelNames(fused, unique);
  llvm::DenseSet<const HloInstruction *> named;
  std::vector<ExtractedFusion> fusions;
  for (const HloInstruction *fusion : selected) {
    const HloInstruction *maker = whole ? whole->servedBy.lookup(fusion) : nullptr;
    if (!maker || !named.insert(maker).second) // the first of those that share a kernel has its name
      maker = fusion;
    named.insert(maker);
    const std::string &name = kernels[maker];
    fusions.push_back({fusion, name == identifierOf(fusion->name()) ? "" : name});
  }
  std::vector<InPlaceOutput> inPlace;
  if (whole)
    llvm::copy_if(whole->inPlace, std::back_inserter(inPlace),
                  [&](const InPlaceOutput &one) { return one.fusion->parent() == selected.front()->parent(); });
  std::unique_ptr<HloModule> made = extractFusions(fused, fusions, inPlace);
  auto text = [&] { return hloText(*made); };
  observer.produced({IrKind::Hlo, "only", "", 0, true, text});
  return made;
}

/// Any kernel; else it is reported.
bool Compiler::hasTile(const ExecutionPlan &plan, const TileSizes &tile) {
  std::string why;
  for (const PlannedKernel &kernel : plan.kernels) {
    const std::string own = whyNotTile(kernel.plan().plan, tile);
    if (own.empty())
      return true;
    if (kernel.plan().hero() == Hero::Attention)
      why = fmt::format("; `{}`: {}", kernel.fusion->name().str(), own);
  }
  diagnostics.report(
      DiagnosticKind::BadUsage,
      fmt::format("no kernel is a contraction or attention, which could have tiles of {}{}", tile.toString(), why));
  return false;
}

std::optional<ExecutionPlan> Compiler::plan(const HloModule &fused, const TargetInfo &target, Refusals &refusals) {
  TimedScope scope(observer, "plan");
  refusals = findRefusals(fused, target, options.keepGoing, options.allowExternal);
  if (!options.keepGoing && !refusals.empty()) {
    refusals.report(diagnostics);
    return std::nullopt;
  }
  std::optional<ExecutionPlan> plan =
      planModule(fused, target, diagnostics, refusals.reasons(), options.tile, options.forced.kernels);
  if (plan && options.tile && !hasTile(*plan, *options.tile))
    return std::nullopt;
  return plan;
}

std::optional<ExecutionPlan> Compiler::plan(const HloModule &fused, const TargetInfo &target) {
  Refusals refusals;
  std::optional<ExecutionPlan> plan = this->plan(fused, target, refusals);
  if (plan)
    refusals.summarize(plan->kernels.size(), diagnostics);
  return plan;
}

std::vector<Compiler::KernelJob> Compiler::makeJobs(const HloModule &fused, const ExecutionPlan &plan,
                                                    llvm::StringRef trackSuffix) {
  std::vector<KernelJob> jobs(plan.kernels.size());
  UniqueNames names;
  llvm::DenseMap<const HloInstruction *, std::string> first = kernelNames(fused, names);
  for (auto [job, kernel] : llvm::zip_equal(jobs, plan.kernels)) {
    job.number = &kernel - plan.kernels.data();
    job.planned = &kernel;
    std::string &name = first[kernel.fusion];
    job.name = name.empty() ? names.unique(identifierOf(kernel.fusion->name())) : std::move(name);
    name.clear(); // a fusion's second kernel gets another
    job.track = job.name + trackSuffix.str();
    job.begin(diagnostics);
    observer.beginTrack(job.track, jobs.size() == 1);
  }
  return jobs;
}

/// What is the same for all kernels of a module.
struct Compiler::KernelWork {
  const TargetInfo &target;
  Stage stage;
  bool keepTexts;
  const KernelCache *cache; ///< null: none
};

/// With `equal`, unless it is like one that has been begun: then it is left without PTX.
void Compiler::compileKernel(KernelJob &job, const KernelWork &work, EqualKernels *equal) {
  // One context a thread: creating and loading it costs as much as a small kernel's passes.
  thread_local std::unique_ptr<mlir::MLIRContext> context = makeKernelContext();
  thread_local KernelPipelines pipelines(*context);
  KernelStage kernelStage{options,          toolchain, work.target,     observer,
                          *job.diagnostics, *context,  /*given=*/false, work.cache};
  kernelStage.pipelines = &pipelines;
  if (equal && job.mayBeEqual)
    kernelStage.isKnown = [&](mlir::ModuleOp emitted, llvm::StringRef text) {
      return equal->isKnown(job.number, job.name, emitted, text);
    };
  job.done = kernelStage.run(*job.planned, job.name, job.track, work.stage, work.keepTexts, job.kernel);
  job.untouched = std::move(kernelStage.untouched);
}

/// Kernels that are equal are planned alike. Most are seen not to be equal by that, before there is a text to compare.
void Compiler::findEqualPlans(std::vector<KernelJob> &jobs) {
  llvm::StringMap<unsigned> counts;
  std::vector<std::string> plans;
  for (const KernelJob &job : jobs) {
    std::string &plan = plans.emplace_back(job.planned->plan().toString());
    for (const HloInstruction *parameter : job.planned->planned->graph.parameters())
      plan += " " + parameter->shape().toString();
    ++counts[plan];
  }
  for (auto [job, plan] : llvm::zip_equal(jobs, plans))
    job.mayBeEqual = counts[plan] > 1;
}

void Compiler::compileKernels(std::vector<KernelJob> &jobs, llvm::ArrayRef<size_t> which, const KernelWork &work,
                              EqualKernels *equal) {
  std::atomic<size_t> numDone = jobs.size() - which.size();
  runInParallel(which.size(), numWorkers(options.jobs), [&](size_t i) {
    if (observer.isCancelled())
      return;
    compileKernel(jobs[which[i]], work, equal);
    observer.progress(++numDone, jobs.size());
  });
}

void Compiler::runJobs(std::vector<KernelJob> &jobs, const TargetInfo &target, Stage stage, bool keepTexts) {
  // A file a kernel costs more than it is worth where there are few.
  constexpr size_t few = 16;
  const bool wantsTexts = keepTexts || observer.wantsTexts();
  std::optional<KernelCache> cache;
  if (jobs.size() > few && stage >= Stage::Ptx && !wantsTexts && !observer.wantsPasses())
    cache.emplace(options, toolchain, target);
  // What takes long comes first, so that no thread is left with it at the end.
  std::vector<size_t> order(jobs.size()), again;
  std::iota(order.begin(), order.end(), 0);
  auto work = [&](size_t i) { return jobs[i].planned->planned->graph.instructions().size(); };
  llvm::stable_sort(order, [&](size_t a, size_t b) { return work(a) > work(b); });
  const KernelWork common{target, stage, keepTexts, cache ? &*cache : nullptr};
  // Lines of the input are among what is not compared.
  if (jobs.size() == 1 || stage < Stage::Ptx || wantsTexts || options.lineInfo)
    return compileKernels(jobs, order, common, nullptr);
  findEqualPlans(jobs);
  EqualKernels equal(jobs.size());
  compileKernels(jobs, order, common, &equal);
  if (observer.isCancelled())
    return;
  for (KernelJob &job : jobs)
    if (const KernelJob &first = jobs[equal.firstOf(job.number)]; &first != &job && !job.takeText(first, equal)) {
      job.begin(diagnostics);
      again.push_back(job.number);
    }
  compileKernels(jobs, again, common, nullptr);
}

/// Hands on what was found. False after an error, unless it is one to go on after.
bool Compiler::finishJobs(std::vector<KernelJob> &jobs, const Steps &steps, Refusals &refusals) {
  bool complete = true;
  std::vector<size_t> launches(jobs.size(), 0);
  forEachStep(steps, [&](const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      ++launches[launch->kernel];
  });
  for (auto [job, numLaunches] : llvm::zip_equal(jobs, launches)) {
    observer.endTrack(job.track, *job.diagnostics);
    if (!job.done && options.keepGoing && isRefusal(*job.diagnostics)) {
      refusals.add(*job.planned->fusion, *job.diagnostics, numLaunches);
      job.refused = refusals.reasons()[job.planned->fusion];
      continue;
    }
    diagnostics.append(*job.diagnostics);
    complete &= job.done;
  }
  return complete;
}

void Compiler::describe(const HloModule &fused, const TargetInfo &target, ExecutionPlan &plan,
                        std::vector<KernelJob> &jobs, CompiledModule &compiled) {
  std::vector<KernelSpec> specs;
  std::vector<std::string> refused;
  for (KernelJob &job : jobs) {
    specs.push_back(job.kernel.spec);
    refused.push_back(job.refused);
    if (!job.refused.empty())
      continue;
    compiled.manifest.kernels.push_back(job.kernel.spec);
    compiled.kernels.push_back(std::move(job.kernel));
  }
  markUncompiled(plan.steps, specs, refused);
  compiled.manifest.module = fused.name().str();
  compiled.manifest.target = target.name;
  compiled.manifest.toolVersions = {{"hloc", HLOC_VERSION}, {"llvm", LLVM_VERSION_STRING}};
  compiled.manifest.buffers = std::move(plan.buffers);
  compiled.manifest.steps = std::move(plan.steps);
  compiled.manifest.results = std::move(plan.results);
  compiled.values = std::move(plan.values);
}

/// What one kernel of a fusion leaves alone, another has to write.
void Compiler::checkUntouched(std::vector<KernelJob> &jobs) {
  auto isWritten = [&](const KernelJob &job, const PlanBuffer &buffer) {
    for (const FusionStep &step : job.planned->planned->plan.steps) {
      const auto *copy = std::get_if<CopyPlan>(&step);
      const auto *fill = std::get_if<FillPlan>(&step);
      if ((copy && copy->to == buffer) || (fill && fill->to == buffer))
        return true;
    }
    return llvm::any_of(jobs, [&](const KernelJob &other) {
      const auto &buffers = other.planned->plan().buffers;
      for (auto [i, own] : llvm::enumerate(buffers))
        if (other.planned->planned == job.planned->planned && own.buffer == buffer && own.written &&
            !llvm::is_contained(other.untouched, i))
          return true;
      return false;
    });
  };
  for (KernelJob &job : jobs)
    for (unsigned parameter : job.untouched) {
      PropertyProof &proof = job.kernel.spec.proofs[unsigned(ProofProperty::WrittenOnce)];
      const PlanBuffer &buffer = job.planned->plan().buffers[parameter].buffer;
      if (buffer.kind == PlanBuffer::Kind::Output && job.planned->planned->plan.aliasing[buffer.index])
        continue;
      if (proof.verdict != ProofVerdict::Refuted && !isWritten(job, buffer))
        proof = {ProofProperty::WrittenOnce, ProofVerdict::Refuted, "nobody writes it",
                 ProofWitness{{}, "argument " + std::to_string(parameter), 0}};
    }
}

void Compiler::remark(std::vector<KernelJob> &jobs, const TargetInfo &target) {
  PlanContext plans;
  for (KernelJob &job : jobs) {
    if (!job.done)
      continue;
    if (isWanted(DiagnosticKind::F32Dot, *options.remarks))
      remarkOnPrecision(*job.planned, target, plans, job.kernel.spec);
    reportRemarks(job.kernel.spec, job.planned->planned->graph.computation(), *options.remarks, diagnostics);
  }
}

std::optional<CompiledModule> Compiler::compile(const HloModule &fused, const TargetInfo &target, Stage stage,
                                                bool keepTexts, llvm::StringRef trackSuffix) {
  Refusals refusals;
  std::optional<ExecutionPlan> plan = this->plan(fused, target, refusals);
  if (!plan)
    return std::nullopt;
  observer.planned(*plan);
  std::vector<KernelJob> jobs = makeJobs(fused, *plan, trackSuffix);
  observer.counted("kernels", jobs.size());
  observer.counted("fusions beyond them that they serve", plan->servedBy.size());
  runJobs(jobs, target, stage, keepTexts);
  if (observer.isCancelled())
    return std::nullopt;
  if (!finishJobs(jobs, plan->steps, refusals))
    return std::nullopt;
  if (options.prove)
    checkUntouched(jobs);
  if (options.remarks)
    remark(jobs, target);
  CompiledModule compiled;
  describe(fused, target, *plan, jobs, compiled);
  refusals.summarize(compiled.kernels.size(), diagnostics);
  if (!refusals.empty() && compiled.kernels.empty())
    return std::nullopt;
  if (stage >= Stage::Ptx && !mergeTexts(compiled, target))
    return std::nullopt;
  return compiled;
}

bool Compiler::mergeTexts(CompiledModule &compiled, const TargetInfo &target) {
  if (compiled.kernels.empty()) {
    compiled.ptx = fmt::format("// no kernels: nothing is computed\n.version {}.{}\n.target {}\n.address_size 64\n",
                               target.ptxVersion / 10, target.ptxVersion % 10, target.name);
    return true;
  }
  TimedScope scope(observer, "merge kernels");
  if (!mergeKernels(compiled, diagnostics))
    return false;
  compiled.manifest.ptxVersion = llvm::StringRef(compiled.ptx).split(".version ").second.split('\n').first.str();
  return true;
}

std::optional<CompiledModule> Compiler::compileModule(const HloModule &module, const TargetInfo &target) {
  std::unique_ptr<HloModule> fused = fuse(module, target);
  return fused ? compile(*fused, target, Stage::Ptx) : std::nullopt;
}

llvm::FailureOr<std::string> Compiler::assemble(CompiledModule &compiled, const TargetInfo &target,
                                                const AssembleOptions &assembleOptions) {
  auto begin = Clock::now();
  std::vector<std::string> kernels;
  for (const CompiledKernel &kernel : compiled.kernels)
    kernels.push_back(kernel.ptx);
  llvm::FailureOr<Cubin> assembled =
      assembleModule(kernels, compiled.ptx, target, toolchain, assembleOptions, diagnostics);
  if (failed(assembled))
    return llvm::failure();
  llvm::StringMap<KernelResources> resources;
  for (const auto &[entry, ofEntry] : assembled->resources)
    resources[entry] = ofEntry;
  for (KernelSpec &kernel : compiled.manifest.kernels)
    if (auto found = resources.find(kernel.name); found != resources.end())
      kernel.resources = found->second;
  observer.counted("kernels found in the cubin cache", assembled->numFromCache);
  std::string tools;
  for (auto &[tool, version] : assemblerVersions(*assembled, toolchain, assembleOptions)) {
    tools += (tools.empty() ? "" : ", ") + tool;
    compiled.manifest.toolVersions.emplace_back(tool, version);
  }
  observer.timed(tools, "", begin, Clock::now(), 0);
  return std::move(assembled->bytes);
}

} // namespace hloc
