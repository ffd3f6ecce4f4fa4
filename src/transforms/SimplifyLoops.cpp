// The state of loops: what is always a constant, always equal to another leaf, needed by nobody, or what it was before.
//
//   (i, k, n, x, d) = while(0, 0, 8, a, b)  body: (i + 1, k + 1, n, x * k, d + x)     d: used by nobody
//   -> (i, x) = while(0, a)  body: (i + 1, x * i), with 8 where n was
//
// What the body only reads stays, as a leaf that it hands on: it has no other way in.

#include "FuseGroups.h"
#include "LightOps.h"
#include "Simplify.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/InstructionKey.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <set>

namespace hloc {

namespace {

/// A larger one is better read where it lies.
constexpr int64_t mostConstantBytes = 1024;
/// Pairs of instructions that are compared to find two leaves equal.
constexpr size_t mostPairs = 500;

std::optional<unsigned> leafOf(const HloInstruction *value, const HloInstruction *tuple) {
  const bool isLeaf = value->opcode() == Opcode::GetTupleElement && value->operand(0) == tuple;
  return isLeaf ? std::optional(unsigned(value->intOr(AttributeKey::Index, 0))) : std::nullopt;
}

bool areLeaves(const HloInstruction *tuple, const HloEditor &editor) {
  return tuple != editor.root() && llvm::all_of(editor.uses(tuple), [&](const HloUse &use) {
           return use.user->opcode() == Opcode::GetTupleElement;
         });
}

/// Are values of a body the same in each round if leaves of one class are at its beginning?
class Equality {
public:
  Equality(const HloInstruction *state, llvm::ArrayRef<unsigned> classes) : state(state), classes(classes) {}

  /// Asked once: what has been seen counts as equal until the first difference.
  bool operator()(const HloInstruction *a, const HloInstruction *b) {
    if (a == b)
      return true;
    std::optional<unsigned> leafA = leafOf(a, state), leafB = leafOf(b, state);
    if (leafA && leafB)
      return classes[*leafA] == classes[*leafB];
    auto same = [](const HloComputation *x, const HloComputation *y) { return x == y; };
    if (!doSameWork(*a, *b, same) || a->numOperands() != b->numOperands() || a->opcode() == Opcode::Parameter ||
        a->reachesSideEffect())
      return false;
    if (!seen.insert({a, b}).second)
      return true;
    return seen.size() <= mostPairs && llvm::equal(a->operands(), b->operands(), std::ref(*this));
  }

private:
  const HloInstruction *state;
  llvm::ArrayRef<unsigned> classes;
  std::set<std::pair<const HloInstruction *, const HloInstruction *>> seen;
};

/// A loop whose state is a tuple wherever it is made, and taken apart wherever it is read.
class LoopState {
public:
  LoopState(HloInstruction &loop, HloEditor &editor)
      : loop(loop), outside(editor), body(*loop.computation(AttributeKey::Body)),
        condition(*loop.computation(AttributeKey::Condition)), inBody(body.computation().parameters().front()),
        inCondition(condition.computation().parameters().front()) {}

  /// Takes the result apart if it is read whole.
  bool isPlain() const {
    return loop.operand(0)->opcode() == Opcode::Tuple && body.root()->opcode() == Opcode::Tuple &&
           areLeaves(inBody, body) && areLeaves(inCondition, condition) && !outside.isOrdered(&loop) &&
           llvm::all_of(
               std::initializer_list<const HloInstruction *>{loop.operand(0), body.root(), inBody, inCondition},
               [&](const HloInstruction *tuple) { return tuple->shape() == loop.shape(); }) &&
           (areLeaves(&loop, outside) || takeApart());
  }

  size_t simplify() { return useConstants() + useFirstOfEqual() + useStarts() + dropDead(); }

private:
  unsigned numLeaves() const { return unsigned(loop.shape().elements().size()); }
  HloInstruction *start(unsigned leaf) const { return loop.operand(0)->operand(leaf); }
  HloInstruction *next(unsigned leaf) const { return body.root()->operand(leaf); }
  bool isHandedOn(unsigned leaf) const { return leafOf(next(leaf), inBody) == leaf; }

