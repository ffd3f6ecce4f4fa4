// Columns of the opcode table that say something about each other.

#include "hloc/hlo/OpcodeTable.h"

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

constexpr bool isRoot(Opcode opcode) {
  return opcode == Opcode::Sqrt || opcode == Opcode::Cbrt || opcode == Opcode::Rsqrt;
}

/// Can a table be made that has a row for `rows`, if roots are asked about?
template <Opcode... rows>
concept IsTableOfRoots = requires { typename std::bool_constant<(OpcodeTable<int>(isRoot, {{{rows...}, 1}}), true)>; };

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

TEST_CASE("a table has one row for each opcode that it is about, or does not compile") {
  using enum Opcode;
  CHECK(IsTableOfRoots<Sqrt, Rsqrt, Cbrt>);
  CHECK(!IsTableOfRoots<Sqrt, Cbrt>);
  CHECK(!IsTableOfRoots<Sqrt, Rsqrt, Cbrt, Sqrt>);
  CHECK(!IsTableOfRoots<Sqrt, Rsqrt, Cbrt, Power>);

  static constexpr OpcodeTable<int> degrees(isRoot, {{{Sqrt, Rsqrt}, 2}, {{Cbrt}, 3}});
  CHECK(degrees[Rsqrt] == 2);
  CHECK(degrees[Cbrt] == 3);
  CHECK(degrees.contains(Sqrt));
  CHECK(!degrees.contains(Power));
}

TEST_CASE("what follows from columns") {
  CHECK(isDefinedOn(Opcode::Remainder, TypeSet::Integer));
  CHECK(isDefinedOn(Opcode::Abs, TypeSet::Integer)); // some of them
  CHECK(!isDefinedOn(Opcode::Remainder, TypeSet::Complex));
  CHECK(!isDefinedOn(Opcode::Reduce, TypeSet::Any));
  CHECK(firstIndexOperand(Opcode::Gather) == 1);
  CHECK(firstIndexOperand(Opcode::DynamicUpdateSlice) == 2);
  CHECK(!firstIndexOperand(Opcode::Slice));
  CHECK(!firstIndexOperand(Opcode::Add));
  forEachOpcode([](Opcode opcode) {
    if (hasTrait(opcode, OpcodeTrait::Combines)) {
      CHECK(family(opcode) == OpcodeFamily::Binary);
      CHECK(facts(opcode).result == OpcodeResult::Same);
    }
    if (facts(opcode).result == OpcodeResult::Part || facts(opcode).result == OpcodeResult::OfParts)
      CHECK(isDefinedOn(opcode, TypeSet::Float));
  });
}
