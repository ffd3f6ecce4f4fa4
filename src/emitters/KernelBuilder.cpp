#include "emitters/KernelBuilder.h"

#include "emitters/ElementStorage.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/support/Check.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace hloc {
namespace {

/// Launchers align buffers as the plan says (KernelParameter::alignment).
DictionaryAttr bufferAttributes(OpBuilder &b, const Shape &shape, unsigned slice, bool readOnly, uint32_t alignment) {
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr("llvm.align", b.getI32IntegerAttr(int32_t(alignment))),
      b.getNamedAttr(xla_gpu::attr::sliceIndex, b.getIndexAttr(slice)),
  };
  if (shape.byteSize() > 0)
    attributes.push_back(b.getNamedAttr("llvm.dereferenceable", b.getI64IntegerAttr(shape.byteSize())));
  if (readOnly)
    attributes.push_back(b.getNamedAttr(xla_gpu::attr::invariant, b.getUnitAttr()));
  return b.getDictionaryAttr(attributes);
}

mlir::Attribute dimAttribute(OpBuilder &b, Dim3 dim) {
  return b.getDenseI32ArrayAttr({int32_t(std::max(dim.x, 1u)), int32_t(dim.y), int32_t(dim.z)});
}

} // namespace

KernelBuilder::KernelBuilder(const FusionGraph &graph, const KernelPlan &plan, llvm::StringRef name,
                             MLIRContext *context, DiagnosticEngine &diagnostics)
    : fusion(graph), plan(plan), diagnostics(diagnostics),
      module(ModuleOp::create(locationOf(*graph.computation().root(), context))),
      b(locationOf(*graph.computation().root(), context), context) {
  makeEntry(name);
  makeIds();
}

void KernelBuilder::makeEntry(llvm::StringRef name) {
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> arguments, results;
  SmallVector<mlir::Attribute> attributes;
  auto add = [&](const Shape &shape) {
    // Arguments that are the same memory have the same slice index; only what nobody writes may be loaded as invariant.
    unsigned number = arguments.size();
    const KernelBuffer &buffer = plan.buffers[number];
    attributes.push_back(
        bufferAttributes(b, shape, buffer.sameAs.value_or(number), !buffer.written, plan.bufferAlignment));
    arguments.push_back(tensorType(shape, b.getContext()));
  };
  for (const HloInstruction *parameter : fusion.parameters())
    add(parameter->shape());
  for (const FusionRoot &root : fusion.roots()) {
    add(root.shape);
    results.push_back(arguments.back());
  }
  for (const Shape &shape : plan.scratch) {
    bool written = plan.buffers[arguments.size()].written;
    add(shape);
    if (written)
      results.push_back(arguments.back());
  }
  const auto numBuffers = arguments.size();
  numTensorMaps = unsigned(tensorMapsOf(plan.plan).size());
  for (unsigned i = 0; i < numTensorMaps; ++i) {
    attributes.push_back(
        b.getDictionaryAttr({b.getNamedAttr(xla_gpu::attr::sliceIndex, b.getIndexAttr(int64_t(arguments.size()))),
                             b.getNamedAttr(xla_gpu::attr::invariant, b.getUnitAttr()),
                             b.getNamedAttr(xla_gpu::attr::tensorMap, b.getUnitAttr())}));
    arguments.push_back(RankedTensorType::get({xla_gpu::bytesOfTensorMap}, b.getI8Type()));
  }
  entry = func::FuncOp::create(b, name, b.getFunctionType(arguments, results));
  entry.setAllArgAttrs(attributes);
  entry->setAttr(xla_gpu::attr::entry, b.getUnitAttr());
  entry->setAttr(xla_gpu::attr::block, dimAttribute(b, plan.launch.block));
  entry->setAttr(xla_gpu::attr::grid, dimAttribute(b, plan.launch.grid));
  entry->setAttr(xla_gpu::attr::registers, b.getI32IntegerAttr(int32_t(plan.plannedRegisters())));
  if (plan.launch.isSharedDynamic())
    entry->setAttr(xla_gpu::attr::dynamicShared, b.getI32IntegerAttr(int32_t(plan.launch.sharedBytes)));
  b.setInsertionPointToEnd(entry.addEntryBlock());
  // Dumps name values after the locations they have.
  for (auto [instr, argument] : llvm::zip(fusion.parameters(), entry.getArguments()))
    argument.setLoc(locationOf(*instr, b.getContext()));
  ValueRange buffers = ValueRange(entry.getArguments()).take_front(numBuffers).drop_front(fusion.parameters().size());
  ValueRange outputs = buffers.take_front(fusion.roots().size()), scratch = buffers.drop_front(outputs.size());
  outputValues.assign(outputs.begin(), outputs.end());
  scratchValues.assign(scratch.begin(), scratch.end());
}

