// Scatters: several updates of one element come in any order, and some may go to several places.

#include "interp/BoundScatter.h"

#include "interp/BoundSums.h"
#include "interp/FloatGrid.h"
#include "interp/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hloc::interp {

namespace {

constexpr double leastNormal = 0x1p-126; // of f32

/// Part `part` of each element of a literal that bounds are kept in, as f64.
Literal partOf(const Literal &bound, unsigned part, unsigned numParts) {
  Literal made(bound.shape().withElementType(ElementType::F64));
  auto from = bound.data<double>();
  auto to = made.mutableData<double>();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = from[i * numParts + part];
  return made;
}

Literal mapped(Literal literal, llvm::function_ref<double(double)> function) {
  for (double &element : literal.mutableData<double>())
    element = function(element);
  return literal;
}

/// How far results of different orders may be apart.
class OrderErrors {
public:
  OrderErrors(const BoundStep &step, Opcode opcode)
      : step(step), opcode(opcode), grid(componentType(step.value.shape().elementType())),
        numParts(isComplex(step.value.shape().elementType()) ? 2 : 1), into(asBound(step.operands[0].array())),
        updates(asBound(step.operands[2].array())),
        hits(scattered(mapped(partOf(into, 0, numParts), [](double) { return 0.0; }),
                       mapped(partOf(updates, 0, numParts), [](double) { return 1.0; }), std::plus<double>())) {}

  /// Is an update one rounding of known numbers? Then the order of the text has one result.
  bool hasOneResultInOrder() const {
    bool isKnown = isKnownExactly() && !step.operands[2].unrounded;
    return isKnown && (adds() || multiplies());
  }

  /// Widens `ends`, which are right for elements that get one update. Those that get none stay what they are.
  void widen(Bounds &ends) const {
    BoundsPtr before = boundsOrPoint(step.operands[0]);
    auto count = hits.data<double>();
    for (unsigned part = 0; part < numParts; ++part) {
      std::vector<double> errors = errorsOf(part);
      auto low = ends.low.mutableData<double>(), high = ends.high.mutableData<double>();
      for (size_t i = 0; i < errors.size(); ++i) {
        double &least = low[i * numParts + part], &greatest = high[i * numParts + part];
        if (count[i] == 0) {
          least = before->low.data<double>()[i * numParts + part];
          greatest = before->high.data<double>()[i * numParts + part];
        } else if (std::isinf(errors[i])) {
          setUnknown(least, greatest);
        } else if (errors[i] > 0) {
          least = grid.nearest(least - errors[i]);
          greatest = grid.nearest(greatest + errors[i]);
          if (std::isnan(least) || std::isnan(greatest)) // a type without infinity
            setUnknown(least, greatest);
        }
      }
    }
  }

private:
  Literal scattered(Literal start, const Literal &terms, llvm::function_ref<double(double, double)> combine) const {
    return scatterNumbers(step.instr, std::move(start), step.operands[1].array(), terms, combine);
  }

  /// By element; infinite: anything may come out.
  std::vector<double> errorsOf(unsigned part) const {
    auto count = hits.data<double>();
    std::vector<double> errors(count.size(), 0);
    const bool sums = adds(), products = multiplies();
    if (!isKnownExactly() || (!sums && !products)) {
      for (size_t i = 0; i < errors.size(); ++i)
        errors[i] = count[i] < 2 ? 0 : std::numeric_limits<double>::infinity();
      return errors;
    }
    // What is not finite, or a factor of zero, decides in any order, as long as the others stay in range.
    auto magnitude = [&](double x) {
      bool decides = !std::isfinite(x) || (products && x == 0);
      return decides ? (sums ? 0.0 : 1.0) : std::fabs(x);
    };
    Literal first = mapped(partOf(into, part, numParts), magnitude);
    Literal terms = mapped(partOf(updates, part, numParts), magnitude);
    Literal values = partOf(asBound(step.value), part, numParts);
    // What partial results reach at most and, of products, at least.
    Literal most = sums ? scattered(first, terms, std::plus<double>())
                        : scattered(mapped(first, atLeastOne), mapped(terms, atLeastOne), std::multiplies<double>());
    Literal least =
        sums ? most : scattered(mapped(first, atMostOne), mapped(terms, atMostOne), std::multiplies<double>());
    for (size_t i = 0; i < errors.size(); ++i) {
      if (count[i] < 2)
        continue;
      double greatest = most.data<double>()[i];
      bool inRange =
          greatest < grid.largestNumber() / 2 && (sums || least.data<double>()[i] > 2 * grid.smallestNormalNumber());
      double value = values.data<double>()[i], size = sums ? greatest : std::fabs(value);
      if (inRange && !std::isfinite(value))
        continue;
      // The reference's own error and that of another order.
      double relative = std::expm1((count[i] + 1) * std::log1p(grid.unitRoundoff()));
      errors[i] = inRange ? 2 * relative * size : std::numeric_limits<double>::infinity();
    }
    return errors;
  }

