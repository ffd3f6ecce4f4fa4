#include "hloc/fusion/FusionPlan.h"

#include "fusion/HeroMatch.h"
#include "hloc/fusion/ForcedChoices.h"
#include "hloc/fusion/GroupWork.h"
#include "hloc/fusion/PlanSummary.h"
#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

KernelPlan::KernelPlan() = default;
KernelPlan::KernelPlan(LaunchGeometry launch, HeroPlan plan) : launch(launch), plan(std::move(plan)) {}
KernelPlan::KernelPlan(const KernelPlan &) = default;
KernelPlan::KernelPlan(KernelPlan &&) noexcept = default;
KernelPlan &KernelPlan::operator=(const KernelPlan &) = default;
KernelPlan &KernelPlan::operator=(KernelPlan &&) noexcept = default;
KernelPlan::~KernelPlan() = default;

FollowingKernel::FollowingKernel(HeroPlan plan, LaunchGeometry launch, bool writesScratch)
    : plan(std::move(plan)), launch(launch), writesScratch(writesScratch) {}
FollowingKernel::FollowingKernel(FollowingKernel &&) noexcept = default;
FollowingKernel &FollowingKernel::operator=(FollowingKernel &&) noexcept = default;
FollowingKernel::~FollowingKernel() = default;

llvm::ArrayRef<HeroRow> heroRows() {
  static constexpr HeroRow rows[] = {
#define HLOC_HERO(name, text, plan, takes, how) {text, takes, how},
#include "hloc/fusion/Heroes.def"
  };
  return rows;
}

llvm::StringRef text(Hero hero) { return heroRows()[static_cast<size_t>(hero)].name; }

namespace {

/// Parameters, outputs, then scratch memory. An output that takes a parameter's place makes both the same, written
/// memory.
void bindBuffers(const FusionGraph &graph, const FusionAliasing &aliasing, llvm::ArrayRef<ScratchBuffer> scratch,
                 bool writesScratch, KernelPlan &kernel) {
  unsigned numParameters = graph.parameters().size();
  for (unsigned i = 0; i < numParameters; ++i)
    kernel.buffers.push_back({{PlanBuffer::Kind::Parameter, i}, false, std::nullopt});
  for (unsigned i = 0; i < graph.roots().size(); ++i) {
    kernel.buffers.push_back({{PlanBuffer::Kind::Output, i}, true, aliasing[i]});
    if (aliasing[i])
      kernel.buffers[*aliasing[i]].written = true;
  }
  for (auto [i, buffer] : llvm::enumerate(scratch)) {
    kernel.buffers.push_back({{PlanBuffer::Kind::Scratch, unsigned(i)}, writesScratch, std::nullopt});
    kernel.scratch.push_back(buffer.shape);
  }
}

/// The offers that all kernels can bear; a parameter's place is taken once.
FusionAliasing acceptOffers(const FusionGraph &graph, const FusionAliasing &offers,
                            llvm::ArrayRef<KernelPlan> kernels) {
  FusionAliasing taken(graph.roots().size());
  for (auto [root, parameter] : llvm::enumerate(offers)) {
    if (!parameter || llvm::is_contained(taken, parameter))
      continue;
    auto bears = [&](const KernelPlan &kernel) {
      return visitHero(kernel.plan,
                       [&](const auto &plan) { return mayTakePlace(plan, graph, unsigned(root), *parameter); });
    };
    if (llvm::all_of(kernels, bears))
      taken[root] = parameter;
  }
  return taken;
}

std::string toString(const PlanBuffer &buffer) {
  const char *kinds[] = {"parameter", "output", "scratch"};
  return fmt::format("{} {}", kinds[unsigned(buffer.kind)], buffer.index);
}

KernelParameter describeBuffer(const FusionGraph &graph, const FusionPlan &plan, const KernelPlan &kernel,
                               const KernelBuffer &buffer) {
  KernelParameter parameter;
  parameter.alignment = kernel.bufferAlignment;
  parameter.index = buffer.buffer.index;
  parameter.written = buffer.written;
  parameter.alias = buffer.sameAs;
  auto describe = [&](KernelParameter::Role role, const Shape &shape) {
    parameter.role = role;
    parameter.shape = shape.toString();
    parameter.bytes = shape.byteSize();
  };
  switch (buffer.buffer.kind) {
  case PlanBuffer::Kind::Parameter:
    describe(KernelParameter::Role::Input, graph.parameters()[buffer.buffer.index]->shape());
    break;
  case PlanBuffer::Kind::Output:
    describe(KernelParameter::Role::Output, graph.roots()[buffer.buffer.index].shape);
    break;
  case PlanBuffer::Kind::Scratch:
    describe(KernelParameter::Role::Temporary, plan.scratch[buffer.buffer.index].shape);
    parameter.alignment = std::max(parameter.alignment, plan.scratch[buffer.buffer.index].alignment);
    break;
  }
  return parameter;
}

} // namespace