void KernelBuilder::makeIds() {
  const Dim3 &grid = plan.launch.grid, &block = plan.launch.block;
  auto add = [&](Value id, uint32_t count, const char *name) {
    addVariable(id, {Interval{0, int64_t(std::max(count, 1u)) - 1}, name});
  };
  add(gpu::ThreadIdOp::create(b, gpu::Dimension::x), block.x, "th_x");
  add(gpu::BlockIdOp::create(b, gpu::Dimension::x), grid.x, "bl_x");
  if (grid.y > 1)
    add(gpu::BlockIdOp::create(b, gpu::Dimension::y), grid.y, "bl_y");
}

AffineExpr KernelBuilder::addVariable(Value value, IndexingVariable variable) {
  value.setLoc(NameLoc::get(b.getStringAttr(variable.name), cast<NameLoc>(b.getLoc()).getChildLoc()));
  value.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), variable.bounds));
  idValues.push_back(value);
  idBounds.push_back(std::move(variable));
  return getAffineDimExpr(unsigned(idBounds.size()) - 1, context());
}

AffineExpr KernelBuilder::thread() const { return getAffineDimExpr(0, context()); }

void KernelBuilder::asBlock(Value value, int64_t count, llvm::function_ref<void()> make) {
  HLOC_CHECK(plan.launch.grid.y == 1, "blocks in several rows have no single number");
  const Value before = std::exchange(idValues[1], value);
  const Interval bounds = std::exchange(idBounds[1].bounds, Interval{0, count - 1});
  make();
  idValues[1] = before;
  idBounds[1].bounds = bounds;
}

AffineExpr KernelBuilder::block() const {
  AffineExpr number = getAffineDimExpr(1, context());
  if (plan.launch.grid.y > 1)
    number = number + getAffineDimExpr(2, context()) * int64_t(plan.launch.grid.x);
  return number;
}

IndexingMap KernelBuilder::mapOf(ArrayRef<AffineExpr> results, ArrayRef<int64_t> loopSizes) const {
  SmallVector<IndexingVariable> ranges;
  for (int64_t size : loopSizes)
    ranges.push_back({Interval{0, size - 1}, {}});
  return IndexingMap(AffineMap::get(idBounds.size(), ranges.size(), results, context()), idBounds, ranges, {});
}

AffineExpr KernelBuilder::firstPosition(int64_t perThread) const {
  return thread() * perThread + block() * (int64_t(launch().block.x) * perThread);
}

IndexingMap KernelBuilder::mapOfGroups(const Shape &shape, int64_t perThread, int64_t elements) const {
  AffineExpr first = firstPosition(perThread), position = first;
  SmallVector<int64_t, 1> loopSizes;
  if (perThread != 1) {
    position = first + getAffineSymbolExpr(0, context());
    loopSizes.push_back(perThread);
  }
  IndexingMap map = mapOf(memoryOrderIndices(shape, position), loopSizes);
  map.addConstraint(first, Interval{0, elements - perThread});
  map.simplify();
  return map;
}

SmallVector<Value> KernelBuilder::loop(const IndexingMap &map, ValueRange carried, LoopBody body) {
  return loop(map, idValues, carried, body);
}

