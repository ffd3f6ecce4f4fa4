// Which results are admissible: one value where nothing rounds, neighbours where a rounding is open, never more.
#include "hloc/interp/Bounds.h"
#include "hloc/hlo/BesideOne.h"
#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

using namespace hloc;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Literal array(ElementType type, const std::vector<double> &values) {
  Literal made(Shape::array(type, {int64_t(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    if (isFloat(type))
      made.setDouble(int64_t(i), values[i]);
    else
      made.setInt(int64_t(i), int64_t(values[i]));
  return made;
}
Literal f32(const std::vector<double> &values) { return array(ElementType::F32, values); }

struct Program {
  std::unique_ptr<HloModule> module;
  DiagnosticEngine diagnostics;

  explicit Program(const std::string &text) {
    module = parseHloModule(std::make_shared<SourceFile>("test.hlo", "HloModule m\n" + text), diagnostics);
    std::string messages;
    llvm::raw_string_ostream os(messages);
    diagnostics.print(os, false);
    INFO(messages);
    REQUIRE(module);
    markTanhBesideOne(*module);
  }
  AdmissibleArray run(const std::vector<Literal> &arguments, Backend backend = Backend::Hloc) {
    llvm::FailureOr<BoundedResult> result = interpretBounds(*module, arguments, backend, diagnostics);
    REQUIRE(llvm::succeeded(result));
    return std::move(result->leaves[0]);
  }
};

/// Is x admissible for element i?
bool admits(const AdmissibleArray &bounds, int64_t i, double x) {
  Literal actual(Shape::array(bounds.value.shape().elementType(), {1}));
  if (isFloat(bounds.value.shape().elementType()))
    actual.setDouble(0, x);
  else
    actual.setInt(0, int64_t(x));
  return bounds.admits(i, actual, 0);
}

double up(double x) { return std::nextafter(float(x), INFINITY); }

const char *const addition = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n";

} // namespace

TEST_CASE("a rounding has one result") {
  Program p("ENTRY e { x = f32[3] parameter(0)\n ROOT r = bf16[3] convert(x) }");
  AdmissibleArray r = p.run({f32({1.00390625, 1.0039065, 3.0078125})}); // a tie, just above it, a tie
  CHECK(r.isExact());
  CHECK(admits(r, 0, 1));
  CHECK_FALSE(admits(r, 0, 1.0078125));
  CHECK(admits(r, 1, 1.0078125));
  CHECK_FALSE(admits(r, 1, 1));
  CHECK(admits(r, 2, 3));
}

TEST_CASE("a sum of two is rounded once") {
  Program p("ENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT r = f32[1] add(x, y) }");
  AdmissibleArray r = p.run({f32({1}), f32({1e-9})});
  CHECK(r.isExact());
  CHECK_FALSE(admits(r, 0, up(1)));
}

TEST_CASE("a product may stay unrounded where it is added to something, and nowhere else") {
  std::string start = "ENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n z = f32[1] parameter(2)\n"
                      " m = f32[1] multiply(x, y)\n ";
  float x = 1 + 0x1p-12f, y = 1 + 0x1p-13f, z = -1;
  volatile float rounded = x * y;
  float fused = std::fma(x, y, z), separate = rounded + z;
  REQUIRE(fused != separate);
  AdmissibleArray r = Program(start + "ROOT r = f32[1] add(m, z) }").run({f32({x}), f32({y}), f32({z})});
  CHECK(admits(r, 0, fused));
  CHECK(admits(r, 0, separate));
  CHECK_FALSE(admits(r, 0, 2 * fused));
  AdmissibleArray moved = Program(start + "n = f32[1] negate(m)\n b = f32[1] reverse(n), dimensions={0}\n"
                                          " ROOT r = f32[1] subtract(b, z) }")
                              .run({f32({x}), f32({y}), f32({z})});
  CHECK(admits(moved, 0, -fused));
  AdmissibleArray chosen =
      Program(start + "n = f32[1] maximum(m, m)\n ROOT r = f32[1] add(n, z) }").run({f32({x}), f32({y}), f32({z})});
  CHECK((admits(chosen, 0, fused) && admits(chosen, 0, separate)));
  AdmissibleArray other =
      Program(start + "n = f32[1] maximum(m, y)\n ROOT r = f32[1] add(n, z) }").run({f32({x}), f32({y}), f32({z})});
  CHECK_FALSE(admits(other, 0, fused));
  AdmissibleArray product = Program(start + "ROOT r = f32[1] multiply(m, z) }").run({f32({x}), f32({y}), f32({z})});
  CHECK(product.isExact());
}

TEST_CASE("a contracted sum beside a tie is rounded as it is, however little is added") {
  Program p("ENTRY e { x = bf16[4] parameter(0)\n y = bf16[4] parameter(1)\n z = bf16[4] parameter(2)\n"
            " m = bf16[4] multiply(x, y)\n ROOT r = bf16[4] add(m, z) }");
  // Products of 136 times 136 times a power of two, which is 144.5 units of bf16, and the product alone is 144. The
  // sum in f64 is the product, the number after it (0.5625 of 1), or exact.
  double x = -136 * 0x1p19;
  std::vector<double> factors(4, x), tiny = {0.5625, 0.0625, -0.5625, 1024};
  AdmissibleArray r =
      p.run({array(ElementType::BF16, factors), array(ElementType::BF16, factors), array(ElementType::BF16, tiny)});
  double unit = 0x1p45, down = 144 * unit, up = 145 * unit;
  for (int64_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(admits(r, i, down));
    CHECK(admits(r, i, up) == (tiny[size_t(i)] > 0));
    CHECK_FALSE(admits(r, i, down - unit));
    CHECK_FALSE(admits(r, i, up + unit));
  }
}

TEST_CASE("in f64 a contracted product has two results, and little else is one") {
  for (const char *op : {"add", "subtract"}) {
    Program p(std::string("ENTRY e { x = f64[1000] parameter(0)\n y = f64[1000] parameter(1)\n z = f64[1000] "
                          "parameter(2)\n m = f64[1000] multiply(x, y)\n ROOT r = f64[1000] ") +
              op + "(z, m) }");
    std::mt19937_64 random(1);
    auto numbers = [&](double scale) {
      std::vector<double> made(1000);
      for (double &value : made)
        value = scale * std::uniform_real_distribution(-1.0, 1.0)(random);
      return made;
    };
    // Products far below what they are added to, and products that nearly cancel it.
    for (double scale : {1.0 / 32, 1.0, 64.0}) {
      std::vector<double> x = numbers(scale), y = numbers(1), z = numbers(1);
      AdmissibleArray r = p.run({array(ElementType::F64, x), array(ElementType::F64, y), array(ElementType::F64, z)});
      int numDifferent = 0, numWide = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        double factor = op[0] == 'a' ? x[i] : -x[i];
        double product = factor * y[i];
        double separate = z[i] + product, fused = std::fma(factor, y[i], z[i]);
        CHECK(admits(r, int64_t(i), separate));
        CHECK(admits(r, int64_t(i), fused));
        numDifferent += separate != fused;
        double unit = std::max(std::nextafter(std::fabs(product), infinity) - std::fabs(product),
                               std::nextafter(std::fabs(separate), infinity) - std::fabs(separate));
        numWide += admits(r, int64_t(i), separate + 3 * unit) || admits(r, int64_t(i), separate - 3 * unit);
      }
      CHECK(numDifferent > 0);
      CHECK(numWide == 0);
    }
  }
}

TEST_CASE("a function has its neighbours, not more") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] exponential(x) }");
  AdmissibleArray r = p.run({f32({1, -infinity})});
  CHECK(admits(r, 0, std::exp(1.0f)));
  CHECK(admits(r, 0, up(std::exp(1.0f))));
  CHECK_FALSE(admits(r, 0, std::exp(1.0f) * 1.0000025));
  CHECK(admits(r, 1, 0));
  CHECK_FALSE(admits(r, 1, 1e-40));
}

TEST_CASE("tanh that only sums with 1 read may be off as near 1, at 0 as well; read otherwise not") {
  const std::string begin = "ENTRY e { x = f32[2] parameter(0)\n c = bf16[] constant(1)\n d = f32[] convert(c)\n"
                            "one = f32[2] broadcast(d), dimensions={}\n t = f32[2] tanh(x)\n";
  constexpr double unit = 0x1p-24; // of floats below 1
  AdmissibleArray beside = Program(begin + "ROOT r = f32[2] add(one, t) }").run({f32({0, -30})});
  CHECK(admits(beside, 0, 1 - 4 * unit));
  CHECK(admits(beside, 0, 1 + 4 * unit));
  CHECK_FALSE(admits(beside, 0, 1 - 12 * unit));
  CHECK(admits(beside, 1, 1.75e-26)); // 1 + tanh(-30)
  for (std::string sum :
       {"s = f32[2] add(one, t)\n ROOT r = f32[2] subtract(s, t) }", "ROOT r = f32[2] subtract(one, t) }",
        "two = f32[2] add(one, one)\n s = f32[2] add(two, t)\n ROOT r = f32[2] subtract(s, one) }"})
    CHECK_FALSE(admits(Program(begin + sum).run({f32({0, -30})}), 0, 1 - 4 * unit));
}

