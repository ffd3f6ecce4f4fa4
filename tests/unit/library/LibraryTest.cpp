// The C interface: what it gives, that it survives what it is given, and that threads do not meet.

#include "hloc/driver/CompileText.h"
#include "hloc/support/Check.h"
#include "hloc/support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

// Names of the interface and of the inside are alike: they meet only here.
#include "hloc.hpp"

namespace {

const char *const sum = R"(HloModule sum
ENTRY e {
  p = f32[1000] parameter(0)
  q = f32[1000] parameter(1)
  ROOT r = f32[1000] add(p, q)
}
)";

/// The files below `folder` whose names end in `suffix`, by name.
std::vector<std::string> filesIn(const char *folder, llvm::StringRef suffix) {
  std::vector<std::string> texts;
  std::error_code code;
  std::vector<std::string> paths;
  for (llvm::sys::fs::recursive_directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::fs::is_regular_file(it->path()) && llvm::StringRef(it->path()).ends_with(suffix))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    std::string error;
    texts.push_back(hloc::readFile(path, error).value());
  }
  return texts;
}

std::vector<std::string> examples() { return filesIn(HLOC_SOURCE_DIR "/hlo_examples", ".hlo"); }

/// What `work` writes to the standard streams, by anybody.
template <typename Work> std::string printedBy(Work work) {
  char name[] = "/tmp/hloc-library-XXXXXX";
  const int file = mkstemp(name), out = dup(1), err = dup(2);
  fflush(nullptr);
  dup2(file, 1);
  dup2(file, 2);
  work();
  fflush(nullptr);
  dup2(out, 1);
  dup2(err, 2);
  close(file);
  close(out);
  close(err);
  std::string error, text = hloc::readFile(name, error).value();
  unlink(name);
  return text;
}

} // namespace

TEST_CASE("a module becomes PTX and its description", "[library]") {
  const hloc::Compilation compilation = hloc::compile("sum.hlo", sum, {"--target=sm_80,sm_90"});
  REQUIRE(compilation);
  CHECK(std::string(compilation.messages()).empty());
  REQUIRE(compilation.numTargets() == 2);
  CHECK(compilation.target(0) == "sm_80");
  CHECK(compilation.target(1) == "sm_90");
  CHECK(compilation.ptx(0).find(".target sm_80") != std::string_view::npos);
  CHECK(compilation.ptx(1).find(".target sm_90") != std::string_view::npos);
  CHECK(compilation.ptx(0).data()[compilation.ptx(0).size()] == 0);
  CHECK(compilation.manifest(1).front() == '{');
  CHECK(compilation.cubin(0).empty());
  CHECK(compilation.target(2).empty());
  CHECK(compilation.ptx(2).empty());
}

TEST_CASE("errors have places", "[library]") {
  const hloc::Compilation compilation =
      hloc::compile("bad.hlo", "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[5] add(p, p)\n}\n");
  CHECK(compilation.status() == HLOC_WRONG_INPUT);
  CHECK(compilation.numTargets() == 0);
  const std::vector<hloc::v1::Diagnostic> diagnostics = compilation.diagnostics();
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].severity == HLOC_ERROR);
  CHECK(diagnostics[0].kind == "shape-mismatch");
  CHECK(diagnostics[0].file == "bad.hlo");
  CHECK(diagnostics[0].line == 4);
  CHECK(diagnostics[0].column == 8);
  CHECK(std::string(compilation.messages()).find("bad.hlo:4:8: error: ") == 0);
}

TEST_CASE("options are those of the program, without what prints or writes", "[library]") {
  for (const char *word : {"--output=x.ptx", "-o", "--manifest=m.json", "--timing", "--help", "--list-ops", "--lint",
                           "x.hlo", "--emit=mlir", "--target=sm_1", "--nonsense", "", "-", "--", "--only=nothing"}) {
    CAPTURE(word);
    const hloc::Compilation compilation = hloc::compile("sum.hlo", sum, {word});
    CHECK((compilation.status() == HLOC_WRONG_OPTION || compilation.status() == HLOC_WRONG_INPUT));
    CHECK(compilation.numTargets() == 0);
    CHECK_FALSE(compilation.diagnostics().empty());
  }
  CHECK(hloc::compile("sum.hlo", sum, {"-O1", "-j1", "--fusion=none", "--line-info", "--prove"}));
  // The header lists them.
  std::string error;
  const std::string header = hloc::readFile(HLOC_SOURCE_DIR "/include/hloc.h", error).value();
  for (llvm::StringRef option : hloc::optionsOfTexts())
    CHECK((header.find(option.str()) != std::string::npos || option == "--optimization-level"));
}

