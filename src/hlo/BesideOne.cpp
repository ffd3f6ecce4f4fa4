#include "hloc/hlo/BesideOne.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/Literal.h"

namespace hloc {
namespace {

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

bool isReadBesideOne(const HloInstruction &tanh, llvm::ArrayRef<HloInstruction *> users) {
  return !users.empty() && tanh.parent()->root() != &tanh && llvm::all_of(users, [&](const HloInstruction *user) {
    return user->opcode() == Opcode::Add && isOne(user->operand(user->operand(0) == &tanh ? 1 : 0));
  });
}

llvm::StringRef withMark(llvm::StringRef attributes, HloArena &arena) {
  llvm::StringRef others = attributes.trim();
  others.consume_front("{");
  const std::string mark = "{hloc_tanh=\"beside_one\"";
  return arena.save(others.empty() || others.ltrim().starts_with("}") ? mark + "}" : mark + "," + others.str());
}

} // namespace

void markTanhBesideOne(HloModule &module) {
  for (const auto &computation : module.computations()) {
    if (llvm::none_of(computation->instructions(), [](const HloInstruction *each) { return isOfF32(*each); }))
      continue;
    const HloUsers users(*computation);
    for (HloInstruction *instr : computation->instructions()) {
      if (!isOfF32(*instr) || isTanhBesideOne(*instr) || !isReadBesideOne(*instr, users.of(instr)))
        continue;
      const llvm::StringRef marked = withMark(instr->string(AttributeKey::FrontendAttributes), module.arena());
      llvm::SmallVector<Attribute, 8> attributes(instr->attributes());
      llvm::erase_if(attributes, [](const Attribute &each) { return each.key == AttributeKey::FrontendAttributes; });
      attributes.insert(
          llvm::find_if(attributes, [](const Attribute &each) { return each.key > AttributeKey::FrontendAttributes; }),
          {AttributeKey::FrontendAttributes, marked});
      module.arena().setAttributes(*instr, attributes);
    }
  }
}

} // namespace hloc
