// Sums of products in 64 bits.
// BUG 1: products of 32 bits
// BUG 2: the sum has 32 bits
// BUG 3: products without sign
// BUG 4: lanes exchange the lower halves only
extern "C" __global__ void kernel(const int *x, const int *y, long long *z) {
  int lane = threadIdx.x, row = blockIdx.x * 60;
  long long v = 0;
  for (int i = lane; i < 60; i += 32)
    v += BUG == 1 ? (long long)(x[row + i] * y[row + i])
         : BUG == 3 ? (long long)((unsigned long long)(unsigned)x[row + i] * (unsigned)y[row + i])
                    : (long long)x[row + i] * y[row + i];
  for (int s = 16; s; s /= 2)
    v += BUG == 4 ? (long long)__shfl_xor_sync(~0u, int(v), s) : __shfl_xor_sync(~0u, v, s);
  if (lane == 0)
    z[blockIdx.x] = BUG == 2 ? (long long)int(v) : v;
}
