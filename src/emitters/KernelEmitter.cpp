#include "hloc/emitters/KernelEmitter.h"

#include "emitters/ElementStorage.h"
#include "emitters/KernelBuilder.h"
#include "emitters/heroes/LoopEmitter.h"
#include "emitters/heroes/TransposeEmitter.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/emitters/OpcodeSupport.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "fmt/format.h"

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
  const char *reason = kernelRefusal(instr.opcode());
  if (!reason)
    return true;
  diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                     "opcode `" + text(instr.opcode()).str() + "` is not supported in a kernel: " + reason);
  return false;
}

/// A type that code can be made for, in all arrays.
bool checkShapes(const HloInstruction &instr, DiagnosticEngine &diagnostics) {
  bool good = true;
  const HloComputation *applied = instr.computation(AttributeKey::ToApply);
  if (applied && !sameLeafTypes(applied->root()->shape(), instr.shape())) {
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

/// The graph, if there are emitters for its opcodes and types. All that is missing is reported; opcodes come first,
/// because a shape that kernels lack is mostly that of an op that they lack.
llvm::FailureOr<FusionGraph> supportedGraph(const HloComputation &body, DiagnosticEngine &diagnostics) {
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

KernelParameter describeBuffer(KernelParameter::Role role, unsigned index, const Shape &shape) {
  KernelParameter parameter;
  parameter.role = role;
  parameter.index = index;
  parameter.shape = shape.toString();
  parameter.bytes = shape.byteSize();
  parameter.written = role == KernelParameter::Role::Output;
  return parameter;
}

KernelSpec describeKernel(const FusionGraph &graph, StringRef name, const HeroChoice &choice) {
  KernelSpec spec;
  spec.name = name.str();
  for (auto [i, parameter] : llvm::enumerate(graph.parameters()))
    spec.parameters.push_back(describeBuffer(KernelParameter::Role::Input, i, parameter->shape()));
  for (auto [i, root] : llvm::enumerate(graph.roots()))
    spec.parameters.push_back(describeBuffer(KernelParameter::Role::Output, i, root.shape));
  spec.hero = text(choice.hero).str();
  spec.heroWhy = choice.why;
  spec.bytesRead = graph.bytesRead();
  spec.bytesWritten = graph.bytesWritten();
  return spec;
}

/// Arrays of 2^55 and more elements need more blocks than a launch can have.
bool checkGrid(Dim3 grid, const FusionGraph &graph, const TargetInfo &target, DiagnosticEngine &diagnostics) {
  if (grid.x <= target.maxGridX && grid.y <= target.maxGridY)
    return true;
  diagnostics.report(DiagnosticKind::UnsupportedFeature, graph.computation().root()->range(),
                     fmt::format("a kernel of {} x {} blocks is not supported: {} launches at most {} x {}", grid.x,
                                 grid.y, target.name, target.maxGridX, target.maxGridY));
  return false;
}

template <typename Plan>
llvm::FailureOr<EmittedKernel> emitPlan(const Plan &plan, const FusionGraph &graph, KernelSpec spec,
                                        const TargetInfo &target, MLIRContext &context, DiagnosticEngine &diagnostics) {
  if (!checkGrid(plan.grid, graph, target, diagnostics))
    return failure();
  spec.grid = plan.grid;
  spec.block = plan.block;
  if constexpr (std::is_same_v<Plan, TransposePlan>)
    spec.staticSharedBytes = plan.sharedBytes;
  KernelBuilder kernel(graph, spec.name, plan.grid, plan.block, &context, diagnostics);
  if (failed(emitHero(plan, kernel)))
    return failure();
  return EmittedKernel{kernel.finish(), std::move(spec)};
}

} // namespace

void loadEmitterDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, complex::ComplexDialect, func::FuncDialect, gpu::GPUDialect,
                      math::MathDialect, scf::SCFDialect, tensor::TensorDialect, xla_gpu::XlaGpuDialect>();
}

bool checkKernelSupport(const HloComputation &fusionBody, DiagnosticEngine &diagnostics) {
  return succeeded(supportedGraph(fusionBody, diagnostics));
}

llvm::FailureOr<EmittedKernel> emitKernel(const HloComputation &fusionBody, StringRef kernelName,
                                          const TargetInfo &target, MLIRContext &context,
                                          DiagnosticEngine &diagnostics) {
  loadEmitterDialects(context);
  llvm::FailureOr<FusionGraph> graph = supportedGraph(fusionBody, diagnostics);
  if (failed(graph))
    return failure();
  HeroChoice choice = selectHero(*graph, target);
  KernelSpec spec = describeKernel(*graph, kernelName, choice);
  return std::visit(
      [&](const auto &plan) -> llvm::FailureOr<EmittedKernel> {
        if constexpr (std::is_same_v<std::decay_t<decltype(plan)>, std::monostate>)
          HLOC_UNREACHABLE("hero without a plan");
        else
          return emitPlan(plan, *graph, std::move(spec), target, context, diagnostics);
      },
      choice.plan);
}

} // namespace hloc
