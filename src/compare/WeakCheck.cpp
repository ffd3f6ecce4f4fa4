#include "compare/WeakCheck.h"

#include "compare/Distance.h"
#include "compare/Report.h"
#include "hloc/interp/Disturbed.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hloc {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr unsigned numRuns = 8, numMoreRuns = 24, numStrongRuns = 4;
/// Disturbed by this much nothing moves that a right kernel moves.
constexpr double strongDisturbance = 16;
/// What is permitted kernels seldom use in full. A series that has converged goes on if its terms are disturbed by
/// more.
constexpr double weakDisturbance = 0.125;
/// A right kernel is another run: how much further than the furthest of a few it may be. The chance that the next of
/// independent runs is beyond twice the furthest of eight is below 1 % for all but the heaviest tails, and disturbed
/// runs use what is permitted in full, which kernels seldom do.
constexpr double slack = 2;
/// And how much further than the furthest of those that are disturbed strongly nobody is: some depend on what none of
/// the few has met.
constexpr double strongSlack = 8, strongSlackOfOthers = 2;
/// What any op that rounds may do, in units of the last place.
constexpr double acceptedUlps = 1, rejectedUlps = 4;
// What was accepted, or was not too far, after some runs is never rejected after more: runs are left out for that.
static_assert(slack <= strongSlackOfOthers && slack <= strongSlack && acceptedUlps <= rejectedUlps);
/// What is off by more than this part of itself, or of what is usual in its array, is not known.
constexpr double mostOfItself = 0.25, mostOfUsual = 0x1p-6;

/// Of the elements that roundings change so many have to be those of what is proven, and at most one of so many another
/// one, for all to come from the same roundings; and an element of the same array differs by no more than this part of
/// what these may do.
constexpr int64_t fewestAlike = 32, alikeForEachOther = 64;
constexpr double mostOfRoundings = 0.125;

/// An element whose chance of being no number is p is one in a kernel, and in none of the 14 runs that draw from all of
/// what is permitted (2 of the first, half of the further ones), with p (1 - p)^14, at most 1/40: of so many that are
/// open, one may be. (acosh(cos x) is 0 where cos x is 1, and no number beside it.) Of large steps, which have the 2
/// alone, more may be, which are rejected.
constexpr int64_t openForEachRare = 32;

using Verdict = OpenElement::Verdict;

/// Where a part (real, imaginary, or the whole of other types) of an element was seen in runs of one kind.
struct Seen {
  double period = infinity; ///< of integers, which wrap around
  double furthest = 0;      ///< distance from the expected value
  bool otherKind = false;   ///< NaN or infinity for a number, the reverse, or another one; or a run without a result

  std::vector<double> others; ///< the values that are not the expected one

  double distance(double a, double b) const {
    const double apart = std::fabs(a - b);
    return std::min(apart, std::fabs(period - apart));
  }

  void add(double expected, double value) {
    if (value == expected || (std::isnan(value) && std::isnan(expected)))
      return;
    others.push_back(value);
    if (std::isfinite(value) && std::isfinite(expected))
      furthest = std::max(furthest, distance(value, expected));
    else
      otherKind = true;
  }
};

struct SeenPart {
  double expected = 0;
  Seen usual, strong; ///< runs as right kernels are; and also those with a strong disturbance

  /// `size`: magnitude that is usual in the array. `type`: of the element, or of its parts. `slackOfStrong`: how much
  /// further than the furthest of strong disturbances nobody is. What is rejected after some of the runs need not be
  /// after all; the reverse there is not.
  Verdict judge(double actual, double size, ElementType type, double slackOfStrong) const {
    if (actual == expected || (std::isnan(actual) && std::isnan(expected)))
      return Verdict::Accepted;
    const bool isNumber = std::isfinite(actual) && std::isfinite(expected);
    const double distance = isNumber ? usual.distance(actual, expected) : infinity;
    const double ulp = isFloat(type) && std::isfinite(expected) ? unitInLastPlace(type, expected) : 0;
    // A right kernel that has decided otherwise, of two rows or numbers that are close: an example tells.
    if (llvm::any_of(usual.others,
                     [&](double value) { return actual == value || std::fabs(actual - value) <= acceptedUlps * ulp; }))
      return Verdict::Accepted;
    const double near = std::max(slack * usual.furthest, acceptedUlps * ulp);
    const double limit = std::max(mostOfItself * std::fabs(expected), mostOfUsual * size);
    if (!usual.otherKind && distance <= near && near <= limit)
      return Verdict::Accepted;
    const double far = std::max(slackOfStrong * strong.furthest, rejectedUlps * ulp);
    return !strong.otherKind && distance > far ? Verdict::Rejected : Verdict::Unknown;
  }
};

