#pragma once
// From a rule case to the rules that its module breaks.

#include "VerifierRuleCases.h"

#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace hloc {

inline std::string ruleModule(const RuleCase &one) {
  return std::string("HloModule m") + one.header +
         "\n"
         "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
         "isum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }\n"
         "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }\n"
         "narrows { a = bf16[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(b, b) }\n" +
         one.before + "\nENTRY e { " + one.body + " }\n";
}

struct VerifierResult {
  bool parsed = false, verified = false, located = true;
  std::vector<std::string> labels;
  std::string messages;
};

inline VerifierResult parseAndVerify(const std::string &text) {
  VerifierResult result;
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("case.hlo", text), diagnostics);
  result.parsed = module != nullptr;
  if (module)
    result.verified = verify(*module, diagnostics);
  for (const Diagnostic &diagnostic : diagnostics.diagnostics()) {
    result.located = result.located && diagnostic.range.isValid();
    if (!diagnostic.notes.empty())
      result.labels.push_back(llvm::StringRef(diagnostic.notes[0].message).split('`').second.split('`').first.str());
  }
  llvm::raw_string_ostream os(result.messages);
  diagnostics.print(os, /*colour=*/false);
  return result;
}

} // namespace hloc
