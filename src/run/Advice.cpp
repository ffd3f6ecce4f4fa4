#include "hloc/run/Advice.h"

#include "OtherModules.h"

#include "hloc/fusion/TileCandidates.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace hloc {

bool isAdvice(DiagnosticKind kind) {
  return llvm::is_contained({DiagnosticKind::Layout, DiagnosticKind::FusionEdge, DiagnosticKind::PlanChoice,
                             DiagnosticKind::Padding, DiagnosticKind::FastMath, DiagnosticKind::F32Dot},
                            kind);
}

namespace {

/// Of what the kernels take that would change, and in all: less is within what the model errs by, and what nobody sees.
constexpr double leastShare = 0.03, leastSaved = 0.05e-6;
/// Compilations of modules of few instructions, and of one that has more than that times as many.
constexpr size_t mostTries = 32, instructionsOfTries = 20000;
constexpr size_t mostOfKind = 8, mostKernels = 4, mostTiles = 3;

/// Something to try.
struct Trial {
  DiagnosticKind kind;
  SourceRange range;
  std::vector<std::string> about; ///< names of instructions and kernels
  std::string what;               ///< what is said before what it saves
  CompilerOptions options;
  std::unique_ptr<HloModule> module = nullptr; ///< null: that which there is
  std::string subject = {};                    ///< of several trials of one only the best is worth a word; empty: alone
};

/// Counts what the passes do.
class CountingObserver : public CompileObserver {
public:
  void counted(llvm::StringRef what, size_t count) override { counts[what.str()] += count; }
  std::map<std::string, size_t> counts;
};

size_t numInstructions(const HloModule &module) {
  size_t count = 0;
  for (const auto &computation : module.computations())
    count += computation->instructions().size();
  return count;
}

class Adviser {
public:
  Adviser(const HloModule &module, const CompiledWay &way, const AdviceOptions &options, const Toolchain &toolchain)
      : module(module), way(way), options(options), toolchain(toolchain) {}

  std::vector<Advice> run() {
    const size_t tries = std::min(mostTries, instructionsOfTries / std::max<size_t>(numInstructions(module), 1));
    if (tries == 0)
      return {};
    now = estimateWay(module, way, toolchain);
    if (!now.module || !prepare())
      return {};
    tryLayouts();
    tryDots();
    tryFastMath();
    tryEdges();
    tryFilledDims();
    tryPlans();
    llvm::erase_if(trials, [&](const Trial &trial) { return !isMeant(trial); });
    std::vector<Advice> advice;
    std::map<std::string, size_t> bySubject;
    for (const Trial &trial : llvm::ArrayRef(trials).take_front(tries)) {
      std::optional<Advice> worth = weigh(trial);
      if (!worth)
        continue;
      auto [at, isNew] = bySubject.try_emplace(trial.subject, advice.size());
      if (isNew || trial.subject.empty())
        advice.push_back(std::move(*worth));
      else if (worth->then < advice[at->second].then)
        advice[at->second] = std::move(*worth);
    }
    return advice;
  }

private:
  bool isMeant(const Trial &trial) const {
    return options.about == "." || trial.about.empty() || llvm::is_contained(trial.about, options.about);
  }

  void add(Trial trial) {
    if (options.isWanted(trial.kind))
      trials.push_back(std::move(trial));
  }

  /// The module as fusions, and why they are what they are.
  bool prepare() {
    CompilerOptions own = way.options;
    own.explanation = &explanation;
    own.remarks.reset();
    fused = Compiler(own, toolchain, observer, unheard).fuse(module, way.target);
    if (!fused)
      return false;
    for (const auto &computation : fused->computations())
      for (const HloInstruction *instr : computation->instructions()) {
        if (instr->opcode() == Opcode::Fusion)
          fusions[instr->name().str()] = instr;
        if (instr->range().isValid())
          ranges.try_emplace(instr->name().str(), instr->range());
      }
    return true;
  }

  SourceRange rangeOf(const std::string &name) const {
    auto found = ranges.find(name);
    return found == ranges.end() ? SourceRange() : found->second;
  }

  void addModules(DiagnosticKind kind, std::vector<OtherModule> others) {
    for (OtherModule &other : others)
      add({kind, other.range, std::move(other.about), other.what + " it", way.options, std::move(other.module)});
  }

