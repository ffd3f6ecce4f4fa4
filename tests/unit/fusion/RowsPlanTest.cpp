#include "hloc/fusion/FusionPlan.h"
#include "hloc/parser/Parser.h"

#include "fmt/format.h"
#include <catch2/catch.hpp>

using namespace hloc;

namespace {

constexpr const char *reducers =
    "greatest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n";

FusionPlan planOf(const std::string &body, const char *target = "sm_90") {
  DiagnosticEngine diagnostics;
  auto source = std::make_shared<const SourceFile>("test", reducers + ("ENTRY f {\n" + body + "}\n"));
  std::unique_ptr<HloModule> module = parseHloModule(source, diagnostics);
  REQUIRE(module);
  FusionGraph graph = *FusionGraph::build(*module->entry(), diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget(target), diagnostics);
  REQUIRE(succeeded(plan));
  return *plan;
}

/// Why the fusion is no work on rows; nothing if it is.
std::string rejection(const std::string &body) {
  for (const HeroRejection &rejection : planOf(body).rejections)
    if (rejection.hero == "rows")
      return rejection.reason;
  return "";
}

std::string softmax(int64_t rows, int64_t length, const char *target = "sm_90") {
  return planOf(fmt::format("x = f32[{0},{1}] parameter(0)\n least = f32[] constant(-inf)\n zero = f32[] constant(0)\n"
                            "m = f32[{0}] reduce(x, least), dimensions={{1}}, to_apply=greatest\n"
                            "ms = f32[{0},{1}] broadcast(m), dimensions={{0}}\n"
                            "d = f32[{0},{1}] subtract(x, ms)\n e = f32[{0},{1}] exponential(d)\n"
                            "s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n"
                            "ss = f32[{0},{1}] broadcast(s), dimensions={{0}}\n"
                            "ROOT r = f32[{0},{1}] divide(e, ss)\n",
                            rows, length),
                target)
      .toString();
}

const std::string start = "x = f32[100,64] parameter(0)\n zero = f32[] constant(0)\n"
                          "s = f32[100] reduce(x, zero), dimensions={1}, to_apply=sum\n";

} // namespace

TEST_CASE("threads of a row by its length, and more where rows are few") {
  CHECK(softmax(4096, 1024) ==
        "whole rows: 4096 of 1024; roots 0, 2 stages; 8 x 4 per thread, 32 threads a row, 8 rows "
        "a block; grid 512, block 256");
  CHECK(softmax(4096, 1024, "sm_100") == "whole rows: 4096 of 1024; roots 0, 2 stages; 4 x 8 per thread, 32 threads a "
                                         "row, 8 rows a block; grid 512, block 256");
  CHECK(softmax(100000, 127) == "whole rows: 100000 of 127; roots 0, 2 stages; 4 x 1 per thread, 32 threads a row, 8 "
                                "rows a block; grid 12500, block 256");
  CHECK(softmax(1000000, 64) == "whole rows: 1000000 of 64; roots 0, 2 stages; 8 x 4 per thread, 2 threads a row, 128 "
                                "rows a block; grid 7813, block 256");
  CHECK(softmax(4096, 16384) == "whole rows: 4096 of 16384; roots 0, 2 stages; 8 x 4 per thread, 512 threads a row, 1 "
                                "row a block; grid 4096, block 512, shared 128");
  CHECK(softmax(4096, 65536) == "whole rows: 4096 of 65536; roots 0, 2 stages; 16 x 4 per thread, read in each stage, "
                                "1024 threads a row, 1 row a block; grid 4096, block 1024, shared 256");
  CHECK(softmax(3, 33) == "whole rows: 3 of 33; roots 0, 2 stages; 2 x 1 per thread, 32 threads a row, 1 row a block; "
                          "grid 3, block 32");
  // Two whole vectors for each thread are more than a barrier costs; one and a part of another are not.
  CHECK(softmax(9, 1000) == "whole rows: 9 of 1000; roots 0, 2 stages; 4 x 4 per thread, 64 threads a row, 1 row a "
                            "block; grid 9, block 64, shared 16");
  CHECK(softmax(9, 1024) == "whole rows: 9 of 1024; roots 0, 2 stages; 2 x 4 per thread, 128 threads a row, 1 row a "
                            "block; grid 9, block 128, shared 32");
}

