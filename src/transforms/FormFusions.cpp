// Plain ops between kernels -> fusions, constants into the fusions that read them.

#include "FuseGroups.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/External.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/search/FusionPolicy.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// The text is the body of one fusion; parameters and result become the entry's.
void wrapWholeEntry(HloModule &module) {
  HloComputation &body = *module.entry();
  HloComputation *entry = module.addComputation(freshComputationName(module, "entry"));
  entry->setRange(body.range());
  HloBuilder builder(*entry);
  llvm::SmallVector<HloInstruction *> parameters;
  for (HloInstruction *parameter : body.parameters()) {
    builder.setRange(parameter->range());
    parameters.push_back(builder.parameter(parameter->parameterNumber(), parameter->shape(), parameter->name()));
  }
  entry->setRoot(addFusion(builder, &body, parameters, FusionKind::Loop, body.name()));
  module.setEntry(entry);
}

/// Parameters, and tuple elements of them, in front of everything else.
void hoistParameters(HloEditor &editor) {
  llvm::BitVector hoisted(editor.idBound(), false);
  HloInstruction *rest = nullptr;
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    bool element = instr->opcode() == Opcode::GetTupleElement && hoisted[instr->operand(0)->id()];
    hoisted[instr->id()] = element || instr->opcode() == Opcode::Parameter;
    if (!hoisted[instr->id()] && !rest)
      rest = instr;
    else if (hoisted[instr->id()] && rest)
      editor.moveBefore(instr, rest);
  }
}

/// The (nested) tuple of the results, again from what stands for them now.
HloInstruction *rebuildTuple(HloInstruction *value, HloBuilder &builder, const GroupFuser &fuser) {
  if (value->opcode() != Opcode::Tuple)
    return fuser.formed(value);
  llvm::SmallVector<HloInstruction *> elements;
  for (HloInstruction *element : value->operands())
    elements.push_back(rebuildTuple(element, builder, fuser));
  builder.setRange(value->range());
  return builder.tuple(elements);
}

/// What renames a value between kernels does so without a kernel.
void makeBitcasts(llvm::ArrayRef<HloInstruction *> renamings, HloEditor &editor) {
  for (HloInstruction *instr : renamings) {
    if (editor.isErased(instr) || instr->opcode() == Opcode::Bitcast)
      continue;
    HloBuilder builder(editor, instr);
    builder.setRange(instr->range());
    editor.replaceAllUses(instr, builder.add(Opcode::Bitcast, instr->shape(), {instr->operand(0)}));
    editor.eraseIfDead(instr);
  }
}

/// The edges of a module that are asked for, and what became of them.
class AskedEdges {
public:
  explicit AskedEdges(llvm::ArrayRef<ForcedEdge> asked) : asked(asked), refusals(asked.size()) {
    for (auto [edge, refusal] : llvm::zip_equal(asked, refusals))
      refusal = fmt::format("no `{}` reads a `{}` where fusions are formed; --explain says what they are called there",
                            edge.user, edge.producer);
  }

  /// Those of a computation, to be in `found` in this order.
  std::vector<AskedEdge> of(const HloComputation &computation) {
    std::vector<AskedEdge> edges;
    numbers.clear();
    for (auto [number, edge] : llvm::enumerate(asked))
      for (const HloInstruction *user : computation.instructions())
        for (const HloInstruction *producer : user->operands())
          if (user->name() == edge.user && producer->name() == edge.producer &&
              (edges.empty() || edges.back().user != user || edges.back().producer != producer)) {
            edges.push_back({producer, user, edge.fused});
            numbers.push_back(number);
          }
    return edges;
  }
  void settle(llvm::ArrayRef<std::string> found) {
    for (auto [number, refusal] : llvm::zip_equal(numbers, found))
      refusals[number] = refusal;
  }
  /// For one reason all that were asked for are not had.
  void refuse(const char *why) { llvm::fill(refusals, why); }

  PassResult report(PassResult otherwise, DiagnosticEngine &diagnostics) const {
    for (auto [edge, refusal] : llvm::zip_equal(asked, refusals))
      if (!refusal.empty())
        diagnostics.report(DiagnosticKind::BadUsage, fmt::format("{} cannot be had: {}", edge.text, refusal));
    return llvm::all_of(refusals, [](const std::string &why) { return why.empty(); }) ? otherwise : PassResult::Failed;
  }

private:
  llvm::ArrayRef<ForcedEdge> asked;
  std::vector<std::string> refusals;
  std::vector<size_t> numbers; ///< of the edges of the last computation
};

bool fuseByCost(HloEditor &editor, HloPassContext &context, AskedEdges &asked) {
  const HloComputation &computation = editor.computation();
  GroupedByCost found = groupByCost(computation, computation.isEntry() ? editor.module().name() : computation.name(),
                                    context.target, context.explanation, asked.of(computation));
  asked.settle(found.refusals);
  hoistParameters(editor);
  GroupFuser fuser(editor);
  for (const FusionGroup &group : found.groups)
    fuser.fuse(group);
  HloBuilder builder(editor, nullptr);
  editor.setRoot(rebuildTuple(editor.root(), builder, fuser));
  fuser.finish();
  makeBitcasts(found.renamings, editor);
  return editor.changed();
}

