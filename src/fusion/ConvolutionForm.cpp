// Which convolution of cuDNN an instruction is.

#include "hloc/fusion/LibraryForm.h"

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/LibraryMark.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Sizes = LibraryConvolution::Sizes;

/// Who is what of y = convolution(x, kernel), wherever its text is.
struct Source {
  LibraryConvolution::Kind kind;
  ConvolutionShapes shapes;
  Window window;
  const ConvolutionLabels &labels;
  int64_t groups;
  bool allowsTf32;
};

std::optional<Source> sourceOf(const HloInstruction &instr, std::string &why) {
  if (instr.opcode() != Opcode::Convolution) {
    std::optional<ConvolutionCall> call = ConvolutionCall::of(instr);
    if (!call || call->kind == ConvolutionCallKind::BiasActivation) {
      why = call ? "it adds a bias" : "operands, results or configuration do not fit each other";
      return std::nullopt;
    }
    const auto kind = call->kind == ConvolutionCallKind::Forward         ? LibraryConvolution::Kind::Forward
                      : call->kind == ConvolutionCallKind::InputGradient ? LibraryConvolution::Kind::InputGradient
                                                                         : LibraryConvolution::Kind::KernelGradient;
    return Source{kind, call->shapes, call->window, call->labels, call->groups, call->allowsTf32};
  }
  const auto algorithm = instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset);
  if (instr.has(AttributeKey::SparsityConfig)) {
    why = "its operands are sparse";
    return std::nullopt;
  }
  if (instr.intOr(AttributeKey::BatchGroupCount, 1) != 1) {
    why = "it has groups of batches";
    return std::nullopt;
  }
  if (algorithm != DotAlgorithm::Unset && algorithm != DotAlgorithm::TF32TF32F32) {
    why = "the library has no such algorithm";
    return std::nullopt;
  }
  return Source{LibraryConvolution::Kind::Forward,
                {instr.operand(0)->shape(), instr.operand(1)->shape(), instr.shape()},
                instr.windowOr(instr.shape().rank() - 2),
                *instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels),
                instr.intOr(AttributeKey::FeatureGroupCount, 1),
                algorithm == DotAlgorithm::TF32TF32F32};
}

/// Of dimensions in an order: sizes, and how far neighbours are apart.
void describe(const Shape &shape, llvm::ArrayRef<int64_t> order, Sizes &sizes, Sizes &strides) {
  Sizes all(shape.rank(), 0);
  uint64_t stride = 1;
  for (int64_t dim : shape.minorToMajor()) {
    all[size_t(dim)] = stride;
    stride *= uint64_t(shape.dim(unsigned(dim)));
  }
  for (int64_t dim : order) {
    sizes.push_back(uint64_t(shape.dim(unsigned(dim))));
    strides.push_back(all[size_t(dim)]);
  }
}

llvm::SmallVector<int64_t> ordered(int64_t first, int64_t second, llvm::ArrayRef<int64_t> spatial) {
  llvm::SmallVector<int64_t> order = {first, second};
  llvm::append_range(order, spatial);
  return order;
}

/// Strides of dimensions of one element mean nothing.
bool isSameOrder(const Sizes &sizes, const Sizes &a, const Sizes &b) {
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && a[i] != b[i])
      return false;
  return true;
}

bool isPlainMemory(const Shape &shape) {
  return !shape.hasDynamicDims() && shape.layout().extras.empty() && shape.layout().memorySpace == 0 &&
         shape.numElements() != 0;
}

/// Padding is the same on both sides there; what is more or less of it behind has to make no difference.
std::string takeWindow(const Window &window, LibraryConvolution &made) {
  made.flipped = !window.dims.empty() && window.dims.front().reversed;
  for (const WindowDim &dim : window.dims) {
    if (dim.baseDilation != 1)
      return "its input has holes";
    if (dim.padLow < 0)
      return "its padding is negative";
    if (dim.reversed != made.flipped && dim.size != 1)
      return "some dimensions of its window are reversed, and some are not";
    made.padding.push_back(uint64_t(dim.padLow));
    made.strides.push_back(uint64_t(dim.stride));
    made.dilations.push_back(uint64_t(dim.windowDilation));
  }
  return "";
}

std::optional<LibraryConvolution::Compute> computeOf(LibraryType type, bool allowsTf32, const TargetInfo &target) {
  using Compute = LibraryConvolution::Compute;
  switch (type) {
  case LibraryType::BF16:
    return target.atLeast(8, 0) ? std::optional(Compute::F32) : std::nullopt;
  case LibraryType::F16:
    return Compute::F32;
  case LibraryType::F32:
    return allowsTf32 && target.hasTf32() ? Compute::Tf32 : Compute::F32;
  case LibraryType::F64:
    return Compute::F64;
  default:
    return std::nullopt;
  }
}

} // namespace

std::optional<LibraryConvolution> convolutionOf(const HloInstruction &instr, const TargetInfo &target,
                                                llvm::SmallVectorImpl<unsigned> &reads, std::string &why) {
  std::optional<Source> source = sourceOf(instr, why);
  if (!source)
    return std::nullopt;
  auto refuse = [&](std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  };
  const auto &[x, kernel, y] = source->shapes;
  std::optional<LibraryType> type = findLibraryType(text(x.elementType()));
  std::optional<LibraryConvolution::Compute> compute =
      type ? computeOf(*type, source->allowsTf32, target) : std::nullopt;
  if (!compute || kernel.elementType() != x.elementType() || y.elementType() != x.elementType())
    return refuse("there is no such convolution of " + text(x.elementType()).str() + " and " +
                  text(kernel.elementType()).str() + " to " + text(y.elementType()).str() + " on " + target.name);
  if (!isPlainMemory(x) || !isPlainMemory(kernel) || !isPlainMemory(y))
    return refuse("its arrays are no plain ones, or empty");
  LibraryConvolution made;
  made.kind = source->kind;
  made.type = *type;
  made.compute = *compute;
  made.groups = uint64_t(source->groups);
  if (why = takeWindow(source->window, made); !why.empty())
    return std::nullopt;
  const ConvolutionLabels &labels = source->labels;
  Sizes kernelStrides;
  describe(x, ordered(labels.lhsBatch, labels.lhsFeature, labels.lhsSpatial), made.x, made.xStrides);
  describe(y, ordered(labels.outBatch, labels.outFeature, labels.outSpatial), made.y, made.yStrides);
  describe(kernel, ordered(labels.rhsOutput, labels.rhsInput, labels.rhsSpatial), made.kernel, kernelStrides);
  if (!isSameOrder(made.kernel, kernelStrides, made.kernelStrides())) {
    made.kernelFeaturesLast = true;
    if (!isSameOrder(made.kernel, kernelStrides, made.kernelStrides()))
      return refuse("its kernel has neither the output features before the input's and these before the rest, nor the "
                    "input's last");
  }
  reads.assign({0, 1});
  if (made.kind == LibraryConvolution::Kind::InputGradient)
    reads.assign({1, 0});
  std::string wrong;
  std::optional<LibraryConvolution> checked = LibraryConvolution::parse(made.kind, made.configuration(), wrong);
  if (!checked)
    return refuse(wrong);
  return checked;
}

} // namespace hloc
