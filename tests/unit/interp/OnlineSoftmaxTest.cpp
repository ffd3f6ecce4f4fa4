// What an online softmax leaves open, and what not.
#include "hloc/interp/Bounds.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace hloc;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::string mark = ", frontend_attributes={hloc_softmax=\"online\"}";

struct Program {
  std::unique_ptr<HloModule> module;
  DiagnosticEngine diagnostics;

  explicit Program(const std::string &entry) {
    module = parseHloModule(std::make_shared<SourceFile>("test.hlo", "HloModule m\nENTRY e {\n" + entry + "\n}\n"),
                            diagnostics);
    REQUIRE(module);
  }
  AdmissibleArray run(const std::vector<Literal> &arguments) {
    llvm::FailureOr<BoundedResult> result = interpretBounds(*module, arguments, Backend::Hloc, diagnostics);
    REQUIRE(llvm::succeeded(result));
    return std::move(result->leaves[0]);
  }
};

Literal array(ElementType type, const std::vector<double> &values) {
  Literal made(Shape::array(type, {int64_t(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    made.setDouble(int64_t(i), values[i]);
  return made;
}

bool admits(const AdmissibleArray &bounds, double x) {
  Literal actual(Shape::array(bounds.value.shape().elementType(), {1}));
  actual.setDouble(0, x);
  return bounds.admits(0, actual, 0);
}

/// The sum of weights times terms, of f32.
AdmissibleArray sum(const std::string &type, const std::vector<double> &weights, const std::vector<double> &terms,
                    bool isMarked = true) {
  const std::string size = "[" + std::to_string(weights.size()) + "]", attributes = isMarked ? mark : "";
  return Program("x = f32" + size + " parameter(0) v = " + type + size + " parameter(1)\nw = " + type + size +
                 " convert(x)" + attributes +
                 "\nROOT d = f32[] dot(w, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}" + attributes)
      .run({array(ElementType::F32, weights), array(type == "f16" ? ElementType::F16 : ElementType::BF16, terms)});
}

} // namespace

TEST_CASE("weights of an online softmax are rounded at any scale") {
  // 0.3 in bf16 is 0.30078125; at a scale of e it is 0.3016, at 2.4 it is 0.2995.
  for (double scale : {1.0, 2.4, std::exp(1.0), 700.0}) {
    const double mantissa = std::exp2(std::floor(std::log2(0.3 * scale)) - 7);
    const double weight = std::nearbyint(0.3 * scale / mantissa) * mantissa / scale;
    INFO(scale << ": " << weight);
    CHECK(admits(sum("bf16", {0.3}, {1}), weight));
  }
  CHECK_FALSE(admits(sum("bf16", {0.3}, {1}, /*isMarked=*/false), 0.3));
  CHECK_FALSE(admits(sum("bf16", {0.3}, {1}), 0.3 * (1 + 0x1p-7)));
  CHECK_FALSE(admits(sum("bf16", {0.3}, {1}), 0.3 * (1 - 0x1p-7)));
  CHECK_FALSE(admits(sum("f16", {0.3}, {1}), 0.3 * (1 + 0x1p-10)));
}

TEST_CASE("small weights are numbers at a larger scale") {
  // Half of the least number of f16.
  CHECK(admits(sum("f16", {0x1p-25, 1}, {1024, 0}), 0x1p-15));
  CHECK(admits(sum("f16", {0x1p-25, 1}, {1024, 0}), 0));
  CHECK_FALSE(admits(sum("f16", {0x1p-25, 1}, {1024, 0}), 0x1p-13));
  CHECK_FALSE(admits(sum("f16", {0x1p-25, 1}, {1024, 0}, /*isMarked=*/false), 0x1p-15));
}

TEST_CASE("terms without weight may be left out") {
  for (double hidden : {infinity, -infinity, double(NAN)}) {
    CHECK(admits(sum("bf16", {0, 1}, {hidden, 3}), 3));
    CHECK(admits(sum("bf16", {0, 1}, {hidden, 3}), NAN));
    CHECK_FALSE(admits(sum("bf16", {0, 1}, {hidden, 3}, /*isMarked=*/false), 3));
    // Not those that have one.
    CHECK_FALSE(admits(sum("bf16", {0.5, 1}, {hidden, 3}), 3));
    CHECK_FALSE(admits(sum("bf16", {0.5, 1}, {hidden, 3}), 4.5));
  }
  CHECK_FALSE(admits(sum("bf16", {0, 1}, {100, 3}), 4));
}

TEST_CASE("what overflows at another scale is open") {
  const double most = 3e38;
  CHECK(admits(sum("bf16", {0x1p-10, 0x1p-10}, {most, most}), infinity));
  CHECK_FALSE(admits(sum("bf16", {0x1p-10, 0x1p-10}, {most, most}, /*isMarked=*/false), infinity));
  CHECK_FALSE(admits(sum("bf16", {0x1p-10, 0x1p-10}, {1e30, 1e30}), infinity));
}
