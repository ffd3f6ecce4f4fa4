#include "emitters/heroes/StagedCode.h"

#include "hloc/fusion/HloIndexing.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

SmallVector<InjectedValue> StagedCode::heldFrom(size_t stage) const {
  SmallVector<InjectedValue> values;
  for (const HeldParameter &held : reductions.held)
    if (holds && held.firstStage == stage)
      values.emplace_back(kernel.graph().parameters()[held.parameter]);
  return values;
}

llvm::LogicalResult StagedCode::emitFunctions() {
  std::vector<FunctionRequest> requests;
  SmallVector<InjectedValue> results, held;
  auto known = [&] { return llvm::to_vector(llvm::concat<InjectedValue>(results, held)); };
  for (auto [stage, frame] : llvm::enumerate(reductions.stages)) {
    llvm::append_range(held, heldFrom(stage));
    ReductionCode &code = stageCodes.emplace_back(frame, ReductionStage::Whole, kernel);
    code.readsResults(known());
    llvm::append_range(requests, code.requests());
    for (const Accumulator &accumulator : frame.accumulators)
      results.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
  }
  llvm::append_range(held, heldFrom(stageCodes.size()));
  size_t ofStages = requests.size();
  if (!reductions.roots.empty())
    requests.push_back(requestOf(reductions.roots, elementSpace(), known()));
  if (!reductions.resultRoots.empty())
    requests.push_back(requestOf(reductions.resultRoots, resultSpace(), results));
  if (reductions.columns) {
    columnCode.emplace(*reductions.columns, ReductionStage::Partial, kernel);
    columnCode->readsResults(known());
    llvm::append_range(requests, columnCode->requests());
  }
  for (size_t stage = 0; stage <= stageCodes.size(); ++stage)
    if (SmallVector<InjectedValue> values = heldFrom(stage); !values.empty())
      requests.push_back(requestToLoad(values));
  auto functions = kernel.emitFunctions(requests);
  if (failed(functions))
    return failure();
  setFunctions(*functions, ofStages / stageCodes.size());
  return success();
}

void StagedCode::setFunctions(ArrayRef<func::FuncOp> functions, size_t ofStage) {
  for (ReductionCode &code : stageCodes) {
    code.setFunctions(functions.take_front(ofStage));
    functions = functions.drop_front(ofStage);
  }
  if (!reductions.roots.empty())
    elementFunction = functions.consume_front();
  if (!reductions.resultRoots.empty())
    resultFunction = functions.consume_front();
  if (columnCode)
    columnCode->setFunctions(functions.consume_front());
  for (size_t stage = 0; stage <= stageCodes.size(); ++stage)
    loads.push_back(heldFrom(stage).empty() ? func::FuncOp() : functions.consume_front());
}

/// Parameters at an index of what is reduced.
FunctionRequest StagedCode::requestToLoad(ArrayRef<InjectedValue> values) const {
  FunctionRequest request;
  const Shape &space = elementSpace();
  request.indexSizes.assign(space.dims().begin(), space.dims().end());
  for (const InjectedValue &value : values)
    request.roots.push_back({value.instr, 0, bitcastIndexing(space, value.shape(), kernel.context())});
  return request;
}

void StagedCode::load(size_t stage, const IndexingMap &map, ValueRange dims, CollectedLists &held) {
  func::FuncOp function = loads[stage];
  if (!function)
    return;
  held.append(function.getResultTypes(), [&](const CollectedElements &collected, ValueRange vectors) {
    return kernel.loop(map, dims, vectors, [&](ValueRange lanes, ValueRange indices, ValueRange state) {
      Values next;
      unsigned vector = 0;
      Value lane = lanes.empty() ? kernel.code().index(0) : lanes.front();
      for (Value value : kernel.call(function, indices))
        collected.insert(value, lane, state, vector, next);
      return next;
    });
  });
}

