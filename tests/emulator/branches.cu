// What plain kernels seldom have: a switch, a function that stays a call, a struct parameter, tables in constant and
// global memory, local arrays, 64-bit division, an assertion, warp votes.
#include <cassert>
struct Options {
  int scale;
  short offsets[5];
  double factor;
};
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int base = 100;
__device__ int *const pointer = &base;

__device__ __noinline__ long long remix(long long x, int rounds) {
  for (int i = 0; i < rounds; ++i)
    x = x / 3 + (x % 7) * table[i & 7];
  return x;
}

extern "C" __global__ void branches(const int *in, long long *out, Options options, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool live = i < n;
  unsigned votes = __ballot_sync(0xffffffff, live && in[live ? i : 0] % 2);
  if (!live)
    return;
  int v = in[i];
  assert(v >= 0);
  long long result;
  switch (v % 9) {
  case 0: result = v * 3ll; break;
  case 1: result = v - options.scale; break;
  case 2: result = __popc(v) + *pointer; break;
  case 3: result = remix(v, 4); break;
  case 4: result = options.offsets[v % 5]; break;
  case 5: result = (long long)(v * options.factor); break;
  case 6: result = __clz(v) * 1000; break;
  case 7: result = remix(remix(v, 2), 3); break;
  default: result = -1;
  }
  int local[6];
  for (int k = 0; k < 6; ++k)
    local[k] = (k * v) & 255;
  out[i] = result + local[(unsigned)v % 6] + __popc(votes);
}
