#pragma once
/* With FAKE_CUDA_TRACE=FILE the fake driver is strict, and appends to FILE what is done on the device, one line each:
 *   load TARGET | alloc ADDRESS BYTES | free ADDRESS | upload ADDRESS BYTES ADLER32 | download ADDRESS BYTES | copy TO
 * FROM BYTES | fill ADDRESS VALUE BYTES | decide ADDRESS BYTES (in a graph) | graph instantiate | graph set (a node's
 * parameters in place) | graph launch | encode ADDRESS | attribute NUMBER VALUE*3
 * (of the launch that comes next) | launch KERNEL GRID*3 BLOCK*3 SHARED STREAM ADDRESS... Addresses are hexadecimal; of
 * a tensor map that the driver has made it is map:ADDRESS:ADLER32, the sum of the text that FakeCuda.c makes of its
 * recipe. Strict: an address has to lie in memory that is allocated, a tensor map's tensor too, and a context has to be
 * current in the thread. Which parameters a kernel has it reads in the PTX. FAKE_CUDA_DECISIONS="1101": what downloads
 * of 1 or 4 bytes give, one after the other, then 0: kernels do not run, and loops have to end. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t traceMutex = PTHREAD_MUTEX_INITIALIZER;
static __thread void *currentContext;

static const char *traceFile(void) { return getenv("FAKE_CUDA_TRACE"); }

static void trace(const char *format, ...) {
  if (!traceFile())
    return;
  pthread_mutex_lock(&traceMutex);
  FILE *file = fopen(traceFile(), "a");
  va_list arguments;
  va_start(arguments, format);
  if (file)
    vfprintf(file, format, arguments);
  va_end(arguments);
  if (file)
    fclose(file);
  pthread_mutex_unlock(&traceMutex);
}

/* ---- memory that is allocated */

enum { mostAllocations = 1 << 16 };
static struct {
  uint64_t address;
  size_t bytes;
} allocations[mostAllocations];
static size_t numAllocations;

static void rememberAllocation(uint64_t address, size_t bytes) {
  pthread_mutex_lock(&traceMutex);
  if (numAllocations < mostAllocations) {
    allocations[numAllocations].address = address;
    allocations[numAllocations++].bytes = bytes;
  }
  pthread_mutex_unlock(&traceMutex);
}

/* 0 if there is none. */
static int forgetAllocation(uint64_t address) {
  int found = 0;
  pthread_mutex_lock(&traceMutex);
  for (size_t i = 0; !found && i < numAllocations; ++i)
    if (allocations[i].address == address) {
      allocations[i] = allocations[--numAllocations];
      found = 1;
    }
  pthread_mutex_unlock(&traceMutex);
  return found;
}

static int isAllocated(uint64_t address, size_t bytes) {
  int found = 0;
  pthread_mutex_lock(&traceMutex);
  for (size_t i = 0; !found && i < numAllocations; ++i)
    found = address >= allocations[i].address && bytes <= allocations[i].bytes &&
            address - allocations[i].address <= allocations[i].bytes - bytes;
  pthread_mutex_unlock(&traceMutex);
  return found;
}

/* CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_ILLEGAL_ADDRESS. */
static int refusal(uint64_t address, size_t bytes) {
  if (!traceFile())
    return 0;
  if (!currentContext)
    return 201;
  return isAllocated(address, bytes) ? 0 : 700;
}

/* ---- kernels of the modules that are loaded */

enum { mostKernels = 1 << 14, mostParameters = 512, mapBytes = 128, mapTextBytes = 120 };
struct Kernel {
  char name[256];
  unsigned numParameters;
  char isMap[mostParameters]; /* .b8 NAME[128], not a pointer */
  void *module;               /* null: there is none here */
};
static struct Kernel kernels[mostKernels];
static size_t numModules;

