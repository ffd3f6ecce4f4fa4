#include "hloc/reduce/Reduce.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace hloc;

namespace {

/// A candidate does it if its text says so.
class TextJudge : public ReduceJudge {
public:
  TextJudge(std::function<bool(llvm::StringRef)> does, size_t width = 1) : does(std::move(does)), numAtOnce(width) {}
  size_t width() const override { return numAtOnce; }
  std::optional<size_t> firstOf(llvm::ArrayRef<std::string> texts) override {
    for (size_t i = 0; i < texts.size(); ++i)
      if (does(texts[i]))
        return i;
    return std::nullopt;
  }

private:
  std::function<bool(llvm::StringRef)> does;
  size_t numAtOnce;
};

std::string reduced(llvm::StringRef text, std::function<bool(llvm::StringRef)> does, size_t width = 1) {
  TextJudge judge(std::move(does), width);
  ReduceObserver nobody;
  std::optional<Reduction> reduction = reduceHlo(text, judge, nobody);
  REQUIRE(reduction);
  CHECK(reduction->isSettled);
  return reduction->text;
}

bool has(llvm::StringRef text, llvm::StringRef part) { return text.contains(part); }

const char *const chain = R"(HloModule long_name
ENTRY e {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  a = f32[8,16] exponential(p)
  b = f32[8,16] tanh(a)
  c = f32[8,16] multiply(b, q)
  d = f32[16,8] transpose(c), dimensions={1,0}
  ROOT t = (f32[16,8], f32[8,16]) tuple(d, a)
})";

} // namespace

TEST_CASE("what is read of the rest becomes a parameter, and the result is what is left") {
  const std::string text = reduced(chain, [](llvm::StringRef text) { return has(text, " tanh("); });
  CHECK(has(text, "HloModule m"));
  CHECK(has(text, "%p0 = f32[1,1]{1,0} parameter(0)"));
  CHECK(has(text, "ROOT %tanh.1 = f32[1,1]{1,0} tanh(%p0)"));
  CHECK(!has(text, "multiply"));
}

TEST_CASE("statements of PTX go, and nothing outside of bodies") {
  TextJudge judge([](llvm::StringRef text) { return has(text, "add.f32") && has(text, ".visible"); });
  ReduceObserver nobody;
  std::optional<Reduction> reduction = reducePtx(
      ".version 8.0\n.visible .entry k()\n{\n\tmov.u32 %r1, 0;\n\tadd.f32 %f1, %f2, %f3;\n\tret;\n}\n", judge, nobody);
  REQUIRE(reduction);
  CHECK(reduction->text == ".version 8.0\n.visible .entry k()\n{\n\tadd.f32 %f1, %f2, %f3;\n}\n");
  CHECK(reduction->before.instructions == 3);
  CHECK(reduction->after.instructions == 1);
}

TEST_CASE("the same verdicts, the same result, however many candidates are shown at once") {
  auto does = [](llvm::StringRef text) { return has(text, " tanh(") && has(text, " transpose("); };
  CHECK(reduced(chain, does, 1) == reduced(chain, does, 5));
}

TEST_CASE("loops, conditionals, calls and fusions go where only what they compute matters") {
  const std::string text = reduced(R"(HloModule m
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] cosine(x)
  ROOT r = (s32[], f32[8]) tuple(next, y)
}
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, p)
  w = (s32[], f32[8]) while(t), condition=condition, body=body
  ROOT x = f32[8] get-tuple-element(w), index=1
})",
                                   [](llvm::StringRef text) { return has(text, " cosine("); });
  CHECK(!has(text, "while"));
  CHECK(has(text, "ROOT %cosine.1 = f32[1]{0} cosine(%p0)"));
}

TEST_CASE("of a loop that matters the state that nothing reads goes") {
  const std::string text = reduced(R"(HloModule m
body {
  s = (s32[], f32[8], bf16[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  z = bf16[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] cosine(x)
  ROOT r = (s32[], f32[8], bf16[4]) tuple(next, y, z)
}
condition {
  s = (s32[], f32[8], bf16[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  q = bf16[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8], bf16[4]) tuple(zero, p, q)
  w = (s32[], f32[8], bf16[4]) while(t), condition=condition, body=body
  ROOT x = f32[8] get-tuple-element(w), index=1
})",
                                   [](llvm::StringRef text) { return has(text, " while(") && has(text, " cosine("); });
  CHECK(!has(text, "bf16"));
  CHECK(!has(text, "[8]"));
}

TEST_CASE("inside of a fusion values become its parameters, and types and literals plain") {
  const std::string text = reduced(R"(HloModule m
f {
  a = bf16[8] parameter(0)
  b = bf16[8] parameter(1)
  c = bf16[8] multiply(a, b)
  k = bf16[] constant(3.5)
  l = bf16[8] broadcast(k), dimensions={}
  d = bf16[8] add(c, l)
  ROOT e = bf16[8] tanh(d)
}
ENTRY e {
  p = bf16[8] parameter(0), metadata={op_name="jit(f)/a"}
  q = bf16[8] parameter(1)
  ROOT r = bf16[8] fusion(p, q), kind=kLoop, calls=f
})",
                                   [](llvm::StringRef text) { return has(text, " fusion(") && has(text, " tanh("); });
  for (const char *gone : {"multiply", "add", "constant", "bf16", "metadata", "[8]"})
    CHECK(!has(text, gone));
}
