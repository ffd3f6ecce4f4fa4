#include "hloc/transforms/OtherWays.h"

#include "Expansion.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;
using Operands = llvm::ArrayRef<Value>;

/// Does an op mean this of elements of the type?
using IsFor = bool (*)(ElementType type);
/// In the default layout; of operands in the default layout.
using Express = Value (*)(Expansion &x, const HloInstruction &instr, Operands operands);

struct OtherWay {
  Opcode opcode;
  llvm::StringRef text;
  IsFor isFor; ///< of the first operand
  /// Null: this one has none.
  Express express;
};

bool isAny(ElementType) { return true; }
bool isReal(ElementType type) { return isFloat(type) && !isComplex(type); }
bool isNegatable(ElementType type) { return isReal(type) || isSigned(type); }
bool isPred(ElementType type) { return type == ElementType::Pred; }

Value negated(Expansion &x, Value value) { return x.unary(Opcode::Negate, value); }

/// Negated, of negated operands.
Value mirrored(Expansion &x, Opcode opcode, Operands operands) {
  Values values;
  for (Value operand : operands)
    values.push_back(negated(x, operand));
  return negated(x, x.builder().infer(opcode, values));
}

//===--- numbers ------------------------------------------------------------------------------------------------===//

Value logistic(Expansion &x, const HloInstruction &, Operands of) {
  Value exponential = x.unary(Opcode::Exponential, negated(x, of[0])), one = x.like(of[0], 1);
  return x.divide(one, x.add(one, exponential));
}

Value tanhOf(Expansion &x, const HloInstruction &, Operands of) {
  Value twice = x.unary(Opcode::Logistic, x.add(of[0], of[0]));
  return x.subtract(x.add(twice, twice), x.like(of[0], 1));
}

Value cbrt(Expansion &x, const HloInstruction &, Operands of) {
  Value root = x.binary(Opcode::Power, x.unary(Opcode::Abs, of[0]), x.like(of[0], 1.0 / 3));
  return x.multiply(x.unary(Opcode::Sign, of[0]), root);
}

Value roundAwayFromZero(Expansion &x, const HloInstruction &, Operands of) {
  Value rounded = x.unary(Opcode::Floor, x.add(x.unary(Opcode::Abs, of[0]), x.like(of[0], 0.5)));
  return x.multiply(x.unary(Opcode::Sign, of[0]), rounded);
}

/// Up if what is above the floor is more than a half, or just that above an odd number.
Value roundToEven(Expansion &x, const HloInstruction &, Operands of) {
  HloBuilder &b = x.builder();
  Value floor = x.unary(Opcode::Floor, of[0]), rest = x.subtract(of[0], floor), half = x.like(of[0], 0.5);
  Value halved = x.multiply(floor, half);
  Value isOdd = b.compare(ComparisonDirection::Ne, x.unary(Opcode::Floor, halved), halved);
  Value isTie = b.compare(ComparisonDirection::Eq, rest, half);
  Value isUp =
      x.binary(Opcode::Or, b.compare(ComparisonDirection::Gt, rest, half), x.binary(Opcode::And, isTie, isOdd));
  return x.select(isUp, x.add(floor, x.like(of[0], 1)), floor);
}

Value exclusiveOr(Expansion &x, const HloInstruction &, Operands of) {
  Value first = x.binary(Opcode::And, of[0], x.unary(Opcode::Not, of[1]));
  return x.binary(Opcode::Or, first, x.binary(Opcode::And, x.unary(Opcode::Not, of[0]), of[1]));
}

/// By the other of `and` and `or`.
Value dual(Expansion &x, Opcode other, Operands of) {
  return x.unary(Opcode::Not, x.binary(other, x.unary(Opcode::Not, of[0]), x.unary(Opcode::Not, of[1])));
}

Value selected(Expansion &x, const HloInstruction &, Operands of) {
  return x.select(x.unary(Opcode::Not, of[0]), of[2], of[1]);
}

Value clamped(Expansion &x, const HloInstruction &, Operands of) {
  auto spread = [&](Value bound) { return bound->shape().rank() ? bound : x.spread(bound, of[1]->shape().dims()); };
  return x.binary(Opcode::Minimum, x.binary(Opcode::Maximum, spread(of[0]), of[1]), spread(of[2]));
}