SmallVector<Value> KernelBuilder::loop(const IndexingMap &map, ValueRange dims, ValueRange carried, LoopBody body) {
  auto op = xla_gpu::LoopOp::create(
      b, map, dims, carried,
      [&](OpBuilder &inner, Location, ValueRange variables, ValueRange indices, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        SmallVector<Value> next = body(variables, indices, state);
        xla_gpu::YieldOp::create(b, next);
      });
  return SmallVector<Value>(op.getResults());
}

func::FuncOp KernelBuilder::declare(const Subgraph &subgraph) {
  MLIRContext *context = b.getContext();
  SmallVector<Type> arguments, results;
  for (const HloInstruction *parameter : fusion.parameters())
    arguments.push_back(tensorType(parameter->shape(), context));
  unsigned firstIndex = arguments.size();
  arguments.append(subgraph.indexSizes.size(), b.getIndexType());
  for (const InjectedValue &value : subgraph.injected)
    arguments.push_back(storageType(value.shape().elementType(), context));
  for (const FunctionRoot &root : subgraph.roots) {
    const Shape &shape = root.instr->shape();
    results.push_back(storageType((shape.isTuple() ? shape.element(root.result) : shape).elementType(), context));
  }
  auto function = func::FuncOp::create(locationOf(*subgraph.roots.front().instr, context), subgraph.name,
                                       b.getFunctionType(arguments, results));
  function.setPrivate();
  for (auto [i, size] : llvm::enumerate(subgraph.indexSizes))
    if (size > 0)
      function.setArgAttr(firstIndex + i, xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, size - 1}));
  if (subgraph.onlyMoves)
    function->setAttr(xla_gpu::attr::noCompute, b.getUnitAttr());
  return function;
}

llvm::FailureOr<std::vector<func::FuncOp>> KernelBuilder::emitFunctions(ArrayRef<FunctionRequest> requests) {
  PartitionedComputation partition(fusion, requests, b.getContext());
  FusionCode code{fusion, partition, {}, {}, diagnostics};
  code.useCounts.assign(fusion.computation().instructions().size(), 0);
  for (const HloInstruction *instr : fusion.instructions())
    for (const HloInstruction *operand : instr->operands())
      ++code.useCounts[operand->id()];
  SymbolTable symbols(*module);
  for (const Subgraph &subgraph : partition.subgraphs()) {
    code.functions.push_back(declare(subgraph));
    symbols.insert(code.functions.back()); // under another name where it has the kernel's
  }
  bool good = true;
  for (auto [subgraph, function] : llvm::zip_equal(partition.subgraphs(), code.functions))
    good &= succeeded(FunctionEmitter(code, subgraph, function).emitBody());
  if (!good)
    return failure();
  code.functions.resize(requests.size());
  return code.functions;
}

ValueRange KernelBuilder::call(func::FuncOp function, ValueRange indices, ValueRange injected) {
  SmallVector<Value> arguments(entry.getArguments().take_front(fusion.parameters().size()));
  llvm::append_range(arguments, indices);
  llvm::append_range(arguments, injected);
  return xla_gpu::PureCallOp::create(b, function, arguments).getResults();
}

llvm::FailureOr<SmallVector<Value, 1>> KernelBuilder::applyScalars(const HloComputation &computation,
                                                                   ValueRange arguments) {
  Location loc = b.getLoc();
  auto results = emitScalarComputation(computation, arguments, b, diagnostics);
  b.setLoc(loc);
  return results;
}

OwningOpRef<ModuleOp> KernelBuilder::finish() {
  SmallVector<Value> written(outputValues.begin(), outputValues.end());
  for (auto [i, value] : llvm::enumerate(scratchValues))
    if (plan.buffers[plan.buffers.size() - scratchValues.size() + i].written)
      written.push_back(value);
  func::ReturnOp::create(b, written);
  return std::move(module);
}

} // namespace hloc
