// Every element of every output is written exactly once: each write is a box of elements, one point of the threads'
// space to an element, if its indices are sums of digits without gaps and overlaps; the boxes share nothing and have
// all elements between them. Where indices are no such sums, and points are few, all are tried.
#include "prove/Digits.h"
#include "prove/Properties.h"
#include "prove/WriteCases.h"

#include <algorithm>
#include <set>

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr int64_t mostPoints = 1 << 18;
constexpr size_t mostWrites = 400;

/// Elements lower, lower + step, ... along neighbouring dimensions of a buffer; or some that are no such series.
struct Run {
  int64_t lower = 0, count = 1, step = 1;
  std::vector<int64_t> values; ///< in order, each once; empty: the series
  int64_t upper() const { return values.empty() ? lower + (count - 1) * step : values.back(); }
  bool contains(int64_t value) const {
    if (!values.empty())
      return std::binary_search(values.begin(), values.end(), value);
    return lower <= value && value <= upper() && (value - lower) % step == 0;
  }
  /// Some value of both.
  std::optional<int64_t> common(const Run &other) const {
    if (values.empty() && !other.values.empty())
      return other.common(*this);
    if (!values.empty()) {
      auto found = llvm::find_if(values, [&](int64_t value) { return other.contains(value); });
      return found == values.end() ? std::nullopt : std::optional(*found);
    }
    int64_t from = std::max(lower, other.lower), to = std::min(upper(), other.upper());
    const Run &coarse = step >= other.step ? *this : other;
    int64_t first =
        coarse.lower + (std::max<int64_t>(0, from - coarse.lower) + coarse.step - 1) / coarse.step * coarse.step;
    constexpr unsigned mostSteps = 4096; // steps are of slices: small
    unsigned steps = 0;
    for (int64_t value = first; value <= to && steps < mostSteps; value += coarse.step, ++steps)
      if (contains(value) && other.contains(value))
        return value;
    return std::nullopt;
  }
};

/// A dimension becomes two, or two become one.
struct Reshape {
  bool merges;
  unsigned dimension; ///< the first of the two
  int64_t by;         ///< size of the second
};

/// One write, as digits.
struct Write {
  const Access *access;
  SmallVector<unsigned> which; ///< variables of its points
  AffineExpr last;             ///< index of the last dimension, lane included
  std::optional<Digits> digits;
  SmallVector<Run> runs; ///< by group of dimensions
};

class Coverage {
public:
  Coverage(KernelAccesses &kernel, unsigned buffer, const WriteCase &given)
      : kernel(kernel), buffer(kernel.buffers[buffer]), isShifted(given.isShifted) {
    for (const Access &access : given.writes)
      accesses.push_back(&access);
    sizes.assign(this->buffer.sizes.begin(), this->buffer.sizes.end());
    if (sizes.empty())
      sizes.push_back(1);
    singleDimensions();
  }

  /// `partial`: elements may keep what they have.
  PropertyProof prove(bool partial) {
    if (buffer.elements() == 0)
      return proved();
    std::string why;
    if (accesses.size() > mostWrites)
      why = "there are too many writes";
    else
      for (unsigned attempt = 0; attempt < 10; ++attempt) {
        why.clear();
        gap.reset();
        isInseparable = false;
        if (std::optional<PropertyProof> proof = byDigits(partial, why))
          return *proof;
        if (gap)
          divideDimension(gap->first, gap->second);
        else if (!isInseparable || !mergeDimensions())
          break;
      }
    if (std::optional<PropertyProof> proof = byEnumeration(partial))
      return *proof;
    return unknown(why);
  }

private:
  PropertyProof proved(std::string reason = {}) const {
    return {ProofProperty::WrittenOnce, ProofVerdict::Proved, std::move(reason), std::nullopt};
  }
  PropertyProof unknown(const std::string &why) const {
    return unknownProof(ProofProperty::WrittenOnce, "`" + buffer.name + "`: " + why);
  }
  PropertyProof refuted(const std::string &why, std::vector<ProofWitness::Place> places, int64_t element) const {
    return {ProofProperty::WrittenOnce, ProofVerdict::Refuted, why,
            ProofWitness{std::move(places), buffer.name, element}};
  }

