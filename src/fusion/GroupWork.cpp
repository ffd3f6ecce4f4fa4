// One walk over the members, users before operands. Of each is known by then at which points others read it, how many
// of these there are, and where neighbouring lanes are.

#include "hloc/fusion/GroupWork.h"

#include "fusion/OpWork.h"
#include "hloc/fusion/GroupChain.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/Literal.h"
#include "hloc/hlo/OpcodeTable.h"
#include "hloc/hlo/Shape.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hloc {
namespace {

constexpr double sectorBytes = 32, bytesOfVector = 16, lanesPerWarp = 32;
/// More different points are counted as the last of these.
constexpr size_t maxAccesses = 12;
double bytesOf(const Shape &shape) { return shape.isArray() ? deviceBits(shape.elementType()) / 8.0 : 0; }

/// The minor dimension of more than one element; -1: there is none.
int64_t minorDim(const Shape &shape) {
  for (int64_t dim : shape.minorToMajor())
    if (shape.dim(dim) != 1)
      return dim;
  return -1;
}

/// Elements between neighbours along `dim` in memory.
double strideOf(const Shape &shape, int64_t dim) {
  double stride = 1;
  for (int64_t minor : shape.minorToMajor()) {
    if (minor == dim)
      break;
    stride *= double(shape.dim(minor));
  }
  return stride;
}

/// Where neighbouring lanes of a warp are in an array.
struct Lanes {
  enum class Where {
    Along,    ///< `step` elements of dimension `dim` apart
    Together, ///< all at one element
    Apart,    ///< nobody knows where
    AsPlanned ///< the hero's plan says how far apart: `step` bytes of sectors for each byte
  };
  Where where = Where::Together;
  int64_t dim = 0;
  double step = 1;
};

Lanes along(int64_t dim, double step = 1) {
  return dim < 0 ? Lanes{Lanes::Where::Together} : Lanes{Lanes::Where::Along, dim, step};
}

Lanes inOrderOf(const Shape &shape) { return shape.isArray() ? along(minorDim(shape)) : Lanes(); }

/// Elements that a lane loads together which runs over them in a loop of its own, along `loop`: vectors, where rows
/// begin at multiples of them.
double elementsOfVector(const Lanes &loop, const Shape &shape) {
  if (loop.where != Lanes::Where::Along || loop.step != 1 || loop.dim != minorDim(shape))
    return 1;
  int64_t elements = shape.dim(unsigned(loop.dim));
  elements &= -elements; // the largest power of two that divides it
  return std::clamp(bytesOfVector / bytesOf(shape), 1.0, double(std::max<int64_t>(elements, 1)));
}

/// Where all lanes of a warp are, each with as many neighbours: `numLanes` of them one way; behind the end of a short
/// dimension they go on the other way.
struct Warp {
  Lanes lanes, beyond;
  double numLanes = lanesPerWarp, neighbours = 1;
};

Warp warpInOrderOf(const Shape &shape, double neighbours) {
  Warp warp{inOrderOf(shape), {}};
  if (warp.lanes.where != Lanes::Where::Along)
    return warp;
  const double size = double(shape.dim(unsigned(warp.lanes.dim)));
  warp.neighbours = std::min(neighbours, size);
  warp.numLanes = std::min(lanesPerWarp, size / warp.neighbours);
  for (int64_t dim : shape.minorToMajor())
    if (dim != warp.lanes.dim && shape.dim(unsigned(dim)) != 1) {
      warp.beyond = along(dim);
      break;
    }
  return warp;
}

/// Lanes, or groups of them, that are as many elements apart; all at one, if that is 0.
struct Spaced {
  double number, apart;
};

/// Sectors that so many, each of which touches `ofEach`, touch together.
double sectorsOf(const Spaced &lanes, double ofEach, double elementBytes) {
  const double span = lanes.number * lanes.apart * elementBytes / sectorBytes;
  return std::clamp(span, ofEach, lanes.number * ofEach);
}

/// Bytes of memory that a byte read takes: sectors that the lanes of a warp touch over the bytes they read.
///
///   lanes that all read one f32: 32 / 128; neighbours: 1; every eighth or farther apart: 32 / 4, but of an array of so
///   few sectors that they meet again
double spreadOf(const Warp &warp, const Lanes &loop, const Shape &shape) {
  // Neighbours are loaded together where several lie in a vector, else each by itself.
  const bool areTogether = warp.lanes.where == Lanes::Where::Along && warp.lanes.step >= 1 &&
                           strideOf(shape, warp.lanes.dim) == 1 &&
                           2 * warp.lanes.step * bytesOf(shape) <= bytesOfVector;
  const double size = bytesOf(shape) * elementsOfVector(loop, shape) * (areTogether ? warp.neighbours : 1);
  const double ofLane = std::max(1.0, size * (areTogether ? warp.lanes.step : 1) / sectorBytes);
  if (warp.lanes.where == Lanes::Where::AsPlanned)
    return warp.lanes.step;
  double sectors = lanesPerWarp * ofLane;
  if (warp.lanes.where != Lanes::Where::Apart && warp.beyond.where != Lanes::Where::Apart) {
    auto spaced = [&](const Lanes &lanes, double number) {
      return Spaced{number, lanes.where == Lanes::Where::Along ? lanes.step * strideOf(shape, lanes.dim) : 0};
    };
    Spaced inner = spaced(warp.lanes, warp.numLanes), outer = spaced(warp.beyond, lanesPerWarp / warp.numLanes);
    inner.apart *= warp.neighbours;
    if (outer.apart < inner.apart)
      std::swap(inner, outer);
    sectors = sectorsOf(outer, sectorsOf(inner, ofLane, bytesOf(shape)), bytesOf(shape));
  }
  const double ofArray = std::ceil(double(shape.byteSize()) / sectorBytes);
  return std::min(sectors, ofArray) * sectorBytes / (lanesPerWarp * size);
}

/// Of arrays of as many elements, one after the other in the given orders: `lanes` of the one in the other.
Lanes renamed(const Lanes &lanes, const Shape &of, llvm::ArrayRef<int64_t> orderOf, const Shape &to,
              llvm::ArrayRef<int64_t> orderTo) {
  double apart = lanes.step * double(deviceBits(of.elementType())) / double(deviceBits(to.elementType()));
  for (int64_t dim : orderOf) {
    if (dim == lanes.dim)
      break;
    apart *= double(of.dim(unsigned(dim)));
  }
  double stride = 1;
  for (int64_t dim : orderTo) {
    const double size = double(to.dim(unsigned(dim)));
    if (apart < stride * size)
      return along(dim, std::max(1.0, apart / stride));
    stride *= size;
  }
  return inOrderOf(to);
}

/// The dimension of a dot's operand that the result's dimension `dim` is; -1: it is the other operand's.
int64_t dimOfDotOperand(const HloInstruction &dot, unsigned number, int64_t dim) {
  const auto batch = dot.ints(number ? AttributeKey::RhsBatchDims : AttributeKey::LhsBatchDims);
  const auto contracted = dot.ints(number ? AttributeKey::RhsContractingDims : AttributeKey::LhsContractingDims);
  if (size_t(dim) < batch.size())
    return batch[size_t(dim)];
  const Shape &lhs = dot.operand(0)->shape();
  int64_t position = dim - int64_t(batch.size());
  const int64_t ofLeft =
      int64_t(lhs.rank()) - int64_t(batch.size()) - int64_t(dot.ints(AttributeKey::LhsContractingDims).size());
  if ((position < ofLeft) != (number == 0))
    return -1;
  position -= number ? ofLeft : 0;
  for (int64_t own = 0; own < int64_t(dot.operand(number)->shape().rank()); ++own)
    if (!llvm::is_contained(batch, own) && !llvm::is_contained(contracted, own) && position-- == 0)
      return own;
  return -1;
}

Lanes throughConvolution(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  const auto *labels = instr.find(AttributeKey::DimLabels);
  if (!labels || number > 1)
    return inOrderOf(instr.operand(number)->shape());
  const ConvolutionLabels &of = *std::get<const ConvolutionLabels *>(*labels);
  if (lanes.dim == of.outFeature)
    return number == 0 ? Lanes() : along(of.rhsOutput, lanes.step);
  if (number == 1)
    return Lanes();
  if (lanes.dim == of.outBatch)
    return along(of.lhsBatch, lanes.step);
  for (auto [spatial, own] : llvm::enumerate(of.outSpatial))
    if (own == lanes.dim)
      return along(of.lhsSpatial[spatial],
                   lanes.step * double(instr.windowOr(unsigned(of.outSpatial.size())).dims[spatial].stride));
  return inOrderOf(instr.operand(0)->shape());
}

/// A gather's operand: along what slices have of it lanes stay neighbours; different slices are anywhere in the
/// dimension that indices are of, as lanes are that divide it among them.
Lanes throughGather(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  const auto ofSlice = instr.ints(AttributeKey::OffsetDims);
  const auto *at = llvm::find(ofSlice, lanes.dim);
  if (number == 1)
    return at == ofSlice.end() ? inOrderOf(instr.operand(1)->shape()) : Lanes();
  if (at == ofSlice.end()) {
    const auto indexed = instr.ints(AttributeKey::StartIndexMap);
    if (indexed.size() != 1)
      return {Lanes::Where::Apart};
    const double slices = std::min(lanesPerWarp, double(instr.shape().dim(unsigned(lanes.dim))) / lanes.step);
    const double size = double(instr.operand(0)->shape().dim(unsigned(indexed.front())));
    return along(indexed.front(), size / std::max(1.0, slices));
  }
  int64_t position = at - ofSlice.begin();
  const auto collapsed = instr.ints(AttributeKey::CollapsedSliceDims),
             batching = instr.ints(AttributeKey::OperandBatchingDims);
  for (int64_t dim = 0; dim < int64_t(instr.operand(0)->shape().rank()); ++dim)
    if (!llvm::is_contained(collapsed, dim) && !llvm::is_contained(batching, dim) && position-- == 0)
      return along(dim, lanes.step);
  return {Lanes::Where::Apart};
}

Lanes throughRenaming(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  const Shape &to = instr.resultShape(), &from = instr.operand(number)->shape();
  return instr.opcode() == Opcode::Reshape
             ? renamed(lanes, to, defaultMinorToMajor(to.rank()), from, defaultMinorToMajor(from.rank()))
             : renamed(lanes, to, to.minorToMajor(), from, from.minorToMajor());
}

Lanes throughTranspose(const HloInstruction &instr, unsigned, const Lanes &lanes) {
  return along(instr.ints(AttributeKey::Dimensions)[size_t(lanes.dim)], lanes.step);
}

Lanes throughSlice(const HloInstruction &instr, unsigned, const Lanes &lanes) {
  const auto slice = instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice);
  return along(lanes.dim, lanes.step * double(slice[size_t(lanes.dim)].stride));
}

