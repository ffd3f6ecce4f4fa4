// Parts of the entry as an entry of their own: what is read of the rest becomes parameters, what only the rest has read
// becomes results.

#include "Moves.h"

#include "hloc/hlo/CloneComputations.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::reduction {

namespace {

bool isResultTuple(const HloInstruction &instr) {
  return &instr == instr.parent()->root() && instr.opcode() == Opcode::Tuple;
}

/// What goes where its operand goes, and what costs nothing to keep.
bool isPlace(const HloInstruction &instr) {
  if (isResultTuple(instr))
    return false;
  if (instr.opcode() == Opcode::Constant) // a large one is worth a parameter
    return instr.shape().isArray() && instr.shape().numElements() > 10;
  return instr.opcode() != Opcode::Parameter && instr.opcode() != Opcode::GetTupleElement;
}

class Cut {
public:
  Cut(const HloModule &module, const llvm::BitVector &places)
      : module(module), old(*module.entry()), kept(old.instructions().size(), false), isRead(kept), isResult(kept),
        mapped(kept.size(), nullptr) {
    size_t place = 0;
    for (const HloInstruction *instr : old.instructions())
      if (isPlace(*instr))
        kept[instr->id()] = !places[place++];
      else if (instr->opcode() == Opcode::GetTupleElement)
        kept[instr->id()] = kept[instr->operand(0)->id()];
      else
        kept[instr->id()] = instr->opcode() == Opcode::Constant;
    findResults();
  }

  ModulePointer run() {
    if (isResult.none())
      return nullptr;
    auto made = std::make_unique<HloModule>(module.name(), module.arenaPointer());
    std::vector<HloInstruction *> callers;
    llvm::copy_if(old.instructions(), std::back_inserter(callers), [&](auto *instr) { return kept[instr->id()]; });
    const auto callees = cloneComputations(calledComputations(module, callers), *made);
    HloComputation &entry = *made->addComputation(old.name());
    HloBuilder builder(entry);
    addParameters(builder);
    llvm::SmallVector<HloInstruction *> results;
    for (HloInstruction *instr : callers) {
      llvm::SmallVector<HloInstruction *> operands;
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped[operand->id()]);
      mapped[instr->id()] = builder.clone(*instr, operands, callees);
      if (isResult[instr->id()])
        results.push_back(mapped[instr->id()]);
    }
    entry.setRoot(results.size() == 1 ? results.front() : builder.tuple(results));
    made->setEntry(&entry);
    made->setAttributes(module.attributes());
    dropSignature(*made);
    return made;
  }

private:
  /// What is kept and was a result, and what nothing that is kept reads. Tuples and constants that nothing reads go.
  void findResults() {
    llvm::BitVector wasResult(kept.size(), false);
    if (isResultTuple(*old.root()))
      for (const HloInstruction *operand : old.root()->operands())
        wasResult[operand->id()] = true;
    else
      wasResult[old.root()->id()] = true;
    for (const HloInstruction *instr : llvm::reverse(old.instructions())) {
      const uint32_t id = instr->id();
      if (!kept[id])
        continue;
      const bool isIdle = !isRead[id] && !wasResult[id];
      if (isIdle && (instr->opcode() == Opcode::Tuple || instr->opcode() == Opcode::Constant)) {
        kept[id] = false;
        continue;
      }
      isResult[id] = isIdle || wasResult[id];
      for (const HloInstruction *operand : instr->operands())
        isRead[operand->id()] = true;
    }
  }

  void addParameters(HloBuilder &builder) {
    int64_t number = 0;
    for (const HloInstruction *reader : old.instructions())
      for (const HloInstruction *operand : reader->operands())
        if (kept[reader->id()] && !kept[operand->id()] && !mapped[operand->id()])
          mapped[operand->id()] = builder.parameter(number++, operand->shape(), operand->name());
  }

  const HloModule &module;
  const HloComputation &old;
  llvm::BitVector kept, isRead, isResult; ///< by id
  std::vector<HloInstruction *> mapped;   ///< by id: what stands for it in the new entry
};

} // namespace

size_t countCuts(const HloModule &module) {
  return llvm::count_if(module.entry()->instructions(), [](const HloInstruction *instr) { return isPlace(*instr); });
}

ModulePointer cut(ModulePointer module, const llvm::BitVector &places) { return Cut(*module, places).run(); }

size_t countResults(const HloModule &module) {
  const HloInstruction &root = *module.entry()->root();
  return isResultTuple(root) ? root.numOperands() : 0;
}

ModulePointer dropResults(ModulePointer module, const llvm::BitVector &places) {
  HloInstruction *root = module->entry()->root();
  llvm::SmallVector<HloInstruction *> results;
  for (auto [i, operand] : llvm::enumerate(root->operands()))
    if (!places[unsigned(i)])
      results.push_back(operand);
  if (results.empty())
    return nullptr;
  HloEditor editor(*module->entry());
  HloBuilder builder(editor, nullptr);
  editor.setRoot(results.size() == 1 ? results.front() : builder.tuple(results));
  editor.finish();
  dropSignature(*module);
  return module;
}

} // namespace hloc::reduction
