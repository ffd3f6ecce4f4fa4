#include <cuda_fp16.h>
// (x - y) x in pairs.
// BUG 1: halves of a pair exchanged
// BUG 2: y - x
// BUG 3: the last pair is missing
// BUG 4: both halves are the lower
// BUG 5: the product is with y
extern "C" __global__ void kernel(const __half2 *x, const __half2 *y, __half2 *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (BUG == 3 ? 200 : 201))
    return;
  __half2 d = BUG == 2 ? __hsub2(y[i], x[i]) : __hsub2(x[i], y[i]);
  __half2 r = __hmul2(d, BUG == 5 ? y[i] : x[i]);
  z[i] = BUG == 1 ? __lowhigh2highlow(r) : BUG == 4 ? __low2half2(r) : r;
}
