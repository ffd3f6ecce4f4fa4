#include "Gemm.h"

/// bf16, warp-specialised cooperative kernel, clusters of two blocks along m.
int main() {
  using Of = GemmOf<cutlass::bfloat16_t, cutlass::bfloat16_t, Shape<_128, _128, _64>, Shape<_2, _1, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                    cutlass::epilogue::TmaWarpSpecializedCooperative>;
  Of::run(Of::arguments(512, 384, 320));
}
