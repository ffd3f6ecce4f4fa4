#include "emitters/KernelBuilder.h"

#include "emitters/ElementStorage.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/hlo/HloModule.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace hloc {
namespace {

/// Global buffers are aligned to this by every launcher (KernelParameter::alignment).
constexpr int32_t bufferAlignment = 16;

DictionaryAttr bufferAttributes(OpBuilder &b, const Shape &shape, unsigned slice, bool readOnly) {
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr("llvm.align", b.getI32IntegerAttr(bufferAlignment)),
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

KernelBuilder::KernelBuilder(const FusionGraph &graph, llvm::StringRef name, Dim3 grid, Dim3 block,
                             MLIRContext *context, DiagnosticEngine &diagnostics)
    : fusion(graph), diagnostics(diagnostics),
      module(ModuleOp::create(locationOf(*graph.computation().root(), context))),
      b(locationOf(*graph.computation().root(), context), context) {
  makeEntry(name, grid, block);
  makeIds(grid, block);
}

void KernelBuilder::makeEntry(llvm::StringRef name, Dim3 grid, Dim3 block) {
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> arguments, results;
  SmallVector<mlir::Attribute> attributes;
  for (const HloInstruction *parameter : fusion.parameters()) {
    attributes.push_back(bufferAttributes(b, parameter->shape(), arguments.size(), true));
    arguments.push_back(tensorType(parameter->shape(), b.getContext()));
  }
  for (const FusionRoot &root : fusion.roots()) {
    attributes.push_back(bufferAttributes(b, root.shape, arguments.size(), false));
    arguments.push_back(tensorType(root.shape, b.getContext()));
    results.push_back(arguments.back());
  }
  entry = func::FuncOp::create(b, name, b.getFunctionType(arguments, results));
  entry.setAllArgAttrs(attributes);
  entry->setAttr(xla_gpu::attr::entry, b.getUnitAttr());
  entry->setAttr(xla_gpu::attr::block, dimAttribute(b, block));
  entry->setAttr(xla_gpu::attr::grid, dimAttribute(b, grid));
  b.setInsertionPointToEnd(entry.addEntryBlock());
  ValueRange outputs = entry.getArguments().drop_front(fusion.parameters().size());
  outputValues.assign(outputs.begin(), outputs.end());
}

void KernelBuilder::makeIds(Dim3 grid, Dim3 block) {
  auto add = [&](Value id, uint32_t count, const char *name) {
    Interval range{0, int64_t(std::max(count, 1u)) - 1};
    id.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), range));
    idValues.push_back(id);
    idBounds.push_back({range, name});
  };
  add(gpu::ThreadIdOp::create(b, gpu::Dimension::x), block.x, "th_x");
  add(gpu::BlockIdOp::create(b, gpu::Dimension::x), grid.x, "bl_x");
  if (grid.y > 1)
    add(gpu::BlockIdOp::create(b, gpu::Dimension::y), grid.y, "bl_y");
}

func::FuncOp KernelBuilder::declare(const Subgraph &subgraph) {
  MLIRContext *context = b.getContext();
  SmallVector<Type> arguments, results;
  for (const HloInstruction *parameter : fusion.parameters())
    arguments.push_back(tensorType(parameter->shape(), context));
  unsigned firstIndex = arguments.size();
  arguments.append(subgraph.indexSizes.size(), b.getIndexType());
  for (const HloInstruction *instr : subgraph.injected)
    arguments.push_back(storageType(instr->shape().elementType(), context));
  for (const FunctionRoot &root : subgraph.roots) {
    const Shape &shape = root.instr->shape();
    results.push_back(storageType((shape.isTuple() ? shape.element(root.result) : shape).elementType(), context));
  }
  OpBuilder outside = OpBuilder::atBlockEnd(module->getBody());
  auto function = func::FuncOp::create(outside, locationOf(*subgraph.roots.front().instr, context), subgraph.name,
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
  for (const Subgraph &subgraph : partition.subgraphs())
    code.functions.push_back(declare(subgraph));
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

OwningOpRef<ModuleOp> KernelBuilder::finish() {
  func::ReturnOp::create(b, outputValues);
  return std::move(module);
}

} // namespace hloc
