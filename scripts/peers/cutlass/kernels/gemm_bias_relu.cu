#include "Gemm.h"

/// relu(A B + bias of a row), bf16: the epilogue loads the bias. Parameter 2 is the bias, one for each column of D.
int main() {
  using Out = cutlass::bfloat16_t;
  using Fusion = cutlass::epilogue::fusion::LinCombPerColBiasEltAct<cutlass::epilogue::thread::ReLU, Out, float,
                                                                    float, void, float>;
  using Of = GemmOf<cutlass::bfloat16_t, Out, Shape<_128, _128, _64>, Shape<_1, _1, _1>,
                    cutlass::gemm::KernelTmaWarpSpecializedCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                    cutlass::gemm::PersistentScheduler, Fusion>;
  const int m = 256, n = 320, k = 192;
  auto arguments = Of::arguments(m, n, k);
  arguments.epilogue.thread.bias_ptr = static_cast<float *>(parameterMemory(2, n * sizeof(float)));
  arguments.hw_info.sm_count = 3;
  Of::run(arguments);
}
