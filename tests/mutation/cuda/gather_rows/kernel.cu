// Rows by index; an index out of range takes the first or last row.
// BUG 1: not clamped
// BUG 2: clamped to 20
// BUG 3: clamped from above only
// BUG 4: modulo
// BUG 5: negative ones count from the end
// BUG 6: column and row of the result exchanged
// BUG 7: the next thread's index
extern "C" __global__ void kernel(const float *x, const int *index, float *y) {
  int t = threadIdx.x;
  if (t >= 78)
    return;
  int row = t / 6, column = t % 6;
  if (BUG == 6)
    row = t % 13, column = t / 13;
  int i = index[BUG == 7 && row < 12 ? row + 1 : row];
  if (BUG == 4)
    i = (i % 20 + 20) % 20;
  if (BUG == 5 && i < 0)
    i += 20;
  if (BUG != 1)
    i = min(BUG == 3 ? i : max(i, 0), BUG == 2 ? 20 : 19);
  y[t] = x[i * 6 + column];
}
