#include "search/PlanQuery.h"

#include "search/OpcodeRoles.h"

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

std::optional<PlanSummary> answerOf(const Body &body, const FusionGraph &graph, const FusionAliasing &offers,
                                    const TargetInfo &target, PlanContext &plans) {
  DiagnosticEngine unheard;
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, target, unheard, plans);
  if (failed(plan))
    return std::nullopt;
  PlanSummary answer = summarize(graph, *plan);
  for (const HloInstruction *&instr : answer.kept)
    instr = body.original[instr->id()];
  for (PlanCounts::OperandRead &read : answer.counts.reads)
    read.instr = body.original[read.instr->id()];
  return answer;
}

} // namespace

bool decidesHero(const HloInstruction &instr) {
  const DecidesHero decides = roleOf(instr.opcode()).decides;
  return decides == DecidesHero::Yes || (decides == DecidesHero::IfLayoutChanges &&
                                         instr.shape().minorToMajor() != instr.operand(0)->shape().minorToMajor());
}

std::optional<PlanSummary> askForPlan(llvm::ArrayRef<HloInstruction *> members, llvm::ArrayRef<HloInstruction *> roots,
                                      llvm::function_ref<bool(const HloInstruction &)> mayUpdate,
                                      const TargetInfo &target, PlanContext &plans) {
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
  return answerOf(body, *graph, offers, target, plans);
}

} // namespace hloc
