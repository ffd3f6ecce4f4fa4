#include "search/AttentionGroups.h"

#include "hloc/search/FusionPolicy.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {
namespace {

/// Ops of one group: what is between two dots and larger is no attention as anybody writes it.
constexpr size_t mostInstructions = 200;

class AttentionSearch {
public:
  AttentionSearch(const HloComputation &entry, const llvm::BitVector &needed,
                  llvm::ArrayRef<HloInstruction *> materialized, llvm::function_ref<bool(const RowGroup &)> isAttention)
      : entry(entry), needed(needed), isAttention(isAttention), users(entry), inMemory(needed.size(), false),
        taken(needed.size(), false) {
    for (const HloInstruction *value : materialized)
      inMemory[value->id()] = true;
  }

  std::vector<RowGroup> find() {
    std::vector<RowGroup> groups;
    for (HloInstruction *dot : entry.instructions())
      if (needed[dot->id()] && dot->opcode() == Opcode::Dot && !taken[dot->id()])
        for (unsigned operand = 0; operand < 2; ++operand)
          if (std::optional<RowGroup> group = groupOf(*dot, operand)) {
            for (const HloInstruction *instr : llvm::concat<HloInstruction *const>(group->inside, group->roots))
              taken[instr->id()] = true;
            groups.push_back(std::move(*group));
            break;
          }
    return groups;
  }

private:
  /// What depends on a dot, on the way back from an operand; nothing if that is no dot or several.
  std::optional<RowGroup> groupOf(HloInstruction &second, unsigned operand) const {
    llvm::SmallVector<HloInstruction *> behind;
    HloInstruction *first = nullptr;
    if (!walkBack(second, operand, behind, first) || !first)
      return std::nullopt;
    llvm::BitVector depends(needed.size(), false);
    depends[first->id()] = true;
    llvm::SmallVector<HloInstruction *> members = {first};
    for (HloInstruction *instr : behind) // operands before users
      if (llvm::any_of(instr->operands(), [&](auto *read) { return depends[read->id()]; })) {
        depends[instr->id()] = true;
        members.push_back(instr);
      }
    depends[second.id()] = true;
    members.push_back(&second);
    addQuotient(second, depends, members);
    RowGroup group;
    for (HloInstruction *instr : members) {
      const bool isNeeded = instr == members.back() || inMemory[instr->id()] ||
                            llvm::any_of(users.of(instr), [&](const HloInstruction *user) {
                              return needed[user->id()] && !depends[user->id()];
                            });
      (isNeeded ? group.roots : group.inside).push_back(instr);
      if (instr->opcode() == Opcode::Reduce)
        group.reductions.push_back(instr);
    }
    return isAttention(group) ? std::optional(std::move(group)) : std::nullopt;
  }

  HloInstruction *onlyUser(const HloInstruction &value) const {
    llvm::ArrayRef<HloInstruction *> all = users.of(&value);
    return all.size() == 1 && needed[all.front()->id()] && !inMemory[value.id()] ? all.front() : nullptr;
  }

  /// Results of the second dot that are divided by what rows came to, and stored as something narrower.
  void addQuotient(const HloInstruction &second, llvm::BitVector &depends,
                   llvm::SmallVectorImpl<HloInstruction *> &members) const {
    HloInstruction *quotient = onlyUser(second);
    if (!quotient || quotient->opcode() != Opcode::Divide || quotient->operand(0) != &second)
      return;
    llvm::SmallVector<HloInstruction *> added = {quotient};
    HloInstruction *value = quotient->operand(1);
    for (; value->opcode() != Opcode::Reduce; value = value->operand(0)) {
      if (value->numOperands() != 1 || !hasTrait(value->opcode(), OpcodeTrait::Rearranges) || !onlyUser(*value))
        return;
      added.push_back(value);
    }
    if (!depends[value->operand(0)->id()])
      return;
    if (!depends[value->id()]) // on no way from one dot to the other
      added.push_back(value);
    for (HloInstruction *instr : llvm::reverse(added))
      members.push_back(instr);
    if (HloInstruction *converted = onlyUser(*quotient); converted && converted->opcode() == Opcode::Convert)
      members.push_back(converted);
    for (HloInstruction *instr : members)
      depends[instr->id()] = true;
  }

  /// `behind`: all up to dots, operands before users.
  bool walkBack(const HloInstruction &second, unsigned operand, llvm::SmallVectorImpl<HloInstruction *> &behind,
                HloInstruction *&first) const {
    llvm::BitVector seen(needed.size(), false);
    llvm::SmallVector<HloInstruction *> open = {const_cast<HloInstruction *>(second.operand(operand))};
    seen[open.front()->id()] = true;
    while (!open.empty()) {
      HloInstruction *instr = open.pop_back_val();
      if (taken[instr->id()] || behind.size() > mostInstructions)
        return false;
      if (instr->opcode() == Opcode::Dot) {
        if (first)
          return false;
        first = instr;
        continue;
      }
      if (!isFusible(*instr) || instr->opcode() == Opcode::Parameter)
        continue;
      behind.push_back(instr);
      for (HloInstruction *read : instr->operands())
        if (!seen.test(read->id())) {
          seen[read->id()] = true;
          open.push_back(read);
        }
    }
    llvm::sort(behind, [](const HloInstruction *a, const HloInstruction *b) { return a->id() < b->id(); });
    return true;
  }

  const HloComputation &entry;
  const llvm::BitVector &needed;
  llvm::function_ref<bool(const RowGroup &)> isAttention;
  HloUsers users;
  llvm::BitVector inMemory, taken; ///< by id
};

} // namespace

std::vector<RowGroup> groupAttention(const HloComputation &entry, const llvm::BitVector &needed,
                                     llvm::ArrayRef<HloInstruction *> materialized,
                                     llvm::function_ref<bool(const RowGroup &)> isAttention) {
  return AttentionSearch(entry, needed, materialized, isAttention).find();
}

} // namespace hloc
