// Softmax of 60 x, a warp for each row.
// BUG 1: the largest is not subtracted
// BUG 2: the sum leaves the last column out
// BUG 3: is not divided by the sum
// BUG 4: the sum's last exchange between lanes is missing
// BUG 5: the largest of the first 32 columns is subtracted from the others and that of the rest from them
// BUG 6: lanes without a second column count exp(0) for it
extern "C" __global__ void kernel(const float *x, float *y) {
  const float *row = x + blockIdx.x * 45;
  int lane = threadIdx.x, second = lane + 32;
  const float low = -__int_as_float(0x7f800000);
  float a = __fmul_rn(60, row[lane]), b = second < 45 ? __fmul_rn(60, row[second]) : low;
  auto larger = [](float p, float q) { return p > q || p != p ? p : q; };
  float m = larger(a, b), m2 = b;
  for (int s = 16; s; s /= 2)
    m = larger(m, __shfl_xor_sync(~0u, m, s)), m2 = larger(m2, __shfl_xor_sync(~0u, m2, s));
  if (BUG == 1)
    m = 0;
  float e = expf(a - m);
  float f = second < 45 ? expf(b - (BUG == 5 ? m2 : m)) : BUG == 6 ? 1.0f : 0.0f;
  float sum = e + (BUG == 2 && second == 44 ? 0.0f : f);
  for (int s = 16; s > (BUG == 4 ? 1 : 0); s /= 2)
    sum += __shfl_xor_sync(~0u, sum, s);
  if (BUG == 3)
    sum = 1;
  y[blockIdx.x * 45 + lane] = e / sum;
  if (second < 45)
    y[blockIdx.x * 45 + second] = f / sum;
}
