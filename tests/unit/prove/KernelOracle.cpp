#include "unit/prove/KernelOracle.h"

#include "hloc/dialect/TensorLayout.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/kernel/Proofs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace hloc::xla_gpu;

namespace hloc::testing {
namespace {

using Number = std::optional<int64_t>;

struct Visit {
  int64_t block, thread;
  unsigned phase;
  Operation *op;
  bool writes, atomic;
};

struct Memory {
  std::string name;
  bool shared = false;
  std::map<int64_t, std::vector<Visit>> visits; ///< by element
};

class Machine {
public:
  Machine(ModuleOp module, const KernelSpec &spec) : symbols(module), spec(spec) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(attr::entry))
        entry = function;
    for (BlockArgument argument : entry.getArguments()) {
      auto slice = entry.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), attr::sliceIndex);
      arguments[argument] = &bySlice[slice ? slice.getInt() : 1000 + argument.getArgNumber()];
    }
  }

  Happened run(ArrayRef<unsigned> filled) {
    for (block = 0; block < int64_t(spec.grid.count()) && happened.decided; ++block) {
      for (auto &[op, memory] : shared)
        memory.visits.clear();
      counts.clear();
      for (thread = 0; thread < int64_t(spec.block.count()) && happened.decided; ++thread) {
        phase = 0;
        values.clear();
        tensors.clear();
        for (auto &[argument, memory] : arguments)
          tensors[argument] = memory;
        run(entry.getBody().front());
      }
      if (happened.decided) {
        checkMeetings();
        for (auto &[op, memory] : shared)
          checkOrder(memory);
      }
    }
    if (!happened.decided)
      return happened;
    for (auto &[slice, memory] : bySlice)
      checkOrder(memory);
    for (Value value : entry.getBody().front().getTerminator()->getOperands())
      checkWritten(value, filled);
    return happened;
  }

