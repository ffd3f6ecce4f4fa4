// Row sums: one block a row, shuffles in each warp, one value a warp through shared memory.
extern "C" __global__ void row_sum(const float *in, float *out, int columns) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    sum += in[blockIdx.x * columns + i];
  for (int offset = 16; offset; offset /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int offset = 16; offset; offset /= 2)
      sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0)
      out[blockIdx.x] = sum;
  }
}
