#include "hloc/interp/Interpreter.h"

#include "hloc/support/Check.h"
#include "interp/IndexPromises.h"
#include "interp/Machine.h"
#include "interp/MixedTypes.h"
#include "interp/Pieces.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"

#include <utility>

namespace hloc {

namespace interp {

llvm::LogicalResult Step::unsupported(const llvm::Twine &reason, DiagnosticKind kind) {
  machine.diagnostics.report(kind, instr.range(),
                             ("the interpreter cannot evaluate `" + text(instr.opcode()) + "`: " + reason).str());
  return llvm::failure();
}

Machine::Schedule::Schedule(const HloComputation &computation) {
  lastUse.resize(computation.instructions().size());
  for (const HloInstruction *instr : computation.instructions()) {
    lastUse[instr->id()] = instr->id();
    for (const HloInstruction *operand : instr->operands())
      lastUse[operand->id()] = instr->id();
  }
  lastUse[computation.root()->id()] = ~0u;
}

const Machine::Schedule &Machine::scheduleOf(const HloComputation &computation) {
  std::unique_ptr<Schedule> &schedule = schedules[&computation];
  if (!schedule)
    schedule = std::make_unique<Schedule>(computation);
  return *schedule;
}

namespace {

uint64_t hostSize(const Shape &shape) {
  if (shape.isArray())
    return llvm::SaturatingMultiply<uint64_t>(shape.numElements(), hostBytes(shape.elementType()));
  uint64_t sum = 0;
  if (shape.isTuple())
    for (const Shape &element : shape.elements())
      sum = llvm::SaturatingAdd(sum, hostSize(element));
  return sum;
}

/// Of the parts that have no bytes to borrow.
uint64_t elidedBytes(const Literal &literal) {
  uint64_t sum = literal.isElided() ? hostSize(literal.shape()) : 0;
  for (const Literal &element : literal.elements())
    sum = llvm::SaturatingAdd(sum, elidedBytes(element));
  return sum;
}

} // namespace

uint64_t ownBytes(const HloInstruction &instr) {
  constexpr OpcodeFamily handOn[] = {OpcodeFamily::Structure, OpcodeFamily::Identity, OpcodeFamily::Control,
                                     OpcodeFamily::Async};
  if (llvm::is_contained(handOn, family(instr.opcode())) || instr.opcode() == Opcode::Parameter)
    return 0;
  return instr.opcode() == Opcode::Constant ? elidedBytes(instr.literal()) : hostSize(instr.shape());
}

llvm::LogicalResult Machine::admit(const HloInstruction &instr) {
  if (instr.shape().hasDynamicDims()) {
    diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                       "the interpreter does not evaluate dynamic shapes: " + describe(instr));
    return llvm::failure();
  }
  return ownBytes(instr) > options.maxBytes - std::min(liveBytes, options.maxBytes) ? refuseForMemory(instr)
                                                                                    : llvm::success();
}

llvm::LogicalResult Machine::refuseForMemory(const HloInstruction &instr) {
  diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                     "the value of " + describe(instr) + " does not fit into the interpreter's memory limit of " +
                         std::to_string(options.maxBytes >> 20) + " MiB");
  return llvm::failure();
}

llvm::FailureOr<Value> Machine::evaluate(const HloInstruction &instr, llvm::MutableArrayRef<Value> operands,
                                         const Shape *as) {
  Step step{instr, operands, *this, as};
  OpcodeRule rule = opcodeRule(instr.opcode());
  if (!rule.evaluate)
    return step.unsupported(rule.refusal, DiagnosticKind::UnsupportedOpcode);
  for (auto [operand, type] : llvm::zip(operands, typesTaken(instr)))
    operand = converted(operand, type);
  if (options.checksPromises && failed(checkPromises(step)))
    return llvm::failure();
  return rule.evaluate(step);
}

/// Whether a value has the types that the instruction declares. It need not: HLO allows an f64 sum of f32 operands.
static bool hasTypeOf(const Value &value, const Shape &shape) {
  if (!value.isTuple())
    return shape.isArray() && value.array().shape().elementType() == shape.elementType() &&
           value.array().shape().sameDims(shape);
  if (!shape.isTuple())
    return !shape.isArray(); // tokens are empty tuples
  if (value.elements().size() != shape.elements().size())
    return false;
  for (auto [element, wanted] : llvm::zip_equal(value.elements(), shape.elements()))
    if (!hasTypeOf(element, wanted))
      return false;
  return true;
}

