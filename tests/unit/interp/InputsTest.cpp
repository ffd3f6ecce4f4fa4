#include "hloc/interp/Inputs.h"

#include "hloc/parser/Parser.h"

#include "OneOp.h"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

using namespace hloc;

namespace {

std::vector<Literal> argumentsOf(const char *text, uint64_t seed = 0, ArgumentSet set = {}) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  auto arguments = makeArguments(*module, diagnostics, seed, set);
  REQUIRE(llvm::succeeded(arguments));
  return *arguments;
}

int64_t countNonFinite(const Literal &literal) {
  std::vector<double> values = doubles(literal);
  return std::count_if(values.begin(), values.end(), [](double x) { return !std::isfinite(x); });
}

double largestOf(const Literal &literal) {
  double largest = 0;
  for (double x : doubles(literal))
    largest = std::max(largest, std::fabs(x));
  return largest;
}

} // namespace

TEST_CASE("the same seed gives the same arguments, another gives others") {
  const char *text = "HloModule m\nENTRY e { ROOT p = f32[100] parameter(0) }\n";
  CHECK(argumentsOf(text, 1) == argumentsOf(text, 1));
  CHECK_FALSE(argumentsOf(text, 1) == argumentsOf(text, 2));
}

TEST_CASE("only the special regime has values that are no numbers, and it has them in sums, too") {
  const char *elementwise = "HloModule m\nENTRY e { p = f32[1000] parameter(0) ROOT n = f32[1000] negate(p) }\n";
  const char *product = "HloModule m\nENTRY e { p = f32[40,100] parameter(0) q = f32[100] parameter(1) "
                        "ROOT d = f32[40] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n";
  for (Regime regime : {Regime::Ordinary, Regime::Exact, Regime::Index}) {
    CHECK(countNonFinite(argumentsOf(elementwise, 0, {regime})[0]) == 0);
    CHECK(countNonFinite(argumentsOf(product, 0, {regime})[0]) == 0);
  }
  CHECK(countNonFinite(argumentsOf(elementwise, 0, {Regime::Special})[0]) > 20);
  CHECK(countNonFinite(argumentsOf(product, 0, {Regime::Special})[0]) > 0);
}

TEST_CASE("special values reach what guards and scaled arguments get wrong at one place") {
  const char *division = "HloModule m\nENTRY e { p = s32[1001] parameter(0) q = s32[1001] parameter(1) "
                         "ROOT d = s32[1001] divide(p, q) }\n";
  const char *exponential = "HloModule m\nENTRY e { p = f32[256] parameter(0) ROOT c = f32[256] cosh(p) }\n";
  std::set<double> ofLowest;
  int64_t nearEnd = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<Literal> integers = argumentsOf(division, seed, {Regime::Special});
    std::vector<double> dividends = doubles(integers[0]), divisors = doubles(integers[1]);
    for (size_t i = 0; i < dividends.size(); ++i)
      if (dividends[i] == -2147483648.0)
        ofLowest.insert(divisors[i]);
    // cosh scales its argument in two steps from ln(2^126) on, and overflows at ln(2^129).
    std::vector<double> values = doubles(argumentsOf(exponential, seed, {Regime::Special})[0]);
    nearEnd += std::count_if(values.begin(), values.end(),
                             [](double x) { return std::fabs(x) > 87.34 && std::fabs(x) < 89.42; });
  }
  for (double divisor : {-2, -1, 0, 1, 2})
    CHECK(ofLowest.count(divisor));
  CHECK(nearEnd > 40);
}