  bool adds() const { return opcode == Opcode::Add || opcode == Opcode::Subtract; }
  bool multiplies() const { return opcode == Opcode::Multiply && numParts == 1; }
  bool isKnownExactly() const { return !step.operands[0].bounds && !step.operands[2].bounds; }

  static double atLeastOne(double x) { return x < 1 ? 1 : x; }
  static double atMostOne(double x) { return x > 1 ? 1 : x; }

  const BoundStep &step;
  Opcode opcode;
  FloatGrid grid;
  unsigned numParts;
  Literal into, updates, hits;
};

} // namespace

BoundsPtr boundOverwritten(const BoundStep &step) {
  BoundsPtr into = boundsOrPoint(step.operands[0]), updates = boundsOrPoint(step.operands[2]);
  const Literal &indices = step.operands[1].array();
  Bounds ends{endsOfOverwritten(step.instr, into->low, indices, updates->low, false),
              endsOfOverwritten(step.instr, into->high, indices, updates->high, true)};
  return nullIfExact(std::make_shared<Bounds>(std::move(ends)));
}

BoundsPtr boundAnyOrder(const BoundStep &step, const BoundsPtr &ends) {
  std::optional<Opcode> plain = plainOp(*step.instr.computation(AttributeKey::ToApply));
  if ((plain == Opcode::Maximum || plain == Opcode::Minimum) && !isComplex(step.value.shape().elementType()))
    return ends;
  OrderErrors errors(step, plain.value_or(Opcode::Call));
  auto made = std::make_shared<Bounds>(ends && !errors.hasOneResultInOrder() ? *ends : *pointBounds(step.value));
  errors.widen(*made);
  return nullIfExact(std::move(made));
}

namespace {

/// Places that updates may go to whose index vectors are not known.
class OpenTargets {
public:
  explicit OpenTargets(const BoundStep &step)
      : step(step), indices(step.operands[1].array()), low(step.operands[1].bounds->low),
        high(step.operands[1].bounds->high) {
    const Shape &shape = indices.shape();
    vectorDim = unsigned(step.instr.intOr(AttributeKey::IndexVectorDim, shape.rank()));
    numComponents = vectorDim < shape.rank() ? shape.dim(vectorDim) : 1;
    for (unsigned dim = vectorDim + 1; dim < shape.rank(); ++dim)
      stride *= shape.dim(dim);
    width.assign(size_t(numComponents), 1);
    for (int64_t i = 0; i < indices.numElements(); ++i) {
      const uint64_t span = uint64_t(high.getInt(i)) - uint64_t(low.getInt(i)) + 1;
      uint64_t &most = width[size_t(componentOf(i))];
      most = std::max(most, span == 0 ? std::numeric_limits<uint64_t>::max() : span);
    }
  }

  /// How many places an update may have at most; saturates.
  uint64_t numPlaces() const {
    uint64_t product = 1;
    for (uint64_t span : width)
      product = llvm::SaturatingMultiply(product, span);
    return product;
  }

  /// Of all places: sums of `terms`, each once in each place that it may go to. With `asReference` where the reference
  /// puts it.
  Literal sums(const Literal &terms, bool asReference) const {
    Literal total(Shape::array(ElementType::F64, step.value.shape().dims()));
    for (uint64_t place = 0, count = asReference ? 1 : numPlaces(); place < count; ++place)
      total = scatterNumbers(step.instr, std::move(total), indicesAt(place, asReference), terms, std::plus<double>());
    return total;
  }

private:
  int64_t componentOf(int64_t i) const { return i / stride % numComponents; }
  int64_t firstOf(int64_t i) const { return i - componentOf(i) * stride; }
  bool isOpen(int64_t i) const {
    for (int64_t k = 0, at = firstOf(i); k < numComponents; ++k, at += stride)
      if (low.getInt(at) != high.getInt(at))
        return true;
    return false;
  }

