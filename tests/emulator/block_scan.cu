// Inclusive prefix sums of each block of 256 integers, in dynamic shared memory.
extern "C" __global__ void block_scan(const int *in, int *out) {
  extern __shared__ int sums[];
  int at = threadIdx.x, i = blockIdx.x * blockDim.x + at;
  sums[at] = in[i];
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int left = at >= step ? sums[at - step] : 0;
    __syncthreads();
    sums[at] += left;
    __syncthreads();
  }
  out[i] = sums[at];
}
