#include "hloc/interp/Inputs.h"

#include "interp/Demands.h"
#include "interp/ElementGroups.h"
#include "interp/ExactScale.h"
#include "interp/SpecialValues.h"
#include "interp/Strided.h"
#include "interp/TieValues.h"
#include "interp/ValueStream.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hloc {

llvm::StringRef regimeName(Regime regime) {
  switch (regime) {
  case Regime::Ordinary:
    return "ordinary";
  case Regime::Exact:
    return "exact";
  case Regime::Special:
    return "special";
  case Regime::Index:
    return "index";
  case Regime::Ties:
    return "ties";
  }
  return "";
}

std::optional<Regime> findRegime(llvm::StringRef name) {
  for (Regime regime : allRegimes)
    if (regimeName(regime) == name)
      return regime;
  return std::nullopt;
}

namespace {

using interp::Demand;
using interp::ExactScale;
using interp::SpecialPlan;
using interp::TieValues;
using interp::ValueStream;

/// What all arguments of a set share.
struct Request {
  uint64_t seed;
  ArgumentSet set;
  ExactScale scale;
  const SpecialPlan *special;
  const TieValues *ties;
};

/// Indices that may lie outside without breaking a promise.
bool mayLeave(const Demand &demand, ElementType type, bool scatterInside) {
  bool promised = demand.mustLieInside || (demand.isScattered && scatterInside) ||
                  (demand.unique && (demand.isClamped || demand.apart > 1));
  return demand.below && isInteger(type) && !promised;
}

class Generator {
public:
  Generator(Literal &literal, const Demand &demand, unsigned leaf, const Request &request)
      : literal(literal), demand(demand), request(request), leaf(leaf),
        stream(request.seed, leaf, unsigned(request.set.regime) << 6 | (request.set.round & 63)),
        type(literal.shape().elementType()) {}

  void run() {
    if (demand.identityOf && literal.shape().isScalar())
      return fillIdentity();
    if (demand.sumAtMost)
      return fillGroupSizes();
    if (demand.below && isFloat(type) && demand.unique) // converted to indices, which have to be distinct
      return fillIndices();
    if (demand.below && isInteger(type))
      return request.set.regime == Regime::Index && mayLeave(demand, type, request.set.scatterInside) ? fillAnyIndices()
                                                                                                      : fillIndices();
    bool isExact = request.set.regime == Regime::Exact;
    if (request.ties)
      return fillTies();
    if (demand.factors && (isFloat(type) || isComplex(type)))
      isExact ? fillPowers() : fillFactors();
    else
      for (int64_t i = 0; i < literal.numElements(); ++i)
        isExact ? setExact(i) : setValue(i);
    if (isExact && request.scale.spacing > 1 && demand.reducedDims)
      fillEnds();
    if (request.set.regime == Regime::Special)
      request.special->fill(literal, leaf, demand, stream, request.seed, request.set.round);
    if (demand.positiveDefinite || demand.triangular)
      dominateDiagonal();
  }

private:
  /// What divides and what is factorised is what it always is.
  void fillTies() {
    if (demand.factors && (isFloat(type) || isComplex(type)))
      return fillPowers();
    const bool isCount = isInteger(type) && literal.shape().isScalar();
    for (int64_t i = 0; i < literal.numElements(); ++i)
      if (isPred(type) || isCount)
        setValue(i);
      else
        request.ties->set(literal, i, demand.nonNegative, stream);
    if (demand.positiveDefinite || demand.triangular)
      dominateDiagonal();
  }

  void setValue(int64_t i) {
    if (isPred(type))
      literal.setInt(i, stream.bits() & 1);
    else if (isInteger(type))
      literal.setInt(i, integer());
    else if (isComplex(type)) {
      double real = moderate(); // one after the other: the order of arguments is not fixed
      literal.setComplex(i, {real, moderate()});
    } else
      literal.setDouble(i, moderate());
  }

  /// Small numbers: they may be counts of steps.
  int64_t integer() {
    if (literal.shape().isScalar())
      return stream.below(8);
    return isSigned(type) ? stream.below(201) - 100 : stream.below(201);
  }

  double moderate() { return demand.nonNegative ? 2 * stream.unit() : 4 * stream.unit() - 2; }

  void setExact(int64_t i) {
    if (isPred(type) || (isInteger(type) && literal.shape().isScalar()))
      return setValue(i);
    if (isInteger(type))
      return literal.setInt(i, int64_t(whole()));
    double real = whole();
    setNumber(i, {real, isComplex(type) ? whole() : 0});
  }

