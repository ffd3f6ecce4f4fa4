// Dots whose factor is a softmax that has been divided and then rounded -> those of weights that are rounded undivided,
// at any scale, and whose sums are divided. So kernels need not know a row's maximum and sum before they multiply.
//
//   w = bf16[m,k] convert(divide(e, sums))   ->   u = bf16[m,k] convert(e), online
//   d = bf16[m,n] dot(w, v)                       d = bf16[m,n] convert(divide(f32[m,n] dot(u, v), online, sums))
//
// An f32 `v` is rounded to the weights' type where the dot rounds it as well, or where that changes nothing.
//
// where e = exponential(x - maxima), maxima and sums are those of the rows that the dot sums over, and all of it is
// f32.

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/Literal.h"
#include "hloc/hlo/OnlineSoftmax.h"
#include "hloc/transforms/Transforms.h"

#include "Matching.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace hloc {

namespace {

using enum ElementType;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool isF32(const HloInstruction &value) { return value.shape().isArray() && value.shape().elementType() == F32; }

/// Of f32 along one dimension, by `combiner` and from what changes nothing.
bool isReduction(const HloInstruction &instr, Opcode combiner, int64_t dim) {
  if (!is(&instr, Opcode::Reduce) || !isF32(instr) || instr.numOperands() != 2 || !isF32(*instr.operand(0)) ||
      instr.ints(AttributeKey::Dimensions) != llvm::ArrayRef(dim))
    return false;
  const HloInstruction *init = instr.operand(1);
  const bool changesNothing =
      combiner == Opcode::Maximum ? isSplat(init, -infinity) : isSplat(init, 0) || isSplat(init, -0.0);
  if (!changesNothing)
    return false;
  const HloComputation &function = *instr.computation(AttributeKey::ToApply);
  const HloInstruction &root = *function.root();
  return function.instructions().size() == 3 && root.opcode() == combiner && isF32(root) &&
         root.operand(0) != root.operand(1) &&
         llvm::all_of(root.operands(), [](auto *operand) { return is(operand, Opcode::Parameter); });
}

/// What a row came to, at all of its elements.
struct RowValue {
  HloInstruction *reduction = nullptr;
  bool isReciprocal = false; ///< one over it
};

/// Goes back from elements to the reduction of their rows along `dim`, which is at the same place in all others.
class RowSearch {
public:
  RowSearch(HloInstruction &elements, int64_t dim) : value(&elements), dim(dim) {
    for (int64_t i = 0; i < int64_t(elements.shape().rank()); ++i)
      places.push_back(i);
  }

  RowValue find() {
    RowValue found;
    while (isF32(*value)) {
      if (is(value, Opcode::Reduce)) {
        found.reduction = isWhere() ? value : nullptr;
        return found;
      }
      HloInstruction *last = value;
      if (is(value, Opcode::Divide) && !found.isReciprocal && isSplat(value->operand(0), 1)) {
        found.isReciprocal = true;
        value = value->operand(1);
      } else if (!goBack()) {
        return {};
      }
      if (value == last)
        return {};
    }
    return {};
  }

private:
  bool goBack() {
    if (is(value, Opcode::Reshape))
      return reshape();
    if (is(value, Opcode::Broadcast)) {
      llvm::SmallVector<int64_t> before;
      for (int64_t to : value->ints(AttributeKey::Dimensions))
        before.push_back(places[size_t(to)]);
      places = std::move(before);
      value = value->operand(0);
      return true;
    }
    if (is(value, Opcode::Maximum)) // as some frontends begin theirs
      for (unsigned i : {0u, 1u})
        if (isSplat(value->operand(i), -infinity)) {
          value = value->operand(1 - i);
          return true;
        }
    if (!is(value, Opcode::Copy) && !(is(value, Opcode::OptimizationBarrier) && isF32(*value->operand(0))))
      return false;
    value = value->operand(0);
    return true;
  }

  /// One that comes and goes with dimensions of one element alone.
  bool reshape() {
    const Shape &from = value->operand(0)->shape(), &to = value->shape();
    llvm::SmallVector<int64_t> before(from.rank(), none), left;
    for (unsigned i = 0; i < to.rank(); ++i)
      if (to.dim(i) != 1)
        left.push_back(i);
    size_t next = 0;
    for (unsigned i = 0; i < from.rank(); ++i)
      if (from.dim(i) != 1) {
        if (next == left.size() || to.dim(unsigned(left[next])) != from.dim(i))
          return false;
        before[i] = places[size_t(left[next++])];
      }
    places = std::move(before);
    value = value->operand(0);
    return next == left.size();
  }