Lanes throughBroadcast(const HloInstruction &instr, unsigned, const Lanes &lanes) {
  const auto dims = instr.ints(AttributeKey::Dimensions);
  const auto *at = llvm::find(dims, lanes.dim);
  return at == dims.end() ? Lanes() : along(at - dims.begin(), lanes.step);
}

Lanes throughReduce(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  if (number >= instr.numOperands() / 2)
    return Lanes();
  int64_t kept = lanes.dim;
  for (int64_t dim = 0; dim <= kept; ++dim)
    kept += llvm::is_contained(instr.ints(AttributeKey::Dimensions), dim);
  return along(kept, lanes.step);
}

Lanes throughWindow(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  return number >= instr.numOperands() / 2
             ? Lanes()
             : along(lanes.dim,
                     lanes.step * double(instr.windowOr(instr.resultShape().rank()).dims[size_t(lanes.dim)].stride));
}

Lanes throughDot(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  return number < 2 ? along(dimOfDotOperand(instr, number, lanes.dim), lanes.step) : Lanes();
}

/// Neighbours, or any.
Lanes throughOthers(const HloInstruction &instr, unsigned number, const Lanes &lanes) {
  const Shape &from = instr.operand(number)->shape();
  return from.rank() == instr.resultShape().rank() ? lanes : inOrderOf(from);
}