  /// Zero hides what happens to an element, so it is rare where the scale allows others.
  double whole() {
    const ExactScale &scale = request.scale;
    if (scale.spacing > 1 ? !stream.oneIn(scale.spacing) : stream.oneIn(64))
      return type == ElementType::F8E8M0FNU ? 1 : 0;
    double value = double(1 + stream.below(scale.magnitude));
    bool isPositive = demand.nonNegative || isUnsigned(type) || type == ElementType::F8E8M0FNU;
    return isPositive || stream.oneIn(2) ? value : -value;
  }

  /// Terms get lost at the ends of a sum: there are none but for chance where few are not zero.
  void fillEnds() {
    if (isPred(type) || isInteger(type))
      return;
    interp::ElementGroups groups(literal.shape(), demand.reducedDims);
    std::vector<int64_t> last(size_t(groups.count), -1);
    auto fill = [&](int64_t i) { setNumber(i, demand.nonNegative || stream.oneIn(2) ? 1.0 : -1.0); };
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      int64_t &seen = last[size_t(groups.of(i))];
      if (seen < 0)
        fill(i);
      seen = i;
    }
    for (int64_t i : last)
      if (i >= 0)
        fill(i);
  }

  /// So near to 1 that no product of them leaves the range, in whatever order they are multiplied.
  void fillFactors() {
    double spread = std::min(0.7, 2 / std::sqrt(double(demand.factors)));
    auto factor = [&] { return std::exp(spread * (2 * stream.unit() - 1)) * (stream.oneIn(2) ? 1 : -1); };
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      double angle = isComplex(type) ? 2 * M_PI * stream.unit() : 0, magnitude = factor();
      setNumber(i, std::polar(std::fabs(magnitude), angle) * std::copysign(1.0, magnitude));
    }
  }

  /// Ones of both signs, and so few twos and halves that their product is in range in whatever order.
  void fillPowers() {
    const FloatFormat &format = floatFormat(isComplex(type) ? componentType(type) : type);
    int64_t most = std::max(format.bias / 2, 1), period = std::max<int64_t>(2, demand.factors / most);
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      double value = stream.oneIn(period) ? (stream.oneIn(2) ? 2.0 : 0.5) : 1.0;
      if (stream.oneIn(2) && type != ElementType::F8E8M0FNU)
        value = -value;
      setNumber(i, isComplex(type) && stream.oneIn(2) ? std::complex<double>(0, value) : value);
    }
  }

  void fillIdentity() {
    bool isReal = isFloat(type);
    double infinity = std::numeric_limits<double>::infinity();
    const Opcode opcode = *demand.identityOf; // of add, or, xor, and what has none: zero, as it is
    if (opcode == Opcode::Multiply)
      return isPred(type) || isInteger(type) ? literal.setInt(0, 1) : setNumber(0, 1);
    if (opcode == Opcode::And)
      return literal.setInt(0, -1);
    if (opcode == Opcode::Maximum)
      return isReal ? literal.setDouble(0, -infinity)
                    : literal.setInt(0, isSigned(type) ? int64_t(~uint64_t(0) << (bitWidth(type) - 1)) : 0);
    if (opcode == Opcode::Minimum)
      return isReal ? literal.setDouble(0, infinity)
                    : literal.setInt(0, isSigned(type) ? int64_t((uint64_t(1) << (bitWidth(type) - 1)) - 1) : -1);
  }

  /// Random sizes whose sum may be the whole or less. A quarter of all groups are empty, and some take all that is
  /// left: so there are several empty ones beside each other, at the begin and at the end.
  void fillGroupSizes() {
    constexpr int64_t kinds = 16, ofEmpty = 4, ofRest = 1;
    int64_t left = *demand.sumAtMost;
    for (int64_t i = 0; i < literal.numElements(); ++i) {
      const int64_t kind = stream.below(kinds);
      int64_t size = stream.below(std::min<int64_t>(left, 2 * *demand.sumAtMost / literal.numElements()) + 1);
      if (kind < ofEmpty)
        size = 0;
      else if (kind < ofEmpty + ofRest)
        size = left;
      literal.setInt(i, size);
      left -= size;
    }
  }

  /// Distinct starts are taken from a shuffled range; one too small for that is left with repetitions.
  void fillIndices() {
    std::vector<int64_t> values = insideIndices();
    for (size_t i = 0; i < values.size(); ++i)
      if (isFloat(type))
        literal.setDouble(int64_t(i), double(values[i]));
      else
        literal.setInt(int64_t(i), values[i]);
  }

  std::vector<int64_t> insideIndices() {
    if (std::optional<std::vector<int64_t>> values = distinctVectors())
      return std::move(*values);
    int64_t count = literal.numElements(), limit = indexLimit();
    std::vector<int64_t> values(size_t(count), 0);
    // Where a scatter has too few places, the windows that are left over lie outside: they keep the promise.
    if (int64_t highest = int64_t(llvm::maskTrailingOnes<uint64_t>(
            isFloat(type) ? floatFormat(type).mantissaBits : std::min(bitWidth(type) - isSigned(type), 31u)));
        demand.unique && demand.isScattered && !demand.isClamped && count <= highest)
      limit = std::max(limit, count);
    if (demand.unique && demand.apart > 1)
      return distantIndices(limit);
    if (demand.unique && count <= limit && limit <= maxShuffled) {
      std::vector<int64_t> pool(size_t(limit), 0);
      for (int64_t i = 0; i < limit; ++i)
        pool[size_t(i)] = i;
      for (int64_t i = 0; i < count; ++i)
        std::swap(pool[size_t(i)], pool[size_t(i + stream.below(limit - i))]);
      std::copy_n(pool.begin(), count, values.begin());
    } else {
      for (int64_t &value : values)
        value = stream.below(limit);
    }
    if (demand.sorted)
      std::sort(values.begin(), values.end());
    return values;
  }

  /// Vectors that differ, if the leaf is an array of such and there are enough: numbers whose digits are the
  /// components.
  std::optional<std::vector<int64_t>> distinctVectors() {
    if (!demand.vectors || !llvm::equal(demand.vectors->arrayDims, literal.shape().dims()))
      return std::nullopt;
    std::vector<interp::IndexVectors::Component> digits = demand.vectors->components;
    int64_t total = 1;
    for (interp::IndexVectors::Component &digit : digits) {
      digit.places = std::min(digit.places, (indexCapacity() - 1) / digit.apart + 1);
      if (llvm::MulOverflow(total, digit.places, total))
        return std::nullopt;
    }
    const int64_t size = int64_t(digits.size()), count = literal.numElements() / size;
    if (count > total || literal.numElements() == 0)
      return std::nullopt;
    std::vector<unsigned> byWeight(digits.size()); // components, the least weight first
    std::iota(byWeight.begin(), byWeight.end(), 0);
    llvm::sort(byWeight, [&](unsigned a, unsigned b) { return digits[a].operandDim > digits[b].operandDim; });
    std::vector<int64_t> numbers = distinctNumbers(count, total);
    const int64_t stride = interp::rowMajorStrides(literal.shape().dims())[demand.vectors->dim];
    std::vector<int64_t> values(size_t(literal.numElements()), 0);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t rest = numbers[size_t(i)]; unsigned component : byWeight) {
        const interp::IndexVectors::Component &digit = digits[component];
        values[size_t(i / stride * stride * size + component * stride + i % stride)] =
            rest % digit.places * digit.apart;
        rest /= digit.places;
      }
    return values;
  }

  /// Of [0, below), in order if the indices are: one of each of `count` equal parts.
  std::vector<int64_t> distinctNumbers(int64_t count, int64_t below) {
    const int64_t part = below / count;
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(i * part + stream.below(part));
    for (int64_t i = 0; i < count && !demand.sorted; ++i)
      std::swap(numbers[size_t(i)], numbers[size_t(i + stream.below(count - i))]);
    return numbers;
  }

  /// Starts of windows that do not overlap: those for which there is no room lie outside, where a scatter leaves them
  /// out, unless they are clamped.
  std::vector<int64_t> distantIndices(int64_t limit) {
    const int64_t count = literal.numElements(), room = std::max<int64_t>(limit / demand.apart, 1);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < std::max(count, room); ++i)
      values.push_back(i * demand.apart);
    for (int64_t i = 0; i < count; ++i)
      std::swap(values[size_t(i)], values[size_t(i + stream.below(int64_t(values.size()) - i))]);
    values.resize(size_t(count));
    if (demand.sorted)
      llvm::sort(values);
    return values;
  }

  /// Half of them outside, or at the edge. Few indices take their turns; of more, the first ones that are changed have
  /// the edges that tell most.
  void fillAnyIndices() {
    if (demand.vectors && demand.sorted)
      return fillIndices();
    int64_t beyond = *demand.below; // of all dimensions
    if (demand.vectors)
      for (const interp::IndexVectors::Component &component : demand.vectors->components)
        beyond = std::max(beyond, (component.places + 1) * component.apart);
    std::vector<int64_t> values = insideIndices();
    const int64_t limit = *demand.below;
    const int64_t lowest = isSigned(type) ? int64_t(~uint64_t(0) << (bitWidth(type) - 1)) : -1;
    const int64_t highest = int64_t(llvm::maskTrailingOnes<uint64_t>(bitWidth(type) - 1));
    // Beyond 32 bits, where the type has more: what remains of them lies inside.
    const int64_t edges[] = {-1,        limit,    lowest,    limit - 1,         -limit,
                             highest,   0,        limit + 1, int64_t(-1) << 32, int64_t(1) << 32,
                             limit * 2, limit / 2};
    constexpr size_t numEdges = std::size(edges);
    bool few = literal.numElements() <= 8;
    size_t numAtEdges = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      size_t turn = size_t(request.seed + 5 * uint64_t(leaf) + request.set.round + 7 * i);
      if (demand.unique) {
        const int64_t outside = stream.oneIn(2) ? beyond + int64_t(i) : -1 - int64_t(i);
        if (stream.oneIn(3) && staysOutside(outside, beyond)) // still distinct
          values[i] = outside;
      } else if (few || stream.oneIn(2)) {
        values[i] = edges[(few ? turn : numAtEdges++) % numEdges];
      }
      literal.setInt(int64_t(i), values[i]);
    }
    if (demand.sorted)
      sortIndices();
  }

  /// Numbers that the type does not hold become others.
  bool staysOutside(int64_t index, int64_t beyond) const {
    if (index >= 0)
      return index < indexCapacity();
    return isSigned(type) ? -index <= indexCapacity() : indexCapacity() + index >= beyond + literal.numElements();
  }

  void sortIndices() {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < literal.numElements(); ++i)
      values.push_back(literal.getInt(i));
    if (isSigned(type))
      llvm::sort(values);
    else
      llvm::sort(values, [](int64_t a, int64_t b) { return uint64_t(a) < uint64_t(b); });
    for (size_t i = 0; i < values.size(); ++i)
      literal.setInt(int64_t(i), values[i]);
  }
  static constexpr int64_t maxShuffled = int64_t(1) << 26;
  /// No larger than the type holds.
  int64_t indexLimit() const { return std::min(*demand.below, indexCapacity()); }
  /// How many numbers from 0 on the type holds.
  int64_t indexCapacity() const {
    unsigned magnitudeBits =
        isFloat(type) ? floatFormat(type).mantissaBits + 1u : bitWidth(type) - (isSigned(type) ? 1 : 0);
    return magnitudeBits >= 62 ? std::numeric_limits<int64_t>::max() : int64_t(1) << magnitudeBits;
  }

  /// Symmetric with a diagonal larger than its row's sum: positive definite, and easy to solve with.
  void dominateDiagonal() {
    unsigned rank = literal.shape().rank();
    if (rank < 2)
      return;
    int64_t n = literal.shape().dim(rank - 1), stride = n * literal.shape().dim(rank - 2);
    for (int64_t start = 0; stride != 0 && start < literal.numElements(); start += stride)
      for (int64_t i = 0; i < std::min(n, literal.shape().dim(rank - 2)); ++i) {
        for (int64_t j = 0; demand.positiveDefinite && j < i; ++j)
          setNumber(start + j * n + i, std::conj(literal.getComplex(start + i * n + j)));
        setNumber(start + i * n + i, double(3 * n) + 1);
      }
  }

  void setNumber(int64_t i, std::complex<double> value) {
    if (isComplex(type))
      literal.setComplex(i, value);
    else
      literal.setDouble(i, value.real());
  }

  Literal &literal;
  const Demand &demand;
  const Request &request;
  unsigned leaf;
  ValueStream stream;
  ElementType type;
};

