#include "emitters/heroes/StagedCode.h"

#include "hloc/dialect/XlaGpu.h"
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
  SmallVector<InjectedValue> results, held, same;
  auto known = [&] { return llvm::to_vector(llvm::concat<InjectedValue>(results, held, same)); };
  auto begin = [&](size_t stage) {
    llvm::append_range(held, heldFrom(stage));
    if (shares && stage == reductions.sameInRows.firstStage)
      same.assign(reductions.sameInRows.broadcasts.begin(), reductions.sameInRows.broadcasts.end());
  };
  for (auto [stage, frame] : llvm::enumerate(reductions.stages)) {
    begin(stage);
    ReductionCode &code = stageCodes.emplace_back(frame, ReductionStage::Whole, kernel);
    code.readsResults(known());
    llvm::append_range(requests, code.requests());
    for (const Accumulator &accumulator : frame.accumulators)
      results.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
  }
  begin(stageCodes.size());
  size_t ofStages = requests.size();
  if (!reductions.roots.empty())
    requests.push_back(requestOf(rootsOf(reductions.roots), elementSpace(), known()));
  if (!reductions.resultRoots.empty())
    requests.push_back(requestOf(rootsOf(reductions.resultRoots), resultSpace(), results));
  if (reductions.columns) {
    columnCode.emplace(*reductions.columns, columnStage, kernel);
    columnCode->readsResults(known());
    llvm::append_range(requests, columnCode->requests());
  }
  for (size_t stage = 0; stage <= stageCodes.size(); ++stage)
    if (SmallVector<InjectedValue> values = heldFrom(stage); !values.empty())
      requests.push_back(
          requestOf(llvm::map_to_vector(
                        values, [](const InjectedValue &value) { return FusionRoot{value.instr, 0, value.shape()}; }),
                    elementSpace(), {}));
  if (shares)
    requests.push_back(requestOfSameInRows());
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
  if (columnCode) {
    size_t count = columnCode->requests().size();
    columnCode->setFunctions(functions.take_front(count));
    functions = functions.drop_front(count);
  }
  for (size_t stage = 0; stage <= stageCodes.size(); ++stage)
    loads.push_back(heldFrom(stage).empty() ? func::FuncOp() : functions.consume_front());
  if (shares)
    sameFunction = functions.consume_front();
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

/// The elements of a column, of what is broadcast to all rows.
FunctionRequest StagedCode::requestOfSameInRows() const {
  MLIRContext *context = kernel.context();
  FunctionRequest request;
  request.indexSizes = {reductions.shape.length};
  for (const HloInstruction *broadcast : reductions.sameInRows.broadcasts) {
    const Shape &shape = broadcast->shape();
    // An index of the broadcast, whose minor dims are a row.
    SmallVector<AffineExpr> at(shape.rank(), getAffineConstantExpr(0, context));
    AffineExpr rest = getAffineDimExpr(0, context);
    int64_t elements = 1;
    for (const int64_t *dim = shape.minorToMajor().begin(); elements < reductions.shape.length; ++dim) {
      at[size_t(*dim)] = rest % shape.dim(*dim);
      rest = rest.floorDiv(shape.dim(*dim));
      elements *= shape.dim(*dim);
    }
    SmallVector<AffineExpr> indices =
        llvm::map_to_vector(broadcast->ints(AttributeKey::Dimensions), [&](int64_t dim) { return at[size_t(dim)]; });
    IndexingMap map(AffineMap::get(1, 0, indices, context), {{Interval{0, reductions.shape.length - 1}, "column"}}, {},
                    {});
    map.simplify();
    request.roots.push_back({broadcast->operand(0), 0, std::move(map)});
  }
  return request;
}

StagedCode::Values StagedCode::allocateSameInRows(int64_t columns) {
  return llvm::map_to_vector(sameFunction.getResultTypes(), [&](Type type) -> Value {
    return xla_gpu::AllocateSharedOp::create(kernel.code(), RankedTensorType::get({columns}, type));
  });
}

StagedCode::Values StagedCode::fillSameInRows(const IndexingMap &map, ValueRange dims, ValueRange memory) {
  return kernel.loop(map, dims, memory, [&](ValueRange, ValueRange at, ValueRange carried) {
    Values stored;
    for (auto [value, tensor] : llvm::zip_equal(kernel.call(sameFunction, at.front()), carried))
      stored.push_back(tensor::InsertOp::create(kernel.code(), value, tensor, at.back()));
    return stored;
  });
}

void StagedCode::readSameInRows(ValueRange memory, const IndexingMap &map, ValueRange dims, CollectedLists &same) {
  same.append(sameFunction.getResultTypes(), [&](const CollectedElements &collected, ValueRange vectors) {
    return kernel.loop(map, dims, vectors, [&](ValueRange lanes, ValueRange at, ValueRange state) {
      Values next;
      unsigned vector = 0;
      Value lane = lanes.empty() ? kernel.code().index(0) : lanes.front();
      for (Value tensor : memory)
        collected.insert(tensor::ExtractOp::create(kernel.code(), tensor, at), lane, state, vector, next);
      return next;
    });
  });
}

llvm::LogicalResult StagedCode::succeeded() const {
  return success(
      llvm::all_of(stageCodes, [](const ReductionCode &code) { return llvm::succeeded(code.succeeded()); }) &&
      (!columnCode || llvm::succeeded(columnCode->succeeded())));
}

SmallVector<FusionRoot> StagedCode::rootsOf(ArrayRef<unsigned> outputs) const {
  return llvm::map_to_vector(outputs, [&](unsigned number) { return kernel.graph().roots()[number]; });
}

/// Outputs, or parameters, at an index of `space`, whose memory order is theirs.
FunctionRequest StagedCode::requestOf(ArrayRef<FusionRoot> values, const Shape &space,
                                      ArrayRef<InjectedValue> injected) const {
  FunctionRequest request;
  request.indexSizes.assign(space.dims().begin(), space.dims().end());
  for (const FusionRoot &value : values)
    request.roots.push_back({value.instr, value.result, bitcastIndexing(space, value.shape, kernel.context())});
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
