#include "compare/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

namespace hloc {

namespace {

constexpr size_t maxWorst = 10;

std::string number(double value, ElementType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(type == ElementType::F64 ? "%.17g" : "%.9g", value);
  return text;
}

std::string element(const Literal &literal, int64_t i) {
  ElementType type = literal.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> value = literal.getComplex(i);
    ElementType part = componentType(type);
    return "(" + number(value.real(), part) + ", " + number(value.imag(), part) + ")";
  }
  if (isFloat(type))
    return number(literal.getDouble(i), type);
  if (isPred(type))
    return literal.getInt(i) ? "true" : "false";
  return type == ElementType::U64 ? std::to_string(literal.getBits(i)) : std::to_string(literal.getInt(i));
}

void printIndex(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> index, char open, char close) {
  os << open;
  llvm::interleave(index, os, ",");
  os << close;
}

void printMismatch(llvm::raw_ostream &os, const Mismatch &mismatch, bool isFloatLike) {
  os << "    ";
  printIndex(os, mismatch.index, '[', ']');
  os << "  expected " << mismatch.expected << "  got " << mismatch.actual << "  difference "
     << llvm::format("%.3g", mismatch.difference);
  if (isFloatLike)
    os << llvm::format(" (%.3g ULP)", mismatch.ulps);
  if (!mismatch.admissible.empty())
    os << "  admissible " << mismatch.admissible;
  os << "\n";
}

void printTolerance(llvm::raw_ostream &os, const Tolerance &t, bool isFloatLike) {
  os << "  allowed: ";
  if (!isFloatLike)
    os << "difference of " << t.integers;
  else
    os << llvm::format("%.3g ULP, or %.3g of the value, or %.3g", t.ulps, t.relative, t.absolute);
  if (t.ofLargest > 0)
    os << llvm::format(", or %.3g of the largest", t.ofLargest);
  os << "\n";
}

void printHistogram(llvm::raw_ostream &os, const LeafReport &leaf, bool isFloatLike) {
  os << "  differing elements by " << (isFloatLike ? "ULPs" : "size of the difference") << ":\n";
  for (unsigned i = 0; i < LeafReport::numDecades; ++i) {
    if (leaf.decades[i] == 0)
      continue;
    if (i + 1 == LeafReport::numDecades)
      os << "    NaN or infinity on one side";
    else if (i + 2 == LeafReport::numDecades)
      os << llvm::format("    1e%u or more", i);
    else
      os << llvm::format("    below 1e%u", i + 1);
    os << ": " << leaf.decades[i] << "\n";
  }
}

void printLeaf(llvm::raw_ostream &os, const LeafReport &leaf) {
  ElementType type = leaf.expected.shape().elementType();
  bool isFloatLike = isFloat(type) || isComplex(type);
  os << "result ";
  printIndex(os, leaf.path, '{', '}');
  os << " " << leaf.expected.shape().toString(false) << ": " << leaf.numMismatches << " of " << leaf.numElements
     << " elements differ\n";
  if (leaf.tolerance)
    printTolerance(os, *leaf.tolerance, isFloatLike);
  os << "  first:\n";
  printMismatch(os, leaf.mismatch(leaf.first.element, leaf.first.difference, leaf.first.ulps), isFloatLike);
  os << "  worst:\n";
  for (const LeafReport::Kept &kept : leaf.worst)
    printMismatch(os, leaf.mismatch(kept.element, kept.difference, kept.ulps), isFloatLike);
  printHistogram(os, leaf, isFloatLike);
}

} // namespace

void LeafReport::add(int64_t element, double difference, double ulps) {
  if (numMismatches++ == 0)
    first = {element, difference, ulps};
  unsigned decade = numDecades - 1;
  if (std::isfinite(ulps))
    decade = ulps < 10 ? 0 : std::min(unsigned(std::log10(ulps)), numDecades - 2);
  ++decades[decade];
  if (worst.size() == maxWorst && ulps <= worst.back().ulps)
    return;
  Kept kept{element, difference, ulps};
  worst.insert(llvm::upper_bound(worst, kept, [](const Kept &a, const Kept &b) { return a.ulps > b.ulps; }), kept);
  if (worst.size() > maxWorst)
    worst.pop_back();
}

