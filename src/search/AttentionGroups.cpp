// One idea: what a kernel of attention makes of a row, other kernels read; what it makes of a score, they make again.

#include "search/AttentionGroups.h"

#include "hloc/search/FusionPolicy.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace hloc {
namespace {

/// Ops of one group: what is between two dots and larger is no attention as anybody writes it.
constexpr size_t mostInstructions = 200;
/// Dots of whose results one kernel makes factors.
constexpr size_t mostDots = 2;

/// What a factor is made of by putting elements elsewhere, or into another type.
const HloInstruction &sourceOf(const HloInstruction &factor) {
  const HloInstruction *value = &factor;
  while (value->opcode() == Opcode::Convert ||
         (value->numOperands() == 1 && hasTrait(value->opcode(), OpcodeTrait::Rearranges)))
    value = value->operand(0);
  return *value;
}

class AttentionSearch {
public:
  AttentionSearch(const HloComputation &entry, const llvm::BitVector &needed,
                  llvm::ArrayRef<HloInstruction *> materialized, llvm::function_ref<bool(const RowGroup &)> isAttention)
      : entry(entry), needed(needed), isAttention(isAttention), users(entry), inMemory(needed.size(), false),
        refused(needed.size(), false) {
    for (const HloInstruction *value : materialized)
      inMemory[value->id()] = true;
  }

  /// Where others want scores of a group, there may be groups without it.
  std::vector<RowGroup> find() {
    do
      findAll();
    while (refuseAny());
    std::vector<RowGroup> groups;
    for (Found &each : found)
      groups.push_back(std::move(each.group));
    return groups;
  }

private:
  struct Found {
    HloInstruction *second;
    llvm::SmallVector<HloInstruction *, mostDots> firsts;
    llvm::BitVector members;                  ///< what depends on these, up to the second; by id
    llvm::SmallVector<HloInstruction *> read; ///< that other groups make of rows
    RowGroup group;
    bool isOfRow(const HloInstruction &instr) const {
      return instr.shape().isArray() && instr.shape().numElements() < firsts.front()->shape().numElements();
    }
  };

  /// Groups that read what others make of rows come after these.
  void findAll() {
    found.clear();
    ofRows = ends = llvm::BitVector(needed.size(), false);
    size_t before;
    do {
      before = found.size();
      for (HloInstruction *dot : entry.instructions())
        if (needed[dot->id()] && dot->opcode() == Opcode::Dot && !ends[dot->id()] && !refused[dot->id()])
          for (unsigned operand = 0; operand < 2; ++operand)
            if (std::optional<Found> one = groupOf(*dot, operand); one && haveRowsStored(*one)) {
              add(std::move(*one));
              break;
            }
    } while (found.size() > before);
  }

  void add(Found one) {
    for (const HloInstruction *instr : llvm::concat<HloInstruction *const>(one.group.inside, one.group.roots))
      if (one.members[instr->id()] && one.isOfRow(*instr))
        ofRows[instr->id()] = true;
    ends[one.second->id()] = true;
    ends[one.group.roots.back()->id()] = true;
    found.push_back(std::move(one));
  }

  /// What a group reads of rows becomes results of those that make it, if their heroes do that.
  bool haveRowsStored(const Found &reader) {
    if (reader.read.empty())
      return true;
    std::vector<RowGroup> changed;
    for (const Found &each : found) {
      RowGroup &group = changed.emplace_back(each.group);
      for (HloInstruction *value : reader.read)
        if (each.members[value->id()] && !llvm::is_contained(group.roots, value)) {
          llvm::erase(group.inside, value);
          group.roots.insert(llvm::lower_bound(group.roots, value, isBefore), value);
        }
      if (group.roots.size() != each.group.roots.size() && (readsItself(group, each.members) || !hasHero(group)))
        return false;
    }
    for (auto [each, group] : llvm::zip_equal(found, changed))
      each.group = std::move(group);
    return true;
  }

  /// Is what a group reads made of what it makes of rows?
  bool readsItself(const RowGroup &group, const llvm::BitVector &members) const {
    llvm::BitVector depends(needed.size(), false);
    for (const HloInstruction *root : llvm::ArrayRef(group.roots).drop_back())
      depends[root->id()] = true;
    if (depends.none())
      return false;
    for (const HloInstruction *instr : entry.instructions())
      for (const HloInstruction *operand : instr->operands())
        if (depends[operand->id()])
          depends[instr->id()] = true;
    return llvm::any_of(entry.instructions(), [&](const HloInstruction *instr) {
      return members[instr->id()] && llvm::any_of(instr->operands(), [&](const HloInstruction *operand) {
               return !members[operand->id()] && depends[operand->id()];
             });
    });
  }

  static bool isBefore(const HloInstruction *a, const HloInstruction *b) { return a->id() < b->id(); }

  /// Scores that kernels of no group read would have to be in memory.
  bool refuseAny() {
    const size_t before = refused.count();
    for (const Found &one : found)
      for (const HloInstruction *instr : one.group.inside)
        if (one.members[instr->id()] && !one.isOfRow(*instr) &&
            llvm::any_of(users.of(instr),
                         [&](const HloInstruction *user) { return needed[user->id()] && !isMember(*user); }))
          refused[one.second->id()] = true;
    return refused.count() > before;
  }

  bool isMember(const HloInstruction &instr) const {
    return llvm::any_of(found, [&](const Found &each) { return each.members[instr.id()]; });
  }

