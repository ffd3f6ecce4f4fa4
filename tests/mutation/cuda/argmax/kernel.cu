// The first index of each row's largest element.
// BUG 1: of equal ones the last
// BUG 2: on equal values the tree takes the other thread's
// BUG 3: one too large
// BUG 4: compares magnitudes
// BUG 5: compares without signs
// BUG 6: the second half is never seen
extern "C" __global__ void kernel(const int *x, int *y) {
  int lane = threadIdx.x, row = blockIdx.x * 64;
  auto value = [](int v) { return BUG == 4 ? abs(v) : v; };
  auto greater = [](int a, int b) { return BUG == 5 ? unsigned(a) > unsigned(b) : a > b; };
  int v = value(x[row + lane]), i = lane, w = value(x[row + 32 + lane]);
  if (BUG != 6 && (greater(w, v) || (BUG == 1 && w == v)))
    v = w, i = lane + 32;
  for (int s = 16; s; s /= 2) {
    int ov = __shfl_down_sync(~0u, v, s), oi = __shfl_down_sync(~0u, i, s);
    bool tie = ov == v && (BUG == 1 ? oi > i : BUG == 2 ? true : oi < i);
    if (greater(ov, v) || tie)
      v = ov, i = oi;
  }
  if (lane == 0)
    y[blockIdx.x] = BUG == 3 ? i + 1 : i;
}