int64_t LeafReport::boundOf(int64_t element) const {
  return elements.empty() ? element : int64_t(llvm::lower_bound(elements, element) - elements.begin());
}

Mismatch LeafReport::mismatch(int64_t at, double difference, double ulps) const {
  Mismatch made;
  made.leaf = path;
  made.expected = element(expected, at);
  made.actual = element(actual, at);
  made.difference = difference;
  made.ulps = ulps;
  if (int64_t bound = boundOf(at); bounds && bounds->isBranched(bound))
    made.admissible = bounds->isUndecided(bound)
                          ? "anything"
                          : "[" + element(bounds->low, bound) + ", " + element(bounds->high, bound) + "]";
  const Shape &shape = expected.shape();
  made.index.resize(shape.rank());
  for (unsigned i = shape.rank(); i-- > 0; at /= shape.dim(i))
    made.index[i] = at % shape.dim(i);
  return made;
}

void CompareResult::absorb(const CompareResult &other) {
  numElements = other.numElements;
  largestUlps = std::max(largestUlps, other.largestUlps);
  widestBound = std::max(widestBound, other.widestBound);
  numBranched += other.numBranched;
  numUndecided += other.numUndecided;
  if (other.furthest && (!furthest || other.furthest->ulps > furthest->ulps))
    furthest = other.furthest;
  if (!firstUndecided)
    firstUndecided = other.firstUndecided;
}

std::string describeAgreement(const CompareResult &result) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto place = [&](const Mismatch &at) {
    os << " at ";
    if (!at.leaf.empty())
      printIndex(os, at.leaf, '{', '}');
    printIndex(os, at.index, '[', ']');
  };
  if (!result.furthest) {
    os << "bit for bit";
  } else {
    os << llvm::format("largest difference %.3g ULP", result.furthest->ulps);
    place(*result.furthest);
    os << " (expected " << result.furthest->expected << ", got " << result.furthest->actual;
    if (!result.furthest->admissible.empty())
      os << ", admissible " << result.furthest->admissible;
    os << ")";
  }
  if (result.numBranched)
    os << llvm::format("; widest bound %.3g ULP; ", result.widestBound) << result.numBranched
       << " with more than one admissible value";
  if (result.numUndecided) {
    os << ", " << result.numUndecided << " of them undecided, first";
    place(*result.firstUndecided);
    os << " (expected " << result.firstUndecided->expected << ", got " << result.firstUndecided->actual << ")";
  }
  return text;
}

void summarise(llvm::ArrayRef<LeafReport> leaves, CompareResult &result) {
  llvm::raw_string_ostream os(result.report);
  for (const LeafReport &leaf : leaves) {
    result.numElements += leaf.numElements;
    result.largestUlps = std::max(result.largestUlps, leaf.largestUlps);
    result.widestBound = std::max(result.widestBound, leaf.widestBound);
    result.numBranched += leaf.numBranched;
    result.numUndecided += leaf.numUndecided;
    if (leaf.furthest.element >= 0 && (!result.furthest || leaf.furthest.ulps > result.furthest->ulps))
      result.furthest = leaf.mismatch(leaf.furthest.element, leaf.furthest.difference, leaf.furthest.ulps);
    if (leaf.firstUndecided >= 0 && !result.firstUndecided)
      result.firstUndecided = leaf.mismatch(leaf.firstUndecided, 0, 0);
    if (leaf.numMismatches == 0)
      continue;
    if (result.numMismatches == 0)
      result.first = leaf.mismatch(leaf.first.element, leaf.first.difference, leaf.first.ulps);
    result.numMismatches += leaf.numMismatches;
    for (const LeafReport::Kept &kept : leaf.worst) {
      Mismatch made = leaf.mismatch(kept.element, kept.difference, kept.ulps);
      auto worse = [](const Mismatch &a, const Mismatch &b) { return a.ulps > b.ulps; };
      result.worst.insert(llvm::upper_bound(result.worst, made, worse), made);
    }
    printLeaf(os, leaf);
  }
  if (result.worst.size() > maxWorst)
    result.worst.resize(maxWorst);
}

} // namespace hloc
