#include "Liveness.h"

namespace hloc::emulator {

using llvm::BitVector;

void forEachRegister(const Source &source, llvm::function_ref<void(const Source &)> visit) {
  if (source.kind == Source::Kind::Register)
    visit(source);
  for (const Source &element : source.elements)
    forEachRegister(element, visit);
}

void forEachUse(const Decoded &d, llvm::function_ref<void(const Source &)> visit) {
  forEachRegister(d.guard, visit);
  forEachRegister(d.carryIn, visit);
  for (size_t i = d.results; i < d.operands.size(); ++i)
    forEachRegister(d.operands[i], visit);
}

void forEachDefinition(const Decoded &d, llvm::function_ref<void(const Source &)> visit) {
  forEachRegister(d.carryOut, visit);
  for (size_t i = 0; i < std::min<size_t>(d.results, d.operands.size()); ++i)
    forEachRegister(d.operands[i], visit);
}

bool endsBlock(const Decoded &d) {
  return d.opcode == Opcode::Bra || d.opcode == Opcode::Exit || d.opcode == Opcode::Ret || d.opcode == Opcode::Trap;
}

Liveness::Liveness(const Kernel &kernel, bool rotates) {
  split(kernel);
  findLive(kernel);
  findWaiting(kernel);
  for (uint32_t header = 0; rotates && header < numBlocks(); ++header)
    if (isLoopHeader(header))
      for (BitVector &slots : waiting)
        slots |= live[header];
  findSeen(kernel);
}

void Liveness::split(const Kernel &kernel) {
  size_t count = kernel.code.size();
  BitVector leader(count + 1);
  leader.set(0);
  leader.set(count);
  for (size_t i = 0; i < count; ++i) {
    const Decoded &d = kernel.code[i];
    if (d.opcode == Opcode::Bra)
      leader.set(d.target);
    if (endsBlock(d))
      leader.set(i + 1);
  }
  blockAt.assign(count + 1, 0);
  for (size_t i = 0; i <= count; ++i) {
    if (leader[i] || i - starts.back() == longestBlock) // 0 is a leader
      starts.push_back(uint32_t(i));
    blockAt[i] = uint32_t(starts.size() - 1);
  }
  headers.resize(starts.size());
  for (size_t i = 0; i < count; ++i)
    if (kernel.code[i].opcode == Opcode::Bra && blockAt[kernel.code[i].target] <= blockAt[i])
      headers.set(blockAt[kernel.code[i].target]);
}

llvm::SmallVector<uint32_t, 2> Liveness::successors(const Kernel &kernel, uint32_t block) const {
  llvm::SmallVector<uint32_t, 2> result;
  const Decoded &last = kernel.code[end(block) - 1];
  if (!endsBlock(last) || last.guard.kind != Source::Kind::None)
    result.push_back(block + 1);
  if (last.opcode == Opcode::Bra)
    result.push_back(blockAt[last.target]);
  return result;
}

/// Backward data flow over blocks; a guarded write ends no life.
void Liveness::findLive(const Kernel &kernel) {
  uint32_t blocks = numBlocks();
  live.assign(blocks + 1, BitVector(kernel.registers));
  std::vector<BitVector> killed(blocks, BitVector(kernel.registers));
  for (uint32_t b = 0; b < blocks; ++b)
    for (uint32_t i = begin(b); i < end(b); ++i) {
      const Decoded &d = kernel.code[i];
      forEachUse(d, [&](const Source &r) {
        if (!killed[b][r.slot])
          live[b].set(r.slot);
      });
      if (d.guard.kind == Source::Kind::None)
        forEachDefinition(d, [&](const Source &r) { killed[b].set(r.slot); });
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = blocks; b-- > 0;) {
      BitVector out(kernel.registers);
      for (uint32_t s : successors(kernel, b))
        out |= live[s];
      out.reset(killed[b]);
      out |= live[b];
      if (out != live[b]) {
        live[b] = std::move(out);
        changed = true;
      }
    }
  }
  liveOut.assign(blocks, BitVector(kernel.registers));
  crossing.resize(kernel.registers);
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t s : successors(kernel, b))
      liveOut[b] |= live[s];
    crossing |= live[b];
  }
}

/// Lanes wait only at blocks after the running one. They got there by a branch over it, or they were there when others
/// jumped back over it.
void Liveness::findWaiting(const Kernel &kernel) {
  uint32_t blocks = numBlocks();
  waiting.assign(blocks + 1, BitVector(kernel.registers));
  std::vector<uint32_t> nearest(blocks, blocks); // end of the innermost jump back over each block
  std::vector<std::vector<uint32_t>> arrivals(blocks + 1);
  size_t spans = 0;
  for (uint32_t b = 0; b < blocks; ++b)
    for (uint32_t s : successors(kernel, b)) {
      for (uint32_t over = s; s <= b && over <= b; ++over)
        nearest[over] = std::min(nearest[over], b);
      if (s > b + 1) {
        arrivals[s].push_back(b);
        spans += s - b;
      }
    }
  std::vector<BitVector> after(blocks + 2, BitVector(kernel.registers)); // live at this block or any later one
  for (uint32_t b = blocks + 1; b-- > 0;) {
    after[b] = after[b + 1];
    after[b] |= live[b];
  }
  constexpr size_t limit = size_t(1) << 32; // work in bits; above, lanes may wait anywhere
  bool precise = spans * (kernel.registers + 1) < limit;
  for (uint32_t b = 0; b < blocks; ++b)
    waiting[b] = precise ? (nearest[b] < blocks ? after[nearest[b] + 1] : waiting[b]) : after[b + 1];
  if (!precise)
    return;
  for (uint32_t to = 0; to <= blocks; ++to)
    if (!arrivals[to].empty())
      for (uint32_t b = *std::min_element(arrivals[to].begin(), arrivals[to].end()) + 1; b < to; ++b)
        waiting[b] |= live[to];
}

static bool readsAsFloat(const Decoded &d) {
  switch (d.opcode) {
  case Opcode::Add:
  case Opcode::Sub:
  case Opcode::Mul:
  case Opcode::Fma:
  case Opcode::Mad:
  case Opcode::Div:
  case Opcode::Min:
  case Opcode::Max:
  case Opcode::Setp:
  case Opcode::Sqrt:
  case Opcode::Rcp:
  case Opcode::Rsqrt:
  case Opcode::Ex2:
  case Opcode::Lg2:
  case Opcode::Sin:
  case Opcode::Cos:
  case Opcode::Tanh:
    return d.type.isFloat() && d.type.lanes == 1 && d.type.bits >= 32 && !isCollective(d);
  case Opcode::Cvt:
    return d.from.isFloat() && d.from.bits >= 32 && !isCollective(d) &&
           (d.type.kind != d.from.kind || d.type.bits != d.from.bits);
  default:
    return false;
  }
}

void Liveness::findSeen(const Kernel &kernel) {
  seen.resize(kernel.registers);
  for (const Decoded &d : kernel.code)
    if (!readsAsFloat(d))
      forEachUse(d, [&](const Source &r) { seen.set(r.slot); });
}

llvm::BitVector Liveness::deadAt(uint32_t block) const {
  BitVector dead = live[block];
  dead |= waiting[block];
  return dead.flip();
}

} // namespace hloc::emulator
