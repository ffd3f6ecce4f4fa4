// The compiler as a library: what comes out, who is told of it, and that nothing depends on who listens or how many
// work.
#include "hloc/compiler/Compiler.h"
#include "compiler/EqualKernels.h"
#include "hloc/support/Files.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <set>

using namespace hloc;

namespace {

const char *const threeKernels = R"(HloModule three
f { x = f32[1000] parameter(0)
 ROOT n = f32[1000] negate(x) }
g { x = f32[1000] parameter(0)
 ROOT a = f32[1000] exponential(x) }
h { x = f32[1000] parameter(0)
 y = f32[1000] parameter(1)
 ROOT s = f32[1000] add(x, y) }
ENTRY e { x = f32[1000] parameter(0)
 n = f32[1000] fusion(x), kind=kLoop, calls=f
 a = f32[1000] fusion(x), kind=kLoop, calls=g
 ROOT s = f32[1000] fusion(n, a), kind=kLoop, calls=h }
)";

std::shared_ptr<const SourceFile> file(const std::string &text) {
  return std::make_shared<const SourceFile>("test.hlo", text);
}

/// Keeps all events, and notes what should not happen.
class Recorder : public CompileObserver {
public:
  std::mutex mutex;
  std::set<std::string> open;
  std::vector<std::string> ended, timedNames, irPasses, wrong;
  std::atomic<size_t> numProgress = 0;
  size_t numKernels = 0, textBytes = 0;

  bool wantsPasses() const override { return true; }
  void timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
             int depth) override {
    std::lock_guard lock(mutex);
    timedNames.push_back(name.str());
    if (!open.contains(track.str()) || end < begin)
      wrong.push_back("timed " + name.str());
  }
  void produced(const IrEvent &event) override {
    std::string text = event.text();
    std::lock_guard lock(mutex);
    irPasses.push_back(event.pass.str());
    textBytes += text.size();
    if (!open.contains(event.track.str()) || text.empty())
      wrong.push_back("produced " + event.pass.str());
  }
  void beginTrack(llvm::StringRef track, bool) override { open.insert(track.str()); }
  void endTrack(llvm::StringRef track, DiagnosticEngine &) override {
    open.erase(track.str());
    ended.push_back(track.str());
  }
  void progress(size_t, size_t all) override {
    ++numProgress;
    std::lock_guard lock(mutex);
    numKernels = all;
  }
};

struct Run {
  std::optional<CompiledModule> compiled;
  DiagnosticEngine diagnostics;
};

void compile(Run &run, const std::string &text, CompileObserver &observer, unsigned jobs) {
  CompilerOptions options;
  options.jobs = jobs;
  Compiler compiler(options, test::systemToolchain(), observer, run.diagnostics);
  std::unique_ptr<HloModule> module = compiler.parse(file(text));
  if (module)
    run.compiled = compiler.compileModule(*module, *findTarget("sm_90"));
}

bool has(const std::vector<std::string> &names, const char *name) { return llvm::is_contained(names, name); }

} // namespace

TEST_CASE("a module becomes one text and one manifest, the same for any number of jobs and listeners") {
  Run alone, parallel;
  CompileObserver nobody;
  Recorder recorder;
  compile(alone, threeKernels, nobody, 1);
  compile(parallel, threeKernels, recorder, 3);
  REQUIRE(alone.compiled);
  REQUIRE(parallel.compiled);
  CHECK(alone.compiled->ptx == parallel.compiled->ptx);
  CHECK(printManifest(alone.compiled->manifest) == printManifest(parallel.compiled->manifest));
  REQUIRE(alone.compiled->kernels.size() == 3);
  CHECK(llvm::StringRef(alone.compiled->ptx).count(".visible .entry") == 3);
  for (const CompiledKernel &kernel : alone.compiled->kernels)
    CHECK(llvm::StringRef(kernel.ptx).count(".visible .entry") == 1); // each can be assembled by itself
  CHECK(alone.compiled->manifest.steps.size() == 3);
}

