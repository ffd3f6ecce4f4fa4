// HLO lets the types of floats differ between operands, initial values and results of a reduction, and the parameters
// and the result of its reducer -> all of them in the reducer's types, and conversions. Kernels have no other form;
// each value is rounded once either way.
//
//   r = bf16[] reduce(x, init), to_apply=add_f32   ->   s = f32[] reduce(x, init), to_apply=add_f32
//                                                       r = bf16[] convert(s)

#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"

namespace hloc {

namespace {

HloInstruction *reduceThenRound(HloInstruction &instr, HloRewriter &r) {
  const HloInstruction &reduced = *instr.computation(AttributeKey::ToApply)->root();
  if (reduced.numResults() != instr.numResults())
    return nullptr;
  bool differs = false;
  llvm::SmallVector<Shape> shapes;
  for (unsigned i = 0; i < instr.numResults(); ++i) {
    const ElementType type = reduced.resultShape(i).elementType();
    differs |= type != instr.resultShape(i).elementType();
    shapes.push_back(instr.resultShape(i).withElementType(type));
  }
  if (!differs)
    return nullptr;
  HloBuilder &b = r.builder();
  const bool isTuple = instr.shape().isTuple();
  const Shape shape = isTuple ? Shape::tuple(shapes) : shapes.front();
  HloInstruction *made =
      b.clone(instr, instr.operands(), llvm::DenseMap<const HloComputation *, HloComputation *>(), &shape);
  if (!isTuple)
    return b.convert(made, instr.shape().elementType());
  llvm::SmallVector<HloInstruction *> results;
  for (unsigned i = 0; i < shapes.size(); ++i)
    results.push_back(b.convert(b.tupleElement(made, i), instr.resultShape(i).elementType()));
  return b.tuple(results);
}

/// Operands in the types of these parameters; the instruction as it is if they are in them.
HloInstruction *withOperandsAs(HloInstruction &instr, HloRewriter &r, llvm::ArrayRef<HloInstruction *> parameters) {
  HloBuilder &b = r.builder();
  llvm::SmallVector<HloInstruction *> operands;
  for (auto [operand, parameter] : llvm::zip_equal(instr.operands(), parameters))
    operands.push_back(parameter ? b.convert(operand, parameter->shape().elementType()) : operand);
  if (llvm::equal(operands, instr.operands()))
    return nullptr;
  return b.clone(instr, operands);
}

/// Elements are the second of what is combined, initial values the first.
HloInstruction *convertReduced(HloInstruction &instr, HloRewriter &r) {
  llvm::ArrayRef<HloInstruction *> parameters = instr.computation(AttributeKey::ToApply)->parameters();
  const size_t n = parameters.size() / 2;
  llvm::SmallVector<HloInstruction *> wanted(parameters.drop_front(n));
  llvm::append_range(wanted, parameters.take_front(n));
  return withOperandsAs(instr, r, wanted);
}

HloInstruction *convertScattered(HloInstruction &instr, HloRewriter &r) {
  llvm::ArrayRef<HloInstruction *> selected = instr.computation(AttributeKey::Select)->parameters(),
                                   combined = instr.computation(AttributeKey::Scatter)->parameters();
  return withOperandsAs(instr, r, {selected[0], combined[1], combined[0]});
}

/// Results in their own types are made of accumulators in others.
HloInstruction *scatterThenRound(HloInstruction &instr, HloRewriter &r) {
  const ElementType type = instr.computation(AttributeKey::Scatter)->root()->shape().elementType();
  if (type == instr.shape().elementType())
    return nullptr;
  const Shape shape = instr.shape().withElementType(type);
  HloBuilder &b = r.builder();
  return b.convert(b.clone(instr, instr.operands(), llvm::DenseMap<const HloComputation *, HloComputation *>(), &shape),
                   instr.shape().elementType());
}

constexpr RewriteRule rules[] = {
    {"expand-mixed-precision.reduced", Opcode::Reduce, convertReduced},
    {"expand-mixed-precision.windows", Opcode::ReduceWindow, convertReduced},
    {"expand-mixed-precision.select-and-scatter", Opcode::SelectAndScatter, convertScattered},
    {"expand-mixed-precision.scattered", Opcode::SelectAndScatter, scatterThenRound},
    {"expand-mixed-precision.reduce", Opcode::Reduce, reduceThenRound},
    {"expand-mixed-precision.reduce-window", Opcode::ReduceWindow, reduceThenRound},
};

} // namespace

namespace {

/// Shapes of what an instruction only hands on, each with that as which it is handed on: they hold the same bytes.
llvm::SmallVector<std::pair<const Shape *, const Shape *>> handedOn(const HloInstruction &instr) {
  llvm::SmallVector<std::pair<const Shape *, const Shape *>> pairs;
  auto add = [&](const Shape &from, const Shape &to) { pairs.emplace_back(&from, &to); };
  auto addCall = [&](llvm::ArrayRef<HloInstruction *> operands, const HloComputation &called, const Shape &result) {
    for (auto [operand, parameter] : llvm::zip(operands, called.parameters()))
      add(operand->shape(), parameter->shape());
    add(called.root()->shape(), result);
  };
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::Tuple) {
    for (auto [operand, element] : llvm::zip(instr.operands(), instr.shape().elements()))
      add(operand->shape(), element);
  } else if (opcode == Opcode::GetTupleElement) {
    add(instr.operand(0)->shape().element(instr.intOr(AttributeKey::Index, 0)), instr.shape());
  } else if (opcode == Opcode::OptimizationBarrier || opcode == Opcode::Domain) {
    add(instr.operand(0)->shape(), instr.shape());
  } else if (opcode == Opcode::While) {
    addCall(instr.operands(), *instr.computation(AttributeKey::Body), instr.shape());
    add(instr.shape(), instr.computation(AttributeKey::Condition)->parameters().front()->shape());
    add(instr.operand(0)->shape(), instr.shape());
  } else if (opcode == Opcode::Call || opcode == Opcode::Fusion) {
    if (!instr.calledComputations().empty())
      addCall(instr.operands(), *instr.calledComputations().front(), instr.shape());
  } else if (opcode == Opcode::Conditional) {
    for (auto [operand, branch] : llvm::zip(instr.operands().drop_front(), instr.calledComputations()))
      addCall(operand, *branch, instr.shape());
  }
  return pairs;
}

} // namespace

bool handsOnInOneType(const HloModule &module, DiagnosticEngine &diagnostics) {
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      for (auto [from, to] : handedOn(*instr))
        if (!from->compatible(*to)) {
          diagnostics.report(DiagnosticKind::UnsupportedFeature, instr->range(),
                             fmt::format("`{}` hands on {} as {}: mixed precision of what is not computed anew is not "
                                         "supported; a convert says where it is rounded",
                                         instr->name(), from->toString(false), to->toString(false)));
          return false;
        }
  return true;
}

PassResult expandMixedPrecision(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, rules, context);
}

} // namespace hloc
