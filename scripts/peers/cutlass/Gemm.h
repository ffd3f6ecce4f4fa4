#pragma once
// A GEMM of CUTLASS's collective builders: D[m, n] = alpha * sum_k A[m, k] B[n, k] (+ beta C). D and C are row-major;
// so is A unless `LayoutA` says otherwise, and B is contiguous along k unless `LayoutB` does: what HLO has in default
// layouts.
#include "Check.h"
#include "Recorder.h"

#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using namespace cute;

template <class In, class Out, class Tile, class Cluster, class Schedule, class EpilogueSchedule,
          class TileScheduler = void,
          class Fusion = cutlass::epilogue::fusion::LinearCombination<Out, float, void, float>, class Source = void,
          class LayoutA = cutlass::layout::RowMajor, class LayoutB = cutlass::layout::ColumnMajor,
          int alignIn = 128 / cutlass::sizeof_bits<In>::value, class Accumulator = float>
struct GemmOf {
  using Row = cutlass::layout::RowMajor;
  // Without bulk copies the epilogue moves single elements.
  static constexpr bool isBulk = !cute::is_same_v<EpilogueSchedule, cutlass::epilogue::NoSmemWarpSpecialized>;
  /// Fewer than there are tiles along k, so that each is filled more than once.
  using Stages = cutlass::gemm::collective::StageCount<3>;
  static constexpr int alignOut = isBulk ? 128 / cutlass::sizeof_bits<Out>::value : 1;

  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, Accumulator, Accumulator, Source, Row, alignOut, Out, Row,
      alignOut, EpilogueSchedule, Fusion>::CollectiveOp;
  using Mainloop =
      typename cutlass::gemm::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, In,
                                                            LayoutA, alignIn, In, LayoutB, alignIn, Accumulator, Tile,
                                                            Cluster, Stages, Schedule>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, TileScheduler>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  /// Parameters 0 and 1 are A and B.
  static typename Gemm::Arguments arguments(int m, int n, int k) {
    auto *a = static_cast<In *>(parameterMemory(0, size_t(m) * k * sizeof(In)));
    auto *b = static_cast<In *>(parameterMemory(1, size_t(n) * k * sizeof(In)));
    auto *d = static_cast<Out *>(resultMemory(-1, size_t(m) * n * sizeof(Out)));
    auto strideA = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
    auto strideB = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
    auto strideD = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
    typename Gemm::Arguments made{
        cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1}, {a, strideA, b, strideB}, {{}, nullptr, {}, d, strideD}};
    made.epilogue.thread.alpha = 1;
    made.epilogue.thread.beta = 0;
    made.hw_info.device_id = 0;
    made.hw_info.sm_count = 132;
    return made;
  }

  static void run(const typename Gemm::Arguments &arguments, bool isDependent = false) {
    Gemm gemm;
    void *workspace = nullptr;
    if (size_t bytes = Gemm::get_workspace_size(arguments))
      cudaMalloc(&workspace, bytes);
    CHECK(gemm.can_implement(arguments));
    CHECK(gemm.initialize(arguments, workspace));
    CHECK(gemm.run(nullptr, nullptr, isDependent));
  }
};