TEST_CASE("what is rounded to fewer bits branches only at a boundary") {
  Program p("ENTRY e { x = f32[400] parameter(0)\n y = f32[400] exponential(x)\n ROOT r = bf16[400] convert(y) }");
  std::vector<double> x;
  for (int i = 0; i < 400; ++i)
    x.push_back(i / 97.0 - 2);
  AdmissibleArray r = p.run({f32(x)});
  int branched = 0;
  for (int64_t i = 0; i < 400; ++i)
    branched += r.isBranched(i);
  CHECK(branched < 4);
}

TEST_CASE("integers made of floats have one value but at a boundary") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n ROOT r = s32[2] convert(y) }");
  AdmissibleArray r = p.run({f32({std::log(2.5), std::log(3.0)})});
  CHECK(admits(r, 0, 2));
  CHECK_FALSE(admits(r, 0, 3));
  CHECK_FALSE(admits(r, 0, 1));
  CHECK(admits(r, 1, 3));
  CHECK(admits(r, 1, 2));
  CHECK_FALSE(admits(r, 1, 4));
}

TEST_CASE("comparisons and selections branch where they are open") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] exponential(x)\n c = f32[2] parameter(1)\n"
            " b = pred[2] compare(y, c), direction=LT\n ROOT r = f32[2] select(b, c, x) }");
  float one = std::exp(1.0f);
  AdmissibleArray r = p.run({f32({1, 1}), f32({one, 3})});
  CHECK(admits(r, 0, one));
  CHECK(admits(r, 0, 1));
  CHECK(admits(r, 1, 3));
  CHECK_FALSE(admits(r, 1, 1));
}

TEST_CASE("sums of whole numbers are exact in any order") {
  Program p(std::string(addition) + "ENTRY e { x = f32[1000] parameter(0)\n z = f32[] constant(0)\n"
                                    " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }");
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i)
    x.push_back((i * 37) % 101 - 50);
  AdmissibleArray r = p.run({f32(x)});
  CHECK(r.isExact());
  x[0] = 0.1;
  CHECK_FALSE(p.run({f32(x)}).isExact());
}

TEST_CASE("sums hold every order, and not a missing term") {
  Program p(std::string(addition) + "ENTRY e { x = f32[1000] parameter(0)\n z = f32[] constant(0)\n"
                                    " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }");
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i)
    x.push_back(float(0.1 + i % 7));
  AdmissibleArray r = p.run({f32(x)});
  float forwards = 0, backwards = 0;
  double exact = 0;
  for (int i = 0; i < 1000; ++i) {
    forwards += float(x[size_t(i)]);
    backwards += float(x[size_t(999 - i)]);
    exact += x[size_t(i)];
  }
  CHECK(admits(r, 0, forwards));
  CHECK(admits(r, 0, backwards));
  CHECK(admits(r, 0, exact));
  CHECK_FALSE(admits(r, 0, exact - 0.1));
  CHECK_FALSE(admits(r, 0, exact * 1.00005));
  // All terms alike: the errors of a serial sum are not random.
  float serial = 0;
  for (int i = 0; i < 1000; ++i)
    serial += 0.1f;
  AdmissibleArray same = p.run({f32(std::vector<double>(1000, 0.1f))});
  CHECK(admits(same, 0, serial));
  CHECK(admits(same, 0, 100));
}

TEST_CASE("sums of terms that are alike hold what lanes make of them, and not a missing term") {
  Program p(std::string(addition) + "ENTRY e { x = f32[300] parameter(0)\n z = f32[] constant(0)\n"
                                    " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }");
  /// As of a row of scores behind a mask: two large terms, at `first` and behind, and many small ones.
  auto termsOf = [](float small, size_t first) {
    std::vector<double> x(300, small);
    x[first] = 1;
    x[first + 3] = 1.1f; // in another lane
    return x;
  };
  unsigned beyondRandom = 0;
  for (float small : {2.5612887e-6f, 6.475952e-7f, 6.6156e-8f, 4.5468e-8f, 1.1e-5f, 3.3e-4f})
    for (size_t first : {0, 2, 5}) {
      const std::vector<double> x = termsOf(small, first);
      const AdmissibleArray r = p.run({f32(x)});
      double exact = 0;
      for (double term : x)
        exact += term;
      // Lanes of a quad have pairs of neighbours, or every fourth term.
      for (size_t together : {1, 2}) {
        float lanes[4] = {};
        for (size_t i = 0; i < x.size(); ++i)
          lanes[i / together % 4] += float(x[i]);
        const float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
        CAPTURE(small, first, together, sum, exact);
        CHECK(admits(r, 0, sum));
        beyondRandom += std::fabs(sum - exact) > 2 * std::sqrt(301.0) * 0x1p-24 * exact;
      }
      CHECK_FALSE(admits(r, 0, exact - 0.001));
    }
  CHECK(beyondRandom > 0);
  // Where all are different, none of this is admissible: roundings undo each other.
  std::mt19937 random(7);
  std::vector<double> x;
  double exact = 0;
  for (int i = 0; i < 300; ++i)
    exact += x.emplace_back(float(double(random()) * 0x1p-32));
  const AdmissibleArray r = p.run({f32(x)});
  CHECK_FALSE(admits(r, 0, exact * (1 + 2.5 * std::sqrt(301.0) * 0x1p-24)));
  CHECK_FALSE(admits(r, 0, exact * (1 - 2.5 * std::sqrt(301.0) * 0x1p-24)));
}

TEST_CASE("sums hold the serial sum of any terms that are admissible") {
  Program p(std::string(addition) + "ENTRY e { x = f32[200,1000] parameter(0)\n y = f32[200,1000] exponential(x)\n"
                                    " z = f32[] constant(0)\n"
                                    " ROOT r = f32[200] reduce(y, z), dimensions={1}, to_apply=add }");
  // Halfway between what sums beyond 512 can grow by: whether all terms are rounded up or down is open.
  auto termOf = [](int row) { return 0.75f + float(2 * row + 1) * 0x1p-15f; };
  std::vector<double> x;
  for (int row = 0; row < 200; ++row)
    x.insert(x.end(), 1000, std::log(termOf(row)));
  AdmissibleArray r = p.run({f32(x)});
  for (int row = 0; row < 200; ++row)
    for (float towards : {0.0f, 2.0f}) {
      const float term = std::nextafter(termOf(row), towards);
      float serial = 0;
      for (int i = 0; i < 1000; ++i)
        serial += term;
      CHECK(admits(r, row, serial));
    }
}

TEST_CASE("infinite terms decide a sum in any order, unless finite ones overflow in some") {
  Program p(std::string(addition) + "ENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n"
                                    " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }");
  AdmissibleArray clear = p.run({f32({infinity, 3e38, 1})}), open = p.run({f32({-infinity, 3e38, 3e38})});
  CHECK(admits(clear, 0, infinity));
  CHECK_FALSE(admits(clear, 0, NAN));
  CHECK(open.isUndecided(0)); // 3e38 + 3e38 - inf
}

TEST_CASE("factors that vanish in some order leave an error as large as the others make it") {
  std::string multiply =
      "multiply { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] multiply(p, q) }\n"
      "both { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] parameter(2)\n"
      " d = f32[] parameter(3)\n s = f32[] add(a, c)\n t = f32[] multiply(b, d)\n"
      " ROOT r = (f32[], f32[]) tuple(s, t) }\n"
      "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(1)\n ";
  Program alone(multiply + "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=multiply }");
  Program beside(multiply + "t = (f32[], f32[]) reduce(x, x, z, z), dimensions={0}, to_apply=both\n"
                            " ROOT r = f32[] get-tuple-element(t), index=1 }");
  // The reference goes from left to right, and nothing it meets is subnormal.
  const float x[] = {1.1e-21f, 1.1e19f, 1.2e19f, 1.3e-20f};
  const float small = x[0] * x[3], large = x[1] * x[2], other = small * large;
  REQUIRE(std::fabs(other - x[0] * x[1] * x[2] * x[3]) > 1e-6f * other);
  AdmissibleArray r = alone.run({f32({x[0], x[1], x[2], x[3]})});
  CHECK(admits(r, 0, other));
  CHECK_FALSE(admits(r, 0, 1.01f * other));
  AdmissibleArray second = beside.run({f32({x[0], x[1], x[2], x[3]})});
  CHECK(admits(second, 0, other));
  CHECK_FALSE(admits(second, 0, 1.01f * other));
  // Without small ones there is one order too few for that.
  AdmissibleArray exact = alone.run({f32({1.1e-3f, 1.1e9f, 1.2e9f, 1.3e-2f})});
  CHECK_FALSE(admits(exact, 0, 1.1e-3f * 1.1e9f * 1.2e9f * 1.3e-2f * 1.00001f));
}

