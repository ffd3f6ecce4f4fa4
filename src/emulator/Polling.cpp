#include "Polling.h"

#include "Liveness.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::emulator {

namespace {

using Body = llvm::ArrayRef<Decoded>;

llvm::DenseSet<uint32_t> definedIn(Body body) {
  llvm::DenseSet<uint32_t> defined;
  for (const Decoded &d : body)
    forEachDefinition(d, [&](const Source &r) { defined.insert(r.slot); });
  return defined;
}

bool isRead(const Decoded &d) {
  return (d.opcode == Opcode::Ld || d.opcode == Opcode::Atom) && d.space != Space::Param && d.space != Space::Local;
}

bool isClock(const Source &source) {
  return source.kind == Source::Kind::Special && source.special >= Special::Clock &&
         source.special <= Special::GlobalTimer;
}

/// Whether a round does the same as the one before if it reads the same: no register is used before it is set, there is
/// one way through, and no look at the time.
bool isCertain(Body body, uint32_t begin) {
  llvm::DenseSet<uint32_t> inside = definedIn(body), set;
  for (const Decoded &d : body) {
    if (d.opcode == Opcode::Bra && &d != &body.back() && d.target >= begin && d.target < begin + body.size())
      return false;
    bool carried = llvm::any_of(d.operands, isClock);
    forEachUse(d, [&](const Source &r) { carried |= inside.contains(r.slot) && !set.contains(r.slot); });
    if (carried)
      return false;
    if (d.guard.kind == Source::Kind::None)
      forEachDefinition(d, [&](const Source &r) { set.insert(r.slot); });
  }
  return true;
}

/// The strong reads that look again and again at one place.
llvm::SmallVector<const Decoded *, 2> looksOf(Body body) {
  llvm::DenseSet<uint32_t> inside = definedIn(body);
  llvm::SmallVector<const Decoded *, 2> looks;
  for (const Decoded &d : body)
    if (isRead(d) && d.strong)
      if (const Source &address = d.operands[1];
          address.kind != Source::Kind::Register || !inside.contains(address.slot))
        looks.push_back(&d);
  return looks;
}

} // namespace

PollingLoops findPollingLoops(const Kernel &kernel) {
  PollingLoops loops;
  for (uint32_t i = 0; i < kernel.code.size(); ++i) {
    const Decoded &branch = kernel.code[i];
    if (branch.opcode != Opcode::Bra || branch.target > i)
      continue;
    Body body = Body(kernel.code).slice(branch.target, i + 1 - branch.target);
    bool certain = isCertain(body, branch.target) && llvm::any_of(body, isRead);
    if (certain)
      loops.certain.insert(&branch);
    llvm::SmallVector<const Decoded *, 2> looks = looksOf(body);
    if (certain || !looks.empty())
      loops.branches.insert(&branch);
    loops.looks.insert(looks.begin(), looks.end());
  }
  return loops;
}

bool hasStrongAccesses(const Kernel &kernel) {
  return llvm::any_of(kernel.code, [](const Decoded &d) {
    return d.strong &&
           (d.opcode == Opcode::Ld || d.opcode == Opcode::St || d.opcode == Opcode::Atom || d.opcode == Opcode::Red);
  });
}

} // namespace hloc::emulator
