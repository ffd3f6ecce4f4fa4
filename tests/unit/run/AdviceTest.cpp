// What saves time by the estimate of what is compiled so, and that nothing is said where nothing does.

#include "hloc/run/Advice.h"

#include "hloc/parser/Parser.h"
#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace hloc;

namespace {

std::unique_ptr<HloModule> parse(const std::string &text) {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module =
      parseHloModule(std::make_shared<const SourceFile>("m.hlo", "HloModule m\n" + text), diagnostics);
  REQUIRE(module);
  return module;
}

const TargetInfo &target() {
  static const TargetInfo hopper = *findTarget("sm_90");
  return hopper;
}

EstimatedWay timesOf(const std::string &text, const CompilerOptions &options = {}) {
  EstimatedWay way = estimateWay(*parse(text), {options, target(), &deviceOf(target())}, test::systemToolchain());
  INFO(way.refusal);
  REQUIRE(way.module);
  return way;
}

std::vector<Advice> adviceOn(const std::string &text, std::optional<DiagnosticKind> kind, const char *about = ".") {
  AdviceOptions options;
  options.isWanted = [&](DiagnosticKind one) { return !kind || one == *kind; };
  options.about = about;
  return adviseOn(*parse(text), {{}, target(), &deviceOf(target())}, options, test::systemToolchain());
}

/// Of the advice with such words in its message, of which there has to be one: it is worth mentioning, and its numbers
/// are those of the module as it is and of `other`.
void check(const std::vector<Advice> &advice, const char *words, const std::string &text, const EstimatedWay &other) {
  std::string all;
  for (const Advice &one : advice)
    all += one.message + "\n";
  INFO(words << "\n" << all);
  auto found = std::find_if(advice.begin(), advice.end(),
                            [&](const Advice &one) { return one.message.find(words) != std::string::npos; });
  REQUIRE(found != advice.end());
  CHECK(found->now == timesOf(text).seconds);
  CHECK(found->then == other.seconds);
  CHECK(found->now - found->then >= 0.05e-6);
}

const std::string gathers =
    "ENTRY e { w = f32[2000,300] parameter(0)  i = s32[5000] parameter(1)\n"
    "t = f32[2000,300] tanh(w)  k = f32[2000,300] cosine(t)\n"
    "g = f32[5000,300] gather(k, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,300}\n"
    "ROOT r = f32[300,5000] transpose(g), dimensions={1,0} }";

std::string sums(const char *layout, int size) {
  const std::string shape = "f32[8,1000," + std::to_string(size) + "]" + layout;
  return "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
         "ENTRY e { p = " +
         shape + " parameter(0)  e = " + shape + " exponential(p)  z = f32[] constant(0)\n" + "s = f32[8," +
         std::to_string(size) + "] reduce(e, z), dimensions={1}, to_apply=add\n" + "ROOT n = f32[8," +
         std::to_string(size) + "] negate(s) }";
}

} // namespace

TEST_CASE("what a layout saves is what the module takes less that has it", "[advice]") {
  check(adviceOn(sums("", 77), DiagnosticKind::Layout), "`s` reduces `p` across memory: in layout {1,2,0} it saves ",
        sums("", 77), timesOf(sums("{1,2,0}", 77)));
  std::string turned = gathers;
  turned.replace(turned.find("ROOT r = f32[300,5000]"), 22, "ROOT r = f32[300,5000]{0,1}");
  check(adviceOn(gathers, DiagnosticKind::Layout), "result `r` has another order than `g`: in layout {0,1} it saves ",
        gathers, timesOf(turned));
}

TEST_CASE("what a dimension that is filled up saves is what the module takes less that has it", "[advice]") {
  check(adviceOn(sums("", 77), DiagnosticKind::Padding), "filled up to 80 it saves ", sums("", 77),
        timesOf(sums("", 80)));
  CHECK(adviceOn(sums("", 80), DiagnosticKind::Padding).empty()); // of 1000 there is little to save
  CHECK(adviceOn(gathers, DiagnosticKind::Padding).empty());      // dimensions depend on others
}

TEST_CASE("what choices save is what the module takes less with them", "[advice]") {
  CompilerOptions options;
  options.forced.edges = {{"", "k", "g", false}};
  check(adviceOn(gathers, DiagnosticKind::FusionEdge), "`k` is in the kernel of `g`: --force=split=k,g saves ", gathers,
        timesOf(gathers, options));
  options.forced.edges.clear();
  options.forced.kernels = {{"", "m", {std::nullopt, "loop", 0, 0}}};
  check(adviceOn(gathers, DiagnosticKind::PlanChoice), "`m` could be made otherwise: --force=m:hero=loop saves ",
        gathers, timesOf(gathers, options));

  const std::string product = "ENTRY e { a = f32[512,512] parameter(0)  b = f32[512,512] parameter(1)\n"
                              "ROOT d = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
  options = {};
  options.f32Dots = F32Dots::Tf32;
  check(adviceOn(product, DiagnosticKind::F32Dot), "`d` is multiplied as f32: --f32-dots=tf32 saves ", product,
        timesOf(product, options));
  options = {};
  options.dots = Multiplier::Auto;
  check(adviceOn(product, DiagnosticKind::PlanChoice), "`d` is multiplied by kernels: --dots=auto saves ", product,
        timesOf(product, options));
}

TEST_CASE("what a rule that changes floats saves is what the module takes less with it", "[advice]") {
  const std::string sum = "ENTRY e { p = f32[1024,1024] parameter(0)  z = f32[] constant(0)\n"
                          "b = f32[1024,1024] broadcast(z), dimensions={}  x = f32[1024,1024] exponential(p)\n"
                          "y = f32[1024,1024] add(x, b)  ROOT r = (f32[1024,1024], f32[1024,1024]) tuple(x, y) }";
  CompilerOptions options;
  options.fastMath = {"add-any-zero"};
  const std::vector<Advice> advice = adviceOn(sum, DiagnosticKind::FastMath);
  CHECK(advice.size() == 1);
  check(advice, "--fast-math=add-any-zero, which would apply, saves ", sum, timesOf(sum, options));
}

TEST_CASE("nothing is said where nothing is saved, or of something else than was asked about", "[advice]") {
  CHECK(adviceOn("ENTRY e { p = f32[1024,1024] parameter(0)  q = f32[1024,1024] parameter(1)\n"
                 "t = f32[1024,1024] transpose(p), dimensions={1,0}  ROOT s = f32[1024,1024] add(t, q) }",
                 std::nullopt)
            .empty());
  // It would apply, and what it saves hides behind memory.
  CHECK(adviceOn("ENTRY e { p = f32[1024,1024] parameter(0)  c = f32[] constant(3)\n"
                 "b = f32[1024,1024] broadcast(c), dimensions={}  ROOT d = f32[1024,1024] divide(p, b) }",
                 DiagnosticKind::FastMath)
            .empty());
  CHECK(adviceOn(gathers, DiagnosticKind::FusionEdge, "k").size() == 1);
  CHECK(adviceOn(gathers, DiagnosticKind::FusionEdge, "w").empty());
  CHECK(adviceOn(gathers, DiagnosticKind::Recomputation).empty());
}
