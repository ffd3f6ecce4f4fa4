// Sorts and top-k of keys that have bounds.
//
// Two elements are in a known order if the comparator says so for all that they may be. An element comes after all that
// are known to come before it, and after those at most whose order is open; at a place stands any of the elements that
// may come there.
//
//   keys 1, 2, [2.9, 3.1], [3, 3.2], 5 of a, b, c, d, e:    a, b, {c d}, {c d}, e
//
// Open pairs are looked for near each other in the reference's order: as keys are intervals, what is between two that
// overlap overlaps with one of them.

#include "interp/BoundMachine.h"
#include "interp/SortOrder.h"

#include <numeric>

namespace hloc::interp {

namespace {

/// Of each place, in all rows, the first and the last that its element may come to.
struct Places {
  std::vector<int64_t> first, last;
};

/// Pairs of places in one row, the earlier one first.
struct Pairs {
  std::vector<int64_t> one, other;
  size_t size() const { return one.size(); }

  void add(int64_t p, int64_t q) {
    one.push_back(p);
    other.push_back(q);
  }
};

/// Which of the pairs are in an order that is open.
using FindOpen = llvm::function_ref<llvm::FailureOr<std::vector<bool>>(const Pairs &)>;

class PlaceSearch {
public:
  PlaceSearch(int64_t count, int64_t rowLength, FindOpen findOpen)
      : count(count), rowLength(rowLength), findOpen(findOpen), left(size_t(count), 0) {
    std::iota(left.begin(), left.end(), 0);
    right = left;
  }

  llvm::FailureOr<Places> run() {
    llvm::FailureOr<bool> isComplete = findRuns();
    if (failed(isComplete))
      return llvm::failure();
    return *isComplete ? counted() : grouped();
  }

private:
  bool isInRow(int64_t place, int64_t other) const {
    return other >= 0 && other < count && place / rowLength == other / rowLength;
  }

  /// How far to either side places go without a gap whose order with this one is open. False if that takes too many
  /// pairs: then all to the end of the row are taken for open.
  llvm::FailureOr<bool> findRuns() {
    size_t budget = size_t(64 * count) + (size_t(1) << 16);
    std::vector<int64_t> forward = left, backward = left;
    for (int64_t distance = 1; !forward.empty() || !backward.empty(); ++distance) {
      llvm::erase_if(forward, [&](int64_t p) { return !isInRow(p, p + distance); });
      llvm::erase_if(backward, [&](int64_t q) { return !isInRow(q, q - distance); });
      Pairs pairs;
      for (int64_t p : forward)
        pairs.add(p, p + distance);
      for (int64_t q : backward)
        pairs.add(q - distance, q);
      if (pairs.size() > budget) {
        for (int64_t p : forward)
          right[size_t(p)] = p / rowLength * rowLength + rowLength - 1;
        for (int64_t q : backward)
          left[size_t(q)] = q / rowLength * rowLength;
        return false;
      }
      budget -= pairs.size();
      llvm::FailureOr<std::vector<bool>> open = findOpen(pairs);
      if (failed(open))
        return llvm::failure();
      size_t at = 0;
      auto goesOn = [&](std::vector<int64_t> &reached, int64_t place, int64_t to) {
        const bool isOpen = (*open)[at++];
        reached[size_t(place)] = isOpen ? to : reached[size_t(place)];
        return isOpen;
      };
      llvm::erase_if(forward, [&](int64_t p) { return !goesOn(right, p, p + distance); });
      llvm::erase_if(backward, [&](int64_t q) { return !goesOn(left, q, q - distance); });
    }
    return true;
  }