llvm::FailureOr<Value> Machine::run(const HloComputation &computation, std::vector<Value> arguments) {
  if (depth >= maxDepth) {
    diagnostics.report(DiagnosticKind::UnsupportedFeature, computation.range(),
                       "calls are nested too deeply for the interpreter");
    return llvm::failure();
  }
  ++depth;
  auto leave = llvm::scope_exit([&] { --depth; });
  const Schedule &schedule = scheduleOf(computation);
  std::vector<Value> values(computation.instructions().size());
  std::vector<uint64_t> held(values.size(), 0); // bytes counted in liveBytes for each value
  llvm::SmallVector<Value, 4> operands;
  const bool isCounted = meter.counts(computation);
  for (const HloInstruction *instr : computation.instructions()) {
    if (llvm::failed(admit(*instr)))
      return llvm::failure();
    if (instr->opcode() == Opcode::Parameter) {
      values[instr->id()] = std::move(arguments[size_t(instr->parameterNumber())]);
      continue;
    }
    operands.clear();
    for (const HloInstruction *operand : instr->operands())
      operands.push_back(values[operand->id()]);
    for (const HloInstruction *operand : instr->operands())
      if (schedule.lastUse[operand->id()] == instr->id()) {
        values[operand->id()] = Value();
        liveBytes -= std::exchange(held[operand->id()], 0);
      }
    llvm::FailureOr<Value> value = evaluate(*instr, operands);
    if (llvm::failed(value))
      return llvm::failure();
    if (isCounted)
      meter.done(*instr);
    if (!hasTypeOf(*value, instr->shape())) {
      diagnostics.report(DiagnosticKind::UnsupportedFeature, instr->range(),
                         "`" + instr->name().str() + "` is declared as " + instr->shape().toString(false) +
                             ", which is not what its operands give: mixed precision is not interpreted here");
      return llvm::failure();
    }
    if (schedule.lastUse[instr->id()] == instr->id())
      continue;
    values[instr->id()] = std::move(*value);
    liveBytes += held[instr->id()] = ownBytes(*instr);
  }
  for (uint64_t bytes : held)
    liveBytes -= bytes;
  return std::move(values[computation.root()->id()]);
}

} // namespace interp

llvm::FailureOr<Literal> interpret(const HloComputation &computation, llvm::ArrayRef<Literal> arguments,
                                   DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  if (arguments.size() != computation.numParameters()) {
    diagnostics.report(DiagnosticKind::ShapeMismatch, computation.range(),
                       ("`" + computation.name() + "` has " + llvm::Twine(computation.numParameters()) +
                        " parameters, but " + llvm::Twine(arguments.size()) + " arguments were given")
                           .str());
    return llvm::failure();
  }
  std::vector<interp::Value> values;
  for (const HloInstruction *parameter : computation.parameters()) {
    const Literal &argument = arguments[values.size()];
    if (!argument.shape().compatible(parameter->shape())) {
      diagnostics.report(DiagnosticKind::ShapeMismatch, parameter->range(),
                         "argument " + std::to_string(values.size()) + " is " + argument.shape().toString(false) +
                             ", but the parameter is " + parameter->shape().toString(false));
      return llvm::failure();
    }
    values.push_back(interp::Value::borrow(argument));
  }
  interp::Machine machine(diagnostics, options);
  machine.meter.begin(computation);
  llvm::FailureOr<interp::Value> result = machine.run(computation, std::move(values));
  if (llvm::failed(result))
    return llvm::failure();
  return result->toLiteral(computation.root()->shape());
}

llvm::FailureOr<Literal> interpret(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                   DiagnosticEngine &diagnostics, const InterpreterOptions &options) {
  HLOC_CHECK(module.entry(), "module without an entry computation");
  if (interp::isInterpretedInPieces(module, arguments))
    if (llvm::FailureOr<Literal> result = interp::interpretInPieces(module, arguments, options);
        llvm::succeeded(result))
      return result;
  return interpret(*module.entry(), arguments, diagnostics, options);
}

bool makesPromises(const HloInstruction &instr) {
  const bool isScatter = instr.opcode() == Opcode::Scatter;
  if (!(isScatter || instr.opcode() == Opcode::Gather) ||
      !(instr.flag(AttributeKey::UniqueIndices) || instr.flag(AttributeKey::IndicesAreSorted)))
    return false;
  const Shape &indices = instr.operand(isScatter ? instr.numOperands() / 2 : 1)->shape();
  const int64_t dim = instr.intOr(AttributeKey::IndexVectorDim, 0);
  return indices.numElements() > (dim < indices.rank() ? indices.dim(unsigned(dim)) : 1);
}

const char *interpreterRefusal(Opcode opcode) { return interp::opcodeRule(opcode).refusal; }

} // namespace hloc
