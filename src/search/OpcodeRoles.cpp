#include "search/OpcodeRoles.h"

#include "hloc/hlo/OpcodeTable.h"

namespace hloc {

OpcodeRole roleOf(Opcode opcode) {
  using enum Opcode;
  using enum PartOfKernel;
  using enum DecidesHero;
  // Elementwise ops are part of any kernel, and no hero's business.
  static constexpr OpcodeTable<OpcodeRole> roles(
      [](Opcode each) { return !isElementwise(each); },
      {
          {{Constant, Iota, ReplicaId, PartitionId, ReduceWindow, Map, ScaledDot, SelectAndScatter},
           {Always, No, std::nullopt}},
          {{Bitcast, Broadcast, DynamicSlice, Gather, Pad, Reshape, Reverse, Slice, GetDimensionSize, SetDimensionSize},
           {IfArray, No, std::nullopt}},
          {{Copy}, {IfArray, IfLayoutChanges, std::nullopt}},
          {{Concatenate, Transpose}, {IfArray, Yes, std::nullopt}},
          {{DynamicUpdateSlice}, {IfArray, Yes, Hero::DynamicUpdateSlice}},
          {{Reduce, Dot, RaggedDot, Convolution}, {Always, Yes, std::nullopt}},
          {{Scatter}, {Always, Yes, Hero::Scatter}},
          {{Sort}, {Always, Yes, Hero::Sort}},
          {{Parameter, OptimizationBarrier, Domain, AddDependency, Tuple, GetTupleElement}, {Never, No, std::nullopt}},
          // Expanded before, or refused.
          {{TopK, Scan, BatchNormTraining, BatchNormInference, BatchNormGrad, Fft, Cholesky, TriangularSolve,
            DynamicReshape, Rng, RngBitGenerator, RngGetAndUpdateState},
           {Never, No, std::nullopt}},
          // Steps between kernels.
          {{Call,
            While,
            Conditional,
            Fusion,
            CustomCall,
            AfterAll,
            Infeed,
            Outfeed,
            Send,
            SendDone,
            Recv,
            RecvDone,
            AllReduce,
            AllReduceStart,
            AllReduceDone,
            ReduceScatter,
            AllGather,
            AllGatherStart,
            AllGatherDone,
            AllToAll,
            RaggedAllToAll,
            CollectiveBroadcast,
            CollectivePermute,
            CollectivePermuteStart,
            CollectivePermuteDone,
            CopyStart,
            CopyDone,
            AsyncStart,
            AsyncUpdate,
            AsyncDone},
           {Never, No, std::nullopt}},
      });
  return isElementwise(opcode) ? OpcodeRole{Always, No, std::nullopt} : roles[opcode];
}

} // namespace hloc
