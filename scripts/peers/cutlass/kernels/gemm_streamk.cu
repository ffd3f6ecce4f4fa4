#include "Gemm.h"

/// bf16, stream-K: blocks share tiles and add up what they have by a workspace in global memory.
int main() {
  using Of = GemmOf<cutlass::bfloat16_t, float, Shape<_128, _128, _64>, Shape<_2, _1, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                    cutlass::gemm::StreamKScheduler>;
  auto arguments = Of::arguments(512, 384, 768);
  arguments.hw_info.sm_count = 10;
  Of::run(arguments);
}
