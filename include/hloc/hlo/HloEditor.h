#pragma once
// HloEditor: changes one computation in place. It keeps who uses what, the order, and a list of what has changed.
//
//   HloEditor editor(computation);                      // %n = negate(%x)  %m = negate(%n)  ROOT %r = add(%m, %y)
//   editor.replaceAllUses(m, x);                        // ROOT %r = add(%x, %y)
//   editor.eraseIfDead(m);                              // %m goes, and %n, which nothing else uses
//   editor.finish();                                    // computation.instructions() and ids are true again
//
// While an editor is open, `computation.instructions()` is what it was before: walk with first() and next(). Ids stay
// below idBound(): instructions that were there keep theirs, new ones get the next; they tell nothing about the order.
// Every single change costs constant time; opening and finishing cost time in proportion to the computation.
//
// Invariants: operands come before users once finish() has run (sortTopologically() restores the order where a caller
// has broken it); a parameter goes only by eraseParameter; eraseIfDead and eraseDead keep what is not isRemovable.

#include "hloc/hlo/HloModule.h"

#include <cstdint>
#include <vector>

namespace hloc {

/// One place where a value is read.
struct HloUse {
  HloInstruction *user;
  unsigned operand;
};

class HloEditor {
public:
  explicit HloEditor(HloComputation &computation);
  HloEditor(const HloEditor &) = delete;
  HloEditor &operator=(const HloEditor &) = delete;
  ~HloEditor() { commit(); }

  HloComputation &computation() const { return edited; }
  HloModule &module() const { return edited.module(); }
  HloInstruction *root() const { return edited.root(); }

  // The order. Null stands behind the last instruction.
  HloInstruction *first() const { return firstInstr; }
  HloInstruction *next(const HloInstruction *instr) const { return node(instr).next; }
  uint32_t idBound() const { return static_cast<uint32_t>(nodes.size()); }
  size_t numInstructions() const { return live; }
  /// Erased instructions stay readable until finish().
  bool isErased(const HloInstruction *instr) const { return node(instr).erased; }

  // Uses. The root counts as used by nobody.
  bool isUsed(const HloInstruction *value) const { return node(value).firstUse != noUse; }
  /// Does exactly one instruction use it (in any number of operands), and is it not the root?
  bool hasOneUser(const HloInstruction *value) const;
  llvm::SmallVector<HloUse> uses(const HloInstruction *value) const; ///< in the order in which they came to be
  /// Nothing uses it, and nothing else holds it: root, parameter, side effect, order given by control predecessors.
  bool isRemovable(const HloInstruction *instr) const;
  /// Has it a control predecessor or is it one? Replacing it would lose an order that the text demands.
  bool isOrdered(const HloInstruction *instr) const { return node(instr).ordered; }

  // Changes.
  /// In front of `before`; null: at the end. Operands are in this computation.
  HloInstruction *insert(const InstructionSpec &spec, HloInstruction *before);
  void moveBefore(HloInstruction *instr, HloInstruction *before);
  void setOperand(HloInstruction *user, unsigned operand, HloInstruction *value);
  /// Also where `from` is the root. Shapes must be compatible.
  void replaceAllUses(HloInstruction *from, HloInstruction *to);
  void setRoot(HloInstruction *root);
  void setShape(HloInstruction *instr, const Shape &shape);
  /// Adds it or replaces the one of this key.
  void setAttribute(HloInstruction *instr, const Attribute &attribute);
  /// Changes the signature: whoever calls the computation has to drop the operand. Nothing may use the parameter; those
  /// with higher numbers move down.
  void eraseParameter(HloInstruction *parameter);
  /// Nothing may use it or be ordered by it.
  void erase(HloInstruction *instr);
  /// Erases it if it is removable, and the operands that are removable after that. How many?
  size_t eraseIfDead(HloInstruction *instr);
  /// Erases it even if it has a side effect, unless it is used, ordered or the root, and the operands that are
  /// removable after that. How many?
  size_t eraseWithOperands(HloInstruction *instr);
  /// eraseIfDead of all instructions.
  size_t eraseDead();
  /// Puts operands before users, moving as little as this needs: an instruction goes in front of its first user.
  void sortTopologically();

  /// The oldest instruction that is new, reads other operands than before, or has lost a user, and was not returned
  /// since; null if there is none.
  HloInstruction *takeChanged();
  /// Has anything changed since the editor was opened?
  bool changed() const { return anyChange; }

  /// Renumbers, and gives what was erased back to the arena. The editor can be used afterwards as if opened again.
  void finish();

private:
  static constexpr uint32_t noUse = UINT32_MAX;
  struct Node {
    HloInstruction *previous = nullptr, *next = nullptr;
    uint32_t firstUse = noUse, lastUse = noUse;
    uint32_t operandUses = 0; ///< index of the use that is operand 0
    bool erased = false, ordered = false, inChanged = false;
  };
  struct Use {
    HloInstruction *user;
    uint32_t operand, previous, next;
  };
  Node &node(const HloInstruction *instr) { return nodes[instr->id()]; }
  const Node &node(const HloInstruction *instr) const { return nodes[instr->id()]; }
  void open();
  void commit();
  void addNode(HloInstruction *instr, HloInstruction *before);
  void link(HloInstruction *instr, HloInstruction *before);
  void unlink(HloInstruction *instr);
  void drop(HloInstruction *instr);
  void addUse(uint32_t use, HloInstruction *value);
  void removeUse(uint32_t use, HloInstruction *value);
  void noteChange(HloInstruction *instr);

  HloComputation &edited;
  HloInstruction *firstInstr = nullptr, *lastInstr = nullptr;
  size_t live = 0;
  std::vector<Node> nodes; ///< by id
  std::vector<Use> useList;
  std::vector<HloInstruction *> erasedInstrs;
  std::vector<HloInstruction *> changedInstrs;
  size_t nextChanged = 0;
  bool anyChange = false;
};

} // namespace hloc
