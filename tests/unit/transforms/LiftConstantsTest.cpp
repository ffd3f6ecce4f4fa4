// Large constants become operands; small ones, equal elements and unknown ones stay where they are.
#include "RunPasses.h"

#include "fmt/format.h"
#include "hloc/transforms/ExtractFusions.h"

using namespace hloc;
using namespace hloc::test;

namespace {

/// `f32[n] constant({first, first + 1, ...})`.
std::string table(int64_t n, int64_t first = 0) {
  std::string text = fmt::format("f32[{}] constant({{", n);
  for (int64_t i = 0; i < n; ++i)
    text += fmt::format("{}{}", i ? ", " : "", first + i);
  return text + "})";
}

std::string body(const char *name, const std::string &constant) {
  return fmt::format("{} {{ p = f32[300] parameter(0)\n c = {}\n ROOT s = f32[300] add(p, c) }}\n", name, constant);
}

std::string fusion(const char *name, const char *operand, const char *body) {
  return fmt::format("{} = f32[300] fusion({}), kind=kLoop, calls={}\n", name, operand, body);
}

std::string moduleOf(const std::string &bodies, const std::string &entry) {
  return "HloModule m\n" + bodies + "ENTRY e { p = f32[300] parameter(0)\n" + entry + "}\n";
}

} // namespace

TEST_CASE("equal large constants become one operand of all that read them") {
  PassRun p(moduleOf(body("f", table(300)) + body("g", table(300)) + body("h", table(300, 1)),
                     fusion("x", "p", "f") + fusion("y", "x", "g") + "ROOT " + fusion("z", "y", "h")));
  CHECK(p.run(liftConstants) == PassResult::Changed);
  CHECK(p.body() ==
        "p = parameter()\nconstant.1.anon = constant()\nx = fusion(p constant.1.anon)\n"
        "y = fusion(x constant.1.anon)\nconstant.2.anon = constant()\nROOT z = fusion(y constant.2.anon)\n");
  for (const char *name : {"f", "g", "h"})
    CHECK(p.body(name) == "c = parameter()\np = parameter()\nROOT s = add(p c)\n");
  CHECK(p.module->entry()->instructions()[4]->literal().getDouble(0) == 1);
  CHECK(p.run(liftConstants) == PassResult::Unchanged);
}

// The verifier would have a body for each; the parser takes this.
TEST_CASE("a body that two fusions call is changed once, for both") {
  PassRun p(moduleOf(body("f", table(300)), fusion("x", "p", "f") + "ROOT " + fusion("y", "x", "f")));
  CHECK(liftConstants(*p.module, p.context) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nconstant.1.anon = constant()\nx = fusion(p constant.1.anon)\n"
                    "ROOT y = fusion(x constant.1.anon)\n");
  CHECK(p.module->findComputation("f")->numParameters() == 2);
}

TEST_CASE("constants of 1 KiB, of equal elements, and unknown ones stay in the code") {
  auto isKept = [](const std::string &constant) {
    PassRun p(moduleOf("f { c = " + constant + "\n ROOT n = f32[300] abs(c) }\n",
                       "ROOT x = f32[300] fusion(), kind=kLoop, calls=f\n"));
    return p.run(liftConstants) == PassResult::Unchanged;
  };
  CHECK(isKept("f32[300] constant({...})"));
  CHECK(!isKept(table(300)));
  std::string zeros = table(300);
  for (char &c : llvm::MutableArrayRef(zeros.data() + zeros.find('{'), zeros.size() - zeros.find('{')))
    if (isdigit(c))
      c = '0';
  CHECK(isKept(zeros));
  PassRun small("HloModule m\nf { c = " + table(256) + "\n ROOT n = f32[256] abs(c) }\n" +
                "ENTRY e { ROOT x = f32[256] fusion(), kind=kLoop, calls=f }\n");
  CHECK(small.run(liftConstants) == PassResult::Unchanged);
}

TEST_CASE("bodies that something else than fusions between kernels calls keep their constants") {
  PassRun p(moduleOf(body("f", table(300)) + "g { p = f32[300] parameter(0)\n ROOT " + fusion("i", "p", "f") + " }\n",
                     fusion("x", "p", "f") + "ROOT " + fusion("y", "x", "g")));
  CHECK(liftConstants(*p.module, p.context) == PassResult::Unchanged);
}

TEST_CASE("a fusion that is its constant alone hands it on") {
  PassRun p(moduleOf("f { ROOT c = " + table(300) + " }\n", "ROOT x = f32[300] fusion(), kind=kLoop, calls=f\n"));
  CHECK(p.run(liftConstants) == PassResult::Changed);
  CHECK(p.body("f") == "ROOT c = parameter()\n");
  CHECK(p.body() == "p = parameter()\nconstant.1.anon = constant()\nROOT x = fusion(constant.1.anon)\n");
}

TEST_CASE("extracted fusions keep the constants that they read") {
  PassRun p(
      moduleOf(body("f", table(300)) + body("g", table(300)), fusion("x", "p", "f") + "ROOT " + fusion("y", "x", "g")));
  CHECK(p.run(liftConstants) == PassResult::Changed);
  std::unique_ptr<HloModule> whole = std::move(p.module);
  p.module = extractFusions(*whole, {{whole->entry()->root(), ""}});
  p.requireSound();
  CHECK(p.body() == "x = parameter()\nconstant.1.anon = constant()\nROOT y = fusion(x constant.1.anon)\n");
}