void generate(Literal &literal, llvm::ArrayRef<Demand> demands, const Request &request, unsigned &leaf) {
  if (literal.isTuple()) {
    for (Literal &element : literal.mutableElements())
      generate(element, demands, request, leaf);
    return;
  }
  if (literal.shape().isArray())
    Generator(literal, demands[leaf], leaf, request).run();
  ++leaf;
}

/// What a module's parameters are, for the choice of regimes.
struct Survey {
  int64_t numElements = 0; ///< the result's included; saturates
  bool hasFloats = false;
  int64_t fewestIndices = 0; ///< 0: no leaf has indices that may lie outside

  Survey(const HloModule &module, llvm::ArrayRef<Demand> demands, bool scatterInside) {
    size_t next = 0;
    for (const HloInstruction *parameter : module.entry()->parameters())
      for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
        const Demand &demand = demands[next++];
        if (!leaf.shape.isArray())
          continue;
        count(leaf.shape);
        ElementType type = leaf.shape.elementType();
        hasFloats |= isFloat(type) || isComplex(type);
        if (int64_t n = leaf.shape.numElements(); n && mayLeave(demand, type, scatterInside))
          fewestIndices = fewestIndices ? std::min(fewestIndices, n) : n;
      }
    for (const Shape::Leaf &leaf : module.entry()->root()->shape().leaves())
      count(leaf.shape);
  }