  /// Indices of the open updates at one of their places; those of the others, and beyond their places, are outside.
  Literal indicesAt(uint64_t place, bool asReference) const {
    constexpr int64_t outside = -1;
    Literal made(Shape::array(ElementType::S64, indices.shape().dims()));
    llvm::SmallVector<uint64_t, 4> offset(width.size());
    for (size_t k = 0; k < width.size(); place /= width[k++])
      offset[k] = place % width[k];
    for (int64_t i = 0; i < indices.numElements(); ++i) {
      const uint64_t by = offset[size_t(componentOf(i))];
      const bool isBeyond = by > uint64_t(high.getInt(i)) - uint64_t(low.getInt(i));
      if (!isOpen(i) || (!asReference && isBeyond))
        made.setInt(i, outside);
      else
        made.setInt(i, asReference ? indices.getInt(i) : int64_t(uint64_t(low.getInt(i)) + by));
    }
    return made;
  }

  const BoundStep &step;
  const Literal &indices, &low, &high;
  unsigned vectorDim = 0;
  int64_t numComponents = 1, stride = 1;
  llvm::SmallVector<uint64_t, 4> width; ///< by component, the most of any update
};

} // namespace

llvm::FailureOr<BoundsPtr> boundOpenTargets(const BoundStep &step, const BoundsPtr &ends) {
  constexpr uint64_t mostPlaces = 64;
  const OpenTargets targets(step);
  const ElementType type = step.value.shape().elementType();
  if (targets.numPlaces() > mostPlaces)
    return unknownBounds(step.value);
  const bool sums = isFloat(type) && plainOp(*step.instr.computation(AttributeKey::ToApply)) == Opcode::Add;
  BoundsPtr updates = boundsOrPoint(step.operands[2]), unknown = unknownBounds(step.value);
  auto made = std::make_shared<Bounds>(ends ? *ends : *pointBounds(step.value));
  Literal terms(Shape::array(ElementType::F64, step.operands[2].array().shape().dims()));
  auto fill = [&](llvm::function_ref<double(size_t)> function) -> const Literal & {
    auto to = terms.mutableData<double>();
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = function(i);
    return terms;
  };
  const Literal hits = targets.sums(fill([](size_t) { return 1.0; }), false);
  auto open = [&](int64_t i) {
    for (auto [from, to] : {std::pair(&unknown->low, &made->low), {&unknown->high, &made->high}})
      std::copy_n(from->bytes().begin() + i * (from->bytes().size() / size_t(step.value.numElements())),
                  from->bytes().size() / size_t(step.value.numElements()),
                  to->mutableBytes().begin() + i * (to->bytes().size() / size_t(step.value.numElements())));
  };
  auto isHit = [&](int64_t i) { return hits.getDouble(i) > 0; };
  if (!sums) {
    for (int64_t i = 0; i < step.value.numElements(); ++i)
      if (isHit(i))
        open(i);
    return BoundsPtr(std::move(made));
  }
  // An update that may go elsewhere is there or is not.
  auto end = [&](const Literal &ends, size_t i, double infinite) {
    const bool isFinite =
        std::isfinite(updates->low.data<double>()[i]) && std::isfinite(updates->high.data<double>()[i]);
    return isFinite ? ends.data<double>()[i] : infinite;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto least = [&](size_t i) { return std::min(0.0, end(updates->low, i, -infinity)); };
  auto most = [&](size_t i) { return std::max(0.0, end(updates->high, i, infinity)); };
  const Literal allLow = targets.sums(fill(least), false), ownLow = targets.sums(fill(least), true);
  const Literal allHigh = targets.sums(fill(most), false), ownHigh = targets.sums(fill(most), true);
  const FloatGrid grid(type);
  auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
  for (int64_t i = 0; i < step.value.numElements(); ++i) {
    if (!isHit(i))
      continue;
    double &from = low[size_t(i)], &to = high[size_t(i)];
    const double size = std::max(std::fabs(from), std::fabs(to)) + allHigh.getDouble(i) - allLow.getDouble(i);
    const double error = 2 * (hits.getDouble(i) + 1) * grid.unitRoundoff() * size;
    from += allLow.getDouble(i) - ownLow.getDouble(i) - ownHigh.getDouble(i) - error;
    to += allHigh.getDouble(i) - ownHigh.getDouble(i) - ownLow.getDouble(i) + error;
    if (!std::isfinite(from) || !std::isfinite(to) || size >= grid.largestNumber() / 2)
      setUnknown(from, to);
  }
  return BoundsPtr(std::move(made));
}

namespace {

/// Are all numbers of f32 between the two multiples of the least normal one? Then so are sums of them.
bool areMultiples(double low, double high) {
  constexpr double leastOfAll = leastNormal * 0x1p23;
  if (low == high) {
    const double times = low / leastNormal; // exact, or so large that all such numbers are multiples
    return !std::isfinite(low) || std::trunc(times) == times;
  }
  return std::isnan(low) == std::isnan(high) && (std::isnan(low) || low >= leastOfAll || high <= -leastOfAll);
}

/// By element: 1 where a subnormal number may be or come of it, else 0.
Literal mayBeSubnormal(const Bounds &bounds, unsigned part, unsigned numParts) {
  Literal low = partOf(bounds.low, part, numParts), high = partOf(bounds.high, part, numParts);
  auto from = high.data<double>();
  auto to = low.mutableData<double>();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = areMultiples(to[i], from[i]) ? 0 : 1;
  return low;
}

/// (A difference may be the sum with what is turned.)
bool mayAdd(const HloComputation &combiner) {
  return llvm::any_of(combiner.instructions(), [](const HloInstruction *instr) {
    return instr->opcode() == Opcode::Add || instr->opcode() == Opcode::Subtract;
  });
}

/// Are updates added as they are? What else is made of them may be a subnormal number wherever they are none.
bool addsUpdates(const HloComputation &combiner) {
  return llvm::all_of(combiner.instructions(), [](const HloInstruction *instr) {
    return llvm::is_contained({Opcode::Parameter, Opcode::Add, Opcode::Tuple}, instr->opcode()) &&
           llvm::all_of(instr->operands(), [&](const HloInstruction *operand) {
             return instr->opcode() == Opcode::Tuple || operand->opcode() == Opcode::Parameter;
           });
  });
}

/// What sums of f32 may lack: each update and what was there a subnormal number, and, where neither is one, each sum.
void admitZeros(const HloInstruction &scatter, const Bounded &into, const Literal &indices, bool areIndicesOpen,
                const Bounded &updates, Bounded &result) {
  const ElementType type = result.array().shape().elementType();
  const unsigned numParts = isComplex(type) ? 2 : 1;
  const BoundsPtr first = boundsOrPoint(into), terms = boundsOrPoint(updates);
  const FloatGrid grid(ElementType::F32);
  const bool areAsTheyAre = addsUpdates(*scatter.computation(AttributeKey::ToApply));
  std::shared_ptr<Bounds> made;
  for (unsigned part = 0; part < numParts; ++part) {
    const Literal odd = mayBeSubnormal(*first, part, numParts);
    Literal oddTerms = mayBeSubnormal(*terms, part, numParts);
    if (!areAsTheyAre)
      oddTerms = mapped(oddTerms, [](double) { return 1.0; });
    auto isOdd = [](double x) { return x != 0; };
    if (llvm::none_of(odd.data<double>(), isOdd) && llvm::none_of(oddTerms.data<double>(), isOdd))
      continue;
    if (!made)
      made = std::make_shared<Bounds>(result.bounds ? *result.bounds : *pointBounds(result.array()));
    const Literal subnormal = scatterNumbers(scatter, odd, indices, oddTerms, std::plus<double>());
    const Literal hits = scatterNumbers(scatter, mapped(odd, [](double) { return 0.0; }), indices,
                                        mapped(oddTerms, [](double) { return 1.0; }), std::plus<double>());
    const double all = areIndicesOpen ? double(oddTerms.data<double>().size()) : 0;
    auto low = made->low.mutableData<double>(), high = made->high.mutableData<double>();
    for (size_t i = 0; i < hits.data<double>().size(); ++i) {
      double &least = low[i * numParts + part], &greatest = high[i * numParts + part];
      // Where an open index may lead, bounds are spread.
      const double count = hits.data<double>()[i] + (least != greatest ? all : 0);
      if (count == 0 || (all == 0 && subnormal.data<double>()[i] == 0) || std::isnan(least) || std::isnan(greatest))
        continue;
      least = grid.nearest(least - (count + 1) * leastNormal);
      greatest = grid.nearest(greatest + (count + 1) * leastNormal);
    }
  }
  if (made)
    result.bounds = nullIfExact(std::move(made));
}

} // namespace

void admitZerosForSubnormals(const HloInstruction &scatter, llvm::ArrayRef<Bounded> operands, bool areIndicesOpen,
                             Bounded &result) {
  const size_t numArrays = operands.size() / 2;
  if (!mayAdd(*scatter.computation(AttributeKey::ToApply)))
    return;
  for (size_t i = 0; i < numArrays; ++i) {
    Bounded &array = result.value.isTuple() ? result.elements[i] : result;
    const ElementType type = array.array().shape().elementType();
    if (type == ElementType::F32 || type == ElementType::C64)
      admitZeros(scatter, operands[i], operands[numArrays].array(), areIndicesOpen, operands[numArrays + 1 + i], array);
  }
}

} // namespace hloc::interp
