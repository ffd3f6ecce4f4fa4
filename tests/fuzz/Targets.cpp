#include "fuzz/Targets.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/hlo/Printer.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/indexing/IndexingMap.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/npz/Npz.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Check.h"

#include "emulator/Program.h"

#include "mlir/IR/MLIRContext.h"

#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

std::unique_ptr<HloModule> parse(llvm::StringRef text, DiagnosticEngine &diagnostics) {
  auto module = parseHloModule(std::make_shared<SourceFile>("input.hlo", text.str()), diagnostics);
  HLOC_CHECK(module || diagnostics.hasErrors(), "a refused module has an error");
  return module;
}

/// Rendering is part of the entrance: carets, tabs, lines without end, bytes that are no text.
void render(const DiagnosticEngine &diagnostics) {
  std::string text;
  llvm::raw_string_ostream os(text);
  diagnostics.print(os, /*colour=*/true);
}

void checkRoundTrip(const HloModule &module) {
  std::string text, why;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, PrintOptions());
  DiagnosticEngine diagnostics;
  auto again = parse(text, diagnostics);
  HLOC_CHECK(again, "what hloc prints does not parse");
  HLOC_CHECK(equalModules(module, *again, why), "what hloc prints parses to another module");
}

} // namespace

void fuzzParser(llvm::StringRef bytes) {
  DiagnosticEngine diagnostics;
  auto module = parse(bytes, diagnostics);
  render(diagnostics);
  if (module)
    checkRoundTrip(*module);
}

void fuzzVerifier(llvm::StringRef bytes) {
  DiagnosticEngine diagnostics;
  auto module = parse(bytes, diagnostics);
  if (!module)
    return;
  bool ok = verify(*module, diagnostics);
  HLOC_CHECK(ok != diagnostics.hasErrors(), "the verifier's verdict differs from its errors");
  render(diagnostics);
}

/// What verifies is interpreted on zeros, within small limits.
void fuzzInterpreter(llvm::StringRef bytes) {
  DiagnosticEngine diagnostics;
  auto module = parse(bytes, diagnostics);
  if (!module || !verify(*module, diagnostics))
    return;
  int64_t left = 1 << 16;
  std::vector<Literal> arguments;
  for (const HloInstruction *parameter : module->entry()->parameters()) {
    for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
      if (!leaf.shape.isArray() || leaf.shape.byteSize() > left)
        return;
      left -= leaf.shape.byteSize();
    }
    arguments.push_back(Literal(parameter->shape()));
  }
  InterpreterOptions options;
  options.maxBytes = 1 << 22;
  options.maxLoopSteps = 64;
  llvm::FailureOr<Literal> result = interpret(*module, arguments, diagnostics, options);
  HLOC_CHECK(llvm::succeeded(result) != diagnostics.hasErrors(), "the interpreter's verdict differs from its errors");
}

/// First line: a shape; the rest: the literal.
void fuzzLiteral(llvm::StringRef bytes) {
  auto [shape, literal] = bytes.split('\n');
  DiagnosticEngine diagnostics;
  auto module = parse(("HloModule m ENTRY e { ROOT c = " + shape + " constant(" + literal + ") }").str(), diagnostics);
  render(diagnostics);
  // A short text may stand for many elements; printing those takes seconds under a sanitizer.
  constexpr int64_t limit = 1 << 20;
  if (module && module->entry()->root()->shape().isArray() && module->entry()->root()->shape().numElements() > limit)
    return;
  if (module)
    checkRoundTrip(*module);
}

void fuzzIndexingMap(llvm::StringRef bytes) {
  static auto *context = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
  std::string error;
  std::optional<IndexingMap> map = parseIndexingMap(bytes, context, error);
  HLOC_CHECK(map || !error.empty(), "a refused map has a message");
  if (!map || map->isKnownEmpty())
    return;
  std::optional<IndexingMap> again = parseIndexingMap(map->toString(), context, error);
  HLOC_CHECK(again && *again == *map, "a printed map does not parse to itself");
  map->simplify();
  HLOC_CHECK(!map->simplify(), "simplification is not idempotent");
}

void fuzzManifest(llvm::StringRef bytes) {
  Manifest manifest, again;
  std::string error;
  if (!parseManifest(bytes.str(), manifest, error)) {
    HLOC_CHECK(!error.empty(), "a refused manifest has a message");
    return;
  }
  std::string text = printManifest(manifest);
  HLOC_CHECK(parseManifest(text, again, error), "what hloc prints does not parse");
  HLOC_CHECK(printManifest(again) == text, "a manifest changes when it is read back");
}

void fuzzNpz(llvm::StringRef bytes) {
  std::string error;
  std::optional<std::vector<NpzArray>> arrays = readNpz(bytes, error, /*maxBytes=*/64 << 20);
  HLOC_CHECK(arrays || !error.empty(), "a refused archive has a message");
  readNpy(bytes, error);
}

void fuzzPtx(llvm::StringRef bytes) {
  DiagnosticEngine diagnostics, later;
  diagnostics.setFile(std::make_shared<SourceFile>("input.ptx", bytes.str()));
  auto module = ptx::parse(diagnostics);
  HLOC_CHECK(module || diagnostics.hasErrors(), "refused PTX has an error");
  if (!module)
    return render(diagnostics);
  auto program = emulator::resolve(*module, diagnostics);
  HLOC_CHECK(program || diagnostics.hasErrors(), "PTX that is not executed has an error");
  render(diagnostics);
  std::string text, again;
  llvm::raw_string_ostream os(text), againOs(again);
  ptx::print(*module, os);
  later.setFile(std::make_shared<SourceFile>("printed.ptx", text));
  auto second = ptx::parse(later);
  HLOC_CHECK(second, "what hloc prints does not parse");
  ptx::print(*second, againOs);
  HLOC_CHECK(text == again, "printed PTX changes when it is read back");
}

void fuzzLaunch(llvm::StringRef bytes) {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("input.json", bytes.str()));
  auto launch = parseLaunchDescription(diagnostics);
  HLOC_CHECK(launch || diagnostics.hasErrors(), "a refused launch description has an error");
  render(diagnostics);
}

llvm::ArrayRef<FuzzTarget> fuzzTargets() {
  static const FuzzTarget targets[] = {
#define HLOC_FUZZ_TARGET(function, name) {name, function},
#include "fuzz/Targets.def"
  };
  return targets;
}

const FuzzTarget *findFuzzTarget(llvm::StringRef name) {
  for (const FuzzTarget &target : fuzzTargets())
    if (name == target.name)
      return &target;
  return nullptr;
}

} // namespace hloc
