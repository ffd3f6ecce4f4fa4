#include "compare/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace hloc {

namespace {

constexpr size_t maxWorst = 10;

std::string number(double value, ElementType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(type == ElementType::F64 ? "%.17g" : "%.9g", value);
  return text;
}

void printIndex(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> index, char open, char close) {
  os << open;
  llvm::interleave(index, os, ",");
  os << close;
}

bool isFloatLike(const LeafReport &leaf) {
  ElementType type = leaf.expected.shape().elementType();
  return isFloat(type) || isComplex(type);
}

/// Units in the last place of a tiny number say little of how far another one is from it, and nothing of how far the
/// next one to zero is: there the difference is also, or only, given beside the largest element.
constexpr double mostUlpsAlone = 1e3, mostUlps = 1e6;

std::string ulpsText(double ulps) { return llvm::formatv("{0} ULP", llvm::format("%.3g", ulps)); }

/// `3 ULP`, `2e+03 ULP, 1e-07 of the largest element`, `0.03 of the largest element`; empty where nothing can be said.
std::string distanceText(const Mismatch &mismatch) {
  const bool hasUlps = mismatch.ulps > 0 && mismatch.ulps <= mostUlps;
  if (hasUlps && mismatch.ulps <= mostUlpsAlone)
    return ulpsText(mismatch.ulps);
  std::string text = hasUlps ? ulpsText(mismatch.ulps) : "";
  if (mismatch.ulps > 0 && mismatch.ofLargest > 0 && std::isfinite(mismatch.ofLargest))
    text +=
        llvm::formatv("{0}{1} of the largest element", hasUlps ? ", " : "", llvm::format("%.3g", mismatch.ofLargest));
  return text;
}

/// The same, with the difference itself where its units say nothing.
std::string differenceText(const Mismatch &mismatch) {
  const std::string distance = distanceText(mismatch);
  if (mismatch.ulps > 0 && mismatch.ulps <= mostUlps)
    return distance;
  return llvm::formatv("{0}{1}", llvm::format("%.3g", mismatch.difference),
                       distance.empty() ? "" : " (" + distance + ")");
}

void printMismatch(llvm::raw_ostream &os, const Mismatch &mismatch) {
  os << "    ";
  printIndex(os, mismatch.index, '[', ']');
  os << "  expected " << mismatch.expected << "  got " << mismatch.actual << "  difference "
     << llvm::format("%.3g", mismatch.difference);
  if (const std::string distance = distanceText(mismatch); !distance.empty())
    os << " (" << distance << ")";
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
  const unsigned special = LeafReport::numDecades - 1;
  const unsigned last = isFloatLike ? unsigned(std::log10(mostUlps)) : special - 1; // and all that is more
  for (unsigned i = 0; i < last; ++i)
    if (leaf.decades[i])
      os << llvm::format("    below 1e%u: ", i + 1) << leaf.decades[i] << "\n";
  if (const int64_t more = std::accumulate(&leaf.decades[last], &leaf.decades[special], int64_t(0)))
    os << llvm::format("    1e%u or more: ", last) << more << "\n";
  if (leaf.decades[special])
    os << "    NaN or infinity on one side: " << leaf.decades[special] << "\n";
}

void printLeaf(llvm::raw_ostream &os, const LeafReport &leaf) {
  const bool floating = isFloatLike(leaf);
  os << "result ";
  printIndex(os, leaf.path, '{', '}');
  os << " " << leaf.expected.shape().toString(false) << ": " << leaf.numMismatches << " of "
     << leaf.expected.numElements() << " elements differ\n";
  if (leaf.tolerance)
    printTolerance(os, *leaf.tolerance, floating);
  auto print = [&](const LeafReport::Kept &kept) {
    printMismatch(os, leaf.mismatch(kept.element, kept.apart, kept.admissible));
  };
  os << "  first:\n";
  print(leaf.first);
  os << "  worst:\n";
  for (const LeafReport::Kept &kept : leaf.worst)
    print(kept);
  printHistogram(os, leaf, floating);
}

/// ` at {1}[2,3]`
std::string place(const Mismatch &at) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << " at ";
  if (!at.leaf.empty())
    printIndex(os, at.leaf, '{', '}');
  printIndex(os, at.index, '[', ']');
  return text;
}

/// ` at [2] (expected 1, got 2, admissible [0, 2])`
std::string placeAndValues(const Mismatch &at) {
  return place(at) + " (expected " + at.expected + ", got " + at.actual +
         (at.admissible.empty() ? "" : ", admissible " + at.admissible) + ")";
}

