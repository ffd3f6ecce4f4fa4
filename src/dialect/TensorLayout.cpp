#include "hloc/dialect/TensorLayout.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

static SmallVector<int64_t> defaultLayout(int64_t rank) {
  SmallVector<int64_t> layout;
  for (int64_t i = rank; i-- > 0;)
    layout.push_back(i);
  return layout;
}

SmallVector<int64_t> xla_gpu::minorToMajor(RankedTensorType type) {
  auto encoding = dyn_cast_or_null<DenseIntElementsAttr>(type.getEncoding());
  if (!encoding)
    return defaultLayout(type.getRank());
  SmallVector<int64_t> layout;
  for (const APInt &dimension : encoding.getValues<APInt>())
    layout.push_back(dimension.getSExtValue());
  return layout;
}

RankedTensorType xla_gpu::withLayout(RankedTensorType type, ArrayRef<int64_t> layout) {
  Attribute encoding;
  if (layout != ArrayRef<int64_t>(defaultLayout(type.getRank())))
    encoding = DenseIntElementsAttr::get(
        RankedTensorType::get({type.getRank()}, IntegerType::get(type.getContext(), 64)), layout);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

bool xla_gpu::hasValidLayout(RankedTensorType type) {
  if (!type.getEncoding())
    return true;
  auto encoding = dyn_cast<DenseIntElementsAttr>(type.getEncoding());
  if (!encoding || encoding.getNumElements() != type.getRank())
    return false;
  SmallVector<int64_t> sorted = minorToMajor(type);
  llvm::sort(sorted);
  for (auto [i, dimension] : llvm::enumerate(sorted))
    if (dimension != int64_t(i))
      return false;
  return true;
}
