#pragma once
// HloInstruction: one HLO operation. Owned by its module's arena; operands come before users in their computation.
//
//   %r = f32[4] reduce(%x, %zero), dimensions={1}, to_apply=%sum
//   opcode Reduce, name "r", operands {x, zero}, ints(Dimensions) = {1}, computation(ToApply) = sum

#include "hloc/hlo/Attribute.h"
#include "hloc/hlo/Opcode.h"
#include "hloc/support/SourceFile.h"

#include "llvm/ADT/SmallVector.h"

namespace hloc {

class HloInstruction {
public:
  Opcode opcode() const { return code; }
  llvm::StringRef name() const { return instrName; } ///< without `%`
  const Shape &shape() const { return ownShape; }
  /// Results: the elements of a tuple, or the one value. `resultShape(i)` is the shape of the i-th.
  unsigned numResults() const { return ownShape.isTuple() ? ownShape.elements().size() : 1; }
  const Shape &resultShape(unsigned i = 0) const { return ownShape.isTuple() ? ownShape.element(i) : ownShape; }
  llvm::ArrayRef<HloInstruction *> operands() const { return operandList; }
  HloInstruction *operand(unsigned i) const { return operandList[i]; }
  unsigned numOperands() const { return operandList.size(); }
  HloComputation *parent() const { return owner; }
  /// Dense, 0.. in the order of the computation: the index into side tables.
  uint32_t id() const { return index; }
  SourceRange range() const { return where; }

  int64_t parameterNumber() const { return number; }   ///< Opcode::Parameter
  const Literal &literal() const { return *constant; } ///< Opcode::Constant
  bool hasLiteral() const { return constant != nullptr; }

  llvm::ArrayRef<Attribute> attributes() const { return attributeList; } ///< ascending keys
  const AttributeValue *find(AttributeKey key) const;
  bool has(AttributeKey key) const { return find(key) != nullptr; }
  /// The value, which must be present and of this type.
  template <typename T> const T &get(AttributeKey key) const { return std::get<T>(*find(key)); }
  llvm::ArrayRef<int64_t> ints(AttributeKey key) const; ///< empty if absent
  int64_t intOr(AttributeKey key, int64_t otherwise) const;
  bool flag(AttributeKey key, bool otherwise = false) const;
  llvm::StringRef string(AttributeKey key) const; ///< empty if absent
  template <typename Enum> Enum enumOr(AttributeKey key, Enum otherwise) const {
    const AttributeValue *value = find(key);
    return value ? static_cast<Enum>(std::get<int64_t>(*value)) : otherwise;
  }
  HloComputation *computation(AttributeKey key) const; ///< null if absent
  /// A window attribute, or one of `rank` size-1 dimensions if absent.
  Window windowOr(unsigned rank) const;
  /// In the order of the attributes: condition, body, branches, to_apply, calls, ...
  llvm::SmallVector<HloComputation *, 2> calledComputations() const;

  /// `type=` of a compare, or the default for its operands' element type.
  ComparisonType comparisonType() const;
  /// `op_name="..."` of the metadata; empty if absent.
  llvm::StringRef opName() const;
  bool hasSideEffect() const;
  /// Has it, or anything it calls directly or through others, a side effect?
  bool reachesSideEffect() const;

private:
  friend class HloModule;
  friend class HloComputation;
  friend class HloArena;
  friend class HloEditor;
  Opcode code = Opcode::Parameter;
  uint32_t index = 0;
  llvm::StringRef instrName;
  Shape ownShape;
  llvm::MutableArrayRef<HloInstruction *> operandList;
  llvm::MutableArrayRef<Attribute> attributeList;
  HloComputation *owner = nullptr;
  SourceRange where;
  int64_t number = 0;
  const Literal *constant = nullptr;
};

/// For messages: "f32[4] add `add.3`".
std::string describe(const HloInstruction &instr);

} // namespace hloc
