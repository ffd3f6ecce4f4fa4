#include "hloc/hlo/HloEditor.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

HloEditor::HloEditor(HloComputation &computation) : edited(computation) { open(); }

void HloEditor::open() {
  size_t numUses = 0;
  for (HloInstruction *instr : edited.instrs)
    numUses += instr->numOperands();
  nodes.clear();
  nodes.reserve(edited.instrs.size());
  useList.clear();
  useList.reserve(numUses);
  firstInstr = lastInstr = nullptr;
  live = 0;
  for (HloInstruction *instr : edited.instrs)
    addNode(instr, nullptr);
  for (HloInstruction *instr : edited.instrs)
    if (const AttributeValue *value = instr->find(AttributeKey::ControlPredecessors)) {
      node(instr).ordered = true;
      for (HloInstruction *predecessor : std::get<llvm::ArrayRef<HloInstruction *>>(*value))
        node(predecessor).ordered = true;
    }
}

void HloEditor::addNode(HloInstruction *instr, HloInstruction *before) {
  nodes.emplace_back();
  node(instr).operandUses = static_cast<uint32_t>(useList.size());
  for (auto [i, operand] : llvm::enumerate(instr->operands())) {
    useList.push_back({instr, static_cast<uint32_t>(i), noUse, noUse});
    addUse(static_cast<uint32_t>(useList.size() - 1), operand);
  }
  link(instr, before);
  ++live;
}

// --- the order: a doubly linked list

void HloEditor::link(HloInstruction *instr, HloInstruction *before) {
  HloInstruction *previous = before ? node(before).previous : lastInstr;
  node(instr).previous = previous;
  node(instr).next = before;
  (previous ? node(previous).next : firstInstr) = instr;
  (before ? node(before).previous : lastInstr) = instr;
}

void HloEditor::unlink(HloInstruction *instr) {
  HloInstruction *previous = node(instr).previous, *next = node(instr).next;
  (previous ? node(previous).next : firstInstr) = next;
  (next ? node(next).previous : lastInstr) = previous;
}

void HloEditor::moveBefore(HloInstruction *instr, HloInstruction *before) {
  if (instr == before || node(instr).next == before)
    return;
  unlink(instr);
  link(instr, before);
  anyChange = true;
}

void HloEditor::sortTopologically() {
  std::vector<uint8_t> state(nodes.size(), 0); // 1: its operands are being placed, 2: placed
  llvm::SmallVector<std::pair<HloInstruction *, unsigned>> path;
  for (HloInstruction *instr = firstInstr; instr; instr = next(instr)) {
    // Operands that stand behind `instr` are moved in front of it, after their own.
    for (path.push_back({instr, 0}); !path.empty();) {
      HloInstruction *top = path.back().first;
      if (path.back().second < top->numOperands()) {
        HloInstruction *operand = top->operand(path.back().second++);
        HLOC_CHECK(state[operand->id()] != 1, "instructions depend on each other in a circle");
        if (state[operand->id()] == 0) {
          state[top->id()] = 1;
          path.push_back({operand, 0});
        }
        continue;
      }
      path.pop_back();
      state[top->id()] = 2;
      if (!path.empty())
        moveBefore(top, instr);
    }
  }
}

// --- uses: a doubly linked list a value, in the order in which they came to be

void HloEditor::addUse(uint32_t use, HloInstruction *value) {
  Node &of = node(value);
  useList[use].previous = of.lastUse;
  useList[use].next = noUse;
  (of.lastUse == noUse ? of.firstUse : useList[of.lastUse].next) = use;
  of.lastUse = use;
}

void HloEditor::removeUse(uint32_t use, HloInstruction *value) {
  Node &of = node(value);
  uint32_t previous = useList[use].previous, next = useList[use].next;
  (previous == noUse ? of.firstUse : useList[previous].next) = next;
  (next == noUse ? of.lastUse : useList[next].previous) = previous;
}

bool HloEditor::hasOneUser(const HloInstruction *value) const {
  uint32_t use = node(value).firstUse;
  if (use == noUse || value == root())
    return false;
  const HloInstruction *user = useList[use].user;
  while (use != noUse && useList[use].user == user)
    use = useList[use].next;
  return use == noUse;
}

llvm::SmallVector<HloUse> HloEditor::uses(const HloInstruction *value) const {
  llvm::SmallVector<HloUse> all;
  for (uint32_t use = node(value).firstUse; use != noUse; use = useList[use].next)
    all.push_back({useList[use].user, useList[use].operand});
  return all;
}

bool HloEditor::isRemovable(const HloInstruction *instr) const {
  const Node &state = node(instr);
  return !state.erased && state.firstUse == noUse && !state.ordered && instr != root() &&
         instr->opcode() != Opcode::Parameter && !instr->reachesSideEffect();
}

// --- changes

void HloEditor::noteChange(HloInstruction *instr) {
  anyChange = true;
  Node &state = node(instr);
  if (state.inChanged || state.erased)
    return;
  state.inChanged = true;
  changedInstrs.push_back(instr);
}

