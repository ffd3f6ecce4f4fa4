#include "LibraryCalls.h"

#include "Expansion.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/hlo/SortCall.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numbers>

namespace hloc {

namespace {

using Value = Expansion::Value;

Value activated(Expansion &x, GemmCall::Activation activation, Value value) {
  switch (activation) {
  case GemmCall::Activation::None:
    break;
  case GemmCall::Activation::Relu: { // the comparison lets NaN through
    Value zero = x.like(value, 0);
    return x.select(x.builder().compare(ComparisonDirection::Lt, value, zero), zero, value);
  }
  case GemmCall::Activation::Gelu: { // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    Value cube = x.multiply(x.multiply(value, value), value);
    Value inner = x.add(value, x.multiply(cube, x.like(value, 0.044715)));
    Value bent = x.unary(Opcode::Tanh, x.multiply(inner, x.like(value, std::sqrt(2 / std::numbers::pi))));
    return x.multiply(x.multiply(value, x.like(value, 0.5)), x.add(bent, x.like(value, 1)));
  }
  case GemmCall::Activation::Silu:
    return x.multiply(value, x.unary(Opcode::Logistic, value));
  }
  return value;
}

/// The type that the product and all terms are added in: rounded once.
ElementType sumType(const GemmCall &gemm, ElementType result) {
  return gemm.isPlain() || !isFloat(result) || bitWidth(result) >= 32 ? result : ElementType::F32;
}

Value product(Expansion &x, const GemmCall &gemm, const HloInstruction &call, ElementType type) {
  HloBuilder &b = x.builder();
  llvm::SmallVector<Attribute> attributes = {b.ints(AttributeKey::LhsBatchDims, gemm.lhsBatch),
                                             b.ints(AttributeKey::RhsBatchDims, gemm.rhsBatch),
                                             b.ints(AttributeKey::LhsContractingDims, gemm.lhsContracting),
                                             b.ints(AttributeKey::RhsContractingDims, gemm.rhsContracting)};
  // A call with the mark has been a dot, or is one of a text that was told what its f32 is multiplied as.
  if (gemm.allowsTf32 && hasLibraryMark(call))
    attributes.push_back({AttributeKey::Algorithm, int64_t(DotAlgorithm::TF32TF32F32)});
  else if (constexpr auto highest = int64_t(Precision::Highest); gemm.isPrecise)
    attributes.push_back(b.ints(AttributeKey::OperandPrecision, {highest, highest}));
  return b.add(Opcode::Dot, Shape::array(type, call.resultShape().dims()),
               {x.plain(call.operand(0)), x.plain(call.operand(1))}, attributes);
}

/// -0 as 0, which radix sort takes them both for.
Value withoutNegativeZero(HloBuilder &b, Value value) {
  Value zero = b.scalar(value->shape().elementType(), 0);
  return b.infer(Opcode::Select, {b.compare(ComparisonDirection::Eq, value, zero), zero, value});
}

/// A computation of two keys, and two values if the call has some, that says whether the first key comes first.
HloComputation *keyOrder(HloModule &module, const HloInstruction &call, bool descending) {
  std::string name = std::string(descending ? "keys_down" : "keys_up");
  for (const HloInstruction *operand : call.operands())
    name += "." + text(operand->shape().elementType()).str();
  if (HloComputation *known = module.findComputation(name))
    return known;
  HloComputation *order = module.addComputationBefore(*module.computations().front(), name);
  HloBuilder b(*order);
  llvm::SmallVector<Value, 4> parameters;
  for (const HloInstruction *operand : call.operands())
    for (llvm::StringRef which : {"first", "second"})
      parameters.push_back(b.parameter(int64_t(parameters.size()), Shape::scalar(operand->shape().elementType()),
                                       parameters.size() < 2 ? which.str() : which.str() + "_value"));
  Value first = parameters[0], second = parameters[1];
  llvm::SmallVector<Attribute, 2> attributes = {
      {AttributeKey::Direction, int64_t(descending ? ComparisonDirection::Gt : ComparisonDirection::Lt)}};
  if (isFloat(first->shape().elementType())) {
    first = withoutNegativeZero(b, first);
    second = withoutNegativeZero(b, second);
    attributes.push_back({AttributeKey::Type, int64_t(ComparisonType::TotalOrder)});
  }
  order->setRoot(b.infer(Opcode::Compare, {first, second}, attributes));
  return order;
}

/// Scratch memory, which calls return after their results, is zero.
void addScratch(Expansion &x, const HloInstruction &call, llvm::SmallVectorImpl<Value> &results) {
  for (const Shape &scratch : call.shape().elements().drop_front(results.size()))
    results.push_back(x.result(x.filled(scratch.elementType(), scratch.dims(), 0), scratch));
}

} // namespace

HloInstruction *expandGemmCall(HloInstruction &call, HloRewriter &rewriter) {
  std::optional<GemmCall> gemm = readGemmCall(call);
  if (!gemm)
    return nullptr;
  Expansion x(rewriter.builder(), call);
  HloBuilder &b = x.builder();
  const Shape &shape = call.resultShape();
  const ElementType type = sumType(*gemm, shape.elementType());
  Value sum = product(x, *gemm, call, type);
  auto term = [&](unsigned operand) { return b.convert(x.plain(call.operand(operand)), type); };
  if (gemm->alpha != 1)
    sum = x.multiply(sum, x.like(sum, gemm->alpha));
  if (gemm->addend) {
    Value addend = term(gemm->addend);
    sum = x.add(sum, gemm->beta == 1 ? addend : x.multiply(addend, x.like(addend, gemm->beta)));
  }
  if (gemm->bias)
    sum = x.add(sum, b.broadcast(term(gemm->bias), sum->shape(), {int64_t(shape.rank()) - 1}));
  llvm::SmallVector<Value> results = {x.result(activated(x, gemm->activation, sum), shape)};
  if (!call.shape().isTuple())
    return results.front();
  if (gemm->hasAux)
    results.push_back(x.result(sum, shape));
  addScratch(x, call, results);
  return b.tuple(results);
}

HloInstruction *expandSortCall(HloInstruction &call, HloRewriter &rewriter) {
  std::optional<SortCall> sort = readSortCall(call);
  if (!sort)
    return nullptr;
  Expansion x(rewriter.builder(), call);
  HloBuilder &b = x.builder();
  llvm::SmallVector<Value> operands, results;
  llvm::SmallVector<Shape> shapes;
  for (Value operand : call.operands()) {
    operands.push_back(x.plain(operand));
    shapes.push_back(operands.back()->shape());
  }
  Value sorted = b.add(Opcode::Sort, operands.size() == 1 ? shapes.front() : Shape::tuple(shapes), operands,
                       {b.ints(AttributeKey::Dimensions, {int64_t(shapes.front().rank()) - 1}),
                        Attribute{AttributeKey::IsStable, true},
                        Attribute{AttributeKey::ToApply, keyOrder(call.parent()->module(), call, sort->descending)}});
  for (unsigned i = 0; i < operands.size(); ++i)
    results.push_back(x.result(operands.size() == 1 ? sorted : b.tupleElement(sorted, i), call.resultShape(i)));
  addScratch(x, call, results);
  return b.tuple(results);
}

} // namespace hloc
