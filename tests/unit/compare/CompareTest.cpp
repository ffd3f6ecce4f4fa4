#include "hloc/compare/Compare.h"
#include "hloc/compare/NumpyLiteral.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/npz/Npz.h"

#include "llvm/ADT/StringExtras.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace hloc;

namespace {

constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

Literal floats(ElementType type, std::vector<double> values) {
  Literal literal(Shape::array(type, {int64_t(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    literal.setDouble(int64_t(i), values[i]);
  return literal;
}
Literal f32(std::vector<double> values) { return floats(ElementType::F32, std::move(values)); }

Literal integers(ElementType type, std::vector<int64_t> values) {
  Literal literal(Shape::array(type, {int64_t(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    literal.setInt(int64_t(i), values[i]);
  return literal;
}

} // namespace

TEST_CASE("exact comparison takes NaN for NaN and -0 for +0, nothing else") {
  CHECK(compareLiterals(f32({1, notANumber, 0, infinity}), f32({1, notANumber, -0.0, infinity}), Tolerance()).equal());
  CHECK_FALSE(compareLiterals(f32({1}), f32({std::nextafter(1.f, 2.f)}), Tolerance()).equal());
  CHECK_FALSE(compareLiterals(f32({notANumber}), f32({1}), Tolerance()).equal());
  CHECK_FALSE(compareLiterals(f32({infinity}), f32({-infinity}), Tolerance()).equal());
  CHECK_FALSE(compareLiterals(f32({1}), f32({1, 1}), Tolerance()).equal());
}

TEST_CASE("each bound admits what it says") {
  Tolerance t;
  t.ulps = 2;
  CHECK(compareLiterals(floats(ElementType::BF16, {1}), floats(ElementType::BF16, {1 + 2.0 / 128}), t).equal());
  CHECK_FALSE(compareLiterals(floats(ElementType::BF16, {1}), floats(ElementType::BF16, {1 + 3.0 / 128}), t).equal());
  t = Tolerance();
  t.relative = 0.1;
  CHECK(compareLiterals(f32({10}), f32({10.9}), t).equal());
  CHECK_FALSE(compareLiterals(f32({10}), f32({11.1}), t).equal());
  t = Tolerance();
  t.ofLargest = 0.01;
  CHECK(compareLiterals(f32({100, 0}), f32({100, 0.9}), t).equal());
  CHECK_FALSE(compareLiterals(f32({100, 0}), f32({100, 1.1}), t).equal());
  t = Tolerance();
  t.integers = 1;
  CHECK(compareLiterals(integers(ElementType::S8, {-128}), integers(ElementType::S8, {-127}), t).equal());
  CHECK_FALSE(compareLiterals(integers(ElementType::S8, {-128}), integers(ElementType::S8, {127}), t).equal());
}

TEST_CASE("parts of a complex number are judged by the larger one") {
  Literal expected(Shape::array(ElementType::C64, {1})), actual = expected;
  expected.setComplex(0, {1000, 0});
  actual.setComplex(0, {1000, 0.5});
  Tolerance t;
  t.relative = 1e-3;
  CHECK(compareLiterals(expected, actual, t).equal());
  t.relative = 1e-4;
  CHECK_FALSE(compareLiterals(expected, actual, t).equal());
}

TEST_CASE("an infinity is no number, however large") {
  Tolerance t;
  t.relative = 1;
  CHECK_FALSE(compareLiterals(f32({infinity}), f32({3e38}), t).equal());
  CHECK_FALSE(compareLiterals(f32({infinity}), f32({-infinity}), t).equal());
}

TEST_CASE("the report says where, what and how far") {
  Literal expected(Shape::array(ElementType::F32, {2, 3})), actual = expected;
  actual.setDouble(4, 2.5);
  actual.setDouble(5, notANumber);
  CompareResult result = compareLiterals(expected, actual, Tolerance());
  CHECK(result.numElements == 6);
  CHECK(result.numMismatches == 2);
  CHECK(result.first.index == llvm::SmallVector<int64_t, 6>{1, 1});
  CHECK(result.first.actual == "2.5");
  CHECK(result.worst.front().actual == "nan");
  CHECK(result.report.find("2 of 6 elements differ") != std::string::npos);
  CHECK(result.report.find("[1,1]  expected 0  got 2.5") != std::string::npos);
  CHECK(result.report.find("NaN or infinity on one side: 1") != std::string::npos);
}

TEST_CASE("units in the last place are told where they say something") {
  auto says = [](const std::string &text, const char *what) {
    INFO(text);
    return text.find(what) != std::string::npos;
  };
  // Beside 1, beside a thousandth of it, and beside zero.
  const Literal expected = f32({1, 0x1p-10, 0, -8}), actual = f32({1 + 0x1p-22, 0x1p-10 + 0x1p-22, 0x1p-22, -8});
  CompareResult result = compareLiterals(expected, actual, Tolerance());
  CHECK(says(result.report, "[0]  expected 1  got 1.00000024  difference 2.38e-07 (2 ULP)\n"));
  CHECK(says(result.report, "difference 2.38e-07 (2.05e+03 ULP, 2.98e-08 of the largest element)\n"));
  CHECK(says(result.report,
             "[2]  expected 0  got 2.38418579e-07  difference 2.38e-07 (2.98e-08 of the largest element)\n"));
  CHECK(says(result.report, "    below 1e1: 1\n    below 1e4: 1\n    1e6 or more: 1\n"));
  Tolerance wide;
  wide.absolute = 1e-6;
  CHECK(says(describeAgreement(compareLiterals(expected, actual, wide)),
             "largest difference 2.38e-07 (2.98e-08 of the largest element) at [2]"));
  CHECK(says(describeAgreement(compareLiterals(f32({0x1p-10, -8}), f32({0x1p-10 + 0x1p-22, -8}), wide)),
             "largest difference 2.05e+03 ULP, 2.98e-08 of the largest element at [0]"));
  // Without a largest element there is the difference alone; a NaN is no number of units away.
  CHECK(says(describeAgreement(compareLiterals(f32({0}), f32({1e-7}), wide)), "largest difference 1e-07 at [0]"));
  CHECK(says(compareLiterals(f32({1}), f32({notANumber}), wide).report, "difference inf\n"));
  CHECK(says(compareLiterals(integers(ElementType::S8, {1}), integers(ElementType::S8, {4}), Tolerance()).report,
             "difference 3\n"));
}

TEST_CASE("the worst ten are kept in order") {
  std::vector<double> zeros(40, 0), ramp;
  for (int i = 0; i < 40; ++i)
    ramp.push_back((i * 7) % 40);
  CompareResult result = compareLiterals(f32(zeros), f32(ramp), Tolerance());
  REQUIRE(result.worst.size() == 10);
  for (int i = 0; i < 10; ++i)
    CHECK(result.worst[size_t(i)].difference == 39 - i);
}

TEST_CASE("tuples are compared leaf by leaf, each with its own tolerance") {
  Tolerance loose;
  loose.absolute = 1;
  Literal a = Literal::tuple({f32({0}), f32({0})}), b = Literal::tuple({f32({0.5}), f32({0.5})});
  CHECK(compareLiterals(a, b, {loose, loose}).equal());
  CompareResult result = compareLiterals(a, b, {loose, Tolerance()});
  CHECK(result.numMismatches == 1);
  CHECK(result.first.leaf == llvm::SmallVector<int64_t, 2>{1});
}

TEST_CASE("tolerances are read from text") {
  CHECK(parseTolerance("1e-4")->relative == 1e-4);
  CHECK(parseTolerance("abs=1e-5,rel=1e-3,ulps=4,largest=1e-6,int=1")->ulps == 4);
  CHECK(parseTolerance("ulps=2,relative=1e-3,absolute=2")->relative == 1e-3);
  CHECK(parseTolerance("exact")->relative == 0);
  for (const char *bad : {"", "x", "rel", "rel=", "rel=-1", "abs=1;rel=1", "int=1.5", "-1"})
    CHECK_FALSE(parseTolerance(bad));
}

TEST_CASE("numpy arrays become literals") {
  std::string error;
  std::vector<uint8_t> bytes{0x80, 0x3F, 0x00, 0x40};
  auto brain = literalFromNumpy("|V2", {2}, bytes, Shape::array(ElementType::BF16, {2}), error);
  REQUIRE(brain);
  CHECK(brain->getDouble(1) == 2);
  CHECK(literalFromNumpy("bfloat16", {2}, bytes, Shape::array(ElementType::BF16, {2}), error));
  CHECK_FALSE(literalFromNumpy("<f2", {2}, bytes, Shape::array(ElementType::BF16, {2}), error));
  CHECK_FALSE(literalFromNumpy("|V2", {2}, bytes, Shape::array(ElementType::F16, {2}), error));
  CHECK_FALSE(literalFromNumpy("|V2", {1, 2}, bytes, Shape::array(ElementType::BF16, {2}), error));
  auto nibble = literalFromNumpy("|i1", {1}, {0x0D}, Shape::array(ElementType::S4, {1}), error);
  REQUIRE(nibble);
  CHECK(nibble->getInt(0) == -3);
  CHECK(literalFromNumpy("|V1", {1}, {0x0D}, Shape::array(ElementType::S4, {1}), error)->getInt(0) == -3);
  CHECK(literalFromNumpy("|b1", {}, {7}, Shape::scalar(ElementType::Pred), error)->bytes()[0] == 1);
  CHECK(numpyDescr(ElementType::C64) == "<c8");
  CHECK(numpyDescr(ElementType::F8E4M3FN) == "float8_e4m3fn");
}

TEST_CASE("every element type is read back from what it is written as") {
  for (ElementType type : {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) ElementType::name,
#include "hloc/hlo/ElementTypes.def"
       }) {
    if (type == ElementType::Token || type == ElementType::Opaque)
      continue;
    INFO(text(type).str());
    Literal value(Shape::array(type, {1}));
    std::string error;
    CHECK(descrBytes(numpyDescr(type)) == hostBytes(type));
    CHECK(literalFromNumpy(numpyDescr(type), {1}, value.bytes(), value.shape(), error));
    // Arrays of ml_dtypes have no name in files that numpy.save writes.
    bool isNamed = llvm::isAlpha(numpyDescr(type)[0]);
    std::string raw = type == ElementType::F8E5M2 ? "<f1" : "<V" + std::to_string(hostBytes(type));
    CHECK(descrBytes(raw) == hostBytes(type));
    CHECK(literalFromNumpy(raw, {1}, value.bytes(), value.shape(), error).has_value() == isNamed);
  }
}
