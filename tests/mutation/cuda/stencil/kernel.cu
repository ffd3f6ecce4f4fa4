// 0.25 left + 0.5 own + 0.125 right, zeros beyond the ends.
// BUG 1: left of the first is the last
// BUG 2: right of the last is what lies behind the array
// BUG 3: weights of left and right are exchanged
// BUG 4: the ends are repeated
// BUG 5: neighbours across blocks of threads are zero
// BUG 6: the right neighbour counts 0.1250001
extern "C" __global__ void kernel(const float *x, float *y) {
  constexpr int n = 500;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float left = i ? x[i - 1] : BUG == 1 ? x[n - 1] : BUG == 4 ? x[0] : 0.0f;
  float right = i + 1 < n || BUG == 2 ? x[i + 1] : BUG == 4 ? x[n - 1] : 0.0f;
  if (BUG == 5 && threadIdx.x == 0)
    left = 0;
  constexpr float a = BUG == 3 ? 0.125f : 0.25f, c = BUG == 3 ? 0.25f : BUG == 6 ? 0.1250001f : 0.125f;
  y[i] = a * left + 0.5f * x[i] + c * right;
}
