#include "hloc/fusion/TensorCoreUse.h"

#include "fusion/ContractionMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {
namespace {

int64_t sizeOf(const Shape &shape, llvm::ArrayRef<int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims)
    size *= shape.dim(unsigned(dim));
  return size;
}

ProductShape shapeOfDot(const HloInstruction &dot) {
  const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
  ProductShape shape;
  shape.terms = sizeOf(lhs, dot.ints(AttributeKey::LhsContractingDims));
  const int64_t batch = sizeOf(lhs, dot.ints(AttributeKey::LhsBatchDims));
  // Of a ragged-dot each row is of one group's right side.
  const int64_t groups = dot.opcode() == Opcode::RaggedDot ? sizeOf(rhs, dot.ints(AttributeKey::RhsGroupDims)) : 1;
  return {lhs.numElements() / batch / shape.terms, rhs.numElements() / batch / shape.terms / groups, shape.terms};
}

ProductShape shapeOfConvolution(const HloInstruction &convolution) {
  const auto &labels = *convolution.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
  const Shape &kernel = convolution.operand(1)->shape(), &result = convolution.shape();
  const int64_t groups = std::max(convolution.intOr(AttributeKey::FeatureGroupCount, 1),
                                  convolution.intOr(AttributeKey::BatchGroupCount, 1));
  const int64_t features = kernel.dim(unsigned(labels.rhsOutput));
  return {result.numElements() / features, features / groups, kernel.numElements() / features};
}

/// Does the kernel make it on tensor cores?
bool isOnTensorCores(const HloInstruction &product, const KernelPlan &kernel) {
  if (const auto *attention = std::get_if<AttentionPlan>(&kernel.plan))
    return llvm::is_contained({attention->scores.hero, attention->product.hero}, &product) ||
           (attention->beside && attention->beside->hero == &product);
  const auto *contraction = std::get_if<ContractionPlan>(&kernel.plan);
  return contraction && contraction->tile.onTensorCores && llvm::is_contained(contraction->heroes(), &product);
}

bool isOnTensorCores(const HloInstruction &product, const FusionPlan &plan) {
  return llvm::any_of(plan.steps, [&](const FusionStep &step) {
    const auto *kernel = std::get_if<KernelPlan>(&step);
    return kernel && isOnTensorCores(product, *kernel);
  });
}

std::string reasonOf(const HloInstruction &product, const KernelPlan &kernel,
                     llvm::ArrayRef<HeroRejection> rejections) {
  const auto *contraction = std::get_if<ContractionPlan>(&kernel.plan);
  if (contraction && llvm::is_contained(contraction->heroes(), &product))
    return "threads that multiply as f32 take no longer, by the cost model";
  const HeroRejection *why =
      llvm::find_if(rejections, [](const HeroRejection &each) { return each.hero == text(Hero::Contraction); });
  return why == rejections.end() ? fmt::format("the kernel is a {}", text(kernel.hero()).str())
                                 : fmt::format("it is no contraction, since {}", why->reason);
}

} // namespace

ProductShape productShapeOf(const HloInstruction &product) {
  if (product.shape().numElements() == 0 ||
      llvm::any_of(product.operands().take_front(2), [](auto *factor) { return factor->shape().numElements() == 0; }))
    return {0, 0, 0};
  return product.opcode() == Opcode::Convolution ? shapeOfConvolution(product) : shapeOfDot(product);
}

std::vector<KernelRemark> remarksOnTensorCores(const FusionGraph &graph, const FusionPlan &plan,
                                               const KernelPlan &kernel, const TargetInfo &target) {
  /// Of a fragment; there is little to win with fewer.
  constexpr int64_t least = 16;
  std::vector<KernelRemark> remarks;
  // What adds up sums of parts of the terms multiplies nothing: the kernel that makes them is asked.
  if (const auto *contraction = std::get_if<ContractionPlan>(&kernel.plan);
      contraction && contraction->stage == ReductionStage::Combine)
    return remarks;
  for (const HloInstruction *instr : graph.instructions()) {
    if (!isContraction(*instr) || instr->opcode() == Opcode::ScaledDot || !graph.isLive(*instr) ||
        isOnTensorCores(*instr, plan))
      continue;
    const auto types = ContractionPlan::fragmentTypes(*instr);
    const ProductShape shape = productShapeOf(*instr);
    if (!types || !ContractionPlan::hasTensorCores(target, *types) ||
        std::min({shape.rows, shape.columns, shape.terms}) < least)
      continue;
    remarks.push_back(
        {text(DiagnosticKind::NoTensorCores).str(), instr->name().str(), uint64_t(shape.terms),
         fmt::format("{} rows by {} columns of {} terms of `{}` are not multiplied on tensor cores: {}", shape.rows,
                     shape.columns, shape.terms, instr->name().str(), reasonOf(*instr, kernel, plan.rejections))});
  }
  return remarks;
}

} // namespace hloc
