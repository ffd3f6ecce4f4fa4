#include "Check.h"
#include "Recorder.h"

#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/group_array_problem_shape.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

#include <vector>

using namespace cute;

template <class T> T *onDevice(const std::vector<T> &values) {
  void *memory = nullptr;
  cudaMalloc(&memory, values.size() * sizeof(T));
  cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return static_cast<T *>(memory);
}

/// Three GEMMs of different sizes in one launch. Blocks change tensor maps in global memory from group to group.
/// Parameters are A0, B0, A1, B1, A2, B2; results a tuple D0, D1, D2.
int main() {
  using In = cutlass::bfloat16_t;
  using Out = float;
  using Row = cutlass::layout::RowMajor;
  using Column = cutlass::layout::ColumnMajor;
  using Shapes = cutlass::gemm::GroupProblemShape<Shape<int, int, int>>;
  using Tile = Shape<_128, _64, _64>;
  using Cluster = Shape<_2, _1, _1>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row *, 4, Out, Row *, 4,
      cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative,
      cutlass::epilogue::fusion::LinearCombination<Out, float, void, float>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, In, Row *, 8, In, Column *, 8, float, Tile, Cluster,
      cutlass::gemm::collective::StageCount<3>,
      cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shapes, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using StrideA = typename Kernel::InternalStrideA;
  using StrideB = typename Kernel::InternalStrideB;
  using StrideD = typename Kernel::InternalStrideD;

  std::vector<typename Shapes::UnderlyingProblemShape> shapes = {{256, 128, 128}, {128, 192, 64}, {384, 64, 200}};
  std::vector<const In *> a, b;
  std::vector<Out *> d;
  std::vector<StrideA> strideA;
  std::vector<StrideB> strideB;
  std::vector<StrideD> strideD;
  for (size_t i = 0; i < shapes.size(); ++i) {
    auto [m, n, k] = shapes[i];
    a.push_back(static_cast<In *>(parameterMemory(int(2 * i), size_t(m) * k * sizeof(In))));
    b.push_back(static_cast<In *>(parameterMemory(int(2 * i + 1), size_t(n) * k * sizeof(In))));
    d.push_back(static_cast<Out *>(resultMemory(int(i), size_t(m) * n * sizeof(Out))));
    strideA.push_back(cutlass::make_cute_packed_stride(StrideA{}, {m, k, 1}));
    strideB.push_back(cutlass::make_cute_packed_stride(StrideB{}, {n, k, 1}));
    strideD.push_back(cutlass::make_cute_packed_stride(StrideD{}, {m, n, 1}));
  }
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGrouped,
      {int(shapes.size()), onDevice(shapes), shapes.data()},
      {onDevice(a), onDevice(strideA), onDevice(b), onDevice(strideB)},
      {{}, nullptr, nullptr, onDevice(d), onDevice(strideD)}};
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.thread.beta = 0;
  arguments.hw_info.device_id = 0;
  arguments.hw_info.sm_count = 4;
  Gemm gemm;
  void *workspace = nullptr;
  if (size_t bytes = Gemm::get_workspace_size(arguments))
    cudaMalloc(&workspace, bytes);
  CHECK(gemm.can_implement(arguments));
  CHECK(gemm.initialize(arguments, workspace));
  CHECK(gemm.run());
}