double rankOf(const Mismatch &mismatch) { return mismatch.ulps > 0 ? mismatch.ulps : mismatch.difference; }

/// The one that is further from what was expected.
void keepFurther(std::optional<Mismatch> &kept, std::optional<Mismatch> other) {
  if (!kept || (other && rankOf(*other) > rankOf(*kept)))
    kept = std::move(other);
}

} // namespace

std::string elementText(const Literal &array, int64_t i) {
  ElementType type = array.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> value = array.getComplex(i);
    ElementType part = componentType(type);
    return "(" + number(value.real(), part) + ", " + number(value.imag(), part) + ")";
  }
  if (isFloat(type))
    return number(array.getDouble(i), type);
  if (isPred(type)) {
    const unsigned byte = array.bytes()[size_t(i)];
    return byte > 1 ? "true (byte " + std::to_string(byte) + ")" : byte ? "true" : "false";
  }
  return type == ElementType::U64 ? std::to_string(array.getBits(i)) : std::to_string(array.getInt(i));
}

std::string rangeText(const std::string &low, const std::string &high) { return "[" + low + ", " + high + "]"; }

bool hasSameBytes(const Literal &a, const Literal &b, int64_t element) {
  const size_t width = hostBytes(a.shape().elementType());
  return std::memcmp(a.bytes().data() + size_t(element) * width, b.bytes().data() + size_t(element) * width, width) ==
         0;
}

const Literal &leafOf(const Literal &literal, llvm::ArrayRef<int64_t> path) {
  const Literal *at = &literal;
  for (int64_t index : path)
    at = &at->element(unsigned(index));
  return *at;
}

std::optional<CompareResult> differentShapes(const Literal &expected, const Literal &actual) {
  if (expected.shape().compatible(actual.shape()))
    return std::nullopt;
  CompareResult result;
  result.numMismatches = result.numElements = result.numCompared = 1;
  result.report = "the results have different shapes: expected " + expected.shape().toString(false) + ", got " +
                  actual.shape().toString(false) + "\n";
  return result;
}

void LeafReport::note(int64_t element, const Distance &apart, Text admissible, bool passes, bool isSame) {
  const double rank = apart.rank(expected.shape().elementType());
  if (std::isfinite(apart.ulps))
    largestUlps = std::max(largestUlps, apart.ulps);
  if (passes) {
    if (!isSame && std::isfinite(rank) && rank > furthest.rank)
      furthest = {element, apart, admissible(), rank};
    return;
  }
  if (numMismatches++ == 0)
    first = {element, apart, admissible(), rank};
  unsigned decade = numDecades - 1;
  if (std::isfinite(rank))
    decade = rank < 10 ? 0 : std::min(unsigned(std::log10(rank)), numDecades - 2);
  ++decades[decade];
  if (worst.size() < maxWorst || rank > worst.back().rank)
    keepWorst({element, apart, admissible(), rank});
}

void LeafReport::keepWorst(const Kept &kept) {
  if (worst.size() == maxWorst && kept.rank <= worst.back().rank)
    return;
  worst.insert(llvm::upper_bound(worst, kept, [](const Kept &a, const Kept &b) { return a.rank > b.rank; }), kept);
  if (worst.size() > maxWorst)
    worst.pop_back();
}

void LeafReport::noteBound(int64_t element, const Distance &apart, Text admissible) {
  if (std::isfinite(apart.difference) && apart.difference > widestBound.rank)
    widestBound = {element, apart, admissible(), apart.difference};
}

void LeafReport::append(const LeafReport &later) {
  if (numMismatches == 0)
    first = later.first;
  if (later.furthest.rank > furthest.rank)
    furthest = later.furthest;
  if (later.widestBound.rank > widestBound.rank)
    widestBound = later.widestBound;
  for (auto count : {&LeafReport::numMismatches, &LeafReport::numBranched, &LeafReport::numUndecided,
                     &LeafReport::numUndecidedEqual, &LeafReport::numWeak, &LeafReport::numUnknown})
    this->*count += later.*count;
  largestUlps = std::max(largestUlps, later.largestUlps);
  for (const Kept &kept : later.worst)
    keepWorst(kept);
  for (unsigned i = 0; i < numDecades; ++i)
    decades[i] += later.decades[i];
}

double LeafReport::largestExpected() const {
  if (!largest)
    largest = largestMagnitude(expected);
  return *largest;
}

