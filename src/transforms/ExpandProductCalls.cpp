// Calls that are products of matrices and what is between them -> dots and a softmax, which the search makes one kernel
// of where it can.
//
// cuDNN's attention (hlo/AttentionCall.h) rounds weights to the type of what they multiply, as jax has it without
// cuDNN. A gradient makes scores again, and takes weights by the statistics that the forward call gave.
//
//   o = custom-call(q, k, v), "__cudnn$fmhaSoftmax"  ->  s = f32 dot(q, k) * scale     p = softmax(s)    o = dot(p, v)
//
// A dot scaled by blocks multiplies each factor by the scale of its block first, in the result's type:
//
//   d = custom-call(x, y, a, b), "__op$block_scaled_dot"  ->  d = dot(x * a, y * b)

#include "Matrices.h"
#include "Rewriter.h"
#include "hloc/hlo/AttentionCall.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <limits>

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;
using Dims = llvm::SmallVector<int64_t>;

/// Over dimensions of both; the result has the batch, what is left of x, and what is left of y.
struct Contraction {
  Dims batchX, batchY, sumsX, sumsY;
};

Value dot(HloBuilder &b, Value x, Value y, const Contraction &over, ElementType type) {
  return b.infer(Opcode::Dot, {x, y},
                 {b.ints(AttributeKey::LhsBatchDims, over.batchX), b.ints(AttributeKey::RhsBatchDims, over.batchY),
                  b.ints(AttributeKey::LhsContractingDims, over.sumsX),
                  b.ints(AttributeKey::RhsContractingDims, over.sumsY)},
                 /*declared=*/Shape::scalar(type));
}

/// One call of attention being expanded. Scores are [b, n, t, s], or [b, heads of keys, heads of queries for each, t,
/// s].
class Attention {
public:
  Attention(HloInstruction &instr, const AttentionCall &call, HloBuilder &builder)
      : instr(instr), call(call), x(builder, instr), b(builder), type(instr.operand(0)->shape().elementType()) {
    ofBatch = {0, call.areHeadsFirst ? 1 : 2};
  }

  HloInstruction *expand() { return call.isGradient ? gradients() : forward(); }

private:
  bool isGrouped() const { return call.grouped() > 1; }
  int64_t lengthOfKeys() const { return call.areHeadsFirst ? 2 : 1; } ///< a dimension of keys and values
  Dims ofScores(int64_t more) const {
    Dims dims = {call.batch, call.heads, call.queries};
    if (isGrouped())
      dims = {call.batch, call.keyHeads, call.grouped(), call.queries};
    dims.push_back(more);
    return dims;
  }
  int64_t rank() const { return isGrouped() ? 5 : 4; } ///< of scores
  /// All but the last.
  Dims ofRows() const { return llvm::to_vector(llvm::seq<int64_t>(0, rank() - 1)); }

  /// An operand of queries, so that its dimensions are those of scores but for the last; as it is if each head has keys
  /// of its own.
  Value queries(unsigned i) {
    Value value = x.plain(instr.operand(i));
    if (!isGrouped())
      return value;
    if (!call.areHeadsFirst)
      value = x.plain(b.transpose(value, {0, 2, 1, 3}));
    return x.reshape(value, ofScores(value->shape().dims().back()));
  }
  Value keys(unsigned i) { return x.plain(instr.operand(i)); }
  /// Dimensions of what `queries` gives.
  Dims batchOfQueries() const { return isGrouped() ? Dims{0, 1} : ofBatch; }
  Dims rowsOfQueries() const { return isGrouped() ? Dims{2, 3} : Dims{3 - ofBatch[1]}; }

  Value spread(Value rows, llvm::ArrayRef<int64_t> dims) { return along(x, rows, dims, ofRows()); }
  Value converted(Value value, ElementType to) { return b.convert(value, to); }
  Value asResult(Value value, unsigned number) {
    const Shape &wanted = instr.shape().element(number);
    return x.result(x.reshape(value, wanted.dims()), wanted);
  }
  Value scratch() { return x.zeros(instr.shape().elements().back()); }

  // --- scores

  Value bias(llvm::ArrayRef<int64_t> dims) {
    const Shape &given = instr.operand(*call.bias)->shape();
    Value value = converted(x.plain(instr.operand(*call.bias)), ElementType::F32);
    Dims kept, places;
    auto keep = [&](int64_t size, int64_t place, bool isSpread) {
      if (isSpread)
        return;
      kept.push_back(size);
      places.push_back(place);
    };
    keep(call.batch, 0, given.dim(0) != call.batch);
    const bool hasHeads = given.dim(1) == call.heads;
    keep(isGrouped() ? call.keyHeads : call.heads, 1, !hasHeads);
    if (isGrouped())
      keep(call.grouped(), 2, !hasHeads);
    keep(call.queries, rank() - 2, false);
    keep(call.keys, rank() - 1, false);
    return along(x, x.reshape(value, kept), dims, places);
  }

  Value both(Value one, Value other) { return one ? x.binary(Opcode::And, one, other) : other; }

