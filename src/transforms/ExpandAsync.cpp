// Asynchronous pairs -> what they do: on one stream everything is done where it starts, and is over where it ends.
//
//   s = ((f32[8]), f32[8], u32[]) async-start(p), calls=work      ->   s = f32[8] call(p), to_apply=work
//   d = f32[8] async-done(s)                                           users of d read s
//   s = f32[8] all-reduce-start(p), ...                            ->   s = f32[8] all-reduce(p), ...

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Does it begin or go on with something that another instruction ends?
bool isAsynchronous(Opcode opcode) {
  return llvm::is_contained({Opcode::AsyncStart, Opcode::AsyncUpdate, Opcode::CopyStart, Opcode::AllReduceStart,
                             Opcode::AllGatherStart, Opcode::CollectivePermuteStart},
                            opcode);
}

/// A call of what the chain of a start and updates that ends in `done` runs; null if it starts somewhere else, before a
/// loop perhaps.
HloInstruction *callOf(HloInstruction &done, HloEditor &editor) {
  llvm::SmallVector<HloInstruction *> chain; // from the end
  HloInstruction *start = done.operand(0);
  for (; start->opcode() == Opcode::AsyncUpdate; start = start->operand(0))
    chain.push_back(start);
  if (start->opcode() != Opcode::AsyncStart)
    return nullptr;
  llvm::SmallVector<HloInstruction *> operands(start->operands());
  for (HloInstruction *update : llvm::reverse(chain)) // may bring the last operands
    llvm::append_range(operands, update->operands().drop_front());
  HloComputation *callee = start->computation(AttributeKey::Calls);
  if (operands.size() != callee->numParameters())
    return nullptr;
  HloBuilder builder(editor, chain.empty() ? start : chain.front());
  builder.setRange(start->range());
  return builder.add(Opcode::Call, done.shape(), operands, Attribute{AttributeKey::ToApply, callee}, start->name());
}

/// The collective that `done` ends; null if it starts somewhere else.
HloInstruction *collectiveOf(HloInstruction &done, Opcode startCode, Opcode opcode, HloEditor &editor) {
  HloInstruction *start = done.operand(0);
  if (start->opcode() != startCode)
    return nullptr;
  HloBuilder builder(editor, start);
  builder.setRange(start->range());
  return builder.add(opcode, done.shape(), start->operands(), start->attributes(), start->name());
}

/// What users of `instr` are to read instead; null: `instr` itself.
HloInstruction *expansionOf(HloInstruction &instr, HloEditor &editor) {
  HloBuilder builder(editor, &instr);
  builder.setRange(instr.range());
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::AsyncDone)
    return callOf(instr, editor);
  if (opcode == Opcode::AllReduceDone)
    return collectiveOf(instr, Opcode::AllReduceStart, Opcode::AllReduce, editor);
  if (opcode == Opcode::AllGatherDone)
    return collectiveOf(instr, Opcode::AllGatherStart, Opcode::AllGather, editor);
  if (opcode == Opcode::CollectivePermuteDone)
    return collectiveOf(instr, Opcode::CollectivePermuteStart, Opcode::CollectivePermute, editor);
  if (opcode == Opcode::CopyDone && instr.operand(0)->opcode() == Opcode::CopyStart)
    return builder.add(Opcode::Copy, instr.shape(), {instr.operand(0)->operand(0)}, {}, instr.operand(0)->name());
  if (opcode == Opcode::Domain || opcode == Opcode::AddDependency) // the order of the instructions is the order
    return instr.operand(0);
  return nullptr;
}

/// What `end` ends, back to the start. What collectives do beside their results, what they were replaced by does.
void eraseChain(HloInstruction *end, HloEditor &editor) {
  while (editor.isErased(end) || editor.eraseWithOperands(end)) {
    end = end->operand(0);
    if (!isAsynchronous(end->opcode()))
      return;
  }
}

} // namespace

PassResult expandAsync(HloModule &module, HloPassContext &context) {
  size_t expanded = 0;
  for (const auto &computation : module.computations()) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr);
      HloInstruction *value = expansionOf(*instr, editor);
      if (!value)
        continue;
      editor.replaceAllUses(instr, value);
      eraseChain(instr, editor);
      ++expanded;
    }
  }
  context.statistics.add("expand-async.expanded", expanded);
  return changedIf(expanded > 0);
}

} // namespace hloc
