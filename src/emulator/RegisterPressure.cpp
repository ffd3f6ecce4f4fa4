#include "RegisterPressure.h"

#include "Liveness.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc::emulator {
namespace {

using llvm::BitVector;

bool isOfLane(Special special) {
  switch (special) {
  case Special::TidX:
  case Special::TidY:
  case Special::TidZ:
  case Special::Lane:
  case Special::LaneMaskEq:
  case Special::LaneMaskLe:
  case Special::LaneMaskLt:
  case Special::LaneMaskGe:
  case Special::LaneMaskGt:
    return true;
  default:
    return false;
  }
}

/// Whether the result differs from lane to lane only where operands do.
bool isComputed(const Decoded &d) {
  if (d.opcode == Opcode::Ld)
    return d.space == Space::Param;
  return d.opcode != Opcode::Atom && !isCollective(d);
}

class PressureFinder {
public:
  explicit PressureFinder(const Kernel &kernel) : kernel(kernel), blocks(kernel), varying(kernel.registers) {
    for (const Decoded &d : kernel.code)
      if (d.opcode == Opcode::Setmaxnreg)
        settings.push_back(&d);
  }

  RegisterPressures run() {
    if (settings.empty())
      return RegisterPressures();
    findVarying();
    findSettings();
    for (uint32_t b = 0; b < blocks.numBlocks(); ++b)
      measure(b);
    return std::move(most);
  }

private:
  void findVarying() {
    halves.assign(kernel.registers, 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Decoded &d : kernel.code) {
        bool varies = !isComputed(d);
        for (const Source &operand : d.operands)
          varies |= operand.kind == Source::Kind::Special && isOfLane(operand.special);
        forEachUse(d, [&](const Source &r) { varies |= varying[r.slot]; });
        forEachDefinition(d, [&](const Source &r) {
          halves[r.slot] = std::max<uint8_t>(halves[r.slot], r.bits / 16); // none of a predicate
          if (varies && !varying[r.slot]) {
            varying.set(r.slot);
            changed = true;
          }
        });
      }
    }
  }

  /// Which of the settings, or the begin of the kernel, may be the last before each block.
  void findSettings() {
    const unsigned begin = unsigned(settings.size());
    last.assign(blocks.numBlocks() + 1, BitVector(begin + 1));
    last[0].set(begin);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < blocks.numBlocks(); ++b) {
        BitVector after = last[b];
        for (uint32_t i = blocks.begin(b); i < blocks.end(b); ++i)
          follow(kernel.code[i], after);
        for (uint32_t next : blocks.successors(kernel, b)) {
          const BitVector before = last[next];
          last[next] |= after;
          changed |= last[next] != before;
        }
      }
    }
  }

  void follow(const Decoded &d, BitVector &current) const {
    if (d.opcode != Opcode::Setmaxnreg)
      return;
    if (d.guard.kind == Source::Kind::None)
      current.reset();
    current.set(unsigned(llvm::find(settings, &d) - settings.begin()));
  }

  void measure(uint32_t block) {
    const uint32_t begin = blocks.begin(block), end = blocks.end(block);
    std::vector<const Decoded *> of(end - begin); // that each instruction runs with, if it is sure
    BitVector current = last[block];
    for (uint32_t i = begin; i < end; ++i) {
      follow(kernel.code[i], current);
      const int only = current.count() == 1 ? current.find_first() : -1;
      of[i - begin] = only >= 0 && unsigned(only) < settings.size() ? settings[size_t(only)] : nullptr;
    }
    BitVector live(kernel.registers);
    unsigned count = 0; // halves of registers
    auto set = [&](uint32_t slot, bool isLive) {
      if (!varying[slot] || live[slot] == isLive)
        return;
      live[slot] = isLive;
      count += isLive ? halves[slot] : -unsigned(halves[slot]);
    };
    for (uint32_t slot = 0; slot < kernel.registers; ++slot)
      if (blocks.isLiveAfter(block, slot))
        set(slot, true);
    for (uint32_t i = end; i-- > begin;) {
      const Decoded &d = kernel.code[i];
      if (const Decoded *setting = of[i - begin]) {
        RegisterPressure &found = most[setting];
        if ((count + 1) / 2 > found.registers)
          found = {(count + 1) / 2, d.line};
      }
      if (d.guard.kind == Source::Kind::None)
        forEachDefinition(d, [&](const Source &r) { set(r.slot, false); });
      forEachUse(d, [&](const Source &r) { set(r.slot, true); });
    }
  }

  const Kernel &kernel;
  const Liveness blocks;
  BitVector varying;           ///< not the same in all lanes
  std::vector<uint8_t> halves; ///< 16 bits of each register
  std::vector<const Decoded *> settings;
  std::vector<BitVector> last;
  RegisterPressures most;
};

} // namespace

RegisterPressures findRegisterPressure(const Kernel &kernel) { return PressureFinder(kernel).run(); }

} // namespace hloc::emulator
