#include <cuda_bf16.h>
// 3 x, rounded to bf16.
// BUG 1: rounds toward zero
// BUG 2: cuts off
// BUG 3: rounds x before multiplying
// BUG 4: rounds up
// BUG 5: goes through f16
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const float *x, __nv_bfloat16 *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 601)
    return;
  float v = 3 * x[i];
  if (BUG == 1)
    y[i] = __float2bfloat16_rz(v);
  else if (BUG == 2)
    y[i] = __ushort_as_bfloat16(__float_as_uint(v) >> 16);
  else if (BUG == 3)
    y[i] = __float2bfloat16_rn(3 * __bfloat162float(__float2bfloat16_rn(x[i])));
  else if (BUG == 4)
    y[i] = __float2bfloat16_ru(v);
  else if (BUG == 5)
    y[i] = __float2bfloat16_rn(__half2float(__float2half_rn(v)));
  else
    y[i] = __float2bfloat16_rn(v);
}
