#include "RegisterHazards.h"

#include "CollectiveParts.h"
#include "Liveness.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc::emulator {
namespace {

using llvm::BitVector;

bool isMultiply(const Decoded &d) { return d.opcode == Opcode::Wgmma && d.mode == Mode::Multiply; }

/// Sums, and factors in registers.
template <typename Visit> void forEachOperand(const Decoded &multiply, Visit visit) {
  for (const Source &sum : multiply.operands[0].elements)
    visit(sum.slot);
  for (const Source &factor : multiply.operands[1].elements)
    visit(factor.slot);
}

template <typename Visit> void forEachTouched(const Decoded &d, Visit visit) {
  forEachUse(d, [&](const Source &r) { visit(r.slot, false); });
  forEachDefinition(d, [&](const Source &r) { visit(r.slot, true); });
}

/// A register that gets what another holds.
bool isCopy(const Decoded &d) {
  return d.opcode == Opcode::Mov && d.guard.kind == Source::Kind::None && d.operands.size() == 2 &&
         d.operands[0].kind == Source::Kind::Register && d.operands[1].kind == Source::Kind::Register &&
         d.operands[0].bits == 32 && d.operands[1].bits == 32;
}

/// What may be at a place of the kernel, by number of a register that some wgmma uses.
struct Flow {
  /// Groups of wgmmas, the last one first; of those before all that are told apart it is all one.
  static constexpr unsigned groups = 9;
  BitVector uncommitted;
  std::array<BitVector, groups> committed;
  BitVector touched; ///< since the last fence

  explicit Flow(unsigned registers) : uncommitted(registers), touched(registers) { committed.fill(uncommitted); }

  BitVector inFlight() const {
    BitVector all = uncommitted;
    for (const BitVector &group : committed)
      all |= group;
    return all;
  }
  /// Whether that adds anything.
  bool join(const Flow &other) {
    const Flow before = *this;
    uncommitted |= other.uncommitted;
    for (unsigned g = 0; g < groups; ++g)
      committed[g] |= other.committed[g];
    touched |= other.touched;
    return uncommitted != before.uncommitted || committed != before.committed || touched != before.touched;
  }
};

class HazardFinder {
public:
  explicit HazardFinder(Kernel &kernel) : kernel(kernel), numberOf(kernel.registers, none), blocks(kernel) {
    for (const Decoded &d : kernel.code)
      if (isMultiply(d))
        forEachOperand(d, [&](uint32_t slot) {
          if (numberOf[slot] == none)
            numberOf[slot] = count++;
        });
    for (bool changed = count != 0; changed;) { // and their copies
      changed = false;
      for (const Decoded &d : kernel.code)
        if (isCopy(d) && numberOf[d.operands[1].slot] != none && numberOf[d.operands[0].slot] == none) {
          numberOf[d.operands[0].slot] = count++;
          changed = true;
        }
    }
  }

  void run() {
    if (!count)
      return;
    std::vector<Flow> entry(blocks.numBlocks() + 1, Flow(count));
    BitVector pending(blocks.numBlocks(), true);
    for (int b; (b = pending.find_first()) >= 0;) {
      pending.reset(unsigned(b));
      Flow flow = entry[size_t(b)];
      pass(uint32_t(b), flow, [](Decoded &, const BitVector &) {});
      for (uint32_t next : blocks.successors(kernel, uint32_t(b)))
        if (entry[next].join(flow) && next < blocks.numBlocks())
          pending.set(next);
    }
    BitVector unfenced(count); // registers of wgmmas that miss a fence
    for (uint32_t b = 0; b < blocks.numBlocks(); ++b) {
      Flow flow = entry[b];
      pass(b, flow, [&](Decoded &d, const BitVector &registers) {
        BitVector bad = registers;
        bad &= isMultiply(d) ? flow.touched : flow.inFlight();
        d.watched = bad.any();
        if (isMultiply(d))
          unfenced |= bad;
      });
    }
    for (Decoded &d : kernel.code)
      if (!isMultiply(d) && registersOf(d).anyCommon(unfenced))
        d.watched = true;
  }

private:
  static constexpr uint32_t none = ~0u;

  BitVector registersOf(const Decoded &d) const {
    BitVector registers(count);
    auto add = [&](uint32_t slot, bool = false) {
      if (numberOf[slot] != none)
        registers.set(numberOf[slot]);
    };
    if (isMultiply(d))
      forEachOperand(d, add);
    else
      forEachTouched(d, add);
    return registers;
  }

