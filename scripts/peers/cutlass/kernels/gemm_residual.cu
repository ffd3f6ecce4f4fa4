#include "Gemm.h"

/// f16 with both operands contiguous along m and n (transposed by wgmma), and 0.5 A B + 2 C with C loaded by bulk copies.
int main() {
  using Element = cutlass::half_t;
  using Of = GemmOf<Element, Element, Shape<_128, _128, _64>, Shape<_1, _2, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedPingpong, cutlass::epilogue::TmaWarpSpecialized, void,
                    cutlass::epilogue::fusion::LinearCombination<Element, float, Element, float>, Element,
                    cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>;
  const int m = 384, n = 256, k = 320;
  auto arguments = Of::arguments(m, n, k);
  arguments.epilogue.thread.alpha = 0.5f;
  arguments.epilogue.thread.beta = 2;
  arguments.epilogue.ptr_C = static_cast<Element *>(parameterMemory(2, size_t(m) * n * sizeof(Element)));
  arguments.epilogue.dC = cutlass::make_cute_packed_stride(typename Of::Kernel::StrideC{}, {m, n, 1});
  arguments.hw_info.sm_count = 4;
  Of::run(arguments);
}