  bool isWhere() const {
    for (auto [i, place] : llvm::enumerate(places))
      if (value->shape().dim(unsigned(i)) != 1 && place != int64_t(i) + (int64_t(i) >= dim))
        return false;
    return true;
  }

  static constexpr int64_t none = -1;
  HloInstruction *value;
  const int64_t dim;
  llvm::SmallVector<int64_t> places; ///< of the value's dimensions among those of the elements
};

/// A dot and the softmax that one of its factors is.
struct Softmax {
  unsigned operand = 0;
  ElementType rounded = BF16; ///< the weights' type
  HloInstruction *powers = nullptr, *sum = nullptr;
};

bool isNarrow(ElementType type) { return type == BF16 || type == F16; }

/// `weights`: divided, of f32.
bool findSums(HloInstruction &weights, int64_t dim, Softmax &found) {
  auto isSumOf = [&](HloInstruction *powers, HloInstruction *elements, bool isReciprocal) {
    const RowValue row = RowSearch(*elements, dim).find();
    if (!is(powers, Opcode::Exponential) || !row.reduction || row.isReciprocal != isReciprocal ||
        !isReduction(*row.reduction, Opcode::Add, dim) || row.reduction->operand(0) != powers)
      return false;
    found.powers = powers;
    found.sum = row.reduction;
    return true;
  };
  if (is(&weights, Opcode::Divide))
    return isSumOf(weights.operand(0), weights.operand(1), false);
  return is(&weights, Opcode::Multiply) && (isSumOf(weights.operand(0), weights.operand(1), true) ||
                                            isSumOf(weights.operand(1), weights.operand(0), true));
}

/// Of what is less than its row's maximum: weights are no larger than 1.
bool areLessMaximum(const HloInstruction &powers, int64_t dim) {
  const HloInstruction &exponents = *powers.operand(0);
  if (!is(&exponents, Opcode::Subtract))
    return false;
  const RowValue row = RowSearch(*exponents.operand(1), dim).find();
  return row.reduction && !row.isReciprocal && isReduction(*row.reduction, Opcode::Maximum, dim) &&
         row.reduction->operand(0) == exponents.operand(0);
}

bool multipliesBrains(const HloInstruction &dot) {
  return dot.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset) == DotAlgorithm::BF16BF16F32;
}

/// Is a factor of the dot, rounded to the type, what is multiplied anyway?
bool mayRound(const HloInstruction &factor, const HloInstruction &dot, ElementType type) {
  auto has = [&](const HloInstruction &value) {
    return value.shape().isArray() && value.shape().elementType() == type;
  };
  const bool rounds = has(dot) || (type == BF16 && multipliesBrains(dot));
  return has(factor) || (isF32(factor) && (rounds || (is(&factor, Opcode::Convert) && has(*factor.operand(0)))));
}

std::optional<Softmax> softmaxOf(const HloInstruction &dot) {
  if (!is(&dot, Opcode::Dot) || dot.numOperands() != 2 || !dot.shape().isArray() ||
      dot.has(AttributeKey::SparsityConfig))
    return std::nullopt;
  const ElementType result = dot.shape().elementType();
  for (unsigned operand : {0u, 1u}) {
    llvm::ArrayRef<int64_t> contracted =
        dot.ints(operand == 0 ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims);
    if (contracted.size() != 1)
      continue;
    Softmax found{operand};
    HloInstruction *weights = dot.operand(operand);
    found.rounded = weights->shape().elementType();
    if (is(weights, Opcode::Convert) && isNarrow(found.rounded) && (result == F32 || result == found.rounded)) {
      weights = weights->operand(0);
    } else if (isF32(*weights) && isNarrow(result)) {
      found.rounded = result; // as which dots have their factors
    } else if (isF32(*weights) && result == F32 && multipliesBrains(dot)) {
      found.rounded = BF16;
    } else {
      continue;
    }
    if (isF32(*weights) && mayRound(*dot.operand(1 - operand), dot, found.rounded) &&
        findSums(*weights, contracted.front(), found) && areLessMaximum(*found.powers, contracted.front()))
      return found;
  }
  return std::nullopt;
}

/// The dot with the weights on the left, whose results' dimensions are those of the batch, of the weights, of the
/// terms.
class Undivided {
public:
  Undivided(const HloInstruction &dot, const Softmax &softmax, HloBuilder &b)
      : dot(dot), softmax(softmax), b(b), isLeft(softmax.operand == 0),
        batch(dot.ints(isLeft ? AttributeKey::LhsBatchDims : AttributeKey::RhsBatchDims)),
        contracted(dot.ints(isLeft ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims).front()),
        rank(int64_t(softmax.powers->shape().rank())) {}

