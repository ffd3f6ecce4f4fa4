// Columns; eight rows of threads share the work.
// BUG 1: the loop over rows ends at 48
// BUG 2: columns beyond 32 are those before 8
// BUG 3: the last of eight partial sums is left out
// BUG 4: partial sums of neighbouring columns are mixed up
// BUG 5: the row's length is 32
extern "C" __global__ void kernel(const float *x, float *y) {
  __shared__ float parts[8][33];
  int column = blockIdx.x * 32 + threadIdx.x, ty = threadIdx.y;
  int from = BUG == 2 ? column % 32 : column;
  float sum = 0;
  if (column < 40)
    for (int r = ty; r < (BUG == 1 ? 48 : 50); r += 8)
      sum += x[r * (BUG == 5 ? 32 : 40) + from];
  parts[ty][threadIdx.x] = sum;
  __syncthreads();
  if (ty == 0 && column < 40) {
    float all = 0;
    for (int i = 0; i < (BUG == 3 ? 7 : 8); ++i)
      all += parts[i][BUG == 4 && i == 5 ? threadIdx.x ^ 1 : threadIdx.x];
    y[column] = all;
  }
}
