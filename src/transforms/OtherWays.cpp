#include "hloc/transforms/OtherWays.h"

#include "Expansion.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

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
  IsFor isFor; ///< of the first operand, or of the result if there is none
  /// Null: this one has none.
  Express express;
};

bool isAny(ElementType) { return true; }
bool isNoComplex(ElementType type) { return !isComplex(type); }
bool isReal(ElementType type) { return isFloat(type); }
bool isNegatable(ElementType type) { return isReal(type) || isSigned(type); }
bool isPred(ElementType type) { return type == ElementType::Pred; }

Value negated(Expansion &x, Value value) { return x.unary(Opcode::Negate, value); }

//===--- numbers ------------------------------------------------------------------------------------------------===//

/// Negated, of negated operands.
template <Opcode other> Value mirrored(Expansion &x, const HloInstruction &, Operands of) {
  Values values;
  for (Value operand : of)
    values.push_back(negated(x, operand));
  return negated(x, x.builder().infer(other, values));
}

/// other(a) +- 1
template <Opcode other, Opcode step> Value then(Expansion &x, const HloInstruction &, Operands of) {
  return x.binary(step, x.unary(other, of[0]), x.like(of[0], 1));
}

/// other(a +- 1)
template <Opcode other, Opcode step> Value after(Expansion &x, const HloInstruction &, Operands of) {
  return x.unary(other, x.binary(step, of[0], x.like(of[0], 1)));
}

/// 1 / other(a)
template <Opcode other> Value reciprocal(Expansion &x, const HloInstruction &, Operands of) {
  return x.divide(x.like(of[0], 1), x.unary(other, of[0]));
}

template <Opcode first, Opcode op, Opcode second> Value both(Expansion &x, const HloInstruction &, Operands of) {
  return x.binary(op, x.unary(first, of[0]), x.unary(second, of[0]));
}

template <Opcode other> Value ofNegated(Expansion &x, const HloInstruction &, Operands of) {
  return x.binary(other, of[0], negated(x, of[1]));
}

Value absolute(Expansion &x, const HloInstruction &, Operands of) {
  return x.binary(Opcode::Maximum, of[0], negated(x, of[0]));
}

Value timesMinusOne(Expansion &x, const HloInstruction &, Operands of) { return x.multiply(x.like(of[0], -1), of[0]); }

Value multiplied(Expansion &x, const HloInstruction &, Operands of) {
  return x.divide(of[0], x.divide(x.like(of[1], 1), of[1]));
}

Value divided(Expansion &x, const HloInstruction &, Operands of) {
  return x.multiply(of[0], x.binary(Opcode::Power, of[1], x.like(of[1], -1)));
}

Value raised(Expansion &x, const HloInstruction &, Operands of) {
  return x.unary(Opcode::Exponential, x.multiply(of[1], x.unary(Opcode::Log, of[0])));
}

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

Value signOf(Expansion &x, const HloInstruction &, Operands of) {
  HloBuilder &b = x.builder();
  Value zero = x.like(of[0], 0);
  Value negative = x.select(b.compare(ComparisonDirection::Lt, of[0], zero), x.like(of[0], -1), of[0]);
  return x.select(b.compare(ComparisonDirection::Gt, of[0], zero), x.like(of[0], 1), negative);
}

Value finite(Expansion &x, const HloInstruction &, Operands of) {
  Value infinity = x.like(of[0], std::numeric_limits<double>::infinity());
  return x.builder().compare(ComparisonDirection::Lt, x.unary(Opcode::Abs, of[0]), infinity);
}

Value exclusiveOr(Expansion &x, const HloInstruction &, Operands of) {
  Value first = x.binary(Opcode::And, of[0], x.unary(Opcode::Not, of[1]));
  return x.binary(Opcode::Or, first, x.binary(Opcode::And, x.unary(Opcode::Not, of[0]), of[1]));
}

/// By the other of `and` and `or`.
template <Opcode other> Value dual(Expansion &x, const HloInstruction &, Operands of) {
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

/// One dimension after the other; elements apart from each other or cut off are not written so.
Value padded(Expansion &x, const HloInstruction &instr, Operands of) {
  Value all = of[0];
  llvm::SmallVector<int64_t> dims(all->shape().dims());
  for (auto [i, padding] : llvm::enumerate(instr.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding))) {
    if (padding.low < 0 || padding.high < 0 || padding.interior)
      return nullptr;
    dims[i] += padding.low + padding.high;
    all = x.withAt(x.spread(of[1], dims), all, unsigned(i), x.scalar(ElementType::S32, double(padding.low)));
  }
  return all;
}