TEST_CASE("results of rows beside those of their elements, through reshapes of either") {
  CHECK(planOf(start + "c = f32[100,1] reshape(s)\n flat = f32[100] reshape(c)\n y = f32[10,10,64] reshape(x)\n"
                       "box = f32[10,10] reshape(flat)\n ss = f32[10,10,64] broadcast(box), dimensions={0,1}\n"
                       "d = f32[10,10,64] divide(y, ss)\n ROOT t = (f32[10,10,64], f32[100,1]) tuple(d, c)\n")
            .toString() == "whole rows: 100 of 64; roots 0, roots of rows 1, 1 stage; 1 x 4 per thread, 16 threads a "
                           "row, 2 rows a block; grid 50, block 32");
  // Nothing but results of rows: what is reduced depends on another reduction.
  CHECK(rejection(start + "ss = f32[100,64] broadcast(s), dimensions={0}\n d = f32[100,64] subtract(x, ss)\n"
                          "ROOT r = f32[100] reduce(d, zero), dimensions={1}, to_apply=sum\n") == "");
}

TEST_CASE("columns beside rows, in parts that a second kernel combines") {
  const std::string ofRows = "x = f32[2048,1024] parameter(0)\n zero = f32[] constant(0)\n"
                             "s = f32[2048] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                             "ss = f32[2048,1024] broadcast(s), dimensions={0}\n d = f32[2048,1024] subtract(x, ss)\n";
  const std::string ofColumns = "c = f32[1024] reduce(d, zero), dimensions={0}, to_apply=sum\n";
  FusionPlan plan = planOf(ofRows + ofColumns + "ROOT t = (f32[2048,1024], f32[1024]) tuple(d, c)\n");
  CHECK(plan.scratch.size() == 1);
  CHECK(plan.scratch.front().shape.dims().front() == 128);
  CHECK(plan.toString().find("columns: [2048,1024] over 0; roots 1; 2 rounds, 128 parts") != std::string::npos);
  // The last of 108 multiprocessors have no rows, and some rows of the last round are missing.
  CHECK(planOf(ofRows + ofColumns + "ROOT t = (f32[2048,1024], f32[1024]) tuple(d, c)\n", "sm_80")
            .toString()
            .find("3 rounds, 86 parts") != std::string::npos);
  auto ofShape = [](int64_t rows, int64_t length) {
    return fmt::format("x = f32[{0},{1}] parameter(0)\n zero = f32[] constant(0)\n"
                       "s = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum\n"
                       "ss = f32[{0},{1}] broadcast(s), dimensions={{0}}\n d = f32[{0},{1}] subtract(x, ss)\n"
                       "c = f32[{1}] reduce(d, zero), dimensions={{0}}, to_apply=sum\n"
                       "ROOT t = (f32[{0},{1}], f32[{1}]) tuple(d, c)\n",
                       rows, length);
  };
  CHECK(planOf(ofShape(2048, 4096)).toString().find("128 threads a row, 2 rows a block") != std::string::npos);
  CHECK(planOf(ofShape(2048, 4096)).toString().find("8 rounds, 128 parts") != std::string::npos);
  CHECK(rejection(ofShape(2050, 1023)) == "");
  CHECK(rejection(ofShape(2048, 65536)) == "rows are too long, or too few, to reduce columns beside them");
  // A few rounds of one block.
  FusionPlan few = planOf(ofShape(33, 129));
  CHECK(
      few.toString().find("32 threads a row, 16 rows a block; columns: [33,129] over 0; roots 1; 3 rounds, whole; grid "
                          "1, block 512") != std::string::npos);
  CHECK(few.steps.size() == 1);
  CHECK(few.scratch.empty());
  CHECK(planOf(ofShape(64, 129)).steps.size() == 1);
  CHECK(planOf(ofShape(65, 129)).steps.size() == 2);
  CHECK(planOf(ofShape(2, 3))
            .toString()
            .find("4 threads a row, 8 rows a block; columns: [2,3] over 0; roots 1; 1 round, "
                  "whole") != std::string::npos);
  // What columns come to is known after the last row.
  CHECK(rejection(ofRows + ofColumns + "n = f32[1024] negate(c)\n ROOT t = (f32[1024], f32[2048]) tuple(n, s)\n") ==
        "`n` reads what columns come to");
  CHECK(rejection(
            "x = f32[64,32] parameter(0)\n zero = f32[] constant(0)\n y = f32[32,64] parameter(1)\n"
            "s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
            "c = f32[64] reduce(y, zero), dimensions={0}, to_apply=sum\n ROOT t = (f32[64], f32[64]) tuple(s, c)\n") ==
        "columns are not those of the rows");
}