TEST_CASE("factors that overflow among themselves may not with small ones between them") {
  Program p("multiply { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] multiply(p, q) }\n"
            "ENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(1)\n"
            " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=multiply }");
  CHECK(p.run({f32({1e30f, 1e30f, 1e-30f})}).isUndecided(0));
  AdmissibleArray infinite = p.run({f32({1e30f, 1e30f, 1})});
  CHECK(admits(infinite, 0, infinity));
  CHECK_FALSE(admits(infinite, 0, 3e38));
}

TEST_CASE(
    "factors that overflow in some order leave a product with 0 undecided, and so those that vanish with infinity") {
  Program p("multiply { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] multiply(p, q) }\n"
            "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(1)\n"
            " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=multiply }");
  CHECK(p.run({f32({0, 2, 1e38, 1e38})}).isUndecided(0));
  CHECK(p.run({f32({infinity, 2, 1e-30, 1e-30})}).isUndecided(0));
  AdmissibleArray zero = p.run({f32({0, 2, 1e38, 1e-38})}), infinite = p.run({f32({infinity, 2, 1e38, 1e-38})});
  CHECK(admits(zero, 0, 0));
  CHECK_FALSE(admits(zero, 0, NAN));
  CHECK(admits(infinite, 0, infinity));
  CHECK_FALSE(admits(infinite, 0, NAN));
  AdmissibleArray nan = p.run({f32({0, infinity, 1e38, 1e38})});
  CHECK(admits(nan, 0, NAN));
  CHECK_FALSE(admits(nan, 0, 0));
}

TEST_CASE("complex functions of what is not known exactly, beside a pole and a branch cut") {
  // A product less what it is when rounded: 0, or a little below.
  float x = 1024 + 0x1p-2f, y = 1 + 0x1p-13f;
  volatile float rounded = x * y;
  auto realOf = [&](const std::string &value, double re) {
    Program p("ENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n z = f32[1] parameter(2)\n"
              " re = f32[1] parameter(3)\n m = f32[1] multiply(x, y)\n im = f32[1] subtract(m, z)\n" +
              value + " ROOT r = f32[1] real(f) }");
    return p.run({f32({x}), f32({y}), f32({rounded}), f32({re})});
  };
  const std::string below = " c = c64[1] complex(re, im)\n", beside =
                                                                 " s = f32[1] add(re, im)\n d = f32[1] subtract(x, x)\n"
                                                                 " c = c64[1] complex(s, d)\n";
  const std::string power = " b = c64[] constant((31, 22))\n bs = c64[1] broadcast(b), dimensions={}\n"
                            " f = c64[1] power(c, bs)\n";
  CHECK(realOf(below + power, -13).isUndecided(0)); // e^(22 pi) times as large on the other side
  CHECK_FALSE(realOf(below + power, 13).isUndecided(0));
  const std::string tangent = " f = c64[1] tan(c)\n";
  CHECK(realOf(beside + tangent, 1.57079632).isUndecided(0));
  CHECK_FALSE(realOf(beside + tangent, 1.5).isUndecided(0));
}

TEST_CASE("products of complex numbers that vanish or overflow in some order") {
  Program p("multiply { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] multiply(a, b) }\n"
            "ENTRY e { x = f32[4] parameter(0)\n w = f32[4] parameter(1)\n y = c64[4] complex(x, w)\n"
            " one = c64[] constant((1, 0))\n r = c64[] reduce(y, one), dimensions={0}, to_apply=multiply\n"
            " ROOT k = f32[] real(r) }");
  auto admitsBits = [](const AdmissibleArray &bounds, float x) {
    Literal actual(Shape::array(ElementType::F32, {}));
    actual.setDouble(0, x);
    return bounds.admits(0, actual, 0);
  };
  // Signs of a product with 0: 0 * a - 0 * b, whatever comes last.
  AdmissibleArray zero = p.run({f32({2, 0, -3, 1}), f32({1, 0, 2, -1})});
  CHECK((admitsBits(zero, 0.0f) && admitsBits(zero, -0.0f)));
  CHECK_FALSE(admitsBits(zero, 1e-30f));
  // 1e-20 * 1e-20 * 1e-10 is rounded to a few smallest numbers before 1e12 enlarges it, in some orders.
  AdmissibleArray tiny = p.run({f32({1e-20, 1e-20, 1e-4, 1e12}), f32({0, 0, 0, 0})});
  CHECK((admitsBits(tiny, 1e-32f) && admitsBits(tiny, 1.000527e-32f)));
  CHECK_FALSE(admitsBits(tiny, 2e-31f));
  CHECK(p.run({f32({1e30f, 1e30f, 1e-30f, 1e-30f}), f32({0, 0, 0, 0})}).isUndecided(0));
}

TEST_CASE("products of complex numbers hold every order") {
  constexpr int count = 7;
  Program p("multiply { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT c = c64[] multiply(a, b) }\n"
            "ENTRY e { x = f32[7] parameter(0)\n w = f32[7] parameter(1)\n y = c64[7] complex(x, w)\n"
            " one = c64[] constant((1, 0))\n r = c64[] reduce(y, one), dimensions={0}, to_apply=multiply\n"
            " ROOT k = f32[] real(r) }");
  std::mt19937 random(1);
  std::uniform_real_distribution<float> parts(-2, 2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::complex<float>> factors;
    std::vector<double> re, im;
    for (int i = 0; i < count; ++i) {
      factors.emplace_back(parts(random), parts(random));
      re.push_back(factors.back().real());
      im.push_back(factors.back().imag());
    }
    AdmissibleArray r = p.run({f32(re), f32(im)});
    float magnitude = 1;
    for (std::complex<float> factor : factors)
      magnitude *= std::abs(factor);
    for (int order = 0; order < 20; ++order) {
      std::shuffle(factors.begin(), factors.end(), random);
      float a = 1, b = 0;
      for (std::complex<float> factor : factors) {
        float c = a * factor.real() - b * factor.imag();
        b = a * factor.imag() + b * factor.real();
        a = c;
      }
      CHECK(admits(r, 0, a));
      CHECK_FALSE(admits(r, 0, a + 1e-5f * magnitude));
    }
  }
}

TEST_CASE("powers of what is NaN or negative may be numbers where the exponent may be 0 or whole") {
  Program p("ENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n n = f32[3] parameter(2)\n"
            " s = f32[3] sine(y)\n d = f32[3] subtract(s, n)\n ROOT r = f32[3] power(x, d) }");
  AdmissibleArray r = p.run({f32({NAN, NAN, 2}), f32({1, 1, 1}), f32({std::sin(1.0f), 3, std::sin(1.0f)})});
  CHECK(r.isUndecided(0));
  CHECK(admits(r, 1, NAN));
  CHECK_FALSE(admits(r, 1, 1));
  CHECK(admits(r, 2, 1));
  CHECK_FALSE(admits(r, 2, NAN));
  AdmissibleArray negative =
      p.run({f32({-2, -2, -2}), f32({1, 1, 1}), f32({std::sin(1.0f), 0.3f, std::sin(1.0f) - 2})});
  CHECK(negative.isUndecided(0));
  CHECK(admits(negative, 1, NAN));
  CHECK_FALSE(admits(negative, 1, 1));
  CHECK(admits(negative, 2, 4));
}

TEST_CASE("numbers that may be inside of a domain that their ends are outside of") {
  Program p("add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"
            "ENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n"
            " s = f32[] reduce(x, z), dimensions={0}, to_apply=add\n ROOT r = f32[] atanh(s) }");
  CHECK(p.run({f32({1e8, -1e8, 0.5})}).isUndecided(0));
  AdmissibleArray outside = p.run({f32({1e8, 1e8, 0.5})});
  CHECK(admits(outside, 0, NAN));
  CHECK_FALSE(admits(outside, 0, 1));
}

TEST_CASE("the root of -infinity beside a NaN has an imaginary part of either sign") {
  Program p("ENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n c = c64[1] complex(x, y)\n"
            " s = c64[1] sqrt(c)\n ROOT r = f32[1] imag(s) }");
  AdmissibleArray r = p.run({f32({-infinity}), f32({NAN})});
  CHECK(admits(r, 0, infinity));
  CHECK(admits(r, 0, -infinity));
  CHECK_FALSE(admits(r, 0, NAN));
}

