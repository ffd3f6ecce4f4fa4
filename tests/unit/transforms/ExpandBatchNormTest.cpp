#include "RunPasses.h"

#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"

#include <cmath>

using namespace hloc;
using namespace hloc::test;

namespace {

const std::string inference =
    "x = f16[4,3]{0,1} parameter(0)\n a = f16[3] parameter(1)\n b = f16[3] parameter(2)\n m = f16[3] parameter(3)\n"
    "v = f16[3] parameter(4)\n ROOT r = f16[4,3]{0,1} batch-norm-inference(x, a, b, m, v), epsilon=0.5, "
    "feature_index=1";
const std::string training =
    "x = f64[3,5,7] parameter(0)\n a = f64[5] parameter(1)\n b = f64[5] parameter(2)\n"
    "ROOT r = (f64[3,5,7], f64[5], f64[5]) batch-norm-training(x, a, b), epsilon=0.25, feature_index=1";
const std::string gradient =
    "x = f64[5,7] parameter(0)\n a = f64[5] parameter(1)\n m = f64[5] parameter(2)\n v = f64[5] parameter(3)\n"
    "g = f64[5,7] parameter(4)\n"
    "ROOT r = (f64[5,7], f64[5], f64[5]) batch-norm-grad(x, a, m, v, g), epsilon=0.25, feature_index=0";

/// Of all results, one after the other.
std::vector<double> valuesOf(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  DiagnosticEngine diagnostics;
  auto result = interpret(module, arguments, diagnostics);
  REQUIRE(succeeded(result));
  std::vector<double> values;
  auto append = [&](const Literal &array) {
    for (int64_t i = 0; i < array.numElements(); ++i)
      values.push_back(array.getDouble(i));
  };
  if (result->shape().isTuple())
    for (const Literal &element : result->elements())
      append(element);
  else
    append(*result);
  return values;
}

} // namespace

TEST_CASE("a batch norm becomes elementwise ops and broadcasts, of narrow floats in f32, in the layout it had") {
  PassRun p(entry(inference));
  CHECK(p.run(expandBatchNorms) == PassResult::Changed);
  const HloInstruction &root = *p.module->entry()->root();
  CHECK(root.opcode() == Opcode::Convert);
  CHECK(root.shape().toString() == "f16[4,3]{0,1}");
  for (const HloInstruction *instr : p.module->entry()->instructions()) {
    CHECK(instr->opcode() != Opcode::BatchNormInference);
    if (isElementwise(instr->opcode()) && instr != &root)
      CHECK(instr->shape().elementType() == ElementType::F32);
  }
  CHECK(p.run(expandBatchNorms) == PassResult::Unchanged);
}

TEST_CASE("several batch norms share one computation that adds") {
  PassRun p(entry("x = f32[4,3] parameter(0)\n a = f32[3] parameter(1)\n"
                  "r = (f32[4,3], f32[3], f32[3]) batch-norm-training(x, a, a), epsilon=0.5, feature_index=1\n"
                  "y = f32[4,3] get-tuple-element(r), index=0\n"
                  "ROOT s = (f32[4,3], f32[3], f32[3]) batch-norm-training(y, a, a), epsilon=0.5, feature_index=1"));
  CHECK(p.run(expandBatchNorms) == PassResult::Changed);
  CHECK(p.module->computations().size() == 2);
  CHECK(p.run(expandBatchNorms) == PassResult::Unchanged);
}

TEST_CASE("batch norms compute what they did") {
  for (const std::string &text : {training, gradient}) {
    PassRun p(entry(text));
    auto arguments = makeArguments(*p.module, p.diagnostics, /*seed=*/1);
    REQUIRE(succeeded(arguments));
    std::vector<double> expected = valuesOf(*p.module, *arguments);
    CHECK(p.run(expandBatchNorms) == PassResult::Changed);
    std::vector<double> found = valuesOf(*p.module, *arguments);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      CHECK(std::abs(found[i] - expected[i]) <= 1e-10 * (1 + std::abs(expected[i])));
  }
}
