// dot of a matrix and a vector, in a batch or not -> products of elements, and their sums, where the results are too
// few to give each a thread and read as fast as a device can: those of a dense layer of one row, or of attention with
// one query. Such a dot is bound by the bytes of the matrix, as reductions are: these read them side by side, wherever
// the summed dimension lies, divide long sums among blocks, and take in what is computed before and after.
//
//   d = bf16[1,n] dot(bf16[1,k] x, bf16[k,n] w)   ->   p = f32[k,n] multiply(convert(w), broadcast(convert(x)))
//                                                      d = bf16[1,n] reshape(convert(f32[n] reduce(p), add))
//
// A dot without terms to sum is its products: + 0, since a sum of one -0 is 0. Elementwise, it goes into any kernel.
//
//   d = f32[b,n] dot(f32[b] x, f32[b,n] w)         ->   d = f32[b,n] add(multiply(broadcast(x), w), 0)
//
// Sums are computed in the type in which dots are: operands are converted to the type of the result, products and sums
// of floats have at least 32 bits, and what they give is rounded once.

#include "Expansion.h"
#include "Simplify.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace hloc {

namespace {

using Value = Expansion::Value;
using Dims = llvm::SmallVector<int64_t>;

/// An operand and what its dimensions are to the dot.
struct Side {
  HloInstruction *value;
  llvm::ArrayRef<int64_t> batch, contracted;

  bool isFree(int64_t dim) const { return !llvm::is_contained(batch, dim) && !llvm::is_contained(contracted, dim); }
  int64_t rank() const { return int64_t(value->shape().rank()); }
  int64_t size(int64_t dim) const { return value->shape().dim(unsigned(dim)); }
  bool isVector() const {
    return llvm::all_of(llvm::seq(rank()), [&](int64_t dim) { return !isFree(dim) || size(dim) == 1; });
  }
};

/// Shorter sums are a few instructions of a thread.
constexpr int64_t leastTerms = 64;
/// Four times the threads that large devices hold (an H100: 270,336), which read vectors of up to sixteen columns, and
/// rows side by side: more results than that keep one busy by themselves.
constexpr int64_t mostResults = int64_t(1) << 20;

ElementType sumType(ElementType type) {
  if (isComplex(type) || deviceBits(type) >= 32)
    return type;
  return isFloat(type) ? ElementType::F32 : ElementType::S32;
}

class VectorProduct {
public:
  VectorProduct(HloInstruction &dot, HloRewriter &r)
      : dot(dot), x(r.builder(), dot),
        lhs{dot.operand(0), dot.ints(AttributeKey::LhsBatchDims), dot.ints(AttributeKey::LhsContractingDims)},
        rhs{dot.operand(1), dot.ints(AttributeKey::RhsBatchDims), dot.ints(AttributeKey::RhsContractingDims)} {}

  bool applies() const {
    int64_t terms = 1;
    for (int64_t dim : lhs.contracted)
      terms *= lhs.size(dim);
    return !isPred(typeOfResult()) && (lhs.isVector() || rhs.isVector()) && terms >= leastTerms &&
           dot.shape().numElements() <= mostResults;
  }

  HloInstruction *expand() {
    const bool vectorIsLeft = lhs.isVector();
    const Side &vector = vectorIsLeft ? lhs : rhs, &matrix = vectorIsLeft ? rhs : lhs;
    Value elements = factors(matrix.value);
    const Shape &shape = elements->shape();
    Value products = x.builder().add(Opcode::Multiply, shape, {elements, spread(vector, matrix, shape)});
    Value sums = sumOf(matrix, products);
    return x.result(x.reshape(x.builder().convert(sums, typeOfResult()), dot.shape().dims()), dot.shape());
  }

  /// Nothing is summed, and elements are in the order of the operands.
  bool isElementwise() const {
    return lhs.contracted.empty() && !isPred(typeOfResult()) && !isComplex(typeOfResult()) &&
           dot.shape().numElements() > 0 && llvm::is_sorted(placesOf(lhs)) && llvm::is_sorted(placesOf(rhs));
  }

