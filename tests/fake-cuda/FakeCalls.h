#pragma once
/* What the fake libraries have in common: a log of what was called, and functions that are told to fail. The including
 * file says before it which environment variable names these: FAKE_FAIL "FAKE_CUDA_FAIL", of which
 * "cuMemAlloc_v2=2" makes that function return 2; it is read at every call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char logText[1 << 16];
static size_t logLength;

/* One a line. */
static void record(const char *text) {
  size_t length = strlen(text);
  if (logLength + length + 2 > sizeof logText)
    return;
  memcpy(logText + logLength, text, length);
  logLength += length;
  logText[logLength++] = '\n';
  logText[logLength] = 0;
}

static int failure(const char *function) {
  const char *wanted = getenv(FAKE_FAIL);
  size_t length = strlen(function);
  return wanted && strncmp(wanted, function, length) == 0 && wanted[length] == '=' ? atoi(wanted + length + 1) : 0;
}

#define CALL(name)                                                                                                     \
  do {                                                                                                                 \
    record(#name);                                                                                                     \
    int failed = failure(#name);                                                                                       \
    if (failed)                                                                                                        \
      return failed;                                                                                                   \
  } while (0)
