// Branches on one condition become one branch.
//
//   %a = scf.if %c { f(%x0) } else { g(%y0) }        %a, %b = scf.if %c { f(%x0), f(%x1) } else { g(%y0), g(%y1) }
//   %b = scf.if %c { f(%x1) } else { g(%y1) }   ->
//
// They come from unrolled loops whose elements all take the same way, as those of one operand of a concatenate.
#include "passes/PassDetail.h"

#include "llvm/ADT/SetVector.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace hloc {
#define GEN_PASS_DEF_JOINBRANCHES
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;

namespace {

/// Of a larger block it takes too long to find out what may move.
constexpr size_t maxOpsOfBlock = 4000;

bool isTensor(Type type) { return isa<TensorType>(type); }

/// May stand anywhere between its operands and its users. What a tensor is read for may, what writes one may not.
bool mayMove(Operation &op) { return isMemoryEffectFree(&op) && llvm::none_of(op.getResultTypes(), isTensor); }

/// A branch that computes something.
bool isWorthJoining(scf::IfOp branch) {
  if (branch.getNumResults() == 0 || !branch.elseBlock() || !mayMove(*branch))
    return false;
  auto isEmpty = [](Block *block) { return llvm::hasSingleElement(*block); };
  return !isEmpty(branch.thenBlock()) || !isEmpty(branch.elseBlock());
}

/// The condition without a negation, and whether there was one.
std::pair<Value, bool> conditionOf(scf::IfOp branch) {
  Value condition = branch.getCondition();
  auto negation = condition.getDefiningOp<arith::XOrIOp>();
  if (negation && matchPattern(negation.getRhs(), m_One()))
    return {negation.getLhs(), true};
  return {condition, false};
}

class BranchJoiner {
public:
  explicit BranchJoiner(Block &block) : block(block) {}

  void run() {
    if (std::distance(block.begin(), block.end()) > std::ptrdiff_t(maxOpsOfBlock))
      return;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!branch || !isWorthJoining(branch))
        continue;
      Value condition = conditionOf(branch).first;
      scf::IfOp &earlier = last[condition];
      earlier = earlier && moveTo(branch, earlier) ? join(earlier, branch) : branch;
    }
  }

private:
  /// Moves what `branch` needs before `earlier`. False if it needs something that cannot go there.
  bool moveTo(scf::IfOp branch, scf::IfOp earlier) {
    llvm::SetVector<Operation *> needed;
    bool good = addNeeded(branch, earlier, needed);
    for (size_t i = 0; good && i < needed.size(); ++i)
      good = addNeeded(needed[i], earlier, needed);
    if (!good)
      return false;
    llvm::SmallVector<Operation *> inOrder = llvm::to_vector(needed);
    llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : inOrder)
      op->moveBefore(earlier);
    return true;
  }

  bool addNeeded(Operation *op, scf::IfOp earlier, llvm::SetVector<Operation *> &needed) {
    return !op->walk([&](Operation *inner) {
                for (Value operand : inner->getOperands()) {
                  Operation *source = operand.getDefiningOp();
                  source = source ? block.findAncestorOpInBlock(*source) : nullptr;
                  if (!source || source == op || source->isBeforeInBlock(earlier))
                    continue;
                  if (source == earlier || !mayMove(*source))
                    return WalkResult::interrupt();
                  needed.insert(source);
                }
                return WalkResult::advance();
              }).wasInterrupted();
  }

  /// One branch in the place of `first`.
  scf::IfOp join(scf::IfOp first, scf::IfOp second) {
    OpBuilder builder(first);
    SmallVector<Type> types(first.getResultTypes());
    llvm::append_range(types, second.getResultTypes());
    bool isSwapped = conditionOf(first).second != conditionOf(second).second;
    auto joined = scf::IfOp::create(builder, first.getLoc(), types, first.getCondition(), /*withElseRegion=*/true);
    auto fill = [&](Block *into, Block *own, Block *other) {
      SmallVector<Value> yielded;
      for (Block *from : {own, other}) {
        Operation *yield = from->getTerminator();
        llvm::append_range(yielded, yield->getOperands());
        yield->erase();
        into->getOperations().splice(into->end(), from->getOperations());
      }
      OpBuilder inside = OpBuilder::atBlockEnd(into);
      scf::YieldOp::create(inside, first.getLoc(), yielded);
    };
    fill(joined.thenBlock(), first.thenBlock(), isSwapped ? second.elseBlock() : second.thenBlock());
    fill(joined.elseBlock(), first.elseBlock(), isSwapped ? second.thenBlock() : second.elseBlock());
    first.replaceAllUsesWith(joined.getResults().take_front(first.getNumResults()));
    second.replaceAllUsesWith(joined.getResults().drop_front(first.getNumResults()));
    first.erase();
    second.erase();
    return joined;
  }

  Block &block;
  llvm::DenseMap<Value, scf::IfOp> last; ///< by condition
};

struct JoinBranchesPass : hloc::impl::JoinBranchesBase<JoinBranchesPass> {
  void runOnOperation() override { joinIn(getOperation()); }

  /// Outer blocks first: what is joined may have branches to join.
  static void joinIn(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        BranchJoiner(block).run();
        for (Operation &inner : block)
          joinIn(&inner);
      }
  }
};

} // namespace