/// A body that belongs to this fusion alone.
HloComputation *ownBody(const HloInstruction &fusion, size_t numCallers) {
  HloComputation *callee = fusion.computation(AttributeKey::Calls);
  if (numCallers == 1)
    return callee;
  HloModule &module = callee->module();
  HloComputation *copy = module.addComputationBefore(*fusion.parent(), freshComputationName(module, callee->name()));
  copy->setRange(callee->range());
  HloBuilder builder(*copy);
  std::vector<HloInstruction *> mapped;
  llvm::SmallVector<HloInstruction *> operands;
  for (HloInstruction *instr : callee->instructions()) {
    operands.clear();
    for (HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    builder.setRange(instr->range());
    mapped.push_back(builder.clone(*instr, operands));
  }
  copy->setRoot(mapped[callee->root()->id()]);
  return copy;
}

/// `output_to_operand_aliasing` of `from` for `to`, whose operands have these numbers, those that are left of them.
void renumberAliases(const HloInstruction &from, HloInstruction *to, llvm::ArrayRef<std::optional<int64_t>> numbers,
                     HloEditor &editor) {
  const AttributeValue *aliases = from.find(AttributeKey::OutputToOperandAliasing);
  if (!aliases)
    return;
  llvm::SmallVector<OutputAlias> left;
  for (OutputAlias alias : std::get<llvm::ArrayRef<OutputAlias>>(*aliases))
    if (std::optional<int64_t> number = numbers[size_t(alias.operand)]) {
      alias.operand = *number;
      left.push_back(alias);
    }
  llvm::ArrayRef<OutputAlias> saved = editor.module().arena().saveList(llvm::ArrayRef<OutputAlias>(left));
  editor.setAttribute(to, {AttributeKey::OutputToOperandAliasing, saved});
}

/// The fusion computes those of its operands that are `absorbed` itself. Others may have been made since those were
/// found.
void absorbOperands(HloInstruction &fusion, const llvm::DenseSet<const HloInstruction *> &absorbed, size_t numCallers,
                    HloEditor &editor) {
  llvm::DenseMap<const HloComputation *, HloComputation *> bodies;
  HloComputation *&body = bodies[fusion.computation(AttributeKey::Calls)];
  body = ownBody(fusion, numCallers);
  llvm::SmallVector<HloInstruction *> operands;
  llvm::SmallVector<std::optional<int64_t>> numbers;               ///< among them
  llvm::DenseMap<const HloInstruction *, HloInstruction *> inside; // one, however often it is an operand
  {
    HloEditor inner(*body);
    llvm::SmallVector<HloInstruction *> parameters(body->parameters());
    for (auto [parameter, operand] : llvm::zip_equal(parameters, fusion.operands())) {
      if (!absorbed.contains(operand)) {
        numbers.push_back(int64_t(operands.size()));
        operands.push_back(operand);
        continue;
      }
      numbers.push_back(std::nullopt);
      HloInstruction *&copy = inside[operand];
      if (!copy)
        copy = HloBuilder(inner, parameter).clone(*operand, {});
      inner.replaceAllUses(parameter, copy);
      inner.eraseParameter(parameter);
    }
  }
  HloInstruction *made = HloBuilder(editor, &fusion).clone(fusion, operands, bodies);
  renumberAliases(fusion, made, numbers, editor);
  editor.replaceAllUses(&fusion, made);
  editor.eraseIfDead(&fusion);
}

void absorbConstants(HloEditor &editor) {
  const HloComputation &entry = editor.computation();
  HloUsers users(entry);
  llvm::DenseSet<const HloInstruction *> absorbed;
  for (HloInstruction *instr : entry.instructions())
    if (belongsToReaders(*instr, users))
      absorbed.insert(instr);
  llvm::DenseMap<const HloComputation *, size_t> numCallers = countCalls(editor.module());
  llvm::SmallVector<HloInstruction *> readers;
  for (HloInstruction *instr : entry.instructions())
    if (instr->opcode() == Opcode::Fusion &&
        llvm::any_of(instr->operands(), [&](HloInstruction *operand) { return absorbed.contains(operand); }))
      readers.push_back(instr);
  for (HloInstruction *fusion : readers)
    absorbOperands(*fusion, absorbed, numCallers[fusion->computation(AttributeKey::Calls)]--, editor);
}

bool fuseEachPlainOp(HloEditor &editor) {
  GroupFuser fuser(editor);
  for (const FusionGroup &group : groupEachPlainOp(editor.computation()))
    fuser.fuse(group);
  fuser.finish();
  bool changed = editor.changed();
  editor.finish();
  absorbConstants(editor);
  return changed || editor.changed();
}

} // namespace

PassResult formFusions(HloModule &module, HloPassContext &context) {
  bool changed = false, hasFusions = false, hasOwnSteps = false;
  AskedEdges asked(context.options.forced);
  for (HloComputation *computation : controlComputations(module))
    changed |= HloEditor(*computation).eraseDead() > 0;
  std::vector<HloComputation *> computations = controlComputations(module);
  for (const HloComputation *computation : computations)
    for (const HloInstruction *instr : computation->instructions()) {
      hasFusions |= instr->opcode() == Opcode::Fusion;
      hasOwnSteps |= instr->opcode() == Opcode::Sort || isExternal(*instr);
    }
  if (module.headerless() && !hasFusions && !hasOwnSteps && computations.size() == 1) {
    wrapWholeEntry(module);
    asked.refuse("the text is the body of one kernel");
    return asked.report(PassResult::Changed, context.diagnostics);
  }
  if (hasFusions)
    asked.refuse("there are fusions already, which --fusion=redo makes anew");
  else if (context.options.fusion == FusionMode::None)
    asked.refuse("--fusion=none makes every op a kernel");
  for (HloComputation *computation : computations) {
    HloEditor editor(*computation);
    changed |= hasFusions || context.options.fusion == FusionMode::None ? fuseEachPlainOp(editor)
                                                                        : fuseByCost(editor, context, asked);
  }
  return asked.report(changedIf(changed), context.diagnostics);
}

} // namespace hloc