TEST_CASE("observers are told of every stage and pass, inside tracks that end in the order of the kernels") {
  Run run;
  Recorder recorder;
  compile(run, threeKernels, recorder, 3);
  REQUIRE(run.compiled);
  CHECK(recorder.wrong.empty());
  CHECK(recorder.ended == std::vector<std::string>{"n", "a", "s"});
  CHECK(recorder.open == std::set<std::string>{""}); // the module's is ended by whoever began with parse
  CHECK(recorder.numProgress == 3);
  CHECK(recorder.numKernels == 3);
  for (const char *stage : {"parse", "verify", "hlo passes", "form-fusions", "plan", "emit", "mlir passes", "llvm"})
    CHECK(has(recorder.timedNames, stage));
  for (const char *pass : {"parse", "form-fusions", "emit", "inline", "optimized", "ptx"})
    CHECK(has(recorder.irPasses, pass));
}

TEST_CASE("what one kernel lacks is reported before any is compiled") {
  Run run;
  Recorder recorder;
  std::string text = threeKernels;
  const std::string op = "exponential(x)";
  text.replace(text.find(op), op.size(), "custom-call(x), custom_call_target=\"f\"");
  compile(run, text, recorder, 1);
  CHECK_FALSE(run.compiled);
  CHECK(run.diagnostics.exitCode() == ExitCode::Unsupported);
  CHECK_FALSE(has(recorder.timedNames, "emit"));
  CHECK(recorder.numProgress == 0);
}

TEST_CASE("wrong text gives diagnostics, not a module") {
  Run run;
  CompileObserver nobody;
  compile(run, "HloModule m\nENTRY e { ROOT x = f32[4] negate(y) }", nobody, 1);
  CHECK_FALSE(run.compiled);
  CHECK(run.diagnostics.exitCode() == ExitCode::InvalidInput);
}

TEST_CASE("an earlier stage has no later texts") {
  DiagnosticEngine diagnostics;
  CompileObserver nobody;
  Compiler compiler(CompilerOptions(), test::systemToolchain(), nobody, diagnostics);
  std::unique_ptr<HloModule> module = compiler.parse(file(threeKernels));
  REQUIRE(module);
  std::unique_ptr<HloModule> fused = compiler.fuse(*module, *findTarget("sm_90"));
  REQUIRE(fused);
  std::optional<CompiledModule> emitted = compiler.compile(*fused, *findTarget("sm_90"), Stage::Emit, true);
  REQUIRE(emitted);
  CHECK_FALSE(emitted->kernels[0].mlir.empty());
  CHECK(emitted->kernels[0].llvm.empty());
  CHECK(emitted->ptx.empty());
}

TEST_CASE("a fusion of empty arrays is no work, even of what no kernel can do") {
  Run run;
  CompileObserver nobody;
  compile(run,
          "HloModule m\nENTRY e { x = c64[0,1,0,1] parameter(0)\n ROOT f = c64[0,1,0,1] fft(x), fft_type=FFT, "
          "fft_length={1,1,1} }",
          nobody, 1);
  REQUIRE(run.compiled);
  CHECK(run.compiled->kernels.empty());
  CHECK(run.compiled->manifest.steps.empty());
}

namespace {

/// What the compiler makes of a text, by `names` or all, going on after what it cannot compile if told to.
std::optional<CompiledModule> compileText(const std::string &text, std::vector<std::string> names,
                                          DiagnosticEngine &diagnostics, bool keepGoing = false) {
  CompilerOptions options;
  options.keepGoing = keepGoing;
  CompileObserver nobody;
  Compiler compiler(options, test::systemToolchain(), nobody, diagnostics);
  TargetInfo target = *findTarget("sm_90");
  std::unique_ptr<HloModule> module = compiler.parse(file(text));
  REQUIRE(module);
  module = compiler.fuse(*module, target);
  if (module && !names.empty())
    module = compiler.only(*module, names, target);
  return module ? compiler.compile(*module, target, Stage::Ptx) : std::nullopt;
}

std::string reports(const DiagnosticEngine &diagnostics) {
  std::string all;
  for (const Diagnostic &one : diagnostics.diagnostics()) {
    all += one.message + "\n";
    for (const DiagnosticNote &note : one.notes)
      all += "  " + note.message + "\n";
  }
  return all;
}

} // namespace

