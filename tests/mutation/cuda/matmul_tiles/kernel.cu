// Tiles of 16 x 16; no dimension is a multiple of it.
// BUG 1: the last tile of the sum is left out
// BUG 2: the last tile of a is not filled up with zeros but with the row's last element
// BUG 3: b is read as if it were transposed
// BUG 4: the tile of b is read transposed
// BUG 5: the sum within a tile ends one early
// BUG 6: rows of the result beyond 32 are not written
// BUG 7: begins with the first product twice
extern "C" __global__ void kernel(const float *a, const float *b, float *c) {
  constexpr int rows = 33, inner = 20, columns = 27;
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = BUG == 7 && row < rows && column < columns ? a[row * inner] * b[column] : 0.0f;
  for (int k = 0; k < (BUG == 1 ? inner / 16 * 16 : inner); k += 16) {
    int ka = k + x, kb = k + y;
    ta[y][x] = row < rows && ka < inner ? a[row * inner + ka] : BUG == 2 && row < rows ? a[row * inner + inner - 1] : 0.0f;
    bool inside = column < columns && kb < inner;
    if (BUG == 2)
      inside = column < columns, kb = min(kb, inner - 1);
    tb[y][x] = !inside ? 0.0f : b[BUG == 3 ? column * inner + kb : kb * columns + column];
    __syncthreads();
    for (int i = 0; i < (BUG == 5 ? 15 : 16); ++i)
      sum += ta[y][i] * (BUG == 4 ? tb[x][i] : tb[i][x]);
    __syncthreads();
  }
  if (row < (BUG == 6 ? 32 : rows) && column < columns)
    c[row * columns + column] = sum;
}
