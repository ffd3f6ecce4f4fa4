#pragma once
// The CUDA driver, opened at run time or linked, and how failures are told.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#ifdef HLOC_LAUNCH_LINK_CUDA
#include <cuda.h>
#else
#include <dlfcn.h>
#endif

// As <cuda.h> declares them: a CUstream and a cudaStream_t are a Stream.
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUstream_st;
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;

namespace hloc_launch {

using DevicePointer = unsigned long long; ///< CUdeviceptr
using Stream = CUstream_st *;
using Context = CUctx_st *;

/// Whether something was done, and else why not, in a sentence for people.
class [[nodiscard]] Status {
public:
  static Status failure(std::string why, int result = 0) {
    Status status;
    status.failed = true;
    status.why = std::move(why);
    status.result = result;
    return status;
  }
  bool ok() const { return !failed; }
  const std::string &message() const { return why; } ///< empty if ok()
  /// CUresult of the driver's function that failed; notSupported of a graph that this module cannot become here; else
  /// 0.
  int cudaResult() const { return result; }
  static constexpr int notSupported = 801; ///< CUDA_ERROR_NOT_SUPPORTED

private:
  bool failed = false;
  std::string why;
  int result = 0;
};

/// X(member, function, version, parameters): the driver's functions that are used, under the names of <cuda.h>; each
/// returns a CUresult. The version ends the symbol's name; <cuda.h> chooses it itself.
#define HLOC_LAUNCH_DRIVER_FUNCTIONS(X)                                                                                \
  X(getErrorName, cuGetErrorName, "", (int result, const char **text))                                                 \
  X(getErrorString, cuGetErrorString, "", (int result, const char **text))                                             \
  X(init, cuInit, "", (unsigned flags))                                                                                \
  X(deviceGetCount, cuDeviceGetCount, "", (int *count))                                                                \
  X(deviceGetAttribute, cuDeviceGetAttribute, "", (int *value, int attribute, int device))                             \
  X(primaryContextRetain, cuDevicePrimaryCtxRetain, "", (Context * context, int device))                               \
  X(primaryContextRelease, cuDevicePrimaryCtxRelease, "_v2", (int device))                                             \
  X(contextGetCurrent, cuCtxGetCurrent, "", (Context * context))                                                       \
  X(contextGetDevice, cuCtxGetDevice, "", (int *device))                                                               \
  X(contextPush, cuCtxPushCurrent, "_v2", (Context context))                                                           \
  X(contextPop, cuCtxPopCurrent, "_v2", (Context * context))                                                           \
  X(moduleLoad, cuModuleLoadDataEx, "",                                                                                \
    (CUmod_st * *module, const void *image, unsigned numOptions, int *options, void **values))                         \
  X(moduleUnload, cuModuleUnload, "", (CUmod_st * module))                                                             \
  X(moduleGetFunction, cuModuleGetFunction, "", (CUfunc_st * *function, CUmod_st * module, const char *name))          \
  X(functionGetAttribute, cuFuncGetAttribute, "", (int *value, int attribute, CUfunc_st *function))                    \
  X(functionSetAttribute, cuFuncSetAttribute, "", (CUfunc_st * function, int attribute, int value))                    \
  X(memoryAllocate, cuMemAlloc, "_v2", (DevicePointer * address, size_t bytes))                                        \
  X(memoryFree, cuMemFree, "_v2", (DevicePointer address))                                                             \
  X(fill, cuMemsetD8Async, "", (DevicePointer address, unsigned char value, size_t bytes, Stream stream))              \
  X(copyToDevice, cuMemcpyHtoDAsync, "_v2", (DevicePointer to, const void *from, size_t bytes, Stream stream))         \
  X(copyToHost, cuMemcpyDtoHAsync, "_v2", (void *to, DevicePointer from, size_t bytes, Stream stream))                 \
  X(copyOnDevice, cuMemcpyDtoDAsync, "_v2", (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))       \
  X(streamCreate, cuStreamCreate, "", (Stream * stream, unsigned flags))                                               \
  X(streamDestroy, cuStreamDestroy, "_v2", (Stream stream))                                                            \
  X(streamSynchronize, cuStreamSynchronize, "", (Stream stream))                                                       \
  X(launchKernel, cuLaunchKernel, "",                                                                                  \
    (CUfunc_st * function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,           \
     unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters, void **extra))

// GraphApi.h
struct NodeParams;
struct EdgeData;
using ConditionHandle = unsigned long long; ///< CUgraphConditionalHandle

/// The same of what graphs take. cuGraphAddNode_v2 and conditions are of CUDA 12.3; older drivers have all or none of
/// the rest, and make no graphs here.
#define HLOC_LAUNCH_GRAPH_FUNCTIONS(X)                                                                                 \
  X(graphCreate, cuGraphCreate, "", (CUgraph_st * *graph, unsigned flags))                                             \
  X(graphDestroy, cuGraphDestroy, "", (CUgraph_st * graph))                                                            \
  X(graphAddNode, cuGraphAddNode_v2, "",                                                                               \
    (CUgraphNode_st * *node, CUgraph_st * graph, CUgraphNode_st *const *dependencies, const EdgeData *edges,           \
     size_t numDependencies, NodeParams *params))                                                                      \
  X(graphConditionCreate, cuGraphConditionalHandleCreate, "",                                                          \
    (ConditionHandle * handle, CUgraph_st * graph, Context context, unsigned atFirst, unsigned flags))                 \
  X(graphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, "",                                                    \
    (CUgraphNode_st * node, int attribute, const void *value))                                                         \
  X(graphInstantiate, cuGraphInstantiateWithFlags, "",                                                                 \
    (CUgraphExec_st * *exec, CUgraph_st * graph, unsigned long long flags))                                            \
  X(graphExecNodeSetParams, cuGraphExecNodeSetParams, "",                                                              \
    (CUgraphExec_st * exec, CUgraphNode_st * node, NodeParams * params))                                               \
  X(graphExecDestroy, cuGraphExecDestroy, "", (CUgraphExec_st * exec))                                                 \
  X(graphLaunch, cuGraphLaunch, "", (CUgraphExec_st * exec, Stream stream))                                            \
  X(streamBeginCapture, cuStreamBeginCapture, "_v2", (Stream stream, int mode))                                        \
  X(streamEndCapture, cuStreamEndCapture, "", (Stream stream, CUgraph_st * *graph))

/// As CUlaunchAttribute and CUlaunchConfig of <cuda.h>.
struct LaunchAttribute {
  int id; ///< 4: size of clusters, 6: programmatic
  alignas(8) unsigned value[3];
  char rest[52];
};
struct LaunchConfiguration {
  unsigned grid[3], block[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfiguration) == 56);

/// The CUDA driver. open() gives the process's only one.
class Driver {
public:
#define HLOC_LAUNCH_MEMBER(member, function, version, parameters) int(*member) parameters = nullptr;
  HLOC_LAUNCH_DRIVER_FUNCTIONS(HLOC_LAUNCH_MEMBER)
  // What older drivers lack, which is null there.
  HLOC_LAUNCH_GRAPH_FUNCTIONS(HLOC_LAUNCH_MEMBER)
#undef HLOC_LAUNCH_MEMBER
  int (*launchKernelEx)(const LaunchConfiguration *configuration, CUfunc_st *function, void **parameters,
                        void **extra) = nullptr; ///< since CUDA 11.8; the next two since 12.0
  int (*encodeTiled)(void *map, int type, unsigned rank, void *address, const uint64_t *dims, const uint64_t *strides,
                     const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int l2,
                     int fill) = nullptr;
  int (*encodeIm2col)(void *map, int type, unsigned rank, void *address, const uint64_t *dims, const uint64_t *strides,
                      const int32_t *lower, const int32_t *upper, uint32_t channels, uint32_t pixels,
                      const uint32_t *steps, int interleave, int swizzle, int l2, int fill) = nullptr;
  /// Place and size of a kernel's parameter; CUDA_ERROR_INVALID_VALUE if it has fewer. Since CUDA 12.4.
  int (*functionGetParameter)(CUfunc_st *function, size_t index, size_t *offset, size_t *bytes) = nullptr;

