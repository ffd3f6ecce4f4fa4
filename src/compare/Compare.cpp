#include "hloc/compare/Compare.h"

#include "compare/Report.h"
#include "compare/WeakCheck.h"
#include "hloc/support/Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hloc {

namespace {

bool isNan(const Literal &array, int64_t i) {
  ElementType type = array.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> value = array.getComplex(i);
    return std::isnan(value.real()) && std::isnan(value.imag());
  }
  return isFloat(type) && std::isnan(array.getDouble(i));
}

/// Bit for bit, or both are a NaN.
bool isSameElement(const Literal &a, const Literal &b, int64_t i) {
  return hasSameBytes(a, b, i) || (isNan(a, i) && isNan(b, i));
}

std::string admissibleText(const AdmissibleArray &bounds, int64_t at) {
  if (!bounds.isBranched(at))
    return "";
  return bounds.isUndecided(at) ? "anything" : rangeText(elementText(bounds.low, at), elementText(bounds.high, at));
}

/// Compares results with bounds, and what has none by the weaker check.
class BoundsComparison {
public:
  BoundsComparison(const Literal &expected, const Literal &actual, WeakCheck check, const Literal *proven)
      : expected(expected), actual(actual), proven(proven), check(check) {
    for (const Shape::Leaf &leaf : expected.shape().leaves()) {
      if (!leaf.shape.isArray())
        continue;
      leaves.emplace_back(leaf.index, leafOf(expected, leaf.index), leafOf(actual, leaf.index));
      paths.emplace_back().path.assign(leaf.index.begin(), leaf.index.end());
      usualSizes.push_back(check == WeakCheck::None ? 0 : typicalMagnitude(leaves.back().expected));
    }
  }

  /// One of the same results to which nothing has been added.
  BoundsComparison ofMore() const { return BoundsComparison(*this, NothingYet()); }

  /// `elements`: of which elements these are the bounds, in order; without any, of all. Several calls are for different
  /// elements.
  void add(const BoundedResult &bounds, llvm::ArrayRef<int64_t> elements) {
    mostLoopSteps = std::max(mostLoopSteps, bounds.mostLoopSteps);
    for (auto [number, array] : llvm::enumerate(bounds.leaves))
      for (int64_t at = 0, count = array.value.numElements(); at < count; ++at)
        compare(number, array, at, elements.empty() ? at : elements[size_t(at)]);
  }

  /// Adds what another one has found in elements behind those of this.
  void append(const BoundsComparison &later) {
    mostLoopSteps = std::max(mostLoopSteps, later.mostLoopSteps);
    for (auto [leaf, more] : llvm::zip_equal(leaves, later.leaves))
      leaf.append(more);
    llvm::append_range(open, later.open);
  }

  /// Of no element anything is known.
  void addUnknown() {
    BoundedResult bounds;
    for (const Shape::Leaf &leaf : expected.shape().leaves())
      if (leaf.shape.isArray())
        bounds.leaves.push_back(undecidedArray(leaf.index, leafOf(expected, leaf.index)));
    add(bounds, {});
  }

  CompareResult finish(const HloModule &module, llvm::ArrayRef<Literal> arguments, Backend backend,
                       const InterpreterOptions &options) {
    if (!open.empty() && check != WeakCheck::None) {
      llvm::SmallVector<int64_t> numOpen;
      for (const LeafReport &leaf : leaves)
        numOpen.push_back(leaf.numUndecided + leaf.numUndecidedEqual);
      checkWeakly({module, arguments, expected, actual, paths, numOpen, backend, options, mostLoopSteps,
                   check != WeakCheck::OpenOrWide, check != WeakCheck::OpenToReject, proven},
                  open);
    }
    for (const OpenElement &element : open)
      noteOpen(element);
    CompareResult result;
    summarise(leaves, result);
    return result;
  }

private:
  struct NothingYet {};
  BoundsComparison(const BoundsComparison &other, NothingYet)
      : expected(other.expected), actual(other.actual), proven(other.proven), paths(other.paths),
        usualSizes(other.usualSizes), check(other.check) {
    for (const LeafReport &leaf : other.leaves)
      leaves.emplace_back(leaf.path, leaf.expected, leaf.actual);
  }

