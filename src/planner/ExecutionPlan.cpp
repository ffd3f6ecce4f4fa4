// Three passes over the entry: every value gets buffers of its own; then, fusion by fusion, outputs take the place of
// operands where that is wanted and can be borne, and the fusions are planned; then what is left goes into the results.

#include "hloc/planner/ExecutionPlan.h"

#include "hloc/hlo/InputOutputAlias.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <map>
#include <set>

namespace hloc {

namespace {

using Slices = llvm::SmallVector<BufferSlice, 2>;

/// A fusion that computes something, or what stands in the entry and cannot be compiled.
struct Work {
  const HloInstruction *fusion;
  Slices inputs;  ///< one per array leaf of the operands, in order
  Slices outputs; ///< one per array leaf of the shape
};

/// A result that has to lie in a parameter's buffer.
struct Donation {
  size_t result;   ///< index into ExecutionPlan::results
  uint32_t buffer; ///< of the parameter
};

class Planner {
public:
  Planner(const HloModule &module, const TargetInfo &target, DiagnosticEngine &diagnostics,
          const UnplannedWork &unplanned)
      : module(module), target(target), diagnostics(diagnostics), unplanned(unplanned) {}

  std::optional<ExecutionPlan> run() {
    const HloComputation &entry = *module.entry();
    for (HloInstruction *instr : entry.instructions())
      places[instr] = place(*instr);
    for (auto [leaf, slice] : llvm::zip_equal(entry.root()->shape().leaves(), places[entry.root()]))
      plan.results.push_back({{leaf.index.begin(), leaf.index.end()}, slice, leaf.shape.toString()});
    readDonations();
    countUses();
    for (size_t i = 0; i < works.size(); ++i)
      if (!planWork(i))
        return std::nullopt;
    donateRest();
    nameResults();
    dropUnused();
    return std::move(plan);
  }

private:
  // Buffers of their own.

  Slices place(const HloInstruction &instr) {
    switch (instr.opcode()) {
    case Opcode::Parameter:
      return newBuffers(instr, ModuleBuffer::Kind::Parameter);
    case Opcode::Tuple: {
      Slices all;
      for (HloInstruction *operand : instr.operands())
        llvm::append_range(all, places[operand]);
      return all;
    }
    case Opcode::GetTupleElement:
      return elementOf(instr);
    case Opcode::Bitcast:
    case Opcode::OptimizationBarrier:
      return Slices(places[instr.operand(0)]);
    case Opcode::Fusion:
      return outputsOf(instr);
    default:
      HLOC_CHECK(unplanned.contains(&instr), "not in normal form");
      return outputsOf(instr);
    }
  }

  Slices newBuffers(const HloInstruction &instr, ModuleBuffer::Kind kind) {
    Slices slices;
    for (const Shape::Leaf &leaf : instr.shape().leaves()) {
      BufferSlice slice = newBuffer(kind, leaf.shape.byteSize(), leaf.shape.toString());
      if (kind == ModuleBuffer::Kind::Parameter) {
        plan.buffers.back().parameterNumber = instr.parameterNumber();
        plan.buffers.back().leafIndex.assign(leaf.index.begin(), leaf.index.end());
      }
      slices.push_back(slice);
    }
    return slices;
  }

  BufferSlice newBuffer(ModuleBuffer::Kind kind, uint64_t bytes, std::string shape) {
    ModuleBuffer buffer;
    buffer.kind = kind;
    buffer.bytes = bytes;
    buffer.shape = std::move(shape);
    plan.buffers.push_back(std::move(buffer));
    return {uint32_t(plan.buffers.size() - 1), 0, bytes};
  }

  Slices elementOf(const HloInstruction &instr) {
    int64_t index = instr.intOr(AttributeKey::Index, 0);
    const HloInstruction &tuple = *instr.operand(0);
    std::vector<size_t> &starts = firstLeaves[&tuple];
    if (starts.empty()) {
      starts.push_back(0);
      for (const Shape &element : tuple.shape().elements())
        starts.push_back(starts.back() + element.leaves().size());
    }
    return Slices(llvm::ArrayRef<BufferSlice>(places[&tuple]).slice(starts[index], starts[index + 1] - starts[index]));
  }

  Slices outputsOf(const HloInstruction &fusion) {
    Work work{&fusion, {}, newBuffers(fusion, ModuleBuffer::Kind::Temporary)};
    for (HloInstruction *operand : fusion.operands())
      llvm::append_range(work.inputs, places[operand]);
    works.push_back(std::move(work));
    return works.back().outputs;
  }

  // Taking the place of operands.

