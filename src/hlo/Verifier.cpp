#include "hloc/hlo/Verifier.h"

#include "ShapeInferenceContext.h"
#include "VerifierParts.h"
#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

void VerifierReporter::report(VerifierRule rule, SourceRange where, const llvm::Twine &message) {
  ok = false;
  diagnostics.report(kindOf(rule), where, message.str()).note(("rule `" + text(rule) + "`: " + sentence(rule)).str());
}

namespace {

/// Ops whose operands and result may differ in float precision (hlo-text 6).
bool allowsMixedPrecision(Opcode opcode) {
  switch (opcode) {
  case Opcode::Call:
  case Opcode::Conditional:
  case Opcode::Constant:
  case Opcode::Convolution:
  case Opcode::Dot:
  case Opcode::ScaledDot:
  case Opcode::RaggedDot:
  case Opcode::CustomCall:
  case Opcode::Domain:
  case Opcode::Fusion:
  case Opcode::GetTupleElement:
  case Opcode::OptimizationBarrier:
  case Opcode::Parameter:
  case Opcode::Reduce:
  case Opcode::ReducePrecision:
  case Opcode::ReduceWindow:
  case Opcode::Sort:
  case Opcode::Tuple:
  case Opcode::While:
    return true;
  default:
    return family(opcode) == OpcodeFamily::Host || family(opcode) == OpcodeFamily::Collective ||
           family(opcode) == OpcodeFamily::Async;
  }
}

bool layoutsArePermutations(const Shape &shape) {
  if (shape.isTuple())
    return llvm::all_of(shape.elements(), layoutsArePermutations);
  return !shape.isArray() ||
         (shape.minorToMajor().size() == shape.rank() && distinctInRange(shape.minorToMajor(), shape.rank()));
}

/// Ops that apply a computation to elements, in an order that nobody promises.
bool appliesToElements(Opcode opcode) {
  switch (opcode) {
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
  case Opcode::SelectAndScatter:
  case Opcode::Scatter:
  case Opcode::Sort:
  case Opcode::Map:
  case Opcode::Scan:
  case Opcode::AllReduce:
  case Opcode::AllReduceStart:
  case Opcode::ReduceScatter:
    return true;
  default:
    return false;
  }
}

InstructionSpec specOf(const HloInstruction &instr) {
  InstructionSpec spec;
  spec.opcode = instr.opcode();
  spec.name = instr.name();
  spec.shape = instr.shape();
  spec.operands = instr.operands();
  spec.attributes = instr.attributes();
  spec.range = instr.range();
  spec.parameterNumber = instr.parameterNumber();
  spec.literal = instr.hasLiteral() ? &instr.literal() : nullptr;
  return spec;
}

class InstructionVerifier {
public:
  InstructionVerifier(const HloInstruction &instr, VerifierReporter &reporter) : instr(instr), reporter(reporter) {}

  void run() {
    if (!layoutsArePermutations(instr.shape()))
      return fail(VerifierRule::shape_c2, "the layout of `" + instr.shape().toString() + "` is no permutation");
    InstructionSpec spec = specOf(instr);
    InferenceContext context(spec);
    std::optional<Shape> inferred = inferWithRules(context);
    if (!inferred) {
      reporter.report(context.rule(), instr.range(), context.message());
      return;
    }
    bool agrees = allowsMixedPrecision(instr.opcode()) ? inferred->compatibleIgnoringFloatPrecision(instr.shape())
                                                       : inferred->compatible(instr.shape());
    if (!agrees)
      return fail(VerifierRule::instruction_c4,
                  "declared shape " + show(instr.shape()) + " differs from the inferred shape " + show(*inferred));
    checkAliases();
    checkPurity();
  }

private:
  void fail(VerifierRule rule, const llvm::Twine &message) {
    reporter.report(rule, instr.range(), text(instr.opcode()) + ": " + message);
  }

  // alias_c1, alias_c2
  void checkAliases() {
    const AttributeValue *value = instr.find(AttributeKey::OutputToOperandAliasing);
    // Operands and results of an async-start may come with its updates.
    if (!value || instr.opcode() == Opcode::AsyncStart)
      return;
    for (const OutputAlias &alias : std::get<llvm::ArrayRef<OutputAlias>>(*value)) {
      const Shape *output = partOf(instr.shape(), alias.output);
      bool operandExists = alias.operand >= 0 && alias.operand < instr.numOperands();
      const Shape *input = operandExists ? partOf(instr.operand(alias.operand)->shape(), alias.operandIndex) : nullptr;
      if (!output || !input)
        return fail(VerifierRule::alias_c1, "output " + show(alias.output) + " or operand " +
                                                llvm::Twine(alias.operand) + " " + show(alias.operandIndex) +
                                                " does not exist");
      if (output->byteSize() != input->byteSize())
        return fail(VerifierRule::alias_c2, "output " + show(*output) + " aliases operand " + show(*input));
    }
  }

  // reducer_c1
  void checkPurity() {
    if (!appliesToElements(instr.opcode()))
      return;
    for (const HloComputation *callee : instr.calledComputations())
      for (const HloInstruction *inner : callee->instructions())
        if (inner->hasSideEffect())
          return fail(VerifierRule::reducer_c1,
                      "`" + callee->name() + "` contains " + describe(*inner) + ", which has a side effect");
  }