  /// Opens `library` at the first call that succeeds; later ones give the same driver.
  static Status open(const Driver *&driver, const char *library = "libcuda.so.1") {
    static std::mutex mutex;
    static Driver opened;
    static bool isOpen = false;
    std::lock_guard<std::mutex> lock(mutex);
    if (!isOpen)
      if (Status status = opened.find(library); !status.ok())
        return status;
    isOpen = true;
    driver = &opened;
    return {};
  }

  /// "DOING: CUDA_ERROR_NAME (text)" for a result that is not CUDA_SUCCESS.
  Status failure(int result, const std::string &doing) const {
    const char *name = nullptr, *text = nullptr;
    getErrorName(result, &name);
    getErrorString(result, &text);
    return Status::failure(doing + ": " + (name ? name : "CUDA error " + std::to_string(result)) +
                               (text ? " (" + std::string(text) + ")" : ""),
                           result);
  }
  Status check(int result, const std::string &doing) const { return result ? failure(result, doing) : Status(); }

private:
  Status find(const char *library) {
#ifdef HLOC_LAUNCH_LINK_CUDA
    (void)library;
#define HLOC_LAUNCH_FIND(member, function, version, parameters)                                                        \
  member = reinterpret_cast<int(*) parameters>(&::function);
    HLOC_LAUNCH_DRIVER_FUNCTIONS(HLOC_LAUNCH_FIND)
#if CUDA_VERSION >= 11080
    launchKernelEx = reinterpret_cast<decltype(launchKernelEx)>(&::cuLaunchKernelEx);
#endif
#if CUDA_VERSION >= 12000
    encodeTiled = reinterpret_cast<decltype(encodeTiled)>(&::cuTensorMapEncodeTiled);
    encodeIm2col = reinterpret_cast<decltype(encodeIm2col)>(&::cuTensorMapEncodeIm2col);
#endif
#if CUDA_VERSION >= 12030
    HLOC_LAUNCH_GRAPH_FUNCTIONS(HLOC_LAUNCH_FIND)
#endif
#if CUDA_VERSION >= 12040
    functionGetParameter = reinterpret_cast<decltype(functionGetParameter)>(&::cuFuncGetParamInfo);
#endif
#else
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return Status::failure(std::string("there is no CUDA driver here: ") + dlerror());
    std::string missing;
#define HLOC_LAUNCH_FIND(member, function, version, parameters)                                                        \
  member = reinterpret_cast<int(*) parameters>(dlsym(handle, #function version));                                      \
  if (!member)                                                                                                         \
    missing += std::string(missing.empty() ? "" : ", ") + #function version;
    HLOC_LAUNCH_GRAPH_FUNCTIONS(HLOC_LAUNCH_FIND)
    missing.clear();
    HLOC_LAUNCH_DRIVER_FUNCTIONS(HLOC_LAUNCH_FIND)
    launchKernelEx = reinterpret_cast<decltype(launchKernelEx)>(dlsym(handle, "cuLaunchKernelEx"));
    encodeTiled = reinterpret_cast<decltype(encodeTiled)>(dlsym(handle, "cuTensorMapEncodeTiled"));
    encodeIm2col = reinterpret_cast<decltype(encodeIm2col)>(dlsym(handle, "cuTensorMapEncodeIm2col"));
    functionGetParameter = reinterpret_cast<decltype(functionGetParameter)>(dlsym(handle, "cuFuncGetParamInfo"));
    if (!missing.empty())
      return Status::failure(std::string("`") + library + "` is no CUDA driver, or too old: it lacks " + missing);
#endif
#undef HLOC_LAUNCH_FIND
    return check(init(0), "initialising the CUDA driver (cuInit)");
  }
};

/// A context is current in this thread as long as this lives.
class CurrentContext {
public:
  CurrentContext(const Driver &of, Context context) : driver(of), result(of.contextPush(context)) {}
  ~CurrentContext() {
    Context popped = nullptr;
    if (!result)
      driver.contextPop(&popped);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;
  Status status() const { return driver.check(result, "using the context (cuCtxPushCurrent)"); }

private:
  const Driver &driver;
  int result;
};

} // namespace hloc_launch