TEST_CASE("sums of complex numbers that are one of several results hold every order") {
  Program p("both { a = c64[] parameter(0)\n i = s32[] parameter(1)\n b = c64[] parameter(2)\n"
            " j = s32[] parameter(3)\n c = c64[] add(a, b)\n k = s32[] add(i, j)\n"
            " ROOT t = (c64[], s32[]) tuple(c, k) }\n"
            "ENTRY e { x = f32[1000] parameter(0)\n y = c64[1000] complex(x, x)\n"
            " i = s32[1000] iota(), iota_dimension=0\n zero = c64[] constant((0, 0))\n z = s32[] constant(0)\n"
            " r = (c64[], s32[]) reduce(y, i, zero, z), dimensions={0}, to_apply=both\n"
            " s = c64[] get-tuple-element(r), index=0\n ROOT k = f32[] real(s) }");
  float serial = 0;
  for (int i = 0; i < 1000; ++i)
    serial += 0.1f;
  AdmissibleArray r = p.run({f32(std::vector<double>(1000, 0.1f))});
  CHECK(admits(r, 0, serial));
  CHECK(admits(r, 0, 100));
  CHECK_FALSE(admits(r, 0, 99.9));
}

TEST_CASE("integers and comparisons of a float of which nothing is known are open") {
  const std::string sum = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"
                          "ENTRY e { x = f32[3] parameter(0)\n z = f32[] constant(0)\n"
                          " s = f32[] reduce(x, z), dimensions={0}, to_apply=add\n n = f32[] atanh(s)\n ";
  AdmissibleArray integer = Program(sum + "ROOT r = s32[] convert(n) }").run({f32({1e8, -1e8, 0.5})});
  CHECK(admits(integer, 0, 17));
  CHECK(admits(integer, 0, -17));
  AdmissibleArray greater = Program(sum + "ROOT r = pred[] compare(n, z), direction=GT }").run({f32({1e8, -1e8, 0.5})});
  CHECK(admits(greater, 0, 0));
  CHECK(admits(greater, 0, 1));
}

TEST_CASE("a number that may be 0 may be false") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n s = f32[2] sine(x)\n n = f32[2] parameter(1)\n"
            " d = f32[2] subtract(s, n)\n ROOT r = pred[2] convert(d) }");
  AdmissibleArray r = p.run({f32({1, 1}), f32({std::sin(1.0f), 3})});
  CHECK(admits(r, 0, 0));
  CHECK(admits(r, 0, 1));
  CHECK(admits(r, 1, 1));
  CHECK_FALSE(admits(r, 1, 0));
}

TEST_CASE("a maximum and its index are exact, unless two are closer than their error") {
  Program p("pick { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n"
            " g = pred[] compare(a, b), direction=GE\n m = f32[] select(g, a, b)\n k = s32[] select(g, i, j)\n"
            " ROOT t = (f32[], s32[]) tuple(m, k) }\n"
            "ENTRY e { x = f32[3] parameter(0)\n y = f32[3] exponential(x)\n i = s32[3] iota(), iota_dimension=0\n"
            " l = f32[] constant(-inf)\n z = s32[] constant(0)\n"
            " r = (f32[], s32[]) reduce(y, i, l, z), dimensions={0}, to_apply=pick\n"
            " ROOT k = s32[] get-tuple-element(r), index=1 }");
  AdmissibleArray clear = p.run({f32({0, 2, 1})});
  CHECK(admits(clear, 0, 1));
  CHECK_FALSE(admits(clear, 0, 2));
  AdmissibleArray close = p.run({f32({0, 2, up(2)})});
  CHECK(admits(close, 0, 1));
  CHECK(admits(close, 0, 2));
}

TEST_CASE("an index that depends on a rounding admits the elements on either side") {
  Program p("ENTRY e { x = f32[] parameter(0)\n a = f32[8] parameter(1)\n y = f32[] exponential(x)\n"
            " i = s32[] convert(y)\n ROOT r = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1} }");
  Literal table = f32({0, 1, 2, 3, 4, 5, 6, 7});
  auto at = [&](double x) {
    Literal scalar(Shape::scalar(ElementType::F32));
    scalar.setDouble(0, x);
    return p.run({scalar, table});
  };
  AdmissibleArray known = at(std::log(3.5)), open = at(std::log(3.0));
  CHECK_FALSE(known.isUndecided(0));
  CHECK_FALSE(admits(known, 0, 4));
  CHECK(admits(open, 0, 2));
  CHECK(admits(open, 0, 3));
  CHECK_FALSE(admits(open, 0, 1));
  CHECK_FALSE(admits(open, 0, 4));
}

TEST_CASE("infinity is not the largest number") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] add(x, x)\n ROOT r = f32[2] add(y, x) }");
  AdmissibleArray r = p.run({f32({infinity, 3e38})});
  CHECK(admits(r, 0, infinity));
  CHECK_FALSE(admits(r, 0, 3.4028234e38));
  CHECK_FALSE(admits(r, 1, 3.4028234e38));
}

TEST_CASE("a modulus beside the largest number may overflow, an infinite one is infinite") {
  Program p("ENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n z = c64[3] complex(x, y)\n "
            "ROOT r = f32[3] abs(z) }");
  double largest = std::numeric_limits<float>::max();
  AdmissibleArray r =
      p.run({f32({0x1.fb19b40000000p+127, largest, infinity}), f32({0x1.1aa6440000000p+125, largest, 1})});
  CHECK(admits(r, 0, infinity));
  CHECK(admits(r, 0, largest));
  CHECK_FALSE(admits(r, 0, largest / 2));
  CHECK_FALSE(admits(r, 1, largest)); // largest * sqrt(2)
  CHECK(admits(r, 1, infinity));
  CHECK_FALSE(admits(r, 2, largest));

  Program wide("ENTRY e { x = f64[3] parameter(0)\n z = c128[3] complex(x, x)\n ROOT r = f64[3] abs(z) }");
  double end = std::numeric_limits<double>::max(), root = 0x1.6a09e667f3bcdp+1023; // 2^1024 / sqrt(2), rounded up
  AdmissibleArray w = wide.run({array(ElementType::F64, {root, end, infinity})});
  CHECK(admits(w, 0, infinity));
  CHECK(admits(w, 0, end));
  CHECK_FALSE(admits(w, 0, end / 2));
  CHECK_FALSE(admits(w, 1, end));
  CHECK_FALSE(admits(w, 2, end));
}

TEST_CASE("a zero has a sign, a NaN has none") {
  Program p("ENTRY e { x = f32[3] parameter(0)\n ROOT r = f32[3] negate(x) }");
  AdmissibleArray r = p.run({f32({0, -0.0, NAN})});
  CHECK(admits(r, 0, -0.0));
  CHECK_FALSE(admits(r, 0, 0.0));
  CHECK(admits(r, 2, -NAN));
  CHECK(admits(r, 2, NAN));
  CHECK_FALSE(admits(r, 2, 0));
}

TEST_CASE("what may have either sign makes zeros of either sign") {
  Program p("ENTRY e { x = f32[1] parameter(0)\n y = f32[1] exponential(x)\n d = f32[1] subtract(y, y)\n"
            " z = f32[1] parameter(1)\n ROOT r = f32[1] multiply(d, z) }");
  AdmissibleArray r = p.run({f32({1}), f32({0})});
  CHECK(admits(r, 0, 0.0));
  CHECK(admits(r, 0, -0.0));
}

TEST_CASE("f64 near zero is as exact as anywhere") {
  Program p("ENTRY e { x = f64[1] parameter(0)\n y = f64[1] exponential(x)\n ROOT r = f64[1] multiply(y, y) }");
  AdmissibleArray r = p.run({array(ElementType::F64, {-92})});
  double exact = std::exp(-184.0);
  CHECK(admits(r, 0, exact));
  CHECK_FALSE(admits(r, 0, 0));
  CHECK_FALSE(admits(r, 0, -exact));
  CHECK_FALSE(admits(r, 0, exact * (1 + 1e-13)));
}