  /// Where the loop's result is read whole, if that is of use.
  bool takeApart() const {
    llvm::SmallVector<HloUse> uses = outside.uses(&loop);
    const bool isRoot = &loop == outside.root();
    if (llvm::none_of(llvm::seq(numLeaves()), [&](unsigned leaf) { return isHandedOn(leaf); }))
      return false;
    HloBuilder builder(outside, outside.next(&loop));
    builder.setRange(loop.range());
    llvm::SmallVector<HloInstruction *> leaves;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf)
      leaves.push_back(builder.tupleElement(&loop, leaf));
    HloInstruction *whole = builder.tuple(leaves);
    for (const HloUse &use : uses)
      if (!leafOf(use.user, &loop))
        outside.setOperand(use.user, use.operand, whole);
    if (isRoot)
      outside.setRoot(whole);
    return true;
  }

  /// Those of `tuple` that are its leaf `leaf`.
  static llvm::SmallVector<HloInstruction *> readsOf(const HloInstruction *tuple, unsigned leaf, HloEditor &editor) {
    llvm::SmallVector<HloInstruction *> reads;
    for (const HloUse &use : editor.uses(tuple))
      if (leafOf(use.user, tuple) == leaf)
        reads.push_back(use.user);
    return reads;
  }

  size_t useConstants() {
    size_t found = 0;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf) {
      const HloInstruction *value = start(leaf);
      if (value->opcode() != Opcode::Constant || !value->shape().isArray() || !isHandedOn(leaf) ||
          value->shape().byteSize() > mostConstantBytes)
        continue;
      found += useConstant(leaf, *value, inBody, body);
      found += useConstant(leaf, *value, inCondition, condition);
    }
    return found;
  }

  /// All reads but the one that hands it on.
  static size_t useConstant(unsigned leaf, const HloInstruction &value, HloInstruction *state, HloEditor &editor) {
    size_t found = 0;
    for (HloInstruction *read : readsOf(state, leaf, editor))
      for (const HloUse &use : editor.uses(read))
        if (use.user != editor.root() || use.operand != leaf) {
          editor.setOperand(use.user, use.operand, placeAnother(value, editor, use.user));
          ++found;
        }
    return found;
  }

