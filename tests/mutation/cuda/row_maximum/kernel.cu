// The largest of each row, NaN if there is one.
// BUG 1: begins with zero
// BUG 2: NaN is passed over
// BUG 3: of magnitudes
// BUG 4: the last column is left out
// BUG 5: begins with -1
// BUG 6: minimum
extern "C" __global__ void kernel(const float *x, float *y) {
  int row = threadIdx.x;
  float m = BUG == 1 ? 0.0f : BUG == 5 ? -1.0f : -__int_as_float(0x7f800000);
  if (BUG == 6)
    m = -m;
  for (int i = 0; i < (BUG == 4 ? 4 : 5); ++i) {
    float v = x[row * 5 + i];
    if (BUG == 3)
      v = fabsf(v);
    if (BUG == 2)
      m = v > m ? v : m;
    else if (BUG == 6)
      m = v < m || v != v ? v : m;
    else
      m = m > v || m != m ? m : v;
  }
  y[row] = m;
}
