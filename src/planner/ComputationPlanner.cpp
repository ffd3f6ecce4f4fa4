#include "ComputationPlanner.h"

#include "hloc/fusion/LibraryForm.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

namespace hloc {

namespace {

/// A fusion, loop or conditional that computes something, or what stands there and cannot be compiled.
struct Work {
  const HloInstruction *instr;
  Slices inputs;  ///< one per array leaf of the operands, in order
  Slices outputs; ///< one per array leaf of the shape; of a loop, where the body hands a leaf on, that input
};

class ComputationPlanner {
public:
  ComputationPlanner(PlanTables &tables, const HloComputation &computation, const ComputationUse &use)
      : tables(tables), plan(tables.plan), computation(computation), use(use) {}

  std::optional<PlannedComputation> run() {
    for (const Slices &parameter : use.parameters)
      for (const BufferSlice &slice : parameter)
        if (!use.own.contains(slice.buffer))
          borrowed.insert(slice.buffer);
    for (HloInstruction *instr : computation.instructions())
      places[instr] = place(*instr);
    results = places[computation.root()];
    for (auto [result, target] : llvm::zip_equal(results, use.targets))
      if (target)
        targetsOf.emplace(result.buffer, *target);
    if (use.reorders)
      orderWorks();
    hoistReducingWorks();
    countUses();
    for (size_t i = 0; i < works.size(); ++i) {
      const size_t numSteps = steps.size();
      if (!planWork(i))
        return std::nullopt;
      if (steps.size() > numSteps)
        addValue(works[i]);
    }
    copyResults();
    return PlannedComputation{std::move(steps), std::move(results)};
  }

private:
  // Buffers of their own.

  Slices place(const HloInstruction &instr) {
    switch (instr.opcode()) {
    case Opcode::Parameter:
      return use.parameters[instr.parameterNumber()];
    case Opcode::Constant:
      return {constant(instr)};
    case Opcode::Tuple: {
      Slices all;
      for (HloInstruction *operand : instr.operands())
        llvm::append_range(all, places[operand]);
      return all;
    }
    case Opcode::GetTupleElement: {
      auto [first, count] = tupleLeaves.element(*instr.operand(0), instr.intOr(AttributeKey::Index, 0));
      return Slices(llvm::ArrayRef<BufferSlice>(places[instr.operand(0)]).slice(first, count));
    }
    case Opcode::Bitcast:
    case Opcode::OptimizationBarrier:
      return Slices(places[instr.operand(0)]);
    case Opcode::AfterAll:
      return {newBuffer(instr.shape())};
    case Opcode::Fusion:
    case Opcode::While:
    case Opcode::Conditional:
      return addWork(instr);
    default:
      HLOC_CHECK(isExternal(instr) || tables.unplanned.contains(&instr), "not in normal form");
      return addWork(instr);
    }
  }

  /// Nobody may write there.
  BufferSlice constant(const HloInstruction &instr) {
    const BufferSlice slice = tables.constant(instr.literal(), instr.shape());
    borrowed.insert(slice.buffer);
    return slice;
  }

  Slices addWork(const HloInstruction &instr) {
    Work work{&instr, {}, {}};
    for (HloInstruction *operand : instr.operands())
      llvm::append_range(work.inputs, places[operand]);
    const bool isLoop = instr.opcode() == Opcode::While && !tables.unplanned.contains(&instr);
    PlanTables::Origins handedOn;
    if (isLoop)
      handedOn = tables.originsOf(*instr.computation(AttributeKey::Body));
    for (auto [i, leaf] : llvm::enumerate(instr.shape().leaves()))
      work.outputs.push_back(isLoop && handedOn[i] == i ? work.inputs[i] : newBuffer(leaf.shape));
    works.push_back(std::move(work));
    return works.back().outputs;
  }

  bool isPlannedControl(const HloInstruction &instr) const {
    return isControlFlow(instr) && !tables.unplanned.contains(&instr);
  }

  BufferSlice newBuffer(const Shape &shape) {
    return tables.newBuffer(ModuleBuffer::Kind::Temporary, shape.byteSize(), shape.toString());
  }