private:
  void count(const Shape &shape) {
    if (shape.isArray())
      numElements = llvm::SaturatingAdd<uint64_t>(uint64_t(numElements), uint64_t(shape.numElements())) &
                    uint64_t(std::numeric_limits<int64_t>::max());
  }
};

} // namespace

std::vector<ArgumentSet> argumentSets(const HloModule &module, llvm::ArrayRef<Regime> wanted, bool scatterInside) {
  std::vector<Demand> demands = interp::demandsOf(module);
  Survey survey(module, demands, scatterInside);
  auto isWanted = [&](Regime regime) {
    return wanted.empty() ? regime == Regime::Ordinary || survey.numElements <= maxElementsOfAllRegimes
                          : llvm::is_contained(wanted, regime);
  };
  std::vector<ArgumentSet> sets;
  if (isWanted(Regime::Ordinary))
    sets.push_back({Regime::Ordinary, 0});
  if (isWanted(Regime::Exact) && survey.hasFloats)
    sets.push_back({Regime::Exact, 0});
  if (isWanted(Regime::Special))
    for (unsigned round = 0, n = SpecialPlan(module, demands).numRounds(); round < n; ++round)
      sets.push_back({Regime::Special, round});
  if (isWanted(Regime::Index) && survey.fewestIndices) {
    constexpr int64_t enough = 8; // indices; fewer take turns
    unsigned numRounds = survey.fewestIndices >= enough ? 1 : survey.numElements <= 1 << 16 ? 12 : 2;
    for (unsigned round = 0; round < numRounds; ++round)
      sets.push_back({Regime::Index, round, scatterInside});
  }
  if (isWanted(Regime::Ties) && TieValues::matterTo(module))
    sets.push_back({Regime::Ties, 0});
  if (sets.empty())
    sets.push_back({Regime::Ordinary, 0});
  return sets;
}