llvm::SmallVector<const TileMap *, 3> tensorMapsOf(const HeroPlan &plan) {
  llvm::SmallVector<const TileMap *, 3> maps;
  if (const auto *contraction = std::get_if<ContractionPlan>(&plan);
      contraction && contraction->tile.hasProducer && contraction->stage != ReductionStage::Combine)
    for (const ContractionSide *side : contraction->sides())
      maps.push_back(&*side->map);
  if (const auto *attention = std::get_if<AttentionPlan>(&plan); attention && attention->inRing())
    maps = {&*attention->scores.columns.map, &*attention->secondInRing().columns.map};
  return maps;
}

std::string whyNotTile(const HeroPlan &plan, const TileSizes &wanted) {
  if (std::holds_alternative<ContractionPlan>(plan))
    return "";
  const auto *attention = std::get_if<AttentionPlan>(&plan);
  if (!attention)
    return "it is no contraction or attention, which could have tiles";
  if (attention->scores.tile.sizes() == wanted)
    return "";
  return fmt::format("attention can have tiles of {} here", TileSizes::list(attention->tiles));
}

std::string KernelPlan::toString() const {
  std::string result = visitHero(plan, [](const auto &own) { return own.toString(); });
  result += fmt::format("; grid {}", launch.grid.x);
  if (launch.grid.y != 1)
    result += fmt::format("x{}", launch.grid.y);
  result += fmt::format(", block {}", launch.block.x);
  if (launch.sharedBytes)
    result += fmt::format(", {}shared {}", launch.isSharedDynamic() ? "dynamic " : "", launch.sharedBytes);
  for (const KernelBuffer &buffer : buffers)
    if (buffer.sameAs)
      result += fmt::format("; {} in place of {}", hloc::toString(buffer.buffer),
                            hloc::toString(buffers[*buffer.sameAs].buffer));
  return result;
}

std::string FusionPlan::toString() const {
  std::string result;
  auto line = [&](const std::string &text) { result += (result.empty() ? "" : "\n") + text; };
  for (auto [i, buffer] : llvm::enumerate(scratch))
    line(fmt::format("scratch {}: {}{}", i, buffer.shape.toString(), buffer.zeroed ? ", zeroed" : ""));
  for (const FusionStep &step : steps)
    if (const auto *kernel = std::get_if<KernelPlan>(&step))
      line(kernel->toString());
    else if (const auto *copy = std::get_if<CopyPlan>(&step))
      line(fmt::format("copy {} to {}", hloc::toString(copy->from), hloc::toString(copy->to)));
    else if (const auto *fill = std::get_if<FillPlan>(&step))
      line(fmt::format("fill {} with byte {}", hloc::toString(fill->to), fill->value));
  return result;
}

