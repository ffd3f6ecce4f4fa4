#include "FuseGroups.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

HloInstruction *addFusion(HloBuilder &builder, HloComputation *body, llvm::ArrayRef<HloInstruction *> operands,
                          FusionKind kind, llvm::StringRef name) {
  Attribute attributes[] = {{AttributeKey::Kind, static_cast<int64_t>(kind)}, {AttributeKey::Calls, body}};
  builder.setRange(body->root()->range());
  return builder.add(Opcode::Fusion, body->root()->shape(), operands, attributes, name);
}

llvm::DenseMap<const HloComputation *, size_t> countCalls(const HloModule &module) {
  llvm::DenseMap<const HloComputation *, size_t> counts;
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      for (const HloComputation *called : instr->calledComputations())
        ++counts[called];
  return counts;
}

std::string freshComputationName(const HloModule &module, llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; module.findComputation(name); ++i)
    name = (llvm::Twine(base) + "." + llvm::Twine(i)).str();
  return name;
}

/// Parameters and members stand in the order of the computation they come from.
HloComputation *GroupFuser::makeBody(const FusionGroup &group, llvm::ArrayRef<HloInstruction *> outside) {
  HloModule &module = editor.module();
  HloComputation *body =
      module.addComputationBefore(editor.computation(), freshComputationName(module, group.bodyName));
  llvm::SmallVector<std::pair<HloInstruction *, bool>> parts; // is it a parameter?
  for (HloInstruction *instr : group.members)
    parts.push_back({instr, false});
  for (HloInstruction *instr : outside)
    parts.push_back({instr, true});
  llvm::stable_sort(parts, [](auto a, auto b) { return a.first->id() < b.first->id(); });
  HloBuilder builder(*body);
  llvm::DenseMap<const HloInstruction *, HloInstruction *> mapped;
  llvm::SmallVector<HloInstruction *> operands;
  int64_t number = 0;
  for (auto [instr, isParameter] : parts) {
    builder.setRange(instr->range());
    if (isParameter) {
      mapped[instr] = builder.parameter(number++, instr->shape(), instr->name());
      continue;
    }
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped.lookup(operand));
    mapped[instr] = builder.clone(*instr, operands);
  }
  llvm::SmallVector<HloInstruction *> roots;
  for (HloInstruction *root : group.roots)
    roots.push_back(mapped.lookup(root));
  body->setRoot(roots.size() == 1 ? roots.front() : builder.tuple(roots));
  return body;
}

HloInstruction *GroupFuser::fuse(const FusionGroup &group) {
  llvm::DenseSet<const HloInstruction *> members(group.members.begin(), group.members.end());
  HLOC_CHECK(!group.roots.empty() && llvm::all_of(group.roots, [&](auto *root) { return members.contains(root); }),
             "the roots of a fusion group are members of it");
  llvm::SmallVector<HloInstruction *> outside;
  llvm::DenseSet<const HloInstruction *> seen;
  for (HloInstruction *member : group.members)
    for (HloInstruction *operand : member->operands())
      if (!members.contains(operand) && seen.insert(operand).second)
        outside.push_back(operand);
  llvm::sort(outside, [](auto *a, auto *b) { return a->id() < b->id(); });

  llvm::copy_if(group.members, std::back_inserter(movedEffects),
                [](HloInstruction *member) { return member->reachesSideEffect(); });
  HloComputation *body = makeBody(group, outside);
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *operand : outside)
    operands.push_back(formed(operand));
  HloBuilder builder(editor, group.before);
  HloInstruction *fusion = addFusion(builder, body, operands, group.kind, group.fusionName);
  for (auto [i, root] : llvm::enumerate(group.roots)) {
    HloInstruction *value = group.roots.size() == 1 ? fusion : builder.tupleElement(fusion, static_cast<int64_t>(i));
    HLOC_CHECK(results.try_emplace(root, value).second, "an instruction is the root of two fusion groups");
    formedRoots.push_back({root, value});
  }
  return fusion;
}

HloInstruction *GroupFuser::formed(HloInstruction *instr) const {
  auto found = results.find(instr);
  return found == results.end() ? instr : found->second;
}

void GroupFuser::finish() {
  for (auto [root, value] : formedRoots)
    editor.replaceAllUses(root, value);
  editor.eraseDead();
  for (HloInstruction *effect : llvm::reverse(movedEffects)) { // users first
    if (editor.isErased(effect) || editor.isUsed(effect) || effect == editor.root())
      continue;
    editor.erase(effect);
    for (HloInstruction *operand : effect->operands())
      editor.eraseIfDead(operand);
  }
  editor.sortTopologically();
}

} // namespace hloc
