#include "fuzz/ProgramGenerator.h"

#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Key = AttributeKey;

constexpr unsigned maxDepth = 2; ///< of loops and conditionals in each other

/// What people write between calls and control flow; none that needs a library or several devices.
constexpr Opcode plainOps[] = {
    Opcode::Add,
    Opcode::Multiply,
    Opcode::Subtract,
    Opcode::Maximum,
    Opcode::Negate,
    Opcode::Abs,
    Opcode::Tanh,
    Opcode::Exponential,
    Opcode::Sqrt,
    Opcode::Divide,
    Opcode::Select,
    Opcode::Compare,
    Opcode::Convert,
    Opcode::Clamp,
    Opcode::Copy,
    Opcode::Broadcast,
    Opcode::Broadcast,
    Opcode::Reshape,
    Opcode::Reshape,
    Opcode::Transpose,
    Opcode::Transpose,
    Opcode::Slice,
    Opcode::Slice,
    Opcode::Concatenate,
    Opcode::Pad,
    Opcode::Reverse,
    Opcode::Iota,
    Opcode::DynamicSlice,
    Opcode::DynamicUpdateSlice,
    Opcode::DynamicUpdateSlice,
    Opcode::Reduce,
    Opcode::Reduce,
    Opcode::Reduce,
    Opcode::Dot,
    Opcode::Gather,
    Opcode::Scatter,
    Opcode::Sort,
    Opcode::ReduceWindow,
    Opcode::Bitcast,
    Opcode::OptimizationBarrier,
};

/// One computation of the program, and those it calls.
class Region {
public:
  Region(HloModule &module, uint64_t seed, const GeneratorOptions &options, unsigned depth,
         std::vector<HloComputation *> &shared)
      : g(module, seed, options, depth ? "region" + std::to_string(module.computations().size()) : "main"),
        depth(depth), shared(shared) {}

  GeneratorState g;

  void fill(unsigned instructions) {
    for (unsigned i = 0; i < instructions; ++i)
      for (int attempt = 0; attempt < 8; ++attempt)
        if (addOne())
          break;
    if (g.entry->instructions().empty())
      g.anyArrayInstruction();
  }

  /// A value of this shape, perhaps a parameter; layouts may be others.
  HloInstruction *valueLike(const Shape &shape) { return g.withShape(shape); }

private:
  bool addOne() {
    switch (g.below(depth < maxDepth ? 16 : 13)) {
    case 13:
      return addLoop();
    case 14:
      return addConditional();
    case 15:
    case 12:
      return addCall();
    case 11:
      return addTuple();
    default:
      return generateInstruction(g, plainOps[g.below(std::size(plainOps))]);
    }
  }

  /// A computation of its own with parameters of these shapes, and whatever else it likes to have.
  Region inner(llvm::ArrayRef<Shape> parameters) {
    HloComputation *outer = g.entry;
    Region made(g.module, uint64_t(g.below(int64_t(1) << 40)), g.options, depth + 1, shared);
    for (const Shape &shape : parameters)
      made.g.parameter(shape);
    made.fill(unsigned(g.between(1, 5)));
    g.module.setEntry(outer);
    return made;
  }

  /// Values for what a computation takes, the first of which are given.
  llvm::SmallVector<HloInstruction *> argumentsFor(const HloComputation &callee, Operands given) {
    llvm::SmallVector<HloInstruction *> arguments(given);
    for (unsigned i = unsigned(given.size()); i < callee.numParameters(); ++i)
      arguments.push_back(inLayoutOf(callee.parameter(i)->shape(), g.withShape(callee.parameter(i)->shape())));
    return arguments;
  }

  HloInstruction *inLayoutOf(const Shape &shape, HloInstruction *value) {
    return value->shape() == shape ? value : HloBuilder(*g.entry).add(Opcode::Copy, shape, {value});
  }

  /// A computation that takes one tuple: (parameters) -> callee(parameters).
  HloComputation *takingTuple(HloComputation &callee, llvm::StringRef name) {
    llvm::SmallVector<Shape> shapes;
    for (const HloInstruction *parameter : callee.parameters())
      shapes.push_back(parameter->shape());
    HloComputation *made = g.module.addComputation(name.str() + std::to_string(g.module.computations().size()));
    HloBuilder builder(*made);
    HloInstruction *tuple = builder.parameter(0, Shape::tuple(shapes), "state");
    llvm::SmallVector<HloInstruction *> elements;
    for (int64_t i = 0; i < int64_t(shapes.size()); ++i)
      elements.push_back(builder.tupleElement(tuple, i));
    made->setRoot(builder.add(Opcode::Call, callee.root()->shape(), elements, {g.callee(Key::ToApply, &callee)}));
    return made;
  }

  bool addCall() {
    if (shared.empty() || g.oneIn(3)) {
      HloInstruction *x = g.anyArrayInstruction();
      Region made = inner(x->shape());
      made.g.entry->setRoot(made.g.oneIn(3) ? made.valueLike(x->shape()) : made.g.anyArrayInstruction());
      shared.push_back(made.g.entry);
    }
    HloComputation *callee = shared[g.below(int64_t(shared.size()))];
    return g.add(Opcode::Call, callee->root()->shape(), argumentsFor(*callee, {}), {g.callee(Key::ToApply, callee)}) !=
           nullptr;
  }

  bool addTuple() {
    llvm::SmallVector<HloInstruction *> elements;
    for (int64_t i = g.between(1, 4); i > 0; --i)
      elements.push_back(g.anyArrayInstruction());
    HloInstruction *tuple = g.add(Opcode::Tuple, {}, elements, {});
    return tuple &&
           g.add(Opcode::GetTupleElement, {}, {tuple}, {g.integer(Key::Index, g.below(int64_t(elements.size())))});
  }

