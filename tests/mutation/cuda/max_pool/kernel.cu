// Windows of 3 x 3, stride 2, one row of padding.
// BUG 1: padding is zero
// BUG 2: no padding on the left: windows begin at 2 i
// BUG 3: the window is 3 x 2
// BUG 4: stride 1
// BUG 5: NaN is passed over
// BUG 6: the last row of windows repeats that before
extern "C" __global__ void kernel(const float *x, float *y) {
  int i = threadIdx.x;
  if (i >= 49)
    return;
  int row = i / 7, column = i % 7, stride = BUG == 4 ? 1 : 2;
  if (BUG == 6 && row == 6)
    row = 5;
  float m = BUG == 1 ? 0.0f : -__int_as_float(0x7f800000);
  if (BUG == 1 && row && column && row < 6 && column < 6)
    m = -__int_as_float(0x7f800000);
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < (BUG == 3 ? 2 : 3); ++dx) {
      int r = row * stride + dy - 1, c = column * stride + dx - (BUG == 2 ? 0 : 1);
      if (r < 0 || r >= 13 || c < 0 || c >= 13)
        continue;
      float v = x[r * 13 + c];
      m = BUG == 5 ? (v > m ? v : m) : m > v || m != m ? m : v;
    }
  y[i] = m;
}