  /// pred of `dims`: is position of a dimension below the length of its batch?
  Value isWithin(unsigned lengths, llvm::ArrayRef<int64_t> dims, int64_t dimension) {
    Value length = along(x, x.plain(instr.operand(lengths)), dims, {0});
    return b.compare(ComparisonDirection::Lt, x.iota(ElementType::S32, dims, dimension), length);
  }

  /// Which keys a query sees; null: all.
  Value visible(llvm::ArrayRef<int64_t> dims) {
    Value found = nullptr;
    auto query = [&] { return x.iota(ElementType::S32, dims, rank() - 2); };
    auto key = [&] { return x.iota(ElementType::S32, dims, rank() - 1); };
    if (call.isCausal)
      found = b.compare(ComparisonDirection::Le, key(), query());
    if (call.window > 0)
      found = both(found, compared(x, ComparisonDirection::Lt, x.subtract(query(), key()), double(call.window)));
    if (call.queryLengths)
      found = both(both(found, isWithin(*call.queryLengths, dims, rank() - 2)),
                   isWithin(*call.keyLengths, dims, rank() - 1));
    return found;
  }

  /// f32, with what is not seen far below all others.
  Value scores(Value queries, Value visible) {
    const double hidden = -0.7 * double(std::numeric_limits<float>::max());
    Value sums =
        dot(b, queries, keys(1), {batchOfQueries(), ofBatch, {queries->shape().rank() - 1}, {3}}, ElementType::F32);
    Value made = x.multiply(sums, x.like(sums, call.scale));
    if (call.bias)
      made = x.add(made, bias(made->shape().dims()));
    return visible ? x.select(visible, made, x.like(made, hidden)) : made;
  }

  HloInstruction *forward() {
    const Dims dims = ofScores(call.keys);
    Value logits = scores(queries(0), visible(dims));
    Value most = reduced(x, Opcode::Maximum, logits, {rank() - 1});
    Value weights = x.unary(Opcode::Exponential, x.subtract(logits, spread(most, dims)));
    Value sums = reduced(x, Opcode::Add, weights, {rank() - 1});
    Value rounded = converted(x.divide(weights, spread(sums, dims)), type);
    Value output = dot(b, rounded, keys(2), {{0, 1}, ofBatch, {rank() - 1}, {lengthOfKeys()}}, type);
    if (call.queryLengths) {
      const Dims ofOutput = ofScores(call.valueSize);
      output = x.select(isWithin(*call.queryLengths, ofOutput, rank() - 2), output, x.like(output, 0));
    }
    Values results = {asResult(output, 0)};
    if (call.hasStatistics)
      results.push_back(asResult(x.add(most, x.unary(Opcode::Log, sums)), 1));
    results.push_back(scratch());
    return b.tuple(results);
  }

  // --- gradients

  /// [b, n, t] as rows of scores: sums of what an output is multiplied by its gradient.
  Value outputTimesGradient() {
    Value output = converted(x.plain(instr.operand(call.output())), ElementType::F32),
          gradient = converted(x.plain(instr.operand(AttentionCall::outputGradient)), ElementType::F32);
    Value sums = reduced(x, Opcode::Add, x.multiply(output, gradient), {3});
    if (!call.areHeadsFirst)
      sums = x.plain(b.transpose(sums, {0, 2, 1}));
    return rowsOf(sums);
  }
  Value rowsOf(Value ofHeads) {
    Dims dims = ofScores(1);
    dims.pop_back();
    return x.reshape(ofHeads, dims);
  }

  Value biasGradient(Value gradients) {
    const Shape &given = instr.operand(*call.bias)->shape();
    Dims summed;
    if (given.dim(0) != call.batch)
      summed.push_back(0);
    if (given.dim(1) != call.heads)
      for (int64_t dim = 1; dim < rank() - 2; ++dim)
        summed.push_back(dim);
    if (!summed.empty())
      gradients = reduced(x, Opcode::Add, gradients, summed);
    return asResult(converted(gradients, given.elementType()), 3);
  }

  HloInstruction *gradients() {
    const Dims dims = ofScores(call.keys);
    Value ofQueries = queries(0), ofOutput = queries(AttentionCall::outputGradient), seen = visible(dims);
    Value statistics = rowsOf(x.plain(instr.operand(AttentionCall::statistics)));
    Value weights = x.unary(Opcode::Exponential, x.subtract(scores(ofQueries, seen), spread(statistics, dims)));
    if (seen) // (of padding, statistics are anything)
      weights = x.select(seen, weights, x.like(weights, 0));
    const int64_t last = ofOutput->shape().rank() - 1;
    Value ofWeights = dot(b, ofOutput, keys(2), {batchOfQueries(), ofBatch, {last}, {3}}, ElementType::F32);
    Value ofScores = x.multiply(weights, x.subtract(ofWeights, spread(outputTimesGradient(), dims)));
    Value scaled = converted(x.multiply(ofScores, x.like(ofScores, call.scale)), type);
    const Dims rows = llvm::to_vector(llvm::seq<int64_t>(2, rank() - 1)); // of scores, which keys have in common
    const Contraction overRows = {{0, 1}, batchOfQueries(), rows, rowsOfQueries()};
    Values results = {asResult(dot(b, scaled, keys(1), {{0, 1}, ofBatch, {rank() - 1}, {lengthOfKeys()}}, type), 0),
                      asResult(dot(b, scaled, ofQueries, overRows, type), 1),
                      asResult(dot(b, converted(weights, type), ofOutput, overRows, type), 2)};
    if (call.hasBiasGradient)
      results.push_back(biasGradient(ofScores));
    results.push_back(scratch());
    return b.tuple(results);
  }