//===--- places -------------------------------------------------------------------------------------------------===//

/// result[i] = operand[place(i)]: a gather of places that are constants. Null if there are too many of them.
using PlaceOf = llvm::function_ref<void(llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place)>;
Value gathered(Expansion &x, const HloInstruction &instr, Value operand, PlaceOf placeOf) {
  constexpr int64_t mostNumbers = 1 << 16;
  const unsigned rank = operand->shape().rank();
  llvm::SmallVector<int64_t> dims(instr.shape().dims()), at(dims.size(), 0), place(rank), all, ones(rank, 1);
  dims.push_back(rank);
  if (!rank || Shape::array(ElementType::S32, dims).numElements() > mostNumbers)
    return nullptr;
  Literal places(Shape::array(ElementType::S32, dims));
  for (int64_t i = 0; i < places.numElements(); i += rank) {
    placeOf(at, place);
    for (unsigned k = 0; k < rank; ++k)
      places.setInt(i + k, place[k]);
    for (size_t k = at.size(); k-- && ++at[k] == dims[k];)
      at[k] = 0;
  }
  for (unsigned k = 0; k < rank; ++k)
    all.push_back(k);
  HloBuilder &b = x.builder();
  return b.infer(Opcode::Gather, {operand, b.constant(std::move(places))},
                 {b.ints(AttributeKey::OffsetDims, {}), b.ints(AttributeKey::CollapsedSliceDims, all),
                  b.ints(AttributeKey::StartIndexMap, all),
                  Attribute{AttributeKey::IndexVectorDim, int64_t(dims.size()) - 1},
                  b.ints(AttributeKey::SliceSizes, ones)});
}

Value reversed(Expansion &x, const HloInstruction &instr, Operands of) {
  return gathered(x, instr, of[0], [&](llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place) {
    llvm::copy(at, place.begin());
    for (int64_t dim : instr.ints(AttributeKey::Dimensions))
      place[size_t(dim)] = instr.shape().dim(unsigned(dim)) - 1 - at[size_t(dim)];
  });
}

Value transposed(Expansion &x, const HloInstruction &instr, Operands of) {
  llvm::ArrayRef<int64_t> permutation = instr.ints(AttributeKey::Dimensions);
  return gathered(x, instr, of[0], [&](llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place) {
    for (auto [i, dim] : llvm::enumerate(permutation))
      place[size_t(dim)] = at[i];
  });
}

Value broadcasted(Expansion &x, const HloInstruction &instr, Operands of) {
  llvm::ArrayRef<int64_t> dimensions = instr.ints(AttributeKey::Dimensions);
  return gathered(x, instr, of[0], [&](llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place) {
    for (auto [i, dim] : llvm::enumerate(dimensions))
      place[i] = at[size_t(dim)];
  });
}

Value sliced(Expansion &x, const HloInstruction &instr, Operands of) {
  auto ranges = instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice);
  return gathered(x, instr, of[0], [&](llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place) {
    for (auto [i, range] : llvm::enumerate(ranges))
      place[i] = range.start + at[i] * range.stride;
  });
}

Value reshaped(Expansion &x, const HloInstruction &instr, Operands of) {
  llvm::ArrayRef<int64_t> from = of[0]->shape().dims(), to = instr.shape().dims();
  return gathered(x, instr, of[0], [&](llvm::ArrayRef<int64_t> at, llvm::MutableArrayRef<int64_t> place) {
    int64_t number = 0;
    for (auto [index, size] : llvm::zip(at, to))
      number = number * size + index;
    for (size_t i = from.size(); i--; number /= from[i])
      place[i] = number % from[i];
  });
}

Value concatenated(Expansion &x, const HloInstruction &instr, Operands of) {
  const auto dim = unsigned(instr.ints(AttributeKey::Dimensions).front());
  Value all = x.zeros(instr.shape().withDefaultLayout());
  int64_t begin = 0;
  for (Value part : of) {
    all = x.withAt(all, part, dim, x.scalar(ElementType::S32, double(begin)));
    begin += part->shape().dim(dim);
  }
  return all;
}

//===--- reductions ---------------------------------------------------------------------------------------------===//