TEST_CASE("single elements have the bounds they have among all") {
  Program p("ENTRY e { x = bf16[5] parameter(0)\n h = bf16[] constant(0.5)\n b = bf16[5] broadcast(h), dimensions={}\n"
            " t = bf16[5] tanh(x)\n m = bf16[5] multiply(t, b)\n c = pred[5] compare(m, x), direction=LT\n"
            " ROOT r = bf16[5] select(c, m, b) }");
  REQUIRE(isElementwise(*p.module));
  Literal x = array(ElementType::BF16, {-3, -0.3, 0, 0.7, 2});
  AdmissibleArray all = p.run({x});
  std::vector<int64_t> elements{1, 3, 4};
  llvm::FailureOr<BoundedResult> some = interpretBoundsAt(*p.module, {x}, elements, Backend::Hloc, p.diagnostics);
  REQUIRE(llvm::succeeded(some));
  const AdmissibleArray &few = some->leaves[0];
  for (size_t i = 0; i < elements.size(); ++i) {
    CHECK(few.isBranched(int64_t(i)) == all.isBranched(elements[i]));
    CHECK(few.value.getDouble(int64_t(i)) == all.value.getDouble(elements[i]));
    if (!few.isExact() && !all.isExact())
      CHECK(few.high.getDouble(int64_t(i)) == all.high.getDouble(elements[i]));
  }
}

TEST_CASE("progress counts operations on elements, those of fusions and calls among them") {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(
      std::make_shared<SourceFile>(
          "test.hlo", "HloModule m\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                      " ROOT s = f32[] add(a, b) }\n"
                      "f { x = f32[4,8] parameter(0)\n n = f32[4,8] exponential(x)\n z = f32[] constant(0)\n"
                      " ROOT r = f32[4] reduce(n, z), dimensions={1}, to_apply=sum }\n"
                      "g { x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x) }\n"
                      "ENTRY e { x = f32[4,8] parameter(0)\n y = f32[8,2] parameter(1)\n"
                      " d = f32[4,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                      " r = f32[4] fusion(x), kind=kInput, calls=f\n a = f32[4] call(r), to_apply=g\n"
                      " b = f32[4] call(a), to_apply=g\n ROOT t = (f32[4,2], f32[4]) tuple(d, b) }\n"),
      diagnostics);
  REQUIRE(module);
  // Dot 4*2*8, exponential 4*8, constant 1, reduce 4*8, negate twice 4.
  const uint64_t effort = 64 + 32 + 1 + 32 + 4 + 4;
  std::vector<Literal> arguments = {Literal(Shape::array(ElementType::F32, {4, 8})),
                                    Literal(Shape::array(ElementType::F32, {8, 2}))};
  WorkProgress work;
  InterpreterOptions options;
  options.progress = &work;
  REQUIRE(succeeded(interpret(*module, arguments, diagnostics, options)));
  CHECK(work.all == effort);
  CHECK(work.done == effort);
  REQUIRE(succeeded(interpretBounds(*module, arguments, Backend::Hloc, diagnostics, options)));
  CHECK(work.all == effort); // from the start again
  CHECK(work.done == effort);
}

namespace {

/// c + the products, cut as tensor cores do it: four at a time, all below `kept` bits of the largest lost.
double cutSum(const std::vector<double> &products, int kept) {
  double sum = 0;
  for (size_t n = 0; n < products.size(); n += 4) {
    std::vector<double> terms(products.begin() + std::ptrdiff_t(n), products.begin() + std::ptrdiff_t(n + 4));
    terms.push_back(sum);
    double largest = 0;
    for (double term : terms)
      largest = std::max(largest, std::fabs(term));
    const double unit = std::ldexp(1, std::ilogb(largest) - kept);
    sum = 0;
    for (double term : terms)
      sum += std::trunc(term / unit) * unit;
    const double last = std::ldexp(1, std::ilogb(sum) - kept);
    sum = std::trunc(sum / last) * last;
  }
  return sum;
}

struct RandomDot {
  std::vector<double> x, y, products;
  double exact = 0;
  RandomDot(ElementType type, size_t terms, bool positive, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> numbers(positive ? 0.5 : -2, 2);
    Literal rounded(Shape::array(type, {1}));
    auto next = [&] {
      rounded.setDouble(0, numbers(random));
      return rounded.getDouble(0);
    };
    for (size_t i = 0; i < terms; ++i) {
      x.push_back(next());
      y.push_back(next());
      products.push_back(x.back() * y.back());
      exact += products.back();
    }
  }
  AdmissibleArray run(ElementType type, const std::string &attribute = "") const {
    const std::string shape = text(type).str() + "[" + std::to_string(x.size()) + "] parameter(";
    Program program("ENTRY e { x = " + shape + "0)\n y = " + shape +
                    "1)\n ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}" + attribute +
                    " }");
    return program.run({array(type, x), array(type, y)});
  }
};

} // namespace

TEST_CASE("dots that tensor cores make may be what these cut off") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const RandomDot rising(ElementType::BF16, 8192, true, seed);
    const double cut = cutSum(rising.products, 23);
    REQUIRE(cut < rising.exact * (1 - 5e-5)); // more than roundings do, which go either way
    const AdmissibleArray halves = rising.run(ElementType::BF16);
    CHECK(admits(halves, 0, cut));
    CHECK_FALSE(admits(halves, 0, rising.exact * (1 - 2e-3)));
    CHECK_FALSE(admits(halves, 0, rising.exact - 16)); // an mma less
    // The same numbers as f32 are not theirs to multiply, unless the program says so.
    CHECK_FALSE(admits(rising.run(ElementType::F32), 0, cut));
    CHECK_FALSE(admits(rising.run(ElementType::F32, ", algorithm=dot_f32_f32_f32"), 0, cut));
    CHECK(admits(rising.run(ElementType::F32, ", algorithm=dot_bf16_bf16_f32_x3"), 0, cut));
    // What is converted to a narrower type is multiplied in that.
    Program narrowed("ENTRY e { x = f32[8192] parameter(0)\n y = bf16[8192] parameter(1)\n n = bf16[8192] convert(x)\n"
                     " ROOT d = f32[] dot(n, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }");
    CHECK(admits(narrowed.run({array(ElementType::F32, rising.x), array(ElementType::BF16, rising.y)}), 0, cut));
    // The same of a group's terms; what is in no group is zero.
    Program groups("ENTRY e { x = bf16[8192] parameter(0)\n y = bf16[8192] parameter(1)\n g = s32[2] parameter(2)\n"
                   " ROOT d = f32[2] ragged-dot(x, y, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
                   "lhs_ragged_dims={0} }");
    const AdmissibleArray sums = groups.run(
        {array(ElementType::BF16, rising.x), array(ElementType::BF16, rising.y), array(ElementType::S32, {8192, 5})});
    CHECK(admits(sums, 0, cut));
    CHECK_FALSE(admits(sums, 0, rising.exact - 16));
    CHECK(admits(sums, 1, 0));
    CHECK_FALSE(admits(sums, 1, 0x1p-149));
  }
}

namespace {

/// To so many bits; `truncates`: what is behind them is dropped.
double toBits(double x, int bits, bool truncates = false) {
  const double last = std::ldexp(1, std::ilogb(x) - bits + 1);
  return (truncates ? std::trunc(x / last) : std::nearbyint(x / last)) * last;
}

/// The sum of products of f32 in pieces of so many bits, all products whose numbers add up to `order` or less.
double sumOfPieces(const RandomDot &dot, int bits, unsigned number, unsigned order) {
  auto pieces = [&](double x) {
    std::vector<double> made;
    for (unsigned i = 0; i < number && x != 0; ++i) {
      made.push_back(toBits(x, bits, i + 1 < number));
      x -= made.back();
    }
    return made;
  };
  double sum = 0;
  for (size_t k = 0; k < dot.x.size(); ++k) {
    const std::vector<double> a = pieces(dot.x[k]), b = pieces(dot.y[k]);
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size() && i + j <= order; ++j)
        sum += a[i] * b[j];
  }
  return sum;
}

} // namespace

TEST_CASE("dots by an algorithm may have factors that are rounded to it, or lack what it leaves away") {
  struct Algorithm {
    const char *name;
    int bits;
    unsigned number, order;
  };
  // Each is more exact than those before it.
  constexpr Algorithm algorithms[] = {{"dot_bf16_bf16_f32", 8, 1, 0},    {"dot_tf32_tf32_f32", 11, 1, 0},
                                      {"dot_bf16_bf16_f32_x3", 8, 2, 1}, {"dot_tf32_tf32_f32_x3", 11, 2, 1},
                                      {"dot_bf16_bf16_f32_x6", 8, 3, 2}, {"dot_bf16_bf16_f32_x9", 8, 3, 4}};
  for (bool positive : {true, false})
    for (size_t terms : {16u, 1024u})
      for (auto [number, algorithm] : llvm::enumerate(algorithms)) {
        INFO(algorithm.name << (positive ? " positive " : " ") << terms);
        unsigned lessExact = 0;
        for (unsigned seed = 0; seed < 16; ++seed) {
          const RandomDot dot(ElementType::F32, terms, positive, seed);
          auto made = [&](const Algorithm &by) { return sumOfPieces(dot, by.bits, by.number, by.order); };
          const AdmissibleArray bounds = dot.run(ElementType::F32, std::string(", algorithm=") + algorithm.name);
          CHECK(admits(bounds, 0, made(algorithm)));
          CHECK(admits(bounds, 0, dot.exact));
          CHECK(admits(dot.run(ElementType::F32, ", algorithm=dot_bf16_bf16_f32"), 0, made(algorithm)));
          // Of the least exact ones, which have one piece, not so many would agree by chance. (Of many positive terms
          // they do: what sums in f32 lose is as much.)
          if (algorithm.number > 1 && (!positive || terms == 16))
            lessExact += admits(bounds, 0, made(algorithms[0]));
        }
        CHECK(lessExact < 12);
      }
}