  HloInstruction *number(HloBuilder &builder, int64_t value) {
    Literal literal(Shape::scalar(ElementType::S32));
    literal.setInt(0, value);
    return builder.constant(std::move(literal));
  }

  /// (counter, limit, x...): while counter < min(limit, 3). Some leaves are handed on, some change places, and there
  /// are those that only the body reads.
  bool addLoop() {
    const Shape counter = Shape::scalar(ElementType::S32);
    llvm::SmallVector<Shape> shapes{counter, counter};
    llvm::SmallVector<HloInstruction *> given{nullptr, nullptr};
    for (int64_t i = g.between(1, 3); i > 0; --i) {
      given.push_back(g.anyArrayInstruction());
      shapes.push_back(given.back()->shape());
    }
    Region body = inner(shapes);
    HloComputation &region = *body.g.entry;
    HloBuilder inBody(region);
    llvm::SmallVector<HloInstruction *> next{
        inBody.add(Opcode::Add, counter, {region.parameters()[0], number(inBody, 1)}), region.parameters()[1]};
    for (unsigned i = 2; i < region.numParameters(); ++i) {
      HloInstruction *parameter = region.parameters()[i], *value = nullptr;
      llvm::SmallVector<HloInstruction *> candidates;
      for (HloInstruction *instr : region.instructions())
        if (instr->shape() == parameter->shape())
          candidates.push_back(instr);
      value = g.oneIn(5) ? parameter : candidates[g.below(int64_t(candidates.size()))];
      next.push_back(value);
    }
    region.setRoot(inBody.tuple(next));
    HloComputation *taking = takingTuple(region, "body");
    HloComputation *condition = g.module.addComputation("condition" + std::to_string(g.module.computations().size()));
    HloBuilder test(*condition);
    HloInstruction *state = test.parameter(0, taking->parameters()[0]->shape(), "state");
    HloInstruction *limit = test.add(Opcode::Minimum, counter, {test.tupleElement(state, 1), number(test, 3)});
    condition->setRoot(test.compare(ComparisonDirection::Lt, test.tupleElement(state, 0), limit));
    HloBuilder builder(*g.entry);
    given[0] = number(builder, 0);
    given[1] = g.oneIn(2) ? number(builder, g.below(4)) : g.withShape(counter);
    HloInstruction *first = g.add(Opcode::Tuple, {}, argumentsFor(region, given), {});
    HloInstruction *loop =
        first ? g.add(Opcode::While, {}, {first}, {g.callee(Key::Condition, condition), g.callee(Key::Body, taking)})
              : nullptr;
    return loop && read(loop);
  }

  bool addConditional() {
    HloInstruction *x = g.anyArrayInstruction();
    const Shape result = x->shape();
    const bool isIndexed = g.oneIn(2);
    llvm::SmallVector<HloInstruction *> operands{
        g.withShape(Shape::scalar(isIndexed ? ElementType::S32 : ElementType::Pred))};
    llvm::SmallVector<HloComputation *> branches;
    for (int64_t i = isIndexed ? g.between(1, 3) : 2; i > 0; --i) {
      Region branch = inner(result);
      llvm::SmallVector<HloInstruction *> candidates;
      for (HloInstruction *instr : branch.g.entry->instructions())
        if (instr->shape() == result)
          candidates.push_back(instr);
      branch.g.entry->setRoot(candidates[g.below(int64_t(candidates.size()))]);
      branches.push_back(takingTuple(*branch.g.entry, "branch"));
      operands.push_back(g.add(Opcode::Tuple, {}, argumentsFor(*branch.g.entry, {x}), {}));
    }
    if (!isIndexed)
      return g.add(Opcode::Conditional, result, operands,
                   {g.callee(Key::TrueComputation, branches[0]), g.callee(Key::FalseComputation, branches[1])});
    llvm::ArrayRef<HloComputation *> saved = g.module.arena().saveList(llvm::ArrayRef<HloComputation *>(branches));
    return g.add(Opcode::Conditional, result, operands, {{Key::BranchComputations, saved}});
  }

  /// Some elements of a tuple, for others to read.
  bool read(HloInstruction *tuple) {
    for (int64_t i = 0; i < int64_t(tuple->shape().elements().size()); ++i)
      if (!g.oneIn(3))
        g.add(Opcode::GetTupleElement, {}, {tuple}, {g.integer(Key::Index, i)});
    return true;
  }

  const unsigned depth;
  std::vector<HloComputation *> &shared; ///< that anybody may call
};

} // namespace

std::unique_ptr<HloModule> generateProgram(uint64_t seed) {
  HloModule module("program_" + std::to_string(seed));
  std::vector<HloComputation *> shared;
  GeneratorOptions options;
  options.maxElements = seed % 3 ? 64 : 600;
  options.randomLayouts = seed % 4 == 0;
  options.forKernels = true;
  Region entry(module, seed, options, 0, shared);
  entry.fill(unsigned(entry.g.between(4, 20)));
  HloUsers users(*entry.g.entry);
  llvm::SmallVector<HloInstruction *> results;
  for (HloInstruction *instr : entry.g.entry->instructions())
    if (instr->shape().isArray() && instr->opcode() != Opcode::Parameter &&
        (users.of(instr).empty() || entry.g.oneIn(8)))
      results.push_back(instr);
  if (results.empty())
    results.push_back(entry.g.anyArrayInstruction());
  entry.g.entry->setRoot(results.size() == 1 ? results.front() : entry.g.add(Opcode::Tuple, {}, results, {}));
  module.setEntry(entry.g.entry);
  generateDonations(entry.g);
  return withEntryLast(module);
}

} // namespace hloc
