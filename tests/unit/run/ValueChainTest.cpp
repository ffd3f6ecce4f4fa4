// Whether the values that led to an element are found, each at the index that it depends on.
#include "run/ValueChain.h"

#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

/// Arguments count from 1, each on.
ValueChain chainOfText(const std::string &text, std::vector<int64_t> index, std::vector<int64_t> leaf = {}) {
  Parsed parsed(text);
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  std::vector<Literal> arguments;
  for (const HloInstruction *parameter : parsed.module->entry()->parameters()) {
    Literal &argument = arguments.emplace_back(parameter->shape());
    for (int64_t i = 0; i < argument.numElements(); ++i)
      isFloat(parameter->shape().elementType()) ? argument.setDouble(i, double(i + 1)) : argument.setInt(i, i + 1);
  }
  Mismatch wrong;
  wrong.leaf.assign(leaf.begin(), leaf.end());
  wrong.index.assign(index.begin(), index.end());
  return chainOf(*parsed.module, arguments, wrong, {});
}

std::string line(const ChainValue &value, const ValueChain &chain) {
  std::string text =
      fmt::format("{}:{} {}[{}] {}", value.line, value.opcode, value.name, fmt::join(value.index, ","), value.value);
  for (unsigned operand : value.operands)
    text += " " + chain.values.at(operand).name;
  if (value.numTerms)
    text += fmt::format(" of {}: {}", value.numTerms, fmt::join(value.terms, "; "));
  return value.end.empty() ? text : text + " (" + value.end + ")";
}

std::vector<std::string> lines(const ValueChain &chain) {
  CHECK(chain.missing == "");
  std::vector<std::string> all;
  for (const ChainValue &value : chain.values)
    all.push_back(line(value, chain));
  return all;
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("value chain: through a fusion, from its operands to the element") {
  const ValueChain chain = chainOfText(R"(HloModule m
f { x = f32[2,3] parameter(0)
 h = f32[] constant(0.5)
 b = f32[2,3] broadcast(h), dimensions={}
 y = f32[2,3] multiply(x, b)
 ROOT t = f32[3,2] transpose(y), dimensions={1,0} }
ENTRY e { p = f32[2,3] parameter(0)
 ROOT r = f32[3,2] fusion(p), kind=kLoop, calls=f }
)",
                                       {2, 1});
  CHECK(lines(chain) == Lines{"7:parameter p[1,2] 6", "3:constant h[] 0.5", "4:broadcast b[1,2] 0.5 h",
                              "5:multiply y[1,2] 3 p b", "6:transpose t[2,1] 3 y"});
  CHECK(chain.values.back().type == "f32[3,2]");
}

TEST_CASE("value chain: of a sum the terms that matter most, and the first of them") {
  CHECK(lines(chainOfText(R"(HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[2,5] parameter(0)
 n = f32[2,5] negate(x)
 z = f32[] constant(0)
 ROOT r = f32[2] reduce(n, z), dimensions={1}, to_apply=add }
)",
                          {1})) == Lines{"5:parameter x[1,4] 10", "6:negate n[1,4] -10 x", "7:constant z[] 0",
                                         "8:reduce r[1] -40 n z of 5: n[1, 4] -10; n[1, 3] -9; n[1, 2] -8"});
  CHECK(lines(chainOfText(R"(HloModule m
ENTRY e { x = f32[2,2,3] parameter(0)
 y = f32[2,3,2] parameter(1)
 ROOT d = f32[2,2,2] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }
)",
                          {1, 0, 1})) ==
        Lines{"2:parameter x[1,0,2] 9", "3:parameter y[1,2,1] 12",
              "4:dot d[1,0,1] 244 x y of 3: x[1, 0, 2] 9 times y[1, 2, 1] 12; x[1, 0, 1] 8 times y[1, 1, 1] 10; "
              "x[1, 0, 0] 7 times y[1, 0, 1] 8"});
}

TEST_CASE("value chain: of the largest of numbers it is that one") {
  CHECK(lines(chainOfText(R"(HloModule m
most { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT s = s32[] maximum(a, b) }
ENTRY e { x = s32[4] parameter(0)
 n = s32[4] negate(x)
 z = s32[] constant(-9)
 ROOT r = s32[] reduce(n, z), dimensions={0}, to_apply=most }
)",
                          {}))
            .back() == "8:reduce r[] -1 n z of 4: n[0] -1; n[1] -2; n[2] -3");
}

TEST_CASE("value chain: pieces are followed to the one that the element is of") {
  const std::string text = R"(HloModule m
ENTRY e { x = f32[4] parameter(0)
 i = s32[] parameter(1)
 s = f32[2] slice(x), slice={[1:4:2]}
 v = f32[4] reverse(x), dimensions={0}
 c = f32[6] concatenate(s, v), dimensions={0}
 z = f32[] constant(7)
 p = f32[9] pad(c, z), padding=1_2_0
 d = f32[3] dynamic-slice(p, i), dynamic_slice_sizes={3}
 u = f32[9] dynamic-update-slice(p, d, i)
 k = pred[9] compare(u, p), direction=EQ
 w = f32[9] select(k, u, p)
 ROOT t = (f32[9], f32[9]) tuple(p, w) }
)";
  CHECK(lines(chainOfText(text, {2}, {0})) ==
        Lines{"2:parameter x[3] 4", "4:slice s[1] 4 x", "6:concatenate c[1] 4 s", "8:pad p[2] 4 c"});
  CHECK(lines(chainOfText(text, {3}, {0})) ==
        Lines{"2:parameter x[3] 4", "5:reverse v[0] 4 x", "6:concatenate c[2] 4 v", "8:pad p[3] 4 c"});
  CHECK(lines(chainOfText(text, {8}, {0})) == Lines{"7:constant z[] 7", "8:pad p[8] 7 z"});
  // The one that is chosen alone; where the slice begins is s32[] 1.
  const Lines chosen = lines(chainOfText(text, {2}, {1}));
  CHECK(chosen[chosen.size() - 4] == "9:dynamic-slice d[1] 4 p i");
  CHECK(chosen.back() == "12:select w[2] 4 k u");
}

TEST_CASE("value chain: it ends where nothing is followed, and where it grows too long") {
  CHECK(lines(chainOfText(R"(HloModule m
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[4] parameter(0)
 ROOT r = f32[4] sort(x), dimensions={0}, to_apply=less }
)",
                          {1})) == Lines{"6:sort r[1] 2 (what a sort is made of is not followed)"});
  std::string text = "HloModule m\nENTRY e { x0 = f32[4] parameter(0)\n";
  for (int i = 1; i < 60; ++i)
    text += fmt::format("{}x{} = f32[4] negate(x{})\n", i == 59 ? "ROOT " : "", i, i - 1);
  const ValueChain chain = chainOfText(text + "}\n", {1});
  CHECK(chain.values.size() == 40);
  CHECK(chain.values.front().end == "more than 40 values led here");
  CHECK(chain.values.back().name == "x59");
  CHECK(chainOfText("HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT b = f32[9999,9999] broadcast(x), "
                    "dimensions={}\n}\n",
                    {1, 1})
            .missing == "all values together are larger than 256 MiB");
}
