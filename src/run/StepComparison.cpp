#include "StepComparison.h"

#include "Execute.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/support/Check.h"
#include "hloc/transforms/ExtractFusions.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace hloc {

namespace {

size_t countLeaves(const Shape &shape) { return shape.leaves().size(); }

using Leaves = std::vector<std::shared_ptr<const Literal>>;

Leaves split(const Literal &value, const Shape &shape) {
  Leaves leaves;
  for (const Literal *leaf : leavesOf(value, shape))
    leaves.push_back(std::make_shared<Literal>(*leaf));
  return leaves;
}

Literal join(const Shape &shape, const Leaves &leaves) {
  std::vector<Literal> copies;
  for (const auto &leaf : leaves)
    copies.push_back(*leaf);
  return joinLeaves(shape, std::move(copies));
}

/// The last step of each name in each list: a fusion's steps stand together.
void findLastSteps(const Steps &steps, llvm::DenseSet<const Step *> &last) {
  llvm::StringMap<const Step *> byName;
  for (const Step &step : steps) {
    byName[step.name] = &step;
    if (const auto *loop = std::get_if<WhileStep>(&step.action)) {
      findLastSteps(loop->condition, last);
      findLastSteps(loop->body, last);
    } else if (const auto *choice = std::get_if<ConditionalStep>(&step.action)) {
      for (const Steps &branch : choice->branches)
        findLastSteps(branch, last);
    }
  }
  for (const auto &entry : byName)
    last.insert(entry.second);
}

const HloComputation *conditionOf(const HloInstruction &loop) { return loop.computation(AttributeKey::Condition); }

/// The parameter of a loop's body.
const HloInstruction *stateOf(const HloInstruction &loop) {
  return loop.computation(AttributeKey::Body)->parameters().front();
}

using InstructionNames = llvm::StringMap<const HloInstruction *>;

InstructionNames namesOf(const HloComputation &computation) {
  InstructionNames names;
  for (const HloInstruction *instr : computation.instructions())
    names[instr->name()] = instr;
  return names;
}

/// Do the steps carry out what they are named after in this computation? Values have a place if `hasPlace` says so.
bool carryOut(const Steps &steps, const HloComputation &computation,
              llvm::function_ref<bool(const HloInstruction *)> hasPlace) {
  const InstructionNames names = namesOf(computation);
  return llvm::all_of(steps, [&](const Step &step) {
    const HloInstruction *instr = names.lookup(step.name);
    if (const auto *loop = std::get_if<WhileStep>(&step.action))
      return instr && instr->opcode() == Opcode::While && carryOut(loop->condition, *conditionOf(*instr), hasPlace) &&
             carryOut(loop->body, *stateOf(*instr)->parent(), hasPlace);
    if (const auto *choice = std::get_if<ConditionalStep>(&step.action))
      return instr && instr->opcode() == Opcode::Conditional &&
             llvm::all_of(
                 llvm::zip(choice->branches, instr->calledComputations()),
                 [&](const auto &branch) { return carryOut(std::get<0>(branch), *std::get<1>(branch), hasPlace); }) &&
             choice->branches.size() == instr->calledComputations().size();
    return instr ? isControlFlow(*instr) || hasPlace(instr) : !std::holds_alternative<LaunchStep>(step.action);
  });
}

/// Which branch a selector chooses: pred or s32.
size_t branchChosenBy(const Literal &selector, size_t numBranches) {
  if (isPred(selector.shape().elementType()))
    return selector.getInt(0) ? 0 : 1;
  const int64_t index = selector.getInt(0);
  return index < 0 || size_t(index) >= numBranches ? numBranches - 1 : size_t(index);
}

} // namespace

bool canCompareSteps(const HloModule &module, llvm::ArrayRef<ComputedValue> values, const Steps &steps) {
  llvm::DenseSet<const HloInstruction *> placed;
  for (const ComputedValue &value : values)
    placed.insert(value.instr);
  return carryOut(steps, *module.entry(), [&](const HloInstruction *instr) { return placed.contains(instr); });
}

