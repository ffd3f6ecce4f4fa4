#include "FusionCost.h"

#include "OpWork.h"

#include "hloc/fusion/ContractionPlan.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/InstructionKey.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace hloc {
namespace {

constexpr double sectorBytes = 32, lanesPerWarp = 32;
/// From an empty stream; what the device model has for it includes waiting for the host.
constexpr double launchSeconds = 1e-6;
/// What another read of an element costs of the first, which goes to memory: caches are faster.
constexpr double rereadShare = 0.2;
/// Of what is read besides because neighbours lie apart: there are more sectors on the way than caches hold.
constexpr double stridedShare = 0.5;
/// Neighbours that a thread computes together and that share what a broadcast along them reads.
constexpr double neighbours = 4;
/// Of a thread, whatever it computes.
constexpr double fixedInstructions = 20;
constexpr size_t maxAccesses = 12;
/// Of a loop that one thread runs: loads that wait for memory together.
constexpr double stepsInFlight = 8, stepsOfDotInFlight = 32;

bool isMinorKept(const HloInstruction &broadcast) {
  const Shape &shape = broadcast.shape();
  return shape.rank() > 0 && llvm::is_contained(broadcast.ints(AttributeKey::Dimensions), shape.minorToMajor().front());
}

/// Do neighbours of the result come from far apart?
bool scattersNeighbours(const HloInstruction &instr) {
  const Shape &to = instr.shape();
  if (!to.isArray() || to.rank() == 0 || instr.numOperands() == 0)
    return false;
  const Shape &from = instr.operand(0)->shape();
  auto minor = [](const Shape &shape) {
    for (int64_t dim : shape.minorToMajor())
      if (shape.dim(dim) != 1)
        return dim;
    return int64_t(-1);
  };
  if (instr.opcode() == Opcode::Transpose)
    return minor(to) >= 0 && instr.ints(AttributeKey::Dimensions)[minor(to)] != minor(from);
  return instr.opcode() == Opcode::Copy && minor(to) != minor(from);
}

bool reducesMinor(const HloInstruction &reduce) {
  const Shape &from = reduce.operand(0)->shape();
  return from.rank() > 0 && llvm::is_contained(reduce.ints(AttributeKey::Dimensions), from.minorToMajor().front());
}

bool keepsOrder(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Reshape || instr.opcode() == Opcode::Bitcast;
}

double bytesOf(const Shape &shape) { return shape.isArray() ? deviceBits(shape.elementType()) / 8.0 : 0; }

uint64_t pointsOf(int64_t elements) { return llvm::hash_combine(0x5eed, elements); }

} // namespace

/// At which points an instruction is computed.
struct FusionCost::Access {
  uint64_t points; ///< equal: the same ones
  double count;
  double spread; ///< bytes of memory that a byte read takes
};

FusionCost::FusionCost(const HloComputation &computation, const TargetInfo &target,
                       std::function<bool(const HloInstruction &)> mayUpdate)
    : target(target), device(deviceOf(target)), mayUpdate(std::move(mayUpdate)),
      stamps(computation.instructions().size(), 0), slots(stamps.size(), 0), hashes(stamps.size(), 0) {}

/// Operands aside. Layouts count, and what is called, one level deep.
uint64_t FusionCost::hashOf(const HloInstruction &instr) {
  uint64_t &hash = hashes[instr.id()];
  if (hash)
    return hash;
  llvm::hash_code code = llvm::hash_combine(hashOfWork(instr), instr.numOperands());
  for (unsigned i = 0; i < instr.numResults(); ++i)
    if (const Shape &shape = instr.resultShape(i); shape.isArray())
      code = llvm::hash_combine(code, shape.elementType(), shape.dims(), shape.minorToMajor());
  for (const HloComputation *callee : instr.calledComputations())
    for (const HloInstruction *inner : callee->instructions()) {
      code = llvm::hash_combine(code, hashOfWork(*inner));
      for (const HloInstruction *operand : inner->operands())
        code = llvm::hash_combine(code, operand->id());
    }
  return hash = uint64_t(code) | 1;
}

/// Equal for kernels that differ in nothing but names.
FusionCost::Key FusionCost::keyOf(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  ++query;
  uint32_t last = 0;
  Key key{members.size(), roots.size()};
  auto add = [&](uint64_t value) {
    key.first = llvm::hash_combine(key.first, value);
    key.second = (key.second ^ value) * 0x9e3779b97f4a7c15 + (key.second >> 29);
  };
  auto place = [&](const HloInstruction *instr) {
    stamps[instr->id()] = query;
    slots[instr->id()] = ++last;
  };
  for (const HloInstruction *instr : members) {
    for (const HloInstruction *operand : instr->operands()) {
      if (stamps[operand->id()] != query) {
        place(operand);
        add(llvm::hash_combine(operand->shape().isArray()
                                   ? llvm::hash_combine(operand->shape().elementType(), operand->shape().dims(),
                                                        operand->shape().minorToMajor())
                                   : llvm::hash_code(0),
                               mayUpdate(*operand)));
      }
      add(slots[operand->id()]);
    }
    add(hashOf(*instr));
    place(instr);
  }
  for (const HloInstruction *root : roots)
    add(slots[root->id()]);
  return key;
}

