// A CUDA runtime without a GPU: host programs that are linked with it instead of libcudart allocate memory of the host
// and launch nothing. What they launch becomes a launch description of hloc.
//
//   RECORD_PTX=gemm.ptx RECORD_JSON=gemm.json gemm
//
// Parameters' sizes are those of the PTX. Addresses of allocated memory in parameters and in memory that the host has
// filled are found by their values, since allocations lie where nothing else does; tensor maps by the mark that
// cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col leave here. What cannot be described ends the program.
#include "Recorder.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("recorder: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::exit(1);
}

std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char *format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

template <typename T> std::string list(const T *values, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i)
    all += (i ? "," : "") + std::to_string(values[i]);
  return "[" + all + "]";
}

// ---- Memory -------------------------------------------------------------------------------------------------------

struct Allocation {
  uint64_t address = 0, bytes = 0;
  int parameter = -1;
  bool isResult = false;
  int resultIndex = -1;
  std::vector<bool> uploaded; ///< by byte, of those that the host has filled; empty: none
};

std::vector<Allocation> allocations;
std::string steps; ///< JSON, comma separated
bool hasLaunched = false;

Allocation &allocate(size_t bytes) {
  constexpr uint64_t firstAddress = 0x7d0000000000, distance = uint64_t(1) << 34;
  Allocation made;
  made.address = firstAddress + allocations.size() * distance;
  made.bytes = bytes;
  void *memory = mmap(reinterpret_cast<void *>(made.address), std::max<size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
  if (memory != reinterpret_cast<void *>(made.address))
    fail("no memory at %llx", static_cast<unsigned long long>(made.address));
  allocations.push_back(made);
  return allocations.back();
}

/// The number of the allocation that holds the address, or whose end it is; -1 if there is none.
int find(uint64_t address) {
  for (size_t i = 0; i < allocations.size(); ++i)
    if (address >= allocations[i].address && address <= allocations[i].address + allocations[i].bytes)
      return int(i);
  return -1;
}

/// Members of a slice from the address to the end of its buffer.
std::string sliceFrom(uint64_t address) {
  int number = find(address);
  if (number < 0)
    fail("%llx is in no allocation", static_cast<unsigned long long>(address));
  const Allocation &in = allocations[size_t(number)];
  return text("\"buffer\": %d, \"offset\": %llu, \"bytes\": %llu", number,
              static_cast<unsigned long long>(address - in.address),
              static_cast<unsigned long long>(in.bytes - (address - in.address)));
}

/// Whether kernels may write there: memory that nobody else has filled.
const char *writtenText(uint64_t address) {
  const Allocation &in = allocations.at(size_t(find(address)));
  return in.parameter < 0 && in.uploaded.empty() ? ", \"written\": true" : "";
}

// ---- Tensor maps --------------------------------------------------------------------------------------------------

constexpr char mark[] = "a tensor map of hloc's recorder";
struct MarkedMap {
  char mark[32];
  uint64_t number;
  char unused[128 - 40];
};
static_assert(sizeof(MarkedMap) == sizeof(CUtensorMap) && sizeof mark == sizeof MarkedMap::mark);
std::vector<std::string> tensorMaps; ///< members of a piece in JSON, of each

struct CommonFields {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void *address;
  const cuuint64_t *dims, *strides;
  const cuuint32_t *elementStrides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2;
  CUtensorMapFloatOOBfill fill;
};

CUresult encode(CUtensorMap *map, const CommonFields &f, const std::string &ofMode) {
  static const char *const types[] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                      "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
  static const char *const interleaves[] = {"none", "16B", "32B"};
  static const char *const swizzles[] = {"none", "32B", "64B", "128B"};
  static const char *const promotions[] = {"none", "64B", "128B", "256B"};
  if (size_t(f.type) >= std::size(types) || size_t(f.swizzle) >= std::size(swizzles))
    fail("a tensor map of type %d and swizzle %d", int(f.type), int(f.swizzle));
  MarkedMap made = {};
  std::memcpy(made.mark, mark, sizeof mark);
  made.number = tensorMaps.size();
  std::memcpy(static_cast<void *>(map), &made, sizeof made);
  tensorMaps.push_back("\"tensor_map\": {" + sliceFrom(reinterpret_cast<uint64_t>(f.address)) +
                       text(", \"type\": \"%s\", \"dims\": ", types[f.type]) + list(f.dims, f.rank) +
                       ", \"strides\": " + list(f.strides, f.rank - 1) + ofMode +
                       ", \"element_strides\": " + list(f.elementStrides, f.rank) +
                       text(", \"interleave\": \"%s\", \"swizzle\": \"%s\", \"l2\": \"%s\", \"fill\": \"%s\"}",
                            interleaves[f.interleave], swizzles[f.swizzle], promotions[f.l2], f.fill ? "nan" : "zero") +
                       writtenText(reinterpret_cast<uint64_t>(f.address)));
  return CUDA_SUCCESS;
}

CUresult encodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *elementStrides,
                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                     CUtensorMapFloatOOBfill fill) {
  return encode(map, {type, rank, address, dims, strides, elementStrides, interleave, swizzle, l2, fill},
                ", \"box\": " + list(box, rank));
}

