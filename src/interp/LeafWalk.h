#pragma once
// A walk over a computation that keeps something for each array.

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace hloc::interp {

/// Tells something, a `Leaf`, of each array of each instruction of a computation and of those it calls: tuples hold
/// what is told of their arrays, calls and fusions tell what their computation does. A default `Leaf` says nothing; so
/// does what is called too deep. `Derived` has `Leaves follow(const HloInstruction &, Operands)` for all other opcodes;
/// it may leave leaves out.
template <typename Derived, typename Leaf> class LeafWalk {
public:
  using Leaves = llvm::SmallVector<Leaf, 1>;
  using Operands = llvm::ArrayRef<const Leaves *>;

  /// Of the root of `computation`; `arguments` are those of its parameters.
  Leaves run(const HloComputation &computation, llvm::ArrayRef<Leaves> arguments) {
    constexpr unsigned maxDepth = 100;
    if (depth == maxDepth)
      return Leaves(computation.root()->shape().leaves().size());
    ++depth;
    auto leave = llvm::scope_exit([&] { --depth; });
    std::vector<Leaves> values(computation.instructions().size());
    for (const HloInstruction *instr : computation.instructions()) {
      llvm::SmallVector<const Leaves *, 4> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(&values[operand->id()]);
      Leaves &value = values[instr->id()];
      value = instr->opcode() == Opcode::Parameter ? arguments[size_t(instr->parameterNumber())]
                                                   : evaluate(*instr, operands);
      value.resize(instr->shape().leaves().size());
    }
    return values[computation.root()->id()];
  }

protected:
  Leaves call(const HloInstruction &instr, Operands operands) {
    std::vector<Leaves> arguments;
    for (const Leaves *operand : operands)
      arguments.push_back(*operand);
    return run(*instr.calledComputations()[0], arguments);
  }

private:
  Leaves evaluate(const HloInstruction &instr, Operands operands) {
    if (instr.opcode() == Opcode::Tuple) {
      Leaves all;
      for (const Leaves *operand : operands)
        all.append(*operand);
      return all;
    }
    if (instr.opcode() == Opcode::GetTupleElement) {
      size_t start = 0, index = size_t(instr.intOr(AttributeKey::Index, 0));
      for (size_t i = 0; i < index; ++i)
        start += instr.operand(0)->shape().element(unsigned(i)).leaves().size();
      return Leaves(operands[0]->begin() + start, operands[0]->begin() + start + instr.shape().leaves().size());
    }
    if (instr.opcode() == Opcode::Call || instr.opcode() == Opcode::Fusion)
      return call(instr, operands);
    return static_cast<Derived *>(this)->follow(instr, operands);
  }

  unsigned depth = 0;
};

} // namespace hloc::interp
