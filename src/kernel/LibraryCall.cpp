#include "hloc/kernel/LibraryCall.h"

#include "hloc/kernel/LibraryConvolution.h"
#include "hloc/support/Check.h"

#include "fmt/format.h"

#include <algorithm>
#include <array>

namespace hloc {

namespace {

struct TypeRow {
  llvm::StringLiteral text;
  uint64_t bytes;
};
constexpr TypeRow types[] = {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) {text, bytes},
#include "hloc/kernel/LibraryTypes.def"
};

/// Of the peak of the unit that multiplies its types, as a large product of a library reaches it: cuBLAS 12 takes 178
/// us for a bf16 product of 4096^3 on an H100, 78 %.
constexpr double shareOfPeak = 0.78;
/// Of a multiprocessor, multiply-adds of f32 a clock: four warp instructions, as estimate() has them.
constexpr double singlesPerClock = 128;
/// What is small waits for its factors, and for the results to be stored.
constexpr double trips = 2;

double productsPerClock(const MatmulCall &call, const DeviceModel &device) {
  switch (call.compute) {
  case MatmulCall::Compute::F64:
    return device.doubleProductsPerClock;
  case MatmulCall::Compute::S32:
    return 2 * device.peakProductsPerClock;
  case MatmulCall::Compute::Tf32:
    return device.peakProductsPerClock / 2;
  case MatmulCall::Compute::F32:
    break;
  }
  const uint64_t bytes = std::max(bytesOf(call.a.type), bytesOf(call.b.type));
  return bytes == 4 ? singlesPerClock : bytes == 2 ? device.peakProductsPerClock : 2 * device.peakProductsPerClock;
}

double productsPerClock(const LibraryConvolution &convolution, const DeviceModel &device) {
  switch (convolution.compute) {
  case LibraryConvolution::Compute::F64:
    return device.doubleProductsPerClock;
  case LibraryConvolution::Compute::Tf32:
    return device.peakProductsPerClock / 2;
  case LibraryConvolution::Compute::F32:
    break;
  }
  return bytesOf(convolution.type) == 4 ? singlesPerClock : device.peakProductsPerClock;
}

double secondsOf(double flops, double bytes, double productsPerClock, const DeviceModel &device) {
  const double clock = device.gigahertz * 1e9;
  return launchSeconds + trips * device.dramLatency / clock +
         std::max(flops / (2 * shareOfPeak * productsPerClock * device.multiprocessors * clock),
                  bytes / device.dramBytesPerSecond);
}

std::string checkSlices(llvm::ArrayRef<BufferSlice> slices, llvm::ArrayRef<uint64_t> wanted, llvm::StringRef what) {
  for (auto [i, slice] : llvm::enumerate(slices))
    if (slice.bytes < wanted[i])
      return fmt::format("{}[{}]: {} bytes for {}", what.str(), i, slice.bytes, wanted[i]);
  return "";
}

std::string check(const MatmulCall &call, const CallStep &step) {
  std::vector<uint64_t> reads = {call.reachOf(call.a), call.reachOf(call.b)};
  if (call.c)
    reads.push_back(call.reachOf(*call.c));
  if (call.hasBias())
    reads.push_back(call.m * bytesOf(call.d.type));
  if (step.reads.size() != reads.size() || step.writes.size() != 2)
    return fmt::format("{} slices are read and {} written, {} and 2 are wanted", step.reads.size(), step.writes.size(),
                       reads.size());
  std::string why = checkSlices(step.reads, reads, "reads");
  return why.empty() ? checkSlices(step.writes, {call.reachOf(call.d), 0}, "writes") : why;
}

std::string check(const LibraryConvolution &convolution, const CallStep &step) {
  if (step.reads.size() != 2 || step.writes.size() != 2)
    return fmt::format("{} slices are read and {} written, 2 and 2 are wanted", step.reads.size(), step.writes.size());
  using Kind = LibraryConvolution::Kind;
  const uint64_t x = convolution.reachOfX(), kernel = convolution.reachOfKernel(), y = convolution.reachOfY();
  std::vector<uint64_t> reads = {x, kernel}, writes = {y, 0};
  if (convolution.kind == Kind::InputGradient) {
    reads = {kernel, y};
    writes = {x, 0};
  } else if (convolution.kind == Kind::KernelGradient) {
    reads = {x, y};
    writes = {kernel, 0};
  }
  std::string why = checkSlices(step.reads, reads, "reads");
  return why.empty() ? checkSlices(step.writes, writes, "writes") : why;
}

} // namespace