Value dynamicallySliced(Expansion &x, const HloInstruction &instr, Operands of) {
  Values starts;
  llvm::SmallVector<int64_t> all;
  for (Value start : of.drop_front()) {
    all.push_back(int64_t(starts.size()));
    starts.push_back(x.reshape(start, {1}));
  }
  if (starts.empty())
    return nullptr;
  HloBuilder &b = x.builder();
  return b.infer(Opcode::Gather, {of[0], b.concatenate(starts, 0)},
                 {b.ints(AttributeKey::OffsetDims, all), b.ints(AttributeKey::CollapsedSliceDims, {}),
                  b.ints(AttributeKey::StartIndexMap, all), Attribute{AttributeKey::IndexVectorDim, int64_t(0)},
                  b.ints(AttributeKey::SliceSizes, instr.shape().dims())});
}

Value counted(Expansion &x, const HloInstruction &instr, Operands) {
  constexpr int64_t mostNumbers = 1 << 16;
  Literal numbers(instr.shape().withDefaultLayout());
  const auto dimension = unsigned(instr.intOr(AttributeKey::IotaDimension, 0));
  if (numbers.numElements() > mostNumbers)
    return nullptr;
  int64_t after = 1;
  for (int64_t size : instr.shape().dims().drop_front(dimension + 1))
    after *= size;
  for (int64_t i = 0; i < numbers.numElements(); ++i) {
    const int64_t number = i / after % instr.shape().dim(dimension);
    if (isReal(instr.shape().elementType()))
      numbers.setDouble(i, double(number));
    else
      numbers.setInt(i, number);
  }
  return x.builder().constant(std::move(numbers));
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

/// All products side by side, and their sums; dimensions of batches, of the first's rows, of the second's columns, of
/// terms.
Value summed(Expansion &x, const HloInstruction &instr, Operands of) {
  constexpr int64_t mostProducts = 1 << 20;
  const AttributeKey batches[] = {AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims};
  const AttributeKey terms[] = {AttributeKey::LhsContractingDims, AttributeKey::RhsContractingDims};
  const auto results = int64_t(instr.shape().rank());
  llvm::SmallVector<int64_t> dims(instr.shape().dims()), places[2], summedDims;
  auto next = int64_t(instr.ints(batches[0]).size()); // where free dimensions of the operand begin
  for (unsigned i = 0; i < 2; ++i) {
    llvm::ArrayRef<int64_t> batch = instr.ints(batches[i]), contracted = instr.ints(terms[i]);
    for (unsigned dim = 0; dim < of[i]->shape().rank(); ++dim) {
      const auto *inBatch = llvm::find(batch, int64_t(dim)), *inTerms = llvm::find(contracted, int64_t(dim));
      places[i].push_back(inBatch != batch.end()        ? inBatch - batch.begin()
                          : inTerms != contracted.end() ? results + (inTerms - contracted.begin())
                                                        : next++);
    }
  }
  for (int64_t dim : instr.ints(terms[0])) {
    summedDims.push_back(int64_t(dims.size()));
    dims.push_back(of[0]->shape().dim(unsigned(dim)));
  }
  const ElementType type = instr.shape().elementType();
  const Shape products = Shape::array(type, dims);
  if (products.numElements() > mostProducts)
    return nullptr;
  HloBuilder &b = x.builder();
  Value first = b.broadcast(b.convert(of[0], type), products, places[0]);
  Value all = x.multiply(first, b.broadcast(b.convert(of[1], type), products, places[1]));
  return summedDims.empty() ? all : b.reduce(all, x.scalar(type, 0), summedDims, x.reducer(Opcode::Add, type));
}

//===--- all ----------------------------------------------------------------------------------------------------===//

constexpr OtherWay ways[] = {
    {Opcode::Logistic, "1 / (1 + exp(-x))", isReal, logistic},
    {Opcode::Tanh, "2 * logistic(2 * x) - 1", isReal, tanhOf},
    {Opcode::Exponential, "expm1(x) + 1", isReal, then<Opcode::ExponentialMinusOne, Opcode::Add>},
    {Opcode::ExponentialMinusOne, "exp(x) - 1", isReal, then<Opcode::Exponential, Opcode::Subtract>},
    {Opcode::Log, "log1p(x - 1)", isReal, after<Opcode::LogPlusOne, Opcode::Subtract>},
    {Opcode::LogPlusOne, "log(x + 1)", isReal, after<Opcode::Log, Opcode::Add>},
    {Opcode::Sqrt, "1 / rsqrt(x)", isReal, reciprocal<Opcode::Rsqrt>},
    {Opcode::Rsqrt, "1 / sqrt(x)", isReal, reciprocal<Opcode::Sqrt>},
    {Opcode::Cbrt, "sign(x) * power(abs(x), 1/3)", isReal, cbrt},
    {Opcode::Tan, "sine(x) / cosine(x)", isReal, both<Opcode::Sine, Opcode::Divide, Opcode::Cosine>},
    {Opcode::Sine, "cosine(x) * tan(x)", isReal, both<Opcode::Cosine, Opcode::Multiply, Opcode::Tan>},
    {Opcode::Cosine, "sine(x) / tan(x)", isReal, both<Opcode::Sine, Opcode::Divide, Opcode::Tan>},
    {Opcode::Floor, "-ceil(-x)", isReal, mirrored<Opcode::Ceil>},
    {Opcode::Ceil, "-floor(-x)", isReal, mirrored<Opcode::Floor>},
    {Opcode::RoundNearestAfz, "sign(x) * floor(abs(x) + 1/2)", isReal, roundAwayFromZero},
    {Opcode::RoundNearestEven, "floor(x), or 1 more", isReal, roundToEven},
    {Opcode::Sign, "1, -1 or x", isNegatable, signOf},
    {Opcode::IsFinite, "abs(x) < inf", isReal, finite},
    {Opcode::Abs, "maximum(x, -x)", isNegatable, absolute},
    {Opcode::Negate, "-1 * x", isNegatable, timesMinusOne},
    {Opcode::Add, "x - -y", isNegatable, ofNegated<Opcode::Subtract>},
    {Opcode::Subtract, "x + -y", isNegatable, ofNegated<Opcode::Add>},
    {Opcode::Multiply, "x / (1 / y)", isReal, multiplied},
    {Opcode::Divide, "x * power(y, -1)", isReal, divided},
    {Opcode::Power, "exp(y * log(x))", isReal, raised},
    {Opcode::Maximum, "-minimum(-x, -y)", isNegatable, mirrored<Opcode::Minimum>},
    {Opcode::Minimum, "-maximum(-x, -y)", isNegatable, mirrored<Opcode::Maximum>},
    {Opcode::And, "not(or(not x, not y))", isAny, dual<Opcode::Or>},
    {Opcode::Or, "not(and(not x, not y))", isAny, dual<Opcode::And>},
    {Opcode::Xor, "or(and(x, not y), and(not x, y))", isAny, exclusiveOr},
    {Opcode::Select, "select(not p, y, x)", isPred, selected},
    {Opcode::Clamp, "minimum(maximum(least, x), most)", isAny, clamped},
    {Opcode::Reverse, "gather", isAny, reversed},
    {Opcode::Transpose, "gather", isAny, transposed},
    {Opcode::Broadcast, "gather", isAny, broadcasted},
    {Opcode::Slice, "gather", isAny, sliced},
    {Opcode::Reshape, "gather", isAny, reshaped},
    {Opcode::Concatenate, "dynamic-update-slice", isAny, concatenated},
    {Opcode::Pad, "dynamic-update-slice", isAny, padded},
    {Opcode::DynamicSlice, "gather", isAny, dynamicallySliced},
    {Opcode::Iota, "constant", isNoComplex, counted},
    {Opcode::Dot, "multiply and reduce", isAny, summed},
    {Opcode::Reduce, "its op, element by element", isAny, reduced},
};

const OtherWay *wayOf(Opcode opcode) {
  const auto *way = llvm::find_if(ways, [&](const OtherWay &row) { return row.opcode == opcode; });
  return way == std::end(ways) ? nullptr : way;
}

/// In front of it; null: there is no other way.
Value otherwise(const OtherWay &way, HloInstruction &instr, HloEditor &editor) {
  const Shape &shape = instr.numOperands() ? instr.operand(0)->shape() : instr.shape();
  if (!instr.shape().isArray() || !way.isFor(shape.elementType()) || editor.isOrdered(&instr))
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
