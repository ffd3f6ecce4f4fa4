#include "hloc/compiler/Tf32Gain.h"

#include "hloc/fusion/TileCandidates.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

std::string Tf32Gain::toString(const TargetInfo &target) const {
  const std::string gain =
      asTf32 < seconds ? fmt::format("makes it {:.2f}", asTf32 * 1e6) : std::string("saves nothing");
  std::string names;
  for (const HloInstruction *dot : dots)
    names += fmt::format("{}`{}`", names.empty() ? "" : " and ", dot->name().str());
  return fmt::format("{} {} multiplied as f32, in {:.2f} us on {} by the cost model; --f32-dots=tf32 {}", names,
                     dots.size() == 1 ? "is" : "are", seconds * 1e6, deviceOf(target).name.str(), gain);
}

std::optional<Tf32Gain> tf32Gain(const FusionGraph &graph, const TargetInfo &target, PlanContext &plans) {
  Tf32Gain gain;
  llvm::copy_if(graph.instructions(), std::back_inserter(gain.dots),
                [](auto *instr) { return isPlainF32Product(*instr); });
  if (!target.hasTf32() || gain.dots.empty())
    return std::nullopt;
  const std::vector<TileCandidate> now = tileCandidates(graph, target, plans),
                                   then = tileCandidates(graph, target, plans, DotAlgorithm::TF32TF32F32);
  if (now.empty() || then.empty())
    return std::nullopt;
  gain.seconds = now.front().seconds;
  gain.asTf32 = then.front().seconds;
  return gain;
}

} // namespace hloc