static struct Kernel *newKernel(void *module) {
  for (size_t i = 0; i < mostKernels; ++i)
    if (!kernels[i].module) {
      kernels[i].module = module;
      kernels[i].numParameters = 0;
      kernels[i].name[0] = 0;
      return &kernels[i];
    }
  return NULL;
}

/* A module of the kernels of a PTX text. */
static void *traceModule(const char *ptx) {
  char target[32] = "?";
  const char *directive = strstr(ptx, ".target ");
  if (directive)
    sscanf(directive, ".target %31[a-z0-9_]", target);
  trace("load %s\n", target);
  pthread_mutex_lock(&traceMutex);
  void *module = (void *)(uintptr_t)++numModules;
  while ((ptx = strstr(ptx, ".entry "))) {
    struct Kernel *kernel = newKernel(module);
    if (!kernel || sscanf(ptx, ".entry %255[A-Za-z0-9_$]", kernel->name) != 1)
      break;
    const char *end = strpbrk(ptx, "){");
    while (end && (ptx = strstr(ptx + 1, ".param ")) && ptx < end && kernel->numParameters < mostParameters) {
      const char *comma = strpbrk(ptx, ",)"), *size = strstr(ptx, "[128]");
      kernel->isMap[kernel->numParameters++] = size && size < comma;
    }
    if (!(ptx = end))
      break;
  }
  pthread_mutex_unlock(&traceMutex);
  return module;
}

static void forgetModule(void *module) {
  pthread_mutex_lock(&traceMutex);
  for (size_t i = 0; i < mostKernels; ++i)
    if (kernels[i].module == module)
      kernels[i].module = NULL;
  pthread_mutex_unlock(&traceMutex);
}

static struct Kernel *findKernel(void *module, const char *name) {
  struct Kernel *found = NULL;
  pthread_mutex_lock(&traceMutex);
  for (size_t i = 0; !found && i < mostKernels; ++i)
    if (kernels[i].module == module && strcmp(kernels[i].name, name) == 0)
      found = &kernels[i];
  pthread_mutex_unlock(&traceMutex);
  return found;
}

/* Adler-32 of what was copied, as zlib has it. */
static unsigned checksum(const unsigned char *bytes, size_t count) {
  unsigned sum = 1, sums = 0;
  for (size_t i = 0; i < count; ++i) {
    sum = (sum + bytes[i]) % 65521;
    sums = (sums + sum) % 65521;
  }
  return sums << 16 | sum;
}

static inline int traceLaunch(const struct Kernel *kernel, const unsigned *sizes, void *stream, void **parameters) {
  char addresses[8192] = "";
  size_t length = 0;
  for (unsigned i = 0; i < kernel->numParameters && length < sizeof addresses - 40; ++i) {
    uint64_t address;
    const unsigned char *map = kernel->isMap[i] ? parameters[i] : NULL;
    memcpy(&address, map ? map + mapTextBytes : parameters[i], sizeof address);
    if (map && memcmp(map, "map of ", 7) != 0)
      return 1;
    length += (size_t)snprintf(addresses + length, sizeof addresses - length, map ? " map:%llx:%u" : " %llx",
                               (unsigned long long)address,
                               map ? checksum(map, strnlen((const char *)map, mapTextBytes)) : 0);
    int failed = refusal(address, 0);
    if (failed)
      return failed;
  }
  trace("launch %s %u %u %u %u %u %u %u %p%s\n", kernel->name, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],
        sizes[5], sizes[6], stream, addresses);
  return currentContext ? 0 : 201;
}

/* ---- what the device decides */

static void decide(void *to, size_t bytes) {
  static size_t made;
  const char *decisions = getenv("FAKE_CUDA_DECISIONS");
  if (!decisions || (bytes != 1 && bytes != 4))
    return;
  pthread_mutex_lock(&traceMutex);
  int32_t decision = made < strlen(decisions) ? decisions[made++] - '0' : 0;
  pthread_mutex_unlock(&traceMutex);
  memcpy(to, &decision, bytes); /* little endian */
}
