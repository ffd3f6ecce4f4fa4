// How often loops go round: what the pass says is what the interpreter counts.
#include "RunPasses.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/interp/Interpreter.h"

#include "fmt/format.h"

using namespace hloc;
using namespace hloc::test;

namespace {

/// `i` goes from `first` by `step` while `i direction last`; the second leaf counts the rounds, the third is `last`.
std::string loopText(const char *type, int64_t first, const char *next, const char *test) {
  return fmt::format("HloModule m\n"
                     "cond {{ t = ({0}[], s32[], {0}[]) parameter(0)\n i = {0}[] get-tuple-element(t), index=0\n"
                     " l = {0}[] get-tuple-element(t), index=2\n ROOT c = pred[] compare{3} }}\n"
                     "body {{ t = ({0}[], s32[], {0}[]) parameter(0)\n i = {0}[] get-tuple-element(t), index=0\n"
                     " n = s32[] get-tuple-element(t), index=1\n l = {0}[] get-tuple-element(t), index=2\n"
                     " one = s32[] constant(1)\n {2}\n k = s32[] add(n, one)\n"
                     " ROOT r = ({0}[], s32[], {0}[]) tuple(j, k, l) }}\n"
                     "ENTRY e {{ i = {0}[] constant({1})\n z = s32[] constant(0)\n l = {0}[] constant(20)\n"
                     " t = ({0}[], s32[], {0}[]) tuple(i, z, l)\n"
                     " w = ({0}[], s32[], {0}[]) while(t), condition=cond, body=body\n"
                     " ROOT n = s32[] get-tuple-element(w), index=1 }}\n",
                     type, first, next, test);
}

std::optional<uint64_t> countOf(PassRun &run) {
  for (const HloInstruction *instr : run.module->entry()->instructions())
    if (instr->opcode() == Opcode::While)
      return knownTripCount(*instr);
  return std::nullopt;
}

std::optional<uint64_t> countOf(const std::string &text) {
  PassRun run(text);
  run.run(countRounds);
  return countOf(run);
}

std::string stepOf(const char *type, int64_t step) {
  return fmt::format("s = {0}[] constant({1})\n j = {0}[] add(i, s)", type, step);
}

} // namespace

TEST_CASE("rounds are those that the interpreter counts") {
  unsigned known = 0;
  for (const char *type : {"s32", "u8", "s8", "s64"})
    for (int64_t first : {0, 1, 19, 20, 21, 50, 127})
      for (int64_t step : {1, 2, 3, 7, -1, -4}) {
        if (type[0] == 'u' && step < 0)
          continue;
        for (const char *test :
             {"(i, l), direction=LT", "(i, l), direction=LE", "(i, l), direction=GT", "(i, l), direction=GE",
              "(i, l), direction=NE", "(l, i), direction=GT", "(l, i), direction=LE", "(i, l), direction=EQ"}) {
          PassRun run(loopText(type, first, stepOf(type, step).c_str(), test));
          run.run(countRounds);
          std::optional<uint64_t> count = countOf(run);
          if (!count)
            continue;
          ++known;
          INFO(type << " from " << first << " by " << step << " while " << test);
          REQUIRE(*count < 1000);
          DiagnosticEngine diagnostics;
          llvm::FailureOr<Literal> counted = interpret(*run.module, {}, diagnostics);
          REQUIRE(succeeded(counted));
          CHECK(counted->getInt(0) == int64_t(*count));
        }
      }
  CHECK(known > 300);
}

TEST_CASE("what is known of rounds") {
  CHECK(countOf(loopText("s32", 0, stepOf("s32", 1).c_str(), "(i, l), direction=LT")) == 20);
  CHECK(countOf(loopText("s32", 0, stepOf("s32", 3).c_str(), "(i, l), direction=LT")) == 7);
  CHECK(countOf(loopText("s32", 20, stepOf("s32", 3).c_str(), "(i, l), direction=LT")) == 0);
  const char *const less = "s = s32[] constant(2)\n j = s32[] subtract(i, s)";
  CHECK(countOf(loopText("s32", 30, less, "(i, l), direction=GT")) == 5);
}

TEST_CASE("rounds are unknown where no counter tells") {
  // Away from the limit, past it, out of the type, by nothing, by something computed.
  CHECK(!countOf(loopText("s32", 0, stepOf("s32", -1).c_str(), "(i, l), direction=LT")));
  CHECK(!countOf(loopText("s32", 0, stepOf("s32", 3).c_str(), "(i, l), direction=NE")));
  CHECK(!countOf(loopText("u8", 10, stepOf("u8", 250).c_str(), "(i, l), direction=LE")));
  CHECK(!countOf(loopText("s32", 0, stepOf("s32", 0).c_str(), "(i, l), direction=LT")));
  CHECK(!countOf(loopText("s32", 0, "j = s32[] add(i, i)", "(i, l), direction=LT")));
  // The limit changes.
  std::string changing =
      loopText("s32", 0, "s = s32[] constant(1)\n j = s32[] add(i, s)\n m = s32[] add(l, s)", "(i, l), direction=LT");
  const size_t at = changing.find("tuple(j, k, l)");
  CHECK(!countOf(changing.replace(at, 14, "tuple(j, k, m)")));
}

TEST_CASE("what the text says of rounds is believed, and stays beside what else it says") {
  std::string text = loopText("s32", 0, stepOf("s32", 1).c_str(), "(i, l), direction=LT");
  const size_t at = text.find("body=body") + 9;
  PassRun said(std::string(text).insert(at, ", backend_config={\"known_trip_count\":{\"n\":\"7\"}}"));
  CHECK(said.run(countRounds) == PassResult::Unchanged);
  CHECK(countOf(said) == 7);
  PassRun beside(text.insert(at, ", backend_config={\"other\":1}"));
  CHECK(beside.run(countRounds) == PassResult::Changed);
  CHECK(countOf(beside) == 20);
  CHECK(print(*beside.module).find("\"other\":1") != std::string::npos);
  CHECK(beside.run(countRounds) == PassResult::Unchanged);
}