TEST_CASE("special values come close to 1, and to where sinh and cosh overflow") {
  const char *half = "HloModule m\nENTRY e { p = f64[256] parameter(0) ROOT s = f64[256] sinh(p) }\n";
  const char *one = "HloModule m\nENTRY e { p = f32[256] parameter(0) ROOT a = f32[256] acosh(p) }\n";
  int64_t beyondEnd = 0, above = 0, below = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    // Between ln(2^1024) and ln(2^1025) sinh is finite, though e^x is not.
    for (double x : doubles(argumentsOf(half, seed, {Regime::Special})[0]))
      beyondEnd += std::fabs(x) > 709.79 && std::fabs(x) < 710.47;
    for (double x : doubles(argumentsOf(one, seed, {Regime::Special})[0])) {
      above += std::fabs(x) > 1 && std::fabs(x) < 1.001;
      below += std::fabs(x) > 0.999 && std::fabs(x) < 1;
    }
  }
  CHECK(beyondEnd > 9);
  CHECK(above > 9);
  CHECK(below > 9);
}

TEST_CASE("special values leave some rows of a reduction ordinary and fill others") {
  const char *text = R"(HloModule m
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  p = f32[64,50] parameter(0)
  low = f32[] constant(-inf)
  ROOT r = f32[64] reduce(p, low), dimensions={1}, to_apply=max
}
)";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<double> values = doubles(argumentsOf(text, seed, {Regime::Special})[0]);
    int ordinary = 0, oneNan = 0, allLowest = 0, allLow = 0;
    for (size_t row = 0; row < 64; ++row) {
      auto begin = values.begin() + long(50 * row), end = begin + 50;
      auto count = [&](auto test) { return std::count_if(begin, end, test); };
      ordinary += count([](double x) { return std::fabs(x) <= 2; }) == 50;
      oneNan += count([](double x) { return std::isnan(x); }) == 1;
      allLowest += count([](double x) { return x == -HUGE_VAL; }) == 50;
      allLow += count([](double x) { return std::isfinite(x) && x < -10; }) == 50;
    }
    CHECK((ordinary > 0 && oneNan > 0 && allLowest > 0 && allLow > 0));
  }
}

TEST_CASE("an array that is reduced as a whole gets special values in turns") {
  const char *text = R"(HloModule m
max { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] maximum(a, b) }
ENTRY e {
  p = s32[50] parameter(0)
  low = s32[] constant(-2147483648)
  ROOT r = s32[] reduce(p, low), dimensions={0}, to_apply=max
}
)";
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  int allLow = 0, ordinary = 0;
  for (const ArgumentSet &set : argumentSets(*module)) {
    std::vector<double> values = doubles((*makeArguments(*module, diagnostics, 0, set))[0]);
    allLow += *std::max_element(values.begin(), values.end()) < -101;
    ordinary += *std::max_element(values.begin(), values.end()) <= 100 && values.size() == 50;
  }
  CHECK(allLow >= 2);
  CHECK(ordinary > allLow);
}

/// Of all sums of products of [8,terms] by [terms,8], with their terms' magnitudes.
static std::vector<double> sumsOfMagnitudes(const std::vector<double> &p, const std::vector<double> &q, size_t terms) {
  std::vector<double> sums(64);
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 8; ++j)
      for (size_t k = 0; k < terms; ++k)
        sums[8 * i + j] += std::fabs(p[terms * i + k] * q[8 * k + j]);
  return sums;
}

