// Two walks: how large the body of each loop is and what becomes of it, and how deep everything is, both operands
// first.

#include "hloc/fusion/GroupChain.h"

#include "fusion/OpWork.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/Shape.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc {
namespace {

// OptimizeLoops.cpp, CodeSize.cpp.
constexpr double maxUnrolledSize = 400, maxFullyUnrolledSize = 2000, maxUnrolledLoads = 32, maxUnrollFactor = 8;
// VectorizeLoadsStores.cpp.
constexpr double leastVectorSize = 400, maxSizeOfFew = 20000; ///< what loops may come to in any kernel

/// So many instructions in all LLVM unrolls, a load counted with its address: found with dots of 64 to 80 terms, sums
/// of 32 to 48 exponentials, and products of converted factors.
constexpr double costUnrolled = 300, costOfLoad = 1.5, costOfConvert = 0.5;

/// Of a load and the address before it.
constexpr double instructionsOfLoad = 4;
/// Of fewer terms, all unrolled, it is known which way concatenates go; but not where a window begins.
constexpr double fewTerms = 32;

/// Instructions at their points that a loop's body is looked through for, so that helpers which share helpers do not
/// make the search long. Not tuned: bodies of so many are not unrolled anyway.
constexpr size_t mostVisited = 1000;

/// From there on an expression is a function, of which a part only is one chain, and which LLVM has fewer instructions
/// of. The first two are estimates that agree with the corpora's kernels; the last is that of the exponentials above.
constexpr double workOfFunction = 8, chainOfFunction = 0.6, costOfFunction = 0.8;
/// As CodeSize.cpp has them.
double codeSizeOf(const HloInstruction &instr) {
  const double work = workPerElement(instr);
  if (instr.opcode() == Opcode::Constant)
    return 1;
  if (work < 1 || instr.opcode() == Opcode::Reverse || instr.opcode() == Opcode::Transpose)
    return 0; // vanishes in addresses
  if (work < workOfFunction || instr.opcode() == Opcode::Divide)
    return std::min(work, 4.0);
  if (instr.shape().isArray() && deviceBits(instr.shape().elementType()) == 64)
    return 200;
  return work < 50 ? 20 : work < 90 ? 80 : 100;
}

/// Of the tests before a branch, as they are emitted: two comparisons that both hold, or one, its constant and the
/// branch; of a pad, also where the element lies in the operand.
double sizeOfTests(const HloInstruction &instr) {
  constexpr double ofTest = 3, ofPlace = 3;
  if (instr.opcode() == Opcode::Concatenate)
    return double(instr.numOperands() - 1) * ofTest;
  double size = ofPlace;
  for (const PaddingDim &dim : instr.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding)) {
    size += dim.low > 0 || dim.high > 0 ? ofTest : 0;
    size += dim.interior > 0 ? ofTest : 0;
  }
  return size;
}

/// Of pads of one shape: do they have their operands in the same place, or, but for the minor dimension, along which
/// lanes are, in places that have nothing in common?
bool areAlternatives(const HloInstruction &one, const HloInstruction &other) {
  const Shape &shape = one.shape();
  if (shape.dims() != other.shape().dims())
    return false;
  const auto of = one.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding),
             ofOther = other.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding);
  bool areSame = true, areApart = false;
  for (unsigned dim = 0; dim < shape.rank(); ++dim) {
    const int64_t end = shape.dim(dim) - of[dim].high, endOfOther = shape.dim(dim) - ofOther[dim].high;
    areSame &= of[dim].low == ofOther[dim].low && end == endOfOther && of[dim].interior == ofOther[dim].interior;
    areApart |= dim != unsigned(shape.minorToMajor().front()) && (end <= ofOther[dim].low || endOfOther <= of[dim].low);
  }
  return areSame || areApart;
}

/// Operations beside loads and their addresses: a branch with no more becomes a predicate, as those of up to eight
/// instructions do in StaticCounts.
constexpr double mostPredicated = 2;

