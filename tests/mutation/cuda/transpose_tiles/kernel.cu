// Through tiles of 16 x 16.
// BUG 1: reading is guarded by the bounds of the result
// BUG 2: the tile is written as it was read
// BUG 3: rows of the result are 61 long
// BUG 4: writing is not guarded
// BUG 5: the last row of tiles is missing
// BUG 6: the last row of each tile is that before
extern "C" __global__ void kernel(const float *x, float *y) {
  constexpr int rows = 33, columns = 61;
  __shared__ float tile[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int c = blockIdx.x * 16 + tx, r = blockIdx.y * 16 + ty;
  if (BUG == 1 ? (r < columns && c < rows) : (r < rows && c < columns))
    tile[ty][tx] = x[r * columns + c];
  __syncthreads();
  int oc = blockIdx.y * 16 + tx, orow = blockIdx.x * 16 + ty;
  if ((BUG == 5 && blockIdx.y == 2) || (BUG != 4 && (oc >= rows || orow >= columns)))
    return;
  y[orow * (BUG == 3 ? columns : rows) + oc] = BUG == 2 ? tile[ty][tx] : tile[BUG == 6 && tx == 15 ? 14 : tx][ty];
}
