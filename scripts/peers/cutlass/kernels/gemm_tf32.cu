#include "Gemm.h"

/// tf32 out of f32, warp-specialised kernel without cooperation, a cluster of 2 x 2 blocks.
int main() {
  using Of = GemmOf<float, float, Shape<_64, _64, _32>, Shape<_2, _2, _1>, cutlass::gemm::KernelTmaWarpSpecialized,
                    cutlass::epilogue::TmaWarpSpecialized>;
  Of::run(Of::arguments(256, 256, 160));
}
