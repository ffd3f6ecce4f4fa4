// Ops that apply a computation to elements (hlo-text 6.5): reductions, windows, map, scan.
#include "ShapeInferenceContext.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hloc {

namespace {

/// size_out = 0 if padded < dilated window, else floor((padded - dilated window) / stride) + 1. Nothing on overflow or
/// negative padded size.
std::optional<int64_t> windowedSize(int64_t size, const WindowDim &dim) {
  int64_t dilated = 0, padded = 0, window = 0;
  if (size > 0 &&
      (llvm::MulOverflow(size - 1, dim.baseDilation, dilated) || llvm::AddOverflow(dilated, int64_t(1), dilated)))
    return std::nullopt;
  if (llvm::AddOverflow(dilated, dim.padLow, padded) || llvm::AddOverflow(padded, dim.padHigh, padded) || padded < 0)
    return std::nullopt;
  if (llvm::MulOverflow(dim.size - 1, dim.windowDilation, window) || llvm::AddOverflow(window, int64_t(1), window))
    return std::nullopt;
  return padded < window ? 0 : (padded - window) / dim.stride + 1;
}

/// Labels of the rules that reduce and reduce-window share.
struct ReductionRules {
  VerifierRule count, sameDims, init, callee;
};

bool checkReduction(InferenceContext &c, const ReductionRules &rules) {
  unsigned n = c.numOperands() / 2;
  if (c.numOperands() % 2) {
    c.fail(rules.count, "expects as many initial values as operands, but has " + llvm::Twine(c.numOperands()) +
                            " operands altogether");
    return false;
  }
  for (unsigned i = 0; i < n; ++i) {
    if (!c.operand(i).sameDims(c.operand(0))) {
      c.fail(rules.sameDims,
             "operands " + show(c.operand(0)) + " and " + show(c.operand(i)) + " differ in their dimensions");
      return false;
    }
    if (!scalarLike(c.operand(n + i), c.operand(i).elementType())) {
      c.fail(rules.init,
             "initial value " + show(c.operand(n + i)) + " is no scalar of the type of " + show(c.operand(i)));
      return false;
    }
  }
  const HloComputation *reducer = c.callee(AttributeKey::ToApply);
  bool fits = reducer && reducer->numParameters() == 2 * n && results(*reducer).size() == n;
  for (unsigned i = 0; fits && i < 2 * n; ++i)
    fits = reducer->parameters()[i] && scalarLike(reducer->parameters()[i]->shape(), c.operand(i % n).elementType());
  for (unsigned i = 0; fits && i < n; ++i)
    fits = givesWhatItTakes(*reducer, i) && scalarLike(results(*reducer)[i], c.operand(i).elementType());
  if (!fits)
    c.fail(rules.callee, "cannot reduce " + llvm::Twine(n) + " operands, the first " + show(c.operand(0)) + ", with " +
                             (reducer ? signature(*reducer) : std::string("nothing")));
  return fits;
}

/// One result of `sizes` for each of the reducer's results; a tuple if the reducer returns one, be it of one element.
std::optional<Shape> reducedShapes(InferenceContext &c, Dims sizes) {
  llvm::SmallVector<Shape, 4> shapes;
  const HloComputation &reducer = *c.callee(AttributeKey::ToApply);
  for (const Shape &scalar : results(reducer)) {
    std::optional<Shape> shape = c.array(scalar.elementType(), sizes);
    if (!shape)
      return std::nullopt;
    shapes.push_back(*shape);
  }
  return reducer.root()->shape().isTuple() ? Shape::tuple(shapes) : shapes.front();
}

/// (T[], T[]) -> result[], up to float precision if the result is no pred.
bool isScalarFunction(const HloComputation *callee, ElementType type, ElementType result) {
  return callee && takes(*callee, {Shape::scalar(type), Shape::scalar(type)}, /*looseFloats=*/true) &&
         scalarLike(callee->root()->shape(), result) && (isPred(result) || givesWhatItTakes(*callee, 0));
}

} // namespace