/// Of lanes in the result of `instr`, where they read its operand.
Lanes through(const Lanes &lanes, const HloInstruction &instr, unsigned number) {
  using enum Opcode;
  static constexpr OpcodeTable<Lanes (*)(const HloInstruction &, unsigned number, const Lanes &)> steps(
      [](Opcode each) {
        return hasTrait(each, OpcodeTrait::Moves) || hasTrait(each, OpcodeTrait::Rearranges) ||
               hasTrait(each, OpcodeTrait::Contracts);
      },
      {
          {{Transpose}, throughTranspose},
          {{Reshape, Bitcast}, throughRenaming},
          {{Slice}, throughSlice},
          {{Broadcast}, throughBroadcast},
          {{Reduce}, throughReduce},
          {{ReduceWindow}, throughWindow},
          {{Dot}, throughDot},
          {{Convolution}, throughConvolution},
          {{Gather}, throughGather},
          {{Copy, Reverse, Concatenate, Pad, DynamicSlice, DynamicUpdateSlice, SelectAndScatter, ScaledDot, RaggedDot},
           throughOthers},
      });
  const Shape &to = instr.resultShape(), &from = instr.operand(number)->shape();
  if (lanes.where != Lanes::Where::Along || !to.isArray() || !from.isArray())
    return lanes;
  if (instr.opcode() == BitcastConvert) // of another width
    return throughRenaming(instr, number, lanes);
  return steps.contains(instr.opcode()) ? steps[instr.opcode()](instr, number, lanes)
                                        : throughOthers(instr, number, lanes);
}

} // namespace

