#include "Gemm.h"

/// e4m3, f32 results, accumulators promoted every few instructions (no fast accumulation); clusters of two along n.
int main() {
  using Of = GemmOf<cutlass::float_e4m3_t, float, Shape<_128, _128, _128>, Shape<_1, _2, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                    cutlass::epilogue::TmaWarpSpecializedCooperative>;
  Of::run(Of::arguments(256, 512, 512));
}