  /// The element `i`, whose bounds are at `at`.
  void compare(size_t number, const AdmissibleArray &bounds, int64_t at, int64_t i) {
    LeafReport &leaf = leaves[number];
    const bool isBranched = bounds.isBranched(at), isUndecided = isBranched && bounds.isUndecided(at);
    auto text = [&] { return admissibleText(bounds, at); };
    leaf.numBranched += isBranched;
    if (isBranched && !isUndecided)
      leaf.noteBound(i, furtherEnd(bounds, at), text);
    if (hasSameBytes(leaf.expected, leaf.actual, i)) {
      leaf.numUndecidedEqual += isUndecided;
      return;
    }
    const bool isSame = isSameElement(leaf.expected, leaf.actual, i) ||
                        (proven && isSameElement(leafOf(*proven, leaf.path), leaf.actual, i));
    if (isUndecided && !isSame) {
      ++leaf.numUndecided;
      open.emplace_back().leaf = number;
      open.back().element = i;
      return;
    }
    leaf.numUndecidedEqual += isUndecided;
    const bool isAdmitted = bounds.admits(at, leaf.actual, i);
    if (isAdmitted && !isSame && check != WeakCheck::None && isWide(number, bounds, at)) {
      open.emplace_back().leaf = number;
      open.back().element = i;
      open.back().isBounded = true;
      open.back().range = text();
      return;
    }
    leaf.note(i, distance(leaf.expected, i, leaf.actual, i), text, isAdmitted, isSame);
  }

  /// Do its bounds reach further than a value may be off by that was computed with any care?
  bool isWide(size_t number, const AdmissibleArray &bounds, int64_t at) const {
    const double careful = check == WeakCheck::OpenOrWide ? 0x1p-10 : 0x1p10;
    const ElementType type = bounds.value.shape().elementType();
    if (!bounds.isBranched(at)) // it may still be a zero of the other sign
      return false;
    if (!isFloat(type))
      return check == WeakCheck::OpenOrWide;
    const double value = bounds.value.getDouble(at);
    if (std::isfinite(value) &&
        (std::isinf(bounds.low.data<double>()[at]) || std::isinf(bounds.high.data<double>()[at])))
      return true;
    return furtherEnd(bounds, at).difference > careful * std::max(std::fabs(value), usualSizes[number]);
  }

  /// Of the reference's value to the further end of its bounds, where that is a number.
  static Distance furtherEnd(const AdmissibleArray &bounds, int64_t at) {
    Distance furthest;
    for (const Literal *end : {&bounds.low, &bounds.high})
      if (Distance apart = distance(bounds.value, at, *end, at);
          std::isfinite(apart.difference) && apart.difference > furthest.difference)
        furthest = apart;
    return furthest;
  }

  void noteOpen(const OpenElement &element) {
    LeafReport &leaf = leaves[element.leaf];
    const Distance apart = distance(leaf.expected, element.element, leaf.actual, element.element);
    auto range = [&] { return element.range; };
    LeafReport::Kept kept{element.element, apart, element.range, 0};
    if (element.isBounded && element.verdict != OpenElement::Verdict::Rejected) {
      leaf.note(element.element, apart, range, /*passes=*/true, /*isSame=*/false);
      return;
    }
    switch (element.verdict) {
    case OpenElement::Verdict::Unknown:
      if (leaf.numUnknown++ == 0)
        leaf.firstUnknown = kept;
      return;
    case OpenElement::Verdict::Accepted:
      if (leaf.numWeak++ == 0)
        leaf.firstWeak = kept;
      leaf.note(element.element, apart, range, /*passes=*/true, /*isSame=*/false);
      return;
    case OpenElement::Verdict::Rejected:
      leaf.note(element.element, apart, range, /*passes=*/false, /*isSame=*/false);
    }
  }

  const Literal &expected, &actual, *proven;
  std::vector<LeafReport> leaves;
  std::vector<AdmissibleArray> paths; ///< of the leaves
  std::vector<double> usualSizes;     ///< magnitudes in these
  std::vector<OpenElement> open;
  WeakCheck check;
  uint64_t mostLoopSteps = 0;
};

/// Linear indices, of `count` from `begin` on, at which any of the arrays, which all have the same dimensions, differ
/// in their bytes.
std::vector<int64_t> differingElements(const Literal &expected, const Literal &actual, int64_t begin, int64_t count) {
  std::vector<bool> differs(size_t(count), false);
  for (const Shape::Leaf &leaf : expected.shape().leaves()) {
    const size_t width = hostBytes(leaf.shape.elementType());
    const uint8_t *a = leafOf(expected, leaf.index).bytes().data() + size_t(begin) * width;
    const uint8_t *b = leafOf(actual, leaf.index).bytes().data() + size_t(begin) * width;
    if (std::memcmp(a, b, differs.size() * width) == 0)
      continue;
    for (size_t i = 0; i < differs.size(); ++i, a += width, b += width)
      if (std::memcmp(a, b, width) != 0)
        differs[i] = true;
  }
  std::vector<int64_t> elements;
  for (size_t i = 0; i < differs.size(); ++i)
    if (differs[i])
      elements.push_back(begin + int64_t(i));
  return elements;
}

