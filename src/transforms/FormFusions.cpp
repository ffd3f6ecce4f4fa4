// Plain ops of the entry -> fusions, constants into the fusions that read them.

#include "CloneBody.h"
#include "hloc/support/Check.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

namespace {

/// Ops that cost nothing between kernels: they only name buffers.
bool isStructure(const HloInstruction &instr) {
  switch (instr.opcode()) {
  case Opcode::Parameter:
  case Opcode::Tuple:
  case Opcode::GetTupleElement:
  case Opcode::Bitcast:
  case Opcode::OptimizationBarrier:
    return true;
  default:
    return false;
  }
}

bool callsFusion(const HloComputation &computation) {
  return llvm::any_of(computation.instructions(),
                      [](HloInstruction *instr) { return instr->opcode() == Opcode::Fusion; });
}

/// The values behind a (nested) tuple built by `tuple` instructions, in order.
void tupleLeaves(HloInstruction *value, llvm::SmallVectorImpl<HloInstruction *> &leaves) {
  if (value->opcode() != Opcode::Tuple) {
    leaves.push_back(value);
    return;
  }
  for (HloInstruction *element : value->operands())
    tupleLeaves(element, leaves);
}

class FusionFormer {
public:
  explicit FusionFormer(const HloModule &module) : source(module), result(emptyLike(module)) {}

  std::unique_ptr<HloModule> run() {
    std::vector<HloComputation *> computations = reachableComputations(source);
    computations.pop_back(); // the entry
    for (HloComputation *computation : computations)
      copies[computation] = cloneComputation(*computation, *result, computation->name(), copies);
    const HloComputation &entry = *source.entry();
    bool hasFusions = callsFusion(entry);
    if (source.headerless() && !hasFusions)
      wrapWholeEntry(entry);
    else if (hasFusions)
      wrapEachPlainOp(entry);
    else
      fuseByResultShape(entry);
    return std::move(result);
  }

private:
  HloComputation *newEntry(const HloComputation &like) {
    HloComputation *entry = result->addComputation(freshComputationName(*result, like.name()));
    entry->setRange(like.range());
    return entry;
  }

  HloInstruction *addFusion(HloBuilder &builder, HloComputation *body, llvm::ArrayRef<HloInstruction *> operands,
                            llvm::StringRef name) {
    Attribute attributes[] = {{AttributeKey::Kind, static_cast<int64_t>(FusionKind::Loop)},
                              {AttributeKey::Calls, body}};
    builder.setRange(body->root()->range());
    return builder.add(Opcode::Fusion, body->root()->shape(), operands, attributes, name);
  }

  /// The text is the body of one fusion; parameters and result become the entry's.
  void wrapWholeEntry(const HloComputation &body) {
    HloComputation *fused = cloneComputation(body, *result, freshComputationName(*result, body.name()), copies);
    HloComputation *entry = result->addComputation(freshComputationName(*result, "entry"));
    entry->setRange(body.range());
    HloBuilder builder(*entry);
    llvm::SmallVector<HloInstruction *> parameters;
    for (HloInstruction *parameter : body.parameters()) {
      builder.setRange(parameter->range());
      parameters.push_back(builder.parameter(parameter->parameterNumber(), parameter->shape(), parameter->name()));
    }
    entry->setRoot(addFusion(builder, fused, parameters, body.name()));
    result->setEntry(entry);
  }

