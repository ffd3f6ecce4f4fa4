#include "hloc/fusion/LibraryForm.h"

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/LibraryMark.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <array>

namespace hloc {

namespace {

using Matrix = MatmulCall::Matrix;
using Dims = llvm::SmallVector<int64_t>;

/// Dimensions of several arrays that are the same: a size, and how far neighbours are apart in each of the arrays.
struct Dim {
  int64_t size = 1;
  std::array<int64_t, 3> strides = {0, 0, 0}; ///< in elements; 0 in what does not have it
};

Dims stridesOf(const Shape &shape) {
  Dims strides(shape.rank(), 0);
  int64_t stride = 1;
  for (int64_t dim : shape.minorToMajor()) {
    strides[size_t(dim)] = stride;
    stride *= shape.dim(unsigned(dim));
  }
  return strides;
}

/// One dimension that stands for all of them, if there is one: each continues the next, in all of the arrays.
std::optional<Dim> merged(llvm::SmallVector<Dim> dims) {
  llvm::erase_if(dims, [](const Dim &dim) { return dim.size == 1; });
  llvm::sort(dims, [](const Dim &a, const Dim &b) { return a.strides > b.strides; });
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    for (size_t array = 0; array < 3; ++array)
      if (dims[i].strides[array] != dims[i + 1].strides[array] * dims[i + 1].size)
        return std::nullopt;
  Dim all = dims.empty() ? Dim() : dims.back();
  all.size = 1;
  for (const Dim &dim : dims)
    all.size *= dim.size;
  return all;
}

/// The dimensions of a product, each of one size: [batch, rows, depth] . [batch, depth, columns].
struct ProductDims {
  Dim batch, rows, columns, depth;
};
enum Array : size_t { Lhs, Rhs, Out };

std::optional<ProductDims> productDims(const GemmCall &gemm, const Shape &lhs, const Shape &rhs, const Shape &out,
                                       std::string &why) {
  const Dims left = stridesOf(lhs), right = stridesOf(rhs), result = stridesOf(out);
  llvm::SmallVector<Dim> batch, rows, columns, depth;
  size_t next = 0; // dimension of the result
  for (auto [x, y] : llvm::zip_equal(gemm.lhsBatch, gemm.rhsBatch))
    batch.push_back({lhs.dim(unsigned(x)), {left[size_t(x)], right[size_t(y)], result[next++]}});
  for (auto [x, y] : llvm::zip_equal(gemm.lhsContracting, gemm.rhsContracting))
    depth.push_back({lhs.dim(unsigned(x)), {left[size_t(x)], right[size_t(y)], 0}});
  auto isFree = [](int64_t dim, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
    return !llvm::is_contained(a, dim) && !llvm::is_contained(b, dim);
  };
  for (int64_t dim : llvm::seq<int64_t>(0, int64_t(lhs.rank())))
    if (isFree(dim, gemm.lhsBatch, gemm.lhsContracting))
      rows.push_back({lhs.dim(unsigned(dim)), {left[size_t(dim)], 0, result[next++]}});
  for (int64_t dim : llvm::seq<int64_t>(0, int64_t(rhs.rank())))
    if (isFree(dim, gemm.rhsBatch, gemm.rhsContracting))
      columns.push_back({rhs.dim(unsigned(dim)), {0, right[size_t(dim)], result[next++]}});
  ProductDims dims;
  for (auto [list, one, name] : {std::tuple(&batch, &dims.batch, "batch"),
                                 {&rows, &dims.rows, "free"},
                                 {&columns, &dims.columns, "free"},
                                 {&depth, &dims.depth, "contracting"}}) {
    std::optional<Dim> all = merged(*list);
    if (!all) {
      why = std::string("its ") + name + " dimensions are not one by their layouts";
      return std::nullopt;
    }
    *one = *all;
  }
  return dims;
}

/// Two dimensions of an array as a matrix whose columns are along `down`; nothing if elements of these do not lie side
/// by side.
std::optional<Matrix> columnsAlong(const Dim &down, const Dim &across, size_t array, LibraryType type) {
  if (down.size != 1 && down.strides[array] != 1)
    return std::nullopt;
  Matrix matrix;
  matrix.type = type;
  matrix.leadingDimension = uint64_t(across.size == 1 ? down.size : across.strides[array]);
  if (int64_t(matrix.leadingDimension) < down.size)
    return std::nullopt;
  return matrix;
}

/// `down` along the columns, or across them, which is transposed. `prefersTransposed`: where both are right.
std::optional<Matrix> factor(const Dim &down, const Dim &across, size_t array, LibraryType type,
                             bool prefersTransposed) {
  std::optional<Matrix> plain = columnsAlong(down, across, array, type),
                        transposed = columnsAlong(across, down, array, type);
  if (transposed)
    transposed->transposed = true;
  return prefersTransposed ? (transposed ? transposed : plain) : (plain ? plain : transposed);
}

bool isNarrow(LibraryType type) { return bytesOf(type) == 1; }

/// Does the library multiply these types, as the HLO has it: rounded once?
std::optional<MatmulCall::Compute> computeOf(LibraryType lhs, LibraryType rhs, LibraryType out, bool allowsTf32,
                                             const TargetInfo &target) {
  using enum LibraryType;
  using Compute = MatmulCall::Compute;
  if (lhs == F8E4M3FN || lhs == F8E5M2) {
    const bool isPair = (rhs == F8E4M3FN || rhs == F8E5M2) && !(lhs == F8E5M2 && rhs == F8E5M2);
    return isPair && target.atLeast(8, 9) && (out == F32 || out == BF16 || out == F16) ? std::optional(Compute::F32)
                                                                                       : std::nullopt;
  }
  if (lhs != rhs)
    return std::nullopt;
  switch (lhs) {
  case F16:
    return out == F16 || out == F32 ? std::optional(Compute::F32) : std::nullopt;
  case BF16:
    return (out == BF16 || out == F32) && target.atLeast(8, 0) ? std::optional(Compute::F32) : std::nullopt;
  case F32:
    return out != F32                       ? std::nullopt
           : allowsTf32 && target.hasTf32() ? std::optional(Compute::Tf32)
                                            : std::optional(Compute::F32);
  case F64:
    return out == F64 ? std::optional(Compute::F64) : std::nullopt;
  case S8:
    return out == S32 && target.atLeast(7, 5) ? std::optional(Compute::S32) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// Products of 8 bits are made of a transposed first factor, sizes are multiples (cuBLAS, cublasLtMatmul).
bool fitsNarrow(const MatmulCall &call) {
  if (!isNarrow(call.a.type))
    return true;
  const uint64_t multiple = call.a.type == LibraryType::S8 ? 4 : 16;
  const uint64_t sizes[] = {call.m, call.k, call.a.leadingDimension, call.b.leadingDimension, call.d.leadingDimension};
  return call.a.transposed && !call.b.transposed &&
         llvm::all_of(sizes, [&](uint64_t size) { return size % multiple == 0; }) &&
         (multiple == 4 || call.n % multiple == 0);
}

std::optional<MatmulCall::Epilogue> epilogueOf(const GemmCall &gemm) {
  using enum MatmulCall::Epilogue;
  switch (gemm.activation) {
  case GemmCall::Activation::None:
    return gemm.bias ? Bias : Default;
  case GemmCall::Activation::Relu:
    return gemm.bias ? ReluBias : Relu;
  case GemmCall::Activation::Gelu:
    return gemm.bias ? GeluBias : Gelu;
  case GemmCall::Activation::Silu:
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<LibraryType> typeOf(const Shape &shape) { return findLibraryType(text(shape.elementType())); }

bool isPlainMemory(const Shape &shape) {
  return !shape.hasDynamicDims() && shape.layout().extras.empty() && shape.layout().memorySpace == 0;
}

class MatmulMaker {
public:
  MatmulMaker(const HloInstruction &instr, const TargetInfo &target, std::string &why)
      : instr(instr), target(target), why(why), lhs(instr.operand(0)->shape()), rhs(instr.operand(1)->shape()),
        out(instr.resultShape()) {}

  std::optional<MatmulCall> make(const GemmCall &gemm, llvm::SmallVectorImpl<unsigned> &reads) {
    std::optional<LibraryType> left = typeOf(lhs), right = typeOf(rhs), result = typeOf(out);
    std::optional<MatmulCall::Compute> compute =
        left && right && result ? computeOf(*left, *right, *result, gemm.allowsTf32, target) : std::nullopt;
    if (!compute)
      return refuse("there is no such product of " + text(lhs.elementType()).str() + " and " +
                    text(rhs.elementType()).str() + " to " + text(out.elementType()).str() + " on " + target.name);
    if (!isPlainMemory(lhs) || !isPlainMemory(rhs) || !isPlainMemory(out))
      return refuse("its arrays are no plain ones");
    if (!lhs.numElements() || !rhs.numElements() || !out.numElements())
      return refuse("it has no elements");
    std::optional<ProductDims> dims = productDims(gemm, lhs, rhs, out, why);
    if (!dims)
      return std::nullopt;
    call.compute = *compute;
    call.alpha = gemm.alpha;
    call.beta = gemm.beta;
    // The result's columns are along what lies side by side: of the usual layouts those of the right factor.
    if (!orient(dims->columns, dims->rows, *dims, Rhs, Lhs, *right, *left, *result)) {
      if (!orient(dims->rows, dims->columns, *dims, Lhs, Rhs, *left, *right, *result))
        return refuse("its layouts are none of a matrix");
      if (gemm.bias)
        return refuse("its bias is one of columns");
    }
    if (!fitsNarrow(call))
      return refuse("its sizes or layouts are none that the library multiplies in 8 bits");
    return finish(gemm, *dims, *result, reads);
  }

private:
  std::optional<MatmulCall> refuse(std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  }

  /// d, of the dimensions `m` down and `n` across, with the factor that has m as a.
  bool orient(const Dim &m, const Dim &n, const ProductDims &dims, Array first, Array second, LibraryType firstType,
              LibraryType secondType, LibraryType result) {
    const bool isFirstTransposed = isNarrow(firstType);
    std::optional<Matrix> d = columnsAlong(m, n, Out, result),
                          a = factor(m, dims.depth, first, firstType, isFirstTransposed),
                          b = factor(dims.depth, n, second, secondType, false);
    if (!d || !a || !b)
      return false;
    call.m = uint64_t(m.size);
    call.n = uint64_t(n.size);
    call.k = uint64_t(dims.depth.size);
    call.batch = uint64_t(dims.batch.size);
    call.a = *a;
    call.b = *b;
    call.d = *d;
    call.a.batchStride = uint64_t(dims.batch.strides[first]);
    call.b.batchStride = uint64_t(dims.batch.strides[second]);
    call.d.batchStride = uint64_t(dims.batch.strides[Out]);
    isSwapped = first == Rhs;
    return true;
  }

  std::optional<MatmulCall> finish(const GemmCall &gemm, const ProductDims &dims, LibraryType result,
                                   llvm::SmallVectorImpl<unsigned> &reads) {
    std::optional<MatmulCall::Epilogue> epilogue = epilogueOf(gemm);
    if (!epilogue || gemm.hasAux)
      return refuse("the library has no such epilogue");
    call.epilogue = *epilogue;
    reads.assign({isSwapped ? 1u : 0u, isSwapped ? 0u : 1u});
    if (gemm.addend) {
      const Shape &addend = instr.operand(gemm.addend)->shape();
      if (typeOf(addend) != result || addend.minorToMajor() != out.minorToMajor() || !isPlainMemory(addend))
        return refuse("what is added has another type or layout than the result");
      call.c = call.d;
      reads.push_back(gemm.addend);
    }
    if (gemm.bias) {
      if (typeOf(instr.operand(gemm.bias)->shape()) != result)
        return refuse("its bias has another type than the result");
      // An element for each column of the result, which may be several dimensions of the right factor.
      if (uint64_t(out.dims().back()) != call.m)
        return refuse("its bias is one of the last of several dimensions");
      reads.push_back(gemm.bias);
    }
    std::string wrong; // too large
    std::optional<MatmulCall> made = MatmulCall::parse(call.configuration(), wrong);
    if (!made)
      return refuse(wrong);
    return made;
  }

  const HloInstruction &instr;
  const TargetInfo &target;
  std::string &why;
  const Shape &lhs, &rhs, &out;
  MatmulCall call;
  bool isSwapped = false;
};

} // namespace

std::optional<MatmulCall> matmulOf(const HloInstruction &instr, const TargetInfo &target,
                                   llvm::SmallVectorImpl<unsigned> &reads, std::string &why) {
  const bool isDot = instr.opcode() == Opcode::Dot;
  std::optional<GemmCall> gemm = isDot ? gemmOfDot(instr) : readGemmCall(instr);
  if (!gemm) {
    why = isDot ? "the library has no such algorithm" : "operands, results or configuration do not fit each other";
    return std::nullopt;
  }
  return MatmulMaker(instr, target, why).make(*gemm, reads);
}

std::optional<LibraryForm> libraryFormOf(const HloInstruction &call, const TargetInfo &target, std::string &why) {
  if (call.opcode() != Opcode::CustomCall || call.hasSideEffect()) {
    why = "it is no call of a library that is known";
    return std::nullopt;
  }
  LibraryForm form;
  if (convolutionCallKind(call.string(AttributeKey::CustomCallTarget))) {
    std::optional<LibraryConvolution> convolution = convolutionOf(call, target, form.reads, why);
    if (!convolution)
      return std::nullopt;
    form.function = convolution->function().str();
    form.configuration = convolution->configuration();
    return form;
  }
  std::optional<MatmulCall> matmul = matmulOf(call, target, form.reads, why);
  if (!matmul)
    return std::nullopt;
  form.function = MatmulCall::function;
  form.configuration = matmul->configuration();
  return form;
}

} // namespace hloc