  /// The open pairs are those in the runs, and some of two whose runs meet.
  llvm::FailureOr<Places> counted() {
    std::vector<int64_t> furthest = right; // of all up to here
    for (size_t p = 1; p < furthest.size(); ++p)
      furthest[p] = std::max(furthest[p], furthest[p - 1]);
    Places places;
    places.first.resize(size_t(count));
    std::iota(places.first.begin(), places.first.end(), 0);
    places.last = places.first;
    auto note = [&](int64_t p, int64_t q) {
      ++places.last[size_t(p)];
      --places.first[size_t(q)];
    };
    Pairs beyond;
    for (int64_t q = 0; q < count; ++q) {
      for (int64_t p = left[size_t(q)]; p < q; ++p)
        note(p, q);
      for (int64_t p = left[size_t(q)] - 1; isInRow(q, p) && furthest[size_t(p)] + 1 >= left[size_t(q)]; --p)
        if (right[size_t(p)] >= q)
          note(p, q);
        else if (left[size_t(q)] < q && right[size_t(p)] + 1 >= left[size_t(q)] && right[size_t(p)] + 1 < q)
          beyond.add(p, q);
    }
    llvm::FailureOr<std::vector<bool>> open = findOpen(beyond);
    if (failed(open))
      return llvm::failure();
    for (size_t i = 0; i < beyond.size(); ++i)
      if ((*open)[i])
        note(beyond.one[i], beyond.other[i]);
    return places;
  }

  /// Any order within groups that no run leaves.
  Places grouped() const {
    Places places{left, right};
    for (size_t p = 1; p < right.size(); ++p)
      places.last[p] = std::max(places.last[p], places.last[p - 1]);
    for (size_t p = left.size(); p-- > 1;)
      places.first[p - 1] = std::min(places.first[p - 1], places.first[p]);
    std::vector<int64_t> starts(right.size(), 0);
    for (int64_t p = 1; p < count; ++p) {
      const bool isSplit = places.last[size_t(p - 1)] < p && places.first[size_t(p)] >= p;
      starts[size_t(p)] = isSplit ? p : starts[size_t(p - 1)];
    }
    int64_t end = count - 1;
    for (int64_t p = count; p-- > 0;) {
      places.last[size_t(p)] = end;
      end = starts[size_t(p)] == p ? p - 1 : end;
    }
    places.first = std::move(starts);
    return places;
  }

  int64_t count, rowLength;
  FindOpen findOpen;
  std::vector<int64_t> left, right; ///< of each place the ends of its run
};

/// From positions in a row to those in all.
void toPositions(std::vector<int64_t> &order, int64_t rowLength) {
  for (size_t i = 0; i < order.size(); ++i)
    order[i] += int64_t(i) / rowLength * rowLength;
}

Literal picked(const Literal &literal, llvm::ArrayRef<int64_t> elements) {
  Literal made(Shape::array(literal.shape().elementType(), {int64_t(elements.size())}));
  const size_t width = hostBytes(literal.shape().elementType());
  for (size_t i = 0; i < elements.size(); ++i)
    std::copy_n(literal.bytes().begin() + size_t(elements[i]) * width, width, made.mutableBytes().begin() + i * width);
  return made;
}

Bounded picked(const Bounded &operand, llvm::ArrayRef<int64_t> elements) {
  BoundsPtr bounds;
  if (operand.bounds)
    bounds =
        std::make_shared<Bounds>(Bounds{picked(operand.bounds->low, elements), picked(operand.bounds->high, elements)});
  return Bounded(Value(picked(operand.array(), elements)), std::move(bounds));
}

Bounded withDimLast(const Bounded &operand, const DimLast &dims) {
  BoundsPtr bounds;
  if (operand.bounds)
    bounds = std::make_shared<Bounds>(
        Bounds{transposed(operand.bounds->low, dims.to), transposed(operand.bounds->high, dims.to)});
  return Bounded(Value(transposed(operand.array(), dims.to)), std::move(bounds));
}

/// Of pairs of places: is it open whether the comparator puts the first before the second?
class OpenPairs {
public:
  using Less = llvm::function_ref<llvm::FailureOr<Bounded>(llvm::ArrayRef<int64_t>, llvm::ArrayRef<int64_t>)>;

  /// `order`: the position of the element at each place. `less`: of elements at some and at other positions.
  OpenPairs(llvm::ArrayRef<int64_t> order, Less less) : order(order), less(less) {}

