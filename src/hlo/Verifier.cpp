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

void VerifierReporter::warn(SourceRange where, const llvm::Twine &message) {
  diagnostics.report(DiagnosticKind::IgnoredInput, where, message.str());
}

namespace {

bool layoutsArePermutations(const Shape &shape) {
  if (shape.isTuple())
    return llvm::all_of(shape.elements(), layoutsArePermutations);
  return !shape.isArray() ||
         (shape.minorToMajor().size() == shape.rank() && distinctInRange(shape.minorToMajor(), shape.rank()));
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
    bool agrees = hasTrait(instr.opcode(), OpcodeTrait::MixedPrecision)
                      ? inferred->compatibleIgnoringFloatPrecision(instr.shape())
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
    if (!hasTrait(instr.opcode(), OpcodeTrait::AppliesToElements))
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

// fusion_c2; says which instructions mean nothing
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
    if (instr == fused.root() || isUsed || instr->hasSideEffect() || instr->opcode() == Opcode::Parameter)
      continue;
    reporter.warn(instr->range(), describe(*instr) + " in a fusion has no user and is left out");
  }
}

// async_c4
void checkAsyncUsers(const HloComputation &computation, VerifierReporter &reporter) {
  auto needsOneUser = [](const HloInstruction *instr) { return hasTrait(instr->opcode(), OpcodeTrait::OneUser); };
  if (llvm::none_of(computation.instructions(), needsOneUser))
    return;
  HloUsers users(computation);
  for (const HloInstruction *instr : computation.instructions())
    if (needsOneUser(instr) && users.of(instr).size() != 1 && instr != computation.root())
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

// instruction_c6
void checkOrder(const HloComputation &computation, VerifierReporter &reporter) {
  for (const HloInstruction *instr : computation.instructions()) {
    auto check = [&](const HloInstruction *earlier, const char *what) {
      if (earlier && earlier->parent() == &computation && earlier->id() < instr->id())
        return;
      reporter.report(VerifierRule::instruction_c6, instr->range(),
                      text(instr->opcode()) + ": " + what + (earlier ? " `" + earlier->name() + "`" : llvm::Twine()) +
                          " does not come before `" + instr->name() + "`");
    };
    for (const HloInstruction *operand : instr->operands())
      check(operand, "operand");
    if (const AttributeValue *before = instr->find(AttributeKey::ControlPredecessors))
      for (const HloInstruction *predecessor : std::get<llvm::ArrayRef<HloInstruction *>>(*before))
        check(predecessor, "control predecessor");
  }
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

bool verifyInstructions(const HloComputation &computation, DiagnosticEngine &diagnostics) {
  VerifierReporter reporter(diagnostics);
  for (const HloInstruction *instr : computation.instructions())
    InstructionVerifier(*instr, reporter).run();
  return reporter.ok;
}

bool verify(const HloModule &module, DiagnosticEngine &diagnostics) {
  VerifierReporter reporter(diagnostics);
  if (!module.entry() || !module.entry()->root()) {
    reporter.report(VerifierRule::module_c1, SourceRange(), "module `" + module.name() + "` has no entry computation");
    return false;
  }
  for (const auto &computation : module.computations()) {
    checkParameters(*computation, reporter);
    checkOrder(*computation, reporter);
  }
  // Later rules look into operands and callees, so these must be sound first.
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