/// At which points an instruction is computed.
struct Access {
  uint64_t points; ///< equal: the same ones
  double count;
  Warp warp;              ///< in what is read there
  Lanes loop;             ///< which way a loop of each lane goes there; together: there is none
  bool isUniform = false; ///< one element that is known when code is made
  /// Along which dimensions of what is read there loops of a thread go, and how many terms each has: what is the same
  /// for all of them is computed before the loop.
  struct Term {
    int64_t dim;
    double trips, step = 1;
    const HloInstruction *loop = nullptr; ///< whose they are
  };
  llvm::SmallVector<Term, 2> terms = {};
};

/// Does it follow from the element of the result which elements of its operands are read, one of each?
bool hasKnownPlaces(const HloInstruction &instr) {
  using enum Opcode;
  return !hasTrait(instr.opcode(), OpcodeTrait::Contracts) && instr.opcode() != Gather &&
         instr.opcode() != DynamicSlice && instr.opcode() != DynamicUpdateSlice;
}

/// Does the loop over terms run along `dim` of the operand?
bool runsAlong(const HloInstruction &instr, unsigned number, int64_t dim) {
  if (instr.opcode() == Opcode::Dot && number < 2)
    return llvm::is_contained(instr.ints(number ? AttributeKey::RhsContractingDims : AttributeKey::LhsContractingDims),
                              dim);
  if (const auto *labels = instr.find(AttributeKey::DimLabels); labels && instr.opcode() == Opcode::Convolution) {
    const ConvolutionLabels &of = *std::get<const ConvolutionLabels *>(*labels);
    return number < 2 && dim == (number ? of.rhsInput : of.lhsFeature);
  }
  return instr.opcode() == Opcode::ReduceWindow && number < instr.numOperands() / 2 &&
         instr.windowOr(instr.resultShape().rank()).dims[size_t(dim)].size != 1;
}

/// Which way the loop over terms goes in the operand: along what lies beside each other, if it does. (Of reductions it
/// is unrolled when loads are merged already.)
Lanes loopOver(const HloInstruction &instr, unsigned number) {
  const int64_t minor = minorDim(instr.operand(number)->shape());
  return minor >= 0 && runsAlong(instr, number, minor) ? along(minor) : Lanes();
}

