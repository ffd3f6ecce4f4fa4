/* The fake driver of the runtime's tests, and what cuda-python needs beside that: functions that wait, and how it finds
 * them. Kernels do not run; FAKE_CUDA_TRACE says what is done (tests/fake-cuda/FakeTrace.h). */
#define _GNU_SOURCE
#include "../../tests/fake-cuda/FakeCuda.c"
#include <dlfcn.h>

EXPORT int cuModuleLoadData(void **module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}
EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
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