CUresult encodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                      const cuuint64_t *dims, const cuuint64_t *strides, const int *lower, const int *upper,
                      cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elementStrides,
                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                      CUtensorMapFloatOOBfill fill) {
  return encode(map, {type, rank, address, dims, strides, elementStrides, interleave, swizzle, l2, fill},
                ", \"im2col\": {\"lower\": " + list(lower, rank - 2) + ", \"upper\": " + list(upper, rank - 2) +
                    text(", \"channels\": %u, \"pixels\": %u}", channels, pixels));
}

// ---- Bytes with addresses in them -----------------------------------------------------------------------------------

/// `"data": ..., "pieces": [...]`
std::string structure(const uint8_t *bytes, size_t count) {
  std::vector<uint8_t> plain(bytes, bytes + count);
  std::string pieces;
  for (size_t at = 0; at + 8 <= count; at += 8) {
    std::string piece;
    if (MarkedMap map; at + sizeof map <= count && std::memcmp(bytes + at, mark, sizeof mark) == 0) {
      std::memcpy(&map, bytes + at, sizeof map);
      piece = tensorMaps.at(map.number);
      std::fill_n(plain.begin() + at, sizeof map, 0);
    } else {
      uint64_t word;
      std::memcpy(&word, bytes + at, sizeof word);
      if (find(word) < 0)
        continue;
      piece = sliceFrom(word) + writtenText(word);
      std::fill_n(plain.begin() + at, sizeof word, 0);
    }
    pieces += (pieces.empty() ? "" : ",\n      ") + text("{\"at\": %zu, ", at) + piece + "}";
  }
  std::string hex;
  for (uint8_t byte : plain)
    hex += text("%02x", byte);
  return "\"data\": \"" + hex + "\", \"pieces\": [" + pieces + "]";
}

// ---- Kernels ------------------------------------------------------------------------------------------------------

/// Names by the address of their host function. Kernels register before the variables of this file are made.
std::map<const void *, std::string> &kernelNames() {
  static auto &names = *new std::map<const void *, std::string>;
  return names;
}