  void tryLayouts() {
    if (options.isWanted(DiagnosticKind::Layout))
      addModules(DiagnosticKind::Layout, withOtherLayouts(module));
  }

  void tryFilledDims() {
    if (options.isWanted(DiagnosticKind::Padding))
      addModules(DiagnosticKind::Padding, withFilledDims(module));
  }

  /// What multiplies, and as what.
  void tryDots() {
    std::vector<std::string> dots, ofF32;
    for (const auto &[name, fusion] : fusions)
      for (const HloInstruction *instr : fusion->computation(AttributeKey::Calls)->instructions()) {
        if (instr->opcode() == Opcode::Dot)
          dots.push_back(instr->name().str());
        if (isPlainF32Product(*instr))
          ofF32.push_back(instr->name().str());
      }
    if (!ofF32.empty() && way.target.hasTf32() && way.options.f32Dots == F32Dots::F32) {
      CompilerOptions other = way.options;
      other.f32Dots = F32Dots::Tf32;
      const std::string name = ofF32.front();
      add({DiagnosticKind::F32Dot, rangeOf(name), ofF32, namesOf(ofF32) + " multiplied as f32: --f32-dots=tf32",
           other});
    }
    if (!dots.empty() && way.options.dots == Multiplier::Own) {
      CompilerOptions other = way.options;
      other.dots = Multiplier::Auto;
      const std::string name = dots.front();
      add({DiagnosticKind::PlanChoice, rangeOf(name), dots, namesOf(dots) + " multiplied by kernels: --dots=auto",
           other});
    }
  }

  /// "`a` is", "`a`, `b`, ... are"
  static std::string namesOf(llvm::ArrayRef<std::string> names) {
    constexpr size_t most = 2;
    std::string text;
    for (const std::string &name : names.take_front(most))
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
    return text + (names.size() > most ? ", ..." : "") + (names.size() == 1 ? " is" : " are");
  }

  /// Rules that would apply.
  void tryFastMath() {
    if (!options.isWanted(DiagnosticKind::FastMath))
      return;
    CompilerOptions all = way.options;
    all.remarks.reset();
    for (const RewriteRow &row : rewriteRows())
      if (row.isFastMath && !llvm::is_contained(way.options.fastMath, row.name))
        all.fastMath.push_back(row.name.str());
    CountingObserver counting;
    if (!Compiler(all, toolchain, counting, unheard).fuse(module, way.target))
      return;
    for (const RewriteRow &row : rewriteRows()) {
      const size_t count = counting.counts[row.name.str()];
      if (!row.isFastMath || count == 0 || llvm::is_contained(way.options.fastMath, row.name))
        continue;
      CompilerOptions other = way.options;
      other.fastMath.push_back(row.name.str());
      add({DiagnosticKind::FastMath,
           SourceRange(),
           {},
           fmt::format("--fast-math={}, which would apply{},", row.name.str(),
                       count == 1 ? "" : fmt::format(" {} times", count)),
           other});
    }
  }

  /// Those whose other side is nearest, by the model that fusions are searched with.
  void tryEdges() {
    if (!options.isWanted(DiagnosticKind::FusionEdge))
      return;
    std::vector<const FusionDecision *> edges;
    for (const FusionDecision &decision : explanation.decisions)
      edges.push_back(&decision);
    llvm::stable_sort(edges, [](const FusionDecision *a, const FusionDecision *b) {
      return std::abs(a->seconds) < std::abs(b->seconds);
    });
    size_t left = mostOfKind;
    for (const FusionDecision *edge : edges) {
      const bool concerns = options.about == "." || options.about == edge->producer || options.about == edge->user;
      if (!concerns || left == 0)
        continue;
      --left;
      CompilerOptions other = way.options;
      const std::string choice = fmt::format("{}={},{}", edge->fused ? "split" : "fuse", edge->producer, edge->user);
      other.forced.edges.push_back({choice, edge->producer, edge->user, !edge->fused});
      add({DiagnosticKind::FusionEdge,
           rangeOf(edge->producer),
           {edge->producer, edge->user},
           fmt::format("`{}` is {} `{}`: --force={}", edge->producer, edge->fused ? "in the kernel of" : "stored for",
                       edge->user, choice),
           other,
           nullptr,
           "edges of " + edge->producer});
    }
  }

