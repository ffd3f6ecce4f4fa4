// Values become others that are there or cost nothing: operands, parameters, zeros.

#include "Moves.h"

#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc::reduction {

namespace {

bool costsNothing(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Parameter || instr.opcode() == Opcode::Constant;
}

/// Zeros or ones, as these moves make them: they would be replaced for ever.
bool isFill(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Broadcast && instr.operand(0)->opcode() == Opcode::Constant;
}

HloInstruction *operandInItsPlace(const HloInstruction &instr, bool isLast) {
  HloInstruction *found = nullptr;
  if (instr.opcode() == Opcode::Tuple || instr.opcode() == Opcode::While)
    return nullptr;
  for (HloInstruction *operand : instr.operands())
    if (operand->shape().compatible(instr.shape()) && (!found || isLast))
      found = operand;
  return found;
}

using IsPlace = llvm::function_ref<bool(const HloInstruction &)>;

size_t countInstructions(const HloModule &module, IsPlace isPlace) {
  size_t count = 0;
  for (const HloComputation *computation : reachableComputations(module))
    count += llvm::count_if(computation->instructions(), [&](const HloInstruction *instr) { return isPlace(*instr); });
  return count;
}

/// `replacement` gives what stands for an instruction in front of it, or null.
ModulePointer replaceAt(ModulePointer module, const llvm::BitVector &places, IsPlace isPlace,
                        llvm::function_ref<HloInstruction *(HloInstruction &, HloEditor &)> replacement) {
  size_t place = 0;
  bool isOther = false;
  for (HloComputation *computation : reachableComputations(*module)) {
    HloEditor editor(*computation);
    // Which are places is asked of the module as it was: changes are made afterwards.
    llvm::SmallVector<HloInstruction *> chosen;
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (isPlace(*instr) && places[unsigned(place++)] && !editor.isOrdered(instr))
        chosen.push_back(instr);
    for (HloInstruction *instr : chosen)
      if (HloInstruction *value = replacement(*instr, editor)) {
        editor.replaceAllUses(instr, value);
        isOther = true;
      }
    editor.finish();
  }
  return isOther ? std::move(module) : nullptr;
}

bool canBypass(const HloInstruction &instr) { return operandInItsPlace(instr, /*isLast=*/false) != nullptr; }

ModulePointer bypass(ModulePointer module, const llvm::BitVector &places, bool isLast) {
  return replaceAt(std::move(module), places, canBypass,
                   [&](HloInstruction &instr, HloEditor &) { return operandInItsPlace(instr, isLast); });
}

bool isComputed(const HloInstruction &instr) {
  return !instr.parent()->isEntry() && instr.shape().isArray() && !costsNothing(instr) && !isFill(instr) &&
         instr.opcode() != Opcode::GetTupleElement;
}

HloInstruction *fill(HloBuilder builder, const Shape &shape, double value) {
  HloInstruction *scalar = nullptr;
  const ElementType type = shape.elementType();
  Literal literal{Shape::scalar(type)};
  if (isComplex(type))
    literal.setComplex(0, value);
  else if (isFloat(type))
    literal.setDouble(0, value);
  else
    literal.setInt(0, int64_t(value));
  scalar = builder.constant(std::move(literal));
  return shape.rank() ? builder.broadcast(scalar, shape, {}) : scalar;
}

ModulePointer fillAt(ModulePointer module, const llvm::BitVector &places, double value) {
  return replaceAt(std::move(module), places, isComputed, [&](HloInstruction &instr, HloEditor &editor) {
    return fill(HloBuilder(editor, &instr), instr.shape(), value);
  });
}

} // namespace

size_t countBypasses(const HloModule &module) { return countInstructions(module, canBypass); }
ModulePointer bypassByFirst(ModulePointer module, const llvm::BitVector &places) {
  return bypass(std::move(module), places, /*isLast=*/false);
}
ModulePointer bypassByLast(ModulePointer module, const llvm::BitVector &places) {
  return bypass(std::move(module), places, /*isLast=*/true);
}

size_t countComputed(const HloModule &module) { return countInstructions(module, isComputed); }
ModulePointer replaceByZeros(ModulePointer module, const llvm::BitVector &places) {
  return fillAt(std::move(module), places, 0);
}
ModulePointer replaceByOnes(ModulePointer module, const llvm::BitVector &places) {
  return fillAt(std::move(module), places, 1);
}

//===--- parameters ---------------------------------------------------------------------------------------------===//

