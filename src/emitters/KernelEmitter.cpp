#include "hloc/emitters/KernelEmitter.h"

#include "emitters/ElementStorage.h"
#include "emitters/KernelBuilder.h"
#include "emitters/heroes/AttentionEmitter.h"
#include "emitters/heroes/ColumnReductionEmitter.h"
#include "emitters/heroes/ColumnsEmitter.h"
#include "emitters/heroes/ConcatenateEmitter.h"
#include "emitters/heroes/ContractionEmitter.h"
#include "emitters/heroes/InputSlicesEmitter.h"
#include "emitters/heroes/LoopEmitter.h"
#include "emitters/heroes/RowReductionEmitter.h"
#include "emitters/heroes/RowsEmitter.h"
#include "emitters/heroes/ScatterEmitter.h"
#include "emitters/heroes/SortEmitter.h"
#include "emitters/heroes/TransposeEmitter.h"
#include "emitters/heroes/UpdateSliceEmitter.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/emitters/OpcodeSupport.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hloc {
namespace {

/// HLO lets a reduction round its result to another float type than its reducer has.
bool sameLeafTypes(const Shape &a, const Shape &b) {
  return llvm::all_of(llvm::zip(a.leaves(), b.leaves()), [](auto pair) {
    return std::get<0>(pair).shape.elementType() == std::get<1>(pair).shape.elementType();
  });
}

bool checkOpcode(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  if (!kernelRefusal(instr.opcode()))
    return true;
  diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(), kernelRefusal(instr));
  return false;
}

/// A type that code can be made for, in all arrays.
bool checkShapes(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  bool good = true;
  const HloComputation *applied = instr.computation(AttributeKey::ToApply);
  bool comparesElements = instr.opcode() == Opcode::Sort;
  if (applied && !comparesElements && !sameLeafTypes(applied->root()->shape(), instr.shape())) {
    good = false;
    diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                       "a result of another precision than that of `" + applied->name().str() + "`");
  }
  for (const Shape::Leaf &leaf : instr.shape().leaves()) {
    ElementType type = leaf.shape.isArray() ? leaf.shape.elementType() : ElementType::Token;
    if (isEmittable(type) && !leaf.shape.hasDynamicDims())
      continue;
    good = false;
    diagnostics.report(DiagnosticKind::UnsupportedType, instr.range(),
                       "values of shape " + leaf.shape.toString() + " are not supported in a kernel");
  }
  return good;
}

using CheckInstruction = llvm::function_ref<bool(const HloInstruction &)>;

/// Also what a reducer and the like are made of.
bool checkCalled(const HloInstruction &instr, llvm::SmallPtrSetImpl<const HloComputation *> &seen,
                 CheckInstruction check) {
  bool good = true;
  for (const HloComputation *called : instr.calledComputations())
    if (seen.insert(called).second)
      for (const HloInstruction *inner : called->instructions()) {
        good &= check(*inner);
        good &= checkCalled(*inner, seen, check);
      }
  return good;
}

} // namespace

void loadEmitterDialects(MLIRContext &context) {
  context
      .loadDialect<arith::ArithDialect, complex::ComplexDialect, func::FuncDialect, gpu::GPUDialect, math::MathDialect,
                   scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect, xla_gpu::XlaGpuDialect>();
}

llvm::FailureOr<FusionGraph> supportedGraph(const HloComputation &body, DiagnosticEngine &diagnostics) {
  // Opcodes come first, because a shape that kernels lack is mostly that of an op that they lack.
  bool good = true;
  llvm::SmallPtrSet<const HloComputation *, 4> seen;
  auto opcodeIsKnown = [&](const HloInstruction &instr) { return checkOpcode(instr, diagnostics); };
  for (const HloInstruction *instr : body.instructions()) {
    good &= opcodeIsKnown(*instr);
    good &= checkCalled(*instr, seen, opcodeIsKnown);
  }
  if (!good)
    return failure();
  seen.clear();
  llvm::FailureOr<FusionGraph> graph = FusionGraph::build(body, diagnostics);
  if (failed(graph))
    return failure();
  auto shapeIsKnown = [&](const HloInstruction &instr) { return checkShapes(instr, diagnostics); };
  for (const HloInstruction *instr : graph->instructions()) {
    good &= shapeIsKnown(*instr);
    good &= checkCalled(*instr, seen, shapeIsKnown);
  }
  if (!good)
    return failure();
  return graph;
}

llvm::FailureOr<OwningOpRef<ModuleOp>> emitKernel(const FusionGraph &graph, const KernelPlan &plan,
                                                  StringRef kernelName, MLIRContext &context,
                                                  DiagnosticEngine &diagnostics) {
  loadEmitterDialects(context);
  KernelBuilder kernel(graph, plan, kernelName, &context, diagnostics);
  auto emit = [&](const auto &hero) -> LogicalResult {
    if constexpr (std::is_same_v<std::decay_t<decltype(hero)>, std::monostate>)
      HLOC_UNREACHABLE("a kernel without a hero");
    else
      return emitHero(hero, kernel);
  };
  if (failed(std::visit(emit, plan.plan)))
    return failure();
  return kernel.finish();
}

} // namespace hloc
