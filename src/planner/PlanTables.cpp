#include "PlanTables.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/Literal.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

PlanTables::PlanTables(const HloModule &module, const TargetInfo &target, DiagnosticEngine &diagnostics,
                       const UnplannedWork &unplanned, const std::optional<TileSizes> &tile,
                       llvm::ArrayRef<ForcedKernel> forcedKernels)
    : unplanned(unplanned), target(target), equal(module), diagnostics(diagnostics), tile(tile) {
  for (const ForcedKernel &kernel : forcedKernels) {
    Forced &one = forced.emplace_back(Forced{kernel, {}, false, ""});
    for (const auto &computation : module.computations())
      for (const HloInstruction *instr : computation->instructions())
        if (instr->opcode() == Opcode::Fusion && (kernel.kernel.empty() || isKernelOf(*instr, kernel.kernel)))
          one.bodies.insert(&equal.first(*instr->computation(AttributeKey::Calls)));
  }
}

bool PlanTables::checkForced() const {
  bool areHad = true;
  for (const Forced &one : forced) {
    if (one.isHad)
      continue;
    areHad = false;
    const std::string why = one.bodies.empty()    ? fmt::format("no kernel is `{}`", one.asked.kernel)
                            : one.refusal.empty() ? "nothing that it is about is a kernel"
                                                  : one.refusal;
    diagnostics.report(DiagnosticKind::BadUsage, fmt::format("{} cannot be had: {}", one.asked.text, why));
  }
  return areHad;
}

BufferSlice PlanTables::newBuffer(ModuleBuffer::Kind kind, uint64_t bytes, std::string shape) {
  ModuleBuffer buffer;
  buffer.kind = kind;
  buffer.bytes = bytes;
  buffer.shape = std::move(shape);
  plan.buffers.push_back(std::move(buffer));
  return {uint32_t(plan.buffers.size() - 1), 0, bytes};
}

BufferSlice PlanTables::constant(const Literal &literal, const Shape &shape) {
  if (!constants)
    constants = newBuffer(ModuleBuffer::Kind::Constant, 0, "").buffer;
  ModuleBuffer &buffer = plan.buffers[*constants];
  const std::vector<uint8_t> bytes = toDeviceBytes(literal, shape);
  auto [found, isNew] = offsets.try_emplace(llvm::toStringRef(bytes).str(), buffer.bytes);
  if (isNew) {
    buffer.constantData += found->first;
    buffer.bytes = placementEnd(buffer.constantData.size());
    buffer.constantData.resize(buffer.bytes);
  }
  return {*constants, found->second, bytes.size()};
}

BufferSlice PlanTables::placeOf(BufferSlice slice) const {
  auto moved = movedTo.find(slice.buffer);
  return moved == movedTo.end() ? slice : BufferSlice{moved->second, slice.offset, slice.bytes};
}

const FusionGraph *PlanTables::graphOf(const HloComputation &body) {
  const HloComputation *key = &equal.first(body);
  auto found = graphs.find(key);
  if (found == graphs.end()) {
    llvm::FailureOr<FusionGraph> graph = FusionGraph::build(body, diagnostics);
    if (failed(graph))
      return nullptr;
    found = graphs.emplace(key, std::move(*graph)).first;
  }
  return &found->second;
}

/// Of what it makes, or the first of several.
static std::string nameOf(const FusionGraph &graph) {
  const HloInstruction *root = graph.computation().root();
  return (root->opcode() == Opcode::Tuple && root->numOperands() ? root->operand(0) : root)->name().str();
}

/// Empty: one of its kernels has it.
static std::string whyNotTileOf(const FusionPlan &plan, const TileSizes &wanted) {
  std::string why = "there is no kernel";
  for (const FusionStep &step : plan.steps)
    if (const auto *kernel = std::get_if<KernelPlan>(&step))
      if (why = whyNotTile(kernel->plan, wanted); why.empty())
        break;
  return why;
}

