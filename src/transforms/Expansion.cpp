#include "Expansion.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

using Value = Expansion::Value;

Value Expansion::plain(Value x) {
  const Shape &shape = x->shape();
  return shape.hasDefaultLayout() ? x : b.add(Opcode::Copy, shape.withDefaultLayout(), {x});
}

Value Expansion::result(Value x, const Shape &shape) {
  if (x->shape().elementType() != shape.elementType())
    x = b.convert(x, shape.elementType());
  return x->shape() == shape ? x : b.add(Opcode::Copy, shape, {x});
}

Value Expansion::conjugate(Value x) {
  if (!isComplex(x->shape().elementType()))
    return x;
  return binary(Opcode::Complex, unary(Opcode::Real, x), unary(Opcode::Negate, unary(Opcode::Imag, x)));
}

Value Expansion::scalar(ElementType type, double value) {
  if (!isComplex(type))
    return b.scalar(type, value);
  Literal literal(Shape::scalar(type));
  literal.setComplex(0, value);
  return b.constant(std::move(literal));
}

Value Expansion::pattern(ElementType type, uint64_t value) {
  Literal literal(Shape::scalar(type));
  literal.setInt(0, int64_t(value));
  return b.constant(std::move(literal));
}

Value Expansion::spread(Value scalar, llvm::ArrayRef<int64_t> dims) {
  return dims.empty() ? scalar : b.broadcast(scalar, Shape::array(scalar->shape().elementType(), dims), {});
}

Value Expansion::filled(ElementType type, llvm::ArrayRef<int64_t> dims, double value) {
  return spread(scalar(type, value), dims);
}

Value Expansion::zeros(const Shape &shape) {
  return b.broadcast(b.constant(Literal(Shape::scalar(shape.elementType()))), shape, {});
}

Value Expansion::iota(ElementType type, llvm::ArrayRef<int64_t> dims, int64_t dimension) {
  return b.add(Opcode::Iota, Shape::array(type, dims), {}, {{AttributeKey::IotaDimension, dimension}});
}

Value Expansion::reshape(Value x, llvm::ArrayRef<int64_t> dims) {
  return x->shape().dims() == dims ? x : b.reshape(x, dims);
}

Value Expansion::range(Value x, unsigned dimension, int64_t start, int64_t limit) {
  llvm::SmallVector<SliceDim> ranges;
  for (int64_t size : x->shape().dims())
    ranges.push_back({0, size, 1});
  if (ranges[dimension] == SliceDim{start, limit, 1})
    return x;
  ranges[dimension] = {start, limit, 1};
  return b.slice(x, ranges);
}

Value Expansion::at(Value x, unsigned dimension, Value index) {
  llvm::SmallVector<int64_t> sizes(x->shape().dims());
  sizes[dimension] = 1;
  Values operands = {x};
  for (unsigned i = 0; i < sizes.size(); ++i)
    operands.push_back(i == dimension ? index : scalar(index->shape().elementType(), 0));
  return b.add(Opcode::DynamicSlice, x->shape().withDims(sizes), operands,
               {b.ints(AttributeKey::DynamicSliceSizes, sizes)});
}

Value Expansion::withAt(Value x, Value part, unsigned dimension, Value index) {
  Values operands = {x, part};
  for (unsigned i = 0; i < x->shape().rank(); ++i)
    operands.push_back(i == dimension ? index : scalar(index->shape().elementType(), 0));
  return b.add(Opcode::DynamicUpdateSlice, x->shape(), operands);
}

Value Expansion::dot(Value x, Value y, llvm::ArrayRef<int64_t> batchX, llvm::ArrayRef<int64_t> batchY,
                     int64_t contractX, int64_t contractY) {
  return b.infer(Opcode::Dot, {x, y},
                 {b.ints(AttributeKey::LhsBatchDims, batchX), b.ints(AttributeKey::RhsBatchDims, batchY),
                  b.ints(AttributeKey::LhsContractingDims, contractX),
                  b.ints(AttributeKey::RhsContractingDims, contractY)});
}

Expansion::Values Expansion::repeat(int64_t rounds, llvm::ArrayRef<Value> state, llvm::StringRef name, Round round) {
  return loop(rounds, /*asksState=*/false, state, name, round);
}

Expansion::Values Expansion::repeatWhile(int64_t limit, llvm::ArrayRef<Value> state, llvm::StringRef name,
                                         Round round) {
  return loop(limit, /*asksState=*/true, state, name, round);
}