  const HloInstruction &instr;
  VerifierReporter &reporter;
};

/// Who calls each computation, and where each stands in the module.
class CallGraph {
public:
  CallGraph(const HloModule &module, VerifierReporter &reporter) {
    for (const auto &computation : module.computations())
      position[computation.get()] = position.size();
    for (const auto &computation : module.computations())
      for (const HloInstruction *instr : computation->instructions())
        for (const HloComputation *callee : instr->calledComputations())
          addCall(*instr, callee, reporter);
  }

  llvm::ArrayRef<const HloInstruction *> callers(const HloComputation *callee) const {
    auto it = callersOf.find(callee);
    return it == callersOf.end() ? llvm::ArrayRef<const HloInstruction *>() : it->second;
  }

private:
  // instruction_c5
  void addCall(const HloInstruction &instr, const HloComputation *callee, VerifierReporter &reporter) {
    auto it = callee ? position.find(callee) : position.end();
    if (it == position.end() || it->second >= position.find(instr.parent())->second || !callee->root())
      return reporter.report(VerifierRule::instruction_c5, instr.range(),
                             text(instr.opcode()) + ": called computation `" + (callee ? callee->name() : "") +
                                 "` does not come before `" + instr.parent()->name() + "`");
    callersOf[callee].push_back(&instr);
  }

  llvm::DenseMap<const HloComputation *, size_t> position;
  llvm::DenseMap<const HloComputation *, llvm::SmallVector<const HloInstruction *, 1>> callersOf;
};

// fusion_c2 to fusion_c4
void checkFusedComputation(const HloComputation &fused, llvm::ArrayRef<const HloInstruction *> callers,
                           VerifierReporter &reporter) {
  const auto *fusion = llvm::find_if(callers, [](auto *caller) { return caller->opcode() == Opcode::Fusion; });
  if (fusion == callers.end())
    return;
  SourceRange where = (*fusion)->range();
  if (callers.size() != 1 || fused.isEntry())
    return reporter.report(VerifierRule::fusion_c2, where,
                           "fusion: `" + fused.name() + "` is " +
                               (fused.isEntry() ? "the entry computation" : "called by ") +
                               (fused.isEntry() ? "" : std::to_string(callers.size()) + " instructions"));
  HloUsers users(fused);
  for (const HloInstruction *instr : fused.instructions()) {
    bool isUsed = !users.of(instr).empty();
    if (instr == fused.root() && isUsed)
      reporter.report(VerifierRule::fusion_c4, instr->range(), "the fusion root " + describe(*instr) + " has a user");
    if (instr != fused.root() && !isUsed && !instr->hasSideEffect())
      reporter.report(VerifierRule::fusion_c3, instr->range(), describe(*instr) + " in a fusion has no user");
  }
}

// async_c4
void checkAsyncUsers(const HloComputation &computation, VerifierReporter &reporter) {
  auto isStart = [](Opcode opcode) {
    return opcode == Opcode::AsyncStart || opcode == Opcode::AsyncUpdate || opcode == Opcode::CopyStart ||
           opcode == Opcode::AllReduceStart || opcode == Opcode::AllGatherStart ||
           opcode == Opcode::CollectivePermuteStart;
  };
  if (llvm::none_of(computation.instructions(), [&](auto *instr) { return isStart(instr->opcode()); }))
    return;
  HloUsers users(computation);
  for (const HloInstruction *instr : computation.instructions())
    if (isStart(instr->opcode()) && users.of(instr).size() != 1 && instr != computation.root())
      reporter.report(VerifierRule::async_c4, instr->range(),
                      describe(*instr) + " has " + llvm::Twine(users.of(instr).size()) + " users instead of one");
}

// module_c2
bool checkParameters(const HloComputation &computation, VerifierReporter &reporter) {
  for (unsigned i = 0; i < computation.numParameters(); ++i)
    if (!computation.parameters()[i]) {
      reporter.report(VerifierRule::module_c2, computation.range(),
                      "computation `" + computation.name() + "` has no parameter " + llvm::Twine(i));
      return false;
    }
  return true;
}

} // namespace

const Shape *partOf(const Shape &shape, Dims path) {
  const Shape *part = &shape;
  for (int64_t index : path) {
    if (!part->isTuple() || index < 0 || index >= static_cast<int64_t>(part->elements().size()))
      return nullptr;
    part = &part->element(index);
  }
  return part;
}

bool verify(const HloModule &module, DiagnosticEngine &diagnostics) {
  VerifierReporter reporter(diagnostics);
  if (!module.entry() || !module.entry()->root()) {
    reporter.report(VerifierRule::module_c1, SourceRange(), "module `" + module.name() + "` has no entry computation");
    return false;
  }
  for (const auto &computation : module.computations())
    checkParameters(*computation, reporter);
  // Later rules look into callees, so calls must be sound first.
  CallGraph calls(module, reporter);
  if (!reporter.ok)
    return false;
  for (const auto &computation : module.computations()) {
    for (const HloInstruction *instr : computation->instructions())
      InstructionVerifier(*instr, reporter).run();
    checkFusedComputation(*computation, calls.callers(computation.get()), reporter);
    checkAsyncUsers(*computation, reporter);
  }
  verifyHeader(module, reporter);
  return reporter.ok;
}

} // namespace hloc