  /// Copies what `roots` need of `from` into a new body; values that `inEntry` holds become parameters of it.
  /// Returns the fusion's operands.
  struct Body {
    HloComputation *computation;
    llvm::SmallVector<HloInstruction *> operands;
  };
  Body makeBody(const HloComputation &from, llvm::ArrayRef<HloInstruction *> roots, const InstructionMap &inEntry,
                llvm::StringRef name) {
    Body body{result->addComputation(freshComputationName(*result, name)), {}};
    std::vector<bool> needed(from.instructions().size(), false);
    for (HloInstruction *root : roots)
      needed[root->id()] = true;
    for (HloInstruction *instr : llvm::reverse(from.instructions()))
      if (needed[instr->id()] && !inEntry.contains(instr))
        for (HloInstruction *operand : instr->operands())
          needed[operand->id()] = true;
    HloBuilder builder(*body.computation);
    InstructionMap mapped;
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *instr : from.instructions()) {
      if (!needed[instr->id()])
        continue;
      builder.setRange(instr->range());
      auto outside = inEntry.find(instr);
      if (outside != inEntry.end()) {
        mapped[instr] = builder.parameter(body.operands.size(), instr->shape(), instr->name());
        body.operands.push_back(outside->second);
        continue;
      }
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped.lookup(operand));
      mapped[instr] = builder.clone(*instr, operands, copies);
    }
    llvm::SmallVector<HloInstruction *> bodyRoots;
    for (HloInstruction *root : roots)
      bodyRoots.push_back(mapped.lookup(root));
    body.computation->setRoot(bodyRoots.size() == 1 ? bodyRoots.front() : builder.tuple(bodyRoots));
    return body;
  }

  /// Parameters, and tuple elements of them, are available in the entry as they are.
  void copyParameters(const HloComputation &from, HloBuilder &builder, InstructionMap &inEntry) {
    for (HloInstruction *instr : from.instructions()) {
      bool element = instr->opcode() == Opcode::GetTupleElement && inEntry.contains(instr->operand(0));
      if (instr->opcode() != Opcode::Parameter && !element)
        continue;
      builder.setRange(instr->range());
      llvm::SmallVector<HloInstruction *, 1> operands;
      if (element)
        operands.push_back(inEntry.lookup(instr->operand(0)));
      inEntry[instr] = builder.clone(*instr, operands);
    }
  }

  void fuseByResultShape(const HloComputation &from) {
    llvm::SmallVector<HloInstruction *> leaves;
    tupleLeaves(from.root(), leaves);
    HloComputation *entry = result->addComputation(freshComputationName(*result, from.name()));
    entry->setRange(from.range());
    HloBuilder builder(*entry);
    InstructionMap inEntry;
    copyParameters(from, builder, inEntry);
    if (shouldMaterialize(from, leaves))
      materializeStructured(from, builder, inEntry);
    // Results of one shape are written by one kernel. (Layouts count: its threads walk memory in order.)
    std::vector<llvm::SmallVector<HloInstruction *>> groups;
    llvm::StringMap<size_t> groupOf;
    llvm::DenseSet<HloInstruction *> grouped;
    for (HloInstruction *leaf : leaves) {
      if (inEntry.contains(leaf))
        continue;
      std::string key = leaf->shape().isArray() ? leaf->shape().withElementType(ElementType::Pred).toString() : "";
      auto [at, isNew] = groupOf.try_emplace(key, groups.size());
      if (isNew)
        groups.emplace_back();
      if (grouped.insert(leaf).second)
        groups[at->second].push_back(leaf);
    }
    unsigned number = 0;
    for (llvm::ArrayRef<HloInstruction *> roots : groups) {
      std::string suffix = groups.size() == 1 ? "" : "_" + std::to_string(number++);
      Body body = makeBody(from, roots, inEntry, "fused_" + from.name().str() + suffix);
      HloInstruction *fusion = addFusion(builder, body.computation, body.operands, source.name().str() + suffix);
      for (unsigned i = 0; i < roots.size(); ++i)
        pending.push_back({roots[i], roots.size() == 1 ? fusion : builder.tupleElement(fusion, i)});
    }
    for (auto &[leaf, value] : pending)
      inEntry[leaf] = value;
    entry->setRoot(rebuildTuple(from.root(), builder, inEntry));
    result->setEntry(entry);
  }

  /// Is there an op that combines many elements (a reduction, a contraction) whose result would be computed again and
  /// again if everything were one kernel? A single one that is read element by element is not.
  static bool shouldMaterialize(const HloComputation &from, llvm::ArrayRef<HloInstruction *> leaves) {
    std::vector<bool> live = liveInstructions(from);
    llvm::SmallVector<HloInstruction *> structured;
    for (HloInstruction *instr : from.instructions())
      if (live[instr->id()] && family(instr->opcode()) == OpcodeFamily::Structured)
        structured.push_back(instr);
    if (structured.size() != 1)
      return !structured.empty();
    const Shape &shape = structured.front()->shape();
    return !shape.isArray() || llvm::any_of(leaves, [&](HloInstruction *leaf) {
      return !leaf->shape().isArray() || leaf->shape().numElements() != shape.numElements();
    });
  }

  /// Every such op becomes the root of a fusion of its own, with what is computed on the way to it.
  void materializeStructured(const HloComputation &from, HloBuilder &builder, InstructionMap &inEntry) {
    std::vector<bool> live = liveInstructions(from);
    for (HloInstruction *instr : from.instructions()) {
      if (!live[instr->id()] || inEntry.contains(instr))
        continue;
      if (family(instr->opcode()) == OpcodeFamily::Structured) {
        Body body = makeBody(from, {instr}, inEntry, "fused_" + instr->name().str());
        inEntry[instr] = addFusion(builder, body.computation, body.operands, instr->name());
      } else if (instr->opcode() == Opcode::GetTupleElement && inEntry.contains(instr->operand(0))) {
        builder.setRange(instr->range());
        inEntry[instr] = builder.clone(*instr, {inEntry.lookup(instr->operand(0))});
      }
    }
  }

  HloInstruction *rebuildTuple(HloInstruction *value, HloBuilder &builder, const InstructionMap &inEntry) {
    if (value->opcode() != Opcode::Tuple)
      return inEntry.lookup(value);
    llvm::SmallVector<HloInstruction *> elements;
    for (HloInstruction *element : value->operands())
      elements.push_back(rebuildTuple(element, builder, inEntry));
    builder.setRange(value->range());
    return builder.tuple(elements);
  }

  void wrapEachPlainOp(const HloComputation &from) {
    HloComputation *entry = newEntry(from);
    HloBuilder builder(*entry);
    InstructionMap inEntry;
    std::vector<bool> live = liveInstructions(from);
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *instr : from.instructions()) {
      // Constants and what is made of nothing else go into their readers; only a result needs a kernel that writes it.
      bool isSource = family(instr->opcode()) == OpcodeFamily::Source && instr->opcode() != Opcode::Parameter;
      if (!live[instr->id()] || (isSource && instr != from.root() && !isResult(from, instr)))
        continue;
      if (!isStructure(*instr)) {
        inEntry[instr] = instr->opcode() == Opcode::Fusion ? absorbConstants(*instr, builder, inEntry)
                                                           : wrap(from, instr, builder, inEntry);
        continue;
      }
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(inEntry.lookup(operand));
      builder.setRange(instr->range());
      inEntry[instr] = builder.clone(*instr, operands);
    }
    entry->setRoot(inEntry.lookup(from.root()));
    result->setEntry(entry);
  }

  /// Is a constant read by something that only names buffers, so that it needs a buffer itself?
  bool isResult(const HloComputation &from, const HloInstruction *instr) {
    if (!users)
      users = std::make_unique<HloUsers>(from);
    return llvm::any_of(users->of(instr), [](HloInstruction *user) { return isStructure(*user); });
  }

  HloInstruction *wrap(const HloComputation &from, HloInstruction *instr, HloBuilder &builder,
                       const InstructionMap &inEntry) {
    Body body = makeBody(from, {instr}, inEntry, ("wrapped_" + llvm::Twine(instr->name())).str());
    return addFusion(builder, body.computation, body.operands, instr->name());
  }

  /// A fusion whose operands are constants of the entry gets a body that holds them.
  HloInstruction *absorbConstants(const HloInstruction &fusion, HloBuilder &builder, const InstructionMap &inEntry) {
    HloComputation *callee = copies.lookup(fusion.computation(AttributeKey::Calls));
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *operand : fusion.operands())
      if (inEntry.contains(operand))
        operands.push_back(inEntry.lookup(operand));
    builder.setRange(fusion.range());
    if (operands.size() == fusion.numOperands())
      return builder.clone(fusion, operands, copies);
    HloComputation *body = result->addComputation(freshComputationName(*result, callee->name()));
    body->setRange(callee->range());
    HloBuilder inner(*body);
    InstructionMap mapped;
    int64_t number = 0;
    for (HloInstruction *parameter : callee->parameters()) {
      HloInstruction *operand = fusion.operand(parameter->parameterNumber());
      inner.setRange(parameter->range());
      mapped[parameter] = inEntry.contains(operand) ? inner.parameter(number++, parameter->shape(), parameter->name())
                                                    : inner.clone(*operand, {});
    }
    body->setRoot(cloneLive(*callee, inner, mapped, copies));
    return addFusion(builder, body, operands, fusion.name());
  }

  const HloModule &source;
  std::unique_ptr<HloModule> result;
  ComputationMap copies;
  std::unique_ptr<HloUsers> users;
  llvm::SmallVector<std::pair<HloInstruction *, HloInstruction *>> pending;
};

} // namespace

std::unique_ptr<HloModule> formFusions(const HloModule &module, DiagnosticEngine &diagnostics) {
  return FusionFormer(module).run();
}

} // namespace hloc
