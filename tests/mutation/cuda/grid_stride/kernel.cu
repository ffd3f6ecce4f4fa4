// max(x, 0) by a loop over the grid.
// BUG 1: the step is one more than there are threads
// BUG 2: ends at a multiple of the threads
// BUG 3: NaN becomes zero
// BUG 4: magnitudes
// BUG 5: every thread's second element is that of the next
// BUG 6: of every 64th element the one before is taken
extern "C" __global__ void kernel(const float *x, float *y) {
  int threads = gridDim.x * blockDim.x, n = 5000;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < (BUG == 2 ? n / threads * threads : n); i += BUG == 1 ? threads + 1 : threads) {
    float v = x[BUG == 5 && i / threads == 1 ? i + 1 : BUG == 6 && i % 64 == 63 ? i - 1 : i];
    y[i] = BUG == 3 ? (v > 0 ? v : 0.0f) : BUG == 4 ? fabsf(v) : v < 0 ? 0.0f : v;
  }
}
