// Pastes helpers into the functions that call them, from the entry down.
//
//   entry: %a = pure_call @f(%t, %i)      @f: %x = pure_call @h(%t, %i)      @g: %y = pure_call @h(%t, %i)
//          %b = pure_call @g(%t, %i)          return negf %x                     return absf %y
//
// becomes one copy of @h, one negf, one absf: everything that arrives in a function is numbered by value at once, so a
// call that equals an earlier one takes its results instead of another copy, with all that the copy would have called.
// The result is as large as what is computed, and each of its ops is looked at once, however often helpers share
// helpers. (Innermost first, as MLIR's inliner goes, each helper would hold all that it calls before it is pasted.)
#include "passes/PassDetail.h"
#include "passes/ValueTable.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"

namespace hloc {
#define GEN_PASS_DEF_INLINE
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

// Both limits are ours. With them a fusion of 17,000 instructions, whose helpers share helpers, compiles in a fifth of
// the time that MLIR's inliner takes, which goes innermost first; they were not tuned further.

/// A function that is not the entry grows up to this; the entry may hold everything twice besides.
constexpr size_t maxOpsOfHelper = 4000;
/// Copies of a helper, for calls with different arguments or in different branches, may add up to this: more is better
/// called.
constexpr size_t maxOpsOfCopies = 200;
/// The same of straight code that the entry calls: what copies have in common, such as what they compute of a row, is
/// merged there.
constexpr size_t maxOpsOfStraightCopies = 400;
/// The same of helpers of which nothing is copied but their own body.
constexpr size_t maxOpsOfKnown = 400;
constexpr size_t hugeSize = size_t(1) << 30;

struct Helper {
  size_t ops = 0;                      ///< in its own body
  size_t closure = 0;                  ///< with all that is pasted into it, shared or not; saturated
  bool isStraight = true;              ///< no branches and loops, nor in what it calls
  SmallVector<PureCallOp> calls;       ///< in order
  SmallVector<func::FuncOp> combiners; ///< of its reductions: they are called when these are lowered
  llvm::DenseSet<Operation *> kept;    ///< calls that stay calls wherever the body is pasted
};

class Inlining {
public:
  explicit Inlining(ModuleOp module) : interface(module.getContext()) {
    for (auto function : module.getOps<func::FuncOp>()) {
      functions[function.getSymNameAttr()] = function;
      if (!function.isPrivate() || function->hasAttr(attr::entry))
        entries.push_back(function);
    }
  }

  void run() {
    std::vector<func::FuncOp> order = calleesFirst();
    for (func::FuncOp function : order)
      paste(function, 0);
    countCalls();
    for (func::FuncOp function : order)
      decide(function);
    size_t total = 0;
    for (auto &[function, helper] : helpers)
      total += helper.ops;
    llvm::SetVector<func::FuncOp> needed(entries.begin(), entries.end());
    for (size_t i = 0; i < needed.size(); ++i) {
      func::FuncOp function = needed[i];
      if (i < entries.size())
        pasteEntry(function, maxOpsOfHelper + 2 * total);
      else
        paste(function, maxOpsOfHelper);
      for (PureCallOp call : helpers[function].calls)
        if (func::FuncOp callee = calleeOf(call))
          needed.insert(callee);
      needed.insert_range(helpers[function].combiners);
    }
    for (auto &[name, function] : functions)
      if (!needed.contains(function))
        function.erase();
  }

private:
  std::vector<func::FuncOp> calleesFirst();
  void countCalls();
  size_t mostOpsOfCopies(PureCallOp call, const Helper &callee) const;
  void decide(func::FuncOp function);
  void paste(func::FuncOp function, size_t maxOps);
  void pasteEntry(func::FuncOp function, size_t maxOps);
  void visit(Block &block);
  Operation *visit(Operation *op);
  Operation *pasteBody(PureCallOp call, func::FuncOp callee);
  bool shouldPaste(PureCallOp call, func::FuncOp callee);
  bool knowsAllCalls(PureCallOp call, func::FuncOp callee);
  bool callsInBranches(func::FuncOp function);

  func::FuncOp calleeOf(PureCallOp call) const { return functions.lookup(call.getCalleeAttr().getAttr()); }

  void replace(Operation *op, ValueRange values) {
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      forwarded[result] = value;
    op->replaceAllUsesWith(values);
  }
  Value resolve(Value value) const {
    for (auto it = forwarded.find(value); it != forwarded.end(); it = forwarded.find(value))
      value = it->second;
    return value;
  }

  InlinerInterface interface;
  llvm::MapVector<StringAttr, func::FuncOp> functions;
  SmallVector<func::FuncOp> entries;
  llvm::MapVector<func::FuncOp, Helper> helpers;
  llvm::DenseMap<func::FuncOp, size_t> callsOf; ///< with different arguments, all over the module