const KernelCost &FusionCost::of(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  auto [at, isNew] = known.try_emplace(keyOf(members, roots));
  if (isNew)
    at->second = find(members, roots);
  return at->second;
}

KernelCost FusionCost::find(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  using Accesses = llvm::SmallVector<Access, 2>;
  KernelCost cost;
  PlanAnswer plan;
  int64_t largest = 1;
  for (const HloInstruction *root : roots)
    for (unsigned i = 0; i < root->numResults(); ++i)
      if (root->resultShape(i).isArray())
        largest = std::max(largest, root->resultShape(i).numElements());
  // (There are no plans for dynamic shapes, which are refused as a whole.)
  const bool asked =
      llvm::any_of(members, [](const HloInstruction *instr) { return decidesHero(*instr); }) &&
      llvm::none_of(members, [](const HloInstruction *instr) { return instr->shape().hasDynamicDims(); });
  if (asked) {
    std::optional<PlanAnswer> answer = askForPlan(members, roots, mayUpdate, target);
    if (!answer) {
      cost.impossible = "no hero takes it";
      return cost;
    }
    plan = std::move(*answer);
    cost.hero = plan.hero;
    // Kernels of their own divide long columns among blocks.
    if (plan.hero == "columns" && plan.passes > 1) {
      cost.impossible = "the columns do not fit into the registers of a block";
      return cost;
    }
    auto isLost = [&](const HloInstruction *instr) {
      return instr->opcode() == Opcode::Sort && !llvm::is_contained(plan.kept, instr);
    };
    if (llvm::any_of(members, isLost)) {
      cost.impossible = "a kernel sorts once, and nothing reads in it what it has sorted";
      return cost;
    }
  }
  ++query;
  for (auto [slot, instr] : llvm::enumerate(members)) {
    stamps[instr->id()] = query;
    slots[instr->id()] = uint32_t(slot);
  }
  std::vector<Accesses> accesses(members.size());
  struct Read {
    const HloInstruction *instr;
    double total = 0, spread = 1;
  };
  llvm::SmallVector<Read, 16> reads;
  llvm::SmallDenseMap<const HloInstruction *, size_t, 16> readOf;
  auto add = [&](Accesses &known, const Access &access) {
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
  };
  auto read = [&](const HloInstruction *operand, const Access &access) {
    if (stamps[operand->id()] == query) {
      add(accesses[slots[operand->id()]], access);
      return;
    }
    auto [at, isNew] = readOf.try_emplace(operand, reads.size());
    if (isNew)
      reads.push_back({operand});
    reads[at->second].total += access.count * access.spread;
    reads[at->second].spread = std::max(reads[at->second].spread, access.spread);
  };
  double written = 0;
  size_t streams = 0, codeSize = 0;
  for (const HloInstruction *root : roots) {
    const bool updates = plan.inPlace && llvm::is_contained(plan.kept, root);
    for (unsigned i = 0; i < root->numResults(); ++i) {
      const Shape &shape = root->resultShape(i);
      if (!shape.isArray())
        continue;
      if (!updates)
        written += double(shape.byteSize());
      streams += size_t(shape.numElements() == largest);
    }
    if (root->resultShape().isArray())
      add(accesses[slots[root->id()]],
          {pointsOf(root->resultShape().numElements()), double(root->resultShape().numElements()), 1});
  }
  double dependentLoads = 0, loopSteps = 0;
  for (size_t slot = members.size(); slot-- > 0;) {
    const HloInstruction &instr = *members[slot];
    Accesses &own = accesses[slot];
    if (own.empty() && instr.opcode() == Opcode::Tuple)
      continue;
    double count = 0;
    for (const Access &access : own)
      count += access.count;
    codeSize += std::max<size_t>(own.size(), 1);
    const bool kept = llvm::is_contained(plan.kept, &instr);
    const Shape &result = instr.resultShape();
    if (kept && result.isArray()) {
      count = double(result.numElements());
      if (plan.inPlace && instr.numOperands() > 1) {
        const HloInstruction *updates = instr.opcode() == Opcode::Scatter ? instr.operands().back() : instr.operand(1);
        count = double(updates->shape().numElements());
        written += count * bytesOf(result);
      }
    }
    // The hero decides once a block which operand an element of a concatenate comes from.
    cost.work += kept && instr.opcode() == Opcode::Concatenate ? count : count * workPerElement(instr);
    if (!kept && hasTrait(instr.opcode(), OpcodeTrait::Contracts)) {
      const bool isDot = isContraction(instr) && instr.opcode() != Opcode::Convolution;
      loopSteps += count * readsPerElement(instr, 0) / (isDot ? stepsOfDotInFlight : stepsInFlight);
    }
    if (instr.opcode() == Opcode::Gather || instr.opcode() == Opcode::DynamicSlice)
      dependentLoads = 1;
    for (unsigned number = 0; number < instr.numOperands(); ++number) {
      const HloInstruction *operand = instr.operand(number);
      if (!operand->shape().isArray()) {
        if (stamps[operand->id()] == query)
          for (const Access &access : own)
            add(accesses[slots[operand->id()]], access);
        continue;
      }
      const double elements = double(operand->shape().numElements());
      if (kept) {
        if (plan.inPlace && number == 0)
          continue;
        read(operand, {pointsOf(operand->shape().numElements()), elements, 1});
        continue;
      }
      if (operand->shape().isScalar() && !instr.shape().isScalar() && instr.opcode() != Opcode::Map) {
        // Once a thread.
        read(operand, {llvm::hash_combine(0xca1a, operand->id()), std::max(1.0, count / neighbours), 1 / lanesPerWarp});
        continue;
      }
      const bool inPlace =
          readsOperandsInPlace(instr) || keepsOrder(instr) || instr.opcode() == Opcode::GetTupleElement;
      const double perElement = readsPerElement(instr, number);
      for (const Access &access : own) {
        Access next = access;
        if (instr.opcode() == Opcode::Broadcast) {
          const bool minor = isMinorKept(instr);
          next.points = llvm::hash_combine(access.points, instr.opcode(), operand->shape().identity(),
                                           instr.ints(AttributeKey::Dimensions), result.identity());
          next.count = std::max(std::min(access.count, elements), access.count / (minor ? 1 : neighbours));
          next.spread = minor ? access.spread : 1 / neighbours;
        } else if (!inPlace) {
          next.points = llvm::hash_combine(access.points, &instr, number);
          next.count = access.count * perElement;
          if (scattersNeighbours(instr) || (instr.opcode() == Opcode::Reduce && perElement >= 4 && reducesMinor(instr)))
            next.spread = std::clamp(sectorBytes / std::max(0.5, bytesOf(operand->shape())), 1.0, 8.0);
        }
        read(operand, next);
      }
    }
  }
  double fromMemory = 0, again = 0;
  for (const Read &one : reads) {
    const double size = double(one.instr->shape().isArray() ? one.instr->shape().byteSize() : 0);
    const double total = one.total * bytesOf(one.instr->shape());
    const double first = std::min(size, total);
    fromMemory += first * plan.passes;
    again += (total - first) * (one.spread > 1 ? stridedShare : rereadShare);
    streams += size_t(one.instr->shape().isArray() && one.instr->shape().numElements() == largest);
  }
  written *= plan.hero == "sort" ? plan.passes : 1;
  cost.bytes = fromMemory + written + plan.extraBytes;
  const size_t buffers = reads.size() + roots.size();
  if (buffers > limits.buffers)
    cost.impossible = fmt::format("{} operands and outputs, more than {}", buffers, limits.buffers);
  else if (streams > limits.streams && roots.size() > 1)
    cost.impossible = fmt::format("{} arrays at once, more than {}", streams, limits.streams);
  else if (codeSize > limits.codeSize)
    cost.impossible = fmt::format("{} instructions of code, more than {}", codeSize, limits.codeSize);

  KernelCounts counts;
  if (asked && !plan.isLoop) {
    counts.blocks = plan.blocks;
    counts.threadsPerBlock = plan.threads;
  } else {
    double perThread = std::clamp(double(largest) / (device.multiprocessors * 256.0), 1.0, neighbours);
    counts.blocks = uint64_t(std::ceil(double(largest) / (128 * perThread)));
    counts.threadsPerBlock = uint32_t(std::min<int64_t>(largest, 128));
  }
  const double threads = double(counts.blocks) * counts.threadsPerBlock;
  counts.sectors = (cost.bytes + again) / sectorBytes;
  counts.instructions = (cost.work + fixedInstructions * threads) / lanesPerWarp;
  counts.memoryRoundTrips = 1 + dependentLoads + loopSteps / std::max(1.0, threads);
  counts.chainInstructions = 0.5 * cost.work / std::max(1.0, threads);
  const KernelEstimate time = estimate(counts, device);
  cost.seconds = time.total - time.launch + launchSeconds * std::max(1u, plan.launches);
  return cost;
}

} // namespace hloc