/// The same of a loop's terms, all of whose instructions are known: what StaticCounts says, where a load's address
/// takes two, but one of a vector's, of which most are a constant apart.
constexpr double elementsOfVector = 4, mostPredicatedInPtx = 8, loadInPtx = 3, vectorLoadInPtx = 2;

bool isBranch(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Concatenate || instr.opcode() == Opcode::Pad;
}
bool hasLoop(const HloInstruction &instr) { return hasTrait(instr.opcode(), OpcodeTrait::Contracts); }

/// Instructions that an element waits for from operands to result.
double chainOf(const HloInstruction &instr) {
  const double work = workPerElement(instr);
  return work < workOfFunction ? std::ceil(work) : work * chainOfFunction;
}

/// A loop of one thread over the terms of an element.
struct TermLoop {
  double trips = 1;
  /// So many of the trips may lie outside of the array, for some element, and are behind a test.
  double tested = 0;
};

TermLoop loopOver(const WindowDim &dim) {
  // Of a dilated base, a window's elements that lie between its own are left out.
  const double trips = std::ceil(double(dim.size) / double(dim.baseDilation)), apart = double(dim.windowDilation);
  const double tested = std::ceil(double(std::max<int64_t>(dim.padLow, 0)) / apart) +
                        std::ceil(double(std::max<int64_t>(dim.padHigh, 0)) / apart);
  return {trips, dim.baseDilation != 1 ? trips : std::min(trips, tested)};
}

/// The outermost first.
llvm::SmallVector<TermLoop> loopsOf(const HloInstruction &instr) {
  llvm::SmallVector<TermLoop> loops;
  double known = 1;
  auto add = [&](TermLoop loop) {
    loops.push_back(loop);
    known *= loop.trips;
  };
  auto addDims = [&](AttributeKey key) {
    for (int64_t dim : instr.ints(key))
      add({double(instr.operand(0)->shape().dim(unsigned(dim)))});
  };
  if (instr.opcode() == Opcode::Reduce)
    addDims(AttributeKey::Dimensions);
  else if (instr.opcode() == Opcode::Dot)
    addDims(AttributeKey::LhsContractingDims);
  else if (instr.find(AttributeKey::Window))
    for (const WindowDim &dim : instr.windowOr(instr.resultShape().rank()).dims)
      add(loopOver(dim));
  // Whether an element was selected is tested in each window, whose elements are read together.
  if (instr.opcode() == Opcode::SelectAndScatter)
    for (TermLoop &loop : loops)
      loop.tested = 0;
  // What of the terms is in no dimension: a convolution's input features, all windows that an element is in.
  if (const double all = readsPerElement(instr, 0); known > 0 && all > known) {
    if (instr.opcode() == Opcode::SelectAndScatter)
      loops.insert(loops.begin(), {all / known, all / known});
    else
      add({all / known});
  }
  return loops;
}

} // namespace

void GroupChain::raiseTo(const GroupChain &other) {
  memoryRoundTrips = std::max(memoryRoundTrips, other.memoryRoundTrips);
  instructions = std::max(instructions, other.instructions);
}

UnrolledLoop unrolled(double trips, const TermCode &term) {
  trips = std::ceil(trips);
  if (trips <= 1)
    return {true, 1};
  if (term.isBranching)
    return {false, trips};
  const double cost = trips * term.cost;
  if (term.hasLateLoop)
    return cost <= costUnrolled ? UnrolledLoop{true, 1, true} : UnrolledLoop{false, trips};
  if (trips <= maxUnrollFactor && term.size * trips <= maxFullyUnrolledSize)
    return {true, 1};
  double factor = std::min(trips, std::max(1.0, std::floor(maxUnrolledSize / std::max(1.0, term.size))));
  if (term.loads > 0)
    factor = std::min(factor, std::max(1.0, std::floor(maxUnrolledLoads / term.loads)));
  double whole = factor;
  while (whole > 1 && std::fmod(trips, whole) != 0)
    --whole;
  factor = 2 * whole > factor ? whole : factor;
  const double rounds = std::floor(trips / factor); // what is left of the last is straight code
  if (trips < 2 * factor)
    return {true, 1};
  return cost <= costUnrolled ? UnrolledLoop{true, 1, true} : UnrolledLoop{false, rounds};
}

