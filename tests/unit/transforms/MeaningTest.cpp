// Whatever passes do to a module, it computes the same.
#include "fuzz/ModuleGenerator.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"

#include "RunPasses.h"
#include "SameResults.h"

using namespace hloc;
using namespace hloc::test;

namespace {

std::optional<Literal> resultOf(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  DiagnosticEngine diagnostics;
  auto result = interpret(module, arguments, diagnostics);
  return succeeded(result) ? std::optional(std::move(*result)) : std::nullopt;
}

PassResult cleanUpToFixpoint(HloModule &module, HloPassContext &context) {
  return runToFixpoint(module, simplificationPasses(), context);
}

} // namespace

TEST_CASE("generated modules compute the same after each pass") {
  constexpr HloPass passes[] = {{"expand-async", expandAsync},        {"fold-collectives", foldCollectives},
                                {"inline-calls", inlineCalls},        {"choose-dot-algorithms", chooseDotAlgorithms},
                                {"choose-softmax", chooseSoftmax},    {"separate-control", separateControl},
                                {"clean-up", cleanUpToFixpoint},      {"apply-entry-layout", applyEntryLayout},
                                {"drop-barriers", dropBarriers},      {"count-rounds", countRounds},
                                {"separate-starts", separateStarts},  {"form-fusions", formFusions},
                                {"clean-up again", cleanUpToFixpoint}};
  constexpr HloPass library = {"choose-libraries", chooseLibraries};
  unsigned compared = 0, changes = 0, calls = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    GeneratorOptions options;
    options.singleDeviceOnly = true;
    auto source = generateModule(seed, options);
    std::string text = print(*source);
    DiagnosticEngine diagnostics;
    auto arguments = makeArguments(*source, diagnostics, seed);
    REQUIRE(succeeded(arguments));
    std::optional<Literal> expected = resultOf(*source, *arguments);
    HloPassContext context(diagnostics);
    context.options.f32Dots = F32Dots::Tf32;
    context.options.softmax = SoftmaxChoice::Online;
    context.options.dots = context.options.convolutions = Multiplier::Library;
    auto module = cloneModule(*source);
    std::vector<HloPass> all(std::begin(passes), std::end(passes));
    all.insert(all.begin() + 7, library); // after the first clean-up
    for (const HloPass &pass : all) {
      PassResult result = runPasses(*module, pass, context);
      calls += pass.name == library.name && result == PassResult::Changed;
      INFO("seed " << seed << " after " << pass.name.str() << "\n" << text << "\n" << print(*module));
      REQUIRE(result != PassResult::Failed);
      changes += result == PassResult::Changed;
      DiagnosticEngine found;
      REQUIRE(verify(*module, found));
      if (expected) {
        std::optional<Literal> result = resultOf(*module, *arguments);
        REQUIRE(result);
        REQUIRE(literalDifference(*expected, *result) == "");
        ++compared;
      }
    }
    CHECK(print(*source) == text);
  }
  CHECK(compared > 400);
  CHECK(changes > 150);
  CHECK(calls > 5);
}