  SmallVector<AffineExpr, 4> indicesOf(const Write &write) const {
    SmallVector<AffineExpr, 4> indices(write.access->indices);
    if (indices.empty())
      indices.push_back(kernel.variables.constant(0));
    else
      indices.back() = write.last;
    for (const Reshape &reshape : reshapes) {
      AffineExpr &index = indices[reshape.dimension];
      auto next = indices.begin() + reshape.dimension + 1;
      if (reshape.merges) {
        index = index * reshape.by + *next;
        indices.erase(next);
      } else {
        AffineExpr whole = index;
        index = whole.floorDiv(reshape.by);
        indices.insert(next, whole % reshape.by);
      }
    }
    return indices;
  }

  void singleDimensions() {
    group.resize(sizes.size());
    for (size_t i = 0; i < group.size(); ++i)
      group[i] = unsigned(i);
  }
  /// A dimension becomes two: whole `by`, and what is in one. Writes that take turns along it are boxes then.
  void divideDimension(unsigned dimension, int64_t by) {
    reshapes.push_back({false, dimension, by});
    sizes[dimension] /= by;
    sizes.insert(sizes.begin() + dimension + 1, by);
    singleDimensions();
  }

  /// Two dimensions become one where the indices are quotient and remainder of one sum: nothing is divided then. False
  /// if there are none.
  bool mergeDimensions() {
    auto divides = [](AffineExpr expression, AffineExprKind kind) {
      return expression
          .walk(
              [&](AffineExpr part) { return part.getKind() == kind ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
    };
    for (unsigned dimension = 0; dimension + 1 < sizes.size(); ++dimension)
      for (const Access *access : accesses) {
        SmallVector<AffineExpr, 4> indices = indicesOf(writeOf(*access));
        if (!divides(indices[dimension], AffineExprKind::FloorDiv) ||
            !divides(indices[dimension + 1], AffineExprKind::Mod))
          continue;
        reshapes.push_back({true, dimension, sizes[dimension + 1]});
        sizes[dimension] *= sizes[dimension + 1];
        sizes.erase(sizes.begin() + dimension + 1);
        singleDimensions();
        return true;
      }
    return false;
  }

  /// Points of a write: threads, rounds of the loops around it, elements of a vector.
  Write writeOf(const Access &access) {
    Write write{&access, {kernel.thread, kernel.block}, nullptr, std::nullopt, {}};
    llvm::append_range(write.which, access.rounds);
    if (!access.indices.empty())
      write.last = access.indices.back();
    if (access.width > 1) {
      AffineExpr lane = kernel.variables.add(VariableKind::Round, {0, access.width - 1});
      write.which.push_back(cast<AffineDimExpr>(lane).getPosition());
      write.last = write.last + lane;
    }
    return write;
  }

  // --- digits

  int64_t sizeOf(unsigned number) const {
    int64_t size = 1;
    for (auto [own, extent] : llvm::zip_equal(group, sizes))
      size *= own == number ? extent : 1;
    return size;
  }
  unsigned numGroups() const { return group.back() + 1; }
  /// Dimensions from `first` to `last` become one.
  void merge(unsigned first, unsigned last) {
    for (unsigned &own : group)
      own = own <= first ? own : own <= last ? first : own - (last - first);
  }

  std::optional<PropertyProof> byDigits(bool partial, std::string &why) {
    std::vector<Write> writes;
    for (const Access *access : accesses)
      writes.push_back(writeOf(*access));
    for (Write &write : writes) {
      write.digits = Digits::of(kernel.variables, write.which, indicesOf(write), write.access->constraints, why);
      if (!write.digits) {
        isInseparable = true;
        return std::nullopt;
      }
    }
    llvm::erase_if(writes, [](const Write &write) { return write.digits->isEmpty; });
    for (size_t i = 0; i < writes.size();) {
      const unsigned before = numGroups();
      if (std::optional<PropertyProof> collision = findRuns(writes[i], why))
        return collision;
      if (!why.empty())
        return std::nullopt;
      i = numGroups() == before ? i + 1 : 0;
    }
    return combine(writes, partial, why);
  }

  /// The groups' indices as sums of digits.
  std::vector<LinearForm> groupForms(const Digits &digits) const {
    std::vector<LinearForm> forms(numGroups());
    for (size_t i = 0; i < digits.results.size(); ++i) {
      LinearForm &form = forms[group[i]];
      int64_t size = sizes[i];
      llvm::MapVector<unsigned, int64_t> terms;
      for (auto &[digit, factor] : form.terms)
        terms[digit] += factor * size;
      for (auto &[digit, factor] : digits.results[i].terms)
        terms[digit] += factor;
      form.constant = form.constant * size + digits.results[i].constant;
      form.terms.clear();
      for (auto &[digit, factor] : terms)
        if (factor != 0)
          form.terms.push_back({digit, factor});
    }
    return forms;
  }

  /// Sets the runs of the write; merges groups instead if they cannot be told apart; says why not, or that two threads
  /// write one element.
  std::optional<PropertyProof> findRuns(Write &write, std::string &why) {
    Digits &digits = *write.digits;
    std::vector<LinearForm> forms = groupForms(digits);
    std::vector<int> owner(digits.counts.size(), -1);
    for (auto [i, form] : llvm::enumerate(forms))
      for (auto &[digit, factor] : form.terms) {
        if (owner[digit] >= 0 && owner[digit] != int(i)) {
          merge(unsigned(owner[digit]), unsigned(i));
          return std::nullopt;
        }
        owner[digit] = int(i);
      }
    for (auto &[form, interval] : digits.constraints)
      for (auto &[digit, factor] : form.terms) {
        int first = owner[form.terms.front().first], other = owner[digit];
        if (first < 0 || other < 0)
          continue;
        if (first != other) {
          merge(unsigned(std::min(first, other)), unsigned(std::max(first, other)));
          return std::nullopt;
        }
      }
    for (auto [digit, count] : llvm::enumerate(digits.counts))
      if (count > 1 && owner[digit] < 0)
        return freeDigit(write, unsigned(digit), why);
    for (auto &form : forms)
      for (auto &[digit, factor] : form.terms)
        if (factor < 0)
          digits.flip(digit);
    forms = groupForms(digits);
    write.runs.clear();
    for (auto [i, form] : llvm::enumerate(forms)) {
      std::optional<Run> run = runOf(digits, form, why);
      if (!run) {
        findGap(digits, unsigned(i), form);
        return std::nullopt;
      }
      write.runs.push_back(*run);
    }
    return std::nullopt;
  }

  /// Where digits leave places free that other writes may fill.
  void findGap(const Digits &digits, unsigned number, const LinearForm &form) {
    SmallVector<std::pair<unsigned, int64_t>, 4> terms(form.terms);
    llvm::stable_sort(terms, [](auto &a, auto &b) { return a.second < b.second; });
    auto dimension = llvm::find(group, number);
    if (llvm::count(group, number) != 1)
      return;
    int64_t place = 1;
    for (auto &[digit, factor] : terms) {
      for (int64_t by : {factor, place})
        if (factor > place && by > 1 && sizeOf(number) % by == 0 && by < sizeOf(number)) {
          gap = {unsigned(dimension - group.begin()), by};
          return;
        }
      place = factor * digits.counts[digit];
    }
  }

  /// No index depends on it: points that differ in it alone write the same element.
  std::optional<PropertyProof> freeDigit(const Write &write, unsigned digit, std::string &why) {
    SmallVector<int64_t> first(write.digits->counts.size(), 0), second(first);
    second[digit] = 1;
    if (std::optional<PropertyProof> proof = collision(write, write, first, second))
      return proof;
    why = "a thread may write an element several times";
    return std::nullopt;
  }

  /// Values of sums whose digits count without gaps; or of few points.
  std::optional<Run> runOf(const Digits &digits, const LinearForm &form, std::string &why) {
    SmallVector<std::pair<unsigned, int64_t>, 4> terms(form.terms);
    llvm::stable_sort(terms, [](auto &a, auto &b) { return a.second < b.second; });
    int64_t step = terms.empty() ? 1 : terms.front().second, place = step;
    bool isRegular = true;
    for (auto &[digit, factor] : terms) {
      isRegular &= factor == place;
      place *= digits.counts[digit];
    }
    Run run{form.constant, place / step, step, {}};
    Interval allowed = {0, run.count - 1};
    for (auto &[constraint, interval] : digits.constraints) {
      if (constraint.terms.empty() || form.factorOf(constraint.terms.front().first) == 0)
        continue;
      std::optional<Interval> cut = isRegular ? cutBy(digits, terms, step, constraint, interval) : std::nullopt;
      if (!cut)
        isRegular = false;
      else
        allowed = allowed.intersect(*cut);
    }
    if (!isRegular)
      return fewPoints(digits, form, why);
    run.lower += allowed.lower * step;
    run.count = allowed.size();
    return run;
  }

  /// The constraint `value floordiv p in interval` of the value of a group, whose factors are multiples of `step`.
  static std::optional<Interval> cutBy(const Digits &digits, ArrayRef<std::pair<unsigned, int64_t>> terms, int64_t step,
                                       const LinearForm &constraint, Interval interval) {
    size_t i = 0;
    while (i < terms.size() && constraint.factorOf(terms[i].first) == 0)
      ++i;
    if (i == terms.size() || terms.size() - i != constraint.terms.size())
      return std::nullopt;
    int64_t scale = constraint.factorOf(terms[i].first); // constraint = scale * (value floordiv place) + constant
    int64_t place = terms[i].second / step;
    if (scale < 0)
      return std::nullopt;
    for (; i < terms.size(); ++i)
      if (constraint.factorOf(terms[i].first) * place != scale * (terms[i].second / step))
        return std::nullopt;
    int64_t lower = -llvm::divideFloorSigned(-(interval.lower - constraint.constant), scale);
    int64_t upper = llvm::divideFloorSigned(interval.upper - constraint.constant, scale);
    return Interval{lower * place, upper * place + place - 1};
  }

  std::optional<Run> fewPoints(const Digits &digits, const LinearForm &form, std::string &why) {
    why = "indices are sums with gaps or overlaps";
    int64_t points = 1;
    for (auto &[digit, factor] : form.terms) {
      if (digits.counts[digit] > pointsLeft / points)
        return std::nullopt;
      points *= digits.counts[digit];
    }
    pointsLeft -= points;
    std::vector<int64_t> values, at(digits.counts.size(), 0);
    auto valueOf = [&](const LinearForm &one) {
      int64_t value = one.constant;
      for (auto &[digit, factor] : one.terms)
        value += factor * at[digit];
      return value;
    };
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (auto &[digit, factor] : form.terms) {
        at[digit] = rest % digits.counts[digit];
        rest /= digits.counts[digit];
      }
      bool holds = llvm::all_of(digits.constraints, [&](auto &constraint) {
        return constraint.first.terms.empty() || form.factorOf(constraint.first.terms.front().first) == 0 ||
               constraint.second.contains(valueOf(constraint.first));
      });
      if (holds)
        values.push_back(valueOf(form));
    }
    llvm::sort(values);
    if (std::adjacent_find(values.begin(), values.end()) != values.end())
      return std::nullopt;
    why.clear();
    Run run{values.empty() ? 0 : values.front(), int64_t(values.size()), 1, {}};
    run.values = std::move(values);
    return run;
  }

  std::optional<PropertyProof> combine(ArrayRef<Write> writes, bool partial, std::string &why) {
    int64_t count = 0;
    for (auto [i, write] : llvm::enumerate(writes)) {
      int64_t own = 1;
      for (auto [k, run] : llvm::enumerate(write.runs)) {
        own *= run.count;
        if (!isShifted && run.count > 0 && (run.lower < 0 || run.upper() >= sizeOf(unsigned(k)))) {
          why = "elements outside of it are written";
          return std::nullopt;
        }
      }
      count += own;
      for (const Write &other : writes.take_front(i))
        if (std::optional<PropertyProof> proof = overlap(other, write, why); proof || !why.empty())
          return proof;
    }
    if (count == buffer.elements() && !isShifted)
      return proved();
    if (count > buffer.elements()) {
      why = "more is written than there are elements: some are outside";
      return std::nullopt;
    }
    if (partial)
      return proved("`" + buffer.name + "` at most once: the rest keeps what it has");
    if (isShifted) {
      why = "where it is written depends on data";
      return std::nullopt;
    }
    std::optional<int64_t> element = missing(writes);
    if (!element) {
      why = "not all elements are written";
      return std::nullopt;
    }
    return refuted("nobody writes it", {}, *element);
  }

  std::optional<PropertyProof> overlap(const Write &first, const Write &second, std::string &why) {
    SmallVector<int64_t> shared;
    for (auto [a, b] : llvm::zip_equal(first.runs, second.runs)) {
      std::optional<int64_t> common = a.count && b.count ? a.common(b) : std::nullopt;
      if (!common)
        return std::nullopt;
      shared.push_back(*common);
    }
    why = "an element may be written twice";
    auto digitsOf = [&](const Write &write) {
      SmallVector<int64_t> at(write.digits->counts.size(), 0);
      for (auto [form, value] : llvm::zip_equal(groupForms(*write.digits), shared)) {
        SmallVector<std::pair<unsigned, int64_t>, 4> terms(form.terms);
        llvm::stable_sort(terms, [](auto &a, auto &b) { return a.second > b.second; });
        int64_t rest = value - form.constant;
        for (auto &[digit, factor] : terms) {
          at[digit] = rest / factor;
          rest %= factor;
        }
      }
      return at;
    };
    return collision(first, second, digitsOf(first), digitsOf(second));
  }

  Point pointAt(const Write &write, ArrayRef<int64_t> digits) const {
    Point point(kernel.variables);
    for (auto [variable, value] : llvm::zip_equal(write.which, write.digits->inputsAt(digits)))
      point.set(variable, value);
    return point;
  }
  int64_t elementAt(const Write &write, const Point &point) const {
    int64_t element = 0;
    for (auto [index, size] : llvm::zip_equal(indicesOf(write), sizes))
      element = element * size + point.evaluate(index);
    return element;
  }

  /// Two points that write one element, if they are what they are taken for.
  std::optional<PropertyProof> collision(const Write &first, const Write &second, ArrayRef<int64_t> a,
                                         ArrayRef<int64_t> b) const {
    if (isShifted)
      return std::nullopt;
    Point one = pointAt(first, a), two = pointAt(second, b);
    int64_t element = elementAt(first, one);
    if (!one.holds(first.access->constraints) || !two.holds(second.access->constraints) ||
        element != elementAt(second, two))
      return std::nullopt;
    ProofWitness::Place places[] = {placeAt(kernel, one), placeAt(kernel, two)};
    if (places[0] == places[1])
      return refuted("a thread writes it twice", {places[0]}, element);
    return refuted("two threads write it", {places[0], places[1]}, element);
  }

  /// An element of no box, next to some.
  std::optional<int64_t> missing(ArrayRef<Write> writes) const {
    SmallVector<std::set<int64_t>> candidates(numGroups());
    for (unsigned i = 0; i < numGroups(); ++i) {
      candidates[i].insert(0);
      for (const Write &write : writes.take_front(50))
        for (int64_t value :
             {write.runs[i].lower - 1, write.runs[i].lower, write.runs[i].lower + 1, write.runs[i].upper() + 1})
          if (value >= 0 && value < sizeOf(i))
            candidates[i].insert(value);
    }
    SmallVector<int64_t> at(numGroups(), 0);
    unsigned tried = 0;
    std::function<std::optional<int64_t>(unsigned)> search = [&](unsigned i) -> std::optional<int64_t> {
      if (i == numGroups()) {
        ++tried;
        for (const Write &write : writes)
          if (llvm::all_of(llvm::zip(write.runs, at),
                           [](auto pair) { return std::get<0>(pair).contains(std::get<1>(pair)); }))
            return std::nullopt;
        int64_t element = 0;
        for (unsigned k = 0; k < numGroups(); ++k)
          element = element * sizeOf(k) + at[k];
        return element;
      }
      for (int64_t value : candidates[i]) {
        at[i] = value;
        if (std::optional<int64_t> found = search(i + 1); found || tried > 10000)
          return found;
      }
      return std::nullopt;
    };
    return search(0);
  }

  // --- all points

  std::optional<PropertyProof> byEnumeration(bool partial) {
    if (isShifted || buffer.elements() > mostPoints * 8)
      return std::nullopt;
    std::vector<int64_t> writer(size_t(buffer.elements()), -1); // by element: thread and block
    const int64_t threads = kernel.variables[kernel.thread].bounds.size();
    int64_t left = mostPoints;
    std::optional<PropertyProof> proof;
    for (const Access *access : accesses) {
      Write write = writeOf(*access);
      Program program(kernel.variables);
      for (const Constraint &constraint : access->constraints)
        program.add(constraint.first);
      SmallVector<AffineExpr, 4> indices = indicesOf(write);
      for (AffineExpr index : indices)
        program.add(index);
      const unsigned numConstraints = unsigned(access->constraints.size());
      bool done = forEachPoint(kernel.variables, write.which, left, [&](MutableArrayRef<int64_t> values) {
        program.run(values);
        for (auto [i, constraint] : llvm::enumerate(access->constraints))
          if (!constraint.second.contains(program.result(unsigned(i))))
            return true;
        int64_t element = 0;
        for (auto [i, size] : llvm::enumerate(sizes))
          element = element * size + program.result(numConstraints + unsigned(i));
        if (element < 0 || element >= buffer.elements())
          return true; // that is another property
        int64_t own = values[kernel.block] * threads + values[kernel.thread];
        int64_t &known = writer[size_t(element)];
        if (known >= 0) {
          auto place = [&](int64_t number) {
            return ProofWitness::Place{uint64_t(number / threads), uint64_t(number % threads)};
          };
          proof = known == own ? refuted("a thread writes it twice", {place(own)}, element)
                               : refuted("two threads write it", {place(known), place(own)}, element);
          return false;
        }
        known = own;
        return true;
      });
      if (proof || !done)
        return proof;
      int64_t points = 1;
      for (unsigned i : write.which)
        points *= kernel.variables[i].bounds.size();
      left = std::max<int64_t>(0, left - points);
    }
    auto hole = std::find(writer.begin(), writer.end(), -1);
    if (hole == writer.end())
      return proved();
    if (partial)
      return proved("`" + buffer.name + "` at most once: the rest keeps what it has");
    return refuted("nobody writes it", {}, hole - writer.begin());
  }

  KernelAccesses &kernel;
  const Buffer buffer;
  const bool isShifted;
  SmallVector<const Access *> accesses;
  SmallVector<int64_t> sizes;                      ///< of dimensions, divided where that is of use
  SmallVector<Reshape> reshapes;                   ///< of the buffer, in order
  std::optional<std::pair<unsigned, int64_t>> gap; ///< a dimension, and by what to divide it
  bool isInseparable = false;                      ///< indices of a write are not sums of digits
  SmallVector<unsigned> group;                     ///< by dimension: neighbours that are one index
  int64_t pointsLeft = mostPoints;
};

/// In each of the cases of which one happens.
PropertyProof proveBuffer(KernelAccesses &kernel, unsigned number, bool partial) {
  std::string why;
  bool areAll = true;
  std::optional<std::vector<WriteCase>> cases = writeCasesOf(kernel, number, areAll, why);
  if (!cases || (!areAll && !partial))
    return unknownProof(ProofProperty::WrittenOnce, "`" + kernel.buffers[number].name + "`: " +
                                                        (cases ? "whether it is written depends on data" : why));
  if (cases->empty())
    cases->emplace_back();
  PropertyProof result;
  for (const WriteCase &one : *cases) {
    result = Coverage(kernel, number, one).prove(partial);
    if (result.verdict != ProofVerdict::Proved)
      break;
  }
  return result;
}

} // namespace

