#include "hloc/compare/Roundings.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

Literal floats(ElementType type, std::vector<double> values) {
  Literal literal(Shape::array(type, {int64_t(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    literal.setDouble(int64_t(i), values[i]);
  return literal;
}

/// A program, its arguments, and what the interpreter makes of them.
struct Program {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;
  std::vector<Literal> arguments;
  Literal expected;

  Program(std::string text, std::vector<Literal> values) : arguments(std::move(values)) {
    module = parseHloModule(std::make_shared<SourceFile>("test.hlo", std::move(text)), diagnostics);
    REQUIRE(module);
    expected = *interpret(*module, arguments, diagnostics);
  }
  /// Elements that differ if the backend gives `actual`.
  int64_t mismatches(const Literal &actual) {
    return compareRun(*module, arguments, expected, actual, toleranceFor(*module), diagnostics)->numMismatches;
  }
};

} // namespace

TEST_CASE("an element may be as wrong as its cancellation makes it, its neighbours may not") {
  Program p(
      "ENTRY e { x = f32[3] parameter(0)  one = f32[3] parameter(1)  t = f32[3] tanh(x)  ROOT r = f32[3] add(t, one) }",
      {floats(ElementType::F32, {-7.9, 0.5, 3}), floats(ElementType::F32, {1, 1, 1})});
  CHECK(p.mismatches(p.expected) == 0);
  Literal cancelled = p.expected; // 2.7e-7, and tanh may be off by five units of 6e-8
  cancelled.setDouble(0, 0);
  CHECK(p.mismatches(cancelled) == 0);
  Literal wrong = p.expected;
  wrong.setDouble(1, p.expected.getDouble(1) * (1 + 1e-5));
  CHECK(p.mismatches(wrong) == 1);
  wrong.setDouble(0, 1e-4);
  CHECK(p.mismatches(wrong) == 2);
}

TEST_CASE("large neighbours do not excuse small elements") {
  Program p("ENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] add(x, x) }", {floats(ElementType::F32, {1e20, 1})});
  Literal wrong = p.expected;
  wrong.setDouble(1, 3);
  CHECK(p.mismatches(wrong) == 1);
}

TEST_CASE("sums of products may cancel, of narrow operands too") {
  for (ElementType type : {ElementType::F32, ElementType::F16}) {
    std::string shape = type == ElementType::F32 ? "f32[4]" : "f16[4]";
    Program p("ENTRY e { x = " + shape + " parameter(0)  y = " + shape +
                  " parameter(1)  ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
              {floats(type, {1, 1000, -1000, 0.25}), floats(type, {0.001, 3, 3, 0.5})});
    Literal near = p.expected, far = p.expected;
    near.setDouble(0, p.expected.getDouble(0) + 3e-4);
    far.setDouble(0, p.expected.getDouble(0) + 0.1);
    CHECK(p.mismatches(near) == 0);
    CHECK(p.mismatches(far) == 1);
  }
}

TEST_CASE("a comparison of nearly equal numbers may go either way, others may not") {
  Program p("ENTRY e { x = f32[2] parameter(0)  y = f32[2] parameter(1)  s = f32[2] add(x, x)  "
            "ROOT c = pred[2] compare(s, y), direction=GT }",
            {floats(ElementType::F32, {0.1, 1}), floats(ElementType::F32, {0.2, 1})});
  Literal other = p.expected;
  other.setInt(0, !other.getInt(0));
  CHECK(p.mismatches(other) == 0);
  other.setInt(1, !other.getInt(1));
  CHECK(p.mismatches(other) == 1);
}
