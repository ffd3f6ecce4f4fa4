// Collectives on the only device there is.
#include "OneOp.h"

#include "hloc/parser/Parser.h"

using namespace hloc;
using enum ElementType;

namespace {

llvm::FailureOr<Literal> exchange(const std::string &text, DiagnosticEngine &diagnostics,
                                  const std::string &header = "") {
  const std::string program = "HloModule m" + header +
                              "\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n" +
                              "ENTRY e { x = f32[4] parameter(0)\n" + text + " }\n";
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", program), diagnostics);
  REQUIRE(module);
  return interpret(*module, {numbers(F32, {4}, {1, 2, 3, 4})}, diagnostics);
}

} // namespace

TEST_CASE("a device that is alone receives what it sends") {
  for (const char *text : {"ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add",
                           "g = (f32[4], f32[4]) all-gather-start(x), replica_groups={{0}}, dimensions={0}\n"
                           "ROOT r = f32[4] all-gather-done(g)",
                           "a = f32[4] all-reduce-start(x), replica_groups={{0}}, to_apply=add\n"
                           "ROOT r = f32[4] all-reduce-done(a)",
                           "p = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), "
                           "source_target_pairs={{0,0}}\n ROOT r = f32[4] collective-permute-done(p)"}) {
    INFO(text);
    DiagnosticEngine diagnostics;
    auto result = exchange(text, diagnostics);
    REQUIRE(llvm::succeeded(result));
    CHECK(doubles(*result) == std::vector<double>{1, 2, 3, 4});
  }
  DiagnosticEngine diagnostics;
  auto silent = exchange("ROOT r = f32[4] collective-permute(x), source_target_pairs={}", diagnostics);
  REQUIRE(llvm::succeeded(silent));
  CHECK(doubles(*silent) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("what devices exchange with others is refused") {
  for (const char *text : {"ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add",
                           "ROOT r = f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}",
                           "g = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}\n"
                           "ROOT r = f32[8] all-gather-done(g)",
                           "ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}"}) {
    INFO(text);
    DiagnosticEngine diagnostics;
    CHECK(llvm::failed(exchange(text, diagnostics, ", replica_count=2")));
    CHECK(diagnostics.exitCode() == ExitCode::Unsupported);
  }
}
