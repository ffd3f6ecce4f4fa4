// -inf above the diagonal.
// BUG 1: and on it
// BUG 2: below it
// BUG 3: the lowest finite number
// BUG 4: added instead
// BUG 5: the row is the index divided by 24
extern "C" __global__ void kernel(const float *x, float *y) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= 625)
    return;
  int i = t / (BUG == 5 ? 24 : 25), j = t % 25;
  float low = BUG == 3 ? -3.4028235e38f : -__int_as_float(0x7f800000);
  bool seen = BUG == 1 ? i > j : BUG == 2 ? i <= j : i >= j;
  y[t] = BUG == 4 ? x[t] + (seen ? 0.0f : low) : seen ? x[t] : low;
}