  HloInstruction *multiply() {
    HloBuilder &b = x.builder();
    Shape shape = Shape::array(sumType(typeOfResult()), dot.shape().dims());
    auto everywhere = [&](const Side &side) {
      return b.broadcast(x.plain(factors(side.value)), shape, placesOf(side));
    };
    Value product = b.add(Opcode::Multiply, shape, {everywhere(lhs), everywhere(rhs)});
    Value sum = x.binary(Opcode::Add, product, x.like(product, 0));
    return x.result(b.convert(sum, typeOfResult()), dot.shape());
  }

private:
  /// Where the dimensions of an operand are in a result for which nothing is summed.
  Dims placesOf(const Side &side) const {
    Dims places;
    int64_t free = int64_t(side.batch.size()) + (&side == &rhs ? lhs.rank() - int64_t(lhs.batch.size()) : 0);
    for (int64_t dim = 0; dim < side.rank(); ++dim) {
      const auto *found = llvm::find(side.batch, dim);
      places.push_back(found != side.batch.end() ? found - side.batch.begin() : free++);
    }
    return places;
  }

  ElementType typeOfResult() const { return dot.shape().elementType(); }

  Value factors(Value operand) {
    HloBuilder &b = x.builder();
    return b.convert(b.convert(operand, typeOfResult()), sumType(typeOfResult()));
  }

  /// The vector, at all elements of the matrix.
  Value spread(const Side &vector, const Side &matrix, const Shape &shape) {
    Dims order, places; // dimensions of the vector, and of the matrix that they are
    for (int64_t dim = 0; dim < matrix.rank(); ++dim)
      for (auto [own, others] :
           {std::pair(vector.batch, matrix.batch), std::pair(vector.contracted, matrix.contracted)})
        if (const auto *found = llvm::find(others, dim); found != others.end()) {
          order.push_back(own[size_t(found - others.begin())]);
          places.push_back(dim);
        }
    Dims kept = order, sizes;
    llvm::sort(kept);
    for (int64_t dim : kept)
      sizes.push_back(vector.size(dim));
    Value values = x.reshape(x.plain(factors(vector.value)), sizes);
    for (int64_t &dim : order)
      dim = llvm::find(kept, dim) - kept.begin();
    if (!llvm::is_sorted(order))
      values = x.builder().transpose(values, order);
    return x.builder().broadcast(values, shape, places);
  }

  /// In the order of the dot: batch dimensions, then those of the matrix alone.
  Value sumOf(const Side &matrix, Value products) {
    const ElementType type = products->shape().elementType();
    Value sums = x.builder().reduce(products, x.scalar(type, 0), matrix.contracted, x.reducer(Opcode::Add, type));
    Dims order(matrix.batch), left;
    for (int64_t dim = 0; dim < matrix.rank(); ++dim) {
      if (matrix.isFree(dim))
        order.push_back(dim);
      if (!llvm::is_contained(matrix.contracted, dim))
        left.push_back(dim);
    }
    for (int64_t &dim : order)
      dim = llvm::find(left, dim) - left.begin();
    return llvm::is_sorted(order) ? sums : x.builder().transpose(sums, order);
  }

  HloInstruction &dot;
  Expansion x;
  Side lhs, rhs;
};

HloInstruction *expandDot(HloInstruction &dot, HloRewriter &r) {
  VectorProduct product(dot, r);
  if (product.isElementwise())
    return product.multiply();
  return product.applies() ? product.expand() : nullptr;
}

constexpr RewriteRule rules[] = {{"expand-vector-products", Opcode::Dot, expandDot}};

} // namespace

PassResult expandVectorProducts(HloModule &module, HloPassContext &context) {
  if (context.options.dots == Multiplier::Library) // which it multiplies as well
    return PassResult::Unchanged;
  return rewriteBeforeFusing(module, rules, context);
}

} // namespace hloc
