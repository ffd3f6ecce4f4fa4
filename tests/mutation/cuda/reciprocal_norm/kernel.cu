// x / |x|.
// BUG 1: an approximate reciprocal root of 22 bits, one step of eight bits coarser
// BUG 2: the sum instead of its root
// BUG 3: of the first 64 elements
// BUG 4: the norm has 1e-5 added
extern "C" __global__ void kernel(const float *x, float *y) {
  __shared__ float parts[128];
  int t = threadIdx.x;
  parts[t] = BUG == 3 && t >= 64 ? 0.0f : x[t] * x[t];
  __syncthreads();
  for (int s = 64; s; s /= 2) {
    if (t < s)
      parts[t] += parts[t + s];
    __syncthreads();
  }
  float norm = BUG == 2 ? parts[0] : sqrtf(parts[0]);
  if (BUG == 4)
    norm += 1e-5f;
  if (BUG == 1)
    norm = __int_as_float(__float_as_int(norm) & ~0x3fff);
  y[t] = x[t] / norm;
}