TEST_CASE("null objects are nothing", "[library]") {
  hloc_compilation_destroy(nullptr);
  hloc_control_destroy(nullptr);
  hloc_control_cancel(nullptr);
  hloc_control_on_progress(nullptr, nullptr, nullptr);
  CHECK(hloc_compilation_num_targets(nullptr) == 0);
  CHECK(hloc_compilation_target(nullptr, 0) == nullptr);
  CHECK(hloc_compilation_ptx(nullptr, 0).size == 0);
  CHECK(hloc_compilation_diagnostic(nullptr, 0) == nullptr);
  CHECK(hloc_diagnostic_num_notes(nullptr) == 0);
  CHECK(std::string(hloc_compilation_messages(nullptr)).empty());
  hloc_compilation *empty = hloc_compile(nullptr, nullptr, 0, nullptr, 0, nullptr);
  CHECK(hloc_compilation_status(empty) == HLOC_WRONG_INPUT);
  hloc_compilation_destroy(empty);
  CHECK(hloc_abi_version() == HLOC_ABI_VERSION);
}

TEST_CASE("progress is told, and cancelling ends", "[library]") {
  std::string text = "HloModule many\nENTRY e {\n", results, shapes;
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i), shape = "f32[" + std::to_string(1000 + i) + "]";
    text += "  given" + number + " = " + shape + " parameter(" + number + ")\n";
    text += "  made" + number + " = " + shape + " sine(given" + number + ")\n";
    results += (i ? ", made" : "made") + number;
    shapes += (i ? ", " : "") + shape;
  }
  text += "  ROOT all = (" + shapes + ") tuple(" + results + ")\n}\n";
  std::atomic<size_t> most = 0, all = 0;
  hloc::Control control([&](size_t done, size_t of) {
    most = std::max<size_t>(most, done);
    all = of;
  });
  CHECK(hloc::compile("many.hlo", text, {"--fusion=none"}, &control));
  CHECK(all > 1);
  CHECK(most == all);

  hloc::Control cancelling([&](size_t, size_t) { cancelling.cancel(); });
  const hloc::Compilation cancelled = hloc::compile("many.hlo", text, {"--fusion=none", "-j1"}, &cancelling);
  CHECK(cancelled.status() == HLOC_CANCELLED);
  CHECK(cancelled.numTargets() == 0);
  CHECK(hloc::compile("many.hlo", text, {}, &cancelling).status() == HLOC_CANCELLED);
}

TEST_CASE("sixteen threads at once get the same bytes", "[library]") {
  const std::vector<std::string> texts = examples();
  REQUIRE(texts.size() > 20);
  std::vector<std::string> expected;
  for (const std::string &text : texts)
    expected.emplace_back(hloc::compile("example.hlo", text).ptx());
  std::atomic<int> numDifferent = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t % 3; i < texts.size(); i += 3)
        numDifferent += hloc::compile("example.hlo", texts[i]).ptx() != expected[i];
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(numDifferent == 0);
}

TEST_CASE("any bytes give a status, and nothing is printed", "[library]") {
  std::vector<std::string> texts = {std::string("\0\0\0", 3), "\xff\xfe\xfd", std::string(100000, '('), "HloModule",
                                    std::string(sum) + std::string(1, '\0') + "x"};
  llvm::append_range(texts, filesIn(HLOC_SOURCE_DIR "/tests/fuzz/regressions", ""));
  // Each example with one byte changed, deterministically.
  unsigned state = 1;
  for (std::string text : examples())
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525 + 1013904223;
      text[(state >> 8) % text.size()] = char(state >> 24);
      texts.push_back(text.substr(0, i == 3 ? text.size() / 2 : text.size()));
    }
  const std::string printed = printedBy([&] {
    for (const std::string &text : texts) {
      const hloc::Compilation compilation = hloc::compile("any.hlo", text, {"-j2"});
      if (compilation.status() == HLOC_INTERNAL_ERROR || (!compilation && compilation.diagnostics().empty()))
        std::printf("%s\n%s\n", text.c_str(), compilation.messages());
    }
  });
  CHECK(printed == "");
}

TEST_CASE("where hloc would end the program the library goes on", "[library]") {
  const std::string printed = printedBy([] {
    hloc::Control failing([](size_t, size_t) { HLOC_CHECK(false, "on purpose"); });
    for (const char *jobs : {"-j1", "-j4"}) {
      const hloc::Compilation compilation = hloc::compile("sum.hlo", sum, {jobs}, &failing);
      if (compilation.status() != HLOC_INTERNAL_ERROR || compilation.numTargets() != 0 ||
          !std::strstr(compilation.messages(), "on purpose"))
        std::printf("%d %s\n", compilation.status(), compilation.messages());
    }
    if (!hloc::compile("sum.hlo", sum))
      std::printf("does not go on\n");
  });
  CHECK(printed == "");
}
