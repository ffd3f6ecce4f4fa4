// No two threads meet at an element without order. In shared memory each element is followed through what happens
// between two barriers, thread by thread, since a block has few of both. In global memory nobody orders blocks: what
// one thread writes no other touches.
#include "prove/Digits.h"
#include "prove/Properties.h"

#include <map>

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr int64_t mostVisits = 4 << 20; ///< of elements, in all

class SharedOrder {
public:
  explicit SharedOrder(const KernelAccesses &kernel) : kernel(kernel) {}

  std::optional<PropertyProof> check(unsigned number) {
    buffer = &kernel.buffers[number];
    if (buffer->elements() > mostVisits)
      return unknown("it is larger than shared memory is");
    std::map<unsigned, std::vector<const Access *>> phases;
    for (const Access &access : kernel.accesses)
      if (access.buffer == number)
        for (unsigned phase = access.firstPhase; phase <= access.lastPhase; ++phase)
          phases[phase].push_back(&access);
    std::vector<ArrayRef<const Access *>> known; // rounds of a loop are much alike
    for (auto &[phase, accesses] : phases) {
      bool writes = llvm::any_of(accesses, [](const Access *one) { return one->kind != AccessKind::Read; });
      if (!writes || llvm::any_of(known, [&](ArrayRef<const Access *> other) { return areAlike(accesses, other); }))
        continue;
      known.push_back(accesses);
      if (std::optional<PropertyProof> proof = checkPhase(accesses))
        return proof;
    }
    return std::nullopt;
  }

private:
  PropertyProof unknown(const std::string &why) const {
    return unknownProof(ProofProperty::Ordered, "`" + buffer->name + "`: " + why);
  }

  static bool areAlike(ArrayRef<const Access *> first, ArrayRef<const Access *> second) {
    return llvm::equal(first, second, [](const Access *a, const Access *b) {
      return a->kind == b->kind && a->width == b->width && a->lanesAlike == b->lanesAlike &&
             a->mayBeAlike == b->mayBeAlike && a->indices == b->indices && a->constraints == b->constraints &&
             a->rounds == b->rounds;
    });
  }

  /// What all threads of a block have the same of, as far as places depend on it; blocks do not share this memory.
  std::optional<SmallVector<unsigned>> commonOf(ArrayRef<const Access *> accesses) const {
    llvm::BitVector used(kernel.variables.size());
    for (const Access *access : accesses)
      for (AffineExpr index : access->indices)
        kernel.variables.collect(index, used);
    SmallVector<unsigned> common;
    for (unsigned i : used.set_bits()) {
      VariableKind kind = kernel.variables[i].kind;
      if (kind == VariableKind::Data)
        return std::nullopt;
      if (kind == VariableKind::Block || kind == VariableKind::State)
        common.push_back(i);
    }
    return common;
  }

  std::optional<PropertyProof> checkPhase(ArrayRef<const Access *> accesses) {
    std::optional<SmallVector<unsigned>> common = commonOf(accesses);
    if (!common)
      return unknown("places depend on data");
    std::optional<PropertyProof> proof;
    constexpr int64_t mostCommon = 64;
    bool done = forEachPoint(kernel.variables, *common, mostCommon, [&](MutableArrayRef<int64_t> values) {
      proof = checkPhaseAt(accesses, values, *common);
      return !proof.has_value();
    });
    if (!done)
      proof = unknown("places depend on the block, or on the round of a loop with barriers");
    if (proof && proof->verdict == ProofVerdict::Unknown)
      if (std::optional<PropertyProof> found = refuteSomewhere(accesses))
        return found;
    return proof;
  }

  /// In a few blocks and rounds, where all conditions are known.
  std::optional<PropertyProof> refuteSomewhere(ArrayRef<const Access *> accesses) {
    std::vector<int64_t> first, last;
    SmallVector<unsigned> common;
    for (unsigned i = 0; i < kernel.variables.size(); ++i) {
      const Variable &variable = kernel.variables[i];
      first.push_back(variable.bounds.lower);
      last.push_back(variable.bounds.lower);
      if (variable.kind == VariableKind::Block || variable.kind == VariableKind::State) {
        common.push_back(i);
        last.back() = variable.bounds.upper;
      }
    }
    for (const std::vector<int64_t> &values : {first, last}) {
      allExact = true;
      std::optional<PropertyProof> proof = checkPhaseAt(accesses, values, common);
      if (proof && proof->verdict == ProofVerdict::Refuted)
        return proof;
    }
    return std::nullopt;
  }

