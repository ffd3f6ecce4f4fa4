#define CUTLASS_ENABLE_GDC_FOR_SM90
#include "Gemm.h"

/// s8 to s32, exact, and launched as dependent on the kernel before it: the kernel waits for that.
int main() {
  using Of = GemmOf<int8_t, int32_t, Shape<_64, _64, _128>, Shape<_1, _1, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized, void,
                    cutlass::epilogue::fusion::LinearCombination<int32_t, int32_t, void, int32_t>, void,
                    cutlass::layout::RowMajor, cutlass::layout::ColumnMajor, 16, int32_t>;
  auto arguments = Of::arguments(128, 192, 320);
  arguments.hw_info.sm_count = 2;
  Of::run(arguments, true);
}
