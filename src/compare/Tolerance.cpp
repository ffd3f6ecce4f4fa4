// The tolerance policy. For every value of the module a Budget: in which precision it may be wrong, and by how much.
//
// A backend may evaluate a float op with another (documented) accuracy, keep intermediate results of bf16 and f16 in
// f32, contract a multiply and an add, and sum in another order. Each float op on the way to a result therefore adds
// its own error, in units of the last place of its type; sums add the logarithm of their length. A later subtraction
// may cancel what was right and leave what was wrong, which no budget of a result can say.

#include "hloc/compare/Compare.h"

#include "llvm/ADT/ScopeExit.h"

#include <algorithm>
#include <cmath>

namespace hloc {

namespace {

/// How wrong a value may be.
struct Budget {
  double error = 0;                    ///< relative; 0: exact
  const HloInstruction *why = nullptr; ///< largest contribution
  double largestShare = 0;

  void join(const Budget &other) {
    error = std::max(error, other.error);
    if (other.largestShare > largestShare) {
      why = other.why;
      largestShare = other.largestShare;
    }
  }
};

unsigned significandBits(ElementType type) {
  if (isComplex(type))
    type = componentType(type);
  return isFloat(type) ? floatFormat(type).mantissaBits + 1u : 64u;
}

/// Distance of neighbouring numbers, relative.
double ulp(unsigned precision) { return std::ldexp(1.0, 1 - int(precision)); }

bool isFloatLike(const Shape &shape) {
  return shape.isArray() && (isFloat(shape.elementType()) || isComplex(shape.elementType()));
}

/// ULPs a function may be off, for f32 on a GPU: XLA's own acceptance bounds and NVIDIA's tables, plus one rounding.
double elementwiseCost(Opcode opcode) {
  switch (opcode) {
  case Opcode::Abs:
  case Opcode::Negate:
  case Opcode::Maximum:
  case Opcode::Minimum:
  case Opcode::Clamp:
  case Opcode::Select:
  case Opcode::Floor:
  case Opcode::Ceil:
  case Opcode::RoundNearestAfz:
  case Opcode::RoundNearestEven:
  case Opcode::Sign:
  case Opcode::Real:
  case Opcode::Imag:
  case Opcode::Complex:
  case Opcode::IsFinite:
  case Opcode::Compare:
  case Opcode::ReducePrecision:
  case Opcode::Remainder:
    return 0;
  case Opcode::Add:
  case Opcode::Subtract:
  case Opcode::Multiply:
    return 1;
  case Opcode::Exponential:
  case Opcode::Logistic:
    return 8;
  case Opcode::Power:
    return 16;
  case Opcode::Sinh:
  case Opcode::Cosh:
  case Opcode::Tan:
  case Opcode::Tanh:
  case Opcode::Acosh:
  case Opcode::Asinh:
  case Opcode::Atanh:
  case Opcode::Atan2:
    return 5;
  default:
    return 3;
  }
}

/// Sums may be taken in any order. A tree rounds log2(n) times; one term after the other, the roundings of a random
/// walk add up to about 0.35 sqrt(n) ULP of where it ends typically; some ends are nearer to zero, and some errors
/// larger. Types that could not carry such an error are summed in wider ones.
double sumCost(const HloInstruction &sum, double terms) {
  double tree = 2 * std::log2(std::max(terms, 2.0));
  bool wide = bitWidth(componentType(sum.shape().elementType())) >= 32;
  return 2 + (wide ? std::max(tree, 2.5 * std::sqrt(terms)) : tree);
}

/// A library's convolution: only its custom calls have these attributes.
bool isConvolutionCall(const HloInstruction &instr) {
  return instr.opcode() == Opcode::CustomCall && instr.has(AttributeKey::DimLabels) && instr.numOperands() >= 2 &&
         instr.operand(1)->shape().isArray();
}

/// Number of terms summed into one element of a result; 1 if the op is not a sum.
double numTerms(const HloInstruction &instr) {
  auto windowSize = [&] {
    double size = 1;
    for (const WindowDim &dim : instr.windowOr(0).dims)
      size *= double(dim.size);
    return size;
  };
  auto ratio = [&](unsigned operand) {
    double results =
        instr.shape().isArray() ? double(instr.shape().numElements()) : double(instr.shape().element(0).numElements());
    return double(instr.operand(operand)->shape().numElements()) / std::max(results, 1.0);
  };
  switch (instr.opcode()) {
  case Opcode::Reduce:
    return ratio(0);
  case Opcode::Scatter:
    return 1 + ratio(instr.numOperands() - 1);
  case Opcode::ReduceWindow:
  case Opcode::SelectAndScatter:
    return windowSize();
  case Opcode::CustomCall:
    if (!isConvolutionCall(instr))
      return 1;
    [[fallthrough]];
  case Opcode::Convolution: {
    const Shape &kernel = instr.operand(1)->shape();
    return double(kernel.numElements());
  }
  case Opcode::Dot:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot: {
    double depth = 1;
    for (int64_t dim : instr.ints(AttributeKey::LhsContractingDims))
      depth *= double(instr.operand(0)->shape().dim(unsigned(dim)));
    return depth;
  }
  case Opcode::BatchNormTraining:
  case Opcode::BatchNormGrad:
  case Opcode::Fft:
  case Opcode::Cholesky:
  case Opcode::TriangularSolve:
    return double(instr.operand(0)->shape().numElements());
  default:
    return 1;
  }
}

/// Parts of complex numbers come from several roundings.
double complexCost(Opcode opcode) {
  switch (opcode) {
  case Opcode::Sign:
  case Opcode::Abs:
  case Opcode::Multiply:
    return 3;
  case Opcode::Divide:
    return 6;
  default:
    return elementwiseCost(opcode);
  }
}

/// Error an op adds by itself, in ULPs of its type.
double ownCost(const HloInstruction &instr, bool operandsAreExact) {
  bool anyFloat = isFloatLike(instr.shape()) || instr.shape().isTuple();
  for (const HloInstruction *operand : instr.operands())
    anyFloat |= isFloatLike(operand->shape());
  if (!anyFloat)
    return 0;
  double terms = numTerms(instr);
  if (isConvolutionCall(instr))
    return 4 + 2 * std::log2(std::max(terms, 2.0));
  switch (family(instr.opcode())) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
    return isComplex(instr.operand(0)->shape().elementType()) ? complexCost(instr.opcode())
                                                              : elementwiseCost(instr.opcode());
  case OpcodeFamily::Convert: // fewer bits: an earlier error may turn the rounding the other way
    if (instr.operand(0)->shape().elementType() == ElementType::F64 && bitWidth(instr.shape().elementType()) == 16)
      return 1; // rounded once by some, twice by those that go through f32
    return operandsAreExact || significandBits(instr.shape().elementType()) >=
                                   significandBits(instr.operand(0)->shape().elementType())
               ? 0
               : 1;
  case OpcodeFamily::Structured:
    break;
  default:
    return 0;
  }
  switch (instr.opcode()) {
  case Opcode::Sort:
  case Opcode::TopK:
  case Opcode::Map:
  case Opcode::Scan:
    return 0;
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
  case Opcode::SelectAndScatter:
  case Opcode::Scatter: { // a maximum or an overwrite costs nothing
    for (const HloComputation *callee : instr.calledComputations())
      for (const HloInstruction *inner : callee->instructions())
        if (isFloatLike(inner->shape()) && elementwiseCost(inner->opcode()) > 0 && isElementwise(inner->opcode()) &&
            inner->opcode() != Opcode::Convert)
          return sumCost(*inner, terms);
    return 0;
  }
  default:
    return 4 + 2 * std::log2(std::max(terms, 2.0));
  }
}

unsigned precisionOf(const HloInstruction &instr) {
  unsigned precision = 64;
  for (const Shape::Leaf &leaf : instr.shape().leaves())
    if (leaf.shape.isArray())
      precision = std::min(precision, significandBits(leaf.shape.elementType()));
  for (const HloInstruction *operand : instr.operands())
    if (operand->shape().isArray() && isFloatLike(operand->shape()) && !isFloatLike(instr.shape()))
      precision = std::min(precision, significandBits(operand->shape().elementType()));
  return precision;
}

/// `ownCost`, relative.
double ownError(const HloInstruction &instr, bool operandsAreExact) {
  double cost = ownCost(instr, operandsAreExact);
  if (cost == 0)
    return 0;
  unsigned precision = precisionOf(instr);
  if (precision < 24) // evaluated and summed in f32, then rounded; a few roundings may be avoided or doubled
    cost = 1 + std::log2(cost) / 2;
  return cost * ulp(precision);
}

/// Budgets of the leaves of every value of a computation, callees included. Conservative: a call's results depend on
/// all of its operands, a loop's on everything in it.
class Budgets {
public:
  using Leaves = llvm::SmallVector<Budget, 1>;