  /// Operands before users; what replaces a parameter after all that read the parameter, where that is possible; else
  /// as the text has it. `i + 1` often stands in front of what `i` is an index of.
  void orderWorks() {
    llvm::DenseMap<uint32_t, size_t> makerOf; // by buffer
    for (auto [i, work] : llvm::enumerate(works))
      for (const BufferSlice &output : work.outputs)
        if (!llvm::is_contained(work.inputs, output))
          makerOf[output.buffer] = i;
    llvm::DenseMap<uint32_t, size_t> replacerOf; // by parameter
    for (auto [buffer, target] : targetsOf)
      if (auto maker = makerOf.find(buffer); maker != makerOf.end())
        replacerOf[target] = maker->second;
    // What control flow makes may lie there as well, and is not to be replaced too early either.
    for (auto [i, work] : llvm::enumerate(works))
      for (unsigned leaf = 0; leaf < work.outputs.size() && isPlannedControl(*work.instr); ++leaf)
        for (size_t input : sourcesOf(work, leaf))
          if (auto replacer = replacerOf.find(work.inputs[input].buffer);
              replacer != replacerOf.end() && replacer->second != i)
            replacerOf.try_emplace(work.outputs[leaf].buffer, replacer->second);
    // How many works have to be done before, and how many should; the works that this one is before.
    std::vector<std::pair<size_t, size_t>> open(works.size());
    std::vector<std::vector<size_t>> users(works.size()), replacers(works.size());
    for (auto [i, work] : llvm::enumerate(works))
      for (const BufferSlice &input : work.inputs) {
        if (auto maker = makerOf.find(input.buffer); maker != makerOf.end()) {
          ++open[i].first;
          users[maker->second].push_back(i);
        }
        if (auto replacer = replacerOf.find(input.buffer); replacer != replacerOf.end() && replacer->second != i) {
          ++open[replacer->second].second;
          replacers[i].push_back(replacer->second);
        }
      }
    // What others see is done in the order of the text.
    std::optional<size_t> lastEffect;
    for (auto [i, work] : llvm::enumerate(works)) {
      if (!work.instr->reachesSideEffect())
        continue;
      if (lastEffect) {
        ++open[i].first;
        users[*lastEffect].push_back(i);
      }
      lastEffect = i;
    }
    std::set<std::pair<bool, size_t>> ready; // those that replace what is still read last
    auto offer = [&](size_t i) {
      if (!open[i].first)
        ready.insert({open[i].second != 0, i});
    };
    for (size_t i = 0; i < works.size(); ++i)
      offer(i);
    std::vector<Work> ordered;
    while (!ready.empty()) {
      const size_t i = ready.begin()->second;
      ready.erase(ready.begin());
      ordered.push_back(std::move(works[i]));
      for (size_t user : users[i])
        if (--open[user].first == 0)
          offer(user);
      for (size_t replacer : replacers[i])
        if (--open[replacer].second == 0 && ready.erase({true, replacer}))
          offer(replacer);
    }
    works = std::move(ordered);
  }

