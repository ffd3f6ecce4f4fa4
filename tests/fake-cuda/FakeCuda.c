/* A CUDA driver without a GPU, for tests of src/runtime: memory is the host's, kernels are recorded and not run.
 * FAKE_CUDA_FAIL="cuMemAlloc_v2=2" makes that function return 2; the variable is read at every call.
 * fakeCudaLog() gives the calls since fakeCudaReset(), one a line. FakeTrace.h says more of what is done. */
#define FAKE_FAIL "FAKE_CUDA_FAIL"
#include "FakeCalls.h"
#include "FakeTrace.h"
#ifdef FAKE_CUDA_LACKS_GRAPHS
#include "FakeNoGraphs.h"
#else
#include "FakeGraphs.h"
#endif

/* What a stream that is being recorded may not be asked; launches and copies on it are not recorded here. */
#define STREAM_CALL(name)                                                                                              \
  CALL(name);                                                                                                          \
  if (recording)                                                                                                       \
  return refuse(CAPTURE_UNSUPPORTED, "not while the stream is recorded")

EXPORT const char *fakeCudaLog(void) { return logText; }
EXPORT void fakeCudaReset(void) { logText[logLength = 0] = 0; }

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

EXPORT int cuGetErrorName(int error, const char **text) {
  *text = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                         : NULL;
  return *text ? 0 : 1;
}
EXPORT int cuGetErrorString(int error, const char **text) {
  *text = error == 2 ? "out of memory" : error == 700 ? "an illegal memory access was encountered" : NULL;
  return *text ? 0 : 1;
}
EXPORT int cuInit(unsigned flags) {
  CALL(cuInit);
  return 0;
}
EXPORT int cuDriverGetVersion(int *version) {
  CALL(cuDriverGetVersion);
  *version = number("FAKE_CUDA_VERSION", 12040);
  return 0;
}
EXPORT int cuDeviceGetCount(int *count) {
  CALL(cuDeviceGetCount);
  *count = number("FAKE_CUDA_DEVICES", 1);
  return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  CALL(cuDeviceGet);
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char *name, int length, int device) {
  CALL(cuDeviceGetName);
  snprintf(name, length, "Fake %d", device);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALL(cuDeviceGetAttribute);
  const int architecture = number("FAKE_CUDA_ARCHITECTURE", 90);
  *value = attribute == 75 ? architecture / 10 : attribute == 76 ? architecture % 10 : attribute == 97 ? 232448 : -1;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  CALL(cuDevicePrimaryCtxRetain);
  *context = logText;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  CALL(cuDevicePrimaryCtxRelease_v2);
  return 0;
}
EXPORT int cuCtxSetCurrent(void *context) {
  CALL(cuCtxSetCurrent);
  currentContext = context;
  return 0;
}
EXPORT int cuCtxGetCurrent(void **context) {
  CALL(cuCtxGetCurrent);
  *context = currentContext;
  return 0;
}
EXPORT int cuCtxGetDevice(int *device) {
  CALL(cuCtxGetDevice);
  *device = 0;
  return currentContext ? 0 : 201;
}
static __thread void *pushedContexts[16];
static __thread unsigned numPushed;
EXPORT int cuCtxPushCurrent_v2(void *context) {
  CALL(cuCtxPushCurrent_v2);
  if (!context || numPushed == 16)
    return 201;
  pushedContexts[numPushed++] = currentContext;
  currentContext = context;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void **context) {
  CALL(cuCtxPopCurrent_v2);
  if (!numPushed)
    return 201;
  *context = currentContext;
  currentContext = pushedContexts[--numPushed];
  return 0;
}
EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  record("cuModuleLoadDataEx");
  int failed = failure("cuModuleLoadDataEx");
  for (unsigned i = 0; failed && i < count; ++i)
    if (options[i] == 5)
      strcpy(values[i], "ptxas fatal : the log of the driver");
  *module = logText;
  if (!failed && traceFile())
    *module = traceModule(image);
  return failed;
}
EXPORT int cuModuleUnload(void *module) {
  CALL(cuModuleUnload);
  if (traceFile())
    forgetModule(module);
  return 0;
}
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
  CALL(cuModuleGetFunction);
  if (strcmp(name, "absent") == 0)
    return 500;
  *function = strcmp(name, "hloc_takes_branch") == 0 ? &branchFunction
              : strcmp(name, "hloc_goes_round") == 0 ? &roundFunction
                                                     : logText;
  if (*function == logText && traceFile() && !(*function = findKernel(module, name)))
    return 500;
  return 0;
}
EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) {
  CALL(cuFuncGetAttribute);
  *value = attribute == 0 ? 1024 : attribute == 1 ? 1024 : -1;
  return 0;
}
EXPORT int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes) {
  CALL(cuFuncGetParamInfo);
  if (!traceFile())
    return 801;
  const struct Kernel *kernel = function;
  *offset = *bytes = 0;
  for (size_t i = 0; i <= index && index < kernel->numParameters; ++i) {
    *offset += *bytes;
    if (kernel->isMap[i])
      *offset = (*offset + 63) / 64 * 64;
    *bytes = kernel->isMap[i] ? mapBytes : 8;
  }
  return *bytes ? 0 : 1;
}
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
  CALL(cuFuncSetAttribute);
  char text[64];
  snprintf(text, sizeof text, "attribute %d = %d", attribute, value);
  record(text);
  return 0;
}
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  CALL(cuMemAlloc_v2);
  *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  rememberAllocation(*address, bytes);
  trace("alloc %llx %zu\n", (unsigned long long)*address, bytes);
  return *address ? 0 : 2;
}
EXPORT int cuMemFree_v2(uint64_t address) {
  CALL(cuMemFree_v2);
  trace("free %llx\n", (unsigned long long)address);
  if (!forgetAllocation(address))
    return 1;
  free((void *)(uintptr_t)address);
  return 0;
}
EXPORT int cuMemsetD8Async(uint64_t address, unsigned char value, size_t count, void *stream) {
#ifndef FAKE_CUDA_LACKS_GRAPHS
  if (recording && stream == recordingStream) {
    CALL(cuMemsetD8Async);
    const struct FakeFill fill = {address, count, value};
    recordWork(stream, workOfFill, &fill, sizeof fill);
    return 0;
  }
#endif
  STREAM_CALL(cuMemsetD8Async);
  return runFill(address, value, count);
}
static int runFill(uint64_t address, unsigned char value, size_t count) {
  trace("fill %llx %u %zu\n", (unsigned long long)address, value, count);
  if (refusal(address, count))
    return refusal(address, count);
  if (count < ((size_t)1 << 24)) /* buffers that only flush caches are not worth touching */
    memset((void *)(uintptr_t)address, value, count);
  return 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  STREAM_CALL(cuMemcpyHtoDAsync_v2);
  if (traceFile())
    trace("upload %llx %zu %u\n", (unsigned long long)to, bytes, checksum(from, bytes));
  if (refusal(to, bytes))
    return refusal(to, bytes);
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  STREAM_CALL(cuMemcpyDtoHAsync_v2);
  trace("download %llx %zu\n", (unsigned long long)from, bytes);
  if (refusal(from, bytes))
    return refusal(from, bytes);
  memcpy(to, (void *)(uintptr_t)from, bytes);
  decide(to, bytes);
  return 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  STREAM_CALL(cuMemcpyDtoDAsync_v2);
  return runCopy(to, from, bytes);
}
static int runCopy(uint64_t to, uint64_t from, size_t bytes) {
  trace("copy %llx %llx %zu\n", (unsigned long long)to, (unsigned long long)from, bytes);
  if (refusal(to, bytes) || refusal(from, bytes))
    return refusal(to, bytes) ? refusal(to, bytes) : refusal(from, bytes);
  char text[64];
  snprintf(text, sizeof text, "copy %zu", bytes);
  record(text);
  if (bytes < ((size_t)1 << 24))
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}
EXPORT int cuStreamCreate(void **stream, unsigned flags) {
  CALL(cuStreamCreate);
  static unsigned numStreams; /* threads make their streams one after the other, or get the same */
  *stream = logText + ++numStreams % sizeof logText;
  return 0;
}
EXPORT int cuStreamDestroy_v2(void *stream) {
  CALL(cuStreamDestroy_v2);
  return 0;
}
EXPORT int cuStreamSynchronize(void *stream) {
  STREAM_CALL(cuStreamSynchronize);
  return 0;
}
EXPORT int cuEventCreate(void **event, unsigned flags) {
  CALL(cuEventCreate);
  *event = logText;
  return 0;
}
EXPORT int cuEventDestroy_v2(void *event) {
  CALL(cuEventDestroy_v2);
  return 0;
}
EXPORT int cuEventRecord(void *event, void *stream) {
  STREAM_CALL(cuEventRecord);
  return 0;
}
EXPORT int cuEventSynchronize(void *event) {
  CALL(cuEventSynchronize);
  return 0;
}
EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  CALL(cuEventElapsedTime);
  static int calls; /* 0.25, 0.5, 0.75, 1, 0.25, ... */
  *milliseconds = (float)(calls++ % 4 + 1) / 4;
  return 0;
}
#ifndef FAKE_CUDA_LACKS_LAUNCH
EXPORT int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                          unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream, void **parameters,
                          void **extra) {
  STREAM_CALL(cuLaunchKernel);
  const unsigned sizes[] = {gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes};
  return runKernel(function, sizes, NULL, stream, parameters);
}
#endif
static int runKernel(void *function, const unsigned *sizes, const unsigned *cluster, void *stream, void **parameters) {
  if (traceFile())
    return traceLaunch(function, sizes, stream, parameters);
  char text[200];
  if (cluster && cluster[0]) {
    snprintf(text, sizeof text, "clusters of %u %u %u", cluster[0], cluster[1], cluster[2]);
    record(text);
  }
  snprintf(text, sizeof text, "launch <<<%u %u %u, %u %u %u, %u>>> first byte of memory %d, scalar %u", sizes[0],
           sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], **(unsigned char **)parameters[0],
           *(unsigned *)parameters[1]);
  record(text);
  return 0;
}
#ifndef FAKE_CUDA_LACKS_LAUNCH
/* A map is the text of what it was told, cut off behind 119 characters, and in its last 8 bytes the address. */
static int encode(void *map, const char *box, int type, unsigned rank, void *address, const unsigned long long *dims,
                  const unsigned long long *strides, const unsigned *steps, const int *modes) {
  static const size_t bytesOf[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  char text[256];
  int length = snprintf(text, sizeof text, "map of type %d,", type);
  for (unsigned i = 0; i < rank; ++i)
    length +=
        snprintf(text + length, sizeof text - length, " %llu*%llu/%u", dims[i], i ? strides[i - 1] : 0ull, steps[i]);
  snprintf(text + length, sizeof text - length, ", %s, modes %d %d %d %d", box, modes[0], modes[1], modes[2], modes[3]);
  record(text);
  if ((size_t)map % 64 || (size_t)address % 16 || type < 0 || type > 12 || !rank || rank > 5 || !strides)
    return 1;
  size_t extent = dims[0] * bytesOf[type];
  for (unsigned i = 1; i < rank; ++i)
    extent += (dims[i] - 1) * strides[i - 1];
  trace("encode %llx\n", (unsigned long long)(size_t)address);
  memset(map, 0, mapBytes);
  memcpy(map, text, strlen(text) < mapTextBytes ? strlen(text) : mapTextBytes - 1);
  memcpy((char *)map + mapTextBytes, &address, sizeof address);
  return refusal((size_t)address, extent);
}
EXPORT int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const unsigned long long *dims,
                                  const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                                  int interleave, int swizzle, int l2, int fill) {
  CALL(cuTensorMapEncodeTiled);
  char text[100];
  int length = snprintf(text, sizeof text, "box");
  for (unsigned i = 0; i < rank && i < 5; ++i)
    length += snprintf(text + length, sizeof text - length, " %u", box[i]);
  const int modes[] = {interleave, swizzle, l2, fill};
  return encode(map, text, type, rank, address, dims, strides, steps, modes);
}
EXPORT int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const unsigned long long *dims,
                                   const unsigned long long *strides, const int *lower, const int *upper,
                                   unsigned channels, unsigned pixels, const unsigned *steps, int interleave,
                                   int swizzle, int l2, int fill) {
  CALL(cuTensorMapEncodeIm2col);
  char text[100];
  int length = snprintf(text, sizeof text, "%u of %u", pixels, channels);
  for (unsigned i = 0; i + 2 < rank && i < 3; ++i)
    length += snprintf(text + length, sizeof text - length, " %d:%d", lower[i], upper[i]);
  const int modes[] = {interleave, swizzle, l2, fill};
  return encode(map, text, type, rank, address, dims, strides, steps, modes);
}
struct Configuration {
  unsigned sizes[7];
  void *stream;
  const struct {
    int id;
    unsigned value[17];
  } * attributes;
  unsigned numAttributes;
};
EXPORT int cuLaunchKernelEx(const struct Configuration *c, void *function, void **parameters, void **extra) {
  CALL(cuLaunchKernelEx);
  for (unsigned i = 0; i < c->numAttributes; ++i) {
    const unsigned *value = c->attributes[i].value + 1;
    char text[200];
    snprintf(text, sizeof text, "launch attribute %d is %u %u %u", c->attributes[i].id, value[0], value[1], value[2]);
    record(text);
    trace("attribute %d %u %u %u\n", c->attributes[i].id, value[0], value[1], value[2]);
  }
  return cuLaunchKernel(function, c->sizes[0], c->sizes[1], c->sizes[2], c->sizes[3], c->sizes[4], c->sizes[5],
                        c->sizes[6], c->stream, parameters, extra);
}
#endif