namespace {

class ChainQuery {
public:
  using SlotOf = llvm::function_ref<std::optional<size_t>(const HloInstruction &)>;

  ChainQuery(llvm::ArrayRef<ChainMember> members, const PlanSummary &plan, SlotOf slotOf)
      : members(members), plan(plan), slotOf(slotOf), depths(members.size()), bodies(members.size()) {}

  GroupChain run(llvm::ArrayRef<const HloInstruction *> roots) {
    for (size_t slot = 0; slot < members.size(); ++slot)
      visit(slot);
    GroupChain whole = ofRoots(roots);
    if (hasEnded)
      whole += bodyOf(roots).ended; // (nothing is the same for all terms of no loop)
    return whole;
  }

private:
  /// The code of one term of a loop, or of one element.
  struct Body : TermCode {
    unsigned numTests = 0; ///< that became predicates, if they stand alone
    double vectors = 0;    ///< among the loads
    bool hasLoop = false;  ///< a case of branching
    GroupChain ended;      ///< stretches that come before the last
    GroupChain before;     ///< of these, those that are the same for all terms
    void operator+=(const Body &other) {
      size += other.size;
      loads += other.loads;
      cost += other.cost;
      numTests += other.numTests;
      vectors += other.vectors;
      isBranching |= other.isBranching;
      hasLateLoop |= other.hasLateLoop;
      hasLoop |= other.hasLoop;
      ended += other.ended;
      before += other.before;
    }
  };

  static double sizeInPtx(const Body &body) {
    return body.cost + (loadInPtx - costOfLoad) * body.loads - (loadInPtx - vectorLoadInPtx) * body.vectors;
  }

  bool isKept(const HloInstruction &instr) const { return llvm::is_contained(plan.kept, &instr); }

  GroupChain depthOf(const HloInstruction &operand) const {
    if (const std::optional<size_t> slot = slotOf(operand))
      return depths[*slot];
    return operand.shape().isArray() ? GroupChain{1, instructionsOfLoad} : GroupChain();
  }
  GroupChain depthOfOperands(const HloInstruction &instr) const {
    GroupChain depth;
    for (const HloInstruction *operand : instr.operands())
      depth.raiseTo(depthOf(*operand));
    return depth;
  }

  void visit(size_t slot) {
    const HloInstruction &instr = *members[slot].instr;
    GroupChain depth = depthOfOperands(instr);
    if (isKept(instr)) {
      depths[slot] = throughHero(instr, depth);
    } else if (hasLoop(instr)) {
      depths[slot] = throughLoop(slot, depth);
    } else if (isBranch(instr) && !members[slot].isUniform) {
      depths[slot] = throughBranch(slot, depth);
    } else {
      // Where an element comes from is known first.
      if (instr.opcode() == Opcode::Gather || instr.opcode() == Opcode::DynamicSlice) {
        GroupChain place;
        for (const HloInstruction *index : llvm::drop_begin(instr.operands()))
          place.raiseTo(depthOf(*index));
        depth = depthOf(*instr.operand(0));
        depth += place;
      }
      depth.instructions += chainOf(instr);
      depths[slot] = depth;
    }
  }