TEST_CASE("an f32 may be multiplied by a bf16 as three pieces, which have all of its bits") {
  Program program("ENTRY e { x = f32[16] parameter(0)\n y = bf16[16] parameter(1)\n c = f32[16] convert(y)\n"
                  " ROOT d = f32[] dot(x, c), lhs_contracting_dims={0}, rhs_contracting_dims={0} }");
  auto of = [&](const std::vector<double> &x, const std::vector<double> &y) {
    return program.run({array(ElementType::F32, x), array(ElementType::BF16, y)});
  };
  unsigned ofTwo = 0, ofWords = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    RandomDot dot(ElementType::F32, 16, false, seed);
    double words = 0;
    for (auto [x, y] : llvm::zip_equal(dot.x, dot.y)) {
      y = toBits(y, 8);
      words += toBits(x, 11) * y;
    }
    const AdmissibleArray bounds = of(dot.x, dot.y);
    CHECK(admits(bounds, 0, sumOfPieces(dot, 8, 3, 2)));
    ofTwo += admits(bounds, 0, sumOfPieces(dot, 8, 2, 1));
    ofWords += admits(bounds, 0, words);
  }
  CHECK(ofTwo < 10); // what sums in f32 lose is about as much
  CHECK(ofWords < 2);
  // Bits below those that a bf16 has at least are lost, as far as there are any.
  std::vector<double> tiny(16, 0x1p-120), ones(16, 1);
  CHECK(of(tiny, ones).isExact());
  tiny.front() = 0x1.8p-134;
  ones.front() = 0x1p100;
  const AdmissibleArray lost = of(tiny, ones);
  CHECK(admits(lost, 0, 0x1p-33));
  CHECK(admits(lost, 0, 0x1.8p-34));
  CHECK_FALSE(admits(lost, 0, 0x1p-32));
  // What is nothing in the first piece is no infinity there.
  ones.front() = INFINITY;
  CHECK(admits(of(tiny, ones), 0, NAN));
  tiny.front() = 0x1p-120;
  CHECK_FALSE(admits(of(tiny, ones), 0, NAN));
}

TEST_CASE("factors that an algorithm has as they are stay exact") {
  Program program("ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT d = f32[] dot(x, y), "
                  "lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3 }");
  auto of = [&](const std::vector<double> &x, const std::vector<double> &y) {
    return program.run({array(ElementType::F32, x), array(ElementType::F32, y)});
  };
  const AdmissibleArray exact = of({1, 2, 3, 255}, {4, 5, 6, 7});
  CHECK(admits(exact, 0, 4 + 10 + 18 + 255 * 7));
  CHECK_FALSE(admits(exact, 0, 4 + 10 + 18 + 255 * 7 + 1));
  // An infinity is one, whatever is rounded elsewhere.
  const AdmissibleArray infinite = of({1.001, INFINITY, 3, 4}, {1.001, 2, 3, 4});
  CHECK(admits(infinite, 0, INFINITY));
  CHECK_FALSE(admits(infinite, 0, NAN));
}

TEST_CASE("dots of bytes may keep 14 bits") {
  for (bool positive : {true, false})
    for (size_t terms : {64u, 256u, 1024u})
      for (unsigned seed = 0; seed < 8; ++seed) {
        INFO((positive ? "positive " : "") << terms << " terms, seed " << seed);
        const RandomDot dot(ElementType::F8E4M3FN, terms, positive, seed);
        const AdmissibleArray bytes = dot.run(ElementType::F8E4M3FN);
        CHECK(admits(bytes, 0, cutSum(dot.products, 13)));
        // What is lost of terms that all are positive, half a bit each; else what 32 terms of random signs are at
        // least.
        const double lost = positive ? 1.2 * double(terms) * 0x1p-14 * dot.exact : 0;
        CHECK_FALSE(admits(bytes, 0, dot.exact + lost + 3));
        CHECK_FALSE(admits(bytes, 0, dot.exact - lost - 3));
        if (positive && terms > 64) // fewer may lose nothing
          CHECK_FALSE(admits(dot.run(ElementType::BF16), 0, cutSum(dot.products, 13)));
      }
  // Small whole numbers lose nothing.
  std::vector<double> ones(1024, 1);
  Program program("ENTRY e { x = f8e4m3fn[1024] parameter(0)\n y = f8e4m3fn[1024] parameter(1)\n"
                  " ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0} }");
  CHECK(program.run({array(ElementType::F8E4M3FN, ones), array(ElementType::F8E4M3FN, ones)}).isExact());
}

namespace {

/// Three updates of element 1 of two, none of element 0, in the order of the text.
AdmissibleArray scattered(const char *type, const char *combiner, llvm::ArrayRef<double> updates, double into) {
  std::string text = "c { a = T[] parameter(0)\n " + std::string(combiner) +
                     " }\nENTRY e { x = T[2] parameter(0)\n u = T[3] parameter(1)\n i = s32[3] constant({1, 1, 1})\n"
                     " ROOT s = T[2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
                     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }";
  for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
    text.replace(at, 1, type);
  Program p(text);
  ElementType element = *parseElementType(type);
  AdmissibleArray result = p.run({array(element, {into, into}), array(element, updates)});
  INFO(text);
  CHECK_FALSE(result.isBranched(0)); // nothing comes there
  return result;
}

} // namespace

TEST_CASE("updates of one element come in any order") {
  // No plain overwriting: nothing is known.
  AdmissibleArray last = scattered("f32", "b = T[] parameter(1)\n ROOT r = T[] copy(b)", {3, -1, 2}, 9);
  CHECK(last.isBranched(1));
  last = scattered("u8", "ROOT r = T[] parameter(1)", {3, 1, 2}, 9);
  CHECK((admits(last, 1, 1) && admits(last, 1, 3)));
  CHECK_FALSE(admits(last, 1, 9)); // what was there is gone
  CHECK_FALSE(admits(last, 1, 0));
  AdmissibleArray product = scattered("f32", "b = T[] parameter(1)\n ROOT r = T[] multiply(a, b)", {1.1, 1.3, 1.7}, 3);
  double exact = 3.0 * double(1.1f) * double(1.3f) * double(1.7f);
  CHECK(
      (admits(product, 1, double(float(exact * (1 + 1e-7)))) && admits(product, 1, double(float(exact * (1 - 1e-7))))));
  CHECK_FALSE(admits(product, 1, exact * (1 + 1e-5)));
  AdmissibleArray largest = scattered("f32", "b = T[] parameter(1)\n ROOT r = T[] maximum(a, b)", {1, 7, 3}, 3);
  CHECK_FALSE(largest.isBranched(1));
  // The sum of magnitudes is exact where the type is not: 16 + 1 + 1 + 1 are 19 in some order of f8e5m2, 16 in another.
  AdmissibleArray sum = scattered("f8e5m2", "b = T[] parameter(1)\n ROOT r = T[] add(a, b)", {1, 1, 1}, 16);
  CHECK((admits(sum, 1, 16) && admits(sum, 1, 20)));
}