/// How many elements that roundings change are bit for bit those of another result, and how many are not.
struct Likeness {
  int64_t alike = 0, others = 0;
  bool isEnough() const { return alike >= fewestAlike; }
  bool areNearlyAll() const { return isEnough() && others <= std::max<int64_t>(1, alike / alikeForEachOther); }
};

/// Which elements of an array have other values in some runs than is expected.
class RoundedElements {
public:
  explicit RoundedElements(const Literal &expected) : expected(expected), varies(size_t(expected.numElements())) {}

  void addRun(const Literal &value) {
    for (size_t i = 0; i < varies.size(); ++i)
      varies[i] = varies[i] || !hasSameBytes(expected, value, int64_t(i));
  }

  Likeness compare(const Literal &one, const Literal &other) const {
    Likeness result;
    for (size_t i = 0; i < varies.size(); ++i)
      if (varies[i])
        ++(hasSameBytes(one, other, int64_t(i)) ? result.alike : result.others);
    return result;
  }

private:
  const Literal &expected;
  std::vector<bool> varies;
};

double partOf(const Literal &array, int64_t i, unsigned part) {
  ElementType type = array.shape().elementType();
  if (isComplex(type)) {
    std::complex<double> value = array.getComplex(i);
    return part ? value.imag() : value.real();
  }
  if (isPred(type))
    return array.getInt(i) != 0;
  return type == ElementType::U64 ? double(array.getBits(i)) : array.getDouble(i);
}

class WeakChecker {
public:
  WeakChecker(const WeakCheckInput &input, std::vector<OpenElement> &elements) : input(input), elements(elements) {
    for (const AdmissibleArray &leaf : input.leaves)
      usualSizes.push_back(typicalMagnitude(leafOf(input.expected, leaf.path)));
    if (input.proven && !onlyPlaces)
      for (const AdmissibleArray &leaf : input.leaves)
        rounded.emplace_back(leafOf(input.expected, leaf.path));
    for (const OpenElement &open : elements) {
      const Literal &array = arrayOf(input.expected, open);
      const ElementType type = array.shape().elementType();
      for (unsigned part = 0; part < 2; ++part) {
        SeenPart &seen = parts.emplace_back();
        seen.expected = partOf(array, open.element, part);
        if (isInteger(type))
          seen.usual.period = seen.strong.period = std::ldexp(1, int(bitWidth(type)));
      }
      places.push_back(open.element);
    }
    llvm::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    options.maxBytes = input.options.maxBytes;
    options.seed = input.options.seed;
    options.maxLoopSteps = std::min(input.options.maxLoopSteps, 4 * input.mostLoopSteps + 256);
  }

  void run() {
    judgeByRuns();
    judgeByProven();
  }

private:
  void judgeByRuns() {
    for (const auto products : {Disturbance::Products::First, Disturbance::Products::Second}) {
      Disturbance disturbance;
      disturbance.strength = 0;
      disturbance.products = products;
      disturb(disturbance, false);
    }
    if (isSettled(judge(/*allRuns=*/false)))
      return;
    for (unsigned i = 0; i < numRuns; ++i) {
      Disturbance disturbance{i + 1};
      disturbance.isBiased = i % 4 == 1;
      disturbance.isExtreme = i % 4 == 3;
      disturbance.strength = i % 4 == 2 ? weakDisturbance : 1;
      disturb(disturbance, false);
      if (i % 4 == 3 && isSettled(judge(/*allRuns=*/false)))
        return;
    }
    if (isCheap()) // and decisions between two values are seen from either side
      for (unsigned i = 0; i < numMoreRuns; ++i) {
        Disturbance disturbance{numRuns + numStrongRuns + i + 1};
        disturbance.isExtreme = i % 2 == 0;
        disturb(disturbance, false);
      }
    if (isSettled(judge(/*allRuns=*/false)))
      return;
    for (unsigned i = 0; i < numStrongRuns; ++i) {
      Disturbance disturbance{numRuns + i + 1, strongDisturbance};
      disturbance.isBiased = i % 2 == 1;
      disturbance.isPerUse = !disturbance.isBiased;
      disturb(disturbance, true);
    }
    judge(/*allRuns=*/true);
    if (input.isOfKernel)
      openRareKinds();
  }

