#include "Subject.h"

#include "driver/Compile.h"

#include "hloc/compare/Compare.h"
#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/support/Files.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hloc::mutation {

std::unique_ptr<Subject> Subject::open(const std::string &hloFile, unsigned numSeeds) {
  auto subject = std::make_unique<Subject>();
  subject->title = llvm::sys::path::stem(hloFile).str();
  if (!subject->compile(hloFile) || !subject->makeCases(numSeeds))
    return nullptr;
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<const SourceFile>(subject->title + ".ptx", subject->image));
  subject->original = ptx::parse(diagnostics);
  std::string symptom = subject->original ? subject->symptomOf(*subject->original) : "its PTX cannot be parsed";
  if (symptom.empty())
    return subject;
  llvm::errs() << subject->title << " fails unchanged: " << symptom << "\n";
  return nullptr;
}

bool Subject::compile(const std::string &hloFile) {
  CompileOptions options;
  options.input = hloFile;
  options.targets.push_back(*findTarget("sm_90"));
  Toolchain toolchain = Toolchain::discover(options.toolchain);
  DiagnosticEngine diagnostics;
  Compiler compiler(options, toolchain, timing, diagnostics);
  module = compiler.load();
  laidOut = module ? applyEntryLayout(*module, diagnostics) : nullptr;
  if (laidOut) {
    Executor executor(*laidOut, timing, diagnostics);
    std::string base = llvm::StringRef(hloFile).drop_back(4).str();
    if (llvm::sys::fs::exists(base + ".ptx"))
      return readPtx(base);
    std::unique_ptr<HloModule> fused = compiler.fuse(*module);
    std::optional<CompiledModule> compiled;
    if (fused)
      compiled = compiler.compile(*fused, options.targets.front(), Stage::Ptx);
    if (compiled) {
      image = compiled->ptx;
      program = executor.programOf(compiled->manifest);
    }
  }
  diagnostics.print(llvm::errs(), false);
  return program.has_value();
}

bool Subject::readPtx(const std::string &base) {
  DiagnosticEngine diagnostics;
  std::string error;
  std::optional<std::string> text = readFile(base + ".ptx", error), launch = readFile(base + ".json", error);
  if (text && launch) {
    image = std::move(*text);
    DiagnosticEngine ofLaunch;
    ofLaunch.setFile(std::make_shared<const SourceFile>(base + ".json", std::move(*launch)));
    if (std::optional<LaunchDescription> description = parseLaunchDescription(ofLaunch))
      program = Executor(*laidOut, timing, diagnostics).programOf(*description);
    diagnostics.append(ofLaunch);
    backend = Backend::Other;
  }
  llvm::errs() << error;
  diagnostics.print(llvm::errs(), false);
  return program.has_value();
}

/// The first elements of the 32-bit integer arguments go through all combinations of extreme values.
static void addExtremePairs(std::vector<Literal> &arguments) {
  static constexpr int64_t extremes[] = {INT32_MIN, INT32_MIN + 1, -2, -1, 0, 1, 2, INT32_MAX};
  int64_t stride = 1;
  for (Literal &argument : arguments) {
    if (argument.isTuple() || argument.shape().elementType() != ElementType::S32)
      continue;
    for (int64_t i = 0, n = std::min<int64_t>(argument.numElements(), 64); i < n; ++i)
      argument.setInt(i, extremes[i / stride % 8]);
    stride *= 8;
  }
}

/// Errors are allowed in proportion to the largest result: one case has no large ones, so that small errors count.
static void removeSpecialFloats(std::vector<Literal> &arguments) {
  for (Literal &argument : arguments) {
    if (argument.isTuple() || !isFloat(argument.shape().elementType()))
      continue;
    for (int64_t i = 0, n = argument.numElements(); i < n; ++i)
      if (!(std::abs(argument.getDouble(i)) <= 3))
        argument.setDouble(i, double(i % 97 - 48) / 16);
  }
}

bool Subject::makeCases(unsigned numSeeds) {
  DiagnosticEngine diagnostics;
  for (unsigned seed = 0; seed < numSeeds; ++seed) {
    llvm::FailureOr<std::vector<Literal>> made = makeArguments(*module, diagnostics, seed);
    llvm::FailureOr<Literal> result = llvm::failure();
    if (succeeded(made) && seed == 1)
      addExtremePairs(*made);
    if (succeeded(made) && seed == 2)
      removeSpecialFloats(*made);
    if (succeeded(made))
      result = interpret(*module, *made, diagnostics);
    if (failed(result)) {
      diagnostics.print(llvm::errs(), false);
      return false;
    }
    arguments.push_back(std::move(*made));
    expected.push_back(std::move(*result));
  }
  return true;
}

std::string Subject::symptomOf(const ptx::Module &mutant) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ptx::print(mutant, os);
  for (size_t seed = 0; seed < arguments.size(); ++seed)
    if (std::string symptom = symptomOf(text, seed); !symptom.empty())
      return symptom;
  return "";
}

std::string Subject::symptomOf(const std::string &text, size_t seed) {
  DiagnosticEngine diagnostics;
  emulator::EmulatorOptions options;
  options.timeLimitSeconds = 2;
  options.numThreads = 1;
  EmulatorDevice device(options, title + ".ptx", diagnostics);
  llvm::FailureOr<Literal> result =
      Executor(*laidOut, timing, diagnostics).run(device, text, *program, arguments[seed]);
  for (const Diagnostic &diagnostic : diagnostics.diagnostics()) {
    if (diagnostic.kind != DiagnosticKind::KernelFinding)
      return "refused: " + diagnostic.message;
    return diagnostic.message.substr(0, diagnostic.message.find(':'));
  }
  if (failed(result))
    return "refused: without a reason";
  llvm::FailureOr<CompareResult> compared =
      compareRun(*module, arguments[seed], expected[seed], *result, backend, diagnostics);
  return succeeded(compared) && compared->equal() ? "" : "mismatch";
}

} // namespace hloc::mutation