  /// Leaves that begin equal and stay equal as long as all leaves of their class do.
  size_t useFirstOfEqual() {
    std::vector<unsigned> classes(numLeaves()); // the first leaf of each class
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf) {
      classes[leaf] = leaf;
      for (unsigned first = 0; first < leaf && classes[leaf] == leaf; ++first)
        if (classes[first] == first && start(first) == start(leaf) && start(leaf)->shape().isArray())
          classes[leaf] = first;
    }
    while (splitClasses(classes)) {
    }
    size_t found = 0;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf)
      if (classes[leaf] != leaf) {
        found += useOther(leaf, classes[leaf], inBody, body);
        found += useOther(leaf, classes[leaf], inCondition, condition);
        found += useOther(leaf, classes[leaf], &loop, outside);
      }
    return found;
  }

  bool splitClasses(std::vector<unsigned> &classes) const {
    const std::vector<unsigned> before = classes;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf) {
      if (before[leaf] == leaf)
        continue;
      // With those of its class that were split from the first before it, if it equals one of them.
      classes[leaf] = leaf;
      for (unsigned other = before[leaf]; other < leaf && classes[leaf] == leaf; ++other)
        if (before[other] == before[leaf] && classes[other] == other &&
            Equality(inBody, before)(next(other), next(leaf)))
          classes[leaf] = other;
    }
    return classes != before;
  }

  /// All reads of `leaf`, but the one that hands it on, become those of `other`.
  static size_t useOther(unsigned leaf, unsigned other, HloInstruction *state, HloEditor &editor) {
    size_t found = 0;
    for (HloInstruction *read : readsOf(state, leaf, editor)) {
      HloInstruction *instead = nullptr;
      for (const HloUse &use : editor.uses(read)) {
        if (use.user == editor.root() && use.operand == leaf && state->opcode() == Opcode::Parameter)
          continue;
        if (!instead) {
          HloBuilder builder(editor, read);
          builder.setRange(read->range());
          instead = builder.tupleElement(state, other);
        }
        editor.setOperand(use.user, use.operand, instead);
        ++found;
      }
      if (read == editor.root()) {
        HloBuilder builder(editor, read);
        builder.setRange(read->range());
        editor.setRoot(builder.tupleElement(state, other));
        ++found;
      }
    }
    return found;
  }

  /// After the loop: what it hands on is what it was given.
  size_t useStarts() {
    size_t found = 0;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf)
      if (isHandedOn(leaf))
        for (HloInstruction *read : readsOf(&loop, leaf, outside))
          if (outside.isUsed(read) || read == outside.root()) {
            outside.replaceAllUses(read, start(leaf));
            ++found;
          }
    return found;
  }

  /// Leaves that are read after the loop or by the condition, and those of which the next value of such a leaf is made.
  llvm::BitVector neededLeaves() {
    llvm::BitVector needed(numLeaves());
    std::vector<const HloInstruction *> pending;
    llvm::DenseSet<const HloInstruction *> seen;
    auto need = [&](unsigned leaf) {
      if (!needed.test(leaf)) {
        needed.set(leaf);
        pending.push_back(next(leaf));
      }
    };
    auto needRead = [&](const HloInstruction *tuple, HloEditor &editor) {
      for (const HloUse &use : editor.uses(tuple))
        if (editor.isUsed(use.user) || use.user == editor.root())
          need(*leafOf(use.user, tuple));
    };
    needRead(&loop, outside);
    needRead(inCondition, condition);
    for (const HloInstruction *instr = body.first(); instr; instr = body.next(instr))
      if (instr->reachesSideEffect())
        pending.push_back(instr);
    while (!pending.empty()) {
      const HloInstruction *value = pending.back();
      pending.pop_back();
      if (!seen.insert(value).second)
        continue;
      if (std::optional<unsigned> leaf = leafOf(value, inBody))
        need(*leaf);
      else
        pending.insert(pending.end(), value->operands().begin(), value->operands().end());
    }
    return needed;
  }

  size_t dropDead() {
    llvm::BitVector needed = neededLeaves();
    if (needed.all() || needed.none())
      return 0; // of which nothing is needed is dead, or goes on for ever
    std::vector<std::optional<unsigned>> numbers;
    llvm::SmallVector<HloInstruction *> starts, nexts;
    for (unsigned leaf = 0; leaf < numLeaves(); ++leaf) {
      numbers.push_back(needed.test(leaf) ? std::optional(unsigned(starts.size())) : std::nullopt);
      if (needed.test(leaf)) {
        starts.push_back(start(leaf));
        nexts.push_back(next(leaf));
      }
    }
    const size_t dropped = numLeaves() - starts.size();
    HloInstruction *oldRoot = body.root();
    HloBuilder inside(body, nullptr);
    inside.setRange(oldRoot->range());
    body.setRoot(inside.tuple(nexts));
    body.erase(oldRoot);
    const Shape shape = body.root()->shape();
    for (auto [state, editor] : {std::pair(inBody, &body), std::pair(inCondition, &condition)}) {
      editor->eraseDead();
      editor->setShape(state, shape);
      renumber(state, numbers, *editor);
    }
    HloInstruction *oldStart = loop.operand(0);
    HloBuilder builder(outside, &loop);
    builder.setRange(oldStart->range());
    outside.setOperand(&loop, 0, builder.tuple(starts));
    outside.eraseIfDead(oldStart);
    outside.setShape(&loop, shape);
    renumber(&loop, numbers, outside);
    return dropped;
  }

  /// Those that are read of what is gone are read by nobody.
  static void renumber(const HloInstruction *tuple, llvm::ArrayRef<std::optional<unsigned>> numbers,
                       HloEditor &editor) {
    for (const HloUse &use : editor.uses(tuple))
      if (std::optional<unsigned> number = numbers[*leafOf(use.user, tuple)])
        editor.setAttribute(use.user, {AttributeKey::Index, int64_t(*number)});
      else
        editor.erase(use.user);
  }

  HloInstruction &loop;
  HloEditor &outside;
  HloEditor body, condition;
  HloInstruction *inBody, *inCondition;
};

} // namespace

PassResult simplifyLoops(HloModule &module, HloPassContext &context) {
  size_t found = 0;
  const llvm::DenseMap<const HloComputation *, size_t> numCallers = countCalls(module);
  for (HloComputation *computation : computationsToSimplify(module)) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr)) {
      if (instr->opcode() != Opcode::While ||
          llvm::any_of(instr->calledComputations(),
                       [&](const HloComputation *callee) { return numCallers.lookup(callee) != 1; }))
        continue;
      if (LoopState state(*instr, editor); state.isPlain())
        found += state.simplify();
    }
  }
  context.statistics.add("simplify-loops.found", found);
  return changedIf(found > 0);
}

} // namespace hloc