TEST_CASE("sums of the exact regime are exact in their type") {
  const char *text = R"(HloModule m
ENTRY e {
  p = bf16[8,1000] parameter(0)
  q = bf16[1000,8] parameter(1)
  ROOT d = bf16[8,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  auto arguments = argumentsOf(text, 0, {Regime::Exact});
  std::vector<double> p = doubles(arguments[0]), q = doubles(arguments[1]);
  for (double magnitudes : sumsOfMagnitudes(p, q, 1000))
    CHECK(magnitudes <= 256);
  CHECK(std::count(p.begin(), p.end(), 0.0) < 7000); // of 8000
}

TEST_CASE("sums of products of bytes fit what tensor cores keep, in the exact regime") {
  const char *text = R"(HloModule m
ENTRY e {
  p = f8e4m3fn[8,4096] parameter(0)
  q = f8e4m3fn[4096,8] parameter(1)
  ROOT d = f32[8,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  auto arguments = argumentsOf(text, 0, {Regime::Exact});
  std::vector<double> p = doubles(arguments[0]), q = doubles(arguments[1]);
  for (double magnitudes : sumsOfMagnitudes(p, q, 4096))
    CHECK(magnitudes < 1 << 14);
}

TEST_CASE("long products stay in range, in both regimes of numbers") {
  const char *text = R"(HloModule m
mul { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] multiply(a, b) }
ENTRY e {
  p = f32[100000] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[] reduce(p, one), dimensions={0}, to_apply=mul
}
)";
  for (Regime regime : {Regime::Ordinary, Regime::Exact}) {
    double forwards = 0, negative = 0, largest = 0;
    for (double x : doubles(argumentsOf(text, 0, {regime})[0])) {
      forwards += std::log2(std::fabs(x));
      largest = std::max(largest, std::fabs(forwards));
      negative += x < 0;
    }
    CHECK(largest < 100);
    CHECK((negative > 40000 && negative < 60000));
  }
}

TEST_CASE("indices of the index regime lie on both sides; promises are kept") {
  auto textWith = [](const char *promise) {
    return std::string(R"(HloModule m
ENTRY e {
  t = f32[7,3] parameter(0)
  i = s64[200,1] parameter(1)
  ROOT g = f32[200,3] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3})") +
           promise + "\n}\n";
  };
  auto count = [](const std::vector<double> &indices, auto test) {
    return std::count_if(indices.begin(), indices.end(), test);
  };
  std::vector<double> indices = doubles(argumentsOf(textWith("").c_str(), 0, {Regime::Index})[1]);
  CHECK(count(indices, [](double x) { return x < 0; }) > 10);
  CHECK(count(indices, [](double x) { return x > 6; }) > 10);
  CHECK(count(indices, [](double x) { return x >= 0 && x <= 6; }) > 50);
  indices = doubles(argumentsOf(textWith(", indices_are_sorted=true").c_str(), 0, {Regime::Index})[1]);
  CHECK(std::is_sorted(indices.begin(), indices.end()));
  CHECK(indices.front() < 0);
}

TEST_CASE("indices of a scatter stay inside if that is promised") {
  const char *text = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  t = f32[64] parameter(0)
  i = s32[20,1] parameter(1)
  u = f32[20] parameter(2)
  ROOT s = f32[64] scatter(t, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}
)";
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  for (bool scatterInside : {false, true}) {
    bool anyOutside = false;
    for (const ArgumentSet &set : argumentSets(*module, {}, scatterInside))
      for (double index : doubles((*makeArguments(*module, diagnostics, 0, set))[1]))
        anyOutside |= index < 0 || index >= 64;
    CHECK(anyOutside == !scatterInside);
  }
}

TEST_CASE("regimes that do not apply are left out; large arrays have one") {
  auto regimesOf = [](const char *text, llvm::ArrayRef<Regime> wanted) {
    DiagnosticEngine diagnostics;
    auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
    REQUIRE(module);
    std::set<Regime> regimes;
    for (const ArgumentSet &set : argumentSets(*module, wanted))
      regimes.insert(set.regime);
    return regimes;
  };
  using Set = std::set<Regime>;
  const char *floats = "HloModule m\nENTRY e { p = f32[100] parameter(0) ROOT n = f32[100] negate(p) }\n";
  CHECK(regimesOf(floats, {}) == Set{Regime::Ordinary, Regime::Exact, Regime::Special});
  CHECK(regimesOf(floats, {Regime::Exact, Regime::Index}) == Set{Regime::Exact});
  CHECK(regimesOf(floats, {Regime::Index}) == Set{Regime::Ordinary});
  const char *predicates = "HloModule m\nENTRY e { p = pred[100] parameter(0) ROOT n = pred[100] not(p) }\n";
  CHECK(regimesOf(predicates, {}) == Set{Regime::Ordinary});
  const char *large = "HloModule m\nENTRY e { p = f32[600000] parameter(0) ROOT n = f32[600000] negate(p) }\n";
  CHECK(regimesOf(large, {}) == Set{Regime::Ordinary});
  CHECK(regimesOf(large, {Regime::Special}) == Set{Regime::Special});
}

TEST_CASE("indices lie inside, also behind corrections and calls") {
  auto arguments = argumentsOf(R"(HloModule m
fused {
  t = f32[7,3] parameter(0)
  i = s32[50,1] parameter(1)
  ROOT g = f32[50,3] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
}
ENTRY e {
  t = f32[7,3] parameter(0)
  i = s32[50] parameter(1)
  zero = s32[] constant(0)
  zeros = s32[50] broadcast(zero), dimensions={}
  below = pred[50] compare(i, zeros), direction=LT
  n = s32[] constant(7)
  ns = s32[50] broadcast(n), dimensions={}
  wrapped = s32[50] add(i, ns)
  chosen = s32[50] select(below, wrapped, i)
  column = s32[50,1] reshape(chosen)
  ROOT f = f32[50,3] fusion(t, column), kind=kLoop, calls=fused
}
)");
  for (double index : doubles(arguments[1]))
    CHECK((index >= 0 && index < 7));
}

TEST_CASE("unique and sorted indices are so; inits are identities") {
  auto arguments = argumentsOf(R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  t = f32[64] parameter(0)
  i = s32[20,1] parameter(1)
  u = f32[20] parameter(2)
  z = f32[] parameter(3)
  s = f32[64] scatter(t, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, indices_are_sorted=true, to_apply=add
  ROOT r = f32[] reduce(s, z), dimensions={0}, to_apply=max
}
)");
  std::vector<double> indices = doubles(arguments[1]);
  CHECK(std::is_sorted(indices.begin(), indices.end()));
  CHECK(std::set<double>(indices.begin(), indices.end()).size() == 20);
  CHECK(arguments[3].getDouble(0) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("index vectors keep what is promised of them, in every regime") {
  auto text = [](const char *type, const char *operand, const char *indices, const char *updates,
                 const std::string &attributes, bool isClamped = false) {
    const std::string clamp = isClamped ? "zero = {0}[] constant(0) last = {0}[] constant(7) "
                                          "c = {0}[{2}] clamp(zero, i, last) "
                                        : "c = {0}[{2}] copy(i) ";
    return fmt::format(
        fmt::runtime("HloModule m\nset {{ a = f32[] parameter(0) ROOT b = f32[] parameter(1) }}\n"
                     "ENTRY e {{ x = f32[{1}] parameter(0) i = {0}[{2}] parameter(1) u = f32[{3}] parameter(2) " +
                     clamp + "ROOT s = f32[{1}] scatter(x, c, u), {4}, unique_indices=true, to_apply=set }}\n"),
        type, operand, indices, updates, attributes);
  };
  const std::string points = "update_window_dims={}, inserted_window_dims={0,1}, index_vector_dim=1, "
                             "scatter_dims_to_operand_dims=";
  const std::string texts[] = {
      text("s32", "8,9", "20,2", "20", points + "{0,1}", /*isClamped=*/true),
      text("s8", "120,100", "3000,2", "3000", points + "{0,1}"),
      text("u8", "200,250", "3000,2", "3000", points + "{0,1}"),
      text("s32", "8,100", "90,2", "90", points + "{1,0}, indices_are_sorted=true"),
      text("s64", "30,9,16", "2,5,4", "5,4,3,1,2",
           "update_window_dims={2,3,4}, inserted_window_dims={}, scatter_dims_to_operand_dims={2,0}, "
           "index_vector_dim=0")};
  for (const std::string &each : texts) {
    DiagnosticEngine diagnostics;
    auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", each), diagnostics);
    INFO(each << (diagnostics.diagnostics().empty() ? "" : diagnostics.diagnostics().front().message));
    REQUIRE(module);
    for (const ArgumentSet &set : argumentSets(*module))
      for (uint64_t seed = 0; seed < 5; ++seed) {
        InterpreterOptions options;
        options.checksPromises = true;
        auto result = interpret(*module, *makeArguments(*module, diagnostics, seed, set), diagnostics, options);
        INFO(regimeName(set.regime).str()
             << ", seed " << seed << ": "
             << (diagnostics.diagnostics().empty() ? "" : diagnostics.diagnostics().front().message));
        REQUIRE(llvm::succeeded(result));
      }
  }
}

TEST_CASE("one index alone promises nothing") {
  auto promises = [](const std::string &shape, const std::string &result, const std::string &attributes) {
    DiagnosticEngine diagnostics;
    auto module = parseHloModule(
        std::make_shared<SourceFile>("test.hlo", "HloModule m\nENTRY e { x = f32[8,9] parameter(0) i = " + shape +
                                                     " parameter(1) ROOT g = " + result +
                                                     " gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, "
                                                     "start_index_map={0,1}, slice_sizes={1,1}, " +
                                                     attributes + " }\n"),
        diagnostics);
    REQUIRE(module);
    return makesPromises(*module->entry()->root());
  };
  CHECK(promises("s32[5,2]", "f32[5]", "index_vector_dim=1, indices_are_sorted=true"));
  CHECK(promises("s32[2,5]", "f32[5]", "index_vector_dim=0, indices_are_sorted=true"));
  CHECK_FALSE(promises("s32[5,2]", "f32[5]", "index_vector_dim=1"));
  CHECK_FALSE(promises("s32[1,2]", "f32[1]", "index_vector_dim=1, indices_are_sorted=true"));
  CHECK_FALSE(promises("s32[2]", "f32[]", "index_vector_dim=0, indices_are_sorted=true"));
}

TEST_CASE("ties are no larger than a loop may take steps for") {
  const std::string computation = "HloModule m\nENTRY e { p = f32[100] parameter(0) c = f32[] constant(1e-7) "
                                  "b = f32[100] broadcast(c), dimensions={} q = f32[100] multiply(p, b) "
                                  "ROOT r = f32[100] floor(q) }\n";
  const std::string loop = "c { a = f32[] parameter(0) b = f32[] constant(3) ROOT r = pred[] compare(a, b), "
                           "direction=GT }\nl { a = f32[] parameter(0) b = f32[] constant(1) ROOT r = f32[] "
                           "subtract(a, b) }\nw { a = f32[] parameter(0) ROOT r = f32[] while(a), condition=c, body=l "
                           "}\n";
  std::string text = computation;
  CHECK(largestOf(argumentsOf(text.c_str(), 0, {Regime::Ties})[0]) > 1e6);
  text.insert(text.find("ENTRY"), loop);
  CHECK(largestOf(argumentsOf(text.c_str(), 0, {Regime::Ties})[0]) <= 512);
}

TEST_CASE("matrices to be factorised can be") {
  const char *text =
      "HloModule m\nENTRY e { p = f32[2,5,5] parameter(0) ROOT c = f32[2,5,5] cholesky(p), lower=true }\n";
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  auto result = interpret(*module, *makeArguments(*module, diagnostics, 3), diagnostics);
  REQUIRE(llvm::succeeded(result));
  for (double value : doubles(*result))
    CHECK(std::isfinite(value));
}

TEST_CASE("arguments too large to make are refused") {
  const char *text = "HloModule m\nENTRY e { ROOT p = f32[1048576,1048576] parameter(0) }\n";
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  CHECK(llvm::failed(makeArguments(*module, diagnostics)));
  CHECK(diagnostics.exitCode() == ExitCode::Unsupported);
}
