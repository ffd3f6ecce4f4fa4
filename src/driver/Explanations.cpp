#include "Explanations.h"

#include "hloc/compiler/Tf32Gain.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/fusion/TileCandidates.h"

#include "fmt/format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {
namespace {

std::string savings(const FusionDecision &decision) {
  if (decision.seconds == 0 && decision.bytes == 0)
    return "";
  const double mebibytes = decision.bytes / (1 << 20), microseconds = decision.seconds * 1e6;
  auto amount = [](double value, const char *unit) { return fmt::format("{:.2f} {}", value, unit); };
  if (decision.fused)
    return fmt::format("; saves {}, {}", amount(mebibytes, "MiB"), amount(microseconds, "us"));
  return microseconds < 0 ? fmt::format("; would take {} more", amount(-microseconds, "us"))
                          : fmt::format("; would save {}", amount(microseconds, "us"));
}

} // namespace

std::string printExplanation(const FusionExplanation &explanation, llvm::StringRef name, const std::string &tiles) {
  if (explanation.decisions.empty() && explanation.kernels.empty() && tiles.empty())
    return "nothing was decided: there are fusions already, which --fusion=redo makes anew, or nothing to fuse\n";
  name.consume_front("%");
  std::string text;
  for (const FusionDecision &decision : explanation.decisions)
    if (name == "." || name == decision.producer || name == decision.user)
      text += fmt::format("{} -> {}  {}{}{}{}\n", decision.producer, decision.user, decision.fused ? "fused" : "stored",
                          decision.reason.empty() ? "" : "  ", decision.reason, savings(decision));
  for (const FormedKernel &kernel : explanation.kernels)
    if (name == "." || name == kernel.fusion)
      text += fmt::format("{} {}  {}, {:.2f} us, {:.2f} MiB\n", kernel.isLibrary ? "call" : "kernel", kernel.fusion,
                          kernel.hero.str(), kernel.seconds * 1e6, kernel.bytes / (1 << 20));
  text += tiles;
  return text.empty() ? fmt::format("nothing was decided about `{}`\n", name.str()) : text;
}

static std::string tileTable(llvm::ArrayRef<TileCandidate> candidates, const TargetInfo &target) {
  std::string text = fmt::format("{:<16} {:>5} {:>5} {:>8} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n",
                                 fmt::format("tile, us on {}", deviceOf(target).name.str()), "warps", "parts", "blocks",
                                 "shared", "registers", "memory", "issue", "passes", "latency", "total", "bound");
  for (const TileCandidate &one : candidates) {
    const KernelEstimate &time = one.estimate;
    text += fmt::format("{:<16} {:>5} {:>5} {:>8} {:>7} {:>9} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
                        one.tile.toString(), fmt::format("{}x{}", one.warpRows, one.warpColumns), one.parts, one.blocks,
                        one.sharedBytes, one.registers, time.memory * 1e6, time.issue * 1e6, time.shared * 1e6,
                        time.latency * 1e6, one.seconds * 1e6, time.bound.str());
  }
  return text;
}

/// What one pass would do to attention that rounds where the HLO does.
static std::string ofAttention(const FusionPlan &plan) {
  std::string text;
  for (const FusionStep &step : plan.steps) {
    const auto *kernel = std::get_if<KernelPlan>(&step);
    const auto *attention = kernel ? std::get_if<AttentionPlan>(&kernel->plan) : nullptr;
    if (!attention)
      continue;
    text += fmt::format("scores in tiles of {}; it could have {}\n", attention->scores.tile.sizes().toString(),
                        TileSizes::list(attention->tiles));
    if (attention->isSoftmax && attention->passes() > 1)
      text +=
          fmt::format("`{}` is multiplied {} times, since weights are rounded behind their division; --softmax=online "
                      "multiplies it once\n",
                      attention->scores.hero->name().str(), attention->passes());
  }
  return text;
}

