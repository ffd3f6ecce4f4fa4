// Custom calls whose meaning is public; all others are refused by name.

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/External.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/SolverCall.h"
#include "hloc/hlo/SortCall.h"
#include "interp/Ops.h"

#include "llvm/ADT/StringSwitch.h"

namespace hloc::interp {

namespace {

enum class KnownCall { Unknown, Identity, TopK, Convolution, Cholesky, Gemm, Sort };

KnownCall knownCall(llvm::StringRef target) {
  if (isGemmTarget(target))
    return KnownCall::Gemm;
  if (isSortTarget(target))
    return KnownCall::Sort;
  if (convolutionCallKind(target))
    return KnownCall::Convolution;
  return llvm::StringSwitch<KnownCall>(target)
      // Notes to the partitioner and to memory placement: the value is the operand.
      .Cases({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding",
              "annotate_device_placement", "MoveToHost", "MoveToDevice", "LayoutConstraint", "Pin", "Unpin"},
             KnownCall::Identity)
      .Cases({"TopK", "__gpu$TopK"}, KnownCall::TopK)
      .Cases({"cusolver_potrf_ffi", "hipsolver_potrf_ffi", "lapack_spotrf_ffi", "lapack_dpotrf_ffi",
              "lapack_cpotrf_ffi", "lapack_zpotrf_ffi"},
             KnownCall::Cholesky)
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

/// (factors, info): LAPACK's potrf of each matrix. The triangle it does not define is zero here; of a matrix that has
/// no factor all is NaN, and info the order of the first leading minor that is not positive.
llvm::FailureOr<Value> choleskyCall(Step &step) {
  std::string why;
  std::optional<SolverCall> call = SolverCall::of(step.instr, why);
  if (!call)
    return step.unsupported("target `" + step.instr.string(AttributeKey::CustomCallTarget) + "`: " + why);
  const Shape &shape = step.shape();
  Literal info(shape.element(1));
  Literal factors = cholesky(step.array(0), call->lower, &info);
  return Value::tuple({Value(std::move(factors)), Value(std::move(info))});
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
  case KnownCall::Convolution:
    return convolutionCall(step);
  case KnownCall::Cholesky:
    return choleskyCall(step);
  case KnownCall::Gemm:
    return gemmCall(step);
  case KnownCall::Sort:
    return sortCall(step);
  case KnownCall::Unknown:
    break;
  }
  if (isHostPython(target))
    return step.unsupported("target `" + target + "` is a function of the host's Python");
  if (std::string why; !SolverCall::of(step.instr, why) && !why.empty())
    return step.unsupported("target `" + target + "`: " + why);
  return step.unsupported("the meaning of target `" + target + "` is not known");
}

} // namespace hloc::interp
