#pragma once
// Running HLO passes on a text, and looking at what they made.
#include "hloc/hlo/Verifier.h"
#include "hloc/transforms/Transforms.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

namespace hloc::test {

/// A module made of a text by cloneModule, and the context passes run in.
struct PassRun {
  Parsed parsed;
  DiagnosticEngine diagnostics;
  HloPassContext context{diagnostics};
  std::unique_ptr<HloModule> module;

  explicit PassRun(std::string text) : parsed(std::move(text)) {
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    module = cloneModule(*parsed.module);
  }
  PassResult run(PassResult (*pass)(HloModule &, HloPassContext &)) {
    PassResult result = pass(*module, context);
    if (result != PassResult::Failed)
      requireSound();
    return result;
  }
  /// Operands before users, ids dense, callees before callers; what the verifier says beside.
  void requireSound() {
    for (const auto &computation : module->computations())
      for (auto [i, instr] : llvm::enumerate(computation->instructions())) {
        REQUIRE(instr->id() == i);
        REQUIRE(instr->parent() == computation.get());
        for (const HloInstruction *operand : instr->operands())
          REQUIRE(operand->id() < i);
      }
    DiagnosticEngine found;
    bool ok = verify(*module, found);
    INFO(print(*module) << (ok ? "" : found.diagnostics().front().message));
    REQUIRE(ok);
  }
  /// The instructions of a computation, a line each: `name = opcode(operands)`, `ROOT` in front of the root's.
  std::string body(llvm::StringRef name = "") const {
    const HloComputation *computation = name.empty() ? module->entry() : module->findComputation(name);
    REQUIRE(computation);
    std::string lines;
    for (const HloInstruction *instr : computation->instructions()) {
      lines += (instr == computation->root() ? "ROOT " : "") + instr->name().str() + " = " +
               hloc::text(instr->opcode()).str() + "(";
      for (unsigned i = 0; i < instr->numOperands(); ++i)
        lines += (i ? " " : "") + instr->operand(i)->name().str();
      lines += ")\n";
    }
    return lines;
  }
};

} // namespace hloc::test