/// Does it depend on where along `dim` an element of a concatenate or a pad is, where it comes from?
bool isTestedAlong(const HloInstruction &instr, int64_t dim) {
  if (instr.opcode() == Opcode::Concatenate)
    return llvm::is_contained(instr.ints(AttributeKey::Dimensions), dim);
  const PaddingDim &padding = instr.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding)[size_t(dim)];
  return padding.low > 0 || padding.high > 0 || padding.interior > 0;
}

/// Of an operand, along which a loop of a thread over terms goes.
llvm::SmallVector<Access::Term, 2> termsOf(const HloInstruction &instr, unsigned number) {
  llvm::SmallVector<Access::Term, 2> terms;
  const Shape &shape = instr.operand(number)->shape();
  if (instr.opcode() == Opcode::Dot && number < 2)
    for (int64_t dim : instr.ints(number ? AttributeKey::RhsContractingDims : AttributeKey::LhsContractingDims))
      terms.push_back({dim, double(shape.dim(unsigned(dim))), 1, &instr});
  else if (instr.opcode() == Opcode::Reduce && number < instr.numOperands() / 2)
    for (int64_t dim : instr.ints(AttributeKey::Dimensions))
      terms.push_back({dim, double(shape.dim(unsigned(dim))), 1, &instr});
  else if (instr.opcode() == Opcode::ReduceWindow && number < instr.numOperands() / 2)
    for (auto [dim, window] : llvm::enumerate(instr.windowOr(shape.rank()).dims))
      if (window.size > 1)
        terms.push_back({int64_t(dim), double(window.size), double(window.windowDilation), &instr});
  if (instr.opcode() == Opcode::Convolution && number < 2) {
    const auto &labels = *instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
    terms.push_back({number ? labels.rhsInput : labels.lhsFeature,
                     double(instr.operand(1)->shape().dim(unsigned(labels.rhsInput))), 1, &instr});
  }
  return terms;
}

/// Are they a vector, as VectorizeLoadsStores makes them?
bool areVector(const Access::Term &term, const Shape &shape) {
  constexpr double maxElements = 64, maxBits = 1024;
  return term.step == 1 && term.dim == minorDim(shape) && std::fmod(term.trips, 2) == 0 &&
         shape.dim(unsigned(term.dim)) % 2 == 0 && term.trips <= maxElements &&
         term.trips * deviceBits(shape.elementType()) <= maxBits;
}

/// Iota shifted to the right, as where each element's block of random bits is found: the same for so many neighbours.
double neighboursOfShiftedIota(const HloInstruction &instr) {
  if (instr.opcode() != Opcode::ShiftRightLogical || instr.operand(0)->opcode() != Opcode::Iota ||
      instr.operand(0)->intOr(AttributeKey::IotaDimension, 0) != minorDim(instr.shape()))
    return 1;
  const HloInstruction *bits = instr.operand(1);
  if (bits->opcode() == Opcode::Broadcast)
    bits = bits->operand(0);
  return bits->opcode() == Opcode::Constant && bits->shape().isScalar() && !bits->literal().isElided()
             ? std::exp2(double(std::clamp<int64_t>(bits->literal().getInt(0), 0, 63)))
             : 1;
}

class GroupQuery {
public:
  GroupQuery(GroupCounter &counter, llvm::ArrayRef<const HloInstruction *> members,
             llvm::ArrayRef<const HloInstruction *> roots, const PlanSummary &plan)
      : counter(counter), members(members), roots(roots), plan(plan), accesses(members.size()) {
    result.isOneByOne = plan.hero == Hero::Loop && !elementsOfStraightCode(members);
    neighbours = result.isOneByOne ? 1 : plan.perThread;
    ++counter.query;
    for (auto [slot, instr] : llvm::enumerate(members)) {
      counter.stamps[instr->id()] = counter.query;
      counter.slots[instr->id()] = uint32_t(slot);
      inChain.push_back({instr});
      alike.push_back(isAlike(*instr));
    }
  }