namespace {

/// Plans the fusion of `value` alone, and does its steps in the output that the value is made in.
llvm::LogicalResult addEarlierValue(const FusionGraph &graph, const EarlierValue &value, const TargetInfo &target,
                                    FusionPlan &plan, DiagnosticEngine &diagnostics, PlanContext &context) {
  // What is asked for is asked of what the whole is for.
  const PlanChoices asked = std::exchange(context.choices, PlanChoices{.tile = context.choices.tile});
  llvm::FailureOr<FusionPlan> own = planFusion(graph.upTo(*value.instr), {}, target, diagnostics, context);
  context.choices = asked;
  if (failed(own))
    return llvm::failure();
  unsigned firstScratch = plan.scratch.size();
  llvm::append_range(plan.scratch, own->scratch);
  auto move = [&](PlanBuffer &buffer) {
    if (buffer.kind == PlanBuffer::Kind::Output)
      buffer.index = value.output;
    else if (buffer.kind == PlanBuffer::Kind::Scratch)
      buffer.index += firstScratch;
  };
  for (FusionStep &step : own->steps) {
    if (auto *kernel = std::get_if<KernelPlan>(&step)) {
      kernel->makes = {kernel->makes ? kernel->makes->instr : value.instr, value.output};
      for (KernelBuffer &buffer : kernel->buffers)
        move(buffer.buffer);
    } else if (auto *copy = std::get_if<CopyPlan>(&step)) {
      move(copy->from);
      move(copy->to);
    } else {
      move(std::get<FillPlan>(step).to);
    }
    plan.steps.push_back(std::move(step));
  }
  return llvm::success();
}

/// All of a hero's steps.
llvm::FailureOr<FusionPlan> planAround(KernelPlan first, OtherSteps others, const FusionGraph &graph,
                                       const FusionAliasing &offers, const TargetInfo &target,
                                       DiagnosticEngine &diagnostics, PlanContext &context) {
  FusionPlan plan;
  std::vector<KernelPlan> kernels = {std::move(first)};
  llvm::SmallVector<bool> writesScratch = {true};
  for (FollowingKernel &next : others.following) {
    kernels.emplace_back(next.launch, std::move(next.plan));
    writesScratch.push_back(next.writesScratch);
  }
  for (const KernelPlan &kernel : kernels)
    if (const Dim3 &grid = kernel.launch.grid; grid.x > target.maxGridX || grid.y > target.maxGridY) {
      diagnostics.report(DiagnosticKind::UnsupportedFeature, graph.computation().root()->range(),
                         fmt::format("a kernel of {} x {} blocks is not supported: {} launches at most {} x {}", grid.x,
                                     grid.y, target.name, target.maxGridX, target.maxGridY));
      return llvm::failure();
    }
  plan.aliasing = acceptOffers(graph, offers, kernels);
  plan.scratch = std::move(others.scratch);
  plan.steps = std::move(others.before);
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    kernel.bufferAlignment = std::max(kernel.bufferAlignment, target.maxVectorBytes);
    bindBuffers(graph, plan.aliasing, plan.scratch, writesScratch[i], kernel);
  }
  for (const EarlierValue &value : others.earlier)
    if (failed(addEarlierValue(graph, value, target, plan, diagnostics, context)))
      return llvm::failure();
  for (KernelPlan &kernel : kernels)
    if (kernel.launch.grid.x > 0)
      plan.steps.push_back(std::move(kernel));
  return plan;
}

/// Is it not plain that the first hero of the table is the best? It is where all that threads run loops for is made by
/// threads together: others would do no less.
bool isContested(const FusionGraph &graph, const PlanSummary &plan) {
  return plan.hero != Hero::Loop && llvm::any_of(graph.instructions(), [&](const HloInstruction *instr) {
           return hasTrait(instr->opcode(), OpcodeTrait::Contracts) && !llvm::is_contained(plan.kept, instr);
         });
}

/// The heroes that apply, in the order of the table, until one is plainly the best; of several the one that takes the
/// least time.
class HeroChoice {
public:
  HeroChoice(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
             DiagnosticEngine &diagnostics, PlanContext &context)
      : graph(graph), offers(offers), target(target), diagnostics(diagnostics), context(context) {}

