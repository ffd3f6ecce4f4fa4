// One broken text for each kind of diagnostic that reading and verifying HLO gives.
#include "hloc/hlo/Verifier.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

using namespace hloc;

static std::vector<DiagnosticKind> kindsOf(std::string text) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("a.hlo", std::move(text)), diagnostics);
  if (module)
    verify(*module, diagnostics);
  std::vector<DiagnosticKind> kinds;
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    kinds.push_back(diagnostic.kind);
  return kinds;
}

static std::string entry(const std::string &body) { return "HloModule m\nENTRY e {\n" + body + "\n}\n"; }

TEST_CASE("each-kind-of-diagnostic-about-hlo-is-given") {
  struct Case {
    DiagnosticKind kind;
    std::string text;
  };
  std::string p = "p = f32[2] parameter(0)\n";
  const Case cases[] = {
      {DiagnosticKind::InputTooLarge, entry("ROOT c = f32[1000000,1000000] constant(1)")},
      {DiagnosticKind::BadNumber, entry("ROOT c = f32[99999999999999999999999] parameter(0)")},
      {DiagnosticKind::BadEscape, entry(p + "ROOT a = f32[2] custom-call(p), custom_call_target=\"\\xzz\"")},
      {DiagnosticKind::NotHloText, "# proto\nname: \"m\"\n"},
      {DiagnosticKind::UnknownAttribute, entry(p + "ROOT a = f32[2] add(p, p), colour=3")},
      {DiagnosticKind::DuplicateAttribute, entry("ROOT i = f32[2] iota(), iota_dimension=0, iota_dimension=0")},
      {DiagnosticKind::MissingAttribute, entry("ROOT i = f32[2] iota()")},
      {DiagnosticKind::BadAttribute, entry(p + "ROOT c = pred[2] compare(p, p), direction=SIDEWAYS")},
      {DiagnosticKind::BadName, "HloModule m\nENTRY ROOT {\n ROOT p = f32[] parameter(0)\n}\n"},
      {DiagnosticKind::OperandCount, entry(p + "ROOT a = f32[2] add(p)")},
      {DiagnosticKind::BadParameter, entry("ROOT p = f32[2] parameter(3)")},
      {DiagnosticKind::MissingShape, entry("ROOT p = parameter(0)")},
      {DiagnosticKind::TooDeep,
       entry("ROOT p = " + std::string(5000, '(') + "f32[]" + std::string(5000, ')') + " parameter(0)")},
      {DiagnosticKind::EmptyInput, " \n"},
      {DiagnosticKind::InvalidDimensions, entry(p + "ROOT t = f32[2] transpose(p), dimensions={1}")},
      {DiagnosticKind::InvalidCallee,
       "HloModule m\nf {\n x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=f\n}\n"},
      {DiagnosticKind::InvalidFusion,
       "HloModule m\nf {\n x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x)\n}\nENTRY e {\n " + p +
           " q = f32[2] parameter(1)\n ROOT y = f32[2] fusion(p, q), kind=kLoop, calls=f\n}\n"},
  };
  for (const Case &one : cases) {
    INFO(one.text.substr(0, 200));
    std::vector<DiagnosticKind> kinds = kindsOf(one.text);
    std::string got;
    for (DiagnosticKind kind : kinds)
      got += hloc::text(kind).str() + " ";
    INFO("given: " << got);
    CHECK(llvm::is_contained(kinds, one.kind));
  }
}
