#include "hloc/transforms/VerifyPasses.h"

#include "RunPasses.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"

using namespace hloc;
using namespace hloc::test;

namespace {

/// Takes -0 for 0: x + 0 -> x of floats.
PassResult dropFloatZeros(HloModule &module, HloPassContext &) {
  HloEditor editor(*module.entry());
  for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
    next = editor.next(instr);
    if (instr->opcode() == Opcode::Add) {
      editor.replaceAllUses(instr, instr->operand(0));
      editor.eraseIfDead(instr);
    }
  }
  return changedIf(editor.changed());
}

/// Loses an element of the result's second array.
PassResult reverseSecond(HloModule &module, HloPassContext &) {
  HloEditor editor(*module.entry());
  HloInstruction *root = editor.root();
  HloBuilder builder(editor, root);
  editor.setOperand(root, 1,
                    builder.infer(Opcode::Reverse, {root->operand(1)}, {builder.ints(AttributeKey::Dimensions, {1})}));
  return PassResult::Changed;
}

PassResult nothing(HloModule &, HloPassContext &) { return PassResult::Unchanged; }

PassResult inParts(HloModule &module, HloPassContext &context) {
  static constexpr HloPass parts[] = {{"harmless", eraseDeadCode}, {"drop-zeros", dropFloatZeros}};
  ++context.nesting;
  PassResult result = runPasses(module, parts, context);
  --context.nesting;
  return result;
}

Literal floats(llvm::ArrayRef<double> values) {
  Literal literal(Shape::array(ElementType::F32, {static_cast<int64_t>(values.size())}));
  for (auto [i, value] : llvm::enumerate(values))
    literal.setDouble(i, value);
  return literal;
}

const std::string zeros = entry("x = f32[3] parameter(0)\n c = f32[] constant(0)\n"
                                "z = f32[3] broadcast(c), dimensions={}\n n = f32[3] negate(x)\n"
                                "ROOT r = f32[3] add(x, z)");

/// What is said, in one line; empty if nothing is.
std::string verdict(const std::string &text, llvm::ArrayRef<HloPass> passes, llvm::ArrayRef<PassInput> inputs) {
  Parsed parsed(text);
  REQUIRE(parsed.module);
  std::string before = print(*parsed.module);
  DiagnosticEngine diagnostics;
  HloPassContext context(diagnostics);
  bool good = verifyEachPass(*parsed.module, passes, inputs, context);
  CHECK(print(*parsed.module) == before);
  CHECK(good == diagnostics.diagnostics().empty());
  if (!good)
    CHECK(diagnostics.exitCode() == ExitCode::Mismatch);
  return good ? "" : diagnostics.diagnostics().front().message;
}

} // namespace

TEST_CASE("the first pass that changes a bit of a result is named") {
  constexpr HloPass passes[] = {{"dead-code", eraseDeadCode}, {"nothing", nothing}, {"drop-zeros", dropFloatZeros}};
  CHECK(verdict(zeros, passes, {{"ordinary", {floats({1, 2, 3})}}}) == "");
  CHECK(verdict(zeros, passes, {{"ordinary", {floats({1, 2, 3})}}, {"special", {floats({1, 2, -0.0})}}}) ==
        "pass `drop-zeros` changes the result at [2] from 0 to -0 in the regime `special`");
}

TEST_CASE("the pass within a pass is named") {
  constexpr HloPass passes[] = {{"parts", inParts}};
  CHECK(verdict(zeros, passes, {{"special", {floats({1, -0.0, 3})}}}) ==
        "pass `drop-zeros` changes the result at [1] from 0 to -0 in the regime `special`");
}

TEST_CASE("the place in a tuple") {
  constexpr HloPass passes[] = {{"reverse", reverseSecond}};
  Literal matrix(Shape::array(ElementType::S32, {2, 2}));
  for (int i = 0; i < 4; ++i)
    matrix.setInt(i, i == 3 ? 7 : 0);
  CHECK(verdict(entry("x = s32[2,2] parameter(0)\n ROOT r = (s32[2,2], s32[2,2]) tuple(x, x)"), passes,
                {{"exact", {matrix}}}) ==
        "pass `reverse` changes the result {1} at [1,0] from 0 to 7 in the regime `exact`");
}

TEST_CASE("NaNs have no payloads") {
  constexpr HloPass passes[] = {{"drop-zeros", dropFloatZeros}};
  Literal x = floats({1, 2, 3});
  x.setBits(1, 0xFFC12345);
  CHECK(verdict(zeros, passes, {{"special", {x}}}) == "");
}

TEST_CASE("the pipeline keeps what it gets") {
  CHECK(verdict(zeros, hloPipeline(), {{"special", {floats({1, -0.0, 3})}}}) == "");
}