/// Sizes of the parameters of an entry, in the PTX text.
std::vector<size_t> parameterSizes(const std::string &kernel) {
  static const std::string ptx = [] {
    const char *file = std::getenv("RECORD_PTX");
    std::stringstream all;
    all << std::ifstream(file ? file : "").rdbuf();
    return all.str();
  }();
  size_t at = ptx.find(".entry " + kernel + "(");
  if (at == std::string::npos)
    fail("RECORD_PTX has no kernel %s", kernel.c_str());
  std::stringstream parameters(ptx.substr(at, ptx.find(")\n", at) - at));
  std::vector<size_t> sizes;
  for (std::string line; std::getline(parameters, line);) {
    size_t dot = line.find(".param");
    if (dot == std::string::npos)
      continue;
    size_t bracket = line.rfind('[');
    if (line.find(".b8 ") != std::string::npos && bracket != std::string::npos) {
      sizes.push_back(std::stoul(line.substr(bracket + 1)));
      continue;
    }
    size_t bits = line.find_first_of("0123456789", dot);
    while (line[bits - 2] != '.') // an alignment
      bits = line.find_first_of("0123456789", line.find(' ', bits));
    sizes.push_back(std::stoul(line.substr(bits)) / 8);
  }
  return sizes;
}

void addStep(const std::string &step) { steps += (steps.empty() ? "" : ",\n  ") + step; }

cudaError_t launch(const std::string &kernel, dim3 grid, dim3 block, dim3 cluster, size_t sharedBytes,
                   bool isProgrammatic, void **arguments) {
  std::string all;
  size_t number = 0;
  for (size_t size : parameterSizes(kernel))
    all += (number ? ",\n     {" : "{") + structure(static_cast<uint8_t *>(arguments[number]), size) + "}", ++number;
  const unsigned grids[] = {grid.x, grid.y, grid.z}, blocks[] = {block.x, block.y, block.z},
                 clusters[] = {cluster.x, cluster.y, cluster.z};
  hasLaunched = true;
  addStep("{\"launch\": {\"kernel\": \"" + kernel + "\", \"grid\": " + list(grids, 3) + ", \"block\": " +
          list(blocks, 3) + ", \"cluster\": " + list(clusters, 3) + (isProgrammatic ? ", \"programmatic\": true" : "") +
          text(", \"dynamic_shared_bytes\": %zu, \"inputs\": 0,\n    \"arguments\": [", sharedBytes) + all + "]}}");
  return cudaSuccess;
}

const std::string &nameOf(const void *function) {
  auto found = kernelNames().find(function);
  if (found == kernelNames().end())
    fail("launch of an unknown kernel");
  return found->second;
}

// ---- The description ------------------------------------------------------------------------------------------------

std::string describe() {
  std::string buffers, results;
  for (size_t i = 0; i < allocations.size(); ++i) {
    const Allocation &a = allocations[i];
    buffers += (i ? ",\n  " : "") + text("{\"id\": %zu, \"bytes\": %llu", i, static_cast<unsigned long long>(a.bytes));
    if (a.parameter >= 0)
      buffers += text(", \"parameter\": %d", a.parameter);
    if (!a.uploaded.empty()) {
      if (std::find(a.uploaded.begin(), a.uploaded.end(), false) != a.uploaded.end())
        fail("buffer %zu is filled in part by the host", i);
      buffers += ", \"contents\": {" + structure(reinterpret_cast<uint8_t *>(a.address), a.bytes) + "}";
    }
    buffers += "}";
    if (a.isResult)
      results +=
          (results.empty() ? "" : ",\n  ") + text("{\"index\": [%s], \"buffer\": %zu, \"offset\": 0, \"bytes\": %llu}",
                                                  a.resultIndex < 0 ? "" : std::to_string(a.resultIndex).c_str(), i,
                                                  static_cast<unsigned long long>(a.bytes));
  }
  return "{\"target\": \"sm_90a\",\n \"buffers\": [\n  " + buffers + "],\n \"steps\": [\n  " + steps +
         "],\n \"results\": [\n  " + results + "]}\n";
}

struct AtTheEnd {
  ~AtTheEnd() {
    if (const char *file = std::getenv("RECORD_JSON"))
      if (hasLaunched)
        std::ofstream(file) << describe();
  }
} atTheEnd;

struct Configuration {
  dim3 grid, block;
  size_t sharedBytes;
  void *stream;
};
std::vector<Configuration> configurations;