  /// What threads make together: their rounds are the plan's, and what is loaded in one may wait, too. Where there is
  /// much to do for an element, none is on its way while another is used.
  GroupChain throughHero(const HloInstruction &instr, GroupChain depth) {
    const PlanCounts &counts = plan.counts;
    double trips = counts.memoryRoundTrips;
    if (counts.rounds > 1) {
      TermCode term = bodyOf(instr.operands());
      for (double TermCode::*field : {&TermCode::size, &TermCode::loads, &TermCode::cost})
        term.*field *= counts.elementsOfRound;
      if (const UnrolledLoop left = unrolled(counts.rounds, term); !left.isGone && left.rounds > trips) {
        trips = left.rounds;
        depth.instructions *= trips;
      }
    }
    if (trips <= 1)
      return depth;
    extraRounds = std::max(extraRounds, trips * std::max(1.0, depth.memoryRoundTrips) - counts.memoryRoundTrips);
    return {0, depth.instructions};
  }

  /// A loop of one thread: straight code, or rounds that follow each other.
  GroupChain throughLoop(size_t slot, GroupChain depth) {
    const ChainMember &member = members[slot];
    const HloInstruction &instr = *member.instr;
    const llvm::SmallVector<TermLoop> loops = loopsOf(instr);
    const double terms = std::max(1.0, readsPerElement(instr, 0));
    Body body = termOf(instr, terms);
    const bool isTested = llvm::any_of(loops, [](const TermLoop &loop) { return loop.tested > 0; });
    const bool isWindow = instr.opcode() != Opcode::Reduce && instr.opcode() != Opcode::Dot;
    if (terms <= fewTerms && !body.hasLoop && !isTested && !(isWindow && body.numTests > 0)) {
      depth.raiseTo(body.ended);
      body.ended = {};
      body.isBranching = false;
      body.numTests = 0;
    }
    // What a window adds is loaded when it is known whom to.
    if (instr.opcode() == Opcode::SelectAndScatter)
      ++depth.memoryRoundTrips;
    const std::optional<double> rounds = unroll(loops, member, body);
    const double serial = terms * std::max(1.0, workPerElement(instr) / terms / 3);
    if (!rounds) {
      depth.instructions += serial;
    } else {
      const double times = elementsOfThread(member) * member.places;
      depth += body.ended;
      body.ended = {times * *rounds * depth.memoryRoundTrips, times * (*rounds * depth.instructions + serial)};
      depth = {};
      hasEnded = true;
    }
    body.ended += body.before;
    body.before = {};
    bodies[slot] = body;
    return depth;
  }

  /// That follow each other, each with loops and branches of its own.
  double elementsOfThread(const ChainMember &member) const {
    return plan.hero == Hero::Loop ? 1 : std::max(1.0, member.count / (double(plan.blocks) * plan.threads));
  }

  /// The code of one of `terms` terms.
  Body termOf(const HloInstruction &instr, double terms) const {
    Body body; // operands are read at different points
    for (auto [number, operand] : llvm::enumerate(instr.operands()))
      body += bodyOf(operand, contractedDims(instr, number));
    const double work = std::max(1.0, workPerElement(instr) / terms);
    body.size += work;
    body.cost += instr.opcode() == Opcode::Dot || instr.opcode() == Opcode::Convolution ? 1 : work;
    return body;
  }

  /// Code of so many terms, where so many of each term's loads are elements of vectors.
  static void multiply(Body &body, double terms, double ofVectors) {
    ofVectors = std::min(ofVectors, body.loads - body.vectors);
    const double vectors = ofVectors * std::ceil(terms / elementsOfVector);
    const double loads = vectors + (body.loads - ofVectors) * terms;
    body.cost = (body.cost - costOfLoad * body.loads) * terms + costOfLoad * loads;
    body.size *= terms;
    body.vectors = vectors + body.vectors * terms;
    body.loads = loads;
  }

