// Helpers take buffers of the entry as arguments. Where every caller hands over the same buffer, the argument gets its
// identity: `xla_gpu.slice_index` and with it `xla_gpu.invariant`, `llvm.align` and `llvm.dereferenceable`.
#include "passes/PassDetail.h"

#include "mlir/Interfaces/CallInterfaces.h"

namespace hloc {
#define GEN_PASS_DEF_PROPAGATESLICEINDICES
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr StringLiteral inherited[] = {attr::sliceIndex, attr::invariant, "llvm.align", "llvm.dereferenceable"};

/// The argument of `function` whose buffer `value` is; null if it is none (shared memory, a constant).
BlockArgument bufferArgument(Value value) {
  while (value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (isa<func::FuncOp>(owner))
        return argument;
      auto loop = dyn_cast<scf::ForOp>(owner);
      if (!loop || argument.getArgNumber() == 0)
        return {};
      value = loop.getInitArgs()[argument.getArgNumber() - 1];
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (auto insert = dyn_cast<tensor::InsertOp>(op))
      value = insert.getDest();
    else if (auto atomic = dyn_cast<AtomicRmwOp>(op))
      value = atomic.getInput();
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      value = loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
    else if (auto ifOp = dyn_cast<scf::IfOp>(op))
      value = ifOp.thenYield().getOperand(cast<OpResult>(value).getResultNumber());
    else if (auto sync = dyn_cast<SyncThreadsOp>(op))
      value = sync.getOperand(cast<OpResult>(value).getResultNumber());
    else
      return {};
  }
  return {};
}

class Propagation {
public:
  explicit Propagation(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>()) {
      functions[function.getSymNameAttr()] = function;
      function.walk([&](CallOpInterface call) {
        if (auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee()))
          callers[callee.getRootReference()].push_back(call);
      });
    }
  }

  void run() {
    for (auto &[name, function] : functions)
      visit(function);
  }

private:
  void visit(func::FuncOp function) {
    if (!done.insert(function).second || function->hasAttr(attr::entry))
      return;
    ArrayRef<CallOpInterface> calls = callers[function.getSymNameAttr()];
    // Callers first, so that chains of helpers inherit.
    for (CallOpInterface call : calls)
      visit(call->getParentOfType<func::FuncOp>());
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (!isa<RankedTensorType>(function.getFunctionType().getInput(i)) || calls.empty())
        continue;
      for (StringRef name : inherited)
        if (Attribute common = commonAttribute(calls, i, name))
          function.setArgAttr(i, name, common);
    }
  }

  Attribute commonAttribute(ArrayRef<CallOpInterface> calls, unsigned argument, StringRef name) {
    Attribute common;
    for (CallOpInterface call : calls) {
      BlockArgument buffer = bufferArgument(call.getArgOperands()[argument]);
      if (!buffer)
        return {};
      auto caller = cast<func::FuncOp>(buffer.getOwner()->getParentOp());
      Attribute value = caller.getArgAttr(buffer.getArgNumber(), name);
      if (!value || (common && common != value))
        return {};
      common = value;
    }
    return common;
  }

  llvm::MapVector<StringAttr, func::FuncOp> functions;
  llvm::DenseMap<StringAttr, SmallVector<CallOpInterface>> callers;
  llvm::SmallPtrSet<Operation *, 16> done;
};

struct PropagateSliceIndicesPass : hloc::impl::PropagateSliceIndicesBase<PropagateSliceIndicesPass> {
  void runOnOperation() override { Propagation(getOperation()).run(); }
};

} // namespace