TEST_CASE("one kernel of a module is the one in the whole module") {
  DiagnosticEngine diagnostics;
  std::optional<CompiledModule> whole = compileText(threeKernels, {}, diagnostics);
  REQUIRE(whole);
  for (const CompiledKernel &kernel : whole->kernels) {
    std::optional<CompiledModule> one = compileText(threeKernels, {kernel.spec.instruction}, diagnostics);
    REQUIRE(one);
    REQUIRE(one->kernels.size() == 1);
    CHECK(one->kernels.front().spec.name == kernel.spec.name);
    CHECK(one->kernels.front().ptx == kernel.ptx);
  }
  CHECK(compileText(threeKernels, {"g", "%n"}, diagnostics)->kernels.size() == 2);
  CHECK_FALSE(compileText(threeKernels, {"n", "aa"}, diagnostics));
  CHECK(reports(diagnostics) == "--only: there is no kernel `aa`; did you mean `a`?\n  there are `n`, `a`, `s`\n");
  CHECK(diagnostics.exitCode() == ExitCode::InvalidUsage);
}

namespace {

/// Four fusions of two kernels: `n` and `m`, `a` and `b` compute the same.
std::string equalPairs() {
  std::string text(threeKernels);
  text.replace(text.find("ENTRY"), 0, R"(f2 { z = f32[1000] parameter(0)
 ROOT w = f32[1000] negate(z), metadata={op_name="other"} }
g2 { x = f32[1000] parameter(0)
 ROOT a = f32[1000] exponential(x) }
)");
  text.replace(text.find(" ROOT s = f32[1000] fusion"), std::string::npos,
               R"( m = f32[1000] fusion(a), kind=kLoop, calls=f2
 b = f32[1000] fusion(m), kind=kLoop, calls=g2
 ROOT s = f32[1000] fusion(n, b), kind=kLoop, calls=h })");
  return text;
}

} // namespace

TEST_CASE("equal fusions are compiled once, the same for any number of jobs") {
  Run alone, parallel;
  CompileObserver nobody;
  compile(alone, equalPairs(), nobody, 1);
  compile(parallel, equalPairs(), nobody, 4);
  REQUIRE(alone.compiled);
  REQUIRE(parallel.compiled);
  CHECK(alone.compiled->ptx == parallel.compiled->ptx);
  CHECK(printManifest(alone.compiled->manifest) == printManifest(parallel.compiled->manifest));
  std::vector<std::string> kernels, steps;
  for (const KernelSpec &kernel : alone.compiled->manifest.kernels)
    kernels.push_back(kernel.name + " of " + kernel.instruction);
  for (const Step &step : alone.compiled->manifest.steps)
    steps.push_back(step.name + " by " + std::to_string(std::get<LaunchStep>(step.action).kernel));
  CHECK(kernels == std::vector<std::string>{"n of n", "a of a", "s of s"});
  CHECK(steps == std::vector<std::string>{"n by 0", "a by 1", "m by 0", "b by 1", "s by 2"});
}

namespace {

/// Negations of arrays of 1000 elements, 1001, ...
std::string manyKernels(int count) {
  std::string computations, entry = "ENTRY e {\n", operands, shapes;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), shape = "f32[" + std::to_string(1000 + i) + "]";
    computations += "c" + n + " { x = " + shape + " parameter(0)\n ROOT r = " + shape + " negate(x) }\n";
    entry += " p" + n + " = " + shape + " parameter(" + n + ")\n k" + n + " = " + shape + " fusion(p" + n +
             "), kind=kLoop, calls=c" + n + "\n";
    operands += (i ? ", k" : "k") + n;
    shapes += (i ? ", " : "") + shape;
  }
  return "HloModule many\n" + computations + entry + " ROOT t = (" + shapes + ") tuple(" + operands + ") }\n";
}

/// Counts kernels that have gone through LLVM.
struct LlvmCounter : CompileObserver {
  std::atomic<size_t> count = 0;
  void timed(llvm::StringRef name, llvm::StringRef, Clock::time_point, Clock::time_point, int) override {
    count += name == "llvm";
  }
};

} // namespace