  /// Makes of the code of a term that of all loops, of which one may be over a vector; the rounds that are left of
  /// them, if any are.
  static std::optional<double> unroll(llvm::ArrayRef<TermLoop> loops, const ChainMember &member, Body &body) {
    double rounds = 1;
    bool isGone = true;
    for (const TermLoop &loop : llvm::reverse(loops)) {
      // A vector's lanes have to be known.
      const bool isVector = loop.trips == member.vector &&
                            loop.trips * body.size <= (loop.trips <= maxUnrollFactor ? maxSizeOfFew : leastVectorSize);
      UnrolledLoop left = isVector ? UnrolledLoop{true, 1} : unrolled(loop.trips, body);
      // Terms behind tests with little in them are under predicates.
      if (left.isGone && loop.tested > 0 && (body.numTests > 0 || sizeInPtx(body) > mostPredicatedInPtx)) {
        left = {false, loop.tested + double(loop.tested < loop.trips)};
        ++body.numTests;
      }
      if (rounds > 1) // each has the stretches of the loop inside
        left = {false, std::max(left.rounds, loop.trips)};
      body.hasLateLoop |= left.isLate;
      isGone &= left.isGone;
      rounds *= left.rounds;
      const double copies = left.isGone ? loop.trips : 1;
      multiply(body, copies, isVector ? member.vectorReads : 0);
      body.hasLoop |= !left.isGone && loop.tested == 0;
      body.isBranching |= body.hasLoop;
    }
    return isGone ? std::nullopt : std::optional(rounds);
  }

  /// Lanes of a warp mostly go one way.
  GroupChain throughBranch(size_t slot, GroupChain depth) {
    const HloInstruction &instr = *members[slot].instr;
    Body all;
    GroupChain longest;
    double cost = 0;
    for (const HloInstruction *operand : instr.operands()) {
      const Body body = bodyOf(operand);
      cost = std::max(cost, body.cost);
      all += body;
      const GroupChain depthOfOne = depthOf(*operand);
      const double times = elementsOfThread(members[slot]);
      GroupChain way{times * depthOfOne.memoryRoundTrips, times * depthOfOne.instructions};
      way += body.ended;
      longest.raiseTo(way);
    }
    const bool isPredicated =
        !all.isBranching && all.numTests == 0 && all.size - all.loads <= mostPredicated * double(instr.numOperands());
    all.ended = {};
    if (!isPredicated) {
      all.isBranching = true;
      all.ended = longest;
      hasEnded = true;
      depth = {};
    }
    ++all.numTests;
    all.size += sizeOfTests(instr);
    all.cost = cost; // (LLVM unrolls where it is known which way)
    bodies[slot] = all;
    depth.instructions += chainOf(instr);
    return depth;
  }

  /// An instruction at points of its own, of which those that differ along `varying` belong to one element or term.
  struct Visit {
    const HloInstruction *instr;
    uint64_t points, varying;
  };
  static constexpr uint64_t allDims = ~uint64_t(0);
  static constexpr size_t mostDims = 63; ///< that a set of them holds

  /// Pads at the same points, of each two of which lanes compute one, or both together.
  struct Alternatives {
    uint64_t points;
    llvm::SmallVector<const HloInstruction *, 4> pads;
    GroupChain longest;
  };

  /// What is computed for `results` from memory on. What is read at different points is different code.
  Body bodyOf(llvm::ArrayRef<const HloInstruction *> results, uint64_t varying = allDims) const {
    Body body;
    llvm::SmallVector<Visit> open;
    llvm::SmallVector<Alternatives, 2> alternatives;
    llvm::SmallDenseSet<std::pair<const HloInstruction *, uint64_t>, 16> seen;
    for (const HloInstruction *result : results)
      open.push_back({result, 0, varying});
    while (!open.empty() && seen.size() < mostVisited) {
      const Visit each = open.pop_back_val();
      if (seen.insert({each.instr, each.points}).second)
        addTo(body, each, open, alternatives);
    }
    for (const Alternatives &each : alternatives)
      body.ended += each.longest;
    return body;
  }

