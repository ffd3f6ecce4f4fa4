#pragma once
// Attributes of instructions and modules: keys (rows in Attributes.def), grammars, values.

#include "hloc/hlo/Shape.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace hloc {

class HloComputation;
class HloInstruction;
class Literal;

enum class AttributeKey : uint8_t {
#define HLOC_ATTRIBUTE(name, text, grammar) name,
#include "hloc/hlo/Attributes.def"
};

/// How a value is written. Several grammars share one C++ type.
enum class AttributeGrammar : uint8_t {
  Bool,            ///< true | false                             bool
  Int,             ///< 3                                        int64_t
  Double,          ///< 0.001                                    double
  Ints,            ///< {0,1}                                    ArrayRef<int64_t>
  IntLists,        ///< {{0,1},{2}}                              ArrayRef<ArrayRef<int64_t>>
  Enum,            ///< GT; the enum follows from the key        int64_t
  EnumList,        ///< {default,highest}                        ArrayRef<int64_t>
  DotAlgorithm,    ///< dot_bf16_bf16_f32                        int64_t
  RandomAlgorithm, ///< rng_philox                               int64_t
  String,          ///< "text"                                   StringRef, unescaped
  Raw,             ///< {balanced text}, kept in canonical form  StringRef, braces included
  StringOrRaw,     ///< "text" or {json}                         StringRef; raw text starts with `{`
  Window,          ///< {size=3x3 pad=1_1x1_1}                   const Window *
  Padding,         ///< 0_1x2_2_1                                ArrayRef<PaddingDim>
  Slice,           ///< {[0:4], [1:9:2]}                         ArrayRef<SliceDim>
  DimLabels,       ///< b01f_01io->b01f                          const ConvolutionLabels *
  Computation,     ///< name or {inline body}                    HloComputation *
  Computations,    ///< {a, b}                                   ArrayRef<HloComputation *>
  Instructions,    ///< {%a, %b}                                 ArrayRef<HloInstruction *>
  ShapeValue,      ///< f32[2]                                   const Shape *
  Shapes,          ///< {f32[2]{0}, s32[]}                       ArrayRef<Shape>
  ProgramShape,    ///< {(f32[2]{0})->f32[]}                     ArrayRef<Shape>: parameters, then the result
  Literal,         ///< f32[2] {1,2}                             const Literal *
  Alias,           ///< {{0}: (1, {})}                           ArrayRef<OutputAlias>
  ReplicaGroups,   ///< {{0,1}} | [2,4]<=[8] | mesh[...]         StringRef in canonical form
};

/// One spatial dimension of a window; the default is a window of size 1.
struct WindowDim {
  int64_t size = 1, stride = 1, padLow = 0, padHigh = 0, baseDilation = 1, windowDilation = 1;
  bool reversed = false;
  bool operator==(const WindowDim &) const = default;
};
struct Window {
  llvm::SmallVector<WindowDim, 4> dims;
  bool operator==(const Window &) const = default;
};
struct PaddingDim {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PaddingDim &) const = default;
};
/// [start, limit) with stride.
struct SliceDim {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDim &) const = default;
};
/// Positions of the batch, feature and spatial dimensions: `b01f_01io->b01f`. `?` positions are unlabelled.
struct ConvolutionLabels {
  int64_t lhsBatch = 0, lhsFeature = 0, rhsInput = 0, rhsOutput = 0, outBatch = 0, outFeature = 0;
  llvm::SmallVector<int64_t, 3> lhsSpatial, rhsSpatial, outSpatial;
  std::string spelling; ///< as written
  bool operator==(const ConvolutionLabels &) const = default;
};
/// Output leaf `output` is the same buffer as leaf `operandIndex` of operand `operand`.
struct OutputAlias {
  llvm::ArrayRef<int64_t> output;
  int64_t operand = 0;
  llvm::ArrayRef<int64_t> operandIndex;
  bool operator==(const OutputAlias &) const = default;
};