  /// Calls `visit` before each instruction of the block takes effect.
  template <typename Visit> void pass(uint32_t block, Flow &flow, Visit visit) {
    for (uint32_t i = blocks.begin(block); i < blocks.end(block); ++i) {
      Decoded &d = kernel.code[i];
      const BitVector registers = registersOf(d);
      visit(d, registers);
      const bool isCertain = d.guard.kind == Source::Kind::None;
      if (d.opcode != Opcode::Wgmma) {
        flow.touched |= registers;
        if (isCopy(d) && registers.any())
          copy(flow, d);
      } else if (d.mode == Mode::Multiply)
        flow.uncommitted |= registers;
      else if (d.mode == Mode::Commit)
        commit(flow, isCertain);
      else if (d.mode == Mode::WaitGroup && isCertain)
        for (uint64_t g = d.operands[0].value; g < Flow::groups; ++g)
          flow.committed[g].reset();
      if (d.opcode == Opcode::Wgmma && d.mode == Mode::None && isCertain)
        flow.touched.reset();
    }
  }

  void copy(Flow &flow, const Decoded &d) const {
    const uint32_t to = numberOf[d.operands[0].slot], from = numberOf[d.operands[1].slot];
    if (to == none || from == none)
      return;
    auto pass = [&](BitVector &set) {
      if (set[from])
        set.set(to);
    };
    pass(flow.uncommitted);
    for (BitVector &group : flow.committed)
      pass(group);
  }

  static void commit(Flow &flow, bool isCertain) {
    const Flow before = flow;
    flow.committed.back() |= flow.committed[Flow::groups - 2];
    for (unsigned g = Flow::groups - 2; g > 0; --g)
      flow.committed[g] = flow.committed[g - 1];
    flow.committed[0] = flow.uncommitted;
    flow.uncommitted.reset();
    if (!isCertain)
      flow.join(before);
  }

  Kernel &kernel;
  std::vector<uint32_t> numberOf; ///< by slot
  unsigned count = 0;
  Liveness blocks;
};

} // namespace

void markRegisterHazards(Kernel &kernel) {
  if (llvm::any_of(kernel.code, isMultiply))
    HazardFinder(kernel).run();
}

bool conflict(const Decoded &earlier, const Decoded &later) {
  const auto &before = earlier.operands[0].elements, &sums = later.operands[0].elements;
  const auto &factors = later.operands[1].elements;
  const bool goesOn =
      earlier.shape == later.shape && earlier.type.kind == later.type.kind && earlier.type.bits == later.type.bits;
  llvm::DenseMap<uint32_t, size_t> placeBefore;
  for (auto [i, sum] : llvm::enumerate(before))
    placeBefore[sum.slot] = i;
  for (auto [i, sum] : llvm::enumerate(sums))
    if (auto found = placeBefore.find(sum.slot); found != placeBefore.end() && !(goesOn && found->second == i))
      return true;
  auto isSum = [&](const Source &factor) { return placeBefore.contains(factor.slot); };
  auto isOverwritten = [&](const Source &factor) {
    return llvm::any_of(sums, [&](const Source &sum) { return sum.slot == factor.slot; });
  };
  return llvm::any_of(factors, isSum) || llvm::any_of(earlier.operands[1].elements, isOverwritten);
}

bool Core::conflicts(const Decoded &earlier, const Decoded &later) {
  const auto [entry, isNew] = knownConflicts.try_emplace({&earlier, &later});
  if (isNew)
    entry->second = conflict(earlier, later);
  return entry->second;
}