TEST_CASE("the PTX of many kernels is kept, and found by what it is made of") {
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc-test", error);
  REQUIRE(folder);
  auto numCompiled = [&](int kernels, std::string &ptx, auto change) {
    DiagnosticEngine diagnostics;
    CompilerOptions options;
    options.cache.folder = folder->path();
    change(options);
    LlvmCounter counter;
    Compiler compiler(options, test::systemToolchain(), counter, diagnostics);
    std::unique_ptr<HloModule> module = compiler.parse(file(manyKernels(kernels)));
    REQUIRE(module);
    std::optional<CompiledModule> compiled = compiler.compileModule(*module, *findTarget("sm_90"));
    REQUIRE(compiled);
    ptx = compiled->ptx;
    return counter.count.load();
  };
  auto nothing = [](CompilerOptions &) {};
  std::string first, second, more, few, other;
  CHECK(numCompiled(18, first, nothing) == 18);
  CHECK(numCompiled(18, second, nothing) == 0);
  CHECK(first == second);
  CHECK(numCompiled(19, more, nothing) == 1);
  CHECK(numCompiled(3, few, nothing) == 3);
  CHECK(numCompiled(18, other, [](CompilerOptions &options) { options.optimizationLevel = 1; }) == 18);
  CHECK(numCompiled(18, other, [](CompilerOptions &options) { options.lineInfo = true; }) == 18);
  CHECK(numCompiled(18, other, [](CompilerOptions &options) { options.lineInfo = true; }) == 18); // nor is it kept
  CHECK(numCompiled(18, other, [](CompilerOptions &options) { options.cache.folder.clear(); }) == 18);
  CHECK(other == first);
}

namespace {

/// Fusions of one computation in two orders, by other names; the third has another constant.
const char *const otherOrders = R"(HloModule orders
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
f { x = f32[64,4096] parameter(0)
 zero = f32[] constant(0)
 n = f32[64,4096] negate(x)
 e = f32[64,4096] exponential(x)
 m = f32[64,4096] multiply(n, e)
 ROOT r = f32[64] reduce(m, zero), dimensions={1}, to_apply=add }
g { y = f32[64,4096] parameter(0)
 f = f32[64,4096] exponential(y)
 o = f32[64,4096] negate(y)
 k = f32[64,4096] multiply(o, f)
 none = f32[] constant(0)
 ROOT s = f32[64] reduce(k, none), dimensions={1}, to_apply=add }
h { x = f32[64,4096] parameter(0)
 one = f32[] constant(1)
 n = f32[64,4096] negate(x)
 e = f32[64,4096] exponential(x)
 m = f32[64,4096] multiply(n, e)
 ROOT r = f32[64] reduce(m, one), dimensions={1}, to_apply=add }
ENTRY e { x = f32[64,4096] parameter(0)
 y = f32[64,4096] parameter(1)
 first = f32[64] fusion(x), kind=kLoop, calls=f
 second = f32[64] fusion(y), kind=kLoop, calls=g
 third = f32[64] fusion(y), kind=kLoop, calls=h
 ROOT t = (f32[64], f32[64], f32[64]) tuple(first, second, third) }
)";

} // namespace

TEST_CASE("kernels that are equal but for names and order go through LLVM once") {
  DiagnosticEngine diagnostics;
  auto compile = [&](bool wantsTexts) {
    struct Counter : LlvmCounter {
      bool texts = false;
      bool wantsTexts() const override { return texts; }
    } counter;
    counter.texts = wantsTexts;
    CompilerOptions options;
    Compiler compiler(options, test::systemToolchain(), counter, diagnostics);
    std::unique_ptr<HloModule> module = compiler.parse(file(otherOrders));
    REQUIRE(module);
    std::optional<CompiledModule> compiled = compiler.compileModule(*module, *findTarget("sm_90"));
    REQUIRE(compiled);
    return std::pair(std::move(compiled->ptx), counter.count.load());
  };
  auto [together, fewer] = compile(/*wantsTexts=*/false);
  auto [apart, all] = compile(/*wantsTexts=*/true); // of which each has its own
  CHECK(fewer == 2);
  CHECK(all == 3);
  CHECK(together == apart);
  CHECK(llvm::StringRef(together).contains("second__second__shared_0"));
}

