// Ten elements replaced from a start, which is clamped.
// BUG 1: not clamped
// BUG 2: clamped to 32
// BUG 3: the start is at least 31
// BUG 4: the last element of the update is left out
// BUG 5: added instead of replaced
extern "C" __global__ void kernel(const float *x, const float *u, const int *start, float *y) {
  int t = threadIdx.x, s = *start;
  if (BUG == 3)
    s = max(s, 31);
  else if (BUG != 1)
    s = max(0, min(s, BUG == 2 ? 32 : 31));
  if (t >= 41)
    return;
  bool inside = t >= s && t - s < (BUG == 4 ? 9 : 10);
  if (BUG == 3)
    inside = t >= 31;
  y[t] = inside ? (BUG == 5 ? x[t] + u[t - s] : u[BUG == 3 ? t - 31 : t - s]) : x[t];
}
