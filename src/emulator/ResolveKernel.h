#pragma once
// Resolves one kernel: scopes, registers, variables, labels, and the functions that it calls, which are copied into it.

#include "Requirements.h"
#include "ResolveForm.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace hloc::emulator {

/// What all kernels of a module see.
struct ModuleScope {
  const ptx::Module &module;
  std::optional<Target> target;
  llvm::StringMap<Symbol> globals;               ///< global and const variables
  llvm::StringMap<const ptx::Variable *> shared; ///< of the module; a kernel gets those that it names
  llvm::StringMap<std::string> aliases;
  uint64_t gridWorkspace = 0; ///< address
  const ptx::Function *function(llvm::StringRef name) const;
};

/// Bytes of a variable that is no register; 0 if its type is not supported.
uint64_t bytesOf(const ptx::Variable &v);
uint64_t alignmentOf(const ptx::Variable &v);

class KernelResolver {
public:
  KernelResolver(const ptx::Function &f, const ModuleScope &scope, DiagnosticEngine &diagnostics)
      : entry(f), module(scope), diagnostics(diagnostics) {}
  std::optional<Kernel> run();

private:
  struct Entry {
    enum class Kind : uint8_t { Register, Range, Variable, Label, Targets };
    Kind kind = Kind::Register;
    Type type;
    uint32_t slot = 0, count = 1; ///< registers; Label: the label's number in `slot`
    Symbol symbol = {};
    const std::vector<std::string> *names = nullptr; ///< Targets
  };
  struct Scope {
    size_t parent = 0;
    llvm::StringMap<Entry> entries;
  };
  /// One copy of a function's body.
  struct Frame {
    const ptx::Function &f;
    bool isEntry;
    uint32_t returnLabel = 0; ///< unused in the kernel itself
    std::vector<Scope> scopes = {Scope()};
    size_t scope = 0;
  };

  void error(SourceRange range, DiagnosticKind kind, std::string message);

  // ResolveKernel.cpp: layout and bodies
  void parameters(Frame &frame);
  void directives();
  void collectReferences(const ptx::Function &f, llvm::StringSet<> &names, llvm::StringSet<> &functions);
  void layOutShared();
  void placeShared(const ptx::Variable &v);
  void collectScopes(Frame &frame);
  void declare(Frame &frame, Scope &scope, const ptx::Variable &v);
  Symbol allocateLocal(const ptx::Variable &v);
  void body(Frame &frame);
  void patchLabels();
  uint32_t newLabel();
  void placeLabel(uint32_t label) { labels[label] = uint32_t(kernel.code.size()); }
  uint32_t newRegister();
  const Entry *lookUp(const Frame &frame, llvm::StringRef name, uint32_t &slot) const;

  // ResolveInstruction.cpp
  void instruction(Frame &frame, const ptx::Instruction &i);
  std::optional<Decoded> decode(Frame &frame, const ptx::Instruction &i);
  bool bindOperands(Frame &frame, Form &form);
  bool bind(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule, Source &s);
  bool bindElements(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule, Source &s);
  bool bindAddress(Frame &frame, Form &form, const ptx::Operand &o, Source &s);
  bool bindTensorAddress(Frame &frame, Form &form, const ptx::Operand &o, const OperandForm &rule);
  bool bindName(Frame &frame, const ptx::Instruction &i, const ptx::Operand &o, const OperandForm &rule, Source &s);
  bool bindConstant(const ptx::Instruction &i, const ptx::Operand &o, const OperandForm &rule, Source &s);
  bool mismatch(const ptx::Instruction &i, const std::string &what);
  void unsupported(const ptx::Instruction &i, llvm::StringRef part);
  Source guardOf(Frame &frame, const ptx::Instruction &i);
  void emit(Decoded d);
  bool isInTarget(const ptx::Instruction &i);
  uint32_t formOf(const ptx::Instruction &i);
  void markIgnoredSource(Frame &frame, Form &form);
  void normalizeBarrier(Decoded &d);
  bool normalizeWarpgroup(const ptx::Instruction &i, Decoded &d);

  // ResolveCalls.cpp: what is expanded into simpler instructions
  void branch(Frame &frame, const ptx::Instruction &i);
  void indexedBranch(Frame &frame, const ptx::Instruction &i);
  void emitBranch(const ptx::Instruction &i, Source guard, uint32_t label);
  std::optional<uint32_t> labelOf(Frame &frame, const ptx::Instruction &i, llvm::StringRef name);
  void call(Frame &frame, const ptx::Instruction &i);
  void inlineCall(Frame &frame, const ptx::Instruction &i, const ptx::Function &callee,
                  llvm::ArrayRef<ptx::Operand> results, llvm::ArrayRef<ptx::Operand> arguments);
  bool bindFormal(Frame &caller, Frame &callee, const ptx::Instruction &i, const ptx::Variable &formal,
                  const ptx::Operand &actual, bool isResult);
  void policy(Frame &frame, const ptx::Instruction &i);

  const ptx::Function &entry;
  const ModuleScope &module;
  DiagnosticEngine &diagnostics;
  Kernel kernel;
  llvm::StringMap<Symbol> shared;
  llvm::MapVector<const ptx::Variable *, Symbol> sharedOfFunctions;
  std::vector<uint32_t> labels; ///< place of each label
  std::vector<llvm::StringRef> callStack;
  llvm::StringMap<uint32_t> forms; ///< places in Kernel::forms
  std::optional<uint32_t> carrySlot;
  std::array<uint32_t, 3> location = {};
  bool failed = false;
};

} // namespace hloc::emulator
