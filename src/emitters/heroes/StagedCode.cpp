#include "emitters/heroes/StagedCode.h"

#include "hloc/fusion/HloIndexing.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

llvm::LogicalResult StagedCode::emitFunctions() {
  std::vector<FunctionRequest> requests;
  SmallVector<InjectedValue> results;
  for (const ReductionFrame &frame : frames) {
    ReductionCode &code = codes.emplace_back(frame, ReductionStage::Whole, kernel);
    code.readsResults(results);
    llvm::append_range(requests, code.requests());
    for (const Accumulator &accumulator : frame.accumulators)
      results.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
  }
  size_t ofStages = requests.size();
  if (!roots.empty())
    requests.push_back(requestOf(roots, elementSpace(), results));
  if (!resultRoots.empty())
    requests.push_back(requestOf(resultRoots, resultSpace(), results));
  auto functions = kernel.emitFunctions(requests);
  if (failed(functions))
    return failure();
  ArrayRef<func::FuncOp> left(*functions);
  size_t each = ofStages / codes.size();
  for (ReductionCode &code : codes) {
    code.setFunctions(left.take_front(each));
    left = left.drop_front(each);
  }
  if (!roots.empty())
    elementFunction = left.consume_front();
  if (!resultRoots.empty())
    resultFunction = left.consume_front();
  return success();
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

SmallVector<AffineExpr> StagedCode::elementIndices(ArrayRef<AffineExpr> merged) const {
  const ReductionCode &code = codes.front();
  SmallVector<AffineExpr> indices = code.indicesOf(elementSpace(), merged);
  for (unsigned root : roots)
    llvm::append_range(indices, code.indicesOf(kernel.graph().roots()[root].shape, merged));
  return indices;
}

SmallVector<AffineExpr> StagedCode::resultIndices(AffineExpr number) const {
  SmallVector<AffineExpr> indices = memoryOrderIndices(resultSpace(), number);
  for (unsigned root : resultRoots)
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

void StagedCode::storeElements(const IndexingMap &exists, const IndexingMap &map, ValueRange dims, Results results) {
  if (roots.empty())
    return;
  unsigned rank = elementSpace().rank();
  Values stored = kernel.loop(exists, outputsOf(roots), [&](ValueRange steps, ValueRange, ValueRange outputs) {
    Values all(dims);
    llvm::append_range(all, steps);
    return kernel.loop(map, all, outputs, [&](ValueRange variables, ValueRange at, ValueRange carried) {
      ValueRange values = kernel.call(elementFunction, at.take_front(rank), results(variables));
      return insertAll(roots, values, at.drop_front(rank), carried);
    });
  });
  setOutputs(roots, stored);
}

void StagedCode::storeResults(const IndexingMap &map, Results results) {
  if (resultRoots.empty())
    return;
  unsigned rank = resultSpace().rank();
  Values stored =
      kernel.loop(map, outputsOf(resultRoots), [&](ValueRange variables, ValueRange at, ValueRange carried) {
        ValueRange values = kernel.call(resultFunction, at.take_front(rank), results(variables));
        return insertAll(resultRoots, values, at.drop_front(rank), carried);
      });
  setOutputs(resultRoots, stored);
}

} // namespace hloc