  HloInstruction *result() {
    const Attribute mark = onlineSoftmaxAttribute();
    HloInstruction *factor = dot.operand(softmax.operand);
    HloInstruction *weights =
        b.add(Opcode::Convert, factor->shape().withElementType(softmax.rounded), {softmax.powers}, {mark});
    HloInstruction *terms = b.convert(dot.operand(1 - softmax.operand), softmax.rounded);
    const llvm::SmallVector<int64_t> order = places();
    llvm::SmallVector<int64_t> sizes(order.size());
    for (auto [dim, place] : llvm::enumerate(order))
      sizes[size_t(place)] = dot.shape().dim(unsigned(dim));
    const Shape shape = isLeft ? dot.shape().withElementType(F32) : Shape::array(F32, sizes);
    HloInstruction *product = b.add(Opcode::Dot, shape, {weights, terms}, attributes(mark));
    HloInstruction *quotients = b.add(Opcode::Divide, shape, {product, sums(shape)});
    HloInstruction *rounded = b.convert(quotients, dot.shape().elementType());
    return isLeft ? rounded
                  : b.add(Opcode::Transpose, dot.shape(), {rounded}, {b.ints(AttributeKey::Dimensions, order)});
  }

private:
  /// Of the dot's dimensions, among those of the dot with the weights on the left.
  llvm::SmallVector<int64_t> places() const {
    const auto ofBatch = int64_t(batch.size()), own = rank - ofBatch - 1, all = int64_t(dot.shape().rank());
    llvm::SmallVector<int64_t> order;
    for (int64_t dim = 0; dim < all; ++dim)
      order.push_back(isLeft || dim < ofBatch ? dim : dim < all - own ? dim + own : dim - (all - own) + ofBatch);
    return order;
  }

  /// Those of the dot, of either side in its place.
  llvm::SmallVector<Attribute> attributes(const Attribute &mark) {
    constexpr AttributeKey sides[][2] = {{AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims},
                                         {AttributeKey::LhsContractingDims, AttributeKey::RhsContractingDims}};
    llvm::SmallVector<Attribute> made = {mark};
    for (const auto &[left, right] : sides) {
      if (dot.has(left))
        made.push_back(b.ints(isLeft ? left : right, dot.ints(left)));
      if (dot.has(right))
        made.push_back(b.ints(isLeft ? right : left, dot.ints(right)));
    }
    if (const AttributeValue *metadata = dot.find(AttributeKey::Metadata))
      made.push_back({AttributeKey::Metadata, *metadata});
    return made;
  }

  /// Of the rows, at all results.
  HloInstruction *sums(const Shape &results) {
    llvm::SmallVector<int64_t> places, order;
    for (int64_t dim = 0, own = int64_t(batch.size()); dim < rank; ++dim) {
      if (dim == contracted)
        continue;
      const auto *found = llvm::find(batch, dim);
      places.push_back(found == batch.end() ? own++ : int64_t(found - batch.begin()));
      order.push_back(int64_t(order.size()));
    }
    HloInstruction *sums = softmax.sum;
    if (!llvm::is_sorted(places)) {
      llvm::sort(order, [&](int64_t a, int64_t b) { return places[size_t(a)] < places[size_t(b)]; });
      sums = b.transpose(sums, order);
      llvm::sort(places);
    }
    return b.broadcast(sums, results, places);
  }

  const HloInstruction &dot;
  const Softmax &softmax;
  HloBuilder &b;
  const bool isLeft;
  const llvm::ArrayRef<int64_t> batch; ///< of the weights
  const int64_t contracted, rank;
};

void divideAfterwards(HloEditor &editor, HloInstruction *dot, const Softmax &softmax) {
  HloBuilder b(editor, dot);
  b.setRange(dot->range());
  editor.replaceAllUses(dot, Undivided(*dot, softmax, b).result());
  editor.eraseIfDead(dot);
}

} // namespace

PassResult chooseSoftmax(HloModule &module, HloPassContext &context) {
  size_t chosen = 0;
  if (context.options.softmax == SoftmaxChoice::Strict)
    return PassResult::Unchanged;
  for (const auto &computation : module.computations()) {
    if (llvm::none_of(computation->instructions(), [](auto *instr) { return softmaxOf(*instr).has_value(); }))
      continue;
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(), *next = nullptr; instr; instr = next) {
      next = editor.next(instr);
      const std::optional<Softmax> found = softmaxOf(*instr);
      if (!found || editor.isOrdered(instr))
        continue;
      divideAfterwards(editor, instr, *found);
      ++chosen;
    }
  }
  context.statistics.add("choose-softmax.online", chosen);
  return changedIf(chosen > 0);
}

} // namespace hloc
