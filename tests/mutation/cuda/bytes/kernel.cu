// Three times each byte, four at once.
// BUG 1: carries go into the next byte
// BUG 2: bytes in the other order
// BUG 3: saturates
// BUG 4: the highest byte is left as it is
extern "C" __global__ void kernel(const unsigned *x, unsigned *y) {
  int i = threadIdx.x;
  if (i >= 60)
    return;
  unsigned v = x[i], r = 0;
  for (int b = 0; b < 4; ++b) {
    unsigned t = (v >> 8 * b & 255) * (BUG == 4 && b == 3 ? 1 : 3);
    t = BUG == 3 ? min(t, 255u) : t & 255;
    r |= t << 8 * (BUG == 2 ? 3 - b : b);
  }
  y[i] = BUG == 1 ? v * 3 : r;
}
