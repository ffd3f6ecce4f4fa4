// Random valid modules: the interpreter gives a result of the declared shape, or says that it does not do an op.
#include "fuzz/ModuleGenerator.h"

#include "hloc/interp/Interpreter.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("generated modules are interpreted") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    GeneratorOptions options;
    options.singleDeviceOnly = seed % 4 != 0;
    auto module = generateModule(seed, options);
    std::vector<Literal> arguments;
    for (const HloInstruction *parameter : module->entry()->parameters())
      arguments.push_back(Literal(parameter->shape()));
    DiagnosticEngine diagnostics;
    llvm::FailureOr<Literal> result = interpret(*module, arguments, diagnostics);
    std::string messages;
    llvm::raw_string_ostream os(messages);
    diagnostics.print(os, /*colour=*/false);
    INFO("seed " << seed << "\n" << messages);
    if (llvm::succeeded(result)) {
      CHECK(result->shape().compatible(module->entry()->root()->shape()));
      continue;
    }
    CHECK(diagnostics.exitCode() == ExitCode::Unsupported);
    CHECK_FALSE(options.singleDeviceOnly);
  }
}