StepComparison::StepComparison(const HloModule &module, llvm::ArrayRef<ComputedValue> values,
                               const DeviceProgram &program, Device &device, llvm::ArrayRef<Literal> arguments,
                               Comparison &comparison, Regime regime, Shared &shared, DiagnosticEngine &diagnostics)
    : module(module), device(device), comparison(comparison), regime(regime), shared(shared), diagnostics(diagnostics),
      running{module.entry()} {
  shared.numSteps = 0;
  for (const ComputedValue &value : values)
    places[value.instr] = &value;
  findLastSteps(program.steps, lastSteps);
  for (const HloInstruction *parameter : module.entry()->parameters())
    given[parameter] = split(arguments[parameter->parameterNumber()], parameter->shape());
}

/// The instruction of the computation that is running which the step is named after; null if there is none.
const HloInstruction *StepComparison::find(const Step &step) {
  InstructionNames &known = names[running.back()];
  if (known.empty())
    known = namesOf(*running.back());
  return known.lookup(step.name);
}

/// What an instruction of a control computation has been, the last time.
StepComparison::Leaves StepComparison::valueOf(const HloInstruction *instr) {
  switch (instr->opcode()) {
  case Opcode::Parameter:
    return given.at(instr);
  case Opcode::Constant:
    return split(instr->literal(), instr->shape());
  case Opcode::Tuple: {
    Leaves all;
    for (const HloInstruction *operand : instr->operands())
      llvm::append_range(all, valueOf(operand));
    return all;
  }
  case Opcode::GetTupleElement: {
    Leaves tuple = valueOf(instr->operand(0));
    const int64_t index = instr->intOr(AttributeKey::Index, 0);
    size_t first = 0;
    for (int64_t i = 0; i < index; ++i)
      first += countLeaves(instr->operand(0)->shape().elements()[i]);
    return Leaves(tuple.begin() + first, tuple.begin() + first + countLeaves(instr->shape()));
  }
  case Opcode::Bitcast:
    return {
        std::make_shared<Literal>(fromDeviceBytes(instr->shape(), toDeviceBytes(*valueOf(instr->operand(0)).front())))};
  case Opcode::OptimizationBarrier:
    return valueOf(instr->operand(0));
  default:
    break;
  }
  if (auto found = computed.find(instr); found != computed.end())
    return found->second;
  // What a loop hands on is there before the loop has run, and nothing else of it is read then.
  if (instr->opcode() == Opcode::While)
    return valueOf(instr->operand(0));
  if (places.count(instr))
    isComplete &= misses(*instr);
  return withoutSteps(*instr);
}

/// Nothing has been computed of what runs next, though it may have run before.
void StepComparison::begin(const HloComputation &computation) {
  running.push_back(&computation);
  for (const HloInstruction *instr : computation.instructions())
    computed.erase(instr);
}

/// Something without steps: its results are empty, or of a fusion whose results lie already where they have to be.
StepComparison::Leaves StepComparison::withoutSteps(const HloInstruction &instr) {
  Leaves leaves;
  if (instr.opcode() == Opcode::Fusion) {
    const HloModule &part = partOf(instr);
    if (llvm::FailureOr<Literal> value = interpret(part, argumentsOf(instr, part), diagnostics); succeeded(value))
      return split(*value, instr.shape());
  }
  for (const Shape::Leaf &leaf : instr.shape().leaves()) {
    HLOC_CHECK(instr.opcode() == Opcode::Fusion || leaf.shape.byteSize() == 0 || places.count(&instr),
               "a value that nothing has computed");
    leaves.push_back(std::make_shared<Literal>(leaf.shape));
  }
  return leaves;
}

