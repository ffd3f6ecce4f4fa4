#include "hloc/hlo/HloComputation.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

constexpr llvm::StringRef unnamedSuffix = ".anon";

/// N of `<opcode>.N.anon`; 0 for other names.
uint32_t unnamedNumber(llvm::StringRef name) {
  uint32_t number = 0;
  if (!name.consume_back(unnamedSuffix) || name.rsplit('.').second.getAsInteger(10, number))
    return 0;
  return number;
}

} // namespace

bool HloComputation::isEntry() const { return owner.entry() == this; }

HloInstruction *HloComputation::create(const InstructionSpec &spec) {
  HloArena &arena = owner.arena();
  llvm::SmallVector<Attribute, 8> sorted(spec.attributes.begin(), spec.attributes.end());
  llvm::sort(sorted, [](const Attribute &a, const Attribute &b) { return a.key < b.key; });
  HloInstruction *instr = arena.newInstruction(spec.operands, sorted);
  instr->code = spec.opcode;
  if (spec.name.empty()) {
    instr->instrName =
        arena.save((llvm::Twine(text(spec.opcode)) + "." + llvm::Twine(++nextUnnamed) + unnamedSuffix).str());
  } else { // which a copy may have from before
    nextUnnamed = std::max(nextUnnamed, unnamedNumber(spec.name));
    instr->instrName = arena.save(spec.name);
  }
  instr->ownShape = spec.shape;
  instr->owner = this;
  instr->where = spec.range;
  instr->number = spec.parameterNumber;
  instr->constant = spec.literal;
  if (spec.opcode == Opcode::Parameter) {
    auto number = static_cast<size_t>(spec.parameterNumber);
    if (params.size() <= number)
      params.resize(number + 1, nullptr);
    HLOC_CHECK(!params[number], "parameter number used twice");
    params[number] = instr;
  }
  return instr;
}

HloInstruction *HloComputation::add(const InstructionSpec &spec) {
  HloInstruction *instr = create(spec);
  instr->index = instrs.size();
  instrs.push_back(instr);
  return instr;
}

HloUsers::HloUsers(const HloComputation &computation) {
  llvm::ArrayRef<HloInstruction *> instrs = computation.instructions();
  offsets.assign(instrs.size() + 1, 0);
  // Count, prefix-sum, fill. A user that names an operand twice counts once.
  auto forEachDistinctOperand = [&](auto visit) {
    for (HloInstruction *instr : instrs)
      for (unsigned i = 0; i < instr->numOperands(); ++i)
        if (!llvm::is_contained(instr->operands().take_front(i), instr->operand(i)))
          visit(instr->operand(i), instr);
  };
  forEachDistinctOperand([&](HloInstruction *operand, HloInstruction *) { ++offsets[operand->id() + 1]; });
  for (size_t i = 1; i < offsets.size(); ++i)
    offsets[i] += offsets[i - 1];
  flat.resize(offsets.back());
  std::vector<uint32_t> next(offsets.begin(), offsets.end() - 1);
  forEachDistinctOperand([&](HloInstruction *operand, HloInstruction *user) { flat[next[operand->id()]++] = user; });
}

} // namespace hloc
