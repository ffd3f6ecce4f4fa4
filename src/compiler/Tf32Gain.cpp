#include "hloc/compiler/Tf32Gain.h"

#include "hloc/fusion/TileCandidates.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

std::string Tf32Gain::toString(const TargetInfo &target) const {
  const std::string gain =
      asTf32 < seconds ? fmt::format("makes it {:.2f}", asTf32 * 1e6) : std::string("saves nothing");
  return fmt::format("`{}` is multiplied as f32, in {:.2f} us on {} by the cost model; --f32-dots=tf32 {}",
                     dot->name().str(), seconds * 1e6, deviceOf(target).name.str(), gain);
}

std::optional<Tf32Gain> tf32Gain(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans) {
  const auto *dot = llvm::find_if(graph.instructions(), [](auto *instr) { return isPlainF32Product(*instr); });
  if (!target.hasTf32() || dot == graph.instructions().end())
    return std::nullopt;
  const std::vector<TileCandidate> now = tileCandidates(graph, target, plans),
                                   then = tileCandidates(graph, target, plans, DotAlgorithm::TF32TF32F32);
  if (now.empty() || then.empty())
    return std::nullopt;
  return Tf32Gain{*dot, now.front().seconds, then.front().seconds};
}

} // namespace hloc