llvm::FailureOr<std::vector<Literal>> makeArguments(const HloModule &module, DiagnosticEngine &diagnostics,
                                                    uint64_t seed, ArgumentSet set, uint64_t maxBytes) {
  std::vector<Demand> demands = interp::demandsOf(module);
  Request request{seed, set, {}, nullptr, nullptr};
  if (set.regime == Regime::Exact)
    request.scale = interp::exactScaleFor(module);
  std::optional<SpecialPlan> special;
  if (set.regime == Regime::Special)
    request.special = &special.emplace(module, demands);
  std::optional<TieValues> ties;
  if (set.regime == Regime::Ties)
    request.ties = &ties.emplace(module);
  std::vector<Literal> arguments;
  unsigned leaf = 0;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    uint64_t bytes = 0;
    for (const Shape::Leaf &part : parameter->shape().leaves())
      if (part.shape.isArray())
        bytes =
            llvm::SaturatingMultiplyAdd<uint64_t>(part.shape.numElements(), hostBytes(part.shape.elementType()), bytes);
    if (parameter->shape().hasDynamicDims() || bytes > maxBytes) {
      diagnostics.report(DiagnosticKind::UnsupportedFeature, parameter->range(),
                         "cannot make a value for " + describe(*parameter) +
                             (bytes > maxBytes ? ": it is too large" : ": its shape is dynamic"));
      return llvm::failure();
    }
    maxBytes -= bytes;
    arguments.emplace_back(parameter->shape());
    generate(arguments.back(), demands, request, leaf);
  }
  return arguments;
}

} // namespace hloc
