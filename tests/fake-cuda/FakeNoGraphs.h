#pragma once
/* What FakeCuda.c takes of FakeGraphs.h, for a driver of a time before graphs. */
enum { CAPTURE_UNSUPPORTED = 900 };
static const int recording = 0;
static char branchFunction, roundFunction;
static int runKernel(void *function, const unsigned *sizes, const unsigned *cluster, void *stream, void **parameters);
static int runCopy(uint64_t to, uint64_t from, size_t bytes);
static int runFill(uint64_t to, unsigned char value, size_t bytes);
