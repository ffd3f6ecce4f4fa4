#include "prove/Accesses.h"

#include "prove/Values.h"

#include "hloc/dialect/TensorLayout.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace hloc::xla_gpu;

namespace hloc::prove {

int64_t Buffer::elements() const {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

AffineExpr linearIndex(const Access &access, const Buffer &buffer) {
  AffineExpr result = getAffineConstantExpr(0, access.op->getContext());
  for (auto [index, size] : llvm::zip_equal(access.indices, buffer.sizes))
    result = result * size + index;
  return result;
}

namespace {

/// More operations than that are not walked: functions are walked wherever they are called.
constexpr size_t mostOperations = 400000;
/// Rounds of a loop with barriers of which two may be between the same barriers: neighbours, and, of copies in flight,
/// those that are open when others are awaited.
int64_t roundsInARow(LoopOp loop) {
  int64_t open = 0;
  loop->walk([&](AwaitCopiesOp op) { open = std::max<int64_t>(open, op.getOpen()); });
  return 2 + open;
}

bool hasBarrier(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<SyncThreadsOp, CopyAsyncOp, AwaitCopiesOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Which lanes have the same value: those that a shuffle has given what all of them had.
class AlikeLanes {
public:
  struct Alike {
    unsigned lanes = 0; ///< a power of two; 0: each may have its own
    bool shuffled = false;
  };
  static constexpr unsigned all = 1 << 20;

  Alike of(Value value) const {
    if (Operation *op = value.getDefiningOp(); op && op->hasTrait<OpTrait::ConstantLike>())
      return {all, false};
    return known.lookup(value);
  }
  void set(Value value, Alike alike) { known[value] = alike; }

  void compute(Operation *op) {
    Alike alike{all, false};
    for (Value operand : op->getOperands()) {
      Alike own = of(operand);
      alike.lanes = std::min(alike.lanes, own.lanes);
      alike.shuffled |= own.shuffled;
    }
    if (op->getNumOperands() == 0 || op->getNumRegions() > 0)
      alike.lanes = 0;
    for (Value result : op->getResults())
      set(result, alike);
  }
  void shuffle(ShuffleReduceOp op, func::FuncOp combiner) {
    const bool same = op.getToAll() && combiner && isSymmetric(combiner);
    for (Value result : op.getResults())
      set(result, {same ? unsigned(2 * op.getMaxDistance()) : 0, true});
  }

private:
  /// The combiner gives the same bits if its two arguments change places.
  static bool isSymmetric(func::FuncOp combiner) {
    mlir::Block &body = combiner.getBody().front();
    const unsigned half = body.getNumArguments() / 2;
    auto argumentOf = [](Value value) -> std::optional<unsigned> { // through conversions
      while (Operation *op = value.getDefiningOp()) {
        if (op->getNumOperands() != 1 || op->getNumRegions() > 0)
          return std::nullopt;
        value = op->getOperand(0);
      }
      return cast<BlockArgument>(value).getArgNumber();
    };
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
      Operation *op = value.getDefiningOp();
      while (op && op->getNumOperands() == 1)
        op = op->getOperand(0).getDefiningOp();
      if (!op || op->getNumOperands() != 2 || !op->hasTrait<OpTrait::IsCommutative>())
        return false;
      std::optional<unsigned> lhs = argumentOf(op->getOperand(0)), rhs = argumentOf(op->getOperand(1));
      if (!lhs || !rhs || *lhs % half != i || *rhs % half != i || *lhs == *rhs)
        return false;
    }
    return true;
  }

  llvm::DenseMap<Value, Alike> known;
};

class Walker {
public:
  Walker(KernelAccesses &kernel, ModuleOp module, const KernelSpec &spec)
      : kernel(kernel), variables(kernel.variables), values(kernel), symbols(module), spec(spec) {}

  void run(func::FuncOp entry) {
    kernel.thread = position(variables.add(VariableKind::Thread, {0, int64_t(spec.block.count()) - 1}));
    kernel.block = position(variables.add(VariableKind::Block, {0, int64_t(spec.grid.count()) - 1}));
    for (BlockArgument argument : entry.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        tensors[argument] = addArgument(entry, argument);
    walk(entry.getBody().front());
    for (Value value : entry.getBody().front().getTerminator()->getOperands())
      if (auto found = tensors.find(value); found != tensors.end())
        kernel.returned.push_back(found->second);
    completeCopies(0);
    completeGroup(open);
  }

private:
  static unsigned position(AffineExpr variable) { return cast<AffineDimExpr>(variable).getPosition(); }
  void giveUp(const Twine &why) {
    if (kernel.unknown.empty())
      kernel.unknown = why.str();
  }
  void giveUpOrder(const Twine &why) {
    if (kernel.unknownOrder.empty())
      kernel.unknownOrder = why.str();
  }

  // --- buffers

  unsigned addBuffer(RankedTensorType type, StringRef name) {
    Buffer buffer;
    buffer.name = name.str();
    const auto order = minorToMajor(type);
    for (int64_t dimension : llvm::reverse(order)) {
      buffer.sizes.push_back(type.getDimSize(dimension));
      buffer.dimension.push_back(unsigned(dimension));
    }
    constexpr int64_t most = int64_t(1) << 50;
    int64_t left = most;
    for (int64_t size : type.getShape())
      left /= std::max<int64_t>(size, 1);
    if (left == 0 || !type.hasStaticShape())
      giveUp("a tensor of more elements than memory has");
    Type element = type.getElementType();
    if (auto complex = dyn_cast<ComplexType>(element))
      buffer.bits = 2 * complex.getElementType().getIntOrFloatBitWidth();
    else
      buffer.bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
    kernel.buffers.push_back(std::move(buffer));
    return unsigned(kernel.buffers.size() - 1);
  }

  static std::string nameOf(Value value, StringRef otherwise) {
    if (auto name = value.getLoc()->findInstanceOf<NameLoc>())
      return name.getName().str();
    return otherwise.str();
  }

  unsigned addArgument(func::FuncOp entry, BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    unsigned buffer =
        addBuffer(cast<RankedTensorType>(argument.getType()), nameOf(argument, "argument " + std::to_string(number)));
    kernel.buffers[buffer].argument = number;
    auto slice = entry.getArgAttrOfType<IntegerAttr>(number, attr::sliceIndex);
    if (slice) {
      auto [first, isNew] = bySlice.try_emplace(slice.getInt(), buffer);
      if (!isNew)
        kernel.buffers[buffer].sameAs = first->second;
    }
    return buffer;
  }

  unsigned bufferOf(Value tensor) {
    auto found = tensors.find(tensor);
    if (found != tensors.end())
      return found->second;
    Operation *op = tensor.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      return tensors[tensor] = addBuffer(cast<RankedTensorType>(tensor.getType()), "constant");
    giveUp("a tensor comes from an operation that is not known");
    return tensors[tensor] = addBuffer(cast<RankedTensorType>(tensor.getType()), "unknown");
  }

  // --- accesses

  void access(Operation *op, AccessKind kind, Value tensor, ValueRange indices, int64_t width,
              Value condition = nullptr) {
    unsigned named = bufferOf(tensor);
    const Buffer &buffer = kernel.buffers[named];
    Access access{kind, buffer.sameAs.value_or(named), named, {}, width, {}, rounds, phase, phase, op};
    access.constraints.assign(path.begin(), path.end());
    if (condition)
      values.assume(condition, true, access.constraints);
    for (unsigned dimension : buffer.dimension)
      access.indices.push_back(values.of(indices[dimension]));
    if (kind == AccessKind::Write && !isa<CopyAsyncOp>(op)) { // what is written is the first operand
      access.lanesAlike = alike.of(op->getOperand(0)).lanes;
      access.mayBeAlike = alike.of(op->getOperand(0)).shuffled;
    }
    if (kind != AccessKind::Read || isNewRead(access))
      kernel.accesses.push_back(std::move(access));
  }

  /// Reads of one place are many, by functions that are called again and again.
  bool isNewRead(const Access &access) {
    llvm::hash_code hash = llvm::hash_combine(access.named, access.width, access.firstPhase,
                                              llvm::hash_combine_range(access.indices.begin(), access.indices.end()));
    for (const Constraint &one : access.constraints)
      hash = llvm::hash_combine(hash, one.first, one.second.lower, one.second.upper);
    for (unsigned number : reads[hash]) {
      const Access &other = kernel.accesses[number];
      if (other.named == access.named && other.width == access.width && other.firstPhase == access.firstPhase &&
          other.indices == access.indices && other.constraints == access.constraints)
        return false;
    }
    reads[hash].push_back(unsigned(kernel.accesses.size()));
    return true;
  }

  void copyAsync(CopyAsyncOp op) {
    access(op, AccessKind::Read, op.getSource(), op.getIndices(), op.getSize(), op.getCondition());
    access(op, AccessKind::Write, op.getDest(), op.getAt(), op.getSize());
    open.push_back(unsigned(kernel.accesses.size() - 1));
  }
  void completeGroup(SmallVectorImpl<unsigned> &group) {
    for (unsigned number : group)
      kernel.accesses[number].lastPhase = phase;
    group.clear();
  }
  void completeCopies(size_t butLast) {
    while (committed.size() > butLast) {
      completeGroup(committed.front());
      committed.erase(committed.begin());
    }
  }

  void meeting(Operation *op, bool ofWarp) {
    kernel.meetings.push_back({ofWarp, SmallVector<Constraint, 4>(path), op});
  }

  // --- operations

  void walk(mlir::Block &block) {
    for (Operation &op : block) {
      if (++numWalked > mostOperations)
        giveUp("more operations than are looked at");
      if (!kernel.unknown.empty())
        return;
      walk(&op);
    }
  }

  void walk(Operation *op) {
    if (walkMemory(op) || walkTogether(op))
      return;
    if (auto loop = dyn_cast<LoopOp>(op))
      return walkLoop(loop);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return walkFor(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return walkIf(branch);
    if (auto call = dyn_cast<PureCallOp>(op))
      return walkCall(call);
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
      return walkId(id, id.getDimension(), kernel.thread);
    if (auto id = dyn_cast<gpu::BlockIdOp>(op))
      return walkId(id, id.getDimension(), kernel.block);
    if (op->getNumRegions() > 0)
      return giveUp("`" + op->getName().getStringRef() + "`, whose rounds depend on values");
    bool touches = llvm::any_of(op->getOperandTypes(), [](Type type) { return isa<RankedTensorType>(type); });
    if (touches && !op->hasTrait<OpTrait::IsTerminator>())
      return giveUp("`" + op->getName().getStringRef() + "` of a tensor");
    values.compute(op, path);
    alike.compute(op);
  }

  void walkId(Operation *op, gpu::Dimension dimension, unsigned variable) {
    if (dimension != gpu::Dimension::x)
      return giveUp("blocks or threads along y or z");
    values.set(op->getResult(0), getAffineDimExpr(variable, variables.context));
    if (auto bounds = op->getAttrOfType<ArrayAttr>(attr::range)) {
      Interval claimed = {cast<IntegerAttr>(bounds[0]).getInt(), cast<IntegerAttr>(bounds[1]).getInt()};
      if (!claimed.contains(variables[variable].bounds))
        kernel.claims.push_back({values.of(op->getResult(0)), claimed, {}, op});
    }
  }

  bool walkMemory(Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      access(op, AccessKind::Read, extract.getTensor(), extract.getIndices(), 1);
      loaded(op, extract.getTensor(), extract.getIndices());
    } else if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      access(op, AccessKind::Write, insert.getDest(), insert.getIndices(), 1);
      tensors[insert.getResult()] = bufferOf(insert.getDest());
    } else if (auto extract = dyn_cast<PredicatedExtractOp>(op)) {
      access(op, AccessKind::Read, extract.getSource(), extract.getIndices(), 1, extract.getCondition());
      values.forget(extract.getResult());
    } else if (auto insert = dyn_cast<PredicatedInsertOp>(op)) {
      access(op, AccessKind::Write, insert.getDest(), insert.getIndices(), 1, insert.getCondition());
      tensors[insert.getResult()] = bufferOf(insert.getDest());
    } else if (auto read = dyn_cast<vector::TransferReadOp>(op)) {
      return walkTransfer(op, AccessKind::Read, read.getBase(), read.getIndices(), read.getVectorType());
    } else if (auto write = dyn_cast<vector::TransferWriteOp>(op)) {
      walkTransfer(op, AccessKind::Write, write.getBase(), write.getIndices(), write.getVectorType());
      tensors[write.getResult()] = bufferOf(write.getBase());
    } else if (auto load = dyn_cast<LoadFragmentsOp>(op)) {
      auto type = cast<RankedTensorType>(load.getSource().getType());
      access(op, AccessKind::Read, load.getSource(), load.getIndex(), 128 / type.getElementTypeBitWidth());
      meeting(op, true);
    } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      copyAsync(copy);
      tensors[copy.getResult()] = bufferOf(copy.getDest());
    } else if (auto update = dyn_cast<AtomicRmwOp>(op)) {
      auto vector = dyn_cast<VectorType>(update.current().getType());
      access(op, AccessKind::Atomic, update.getInput(), update.getIndices(), vector ? vector.getNumElements() : 1);
      tensors[update.getResult()] = bufferOf(update.getInput());
    } else if (isa<AllocateSharedOp>(op)) {
      unsigned buffer =
          addBuffer(cast<RankedTensorType>(op->getResult(0).getType()), "shared " + std::to_string(++numShared));
      kernel.buffers[buffer].shared = true;
      tensors[op->getResult(0)] = buffer;
    } else {
      return false;
    }
    return true;
  }

  /// What memory has is the same for all threads where the index is, if nobody writes there.
  void loaded(Operation *op, Value tensor, ValueRange indices) {
    Value result = op->getResult(0);
    values.forget(result);
    if (!Values::isInteger(result.getType()))
      return;
    const Buffer &buffer = kernel.buffers[bufferOf(tensor)];
    bool invariant = buffer.argument && *buffer.argument < spec.parameters.size() &&
                     !spec.parameters[*buffer.argument].written && !buffer.sameAs;
    auto all = [&](auto isSo) {
      return invariant && llvm::all_of(indices, [&](Value index) { return isSo(values.of(index)); });
    };
    values.set(result, variables.add(VariableKind::Data, Values::typeRange(result.getType()),
                                     all([&](AffineExpr index) { return variables.isUniform(index); }),
                                     all([&](AffineExpr index) { return variables.isEverywhere(index); })));
  }

  bool walkTransfer(Operation *op, AccessKind kind, Value tensor, ValueRange indices, VectorType vector) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || vector.getRank() != 1 || minorToMajor(type).front() != type.getRank() - 1)
      giveUp("a vector of a tensor whose last dimension is not minor");
    else
      access(op, kind, tensor, indices, vector.getNumElements());
    return true;
  }