/// By an op of the two parameters, over one dimension after the other, element by element.
Value reduced(Expansion &x, const HloInstruction &instr, Operands of) {
  constexpr int64_t mostSteps = 256;
  const HloInstruction &op = *instr.computation(AttributeKey::ToApply)->root();
  if (of.size() != 2 || op.numOperands() != 2 || op.operand(0) == op.operand(1) ||
      llvm::any_of(op.operands(), [](const auto *operand) { return operand->opcode() != Opcode::Parameter; }))
    return nullptr;
  Value rest = of[0];
  llvm::SmallVector<int64_t> dims(rest->shape().dims());
  for (int64_t dim : instr.ints(AttributeKey::Dimensions)) {
    const int64_t size = std::exchange(dims[size_t(dim)], 1);
    if (size < 1 || size > mostSteps)
      return nullptr;
    Value sum = x.range(rest, unsigned(dim), 0, 1);
    for (int64_t i = 1; i < size; ++i)
      sum = x.binary(op.opcode(), sum, x.range(rest, unsigned(dim), i, i + 1));
    rest = sum;
  }
  rest = x.reshape(rest, instr.shape().dims());
  return x.binary(op.opcode(), rest, x.spread(of[1], instr.shape().dims()));
}

//===--- all ----------------------------------------------------------------------------------------------------===//

#define HLOC_WAY [](Expansion & x, const HloInstruction &, Operands of)->Value

constexpr OtherWay ways[] = {{Opcode::Logistic, "1 / (1 + exp(-x))", isReal, logistic},
                             {Opcode::Tanh, "2 * logistic(2 * x) - 1", isReal, tanhOf},
                             {Opcode::Exponential, "expm1(x) + 1", isReal,
                              HLOC_WAY{return x.add(x.unary(Opcode::ExponentialMinusOne, of[0]), x.like(of[0], 1));
} // namespace
} // namespace hloc
, {Opcode::ExponentialMinusOne, "exp(x) - 1", isReal,
   HLOC_WAY{return x.subtract(x.unary(Opcode::Exponential, of[0]), x.like(of[0], 1));
}
}
, {Opcode::Log, "log1p(x - 1)", isReal,
   HLOC_WAY{return x.unary(Opcode::LogPlusOne, x.subtract(of[0], x.like(of[0], 1)));
}
}
, {Opcode::LogPlusOne, "log(x + 1)", isReal, HLOC_WAY{return x.unary(Opcode::Log, x.add(of[0], x.like(of[0], 1)));
}
}
, {Opcode::Sqrt, "1 / rsqrt(x)", isReal, HLOC_WAY{return x.divide(x.like(of[0], 1), x.unary(Opcode::Rsqrt, of[0]));
}
}
, {Opcode::Rsqrt, "1 / sqrt(x)", isReal, HLOC_WAY{return x.divide(x.like(of[0], 1), x.unary(Opcode::Sqrt, of[0]));
}
}
, {Opcode::Cbrt, "sign(x) * power(abs(x), 1/3)", isReal, cbrt},
    {Opcode::Tan, "sine(x) / cosine(x)", isReal,
     HLOC_WAY{return x.divide(x.unary(Opcode::Sine, of[0]), x.unary(Opcode::Cosine, of[0]));
}
}
, {Opcode::Sine, "cosine(x) * tan(x)", isReal,
   HLOC_WAY{return x.multiply(x.unary(Opcode::Cosine, of[0]), x.unary(Opcode::Tan, of[0]));
}
}
, {Opcode::Cosine, "sine(x) / tan(x)", isReal,
   HLOC_WAY{return x.divide(x.unary(Opcode::Sine, of[0]), x.unary(Opcode::Tan, of[0]));
}
}
, {Opcode::Floor, "-ceil(-x)", isReal, HLOC_WAY{return mirrored(x, Opcode::Ceil, of);
}
}
, {Opcode::Ceil, "-floor(-x)", isReal, HLOC_WAY{return mirrored(x, Opcode::Floor, of);
}
}
, {Opcode::RoundNearestAfz, "sign(x) * floor(abs(x) + 1/2)", isReal, roundAwayFromZero},
    {Opcode::RoundNearestEven, "floor(x), or 1 more", isReal, roundToEven},
    {Opcode::Abs, "maximum(x, -x)", isNegatable, HLOC_WAY{return x.binary(Opcode::Maximum, of[0], negated(x, of[0]));
}
}
, {Opcode::Negate, "-1 * x", isNegatable, HLOC_WAY{return x.multiply(x.like(of[0], -1), of[0]);
}
}
, {Opcode::Add, "x - -y", isNegatable, HLOC_WAY{return x.subtract(of[0], negated(x, of[1]));
}
}
, {Opcode::Subtract, "x + -y", isNegatable, HLOC_WAY{return x.add(of[0], negated(x, of[1]));
}
}
, {Opcode::Multiply, "x / (1 / y)", isReal, HLOC_WAY{return x.divide(of[0], x.divide(x.like(of[1], 1), of[1]));
}
}
, {Opcode::Divide, "x * power(y, -1)", isReal,
   HLOC_WAY{return x.multiply(of[0], x.binary(Opcode::Power, of[1], x.like(of[1], -1)));
}
}
, {Opcode::Power, "exp(y * log(x))", isReal,
   HLOC_WAY{return x.unary(Opcode::Exponential, x.multiply(of[1], x.unary(Opcode::Log, of[0])));
}
}
, {Opcode::Maximum, "-minimum(-x, -y)", isNegatable, HLOC_WAY{return mirrored(x, Opcode::Minimum, of);
}
}
, {Opcode::Minimum, "-maximum(-x, -y)", isNegatable, HLOC_WAY{return mirrored(x, Opcode::Maximum, of);
}
}
, {Opcode::And, "not(or(not x, not y))", isAny, HLOC_WAY{return dual(x, Opcode::Or, of);
}
}
, {Opcode::Or, "not(and(not x, not y))", isAny, HLOC_WAY{return dual(x, Opcode::And, of);
}
}
, {Opcode::Xor, "or(and(x, not y), and(not x, y))", isAny, exclusiveOr},
    {Opcode::Select, "select(not p, y, x)", isPred, selected},
    {Opcode::Clamp, "minimum(maximum(least, x), most)", isAny, clamped}, {Opcode::Reverse, "gather", isAny, reversed},
    {Opcode::Transpose, "gather", isAny, transposed}, {Opcode::Broadcast, "gather", isAny, broadcasted},
    {Opcode::Slice, "gather", isAny, sliced}, {Opcode::Reshape, "gather", isAny, reshaped},
    {Opcode::Concatenate, "dynamic-update-slice", isAny, concatenated},
    {Opcode::Reduce, "its op, element by element", isAny, reduced},
}
;

