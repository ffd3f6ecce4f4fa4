#include "Gemm.h"

/// f16 with f32 results, ping-pong kernel: two warpgroups take turns; a last tile that is not whole.
int main() {
  using Of = GemmOf<cutlass::half_t, float, Shape<_64, _128, _64>, Shape<_1, _1, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized>;
  auto arguments = Of::arguments(448, 320, 200);
  arguments.hw_info.sm_count = 4; // fewer than there are tiles: each block has several
  Of::run(arguments);
}
