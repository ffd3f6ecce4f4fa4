// Barriers are reached by all threads of a block, and what a warp does together by all of a warp: no condition on the
// way tells them apart.
#include "prove/Properties.h"

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr int64_t lanes = 32;

class LaneDependence {
public:
  explicit LaneDependence(const KernelAccesses &kernel) : kernel(kernel), variables(kernel.variables) {}

  /// The same for all lanes of a warp.
  bool isFree(AffineExpr expression) const {
    if (isa<AffineConstantExpr>(expression))
      return true;
    if (auto dim = dyn_cast<AffineDimExpr>(expression)) {
      const Variable &variable = variables[dim.getPosition()];
      switch (variable.kind) {
      case VariableKind::Thread:
        return false;
      case VariableKind::Data:
        return variable.uniform;
      case VariableKind::Function:
        return llvm::all_of(variable.arguments, [&](AffineExpr argument) { return isFree(argument); });
      default:
        return true;
      }
    }
    auto binary = cast<AffineBinaryOpExpr>(expression);
    if (isFree(binary.getLHS()) && isFree(binary.getRHS()))
      return true;
    auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return expression.getKind() == AffineExprKind::FloorDiv && by && by.getValue() % lanes == 0 &&
           isThreadAndWarps(binary.getLHS());
  }

  /// Whether that it is in the interval is the same for all lanes.
  bool isFree(const Constraint &constraint) const {
    if (isFree(constraint.first))
      return true;
    Interval range = variables.range(constraint.first), interval = constraint.second;
    return isThreadAndWarps(constraint.first) && (interval.lower <= range.lower || interval.lower % lanes == 0) &&
           (interval.upper >= range.upper || (interval.upper + 1) % lanes == 0);
  }

private:
  /// The thread, and multiples of a warp that all lanes have the same of.
  bool isThreadAndWarps(AffineExpr expression) const {
    if (auto dim = dyn_cast<AffineDimExpr>(expression))
      return dim.getPosition() == kernel.thread;
    if (auto constant = dyn_cast<AffineConstantExpr>(expression))
      return constant.getValue() % lanes == 0;
    auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
    if (binary && binary.getKind() == AffineExprKind::Add) {
      auto isPart = [&](AffineExpr part) {
        return isThreadAndWarps(part) || (isFree(part) && part.isMultipleOf(lanes));
      };
      return isPart(binary.getLHS()) && isPart(binary.getRHS());
    }
    return expression.isMultipleOf(lanes) && isFree(expression);
  }

  const KernelAccesses &kernel;
  const Variables &variables;
};

/// Two threads of a block, or of a warp, of which only one gets there.
std::optional<std::pair<Point, Point>> findApart(const KernelAccesses &kernel, const Meeting &meeting) {
  std::optional<SmallVector<unsigned>> inputs = inputsOf(kernel.variables, {}, meeting.constraints);
  if (!inputs)
    return std::nullopt;
  const int64_t threads = kernel.variables[kernel.thread].bounds.size();
  // All else at its first value, or its last.
  for (bool last : {false, true}) {
    auto pointOf = [&](int64_t thread) {
      Point point(kernel.variables);
      for (unsigned input : *inputs)
        point.set(input, last ? kernel.variables[input].bounds.upper : kernel.variables[input].bounds.lower);
      point.set(kernel.thread, thread);
      return point;
    };
    const int64_t group = meeting.ofWarp ? lanes : threads;
    for (int64_t first = 0; first < threads; first += group) {
      std::optional<int64_t> there, missing;
      for (int64_t thread = first; thread < std::min(threads, first + group); ++thread)
        (pointOf(thread).holds(meeting.constraints) ? there : missing) = thread;
      if (there && missing)
        return std::pair(pointOf(*there), pointOf(*missing));
    }
  }
  return std::nullopt;
}

} // namespace

PropertyProof proveBarriersReached(const KernelAccesses &kernel) {
  LaneDependence lanesApart(kernel);
  PropertyProof result{ProofProperty::BarriersReached, ProofVerdict::Proved, {}, std::nullopt};
  for (const Meeting &meeting : kernel.meetings) {
    auto isSame = [&](const Constraint &constraint) {
      return kernel.variables.isUniform(constraint.first) || (meeting.ofWarp && lanesApart.isFree(constraint));
    };
    if (llvm::all_of(meeting.constraints, isSame))
      continue;
    const std::string what = "`" + meeting.op->getName().getStringRef().str() + "`";
    if (auto apart = findApart(kernel, meeting)) {
      ProofWitness witness{{placeAt(kernel, apart->first), placeAt(kernel, apart->second)}, "", std::nullopt};
      return {ProofProperty::BarriersReached, ProofVerdict::Refuted, "only the first of them comes to " + what,
              witness};
    }
    result =
        unknownProof(ProofProperty::BarriersReached, "a condition around " + what + " is not decided for all threads");
  }
  return result;
}

} // namespace hloc::prove
