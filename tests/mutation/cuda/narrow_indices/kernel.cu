// An array longer than 16 bits count.
// BUG 1: the index has 16 bits
// BUG 2: the index is signed 16 bits times two elements
// BUG 3: the grid's part of the index is a product of 16 bits
// BUG 4: saturates at 127 instead of wrapping
extern "C" __global__ void kernel(const signed char *x, signed char *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (BUG == 1)
    i = (unsigned short)i;
  if (BUG == 2)
    i = unsigned(int(short(i * 2))) / 2 % 70000;
  if (BUG == 3)
    i = (unsigned short)(blockIdx.x * blockDim.x) + threadIdx.x;
  if (i < 70000)
    y[i] = BUG == 4 && x[i] == -128 ? 127 : -x[i];
}