std::optional<DimVector> windowedSizes(InferenceContext &c, Dims sizes, const Window *window) {
  if (!window)
    return DimVector(sizes);
  if (window->dims.size() != sizes.size())
    return c.fail(VerifierRule::window_c1, "the window has " + llvm::Twine(window->dims.size()) + " dimensions for " +
                                               llvm::Twine(sizes.size()) + " of the operand");
  DimVector result;
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const WindowDim &dim = window->dims[i];
    if (dim.size < 1 || dim.stride < 1 || dim.baseDilation < 1 || dim.windowDilation < 1)
      return c.fail(VerifierRule::window_c2,
                    "size, stride or dilation of window dimension " + llvm::Twine(i) + " is less than 1");
    std::optional<int64_t> size = windowedSize(sizes[i], dim);
    if (!size)
      return c.fail(VerifierRule::window_c3, "padding or dilation of window dimension " + llvm::Twine(i) +
                                                 " gives no valid size for " + llvm::Twine(sizes[i]));
    result.push_back(*size);
  }
  return result;
}

std::optional<Shape> inferReduce(InferenceContext &c) {
  if (!checkReduction(
          c, {VerifierRule::reduce_c1, VerifierRule::reduce_c2, VerifierRule::reduce_c3, VerifierRule::reduce_c5}))
    return std::nullopt;
  const Shape &x = c.operand(0);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (!distinctInRange(dims, x.rank()))
    return c.fail(VerifierRule::reduce_c4, "dimensions " + show(dims) + " are not distinct dimensions of " + show(x));
  DimVector kept;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(x.dim(i));
  return reducedShapes(c, kept);
}

std::optional<Shape> inferReduceWindow(InferenceContext &c) {
  if (!checkReduction(c, {VerifierRule::reduce_window_c1, VerifierRule::reduce_window_c2,
                          VerifierRule::reduce_window_c3, VerifierRule::reduce_window_c4}))
    return std::nullopt;
  std::optional<DimVector> sizes = windowedSizes(c, c.operand(0).dims(), c.window());
  return sizes ? reducedShapes(c, *sizes) : std::nullopt;
}

std::optional<Shape> inferSelectAndScatter(InferenceContext &c) {
  const Shape &x = c.operand(0), &source = c.operand(1), &init = c.operand(2);
  std::optional<DimVector> sizes = windowedSizes(c, x.dims(), c.window());
  if (!sizes)
    return std::nullopt;
  if (source.dims() != Dims(*sizes))
    return c.fail(VerifierRule::select_and_scatter_c1, "the source " + show(source) + " does not have the dimensions " +
                                                           show(Dims(*sizes)) + " of the windowed operand");
  if (!scalarLike(init, source.elementType()))
    return c.fail(VerifierRule::select_and_scatter_c2,
                  "initial value " + show(init) + " is no scalar of the type of " + show(source));
  const HloComputation *select = c.callee(AttributeKey::Select), *scatter = c.callee(AttributeKey::Scatter);
  if (!isScalarFunction(select, x.elementType(), ElementType::Pred))
    return c.fail(VerifierRule::select_and_scatter_c3,
                  "cannot select from " + show(x) + " with " + (select ? signature(*select) : std::string("nothing")));
  if (!isScalarFunction(scatter, source.elementType(), source.elementType()))
    return c.fail(VerifierRule::select_and_scatter_c4, "cannot combine " + show(source) + " with " +
                                                           (scatter ? signature(*scatter) : std::string("nothing")));
  return InferenceContext::elementwise(x, scatter->root()->shape().elementType());
}