/// The fusion alone, cut out when it is asked for first.
HloModule &StepComparison::partOf(const HloInstruction &fusion) {
  std::unique_ptr<HloModule> &part = shared.parts[&fusion];
  if (part)
    return *part;
  part = extractFusions(module, {{&fusion, ""}});
  // A library's product is held to what a dot may give, which is less than what a call may.
  if (hasLibraryMark(fusion)) {
    HloPassContext context(diagnostics);
    (void)expandLibraryCalls(*part, context);
  }
  return *part;
}

/// Operands are parameters of the part in the order in which they are read first; constants are in it.
std::vector<Literal> StepComparison::argumentsOf(const HloInstruction &fusion, const HloModule &part) {
  std::vector<Literal> arguments;
  llvm::SmallPtrSet<const HloInstruction *, 8> seen;
  for (const HloInstruction *operand : fusion.operands())
    if (operand->opcode() != Opcode::Constant && seen.insert(operand).second)
      arguments.push_back(join(operand->shape(), valueOf(operand)));
  HLOC_CHECK(arguments.size() == part.entry()->numParameters(), "a part reads something else than its fusion");
  return arguments;
}

/// What lies where the plan says that the value is. Nothing after a diagnostic.
std::optional<StepComparison::Leaves> StepComparison::fetch(const HloInstruction &instr) {
  auto found = places.find(&instr);
  HLOC_CHECK(found != places.end(), "a step whose value has no place");
  const ComputedValue &place = *found->second;
  Leaves leaves;
  for (auto [leaf, slice] : llvm::zip_equal(instr.shape().leaves(), place.leaves)) {
    std::string error;
    std::optional<Literal> value = downloadLeaf(device, slice, leaf.shape, error);
    if (!value) {
      if (!error.empty())
        diagnostics.report(DiagnosticKind::BadLaunch, error);
      return std::nullopt;
    }
    leaves.push_back(std::make_shared<Literal>(std::move(*value)));
  }
  return leaves;
}

/// Of long loops the first rounds are compared, and then some.
bool StepComparison::isCompared(const HloInstruction &fusion) {
  constexpr uint64_t all = 128, oneOf = 16;
  const uint64_t round = rounds[&fusion]++;
  return round < all || round % oneOf == 0;
}

bool StepComparison::compareFusion(const HloInstruction &fusion) {
  const bool compares = isCompared(fusion);
  const HloModule &part = partOf(fusion);
  std::vector<Literal> arguments;
  if (compares)
    arguments = argumentsOf(fusion, part);
  std::optional<Leaves> leaves = isComplete ? fetch(fusion) : std::nullopt;
  if (!leaves)
    return false;
  if (!compares) {
    computed[&fusion] = std::move(*leaves);
    return true;
  }
  ++shared.numSteps;
  Literal actual = join(fusion.shape(), *leaves);
  computed[&fusion] = std::move(*leaves);
  return comparison.compareStep(part, arguments, actual, regime, fusion, shared.numSteps);
}

bool StepComparison::differ(const std::string &what, const HloInstruction *instr) {
  diagnostics.report(DiagnosticKind::ResultMismatch, instr ? instr->range() : SourceRange(), what);
  return false;
}

bool StepComparison::misses(const HloInstruction &instr) {
  return differ(fmt::format("the program has no step that computes `{}`", instr.name().str()), &instr);
}

/// Has all been carried out that is in this computation?
bool StepComparison::isDone(const HloComputation &computation) {
  return isComplete && llvm::all_of(computation.instructions(), [&](const HloInstruction *instr) {
           return !places.count(instr) || computed.count(instr) || misses(*instr);
         });
}

bool StepComparison::isRightly(bool goesOn, bool should, const HloInstruction &loop) {
  return should == goesOn || differ(fmt::format("the loop `{}` {}, which is not what its condition has computed",
                                                loop.name().str(), goesOn ? "goes on" : "ends"),
                                    &loop);
}

