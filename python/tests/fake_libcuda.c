/* What cuda-python needs of libcuda.so.1, on memory of the host: the calling convention is what is tested. There is one
 * kernel, which adds 64 floats. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuGetErrorName(int error, const char **text) { return *text = "CUDA_ERROR_FAKE", 0; }
EXPORT int cuInit(unsigned flags) { return 0; }
EXPORT int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)7, 0; }
EXPORT int cuCtxGetCurrent(void **context) { return *context = 0, 0; }
EXPORT int cuCtxSetCurrent(void *context) { return context == (void *)7 ? 0 : 201; }
EXPORT int cuModuleLoadData(void **module, const void *image) {
  *module = (void *)9;
  return strstr(image, ".entry m(") ? 0 : 218;
}
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = (void *)11;
  return module == (void *)9 && !strcmp(name, "m") ? 0 : 500;
}
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  *address = (unsigned long long)malloc(bytes);
  return 0;
}
EXPORT int cuMemFree_v2(unsigned long long address) { return free((void *)address), 0; }
EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  return memcpy((void *)to, from, bytes), 0;
}
EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
  return memcpy(to, (void *)from, bytes), 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
  return memcpy((void *)to, (void *)from, bytes), 0;
}
EXPORT int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void *stream) {
  return memset((void *)to, value, bytes), 0;
}
EXPORT int cuStreamSynchronize(void *stream) { return stream ? 400 : 0; }
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
  float *a = *(float **)parameters[0], *b = *(float **)parameters[1], *c = *(float **)parameters[2];
  if (function != (void *)11 || gx * bx * gy * gz * by * bz > 64 || shared || stream || extra)
    return 1;
  for (int i = 0; i < 64; ++i)
    c[i] = a[i] + b[i];
  return 0;
}

/* The second version of a function where there is one, as the driver of its time gives it. */
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status) {
  char second[256];
  strcat(strcpy(second, name), "_v2");
  *function = dlsym(RTLD_DEFAULT, second);
  if (!*function || !strcmp(name, "cuGetProcAddress"))
    *function = !strcmp(name, "cuGetProcAddress") ? (void *)cuGetProcAddress_v2 : dlsym(RTLD_DEFAULT, name);
  if (status)
    *status = *function ? 0 : 1;
  return 0;
}
