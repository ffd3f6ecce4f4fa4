// All accesses are inside their buffers, along every dimension; and indices are in what the code claims of them, by
// which lowering decides that 32 bits are enough.
#include "prove/Properties.h"

#include <limits>

using namespace mlir;

namespace hloc::prove {

namespace {

constexpr Interval int32Range = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

class BoundsProof {
public:
  explicit BoundsProof(const KernelAccesses &kernel) : kernel(kernel) {}

  /// Whether all that an access touches is inside; otherwise keeps why not.
  bool check(const Access &access) {
    const Buffer &buffer = kernel.buffers[access.named];
    if (buffer.sizes.empty())
      return true;
    for (size_t i = 0; i < buffer.sizes.size(); ++i) {
      const int64_t width = i + 1 == buffer.sizes.size() ? access.width : 1;
      const Interval inside = {0, buffer.sizes[i] - width};
      Decision decision = isWithin(kernel.variables, access.indices[i], inside, access.constraints);
      if (decision.verdict == ProofVerdict::Proved)
        continue;
      const std::string along = "`" + buffer.name + "` along dimension " + std::to_string(buffer.dimension[i]);
      if (decision.verdict == ProofVerdict::Refuted)
        return refute(access, buffer, *decision.where, "outside of " + along);
      if (!unknown)
        unknown = "an access of " + along + (isByData(access) ? " depends on data" : " is not decided");
    }
    return !unknown;
  }

  PropertyProof result() const {
    if (refuted)
      return *refuted;
    if (unknown)
      return unknownProof(ProofProperty::InBounds, *unknown);
    return {ProofProperty::InBounds, ProofVerdict::Proved, {}, std::nullopt};
  }
  bool isRefuted() const { return refuted.has_value(); }

private:
  bool isByData(const Access &access) const {
    return !inputsOf(kernel.variables, access.indices, access.constraints).has_value();
  }

  bool refute(const Access &access, const Buffer &buffer, const Point &where, const std::string &why) {
    ProofWitness witness{{placeAt(kernel, where)}, buffer.name, where.evaluate(linearIndex(access, buffer))};
    refuted = PropertyProof{ProofProperty::InBounds, ProofVerdict::Refuted, why, std::move(witness)};
    return false;
  }

  const KernelAccesses &kernel;
  std::optional<PropertyProof> refuted;
  std::optional<std::string> unknown;
};

} // namespace

ProofWitness::Place placeAt(const KernelAccesses &kernel, const Point &point) {
  return {uint64_t(point[kernel.block]), uint64_t(point[kernel.thread])};
}

PropertyProof proveInBounds(const KernelAccesses &kernel) {
  BoundsProof proof(kernel);
  for (const Access &access : kernel.accesses) {
    proof.check(access);
    if (proof.isRefuted())
      break;
  }
  return proof.result();
}

PropertyProof proveFitsWidth(const KernelAccesses &kernel) {
  PropertyProof result{ProofProperty::FitsWidth, ProofVerdict::Proved, {}, std::nullopt};
  auto check = [&](const Claim &claim, Interval interval, const std::string &what) {
    Decision decision = isWithin(kernel.variables, claim.expression, interval, claim.constraints);
    if (decision.verdict == ProofVerdict::Proved)
      return true;
    const bool isRefuted = decision.verdict == ProofVerdict::Refuted;
    if (isRefuted || result.verdict == ProofVerdict::Proved)
      result = unknownProof(ProofProperty::FitsWidth, what);
    if (isRefuted) {
      result.verdict = ProofVerdict::Refuted;
      result.witness = ProofWitness{{placeAt(kernel, *decision.where)}, "", std::nullopt};
    }
    return !isRefuted;
  };
  for (const Claim &claim : kernel.claims)
    if (!check(claim, claim.interval,
               "an index is not in the range that `" + claim.op->getName().getStringRef().str() + "` says it has"))
      return result;
  for (const Claim &claim : kernel.arithmetic)
    if (!check(claim, int32Range, "an index is computed outside of 32 bits"))
      return result;
  return result;
}

} // namespace hloc::prove
