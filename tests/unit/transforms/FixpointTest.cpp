// Time and memory of passes on a module as large as the largest real ones. [.speed] measures; the bounds hold
// everywhere.
#include "RunPasses.h"

#include "hloc/hlo/HloBuilder.h"
#include "transforms/Rewriter.h"

#include <iostream>

using namespace hloc;
using namespace hloc::test;

namespace {

constexpr size_t modelSize = 44'000;

/// A chain of blocks as unrolled layers have them: a call's worth of arithmetic twice over (for CSE), a tuple and its
/// elements, a dead end. About 11 instructions a block.
std::unique_ptr<HloModule> makeModel(size_t instructions) {
  auto module = std::make_unique<HloModule>("model");
  HloComputation *entry = module->addComputation("main");
  module->setEntry(entry);
  HloBuilder b(*entry);
  Shape shape = Shape::array(ElementType::F32, {128, 256});
  HloInstruction *x = b.parameter(0, shape, "x");
  HloInstruction *residual = x;
  while (entry->instructions().size() < instructions) {
    HloInstruction *one = b.broadcast(b.scalar(ElementType::F32, 1), shape, {});
    HloInstruction *left = b.infer(Opcode::Tanh, {b.infer(Opcode::Add, {x, one})});
    HloInstruction *right = b.infer(Opcode::Tanh, {b.infer(Opcode::Add, {x, one})});
    HloInstruction *both = b.tuple({left, right});
    b.infer(Opcode::Negate, {left});
    x = b.infer(Opcode::Multiply, {b.tupleElement(both, 0), b.tupleElement(both, 1)});
    residual = b.infer(Opcode::Add, {residual, x});
  }
  entry->setRoot(residual);
  return module;
}

constexpr HloPass simplifiers[] = {{"simplify-tuples", simplifyTuples},
                                   {"common-subexpressions", mergeCommonSubexpressions},
                                   {"dead-code", eraseDeadCode}};

double milliseconds(HloPassContext::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

} // namespace

TEST_CASE("simplifying comes to rest and leaves nothing to do") {
  auto module = makeModel(1000);
  DiagnosticEngine diagnostics;
  HloPassContext context(diagnostics);
  CHECK(runToFixpoint(*module, simplifiers, context) == PassResult::Changed);
  // A constant and its broadcast once, and of each block: add, tanh, multiply, add.
  size_t blocks = context.statistics.of("simplify-tuples.element-of-tuple") / 2;
  CHECK(module->entry()->instructions().size() == 3 + 4 * blocks);
  CHECK(runToFixpoint(*module, simplifiers, context) == PassResult::Unchanged);
}

TEST_CASE("memory does not grow with the number of passes") {
  auto module = makeModel(2000);
  DiagnosticEngine diagnostics;
  HloPassContext context(diagnostics);
  size_t parsed = module->arena().numBytes();
  runToFixpoint(*module, simplifiers, context);
  CHECK(module->arena().numBytes() == parsed); // they only take away
  for (int i = 0; i < 50; ++i)
    for (const HloPass &pass : simplifiers)
      CHECK(pass.run(*module, context) == PassResult::Unchanged);
  CHECK(module->arena().numBytes() == parsed);
  // The passes of the pipeline add, but only once.
  auto fused = cloneModule(*module);
  runPasses(*fused, hloPipeline(), context);
  size_t bytes = module->arena().numBytes();
  for (int i = 0; i < 50; ++i)
    CHECK(runPasses(*fused, hloPipeline(), context) == PassResult::Unchanged);
  CHECK(module->arena().numBytes() == bytes);
}

TEST_CASE("passes report themselves in order and stop at a failure") {
  auto module = makeModel(20);
  DiagnosticEngine diagnostics;
  HloPassContext context(diagnostics);
  std::string seen;
  context.afterPass = [&](const HloPass &pass, PassResult result, auto begin, auto end) {
    CHECK(begin <= end);
    seen += pass.name.str() + std::to_string(static_cast<int>(result)) + " ";
  };
  constexpr HloPass passes[] = {{"a", [](HloModule &, HloPassContext &) { return PassResult::Changed; }},
                                {"b", [](HloModule &, HloPassContext &) { return PassResult::Failed; }},
                                {"c", [](HloModule &, HloPassContext &) { return PassResult::Changed; }}};
  CHECK(runPasses(*module, passes, context) == PassResult::Failed);
  CHECK(seen == "a1 b2 ");
  CHECK(runToFixpoint(*module, passes, context) == PassResult::Failed);
}

// What decision 0005 quotes; and the bound that would show a quadratic step.
TEST_CASE("44,000 instructions to a fixpoint", "[.speed]") {
  using Clock = HloPassContext::Clock;
  auto module = makeModel(modelSize);
  DiagnosticEngine diagnostics;
  HloPassContext context(diagnostics);
  auto begin = Clock::now();
  auto copy = cloneModule(*module);
  auto cloned = Clock::now();
  {
    HloEditor opened(*copy->entry());
  }
  auto opened = Clock::now();
  context.afterPass = [](const HloPass &pass, PassResult, Clock::time_point start, Clock::time_point end) {
    std::cout << "  " << pass.name.str() << " " << milliseconds(end - start) << " ms\n";
  };
  auto start = Clock::now();
  runToFixpoint(*copy, simplifiers, context);
  auto end = Clock::now();
  std::cout << modelSize << " instructions: clone " << milliseconds(cloned - begin) << " ms, open an editor "
            << milliseconds(opened - cloned) << " ms, to the fixpoint " << milliseconds(end - start) << " ms\n";
  CHECK(milliseconds(end - start) < 1000);
}
