#include "hloc/planner/ExecutionPlan.h"

#include "BufferAssignment.h"
#include "ComputationPlanner.h"
#include "hloc/hlo/InputOutputAlias.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

Slices parameterBuffers(const HloInstruction &parameter, PlanTables &tables) {
  Slices slices;
  for (const Shape::Leaf &leaf : parameter.shape().leaves()) {
    slices.push_back(tables.newBuffer(ModuleBuffer::Kind::Parameter, leaf.shape.byteSize(), leaf.shape.toString()));
    ModuleBuffer &buffer = tables.plan.buffers.back();
    buffer.parameterNumber = parameter.parameterNumber();
    buffer.leafIndex.assign(leaf.index.begin(), leaf.index.end());
  }
  return slices;
}

/// By result leaf: the parameter's buffer that it is to lie in, as `input_output_alias` says.
std::vector<std::optional<uint32_t>> donations(const HloModule &module, const std::vector<ModuleBuffer> &parameters) {
  llvm::SmallVector<Shape::Leaf, 4> leaves = module.entry()->root()->shape().leaves();
  std::vector<std::optional<uint32_t>> targets(leaves.size());
  std::optional<std::vector<InputOutputAlias>> aliases = inputOutputAliases(module);
  if (!aliases)
    return targets;                                   // the verifier has said so
  std::map<std::vector<uint32_t>, uint32_t> bufferOf; // by number and tuple index
  for (auto [number, buffer] : llvm::enumerate(parameters)) {
    std::vector<uint32_t> key{buffer.parameterNumber};
    llvm::append_range(key, buffer.leafIndex);
    bufferOf[std::move(key)] = uint32_t(number);
  }
  for (const InputOutputAlias &alias : *aliases) {
    std::vector<uint32_t> key{uint32_t(alias.parameter)};
    llvm::append_range(key, alias.parameterPath);
    auto parameter = bufferOf.find(key);
    auto result = llvm::find_if(leaves, [&](const Shape::Leaf &leaf) { return llvm::equal(leaf.index, alias.output); });
    if (parameter == bufferOf.end() || result == leaves.end()) // a tuple as a whole, which has no buffer
      continue;
    const uint32_t buffer = parameter->second;
    if (parameters[buffer].bytes == uint64_t(result->shape.byteSize()) && !llvm::is_contained(targets, buffer))
      targets[result - leaves.begin()] = buffer;
  }
  return targets;
}

} // namespace

std::optional<ExecutionPlan> planModule(const HloModule &module, const TargetInfo &target,
                                        DiagnosticEngine &diagnostics, const UnplannedWork &unplanned,
                                        const std::optional<TileSizes> &tile, llvm::ArrayRef<ForcedKernel> forced) {
  const HloComputation &entry = *module.entry();
  PlanTables tables(module, target, diagnostics, unplanned, tile, forced);
  ExecutionPlan &plan = tables.plan;
  // Buffers in the order in which the parameters stand, uses in that of their numbers.
  ComputationUse use{std::vector<Slices>(entry.numParameters()), {}, {}, ""};
  for (const HloInstruction *instr : entry.instructions())
    if (instr->opcode() == Opcode::Parameter)
      use.parameters[instr->parameterNumber()] = parameterBuffers(*instr, tables);
  use.targets = donations(module, plan.buffers);
  std::optional<PlannedComputation> planned = planComputation(tables, entry, use);
  if (!planned || !tables.checkForced())
    return std::nullopt;
  plan.steps = std::move(planned->steps);
  for (auto [leaf, slice] : llvm::zip_equal(entry.root()->shape().leaves(), planned->results)) {
    plan.results.push_back({{leaf.index.begin(), leaf.index.end()}, slice, leaf.shape.toString()});
    if (ModuleBuffer &buffer = plan.buffers[slice.buffer]; buffer.kind == ModuleBuffer::Kind::Temporary) {
      buffer.kind = ModuleBuffer::Kind::Result;
      buffer.leafIndex = plan.results.back().leafIndex;
    }
  }
  tables.dropUnused();
  placeTemporaries(plan.buffers, plan.steps, [&](const LaunchStep &launch, size_t argument) {
    const auto &buffers = plan.kernels[launch.kernel].plan().buffers;
    if (argument >= buffers.size())
      return false; // a tensor map, of what is also passed by a pointer
    const KernelBuffer &buffer = buffers[argument];
    return buffer.written && buffer.buffer.kind != PlanBuffer::Kind::Parameter && !buffer.sameAs;
  });
  return std::move(plan);
}

} // namespace hloc
