#pragma once
// What the translator must know of a kernel's registers before it writes code: where blocks begin, which writes may
// spoil a register of lanes that wait elsewhere, and whose NaN payloads can be seen.
//
//   A: @%p bra C;     lanes with %p wait at C while B runs
//   B: mov %r1, 1;    spoils %r1 of the waiting lanes if C reads it, so it must keep theirs; else it may write all 32
//   C: st [..], %r1;

#include "Program.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc::emulator {

/// Every register of an operand, vectors included.
void forEachRegister(const Source &source, llvm::function_ref<void(const Source &)> visit);
void forEachUse(const Decoded &instruction, llvm::function_ref<void(const Source &)> visit);
void forEachDefinition(const Decoded &instruction, llvm::function_ref<void(const Source &)> visit);
/// Whether the instruction is the last of its block.
bool endsBlock(const Decoded &instruction);

class Liveness {
public:
  /// Longer runs of instructions count as several blocks.
  static constexpr uint32_t longestBlock = 256;

  /// `rotates`: lanes may wait at any loop header while any block runs, not only further on.
  explicit Liveness(const Kernel &kernel, bool rotates = false);

  uint32_t numBlocks() const { return uint32_t(starts.size()) - 1; }
  uint32_t begin(uint32_t block) const { return starts[block]; }
  uint32_t end(uint32_t block) const { return starts[block + 1]; }
  /// Block of an instruction; numBlocks() for the end of the code.
  uint32_t blockOf(uint32_t instruction) const { return blockAt[instruction]; }
  /// Blocks that may come next; numBlocks() for the end of the code.
  llvm::SmallVector<uint32_t, 2> successors(const Kernel &kernel, uint32_t block) const;
  /// Whether some branch after or in the block jumps to it.
  bool isLoopHeader(uint32_t block) const { return headers[block]; }

  /// Whether a register written in `block` may hold a value that a lane outside the block's mask still needs.
  bool mustKeep(uint32_t block, uint32_t slot) const { return waiting[block][slot]; }
  /// Whether a lane that leaves the block may read the register's value.
  bool isLiveAfter(uint32_t block, uint32_t slot) const { return liveOut[block][slot]; }
  /// Whether the register's value at the end of the block is read later, by whatever lane.
  bool isReadAfter(uint32_t block, uint32_t slot) const { return liveOut[block][slot] || waiting[block][slot]; }
  /// Whether the register's value passes from one block to another anywhere.
  bool crossesBlocks(uint32_t slot) const { return crossing[slot]; }
  /// Whether some lane may read the register before it writes it.
  bool isReadFirst(uint32_t slot) const { return live[0][slot]; }
  /// Registers whose values at the block's begin no lane, in the block or waiting, will read.
  llvm::BitVector deadAt(uint32_t block) const;
  /// Whether anything but float arithmetic reads the register: then its NaNs must be canonical.
  bool bitsSeen(uint32_t slot) const { return seen[slot]; }

private:
  void split(const Kernel &kernel);
  void findLive(const Kernel &kernel);
  void findWaiting(const Kernel &kernel);
  void findSeen(const Kernel &kernel);

  std::vector<uint32_t> starts, blockAt;
  llvm::BitVector headers, seen, crossing;
  std::vector<llvm::BitVector> live;    ///< at the begin of each block; the last, the end of the code, is empty
  std::vector<llvm::BitVector> liveOut; ///< at the end of each block
  std::vector<llvm::BitVector> waiting; ///< live at blocks where lanes may wait while the block runs
};

} // namespace hloc::emulator