llvm::LogicalResult StagedCode::succeeded() const {
  return success(
      llvm::all_of(stageCodes, [](const ReductionCode &code) { return llvm::succeeded(code.succeeded()); }) &&
      (!columnCode || llvm::succeeded(columnCode->succeeded())));
}

/// Outputs at an index of `space`, whose memory order is theirs.
FunctionRequest StagedCode::requestOf(ArrayRef<unsigned> outputs, const Shape &space,
                                      ArrayRef<InjectedValue> injected) const {
  FunctionRequest request;
  request.indexSizes.assign(space.dims().begin(), space.dims().end());
  for (unsigned number : outputs) {
    const FusionRoot &root = kernel.graph().roots()[number];
    request.roots.push_back({root.instr, root.result, bitcastIndexing(space, root.shape, kernel.context())});
  }
  request.injected.assign(injected.begin(), injected.end());
  return request;
}

SmallVector<AffineExpr> StagedCode::elementIndices(ArrayRef<AffineExpr> computed, ArrayRef<AffineExpr> stored) const {
  const ReductionCode &code = stageCodes.front();
  SmallVector<AffineExpr> indices = code.indicesOf(elementSpace(), computed);
  for (unsigned root : reductions.roots)
    llvm::append_range(indices, code.indicesOf(kernel.graph().roots()[root].shape, stored));
  return indices;
}

SmallVector<AffineExpr> StagedCode::resultIndices(AffineExpr number) const {
  SmallVector<AffineExpr> indices = memoryOrderIndices(resultSpace(), number);
  for (unsigned root : reductions.resultRoots)
    llvm::append_range(indices, memoryOrderIndices(kernel.graph().roots()[root].shape, number));
  return indices;
}

StagedCode::Values StagedCode::outputsOf(ArrayRef<unsigned> numbers) {
  return llvm::map_to_vector(numbers, [&](unsigned number) { return kernel.outputs()[number]; });
}

void StagedCode::setOutputs(ArrayRef<unsigned> numbers, ValueRange stored) {
  for (auto [number, output] : llvm::zip_equal(numbers, stored))
    kernel.outputs()[number] = output;
}

StagedCode::Values StagedCode::insertAll(ArrayRef<unsigned> numbers, ValueRange values, ValueRange indices,
                                         ValueRange outputs) {
  Values stored;
  for (auto [number, value, output] : llvm::zip_equal(numbers, values, outputs)) {
    unsigned rank = kernel.graph().roots()[number].shape.rank();
    stored.push_back(tensor::InsertOp::create(kernel.code(), value, output, indices.take_front(rank)));
    indices = indices.drop_front(rank);
  }
  return stored;
}

void StagedCode::storeElements(const Points &exists, const Points &elements, Results results) {
  ArrayRef<unsigned> roots = reductions.roots;
  if (roots.empty())
    return;
  unsigned rank = elementSpace().rank();
  Values stored =
      kernel.loop(exists.map, exists.dims, outputsOf(roots), [&](ValueRange steps, ValueRange, ValueRange outputs) {
        Values dims(elements.dims);
        llvm::append_range(dims, steps);
        return kernel.loop(elements.map, dims, outputs, [&](ValueRange variables, ValueRange at, ValueRange carried) {
          ValueRange values = kernel.call(elementFunction, at.take_front(rank), results(variables));
          return insertAll(roots, values, at.drop_front(rank), carried);
        });
      });
  setOutputs(roots, stored);
}

void StagedCode::storeResults(const Points &points, Results results) {
  ArrayRef<unsigned> roots = reductions.resultRoots;
  if (roots.empty())
    return;
  unsigned rank = resultSpace().rank();
  Values stored = kernel.loop(
      points.map, points.dims, outputsOf(roots), [&](ValueRange variables, ValueRange at, ValueRange carried) {
        ValueRange values = kernel.call(resultFunction, at.take_front(rank), results(variables));
        return insertAll(roots, values, at.drop_front(rank), carried);
      });
  setOutputs(roots, stored);
}

} // namespace hloc