std::shared_ptr<const PlannedFusion> PlanTables::planOf(const FusionGraph &graph, const FusionAliasing &offers) {
  std::vector<int64_t> key;
  for (const std::optional<unsigned> &offer : offers)
    key.push_back(offer ? int64_t(*offer) : -1);
  std::shared_ptr<const PlannedFusion> &known = planned[{&graph.computation(), std::move(key)}];
  if (known)
    return known;
  llvm::SmallVector<Forced *> meant;
  plans.choices = PlanChoices{.tile = tile};
  for (Forced &one : forced) {
    if (!one.bodies.contains(&equal.first(graph.computation())))
      continue;
    meant.push_back(&one);
    const PlanChoices &asked = one.asked.choices;
    if (asked.tile)
      plans.choices.tile = asked.tile;
    if (!asked.hero.empty())
      plans.choices.hero = asked.hero;
    if (asked.vector)
      plans.choices.vector = asked.vector;
    if (asked.parts)
      plans.choices.parts = asked.parts;
    if (asked.rounds)
      plans.choices.rounds = asked.rounds;
  }
  llvm::FailureOr<FusionPlan> fusionPlan = planFusion(graph, offers, target, diagnostics, plans);
  if (failed(fusionPlan))
    return nullptr;
  for (Forced *one : meant) {
    std::string refusal = plans.refusal;
    if (one->asked.choices.tile)
      refusal = whyNotTileOf(*fusionPlan, *one->asked.choices.tile);
    one->isHad |= refusal.empty();
    if (one->refusal.empty() && !refusal.empty())
      one->refusal = fmt::format("`{}`: {}", nameOf(graph), refusal);
  }
  return known = std::make_shared<PlannedFusion>(PlannedFusion{graph, std::move(*fusionPlan)});
}

uint32_t PlanTables::kernelOf(const HloInstruction &fusion, const std::shared_ptr<const PlannedFusion> &planned,
                              unsigned step) {
  auto [found, isNew] = kernels.try_emplace({planned.get(), step}, uint32_t(plan.kernels.size()));
  if (isNew)
    plan.kernels.push_back({&fusion, planned, step});
  else if (const HloInstruction *maker = plan.kernels[found->second].fusion; maker != &fusion)
    plan.servedBy.try_emplace(&fusion, maker);
  return found->second;
}

const PlanTables::Origins &PlanTables::originsOf(const HloComputation &computation) {
  if (auto found = origins.find(&computation); found != origins.end())
    return found->second;
  std::vector<Origins> all; // by id
  TupleLeaves leaves;
  for (const HloInstruction *instr : computation.instructions()) {
    Origins &own = all.emplace_back();
    own.resize(instr->shape().leaves().size());
    const Opcode opcode = instr->opcode();
    if (opcode == Opcode::Parameter) {
      for (unsigned i = 0; i < own.size() && computation.numParameters() == 1; ++i)
        own[i] = i;
    } else if (opcode == Opcode::Tuple) {
      own.clear();
      for (const HloInstruction *operand : instr->operands())
        llvm::append_range(own, Origins(all[operand->id()]));
    } else if (opcode == Opcode::GetTupleElement) {
      auto [first, count] = leaves.element(*instr->operand(0), instr->intOr(AttributeKey::Index, 0));
      const Origins &tuple = all[instr->operand(0)->id()];
      own.assign(tuple.begin() + first, tuple.begin() + first + count);
    } else if (hasTrait(opcode, OpcodeTrait::NamesBuffers)) {
      own = Origins(all[instr->operand(0)->id()]);
    } else if (opcode == Opcode::While) {
      const Origins &body = originsOf(*instr->computation(AttributeKey::Body));
      for (unsigned i = 0; i < own.size(); ++i)
        if (body[i] == i)
          own[i] = all[instr->operand(0)->id()][i];
    } // what all others give is made by them
  }
  return origins[&computation] = all[computation.root()->id()];
}

void PlanTables::dropUnused() {
  std::vector<uint32_t> numbers(plan.buffers.size());
  uint32_t next = 0;
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = next;
    if (movedTo.contains(i))
      continue;
    if (next != i)
      plan.buffers[next] = std::move(plan.buffers[i]);
    ++next;
  }
  plan.buffers.resize(next);
  auto renumber = [&](BufferSlice &slice) { slice.buffer = numbers[slice.buffer]; };
  forEachStep(plan.steps, [&](Step &step) { forEachSlice(step, renumber); });
  for (ModuleResult &result : plan.results)
    renumber(result.slice);
  for (ComputedValue &value : plan.values)
    llvm::for_each(value.leaves, renumber);
}

std::pair<size_t, size_t> TupleLeaves::element(const HloInstruction &tuple, int64_t index) {
  std::vector<size_t> &starts = firstLeaves[&tuple];
  if (starts.empty()) {
    starts.push_back(0);
    for (const Shape &element : tuple.shape().elements())
      starts.push_back(starts.back() + element.leaves().size());
  }
  return {starts[index], starts[index + 1] - starts[index]};
}

} // namespace hloc
