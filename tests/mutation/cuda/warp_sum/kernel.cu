// A warp for each row of 31.
// BUG 1: begins at distance 8
// BUG 2: shuffles upward
// BUG 3: the lane without an element adds the next row's first
// BUG 4: the step of distance 4 is missing
// BUG 5: the result is lane 1's
// BUG 6: the lane without an element adds the row's last
extern "C" __global__ void kernel(const float *x, float *y) {
  int lane = threadIdx.x % 32, row = threadIdx.x / 32;
  float v = lane < 31 ? x[row * 31 + lane] : BUG == 3 && row < 7 ? x[row * 31 + 31] : BUG == 6 ? x[row * 31 + 30] : 0.0f;
  for (int s = BUG == 1 ? 8 : 16; s; s /= 2)
    if (!(BUG == 4 && s == 4))
      v += BUG == 2 ? __shfl_up_sync(~0u, v, s) : __shfl_down_sync(~0u, v, s);
  if (lane == (BUG == 5))
    y[row] = v;
}