  void readDonations() {
    std::optional<std::vector<InputOutputAlias>> aliases = inputOutputAliases(module);
    if (!aliases)
      return;                                             // the verifier has said so
    std::map<std::vector<uint32_t>, uint32_t> parameters; // by number and tuple index
    for (auto [number, buffer] : llvm::enumerate(plan.buffers))
      if (buffer.kind == ModuleBuffer::Kind::Parameter) {
        std::vector<uint32_t> key{buffer.parameterNumber};
        llvm::append_range(key, buffer.leafIndex);
        parameters[std::move(key)] = uint32_t(number);
      }
    std::map<std::vector<uint32_t>, size_t> results; // by tuple index
    for (auto [number, result] : llvm::enumerate(plan.results))
      results[result.leafIndex] = number;
    for (const InputOutputAlias &alias : *aliases) {
      std::vector<uint32_t> key{uint32_t(alias.parameter)};
      llvm::append_range(key, alias.parameterPath);
      auto parameter = parameters.find(key);
      auto result = results.find({alias.output.begin(), alias.output.end()});
      if (parameter == parameters.end() || result == results.end()) // a tuple as a whole, which has no buffer
        continue;
      const BufferSlice &slice = plan.results[result->second].slice;
      if (plan.buffers[parameter->second].bytes != slice.bytes)
        continue;
      donations.push_back({result->second, parameter->second});
      placesGiven.emplace(slice.buffer, parameter->second);
    }
  }

  void countUses() {
    lastRead.assign(plan.buffers.size(), -1);
    numResults.assign(plan.buffers.size(), 0);
    for (auto [i, work] : llvm::enumerate(works))
      for (const BufferSlice &slice : work.inputs)
        lastRead[slice.buffer] = int64_t(i);
    for (const ModuleResult &result : plan.results)
      ++numResults[result.slice.buffer];
  }

  /// The buffer whose place output `buffer` of `work` should take; nothing if none, or if somebody still needs it.
  /// What is updated in part is always worth it, others work in place where the text says so.
  std::optional<uint32_t> wantedPlace(size_t work, const FusionGraph &graph, uint32_t buffer, unsigned output) const {
    auto [given, end] = placesGiven.equal_range(buffer);
    for (; given != end; ++given)
      if (isFree(given->second, work))
        return given->second;
    auto isOver = [&](uint32_t operand) {
      return plan.buffers[operand].kind == ModuleBuffer::Kind::Temporary && isFree(operand, work);
    };
    const HloInstruction &fusion = *works[work].fusion;
    if (std::optional<unsigned> parameter = updatedParameter(graph, output))
      if (uint32_t operand = placeOf(works[work].inputs[*parameter]).buffer; isOver(operand))
        return operand;
    const AttributeValue *aliases = fusion.find(AttributeKey::OutputToOperandAliasing);
    if (!aliases)
      return std::nullopt;
    llvm::SmallVector<Shape::Leaf, 4> leaves = fusion.shape().leaves();
    for (const OutputAlias &alias : std::get<llvm::ArrayRef<OutputAlias>>(*aliases)) {
      if (llvm::ArrayRef(leaves[output].index) != alias.output || !alias.operandIndex.empty() ||
          !fusion.operand(alias.operand)->shape().isArray())
        continue;
      uint32_t operand = placeOf(places.at(fusion.operand(alias.operand)).front()).buffer;
      if (isOver(operand))
        return operand;
    }
    return std::nullopt;
  }

  /// Nobody needs what is in the buffer once `work` has been done, and no other output has taken it.
  bool isFree(uint32_t buffer, size_t work) const {
    return lastRead[buffer] <= int64_t(work) && numResults[buffer] == 0 && !taken.contains(buffer);
  }

  /// `slice` where it lies after all moves so far. What something was moved to does not move any more: only outputs of
  /// the fusion that is being planned do, and places are taken from parameters and fusions before.
  BufferSlice placeOf(BufferSlice slice) const {
    auto moved = movedTo.find(slice.buffer);
    return moved == movedTo.end() ? slice : BufferSlice{moved->second, slice.offset, slice.bytes};
  }

  /// Wherever `from`, which nobody has written yet, was meant, it is `to` from now on. `from` is an output of the
  /// fusion that is being planned, so that steps made before do not name it.
  void move(uint32_t from, uint32_t to) {
    movedTo[from] = to;
    lastRead[to] = std::max(lastRead[to], lastRead[from]);
    numResults[to] += numResults[from];
    if (plan.buffers[to].kind == ModuleBuffer::Kind::Parameter) { // a temporary may be passed on
      plan.buffers[to].donated = true;
      taken.insert(to);
    }
  }

