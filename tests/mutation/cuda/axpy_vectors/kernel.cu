// 3 x + y, four elements a thread and a tail.
// BUG 1: no tail
// BUG 2: the tail begins one late
// BUG 3: as many vectors as if the array ended at a multiple of four
// BUG 4: the tail is not scaled
// BUG 5: elements 1 and 2 of each vector are exchanged
// BUG 6: the tail goes on by one
// BUG 7: the last vector is left out
extern "C" __global__ void kernel(const float *x, const float *y, float *z) {
  constexpr int n = 1003, vectors = BUG == 3 ? (n + 3) / 4 : BUG == 7 ? n / 4 - 1 : n / 4;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < vectors) {
    float4 a = reinterpret_cast<const float4 *>(x)[i], b = reinterpret_cast<const float4 *>(y)[i], c;
    c.x = 3 * a.x + b.x, c.y = 3 * a.y + b.y, c.z = 3 * a.z + b.z, c.w = 3 * a.w + b.w;
    if (BUG == 5) {
      float t = c.y;
      c.y = c.z, c.z = t;
    }
    reinterpret_cast<float4 *>(z)[i] = c;
  }
  int tail = n / 4 * 4 + i + (BUG == 2);
  if (BUG != 1 && BUG != 3 && tail < n + (BUG == 6))
    z[tail] = (BUG == 4 ? 1 : 3) * x[tail] + y[tail];
}
