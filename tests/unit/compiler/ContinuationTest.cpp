// Going on from texts of earlier stages, as a library.
#include "hloc/compiler/Continuation.h"
#include "hloc/codegen/LlvmPasses.h"
#include "hloc/compiler/StageLine.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace hloc;

namespace {

const char *const twoKernels = R"(HloModule two
f { x = f32[1000] parameter(0)
 ROOT n.1 = f32[1000] sine(x) }
g { x = f32[1000] parameter(0)
 ROOT t = f32[1000] tanh(x) }
ENTRY e { x = f32[1000] parameter(0)
 n = f32[1000] fusion(x), kind=kLoop, calls=f
 ROOT s = f32[1000] fusion(n), kind=kLoop, calls=g }
)";

std::shared_ptr<const SourceFile> file(std::string name, std::string text) {
  return std::make_shared<const SourceFile>(std::move(name), std::move(text));
}

/// Keeps the texts with their stage lines, by track and order.
class Texts : public CompileObserver {
public:
  explicit Texts(bool passes) : passes(passes) {}
  bool wantsPasses() const override { return passes; }
  bool wantsTexts() const override { return passes; }
  void produced(const IrEvent &event) override {
    texts[event.track.str()].push_back({event.kind, event.stageLine + event.text()});
  }
  std::map<std::string, std::vector<std::pair<IrKind, std::string>>> texts;

private:
  bool passes;
};

CompiledModule compile(CompileObserver &observer, bool keepTexts = false) {
  DiagnosticEngine diagnostics;
  CompilerOptions options;
  options.jobs = 1;
  Compiler compiler(options, test::systemToolchain(), observer, diagnostics);
  std::unique_ptr<HloModule> module = compiler.parse(file("two.hlo", twoKernels));
  REQUIRE(module);
  std::unique_ptr<HloModule> fused = compiler.fuse(*module, *findTarget("sm_90"));
  REQUIRE(fused);
  std::optional<CompiledModule> compiled = compiler.compile(*fused, *findTarget("sm_90"), Stage::Ptx, keepTexts);
  REQUIRE(compiled);
  return std::move(*compiled);
}

std::optional<CompiledModule> goOn(IrKind kind, const std::string &text, DiagnosticEngine &diagnostics,
                                   const std::string &startAfter = "") {
  CompileObserver nobody;
  CompilerOptions options;
  Continuation continuation(options, test::systemToolchain(), nobody, diagnostics);
  return continuation.compile({kind, file("text", text), startAfter}, *findTarget("sm_90"), Stage::Ptx, false);
}

} // namespace

TEST_CASE("a stage line reads back, and is found in the first line only") {
  CHECK(printStageLine({"cse#2", "sm_90a"}, "//") == "// hloc stage: after cse#2, for sm_90a\n");
  std::optional<StageLine> line = parseStageLine("; hloc stage: after optimized, for sm_80\r\n; more\n", ";");
  REQUIRE(line);
  CHECK(line->after == "optimized");
  CHECK(line->target == "sm_80");
  CHECK_FALSE(parseStageLine("\n// hloc stage: after cse#2, for sm_90\n", "//"));
  CHECK_FALSE(parseStageLine("// hloc stage: after cse#2, for sm_90\n", ";"));
  CHECK_FALSE(parseStageLine("", "//"));
}

TEST_CASE("ids of passes are different, and all passes say what they do") {
  std::set<std::string> ids;
  for (const PassName &pass : kernelPasses()) {
    CHECK(ids.insert(pass.id).second);
    CHECK_FALSE(pass.summary.empty());
  }
  CHECK(ids.contains("cse#2"));
  CHECK(ids.contains("flatten-tensors"));
  CHECK(llvmPasses(3).size() > 20);
  for (const PassName &pass : llvmPasses(3))
    CHECK_FALSE(llvm::StringRef(pass.summary).starts_with("One of LLVM's"));
}

TEST_CASE("the PTX is that of the uninterrupted run after every pass, and does not depend on who watches") {
  CompileObserver nobody;
  Texts texts(true);
  CompiledModule plain = compile(nobody), watched = compile(texts);
  CHECK(plain.ptx == watched.ptx);
  for (const CompiledKernel &kernel : plain.kernels) {
    size_t tried = 0;
    for (const auto &[kind, text] : texts.texts[kernel.spec.name]) {
      DiagnosticEngine diagnostics;
      bool isInMidst = kind == IrKind::Llvm && llvm::StringRef(text).split('\n').first.contains('#');
      if (kind == IrKind::Ptx || isInMidst)
        continue;
      std::optional<CompiledModule> compiled = goOn(kind, text, diagnostics);
      INFO(text.substr(0, 60));
      REQUIRE(compiled);
      CHECK(compiled->ptx == kernel.ptx);
      CHECK(compiled->manifest.kernels.front().name == kernel.spec.name);
      ++tried;
    }
    CHECK(tried > kernelPasses().size() + 3);
  }
}

TEST_CASE("values of LLVM IR have names only if somebody reads them") {
  Texts watched(true), unwatched(false);
  compile(watched);
  compile(unwatched);
  auto all = [](Texts &texts) {
    std::string text;
    for (const auto &[kind, one] : texts.texts["n"])
      if (kind == IrKind::Llvm)
        text += one;
    return text;
  };
  CHECK(llvm::StringRef(all(watched)).contains("%n.1"));
  CHECK(llvm::StringRef(all(watched)).contains("%th_x"));
  CHECK_FALSE(all(unwatched).empty());
  CHECK_FALSE(llvm::StringRef(all(unwatched)).contains("%n.1"));
}

TEST_CASE("several modules in one text become one PTX; what is wrong with a later one is said at its line") {
  CompileObserver nobody;
  CompiledModule compiled = compile(nobody, /*keepTexts=*/true);
  std::string both = compiled.kernels[0].mlir + "// -----\n" + compiled.kernels[1].mlir;
  DiagnosticEngine diagnostics;
  std::optional<CompiledModule> again = goOn(IrKind::Mlir, both, diagnostics);
  REQUIRE(again);
  CHECK(again->ptx == compiled.ptx);

  std::string bad = both;
  size_t at = bad.rfind("return");
  bad.replace(at, 6, "retrun");
  CHECK_FALSE(goOn(IrKind::Mlir, bad, diagnostics));
  REQUIRE(diagnostics.numErrors() == 1);
  const Diagnostic &error = diagnostics.diagnostics().back();
  CHECK(error.kind == DiagnosticKind::BadModule);
  CHECK(error.file->lineColumn(error.range.begin).line == 1 + std::count(bad.begin(), bad.begin() + at, '\n'));
}

TEST_CASE("what is wrong with a text is never an internal error") {
  for (IrKind kind : {IrKind::Mlir, IrKind::Llvm, IrKind::Ptx})
    for (const char *text :
         {"", "\xff\xfe", "module {", "define ptx_kernel void @k() {", "{}", "module {}", ".version 8.0"}) {
      DiagnosticEngine diagnostics;
      CHECK_FALSE(goOn(kind, text, diagnostics, kind == IrKind::Mlir ? "emit" : ""));
      CHECK(diagnostics.exitCode() == ExitCode::InvalidInput);
    }
}
