// Calls of cuBLAS's matrix product and of CUB's sort. What they give is computed in the widest type and rounded once.

#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/SortCall.h"
#include "hloc/support/Check.h"
#include "interp/Dot.h"
#include "interp/MatrixProduct.h"
#include "interp/Ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace hloc::interp {

namespace {

double activate(GemmCall::Activation activation, double x) {
  switch (activation) {
  case GemmCall::Activation::None:
    return x;
  case GemmCall::Activation::Relu: // the comparison lets NaN through
    return x < 0 ? 0 : x;
  case GemmCall::Activation::Gelu:
    return x * 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case GemmCall::Activation::Silu:
    return x / (1 + std::exp(-x));
  }
  HLOC_UNREACHABLE("activation out of range");
}

/// sums = alpha * sums + beta * addend + bias
void addTerms(const GemmCall &gemm, const Step &step, Literal &sums) {
  const ElementType type = sums.shape().elementType();
  Literal addend = gemm.addend ? widened(step.array(gemm.addend), type) : Literal();
  Literal bias = gemm.bias ? widened(step.array(gemm.bias), type) : Literal();
  auto combine = [&](auto alpha, auto beta, auto get, auto set) {
    for (int64_t i = 0; i < sums.numElements(); ++i) {
      auto sum = alpha * get(sums, i);
      if (gemm.addend)
        sum += beta * get(addend, i);
      if (gemm.bias)
        sum += get(bias, i % bias.numElements());
      set(i, sum);
    }
  };
  if (isComplex(type))
    combine(
        gemm.alpha, gemm.beta, [](const Literal &from, int64_t i) { return from.getComplex(i); },
        [&](int64_t i, std::complex<double> sum) { sums.setComplex(i, sum); });
  else if (isFloat(type))
    combine(
        gemm.alpha, gemm.beta, [](const Literal &from, int64_t i) { return from.getDouble(i); },
        [&](int64_t i, double sum) { sums.setDouble(i, sum); });
  else // alpha and beta are 1; what overflows wraps
    combine(
        uint64_t(1), uint64_t(1), [](const Literal &from, int64_t i) { return uint64_t(from.getInt(i)); },
        [&](int64_t i, uint64_t sum) { sums.setInt(i, int64_t(sum)); });
}

/// A number that orders as CUB does: by bits, but -0 is 0.
uint64_t orderOf(const Literal &keys, int64_t i) {
  const ElementType type = keys.shape().elementType();
  const unsigned width = bitWidth(type);
  const uint64_t sign = uint64_t(1) << (width - 1);
  uint64_t bits = keys.getBits(i);
  if (isFloat(type)) {
    if (bits == sign)
      bits = 0;
    return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
  }
  return isSigned(type) ? bits ^ sign : bits;
}

llvm::LogicalResult doesNotFit(Step &step) {
  return step.unsupported("operands, results or configuration do not fit the target `" +
                          step.instr.string(AttributeKey::CustomCallTarget) + "`");
}

/// The tuple of what the call computes and, after it, of scratch memory.
Value withScratch(const Step &step, std::vector<Value> results) {
  for (const Shape &scratch : step.shape().elements().drop_front(results.size()))
    results.push_back(Value::zero(scratch));
  return Value::tuple(std::move(results));
}

} // namespace

llvm::FailureOr<Value> gemmCall(Step &step) {
  std::optional<GemmCall> gemm = readGemmCall(step.instr);
  if (!gemm)
    return doesNotFit(step);
  DotDims dims;
  dims.lhsBatch.append(gemm->lhsBatch.begin(), gemm->lhsBatch.end());
  dims.rhsBatch.append(gemm->rhsBatch.begin(), gemm->rhsBatch.end());
  dims.lhsDepth.append(gemm->lhsContracting.begin(), gemm->lhsContracting.end());
  dims.rhsDepth.append(gemm->rhsContracting.begin(), gemm->rhsContracting.end());
  const Shape &shape = step.instr.resultShape();
  const ElementType type = shape.elementType();
  Literal sums = dotSums(widened(step.array(0), type), widened(step.array(1), type), dims);
  addTerms(*gemm, step, sums);
  Literal aux(shape), result(shape);
  roundInto(sums, aux);
  if (gemm->activation != GemmCall::Activation::None)
    for (int64_t i = 0; i < sums.numElements(); ++i)
      sums.setDouble(i, activate(gemm->activation, sums.getDouble(i)));
  roundInto(sums, result);
  if (!step.shape().isTuple())
    return Value(std::move(result));
  std::vector<Value> results{Value(std::move(result))};
  if (gemm->hasAux)
    results.emplace_back(std::move(aux));
  return withScratch(step, std::move(results));
}

llvm::FailureOr<Value> sortCall(Step &step) {
  std::optional<SortCall> sort = readSortCall(step.instr);
  if (!sort)
    return doesNotFit(step);
  const Literal &keys = step.array(0);
  const int64_t length = keys.shape().dims().back();
  std::vector<Literal> sorted;
  for (unsigned i = 0; i < step.operands.size(); ++i)
    sorted.push_back(step.array(i));
  std::vector<int64_t> order(size_t(length), 0);
  for (int64_t row = 0; row < keys.numElements(); row += length) {
    std::iota(order.begin(), order.end(), row);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return sort->descending ? orderOf(keys, a) > orderOf(keys, b) : orderOf(keys, a) < orderOf(keys, b);
    });
    for (auto [i, result] : llvm::enumerate(sorted))
      for (auto [to, from] : llvm::enumerate(order))
        result.setBits(row + int64_t(to), step.array(unsigned(i)).getBits(from));
  }
  std::vector<Value> results;
  for (Literal &result : sorted)
    results.emplace_back(std::move(result));
  return withScratch(step, std::move(results));
}

} // namespace hloc::interp
