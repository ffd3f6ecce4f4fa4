// Columns of the opcode table that say something about each other.

#include "hloc/hlo/Opcode.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

template <typename Check> void forEachOpcode(Check check) {
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    INFO(text(Opcode(i)).str());
    check(Opcode(i));
  }
}

bool takes(Opcode opcode, AttributeKey key, bool required = false) {
  for (const AttributeSpec &spec : attributeSpecs(opcode))
    if (spec.key == key)
      return spec.required || !required;
  return false;
}

} // namespace

TEST_CASE("elementwise opcodes are those of the elementwise families, and work in place") {
  forEachOpcode([](Opcode opcode) {
    OpcodeFamily group = family(opcode);
    bool isFunction = group == OpcodeFamily::Unary || group == OpcodeFamily::Binary || group == OpcodeFamily::Ternary ||
                      group == OpcodeFamily::Compare || group == OpcodeFamily::Convert;
    CHECK(isElementwise(opcode) == isFunction);
    CHECK((!isFunction || hasTrait(opcode, OpcodeTrait::InPlace)));
    CHECK((operandTypes(opcode) != TypeSet::None) == (group == OpcodeFamily::Unary || group == OpcodeFamily::Binary));
  });
  CHECK(hasTrait(Opcode::Map, OpcodeTrait::InPlace));
  CHECK(!isElementwise(Opcode::Map));
  CHECK(!hasTrait(Opcode::Reduce, OpcodeTrait::InPlace));
}

TEST_CASE("traits agree with operands, attributes and families") {
  forEachOpcode([](Opcode opcode) {
    auto has = [&](OpcodeTrait trait) { return hasTrait(opcode, trait); };
    if (has(OpcodeTrait::Moves))
      CHECK(family(opcode) == OpcodeFamily::Movement);
    if (has(OpcodeTrait::Rearranges)) {
      CHECK(maxOperands(opcode) == 1);
      CHECK((has(OpcodeTrait::Moves) || has(OpcodeTrait::PassesOn)));
    }
    if (has(OpcodeTrait::AppliesToElements))
      CHECK((takes(opcode, AttributeKey::ToApply, true) || opcode == Opcode::SelectAndScatter));
    if (has(OpcodeTrait::OneDimension))
      CHECK(takes(opcode, AttributeKey::Dimensions));
    if (has(OpcodeTrait::Contracts))
      CHECK(family(opcode) == OpcodeFamily::Structured);
    CHECK((has(OpcodeTrait::SideEffect) || family(opcode) != OpcodeFamily::Collective));
    CHECK((has(OpcodeTrait::PassesOn) || family(opcode) != OpcodeFamily::Identity));
  });
}

TEST_CASE("sets of types") {
  CHECK(describe(operandTypes(Opcode::Abs)) == "signed integer, float, complex");
  CHECK(describe(operandTypes(Opcode::Add)) == "pred, integer, float, complex");
  CHECK(describe(operandTypes(Opcode::Remainder)) == "integer, float");
  CHECK(includes(operandTypes(Opcode::Remainder), typeSet(ElementType::U8)));
  CHECK(!includes(operandTypes(Opcode::Abs), typeSet(ElementType::U8)));
  CHECK(typeSet(ElementType::Token) == TypeSet::None);
}