/// The lists and strings are owned by the module's arena.
using AttributeValue = std::variant<bool, int64_t, double, llvm::StringRef, llvm::ArrayRef<int64_t>,
                                    llvm::ArrayRef<llvm::ArrayRef<int64_t>>, const Window *, llvm::ArrayRef<PaddingDim>,
                                    llvm::ArrayRef<SliceDim>, const ConvolutionLabels *, HloComputation *,
                                    llvm::ArrayRef<HloComputation *>, llvm::ArrayRef<HloInstruction *>, const Shape *,
                                    llvm::ArrayRef<Shape>, const Literal *, llvm::ArrayRef<OutputAlias>>;

struct Attribute {
  AttributeKey key;
  AttributeValue value;
};

llvm::StringRef text(AttributeKey key);
std::optional<AttributeKey> parseAttributeKey(llvm::StringRef text);
AttributeGrammar grammar(AttributeKey key);
unsigned numAttributeKeys();

// Enumerated values, one C++ enum per type in EnumValues.def.
// clang-format off: it does not come to rest on this list
#define HLOC_ENUM_TYPES(X)                                                                                             \
  X(ComparisonDirection) X(ComparisonType) X(FusionKind) X(Precision) X(RandomDistribution) X(RandomAlgorithm)         \
  X(FftType) X(Transpose) X(ConvolutionKind) X(PaddingType) X(CustomCallSchedule) X(ApiVersion) X(CollectiveMode)      \
  X(DotAlgorithm)
// clang-format on

enum class ComparisonDirection : int64_t { Eq, Ne, Ge, Gt, Le, Lt };
enum class ComparisonType : int64_t { Float, TotalOrder, Signed, Unsigned };
enum class FusionKind : int64_t { Loop, Input, Output, Custom };
enum class Precision : int64_t { Default, High, Highest };
enum class RandomDistribution : int64_t { Uniform, Normal };
enum class RandomAlgorithm : int64_t { Default, ThreeFry, Philox };
enum class FftType : int64_t { Fft, Ifft, Rfft, Irfft };
enum class Transpose : int64_t { None, Transpose, Adjoint };
enum class ConvolutionKind : int64_t { Unset, Fprop, Dgrad, Wgrad };
enum class PaddingType : int64_t { Valid, Same };
enum class CustomCallSchedule : int64_t { None, Latest, Earliest };
enum class ApiVersion : int64_t { Original, StatusReturning, StatusReturningUnified, TypedFfi };
enum class CollectiveMode : int64_t { CrossReplica, CrossPartition, CrossReplicaAndPartition, FlattenedId };
enum class DotAlgorithm : int64_t {
  Unset,
  AnyF8AnyF8F32,
  AnyF8AnyF8F32FastAccum,
  F16F16F16,
  F16F16F32,
  BF16BF16BF16,
  BF16BF16F32,
  BF16BF16F32X3,
  BF16BF16F32X6,
  BF16BF16F32X9,
  TF32TF32F32,
  TF32TF32F32X3,
  F32F32F32,
  F64F64F64
};

/// The enum types as values, for table-driven parsing and printing.
enum class EnumType : uint8_t {
#define HLOC_ENUM_TYPE(name) name,
  HLOC_ENUM_TYPES(HLOC_ENUM_TYPE)
#undef HLOC_ENUM_TYPE
};
/// The enum behind an attribute whose grammar is Enum, EnumList, DotAlgorithm or RandomAlgorithm.
EnumType enumTypeOf(AttributeKey key, AttributeGrammar grammar);
/// Values in order; index = integer value of the C++ enum.
llvm::ArrayRef<llvm::StringRef> enumSpellings(EnumType type);
bool enumIgnoresCase(EnumType type);
template <typename Enum> llvm::StringRef enumText(EnumType type, Enum value) {
  return enumSpellings(type)[static_cast<size_t>(value)];
}

} // namespace hloc
