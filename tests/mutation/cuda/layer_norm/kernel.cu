// (x - mean) / sqrt(variance + 1e-5) of rows of 96.
// BUG 1: the variance is divided by 95
// BUG 2: epsilon is 1e-4
// BUG 3: the mean is divided by 128, the number of threads
// BUG 4: threads without an element add the square of the mean
// BUG 5: the mean square instead of the variance
// BUG 6: the second reduction reads the first one's result for warp 2
extern "C" __global__ void kernel(const float *x, float *y) {
  __shared__ float parts[4];
  int t = threadIdx.x, warp = t / 32;
  float v = t < 96 ? x[blockIdx.x * 96 + t] : 0.0f;
  auto total = [&](float f, bool stale) {
    for (int s = 16; s; s /= 2)
      f += __shfl_xor_sync(~0u, f, s);
    if (t % 32 == 0 && !(stale && warp == 2))
      parts[warp] = f;
    __syncthreads();
    f = parts[0] + parts[1] + parts[2] + parts[3];
    __syncthreads();
    return f;
  };
  float mean = total(v, false) / (BUG == 3 ? 128 : 96);
  float d = BUG == 5 ? v : v - mean;
  float variance = total(t < 96 || BUG == 4 ? d * d : 0.0f, BUG == 6) / (BUG == 1 ? 95 : 96);
  if (t < 96)
    y[blockIdx.x * 96 + t] = (v - mean) / sqrtf(variance + (BUG == 2 ? 1e-4f : 1e-5f));
}
