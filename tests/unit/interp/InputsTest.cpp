#include "hloc/interp/Inputs.h"

#include "hloc/parser/Parser.h"

#include "OneOp.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace hloc;

namespace {

std::vector<Literal> argumentsOf(const char *text, uint64_t seed = 0) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  auto arguments = makeArguments(*module, diagnostics, seed);
  REQUIRE(llvm::succeeded(arguments));
  return *arguments;
}

} // namespace

TEST_CASE("the same seed gives the same arguments, another gives others") {
  const char *text = "HloModule m\nENTRY e { ROOT p = f32[100] parameter(0) }\n";
  CHECK(argumentsOf(text, 1) == argumentsOf(text, 1));
  CHECK_FALSE(argumentsOf(text, 1) == argumentsOf(text, 2));
}

TEST_CASE("elementwise modules get special values, sums do not") {
  auto count = [](const Literal &literal) {
    auto values = doubles(literal);
    return std::count_if(values.begin(), values.end(), [](double x) { return !std::isfinite(x); });
  };
  CHECK(count(argumentsOf("HloModule m\nENTRY e { p = f32[1000] parameter(0) ROOT n = f32[1000] negate(p) }\n")[0]) >
        5);
  CHECK(count(argumentsOf("HloModule m\nENTRY e { p = f32[10,100] parameter(0) ROOT d = f32[] dot(p, p), "
                          "lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1} }\n")[0]) == 0);
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