  /// What depends on a dot, or on two of one shape, on the way back from an operand; nothing if there are none or more.
  std::optional<Found> groupOf(HloInstruction &second, unsigned operand) {
    Found one{&second, {}, llvm::BitVector(needed.size(), false), {}, {}};
    llvm::SmallVector<HloInstruction *> behind;
    if (!walkBack(second, operand, behind, one) || one.firsts.empty() || !areBeside(one, 1 - operand))
      return std::nullopt;
    llvm::SmallVector<HloInstruction *> members(one.firsts.begin(), one.firsts.end()), ofRead;
    for (HloInstruction *first : one.firsts)
      one.members[first->id()] = true;
    llvm::BitVector reads(needed.size(), false);
    for (const HloInstruction *value : one.read)
      reads[value->id()] = true;
    for (HloInstruction *instr : behind) { // operands before users
      auto isOf = [&](const llvm::BitVector &values) {
        return llvm::any_of(instr->operands(), [&](const HloInstruction *read) { return values[read->id()]; });
      };
      if (isOf(one.members)) {
        one.members[instr->id()] = true;
        members.push_back(instr);
      } else if (isOf(reads) && !inMemory[instr->id()]) {
        reads[instr->id()] = true;
        ofRead.push_back(instr);
      }
    }
    one.members[second.id()] = true;
    members.push_back(&second);
    addQuotient(second, one.members, members);
    for (HloInstruction *instr : members) {
      const bool isRoot =
          instr == members.back() || inMemory[instr->id()] || (one.isOfRow(*instr) && isReadOutside(*instr, one));
      (isRoot ? one.group.roots : one.group.inside).push_back(instr);
      if (instr->opcode() == Opcode::Reduce)
        one.group.reductions.push_back(instr);
    }
    llvm::append_range(one.group.inside, ofRead);
    // In the type that it is stored in it is a factor of tensor cores.
    if (HloInstruction *terms = second.operand(1 - operand);
        terms->opcode() == Opcode::Convert && !inMemory[terms->id()] && terms->operand(0)->shape().isArray())
      one.group.inside.push_back(terms);
    if (readsItself(one.group, one.members))
      return std::nullopt;
    if (hasHero(one.group) || (addMoves(one) && hasHero(one.group)))
      return one;
    return std::nullopt;
  }

  /// Results that are wanted in another order are stored so. False if they are not.
  bool addMoves(Found &one) const {
    llvm::SmallVectorImpl<HloInstruction *> &roots = one.group.roots;
    bool isAny = false;
    for (HloInstruction *user; (user = onlyUser(*roots.back())) &&
                               (user->opcode() == Opcode::Convert || hasTrait(user->opcode(), OpcodeTrait::Rearranges));
         isAny = true) {
      one.group.inside.push_back(roots.back());
      one.members[user->id()] = true;
      roots.back() = user;
    }
    return isAny;
  }

  bool isReadOutside(const HloInstruction &instr, const Found &one) const {
    return llvm::any_of(users.of(&instr),
                        [&](const HloInstruction *user) { return needed[user->id()] && !one.members[user->id()]; });
  }

  /// Of two dots, has one the other factor of the second? Most are layers, of which it is told before more is asked.
  static bool areBeside(const Found &one, unsigned ofTerms) {
    if (one.firsts.size() == 1)
      return true;
    const HloInstruction &terms = sourceOf(*one.second->operand(ofTerms));
    return one.firsts.front()->shape().numElements() == one.firsts.back()->shape().numElements() &&
           llvm::any_of(one.firsts, [&](const HloInstruction *dot) {
             return llvm::any_of(dot->operands(),
                                 [&](const HloInstruction *factor) { return &sourceOf(*factor) == &terms; });
           });
  }

  /// (The same is asked again after a refusal.)
  bool hasHero(const RowGroup &group) {
    std::vector<uint32_t> key;
    for (const HloInstruction *instr : llvm::concat<HloInstruction *const>(group.roots, group.inside))
      key.push_back(instr->id());
    auto [known, isNew] = answers.try_emplace(std::move(key), false);
    if (isNew)
      known->second = isAttention(group);
    return known->second;
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

  /// `behind`: all up to dots and what groups make, operands before users.
  bool walkBack(const HloInstruction &second, unsigned operand, llvm::SmallVectorImpl<HloInstruction *> &behind,
                Found &one) const {
    llvm::BitVector seen(needed.size(), false);
    llvm::SmallVector<HloInstruction *> open = {const_cast<HloInstruction *>(second.operand(operand))};
    seen[open.front()->id()] = true;
    while (!open.empty()) {
      HloInstruction *instr = open.pop_back_val();
      if (behind.size() > mostInstructions || one.firsts.size() > mostDots)
        return false;
      if (ends[instr->id()]) // a result, which is in memory
        continue;
      if (ofRows[instr->id()]) {
        one.read.push_back(instr);
        continue;
      }
      if (instr->opcode() == Opcode::Dot) {
        one.firsts.push_back(instr);
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
    llvm::sort(behind, isBefore);
    llvm::sort(one.firsts, isBefore);
    return one.firsts.size() <= mostDots;
  }

  const HloComputation &entry;
  const llvm::BitVector &needed;
  llvm::function_ref<bool(const RowGroup &)> isAttention;
  HloUsers users;
  llvm::BitVector inMemory, refused; ///< by id; `refused`: seconds
  llvm::BitVector ofRows, ends;      ///< of found groups, what they make of rows, and their dots and outputs
  std::vector<Found> found;          ///< findAll
  std::map<std::vector<uint32_t>, bool> answers; ///< hasHero
};

} // namespace

std::vector<RowGroup> groupAttention(const HloComputation &entry, const llvm::BitVector &needed,
                                     llvm::ArrayRef<HloInstruction *> materialized,
                                     llvm::function_ref<bool(const RowGroup &)> isAttention) {
  return AttentionSearch(entry, needed, materialized, isAttention).find();
}

} // namespace hloc