namespace {

/// The fusion or call of the entry that is the only one to call a computation; null if there is none such.
llvm::DenseMap<const HloComputation *, HloInstruction *> soleCallers(const HloModule &module) {
  llvm::DenseMap<const HloComputation *, HloInstruction *> callers;
  llvm::DenseMap<const HloComputation *, unsigned> counts;
  for (const HloComputation *computation : reachableComputations(module))
    for (HloInstruction *instr : computation->instructions())
      for (const HloComputation *callee : instr->calledComputations()) {
        const bool passesOperands = instr->opcode() == Opcode::Fusion || instr->opcode() == Opcode::Call;
        callers[callee] = passesOperands && computation == module.entry() ? instr : nullptr;
        if (++counts[callee] > 1)
          callers[callee] = nullptr;
      }
  return callers;
}

bool isInner(const HloInstruction &instr) {
  return instr.shape().isArray() && !costsNothing(instr) && &instr != instr.parent()->root();
}

/// Gives the callee a parameter in place of each of the values, and the entry one that is handed on.
void feed(HloInstruction &call, llvm::ArrayRef<HloInstruction *> values) {
  HloComputation &callee = *values.front()->parent();
  HloComputation &entry = *call.parent();
  HloEditor inner(callee), outer(entry);
  llvm::SmallVector<HloInstruction *> operands(call.operands());
  for (HloInstruction *value : values) {
    auto *parameter = HloBuilder(inner, inner.first()).parameter(int64_t(callee.numParameters()), value->shape(), "");
    inner.replaceAllUses(value, parameter);
    operands.push_back(HloBuilder(outer, outer.first()).parameter(int64_t(entry.numParameters()), value->shape(), ""));
  }
  inner.finish();
  HloBuilder builder(outer, &call);
  outer.replaceAllUses(&call, builder.clone(call, operands));
  outer.erase(&call);
  outer.finish();
}

} // namespace

size_t countInner(const HloModule &module) {
  size_t count = 0;
  const auto callers = soleCallers(module);
  for (const HloComputation *computation : reachableComputations(module))
    if (callers.lookup(computation))
      count += llvm::count_if(computation->instructions(), [](const auto *instr) { return isInner(*instr); });
  return count;
}

ModulePointer feedInner(ModulePointer module, const llvm::BitVector &places) {
  size_t place = 0;
  bool isOther = false;
  const auto callers = soleCallers(*module);
  for (HloComputation *computation : reachableComputations(*module)) {
    HloInstruction *call = callers.lookup(computation);
    if (!call)
      continue;
    llvm::SmallVector<HloInstruction *> chosen;
    for (HloInstruction *instr : computation->instructions())
      if (isInner(*instr) && places[unsigned(place++)])
        chosen.push_back(instr);
    if (chosen.empty())
      continue;
    feed(*call, chosen);
    isOther = true;
  }
  if (isOther)
    dropSignature(*module);
  return isOther ? std::move(module) : nullptr;
}

namespace {

HloInstruction *earlierParameter(const HloInstruction &parameter) {
  for (HloInstruction *other : parameter.parent()->parameters())
    if (other == &parameter)
      return nullptr;
    else if (other->shape() == parameter.shape())
      return other;
  return nullptr;
}

} // namespace

size_t countEqualParameters(const HloModule &module) {
  return llvm::count_if(module.entry()->parameters(),
                        [](const HloInstruction *parameter) { return earlierParameter(*parameter); });
}

ModulePointer mergeParameters(ModulePointer module, const llvm::BitVector &places) {
  HloEditor editor(*module->entry());
  size_t place = 0;
  std::vector<std::pair<HloInstruction *, HloInstruction *>> merged;
  for (HloInstruction *parameter : module->entry()->parameters())
    if (HloInstruction *earlier = earlierParameter(*parameter); earlier && places[unsigned(place++)])
      merged.emplace_back(parameter, earlier);
  for (auto [parameter, earlier] : merged)
    editor.replaceAllUses(parameter, earlier);
  editor.sortTopologically();
  editor.finish();
  return module;
}

//===--- literals -----------------------------------------------------------------------------------------------===//

namespace {

bool isPlain(const Literal &literal) {
  if (!literal.isSplat())
    return false;
  if (!literal.numElements())
    return true;
  const ElementType type = literal.shape().elementType();
  const std::complex<double> first = isComplex(type) ? literal.getComplex(0)
                                     : isFloat(type) ? literal.getDouble(0)
                                                     : double(literal.getInt(0));
  return first == std::complex<double>(0) || first == std::complex<double>(1);
}

bool isOdd(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Constant && instr.shape().isArray() && !isPlain(instr.literal());
}

ModulePointer setLiterals(ModulePointer module, const llvm::BitVector &places, double value) {
  return replaceAt(std::move(module), places, isOdd, [&](HloInstruction &instr, HloEditor &editor) {
    Literal literal(instr.shape());
    const ElementType type = instr.shape().elementType();
    for (int64_t i = 0; i < literal.numElements(); ++i)
      if (isComplex(type))
        literal.setComplex(i, value);
      else if (isFloat(type))
        literal.setDouble(i, value);
      else
        literal.setInt(i, int64_t(value));
    return HloBuilder(editor, &instr).constant(std::move(literal));
  });
}

} // namespace

size_t countOddLiterals(const HloModule &module) { return countInstructions(module, isOdd); }
ModulePointer zeroLiterals(ModulePointer module, const llvm::BitVector &places) {
  return setLiterals(std::move(module), places, 0);
}
ModulePointer unitLiterals(ModulePointer module, const llvm::BitVector &places) {
  return setLiterals(std::move(module), places, 1);
}

} // namespace hloc::reduction