  bool planWork(size_t number) {
    const HloInstruction &fusion = *works[number].fusion;
    if (!isWork(fusion))
      return true;
    if (auto reason = unplanned.find(&fusion); reason != unplanned.end()) {
      addUnsupported(works[number], reason->second);
      return true;
    }
    const FusionGraph *graph = graphOf(*fusion.computation(AttributeKey::Calls));
    if (!graph)
      return false;
    // Where an output may go, and which of the fusion's parameters lies there, if any.
    llvm::SmallVector<std::optional<uint32_t>> wanted;
    FusionAliasing offers;
    const Slices inputs =
        llvm::map_to_vector<2>(works[number].inputs, [&](BufferSlice slice) { return placeOf(slice); });
    for (auto [i, output] : llvm::enumerate(works[number].outputs)) {
      std::optional<uint32_t> place = wantedPlace(number, *graph, output.buffer, unsigned(i));
      auto isPlace = [&](const BufferSlice &slice) { return slice.buffer == *place; };
      if (place && (llvm::is_contained(wanted, place) || llvm::count_if(inputs, isPlace) > 1))
        place.reset(); // wanted by an output before, or given to two parameters
      const BufferSlice *input = place ? llvm::find_if(inputs, isPlace) : inputs.end();
      offers.push_back(input == inputs.end() ? std::nullopt : std::optional(unsigned(input - inputs.begin())));
      wanted.push_back(place);
    }
    std::shared_ptr<const PlannedFusion> planned = planOf(*graph, offers);
    if (!planned)
      return false;
    for (unsigned i = 0; i < wanted.size(); ++i)
      if (wanted[i] && (!offers[i] || planned->plan.aliasing[i]))
        move(works[number].outputs[i].buffer, *wanted[i]);
    for (auto [i, taken] : llvm::enumerate(planned->plan.aliasing))
      if (taken)
        plan.inPlace.push_back({&fusion, unsigned(i), *taken});
    addSteps(works[number], std::move(planned));
    return true;
  }

  /// One graph for all fusions that call the computation; null after an error.
  const FusionGraph *graphOf(const HloComputation &body) {
    auto found = graphs.find(&body);
    if (found == graphs.end()) {
      llvm::FailureOr<FusionGraph> graph = FusionGraph::build(body, diagnostics);
      if (failed(graph))
        return nullptr;
      found = graphs.emplace(&body, std::move(*graph)).first;
    }
    return &found->second;
  }

  /// One plan for all fusions that call the computation and are offered the same.
  std::shared_ptr<const PlannedFusion> planOf(const FusionGraph &graph, const FusionAliasing &offers) {
    std::vector<int64_t> key;
    for (const std::optional<unsigned> &offer : offers)
      key.push_back(offer ? int64_t(*offer) : -1);
    std::shared_ptr<const PlannedFusion> &known = planned[{&graph.computation(), std::move(key)}];
    if (known)
      return known;
    llvm::FailureOr<FusionPlan> fusionPlan = planFusion(graph, offers, target, diagnostics);
    if (failed(fusionPlan))
      return nullptr;
    return known = std::make_shared<PlannedFusion>(PlannedFusion{graph, std::move(*fusionPlan)});
  }

  void addSteps(const Work &work, std::shared_ptr<const PlannedFusion> planned) {
    Slices scratch;
    for (const ScratchBuffer &buffer : planned->plan.scratch) {
      scratch.push_back(newBuffer(ModuleBuffer::Kind::Temporary, buffer.bytes(), buffer.shape.toString()));
      lastRead.push_back(-1);
      numResults.push_back(0);
      if (buffer.zeroed)
        addStep(work, FillStep{scratch.back(), 0});
    }
    auto sliceOf = [&](const PlanBuffer &buffer) {
      const Slices &slices = buffer.kind == PlanBuffer::Kind::Parameter ? work.inputs
                             : buffer.kind == PlanBuffer::Kind::Output  ? work.outputs
                                                                        : scratch;
      return buffer.kind == PlanBuffer::Kind::Scratch ? slices[buffer.index] : placeOf(slices[buffer.index]);
    };
    for (auto [i, step] : llvm::enumerate(planned->plan.steps))
      if (const auto *kernel = std::get_if<KernelPlan>(&step)) {
        LaunchStep launch{kernelOf(*work.fusion, planned, unsigned(i)), {}};
        for (const KernelBuffer &buffer : kernel->buffers)
          launch.arguments.emplace_back(sliceOf(buffer.buffer));
        addStep(work, std::move(launch));
      } else if (const auto *copy = std::get_if<CopyPlan>(&step)) {
        addStep(work, CopyStep{sliceOf(copy->from), sliceOf(copy->to)});
      } else {
        const auto &fill = std::get<FillPlan>(step);
        addStep(work, FillStep{sliceOf(fill.to), fill.value});
      }
  }

