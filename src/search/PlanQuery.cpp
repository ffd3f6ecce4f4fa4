#include "search/PlanQuery.h"

#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {
namespace {

/// The group as a body in a module of its own, and what its instructions stand for, by id.
struct Body {
  HloModule module{"query"};
  HloComputation *computation = module.addComputation("group");
  std::vector<HloInstruction *> original;
};

void build(Body &body, llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots) {
  HloBuilder builder(*body.computation);
  llvm::DenseMap<const HloInstruction *, HloInstruction *> mapped;
  llvm::SmallVector<HloInstruction *> operands;
  int64_t number = 0;
  for (HloInstruction *instr : members)
    mapped[instr] = nullptr;
  for (HloInstruction *instr : members) {
    operands.clear();
    for (HloInstruction *operand : instr->operands()) {
      HloInstruction *&inside = mapped[operand];
      if (!inside) {
        inside = builder.parameter(number++, operand->shape());
        body.original.push_back(operand);
      }
      operands.push_back(inside);
    }
    HloInstruction *made = builder.clone(*instr, operands);
    mapped[instr] = made;
    body.original.push_back(instr);
  }
  llvm::SmallVector<HloInstruction *> made;
  for (HloInstruction *root : roots)
    made.push_back(mapped.lookup(root));
  body.computation->setRoot(made.size() == 1 ? made.front() : builder.tuple(made));
}

/// What one kernel's hero says.
struct Describe {
  PlanAnswer &answer;
  const Body &body;
  void keep(const HloInstruction *instr) { answer.kept.push_back(body.original[instr->id()]); }
  void operator()(const ContractionPlan &plan) { keep(plan.hero); }
  void operator()(const RowReductionPlan &plan) { keepHeroes(plan.frame); }
  void operator()(const ColumnReductionPlan &plan) { keepHeroes(plan.frame); }
  void operator()(const RowsPlan &plan) {
    for (const ReductionFrame &stage : plan.stages)
      keepHeroes(stage);
    if (plan.columns) {
      keepHeroes(*plan.columns);
      answer.besideColumns = true;
    }
    if (!plan.inRegisters)
      answer.passes = unsigned(plan.stages.size()) + unsigned(!plan.roots.empty());
  }
  void operator()(const ColumnsPlan &plan) {
    for (const ReductionFrame &stage : plan.stages)
      keepHeroes(stage);
    if (!plan.inRegisters)
      answer.passes = unsigned(plan.stages.size()) + unsigned(!plan.roots.empty());
  }
  void operator()(const TransposePlan &plan) {
    llvm::for_each(plan.heroes, [&](auto *hero) { keep(hero); });
  }
  void operator()(const ScatterPlan &plan) {
    keep(plan.hero);
    answer.inPlace = true;
  }
  void operator()(const SortPlan &plan) {
    keep(plan.hero);
    answer.passes = std::max(answer.passes, answer.launches);
  }
  void operator()(const UpdateSlicePlan &plan) {
    for (const auto &segment : plan.segments)
      for (const auto &update : segment.updates)
        keep(update.hero);
    answer.inPlace = true;
  }
  void operator()(const ConcatenatePlan &plan) {
    llvm::for_each(plan.heroes, [&](auto *hero) { keep(hero); });
  }
  void operator()(const InputSlicesPlan &) {}
  void operator()(const LoopPlan &) {}
  void operator()(std::monostate) {}

private:
  void keepHeroes(const ReductionFrame &frame) {
    for (const ReductionHero &hero : frame.heroes)
      keep(hero.instr);
  }
};

/// Kernels follow each other.
void addCounts(PlanCounts own, const Body &body, PlanCounts &all) {
  for (PlanCounts::OperandRead &read : own.reads) {
    read.instr = body.original[read.instr->id()];
    all.reads.push_back(read);
  }
  all.instructions += own.instructions;
  all.sharedPasses += own.sharedPasses;
  all.memoryRoundTrips = std::max(all.memoryRoundTrips, own.memoryRoundTrips);
  all.sharedRoundTrips = std::max(all.sharedRoundTrips, own.sharedRoundTrips);
  all.chainInstructions = std::max(all.chainInstructions, own.chainInstructions);
}

std::optional<PlanAnswer> answerOf(const Body &body, const FusionGraph &graph, const FusionAliasing &offers,
                                   const TargetInfo &target) {
  DiagnosticEngine unheard;
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, target, unheard);
  if (failed(plan))
    return std::nullopt;
  PlanAnswer answer;
  answer.launches = unsigned(plan->steps.size());
  for (const ScratchBuffer &scratch : plan->scratch)
    answer.extraBytes += 2 * double(scratch.bytes());
  auto bytesOf = [&](const PlanBuffer &buffer) {
    return buffer.kind == PlanBuffer::Kind::Output      ? double(graph.roots()[buffer.index].shape.byteSize())
           : buffer.kind == PlanBuffer::Kind::Parameter ? double(graph.parameters()[buffer.index]->shape().byteSize())
                                                        : 0;
  };
  uint64_t most = 0;
  for (const FusionStep &step : plan->steps) {
    if (const auto *copy = std::get_if<CopyPlan>(&step)) {
      answer.extraBytes += 2 * bytesOf(copy->to);
    } else if (const auto *fill = std::get_if<FillPlan>(&step)) {
      answer.extraBytes += bytesOf(fill->to);
    } else {
      const auto &kernel = std::get<KernelPlan>(step);
      if (uint64_t threads = kernel.launch.grid.count() * kernel.launch.block.count(); threads > most) {
        most = threads;
        answer.blocks = kernel.launch.grid.count();
        answer.threads = uint32_t(kernel.launch.block.count());
      }
      if (kernel.makes)
        answer.extraBytes += double(graph.roots()[kernel.makes->output].shape.byteSize());
      answer.hero = kernel.hero();
      answer.registers = std::max(answer.registers, kernel.plannedRegisters());
      answer.sharedBytes = std::max(answer.sharedBytes, uint32_t(kernel.launch.sharedBytes));
      addCounts(countsOf(kernel), body, answer.counts);
      std::visit(Describe{answer, body}, kernel.plan);
    }
  }
  return answer;
}

} // namespace

bool decidesHero(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::Reduce:
  case Opcode::Transpose:
  case Opcode::Concatenate:
  case Opcode::Scatter:
  case Opcode::Sort:
  case Opcode::DynamicUpdateSlice:
  case Opcode::Dot:
  case Opcode::Convolution:
    return true;
  case Opcode::Copy:
    return instr.shape().minorToMajor() != instr.operand(0)->shape().minorToMajor();
  default:
    return false;
  }
}

std::optional<PlanAnswer> askForPlan(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
                                     llvm::function_ref<bool(const HloInstruction &)> mayUpdate,
                                     const TargetInfo &target) {
  Body body;
  build(body, members, roots);
  DiagnosticEngine unheard;
  llvm::FailureOr<FusionGraph> graph = FusionGraph::build(*body.computation, unheard);
  if (failed(graph))
    return std::nullopt;
  FusionAliasing offers(graph->roots().size());
  for (unsigned root = 0; root < graph->roots().size(); ++root)
    if (std::optional<unsigned> parameter = updatedParameter(*graph, root);
        parameter && mayUpdate(*body.original[graph->parameters()[*parameter]->id()]))
      offers[root] = parameter;
  return answerOf(body, *graph, offers, target);
}

} // namespace hloc