  /// Fusions that need memory for the last time and make much less of it go in front of all that they do not depend on:
  /// the sum of a large array, say, in front of a loop that has nothing to do with it. They stay the last that read
  /// what they were the last to read, and results that have a place to go to stay where they are.
  void hoistReducingWorks() {
    constexpr uint64_t leastGain = 1 << 20; // bytes; less is not worth another order than the text's
    llvm::DenseMap<uint32_t, size_t> makerOf;
    llvm::DenseMap<uint32_t, llvm::SmallVector<size_t, 2>> readersOf;
    for (auto [i, work] : llvm::enumerate(works)) {
      for (const BufferSlice &output : work.outputs)
        makerOf.try_emplace(output.buffer, i);
      for (const BufferSlice &input : work.inputs)
        if (auto &readers = readersOf[input.buffer]; readers.empty() || readers.back() != i)
          readers.push_back(i);
    }
    auto isResult = [&](uint32_t buffer) {
      return llvm::any_of(results, [&](const BufferSlice &result) { return result.buffer == buffer; });
    };
    std::vector<size_t> order, position(works.size());
    for (auto [i, work] : llvm::enumerate(works)) {
      position[i] = order.size();
      order.push_back(i);
      if (work.instr->opcode() != Opcode::Fusion || work.instr->reachesSideEffect())
        continue;
      uint64_t made = 0, freed = 0;
      bool mayMove = true;
      for (const BufferSlice &output : work.outputs) {
        made += output.bytes;
        mayMove &= !targetsOf.contains(output.buffer);
      }
      size_t earliest = 0;
      std::set<uint32_t> seen;
      for (const BufferSlice &input : work.inputs) {
        if (!seen.insert(input.buffer).second)
          continue;
        auto maker = makerOf.find(input.buffer);
        if (maker != makerOf.end())
          earliest = std::max(earliest, position[maker->second] + 1);
        const auto &readers = readersOf[input.buffer];
        if (readers.back() != i)
          continue;
        for (size_t reader : llvm::ArrayRef(readers).drop_back())
          earliest = std::max(earliest, position[reader] + 1);
        if (maker != makerOf.end() && !isResult(input.buffer))
          freed += input.bytes;
      }
      if (!mayMove || freed < made + leastGain || earliest >= position[i])
        continue;
      order.pop_back();
      order.insert(order.begin() + earliest, i);
      for (size_t at = earliest; at < order.size(); ++at)
        position[order[at]] = at;
    }
    std::vector<Work> ordered;
    for (size_t i : order)
      ordered.push_back(std::move(works[i]));
    works = std::move(ordered);
  }

  void countUses() {
    for (auto [i, work] : llvm::enumerate(works))
      for (const BufferSlice &slice : work.inputs)
        lastRead[slice.buffer] = int64_t(i);
    for (const BufferSlice &result : results)
      ++numResults[result.buffer];
  }

  // Taking the place of operands.

  /// Nobody needs what is in the buffer once `work` has been done, and no result has come to lie there.
  bool isFree(uint32_t buffer, size_t work) const {
    auto read = lastRead.find(buffer);
    return (read == lastRead.end() || read->second <= int64_t(work)) && !numResults.lookup(buffer) &&
           !taken.contains(buffer);
  }

  /// The same, and whoever gave it to us does not need it.
  bool isOver(uint32_t buffer, size_t work) const { return !borrowed.contains(buffer) && isFree(buffer, work); }

  /// Where a result that lies in `buffer` has to go, if that is free.
  std::optional<uint32_t> freeTarget(uint32_t buffer, size_t work) const {
    auto [target, end] = targetsOf.equal_range(buffer);
    for (; target != end; ++target)
      if (isFree(target->second, work) && plan.buffers[target->second].bytes == plan.buffers[buffer].bytes)
        return target->second;
    return std::nullopt;
  }

  /// The buffer whose place output `buffer` of a fusion should take; nothing if none, or if somebody still needs it.
  /// What is updated in part is always worth it, others work in place where the text says so.
  std::optional<uint32_t> wantedPlace(size_t work, const FusionGraph &graph, uint32_t buffer, unsigned output) const {
    if (std::optional<uint32_t> target = freeTarget(buffer, work))
      return target;
    const HloInstruction &fusion = *works[work].instr;
    if (std::optional<unsigned> parameter = updatedParameter(graph, output))
      if (uint32_t operand = tables.placeOf(works[work].inputs[*parameter]).buffer; isOver(operand, work))
        return operand;
    const AttributeValue *aliases = fusion.find(AttributeKey::OutputToOperandAliasing);
    if (!aliases)
      return std::nullopt;
    llvm::SmallVector<Shape::Leaf, 4> leaves = fusion.shape().leaves();
    for (const OutputAlias &alias : std::get<llvm::ArrayRef<OutputAlias>>(*aliases)) {
      if (llvm::ArrayRef(leaves[output].index) != alias.output || !alias.operandIndex.empty() ||
          !fusion.operand(alias.operand)->shape().isArray())
        continue;
      uint32_t operand = tables.placeOf(places.at(fusion.operand(alias.operand)).front()).buffer;
      if (isOver(operand, work))
        return operand;
    }
    return std::nullopt;
  }

