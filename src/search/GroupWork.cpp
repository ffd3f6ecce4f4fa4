// One walk over the members, users before operands. Of each is known by then at which points others read it, how many
// of these there are, and how far apart neighbouring lanes are.

#include "search/GroupWork.h"

#include "search/OpWork.h"

#include "hloc/fusion/ContractionPlan.h"
#include "hloc/fusion/HloIndexing.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc {
namespace {

constexpr double sectorBytes = 32, lanesPerWarp = 32;
/// Neighbours that a thread computes together (LoopPlan), and that share what a broadcast along them reads.
constexpr double neighbours = 4;
/// More different points are counted as the last of these.
constexpr size_t maxAccesses = 12;
/// Of a loop that one thread runs: loads of a dot that wait for memory together, since it is unrolled so far
/// (OptimizeLoops), and so few rounds that LLVM unrolls the rest. What reductions add up may take branches and calls:
/// of those fewer rounds are unrolled, and windows of more elements, which may lie in padding, not at all (LoopPlan).
constexpr double loadsInFlight = 32, roundsUnrolled = 4, sumsInFlight = 8, elementsOfShortWindow = 16;
/// Loops of fewer terms are unrolled whatever is in them; others of other heroes' kernels are not, and wait for both
/// factors.
constexpr double fewTerms = 32;

double bytesOf(const Shape &shape) { return shape.isArray() ? deviceBits(shape.elementType()) / 8.0 : 0; }

/// Rounds of a loop of one thread that wait for memory one after the other.
double waitingRounds(const HloInstruction &instr, Hero hero) {
  const double steps = readsPerElement(instr, 0);
  switch (instr.opcode()) {
  case Opcode::Dot:
  case Opcode::Convolution: {
    if (steps <= fewTerms)
      return 0;
    if (hero != Hero::Loop)
      return 2 * steps;
    const double rounds = std::ceil(steps * 2 / loadsInFlight);
    return rounds <= roundsUnrolled ? 0 : rounds;
  }
  case Opcode::ReduceWindow:
  case Opcode::SelectAndScatter:
    return steps <= elementsOfShortWindow ? 0 : steps;
  default:
    return std::ceil(steps / sumsInFlight) - 1;
  }
}

/// Bytes of memory that a byte read takes: sectors that the lanes of a warp touch over the bytes they read.
///
///   lanes that all read one f32: 32 / 128; neighbours: 1; every eighth or farther apart: 32 / 4
double spreadOf(double lanesApart, double bytes) {
  const double size = std::max(0.5, bytes);
  if (lanesApart == 0)
    return sectorBytes / (lanesPerWarp * size);
  return std::clamp(lanesApart, 1.0, std::max(1.0, sectorBytes / size));
}

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

bool keepsOrder(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Bitcast;
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

/// Of a convolution's input or weights, elements between those of neighbours along dimension `dim` of the result.
double lanesApartOfConvolution(const HloInstruction &instr, unsigned number, int64_t dim) {
  const auto *labels = instr.find(AttributeKey::DimLabels);
  if (!labels || number > 1)
    return 1;
  const ConvolutionLabels &of = *std::get<const ConvolutionLabels *>(*labels);
  const Shape &from = instr.operand(number)->shape();
  if (dim == of.outFeature)
    return number == 0 ? 0 : strideOf(from, of.rhsOutput);
  if (number == 1)
    return 0;
  if (dim == of.outBatch)
    return strideOf(from, of.lhsBatch);
  for (auto [spatial, own] : llvm::enumerate(of.outSpatial))
    if (own == dim)
      return double(instr.windowOr(unsigned(of.outSpatial.size())).dims[spatial].stride) *
             strideOf(from, of.lhsSpatial[spatial]);
  return 1;
}

/// How many elements apart in the operand's memory lanes read for neighbours of the result; 0: the same one. 1 where
/// that is not known.
double lanesApart(const HloInstruction &instr, unsigned number) {
  const Shape &to = instr.resultShape(), &from = instr.operand(number)->shape();
  const int64_t minor = to.isArray() ? minorDim(to) : -1;
  if (minor < 0)
    return 1;
  switch (instr.opcode()) {
  case Opcode::Transpose:
    return strideOf(from, instr.ints(AttributeKey::Dimensions)[size_t(minor)]);
  case Opcode::Copy:
    return strideOf(from, minor);
  case Opcode::Slice:
    return double(instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice)[size_t(minor)].stride) *
           strideOf(from, minor);
  case Opcode::Broadcast: {
    const auto dims = instr.ints(AttributeKey::Dimensions);
    const auto *at = llvm::find(dims, minor);
    return at == dims.end() ? 0 : strideOf(from, at - dims.begin());
  }
  case Opcode::Reduce: {
    if (number >= instr.numOperands() / 2)
      return 0;
    int64_t kept = minor;
    for (int64_t dim = 0; dim <= kept; ++dim)
      kept += llvm::is_contained(instr.ints(AttributeKey::Dimensions), dim);
    return strideOf(from, kept);
  }
  case Opcode::ReduceWindow:
    return number >= instr.numOperands() / 2
               ? 0
               : double(instr.windowOr(to.rank()).dims[size_t(minor)].stride) * strideOf(from, minor);
  case Opcode::Dot: {
    const int64_t own = number < 2 ? dimOfDotOperand(instr, number, minor) : -1;
    return own < 0 ? 0 : strideOf(from, own);
  }
  case Opcode::Convolution:
    return lanesApartOfConvolution(instr, number, minor);
  default: // neighbours, or any
    return 1;
  }
}

} // namespace

/// At which points an instruction is computed.
struct Access {
  uint64_t points; ///< equal: the same ones
  double count;
  double spread; ///< spreadOf() of what is read there
};

