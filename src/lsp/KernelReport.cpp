#include "hloc/lsp/KernelReport.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/run/EstimatedModule.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

namespace hloc::lsp {

namespace {

namespace json = llvm::json;
using KernelIndices = std::vector<uint32_t>;

std::string refusalIn(const DiagnosticEngine &diagnostics) {
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (diagnostic.isError())
      return diagnostic.message;
  return "it does not compile";
}

/// What is launched, and which functions of libraries are called, for a fusion.
class Collector {
public:
  Collector(KernelReport &report, const CompiledModule &compiled, const EstimatedModule &estimated,
            const DeviceModel &device)
      : report(report) {
    for (const KernelSpec &spec : compiled.manifest.kernels)
      report.kernels.push_back({.name = spec.name,
                                .hero = spec.hero,
                                .fusion = spec.instruction,
                                .blocks = spec.grid.count(),
                                .threads = spec.block.count(),
                                .bytesRead = spec.bytesRead,
                                .bytesWritten = spec.bytesWritten});
    for (const EstimatedKernel &kernel : estimated.kernels)
      for (ReportedKernel &reported : report.kernels)
        if (reported.name == kernel.name) {
          reported.microseconds = estimate(kernel.counts, device).total * 1e6;
          reported.launches = kernel.launches;
        }
    if (estimated.steps) {
      report.microseconds = estimated.steps->seconds * 1e6;
      addCalls(*estimated.steps);
    }
    forEachStep(compiled.manifest.steps, [&](const Step &step) {
      if (const auto *launch = std::get_if<LaunchStep>(&step.action))
        ofStep[step.name].push_back(launch->kernel);
    });
  }

  void addInstructions(const HloModule &fused) {
    for (const auto &computation : fused.computations())
      for (const HloInstruction *instr : computation->instructions())
        if (auto found = ofStep.find(instr->name()); found != ofStep.end())
          addInstruction(*instr, found->second);
    for (auto &[offset, kernels] : report.kernelsAt) {
      std::sort(kernels.begin(), kernels.end());
      kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
    }
  }

private:
  void addCalls(const StepTotals &steps) {
    for (const LibraryTotals &call : steps.calls) {
      ofStep[call.step].push_back(uint32_t(report.kernels.size()));
      report.kernels.push_back({.name = call.function,
                                .hero = "library",
                                .fusion = call.step,
                                .microseconds = call.cost.seconds * 1e6,
                                .launches = double(call.times)});
    }
  }

  void addInstruction(const HloInstruction &instr, const KernelIndices &kernels) {
    // Each text has one range; what it calls is called by nothing else, once fusions are formed.
    if (instr.range().isValid() && instr.opcode() != Opcode::Parameter)
      llvm::append_range(report.kernelsAt[instr.range().begin], kernels);
    for (const HloComputation *called : instr.calledComputations())
      for (const HloInstruction *inner : called->instructions())
        addInstruction(*inner, kernels);
  }

  KernelReport &report;
  llvm::StringMap<KernelIndices> ofStep;
};

} // namespace

KernelReport reportKernels(std::shared_ptr<const SourceFile> file, const KernelRequest &request,
                           const Toolchain &toolchain) {
  KernelReport report;
  report.target = request.target.name;
  report.device = request.device.name.str();
  DiagnosticEngine diagnostics;
  CompileObserver nobody;
  Compiler compiler(request.options, toolchain, nobody, diagnostics);
  std::unique_ptr<HloModule> module = compiler.parse(std::move(file));
  std::unique_ptr<HloModule> fused = module ? compiler.fuse(*module, request.target) : nullptr;
  std::optional<CompiledModule> compiled;
  if (fused)
    compiled = compiler.compile(*fused, request.target, Stage::Ptx);
  std::optional<EstimatedModule> estimated;
  if (compiled)
    estimated = estimateModule(compiled->manifest, compiled->ptx, request.device, diagnostics);
  if (!estimated) {
    report.refusal = refusalIn(diagnostics);
    return report;
  }
  Collector(report, *compiled, *estimated, request.device).addInstructions(*fused);
  return report;
}

std::string printKernelReport(const KernelReport &report) {
  json::Array kernels, places;
  for (const ReportedKernel &kernel : report.kernels)
    kernels.push_back(json::Array{json::fixUTF8(kernel.name), json::fixUTF8(kernel.hero), json::fixUTF8(kernel.fusion),
                                  kernel.microseconds, kernel.launches, int64_t(kernel.blocks), int64_t(kernel.threads),
                                  int64_t(kernel.bytesRead), int64_t(kernel.bytesWritten)});
  for (const auto &[offset, indices] : report.kernelsAt) {
    json::Array place{int64_t(offset)};
    for (uint32_t index : indices)
      place.push_back(int64_t(index));
    places.push_back(std::move(place));
  }
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(json::Object{{"refusal", json::fixUTF8(report.refusal)},
                                                             {"target", report.target},
                                                             {"device", report.device},
                                                             {"microseconds", report.microseconds},
                                                             {"kernels", std::move(kernels)},
                                                             {"places", std::move(places)}});
  return text;
}

namespace {

bool readKernel(const json::Value &value, ReportedKernel &kernel) {
  const json::Array *row = value.getAsArray();
  if (!row || row->size() != 9)
    return false;
  size_t i = 0;
  for (std::string *text : {&kernel.name, &kernel.hero, &kernel.fusion}) {
    const std::optional<llvm::StringRef> given = (*row)[i++].getAsString();
    if (!given)
      return false;
    *text = given->str();
  }
  for (double *number : {&kernel.microseconds, &kernel.launches}) {
    const std::optional<double> given = (*row)[i++].getAsNumber();
    if (!given)
      return false;
    *number = *given;
  }
  for (uint64_t *number : {&kernel.blocks, &kernel.threads, &kernel.bytesRead, &kernel.bytesWritten}) {
    const std::optional<int64_t> given = (*row)[i++].getAsInteger();
    if (!given)
      return false;
    *number = uint64_t(*given);
  }
  return true;
}

bool readPlace(const json::Value &value, KernelReport &report) {
  const json::Array *row = value.getAsArray();
  const std::optional<int64_t> offset = row && !row->empty() ? row->front().getAsInteger() : std::nullopt;
  if (!offset || *offset < 0 || *offset > UINT32_MAX)
    return false;
  KernelIndices &indices = report.kernelsAt[uint32_t(*offset)];
  for (const json::Value &one : llvm::drop_begin(*row)) {
    const std::optional<int64_t> index = one.getAsInteger();
    if (!index || *index < 0 || size_t(*index) >= report.kernels.size())
      return false;
    indices.push_back(uint32_t(*index));
  }
  return true;
}

} // namespace

std::optional<KernelReport> parseKernelReport(llvm::StringRef text) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Object *object = value->getAsObject();
  const json::Array *kernels = object ? object->getArray("kernels") : nullptr;
  const json::Array *places = object ? object->getArray("places") : nullptr;
  if (!kernels || !places)
    return std::nullopt;
  KernelReport report;
  report.refusal = object->getString("refusal").value_or("").str();
  report.target = object->getString("target").value_or("").str();
  report.device = object->getString("device").value_or("").str();
  report.microseconds = object->getNumber("microseconds").value_or(0);
  for (const json::Value &kernel : *kernels)
    if (!readKernel(kernel, report.kernels.emplace_back()))
      return std::nullopt;
  for (const json::Value &place : *places)
    if (!readPlace(place, report))
      return std::nullopt;
  return report;
}

} // namespace hloc::lsp