  /// Moves what pads wait for to those of which lanes go another way.
  static void addAlternative(const Visit &visit, GroupChain &ended, llvm::SmallVectorImpl<Alternatives> &known) {
    const HloInstruction *pad = visit.instr;
    auto *at = llvm::find_if(known, [&](const Alternatives &each) {
      return each.points == visit.points &&
             llvm::all_of(each.pads, [&](const HloInstruction *other) { return areAlternatives(*pad, *other); });
    });
    if (at == known.end())
      at = &known.emplace_back(Alternatives{visit.points, {}, {}});
    at->pads.push_back(pad);
    at->longest.raiseTo(ended);
    ended = {};
  }

  void addTo(Body &body, const Visit &visit, llvm::SmallVectorImpl<Visit> &open,
             llvm::SmallVectorImpl<Alternatives> &alternatives) const {
    const HloInstruction &instr = *visit.instr;
    const std::optional<size_t> slot = slotOf(instr);
    // What does not vary is computed before the loop in the end; when loops are unrolled its loads are, nothing else.
    if (!slot) {
      body.size += instr.shape().isArray() && visit.varying ? 2 : 0;
      if (instr.shape().isArray() && visit.varying) {
        body.loads += 1;
        body.cost += costOfLoad;
      }
    } else if ((hasLoop(instr) || (isBranch(instr) && !members[*slot].isUniform)) && !isKept(instr)) {
      Body inner = bodies[*slot];
      if (!visit.varying) {
        inner.before += inner.ended;
        inner.ended = {};
        inner.loads = inner.cost = 0;
      }
      if (instr.opcode() == Opcode::Pad)
        addAlternative(visit, inner.ended, alternatives);
      body += inner;
    } else {
      const double work = isKept(instr) ? 0 : workPerElement(instr);
      body.size += isKept(instr) ? 0 : codeSizeOf(instr);
      if (visit.varying)
        body.cost += instr.opcode() == Opcode::Convert   ? costOfConvert * work
                     : instr.opcode() == Opcode::Reverse ? 0 // it is where loads are
                     : work < workOfFunction             ? std::floor(work)
                                                         : work * costOfFunction;
      for (auto [number, operand] : llvm::enumerate(instr.operands()))
        open.push_back({operand, pointsOf(instr, visit.points, number), varyingOf(instr, visit.varying)});
    }
  }

  static bool readsInPlace(const HloInstruction &instr) {
    return readsOperandsInPlace(instr) || instr.opcode() == Opcode::GetTupleElement;
  }

  /// Of what reads the element at some of its own dimensions, these: a broadcast, and a gather its one index.
  static std::optional<uint64_t> dimsKept(const HloInstruction &instr, size_t number) {
    uint64_t dims = 0;
    const unsigned rank = instr.shape().isArray() ? instr.shape().rank() : 0;
    if (rank == 0 || rank > mostDims)
      return std::nullopt;
    if (instr.opcode() == Opcode::Broadcast) {
      for (int64_t dim : instr.ints(AttributeKey::Dimensions))
        dims |= uint64_t(instr.shape().dim(unsigned(dim)) != 1) << dim;
      return dims;
    }
    if (instr.opcode() != Opcode::Gather || number != 1 || instr.ints(AttributeKey::StartIndexMap).size() != 1)
      return std::nullopt;
    for (unsigned dim = 0; dim < rank; ++dim)
      dims |= uint64_t(instr.shape().dim(dim) != 1 && !llvm::is_contained(instr.ints(AttributeKey::OffsetDims), dim))
              << dim;
    return dims;
  }

  static uint64_t pointsOf(const HloInstruction &instr, uint64_t points, size_t number) {
    if (instr.operand(unsigned(number))->opcode() == Opcode::Constant)
      return 0;
    if (const std::optional<uint64_t> kept = dimsKept(instr, number))
      return llvm::hash_combine(points, *kept) >> 2;
    const bool areSame = readsInPlace(instr) || instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Bitcast;
    return areSame ? points
                   : llvm::hash_combine(points, instr.id(), number) >> 2; // tables keep some keys for themselves
  }

