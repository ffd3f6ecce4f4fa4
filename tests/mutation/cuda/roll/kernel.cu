// Rotated by five places.
// BUG 1: the other way
// BUG 2: the remainder of a negative number is taken as it is and clamped
// BUG 3: by four
// BUG 4: wraps at 36
extern "C" __global__ void kernel(const int *x, int *y) {
  int i = threadIdx.x;
  if (i >= 37)
    return;
  int from = BUG == 1 ? (i + 5) % 37 : BUG == 2 ? max((i - 5) % 37, 0) : BUG == 3 ? (i + 33) % 37 : BUG == 4 ? (i + 31) % 36 : (i + 32) % 37;
  y[i] = x[from];
}
