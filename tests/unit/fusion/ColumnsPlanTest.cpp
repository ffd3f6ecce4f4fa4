#include "hloc/fusion/FusionPlan.h"
#include "hloc/parser/Parser.h"

#include "fmt/format.h"
#include <catch2/catch.hpp>

using namespace hloc;

namespace {

constexpr const char *reducers =
    "greatest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n";

FusionPlan planOf(const std::string &body, const FusionAliasing &offers = {}, const char *target = "sm_90") {
  DiagnosticEngine diagnostics;
  auto source = std::make_shared<const SourceFile>("test", reducers + ("ENTRY f {\n" + body + "}\n"));
  std::unique_ptr<HloModule> module = parseHloModule(source, diagnostics);
  REQUIRE(module);
  FusionGraph graph = *FusionGraph::build(*module->entry(), diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, *findTarget(target), diagnostics);
  REQUIRE(succeeded(plan));
  return *plan;
}

/// Why the fusion is no work on columns; nothing if it is.
std::string rejection(const std::string &body) {
  for (const HeroRejection &rejection : planOf(body).rejections)
    if (rejection.hero == "columns")
      return rejection.reason;
  return "";
}

/// Of f32[slices,rows,columns] over the rows.
std::string softmaxBody(int64_t slices, int64_t rows, int64_t columns) {
  return fmt::format("x = f32[{0},{1},{2}] parameter(0)\n least = f32[] constant(-inf)\n zero = f32[] constant(0)\n"
                     "m = f32[{0},{2}] reduce(x, least), dimensions={{1}}, to_apply=greatest\n"
                     "ms = f32[{0},{1},{2}] broadcast(m), dimensions={{0,2}}\n"
                     "d = f32[{0},{1},{2}] subtract(x, ms)\n e = f32[{0},{1},{2}] exponential(d)\n"
                     "s = f32[{0},{2}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n"
                     "ss = f32[{0},{1},{2}] broadcast(s), dimensions={{0,2}}\n"
                     "ROOT r = f32[{0},{1},{2}] divide(e, ss)\n",
                     slices, rows, columns);
}

std::string softmax(int64_t slices, int64_t rows, int64_t columns, const char *target = "sm_90") {
  return planOf(softmaxBody(slices, rows, columns), {}, target).toString();
}

const std::string start = "x = f32[64,100] parameter(0)\n zero = f32[] constant(0)\n"
                          "s = f32[100] reduce(x, zero), dimensions={0}, to_apply=sum\n";

} // namespace

TEST_CASE("sectors of columns where they are few, lines where they are many or begin anywhere") {
  CHECK(softmax(1, 512, 1024) == "whole columns: 1024 of 512; roots 0, 2 stages; 4 x 4 per thread, 2 lanes by 128 "
                                 "groups a block; grid 128, block 256, shared 512");
  CHECK(softmax(1, 512, 65536) == "whole columns: 65536 of 512; roots 0, 2 stages; 8 x 4 per thread, 8 lanes by 64 "
                                  "groups a block; grid 2048, block 512, shared 4096");
  CHECK(softmax(1, 512, 65536, "sm_100") == "whole columns: 65536 of 512; roots 0, 2 stages; 4 x 8 per thread, 4 lanes "
                                            "by 128 groups a block; grid 2048, block 512, shared 4096");
  CHECK(softmax(8, 128, 512) == "whole columns: 4096 of 128 in 8 slices; roots 0, 2 stages; 2 x 4 per thread, 4 lanes "
                                "by 64 groups a block; grid 256, block 256, shared 1024");
  CHECK(softmax(3, 33, 4099) == "whole columns: 12297 of 33 in 3 slices; roots 0, 2 stages; 5 x 1 per thread, 32 lanes "
                                "by 8 groups a block; grid 385, block 256, shared 2048");
  CHECK(softmax(1000, 4, 1024) == "whole columns: 1024000 of 4 in 1000 slices; roots 0, 2 stages; 4 x 4 per thread, "
                                  "256 lanes by 1 group a block; grid 1000, block 256");
  CHECK(softmax(1, 2, 3) ==
        "whole columns: 3 of 2; roots 0, 2 stages; 1 x 1 per thread, 16 lanes by 2 groups a block; grid 1, block 32");
  CHECK(softmax(1, 2048, 8) == "whole columns: 8 of 2048; roots 0, 2 stages; 8 x 4 per thread, 2 lanes by 256 groups a "
                               "block; grid 1, block 512, shared 1024");
}

