#include "hloc/hlo/BesideOne.h"

#include "hloc/hlo/FrontendMark.h"
#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Literal.h"

namespace hloc {
namespace {

constexpr llvm::StringLiteral besideOneMark = "hloc_tanh=\"beside_one\"";

/// 1 everywhere, in one dimension or any.
bool isOne(const HloInstruction *value) {
  auto handsOn = [](Opcode opcode) {
    return opcode == Opcode::Broadcast || opcode == Opcode::Reshape || opcode == Opcode::Convert ||
           opcode == Opcode::Bitcast || opcode == Opcode::Copy;
  };
  while (handsOn(value->opcode()))
    value = value->operand(0);
  return value->opcode() == Opcode::Constant && value->shape().isArray() && !value->literal().isElided() &&
         value->shape().numElements() == 1 && isFloat(value->shape().elementType()) &&
         value->literal().getDouble(0) == 1;
}

bool isOfF32(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Tanh && instr.shape().isArray() && instr.shape().elementType() == ElementType::F32;
}

bool isReadBesideOne(const HloEditor &editor, const HloInstruction *tanh) {
  return editor.isUsed(tanh) && editor.root() != tanh && llvm::all_of(editor.uses(tanh), [](const HloUse &use) {
           return use.user->opcode() == Opcode::Add && isOne(use.user->operand(1 - use.operand));
         });
}

/// `attributes`: `{name="value",...}`, or nothing.
std::string withMark(llvm::StringRef attributes) {
  llvm::StringRef others = attributes.trim();
  others.consume_front("{");
  const std::string mark = "{" + besideOneMark.str();
  return others.empty() || others.ltrim().starts_with("}") ? mark + "}" : mark + "," + others.str();
}

} // namespace

void markTanhBesideOne(HloModule &module) {
  for (const auto &computation : module.computations()) {
    if (llvm::none_of(computation->instructions(), [](const HloInstruction *each) { return isOfF32(*each); }))
      continue;
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (isOfF32(*instr) && !isTanhBesideOne(*instr) && isReadBesideOne(editor, instr))
        editor.setAttribute(instr, {AttributeKey::FrontendAttributes,
                                    module.arena().save(withMark(instr->string(AttributeKey::FrontendAttributes)))});
  }
}

bool isTanhBesideOne(const HloInstruction &instr) { return isOfF32(instr) && hasFrontendMark(instr, besideOneMark); }

} // namespace hloc
