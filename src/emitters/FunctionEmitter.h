#pragma once
// FunctionEmitter: the body of one subgraph's function.
//
//   func private @gelu_mul_13(%p0: tensor<6x512x4096xbf16>, %i: index, %j: index, %k: index) -> bf16
//
// Arguments: the fusion's parameters, one index per dimension of the first root (row-major, logical), the values of
// injected instructions. Results: the roots, in storage types. Chains of elementwise ops are walked with a worklist;
// only a change of indices recurses, and the partitioner bounds how deep.

#include "ComputationPartitioner.h"
#include "emitters/CodeBuilder.h"
#include "hloc/fusion/HloIndexing.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hloc {

/// What the functions of one kernel share.
struct FusionCode {
  const FusionGraph &graph;
  const PartitionedComputation &partition;
  std::vector<mlir::func::FuncOp> functions; ///< by subgraph
  std::vector<unsigned> useCounts;           ///< by instruction id
  DiagnosticEngine &diagnostics;

  mlir::func::FuncOp functionOf(const HloInstruction &instr) const { return functions[partition.subgraphOf(instr)]; }
};

/// `"add.3"("gelu.hlo":7:3)`: the HLO name at its place in the text.
mlir::Location locationOf(const HloInstruction &instr, mlir::MLIRContext *context);

struct OpcodeEmission;

class FunctionEmitter {
public:
  using Values = llvm::SmallVector<mlir::Value, 1>;
  using Result = llvm::FailureOr<Values>;

  FunctionEmitter(const FusionCode &code, const Subgraph &subgraph, mlir::func::FuncOp function);
  llvm::LogicalResult emitBody();

  using Method = Result (FunctionEmitter::*)(const HloInstruction &instr, mlir::ValueRange indices);
  /// The row of OpcodeEmission.def.
  static const OpcodeEmission &emissionOf(Opcode opcode);

private:
  /// The values (value types) of all results of `instr` at `indices`.
  Result emit(const HloInstruction &instr, mlir::ValueRange indices);
  llvm::FailureOr<mlir::Value> emitOne(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitHere(const HloInstruction &instr, mlir::ValueRange indices);

  // Leaves and calls.
  Result emitLeaf(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitIota(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitDeviceZero(const HloInstruction &instr, mlir::ValueRange indices); ///< one device, number 0
  Result emitCall(const HloInstruction &instr, mlir::ValueRange indices);
  const Values *remembered(const HloInstruction &instr) const;
  /// The argument, in its storage type.
  void nameArguments();
  mlir::Value injectedArgument(const InjectedValue &value);

  // Elementwise (FunctionEmitter.cpp).
  Result emitElementwiseChain(const HloInstruction &last, mlir::ValueRange indices);
  Result emitInPlace(const HloInstruction &instr, mlir::ValueRange indices);

  // Data movement (EmitMovement.cpp).
  Result emitMapped(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitBitcast(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitHalvesOfComplex(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitComplexOfHalves(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitNarrowingBitcast(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitWideningBitcast(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitConcatenate(const HloInstruction &instr, mlir::ValueRange indices);
  /// Of the operands [begin, end), one of which has the element.
  Result emitOneOf(const HloInstruction &instr, mlir::ValueRange indices, unsigned begin, unsigned end);
  Result emitPad(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitGather(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitDynamicSlice(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitDynamicUpdateSlice(const HloInstruction &instr, mlir::ValueRange indices);
  llvm::FailureOr<Values> runtimeValues(const HloInstruction &instr, const OperandIndexing &indexing,
                                        mlir::ValueRange indices);
  /// `if (condition) thenBranch() else elseBranch()`; both give one value.
  Result emitIf(mlir::Value condition, mlir::Type type, llvm::function_ref<Result()> thenBranch,
                llvm::function_ref<Result()> elseBranch);

  Result emitIfElse(mlir::Value condition, mlir::ValueRange otherwise, llvm::function_ref<Result()> thenBranch);

  // Loops in one thread (EmitSequential.cpp).
  Result emitReduction(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitNarrowSum(const HloInstruction &instr, mlir::Value init, const IndexingMap &elements,
                       mlir::ValueRange indices);
  Result emitScatter(const HloInstruction &instr, mlir::ValueRange indices);
  /// What `current` becomes at `indices` by the update whose window is `window` (an index of it in the updates).
  Result emitUpdate(const HloInstruction &instr, const GatherDims &dims, mlir::ValueRange indices,
                    mlir::ValueRange window, mlir::ValueRange current);
  Result emitProducts(const HloInstruction &instr, mlir::ValueRange indices);
  /// 64-bit integers: where all groups end, and what was asked for.
  struct RaggedGroup {
    mlir::Value all, number, begin, end;
  };
  llvm::FailureOr<RaggedGroup> emitRaggedGroup(const HloInstruction &instr, int64_t extent, mlir::Value position,
                                               mlir::Value group);
  Result emitRaggedDot(const HloInstruction &instr, mlir::ValueRange indices);
  Result emitSelectAndScatter(const HloInstruction &instr, mlir::ValueRange indices);
  llvm::FailureOr<mlir::Value> emitIsSelected(const HloInstruction &instr, const IndexingMap &elements,
                                              mlir::ValueRange window, mlir::ValueRange indices);

  Result refuseInnerSort(const HloInstruction &instr, mlir::ValueRange indices);

  Result unsupportedFeature(const HloInstruction &instr, const llvm::Twine &what);
  void locate(const HloInstruction &instr);

  const FusionCode &code;
  const Subgraph &subgraph;
  mlir::func::FuncOp function;
  CodeBuilder b;
  llvm::DenseMap<const HloInstruction *, Values> values;
};

/// How kernels contain an opcode.
struct OpcodeEmission {
  enum class Kind : uint8_t { Missing, InPlace, Leaf, Method, TakenApart, Refused };
  Kind kind = Kind::Missing;
  FunctionEmitter::Method method = nullptr; ///< Kind::Method
  const char *reason = nullptr;             ///< Kind::Refused
};

/// Results of `map` (without its constraints) at `operands`: dims, then ranges and runtime variables.
llvm::SmallVector<mlir::Value> applyMap(CodeBuilder &b, const IndexingMap &map, mlir::ValueRange operands);
/// min(max(start, 0), high) as an index. Clamped in its own width first, so that no start value wraps around.
mlir::Value clampStart(CodeBuilder &b, mlir::Value start, ElementType type, int64_t high);
/// Is `start` from 0 to `high`? Compared in its own width, so that no value wraps around.
mlir::Value startIsInside(CodeBuilder &b, mlir::Value start, ElementType type, int64_t high);
/// A start of which that is known as an index.
mlir::Value startAsIndex(CodeBuilder &b, mlir::Value start, ElementType type, int64_t high);
/// Do the bounds and constraints of `map` hold at `indices`, which are known to lie in [0, sizes)? Null: always.
mlir::Value insideDomain(CodeBuilder &b, const IndexingMap &map, mlir::ValueRange indices,
                         llvm::ArrayRef<int64_t> sizes);

} // namespace hloc