  /// Numbers where all runs have none, or the reverse, are no proof where they are few among many open elements.
  void openRareKinds() {
    std::vector<int64_t> numRare(input.leaves.size());
    auto isRare = [&](const OpenElement &open) {
      if (open.verdict != Verdict::Rejected || open.isBounded)
        return false;
      const Literal &wanted = arrayOf(input.expected, open), &actual = arrayOf(input.actual, open);
      return llvm::any_of(std::array{0U, 1U}, [&](unsigned part) {
        return !std::isfinite(partOf(wanted, open.element, part)) || !std::isfinite(partOf(actual, open.element, part));
      });
    };
    for (const OpenElement &open : elements)
      numRare[open.leaf] += isRare(open);
    if (llvm::all_of(numRare, [](int64_t number) { return number == 0; }))
      return;
    const std::vector<int64_t> numOpen = countOpen();
    for (OpenElement &open : elements)
      if (isRare(open) && numRare[open.leaf] * openForEachRare <= numOpen[open.leaf]) {
        open.verdict = Verdict::Unknown;
        open.range = "anything";
      }
  }

  /// In each array. Of elementwise modules only what differs was looked at.
  std::vector<int64_t> countOpen() {
    if (!onlyPlaces)
      return input.numOpen.vec();
    std::vector<int64_t> numOpen(input.leaves.size());
    DiagnosticEngine unheard;
    llvm::FailureOr<BoundedResult> bounds =
        interpretBounds(input.module, input.arguments, input.backend, unheard, options);
    if (failed(bounds))
      return numOpen;
    for (auto [number, leaf] : llvm::zip_equal(numOpen, bounds->leaves))
      for (int64_t i = 0, count = leaf.isExact() ? 0 : leaf.value.numElements(); i < count; ++i)
        number += leaf.isUndecided(i);
    return numOpen;
  }

  /// Where nearly all elements are those of what is proven, or of the reference, roundings were the same, and are no
  /// reason for others.
  void judgeByProven() {
    if (rounded.empty())
      return;
    for (const Literal *proven : {input.proven, &input.expected}) {
      std::vector<Likeness> ofLeaves;
      Likeness ofAll;
      for (auto [array, leaf] : llvm::zip_equal(rounded, input.leaves)) {
        ofLeaves.push_back(array.compare(leafOf(*proven, leaf.path), leafOf(input.actual, leaf.path)));
        ofAll.alike += ofLeaves.back().alike;
        ofAll.others += ofLeaves.back().others;
      }
      for (auto [number, open] : llvm::enumerate(elements)) {
        // A small array may come from a last step of its own.
        const Likeness &own = ofLeaves[open.leaf];
        const bool isByOwn = own.isEnough();
        if (!(isByOwn ? own : ofAll).areNearlyAll() || !isFarFrom(*proven, number, isByOwn ? mostOfRoundings : 1))
          continue;
        open.verdict = Verdict::Rejected;
        open.range = "about " + elementText(arrayOf(*proven, open), open.element) + ", by the roundings of all others";
      }
    }
  }

  bool isFarFrom(const Literal &proven, size_t number, double ofRoundings) const {
    const Literal &wanted = arrayOf(proven, elements[number]), &actual = arrayOf(input.actual, elements[number]);
    const int64_t i = elements[number].element;
    const ElementType type = componentType(actual.shape().elementType());
    for (unsigned k = 0; k < 2; ++k) {
      const double a = partOf(wanted, i, k), b = partOf(actual, i, k);
      if (a == b || (std::isnan(a) && std::isnan(b)))
        continue;
      const double ulp = isFloat(type) && std::isfinite(a) ? unitInLastPlace(type, a) : 0;
      const double near = std::max(rejectedUlps * ulp, ofRoundings * parts[2 * number + k].usual.furthest);
      if (!(std::fabs(a - b) <= near))
        return true;
    }
    return false;
  }

  /// A step rather than a program.
  bool isCheap() const {
    constexpr uint64_t most = 1 << 18;
    uint64_t numElements = 0;
    for (const auto &computation : input.module.computations())
      for (const HloInstruction *instr : computation->instructions())
        if (instr->shape().isArray())
          numElements = llvm::SaturatingAdd(numElements, uint64_t(instr->shape().numElements()));
    return input.mostLoopSteps == 0 && numElements <= most;
  }

  const Literal &arrayOf(const Literal &result, const OpenElement &open) const {
    return leafOf(result, input.leaves[open.leaf].path);
  }