  llvm::FailureOr<std::vector<bool>> operator()(const Pairs &pairs) const {
    std::vector<bool> open(pairs.size(), false);
    if (open.empty())
      return open;
    std::vector<int64_t> one, other;
    for (size_t i = 0; i < pairs.size(); ++i) {
      one.push_back(order[size_t(pairs.one[i])]);
      other.push_back(order[size_t(pairs.other[i])]);
    }
    llvm::FailureOr<Bounded> before = less(one, other), after = less(other, one);
    if (failed(before) || failed(after))
      return llvm::failure();
    BoundsPtr isBefore = boundsOrPoint(*before), isAfter = boundsOrPoint(*after);
    for (size_t i = 0; i < open.size(); ++i) {
      const bool isTie = isAfter->high.getInt(int64_t(i)) == 0 && one[i] < other[i];
      open[i] = isBefore->low.getInt(int64_t(i)) == 0 && !isTie;
    }
    return open;
  }

private:
  llvm::ArrayRef<int64_t> order;
  Less less;
};

/// What may stand at each place: the elements of an operand, in order, that may come there.
Bounded atPlaces(const Bounded &operand, llvm::ArrayRef<int64_t> order, const Places &places) {
  constexpr int64_t furthest = 512; // beyond this nothing is known
  const auto count = int64_t(order.size());
  int64_t most = 0;
  std::vector<int64_t> tooFar(size_t(count) + 1, 0); // how many more come to a place than to the one before
  for (int64_t p = 0; p < count; ++p) {
    const int64_t first = places.first[size_t(p)], last = places.last[size_t(p)], way = std::max(p - first, last - p);
    most = std::max(most, std::min(way, furthest));
    if (way > furthest) {
      ++tooFar[size_t(first)];
      --tooFar[size_t(last + 1)];
    }
  }
  Bounded made = picked(operand, order);
  std::vector<int64_t> from(size_t(count), 0);
  for (int64_t way = -most; way <= most; ++way) {
    for (int64_t p = 0; p < count; ++p) {
      const int64_t q = p + way;
      const bool comes = q >= 0 && q < count && places.first[size_t(q)] <= p && p <= places.last[size_t(q)];
      from[size_t(p)] = order[size_t(comes ? q : p)];
    }
    admit(made, picked(operand, from));
  }
  auto bounds = std::make_shared<Bounds>(*boundsOrPoint(made));
  BoundsPtr unknown = unknownBounds(made.array());
  for (int64_t p = 0, comings = 0; p < count; ++p) {
    comings += tooFar[size_t(p)];
    if (comings > 0) {
      copyElement(unknown->low, p, bounds->low, p);
      copyElement(unknown->high, p, bounds->high, p);
    }
  }
  made.bounds = nullIfExact(std::move(bounds));
  return made;
}

/// The operand that alone decides, by its own order, what a comparator says.
std::optional<size_t> onlyKey(const HloComputation &comparator) {
  std::vector<const HloInstruction *> pending{comparator.root()};
  std::optional<size_t> key;
  while (!pending.empty()) {
    const HloInstruction &instr = *pending.back();
    pending.pop_back();
    if (instr.opcode() == Opcode::Parameter) {
      if (key && *key != size_t(instr.parameterNumber()) / 2)
        return std::nullopt;
      key = size_t(instr.parameterNumber()) / 2;
    } else if (!llvm::is_contained({Opcode::Compare, Opcode::Select, Opcode::Constant}, instr.opcode())) {
      return std::nullopt;
    }
    llvm::append_range(pending, instr.operands());
  }
  return key;
}

/// Does it compare two numbers, and nothing else? Then no two come before each other.
bool isStrict(const HloComputation &comparator) {
  const HloInstruction &root = *comparator.root();
  const auto isParameter = [](const HloInstruction *instr) { return instr->opcode() == Opcode::Parameter; };
  return root.opcode() == Opcode::Compare && llvm::all_of(root.operands(), isParameter) &&
         root.operand(0) != root.operand(1) &&
         llvm::is_contained({ComparisonDirection::Lt, ComparisonDirection::Gt},
                            root.enumOr(AttributeKey::Direction, ComparisonDirection::Eq));
}

/// A NaN comes neither before nor after any number, although these have an order: what is sorted so may have any.
bool comparesNans(const HloComputation &comparator, const Literal &keys) {
  if (!isFloat(keys.shape().elementType()) || comparator.root()->comparisonType() == ComparisonType::TotalOrder)
    return false;
  for (int64_t i = 0, n = keys.numElements(); i < n; ++i)
    if (std::isnan(keys.getDouble(i)))
      return true;
  return false;
}

/// Of some two neighbours each comes before the other: what such a comparator sorts may have any order.
template <typename Less>
llvm::FailureOr<bool> contradictsItself(llvm::ArrayRef<int64_t> order, int64_t rowLength, Less less) {
  std::vector<int64_t> one, other;
  for (size_t i = 0; i + 1 < order.size(); ++i)
    if (int64_t(i + 1) % rowLength != 0) {
      one.push_back(order[i]);
      other.push_back(order[i + 1]);
    }
  if (one.empty())
    return false;
  llvm::FailureOr<Bounded> forth = less(one, other), back = less(other, one);
  if (failed(forth) || failed(back))
    return llvm::failure();
  return llvm::any_of(llvm::zip_equal(forth->array().bytes(), back->array().bytes()),
                      [](auto pair) { return std::get<0>(pair) && std::get<1>(pair); });
}

/// Bounds of `count` elements of each row, of which `sorted` has all.
BoundsPtr firstOfRows(const Bounded &sorted, int64_t rowLength, int64_t count, const Shape &shape) {
  if (!sorted.bounds)
    return nullptr;
  std::vector<int64_t> elements;
  for (int64_t i = 0, n = sorted.array().numElements(); i < n; ++i)
    if (i % rowLength < count)
      elements.push_back(i);
  auto made = std::make_shared<Bounds>(Bounds{Literal(boundsShape(shape)), Literal(boundsShape(shape))});
  llvm::copy(picked(sorted.bounds->low, elements).bytes(), made->low.mutableBytes().begin());
  llvm::copy(picked(sorted.bounds->high, elements).bytes(), made->high.mutableBytes().begin());
  return nullIfExact(std::move(made));
}

/// a < b, of f64 in total order but for the signs of zeros and NaNs, which no bounds are kept of; of integers as they
/// are.
Bounded lessThan(const Bounded &a, const Bounded &b) {
  const auto count = a.array().numElements();
  BoundsPtr x = boundsOrPoint(a), y = boundsOrPoint(b);
  Literal low(Shape::array(ElementType::Pred, {count})), high = low;
  const bool isReal = isFloat(a.array().shape().elementType());
  for (int64_t i = 0; i < count; ++i) {
    bool isSure = false, isPossible = true;
    if (isUnknown(*x, i) || isUnknown(*y, i)) {
    } else if (isReal && (std::isnan(x->low.getDouble(i)) || std::isnan(y->low.getDouble(i)))) {
      isSure = isPossible = !std::isnan(x->low.getDouble(i));
    } else {
      Literal ends = picked(x->high, i), others = picked(y->low, i);
      isSure = order(ends, others, 0) < 0;
      ends = picked(x->low, i);
      others = picked(y->high, i);
      isPossible = order(ends, others, 0) < 0;
    }
    low.setInt(i, isSure);
    high.setInt(i, isPossible);
  }
  return Bounded(Value(low), std::make_shared<Bounds>(Bounds{low, high}));
}

} // namespace

llvm::LogicalResult BoundMachine::boundSort(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                            Bounded &result) {
  if (failed(boundByEnds(instr, operands, result)))
    return llvm::failure();
  const HloComputation &comparator = *instr.computation(AttributeKey::ToApply);
  const std::optional<size_t> key = onlyKey(comparator);
  const bool isOpen =
      operands.size() > 1 && llvm::any_of(operands, [](const Bounded &operand) { return operand.isBounded(); });
  const bool isMixedUp = key && isStrict(comparator) && comparesNans(comparator, operands[*key].array());
  if (!isOpen && isStrict(comparator) && !isMixedUp)
    return llvm::success();
  const Shape &shape = operands[0].array().shape();
  const DimLast dims(shape.rank(), instr.ints(AttributeKey::Dimensions)[0]);
  std::vector<Bounded> rows;
  std::vector<Literal> values;
  for (const Bounded &operand : operands) {
    rows.push_back(withDimLast(operand, dims));
    values.push_back(rows.back().array());
  }
  Step step{instr, {}, machine};
  llvm::FailureOr<std::vector<int64_t>> order = orderOfSort(step, values);
  if (failed(order))
    return llvm::failure();
  auto less = [&](llvm::ArrayRef<int64_t> one, llvm::ArrayRef<int64_t> other) -> Result {
    std::vector<Bounded> arguments;
    for (const Bounded &operand : rows)
      for (llvm::ArrayRef<int64_t> elements : {one, other})
        arguments.push_back(picked(operand, elements));
    Shape lift = Shape::array(ElementType::Pred, {int64_t(one.size())});
    Result answers = run(*instr.computation(AttributeKey::ToApply), std::move(arguments), &lift);
    if (succeeded(answers) && answers->array().numElements() != lift.numElements())
      return repeated(*answers, lift.numElements());
    return answers;
  };
  const int64_t rowLength = values[0].shape().dims().back();
  toPositions(*order, rowLength);
  std::vector<Bounded *> leaves = leavesOf(result);
  llvm::FailureOr<bool> contradicts = isStrict(comparator) ? isMixedUp : contradictsItself(*order, rowLength, less);
  if (failed(contradicts))
    return llvm::failure();
  if (*contradicts)
    for (Bounded *leaf : leaves)
      leaf->bounds = unknownBounds(leaf->array());
  if (*contradicts || !isOpen)
    return llvm::success();
  llvm::FailureOr<Places> places = PlaceSearch(int64_t(order->size()), rowLength, OpenPairs(*order, less)).run();
  if (failed(places))
    return llvm::failure();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (key == i)
      continue; // which the ends tell more of
    Bounded sorted = atPlaces(rows[i], *order, *places);
    BoundsPtr bounds = firstOfRows(sorted, rowLength, rowLength, values[i].shape());
    leaves[i]->bounds =
        bounds
            ? std::make_shared<Bounds>(Bounds{transposed(bounds->low, dims.back), transposed(bounds->high, dims.back)})
            : nullptr;
  }
  return llvm::success();
}