  /// Heroes, vectors and tiles of the kernels that take most.
  void tryPlans() {
    if (!options.isWanted(DiagnosticKind::PlanChoice))
      return;
    std::vector<size_t> order(now.times.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    auto seconds = [&](size_t i) { return now.module->kernels[i].launches * now.times[i].total; };
    llvm::stable_sort(order, [&](size_t a, size_t b) { return seconds(a) > seconds(b); });
    size_t left = mostKernels;
    std::set<std::string> known;
    for (size_t number : order) {
      const EstimatedKernel &kernel = now.module->kernels[number];
      auto fusion = fusions.find(kernel.instruction);
      if (fusion == fusions.end() || left == 0 || !known.insert(kernel.instruction).second)
        continue;
      tryPlansOf(kernel.instruction, *fusion->second, now.times[number].waves < 1);
      --left;
    }
  }

  /// `hasFewBlocks`: there is room for more.
  void tryPlansOf(const std::string &name, const HloInstruction &fusion, bool hasFewBlocks) {
    const HloComputation &body = *fusion.computation(AttributeKey::Calls);
    std::vector<std::string> about = {name};
    for (const HloInstruction *instr : body.instructions())
      about.push_back(instr->name().str());
    auto addChoice = [&](const std::string &choice, PlanChoices choices) {
      CompilerOptions other = way.options;
      const std::string text = name + ":" + choice;
      other.forced.kernels.push_back({text, name, std::move(choices)});
      const SourceRange range = body.root()->range().isValid() ? body.root()->range() : fusion.range();
      add({DiagnosticKind::PlanChoice, range, about,
           fmt::format("`{}` could be made otherwise: --force={}", name, text), other, nullptr, name});
    };
    PlanContext plans;
    llvm::FailureOr<FusionGraph> graph = FusionGraph::build(body, unheard);
    if (failed(graph))
      return;
    const std::vector<TileCandidate> tiles = tileCandidates(*graph, way.target, plans);
    for (const TileCandidate &tile : llvm::ArrayRef(tiles).take_front(mostTiles))
      addChoice("tile=" + tile.tile.toString(), {.tile = tile.tile});
    const bool sums = !tiles.empty() || llvm::any_of(body.instructions(), [](const HloInstruction *instr) {
      return instr->opcode() == Opcode::Reduce;
    });
    for (int64_t parts : {1, 2, 4, 8, 16})
      if (sums && hasFewBlocks)
        addChoice(fmt::format("parts={}", parts), {.parts = parts});
    if (!tiles.empty())
      return;
    for (Hero hero : {Hero::Rows, Hero::Columns, Hero::RowReduction, Hero::ColumnReduction, Hero::Loop})
      addChoice("hero=" + text(hero).str(), {.hero = text(hero).str()});
    for (unsigned vector : {1u, 2u, 4u, 8u})
      addChoice(fmt::format("vector={}", vector), {.vector = vector});
  }

  /// Nothing if it is not possible, or saves little.
  std::optional<Advice> weigh(const Trial &trial) const {
    CompiledWay other = way;
    other.options = trial.options;
    const EstimatedWay then = estimateWay(trial.module ? *trial.module : module, other, toolchain);
    const double saved = now.seconds - then.seconds;
    if (!then.module || saved < leastSaved)
      return std::nullopt;
    double concerned = 0; // what changes takes now
    for (const KernelChange &change : changesBetween(now, then))
      if (!change.isSame() && change.now)
        concerned += change.now->seconds;
    if (saved < leastShare * concerned)
      return std::nullopt;
    return Advice{trial.kind, trial.range,
                  fmt::format("{} saves {:.2f} of {:.2f} us on {}", trial.what, saved * 1e6, now.seconds * 1e6,
                              way.device->name.str()),
                  now.seconds, then.seconds};
  }

  const HloModule &module;
  const CompiledWay &way;
  const AdviceOptions &options;
  const Toolchain &toolchain;
  CompileObserver observer;
  DiagnosticEngine unheard;
  EstimatedWay now;
  std::unique_ptr<HloModule> fused;
  FusionExplanation explanation;
  std::map<std::string, const HloInstruction *> fusions;
  std::map<std::string, SourceRange> ranges; ///< by instruction
  std::vector<Trial> trials;
};

} // namespace

std::vector<Advice> adviseOn(const HloModule &module, const CompiledWay &way, const AdviceOptions &options,
                             const Toolchain &toolchain) {
  return Adviser(module, way, options, toolchain).run();
}

} // namespace hloc
