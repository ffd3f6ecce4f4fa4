#include "driver/Golden.h"

#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

#include <unistd.h>

using namespace hloc;

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
  checkGolden(path, text, GoldenUse::Update, diagnostics);
  checkGolden(path, text, GoldenUse::Compare, diagnostics);
  CHECK_FALSE(diagnostics.hasErrors());

  manifest.toolVersions = {{"ptxas", "12.9.1"}};
  manifest.kernels[0].resources->registers = 31;
  checkGolden(path, goldenText("k.hlo", manifest, "ret;\n"), GoldenUse::Compare, diagnostics);
  CHECK_FALSE(diagnostics.hasErrors());

  manifest.toolVersions = {{"ptxas", "13.0.88"}};
  checkGolden(path, goldenText("k.hlo", manifest, "ret;\n"), GoldenUse::Compare, diagnostics);
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.exitCode() == ExitCode::Mismatch);
  CHECK(diagnostics.diagnostics()[0].notes[0].message.find("+// ptxas 13.0.88: k: 31 registers") != std::string::npos);
}

TEST_CASE("golden-says-how-kernels-are-launched-and-what-maps-they-take") {
  Manifest manifest;
  manifest.target = "sm_90a";
  KernelSpec kernel;
  kernel.name = "k";
  kernel.hero = "contraction";
  kernel.parameters.resize(1);
  manifest.kernels = {kernel, kernel};
  manifest.kernels[1].name = "l";
  CHECK(goldenText("k.hlo", manifest, "ret;\n") ==
        "// hloc golden 1: k.hlo for sm_90a\n"
        "// kernel k: hero contraction, grid 1x1x1, block 1x1x1, shared 0\n"
        "// kernel l: hero contraction, grid 1x1x1, block 1x1x1, shared 0\nret;\n");
  KernelSpec &first = manifest.kernels[0];
  first.cluster = Dim3{2, 1, 1};
  first.programmatic = true;
  first.parameters.resize(2);
  TensorMapRecipe &map = first.parameters[1].tensorMap.emplace();
  map.type = TensorMapType::Bf16;
  map.dims = {1024, 512};
  map.strides = {2048};
  map.box = {64, 128};
  map.swizzle = TensorMapSwizzle::Bytes128;
  const std::string text = goldenText("k.hlo", manifest, "ret;\n");
  CHECK(text == "// hloc golden 1: k.hlo for sm_90a\n"
                "// kernel k: hero contraction, grid 1x1x1, block 1x1x1, shared 0, clusters of 2x1x1, programmatic\n"
                "// tensor map k: parameter 1: bf16 1024x512, strides 2048, box 64x128, swizzle 128B\n"
                "// kernel l: hero contraction, grid 1x1x1, block 1x1x1, shared 0\nret;\n");
  CHECK(goldenPart(text, {"l"}) == "// hloc golden 1: k.hlo for sm_90a\n"
                                   "// kernel l: hero contraction, grid 1x1x1, block 1x1x1, shared 0\nret;\n");
}

TEST_CASE("missing-golden-is-a-mismatch-that-says-how-to-write-it") {
  DiagnosticEngine diagnostics;
  checkGolden("/nonexistent/k.golden", "x\n", GoldenUse::Compare, diagnostics);
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.diagnostics()[0].notes[0].message.find("--update-golden") == 0);
}

TEST_CASE("golden-of-an-input-that-is-there-is-no-others") {
  std::string error;
  auto folder = TemporaryFolder::create("golden", error);
  REQUIRE(folder);
  for (const char *sub : {"a", "b", "g"})
    REQUIRE(createFolders(folder->file(sub), error));
  std::string a = folder->file("a/k.hlo"), b = folder->file("b/k.hlo"), goldens = folder->file("g");
  REQUIRE(writeFile(a, "", error));
  REQUIRE(writeFile(b, "", error));
  Manifest manifest;
  manifest.target = "sm_90";
  std::string ofA = inputSeenFrom(goldens, a), ofB = inputSeenFrom(goldens, b);
  CHECK(ofA == "../a/k.hlo");
  std::string path = goldenPath(goldens, a, "sm_90");
  CHECK(path == goldenPath(goldens, b, "sm_90"));
  DiagnosticEngine diagnostics;
  checkGolden(path, goldenText(ofA, manifest, "ret;\n"), GoldenUse::Update, diagnostics);
  CHECK_FALSE(diagnostics.hasErrors());
  // Neither overwritten nor compared with, although all but the name is equal.
  for (bool update : {true, false}) {
    DiagnosticEngine refused;
    checkGolden(path, goldenText(ofB, manifest, "ret;\n"), update ? GoldenUse::Update : GoldenUse::Compare, refused);
    REQUIRE(refused.numErrors() == 1);
    CHECK(refused.diagnostics()[0].kind == DiagnosticKind::BadUsage);
  }
  reportStaleGoldens(goldens, {}, diagnostics);
  CHECK(diagnostics.diagnostics().empty());

  // An input that was moved keeps its golden file; without that, it is stale unless it was just compared with.
  REQUIRE(::unlink(a.c_str()) == 0);
  checkGolden(path, goldenText(ofB, manifest, "ret;\n"), GoldenUse::Compare, diagnostics);
  CHECK(diagnostics.diagnostics().empty());
  reportStaleGoldens(goldens, {path}, diagnostics);
  CHECK(diagnostics.diagnostics().empty());
  reportStaleGoldens(goldens, {}, diagnostics);
  REQUIRE(diagnostics.diagnostics().size() == 1);
  CHECK_FALSE(diagnostics.hasErrors());
  CHECK(diagnostics.diagnostics()[0].message.find("../a/k.hlo") != std::string::npos);
}

TEST_CASE("a part of a golden is what it says of some kernels") {
  const std::string golden = "// hloc golden 1: m.hlo for sm_90\n"
                             "// kernel f: hero loop\n// ptxas 13.0.88: f: 8 registers\n"
                             "// kernel g: hero loop\n// ptxas 13.0.88: g: 9 registers\n"
                             ".target sm_90\n.address_size 64\n"
                             ".visible .entry f(\n)\n{\n\t{\n\t}\n\tret;\n}\n"
                             ".func helper()\n{\n\tret;\n}\n.visible .entry g(\n)\n{\n\tcall helper;\n}\n";
  CHECK(goldenPart(golden, {"f", "g"}) == golden);
  CHECK(goldenPart(golden, {"f"}) == "// hloc golden 1: m.hlo for sm_90\n"
                                     "// kernel f: hero loop\n// ptxas 13.0.88: f: 8 registers\n"
                                     ".target sm_90\n.address_size 64\n"
                                     ".visible .entry f(\n)\n{\n\t{\n\t}\n\tret;\n}\n");
  CHECK(llvm::StringRef(goldenPart(golden, {"g"})).contains(".func helper()\n{\n\tret;\n}\n.visible .entry g("));
  CHECK_FALSE(llvm::StringRef(goldenPart(golden, {"g"})).contains("f: "));
}
