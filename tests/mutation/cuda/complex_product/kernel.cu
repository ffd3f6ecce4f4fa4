// (a + b i)(c + d i), written out.
// BUG 1: the conjugate of b
// BUG 2: real and imaginary part exchanged
// BUG 3: added in the real part
// BUG 4: only one of the products of the imaginary part, twice
extern "C" __global__ void kernel(const float2 *a, const float2 *b, float2 *y) {
  int i = threadIdx.x;
  if (i >= 100)
    return;
  float2 u = a[i], v = b[i];
  if (BUG == 1)
    v.y = -v.y;
  float real = __fmul_rn(u.x, v.x), other = __fmul_rn(u.y, v.y), cross = __fmul_rn(u.x, v.y), back = __fmul_rn(u.y, v.x);
  real = BUG == 3 ? __fadd_rn(real, other) : __fadd_rn(real, -other);
  float imaginary = __fadd_rn(cross, BUG == 4 ? cross : back);
  y[i] = BUG == 2 ? make_float2(imaginary, real) : make_float2(real, imaginary);
}
