#include "hloc/hlo/SortCall.h"

#include "BackendConfig.h"

namespace hloc {

bool isSortTarget(llvm::StringRef target) { return target.starts_with("xla.gpu.ext.cub_sort_"); }

std::optional<SortCall> readSortCall(const HloInstruction &call) {
  const Shape &shape = call.shape();
  const unsigned count = call.numOperands();
  if (!isSortTarget(call.string(AttributeKey::CustomCallTarget)) || count < 1 || count > 2 || !shape.isTuple() ||
      shape.elements().size() != count + 1 || !shape.element(count).isArray())
    return std::nullopt;
  const Shape &keys = call.operand(0)->shape();
  for (unsigned i = 0; i < count; ++i) {
    const Shape &operand = call.operand(i)->shape();
    if (!operand.isArray() || !operand.sameDims(keys) || !shape.element(i).isArray() ||
        !shape.element(i).compatible(operand) || isComplex(operand.elementType()) ||
        bitWidth(operand.elementType()) < 8)
      return std::nullopt;
  }
  if (keys.rank() == 0 || isPred(keys.elementType()) ||
      (isFloat(keys.elementType()) && bitWidth(keys.elementType()) < 16))
    return std::nullopt;
  std::optional<bool> descending = readBackendConfig(call.string(AttributeKey::BackendConfig)).getBoolean("descending");
  return descending ? std::optional(SortCall{*descending}) : std::nullopt;
}

} // namespace hloc
