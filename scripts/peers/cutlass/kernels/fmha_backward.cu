#include "Check.h"
#include "Recorder.h"

#include "cute/tensor.hpp"

#include "collective/fmha_fusion.hpp"
#include "device/fmha_device_bwd.hpp"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

using namespace cute;

/// The gradients of attention, f16, heads of 64, in three kernels. The second adds up that of Q by bulk reductions in
/// global memory. Parameters are Q, K, V, O, the logarithms of the sums, and the gradient of O; results those of Q, K, V.
int main() {
  using Element = cutlass::half_t;
  using Operation = cutlass::fmha::device::FmhaBwd<Element, float, Shape<_64, _128, _64>,
                                                   cutlass::fmha::collective::DefaultFusion>;
  const int b = 1, h = 2, q = 128, k = 256, d = 64;
  auto bytes = [&](int rows) { return size_t(b) * h * rows * d * sizeof(Element); };
  auto parameter = [&](int number, int rows) { return static_cast<Element *>(parameterMemory(number, bytes(rows))); };
  auto result = [&](int index, int rows) { return static_cast<Element *>(resultMemory(index, bytes(rows))); };
  auto stride = [&](int rows) { return make_stride(h * rows * d, rows * d, d, _1{}); };
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = 132;
  typename Operation::Arguments arguments{
      {b, h, q, k, d},
      parameter(0, q),
      stride(q),
      parameter(1, k),
      stride(k),
      parameter(2, k),
      stride(k),
      parameter(3, q),
      stride(q),
      static_cast<float *>(parameterMemory(4, size_t(b) * h * q * sizeof(float))),
      make_stride(h * q, q, _1{}),
      parameter(5, q),
      stride(q),
      result(0, q),
      stride(q),
      result(1, k),
      stride(k),
      result(2, k),
      stride(k),
      hardware};
  Operation operation;
  void *workspace = nullptr;
  if (size_t size = Operation::get_workspace_size(arguments))
    cudaMalloc(&workspace, size);
  CHECK(operation.can_implement(arguments));
  CHECK(operation.initialize(arguments, workspace));
  CHECK(operation.run());
}