  GroupWork run() {
    addOutputs();
    for (size_t slot = members.size(); slot-- > 0;)
      compute(*members[slot], accesses[slot]);
    addReads();
    result.chain = longestChain(inChain, roots, plan, [&](const HloInstruction &instr) {
      return isInside(instr) ? std::optional<size_t>(counter.slots[instr.id()]) : std::nullopt;
    });
    return std::move(result);
  }

private:
  using Accesses = llvm::SmallVector<Access, 2>;
  struct Read {
    const HloInstruction *instr;
    Accesses accesses;
  };

  bool isInside(const HloInstruction &instr) const { return counter.stamps[instr.id()] == counter.query; }
  bool isKept(const HloInstruction &instr) const { return llvm::is_contained(plan.kept, &instr); }

  static void add(Accesses &known, const Access &access) {
    for (Access &other : known)
      if (other.points == access.points) {
        other.count = std::max(other.count, access.count);
        return;
      }
    if (known.size() < maxAccesses) {
      known.push_back(access);
      return;
    }
    known.back().count += access.count;
    known.back().points = llvm::hash_combine(known.back().points, access.points);
  }

  void read(const HloInstruction *operand, const Access &access) {
    if (isInside(*operand))
      return add(accesses[counter.slots[operand->id()]], access);
    auto [at, isNew] = readOf.try_emplace(operand, reads.size());
    if (isNew)
      reads.push_back({operand, {}});
    add(reads[at->second].accesses, access);
  }

  static uint64_t pointsOf(const Shape &shape) { return llvm::hash_combine(0x5eed, shape.numElements()); }

  void addOutputs() {
    for (const HloInstruction *root : roots)
      for (unsigned i = 0; i < root->numResults(); ++i)
        if (root->resultShape(i).isArray())
          result.largest = std::max(result.largest, root->resultShape(i).numElements());
    for (const HloInstruction *root : roots) {
      const bool updates = plan.inPlace && isKept(*root);
      for (unsigned i = 0; i < root->numResults(); ++i) {
        const Shape &shape = root->resultShape(i);
        if (!shape.isArray())
          continue;
        if (!updates)
          written += double(shape.byteSize());
        result.streams += size_t(shape.numElements() == result.largest);
      }
      if (root->resultShape().isArray())
        add(accesses[counter.slots[root->id()]], {pointsOf(root->resultShape()),
                                                  double(root->resultShape().numElements()),
                                                  warpInOrderOf(root->resultShape(), neighbours),
                                                  {}});
    }
  }

  void compute(const HloInstruction &instr, const Accesses &own) {
    if (own.empty() && instr.opcode() == Opcode::Tuple)
      return;
    double count = 0;
    for (const Access &access : own)
      count += access.count;
    const size_t places = std::max<size_t>(own.size(), 1);
    result.codeSize += places;
    ChainMember &member = inChain[counter.slots[instr.id()]];
    member.count = count;
    member.places = unsigned(places);
    member.isUniform = llvm::all_of(own, [](const Access &access) { return access.isUniform; });
    if (isKept(instr))
      return computeOnce(instr, count);
    result.work +=
        timesOf(instr, own, count) / sharersOf(instr, own) * workPerElement(instr) + count * testsPerElement(instr);
    for (unsigned number = 0; number < instr.numOperands(); ++number)
      readOperand(instr, number, own, count);
  }

  /// Is it the same for the neighbours of a thread, along the minor dimension?
  bool isAlike(const HloInstruction &instr) const {
    if (!instr.shape().isArray() || instr.numOperands() == 0)
      return false;
    if (instr.opcode() == Opcode::Broadcast)
      return !llvm::is_contained(instr.ints(AttributeKey::Dimensions), minorDim(instr.shape()));
    if (neighboursOfShiftedIota(instr) >= neighbours)
      return true;
    return readsOperandsInPlace(instr) && llvm::all_of(instr.operands(), [&](const HloInstruction *operand) {
             return operand->shape().isArray() &&
                    (operand->shape().isScalar() || (isInside(*operand) && alike[counter.slots[operand->id()]]));
           });
  }

