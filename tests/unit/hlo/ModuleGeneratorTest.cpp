// The generator of random modules against the verifier: each witnesses for the other.
#include "fuzz/ModuleGenerator.h"

#include "hloc/hlo/Verifier.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <set>

using namespace hloc;

namespace {

std::string verifierMessages(const HloModule &module) {
  DiagnosticEngine diagnostics;
  verify(module, diagnostics);
  std::string text;
  llvm::raw_string_ostream os(text);
  diagnostics.print(os, /*colour=*/false);
  return text;
}

void collect(const HloModule &module, std::set<Opcode> &opcodes, std::set<ElementType> &types) {
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions()) {
      opcodes.insert(instr->opcode());
      if (instr->shape().isArray())
        types.insert(instr->shape().elementType());
    }
}

} // namespace

TEST_CASE("generated modules verify, and cover every opcode and element type") {
  std::set<Opcode> opcodes;
  std::set<ElementType> types;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    GeneratorOptions options;
    options.instructions = 24;
    options.singleDeviceOnly = seed % 2;
    std::unique_ptr<HloModule> module = generateModule(seed, options);
    INFO("seed " << seed);
    CHECK(verifierMessages(*module) == "");
    collect(*module, opcodes, types);
  }
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    auto opcode = static_cast<Opcode>(i);
    INFO(text(opcode).str());
    // async-update is made by no generator: it says nothing beside start and done.
    CHECK((opcodes.count(opcode) == 1 || opcode == Opcode::AsyncUpdate));
  }
  CHECK(types.size() == 32);
}

TEST_CASE("the same seed generates the same module") {
  for (uint64_t seed : {1, 2, 3}) {
    auto first = generateModule(seed), second = generateModule(seed);
    const HloComputation &a = *first->entry(), &b = *second->entry();
    REQUIRE(a.instructions().size() == b.instructions().size());
    for (size_t i = 0; i < a.instructions().size(); ++i)
      CHECK(describe(*a.instructions()[i]) == describe(*b.instructions()[i]));
  }
}
