#include "hloc/run/ComparedKernels.h"

#include "hloc/codegen/Assemble.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/run/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/ELFObjectFile.h"

#include <algorithm>
#include <numeric>

namespace hloc {

namespace {

constexpr ComparedColumn columns[] = {{"launches", "launches"},
                                      {"bytes", "bytes"},
                                      {"sectors", "sectors"},
                                      {"instructions", "instructions"},
                                      {"shared passes", "shared_passes"},
                                      {"conflicts", "bank_conflicts"},
                                      {"atomics", "atomics"},
                                      {"registers", "registers"},
                                      {"shared bytes", "shared_bytes"},
                                      {"code bytes", "code_bytes"},
                                      {"us", "total_us"}};

struct MachineCode {
  std::optional<double> registers, bytes;
};

/// Of the sections that have code.
std::optional<double> codeBytes(llvm::StringRef cubin) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(cubin, "cubin"));
  if (!object) {
    llvm::consumeError(object.takeError());
    return std::nullopt;
  }
  double bytes = 0;
  for (const llvm::object::SectionRef &section : (*object)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (name && name->starts_with(".text."))
      bytes += double(section.getSize());
    else if (!name)
      llvm::consumeError(name.takeError());
  }
  return bytes;
}

/// `.target sm_90a, texmode_independent`
std::optional<TargetInfo> targetOf(llvm::StringRef ptx) {
  llvm::StringRef name = ptx.split(".target").second.ltrim().take_until([](char c) { return c == ',' || isspace(c); });
  return findTarget(name.str());
}

MachineCode machineCodeOf(const std::string &ptx, const Toolchain &toolchain) {
  std::optional<TargetInfo> target = targetOf(ptx);
  if (!target || !toolchain.has(Tool::Ptxas))
    return {};
  AssembleOptions options;
  options.assembler = AssemblerChoice::Ptxas;
  DiagnosticEngine unheard; // what ptxas does not take has no machine code
  llvm::FailureOr<std::vector<Cubin>> cubins = assemble({ptx}, *target, toolchain, options, unheard);
  if (failed(cubins) || cubins->empty())
    return {};
  double registers = 0;
  for (const auto &[entry, resources] : cubins->front().resources)
    registers = std::max<double>(registers, resources.registers);
  return {registers, codeBytes(cubins->front().bytes)};
}

std::string firstError(const DiagnosticEngine &diagnostics) {
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (diagnostic.isError())
      return llvm::StringRef(diagnostic.message).split('\n').first.str();
  return "";
}

} // namespace

llvm::ArrayRef<ComparedColumn> comparedColumns() { return columns; }

ComparedKernels compareKernels(std::string name, std::shared_ptr<const SourceFile> file, RunOptions options,
                               const DeviceModel &device, const Toolchain &toolchain) {
  options.countsEvents = options.estimates = true;
  DiagnosticEngine diagnostics;
  CompileObserver unheard;
  RunObserver nobody;
  const RunReport report = runModule(std::move(file), options, toolchain, unheard, nobody, diagnostics);
  ComparedKernels result{std::move(name), report.verdict, firstError(diagnostics), {}};
  result.values.resize(std::size(columns));
  if (report.runs.empty() || !report.runs.front().counters || !report.runs.front().estimate)
    return result;
  const emulator::Counters &counters = *report.runs.front().counters;
  const EstimatedModule &launches = *report.runs.front().estimate;
  double bytes = 0, microseconds = 0, sharedBytes = 0;
  for (const emulator::BufferCounters &buffer : counters.buffers)
    bytes += double(buffer.bytesRead + buffer.bytesWritten);
  for (const EstimatedKernel &launch : launches.kernels) {
    microseconds += estimate(launch.counts, device).total * 1e6;
    sharedBytes = std::max<double>(sharedBytes, launch.counts.sharedBytes);
  }
  const uint64_t passes = counters.sharedLoadWavefronts + counters.sharedStoreWavefronts;
  const MachineCode code = machineCodeOf(report.ptx, toolchain);
  result.values = {
      double(launches.kernels.size()),
      bytes,
      double(counters.globalLoadSectors + counters.globalStoreSectors),
      double(std::accumulate(counters.warpInstructions.begin(), counters.warpInstructions.end(), uint64_t(0))),
      double(passes),
      double(passes - counters.sharedLoadIdealWavefronts - counters.sharedStoreIdealWavefronts),
      double(counters.atomics),
      code.registers,
      sharedBytes,
      code.bytes,
      microseconds};
  return result;
}

} // namespace hloc