  void disturb(Disturbance disturbance, bool strong) {
    DiagnosticEngine unheard;
    llvm::FailureOr<DisturbedResult> result =
        onlyPlaces
            ? interpretDisturbedAt(input.module, input.arguments, places, input.backend, disturbance, unheard, options)
            : interpretDisturbed(input.module, input.arguments, input.backend, disturbance, unheard, options);
    if (succeeded(result) && !strong)
      for (auto [array, leaf] : llvm::zip_first(rounded, input.leaves))
        array.addRun(leafOf(result->value, leaf.path));
    for (auto [number, open] : llvm::enumerate(elements))
      for (unsigned k = 0; k < 2; ++k) {
        SeenPart &part = parts[2 * number + k];
        double value = part.expected;
        if (succeeded(result)) {
          const int64_t at = onlyPlaces ? llvm::lower_bound(places, open.element) - places.begin() : open.element;
          value = partOf(arrayOf(result->value, open), at, k);
        }
        for (Seen *seen : {&part.usual, &part.strong}) {
          if (strong && seen == &part.usual)
            continue;
          // What is accepted is close to all examples; what is rejected is far from anything that may be.
          seen->otherKind |= failed(result) || (seen == &part.strong && !result->isExample);
          seen->add(part.expected, value);
        }
      }
  }

  /// All elements together, by the worst of them, which is the last; Undecided: further runs may let elements pass that
  /// would be rejected now.
  enum class Judged { Accepted, NoneRejected, Undecided };

  bool isSettled(Judged judged) const {
    return judged == Judged::Accepted || (judged == Judged::NoneRejected && !input.wantsAccepted);
  }

  Judged judge(bool allRuns) {
    auto result = Judged::Accepted;
    for (auto [number, open] : llvm::enumerate(elements)) {
      const Literal &actual = arrayOf(input.actual, open);
      Verdict verdicts[2];
      for (unsigned k = 0; k < 2; ++k)
        verdicts[k] = parts[2 * number + k].judge(partOf(actual, open.element, k), usualSizes[open.leaf],
                                                  componentType(actual.shape().elementType()),
                                                  input.isOfKernel ? strongSlack : strongSlackOfOthers);
      const bool isRejected = llvm::is_contained(verdicts, Verdict::Rejected);
      open.verdict = isRejected && allRuns                                          ? Verdict::Rejected
                     : isRejected || llvm::is_contained(verdicts, Verdict::Unknown) ? Verdict::Unknown
                                                                                    : Verdict::Accepted;
      if (open.verdict != Verdict::Accepted)
        result = std::max(result, isRejected ? Judged::Undecided : Judged::NoneRejected);
      if (!open.isBounded || open.verdict == Verdict::Rejected)
        open.range = open.verdict == Verdict::Unknown ? "anything" : rangeText(number, open, actual.shape());
    }
    return result;
  }

  /// What was accepted, or what is not rejected.
  std::string rangeText(size_t number, const OpenElement &open, const Shape &shape) const {
    Literal ends(Shape::array(shape.elementType(), {2}));
    const SeenPart *part = &parts[2 * number];
    const bool rejected = open.verdict == Verdict::Rejected;
    auto end = [&](unsigned k, double sign) {
      return part[k].expected + sign * slack * (rejected ? part[k].strong : part[k].usual).furthest;
    };
    for (int64_t i : {0, 1}) {
      const double sign = i ? 1 : -1;
      if (isComplex(shape.elementType()))
        ends.setComplex(i, {end(0, sign), end(1, sign)});
      else if (isFloat(shape.elementType()))
        ends.setDouble(i, end(0, sign));
      else
        ends.setInt(i, int64_t(end(0, sign)));
    }
    return "about " + hloc::rangeText(elementText(ends, 0), elementText(ends, 1));
  }

  const WeakCheckInput &input;
  std::vector<OpenElement> &elements;
  InterpreterOptions options;
  bool onlyPlaces = isElementwise(input.module);
  std::vector<double> usualSizes;       ///< magnitude in each array
  std::vector<SeenPart> parts;          ///< two of each element
  std::vector<int64_t> places;          ///< of the elements in any array, in order
  std::vector<RoundedElements> rounded; ///< of each array, if there is something proven
};

} // namespace

void checkWeakly(const WeakCheckInput &input, std::vector<OpenElement> &elements) {
  WeakChecker(input, elements).run();
}

} // namespace hloc
