// The programs of the corpus, with inputs and with results computed by XLA:CPU (every op rounded to its own type).
// Skipped where the corpus is absent.
#include "hloc/compare/Compare.h"
#include "hloc/compare/NumpyLiteral.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/npz/Npz.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace hloc;

namespace {

std::vector<std::string> programs(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error))
    found.push_back(it->path());
  llvm::sort(found);
  return found;
}

/// Arrays "0", "1", ... as the leaves of a list of shapes.
std::vector<Literal> readLiterals(const std::string &path, llvm::ArrayRef<Shape> shapes) {
  std::string error;
  std::optional<std::string> file = readFile(path, error);
  std::optional<std::vector<NpzArray>> arrays = file ? readNpz(*file, error) : std::nullopt;
  INFO(path << ": " << error);
  REQUIRE(arrays);
  std::vector<Literal> literals;
  for (const Shape &shape : shapes) {
    std::string name = std::to_string(literals.size());
    auto array = llvm::find_if(*arrays, [&](const NpzArray &candidate) { return candidate.name == name; });
    REQUIRE(array != arrays->end());
    std::optional<Literal> literal = literalFromNumpy(array->descr, array->shape, array->bytes, shape, error);
    INFO(error);
    REQUIRE(literal);
    literals.push_back(std::move(*literal));
  }
  return literals;
}

std::unique_ptr<HloModule> parse(const std::string &path, DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<std::string> text = readFile(path, error);
  REQUIRE(text);
  return parseHloModule(std::make_shared<SourceFile>(path, *text), diagnostics);
}

std::string printed(const DiagnosticEngine &diagnostics) {
  std::string messages;
  llvm::raw_string_ostream os(messages);
  diagnostics.print(os, false);
  return messages;
}

/// Programs in which XLA:CPU itself is less exact than a GPU's compiler may be, with how far it is off relative to the
/// largest element: its exp of f16 goes through f16, its log1p of f64 is 97 units off, its sums of bf16 round each
/// step, and it prints the constant -0 - 0.5i without its first sign.
constexpr std::pair<llvm::StringLiteral, double> lessExact[] = {
    {"norm_softmax_31x1000_f16", 1e-3},  {"random_normal_f64", 1e-14},
    {"reduce_std_3d_axes_2_bf16", 1e-2}, {"reduce_logsumexp_4d_axes_0_bf16", 1e-2},
    {"reduce_std_4d_axes_1_bf16", 1e-2}, {"decode_kv_cache_attention", 2e-2},
    {"edge_constant_types", 0},
};

void checkProgram(const std::string &folder, const std::string &file) {
  if (!llvm::sys::fs::exists(folder + "/" + file))
    return;
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module = parse(folder + "/" + file, diagnostics);
  INFO(folder << "\n" << printed(diagnostics));
  REQUIRE(module);
  llvm::SmallVector<Shape, 4> parameters, results;
  for (const HloInstruction *parameter : module->entry()->parameters())
    parameters.push_back(parameter->shape());
  for (const Shape::Leaf &leaf : module->entry()->root()->shape().leaves())
    results.push_back(leaf.shape);
  std::vector<Literal> arguments = readLiterals(folder + "/inputs.npz", parameters);
  std::vector<Literal> expected = readLiterals(folder + "/outputs.npz", results);
  llvm::FailureOr<Literal> actual = interpret(*module, arguments, diagnostics);
  INFO(printed(diagnostics));
  CHECK(llvm::succeeded(actual));
  if (llvm::failed(actual))
    return;
  Literal wanted = module->entry()->root()->shape().isTuple() ? Literal::tuple(std::move(expected)) : expected[0];
  for (auto [name, largest] : lessExact)
    if (llvm::StringRef(folder).ends_with(("/" + name).str())) {
      Tolerance tolerance;
      tolerance.ofLargest = largest;
      CompareResult comparison = compareLiterals(wanted, *actual, tolerance);
      INFO(comparison.report);
      CHECK(comparison.equal());
      return;
    }
  // XLA:CPU is a backend like any other: it has to keep to the bounds.
  llvm::FailureOr<CompareResult> comparison =
      compareRun(*module, arguments, *actual, wanted, Backend::Other, diagnostics);
  REQUIRE(llvm::succeeded(comparison));
  INFO(comparison->report);
  CHECK(comparison->equal());
}

} // namespace

TEST_CASE("programs of the corpus, as jax writes them", "[corpus]") {
  if (const char *corpus = std::getenv("HLOC_CORPUS"))
    for (const std::string &program : programs(std::string(corpus) + "/jax"))
      checkProgram(program, "module.hlo");
}

TEST_CASE("programs of the corpus, as XLA:GPU has fused them", "[corpus]") {
  if (const char *corpus = std::getenv("HLOC_CORPUS"))
    for (const std::string &program : programs(std::string(corpus) + "/jax"))
      checkProgram(program, "optimized.hlo");
}