  /// `from`, which nobody has written yet, is an output of the work that is being planned.
  void move(uint32_t from, uint32_t to) {
    tables.move(from, to);
    if (auto read = lastRead.find(from); read != lastRead.end()) {
      const int64_t last = read->second;
      lastRead[to] = lastRead.contains(to) ? std::max(lastRead[to], last) : last;
    }
    numResults[to] += numResults.lookup(from);
    if (plan.buffers[to].kind == ModuleBuffer::Kind::Parameter)
      plan.buffers[to].donated = true;
    auto [target, end] = targetsOf.equal_range(from);
    if (std::any_of(target, end, [&](const auto &one) { return one.second == to; }))
      taken.insert(to);
  }

  bool planWork(size_t number) {
    const Work &work = works[number];
    if (!isWork(*work.instr))
      return true;
    if (auto reason = tables.unplanned.find(work.instr); reason != tables.unplanned.end()) {
      addUnsupported(work, reason->second);
      return true;
    }
    if (work.instr->opcode() == Opcode::Fusion)
      return planFusionWork(number);
    if (!isControlFlow(*work.instr)) {
      planExternal(number);
      return true;
    }
    return work.instr->opcode() == Opcode::While ? planLoop(number) : planChoice(number);
  }

  Slices placesOf(const Slices &slices) const {
    return llvm::map_to_vector<2>(slices, [&](BufferSlice slice) { return tables.placeOf(slice); });
  }

