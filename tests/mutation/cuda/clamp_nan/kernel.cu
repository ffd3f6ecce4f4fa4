// Between -1 and 1; NaN stays.
// BUG 1: fminf and fmaxf, which turn NaN into a bound
// BUG 2: the bound is 1.0000001
// BUG 3: from above only
// BUG 4: the sign of what is clamped is lost
extern "C" __global__ void kernel(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 300)
    return;
  float v = x[i];
  constexpr float high = BUG == 2 ? 1.0000001f : 1.0f;
  if (BUG == 1)
    y[i] = fminf(fmaxf(v, -1), 1);
  else
    y[i] = v > high ? high : v < -1 && BUG != 3 ? (BUG == 4 ? 1.0f : -1.0f) : v;
}