/// Of elements that each depend on their own arguments alone, only those that differ are looked at: a piece of the
/// arrays at a time, on all cores, so that their bounds take little memory.
class ElementwiseComparison {
public:
  ElementwiseComparison(const HloModule &module, llvm::ArrayRef<Literal> arguments, const Literal &expected,
                        const Literal &actual, Backend backend, DiagnosticEngine &diagnostics,
                        const InterpreterOptions &options)
      : module(module), arguments(arguments), expected(expected), actual(actual), backend(backend),
        diagnostics(diagnostics), options(options) {}

  llvm::LogicalResult run(BoundsComparison &comparison) {
    const int64_t count = expected.shape().leaves().front().shape.numElements();
    const int64_t atOnce = elementsOfPiece * int64_t(numWorkers(0)) * 8;
    if (options.progress)
      options.progress->begin(uint64_t(count));
    for (int64_t begin = 0; begin < count; begin += atOnce)
      if (failed(runSome(begin, std::min(count - begin, atOnce), comparison)))
        return llvm::failure();
    return llvm::success();
  }

private:
  static constexpr int64_t elementsOfPiece = int64_t(1) << 15;

  struct Piece {
    BoundsComparison comparison;
    DiagnosticEngine diagnostics;
    bool failed = false;
  };

  /// `count` elements from `begin` on. What is found is the same in whatever order the pieces are done.
  llvm::LogicalResult runSome(int64_t begin, int64_t count, BoundsComparison &comparison) {
    std::vector<Piece> pieces;
    for (int64_t at = 0; at < count; at += elementsOfPiece)
      pieces.push_back({comparison.ofMore(), {}});
    runInParallel(pieces.size(), numWorkers(0), [&](size_t number) {
      const int64_t at = int64_t(number) * elementsOfPiece;
      runPiece(begin + at, std::min(elementsOfPiece, count - at), pieces[number]);
    });
    for (Piece &piece : pieces) {
      if (piece.failed) {
        diagnostics.append(piece.diagnostics);
        return llvm::failure();
      }
      comparison.append(piece.comparison);
    }
    return llvm::success();
  }

  void runPiece(int64_t begin, int64_t count, Piece &piece) {
    InterpreterOptions quiet = options;
    quiet.progress = nullptr; // counts by pieces
    piece.diagnostics.setFile(diagnostics.file());
    const std::vector<int64_t> elements = differingElements(expected, actual, begin, count);
    if (!elements.empty()) {
      llvm::FailureOr<BoundedResult> bounds =
          interpretBoundsAt(module, arguments, elements, backend, piece.diagnostics, quiet);
      piece.failed = failed(bounds);
      if (!piece.failed)
        piece.comparison.add(*bounds, elements);
    }
    if (options.progress)
      options.progress->advance(uint64_t(count));
  }

  const HloModule &module;
  llvm::ArrayRef<Literal> arguments;
  const Literal &expected, &actual;
  Backend backend;
  DiagnosticEngine &diagnostics;
  const InterpreterOptions &options;
};

} // namespace

llvm::FailureOr<CompareResult> compareRun(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                          const Literal &expected, const Literal &actual, Backend backend,
                                          DiagnosticEngine &diagnostics, const InterpreterOptions &options,
                                          WeakCheck check, const Literal *proven) {
  if (std::optional<CompareResult> different = differentShapes(expected, actual))
    return *different;
  if (expected == actual) {
    CompareResult result;
    for (const Shape::Leaf &leaf : expected.shape().leaves())
      result.numElements += leaf.shape.isArray() ? leaf.shape.numElements() : 0;
    result.numCompared = result.numElements;
    return result;
  }
  BoundsComparison comparison(expected, actual, check, proven);
  if (!isElementwise(module) && check == WeakCheck::None) {
    // Of long loops bounds say little, and take long.
    constexpr uint64_t mostLoopSteps = 256;
    InterpreterOptions limited = options;
    limited.maxLoopSteps = std::min(limited.maxLoopSteps, mostLoopSteps);
    DiagnosticEngine unheard;
    if (llvm::FailureOr<BoundedResult> bounds = interpretBounds(module, arguments, backend, unheard, limited);
        succeeded(bounds))
      comparison.add(*bounds, {});
    else
      comparison.addUnknown();
    return comparison.finish(module, arguments, backend, options);
  }
  if (!isElementwise(module)) {
    llvm::FailureOr<BoundedResult> bounds = interpretBounds(module, arguments, backend, diagnostics, options);
    if (failed(bounds))
      return llvm::failure();
    comparison.add(*bounds, {});
    return comparison.finish(module, arguments, backend, options);
  }
  ElementwiseComparison pieces(module, arguments, expected, actual, backend, diagnostics, options);
  if (failed(pieces.run(comparison)))
    return llvm::failure();
  return comparison.finish(module, arguments, backend, options);
}

} // namespace hloc
