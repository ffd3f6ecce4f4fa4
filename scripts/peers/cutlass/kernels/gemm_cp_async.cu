#include "Gemm.h"

/// bf16 rows of 520 bytes, too little aligned for tensor maps: a producer's cp.async arrive at mbarriers.
int main() {
  using In = cutlass::bfloat16_t;
  using Of = GemmOf<In, In, Shape<_128, _128, _64>, Shape<_1, _1, _1>,
                    cutlass::gemm::KernelCpAsyncWarpSpecializedCooperative, cutlass::epilogue::NoSmemWarpSpecialized,
                    void, cutlass::epilogue::fusion::LinearCombination<In, float, void, float>, void,
                    cutlass::layout::RowMajor, cutlass::layout::ColumnMajor, 4>;
  Of::run(Of::arguments(250, 132, 260));
}