namespace {

/// The place of a slot among the sums of a wgmma, if it is one.
std::optional<size_t> sumOf(const Decoded &multiply, uint32_t slot) {
  const auto &sums = multiply.operands[0].elements;
  const auto found = llvm::find_if(sums, [&](const Source &sum) { return sum.slot == slot; });
  return found == sums.end() ? std::nullopt : std::optional(size_t(found - sums.begin()));
}

bool hasFactor(const Decoded &multiply, uint32_t slot) {
  return llvm::any_of(multiply.operands[1].elements, [&](const Source &factor) { return factor.slot == slot; });
}

/// What a slot stands for: that of a sum in flight, or itself.
uint32_t originOf(const RegisterUse &use, uint32_t slot) {
  const auto name = use.names.find(slot);
  return name != use.names.end() && name->second.multiply >= use.numComplete ? name->second.slot : slot;
}

/// The last wgmma in flight that has the register, by its place there.
std::optional<size_t> lastInFlight(const RegisterUse &use, uint32_t slot) {
  for (size_t i = use.inFlight.size(); i-- > 0;)
    if (sumOf(*use.inFlight[i], slot) || hasFactor(*use.inFlight[i], slot))
      return i;
  return std::nullopt;
}

/// Whether the instruction only gives a sum in flight another name; then it has.
bool rename(RegisterUse &use, const Decoded &at) {
  if (!isCopy(at))
    return false;
  const uint32_t to = at.operands[0].slot, from = originOf(use, at.operands[1].slot);
  const auto source = lastInFlight(use, from), target = lastInFlight(use, to);
  const auto place = source ? sumOf(*use.inFlight[*source], from) : std::nullopt;
  if (!place || (target && sumOf(*use.inFlight[*target], to) != place)) // none, or over another one
    return false;
  use.names[to] = {from, use.numComplete + *source};
  return true;
}

} // namespace

void machineTouch(WarpContext *context, const Decoded *at, uint32_t mask) {
  Warp &warp = warpOf(context);
  RegisterUse &use = warp.multiplies.registers;
  if (!mask || !warp.core->launch.options.checkRaces || rename(use, *at))
    return;
  forEachTouched(*at, [&](uint32_t slot, bool isWrite) {
    if (const auto found = lastInFlight(use, isWrite ? slot : originOf(use, slot)))
      reportFinding(warp, *at, unsigned(llvm::countr_zero(mask)), FindingKind::RegisterRace, [&] {
        return fmt::format("{} a register of the wgmma in line {}, for whose group the warp has not waited",
                           isWrite ? "writes" : "reads", use.inFlight[*found]->line);
      });
    if (isWrite)
      use.names.erase(slot);
    use.touched[slot] = {at, use.fences};
  });
}

namespace {

/// Whether the wgmma uses registers of one in flight, by other names, in another way than to go on with its sums.
bool conflictsByName(const RegisterUse &use, const Decoded &earlier, const Decoded &at) {
  for (auto [i, sum] : llvm::enumerate(at.operands[0].elements)) {
    const uint32_t origin = originOf(use, sum.slot);
    const auto place = sumOf(earlier, origin);
    if (origin != sum.slot && ((place && *place != i) || hasFactor(earlier, origin)))
      return true;
  }
  return llvm::any_of(at.operands[1].elements, [&](const Source &factor) {
    const uint32_t origin = originOf(use, factor.slot);
    return origin != factor.slot && sumOf(earlier, origin);
  });
}

} // namespace

void checkRegisters(Warp &warp, const Decoded &at) {
  RegisterUse &use = warp.multiplies.registers;
  if (!warp.core->launch.options.checkRaces)
    return;
  auto report = [&](llvm::function_ref<std::string()> message) {
    reportFinding(warp, at, 0, FindingKind::RegisterRace, message);
  };
  if (!use.fences)
    report([] { return "is the first wgmma of its warp, with no wgmma.fence before"; });
  const Decoded *last = nullptr;
  for (const Decoded *earlier : use.inFlight)
    if (std::exchange(last, earlier) != earlier &&
        (warp.core->conflicts(*earlier, at) || (!use.names.empty() && conflictsByName(use, *earlier, at)))) {
      report([&] {
        return fmt::format("uses registers of the wgmma in line {}, for whose group the warp has not waited",
                           earlier->line);
      });
      break;
    }
  if (!at.watched)
    return;
  const Decoded *missed = nullptr;
  forEachOperand(at, [&](uint32_t slot) {
    auto found = use.touched.find(slot);
    if (found != use.touched.end() && found->second.fences == use.fences)
      missed = found->second.at;
  });
  if (missed)
    report(
        [&] { return fmt::format("uses a register that line {} touches, with no wgmma.fence between", missed->line); });
}

void completeMultiplies(RegisterUse &use, uint64_t count) {
  for (; count; --count, ++use.numComplete)
    use.inFlight.pop_front();
  if (use.inFlight.empty())
    use.names.clear();
}

} // namespace hloc::emulator