TEST_CASE("sums of f32 by a scatter may have zeros for subnormal numbers") {
  const char *add = "b = T[] parameter(1)\n ROOT r = T[] add(a, b)";
  const char *turned = "b = T[] parameter(1)\n n = T[] negate(b)\n ROOT r = T[] subtract(a, n)";
  for (const char *combiner : {add, turned}) {
    AdmissibleArray small = scattered("f32", combiner, {0x1p-130, 0, 0}, -0x1.8p-126);
    CHECK((admits(small, 1, -0x1.8p-126) && admits(small, 1, 0x1p-130 - 0x1.8p-126)));
  }
  AdmissibleArray lost = scattered("f32", add, {0x1p-127, 0x1p-127, 0x1p-127}, 0x1p-127);
  CHECK((admits(lost, 1, 0) && admits(lost, 1, 0x1p-125)));
  CHECK_FALSE(admits(lost, 1, -0x1.8p-125));
  CHECK_FALSE(admits(lost, 1, 0x1p-123));
  // Sums of normal numbers that are subnormal.
  AdmissibleArray difference = scattered("f32", add, {-0x1.8p-126, 0, 0}, 0x1p-126);
  CHECK((admits(difference, 1, 0) && admits(difference, 1, -0x1p-127)));
  // Multiples of the least normal number have no subnormal sums; other types and combiners keep these.
  CHECK_FALSE(scattered("f32", add, {0x1p-126, 0x1p-126, -0x1p-125}, 0x1p-125).isBranched(1));
  CHECK_FALSE(scattered("bf16", add, {0x1p-130, 0, 0}, 0x1p-130).isBranched(1));
  CHECK_FALSE(scattered("f64", add, {0x1p-130, 0, 0}, 0x1p-130).isBranched(1));
  CHECK_FALSE(scattered("f32", "b = T[] parameter(1)\n ROOT r = T[] minimum(a, b)", {0x1p-130, 0, 0}, 0).isBranched(1));
}

TEST_CASE("so may sums of several arrays") {
  Program two(R"(
c { a = f32[] parameter(0)
  b = s32[] parameter(1)
  u = f32[] parameter(2)
  v = s32[] parameter(3)
  s = f32[] add(a, u)
  t = s32[] add(b, v)
  ROOT r = (f32[], s32[]) tuple(s, t) }
ENTRY e { x = f32[2] parameter(0)
  y = s32[2] constant({1, 2})
  u = f32[1] parameter(1)
  v = s32[1] constant({3})
  i = s32[1] constant({1})
  s = (f32[2], s32[2]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c
  ROOT first = f32[2] get-tuple-element(s), index=0 })");
  const auto first = two.run({array(ElementType::F32, {0x1p-130, 0x1p-130}), array(ElementType::F32, {0x1p-131})});
  CHECK_FALSE(admits(first, 0, 0)); // nothing comes there
  CHECK((admits(first, 1, 0) && admits(first, 1, 0x1.8p-130)));
  CHECK_FALSE(admits(first, 1, 0x1p-124));
}

TEST_CASE("a product may stay unrounded through a collective in which each device is alone") {
  Program p(R"(
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[1] parameter(0)
  y = f32[1] parameter(1)
  p = f32[1] multiply(x, x)
  a = f32[1] all-reduce(p), replica_groups={{0}}, to_apply=sum
  ROOT r = f32[1] add(a, y) })");
  const double x = 1 + 0x1p-12, square = x * x; // 1 + 2^-11 + 2^-24, in f32 without the last
  AdmissibleArray bounds = p.run({f32({x}), f32({-1})});
  CHECK(admits(bounds, 0, float(square) - 1.0));
  CHECK(admits(bounds, 0, square - 1));
  CHECK_FALSE(admits(bounds, 0, square - 1 + 0x1p-23));
}

TEST_CASE("sums of a scan that says it is associative hold every order, and not a missing term") {
  const std::string text = R"(
add { x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  ROOT t = (f32[2], f32[2]) tuple(s, s) }
ENTRY e { x = f32[2,1000] parameter(0)
  i = f32[2] parameter(1)
  ROOT r = (f32[2,1000], f32[2]) scan(x, i), dimensions={1}, num_carries=1, to_apply=add, is_associative=true)";
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Literal terms(Shape::array(ElementType::F32, {2, 1000}));
  for (float &term : terms.mutableData<float>())
    term = uniform(random);
  for (bool isReverse : {false, true}) {
    Program program(text + (isReverse ? ", is_reverse=true }" : " }"));
    llvm::FailureOr<BoundedResult> result =
        interpretBounds(*program.module, {terms, f32({0.5, 0.25})}, Backend::Hloc, program.diagnostics);
    REQUIRE(llvm::succeeded(result));
    const AdmissibleArray &sums = result->leaves[0], &carry = result->leaves[1];
    for (int64_t row : {0, 1}) {
      auto at = [&](int64_t i) { return row * 1000 + (isReverse ? 999 - i : i); };
      // By halves: the second one's sums are added to the first one's total.
      float half = 0, first = row == 0 ? 0.5F : 0.25F;
      for (int64_t i = 0; i < 500; ++i)
        first += terms.data<float>()[size_t(at(i))];
      for (int64_t i = 500; i < 1000; ++i)
        half += terms.data<float>()[size_t(at(i))];
      CHECK(admits(sums, at(999), first + half));
      CHECK(admits(carry, row, first + half));
      CHECK(admits(sums, at(499), first));
      CHECK_FALSE(admits(sums, at(999), first + half - terms.data<float>()[size_t(at(700))]));
      CHECK_FALSE(admits(sums, at(499), first + half));
    }
  }
}