std::optional<Shape> inferMap(InferenceContext &c) {
  const HloComputation *callee = c.callee(AttributeKey::ToApply);
  llvm::SmallVector<Shape, 4> scalars;
  for (unsigned i = 0; i < c.numOperands(); ++i) {
    if (!c.operand(i).sameDims(c.operand(0)))
      return c.fail(VerifierRule::map_c1,
                    "operands " + show(c.operand(0)) + " and " + show(c.operand(i)) + " differ in their dimensions");
    scalars.push_back(Shape::scalar(c.operand(i).elementType()));
  }
  Dims sizes = c.numOperands() ? c.operand(0).dims() : Dims();
  if (c.has(AttributeKey::Dimensions)) {
    Dims dims = c.ints(AttributeKey::Dimensions);
    bool allInOrder = dims.size() <= sizes.size();
    for (unsigned i = 0; allInOrder && i < dims.size(); ++i)
      allInOrder = dims[i] == i;
    if (!allInOrder)
      return c.fail(VerifierRule::map_c2, "dimensions " + show(dims) + " are not the first of " +
                                              llvm::Twine(sizes.size()) + " dimensions in order");
  }
  if (!callee || !takes(*callee, scalars) || !callee->root()->shape().isScalar())
    return c.fail(VerifierRule::map_c3, "cannot apply " + (callee ? signature(*callee) : std::string("nothing")) +
                                            " to " + llvm::Twine(c.numOperands()) + " operands elementwise");
  return c.array(callee->root()->shape().elementType(), sizes);
}

std::optional<Shape> inferScan(InferenceContext &c) {
  int64_t carries = c.integer(AttributeKey::NumCarries, -1);
  if (carries < 0 || carries > c.numOperands())
    return c.fail(VerifierRule::scan_c1,
                  "num_carries=" + llvm::Twine(carries) + " with " + llvm::Twine(c.numOperands()) + " operands");
  unsigned inputs = c.numOperands() - carries;
  Dims dims = c.ints(AttributeKey::Dimensions);
  bool named = dims.size() == 1 && dims[0] >= 0 && inputs > 0;
  for (unsigned i = 0; named && i < inputs; ++i)
    named = dims[0] < c.operand(i).rank() && c.operand(i).dim(dims[0]) == c.operand(0).dim(dims[0]);
  if (!named)
    return c.fail(VerifierRule::scan_c2,
                  "dimensions " + show(dims) + " must name one dimension, of equal size in all inputs");
  llvm::SmallVector<Shape, 4> parameters;
  for (unsigned i = 0; i < inputs; ++i) {
    DimVector sizes(c.operand(i).dims());
    sizes.erase(sizes.begin() + dims[0]);
    parameters.push_back(c.operand(i).withDims(sizes));
  }
  llvm::append_range(parameters, c.operandShapes(inputs, c.numOperands()));
  const HloComputation *callee = c.callee(AttributeKey::ToApply);
  auto misfit = [&] {
    return c.fail(VerifierRule::scan_c3, "cannot scan " + llvm::Twine(inputs) + " inputs and " + llvm::Twine(carries) +
                                             " carries with " + (callee ? signature(*callee) : std::string("nothing")));
  };
  if (!callee || !takes(*callee, parameters))
    return misfit();
  llvm::SmallVector<Shape, 4> shapes = results(*callee);
  if (static_cast<int64_t>(shapes.size()) < carries)
    return misfit();
  unsigned outputs = shapes.size() - carries;
  for (unsigned i = 0; i < shapes.size(); ++i) {
    if (i >= outputs) {
      if (!shapes[i].compatible(c.operand(inputs + i - outputs)))
        return misfit();
      continue;
    }
    if (!shapes[i].isArray() || dims[0] > shapes[i].rank())
      return misfit();
    DimVector sizes(shapes[i].dims());
    sizes.insert(sizes.begin() + dims[0], c.operand(0).dim(dims[0]));
    std::optional<Shape> stacked = c.array(shapes[i].elementType(), sizes);
    if (!stacked)
      return std::nullopt;
    shapes[i] = *stacked;
  }
  // One result may be declared as it is or as a tuple of one.
  bool declaresTuple = c.declared().isTuple() && !c.isOmitted();
  return callee->root()->shape().isTuple() || declaresTuple ? Shape::tuple(shapes) : shapes.front();
}

} // namespace hloc