/// No step says whether a loop that is counted goes on: would its condition?
bool StepComparison::countsRightly(bool goesOn, const HloInstruction &loop) {
  const HloInstruction *state = stateOf(loop);
  llvm::FailureOr<Literal> should = interpret(*conditionOf(loop), {join(state->shape(), given[state])}, diagnostics);
  return succeeded(should) && isRightly(goesOn, should->getInt(0) != 0, loop);
}

/// The program has read whether to go on from where the plan says; is that what the condition has computed?
bool StepComparison::goesOnRightly(const WhileStep &loop, const HloInstruction &instr,
                                   const HloComputation &condition) {
  uint8_t goesOn = 0;
  if (std::string error; !device.download(loop.predicate, &goesOn, error)) {
    if (!error.empty())
      diagnostics.report(DiagnosticKind::BadLaunch, error);
    return false;
  }
  return isRightly(goesOn != 0, valueOf(condition.root()).front()->getInt(0) != 0, instr);
}

bool StepComparison::enter(const Step &step, size_t part) {
  const HloInstruction *instr = find(step);
  HLOC_CHECK(instr, "a loop or conditional that the module does not have");
  if (instr->opcode() == Opcode::While) {
    const HloInstruction *state = stateOf(*instr), *tested = conditionOf(*instr)->parameters().front();
    if (looping.insert(instr).second)
      given[state] = valueOf(instr->operand(0));
    if (std::get<WhileStep>(step.action).isCounted() && !countsRightly(/*goesOn=*/true, *instr))
      return false;
    given[tested] = given[state];
    begin(part == 0 ? *conditionOf(*instr) : *state->parent());
  } else {
    const size_t right = branchChosenBy(*valueOf(instr->operand(0)).front(), instr->calledComputations().size());
    if (right != part)
      return differ(fmt::format("of the conditional `{}` branch {} is taken, not branch {}, which its selector says",
                                instr->name().str(), part, right),
                    instr);
    const HloComputation *branch = instr->calledComputations()[part];
    given[branch->parameters().front()] = valueOf(instr->operand(unsigned(part) + 1));
    begin(*branch);
  }
  return true;
}

bool StepComparison::leave(const Step &step, size_t part) {
  const HloComputation *left = running.back();
  running.pop_back();
  if (!isDone(*left))
    return false;
  const HloInstruction *instr = find(step);
  if (const auto *loop = std::get_if<WhileStep>(&step.action); loop && part == 0)
    return goesOnRightly(*loop, *instr, *left);
  if (instr->opcode() == Opcode::Conditional)
    computed[instr] = valueOf(left->root());
  else if (part == 1)
    given[stateOf(*instr)] = Leaves(valueOf(left->root()));
  return true;
}

bool StepComparison::done(const Step &step) {
  const HloInstruction *instr = find(step);
  if (!instr || !lastSteps.contains(&step))
    return true;
  if (instr->opcode() == Opcode::While) {
    if (!looping.erase(instr))
      given[stateOf(*instr)] = valueOf(instr->operand(0)); // no round
    computed[instr] = given[stateOf(*instr)];
    return !std::get<WhileStep>(step.action).isCounted() || countsRightly(/*goesOn=*/false, *instr);
  }
  // Of a conditional it is known since its branch was left.
  return instr->opcode() == Opcode::Conditional || compareFusion(*instr);
}

bool StepComparison::finish(const Literal &result) {
  if (!isDone(*module.entry()))
    return false;
  const HloInstruction *root = module.entry()->root();
  const std::vector<const Literal *> actual = leavesOf(result, root->shape());
  const Leaves expected = valueOf(root);
  for (auto [number, leaf] : llvm::enumerate(root->shape().leaves()))
    if (!leaf.shape.isToken() && !(*expected[number] == *actual[number]))
      return differ(fmt::format("leaf {} of the result is not what was computed last", number));
  return true;
}

} // namespace hloc