#undef HLOC_WAY

const OtherWay *wayOf(Opcode opcode) {
  const auto *way = llvm::find_if(ways, [&](const OtherWay &row) { return row.opcode == opcode; });
  return way == std::end(ways) ? nullptr : way;
}

/// In front of it; null: there is no other way.
Value otherwise(const OtherWay &way, HloInstruction &instr, HloEditor &editor) {
  if (!instr.shape().isArray() || !way.isFor(instr.operand(0)->shape().elementType()) || editor.isOrdered(&instr))
    return nullptr;
  HloBuilder builder(editor, &instr);
  Expansion x(builder, instr);
  Values operands;
  for (Value operand : instr.operands())
    operands.push_back(x.plain(operand));
  Value value = way.express(x, instr, operands);
  return value ? x.result(value, instr.shape()) : nullptr;
}

} // namespace

llvm::StringRef otherWayOf(Opcode opcode) {
  const OtherWay *way = wayOf(opcode);
  return way ? way->text : "";
}

bool expressOtherwise(HloModule &module, Opcode opcode) {
  const OtherWay *way = wayOf(opcode);
  bool isOther = false;
  for (HloComputation *computation : reachableComputations(module)) {
    HloEditor editor(*computation);
    llvm::SmallVector<HloInstruction *> found;
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (instr->opcode() == opcode)
        found.push_back(instr);
    for (HloInstruction *instr : found) {
      Value value = way ? otherwise(*way, *instr, editor) : nullptr;
      if (!value)
        return false;
      editor.replaceAllUses(instr, value);
      editor.eraseIfDead(instr);
      isOther = true;
    }
    editor.finish();
  }
  return isOther;
}

} // namespace hloc
