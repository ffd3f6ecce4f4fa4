// Custom calls whose meaning is public; all others are refused by name.

#include "interp/Ops.h"

#include "llvm/ADT/StringSwitch.h"

namespace hloc::interp {

namespace {

enum class KnownCall { Unknown, Identity, TopK };

KnownCall knownCall(llvm::StringRef target) {
  return llvm::StringSwitch<KnownCall>(target)
      // Notes to the partitioner and to memory placement: the value is the operand.
      .Cases({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding",
              "annotate_device_placement", "MoveToHost", "MoveToDevice", "LayoutConstraint", "Pin", "Unpin"},
             KnownCall::Identity)
      .Cases({"TopK", "__gpu$TopK"}, KnownCall::TopK)
      .Default(KnownCall::Unknown);
}

/// (values, indices[, scratch]): the k largest of each row, k being the last dimension of the values.
llvm::FailureOr<Value> topKCall(Step &step) {
  const Shape &shape = step.shape();
  bool fits = step.operands.size() == 1 && shape.isTuple() && shape.elements().size() >= 2 &&
              shape.element(0).isArray() && shape.element(0).rank() > 0 && shape.element(1).isArray() &&
              shape.element(0).rank() == step.array(0).shape().rank();
  if (!fits)
    return step.unsupported("operands and results do not fit the target `TopK`");
  return topK(step, shape.element(0).dims().back(), /*largest=*/true);
}

} // namespace

llvm::FailureOr<Value> evaluateCustomCall(Step &step) {
  llvm::StringRef target = step.instr.string(AttributeKey::CustomCallTarget);
  switch (knownCall(target)) {
  case KnownCall::Identity:
    if (step.operands.size() == 1 && step.instr.operand(0)->shape().compatible(step.shape()))
      return step.operands[0];
    break;
  case KnownCall::TopK:
    return topKCall(step);
  case KnownCall::Unknown:
    break;
  }
  return step.unsupported("the meaning of target `" + target + "` is not known");
}

} // namespace hloc::interp
