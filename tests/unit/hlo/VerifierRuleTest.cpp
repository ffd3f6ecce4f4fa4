// Every rule of the verifier has a module that breaks it, and is told apart from the others.
#include "VerifierRuleCases.h"
#include "VerifierText.h"

#include "hloc/hlo/ShapeInference.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <sstream>

using namespace hloc;

namespace {

std::vector<RuleCase> allCases() {
  std::vector<RuleCase> cases;
  for (llvm::ArrayRef<RuleCase> family :
       {elementwiseRuleCases(), movementRuleCases(), indexedRuleCases(), reductionRuleCases(), contractionRuleCases(),
        structureRuleCases(), collectiveRuleCases()})
    llvm::append_range(cases, family);
  return cases;
}

/// Rules whose violations the parser reports already, so that only an API user meets them; broken below by hand.
const std::set<VerifierRule> brokenByHand = {
    VerifierRule::instruction_c1,      VerifierRule::instruction_c2,   VerifierRule::instruction_c5,
    VerifierRule::instruction_c6,      VerifierRule::shape_c4,         VerifierRule::constant_c1,
    VerifierRule::compare_c1,          VerifierRule::reshape_c2,       VerifierRule::scatter_c1,
    VerifierRule::reduce_c1,           VerifierRule::reduce_window_c1, VerifierRule::conditional_c1,
    VerifierRule::conditional_c2,      VerifierRule::custom_call_c1,   VerifierRule::module_c1,
    VerifierRule::module_c2,           VerifierRule::shape_c2,         VerifierRule::get_tuple_element_c1,
    VerifierRule::get_tuple_element_c2};

std::string readSemantics() {
  std::ifstream file(std::string(HLOC_SOURCE_DIR) + "/src/hlo/SEMANTICS.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("every verifier rule is broken by a test and described in SEMANTICS.md") {
  std::set<VerifierRule> broken = brokenByHand;
  for (const RuleCase &one : allCases())
    broken.insert(one.rule);
  std::string semantics = readSemantics();
  for (unsigned i = 0; i < numVerifierRules(); ++i) {
    auto rule = static_cast<VerifierRule>(i);
    INFO(text(rule).str());
    CHECK(broken.count(rule));
    CHECK(semantics.find("| `" + text(rule).str() + "` | " + sentence(rule).str()) != std::string::npos);
  }
}

TEST_CASE("a module that breaks a rule is reported with its label and a location") {
  for (const RuleCase &one : allCases()) {
    INFO(one.body);
    std::string module = ruleModule(one);
    VerifierResult result = parseAndVerify(module);
    INFO(result.messages);
    CHECK(result.parsed);
    CHECK_FALSE(result.verified);
    CHECK(result.labels == std::vector<std::string>{text(one.rule).str()});
    CHECK((one.header[0] != '\0' || result.located));
  }
}
