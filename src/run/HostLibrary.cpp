#include "HostLibrary.h"

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/kernel/LibraryConvolution.h"
#include "hloc/support/Check.h"

#include <cstring>

namespace hloc {

namespace {

using Matrix = MatmulCall::Matrix;

ElementType elementType(LibraryType type) {
  std::optional<ElementType> found = parseElementType(text(type));
  HLOC_CHECK(found, "a type of a library that HLO does not have");
  return *found;
}

using Sizes = LibraryConvolution::Sizes;

/// An array whose dimensions lie in memory as strides say, gathered major to minor.
class StridedArray {
public:
  StridedArray(LibraryType type, const Sizes &sizes, const Sizes &strides)
      : type(type), sizes(sizes), strides(strides), bytes(bytesOf(type)) {}

  Shape shape() const {
    return Shape::array(elementType(type), llvm::SmallVector<int64_t>(sizes.begin(), sizes.end()));
  }
  Literal read(llvm::ArrayRef<uint8_t> memory) const {
    Literal array(shape());
    uint8_t *to = array.mutableBytes().data();
    forEachRun([&](uint64_t offset, uint64_t length) {
      std::memcpy(to, memory.data() + offset, length);
      to += length;
    });
    return array;
  }
  void write(const Literal &array, llvm::function_ref<void(uint64_t, llvm::ArrayRef<uint8_t>)> store) const {
    llvm::ArrayRef<uint8_t> from = array.bytes();
    forEachRun([&](uint64_t offset, uint64_t length) {
      store(offset, from.take_front(length));
      from = from.drop_front(length);
    });
  }

private:
  /// `visit(offset, length)`, in bytes: of what lies side by side along the last dimension, or of one element.
  template <typename Visit> void forEachRun(Visit visit) const {
    const size_t outer = sizes.size() - (strides.back() == 1 ? 1 : 0);
    const uint64_t length = (outer < sizes.size() ? sizes.back() : 1) * bytes;
    Sizes index(outer, 0);
    for (;;) {
      uint64_t place = 0;
      for (size_t i = 0; i < outer; ++i)
        place += index[i] * strides[i];
      visit(place * bytes, length);
      size_t dim = outer;
      while (dim > 0 && ++index[dim - 1] == sizes[dim - 1])
        index[--dim] = 0;
      if (dim == 0)
        return;
    }
  }