llvm::LogicalResult BoundMachine::boundTopK(const HloInstruction &instr, llvm::ArrayRef<Bounded> operands,
                                            Bounded &result) {
  if (failed(boundByEnds(instr, operands, result)))
    return llvm::failure();
  const Bounded &operand = operands[0];
  if (!operand.bounds || leavesOf(result).size() < 2)
    return llvm::success();
  const bool largest = instr.flag(AttributeKey::Largest, true);
  const int64_t rowLength = operand.array().shape().dims().back();
  Step step{instr, {}, machine};
  llvm::FailureOr<std::vector<int64_t>> order = orderOfTopK(step, operand.array(), largest);
  if (failed(order))
    return llvm::failure();
  Literal positions(Shape::array(leavesOf(result)[1]->array().shape().elementType(), {int64_t(order->size())}));
  for (int64_t i = 0; i < positions.numElements(); ++i)
    positions.setInt(i, i % rowLength);
  auto less = [&](llvm::ArrayRef<int64_t> one, llvm::ArrayRef<int64_t> other) -> Result {
    return lessThan(picked(operand, largest ? other : one), picked(operand, largest ? one : other));
  };
  toPositions(*order, rowLength);
  llvm::FailureOr<Places> places = PlaceSearch(int64_t(order->size()), rowLength, OpenPairs(*order, less)).run();
  if (failed(places))
    return llvm::failure();
  Bounded &indices = *leavesOf(result)[1];
  Bounded sorted = atPlaces(Bounded(Value(std::move(positions))), *order, *places);
  indices.bounds = firstOfRows(sorted, rowLength, indices.array().shape().dims().back(), indices.array().shape());
  return llvm::success();
}

} // namespace hloc::interp
