#include "Session.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

lsp::KernelReport compiled(const std::string &text) {
  return lsp::reportKernels(std::make_shared<const SourceFile>("t.hlo", text),
                            {CompilerOptions(), *findTarget("sm_90"), deviceOf(*findTarget("sm_90"))},
                            Toolchain::discover({}));
}

constexpr const char *twoKernels = R"(HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
rows { x = f32[64,512] parameter(0)
  z = f32[] constant(0)
  y = f32[64,512] exponential(x)
  ROOT s = f32[64] reduce(y, z), dimensions={1}, to_apply=sum }
turned { x = f32[64,512] parameter(0)
  t = f32[512,64] transpose(x), dimensions={1,0}
  ROOT u = f32[512,64] negate(t) }
ENTRY e {
  x = f32[64,512] parameter(0)
  f = f32[64] fusion(x), kind=kInput, calls=rows
  g = f32[512,64] fusion(x), kind=kInput, calls=turned
  dead = f32[64] negate(f)
  ROOT out = (f32[64], f32[512,64]) tuple(f, g)
}
)";

class ReadyCompiler : public lsp::BackgroundCompiler {
public:
  explicit ReadyCompiler(lsp::KernelReport report) : report(std::move(report)) {}
  void start(std::shared_ptr<const SourceFile>) override {
    ++starts;
    isWaiting = true;
  }
  void stop() override { isWaiting = false; }
  std::optional<lsp::KernelReport> poll() override {
    return std::exchange(isWaiting, false) ? std::optional(report) : std::nullopt;
  }
  unsigned starts = 0;

private:
  lsp::KernelReport report;
  bool isWaiting = false;
};

} // namespace

TEST_CASE("instructions are known by their kernels") {
  const lsp::KernelReport report = compiled(twoKernels);
  CHECK(report.refusal == "");
  REQUIRE(report.kernels.size() == 2);
  auto kernelOf = [&](llvm::StringRef name) {
    auto found = report.kernelsAt.find(uint32_t(llvm::StringRef(twoKernels).find(name)));
    return found == report.kernelsAt.end() ? std::string() : report.kernels[found->second.front()].name;
  };
  CHECK(kernelOf("y = ") == kernelOf("s = "));
  CHECK(kernelOf("u = ") != kernelOf("s = "));
  CHECK(kernelOf("u = ") == kernelOf("g = "));
  CHECK(kernelOf("dead = ") == "");
  for (const lsp::ReportedKernel &kernel : report.kernels)
    CHECK(kernel.microseconds > 1);
  CHECK(report.microseconds >= report.kernels[0].microseconds + report.kernels[1].microseconds - 1e-6);
  CHECK(lsp::parseKernelReport(lsp::printKernelReport(report)) == report);
}

TEST_CASE("what does not compile says why") {
  const lsp::KernelReport report =
      compiled("ENTRY e { p = f32[] parameter(0) ROOT r = f32[] custom-call(p), custom_call_target=\"x\" }");
  CHECK(report.kernels.empty());
  CHECK(llvm::StringRef(report.refusal).contains("custom-call"));
}

TEST_CASE("reports that are none") {
  for (const char *text : {"", "5", "{}", R"({"kernels":[],"places":[[0,0]]})", R"({"kernels":[[1]],"places":[]})",
                           R"({"kernels":[],"places":[[-1]]})", R"({"kernels":[],"places":[[]]})"})
    CHECK(!lsp::parseKernelReport(text));
}

TEST_CASE("hovers tell of kernels once they are known") {
  ReadyCompiler compiler(compiled(twoKernels));
  lsp::ServerOptions options;
  options.quietMilliseconds = 0;
  Session session;
  session.begin();
  session.open(twoKernels);
  const int64_t early = session.request("textDocument/hover", Session::at(twoKernels, "s = "));
  session.pause();
  const int64_t kernel = session.request("textDocument/hover", Session::at(twoKernels, "s = "));
  const int64_t gone = session.request("textDocument/hover", Session::at(twoKernels, "dead = "));
  session.change(json::Array{json::Object{{"text", std::string(twoKernels) + "\n"}}});
  const int64_t stale = session.request("textDocument/hover", Session::at(twoKernels, "s = "));
  session.change(json::Array{json::Object{{"text", "ENTRY e { oops"}}});
  session.pause();
  const int64_t wrong = session.request("textDocument/hover", Session::at("ENTRY e", "e"));
  session.end();
  CHECK(session.run(&compiler, options) == 0);
  CHECK(llvm::StringRef(Session::text(session.result(early))).contains("kernel: not known"));
  CHECK(llvm::StringRef(Session::text(session.result(kernel))).contains("us on h100 by the cost model"));
  CHECK(llvm::StringRef(Session::text(session.result(gone))).contains("kernel: none"));
  CHECK(llvm::StringRef(Session::text(session.result(stale))).contains("it has changed just now"));
  CHECK(session.result(wrong) != json::Value("no result"));
  CHECK(compiler.starts == 1); // a text with errors is not compiled
}

TEST_CASE("large texts are not compiled") {
  ReadyCompiler compiler{{}};
  lsp::ServerOptions options;
  options.quietMilliseconds = 0;
  options.maxCompiledBytes = 100;
  Session session;
  session.begin();
  session.open(twoKernels);
  session.pause();
  const int64_t hover = session.request("textDocument/hover", Session::at(twoKernels, "s = "));
  session.end();
  session.run(&compiler, options);
  CHECK(compiler.starts == 0);
  CHECK(llvm::StringRef(Session::text(session.result(hover))).contains("are not compiled in the background"));
}