/// Visits the fusions that are `name`, with or without `%`, or have it.
template <typename Visit>
static void forEachFusionOf(const HloModule &fused, llvm::StringRef name, const Visit &visit) {
  name.consume_front("%");
  for (const auto &computation : fused.computations())
    for (const HloInstruction *instr : computation->instructions()) {
      if (instr->opcode() != Opcode::Fusion)
        continue;
      const HloComputation &body = *instr->computation(AttributeKey::Calls);
      auto isMeant = [&](const HloInstruction *one) { return one->name() == name; };
      if (!isMeant(instr) && llvm::none_of(body.instructions(), isMeant))
        continue;
      DiagnosticEngine unheard; // whoever plans says what is wrong
      if (llvm::FailureOr<FusionGraph> graph = FusionGraph::build(body, unheard); succeeded(graph))
        visit(*graph);
    }
}

std::string printTiles(const HloModule &fused, llvm::StringRef name, const TargetInfo &target) {
  std::string text;
  forEachFusionOf(fused, name, [&](const FusionGraph &graph) {
    PlanContext plans;
    if (const std::vector<TileCandidate> candidates = tileCandidates(graph, target, plans); !candidates.empty())
      text += tileTable(candidates, target);
    if (std::optional<Tf32Gain> gain = tf32Gain(graph, target, plans))
      text += gain->toString(target) + "\n";
    DiagnosticEngine unheard;
    if (llvm::FailureOr<FusionPlan> plan = planFusion(graph, FusionAliasing(), target, unheard); succeeded(plan))
      text += ofAttention(*plan);
  });
  return text;
}

static void writeTile(llvm::json::OStream &json, const TileCandidate &one) {
  json.attribute("tile", one.tile.toString());
  json.attribute("warp_rows", one.warpRows);
  json.attribute("warp_columns", one.warpColumns);
  json.attribute("parts", one.parts);
  json.attribute("blocks", one.blocks);
  json.attribute("shared_bytes", int64_t(one.sharedBytes));
  json.attribute("registers", int64_t(one.registers));
  const KernelEstimate &time = one.estimate;
  for (auto [key, seconds] : {std::pair("memory_us", time.memory),
                              {"issue_us", time.issue},
                              {"shared_us", time.shared},
                              {"latency_us", time.latency},
                              {"total_us", one.seconds}})
    json.attribute(key, seconds * 1e6);
  json.attribute("bound", time.bound);
}

std::string printExplanationAsJson(const FusionExplanation &explanation, llvm::StringRef name, const HloModule &fused,
                                   const TargetInfo &target, const std::vector<Advice> &advice) {
  name.consume_front("%");
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  auto words = [&](llvm::StringRef key, llvm::StringRef value) { json.attribute(key, llvm::json::fixUTF8(value)); };
  auto rows = [&](llvm::StringRef key, const auto &all, const auto &write) {
    json.attributeArray(key, [&] {
      for (const auto &one : all)
        write(one);
    });
  };
  json.object([&] {
    rows("decisions", explanation.decisions, [&](const FusionDecision &one) {
      if (name == "." || name == one.producer || name == one.user)
        json.object([&] {
          words("producer", one.producer);
          words("user", one.user);
          json.attribute("fused", one.fused);
          words("reason", one.reason);
          json.attribute("saves_bytes", one.bytes);
          json.attribute("saves_us", one.seconds * 1e6);
        });
    });
    rows("kernels", explanation.kernels, [&](const FormedKernel &one) {
      if (name == "." || name == one.fusion)
        json.object([&] {
          words("kernel", one.fusion);
          json.attribute("hero", one.hero);
          json.attribute("library", one.isLibrary);
          json.attribute("bytes", one.bytes);
          json.attribute("total_us", one.seconds * 1e6);
        });
    });
    json.attributeArray("tiles", [&] {
      forEachFusionOf(fused, name, [&](const FusionGraph &graph) {
        PlanContext plans;
        for (const TileCandidate &one : tileCandidates(graph, target, plans))
          json.object([&] { writeTile(json, one); });
      });
    });
    rows("advice", advice, [&](const Advice &one) {
      json.object([&] {
        json.attribute("kind", hloc::text(one.kind));
        words("message", one.message);
        json.attribute("now_us", one.now * 1e6);
        json.attribute("then_us", one.then * 1e6);
      });
    });
  });
  os << "\n";
  return text;
}

std::string printAdvice(const std::vector<Advice> &advice) {
  std::string lines;
  for (const Advice &one : advice)
    lines += fmt::format("next: {} [{}]\n", one.message, text(one.kind).str());
  return lines;
}

} // namespace hloc