Mismatch LeafReport::mismatch(int64_t at, const Distance &apart, std::string admissible) const {
  Mismatch made;
  made.leaf = path;
  made.expected = elementText(expected, at);
  made.actual = elementText(actual, at);
  made.difference = apart.difference;
  made.ulps = apart.ulps;
  if (const double whole = largestExpected(); whole > 0)
    made.ofLargest = apart.difference / whole;
  made.admissible = std::move(admissible);
  const Shape &shape = expected.shape();
  made.index.resize(shape.rank());
  for (unsigned i = shape.rank(); i-- > 0; at /= shape.dim(i))
    made.index[i] = at % shape.dim(i);
  return made;
}

void CompareResult::absorb(const CompareResult &other) {
  numElements = other.numElements;
  numCompared += other.numCompared;
  numMismatches += other.numMismatches;
  numBranched += other.numBranched;
  numUndecided += other.numUndecided;
  numUndecidedEqual += other.numUndecidedEqual;
  numWeak += other.numWeak;
  numUnknown += other.numUnknown;
  largestUlps = std::max(largestUlps, other.largestUlps);
  if (other.widestBound.at && (!widestBound.at || other.widestBound.ofLargest > widestBound.ofLargest))
    widestBound = other.widestBound;
  keepFurther(furthest, other.furthest);
  if (!firstWeak)
    firstWeak = other.firstWeak;
  if (!firstUnknown)
    firstUnknown = other.firstUnknown;
}

std::string describeAgreement(const CompareResult &result, llvm::StringRef unknown) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (result.furthest)
    os << "largest difference " << differenceText(*result.furthest) << placeAndValues(*result.furthest);
  else
    os << (result.numUnknown ? "all others bit for bit" : "bit for bit");
  if (result.numBranched) {
    // Of how many: of all comparisons, where there were several.
    os << "; " << result.numBranched << " of " << result.numCompared << " compared with more than one admissible value";
    if (const std::optional<Mismatch> &at = result.widestBound.at) {
      os << ", the widest " << llvm::format("%.3g", result.widestBound.ofLargest) << " of the largest element"
         << place(*at);
      if (at->ulps <= mostUlps)
        os << " (" << (at->ulps > 0 ? ulpsText(at->ulps) : differenceText(*at)) << ")";
    }
  }
  if (result.numUndecided + result.numUndecidedEqual == 0)
    return text;
  os << "; without bounds " << result.numUndecided + result.numUndecidedEqual << ": " << result.numUndecidedEqual
     << " equal";
  if (result.numWeak)
    os << ", " << result.numWeak << " as far off as disturbed runs, first" << placeAndValues(*result.firstWeak);
  if (result.numUnknown)
    os << ", " << result.numUnknown << " " << unknown << ", first" << placeAndValues(*result.firstUnknown);
  return text;
}

void summarise(llvm::ArrayRef<LeafReport> leaves, CompareResult &result) {
  llvm::raw_string_ostream os(result.report);
  for (const LeafReport &leaf : leaves) {
    auto mismatchOf = [&](const LeafReport::Kept &kept) -> std::optional<Mismatch> {
      if (kept.element < 0)
        return std::nullopt;
      return leaf.mismatch(kept.element, kept.apart, kept.admissible);
    };
    result.numElements += leaf.expected.numElements();
    result.numCompared += leaf.expected.numElements();
    result.largestUlps = std::max(result.largestUlps, leaf.largestUlps);
    result.numBranched += leaf.numBranched;
    result.numUndecided += leaf.numUndecided;
    result.numUndecidedEqual += leaf.numUndecidedEqual;
    result.numWeak += leaf.numWeak;
    result.numUnknown += leaf.numUnknown;
    if (leaf.widestBound.element >= 0) {
      std::optional<Mismatch> widest = mismatchOf(leaf.widestBound);
      if (!result.widestBound.at || widest->ofLargest > result.widestBound.ofLargest)
        result.widestBound = {widest->ulps, widest->ofLargest, widest};
    }
    keepFurther(result.furthest, mismatchOf(leaf.furthest));
    if (!result.firstWeak)
      result.firstWeak = mismatchOf(leaf.firstWeak);
    if (!result.firstUnknown)
      result.firstUnknown = mismatchOf(leaf.firstUnknown);
    if (leaf.numMismatches == 0)
      continue;
    if (result.numMismatches == 0)
      result.first = *mismatchOf(leaf.first);
    result.numMismatches += leaf.numMismatches;
    for (const LeafReport::Kept &kept : leaf.worst) {
      Mismatch made = *mismatchOf(kept);
      auto worse = [](const Mismatch &a, const Mismatch &b) { return rankOf(a) > rankOf(b); };
      result.worst.insert(llvm::upper_bound(result.worst, made, worse), made);
    }
    printLeaf(os, leaf);
  }
  if (result.worst.size() > maxWorst)
    result.worst.resize(maxWorst);
}

} // namespace hloc
