// Columns side by side.
// BUG 1: the seam is at column 4
// BUG 2: rows of b are 3 long
// BUG 3: one after the other instead
// BUG 4: b begins with its second column
extern "C" __global__ void kernel(const int *a, const int *b, int *y) {
  int t = threadIdx.x;
  if (t >= 80)
    return;
  int row = t / 8, column = t % 8;
  if (BUG == 3)
    y[t] = t < 30 ? a[t] : b[t - 30];
  else if (column < (BUG == 1 ? 4 : 3))
    y[t] = a[min(row * 3 + column, 29)];
  else
    y[t] = b[row * (BUG == 2 ? 3 : 5) + (BUG == 4 && column < 7 ? column - 2 : column - 3)];
}