TEST_CASE("kernels are compared without the names of their functions") {
  std::string text = "sym_name = \"k\" @k(@k2) sym_name = \"add\" kind = \"add\" add \"k\" @other";
  CHECK(withoutNames(text, {"k", "k2", "add"}) ==
        "sym_name = \"#0\" @#0(@#1) sym_name = \"#2\" kind = \"add\" add \"k\" @other");
  CHECK(withoutNames("", {"k"}).empty());
}

TEST_CASE("one of the fusions that share a kernel has that kernel") {
  DiagnosticEngine diagnostics;
  std::optional<CompiledModule> whole = compileText(equalPairs(), {}, diagnostics);
  REQUIRE(whole);
  for (const char *name : {"n", "m", "n,m"}) {
    llvm::SmallVector<llvm::StringRef> names;
    llvm::StringRef(name).split(names, ',');
    std::optional<CompiledModule> part =
        compileText(equalPairs(), std::vector<std::string>(names.begin(), names.end()), diagnostics);
    REQUIRE(part);
    REQUIRE(part->kernels.size() == 1);
    CHECK(part->kernels.front().spec.name == "n");
    CHECK(part->kernels.front().ptx == whole->kernels.front().ptx);
    CHECK(part->manifest.steps.size() == names.size());
  }
}

TEST_CASE("of fusions that share a kernel all are refused") {
  std::string text = equalPairs();
  for (size_t at = text.find("exponential(x)"); at != std::string::npos; at = text.find("exponential(x)"))
    text.replace(at, 14, "custom-call(x), custom_call_target=\"t\"");
  DiagnosticEngine diagnostics;
  std::optional<CompiledModule> part = compileText(text, {}, diagnostics, true);
  REQUIRE(part);
  CHECK(reports(diagnostics) == "2 x opcode `custom-call` of `t` is not supported in a kernel: code of a library\n"
                                "  2 steps of the entry not compiled, 2 kernels compiled\n");
}

TEST_CASE("what cannot be compiled is left out and summed up") {
  std::string text(threeKernels);
  text.replace(text.find("exponential(x)"), 14, "custom-call(x), custom_call_target=\"t\"");
  DiagnosticEngine strict, tolerant;
  CHECK_FALSE(compileText(text, {}, strict));
  CHECK(reports(strict) == "opcode `custom-call` of `t` is not supported in a kernel: code of a library\n");
  std::optional<CompiledModule> part = compileText(text, {}, tolerant, true);
  REQUIRE(part);
  CHECK(reports(tolerant) == "1 x opcode `custom-call` of `t` is not supported in a kernel: code of a library\n"
                             "  1 step of the entry not compiled, 2 kernels compiled\n");
  CHECK(tolerant.exitCode() == ExitCode::Unsupported);
  REQUIRE(part->kernels.size() == 2);
  CHECK(part->kernels[1].spec.name == "s");
  CHECK(part->manifest.kernels.size() == 2);
  const Step *missing = findUnsupported(part->manifest.steps);
  REQUIRE(missing);
  CHECK(missing->name == "a");
  CHECK(std::get<UnsupportedStep>(missing->action).writes.size() == 1);
  Manifest read;
  std::string error;
  CHECK(parseManifest(printManifest(part->manifest), read, error));
}

TEST_CASE("a side effect without a result is not passed over") {
  std::string text(threeKernels);
  text.replace(text.find(" ROOT s = f32[1000] fusion"), 0,
               " c = () custom-call(n), custom_call_target=\"print\", custom_call_has_side_effect=true\n");
  DiagnosticEngine strict, tolerant;
  CHECK_FALSE(compileText(text, {}, strict));
  CHECK(strict.exitCode() == ExitCode::Unsupported);
  std::optional<CompiledModule> part = compileText(text, {}, tolerant, true);
  REQUIRE(part);
  CHECK(part->kernels.size() == 3);
  REQUIRE(findUnsupported(part->manifest.steps));
  CHECK(findUnsupported(part->manifest.steps)->name == "c");
}