class GroupQuery {
public:
  GroupQuery(GroupCounter &counter, llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
             const PlanAnswer &plan)
      : counter(counter), members(members), roots(roots), plan(plan), accesses(members.size()) {
    ++counter.query;
    for (auto [slot, instr] : llvm::enumerate(members)) {
      counter.stamps[instr->id()] = counter.query;
      counter.slots[instr->id()] = uint32_t(slot);
    }
  }

  GroupWork run() {
    addOutputs();
    for (size_t slot = members.size(); slot-- > 0;)
      compute(*members[slot], accesses[slot]);
    addReads();
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
        other.spread = std::max(other.spread, access.spread);
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
        add(accesses[counter.slots[root->id()]],
            {pointsOf(root->resultShape()), double(root->resultShape().numElements()), 1});
    }
  }

  void compute(const HloInstruction &instr, const Accesses &own) {
    if (own.empty() && instr.opcode() == Opcode::Tuple)
      return;
    double count = 0;
    for (const Access &access : own)
      count += access.count;
    result.codeSize += std::max<size_t>(own.size(), 1);
    if (isKept(instr))
      return computeOnce(instr, count);
    const double work = workPerElement(instr);
    result.work += count * work;
    const bool isLoop = hasTrait(instr.opcode(), OpcodeTrait::Contracts);
    result.parts.push_back({count, work, isLoop ? waitingRounds(instr, plan.hero) : 0});
    result.hasDependentLoads |= instr.opcode() == Opcode::Gather || instr.opcode() == Opcode::DynamicSlice;
    for (unsigned number = 0; number < instr.numOperands(); ++number)
      readOperand(instr, number, own, count);
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
    const double all = plan.hero == Hero::Contraction          ? 0
                       : instr.opcode() == Opcode::Concatenate ? count
                                                               : count * workPerElement(instr);
    result.work += all;
    result.parts.push_back({all, 1, 0}); // of all threads alike
    for (unsigned number = 0; number < instr.numOperands(); ++number) {
      const HloInstruction *operand = instr.operand(number);
      if (!operand->shape().isArray() || (plan.inPlace && number == 0))
        continue;
      double elements = double(operand->shape().numElements());
      for (const PlanCounts::OperandRead &read : plan.counts.reads)
        if (read.instr == &instr && read.operand == number)
          elements = read.elements;
      read(operand, {pointsOf(operand->shape()), elements, 1});
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
    const double bytes = bytesOf(operand->shape());
    if (operand->shape().isScalar() && !instr.shape().isScalar() && instr.opcode() != Opcode::Map) {
      // Once a thread.
      read(operand, {llvm::hash_combine(0xca1a, operand->id()), std::max(1.0, count / neighbours), spreadOf(0, bytes)});
      return;
    }
    for (const Access &access : own)
      read(operand, through(access, instr, number, bytes));
  }

  /// The points of the operand that an instruction reads at `access`.
  static Access through(const Access &access, const HloInstruction &instr, unsigned number, double bytes) {
    if (readsOperandsInPlace(instr) || keepsOrder(instr) || instr.opcode() == Opcode::GetTupleElement)
      return access;
    Access next = access;
    const double apart = lanesApart(instr, number), spread = spreadOf(apart, bytes);
    // Lanes that were apart before are so behind it, too.
    next.spread = apart == 0 ? spread : std::max(access.spread, spread);
    if (instr.opcode() == Opcode::Broadcast) {
      const Shape &shape = instr.operand(number)->shape();
      next.points = llvm::hash_combine(access.points, instr.opcode(), shape.identity(),
                                       instr.ints(AttributeKey::Dimensions), instr.shape().identity());
      next.count =
          std::max(std::min(access.count, double(shape.numElements())), access.count / (apart == 0 ? neighbours : 1));
      return next;
    }
    next.points = llvm::hash_combine(access.points, &instr, number);
    next.count = access.count * readsPerElement(instr, number);
    return next;
  }

  void addReads() {
    result.buffers = reads.size() + roots.size();
    for (const Read &one : reads) {
      const Shape &shape = one.instr->shape();
      const double size = shape.isArray() ? double(shape.byteSize()) : 0;
      double bytes = 0, sectors = 0;
      for (const Access &access : one.accesses) {
        bytes += access.count * bytesOf(shape);
        sectors += access.count * access.spread * bytesOf(shape) / sectorBytes;
      }
      // Of a large array that little is read of, only that.
      result.memoryBytes += std::min(size, bytes) * plan.passes;
      result.sectors += sectors * plan.passes;
      result.streams += size_t(shape.isArray() && shape.numElements() == result.largest);
    }
    written *= plan.hero == Hero::Sort ? plan.passes : 1;
    result.memoryBytes += written + plan.extraBytes;
    result.sectors += (written + plan.extraBytes) / sectorBytes;
  }

  GroupCounter &counter;
  llvm::ArrayRef<HloInstruction *> members, roots;
  const PlanAnswer &plan;
  std::vector<Accesses> accesses;
  llvm::SmallVector<Read, 16> reads;
  llvm::SmallDenseMap<const HloInstruction *, size_t, 16> readOf;
  double written = 0;
  GroupWork result;
};

GroupWork::Chain GroupWork::longestChain(double threads) const {
  Chain chain;
  for (const Part &part : parts) {
    const double times = std::max(part.count / threads, std::min(part.count, 1.0));
    chain.work += times * part.work;
    chain.waits += times * part.waits;
  }
  return chain;
}

GroupWork GroupCounter::count(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
                              const PlanAnswer &plan) {
  return GroupQuery(*this, members, roots, plan).run();
}

} // namespace hloc