PropertyProof proveWrittenOnce(KernelAccesses &kernel, const KernelSpec &spec, ArrayRef<unsigned> filled,
                               std::vector<unsigned> &untouched) {
  PropertyProof result{ProofProperty::WrittenOnce, ProofVerdict::Proved, {}, std::nullopt};
  std::set<unsigned> seen;
  for (unsigned named : kernel.returned) {
    const Buffer &buffer = kernel.buffers[named];
    const unsigned memory = buffer.sameAs.value_or(named);
    if (!seen.insert(memory).second)
      continue;
    const bool isWritten = llvm::any_of(kernel.accesses, [&](const Access &access) {
      return access.buffer == memory && access.kind != AccessKind::Read;
    });
    if (!isWritten && buffer.elements() > 0 && buffer.argument) {
      untouched.push_back(*buffer.argument);
      continue;
    }
    const bool isOutput = buffer.argument && *buffer.argument < spec.parameters.size() &&
                          spec.parameters[*buffer.argument].role == KernelParameter::Role::Output;
    const bool isFilled = buffer.argument && llvm::is_contained(filled, *buffer.argument);
    PropertyProof proof = proveBuffer(kernel, memory, /*partial=*/buffer.sameAs.has_value() || isFilled);
    if (!isOutput && proof.verdict == ProofVerdict::Refuted && proof.witness->places.empty())
      proof =
          unknownProof(ProofProperty::WrittenOnce, "elements of `" + buffer.name + "`, a temporary, are not written");
    if (proof.verdict == ProofVerdict::Refuted)
      return proof;
    if (proof.verdict == ProofVerdict::Unknown || result.reason.empty())
      if (result.verdict == ProofVerdict::Proved)
        result = proof;
  }
  return result;
}

} // namespace hloc::prove
