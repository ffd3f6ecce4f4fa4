#pragma once
// A PTX function as code: which registers an instruction writes and reads, blocks and their successors, loops.
//
//   $L:  add.s32 %r1, %r1, 1;       instrs[0]: results {%r1}, reads {%r1}      block 0 -> {0, 1}, loop 0
//        setp.lt.s32 %p1, %r1, 9;
//        @%p1 bra $L;
//        ret;                                                                  block 1, no loop
//
// Registers are numbers in order of appearance. Names that scopes hide from each other are taken for one register.

#include "hloc/emulator/Ptx.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

namespace hloc::lint {

constexpr uint32_t none = ~0u;

struct CodeInstr {
  const ptx::Instruction *text = nullptr;
  uint32_t block = 0;
  llvm::SmallVector<uint32_t, 2> results;
  llvm::SmallVector<uint32_t, 4> reads; ///< with guard and addresses
  uint32_t file = 0, line = 0;          ///< by the last `.loc`; line 0: none
  llvm::StringRef name() const { return text->parts.front(); }
  bool has(llvm::StringRef part) const;
  /// The last part: the type of the result and, unless it converts, of the operands.
  llvm::StringRef type() const { return text->parts.back(); }
};

struct CodeBlock {
  uint32_t begin = 0, end = 0; ///< in instrs
  llvm::SmallVector<uint32_t, 2> successors;
  uint32_t loop = none; ///< innermost
};

/// Blocks that reach each other. A loop with two entrances has the first of them in the text as its header.
struct CodeLoop {
  uint32_t header = 0, parent = none;
  unsigned depth = 1;
  std::vector<uint32_t> blocks; ///< with those of inner loops, ascending
};

class KernelCode {
public:
  /// Both outlive it. Variables of the module are known, too.
  KernelCode(const ptx::Module &module, const ptx::Function &function);

  const ptx::Module &module;
  const ptx::Function &function;
  std::vector<CodeInstr> instrs;
  std::vector<CodeBlock> blocks;
  std::vector<CodeLoop> loops;                                  ///< outer ones before inner ones
  std::vector<llvm::SmallVector<uint32_t, 2>> writers, readers; ///< of each register: instrs
  llvm::StringMap<const ptx::Variable *> variables;             ///< parameters and what is not a register

  uint32_t findRegister(llvm::StringRef name) const;
  uint32_t loopOf(uint32_t instr) const { return blocks[instrs[instr].block].loop; }
  /// Whether the instruction is in the loop, or in one inside it.
  bool isIn(uint32_t instr, uint32_t loop) const;
  size_t numRegisters() const { return writers.size(); }

private:
  void readText();
  void readOperands(CodeInstr &instr);
  void addNames(const ptx::Operand &operand, llvm::SmallVectorImpl<uint32_t> &to);
  void connectBlocks();
  void findLoops();

  llvm::StringMap<uint32_t> registers;
  /// Blocks and their scopes, of which several may have labels of one name.
  llvm::StringMap<llvm::SmallVector<std::pair<uint32_t, uint32_t>, 1>> labels;
  std::vector<uint32_t> outer;                               ///< of a scope the one around it; the first has none
  std::vector<uint32_t> scopesOf;                            ///< of each instruction
  llvm::StringMap<const std::vector<std::string> *> targets; ///< lists of `.branchtargets`
};

/// Bits of a type as PTX names it: 32 for `f32`, `b32`, `f16x2`; 0 for what is none.
unsigned typeBits(llvm::StringRef type);
/// `global`, `shared`, `local`, `param`, `const`; empty if the opcode names none.
llvm::StringRef spaceOf(const CodeInstr &instr);
/// That a thread loads, stores or copies; of ldmatrix and stmatrix, as fragments.
unsigned bytesOf(const CodeInstr &instr);
/// cp.async, but for what waits for it.
bool isAsyncCopy(const CodeInstr &instr);
/// Whether the operand of that number is written rather than read.
bool isResult(const ptx::Instruction &instr, size_t operand);

} // namespace hloc::lint
