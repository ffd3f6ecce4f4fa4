#include "UnreadSums.h"

#include "Liveness.h"

#include "llvm/ADT/BitVector.h"

namespace hloc::emulator {
namespace {

/// setp.ne.b32 p, 0, 0: always false.
bool isFalse(const Decoded &d) {
  return d.opcode == Opcode::Setp && d.compare == Compare::Ne && !d.type.isFloat() && d.operands.size() == 3 &&
         d.guard.kind == Source::Kind::None && d.operands[0].kind == Source::Kind::Register &&
         d.operands[1].kind == Source::Kind::Constant && d.operands[2].kind == Source::Kind::Constant &&
         d.operands[1].value == d.operands[2].value;
}

} // namespace

void dropUnreadSums(Kernel &kernel) {
  constexpr size_t scaleOperand = 3, before = 4;
  llvm::BitVector targets(kernel.code.size() + 1);
  for (const Decoded &d : kernel.code)
    if (d.opcode == Opcode::Bra)
      targets.set(d.target);
  llvm::BitVector areFalse(kernel.registers);
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    Decoded &d = kernel.code[i];
    if (targets[unsigned(i)])
      areFalse.reset();
    if (d.opcode == Opcode::Wgmma && d.mode == Mode::Multiply) {
      const Source &scale = d.operands[scaleOperand];
      if (scale.kind == Source::Kind::Register && !scale.negated && areFalse[scale.slot])
        for (Source &sum : d.operands[before].elements) {
          const uint8_t bits = sum.bits;
          sum = Source();
          sum.kind = Source::Kind::Constant;
          sum.bits = bits;
        }
    }
    forEachDefinition(d, [&](const Source &r) { areFalse.reset(r.slot); });
    if (isFalse(d))
      areFalse.set(d.operands[0].slot);
  }
}

} // namespace hloc::emulator