  /// Neighbours of a thread that compute it once.
  double sharersOf(const HloInstruction &instr, const Accesses &own) const {
    if (own.size() != 1 || instr.shape().isScalar() || !alike[counter.slots[instr.id()]])
      return 1;
    const Warp &warp = own.front().warp;
    const bool isInOrder =
        warp.lanes.where == Lanes::Where::Along && warp.lanes.step == 1 && warp.lanes.dim == minorDim(instr.shape());
    return isInOrder ? std::max(1.0, warp.neighbours) : 1;
  }

  /// How often it is computed; of what only tests where an element is, the terms of a loop in which that is the same
  /// have one test.
  static double timesOf(const HloInstruction &instr, const Accesses &own, double count) {
    if (instr.opcode() != Opcode::Concatenate && instr.opcode() != Opcode::Pad)
      return count;
    double times = 0;
    for (const Access &access : own) {
      double same = 1;
      for (const Access::Term &term : access.terms)
        same *= isTestedAlong(instr, term.dim) ? 1 : term.trips;
      times += access.count / same;
    }
    return times;
  }

  /// What the hero's threads make together.
  void computeOnce(const HloInstruction &instr, double count) {
    const Shape &shape = instr.resultShape();
    if (shape.isArray())
      count = double(shape.numElements());
    if (plan.inPlace && instr.numOperands() > 1) {
      const HloInstruction *updates = instr.opcode() == Opcode::Scatter ? instr.operands().back() : instr.operand(1);
      count = double(updates->shape().numElements());
      written += count * bytesOf(shape);
    }
    // The hero decides once a block which operand an element of a concatenate comes from; a contraction's products are
    // among its own counts.
    const bool isMultiplied =
        plan.hero == Hero::Contraction || (plan.hero == Hero::Attention && instr.opcode() == Opcode::Dot);
    result.work += isMultiplied ? 0 : instr.opcode() == Opcode::Concatenate ? count : count * workPerElement(instr);
    for (unsigned number = 0; number < instr.numOperands(); ++number) {
      const HloInstruction *operand = instr.operand(number);
      if (!operand->shape().isArray() || (plan.inPlace && number == 0))
        continue;
      double elements = double(operand->shape().numElements()), spread = 1;
      for (const PlanCounts::OperandRead &read : plan.counts.reads)
        if (read.instr == &instr && read.operand == number)
          std::tie(elements, spread) = std::pair(read.elements, read.spread);
      read(operand,
           {pointsOf(operand->shape()),
            elements,
            isMultiplied ? Warp{{Lanes::Where::AsPlanned, 0, spread}, {}} : warpInOrderOf(operand->shape(), neighbours),
            {}});
    }
  }

  void readOperand(const HloInstruction &instr, unsigned number, const Accesses &own, double count) {
    const HloInstruction *operand = instr.operand(number);
    if (!operand->shape().isArray()) {
      if (isInside(*operand))
        for (const Access &access : own)
          add(accesses[counter.slots[operand->id()]], access);
      return;
    }
    if (operand->shape().isScalar() && !instr.shape().isScalar() && instr.opcode() != Opcode::Map) {
      // Once a thread.
      read(operand, {llvm::hash_combine(0xca1a, operand->id()), std::max(1.0, count / neighbours), {}, {}});
      return;
    }
    for (const Access &access : own) {
      Access next = through(access, instr, number);
      if (own.size() > 1) // a function of its own, in which nobody knows of a loop around its call
        for (Access::Term &term : next.terms)
          term.loop = term.loop == &instr ? &instr : nullptr;
      read(operand, next);
    }
  }

