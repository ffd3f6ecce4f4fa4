#include "hloc/reduce/OtherRoutes.h"

#include "Moves.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/OtherWays.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace hloc {

using namespace reduction;

namespace {

/// Hands on what is there. A fill is as good as a constant.
bool isOp(const HloInstruction &instr) {
  constexpr Opcode others[] = {Opcode::Parameter, Opcode::Constant, Opcode::Tuple, Opcode::GetTupleElement};
  return instr.opcode() == Opcode::Broadcast ? instr.operand(0)->opcode() != Opcode::Constant
                                             : !llvm::is_contained(others, instr.opcode());
}

/// The op of a reduction belongs to it.
bool isReducer(const HloModule &module, const HloComputation &computation) {
  return llvm::any_of(reachableComputations(module), [&](const HloComputation *caller) {
    return llvm::any_of(caller->instructions(), [&](const HloInstruction *instr) {
      return instr->opcode() == Opcode::Reduce && instr->computation(AttributeKey::ToApply) == &computation;
    });
  });
}

/// Its arguments become results, too. False if they or the results are not all arrays.
bool showArguments(HloModule &module) {
  HloComputation &entry = *module.entry();
  HloInstruction *root = entry.root();
  HloEditor editor(entry);
  llvm::SmallVector<HloInstruction *> results;
  if (root->opcode() == Opcode::Tuple)
    llvm::append_range(results, root->operands());
  else
    results.push_back(root);
  for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
    if (instr->opcode() == Opcode::Parameter)
      results.push_back(instr);
  if (!llvm::all_of(results, [](const HloInstruction *result) { return result->shape().isArray(); }))
    return false;
  editor.setRoot(HloBuilder(editor, nullptr).tuple(results));
  editor.eraseIfDead(root);
  editor.finish();
  dropSignature(module);
  return true;
}

} // namespace

OtherRoutes otherRoutes(llvm::StringRef text) {
  OtherRoutes found;
  ModulePointer asked = parse(text);
  if (!asked)
    return found;
  llvm::SetVector<Opcode> opcodes;
  for (const HloComputation *computation : reachableComputations(*asked))
    if (!isReducer(*asked, *computation))
      for (const HloInstruction *instr : computation->instructions())
        if (isOp(*instr)) {
          ++found.numOps;
          opcodes.insert(instr->opcode());
        }
  if (!showArguments(*asked))
    return found;
  const std::optional<std::string> shown = printed(*asked);
  if (!shown)
    return found;
  for (Opcode opcode : opcodes) {
    ModulePointer otherwise = parse(*shown);
    if (!otherwise || !expressOtherwise(*otherwise, opcode))
      continue;
    sweep(*otherwise);
    if (std::optional<std::string> made = printed(*otherwise))
      found.routes.push_back({opcode, *shown, std::move(*made)});
  }
  return found;
}

} // namespace hloc
