// Loops, branches, calls; the order and memory of evaluation.
#include "OneOp.h"

using namespace hloc;
using enum ElementType;

namespace {

/// (i, x) -> (i + 1, x with element i set to i), while i < limit
HloInstruction *countingLoop(OneOp &op, HloBuilder &entry, int64_t size, double limit) {
  Shape counter = Shape::scalar(S32), array = Shape::array(S32, {size}), state = Shape::tuple({counter, array});
  HloComputation *condition = op.module.addComputation("condition"), *body = op.module.addComputation("body");
  HloBuilder c(*condition), b(*body);
  condition->setRoot(c.add(Opcode::Compare, Shape::scalar(Pred),
                           {c.tupleElement(c.parameter(0, state), 0), c.constant(scalar(S32, limit))},
                           {OneOp::choice(AttributeKey::Direction, ComparisonDirection::Lt)}));
  HloInstruction *in = b.parameter(0, state), *i = b.tupleElement(in, 0);
  HloInstruction *update = b.add(Opcode::Reshape, Shape::array(S32, {1}), {i});
  HloInstruction *x = b.add(Opcode::DynamicUpdateSlice, array, {b.tupleElement(in, 1), update, i});
  body->setRoot(b.tuple({b.add(Opcode::Add, counter, {i, b.constant(scalar(S32, 1))}), x}));
  HloInstruction *start = entry.tuple({entry.constant(scalar(S32, 0)), entry.parameter(0, array)});
  return entry.add(Opcode::While, state, {start}, {{AttributeKey::Condition, condition}, {AttributeKey::Body, body}});
}

} // namespace

TEST_CASE("while tests before each step") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  entry->setRoot(countingLoop(op, b, 4, 3));
  Literal argument = numbers(S32, {9, 9, 9, 9});
  auto result = interpret(*entry, {argument}, op.diagnostics);
  REQUIRE(llvm::succeeded(result));
  CHECK(result->element(0).getInt(0) == 3);
  CHECK(doubles(result->element(1)) == std::vector<double>{0, 1, 2, 9});
  CHECK(doubles(argument) == std::vector<double>{9, 9, 9, 9}); // updates in place never reach the caller's literal
}

TEST_CASE("a loop's state is updated in place", "[speed]") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  int64_t size = 1 << 22; // copying 16 MB 3000 times would take many seconds
  entry->setRoot(countingLoop(op, b, size, 3000));
  auto start = std::chrono::steady_clock::now();
  auto result = interpret(*entry, {Literal(Shape::array(S32, {size}))}, op.diagnostics);
  REQUIRE(llvm::succeeded(result));
  CHECK(result->element(1).getInt(2999) == 2999);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 3);
}