  /// The points of the operand that an instruction reads at `access`.
  Access through(const Access &access, const HloInstruction &instr, unsigned number) const {
    if (instr.opcode() == Opcode::GetTupleElement || readsOperandsInPlace(instr))
      return access;
    Access next = access;
    next.isUniform = hasKnownPlaces(instr) && (access.isUniform || instr.shape().numElements() == 1);
    next.warp.lanes = hloc::through(access.warp.lanes, instr, number);
    next.warp.beyond = hloc::through(access.warp.beyond, instr, number);
    next.loop = hloc::through(access.loop, instr, number);
    next.count /= leaveTerms(instr, number, next.terms);
    if (instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Bitcast)
      return next;
    if (instr.opcode() == Opcode::Broadcast) {
      const Shape &shape = instr.operand(number)->shape();
      const bool isShared = next.warp.lanes.where == Lanes::Where::Together;
      next.points = llvm::hash_combine(access.points, instr.opcode(), shape.dims(),
                                       instr.ints(AttributeKey::Dimensions), instr.shape().dims());
      next.count =
          std::max(std::min(next.count, double(shape.numElements())), next.count / (isShared ? neighbours : 1));
      return next;
    }
    next.points = llvm::hash_combine(access.points, &instr, number);
    next.count *= readsPerElement(instr, number);
    if (hasTrait(instr.opcode(), OpcodeTrait::Contracts)) {
      next.loop = loopOver(instr, number);
      llvm::append_range(next.terms, termsOf(instr, number));
    }
    return next;
  }

  /// Makes of the dimensions of a result that loops go along those of its operand; the terms for all of which that is
  /// the same.
  static double leaveTerms(const HloInstruction &instr, unsigned number, llvm::SmallVectorImpl<Access::Term> &terms) {
    double same = 1;
    for (Access::Term &term : terms) {
      const Lanes lanes = hloc::through(along(term.dim, term.step), instr, number);
      if (lanes.where == Lanes::Where::Together)
        same *= term.trips;
      term.dim = lanes.where == Lanes::Where::Along ? lanes.dim : -1;
      term.step = lanes.step;
    }
    llvm::erase_if(terms, [](const Access::Term &term) { return term.dim < 0; });
    return same;
  }

  void addReads() {
    result.buffers = reads.size() + roots.size();
    for (const Read &one : reads) {
      const Shape &shape = one.instr->shape();
      const double size = shape.isArray() ? double(shape.byteSize()) : 0;
      double bytes = 0, sectors = 0;
      if (shape.isArray())
        for (const Access &access : one.accesses) {
          bytes += access.count * bytesOf(shape);
          sectors += access.count * spreadOf(access.warp, access.loop, shape) * bytesOf(shape) / sectorBytes;
          for (const Access::Term &term : access.terms)
            if (term.loop && areVector(term, shape)) {
              ChainMember &member = inChain[counter.slots[term.loop->id()]];
              member.vectorReads = member.vector < term.trips ? 1 : member.vectorReads + (member.vector == term.trips);
              member.vector = std::max(member.vector, term.trips);
            }
        }
      // Of a large array that little is read of, only that. What a block reads of rows again is still in the caches.
      result.memoryBytes += std::min(size, bytes) * (plan.hero == Hero::Rows ? 1 : plan.passes);
      result.sectors += sectors * plan.passes;
      result.streams += size_t(shape.isArray() && shape.numElements() == result.largest);
    }
    written *= plan.hero == Hero::Sort ? plan.passes : 1;
    result.memoryBytes += written + plan.extraBytes;
    result.sectors += (written + plan.extraBytes) / sectorBytes;
  }

  GroupCounter &counter;
  llvm::ArrayRef<const HloInstruction *> members, roots;
  const PlanSummary &plan;
  std::vector<Accesses> accesses;
  std::vector<ChainMember> inChain; ///< by slot
  std::vector<bool> alike;          ///< by slot
  llvm::SmallVector<Read, 16> reads;
  llvm::SmallDenseMap<const HloInstruction *, size_t, 16> readOf;
  double written = 0;
  double neighbours = 1; ///< that a thread computes together, and that share what a broadcast along them reads
  GroupWork result;
};

GroupWork GroupCounter::count(llvm::ArrayRef<const HloInstruction *> members,
                              llvm::ArrayRef<const HloInstruction *> roots, const PlanSummary &plan) {
  return GroupQuery(*this, members, roots, plan).run();
}

} // namespace hloc