  Leaves run(const HloComputation &computation, llvm::ArrayRef<Leaves> arguments) {
    if (depth == maxDepth) // nothing runs calls nested this deeply
      return Leaves(numLeaves(computation.root()->shape()));
    ++depth;
    auto leave = llvm::scope_exit([&] { --depth; });
    std::vector<Leaves> values(computation.instructions().size());
    for (const HloInstruction *instr : computation.instructions()) {
      if (instr->opcode() == Opcode::Parameter) {
        values[instr->id()] = arguments[size_t(instr->parameterNumber())];
        continue;
      }
      llvm::SmallVector<const Leaves *, 3> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(&values[operand->id()]);
      values[instr->id()] = evaluate(*instr, operands);
    }
    return values[computation.root()->id()];
  }

private:
  static constexpr unsigned maxDepth = 500;
  unsigned depth = 0;

  static unsigned numLeaves(const Shape &shape) { return shape.leaves().size(); }

  Leaves evaluate(const HloInstruction &instr, llvm::ArrayRef<const Leaves *> operands) {
    switch (instr.opcode()) {
    case Opcode::Tuple: {
      Leaves all;
      for (const Leaves *operand : operands)
        all.append(*operand);
      return all;
    }
    case Opcode::GetTupleElement: {
      unsigned start = 0;
      auto index = unsigned(instr.intOr(AttributeKey::Index, 0));
      for (unsigned i = 0; i < index; ++i)
        start += numLeaves(instr.operand(0)->shape().element(i));
      return Leaves(operands[0]->begin() + start, operands[0]->begin() + start + numLeaves(instr.shape()));
    }
    case Opcode::Call:
    case Opcode::Fusion: {
      std::vector<Leaves> arguments;
      for (const Leaves *operand : operands)
        arguments.push_back(*operand);
      return run(*instr.calledComputations()[0], arguments);
    }
    case Opcode::OptimizationBarrier:
    case Opcode::Copy:
      return *operands[0];
    default:
      return Leaves(numLeaves(instr.shape()), combined(instr, operands));
    }
  }