  /// Who has been at an element: two threads stand for all of them, of two warps if there are.
  struct Threads {
    int32_t first = -1, second = -1;
    void add(int32_t thread) {
      if (first < 0)
        first = thread;
      else if (first != thread && (second < 0 || areOfOneWarp(first, second)))
        second = thread;
    }
    /// One of them that is not `thread`, of another warp if there is one; -1: there is none.
    int32_t otherThan(int32_t thread) const {
      if (first == thread || (second >= 0 && areOfOneWarp(first, thread) && second != thread))
        return second;
      return first;
    }
  };
  static bool areOfOneWarp(int32_t a, int32_t b) { return a / 32 == b / 32; }
  struct Visitors {
    Threads readers, writers, updaters;
    const Access *alike = nullptr; ///< the only write, of threads of one group that all write the same
    int32_t group = 0;
  };

  std::optional<PropertyProof> checkPhaseAt(ArrayRef<const Access *> accesses, ArrayRef<int64_t> base,
                                            ArrayRef<unsigned> common) {
    std::vector<Visitors> visitors(size_t(buffer->elements()));
    withinWarp.reset();
    for (const Access *access : accesses) {
      std::optional<PropertyProof> proof;
      if (!visit(*access, base, common, visitors, proof))
        return unknown("it is accessed more often than is looked at");
      if (proof)
        return proof;
    }
    return withinWarp;
  }

  /// Conditions that depend on more than threads, rounds and what is common are taken to hold.
  bool visit(const Access &access, ArrayRef<int64_t> base, ArrayRef<unsigned> common, std::vector<Visitors> &visitors,
             std::optional<PropertyProof> &proof) {
    SmallVector<unsigned> which = {kernel.thread};
    llvm::append_range(which, access.rounds);
    Program program(kernel.variables);
    SmallVector<Interval> intervals;
    bool exact = true;
    for (const Constraint &constraint : access.constraints) {
      llvm::BitVector used;
      kernel.variables.collect(constraint.first, used);
      bool known = llvm::all_of(used.set_bits(), [&](unsigned i) {
        VariableKind kind = kernel.variables[i].kind;
        return kind == VariableKind::Thread || kind == VariableKind::Round || kind == VariableKind::Function ||
               llvm::is_contained(common, i);
      });
      exact &= known;
      if (known) {
        program.add(constraint.first);
        intervals.push_back(constraint.second);
      }
    }
    const unsigned place = program.add(linearIndex(access, *buffer));
    // Rounds that neither the place nor a condition depends on change nothing.
    dropUnused(access, which);
    std::vector<int64_t> common_values(base);
    bool done = forEachPoint(kernel.variables, which, visitsLeft, [&](MutableArrayRef<int64_t> values) {
      visitsLeft -= access.width;
      for (unsigned i : common)
        values[i] = base[i];
      program.run(values);
      for (auto [i, interval] : llvm::enumerate(intervals))
        if (!interval.contains(program.result(unsigned(i))))
          return true;
      for (int64_t i = 0; i < access.width && !proof; ++i)
        meet(access, program.result(place) + i, int32_t(values[kernel.thread]), values, exact, visitors, proof);
      return !proof && visitsLeft > 0;
    });
    return done && visitsLeft > 0;
  }

  void dropUnused(const Access &access, SmallVectorImpl<unsigned> &which) const {
    llvm::BitVector used(kernel.variables.size());
    for (AffineExpr index : access.indices)
      kernel.variables.collect(index, used);
    for (const Constraint &constraint : access.constraints)
      kernel.variables.collect(constraint.first, used);
    llvm::erase_if(which, [&](unsigned i) { return i != kernel.thread && !used[i]; });
  }

  void meet(const Access &access, int64_t element, int32_t thread, ArrayRef<int64_t> values, bool exact,
            std::vector<Visitors> &visitors, std::optional<PropertyProof> &proof) {
    if (element < 0 || element >= int64_t(visitors.size()))
      return; // another property
    Visitors &known = visitors[size_t(element)];
    int32_t other = -1;
    auto conflictsWith = [&](const Threads &threads) { other = std::max(other, threads.otherThan(thread)); };
    const int32_t group = access.lanesAlike > 1 ? thread / int32_t(access.lanesAlike) : thread;
    if (!(access.kind == AccessKind::Write && known.alike == &access && known.group == group))
      conflictsWith(known.writers);
    const bool maySay =
        access.kind == AccessKind::Read || other < 0 || !access.mayBeAlike; // else both may write the same
    if (access.kind != AccessKind::Read)
      conflictsWith(known.readers);
    if (access.kind != AccessKind::Atomic)
      conflictsWith(known.updaters);
    if (other >= 0) {
      proof = unknown("threads may meet at an element");
      if (exact && allExact && maySay)
        proof = PropertyProof{ProofProperty::Ordered, ProofVerdict::Refuted, "no barrier is between them",
                              ProofWitness{{place(other, values), place(thread, values)}, buffer->name, element}};
      if (areOfOneWarp(other, thread)) { // threads of two warps show better what is wrong
        withinWarp = withinWarp && withinWarp->verdict == ProofVerdict::Refuted ? withinWarp : proof;
        proof.reset();
      }
      return;
    }
    allExact &= exact;
    if (access.kind == AccessKind::Write) {
      known.alike = known.writers.first < 0 || known.alike == &access ? &access : nullptr;
      known.group = group;
    }
    (access.kind == AccessKind::Read    ? known.readers
     : access.kind == AccessKind::Write ? known.writers
                                        : known.updaters)
        .add(thread);
  }
  ProofWitness::Place place(int32_t thread, ArrayRef<int64_t> values) const {
    return {uint64_t(values[kernel.block]), uint64_t(thread)};
  }