  /// Along which dimensions of its operands the points differ; all, if that is not known.
  static uint64_t varyingOf(const HloInstruction &instr, uint64_t varying) {
    if (varying == allDims || readsInPlace(instr))
      return varying;
    if ((instr.opcode() != Opcode::Broadcast && instr.opcode() != Opcode::Transpose) || instr.shape().rank() > mostDims)
      return allDims;
    uint64_t result = 0;
    for (auto [own, dim] : llvm::enumerate(instr.ints(AttributeKey::Dimensions)))
      result |= uint64_t((varying >> dim) & 1) << own;
    return result;
  }

  static uint64_t contractedDims(const HloInstruction &instr, unsigned number) {
    if ((instr.opcode() != Opcode::Dot && instr.opcode() != Opcode::Reduce) || number > 1 ||
        instr.operand(number)->shape().rank() > mostDims)
      return allDims;
    uint64_t dims = 0;
    for (int64_t dim : instr.ints(instr.opcode() == Opcode::Reduce ? AttributeKey::Dimensions
                                  : number == 0                    ? AttributeKey::LhsContractingDims
                                                                   : AttributeKey::RhsContractingDims))
      dims |= uint64_t(1) << dim;
    return dims;
  }

  /// Do results come from anything but single elements?
  bool readArrays(llvm::ArrayRef<const HloInstruction *> results) const {
    llvm::SmallVector<const HloInstruction *> open(results);
    llvm::SmallDenseSet<const HloInstruction *, 16> seen;
    while (!open.empty()) {
      const HloInstruction *each = open.pop_back_val();
      if (!seen.insert(each).second)
        continue;
      if (!slotOf(*each) && each->shape().isArray() && each->shape().numElements() > 1)
        return true;
      if (slotOf(*each))
        llvm::append_range(open, each->operands());
    }
    return false;
  }

  /// Outputs of different sizes follow each other.
  GroupChain ofRoots(llvm::ArrayRef<const HloInstruction *> roots) const {
    llvm::SmallVector<std::pair<int64_t, GroupChain>> segments;
    for (const HloInstruction *root : roots) {
      const int64_t size =
          plan.hero == Hero::Loop && root->resultShape().isArray() ? root->resultShape().numElements() : 0;
      auto *at = llvm::find_if(segments, [&](const auto &each) { return each.first == size; });
      if (at == segments.end())
        at = &segments.emplace_back(size, GroupChain());
      at->second.raiseTo(depths[*slotOf(*root)]);
    }
    // What all of them load is loaded once.
    if (!segments.empty() && !readArrays(roots))
      for (auto &[size, depth] : llvm::drop_begin(segments))
        depth.memoryRoundTrips = std::max(0.0, depth.memoryRoundTrips - 1);
    GroupChain all, first;
    for (const auto &[size, depth] : segments)
      if (depth.instructions <= mostPredicated + instructionsOfLoad)
        first.raiseTo(depth); // under predicates
      else
        all += depth;
    all += first;
    all.memoryRoundTrips += extraRounds;
    return all;
  }

  llvm::ArrayRef<ChainMember> members;
  const PlanSummary &plan;
  const SlotOf slotOf;
  std::vector<GroupChain> depths; ///< by slot, in the stretch that goes on behind it
  std::vector<Body> bodies;       ///< of loops and branches
  bool hasEnded = false;          ///< any stretch
  double extraRounds = 0;
};

} // namespace

GroupChain longestChain(llvm::ArrayRef<ChainMember> members, llvm::ArrayRef<const HloInstruction *> roots,
                        const PlanSummary &plan, ChainQuery::SlotOf slotOf) {
  return ChainQuery(members, plan, slotOf).run(roots);
}

} // namespace hloc
