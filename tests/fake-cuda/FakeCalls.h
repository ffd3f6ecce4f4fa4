#pragma once
/* What the fake libraries have in common: a log of what was called, and functions that are told to fail. The including
 * file says before it which environment variable names these: FAKE_FAIL "FAKE_CUDA_FAIL", of which
 * "cuMemAlloc_v2=2" makes that function return 2; it is read at every call. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char logText[1 << 16];
static size_t logLength;

/* One a line. */
static void record(const char *text) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  size_t length = strlen(text);
  if (logLength + length + 2 <= sizeof logText) {
    memcpy(logText + logLength, text, length);
    logLength += length;
    logText[logLength++] = '\n';
    logText[logLength] = 0;
  }
  pthread_mutex_unlock(&mutex);
}

static int failure(const char *function) {
  const char *wanted = getenv(FAKE_FAIL);
  size_t length = strlen(function);
  return wanted && strncmp(wanted, function, length) == 0 && wanted[length] == '=' ? atoi(wanted + length + 1) : 0;
}

/* Does `work` for `data`, which is copied if the stream is being recorded (FakeGraphs.h): the driver has said there who
 * takes it. */
static inline void enqueue(void *stream, void (*work)(const void *), const void *data, size_t bytes) {
  const char *recorder = getenv("FAKE_CUDA_RECORDER");
  void (*take)(void *, void (*)(const void *), const void *, size_t) = NULL;
  if (recorder)
    take = (void (*)(void *, void (*)(const void *), const void *, size_t))(uintptr_t)strtoull(recorder, NULL, 16);
  if (take)
    take(stream, work, data, bytes);
  else
    work(data);
}

static inline int refuse(int status, const char *why) {
  record(why);
  return status;
}

/* bf16, which C has no type of; rounded to the nearest and even. */
static inline double ofBrain(uint16_t brain) {
  uint32_t bits = (uint32_t)brain << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static inline uint16_t toBrain(double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (single == single)
    bits += 0x7FFF + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

#define CALL(name)                                                                                                     \
  do {                                                                                                                 \
    record(#name);                                                                                                     \
    int failed = failure(#name);                                                                                       \
    if (failed)                                                                                                        \
      return failed;                                                                                                   \
  } while (0)
