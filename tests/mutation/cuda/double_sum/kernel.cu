// Rows of doubles, a warp each.
// BUG 1: summed up in f32
// BUG 2: the exchange between lanes drops the lower half
// BUG 3: 1e-9 is added
// BUG 4: the last four are left out
extern "C" __global__ void kernel(const double *x, double *y) {
  int lane = threadIdx.x;
  double v = BUG == 3 && lane == 0 ? 1e-9 : 0;
  for (int i = lane; i < (BUG == 4 ? 96 : 100); i += 32)
    v = BUG == 1 ? double(float(v) + float(x[blockIdx.x * 100 + i])) : v + x[blockIdx.x * 100 + i];
  for (int s = 16; s; s /= 2) {
    double o = __shfl_xor_sync(~0u, v, s);
    if (BUG == 2)
      o = __hiloint2double(__double2hiint(o), 0);
    v += o;
  }
  if (lane == 0)
    y[blockIdx.x] = v;
}
