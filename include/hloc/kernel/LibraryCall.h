#pragma once
// Steps that are calls of a library (CallStep::Kind::Library): what their configuration says, what has to hold of it,
// and what they cost. The configuration is JSON; a device needs nothing else.
//
//   f32[m,n] dot(f32[m,k] x, f32[k,n] y)     the library's matrices have their columns side by side, so that it makes
//                                            the transposed product: n x m = (n x k) . (k x m)
//     function `cublasLtMatmul`, reads {y, x}, writes {dot, workspace}
//     configuration {"m": n, "n": m, "k": k, "batch": 1, "a": {"type": "f32", "transposed": false,
//       "leading_dimension": n, "batch_stride": 0}, "b": {...}, "d": {...}, "compute": "f32", "alpha": 1, "beta": 0,
//       "epilogue": "default"}

#include "hloc/kernel/Estimate.h"
#include "hloc/kernel/Steps.h"

#include <optional>
#include <string>

namespace hloc {

enum class LibraryType : uint8_t {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) name,
#include "hloc/kernel/LibraryTypes.def"
};
std::optional<LibraryType> findLibraryType(llvm::StringRef text);
llvm::StringRef text(LibraryType type);
uint64_t bytesOf(LibraryType type);

/// d = epilogue(alpha * op(a) . op(b) + beta * c + bias), `batch` times; op(a) has m rows and k columns, op(b) k rows
/// and n columns, c and d m rows and n columns, the bias an element for each row.
struct MatmulCall {
  static constexpr llvm::StringLiteral function = "cublasLtMatmul";

  /// Sums, and what factors may be rounded to before.
  enum class Compute : uint8_t { F32, Tf32, F64, S32 };
  enum class Epilogue : uint8_t { Default, Relu, Gelu, Bias, ReluBias, GeluBias };
  /// Column after column: element (row, column) lies at row + column * leadingDimension.
  struct Matrix {
    LibraryType type = LibraryType::F32;
    bool transposed = false; ///< of a and b
    uint64_t leadingDimension = 1, batchStride = 0;
    bool operator==(const Matrix &) const = default;
  };

  uint64_t m = 1, n = 1, k = 1, batch = 1;
  Matrix a, b, d;
  std::optional<Matrix> c; ///< where beta is not 0
  Compute compute = Compute::F32;
  double alpha = 1, beta = 0;
  Epilogue epilogue = Epilogue::Default;
  bool operator==(const MatmulCall &) const = default;

  bool hasBias() const { return epilogue >= Epilogue::Bias; }
  /// Rows and columns as they are stored.
  uint64_t rowsOf(const Matrix &matrix) const;
  uint64_t columnsOf(const Matrix &matrix) const;
  /// From the first byte to behind the last one.
  uint64_t reachOf(const Matrix &matrix) const;

  std::string configuration() const;
  /// Nothing, with `error`, if the text is no configuration or sizes do not fit each other.
  static std::optional<MatmulCall> parse(llvm::StringRef configuration, std::string &error);
};

llvm::StringRef text(MatmulCall::Compute compute);
llvm::StringRef text(MatmulCall::Epilogue epilogue);

/// Why nobody can carry out a call of a library: the function is none that is known, its configuration none of it,
/// reads and writes too few or too short. Empty if nothing is wrong.
std::string checkLibraryCall(const CallStep &call);

/// What a call does, by its configuration, which is right.
struct LibraryCost {
  double flops = 0;   ///< a product and its addition are two
  double bytes = 0;   ///< that it reads and writes once, without workspace
  double seconds = 0; ///< on the device
};
LibraryCost libraryCost(const CallStep &call, const DeviceModel &device);
LibraryCost libraryCost(const MatmulCall &call, const DeviceModel &device);

/// Bytes of memory that a library is given for its own use, as XLA does: more since wgmma, which has larger tiles.
uint64_t libraryWorkspace(const TargetInfo &target);

} // namespace hloc