HloInstruction *HloEditor::takeChanged() {
  while (nextChanged < changedInstrs.size()) {
    HloInstruction *instr = changedInstrs[nextChanged++];
    node(instr).inChanged = false;
    if (!isErased(instr))
      return instr;
  }
  changedInstrs.clear();
  nextChanged = 0;
  return nullptr;
}

HloInstruction *HloEditor::insert(const InstructionSpec &spec, HloInstruction *before) {
  HloInstruction *instr = edited.create(spec);
  instr->index = idBound();
  addNode(instr, before);
  noteChange(instr);
  return instr;
}

void HloEditor::setOperand(HloInstruction *user, unsigned operand, HloInstruction *value) {
  HloInstruction *old = user->operand(operand);
  if (old == value)
    return;
  uint32_t use = node(user).operandUses + operand;
  removeUse(use, old);
  addUse(use, value);
  user->operandList[operand] = value;
  noteChange(user);
  noteChange(old);
}

void HloEditor::replaceAllUses(HloInstruction *from, HloInstruction *to) {
  HLOC_CHECK(from != to && from->shape().compatible(to->shape()), "a value is replaced by one of another shape");
  if (from == root())
    setRoot(to);
  while (node(from).firstUse != noUse) {
    const Use &use = useList[node(from).firstUse];
    setOperand(use.user, use.operand, to);
  }
}

void HloEditor::setRoot(HloInstruction *newRoot) {
  if (newRoot == root())
    return;
  noteChange(root());
  noteChange(newRoot);
  edited.setRoot(newRoot);
}

void HloEditor::setShape(HloInstruction *instr, const Shape &shape) {
  if (shape == instr->shape())
    return;
  instr->ownShape = shape;
  noteChange(instr);
}

void HloEditor::setAttribute(HloInstruction *instr, const Attribute &attribute) {
  llvm::SmallVector<Attribute, 8> attributes(instr->attributes());
  llvm::erase_if(attributes, [&](const Attribute &other) { return other.key == attribute.key; });
  attributes.insert(llvm::find_if(attributes, [&](const Attribute &other) { return other.key > attribute.key; }),
                    attribute);
  module().arena().setAttributes(*instr, attributes);
  noteChange(instr);
}

void HloEditor::erase(HloInstruction *instr) {
  HLOC_CHECK(!isUsed(instr) && instr != root() && instr->opcode() != Opcode::Parameter && !isErased(instr) &&
                 !isOrdered(instr),
             "an instruction that is needed is erased");
  drop(instr);
}

void HloEditor::eraseParameter(HloInstruction *parameter) {
  HLOC_CHECK(!isUsed(parameter) && parameter != root() && !isOrdered(parameter),
             "a parameter that is needed is erased");
  edited.params.erase(edited.params.begin() + parameter->number);
  for (auto [number, remaining] : llvm::enumerate(edited.params))
    remaining->number = static_cast<int64_t>(number);
  drop(parameter);
}

void HloEditor::drop(HloInstruction *instr) {
  for (auto [i, operand] : llvm::enumerate(instr->operands())) {
    removeUse(node(instr).operandUses + static_cast<uint32_t>(i), operand);
    noteChange(operand);
  }
  unlink(instr);
  node(instr).erased = true;
  erasedInstrs.push_back(instr);
  --live;
  anyChange = true;
}

size_t HloEditor::eraseIfDead(HloInstruction *instr) {
  size_t before = erasedInstrs.size();
  llvm::SmallVector<HloInstruction *> pending{instr};
  while (!pending.empty()) {
    HloInstruction *candidate = pending.pop_back_val();
    if (!isRemovable(candidate))
      continue;
    erase(candidate);
    llvm::append_range(pending, candidate->operands());
  }
  return erasedInstrs.size() - before;
}

size_t HloEditor::eraseWithOperands(HloInstruction *instr) {
  if (isUsed(instr) || isOrdered(instr) || instr == root())
    return 0;
  size_t before = erasedInstrs.size();
  erase(instr);
  for (HloInstruction *operand : instr->operands())
    eraseIfDead(operand);
  return erasedInstrs.size() - before;
}

size_t HloEditor::eraseDead() {
  size_t before = erasedInstrs.size();
  for (HloInstruction *instr = lastInstr; instr;) {
    HloInstruction *previous = node(instr).previous; // erased or not, its own `previous` leads on
    eraseIfDead(instr);
    instr = previous;
  }
  return erasedInstrs.size() - before;
}

void HloEditor::finish() {
  if (!anyChange)
    return;
  commit();
  changedInstrs.clear();
  nextChanged = 0;
  anyChange = false;
  open();
}

void HloEditor::commit() {
  if (!anyChange)
    return;
  edited.instrs.clear();
  for (HloInstruction *instr = firstInstr; instr; instr = next(instr))
    edited.instrs.push_back(instr);
  for (auto [i, instr] : llvm::enumerate(edited.instrs))
    instr->index = static_cast<uint32_t>(i);
  for (HloInstruction *instr : erasedInstrs)
    module().arena().recycle(instr);
  erasedInstrs.clear();
}

} // namespace hloc
