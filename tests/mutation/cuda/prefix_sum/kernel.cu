// Inclusive prefix sums in one block.
// BUG 1: exclusive
// BUG 2: the sums of the warps before are not added
// BUG 3: the sum of the own warp is added instead
// BUG 4: the last step within a warp is missing
// BUG 5: lanes below the distance add what the shuffle leaves them
// BUG 6: the last element is not written
extern "C" __global__ void kernel(const int *x, int *y) {
  __shared__ int sums[8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int v = t < 200 ? x[t] : 0, own = v;
  for (int s = 1; s < (BUG == 4 ? 16 : 32); s *= 2) {
    int o = __shfl_up_sync(~0u, v, s);
    if (lane >= s || BUG == 5)
      v += o;
  }
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  for (int w = BUG == 3; w < (BUG == 3 ? warp + 1 : warp); ++w)
    if (BUG != 2)
      v += sums[w];
  if (t < (BUG == 6 ? 199 : 200))
    y[t] = BUG == 1 ? v - own : v;
}
