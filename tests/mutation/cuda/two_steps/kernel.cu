// A sum in two launches: of blocks, then of their sums.
// BUG 1: the second adds one sum fewer
// BUG 2: the first leaves the end of the array out
// BUG 3: the second begins with 1
// BUG 4: the first adds every block's first element twice
// BUG 5: sums of 16 bits between the two
extern "C" __global__ void first(const int *x, int *parts) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < (BUG == 2 ? 9984 : 10000) ? x[i] : 0;
  if (BUG == 4 && t == 0)
    sums[t] *= 2;
  __syncthreads();
  for (int s = 128; s; s /= 2) {
    if (t < s)
      sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t == 0)
    parts[blockIdx.x] = BUG == 5 ? int((signed char)sums[0]) : sums[0];
}
extern "C" __global__ void second(const int *parts, int *y) {
  int sum = BUG == 3;
  for (int i = threadIdx.x; i < (BUG == 1 ? 39 : 40); i += 32)
    sum += parts[i];
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x == 0)
    *y = sum;
}