TEST_CASE("columns that do not fit into the registers of a block") {
  CHECK(softmax(1, 2048, 4096) == "whole columns: 4096 of 2048; roots 0, 2 stages; 8 x 4 per thread, 2 lanes by 256 "
                                  "groups a block; grid 512, block 512, shared 1024");
  CHECK(softmax(1, 2049, 4096) == "whole columns: 4096 of 2049; roots 0, 2 stages; 9 x 4 per thread, read in each "
                                  "stage, 4 lanes by 256 groups a block; grid 256, block 1024, shared 4096");
  CHECK(softmax(1, 100000, 3) == "whole columns: 3 of 100000; roots 0, 2 stages; 391 x 1 per thread, read in each "
                                 "stage, 4 lanes by 256 groups a block; grid 1, block 1024, shared 1024");
}

TEST_CASE("results of columns beside those of their elements, through reshapes of either") {
  CHECK(planOf(start + "c = f32[1,100] reshape(s)\n flat = f32[100] reshape(c)\n y = f32[8,8,100] reshape(x)\n"
                       "ss = f32[8,8,100] broadcast(flat), dimensions={2}\n"
                       "d = f32[8,8,100] divide(y, ss)\n ROOT t = (f32[8,8,100], f32[1,100]) tuple(d, c)\n")
            .toString() == "whole columns: 100 of 64; roots 0, roots of columns 1, 1 stage; 2 x 4 per thread, 8 lanes "
                           "by 32 groups a block; grid 4, block 256, shared 1024");
  // Nothing but results of columns: what is reduced depends on another reduction.
  CHECK(rejection(start + "ss = f32[64,100] broadcast(s), dimensions={1}\n d = f32[64,100] subtract(x, ss)\n"
                          "ROOT r = f32[100] reduce(d, zero), dimensions={0}, to_apply=sum\n") == "");
  // Rows in HLO, columns in memory.
  CHECK(rejection("x = f32[64,64]{0,1} parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                  "ss = f32[64,64]{0,1} broadcast(s), dimensions={0}\n ROOT r = f32[64,64]{0,1} divide(x, ss)\n") ==
        "");
}

TEST_CASE("what is no work on columns") {
  CHECK(rejection("x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x)\n") == "there is no reduction");
  // The sum of another column.
  CHECK(rejection(start + "o = f32[100] reverse(s), dimensions={0}\n ss = f32[64,100] broadcast(o), dimensions={1}\n"
                          "ROOT r = f32[64,100] divide(x, ss)\n") ==
        "`o` reads a reduction at other columns than its own");
  CHECK(rejection("x = f32[64,64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={0}, to_apply=sum\n"
                  "ss = f32[64,64] broadcast(s), dimensions={0}\n ROOT r = f32[64,64] divide(x, ss)\n") ==
        "`ss` reads a reduction at other columns than its own");
  // Of other slices: those of the array are 2, of 64 columns.
  CHECK(rejection("x = f32[2,64,64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[2,64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                  "b = f32[128] reshape(s)\n ss = f32[64,128] broadcast(b), dimensions={1}\n"
                  "t = f32[2,64,64] reshape(ss)\n ROOT r = f32[2,64,64] divide(x, t)\n") ==
        "`ss` reads a reduction at other columns than its own");
  CHECK(rejection("x = f32[64,64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                  "ss = f32[64,64] broadcast(s), dimensions={1}\n ROOT r = f32[64,64] divide(x, ss)\n") ==
        "what is reduced is no column of memory");
  // Columns in pieces that lie apart.
  CHECK(rejection("x = f32[4,5,6,7] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[5,7] reduce(x, zero), dimensions={0,2}, to_apply=sum\n"
                  "ss = f32[4,5,6,7] broadcast(s), dimensions={1,3}\n ROOT r = f32[4,5,6,7] divide(x, ss)\n") ==
        "what is reduced is no column of memory");
  CHECK(rejection(start + "ss = f32[64,100] broadcast(s), dimensions={1}\n d = f32[64,100] divide(x, ss)\n"
                          "y = f32[7] parameter(1)\n ROOT t = (f32[64,100], f32[7]) tuple(d, y)\n") ==
        "output 1 has neither an element a column nor those of all columns");
}

TEST_CASE("no output takes the place of what threads without an element of a column read") {
  CHECK(!planOf(start + "ss = f32[64,100] broadcast(s), dimensions={1}\n ROOT r = f32[64,100] divide(x, ss)\n", {0u})
             .aliasing.front());
}