std::optional<LibraryType> findLibraryType(llvm::StringRef text) {
  const auto *found = llvm::find_if(types, [&](const TypeRow &row) { return row.text == text; });
  return found == std::end(types) ? std::nullopt : std::optional(LibraryType(found - types));
}
llvm::StringRef text(LibraryType type) { return types[size_t(type)].text; }
uint64_t bytesOf(LibraryType type) { return types[size_t(type)].bytes; }

std::string checkLibraryCall(const CallStep &call) {
  std::string error;
  if (std::optional<LibraryConvolution::Kind> kind = LibraryConvolution::kindOf(call.function)) {
    std::optional<LibraryConvolution> convolution = LibraryConvolution::parse(*kind, call.configuration, error);
    return convolution ? check(*convolution, call) : error;
  }
  if (call.function != MatmulCall::function)
    return fmt::format("`{}` is no function of a library that is known", call.function);
  std::optional<MatmulCall> matmul = MatmulCall::parse(call.configuration, error);
  return matmul ? check(*matmul, call) : error;
}

LibraryCost libraryCost(const MatmulCall &call, const DeviceModel &device) {
  LibraryCost cost;
  const double batch = double(call.batch), m = double(call.m), n = double(call.n), k = double(call.k);
  cost.flops = 2 * batch * m * n * k;
  cost.bytes = batch * (m * k * double(bytesOf(call.a.type)) + k * n * double(bytesOf(call.b.type)) +
                        m * n * double(bytesOf(call.d.type)) * (call.c ? 2 : 1));
  if (call.hasBias())
    cost.bytes += m * double(bytesOf(call.d.type));
  cost.seconds = secondsOf(cost.flops, cost.bytes, productsPerClock(call, device), device);
  return cost;
}

LibraryCost libraryCost(const LibraryConvolution &convolution, const DeviceModel &device) {
  auto product = [](const LibraryConvolution::Sizes &sizes, size_t from = 0) {
    double all = 1;
    for (size_t i = from; i < sizes.size(); ++i)
      all *= double(sizes[i]);
    return all;
  };
  LibraryCost cost;
  cost.flops = 2 * product(convolution.y) * product(convolution.kernel, 1);
  cost.bytes = (product(convolution.x) + product(convolution.kernel) + product(convolution.y)) *
               double(bytesOf(convolution.type));
  cost.seconds = secondsOf(cost.flops, cost.bytes, productsPerClock(convolution, device), device);
  return cost;
}

LibraryCost libraryCost(const CallStep &call, const DeviceModel &device) {
  std::string error;
  if (std::optional<LibraryConvolution::Kind> kind = LibraryConvolution::kindOf(call.function)) {
    std::optional<LibraryConvolution> convolution = LibraryConvolution::parse(*kind, call.configuration, error);
    HLOC_CHECK(convolution, "a call of a library that nobody has checked");
    return libraryCost(*convolution, device);
  }
  std::optional<MatmulCall> matmul = MatmulCall::parse(call.configuration, error);
  HLOC_CHECK(matmul, "a call of a library that nobody has checked");
  return libraryCost(*matmul, device);
}

uint64_t libraryWorkspace(const TargetInfo &target) { return (target.atLeast(9, 0) ? uint64_t(32) : 4) << 20; }

} // namespace hloc
