// 64.5 x to signed bytes, rounded and clamped.
// BUG 1: rounds down
// BUG 2: truncates
// BUG 3: clamps to -127
// BUG 4: does not clamp
// BUG 5: halves away from zero
// BUG 6: clamps to 126
extern "C" __global__ void kernel(const float *x, signed char *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 720)
    return;
  float v = 64.5f * x[i];
  v = BUG == 1 ? floorf(v) : BUG == 2 ? truncf(v) : BUG == 5 ? roundf(v) : rintf(v);
  if (BUG != 4)
    v = v < (BUG == 3 ? -127 : -128) ? (BUG == 3 ? -127 : -128) : v > (BUG == 6 ? 126 : 127) ? (BUG == 6 ? 126 : 127) : v;
  y[i] = v != v ? 0 : int(v);
}