  // State of one function:
  bool pasting = false;
  bool pastesAll = false; ///< one copy of every helper, whoever else calls it
  bool gaveUp = false;    ///< pastesAll, and a call is left
  size_t ops = 0, opLimit = 0;
  ValueTable table;
  llvm::DenseMap<Value, Value> forwarded;                 ///< results of ops that equal earlier ones
  llvm::DenseMap<Operation *, SmallVector<Value>> pasted; ///< calls that are visited when their body has been
  llvm::DenseSet<Operation *> kept;
  llvm::DenseMap<func::FuncOp, size_t> copiesOf;
  std::vector<Operation *> dead; ///< without users; erased last, because the maps above know ops by address
};

/// Every function after those it calls. Loops: helpers call helpers as deep as instructions depend on each other.
std::vector<func::FuncOp> Inlining::calleesFirst() {
  std::vector<func::FuncOp> order;
  llvm::DenseSet<func::FuncOp> seen;
  struct Frame {
    func::FuncOp function;
    SmallVector<func::FuncOp> callees;
  };
  std::vector<Frame> stack;
  auto enter = [&](func::FuncOp function) {
    if (!function || !seen.insert(function).second)
      return;
    Frame frame{function, {}};
    function.walk([&](PureCallOp call) { frame.callees.push_back(calleeOf(call)); });
    stack.push_back(std::move(frame));
  };
  for (auto &[name, function] : functions) {
    enter(function);
    while (!stack.empty()) {
      if (!stack.back().callees.empty()) {
        enter(stack.back().callees.pop_back_val());
        continue;
      }
      order.push_back(stack.back().function);
      stack.pop_back();
    }
  }
  return order;
}

/// Whether `call` hands on exactly what its function was given, as helpers do that are read through one map.
bool handsOn(PureCallOp call) {
  auto function = call->getParentOfType<func::FuncOp>();
  return call.getNumOperands() == function.getNumArguments() &&
         llvm::equal(call.getOperands(), function.getArguments());
}

/// How many copies of each helper to expect: calls that hand on meet again in a common caller.
void Inlining::countCalls() {
  llvm::DenseSet<func::FuncOp> handedOn;
  for (auto &[function, helper] : helpers)
    for (PureCallOp call : helper.calls)
      if (func::FuncOp callee = calleeOf(call))
        callsOf[callee] += !handsOn(call) || handedOn.insert(callee).second;
}

size_t Inlining::mostOpsOfCopies(PureCallOp call, const Helper &callee) const {
  const bool isInEntry = llvm::is_contained(entries, call->getParentOfType<func::FuncOp>());
  return isInEntry && callee.isStraight ? maxOpsOfStraightCopies : maxOpsOfCopies;
}

/// Decides which calls of `function` stay; those of its callees are decided.
void Inlining::decide(func::FuncOp function) {
  Helper &helper = helpers[function];
  helper.closure = helper.ops;
  for (PureCallOp call : helper.calls) {
    func::FuncOp callee = calleeOf(call);
    if (!callee)
      continue;
    const Helper &called = helpers[callee];
    const size_t count = callsOf.lookup(callee);
    if (count > 1 && count * called.closure > mostOpsOfCopies(call, called) && !callee->hasAttr(attr::noCompute)) {
      helper.kept.insert(call);
    } else {
      helper.closure = std::min(helper.closure + called.closure, hugeSize);
    }
    helper.isStraight &= called.isStraight;
  }
}

/// Pastes into `function` until it has `maxOps`; 0: only merges equal ops.
void Inlining::paste(func::FuncOp function, size_t maxOps) {
  Helper &helper = helpers[function];
  pasting = maxOps > 0;
  ops = helper.ops;
  opLimit = maxOps;
  kept = helper.kept;
  forwarded.clear();
  pasted.clear();
  copiesOf.clear();
  for (Block &block : function.getBody())
    visit(block);
  for (Operation *op : dead)
    op->erase();
  dead.clear();
  helper.ops = 0;
  helper.calls.clear();
  helper.combiners.clear();
  function.walk([&](Operation *op) {
    ++helper.ops;
    helper.isStraight &= op == function.getOperation() || op->getNumRegions() == 0;
    if (auto call = dyn_cast<PureCallOp>(op))
      helper.calls.push_back(call);
    else if (auto reduce = dyn_cast<ShuffleReduceOp>(op))
      helper.combiners.push_back(functions.lookup(reduce.getCombinerAttr().getAttr()));
  });
  helper.kept.clear();
  if (pasting)
    helper.kept.insert(helper.calls.begin(), helper.calls.end());
}

/// Tries to do without helpers: results that share them, read through equal maps, need no more than one copy of each.
/// If a call is left, its helper is for all who call it.
void Inlining::pasteEntry(func::FuncOp function, size_t maxOps) {
  Helper &helper = helpers[function];
  IRMapping mapping;
  auto before = cast<func::FuncOp>(function->clone(mapping));
  llvm::DenseSet<Operation *> keptBefore;
  for (Operation *call : helper.kept)
    keptBefore.insert(mapping.lookup(call));
  size_t opsBefore = helper.ops;
  pastesAll = true;
  gaveUp = false;
  paste(function, maxOps);
  pastesAll = false;
  if (!helpers[function].calls.empty()) {
    function.getBody().getBlocks().clear();
    function.getBody().takeBody(before.getBody());
    helpers[function].kept = std::move(keptBefore);
    helpers[function].ops = opsBefore;
    paste(function, maxOps);
  }
  before->destroy();
}

void Inlining::visit(Block &block) {
  ValueTable::Scope scope(table);
  for (Operation *op = block.empty() ? nullptr : &block.front(); op && !(pastesAll && gaveUp);)
    op = visit(op);
}

/// Returns the op to visit next in the block.
Operation *Inlining::visit(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      visit(block);
  Operation *next = op->getNextNode();
  if (op->getNumRegions() || op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return next;

  if (auto it = pasted.find(op); it != pasted.end()) { // its body stands before it, and has been visited
    for (Value &value : it->second)
      value = resolve(value);
    replace(op, it->second);
    table.insert(op);
    dead.push_back(op);
    return next;
  }
  if (Operation *earlier = table.lookup(op)) {
    auto it = pasted.find(earlier);
    replace(op, it == pasted.end() ? ValueRange(earlier->getResults()) : ValueRange(it->second));
    dead.push_back(op);
    return next;
  }
  if (auto call = dyn_cast<PureCallOp>(op); call && pasting) {
    func::FuncOp callee = calleeOf(call);
    if (callee && shouldPaste(call, callee))
      return pasteBody(call, callee);
    gaveUp = true;
  }
  table.insert(op);
  return next;
}

bool Inlining::shouldPaste(PureCallOp call, func::FuncOp callee) {
  auto helper = helpers.find(callee);
  if (helper == helpers.end() || !callee.getBody().hasOneBlock() || (!pastesAll && kept.contains(call)) ||
      !interface.isLegalToInline(call, callee, /*wouldBeCloned=*/true))
    return false;
  if (callee->hasAttr(attr::noCompute))
    return true;
  size_t copies = copiesOf.lookup(callee) + 1;
  if (ops + helper->second.ops > opLimit)
    return false;
  if (copies == 1 || (copies * helper->second.closure <= mostOpsOfCopies(call, helper->second) && !kept.contains(call)))
    return true;
  return pastesAll && !helper->second.calls.empty() && copies * helper->second.ops <= maxOpsOfKnown &&
         knowsAllCalls(call, callee);
}

/// Whether everything that `callee` calls has been computed before `call`: then its body is all that a copy adds.
bool Inlining::knowsAllCalls(PureCallOp call, func::FuncOp callee) {
  IRMapping mapping;
  for (auto [argument, operand] : llvm::zip_equal(callee.getArguments(), call.getOperands()))
    mapping.map(argument, resolve(operand));
  WalkResult result = callee.walk([&](PureCallOp inner) {
    for (Value operand : inner.getOperands()) {
      Operation *constant = operand.getDefiningOp();
      Operation *known = constant && constant->getNumOperands() == 0 ? table.lookup(constant) : nullptr;
      if (known)
        mapping.map(operand, known->getResult(0));
    }
    Operation *probe = inner->clone(mapping);
    bool isKnown = table.lookup(probe);
    probe->destroy();
    return isKnown ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// Does it call others in branches?
bool Inlining::callsInBranches(func::FuncOp function) {
  auto helper = helpers.find(function);
  return helper != helpers.end() && llvm::any_of(helper->second.calls, [&](PureCallOp call) {
           return call->getParentOp() != function.getOperation();
         });
}

/// Returns the first op of the copy.
Operation *Inlining::pasteBody(PureCallOp call, func::FuncOp callee) {
  const Helper &helper = helpers[callee];
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  Operation *before = call->getPrevNode();
  Block &body = callee.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (Operation *stays : helper.kept)
    kept.insert(mapping.lookup(stays));
  SmallVector<Value> &results = pasted[call];
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(mapping.lookup(result));
  // Results that are made in branches come last: what the branches compute is known by then if others need it anyway.
  if (pastesAll && callee->hasAttr(attr::noCompute))
    for (Operation &op : body.without_terminator())
      if (auto inner = dyn_cast<PureCallOp>(op); inner && callsInBranches(calleeOf(inner)))
        if (Operation *copy = mapping.lookup(&op); copy->use_empty())
          copy->moveBefore(call);
  ops += helper.ops;
  ++copiesOf[callee];
  return before ? before->getNextNode() : &call->getBlock()->front();
}

struct InlinePass : hloc::impl::InlineBase<InlinePass> {
  void runOnOperation() override { Inlining(getOperation()).run(); }
};

} // namespace
