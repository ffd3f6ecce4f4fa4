#pragma once
// InferenceContext: one instruction as shape inference sees it, and the first rule it breaks.

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/Verifier.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/Twine.h"

#include <optional>

namespace hloc {

using Dims = llvm::ArrayRef<int64_t>;
using DimVector = llvm::SmallVector<int64_t, 6>;

class InferenceContext {
public:
  explicit InferenceContext(const InstructionSpec &spec) : spec(spec) {}

  Opcode opcode() const { return spec.opcode; }
  unsigned numOperands() const { return spec.operands.size(); }
  const HloInstruction &operandInstr(unsigned i) const { return *spec.operands[i]; }
  const Shape &operand(unsigned i) const { return spec.operands[i]->shape(); }
  /// Shapes of operands [begin, end).
  llvm::SmallVector<Shape, 4> operandShapes(unsigned begin, unsigned end) const;
  llvm::SmallVector<Shape, 4> operandShapes() const { return operandShapes(0, numOperands()); }

  /// The declared shape; the empty tuple if it was omitted.
  const Shape &declared() const { return spec.shape; }
  bool declaresArray() const { return spec.shape.isArray(); }
  bool isOmitted() const { return spec.shape.isTuple() && spec.shape.elements().empty(); }
  const Literal *literal() const { return spec.literal; }

  const AttributeValue *find(AttributeKey key) const;
  bool has(AttributeKey key) const { return find(key) != nullptr; }
  /// The value if it is present and of this type.
  template <typename T> const T *get(AttributeKey key) const {
    const AttributeValue *value = find(key);
    return value ? std::get_if<T>(value) : nullptr;
  }
  Dims ints(AttributeKey key) const;
  int64_t integer(AttributeKey key, int64_t otherwise) const;
  bool flag(AttributeKey key, bool otherwise) const;
  /// Null if absent.
  HloComputation *callee(AttributeKey key) const;
  /// The window, or null; `window_c2` holds for it once checkWindow has passed.
  const Window *window() const;

  /// Records the violation (the first one stays) and gives the "no shape" result.
  std::nullopt_t fail(VerifierRule rule, const llvm::Twine &message);
  bool failed() const { return broken.has_value(); }
  VerifierRule rule() const { return *broken; }
  const std::string &message() const { return text; }

  /// An array in default layout, unless its size overflows (shape_c1).
  std::optional<Shape> array(ElementType type, Dims dims);
  /// `like` with another element type: an elementwise result. Keeps layout and dynamic marks.
  static Shape elementwise(const Shape &like, ElementType type);
  /// One shape itself, several as a tuple: how variadic ops return.
  static Shape oneOrTuple(llvm::ArrayRef<Shape> shapes);

private:
  const InstructionSpec &spec;
  std::optional<VerifierRule> broken;
  std::string text;
};

// Predicates shared by the op families.
bool distinctInRange(Dims dims, int64_t rank);
bool ascendingInRange(Dims dims, int64_t rank);
/// "{1,2}"
std::string show(Dims dims);
/// "`f32[4]`", without layout
std::string show(const Shape &shape);
inline bool sameTypeUpToPrecision(ElementType a, ElementType b) { return a == b || (isFloat(a) && isFloat(b)); }
/// A scalar of `type`, or of another float precision.
bool scalarLike(const Shape &shape, ElementType type);
/// (f32[], f32[]) -> f32[]
std::string signature(const HloComputation &callee);

/// Is result `i` of the reducer exactly of the type of parameter `i`, to which it is handed on?
bool givesWhatItTakes(const HloComputation &reducer, unsigned i);

/// Checks that `callee` has exactly these parameters (layouts ignored, float precision too if `looseFloats`).
bool takes(const HloComputation &callee, llvm::ArrayRef<Shape> parameters, bool looseFloats = false);
/// What the callee returns as a list: the elements of a tuple, or the one result.
llvm::SmallVector<Shape, 4> results(const HloComputation &callee);

/// Checks window_c1 to window_c3 and gives the windowed sizes of `sizes` (hlo-text 6.5); `window` null: all size 1.
std::optional<DimVector> windowedSizes(InferenceContext &c, Dims sizes, const Window *window);

// The op families; each file of ShapeInference*.cpp implements a few.
std::optional<Shape> inferUnary(InferenceContext &c);
std::optional<Shape> inferBinary(InferenceContext &c);
std::optional<Shape> inferTernary(InferenceContext &c);
std::optional<Shape> inferCompare(InferenceContext &c);
std::optional<Shape> inferConversion(InferenceContext &c);
std::optional<Shape> inferIdentity(InferenceContext &c);
std::optional<Shape> inferSource(InferenceContext &c);
std::optional<Shape> inferMovement(InferenceContext &c);
std::optional<Shape> inferDynamicSlice(InferenceContext &c);
std::optional<Shape> inferDynamicUpdateSlice(InferenceContext &c);
std::optional<Shape> inferGather(InferenceContext &c);
std::optional<Shape> inferScatter(InferenceContext &c);
std::optional<Shape> inferSort(InferenceContext &c);
std::optional<Shape> inferTopK(InferenceContext &c);
std::optional<Shape> inferReduce(InferenceContext &c);
std::optional<Shape> inferReduceWindow(InferenceContext &c);
std::optional<Shape> inferSelectAndScatter(InferenceContext &c);
std::optional<Shape> inferMap(InferenceContext &c);
std::optional<Shape> inferScan(InferenceContext &c);
std::optional<Shape> inferDot(InferenceContext &c);
std::optional<Shape> inferScaledDot(InferenceContext &c);
std::optional<Shape> inferRaggedDot(InferenceContext &c);
std::optional<Shape> inferConvolution(InferenceContext &c);
std::optional<Shape> inferBatchNorm(InferenceContext &c);
std::optional<Shape> inferFft(InferenceContext &c);
std::optional<Shape> inferCholesky(InferenceContext &c);
std::optional<Shape> inferTriangularSolve(InferenceContext &c);
std::optional<Shape> inferRandom(InferenceContext &c);
std::optional<Shape> inferStructure(InferenceContext &c);
std::optional<Shape> inferControl(InferenceContext &c);
std::optional<Shape> inferHost(InferenceContext &c);
std::optional<Shape> inferCollective(InferenceContext &c);
std::optional<Shape> inferAsync(InferenceContext &c);

/// Checks the rules of one instruction and infers its shape; the context holds the violation if there is none.
std::optional<Shape> inferWithRules(InferenceContext &c);

} // namespace hloc