  LibraryType type;
  Sizes sizes, strides;
  uint64_t bytes;
};

// --- products

/// A batch of matrices, with columns where it has rows: [batch, columns of the product, rows of it].
StridedArray arrayOf(const MatmulCall &call, const Matrix &matrix) {
  return {matrix.type,
          {call.batch, call.columnsOf(matrix), call.rowsOf(matrix)},
          {matrix.batchStride, matrix.leadingDimension, 1}};
}

llvm::StringRef epilogueName(MatmulCall::Epilogue epilogue) {
  switch (epilogue) {
  case MatmulCall::Epilogue::Default:
    return "DEFAULT";
  case MatmulCall::Epilogue::Relu:
    return "RELU";
  case MatmulCall::Epilogue::Gelu:
    return "GELU";
  case MatmulCall::Epilogue::Bias:
    return "BIAS";
  case MatmulCall::Epilogue::ReluBias:
    return "BIAS_RELU";
  case MatmulCall::Epilogue::GeluBias:
    return "BIAS_GELU";
  }
  HLOC_UNREACHABLE("epilogue out of range");
}

/// Arrays have columns where matrices have rows, so that the product is that of the transposed factors, and the bias
/// one of its last dimension: out[i, n, m] = b^T[i, n, k] . a^T[i, k, m].
std::string configurationOf(const MatmulCall &call) {
  GemmCall gemm;
  gemm.lhsBatch = gemm.rhsBatch = {0};
  gemm.lhsContracting = {call.b.transposed ? 1 : 2};
  gemm.rhsContracting = {call.a.transposed ? 2 : 1};
  gemm.alpha = call.alpha;
  gemm.beta = call.beta;
  return gemmConfiguration(gemm, epilogueName(call.epilogue));
}

bool carryOut(const MatmulCall &call, const CallStep &step, ReadSlice read, WriteSlice write,
              DiagnosticEngine &diagnostics) {
  HloModule module("library");
  HloComputation &entry = *module.addComputation("call");
  HloBuilder b(entry);
  std::vector<Literal> arguments;
  llvm::SmallVector<HloInstruction *> operands;
  auto add = [&](Literal value) {
    operands.push_back(b.parameter(int64_t(operands.size()), value.shape()));
    arguments.push_back(std::move(value));
  };
  auto addMatrix = [&](const Matrix &matrix, size_t number) {
    add(arrayOf(call, matrix).read(read(step.reads[number])));
  };
  addMatrix(call.b, 1);
  addMatrix(call.a, 0);
  if (call.c)
    addMatrix(*call.c, 2);
  if (call.hasBias()) {
    Literal bias(Shape::array(elementType(call.d.type), {int64_t(call.m)}));
    llvm::ArrayRef<uint8_t> bytes = read(step.reads.back());
    std::memcpy(bias.mutableBytes().data(), bytes.data(), bias.bytes().size());
    add(std::move(bias));
  }
  const StridedArray result = arrayOf(call, call.d);
  const std::string configuration = configurationOf(call);
  entry.setRoot(b.add(Opcode::CustomCall, result.shape(), operands,
                      {{AttributeKey::CustomCallTarget, llvm::StringRef("__cublas$lt$matmul")},
                       {AttributeKey::BackendConfig, llvm::StringRef(configuration)}}));
  module.setEntry(&entry);
  llvm::FailureOr<Literal> value = interpret(entry, arguments, diagnostics);
  if (failed(value))
    return false;
  result.write(*value, [&](uint64_t offset, llvm::ArrayRef<uint8_t> bytes) { write(step.writes[0], offset, bytes); });
  return true;
}

// --- convolutions

llvm::StringRef targetOf(LibraryConvolution::Kind kind) {
  switch (kind) {
  case LibraryConvolution::Kind::Forward:
    return "__cudnn$convForward";
  case LibraryConvolution::Kind::InputGradient:
    return "__cudnn$convBackwardInput";
  case LibraryConvolution::Kind::KernelGradient:
    return "__cudnn$convBackwardFilter";
  }
  HLOC_UNREACHABLE("kind of convolution out of range");
}

/// bf01_oi01->bf01
ConvolutionLabels labelsOf(size_t spatial) {
  ConvolutionLabels labels;
  labels.lhsFeature = labels.outFeature = labels.rhsInput = 1;
  for (size_t i = 0; i < spatial; ++i)
    for (auto *list : {&labels.lhsSpatial, &labels.rhsSpatial, &labels.outSpatial})
      list->push_back(int64_t(i) + 2);
  return labels;
}

/// Padding behind is what the results' number leaves, be it less than nothing.
Window windowOf(const LibraryConvolution &convolution) {
  Window window;
  for (size_t i = 0; i < convolution.spatial(); ++i) {
    WindowDim dim;
    dim.size = int64_t(convolution.kernel[i + 2]);
    dim.stride = int64_t(convolution.strides[i]);
    dim.windowDilation = int64_t(convolution.dilations[i]);
    dim.padLow = int64_t(convolution.padding[i]);
    dim.padHigh = dim.padLow;
    dim.reversed = convolution.flipped;
    window.dims.push_back(dim);
  }
  return window;
}

bool carryOut(const LibraryConvolution &convolution, const CallStep &step, ReadSlice read, WriteSlice write,
              DiagnosticEngine &diagnostics) {
  using Kind = LibraryConvolution::Kind;
  const StridedArray x(convolution.type, convolution.x, convolution.xStrides),
      kernel(convolution.type, convolution.kernel, convolution.kernelStrides()),
      y(convolution.type, convolution.y, convolution.yStrides);
  const StridedArray &first = convolution.kind == Kind::InputGradient ? y : x,
                     &second = convolution.kind == Kind::KernelGradient ? y : kernel,
                     &result = convolution.kind == Kind::Forward         ? y
                               : convolution.kind == Kind::InputGradient ? x
                                                                         : kernel;
  // The function for x's gradient has the kernel first, the custom call y's.
  const size_t firstRead = convolution.kind == Kind::InputGradient ? 1 : 0;
  HloModule module("library");
  HloComputation &entry = *module.addComputation("call");
  HloBuilder b(entry);
  std::vector<Literal> arguments;
  arguments.push_back(first.read(read(step.reads[firstRead])));
  arguments.push_back(second.read(read(step.reads[1 - firstRead])));
  HloInstruction *lhs = b.parameter(0, first.shape()), *rhs = b.parameter(1, second.shape());
  const Window window = windowOf(convolution);
  const ConvolutionLabels labels = labelsOf(convolution.spatial());
  entry.setRoot(b.add(Opcode::CustomCall, Shape::tuple({result.shape(), Shape::array(ElementType::U8, {0})}),
                      {lhs, rhs},
                      {{AttributeKey::CustomCallTarget, targetOf(convolution.kind)},
                       {AttributeKey::Window, &window},
                       {AttributeKey::DimLabels, &labels},
                       {AttributeKey::FeatureGroupCount, int64_t(convolution.groups)},
                       {AttributeKey::BackendConfig, plainConvolutionConfiguration()}}));
  module.setEntry(&entry);
  llvm::FailureOr<Literal> value = interpret(entry, arguments, diagnostics);
  if (failed(value))
    return false;
  result.write(value->elements().front(),
               [&](uint64_t offset, llvm::ArrayRef<uint8_t> bytes) { write(step.writes[0], offset, bytes); });
  return true;
}

} // namespace

bool carryOutOnHost(const CallStep &call, ReadSlice read, WriteSlice write, DiagnosticEngine &diagnostics,
                    std::string &error) {
  if (std::optional<LibraryConvolution::Kind> kind = LibraryConvolution::kindOf(call.function)) {
    std::optional<LibraryConvolution> convolution = LibraryConvolution::parse(*kind, call.configuration, error);
    return convolution && carryOut(*convolution, call, read, write, diagnostics);
  }
  std::optional<MatmulCall> matmul = MatmulCall::parse(call.configuration, error);
  return matmul && carryOut(*matmul, call, read, write, diagnostics);
}

} // namespace hloc
