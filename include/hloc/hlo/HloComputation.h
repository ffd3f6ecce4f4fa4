#pragma once
// HloComputation: a named list of instructions, operands before users, with a root and numbered parameters.

#include "hloc/hlo/HloInstruction.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace hloc {

class HloModule;

/// What a new instruction is made of. Lists are copied into the module's arena.
struct InstructionSpec {
  Opcode opcode = Opcode::Parameter;
  llvm::StringRef name; ///< copied; empty: the opcode's text, made unique
  Shape shape;
  llvm::ArrayRef<HloInstruction *> operands;
  llvm::ArrayRef<Attribute> attributes; ///< any order; values already owned by the module's arena
  SourceRange range;
  int64_t parameterNumber = 0;
  const Literal *literal = nullptr; ///< owned by the module's arena
};

class HloComputation {
public:
  llvm::StringRef name() const { return computationName; }
  HloModule &module() const { return owner; }
  llvm::ArrayRef<HloInstruction *> instructions() const { return instrs; }
  HloInstruction *root() const { return rootInstr; }
  /// By parameter number; complete once the computation is finished.
  llvm::ArrayRef<HloInstruction *> parameters() const { return params; }
  unsigned numParameters() const { return params.size(); }
  const HloInstruction *parameter(unsigned number) const { return params[number]; }
  SourceRange range() const { return where; }
  llvm::StringRef executionThread() const { return thread; }
  /// Signature shape after `->`, if written; compatible with the root's.
  bool isEntry() const;

  /// Appends. Operands must be in this computation already; parameter numbers must be new.
  HloInstruction *add(const InstructionSpec &spec);
  void setRoot(HloInstruction *root) { rootInstr = root; }
  void setRange(SourceRange range) { where = range; }
  void setExecutionThread(llvm::StringRef name) { thread = name; }

private:
  friend class HloModule;
  friend class HloEditor;
  /// Makes an instruction without giving it a place and an id.
  HloInstruction *create(const InstructionSpec &spec);
  HloComputation(HloModule &owner, llvm::StringRef name) : owner(owner), computationName(name) {}
  HloModule &owner;
  llvm::StringRef computationName;
  llvm::StringRef thread;
  std::vector<HloInstruction *> instrs;
  std::vector<HloInstruction *> params;
  HloInstruction *rootInstr = nullptr;
  SourceRange where;
  uint32_t nextUnnamed = 0;
};

/// Users of each instruction of a computation, by id: a side table, built in one pass.
class HloUsers {
public:
  explicit HloUsers(const HloComputation &computation);
  /// Distinct users in computation order.
  llvm::ArrayRef<HloInstruction *> of(const HloInstruction *instr) const {
    return llvm::ArrayRef(flat).slice(offsets[instr->id()], offsets[instr->id() + 1] - offsets[instr->id()]);
  }

private:
  std::vector<uint32_t> offsets;
  std::vector<HloInstruction *> flat;
};

} // namespace hloc
