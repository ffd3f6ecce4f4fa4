// Common subexpressions: what MLIR's pass of that name does, for functions of structured control flow.
#include "passes/PassDetail.h"
#include "passes/ValueTable.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace hloc {
#define GEN_PASS_DEF_CSE
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;

namespace {

bool mayWrite(Operation *op) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect());
  });
}

bool hasSeveralBlocks(Operation *op) {
  return llvm::any_of(op->getRegions(), [](Region &region) { return !region.empty() && !region.hasOneBlock(); });
}

class Elimination {
public:
  void visitRegions(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        visit(block);
  }
  /// Ops stay in their blocks until the end, since the table has them by address.
  void eraseDead() {
    for (Operation *op : dead)
      op->erase();
  }

private:
  void visit(Block &block);
  void eliminate(Operation *op);
  void eliminateRead(Operation *op, unsigned writes);
  void replace(Operation *op, Operation *known);

  ValueTable table;
  llvm::DenseMap<Operation *, unsigned> writesBefore; ///< of ops that only read memory: what may write it before them
  std::vector<Operation *> dead;
};

/// Blocks know what has been computed before the op they are in, and nothing of blocks beside them.
void Elimination::visit(Block &block) {
  ValueTable::Scope scope(table);
  unsigned writes = 0;
  for (Operation &op : block) {
    if (op.getNumRegions() != 0 && op.hasTrait<OpTrait::IsIsolatedFromAbove>()) {
      ValueTable outside;
      std::swap(table, outside);
      visitRegions(&op);
      std::swap(table, outside);
    } else {
      visitRegions(&op);
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    const bool isFree = isMemoryEffectFree(&op);
    if (isOpTriviallyDead(&op))
      dead.push_back(&op);
    else if (isFree)
      eliminate(&op);
    else if (hasSingleEffect<MemoryEffects::Read>(&op))
      eliminateRead(&op, writes);
    writes += !isFree && mayWrite(&op);
  }
}

void Elimination::eliminate(Operation *op) {
  if (hasSeveralBlocks(op))
    return;
  if (Operation *known = table.lookupOrInsert(op))
    replace(op, known);
}

/// What has been read is what would be read, as long as nothing in the block has written since.
void Elimination::eliminateRead(Operation *op, unsigned writes) {
  if (hasSeveralBlocks(op))
    return;
  Operation *known = table.lookup(op);
  if (known && known->getBlock() == op->getBlock() && writesBefore.lookup(known) == writes) {
    replace(op, known);
    return;
  }
  writesBefore[op] = writes;
  table.insert(op);
}

void Elimination::replace(Operation *op, Operation *known) {
  op->replaceAllUsesWith(known->getResults());
  dead.push_back(op);
  if (isa<UnknownLoc>(known->getLoc()))
    known->setLoc(op->getLoc());
}

struct CsePass : hloc::impl::CseBase<CsePass> {
  void runOnOperation() override {
    Elimination elimination;
    elimination.visitRegions(getOperation());
    elimination.eraseDead();
  }
};

} // namespace
