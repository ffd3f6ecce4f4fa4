#include "interp/WindowStarts.h"

namespace hloc::interp {

using Ints = llvm::ArrayRef<int64_t>;

Index without(unsigned rank, Ints left) {
  Index kept;
  for (unsigned i = 0; i < rank; ++i)
    if (!llvm::is_contained(left, int64_t(i)))
      kept.push_back(i);
  return kept;
}

WindowDims gatherDims(const HloInstruction &instr) {
  WindowDims dims;
  dims.windowDims.assign(instr.ints(AttributeKey::OffsetDims).begin(), instr.ints(AttributeKey::OffsetDims).end());
  dims.scatterDims = without(instr.shape().rank(), dims.windowDims);
  dims.operandDimOfIndex = instr.ints(AttributeKey::StartIndexMap);
  dims.operandBatching = instr.ints(AttributeKey::OperandBatchingDims);
  dims.indexBatching = instr.ints(AttributeKey::StartIndicesBatchingDims);
  dims.droppedDims.append(instr.ints(AttributeKey::CollapsedSliceDims).begin(),
                          instr.ints(AttributeKey::CollapsedSliceDims).end());
  dims.droppedDims.append(dims.operandBatching.begin(), dims.operandBatching.end());
  dims.indexVectorDim = instr.intOr(AttributeKey::IndexVectorDim, 0);
  return dims;
}

WindowDims scatterDims(const HloInstruction &instr, const Shape &updates) {
  WindowDims dims;
  Ints window = instr.ints(AttributeKey::UpdateWindowDims), inserted = instr.ints(AttributeKey::InsertedWindowDims);
  dims.windowDims.assign(window.begin(), window.end());
  dims.scatterDims = without(updates.rank(), dims.windowDims);
  dims.operandDimOfIndex = instr.ints(AttributeKey::ScatterDimsToOperandDims);
  dims.operandBatching = instr.ints(AttributeKey::InputBatchingDims);
  dims.indexBatching = instr.ints(AttributeKey::ScatterIndicesBatchingDims);
  dims.droppedDims.assign(inserted.begin(), inserted.end());
  dims.droppedDims.append(dims.operandBatching.begin(), dims.operandBatching.end());
  dims.indexVectorDim = instr.intOr(AttributeKey::IndexVectorDim, 0);
  return dims;
}

Index scatterWindow(const WindowDims &dims, const Shape &updates, unsigned operandRank) {
  Index window(operandRank, 1), kept = without(operandRank, dims.droppedDims);
  for (size_t i = 0; i < kept.size(); ++i)
    window[size_t(kept[i])] = updates.dim(unsigned(dims.windowDims[i]));
  return window;
}

} // namespace hloc::interp