private:
  void wrong(ProofProperty property, const std::string &what) {
    std::string &known = happened.wrong[unsigned(property)];
    if (known.empty())
      known = what + ", block " + std::to_string(block) + ", thread " + std::to_string(thread);
  }

  void checkMeetings() {
    for (auto &[key, count] : counts) {
      const bool ofBlock = isa<SyncThreadsOp>(key.first);
      int64_t first = ofBlock ? 0 : key.second / 32 * 32;
      int64_t last = ofBlock ? int64_t(spec.block.count()) : std::min<int64_t>(first + 32, int64_t(spec.block.count()));
      for (int64_t other = first; other < last; ++other)
        if (auto found = counts.find({key.first, other}); found == counts.end() || found->second != count)
          wrong(ProofProperty::BarriersReached, "not all come to " + key.first->getName().getStringRef().str());
    }
  }

  void checkOrder(const Memory &memory) {
    for (auto &[element, visits] : memory.visits)
      for (const Visit &a : visits)
        for (const Visit &b : llvm::ArrayRef(visits).take_front(a.writes ? visits.size() : 0)) {
          const bool apart = a.thread != b.thread || a.block != b.block;
          const bool unordered = memory.shared ? a.phase == b.phase : true;
          const bool sameWarpSameOp = memory.shared && a.op == b.op && a.thread / 32 == b.thread / 32;
          if (apart && unordered && a.writes && !(a.atomic && b.atomic) && !sameWarpSameOp)
            return wrong(ProofProperty::Ordered, "two meet at element " + std::to_string(element));
        }
  }

  void checkWritten(Value value, ArrayRef<unsigned> filled) {
    auto argument = dyn_cast<BlockArgument>(rootOf(value));
    if (!argument)
      return;
    Memory &memory = *arguments[argument];
    bool partial = llvm::is_contained(filled, argument.getArgNumber());
    for (auto &[other, its] : arguments)
      partial |= other != argument && its == &memory;
    bool any = false;
    for (auto &[element, visits] : memory.visits) {
      auto count = llvm::count_if(visits, [](const Visit &visit) { return visit.writes; });
      any |= count > 0;
      if (count > 1)
        wrong(ProofProperty::WrittenOnce, "element " + std::to_string(element) + " is written several times");
    }
    int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
    happened.untouched |= !any && elements > 0;
    if (!any || partial)
      return;
    for (int64_t element = 0; element < elements; ++element) {
      auto found = memory.visits.find(element);
      if (found == memory.visits.end() || llvm::none_of(found->second, [](const Visit &visit) { return visit.writes; }))
        return wrong(ProofProperty::WrittenOnce, "element " + std::to_string(element) + " is not written");
    }
  }

  /// The argument that a tensor is, through everything that hands it on.
  Value rootOf(Value value) {
    Memory *memory = tensors.lookup(value);
    for (auto &[argument, its] : arguments)
      if (its == memory && argument.getType() == value.getType())
        return argument;
    return value;
  }

  // --- values

  Number of(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return value.getType().isInteger(1) ? int64_t(constant.getZExtValue()) : constant.getSExtValue();
    auto found = values.find(value);
    return found == values.end() ? std::nullopt : found->second;
  }
  int64_t need(Value value) {
    Number number = of(value);
    happened.decided &= number.has_value();
    return number.value_or(0);
  }
  void bind(Value to, Value from) {
    if (isa<RankedTensorType>(to.getType()))
      tensors[to] = tensors.lookup(from);
    else
      values[to] = of(from);
  }
  void bindAll(ValueRange to, ValueRange from) {
    std::vector<std::pair<Number, Memory *>> handed;
    for (Value value : from)
      handed.push_back({isa<RankedTensorType>(value.getType()) ? Number() : of(value), tensors.lookup(value)});
    for (auto [target, what] : llvm::zip_equal(to, handed)) {
      if (isa<RankedTensorType>(target.getType()))
        tensors[target] = what.second;
      else
        values[target] = what.first;
    }
  }
  void claim(ArrayAttr bounds, Number value) {
    if (bounds && value &&
        !Interval{cast<IntegerAttr>(bounds[0]).getInt(), cast<IntegerAttr>(bounds[1]).getInt()}.contains(*value))
      wrong(ProofProperty::FitsWidth, "an index is not where it is said to be");
  }

  // --- memory

  void visit(Operation *op, Value tensor, ValueRange indices, int64_t width, bool writes, bool atomic = false) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> at;
    for (Value index : indices)
      at.push_back(need(index));
    if (!happened.decided)
      return;
    int64_t place = 0;
    auto order = minorToMajor(type);
    for (int64_t dimension : llvm::reverse(order)) {
      const int64_t own = dimension == order.front() ? width : 1;
      if (at[dimension] < 0 || at[dimension] + own > type.getDimSize(dimension))
        return wrong(ProofProperty::InBounds, "outside of a dimension");
      place = place * type.getDimSize(dimension) + at[dimension];
    }
    if (Memory *memory = tensors.lookup(tensor))
      for (int64_t i = 0; i < width; ++i)
        memory->visits[place + i].push_back({block, thread, phase, op, writes, atomic});
  }

  bool holds(Value condition) { return !condition || need(condition) != 0; }

  // --- operations

  void run(mlir::Block &body) {
    for (Operation &op : body) {
      if (!happened.decided)
        return;
      run(&op);
    }
  }

  void run(Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      visit(op, extract.getTensor(), extract.getIndices(), 1, false);
    } else if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      visit(op, insert.getDest(), insert.getIndices(), 1, true);
      bind(insert.getResult(), insert.getDest());
    } else if (auto extract = dyn_cast<PredicatedExtractOp>(op)) {
      if (holds(extract.getCondition()))
        visit(op, extract.getSource(), extract.getIndices(), 1, false);
    } else if (auto insert = dyn_cast<PredicatedInsertOp>(op)) {
      if (holds(insert.getCondition()))
        visit(op, insert.getDest(), insert.getIndices(), 1, true);
      bind(insert.getResult(), insert.getDest());
    } else if (auto read = dyn_cast<vector::TransferReadOp>(op)) {
      visit(op, read.getBase(), read.getIndices(), read.getVectorType().getNumElements(), false);
    } else if (auto write = dyn_cast<vector::TransferWriteOp>(op)) {
      visit(op, write.getBase(), write.getIndices(), write.getVectorType().getNumElements(), true);
      bind(write.getResult(), write.getBase());
    } else if (auto load = dyn_cast<LoadFragmentsOp>(op)) {
      visit(op, load.getSource(), load.getIndex(),
            128 / cast<RankedTensorType>(load.getSource().getType()).getElementTypeBitWidth(), false);
    } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      if (holds(copy.getCondition()))
        visit(op, copy.getSource(), copy.getIndices(), copy.getSize(), false);
      visit(op, copy.getDest(), copy.getAt(), copy.getSize(), true);
      bind(copy.getResult(), copy.getDest());
    } else if (auto update = dyn_cast<AtomicRmwOp>(op)) {
      auto vector = dyn_cast<VectorType>(update.current().getType());
      visit(op, update.getInput(), update.getIndices(), vector ? vector.getNumElements() : 1, true, true);
      bind(update.getResult(), update.getInput());
    } else if (isa<AllocateSharedOp>(op)) {
      Memory &memory = shared[op];
      memory.shared = true;
      tensors[op->getResult(0)] = &memory;
    } else if (isa<SyncThreadsOp, CommitCopiesOp, AwaitCopiesOp>(op)) {
      bindAll(op->getResults(), op->getOperands());
      if (isa<SyncThreadsOp>(op)) {
        ++counts[{op, thread}];
        ++phase;
      }
    } else if (isa<ShuffleReduceOp>(op)) {
      ++counts[{op, thread}];
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      runLoop(loop);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      runFor(loop);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      runIf(branch);
    } else if (auto call = dyn_cast<PureCallOp>(op)) {
      runCall(call);
    } else if (op->getNumRegions() > 0) {
      happened.decided = false;
    } else {
      compute(op);
    }
  }

  void runCall(PureCallOp call) {
    auto function = symbols.lookup<func::FuncOp>(call.getCallee());
    bindAll(function.getArguments(), call.getOperands());
    for (BlockArgument argument : function.getArguments())
      claim(function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), attr::range), of(argument));
    run(function.getBody().front());
    bindAll(call.getResults(), function.getBody().front().getTerminator()->getOperands());
  }

  void runLoop(LoopOp loop) {
    const IndexingMap &map = loop.indexingMap();
    SmallVector<int64_t> dims, ranges;
    for (Value dim : loop.getDims())
      dims.push_back(need(dim));
    bindAll(loop.iterArguments(), loop.getInits());
    for (const IndexingVariable &range : map.ranges())
      ranges.push_back(range.bounds.lower);
    bool done = llvm::any_of(map.ranges(), [](auto &range) { return range.bounds.isEmpty(); });
    while (!done && happened.decided) {
      if (std::optional<SmallVector<int64_t>> at = map.evaluate(dims, ranges)) {
        for (auto [argument, value] : llvm::zip_equal(loop.rangeArguments(), ranges))
          values[argument] = value;
        for (auto [argument, value] : llvm::zip_equal(loop.mapResultArguments(), *at))
          values[argument] = value;
        run(*loop.getBody());
        if (!happened.decided)
          return;
        bindAll(loop.iterArguments(), loop.yielded());
      }
      done = true;
      for (size_t i = ranges.size(); i-- > 0 && done;) {
        done = ranges[i]++ == map.ranges()[i].bounds.upper;
        if (done)
          ranges[i] = map.ranges()[i].bounds.lower;
      }
    }
    bindAll(loop.getResults(), loop.iterArguments());
  }

  void runFor(scf::ForOp loop) {
    bindAll(loop.getRegionIterArgs(), loop.getInitArgs());
    int64_t upper = need(loop.getUpperBound()), step = need(loop.getStep());
    for (int64_t i = need(loop.getLowerBound()); i < upper && happened.decided; i += std::max<int64_t>(1, step)) {
      values[loop.getInductionVar()] = i;
      run(*loop.getBody());
      if (happened.decided)
        bindAll(loop.getRegionIterArgs(), loop.getYieldedValues());
    }
    bindAll(loop.getResults(), loop.getRegionIterArgs());
  }

  void runIf(scf::IfOp branch) {
    const bool truth = need(branch.getCondition());
    if (!happened.decided)
      return;
    mlir::Block *body = truth ? branch.thenBlock() : branch.elseBlock();
    if (!body)
      return;
    run(*body);
    if (happened.decided)
      bindAll(branch.getResults(), body->getTerminator()->getOperands());
  }

  void compute(Operation *op) {
    for (Value result : op->getResults())
      values[result] = std::nullopt;
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op)) {
      values[id] = thread;
    } else if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
      values[id] = block;
    } else if (auto apply = dyn_cast<ApplyIndexingOp>(op)) {
      applyMap(apply);
    } else if (op->getNumResults() == 1 && op->getResult(0).getType().isIntOrIndex() &&
               isa<arith::ArithDialect>(op->getDialect())) {
      SmallVector<int64_t> numbers;
      for (Value operand : op->getOperands()) {
        if (!operand.getType().isIntOrIndex())
          return;
        Number number = of(operand);
        if (!number)
          return;
        numbers.push_back(*number);
      }
      values[op->getResult(0)] = computed(op, numbers);
    }
    if (op->getNumResults() == 1)
      claim(op->getAttrOfType<ArrayAttr>(attr::range), of(op->getResult(0)));
  }

  void applyMap(ApplyIndexingOp apply) {
    const IndexingMap &map = apply.indexingMap();
    SmallVector<Attribute> operands, results;
    Builder builder(apply.getContext());
    for (auto [i, operand] : llvm::enumerate(apply.getOperands())) {
      Number number = of(operand);
      if (!number)
        return;
      const Interval bounds = i < map.dims().size() ? map.dims()[i].bounds : map.ranges()[i - map.dims().size()].bounds;
      if (!bounds.contains(*number))
        wrong(ProofProperty::FitsWidth, "an index is not where its map has it");
      operands.push_back(builder.getIndexAttr(*number));
    }
    if (succeeded(map.affine().constantFold(operands, results)))
      for (auto [result, value] : llvm::zip_equal(apply.getResults(), results))
        values[result] = cast<IntegerAttr>(value).getInt();
  }

  static Number computed(Operation *op, ArrayRef<int64_t> n) {
    if (isa<arith::AddIOp>(op))
      return n[0] + n[1];
    if (isa<arith::SubIOp>(op))
      return n[0] - n[1];
    if (isa<arith::MulIOp>(op))
      return n[0] * n[1];
    if (isa<arith::XOrIOp>(op))
      return n[0] ^ n[1];
    if (isa<arith::AndIOp>(op))
      return n[0] & n[1];
    if (isa<arith::OrIOp>(op))
      return n[0] | n[1];
    if (isa<arith::MinSIOp, arith::MinUIOp>(op))
      return std::min(n[0], n[1]);
    if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
      return std::max(n[0], n[1]);
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      return n[0];
    if (isa<arith::SelectOp>(op))
      return n[0] ? n[1] : n[2];
    if (isa<arith::DivUIOp>(op) && n[1] > 0 && n[0] >= 0)
      return n[0] / n[1];
    if (isa<arith::RemUIOp>(op) && n[1] > 0 && n[0] >= 0)
      return n[0] % n[1];
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, uint64_t(n[0])), APInt(64, uint64_t(n[1])));
    return std::nullopt;
  }

  SymbolTable symbols;
  const KernelSpec &spec;
  func::FuncOp entry;
  Happened happened;
  llvm::MapVector<Value, Memory *> arguments;
  std::map<int64_t, Memory> bySlice;
  std::map<Operation *, Memory> shared;
  std::map<std::pair<Operation *, int64_t>, unsigned> counts; ///< of meetings, by thread
  llvm::DenseMap<Value, Number> values;
  llvm::DenseMap<Value, Memory *> tensors;
  int64_t block = 0, thread = 0;
  unsigned phase = 0;
};

} // namespace

Happened carryOut(ModuleOp module, const KernelSpec &spec, ArrayRef<unsigned> filled) {
  return Machine(module, spec).run(filled);
}

} // namespace hloc::testing
