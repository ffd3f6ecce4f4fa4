#include "Check.h"
#include "Recorder.h"

#include "cute/tensor.hpp"

#include "collective/fmha_fusion.hpp"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

using namespace cute;

/// Attention, forward, f16, heads of 64: softmax(Q K^T / 8) V with online softmax; a last tile of keys that is not
/// whole. Parameters are Q [b, h, q, d], K and V [b, h, k, d]; results O and the logarithms of the sums [b, h, q].
int main() {
  using Element = cutlass::half_t;
  using Problem = cute::tuple<int, int, int, int, int>; // b, h, q, k, d
  using Stride = cute::tuple<int, _1, cute::tuple<int, int>>;
  using Tile = Shape<_128, _64, _64>;
  using Kernel = typename cutlass::fmha::kernel::FmhaBuilder<
      Element, float, float, Tile, Stride, Stride, Stride, cutlass::fmha::collective::ResidualFusion,
      cutlass::gemm::KernelTmaWarpSpecializedPingpong>::Kernel;
  using Operation = cutlass::device::Universal<Kernel>;
  const int b = 1, h = 2, q = 192, k = 208, d = 64;
  auto memory = [&](int number, int rows) {
    return static_cast<Element *>(parameterMemory(number, size_t(b) * h * rows * d * sizeof(Element)));
  };
  auto stride = [&](int rows) { return make_stride(d, _1{}, make_stride(h * rows * d, rows * d)); };
  auto *o = static_cast<Element *>(resultMemory(0, size_t(b) * h * q * d * sizeof(Element)));
  auto *lse = static_cast<float *>(resultMemory(1, size_t(b) * h * q * sizeof(float)));
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = 2;
  typename Operation::Arguments arguments{Problem{b, h, q, k, d},
                                          {memory(0, q), stride(q), memory(1, k), stride(k), memory(2, k), stride(k)},
                                          {o, stride(q), lse, make_stride(_1{}, make_stride(h * q, q))},
                                          hardware};
  Operation operation;
  void *workspace = nullptr;
  if (size_t bytes = Operation::get_workspace_size(arguments))
    cudaMalloc(&workspace, bytes);
  CHECK(operation.can_implement(arguments));
  CHECK(operation.initialize(arguments, workspace));
  CHECK(operation.run());
}
