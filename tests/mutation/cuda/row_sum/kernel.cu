// Sums of rows: a strided loop, then a tree in shared memory.
// BUG 1: the last element of a row is left out
// BUG 2: the tree begins a step too low and drops half of the partial sums
// BUG 3: every partial sum begins with the row's first element
// BUG 4: the loop's step is one too small
// BUG 5: rows lie one element closer together
// BUG 6: the tree ends a step too early
// BUG 7: threads without an element begin with 1
extern "C" __global__ void kernel(const float *x, float *y) {
  constexpr int n = 300;
  const float *row = x + blockIdx.x * (BUG == 5 ? n - 1 : n);
  __shared__ float parts[128];
  float sum = BUG == 3 ? row[0] : BUG == 7 && threadIdx.x + 256 >= n ? 1.0f : 0.0f;
  for (int i = threadIdx.x; i < (BUG == 1 ? n - 1 : n); i += BUG == 4 ? 127 : 128)
    sum += row[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int s = BUG == 2 ? 32 : 64; s > (BUG == 6 ? 1 : 0); s /= 2) {
    if (threadIdx.x < s)
      parts[threadIdx.x] += parts[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    y[blockIdx.x] = parts[0];
}