  void addUnsupported(const Work &work, const std::string &reason) {
    UnsupportedStep step{reason, {}, {}};
    for (const BufferSlice &slice : work.inputs)
      step.reads.push_back(placeOf(slice));
    for (const BufferSlice &slice : work.outputs)
      step.writes.push_back(placeOf(slice));
    addStep(work, std::move(step));
  }

  template <typename Action> void addStep(const Work &work, Action action) {
    plan.steps.push_back({work.fusion->name().str(), std::move(action)});
  }

  uint32_t kernelOf(const HloInstruction &fusion, const std::shared_ptr<const PlannedFusion> &planned, unsigned step) {
    auto [found, isNew] = kernels.try_emplace({planned.get(), step}, uint32_t(plan.kernels.size()));
    if (isNew)
      plan.kernels.push_back({&fusion, planned, step});
    return found->second;
  }

  // Results.

  /// Results lie where moves have brought them. What has not been computed in its parameter's buffer is copied there at
  /// the end, when nobody reads the parameter any more. Results that are parameters themselves go through memory of
  /// their own: two may change places.
  void donateRest() {
    for (ModuleResult &result : plan.results)
      result.slice = placeOf(result.slice);
    std::vector<CopyStep> last;
    auto saved = [&](const BufferSlice &slice, const std::string &shape) {
      BufferSlice own = newBuffer(ModuleBuffer::Kind::Temporary, slice.bytes, shape);
      plan.steps.push_back({"", CopyStep{slice, own}});
      return own;
    };
    std::set<uint32_t> overwritten;
    for (const Donation &donation : donations)
      if (plan.results[donation.result].slice.buffer != donation.buffer && !plan.buffers[donation.buffer].donated)
        overwritten.insert(donation.buffer);
    for (ModuleResult &result : plan.results)
      if (overwritten.contains(result.slice.buffer))
        result.slice = saved(result.slice, result.shape);
    for (const Donation &donation : donations) {
      ModuleResult &result = plan.results[donation.result];
      if (!overwritten.contains(donation.buffer))
        continue;
      BufferSlice place{donation.buffer, 0, result.slice.bytes};
      if (place.bytes)
        last.push_back({result.slice, place});
      plan.buffers[donation.buffer].donated = true;
      result.slice = place;
    }
    for (const CopyStep &copy : last)
      plan.steps.push_back({"", copy});
  }

  void nameResults() {
    for (const ModuleResult &result : plan.results)
      if (ModuleBuffer &buffer = plan.buffers[result.slice.buffer]; buffer.kind == ModuleBuffer::Kind::Temporary) {
        buffer.kind = ModuleBuffer::Kind::Result;
        buffer.leafIndex = result.leafIndex;
      }
  }

  /// Buffers whose place another has taken, or that were meant for another.
  void dropUnused() {
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
  }

  const HloModule &module;
  const TargetInfo &target;
  DiagnosticEngine &diagnostics;
  const UnplannedWork &unplanned;
  ExecutionPlan plan;
  llvm::DenseMap<const HloInstruction *, Slices> places;
  /// Of tuples that elements are taken of: which leaf each element begins with, and their number.
  llvm::DenseMap<const HloInstruction *, std::vector<size_t>> firstLeaves;
  std::vector<Work> works;
  std::vector<Donation> donations;
  std::multimap<uint32_t, uint32_t>
      placesGiven;                  ///< parameters' buffers that what is computed for a buffer has to lie in
  std::vector<int64_t> lastRead;    ///< by buffer: the last work that reads it, or -1
  std::vector<unsigned> numResults; ///< by buffer: results that lie there
  std::map<uint32_t, uint32_t> movedTo;
  std::set<uint32_t> taken; ///< parameters whose contents are gone
  std::map<const HloComputation *, FusionGraph> graphs;
  std::map<std::pair<const HloComputation *, std::vector<int64_t>>, std::shared_ptr<const PlannedFusion>> planned;
  std::map<std::pair<const PlannedFusion *, unsigned>, uint32_t> kernels;
};

} // namespace

std::optional<ExecutionPlan> planModule(const HloModule &module, const TargetInfo &target,
                                        DiagnosticEngine &diagnostics, const UnplannedWork &unplanned) {
  return Planner(module, target, diagnostics, unplanned).run();
}

} // namespace hloc