TEST_CASE("an endless loop is given up") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  entry->setRoot(countingLoop(op, b, 4, 1e9));
  InterpreterOptions options;
  options.maxLoopSteps = 1000;
  CHECK(llvm::failed(interpret(*entry, {Literal(Shape::array(S32, {4}))}, op.diagnostics, options)));
  CHECK(op.diagnostics.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("conditional: true is the first branch, indices out of range are the last") {
  OneOp op;
  auto branch = [&](Opcode opcode) {
    HloComputation *made = op.module.addComputation(text(opcode));
    HloBuilder b(*made);
    made->setRoot(b.add(opcode, Shape::scalar(F32), {b.parameter(0, Shape::scalar(F32))}));
    return made;
  };
  HloComputation *negate = branch(Opcode::Negate), *sqrt = branch(Opcode::Sqrt), *floor = branch(Opcode::Floor);
  auto byPred = [&](double which) {
    return op
        .run(Opcode::Conditional, Shape::scalar(F32), {scalar(Pred, which), scalar(F32, 6.25), scalar(F32, 6.25)},
             {{AttributeKey::TrueComputation, negate}, {AttributeKey::FalseComputation, sqrt}})
        .getDouble(0);
  };
  CHECK(byPred(1) == -6.25);
  CHECK(byPred(0) == 2.5);
  llvm::ArrayRef<HloComputation *> branches = op.list<HloComputation *>({negate, sqrt, floor});
  auto byIndex = [&](double which) {
    Literal x = scalar(F32, 6.25);
    return op
        .run(Opcode::Conditional, Shape::scalar(F32), {scalar(S32, which), x, x, x},
             {{AttributeKey::BranchComputations, branches}})
        .getDouble(0);
  };
  CHECK(byIndex(0) == -6.25);
  CHECK(byIndex(1) == 2.5);
  CHECK(byIndex(-1) == 6);
  CHECK(byIndex(3) == 6);
}

TEST_CASE("map and scan apply their computation") {
  OneOp op;
  CHECK(doubles(op.run(Opcode::Map, Shape::array(F32, {3}), {numbers(F32, {5, 6, 7}), numbers(F32, {1, 2, 3})},
                       {{AttributeKey::ToApply, op.binary(Opcode::Subtract, F32)}})) == std::vector<double>{4, 4, 4});
  HloComputation *sum = op.module.addComputation("sum");
  HloBuilder b(*sum);
  HloInstruction *x = b.parameter(0, Shape::array(F32, {2})), *carry = b.parameter(1, Shape::array(F32, {2}));
  HloInstruction *added = b.add(Opcode::Add, x->shape(), {x, carry});
  sum->setRoot(b.tuple({added, added}));
  Literal result = op.run(Opcode::Scan, Shape::tuple({Shape::array(F32, {2, 3}), Shape::array(F32, {2})}),
                          {numbers(F32, {2, 3}, {1, 2, 3, 4, 5, 6}), numbers(F32, {10, 20})},
                          {op.ints(AttributeKey::Dimensions, {1}),
                           {AttributeKey::NumCarries, int64_t(1)},
                           {AttributeKey::IsReverse, true},
                           {AttributeKey::ToApply, sum}});
  CHECK(doubles(result.element(0)) == std::vector<double>{16, 15, 13, 35, 31, 26});
  CHECK(doubles(result.element(1)) == std::vector<double>{16, 35});
}

TEST_CASE("a single result of a scan is an array or a tuple of one, whichever its computation returns") {
  OneOp op;
  HloComputation *plain = op.binary(Opcode::Add, F32), *tupled = op.module.addComputation("tupled");
  HloBuilder b(*tupled);
  HloInstruction *x = b.parameter(0, Shape::scalar(F32)), *carry = b.parameter(1, Shape::scalar(F32));
  tupled->setRoot(b.tuple({b.add(Opcode::Add, x->shape(), {x, carry})}));
  for (HloComputation *sum : {plain, tupled})
    for (const Shape &shape : {Shape::scalar(F32), Shape::tuple({Shape::scalar(F32)})}) {
      Literal result = op.run(Opcode::Scan, shape, {numbers(F32, {1, 2, 4}), scalar(F32, 10)},
                              {op.ints(AttributeKey::Dimensions, {0}),
                               {AttributeKey::NumCarries, int64_t(1)},
                               {AttributeKey::ToApply, sum}});
      REQUIRE(result.isTuple() == shape.isTuple());
      CHECK((shape.isTuple() ? result.element(0) : result).getDouble(0) == 17);
    }
}

TEST_CASE("long computations and deep calls do not exhaust the stack") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  HloInstruction *x = b.parameter(0, Shape::scalar(F32));
  for (int i = 0; i < 30000; ++i)
    x = b.add(Opcode::Negate, x->shape(), {x});
  entry->setRoot(x);
  auto result = interpret(*entry, {scalar(F32, 3)}, op.diagnostics);
  REQUIRE(llvm::succeeded(result));
  CHECK(result->getDouble(0) == 3);

  HloComputation *callee = entry;
  for (int i = 0; i < 5000; ++i) {
    HloComputation *caller = op.module.addComputation("level" + std::to_string(i));
    HloBuilder c(*caller);
    caller->setRoot(c.add(Opcode::Call, Shape::scalar(F32), {c.parameter(0, Shape::scalar(F32))},
                          {{AttributeKey::ToApply, callee}}));
    callee = caller;
  }
  CHECK(llvm::failed(interpret(*callee, {scalar(F32, 3)}, op.diagnostics)));
  CHECK(op.diagnostics.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("wrong arguments and values too large are reported") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  HloInstruction *x = b.parameter(0, Shape::scalar(F32));
  entry->setRoot(b.broadcast(x, Shape::array(F32, {1 << 20, 1 << 20}), {}));
  CHECK(llvm::failed(interpret(*entry, {}, op.diagnostics)));
  CHECK(llvm::failed(interpret(*entry, {scalar(F64, 1)}, op.diagnostics)));
  CHECK(op.diagnostics.exitCode() == ExitCode::InvalidInput);
  DiagnosticEngine fresh;
  CHECK(llvm::failed(interpret(*entry, {scalar(F32, 1)}, fresh)));
  CHECK(fresh.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("memory is counted over all values that are alive") {
  auto interpretChain = [](bool keepAll) {
    OneOp op;
    HloComputation *entry = op.module.addComputation("main");
    HloBuilder b(*entry);
    Shape shape = Shape::array(F32, {256});
    std::vector<HloInstruction *> values{b.parameter(0, shape)};
    for (int i = 0; i < 20; ++i)
      values.push_back(b.add(Opcode::Negate, shape, {values.back()}));
    entry->setRoot(keepAll ? b.tuple(values) : values.back());
    InterpreterOptions options;
    options.maxBytes = 8 * 1024;
    return interpret(*entry, {Literal(shape)}, op.diagnostics, options);
  };
  CHECK(llvm::succeeded(interpretChain(false)));
  CHECK(llvm::failed(interpretChain(true)));
}

TEST_CASE("elided constants are zeros that take memory while they are used") {
  OneOp op;
  HloComputation *entry = op.module.addComputation("main");
  HloBuilder b(*entry);
  Literal small = Literal::elided(Shape::array(F32, {3})),
          large = Literal::elided(Shape::array(F32, {1'000'000'000'000}));
  entry->setRoot(b.constant(*op.module.arena().saveObject(small)));
  auto result = interpret(*entry, {}, op.diagnostics);
  REQUIRE(llvm::succeeded(result));
  CHECK(doubles(*result) == std::vector<double>{0, 0, 0});
  entry->setRoot(b.constant(*op.module.arena().saveObject(large)));
  CHECK(llvm::failed(interpret(*entry, {}, op.diagnostics)));
  CHECK(op.diagnostics.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("an elided constant in a reducer is zero") {
  OneOp op;
  HloComputation *reducer = op.module.addComputation("reducer");
  HloBuilder inner(*reducer);
  HloInstruction *a = inner.parameter(0, Shape::scalar(F32)), *x = inner.parameter(1, Shape::scalar(F32));
  HloInstruction *zeros = inner.constant(*op.module.arena().saveObject(Literal::elided(Shape::array(F32, {1}))));
  HloInstruction *sum = inner.add(Opcode::Add, Shape::scalar(F32), {a, x});
  HloInstruction *zero = inner.add(Opcode::Reshape, Shape::scalar(F32), {zeros});
  reducer->setRoot(inner.add(Opcode::Add, Shape::scalar(F32), {sum, zero}));
  CHECK(doubles(op.run(Opcode::Reduce, Shape::scalar(F32), {numbers(F32, {1, 2, 3}), scalar(F32, 0)},
                       {op.ints(AttributeKey::Dimensions, {0}), {AttributeKey::ToApply, reducer}})) ==
        std::vector<double>{6});
}
