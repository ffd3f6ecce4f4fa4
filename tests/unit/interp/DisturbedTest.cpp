// Runs in which every op has one of its admissible values: what they give is admissible, whatever the program.
#include "hloc/interp/Disturbed.h"

#include "fuzz/ModuleGenerator.h"
#include "hloc/interp/Inputs.h"
#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace hloc;

namespace {

std::unique_ptr<HloModule> parse(const std::string &text) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", "HloModule m\n" + text), diagnostics);
  REQUIRE(module);
  return module;
}

Literal disturbed(const HloModule &module, llvm::ArrayRef<Literal> arguments, Disturbance disturbance) {
  DiagnosticEngine diagnostics;
  llvm::FailureOr<DisturbedResult> result =
      interpretDisturbed(module, arguments, Backend::Hloc, disturbance, diagnostics);
  REQUIRE(succeeded(result));
  return std::move(result->value);
}

const Literal &leafOf(const Literal &value, llvm::ArrayRef<int64_t> path) {
  const Literal *leaf = &value;
  for (int64_t index : path)
    leaf = &leaf->element(unsigned(index));
  return *leaf;
}

} // namespace

TEST_CASE("a disturbed function is another neighbour of its value, the same for the same seed") {
  auto module = parse("ENTRY e { x = f32[64] parameter(0)\n ROOT r = f32[64] exponential(x) }");
  Literal x(Shape::array(ElementType::F32, {64}));
  for (int64_t i = 0; i < 64; ++i)
    x.setDouble(i, double(i) / 32);
  Literal once = disturbed(*module, {x}, {1}), again = disturbed(*module, {x}, {1}),
          other = disturbed(*module, {x}, {2});
  CHECK(once == again);
  CHECK_FALSE(once == other);
  unsigned above = 0, below = 0;
  for (int64_t i = 0; i < 64; ++i) {
    const double exact = std::exp(x.getDouble(i)), off = once.getDouble(i) - exact;
    CHECK(std::fabs(off) < exact * 0x1p-20);
    above += off > exact * 0x1p-25;
    below += off < -exact * 0x1p-25;
  }
  CHECK((above > 8 && below > 8));
}

TEST_CASE("a biased disturbance is the same wherever its instruction is") {
  auto module = parse("ENTRY e { x = f32[64] parameter(0)\n ROOT r = f32[64] exponential(x) }");
  Literal x(Shape::array(ElementType::F32, {64}));
  for (int64_t i = 0; i < 64; ++i)
    x.setDouble(i, 0.3);
  Literal result = disturbed(*module, {x}, {1, 1, /*isBiased=*/true});
  CHECK(result.isSplat());
  CHECK(result.getDouble(0) != float(std::exp(double(0.3F))));
}

TEST_CASE("sums of one product, or of two, are those of fused multiply-adds") {
  using Products = Disturbance::Products;
  for (const std::string type : {"f32", "f64"}) {
    CAPTURE(type);
    auto module = parse("ENTRY e { x = " + type + "[3] parameter(0)\n y = " + type + "[3] parameter(1)\n p = " + type +
                        "[3] multiply(x, x)\n q = " + type + "[3] multiply(y, y)\n a = " + type +
                        "[3] subtract(p, y)\n b = " + type + "[3] subtract(y, p)\n c = " + type +
                        "[3] subtract(p, q)\n d = " + type + "[3] add(q, y)\n ROOT r = (" + type + "[3], " + type +
                        "[3], " + type + "[3], " + type + "[3]) tuple(a, b, c, d) }");
    const ElementType element = type == "f32" ? ElementType::F32 : ElementType::F64;
    Literal x(Shape::array(element, {3})), y(x);
    for (int64_t i = 0; i < 3; ++i) {
      x.setDouble(i, 1.1 + 0.3 * double(i));
      y.setDouble(i, x.getDouble(i) + 0x1p-20);
    }
    Literal rounded(x);
    auto toType = [&](double value) {
      rounded.setDouble(0, value);
      return rounded.getDouble(0);
    };
    for (const Products products : {Products::First, Products::Second}) {
      Disturbance disturbance;
      disturbance.strength = 0;
      disturbance.products = products;
      const Literal result = disturbed(*module, {x, y}, disturbance);
      for (int64_t i = 0; i < 3; ++i) {
        const double u = x.getDouble(i), v = y.getDouble(i);
        const double c = products == Products::First ? std::fma(u, u, -toType(v * v)) : std::fma(-v, v, toType(u * u));
        CHECK(leafOf(result, {0}).getDouble(i) == toType(std::fma(u, u, -v)));
        CHECK(leafOf(result, {1}).getDouble(i) == toType(std::fma(-u, u, v)));
        CHECK(leafOf(result, {2}).getDouble(i) == toType(c));
        CHECK(leafOf(result, {3}).getDouble(i) == toType(std::fma(v, v, v)));
      }
    }
  }
}

TEST_CASE("what rounds once, moves or selects is not disturbed") {
  auto module =
      parse("ENTRY e { x = f32[8] parameter(0)\n y = f32[8] parameter(1)\n d = f32[8] subtract(x, y)\n"
            " b = bf16[8] convert(d)\n n = bf16[8] negate(b)\n ROOT r = bf16[8] reverse(n), dimensions={0} }");
  DiagnosticEngine diagnostics;
  llvm::FailureOr<std::vector<Literal>> arguments = makeArguments(*module, diagnostics);
  REQUIRE(succeeded(arguments));
  CHECK(disturbed(*module, *arguments, {1, 16}) == *interpret(*module, *arguments, diagnostics));
}

/// Bounds of what these make of bounded operands are those of both ends alone.
static bool isBoundedByEnds(const HloModule &module) {
  constexpr Opcode opcodes[] = {Opcode::Sort, Opcode::TopK, Opcode::SelectAndScatter, Opcode::Fft,
                                Opcode::TriangularSolve};
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      if (llvm::is_contained(opcodes, instr->opcode()))
        return true;
  return false;
}

TEST_CASE("disturbed runs of generated modules are admissible") {
  size_t compared = 0, moved = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    GeneratorOptions options;
    options.forKernels = seed % 2;
    auto module = generateModule(seed, options);
    if (isBoundedByEnds(*module))
      continue;
    DiagnosticEngine diagnostics;
    for (Regime regime : {Regime::Ordinary, Regime::Exact}) {
      llvm::FailureOr<std::vector<Literal>> arguments = makeArguments(*module, diagnostics, seed, {regime});
      if (failed(arguments))
        continue;
      llvm::FailureOr<BoundedResult> bounds = interpretBounds(*module, *arguments, Backend::Hloc, diagnostics);
      if (failed(bounds))
        continue;
      for (uint64_t run = 0; run < 4; ++run) {
        Literal result = disturbed(*module, *arguments, {seed + run, 1, run % 2 == 1, run == 2});
        for (const AdmissibleArray &leaf : bounds->leaves) {
          const Literal &actual = leafOf(result, leaf.path);
          int64_t numWrong = 0, first = -1;
          for (int64_t i = 0; i < leaf.value.numElements(); ++i) {
            if (!leaf.isUndecided(i) && !leaf.admits(i, actual, i) && numWrong++ == 0)
              first = i;
          }
          compared += size_t(leaf.value.numElements());
          moved += actual.bytes() != leaf.value.bytes();
          INFO("seed " << seed << ", run " << run << ", regime " << regimeName(regime).str() << ", first " << first);
          CHECK(numWrong == 0);
        }
      }
    }
  }
  CHECK(compared > 10000);
  CHECK(moved > 100);
}
