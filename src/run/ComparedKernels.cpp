#include "hloc/run/ComparedKernels.h"

#include "MachineCode.h"

#include "hloc/run/Run.h"

#include "llvm/ADT/STLExtras.h"

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
  std::optional<double> registers, codeSize;
  if (const std::optional<Cubin> code = machineCodeOf(report.ptx, toolchain)) {
    registers = 0;
    for (const auto &[entry, resources] : code->resources)
      registers = std::max<double>(*registers, resources.registers);
    codeSize = codeBytes(code->bytes);
  }
  result.values = {
      double(launches.kernels.size()),
      bytes,
      double(counters.globalLoadSectors + counters.globalStoreSectors),
      double(std::accumulate(counters.warpInstructions.begin(), counters.warpInstructions.end(), uint64_t(0))),
      double(passes),
      double(passes - counters.sharedLoadIdealWavefronts - counters.sharedStoreIdealWavefronts),
      double(counters.atomics),
      registers,
      sharedBytes,
      codeSize,
      microseconds};
  return result;
}

} // namespace hloc