  llvm::FailureOr<FusionPlan> run() {
#define HLOC_HERO(name, heroText, planType, ...)                                                                       \
  if (!isDecided && isOffered(heroText))                                                                               \
    offer(heroText, matchHero<planType>(graph, offers, target, context));
#include "hloc/fusion/Heroes.def"
    if (!best)
      return llvm::failure();
    best->rejections = std::move(rejections);
    return std::move(*best);
  }

  /// Why there is no plan, after the only hero that was asked has given none.
  std::string whyNone() const {
    return rejections.empty() ? "it has no launch that the target could bear" : rejections.back().reason;
  }

private:
  bool isOffered(llvm::StringRef hero) const { return context.choices.hero.empty() || context.choices.hero == hero; }

  template <typename Plan> void offer(const char *hero, HeroMatch<Plan> match) {
    const bool isAskedFor = std::is_same_v<Plan, ContractionPlan> && context.choices.tile;
    if (isAskedFor && !context.tileRefusal.empty()) {
      diagnostics.report(DiagnosticKind::BadUsage, graph.computation().root()->range(),
                         fmt::format("`{}` cannot have tiles of {}: {}", graph.computation().root()->name().str(),
                                     context.choices.tile->toString(), std::exchange(context.tileRefusal, "")));
      isDecided = true;
      return;
    }
    if (!match) {
      rejections.push_back({hero, match.reason()});
      return;
    }
    for (const Rejection &plan : match.others().plansNotTaken)
      rejections.push_back({hero, plan.reason});
    // Who is not the first says nothing: there is a kernel.
    DiagnosticEngine unheard;
    llvm::FailureOr<FusionPlan> plan = planAround({match.launch(), std::move(match.plan())}, std::move(match.others()),
                                                  graph, offers, target, best ? unheard : diagnostics, context);
    if (failed(plan)) {
      isDecided = !best;
      return;
    }
    const PlanSummary summary = summarize(graph, *plan);
    if (isAskedFor || !context.choices.hero.empty() || (!best && !isContested(graph, summary))) {
      best = std::move(*plan);
      isDecided = true;
      return;
    }
    const double time = secondsOf(summary);
    if (best && time >= seconds) {
      reject(hero, time, bestHero, seconds);
      return;
    }
    if (best)
      reject(bestHero, seconds, hero, time);
    best = std::move(*plan);
    bestHero = hero;
    seconds = time;
  }

  void reject(const char *hero, double time, const char *better, double less) {
    rejections.push_back({hero, fmt::format("it takes {:.2f} us, {} takes {:.2f}", time * 1e6, better, less * 1e6)});
  }

  double secondsOf(const PlanSummary &summary) const {
    llvm::SmallVector<const HloInstruction *> members, roots;
    llvm::copy_if(graph.instructions(), std::back_inserter(members), [](const HloInstruction *instr) {
      return instr->opcode() != Opcode::Parameter && instr->opcode() != Opcode::Tuple;
    });
    for (const FusionRoot &root : graph.roots())
      if (!llvm::is_contained(roots, root.instr))
        roots.push_back(root.instr);
    const GroupWork work = GroupCounter(graph.computation().instructions().size()).count(members, roots, summary);
    return hloc::secondsOf(work, summary, deviceOf(target));
  }

  const FusionGraph &graph;
  const FusionAliasing &offers;
  const TargetInfo &target;
  DiagnosticEngine &diagnostics;
  PlanContext &context;
  std::optional<FusionPlan> best;
  const char *bestHero = "";
  double seconds = 0;
  bool isDecided = false;
  std::vector<HeroRejection> rejections;
};

