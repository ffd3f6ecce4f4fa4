#include "driver/Golden.h"

#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("unified-diff-of-equal-texts-is-empty") { CHECK(unifiedDiff("a\nb\n", "a\nb\n", "x", "y").empty()); }

TEST_CASE("unified-diff-shows-changed-lines-with-context") {
  std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n", after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n";
  CHECK(unifiedDiff(before, after, "old", "new") == "--- old\n+++ new\n"
                                                    "@@ -2 +2 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n");
}

TEST_CASE("unified-diff-skips-what-is-far-from-a-change") {
  std::string before, after;
  for (int i = 0; i < 100; ++i) {
    before += std::to_string(i) + "\n";
    after += (i == 10 || i == 80 ? "x" : std::to_string(i)) + "\n";
  }
  std::string diff = unifiedDiff(before, after, "a", "b");
  CHECK(diff.find("@@ -8 +8 @@") != std::string::npos);
  CHECK(diff.find("@@ -78 +78 @@") != std::string::npos);
  CHECK(diff.find(" 50\n") == std::string::npos);
}

TEST_CASE("canonical-ptx-drops-what-does-not-matter") {
  CHECK(canonicalPtx("// made by\n.version 8.0\n.target sm_90\n\n\t.loc 1 2 3\n\tret; // done\n") ==
        ".target sm_90\n\tret;\n");
}

TEST_CASE("golden-path-uses-stem-and-target") {
  CHECK(goldenPath("tests/golden", "gelu.hlo", "sm_90") == "tests/golden/gelu.sm_90.golden");
}

TEST_CASE("golden-check-ignores-resources-of-another-ptxas") {
  std::string error;
  auto folder = TemporaryFolder::create("golden", error);
  REQUIRE(folder);
  std::string path = folder->file("k.golden");
  Manifest manifest;
  manifest.target = "sm_90";
  KernelSpec kernel;
  kernel.name = "k";
  kernel.resources = KernelResources{};
  kernel.resources->registers = 28;
  manifest.kernels.push_back(kernel);
  manifest.toolVersions = {{"ptxas", "13.0.88"}};
  std::string text = goldenText("k.hlo", manifest, "ret;\n");
  DiagnosticEngine diagnostics;
  checkGolden(path, text, /*update=*/true, diagnostics);
  checkGolden(path, text, false, diagnostics);
  CHECK_FALSE(diagnostics.hasErrors());

  manifest.toolVersions = {{"ptxas", "12.9.1"}};
  manifest.kernels[0].resources->registers = 31;
  checkGolden(path, goldenText("k.hlo", manifest, "ret;\n"), false, diagnostics);
  CHECK_FALSE(diagnostics.hasErrors());

  manifest.toolVersions = {{"ptxas", "13.0.88"}};
  checkGolden(path, goldenText("k.hlo", manifest, "ret;\n"), false, diagnostics);
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.exitCode() == ExitCode::Mismatch);
  CHECK(diagnostics.diagnostics()[0].message.find("+// ptxas 13.0.88: k: 31 registers") != std::string::npos);
}

TEST_CASE("missing-golden-is-a-mismatch-that-says-how-to-write-it") {
  DiagnosticEngine diagnostics;
  checkGolden("/nonexistent/k.golden", "x\n", false, diagnostics);
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.diagnostics()[0].notes[0].message.find("--update-golden") == 0);
}
