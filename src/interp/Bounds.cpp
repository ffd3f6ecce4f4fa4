// What others see of bounds: admissible results of a module.

#include "hloc/interp/Bounds.h"

#include "hloc/interp/Disturbed.h"
#include "interp/BoundMachine.h"

namespace hloc {

namespace {

/// `count`: the arrays are of one dimension of this size, whatever the shape says.
void collect(const interp::Bounded &value, const Shape &shape, std::optional<int64_t> count,
             llvm::SmallVector<int64_t, 2> &path, std::vector<AdmissibleArray> &leaves) {
  if (shape.isTuple()) {
    for (unsigned i = 0; i < shape.elements().size(); ++i) {
      path.push_back(i);
      collect(value.elements[i], shape.element(i), count, path, leaves);
      path.pop_back();
    }
    return;
  }
  if (!shape.isArray())
    return;
  AdmissibleArray leaf;
  leaf.path = path;
  interp::Bounded array(value.value, value.bounds);
  if (count && array.array().numElements() != *count) // the same for all elements
    array = interp::repeated(array, *count);
  leaf.value = array.value.toLiteral(count ? Shape::array(shape.elementType(), {*count}) : shape);
  if (array.bounds) {
    leaf.low = array.bounds->low;
    leaf.high = array.bounds->high;
  }
  leaves.push_back(std::move(leaf));
}

bool admitsPart(double low, double high, double actual) {
  if (std::isnan(low) || std::isnan(high))
    return std::isnan(actual) || interp::isUnknown(low, high);
  if (actual == 0 && low == 0 && high == 0) // which zero it is
    return std::signbit(low) != std::signbit(high) || std::signbit(low) == std::signbit(actual);
  return actual >= low && actual <= high;
}

/// As admitsPart, of a type without infinity: what is beyond its numbers is a NaN, or the largest of them.
bool admitsNarrow(ElementType type, double low, double high, double actual) {
  const FloatFormat &format = floatFormat(type);
  const double ends[] = {decodeFloat(format, encodeFloat(format, low)), decodeFloat(format, encodeFloat(format, high))};
  if (std::isnan(actual))
    return std::isnan(ends[0]) || std::isnan(ends[1]) || interp::isUnknown(low, high);
  return admitsPart(low, high, actual) || (!std::isnan(ends[0]) && !std::isnan(ends[1]) && !format.hasNan() &&
                                           actual >= std::min(low, ends[0]) && actual <= std::max(high, ends[1]));
}

} // namespace

AdmissibleArray undecidedArray(llvm::ArrayRef<int64_t> path, const Literal &value) {
  interp::BoundsPtr unknown = interp::unknownBounds(value);
  AdmissibleArray array;
  array.path.assign(path.begin(), path.end());
  array.value = value;
  array.low = unknown->low;
  array.high = unknown->high;
  return array;
}

bool AdmissibleArray::isUndecided(int64_t element) const { return !isExact() && interp::isUnknown(low, high, element); }

bool AdmissibleArray::isBranched(int64_t element) const { return !isExact() && interp::isSpread(low, high, element); }

bool AdmissibleArray::admits(int64_t element, const Literal &actual, int64_t position) const {
  ElementType type = value.shape().elementType();
  auto at = size_t(element);
  if (isComplex(type)) {
    std::complex<double> x = actual.getComplex(position);
    std::complex<double> a = isExact() ? value.getComplex(element) : low.getComplex(element);
    std::complex<double> b = isExact() ? a : high.getComplex(element);
    return admitsPart(a.real(), b.real(), x.real()) && admitsPart(a.imag(), b.imag(), x.imag());
  }
  if (isFloat(type)) {
    const double a = isExact() ? value.getDouble(element) : low.data<double>()[at];
    const double b = isExact() ? a : high.data<double>()[at], x = actual.getDouble(position);
    return floatFormat(type).hasInfinity() ? admitsPart(a, b, x) : admitsNarrow(type, a, b, x);
  }
  if (isPred(type)) { // any other byte than 0 is true
    bool x = actual.getInt(position) != 0;
    bool least = (isExact() ? value : low).getInt(element) != 0,
         greatest = (isExact() ? value : high).getInt(element) != 0;
    return x >= least && x <= greatest;
  }
  int64_t x = actual.getInt(position), least = (isExact() ? value : low).getInt(element),
          greatest = (isExact() ? value : high).getInt(element);
  if (type == ElementType::U64)
    return uint64_t(x) >= uint64_t(least) && uint64_t(x) <= uint64_t(greatest);
  return x >= least && x <= greatest;
}

namespace {

bool isElementwise(const HloComputation &computation, llvm::ArrayRef<int64_t> dims) {
  return llvm::all_of(computation.instructions(), [&](const HloInstruction *instr) {
    if (instr->opcode() == Opcode::Tuple || instr->opcode() == Opcode::GetTupleElement)
      return true;
    if (!instr->shape().isArray() && instr->opcode() != Opcode::Fusion && instr->opcode() != Opcode::Call)
      return false;
    if (instr->shape().isArray() && instr->shape().rank() != 0 && instr->shape().dims() != dims)
      return false;
    const Opcode opcode = instr->opcode();
    if (opcode == Opcode::Constant)
      return instr->shape().rank() == 0;
    if (opcode == Opcode::Broadcast)
      return instr->operand(0)->shape().rank() == 0;
    if (opcode == Opcode::Fusion || opcode == Opcode::Call)
      return isElementwise(*instr->calledComputations()[0], dims);
    return opcode == Opcode::Parameter || opcode == Opcode::Copy || hloc::isElementwise(opcode);
  });
}

} // namespace

bool isElementwise(const HloModule &module) {
  const Shape &root = module.entry()->root()->shape();
  llvm::SmallVector<Shape::Leaf, 4> leaves = root.leaves();
  return !leaves.empty() && llvm::all_of(leaves, [&](const Shape::Leaf &leaf) {
    return leaf.shape.isArray() && leaf.shape.sameDims(leaves.front().shape);
  }) && isElementwise(*module.entry(), leaves.front().shape.dims());
}

namespace {

/// The elements with these linear indices as an array of one dimension.
Literal taken(const Literal &from, llvm::ArrayRef<int64_t> elements) {
  Literal made(Shape::array(from.shape().elementType(), {int64_t(elements.size())}));
  const size_t width = hostBytes(from.shape().elementType());
  for (auto [i, element] : llvm::enumerate(elements))
    std::copy_n(from.bytes().begin() + size_t(element) * width, width, made.mutableBytes().begin() + i * width);
  return made;
}

/// `elements`: of an elementwise module, those that are wanted.
llvm::FailureOr<interp::Bounded> runEntry(interp::BoundMachine &machine, const HloModule &module,
                                          llvm::ArrayRef<Literal> arguments,
                                          std::optional<llvm::ArrayRef<int64_t>> elements) {
  std::vector<interp::Bounded> values;
  for (const Literal &argument : arguments)
    values.emplace_back(elements && argument.shape().rank() != 0 ? interp::Value(taken(argument, *elements))
                                                                 : interp::Value::borrow(argument));
  if (!elements) {
    machine.meter().begin(*module.entry());
    return machine.run(*module.entry(), std::move(values));
  }
  Shape lift = Shape::array(ElementType::Pred, {int64_t(elements->size())});
  return machine.run(*module.entry(), std::move(values), &lift);
}

llvm::FailureOr<BoundedResult> boundsOf(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                        std::optional<llvm::ArrayRef<int64_t>> elements, Backend backend,
                                        DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  interp::BoundMachine machine(diagnostics, options, backend);
  llvm::FailureOr<interp::Bounded> result = runEntry(machine, module, arguments, elements);
  if (failed(result))
    return llvm::failure();
  BoundedResult made;
  llvm::SmallVector<int64_t, 2> path;
  std::optional<int64_t> count;
  if (elements)
    count = int64_t(elements->size());
  collect(*result, module.entry()->root()->shape(), count, path, made.leaves);
  made.mostLoopSteps = machine.mostLoopSteps();
  return made;
}

/// The value, where each array has `count` elements, if wanted: the same for all.
Literal literalOf(const interp::Bounded &value, const Shape &shape, std::optional<int64_t> count) {
  if (!shape.isTuple()) {
    if (!count || !shape.isArray())
      return value.value.toLiteral(shape);
    interp::Bounded array(value.value);
    if (array.array().numElements() != *count)
      array = interp::repeated(array, *count);
    return array.value.toLiteral(Shape::array(shape.elementType(), {*count}));
  }
  std::vector<Literal> elements;
  for (unsigned i = 0; i < shape.elements().size(); ++i)
    elements.push_back(literalOf(value.elements[i], shape.element(i), count));
  return Literal::tuple(std::move(elements));
}

llvm::FailureOr<DisturbedResult> disturbed(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                           std::optional<llvm::ArrayRef<int64_t>> elements, Backend backend,
                                           Disturbance disturbance, DiagnosticEngine &diagnostics,
                                           const InterpreterOptions &options) {
  interp::BoundMachine machine(diagnostics, options, backend);
  machine.drawValues(disturbance);
  llvm::FailureOr<interp::Bounded> result = runEntry(machine, module, arguments, elements);
  if (failed(result))
    return llvm::failure();
  std::optional<int64_t> count;
  if (elements)
    count = int64_t(elements->size());
  return DisturbedResult{literalOf(*result, module.entry()->root()->shape(), count), machine.isExample()};
}

} // namespace

llvm::FailureOr<BoundedResult> interpretBounds(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                               Backend backend, DiagnosticEngine &diagnostics,
                                               const InterpreterOptions &options) {
  return boundsOf(module, arguments, std::nullopt, backend, diagnostics, options);
}

llvm::FailureOr<BoundedResult> interpretBoundsAt(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                 llvm::ArrayRef<int64_t> elements, Backend backend,
                                                 DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  return boundsOf(module, arguments, elements, backend, diagnostics, options);
}

llvm::FailureOr<DisturbedResult> interpretDisturbed(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                    Backend backend, Disturbance disturbance,
                                                    DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  return disturbed(module, arguments, std::nullopt, backend, disturbance, diagnostics, options);
}

llvm::FailureOr<DisturbedResult> interpretDisturbedAt(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                                      llvm::ArrayRef<int64_t> elements, Backend backend,
                                                      Disturbance disturbance, DiagnosticEngine &diagnostics,
                                                      const InterpreterOptions &options) {
  return disturbed(module, arguments, elements, backend, disturbance, diagnostics, options);
}

} // namespace hloc