TEST_CASE("a product that a sum starts from may stay unrounded") {
  const float x = 1 + 0x1p-12f, y = 1 + 0x1p-13f;
  volatile float rounded = x * y;
  const float fused = std::fma(x, y, -1.0F), separate = rounded - 1;
  REQUIRE(fused != separate);
  const std::string start = addition + std::string(R"(
ENTRY e { x = f32[] parameter(0)
  y = f32[] parameter(1)
  z = f32[1] parameter(2)
  m = f32[] multiply(x, y)
  )");
  auto scalar = [](float value) {
    Literal made(Shape::scalar(ElementType::F32));
    made.setDouble(0, value);
    return made;
  };
  for (const char *sum : {"ROOT r = f32[] reduce(z, m), dimensions={0}, to_apply=add }",
                          "ROOT r = f32[1] reduce-window(z, m), window={size=1}, to_apply=add }"}) {
    AdmissibleArray r = Program(start + sum).run({scalar(x), scalar(y), f32({-1})});
    CHECK(admits(r, 0, fused));
    CHECK(admits(r, 0, separate));
    CHECK_FALSE(admits(r, 0, 2 * fused));
  }
}

TEST_CASE("infinity times what may be zero may be NaN") {
  Program p("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n s = f32[2] sine(x)\n"
            " d = f32[2] subtract(s, y)\n i = f32[2] divide(x, y)\n ROOT r = f32[2] multiply(d, i) }");
  // sin(1) is open by an ulp or more on either side of what is subtracted; x / 0 is infinite.
  AdmissibleArray r = p.run({f32({1, 1}), f32({std::sin(1.0), 0})});
  CHECK(admits(r, 0, 0));
  CHECK_FALSE(admits(r, 1, std::numeric_limits<double>::quiet_NaN()));
  Program q("ENTRY e { x = f32[1] parameter(0)\n y = f32[1] parameter(1)\n z = f32[1] parameter(2)\n"
            " s = f32[1] sine(x)\n d = f32[1] subtract(s, y)\n ROOT r = f32[1] multiply(d, z) }");
  AdmissibleArray open = q.run({f32({1}), f32({std::sin(1.0)}), f32({infinity})});
  CHECK(admits(open, 0, std::numeric_limits<double>::quiet_NaN()));
  CHECK(admits(open, 0, infinity));
  CHECK(admits(open, 0, -infinity));
}

TEST_CASE("what is sorted beside keys whose order is open may be at several places, all else at one") {
  const std::string less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n"
                           " j = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT }\n";
  const std::string keys = "ENTRY e { x = f32[5] parameter(0)\n k = f32[5] exponential(x)\n n = s32[5] parameter(1)\n";
  const Literal names = array(ElementType::S32, {10, 20, 30, 40, 50});
  // e^1 is open by a unit in the last place or more.
  const Literal close = f32({3, std::nextafter(1.0F, 2.0F), 0, 1, -1});
  Program sort(less + keys +
               " s = (f32[5], s32[5]) sort(k, n), dimensions={0}, to_apply=less\n"
               " ROOT r = s32[5] get-tuple-element(s), index=1 }");
  AdmissibleArray sorted = sort.run({close, names});
  const double expected[] = {50, 30, 20, 20, 10};
  for (int64_t i : {0, 1, 4}) {
    CHECK(admits(sorted, i, expected[i]));
    CHECK_FALSE(sorted.isBranched(i));
  }
  for (int64_t i : {2, 3}) {
    CHECK(admits(sorted, i, 20));
    CHECK(admits(sorted, i, 40));
    CHECK_FALSE(admits(sorted, i, 10));
    CHECK_FALSE(admits(sorted, i, 50));
  }
  // Each of a chain of close keys may go a few places only.
  std::vector<double> chain(5, 1);
  for (size_t i = 1; i < chain.size(); ++i)
    chain[i] = std::nextafter(std::nextafter(std::nextafter(float(chain[i - 1]), 2.0F), 2.0F), 2.0F);
  AdmissibleArray chained = sort.run({f32(chain), names});
  CHECK(admits(chained, 0, 20));
  CHECK_FALSE(admits(chained, 0, 50));
  CHECK_FALSE(admits(chained, 4, 10));

  Program top(keys + " t = (f32[3], s32[3]) topk(k), k=3, largest=true\n"
                     " ROOT r = s32[3] get-tuple-element(t), index=1 }");
  AdmissibleArray positions = top.run({close, names});
  CHECK_FALSE(positions.isBranched(0));
  CHECK(admits(positions, 0, 0));
  for (int64_t i : {1, 2}) {
    CHECK(admits(positions, i, 1));
    CHECK(admits(positions, i, 3));
    CHECK_FALSE(admits(positions, i, 0));
    CHECK_FALSE(admits(positions, i, 4));
  }
}

TEST_CASE("a slice or gather whose index is open is any of those that it may be") {
  // sin(1)^2 + cos(1)^2 may be just below 1.
  const std::string index = "ENTRY e { t = f32[6] parameter(0)\n one = f32[] parameter(1)\n s = f32[] sine(one)\n"
                            " c = f32[] cosine(one)\n p = f32[] multiply(s, s)\n q = f32[] multiply(c, c)\n"
                            " sum = f32[] add(p, q)\n i = s32[] convert(sum)\n";
  Literal one(Shape::scalar(ElementType::F32));
  one.setDouble(0, 1);
  const Literal table = f32({10, 20, 30, 40, 50, 60});
  AdmissibleArray slice =
      Program(index + " ROOT r = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2} }").run({table, one});
  AdmissibleArray gathered = Program(index + " v = s32[1] reshape(i)\n k = s32[1] constant({4})\n"
                                             " b = s32[2] concatenate(k, v), dimensions={0}\n"
                                             " w = s32[2,1] reshape(b)\n"
                                             " ROOT r = f32[2] gather(t, w), offset_dims={}, collapsed_slice_dims={0}, "
                                             "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }")
                                 .run({table, one});
  AdmissibleArray updated = Program(index + " u = f32[1] constant({7})\n"
                                            " ROOT r = f32[6] dynamic-update-slice(t, u, i) }")
                                .run({table, one});
  CHECK(admits(slice, 0, 10));
  CHECK(admits(slice, 1, 30));
  CHECK_FALSE(admits(slice, 0, 30));
  CHECK_FALSE(admits(slice, 1, 10));
  CHECK(admits(gathered, 0, 50));
  CHECK_FALSE(gathered.isBranched(0));
  CHECK(admits(gathered, 1, 10));
  CHECK(admits(gathered, 1, 20));
  CHECK_FALSE(admits(gathered, 1, 30));
  CHECK(admits(updated, 0, 10));
  CHECK(admits(updated, 0, 7));
  CHECK(admits(updated, 1, 20));
  CHECK_FALSE(updated.isBranched(2));
}

TEST_CASE("whether the greater of two numbers is one of them is known where their order is") {
  // What jax makes of the gradient of a maximum. sin(1)^2 + cos(1)^2 - k is known to within roundings.
  for (const std::string choice : {"maximum", "minimum"}) {
    CAPTURE(choice);
    Program program("ENTRY e { one = f32[3] parameter(0)\n k = f32[3] parameter(1)\n s = f32[3] sine(one)\n"
                    " c = f32[3] cosine(one)\n p = f32[3] multiply(s, s)\n q = f32[3] multiply(c, c)\n"
                    " sum = f32[3] add(p, q)\n x = f32[3] subtract(sum, k)\n zero = f32[] constant(0)\n"
                    " z = f32[3] broadcast(zero), dimensions={}\n m = f32[3] " +
                    choice +
                    "(z, x)\n isOne = pred[3] compare(x, m), direction=EQ\n"
                    " isOther = pred[3] compare(m, z), direction=EQ\n"
                    " ROOT r = (pred[3], pred[3]) tuple(isOne, isOther) }");
    llvm::FailureOr<BoundedResult> found =
        interpretBounds(*program.module, {f32({1, 1, 1}), f32({0.5, 1.5, 1})}, Backend::Hloc, program.diagnostics);
    REQUIRE(llvm::succeeded(found));
    const AdmissibleArray &isOne = found->leaves[0], &isOther = found->leaves[1];
    for (int64_t i : {0, 1}) {
      CHECK_FALSE(isOne.isBranched(i));
      CHECK_FALSE(isOther.isBranched(i));
      CHECK((isOne.value.getInt(i) != 0) == ((choice == "maximum") == (i == 0)));
    }
    CHECK(isOne.isBranched(2));
    CHECK(isOther.isBranched(2));
  }
}

TEST_CASE("what may be a power of two may be off by units of it, though what else it may be has smaller ones") {
  Program program("add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y) }\n"
                  "ENTRY e { x = f32[3,2] parameter(0)\n y = f32[2] parameter(1)\n z = f32[] constant(0)\n"
                  " s = f32[2] reduce(x, z), dimensions={0}, to_apply=add\n ROOT r = f32[2] divide(y, s) }");
  // Sums in another order are one or the next number: quotients are 1 or a little less.
  Literal x(Shape::array(ElementType::F32, {3, 2}));
  for (int64_t i = 0; i < 6; ++i)
    x.setDouble(i, (i < 2 ? 1 : 0x1p-25) * (i % 2 ? -1 : 1));
  const AdmissibleArray found = program.run({x, f32({1, 1})});
  for (int64_t i : {0, 1}) {
    const double sign = i ? -1 : 1;
    CHECK(admits(found, i, sign));
    CHECK(admits(found, i, sign * (1 - 2 * 0x1p-23)));
    CHECK_FALSE(admits(found, i, sign * (1 - 5 * 0x1p-23)));
    CHECK_FALSE(admits(found, i, sign * (1 + 6 * 0x1p-23)));
  }
}

TEST_CASE("zeros of either sign stay so") {
  // The products underflow, both to the same zero; summed they are either.
  Program program("ENTRY e { x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n"
                  " d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
                  " r = f32[] reduce-precision(d), exponent_bits=5, mantissa_bits=6\n"
                  " ROOT b = f32[1] broadcast(r), dimensions={} }");
  const AdmissibleArray found = program.run({f32({1e-30, -1e-30}), f32({-1e-30, 1e-30})});
  CHECK(found.admits(0, f32({-0.0}), 0));
  CHECK(found.admits(0, f32({0.0}), 0));
  CHECK(found.isBranched(0));
}

TEST_CASE("a library's product of what is open is as far off as its factors let it be") {
  // exp(x) - exp(y) where each is off by some units: the hull of products of all lowest and of all highest is 0.
  Program program("ENTRY e { x = f32[1,2] parameter(0)\n w = f32[2,1] parameter(1)\n e = f32[1,2] exponential(x)\n"
                  " g = (f32[1,1], s8[64]) custom-call(e, w), custom_call_target=\"__cublas$gemm\","
                  " backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0,\"dot_dimension_numbers\":{"
                  "\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"]}}}\n ROOT r = "
                  "f32[1,1] get-tuple-element(g), index=0 }");
  Literal x(Shape::array(ElementType::F32, {1, 2})), w(Shape::array(ElementType::F32, {2, 1}));
  for (int64_t i : {0, 1}) {
    x.setDouble(i, 10);
    w.setDouble(i, i ? -1 : 1);
  }
  const AdmissibleArray found = program.run({x, w});
  const double unit = 0x1p-9; // of exp(10)
  CHECK(admits(found, 0, 0));
  CHECK(admits(found, 0, 2 * unit));
  CHECK(admits(found, 0, -2 * unit));
  CHECK_FALSE(admits(found, 0, 64 * unit));
  CHECK_FALSE(admits(found, 0, -64 * unit));
}

TEST_CASE("bounds take memory too") {
  Program program("ENTRY e { x = f32[256] parameter(0)\n e = f32[256] exponential(x)\n"
                  " ROOT r = f32[256] multiply(e, x) }");
  const Literal x = f32(std::vector<double>(256, 0.3));
  InterpreterOptions options;
  options.maxBytes = uint64_t(256) * (4 + 2 * 8) * 2;
  CHECK(llvm::succeeded(interpretBounds(*program.module, {x}, Backend::Hloc, program.diagnostics, options)));
  options.maxBytes = uint64_t(256) * (4 + 2 * 8) - 1;
  REQUIRE(llvm::failed(interpretBounds(*program.module, {x}, Backend::Hloc, program.diagnostics, options)));
  REQUIRE(program.diagnostics.numErrors() == 1);
  CHECK(program.diagnostics.exitCode() == ExitCode::Unsupported);
  CHECK(program.diagnostics.diagnostics().front().message.find("`e` does not fit") != std::string::npos);
}