  bool planFusionWork(size_t number) {
    const HloInstruction &fusion = *works[number].instr;
    const FusionGraph *graph = tables.graphOf(*fusion.computation(AttributeKey::Calls));
    if (!graph)
      return false;
    // Where an output may go, and which of the fusion's parameters lies there, if any.
    llvm::SmallVector<std::optional<uint32_t>> wanted;
    FusionAliasing offers;
    const Slices inputs = placesOf(works[number].inputs);
    for (auto [i, output] : llvm::enumerate(works[number].outputs)) {
      std::optional<uint32_t> place = wantedPlace(number, *graph, output.buffer, unsigned(i));
      auto isPlace = [&](const BufferSlice &slice) { return slice.buffer == *place; };
      if (place && (llvm::is_contained(wanted, place) || llvm::count_if(inputs, isPlace) > 1))
        place.reset(); // wanted by an output before, or given to two parameters
      const BufferSlice *input = place ? llvm::find_if(inputs, isPlace) : inputs.end();
      offers.push_back(input == inputs.end() ? std::nullopt : std::optional(unsigned(input - inputs.begin())));
      wanted.push_back(place);
    }
    std::shared_ptr<const PlannedFusion> planned = tables.planOf(*graph, offers);
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

  // Steps of calls, external or of a library.

  /// Where the text says that an output lies in an operand's place, it does: the operand's own if nobody needs it any
  /// more, else that of a copy. Others may lie where they have to go.
  void planExternal(size_t number) {
    const HloInstruction &instr = *works[number].instr;
    Slices inputs = placesOf(works[number].inputs);
    const Slices &outputs = works[number].outputs;
    std::set<uint32_t> used;
    for (const BufferSlice &input : inputs)
      used.insert(input.buffer);
    auto take = [&](size_t output, std::optional<uint32_t> place) {
      if (place)
        move(outputs[output].buffer, *place);
      return tables.placeOf(outputs[output]);
    };
    std::vector<std::optional<size_t>> sources = inPlaceSources(instr);
    for (auto [output, source] : llvm::enumerate(sources)) {
      if (!source || inputs[*source].bytes != outputs[output].bytes)
        continue;
      const BufferSlice input = inputs[*source];
      const bool alone = llvm::count_if(inputs, [&](auto &one) { return one.buffer == input.buffer; }) == 1;
      const bool mayTake = alone && input.bytes && isOver(input.buffer, number);
      std::optional<uint32_t> place =
          mayTake ? std::optional(input.buffer) : freeTarget(outputs[output].buffer, number);
      if (place && !mayTake && !used.insert(*place).second)
        place.reset();
      inputs[*source] = take(output, place);
      addCopy(instr, input, inputs[*source]);
    }
    for (unsigned output = 0; output < outputs.size(); ++output)
      if (!sources[output])
        if (std::optional<uint32_t> target = freeTarget(outputs[output].buffer, number);
            target && used.insert(*target).second)
          take(output, target);
    CallStep call{CallStep::Kind::External, "", "", {}, {}};
    llvm::SmallVector<Shape::Leaf, 4> leaves = instr.shape().leaves();
    auto given = inputs.begin();
    for (const HloInstruction *operand : instr.operands())
      for (const Shape::Leaf &leaf : operand->shape().leaves())
        if (const BufferSlice &slice = *given++; leaf.shape.isArray())
          call.reads.push_back(slice);
    for (auto [leaf, output] : llvm::zip_equal(leaves, outputs))
      if (leaf.shape.isArray())
        call.writes.push_back(tables.placeOf(output));
    if (hasLibraryMark(instr)) {
      makeLibraryCall(instr, call);
    } else {
      call.function = externalFunction(instr);
      call.configuration = externalConfiguration(instr);
    }
    addStep(instr, std::move(call));
  }

  /// Operands in the order of the function, and memory for its own use.
  void makeLibraryCall(const HloInstruction &instr, CallStep &call) {
    std::string why;
    std::optional<LibraryForm> form = libraryFormOf(instr, tables.target, why);
    HLOC_CHECK(form, "a call that no library has");
    call.kind = CallStep::Kind::Library;
    call.function = form->function;
    call.configuration = form->configuration;
    std::vector<BufferSlice> reads;
    for (unsigned operand : form->reads)
      reads.push_back(call.reads[operand]);
    call.reads = std::move(reads);
    const uint64_t bytes = libraryWorkspace(tables.target);
    call.writes.resize(1);
    call.writes.push_back(tables.newBuffer(ModuleBuffer::Kind::Temporary, bytes, fmt::format("u8[{}]", bytes)));
  }

  /// By leaf of the result: the leaf of the operands, counted through all of them, that lies where it does.
  std::vector<std::optional<size_t>> inPlaceSources(const HloInstruction &instr) const {
    llvm::SmallVector<Shape::Leaf, 4> leaves = instr.shape().leaves();
    std::vector<std::optional<size_t>> sources(leaves.size());
    const AttributeValue *aliases = instr.find(AttributeKey::OutputToOperandAliasing);
    if (!aliases)
      return sources;
    for (const OutputAlias &alias : std::get<llvm::ArrayRef<OutputAlias>>(*aliases)) {
      size_t source = 0;
      for (auto [i, operand] : llvm::enumerate(instr.operands()))
        for (const Shape::Leaf &leaf : operand->shape().leaves()) {
          if (int64_t(i) == int64_t(alias.operand) && llvm::equal(leaf.index, alias.operandIndex))
            for (auto [output, sourceOf] : llvm::zip_equal(leaves, sources))
              if (llvm::equal(output.index, alias.output))
                sourceOf = source;
          ++source;
        }
    }
    return sources;
  }

  // Loops and conditionals.

  /// The state of a loop is one buffer for each leaf: condition and body read it there, and the body leaves the next
  /// there. What goes round a known number of times needs no condition. A leaf that the body hands on is never written;
  /// it stays where the operand lies.
  bool planLoop(size_t number) {
    const HloInstruction &loop = *works[number].instr;
    const Slices inputs = placesOf(works[number].inputs);
    const PlanTables::Origins handedOn = tables.originsOf(*loop.computation(AttributeKey::Body));
    ComputationUse body{{}, {}, {}, loop.name().str(), /*reorders=*/true};
    Slices state;
    for (auto [i, output] : llvm::enumerate(works[number].outputs)) {
      if (handedOn[i] == i) {
        state.push_back(inputs[i]);
        body.targets.push_back(std::nullopt);
        continue;
      }
      if (std::optional<uint32_t> place = placeOfState(number, inputs, unsigned(i), state))
        move(output.buffer, *place);
      state.push_back(tables.placeOf(output));
      addCopy(loop, inputs[i], state.back());
      body.own.insert(state.back().buffer);
      body.targets.push_back(state.back().buffer);
    }
    body.parameters = {state};
    WhileStep step;
    step.rounds = knownTripCount(loop);
    if (!step.rounds && !planCondition(loop, state, step))
      return false;
    std::optional<PlannedComputation> round = planComputation(tables, *loop.computation(AttributeKey::Body), body);
    if (!round)
      return false;
    step.body = std::move(round->steps);
    addStep(loop, std::move(step));
    return true;
  }

  bool planCondition(const HloInstruction &loop, const Slices &state, WhileStep &step) {
    ComputationUse use{{state}, {}, {std::nullopt}, loop.name().str()};
    std::optional<PlannedComputation> test = planComputation(tables, *loop.computation(AttributeKey::Condition), use);
    if (!test)
      return false;
    step.condition = std::move(test->steps);
    step.predicate = test->results.front();
    return true;
  }

  /// Whose place leaf `leaf` of a loop's state takes: where it has to go, or where it comes from, unless another leaf
  /// lies there or is still to be copied from there. `state`: where the leaves before it are.
  std::optional<uint32_t> placeOfState(size_t number, const Slices &inputs, unsigned leaf, const Slices &state) const {
    auto isAlone = [&](uint32_t buffer) {
      auto liesThere = [&](const BufferSlice &slice) { return slice.buffer == buffer; };
      return llvm::none_of(state, liesThere) && llvm::none_of(llvm::drop_begin(inputs, leaf + 1), liesThere);
    };
    const BufferSlice &output = works[number].outputs[leaf];
    if (std::optional<uint32_t> target = freeTarget(output.buffer, number); target && isAlone(*target))
      return target;
    const uint32_t source = inputs[leaf].buffer;
    bool fits = plan.buffers[source].bytes == output.bytes;
    return fits && isOver(source, number) && isAlone(source) ? std::optional(source) : std::nullopt;
  }

  /// All branches leave their results in the same buffers. What they are given they may overwrite if nobody needs it
  /// afterwards: only one of them is run.
  bool planChoice(size_t number) {
    const HloInstruction &choice = *works[number].instr;
    const Slices inputs = placesOf(works[number].inputs);
    ComputationUse use{{}, {}, {}, choice.name().str(), /*reorders=*/true};
    for (const BufferSlice &input : inputs)
      if (isOver(input.buffer, number))
        use.own.insert(input.buffer);
    llvm::SmallVector<HloComputation *, 2> branches = choice.calledComputations();
    std::vector<uint32_t> wanted;
    for (auto [i, output] : llvm::enumerate(works[number].outputs)) {
      std::optional<uint32_t> place = placeOfChoice(number, inputs, unsigned(i));
      if (place && !llvm::is_contained(wanted, *place)) {
        wanted.push_back(*place);
        move(output.buffer, *place);
      }
      use.targets.push_back(tables.placeOf(output).buffer);
    }
    ConditionalStep step{inputs.front(), {}};
    size_t next = 1;
    for (auto [i, branch] : llvm::enumerate(branches)) {
      const size_t count = choice.operand(unsigned(i) + 1)->shape().leaves().size();
      use.parameters = {Slices(llvm::ArrayRef<BufferSlice>(inputs).slice(next, count))};
      next += count;
      std::optional<PlannedComputation> planned = planComputation(tables, *branch, use);
      if (!planned)
        return false;
      step.branches.push_back(std::move(planned->steps));
    }
    addStep(choice, std::move(step));
    return true;
  }

  /// Where result `leaf` of a conditional has to go, or where a branch finds what it hands on.
  std::optional<uint32_t> placeOfChoice(size_t number, const Slices &inputs, unsigned leaf) {
    const BufferSlice &output = works[number].outputs[leaf];
    if (std::optional<uint32_t> target = freeTarget(output.buffer, number))
      return target;
    for (size_t input : sourcesOf(works[number], leaf))
      if (const uint32_t source = inputs[input].buffer;
          isOver(source, number) && plan.buffers[source].bytes == output.bytes)
        return source;
    return std::nullopt;
  }

  /// The inputs whose place leaf `leaf` of what a loop or conditional makes may take: where the loop begins, what
  /// branches hand on.
  std::vector<size_t> sourcesOf(const Work &work, unsigned leaf) {
    if (work.instr->opcode() == Opcode::While)
      return {leaf};
    std::vector<size_t> found;
    size_t next = 1;
    for (auto [i, branch] : llvm::enumerate(work.instr->calledComputations())) {
      if (std::optional<unsigned> origin = tables.originsOf(*branch)[leaf])
        found.push_back(next + *origin);
      next += work.instr->operand(unsigned(i) + 1)->shape().leaves().size();
    }
    return found;
  }

  // Steps.

  void addSteps(const Work &work, std::shared_ptr<const PlannedFusion> planned) {
    Slices scratch;
    for (const ScratchBuffer &buffer : planned->plan.scratch) {
      scratch.push_back(tables.newBuffer(ModuleBuffer::Kind::Temporary, buffer.bytes(), buffer.shape.toString()));
      if (buffer.zeroed)
        addStep(*work.instr, FillStep{scratch.back(), 0});
    }
    auto sliceOf = [&](const PlanBuffer &buffer) {
      const Slices &slices = buffer.kind == PlanBuffer::Kind::Parameter ? work.inputs
                             : buffer.kind == PlanBuffer::Kind::Output  ? work.outputs
                                                                        : scratch;
      return buffer.kind == PlanBuffer::Kind::Scratch ? slices[buffer.index] : tables.placeOf(slices[buffer.index]);
    };
    for (auto [i, step] : llvm::enumerate(planned->plan.steps))
      if (const auto *kernel = std::get_if<KernelPlan>(&step)) {
        LaunchStep launch{tables.kernelOf(*work.instr, planned, unsigned(i)), {}};
        for (const KernelBuffer &buffer : kernel->buffers)
          launch.arguments.emplace_back(sliceOf(buffer.buffer));
        for (const TileMap *map : tensorMapsOf(kernel->plan))
          launch.arguments.push_back(launch.arguments[map->parameter]);
        addStep(*work.instr, std::move(launch));
      } else if (const auto *copy = std::get_if<CopyPlan>(&step)) {
        addStep(*work.instr, CopyStep{sliceOf(copy->from), sliceOf(copy->to)});
      } else {
        const auto &fill = std::get<FillPlan>(step);
        addStep(*work.instr, FillStep{sliceOf(fill.to), fill.value});
      }
  }

  void addValue(const Work &work) {
    const Slices outputs = placesOf(work.outputs);
    plan.values.push_back({work.instr, {outputs.begin(), outputs.end()}});
  }

  void addUnsupported(const Work &work, const std::string &reason) {
    UnsupportedStep step{reason, {}, {}};
    for (const BufferSlice &slice : work.inputs)
      step.reads.push_back(tables.placeOf(slice));
    for (const BufferSlice &slice : work.outputs)
      step.writes.push_back(tables.placeOf(slice));
    addStep(*work.instr, std::move(step));
  }

  template <typename Action> void addStep(const HloInstruction &instr, Action action) {
    steps.push_back({instr.name().str(), std::move(action)});
  }

  void addCopy(const HloInstruction &instr, const BufferSlice &from, const BufferSlice &to) {
    if (from.bytes && from.buffer != to.buffer)
      addStep(instr, CopyStep{from, to});
  }

  // Results.

  /// Results lie where moves have brought them. What has not been computed where it has to be is copied there at the
  /// end, when nobody reads what was there any more.
  void copyResults() {
    for (BufferSlice &result : results)
      result = tables.placeOf(result);
    MovingResults moving;
    llvm::BitVector isMoving(unsigned(results.size()));
    for (auto [i, target] : llvm::enumerate(use.targets))
      if (target && results[i].buffer != *target && !taken.contains(*target)) {
        moving.toBuffer[*target] = i;
        moving.fromBuffer[results[i].buffer].push_back(i);
        isMoving.set(unsigned(i));
      }
    for (size_t i = 0; i < results.size(); ++i)
      if (!isMoving.test(unsigned(i)) && moving.toBuffer.contains(results[i].buffer))
        results[i] = copyOfResult(i, results[i]);
    std::set<size_t> pending, ready;
    for (auto [target, mover] : moving.toBuffer) {
      pending.insert(mover);
      if (!moving.fromBuffer.contains(target))
        ready.insert(mover);
    }
    while (!pending.empty()) {
      if (ready.empty()) // some change places: what is in the way of one of them goes through memory of its own
        ready.insert(makeWayFor(*pending.begin(), moving));
      const size_t next = *ready.begin();
      ready.erase(next);
      pending.erase(next);
      const uint32_t source = results[next].buffer;
      moveResult(next);
      // Who has to go where it came from, if it was the last to lie there.
      auto from = moving.fromBuffer.find(source);
      if (from == moving.fromBuffer.end())
        continue;
      llvm::erase(from->second, next);
      if (!from->second.empty())
        continue;
      moving.fromBuffer.erase(from);
      if (auto mover = moving.toBuffer.find(source); mover != moving.toBuffer.end() && pending.contains(mover->second))
        ready.insert(mover->second);
    }
  }

  /// Results that are not yet where they have to be, by where that is and by where they are.
  struct MovingResults {
    std::map<uint32_t, size_t> toBuffer;
    std::map<uint32_t, std::vector<size_t>> fromBuffer;
  };

  size_t makeWayFor(size_t mover, MovingResults &moving) {
    auto inTheWay = moving.fromBuffer.find(*use.targets[mover]);
    const BufferSlice own = copyOfResult(inTheWay->second.front(), results[inTheWay->second.front()]);
    for (size_t other : inTheWay->second)
      results[other] = own;
    moving.fromBuffer.erase(inTheWay);
    return mover;
  }

  void moveResult(size_t leaf) {
    const uint32_t target = *use.targets[leaf];
    BufferSlice &result = results[leaf];
    const BufferSlice place{target, 0, result.bytes};
    if (place.bytes)
      steps.push_back({use.name, CopyStep{result, place}});
    if (plan.buffers[target].kind == ModuleBuffer::Kind::Parameter)
      plan.buffers[target].donated = true;
    result = place;
  }

  BufferSlice copyOfResult(size_t leaf, const BufferSlice &result) {
    if (leavesOfResult.empty())
      leavesOfResult = computation.root()->shape().leaves();
    const BufferSlice own =
        tables.newBuffer(ModuleBuffer::Kind::Temporary, result.bytes, leavesOfResult[leaf].shape.toString());
    if (result.bytes)
      steps.push_back({use.name, CopyStep{result, own}});
    return own;
  }

  PlanTables &tables;
  ExecutionPlan &plan;
  const HloComputation &computation;
  const ComputationUse &use;
  Steps steps;
  Slices results;
  llvm::SmallVector<Shape::Leaf, 4> leavesOfResult; ///< when first asked for
  llvm::DenseMap<const HloInstruction *, Slices> places;
  TupleLeaves tupleLeaves;
  std::vector<Work> works;
  std::set<uint32_t> borrowed;                   ///< what somebody else still needs, constants included
  std::multimap<uint32_t, uint32_t> targetsOf;   ///< of a result's buffer: where it has to be in the end
  llvm::DenseMap<uint32_t, int64_t> lastRead;    ///< by buffer: the last work that reads it, if any does
  llvm::DenseMap<uint32_t, unsigned> numResults; ///< by buffer: results that lie there
  std::set<uint32_t> taken;                      ///< targets that hold their results
};

} // namespace

std::optional<PlannedComputation> planComputation(PlanTables &tables, const HloComputation &computation,
                                                  const ComputationUse &use) {
  return ComputationPlanner(tables, computation, use).run();
}

} // namespace hloc