cudaError_t fill(void *address, int value, size_t bytes) {
  int number = find(reinterpret_cast<uint64_t>(address));
  if (number < 0)
    fail("fill of memory that nobody allocated");
  std::memset(address, value, bytes);
  const Allocation &in = allocations[size_t(number)];
  addStep(text("{\"fill\": {\"to\": {\"buffer\": %d, \"offset\": %llu, \"bytes\": %zu}, \"value\": %d}}", number,
               static_cast<unsigned long long>(reinterpret_cast<uint64_t>(address) - in.address), bytes, value & 255));
  return cudaSuccess;
}

cudaError_t copy(void *to, const void *from, size_t bytes) {
  int number = find(reinterpret_cast<uint64_t>(to)), source = find(reinterpret_cast<uint64_t>(from));
  if (number < 0 || source >= 0)
    fail("only copies from the host to the device are known");
  if (hasLaunched)
    fail("memory is filled after a launch");
  std::memcpy(to, from, bytes);
  Allocation &in = allocations[size_t(number)];
  in.uploaded.resize(in.bytes);
  std::fill_n(in.uploaded.begin() + int64_t(reinterpret_cast<uint64_t>(to) - in.address), bytes, true);
  return cudaSuccess;
}

int attribute(int which) {
  switch (which) {
  case cudaDevAttrMultiProcessorCount:
    return 132;
  case cudaDevAttrComputeCapabilityMajor:
    return 9;
  case cudaDevAttrComputeCapabilityMinor:
    return 0;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    return 232448;
  case cudaDevAttrClusterLaunch:
    return 1;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    return 2048;
  }
  fail("device attribute %d is asked for", which);
}

} // namespace

extern "C" {
void *parameterMemory(int number, size_t bytes) {
  Allocation &made = allocate(bytes);
  made.parameter = number;
  return reinterpret_cast<void *>(made.address);
}
void *resultMemory(int index, size_t bytes) {
  Allocation &made = allocate(bytes);
  made.isResult = true;
  made.resultIndex = index;
  return reinterpret_cast<void *>(made.address);
}

void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
  kernelNames()[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, void *stream) {
  configurations.push_back({grid, block, sharedBytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *sharedBytes, void *stream) {
  const Configuration &last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *sharedBytes = last.sharedBytes;
  *static_cast<void **>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t sharedBytes,
                               cudaStream_t) {
  return launch(nameOf(kernel), grid, block, {1, 1, 1}, sharedBytes, false, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  dim3 cluster(1, 1, 1);
  bool isProgrammatic = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &set = config->attrs[i];
    if (set.id == cudaLaunchAttributeClusterDimension)
      cluster = {set.val.clusterDim.x, set.val.clusterDim.y, set.val.clusterDim.z};
    else if (set.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      isProgrammatic = set.val.programmaticStreamSerializationAllowed != 0;
    else
      fail("launch attribute %d", int(set.id));
  }
  return launch(nameOf(function), config->gridDim, config->blockDim, cluster, config->dynamicSmemBytes, isProgrammatic,
                arguments);
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  *memory = reinterpret_cast<void *>(allocate(bytes).address);
  return cudaSuccess;
}
cudaError_t cudaFree(void *) { return cudaSuccess; }
cudaError_t cudaMemset(void *to, int value, size_t bytes) { return fill(to, value, bytes); }
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) { return fill(to, value, bytes); }
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) { return copy(to, from, bytes); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return copy(to, from, bytes);
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *, const cudaLaunchConfig_t *config) {
  unsigned blocks = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      blocks =
          config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y * config->attrs[i].val.clusterDim.z;
  *clusters = int(132 / blocks);
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
  *function = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0    ? reinterpret_cast<void *>(&encodeTiled)
              : std::strcmp(symbol, "cuTensorMapEncodeIm2col") == 0 ? reinterpret_cast<void *>(&encodeIm2col)
                                                                    : nullptr;
  if (!*function)
    fail("the driver's function %s is asked for", symbol);
  if (status)
    *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
