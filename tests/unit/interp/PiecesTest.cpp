// Elementwise modules of large arrays are interpreted a piece at a time: the same bits as at once.
#include "hloc/interp/Interpreter.h"
#include "hloc/parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// More than three pieces, the last of which is shorter.
constexpr int64_t count = 3 * (1 << 15) + 17;

std::unique_ptr<HloModule> parse(std::string text, DiagnosticEngine &diagnostics) {
  for (size_t at; (at = text.find("[N]")) != std::string::npos;)
    text.replace(at, 3, "[" + std::to_string(count) + "]");
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", "HloModule m\n" + text), diagnostics);
  std::string messages;
  llvm::raw_string_ostream os(messages);
  diagnostics.print(os, false);
  INFO(messages);
  REQUIRE(module);
  return module;
}

Literal valueOf(const Shape &shape) {
  Literal made(shape);
  for (int64_t i = 0; i < made.numElements(); ++i)
    if (isFloat(shape.elementType()))
      made.setDouble(i, double((i * 7919) % 2003) / 97 - 9);
    else
      made.setInt(i, (i * 7919) % 2003);
  return made;
}

std::vector<Literal> argumentsOf(const HloModule &module) {
  std::vector<Literal> arguments;
  for (const HloInstruction *parameter : module.entry()->parameters())
    arguments.push_back(valueOf(parameter->shape()));
  return arguments;
}

} // namespace

TEST_CASE("pieces give what the whole gives") {
  const std::string text =
      GENERATE("ENTRY e { x = f32[N] parameter(0)\n ROOT r = f32[N] tanh(x) }",
               "f { x = f32[N] parameter(0)\n y = bf16[N] parameter(1)\n w = f32[N] convert(y)\n"
               " ROOT r = f32[N] divide(x, w) }\n"
               "ENTRY e { x = f32[N] parameter(0)\n y = bf16[N] parameter(1)\n"
               " ROOT r = f32[N] fusion(x, y), kind=kLoop, calls=f }",
               "ENTRY e { x = f32[N] parameter(0)\n s = f32[] parameter(1)\n c = f32[] constant(2)\n"
               " low = f32[] negate(s)\n k = f32[N] clamp(low, x, s)\n b = f32[N] broadcast(c), dimensions={}\n"
               " p = pred[N] compare(k, b), direction=LT\n h = f16[N] convert(k)\n"
               " t = (f16[N], f32[N]) tuple(h, b)\n ROOT r = (pred[N], (f16[N], f32[N])) tuple(p, t) }",
               "ENTRY e { x = s32[N] parameter(0)\n y = s32[N] parameter(1)\n p = pred[] parameter(2)\n"
               " one = s32[] constant(1)\n all = s32[N] broadcast(one), dimensions={}\n sum = s32[N] add(x, all)\n"
               " bits = u32[N] bitcast-convert(sum)\n back = s32[N] bitcast-convert(bits)\n"
               " ROOT r = (s32[N], s32[N]) tuple(back, all) }",
               "ENTRY e { x = s32[N] parameter(0)\n c = s32[] constant(7)\n d = s32[] add(c, c)\n"
               " all = s32[N] broadcast(d), dimensions={}\n m = s32[N] maximum(x, all)\n e = s32[N] abs(m)\n"
               " ROOT r = s32[N] maximum(e, x) }");
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module = parse(text, diagnostics);
  const std::vector<Literal> arguments = argumentsOf(*module);
  llvm::FailureOr<Literal> pieces = interpret(*module, arguments, diagnostics);
  llvm::FailureOr<Literal> atOnce = interpret(*module->entry(), arguments, diagnostics);
  REQUIRE(llvm::succeeded(pieces));
  REQUIRE(llvm::succeeded(atOnce));
  CHECK(*pieces == *atOnce);
}

TEST_CASE("pieces need no memory for what is computed on the way") {
  DiagnosticEngine diagnostics;
  auto module = parse("ENTRY e { x = f32[N] parameter(0)\n a = f32[N] negate(x)\n b = f32[N] abs(a)\n"
                      " ROOT r = f32[N] add(a, b) }",
                      diagnostics);
  const std::vector<Literal> arguments = argumentsOf(*module);
  InterpreterOptions options;
  options.maxBytes = 4 * count;
  CHECK(llvm::succeeded(interpret(*module, arguments, diagnostics, options)));
  CHECK(llvm::failed(interpret(*module->entry(), arguments, diagnostics, options)));
}

TEST_CASE("what is refused is refused by name") {
  DiagnosticEngine diagnostics;
  auto module = parse("ENTRY e { x = f32[N] parameter(0)\n ROOT r = f32[N] negate(x) }", diagnostics);
  InterpreterOptions options;
  options.maxBytes = 4 * count - 1;
  CHECK(llvm::failed(interpret(*module, argumentsOf(*module), diagnostics, options)));
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.diagnostics().front().message.find("does not fit into the interpreter's memory") !=
        std::string::npos);
}