  bool walkTogether(Operation *op) {
    if (isa<SyncThreadsOp>(op)) {
      meeting(op, false);
      ++phase;
    } else if (auto await = dyn_cast<AwaitCopiesOp>(op)) {
      completeCopies(await.getOpen());
    } else if (isa<CommitCopiesOp>(op)) {
      committed.emplace_back(open);
      open.clear();
    } else {
      if (isa<ShuffleReduceOp, MultiplyFragmentsOp>(op)) {
        meeting(op, true);
        for (Value result : op->getResults())
          values.forget(result);
        if (auto shuffle = dyn_cast<ShuffleReduceOp>(op))
          alike.shuffle(shuffle, symbols.lookup<func::FuncOp>(shuffle.getCombiner()));
        return true;
      }
      return false;
    }
    for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults()))
      tensors[result] = bufferOf(operand);
    return true;
  }

  /// A call that was walked: what it was given, and under which conditions.
  struct KnownCall {
    SmallVector<std::pair<const void *, unsigned>> arguments;
    unsigned phase;
    SmallVector<Constraint, 4> path;
    SmallVector<AffineExpr> results; ///< of integers; of others none
    SmallVector<AlikeLanes::Alike> alike;
  };

  /// What an argument is, as far as a function's accesses and results depend on it.
  std::pair<const void *, unsigned> identityOf(Value value) {
    if (isa<RankedTensorType>(value.getType()))
      return {nullptr, bufferOf(value)};
    const AlikeLanes::Alike own = alike.of(value);
    const void *expression = Values::isInteger(value.getType()) ? values.of(value).getAsOpaquePointer() : nullptr;
    return {expression, 2 * own.lanes + own.shuffled};
  }

  /// Functions are called with the same arguments again and again: where the conditions on the way here include those
  /// of a call before, there is nothing new in it.
  const KnownCall *knownCall(PureCallOp call, const KnownCall &asked) const {
    auto found = calls.find(call.getCalleeAttr());
    if (found == calls.end())
      return nullptr;
    for (const KnownCall &known : found->second)
      if (known.phase == asked.phase && known.arguments == asked.arguments &&
          llvm::all_of(known.path, [&](const Constraint &one) { return llvm::is_contained(asked.path, one); }))
        return &known;
    return nullptr;
  }

  void walkCall(PureCallOp call) {
    auto function = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!function || function.isExternal() || ++depth > 200)
      return giveUp("a function that is not there");
    KnownCall own{{}, phase, SmallVector<Constraint, 4>(path), {}, {}};
    for (Value operand : call.getOperands())
      own.arguments.push_back(identityOf(operand));
    if (const KnownCall *known = knownCall(call, own)) {
      for (auto [result, expression, lanes] : llvm::zip_equal(call.getResults(), known->results, known->alike)) {
        if (expression)
          values.set(result, expression);
        alike.set(result, lanes);
      }
      --depth;
      return;
    }
    for (auto [argument, operand] : llvm::zip_equal(function.getArguments(), call.getOperands())) {
      bind(argument, operand);
      if (auto bounds = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), attr::range)) {
        Interval claimed = {cast<IntegerAttr>(bounds[0]).getInt(), cast<IntegerAttr>(bounds[1]).getInt()};
        if (!claimed.contains(variables.range(values.of(argument))))
          kernel.claims.push_back({values.of(argument), claimed, path, call});
      }
    }
    walk(function.getBody().front());
    if (!kernel.unknown.empty())
      return;
    for (auto [result, value] :
         llvm::zip_equal(call.getResults(), function.getBody().front().getTerminator()->getOperands())) {
      bind(result, value);
      own.results.push_back(Values::isInteger(result.getType()) ? values.of(result) : AffineExpr());
      own.alike.push_back(alike.of(result));
    }
    if (llvm::none_of(call.getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); }))
      calls[call.getCalleeAttr()].push_back(std::move(own));
    --depth;
  }

  /// `to` is `from`, under another name.
  void bind(Value to, Value from) {
    if (isa<RankedTensorType>(to.getType()))
      tensors[to] = bufferOf(from);
    else if (Values::isInteger(to.getType()))
      values.set(to, values.of(from));
    if (!isa<RankedTensorType>(to.getType()))
      alike.set(to, alike.of(from));
  }

  void walkIf(scf::IfOp branch) {
    const size_t before = path.size();
    const unsigned begin = phase;
    values.assume(branch.getCondition(), true, path);
    walk(*branch.thenBlock());
    path.resize(before);
    const unsigned afterThen = phase;
    phase = begin;
    if (branch.elseBlock()) {
      values.assume(branch.getCondition(), false, path);
      walk(*branch.elseBlock());
      path.resize(before);
    }
    if (phase != afterThen)
      giveUpOrder("a barrier in one of two branches");
    phase = std::max(phase, afterThen);
    if (!kernel.unknown.empty())
      return;
    for (OpResult result : branch->getResults()) {
      Value first = branch.thenYield()->getOperand(result.getResultNumber());
      Value second = branch.elseYield()->getOperand(result.getResultNumber());
      if (isa<RankedTensorType>(result.getType())) {
        tensors[result] = bufferOf(first);
        if (bufferOf(first) != bufferOf(second))
          giveUp("a tensor that is one of two");
      } else if (Values::isInteger(result.getType())) {
        values.set(result, variables.function(FunctionKind::Select,
                                              {values.of(branch.getCondition()), values.of(first), values.of(second)}));
      }
    }
  }

  // --- loops

  /// What a loop carries, as it is in any round: integers within what the code claims, which has to be true then.
  void bindCarried(ValueRange inside, ValueRange inits, ValueRange yielded, bool together) {
    for (auto [argument, init, next] : llvm::zip_equal(inside, inits, yielded)) {
      if (!Values::isInteger(argument.getType())) {
        bind(argument, init);
        alike.set(argument, {0, true});
        continue;
      }
      Interval bounds = Values::typeRange(argument.getType());
      if (std::optional<Interval> claimed = rangeOf(next); claimed && argument.getType().isIndex())
        bounds = claimed->unite(variables.range(values.of(init)));
      // Sums of values of memory are not; counters are `index`.
      bool uniform = together && argument.getType().isIndex() && variables.isUniform(values.of(init));
      values.set(argument, variables.add(uniform ? VariableKind::State : VariableKind::Data, bounds, uniform));
    }
  }
  void checkCarried(ValueRange inside, ValueRange yielded, Operation *op) {
    for (auto [argument, next] : llvm::zip_equal(inside, yielded)) {
      if (!Values::isInteger(argument.getType()))
        continue;
      Interval bounds = variables.range(values.of(argument));
      if (!bounds.contains(variables.range(values.of(next))))
        kernel.claims.push_back({values.of(next), bounds, path, op});
      if (variables.isUniform(values.of(argument)) && !variables.isUniform(values.of(next)))
        giveUp("what a loop carries is not the same for all threads");
    }
  }
  void bindResults(ValueRange results, ValueRange inits, ValueRange yielded) {
    for (auto [result, init, next] : llvm::zip_equal(results, inits, yielded)) {
      if (isa<RankedTensorType>(result.getType()))
        tensors[result] = bufferOf(init);
      else if (Values::isInteger(result.getType()))
        values.set(result, variables.add(VariableKind::Data,
                                         variables.range(values.of(init)).unite(variables.range(values.of(next)))));
    }
  }

  /// The same each time that the loop is walked: so what happens again is seen to be the same.
  AffineExpr roundOf(Operation *loop, unsigned number, Interval bounds) {
    AffineExpr &round = roundVariables[{loop, number}];
    if (!round || variables[position(round)].bounds != bounds)
      round = variables.add(VariableKind::Round, bounds);
    return round;
  }

  SmallVector<AffineExpr> dimsOf(LoopOp loop) {
    SmallVector<AffineExpr> dims;
    for (auto [operand, variable] : llvm::zip_equal(loop.getDims(), loop.indexingMap().dims())) {
      dims.push_back(values.of(operand));
      values.addConstraint(dims.back(), variable.bounds, path);
    }
    return dims;
  }

  /// The body once, with these values of range variables.
  void walkRound(LoopOp loop, ArrayRef<AffineExpr> dims, ArrayRef<AffineExpr> ranges) {
    const IndexingMap &map = loop.indexingMap();
    const size_t before = path.size();
    for (const Constraint &constraint : map.constraints())
      values.addConstraint(constraint.first.replaceDimsAndSymbols(dims, ranges), constraint.second, path);
    for (auto [argument, range] : llvm::zip_equal(loop.rangeArguments(), ranges))
      values.set(argument, range);
    for (auto [argument, result] : llvm::zip_equal(loop.mapResultArguments(), map.affine().getResults()))
      values.set(argument, result.replaceDimsAndSymbols(dims, ranges));
    walk(*loop.getBody());
    path.resize(before);
  }

  void walkLoop(LoopOp loop) {
    const IndexingMap &map = loop.indexingMap();
    const size_t before = path.size(), roundsBefore = rounds.size();
    if (map.isKnownEmpty())
      return bindResults(loop.getResults(), loop.getInits(), loop.getInits());
    SmallVector<AffineExpr> dims = dimsOf(loop);
    if (hasBarrier(loop)) {
      walkTogether(loop, dims, path.size() > before);
    } else {
      bindCarried(loop.iterArguments(), loop.getInits(), loop.yielded(), false);
      SmallVector<AffineExpr> ranges;
      for (auto [i, variable] : llvm::enumerate(map.ranges())) {
        ranges.push_back(roundOf(loop, unsigned(i), variable.bounds));
        rounds.push_back(position(ranges.back()));
      }
      walkRound(loop, dims, ranges);
      if (kernel.unknown.empty())
        checkCarried(loop.iterArguments(), loop.yielded(), loop);
    }
    rounds.resize(roundsBefore);
    path.resize(before);
    if (kernel.unknown.empty())
      bindResults(loop.getResults(), loop.getInits(), loop.yielded());
  }

  /// All threads of a block are in the same round, or in one and the next.
  void walkTogether(LoopOp loop, ArrayRef<AffineExpr> dims, bool guarded) {
    const IndexingMap &map = loop.indexingMap();
    const int64_t inARow = roundsInARow(loop);
    if (guarded || !map.constraints().empty())
      giveUpOrder("a loop with barriers, of which rounds may be left out");
    int64_t trips = 1;
    for (const IndexingVariable &variable : map.ranges())
      trips = std::min<int64_t>(trips * std::min<int64_t>(variable.bounds.size(), 1 << 20), 1 << 20);
    auto next = [&] { // what is handed on may be another argument
      SmallVector<AffineExpr> handed;
      for (Value value : loop.yielded())
        handed.push_back(Values::isInteger(value.getType()) ? values.of(value) : AffineExpr());
      for (auto [argument, value, expression] : llvm::zip_equal(loop.iterArguments(), loop.yielded(), handed))
        if (expression)
          values.set(argument, expression);
        else
          bind(argument, value);
    };
    for (auto [argument, init] : llvm::zip_equal(loop.iterArguments(), loop.getInits()))
      bind(argument, init);
    for (int64_t round = 0; round < std::min(trips, inARow) && kernel.unknown.empty(); ++round) {
      SmallVector<AffineExpr> ranges(map.ranges().size());
      int64_t rest = round;
      for (size_t i = map.ranges().size(); i-- > 0;) {
        const Interval &bounds = map.ranges()[i].bounds;
        ranges[i] = variables.constant(bounds.lower + rest % bounds.size());
        rest /= bounds.size();
      }
      walkRound(loop, dims, ranges);
      if (kernel.unknown.empty())
        next();
    }
    if (trips <= inARow || !kernel.unknown.empty())
      return;
    // From any round on. Nothing of what comes before is in the same phase.
    completeCopies(0);
    completeGroup(open);
    ++phase;
    bindCarried(loop.iterArguments(), loop.getInits(), loop.yielded(), true);
    SmallVector<Value> first(loop.iterArguments());
    AffineExpr round;
    if (map.ranges().size() == 1)
      round =
          variables.add(VariableKind::State, {map.ranges()[0].bounds.lower, map.ranges()[0].bounds.upper - inARow + 1});
    const size_t firstAccess = kernel.accesses.size();
    size_t secondAccess = firstAccess;
    for (int64_t i = 0; i < inARow && kernel.unknown.empty(); ++i) {
      const unsigned begin = phase;
      SmallVector<AffineExpr> ranges;
      for (const IndexingVariable &variable : map.ranges())
        ranges.push_back(round ? round + i : variables.add(VariableKind::State, variable.bounds));
      walkRound(loop, dims, ranges);
      if (!kernel.unknown.empty())
        return;
      if (phase == begin)
        giveUpOrder("a round of a loop with no barrier");
      if (i == 0) {
        checkCarried(loop.iterArguments(), loop.yielded(), loop);
        secondAccess = kernel.accesses.size();
      }
      next();
    }
    auto isOfFirst = [&](unsigned access) { return firstAccess <= access && access < secondAccess; };
    if (llvm::any_of(open, isOfFirst) ||
        llvm::any_of(committed, [&](const SmallVector<unsigned> &group) { return llvm::any_of(group, isOfFirst); }))
      giveUpOrder("copies are in flight for longer than others are awaited");
  }

  void walkFor(scf::ForOp loop) {
    if (hasBarrier(loop))
      return giveUp("a loop with barriers between bounds that depend on values");
    AffineExpr lower = values.of(loop.getLowerBound()), upper = values.of(loop.getUpperBound());
    auto step = dyn_cast<AffineConstantExpr>(values.of(loop.getStep()));
    if (!step || step.getValue() <= 0)
      return giveUp("a loop with an unknown step");
    const size_t before = path.size();
    Interval from = variables.range(lower), to = variables.range(upper);
    int64_t trips = to.upper > from.lower ? (to.upper - from.lower - 1) / step.getValue() + 1 : 0;
    if (trips <= 0)
      return bindResults(loop.getResults(), loop.getInitArgs(), loop.getInitArgs());
    AffineExpr round = roundOf(loop, 0, {0, trips - 1});
    AffineExpr index = lower + round * step.getValue();
    values.addConstraint(index - upper, {std::numeric_limits<int64_t>::min() / 4, -1}, path);
    rounds.push_back(position(round));
    values.set(loop.getInductionVar(), index);
    bindCarried(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues(), false);
    walk(*loop.getBody());
    if (kernel.unknown.empty()) {
      checkCarried(loop.getRegionIterArgs(), loop.getYieldedValues(), loop);
      bindResults(loop.getResults(), loop.getInitArgs(), loop.getYieldedValues());
    }
    rounds.pop_back();
    path.resize(before);
  }

  KernelAccesses &kernel;
  Variables &variables;
  Values values;
  AlikeLanes alike;
  SymbolTable symbols;
  const KernelSpec &spec;
  llvm::DenseMap<Value, unsigned> tensors;
  llvm::DenseMap<int64_t, unsigned> bySlice;
  llvm::DenseMap<size_t, SmallVector<unsigned, 1>> reads;
  llvm::DenseMap<Attribute, std::vector<KnownCall>> calls; ///< by function
  llvm::DenseMap<std::pair<Operation *, unsigned>, AffineExpr> roundVariables;
  SmallVector<Constraint, 4> path;
  SmallVector<unsigned, 4> rounds;
  std::vector<SmallVector<unsigned>> committed; ///< groups of copies, by access
  SmallVector<unsigned> open;
  unsigned phase = 0, numShared = 0, depth = 0;
  size_t numWalked = 0;
};

} // namespace

KernelAccesses accessesOf(ModuleOp module, const KernelSpec &spec) {
  KernelAccesses kernel(module.getContext());
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attr::entry)) {
      Walker(kernel, module, spec).run(function);
      return kernel;
    }
  kernel.unknown = "no entry";
  return kernel;
}

} // namespace hloc::prove