  HloInstruction &instr;
  const AttentionCall &call;
  Expansion x;
  HloBuilder &b;
  const ElementType type;
  Dims ofBatch; ///< dimensions of keys: the batch and the head
};

HloInstruction *expandAttention(HloInstruction &instr, HloRewriter &rewriter) {
  std::string why;
  const std::optional<AttentionCall> call = AttentionCall::of(instr, why);
  return call ? Attention(instr, *call, rewriter.builder()).expand() : nullptr;
}

// --- dots that are scaled by blocks

constexpr llvm::StringLiteral scaledDot = "__op$block_scaled_dot";

/// Has each dimension of `scales` as many blocks as divide that of `values`?
bool areScalesOf(const Shape &values, const Shape &scales) {
  return scales.isArray() && isFloat(scales.elementType()) && scales.rank() == values.rank() &&
         llvm::all_of(llvm::zip_equal(values.dims(), scales.dims()), [](auto sizes) {
           const auto [size, blocks] = sizes;
           return blocks > 0 && size % blocks == 0;
         });
}

/// x[..., m, k], y[..., n, k], scales of x[, scales of y]: the batch is the first dimension of three.
bool isScaledDot(const HloInstruction &instr) {
  if (instr.string(AttributeKey::CustomCallTarget) != scaledDot || instr.hasSideEffect() ||
      (instr.numOperands() != 3 && instr.numOperands() != 4) || !instr.shape().isArray() ||
      !isFloat(instr.shape().elementType()))
    return false;
  const Shape &x = instr.operand(0)->shape(), &y = instr.operand(1)->shape();
  const unsigned rank = x.isArray() ? x.rank() : 0;
  if ((rank != 2 && rank != 3) || !y.isArray() || y.rank() != rank || !isFloat(x.elementType()) ||
      !isFloat(y.elementType()) || x.hasDynamicDims() || y.hasDynamicDims() || x.dims().back() != y.dims().back() ||
      (rank == 3 && x.dim(0) != y.dim(0)))
    return false;
  Dims wanted(x.dims().drop_back());
  wanted.push_back(y.dim(rank - 2));
  return instr.shape().dims() == llvm::ArrayRef<int64_t>(wanted) && areScalesOf(x, instr.operand(2)->shape()) &&
         (instr.numOperands() == 3 || areScalesOf(y, instr.operand(3)->shape()));
}

/// [a, b] at every element of blocks: [a, size of a block, b, ...].
Value scaled(Expansion &x, HloInstruction *values, HloInstruction *scales, ElementType type) {
  HloBuilder &b = x.builder();
  Value value = b.convert(x.plain(values), type), scale = b.convert(x.plain(scales), type);
  Dims blocks, places;
  for (auto [size, count] : llvm::zip_equal(value->shape().dims(), scale->shape().dims())) {
    places.push_back(int64_t(blocks.size()));
    blocks.append({count, size / count});
  }
  return x.multiply(value, x.reshape(along(x, scale, blocks, places), value->shape().dims()));
}

HloInstruction *expandScaledDot(HloInstruction &instr, HloRewriter &rewriter) {
  if (!isScaledDot(instr))
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  const ElementType type = instr.shape().elementType();
  Value lhs = scaled(x, instr.operand(0), instr.operand(2), type);
  Value rhs = instr.numOperands() == 4 ? scaled(x, instr.operand(1), instr.operand(3), type)
                                       : x.builder().convert(x.plain(instr.operand(1)), type);
  const int64_t last = lhs->shape().rank() - 1;
  const Dims batch = last == 2 ? Dims{0} : Dims{};
  return x.result(dot(x.builder(), lhs, rhs, {batch, batch, {last}, {last}}, type), instr.shape());
}

HloInstruction *expandCall(HloInstruction &instr, HloRewriter &rewriter) {
  HloInstruction *made = expandAttention(instr, rewriter);
  return made ? made : expandScaledDot(instr, rewriter);
}

constexpr RewriteRule rules[] = {{"expand-product-calls", Opcode::CustomCall, expandCall}};

} // namespace

bool isProductCall(const HloInstruction &instr) {
  std::string why;
  return AttentionCall::of(instr, why) || (instr.opcode() == Opcode::CustomCall && isScaledDot(instr));
}

PassResult expandProductCalls(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
