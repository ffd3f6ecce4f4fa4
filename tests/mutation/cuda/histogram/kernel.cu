// How often the lower six bits take each value.
// BUG 1: the last bin begins with one
// BUG 2: the lower five bits
// BUG 3: the last byte is not counted
// BUG 4: bin 63 is never written out from shared memory but as bin 62
// BUG 5: the first byte counts twice
// BUG 6: bytes above 127 are taken as negative and left out
extern "C" __global__ void kernel(const unsigned char *x, int *bins) {
  __shared__ int counts[64];
  int t = threadIdx.x;
  if (t < 64)
    counts[t] = BUG == 1 && t == 63;
  __syncthreads();
  for (int i = t; i < (BUG == 3 ? 1999 : 2000); i += 128)
    if (!(BUG == 6 && x[i] > 127))
      atomicAdd(&counts[x[i] & (BUG == 2 ? 31 : 63)], BUG == 5 && i == 0 ? 2 : 1);
  __syncthreads();
  if (t < 64)
    bins[t] = counts[BUG == 4 && t == 63 ? 62 : t];
}
