#include "lsp/TextScan.h"

#include "Samples.h"

#include "hloc/hlo/Opcode.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::lsp;

namespace {

std::string wordsWith(const TextScan &scan, Role role) {
  std::string words;
  for (const ScannedToken &token : scan.tokens)
    if (token.role == role)
      words += (words.empty() ? "" : " ") + scan.text.slice(token.begin, token.end).str();
  return words;
}

/// What the scan knows is what the parser knows: each instruction at its place, each operand by its definition.
void checkAgainstParser(const std::string &text) {
  DiagnosticEngine diagnostics;
  auto file = std::make_shared<const SourceFile>("t.hlo", text);
  std::unique_ptr<HloModule> module = parseHloModule(file, diagnostics);
  REQUIRE(module);
  const TextScan scan = scanText(file->text());
  if (!diagnostics.diagnostics().empty() || !scan.computations.front().name.isValid())
    return; // read otherwise than it is written, or without definitions
  for (const NamedInstruction &one : scan.instructions)
    if (!parseOpcode(scan.slice(one.opcode)))
      return; // `add-start` stands for two instructions
  size_t number = 0;
  for (const auto &computation : module->computations())
    for (const HloInstruction *instr : computation->instructions()) {
      INFO(instr->name().str());
      auto found = llvm::find_if(scan.instructions, [&](const NamedInstruction &one) {
        return one.nameToken == instr->range().begin && scan.slice(one.name) == instr->name();
      });
      if (found == scan.instructions.end()) { // made by the parser, of an operand or a conversion
        CHECK((instr->name().contains(".anon") || instr->name().contains(".gte.") || instr->name().contains(".in_") ||
               instr->name().contains("convert")));
        continue;
      }
      ++number;
      // The parser's range goes on to the next token, over comments.
      const llvm::StringRef behind = scan.text.slice(found->range.end, instr->range().end).ltrim();
      CHECK(found->range.end <= instr->range().end);
      CHECK((behind.empty() || behind.starts_with("//") || behind.starts_with("/*")));
      CHECK(scan.slice(found->opcode) == hloc::text(instr->opcode()));
      if (found->shape.isValid() && instr->shape().isArray())
        CHECK(scan.slice(found->shape).starts_with(hloc::text(instr->shape().elementType())));
    }
  CHECK(number == scan.instructions.size());
  for (const NameUse &use : scan.uses) {
    INFO(scan.slice(use.name).str());
    CHECK((use.target != none || scan.tokens[scan.tokenAt(use.name.begin)].role == Role::SignatureName));
  }
}

} // namespace

TEST_CASE("roles of the words of a text") {
  const TextScan scan = scanText(sampleText);
  CHECK(wordsWith(scan, Role::Keyword) == "HloModule FileNames FunctionNames ROOT ROOT ENTRY ROOT ROOT");
  CHECK(wordsWith(scan, Role::ComputationName) == "%sum twice %main");
  CHECK(wordsWith(scan, Role::ComputationUse) == "%sum twice");
  CHECK(wordsWith(scan, Role::SignatureName) == "a b x zero");
  CHECK(wordsWith(scan, Role::InstructionName) == "%a %b %r p= q %x %zero %row %two inner v w %n c e m %out");
  CHECK(wordsWith(scan, Role::OperandName) == "%a %b p p %x %zero %row %two v v inner %row %two %n e %row %row e c");
  CHECK(wordsWith(scan, Role::Opcode) ==
        "parameter parameter add parameter add parameter parameter reduce call map "
        "parameter multiply tuple constant constant get-tuple-element compare multiply "
        "tuple");
  CHECK(wordsWith(scan, Role::AttributeKey) ==
        "is_scheduled= entry_computation_layout= sharding= dimensions= to_apply= metadata= to_apply= dimensions= "
        "to_apply= control-predecessors= backend_config= index= direction= execution_thread=");
}

TEST_CASE("a computation follows the thread of another, wherever its line begins") {
  const TextScan scan = scanText("  a {\n    x = f32[] parameter(0)\n  }, execution_thread=\"t\"\n  ENTRY e {\n    "
                                 "ROOT y = f32[] parameter(0)\n  }\n");
  REQUIRE(scan.computations.size() == 2);
  CHECK(scan.slice(scan.computations[1].name) == "e");
  CHECK(scan.computations[1].isEntry);
}

TEST_CASE("the scan agrees with the parser") {
  checkAgainstParser(sampleText);
  for (const std::string &file : exampleFiles()) {
    INFO(file);
    checkAgainstParser(textOf(file));
  }
}

TEST_CASE("a word that is being typed changes nothing below") {
  const std::string text = sampleText;
  const TextScan whole = scanText(text);
  const size_t place = text.find("  %row = ");
  const std::string lines[] = {"  y",
                               "  y =",
                               "  y = f32[2",
                               "  y = f32[2] add(",
                               "  y = add(%x",
                               "  y = add(%x, ",
                               "  y = call(%x), calls={",
                               "  y = add(%x), metadata={op_name=\"",
                               "  y = add(%x), dimensions={1, ",
                               "  (",
                               "  ROOT",
                               "  %",
                               "  y = (f32[2], ",
                               "  \""};
  for (const std::string &line : lines) {
    INFO(line);
    const std::string changed = text.substr(0, place) + line + "\n" + text.substr(place);
    const TextScan scan = scanText(changed);
    CHECK(scan.computations.size() >= whole.computations.size());
    for (const NamedInstruction &one : whole.instructions) {
      auto found = llvm::find_if(scan.instructions, [&](const NamedInstruction &other) {
        return scan.slice(other.name) == whole.slice(one.name);
      });
      INFO(whole.slice(one.name).str());
      REQUIRE(found != scan.instructions.end());
      CHECK(scan.slice(found->opcode) == whole.slice(one.opcode));
      if (!llvm::StringRef(line).ends_with("calls={")) // which takes what follows into the computation it begins
        CHECK(scan.slice(scan.computations[found->computation].name) ==
              whole.slice(whole.computations[one.computation].name));
    }
  }
}

TEST_CASE("a computation that is not closed ends where another begins") {
  std::string text = sampleText;
  text.erase(text.find("\n}"), 2);
  text.insert(text.find("ROOT %r"), "y = f32[] add(%a, ");
  const TextScan scan = scanText(text);
  CHECK(wordsWith(scan, Role::ComputationName) == "%sum twice %main");
  CHECK(scan.slice(scan.computations[scan.instructions[4].computation].name) == "twice");
}

TEST_CASE("any part of a text is scanned to its end") {
  const std::string text = sampleText;
  for (size_t length = 0; length <= text.size(); ++length) {
    const TextScan scan = scanText(llvm::StringRef(text).take_front(length));
    uint32_t last = 0;
    for (const ScannedToken &token : scan.tokens) {
      REQUIRE(token.begin >= last);
      REQUIRE(token.end <= length);
      last = token.end;
    }
    for (size_t i = 1; i < scan.uses.size(); ++i)
      REQUIRE(scan.uses[i - 1].name.begin < scan.uses[i].name.begin);
  }
}
