#include "hloc/planner/ExecutionPlan.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/DenseMap.h"

namespace hloc {

namespace {

class Planner {
public:
  Planner(const HloModule &module, DiagnosticEngine &diagnostics) : module(module), diagnostics(diagnostics) {}

  std::optional<ExecutionPlan> run() {
    const HloComputation &entry = *module.entry();
    for (HloInstruction *instr : entry.instructions())
      place(*instr);
    if (failed)
      return std::nullopt;
    llvm::ArrayRef<BufferSlice> slices = places[entry.root()];
    llvm::SmallVector<Shape::Leaf, 4> leaves = entry.root()->shape().leaves();
    for (auto [leaf, slice] : llvm::zip_equal(leaves, slices)) {
      ModuleResult result{{leaf.index.begin(), leaf.index.end()}, slice, leaf.shape.toString()};
      plan.results.push_back(std::move(result));
      ModuleBuffer &buffer = plan.buffers[slice.buffer];
      if (buffer.kind == ModuleBuffer::Kind::Temporary) {
        buffer.kind = ModuleBuffer::Kind::Result;
        buffer.leafIndex = plan.results.back().leafIndex;
      }
    }
    return std::move(plan);
  }

private:
  using Slices = llvm::SmallVector<BufferSlice, 2>;

  /// Decides where each array leaf of the value lives.
  void place(const HloInstruction &instr) {
    switch (instr.opcode()) {
    case Opcode::Parameter:
      places[&instr] = newBuffers(instr, ModuleBuffer::Kind::Parameter);
      return;
    case Opcode::Tuple: {
      Slices all;
      for (HloInstruction *operand : instr.operands())
        llvm::append_range(all, places[operand]);
      places[&instr] = std::move(all);
      return;
    }
    case Opcode::GetTupleElement:
      places[&instr] = elementOf(instr);
      return;
    case Opcode::Bitcast:
    case Opcode::OptimizationBarrier:
      places[&instr] = Slices(places[instr.operand(0)]);
      return;
    case Opcode::Fusion:
      places[&instr] = launch(instr);
      return;
    default:
      failed = true;
      places[&instr] = Slices(instr.shape().leaves().size());
      diagnostics.report(DiagnosticKind::UnsupportedOpcode, instr.range(),
                         "`" + text(instr.opcode()).str() +
                             "` at the top level of the entry is not supported: hloc "
                             "compiles fusions and entries made of fusible ops");
    }
  }

  Slices newBuffers(const HloInstruction &instr, ModuleBuffer::Kind kind) {
    Slices slices;
    for (const Shape::Leaf &leaf : instr.shape().leaves()) {
      if (!leaf.shape.isArray()) {
        failed = true;
        diagnostics.report(DiagnosticKind::UnsupportedType, instr.range(),
                           "`" + leaf.shape.toString() + "` cannot be in device memory");
        slices.push_back({});
        continue;
      }
      ModuleBuffer buffer;
      buffer.kind = kind;
      buffer.bytes = leaf.shape.byteSize();
      buffer.shape = leaf.shape.toString();
      buffer.leafIndex.assign(leaf.index.begin(), leaf.index.end());
      if (kind == ModuleBuffer::Kind::Parameter)
        buffer.parameterNumber = instr.parameterNumber();
      else
        buffer.leafIndex.clear();
      slices.push_back({uint32_t(plan.buffers.size()), 0, buffer.bytes});
      plan.buffers.push_back(std::move(buffer));
    }
    return slices;
  }

  Slices elementOf(const HloInstruction &instr) {
    int64_t index = instr.intOr(AttributeKey::Index, 0);
    size_t first = 0;
    const Shape &tuple = instr.operand(0)->shape();
    for (int64_t i = 0; i < index; ++i)
      first += tuple.element(i).leaves().size();
    size_t count = tuple.element(index).leaves().size();
    return Slices(llvm::ArrayRef<BufferSlice>(places[instr.operand(0)]).slice(first, count));
  }

  Slices launch(const HloInstruction &fusion) {
    PlannedLaunch step;
    step.fusion = &fusion;
    for (HloInstruction *operand : fusion.operands())
      llvm::append_range(step.inputs, places[operand]);
    Slices outputs = newBuffers(fusion, ModuleBuffer::Kind::Temporary);
    step.outputs.assign(outputs.begin(), outputs.end());
    bool writes = llvm::any_of(step.outputs, [](const BufferSlice &slice) { return slice.bytes != 0; });
    if (writes)
      plan.launches.push_back(std::move(step));
    return outputs;
  }

  const HloModule &module;
  DiagnosticEngine &diagnostics;
  ExecutionPlan plan;
  llvm::DenseMap<const HloInstruction *, Slices> places;
  bool failed = false;
};

} // namespace

std::optional<ExecutionPlan> planModule(const HloModule &module, DiagnosticEngine &diagnostics) {
  return Planner(module, diagnostics).run();
}

} // namespace hloc