/// With the hero and the vectors that `context` asks for; or, where there are none, as is best, with the reason there.
llvm::FailureOr<FusionPlan> planAsAsked(const FusionGraph &graph, const FusionAliasing &offers,
                                        const TargetInfo &target, DiagnosticEngine &diagnostics, PlanContext &context) {
  const PlanChoices asked = context.choices;
  DiagnosticEngine unheard;
  HeroChoice choice(graph, offers, target, unheard, context);
  llvm::FailureOr<FusionPlan> plan = choice.run();
  context.refusal = failed(plan) ? choice.whyNone() : refusalOf(asked, *plan);
  if (context.refusal.empty())
    return plan;
  context.choices = PlanChoices{.tile = asked.tile};
  plan = HeroChoice(graph, offers, target, diagnostics, context).run();
  context.choices = asked;
  return plan;
}

} // namespace

llvm::FailureOr<FusionPlan> planFusion(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
                                       DiagnosticEngine &diagnostics, PlanContext &context) {
  context.refusal.clear();
  if (graph.bytesWritten() == 0) {
    FusionPlan nothing;
    nothing.aliasing.resize(graph.roots().size());
    return nothing;
  }
  if (!context.choices.hero.empty() || context.choices.vector || context.choices.parts || context.choices.rounds)
    return planAsAsked(graph, offers, target, diagnostics, context);
  return HeroChoice(graph, offers, target, diagnostics, context).run();
}

llvm::FailureOr<FusionPlan> planFusion(const FusionGraph &graph, const FusionAliasing &offers, const TargetInfo &target,
                                       DiagnosticEngine &diagnostics) {
  PlanContext context;
  return planFusion(graph, offers, target, diagnostics, context);
}

uint32_t KernelPlan::plannedRegisters() const {
  return visitHero(plan, [](const auto &own) { return hloc::plannedRegisters(own); });
}

KernelSpec describeKernel(const FusionGraph &graph, const FusionPlan &plan, const KernelPlan &kernel,
                          llvm::StringRef name) {
  KernelSpec spec;
  spec.name = name.str();
  for (const KernelBuffer &buffer : kernel.buffers)
    spec.parameters.push_back(describeBuffer(graph, plan, kernel, buffer));
  for (const TileMap *map : tensorMapsOf(kernel.plan)) {
    KernelParameter parameter = spec.parameters[map->parameter];
    parameter.written = false;
    parameter.alias.reset();
    parameter.tensorMap = map->recipe;
    spec.parameters.push_back(std::move(parameter));
  }
  spec.grid = kernel.launch.grid;
  spec.block = kernel.launch.block;
  if (kernel.launch.cluster > 1)
    spec.cluster = Dim3{kernel.launch.cluster, 1, 1};
  (kernel.launch.isSharedDynamic() ? spec.dynamicSharedBytes : spec.staticSharedBytes) =
      uint32_t(kernel.launch.sharedBytes);
  spec.hero = text(kernel.hero()).str();
  spec.plan = kernel.toString();
  spec.rejections = plan.rejections;
  KernelTraffic traffic =
      visitHero(kernel.plan, [&](const auto &own) { return trafficOf(own, kernel.graphOf(graph)); });
  spec.bytesRead = traffic.read;
  spec.bytesWritten = traffic.written;
  spec.plannedRegisters = kernel.plannedRegisters();
  return spec;
}

void describeOrigin(const HloInstruction &fusion, const SourceFile *source, KernelSpec &spec) {
  spec.instruction = fusion.name().str();
  // A fusion that a pass made has no place: its root is what the text says. Several results have the first one's.
  const HloInstruction *root = fusion.computation(AttributeKey::Calls)->root();
  if (root->opcode() == Opcode::Tuple && root->numOperands() > 0)
    root = root->operand(0);
  for (const HloInstruction *instr : {&fusion, root}) {
    if (source && spec.line == 0 && instr->range().isValid())
      spec.line = source->lineColumn(instr->range().begin).line;
    if (spec.opName.empty())
      spec.opName = instr->opName().str();
  }
}

} // namespace hloc