  const KernelAccesses &kernel;
  const Buffer *buffer = nullptr;
  bool allExact = true;                    ///< everything that was visited happens
  std::optional<PropertyProof> withinWarp; ///< what was found of two threads of a warp
  int64_t visitsLeft = mostVisits;
};

/// The elements of a byte are neighbours that one thread writes, all or none.
bool writesWholeBytes(KernelAccesses &kernel, const Access &write) {
  const Buffer &buffer = kernel.buffers[write.named];
  const int64_t perByte = 8 / buffer.bits;
  SmallVector<unsigned> which = {kernel.thread, kernel.block};
  llvm::append_range(which, write.rounds);
  AffineExpr index = linearIndex(write, buffer);
  if (write.width > 1) {
    AffineExpr lane = kernel.variables.add(VariableKind::Round, {0, write.width - 1});
    which.push_back(cast<AffineDimExpr>(lane).getPosition());
    index = index + lane;
  }
  std::string why;
  std::optional<Digits> digits =
      Digits::of(kernel.variables, which, {index.floorDiv(perByte), index % perByte}, write.constraints, why);
  if (!digits || digits->isEmpty)
    return digits.has_value();
  const LinearForm &inByte = digits->results[1];
  if (inByte.terms.size() != 1 || inByte.constant != 0 || inByte.terms.front().second != 1)
    return inByte.terms.empty() && inByte.constant == 0 && buffer.elements() == 1;
  const unsigned digit = inByte.terms.front().first;
  auto usesIt = [&](AffineExpr input) { return input.isFunctionOfDim(digit); };
  return digits->counts[digit] == perByte && !usesIt(digits->inputs[0]) && !usesIt(digits->inputs[1]) &&
         llvm::none_of(digits->constraints, [&](auto &one) { return one.first.factorOf(digit) != 0; });
}

/// Of global memory that is written: written once, by (a), read by nobody but the thread that writes it.
std::optional<PropertyProof> checkGlobal(KernelAccesses &kernel, unsigned number, bool writtenOnce) {
  const Buffer &buffer = kernel.buffers[number];
  SmallVector<const Access *> writes, reads;
  bool atomics = false, plain = false;
  for (const Access &access : kernel.accesses)
    if (access.buffer == number) {
      (access.kind == AccessKind::Read ? reads : writes).push_back(&access);
      atomics |= access.kind == AccessKind::Atomic;
      plain |= access.kind == AccessKind::Write;
    }
  if (writes.empty() || (atomics && !plain && reads.empty()))
    return std::nullopt;
  auto unknown = [&](const std::string &why) {
    return unknownProof(ProofProperty::Ordered, "`" + buffer.name + "`: " + why);
  };
  if (atomics)
    return unknown("plain accesses beside atomic ones");
  if (!writtenOnce)
    return unknown("it is not known that every element is one thread's");
  if (buffer.bits < 8 && !llvm::all_of(writes, [&](const Access *write) { return writesWholeBytes(kernel, *write); }))
    return unknown("elements share bytes");
  if (!llvm::is_contained(kernel.returned, number) &&
      llvm::none_of(kernel.returned, [&](unsigned named) { return kernel.buffers[named].sameAs == number; }))
    return unknown("it is written, but not returned");
  // A read at the very index of each write, in the same rounds, is of the thread's own element.
  for (const Access *read : reads)
    for (const Access *write : writes)
      if (read->indices != write->indices || read->width != write->width)
        return unknown("it is read at other places than it is written");
  return std::nullopt;
}

} // namespace

PropertyProof proveOrdered(KernelAccesses &kernel, bool writtenOnce) {
  PropertyProof result{ProofProperty::Ordered, ProofVerdict::Proved, {}, std::nullopt};
  bool hasShared = false;
  SharedOrder shared(kernel);
  for (unsigned i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer &buffer = kernel.buffers[i];
    if (buffer.sameAs)
      continue;
    hasShared |= buffer.shared;
    std::optional<PropertyProof> proof = buffer.shared ? shared.check(i) : checkGlobal(kernel, i, writtenOnce);
    if (!proof)
      continue;
    if (proof->verdict == ProofVerdict::Refuted)
      return *proof;
    if (result.verdict == ProofVerdict::Proved)
      result = *proof;
  }
  if (result.verdict == ProofVerdict::Proved && hasShared && !kernel.unknownOrder.empty())
    return unknownProof(ProofProperty::Ordered, kernel.unknownOrder);
  return result;
}

} // namespace hloc::prove