Expansion::Values Expansion::loop(int64_t rounds, bool asksState, llvm::ArrayRef<Value> state, llvm::StringRef name,
                                  Round round) {
  HloModule &module = where.module();
  llvm::SmallVector<Shape> shapes = {Shape::scalar(ElementType::S32)};
  for (Value value : state)
    shapes.push_back(value->shape());
  Shape tuple = Shape::tuple(shapes);

  HloComputation *condition =
      module.addComputationBefore(where, freshComputationName(module, name.str() + ".condition"));
  condition->setRange(place);
  HloBuilder test(*condition);
  Value tested = test.parameter(0, tuple, "state"), counter = test.tupleElement(tested, 0);
  Value goesOn = test.compare(ComparisonDirection::Lt, counter, test.scalar(ElementType::S32, double(rounds)));
  if (asksState)
    goesOn = test.infer(Opcode::And, {goesOn, test.tupleElement(tested, 1)});
  condition->setRoot(goesOn);

  HloComputation *body = module.addComputationBefore(where, freshComputationName(module, name.str() + ".body"));
  body->setRange(place);
  HloBuilder inside(*body);
  Value parameter = inside.parameter(0, tuple, "state");
  Values elements;
  for (unsigned i = 0; i < shapes.size(); ++i)
    elements.push_back(inside.tupleElement(parameter, i));
  Expansion next(inside, *body, place);
  Values results = round(next, elements.front(), llvm::ArrayRef(elements).drop_front());
  results.insert(results.begin(), next.add(elements.front(), inside.scalar(ElementType::S32, 1)));
  body->setRoot(inside.tuple(results));

  Values first = {b.scalar(ElementType::S32, 0)};
  llvm::append_range(first, state);
  Value loop =
      b.add(Opcode::While, tuple, {b.tuple(first)}, {{AttributeKey::Condition, condition}, {AttributeKey::Body, body}});
  Values last;
  for (unsigned i = 1; i < shapes.size(); ++i)
    last.push_back(b.tupleElement(loop, i));
  return last;
}

HloComputation *Expansion::reducer(Opcode opcode, ElementType type) {
  HloModule &module = where.module();
  std::string name = "scalar_" + text(opcode).str() + "." + text(type).str();
  if (HloComputation *known = module.findComputation(name))
    return known;
  HloComputation *made = module.addComputationBefore(*module.computations().front(), name);
  made->setRange(place);
  HloBuilder body(*made);
  Value x = body.parameter(0, Shape::scalar(type), "x"), y = body.parameter(1, Shape::scalar(type), "y");
  made->setRoot(body.add(opcode, Shape::scalar(type), {x, y}));
  return made;
}

Expansion::Values Expansion::apply(const HloComputation &callee, llvm::ArrayRef<Value> arguments) {
  return copied(callee, arguments, nullptr);
}

Expansion::Values Expansion::applyToArrays(const HloComputation &callee, llvm::ArrayRef<Value> arguments,
                                           llvm::ArrayRef<int64_t> dims) {
  return copied(callee, arguments, &dims);
}

Expansion::Values Expansion::copied(const HloComputation &callee, llvm::ArrayRef<Value> arguments,
                                    const llvm::ArrayRef<int64_t> *dims) {
  std::vector<Value> mapped(callee.instructions().size());
  const HloInstruction *root = callee.root();
  bool isTuple = root->opcode() == Opcode::Tuple;
  for (const HloInstruction *instr : callee.instructions()) {
    if (instr->opcode() == Opcode::Parameter) {
      mapped[instr->id()] = arguments[size_t(instr->parameterNumber())];
      continue;
    }
    if (instr == root && isTuple)
      continue;
    Values operands;
    for (const HloInstruction *operand : instr->operands())
      operands.push_back(mapped[operand->id()]);
    b.setRange(instr->range());
    bool lifts = dims && instr->opcode() != Opcode::Constant;
    Shape shape = lifts ? Shape::array(instr->shape().elementType(), *dims) : instr->shape();
    Value made = b.clone(*instr, operands, llvm::DenseMap<const HloComputation *, HloComputation *>(), &shape);
    mapped[instr->id()] = dims && !lifts ? spread(made, *dims) : made;
  }
  b.setRange(place);
  Values elements;
  for (unsigned i = 0; i < root->numResults(); ++i)
    elements.push_back(isTuple                   ? mapped[root->operand(i)->id()]
                       : root->shape().isTuple() ? b.tupleElement(mapped[root->id()], i)
                                                 : mapped[root->id()]);
  return elements;
}

} // namespace hloc
