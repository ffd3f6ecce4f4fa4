#include "Check.h"
#include "Recorder.h"

#include "cute/tensor.hpp"
#include "cutlass/kernel_hardware_info.h"
#include "cutlass/conv/collective/collective_builder.hpp"
#include "cutlass/conv/convolution.h"
#include "cutlass/conv/convnd_problem_shape.hpp"
#include "cutlass/conv/device/conv_universal_adapter.hpp"
#include "cutlass/conv/dispatch_policy.hpp"
#include "cutlass/conv/kernel/conv_universal.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"

using namespace cute;

/// Convolution of f16 images [n, h, w, c] and filters [k, r, s, c] to f16 [n, p, q, k] as an implicit GEMM: images by
/// im2col tensor maps. Stride 2 along w, dilated along h, padded.
int main() {
  using Element = cutlass::half_t;
  using Tile = Shape<_128, _64, Shape<_64>>;
  using Cluster = Shape<_1, _1, _1>;
  using Layout = cutlass::layout::TensorNHWC;
  constexpr auto op = cutlass::conv::Operator::kFprop;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Element, Layout, 8, Element, Layout, 8,
      cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
  using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, op, Element, Layout, 8, Element, Layout, 8, float, Tile,
      Cluster, cutlass::conv::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::conv::KernelImplicitTmaWarpSpecializedSm90>::CollectiveOp;
  using Problem = cutlass::conv::ConvProblemShape<op, Mainloop::DispatchPolicy::NumSpatialDimensions>;
  using Kernel = cutlass::conv::kernel::ConvUniversal<Problem, Mainloop, Epilogue>;
  using Conv = cutlass::conv::device::ConvUniversalAdapter<Kernel>;

  const int n = 2, h = 11, w = 20, c = 72, k = 96, r = 3, s = 3;
  Problem problem(cutlass::conv::Mode::kCrossCorrelation, {n, h, w, c}, {k, r, s, c}, {2, 1}, {2, 1}, {1, 2}, {2, 1},
                  1);
  typename Kernel::StrideC strideC;
  typename Kernel::StrideD strideD;
  for_each(make_seq<rank<0>(typename Kernel::StrideD{})>{}, [&](auto i) {
    get<0, i>(strideC) = problem.stride_C[Problem::RankT - 2 - i];
    get<0, i>(strideD) = problem.stride_C[Problem::RankT - 2 - i];
  });
  auto *images = static_cast<Element *>(parameterMemory(0, problem.size_A() * sizeof(Element)));
  auto *filters = static_cast<Element *>(parameterMemory(1, problem.size_B() * sizeof(Element)));
  auto *result = static_cast<Element *>(resultMemory(-1, problem.size_C() * sizeof(Element)));
  typename Conv::Arguments arguments{problem, {images, filters}, {{1.f, 0.f}, result, strideC, result, strideD}};
  Conv conv;
  void *workspace = nullptr;
  if (size_t bytes = Conv::get_workspace_size(arguments))
    cudaMalloc(&workspace, bytes);
  CHECK(conv.can_implement(arguments));
  CHECK(conv.initialize(arguments, workspace));
  CHECK(conv.run());
}
