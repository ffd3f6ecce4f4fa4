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

using namespace mlir;

namespace hloc {
namespace {

/// HLO lets a reduction round its result to another float type than its reducer has.
bool sameLeafTypes(const Shape &a, const Shape &b) {
  return llvm::all_of(llvm::zip(a.leaves(), b.leaves()), [](auto pair) {
    return std::get<0>(pair).shape.elementType() == std::get<1>(pair).shape.elementType();
  });
}

/// Every instruction needs an emitter, every array a type that code can be made for. All that is missing is reported.
bool checkSupport(const FusionGraph &graph, DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const HloInstruction *parameter : graph.parameters())
    if (!parameter->shape().isArray()) {
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedType, parameter->range(),
                         "a parameter of shape " + parameter->shape().toString() + " is not supported in a kernel");
    }
  for (const HloInstruction *instr : graph.instructions()) {
    if (const char *reason = kernelRefusal(instr->opcode())) {
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr->range(),
                         "opcode `" + text(instr->opcode()).str() + "` is not supported in a kernel: " + reason);
      continue;
    }
    const HloComputation *applied = instr->computation(AttributeKey::ToApply);
    if (applied && !sameLeafTypes(applied->root()->shape(), instr->shape())) {
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedFeature, instr->range(),
                         "a result of another precision than that of `" + applied->name().str() + "`");
    }
    for (const Shape::Leaf &leaf : instr->shape().leaves()) {
      ElementType type = leaf.shape.isArray() ? leaf.shape.elementType() : ElementType::Token;
      if (isEmittable(type) && !leaf.shape.hasDynamicDims())
        continue;
      good = false;
      diagnostics.report(DiagnosticKind::UnsupportedType, instr->range(),
                         "values of shape " + leaf.shape.toString() + " are not supported in a kernel");
    }
  }
  return good;
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

template <typename Plan>
llvm::FailureOr<EmittedKernel> emitPlan(const Plan &plan, const FusionGraph &graph, KernelSpec spec,
                                        MLIRContext &context, DiagnosticEngine &diagnostics) {
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

llvm::FailureOr<EmittedKernel> emitKernel(const HloComputation &fusionBody, StringRef kernelName,
                                          const TargetInfo &target, MLIRContext &context,
                                          DiagnosticEngine &diagnostics) {
  loadEmitterDialects(context);
  llvm::FailureOr<FusionGraph> graph = FusionGraph::build(fusionBody, diagnostics);
  if (failed(graph) || !checkSupport(*graph, diagnostics))
    return failure();
  HeroChoice choice = selectHero(*graph, target);
  KernelSpec spec = describeKernel(*graph, kernelName, choice);
  return std::visit(
      [&](const auto &plan) -> llvm::FailureOr<EmittedKernel> {
        if constexpr (std::is_same_v<std::decay_t<decltype(plan)>, std::monostate>)
          HLOC_UNREACHABLE("hero without a plan");
        else
          return emitPlan(plan, *graph, std::move(spec), context, diagnostics);
      },
      choice.plan);
}

} // namespace hloc