TEST_CASE("what is no work on rows") {
  CHECK(rejection("x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x)\n") == "there is no reduction");
  // The sum of another row.
  std::string others = "o = f32[100] reverse(s), dimensions={0}\n ss = f32[100,64] broadcast(o), dimensions={0}\n"
                       "ROOT r = f32[100,64] divide(x, ss)\n";
  CHECK(rejection(start + others) == "`o` reads a reduction at other rows than its own");
  CHECK(rejection("x = f32[64,64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                  "ss = f32[64,64] broadcast(s), dimensions={1}\n ROOT r = f32[64,64] divide(x, ss)\n") ==
        "`ss` reads a reduction at other rows than its own");
  CHECK(rejection("x = f32[64,64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={0}, to_apply=sum\n"
                  "ss = f32[64,64] broadcast(s), dimensions={1}\n ROOT r = f32[64,64] divide(x, ss)\n") ==
        "there is no reduction of rows");
  // Columns of memory, though the last dimension is reduced.
  CHECK(rejection("x = f32[64,64]{0,1} parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                  "ss = f32[64,64]{0,1} broadcast(s), dimensions={0}\n ROOT r = f32[64,64]{0,1} divide(x, ss)\n") ==
        "there is no reduction of rows");
  // An output in another order than the rows.
  CHECK(rejection(start +
                  "ss = f32[100,64]{0,1} broadcast(s), dimensions={0}\n ROOT r = f32[100,64]{0,1} negate(ss)\n") ==
        "`ss` reads a reduction at other rows than its own");
  CHECK(rejection(start + "ss = f32[100,64] broadcast(s), dimensions={0}\n d = f32[100,64] divide(x, ss)\n"
                          "ROOT r = f32[100,32] slice(d), slice={[0:100], [0:32]}\n") ==
        "`r` reads a reduction at other rows than its own");
  // The reduction begins with what another one comes to.
  CHECK(rejection("x = f32[64] parameter(0)\n zero = f32[] constant(0)\n"
                  "s = f32[] reduce(x, zero), dimensions={0}, to_apply=sum\n"
                  "t = f32[] reduce(x, s), dimensions={0}, to_apply=sum\n ts = f32[64] broadcast(t), dimensions={}\n"
                  "ROOT r = f32[64] divide(x, ts)\n") == "`t` reads a reduction at other rows than its own");
}

TEST_CASE("no output takes the place of what lanes without an element read") {
  DiagnosticEngine diagnostics;
  auto source = std::make_shared<const SourceFile>("test", reducers + ("ENTRY f {\n" + start +
                                                                       "ss = f32[100,64] broadcast(s), dimensions={0}\n"
                                                                       "ROOT r = f32[100,64] divide(x, ss)\n}\n"));
  std::unique_ptr<HloModule> module = parseHloModule(source, diagnostics);
  REQUIRE(module);
  FusionGraph graph = *FusionGraph::build(*module->entry(), diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {0u}, *findTarget("sm_90"), diagnostics);
  REQUIRE(succeeded(plan));
  CHECK(!plan->aliasing.front());
}

TEST_CASE("what several stages read, each of its elements where it lies, is held from the first of them on") {
  auto heldOf = [](const std::string &body) {
    FusionPlan plan = planOf("x = f32[100,64] parameter(0)\n y = f32[100,64] parameter(1)\n zero = f32[] constant(0)\n"
                             "z = f32[100,64] parameter(2)\n m = f32[100] reduce(x, zero), dimensions={1}, "
                             "to_apply=greatest\n ms = f32[100,64] broadcast(m), dimensions={0}\n" +
                             body);
    std::string held;
    for (const HeldParameter &each : std::get<RowsPlan>(std::get<KernelPlan>(plan.steps.front()).plan).held)
      held += fmt::format("{} from {} ", each.parameter, each.firstStage);
    return held;
  };
  const std::string sum = "s = f32[100] reduce(d, zero), dimensions={1}, to_apply=sum\n"
                          "ss = f32[100,64] broadcast(s), dimensions={0}\n";
  // Of z there is one reader.
  CHECK(heldOf("t = f32[100,64] multiply(x, y)\n d = f32[100,64] subtract(t, ms)\n" + sum +
               "e = f32[100,64] multiply(z, ss)\n ROOT r = f32[100,64] divide(e, y)\n") == "0 from 0 1 from 1 ");
  CHECK(heldOf("d = f32[100,64] subtract(x, ms)\n" + sum + "ROOT r = f32[100,64] divide(d, ss)\n") == "0 from 0 ");
  // With other dimensions, but in the same order; not in another one, be it only for one of its readers.
  CHECK(heldOf("u = f32[6400] reshape(y)\n v = f32[100,64] reshape(u)\n d = f32[100,64] multiply(v, ms)\n" + sum +
               "ROOT r = f32[100,64] add(ss, y)\n") == "1 from 1 ");
  CHECK(heldOf("v = f32[100,64] reverse(y), dimensions={1}\n d = f32[100,64] multiply(y, ms)\n" + sum +
               "q = f32[100,64] multiply(v, ss)\n ROOT r = f32[100,64] divide(q, y)\n") == "");
  // Columns read it when the outputs are stored.
  CHECK(heldOf("c = f32[64] reduce(y, zero), dimensions={0}, to_apply=sum\n d = f32[100,64] multiply(y, ms)\n"
               "ROOT r = (f32[100,64], f32[64]) tuple(d, c)\n") == "1 from 1 ");
}

TEST_CASE("what is the same in all rows is shared by the rows of a block") {
  auto norm = [](int64_t rows, int64_t length, const std::string &weights) {
    return planOf(fmt::format("x = f32[{0},{1}] parameter(0)\n zero = f32[] constant(0)\n{2}"
                              "s = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum\n"
                              "ss = f32[{0},{1}] broadcast(s), dimensions={{0}}\n d = f32[{0},{1}] divide(x, ss)\n"
                              "ROOT r = f32[{0},{1}] multiply(d, ws)\n",
                              rows, length, weights))
        .toString();
  };
  auto weights = [](int64_t rows, int64_t length) {
    return fmt::format("w = f32[{1}] parameter(1)\n ws = f32[{0},{1}] broadcast(w), dimensions={{1}}\n", rows, length);
  };
  auto shares = [](const std::string &plan) { return plan.find("shared by rows") != std::string::npos; };
  CHECK(norm(2048, 768, weights(2048, 768)) ==
        "whole rows: 2048 of 768; roots 0, 1 stage; 6 x 4 per thread, 32 threads a row, 8 rows a block; 1 of columns "
        "shared by rows; grid 256, block 256, shared 4096");
  CHECK(norm(512, 4096, weights(512, 4096)) ==
        "whole rows: 512 of 4096; roots 0, 1 stage; 8 x 4 per thread, 128 threads a row, 4 rows a block; 1 of columns "
        "shared by rows; grid 128, block 512, shared 16448");
  // Too few rows for blocks of several, too long for registers, a vector a thread, a row alone.
  CHECK_FALSE(shares(norm(200, 768, weights(200, 768))));
  CHECK_FALSE(shares(norm(2048, 65536, weights(2048, 65536))));
  CHECK_FALSE(shares(norm(2048, 128, weights(2048, 128))));
  CHECK_FALSE(shares(norm(1, 768, weights(1, 768))));
  // Nothing is read, or something else in each row, or other columns, too.
  CHECK_FALSE(shares(norm(2048, 768,
                          "w = f32[768] iota(), iota_dimension=0\n"
                          "ws = f32[2048,768] broadcast(w), dimensions={1}\n")));
  CHECK_FALSE(shares(norm(768, 768, "w = f32[768] parameter(1)\n ws = f32[768,768] broadcast(w), dimensions={0}\n")));
  CHECK_FALSE(shares(norm(2048, 768,
                          "w = f32[768] parameter(1)\n wb = f32[2048,768] broadcast(w), dimensions={1}\n"
                          "back = f32[2048,768] reverse(wb), dimensions={1}\n"
                          "ws = f32[2048,768] add(wb, back)\n")));
  // Rows of several dimensions, in another order than that of the weights; what is computed of these.
  CHECK(shares(planOf("x = f32[2048,8,96] parameter(0)\n zero = f32[] constant(0)\n w = f32[96,8] parameter(1)\n"
                      "n = f32[96,8] negate(w)\n ws = f32[2048,8,96] broadcast(n), dimensions={2,1}\n"
                      "s = f32[2048] reduce(x, zero), dimensions={1,2}, to_apply=sum\n"
                      "ss = f32[2048,8,96] broadcast(s), dimensions={0}\n d = f32[2048,8,96] divide(x, ss)\n"
                      "ROOT r = f32[2048,8,96] multiply(d, ws)\n")
                   .toString()));
}

TEST_CASE("rows of many operands and their columns have a plan, whatever a thread holds") {
  for (int operands : {1, 15, 31, 47, 48, 49, 96, 200, 1000})
    for (int rows : {2, 4, 33}) {
      std::string body = fmt::format("zero = f32[] constant(0)\n t0 = f32[{},768] parameter(0)\n", rows);
      for (int i = 1; i < operands; ++i)
        body +=
            fmt::format("p{0} = f32[{1},768] parameter({0})\n t{0} = f32[{1},768] add(t{2}, p{0})\n", i, rows, i - 1);
      body += fmt::format("s = f32[{0}] reduce(t{1}, zero), dimensions={{1}}, to_apply=sum\n"
                          "ss = f32[{0},768] broadcast(s), dimensions={{0}}\n d = f32[{0},768] subtract(t{1}, ss)\n"
                          "c = f32[768] reduce(d, zero), dimensions={{0}}, to_apply=sum\n"
                          "ROOT r = (f32[{0},768], f32[768]) tuple(d, c)\n",
                          rows, operands - 1);
      FusionPlan plan = planOf(body);
      INFO(plan.toString());
      for (const FusionStep &step : plan.steps)
        if (const auto *kernel = std::get_if<KernelPlan>(&step))
          CHECK((kernel->launch.block.x >= 32 && kernel->launch.grid.x > 0));
    }
}