  Budget combined(const HloInstruction &instr, llvm::ArrayRef<const Leaves *> operands) {
    Budget budget;
    for (const Leaves *operand : operands)
      for (const Budget &leaf : *operand)
        budget.join(leaf);
    if (instr.opcode() == Opcode::While || instr.opcode() == Opcode::Conditional)
      addCallees(instr, budget);
    double share = ownError(instr, budget.error == 0);
    if (share == 0)
      return budget;
    budget.error += share;
    if (share > budget.largestShare) {
      budget.largestShare = share;
      budget.why = &instr;
    }
    return budget;
  }

  /// A loop may run any number of times: its body's budget counts tenfold.
  void addCallees(const HloInstruction &instr, Budget &budget) {
    Budget inside;
    for (const HloComputation *callee : instr.calledComputations()) {
      std::vector<Leaves> arguments;
      for (const HloInstruction *parameter : callee->parameters())
        arguments.push_back(Leaves(numLeaves(parameter->shape())));
      for (const Budget &leaf : run(*callee, arguments))
        inside.join(leaf);
    }
    double before = budget.error, factor = instr.opcode() == Opcode::While ? 10 : 1;
    budget.join(inside);
    budget.error = before + factor * inside.error;
  }
};

Tolerance toleranceOf(const Budget &budget, const Shape &shape) {
  Tolerance tolerance;
  if (budget.error == 0 || !shape.isArray())
    return tolerance;
  if (budget.why)
    tolerance.why = describe(*budget.why);
  if (!isFloatLike(shape)) { // a float on the way may fall on the other side of a rounding boundary
    tolerance.integers = isPred(shape.elementType()) ? 0 : 1;
    return tolerance;
  }
  ElementType type = isComplex(shape.elementType()) ? componentType(shape.elementType()) : shape.elementType();
  double own = ulp(significandBits(type));
  double error = std::min(budget.error, 0.1);
  if (error < own) // the last rounding may go the other way
    error = own;
  tolerance.ulps = error / own;
  tolerance.relative = error;
  tolerance.absolute = floatFormat(type).exponentBits >= 8 ? 1e-37 : 0; // subnormals may be flushed
  tolerance.overflowMayDiffer = true;
  return tolerance;
}

} // namespace

/// Arguments are exact.
static Budgets::Leaves budgetsOf(const HloModule &module, Budgets &budgets) {
  std::vector<Budgets::Leaves> arguments;
  for (const HloInstruction *parameter : module.entry()->parameters())
    arguments.push_back(Budgets::Leaves(parameter->shape().leaves().size()));
  return budgets.run(*module.entry(), arguments);
}

std::vector<Tolerance> toleranceFor(const HloModule &module) {
  Budgets computation;
  Budgets::Leaves budgets = budgetsOf(module, computation);
  std::vector<Tolerance> tolerances;
  for (const Shape::Leaf &leaf : module.entry()->root()->shape().leaves())
    tolerances.push_back(toleranceOf(budgets[tolerances.size()], leaf.shape));
  return tolerances;
}

Tolerance toleranceFor(const HloModule &module, unsigned resultLeaf) { return toleranceFor(module)[resultLeaf]; }

std::optional<Tolerance> parseTolerance(llvm::StringRef text) {
  Tolerance tolerance;
  tolerance.why = "--tolerance";
  if (text == "exact")
    return tolerance;
  double both = 0;
  if (!text.getAsDouble(both) && both >= 0) {
    tolerance.absolute = tolerance.relative = both;
    return tolerance;
  }
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [key, value] = part.split('=');
    double *bound = key == "abs"       ? &tolerance.absolute
                    : key == "rel"     ? &tolerance.relative
                    : key == "ulps"    ? &tolerance.ulps
                    : key == "largest" ? &tolerance.ofLargest
                                       : nullptr;
    bool bad = key == "int" ? value.getAsInteger(10, tolerance.integers) || tolerance.integers < 0
                            : !bound || value.getAsDouble(*bound) || *bound < 0;
    if (bad)
      return std::nullopt;
  }
  return tolerance;
}

} // namespace hloc
