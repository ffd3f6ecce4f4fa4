#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

#include <map>
#include <sys/stat.h>

using namespace hloc;

namespace {

/// A file system corner with pretend toolkits.
struct Fixture {
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc-test", error);
  std::map<std::string, std::string> environment;
  ToolchainOptions options;

  Fixture() {
    REQUIRE(folder);
    options.environment = [this](const std::string &name) -> std::optional<std::string> {
      auto it = environment.find(name);
      return it == environment.end() ? std::nullopt : std::optional<std::string>(it->second);
    };
    options.usualFolders = std::vector<std::string>{path("usual")};
    options.executable = path("repo/build/dev/bin/hloc");
  }
  std::string path(const std::string &name) const { return folder->path() + "/" + name; }
  void put(const std::string &name) {
    std::string file = path(name);
    REQUIRE(createFolders(file.substr(0, file.rfind('/')), error));
    REQUIRE(writeFile(file, "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n", error));
    REQUIRE(::chmod(file.c_str(), 0755) == 0);
  }
  std::string found(Tool tool) { return Toolchain::discover(options).find(tool).path; }
  std::string source(Tool tool) { return Toolchain::discover(options).find(tool).source; }
};

} // namespace

TEST_CASE("tools are found in the documented order") {
  Fixture f;
  CHECK(f.found(Tool::Ptxas).empty());
  f.environment["VIRTUAL_ENV"] = f.path("venv");
  f.put("venv/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "VIRTUAL_ENV");
  f.put("repo/.deps/nvidia/cu13/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "scripts/setup");
  CHECK(f.found(Tool::Ptxas) == f.path("repo/.deps/nvidia/cu13/bin/ptxas"));
  f.put("usual/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "usual folder");
  f.environment["PATH"] = f.path("empty") + ":" + f.path("path/bin");
  f.put("path/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "PATH");
  f.environment["CUDA_PATH"] = f.path("cuda-path");
  f.put("cuda-path/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "CUDA_PATH");
  f.environment["CUDA_HOME"] = f.path("cuda-home");
  f.put("cuda-home/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "CUDA_HOME");
  f.options.cudaPath = f.path("option");
  CHECK(f.source(Tool::Ptxas) == "CUDA_HOME");
  f.put("option/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "--cuda-path");
  f.options.ptxas = f.path("usual/bin/ptxas");
  CHECK(f.source(Tool::Ptxas) == "--ptxas");
}

TEST_CASE("libdevice is found beside the ptxas on PATH, and in the user's data folder") {
  Fixture f;
  f.environment["HOME"] = f.path("home");
  f.put("home/.local/share/hloc/nvidia/cu13/nvvm/libdevice/libdevice.10.bc");
  CHECK(f.source(Tool::Libdevice) == "scripts/setup");
  f.environment["PATH"] = f.path("toolkit/bin");
  f.put("toolkit/bin/ptxas");
  f.put("toolkit/nvvm/libdevice/libdevice.10.bc");
  CHECK(f.source(Tool::Libdevice) == "PATH");
}

TEST_CASE("nvJitLink is a library of a toolkit, the newest of several") {
  Fixture f;
  f.put("usual/lib/libnvJitLink.so.12");
  f.put("usual/lib/libnvJitLink.so.13");
  CHECK(f.found(Tool::NvJitLink) == f.path("usual/lib/libnvJitLink.so.13"));
  f.put("usual/lib64/libnvJitLink.so");
  CHECK(f.found(Tool::NvJitLink) == f.path("usual/lib64/libnvJitLink.so"));
  f.environment["PATH"] = f.path("toolkit/bin");
  f.put("toolkit/bin/ptxas");
  f.put("toolkit/lib/libnvJitLink.so.13");
  CHECK(f.source(Tool::NvJitLink) == "PATH");
}

TEST_CASE("a file named by an option is not replaced by another") {
  Fixture f;
  f.put("usual/bin/ptxas");
  f.options.ptxas = f.path("nowhere/ptxas");
  Toolchain toolchain = Toolchain::discover(f.options);
  CHECK_FALSE(toolchain.has(Tool::Ptxas));
  REQUIRE(toolchain.find(Tool::Ptxas).tried.size() == 1);
  CHECK(toolchain.find(Tool::Ptxas).tried[0].first == "--ptxas");
}

TEST_CASE("missing tools are reported with every place and what still works") {
  Fixture f;
  Toolchain toolchain = Toolchain::discover(f.options);
  DiagnosticEngine diagnostics;
  toolchain.reportMissing(Tool::Ptxas, "machine code", diagnostics);
  REQUIRE(diagnostics.diagnostics().size() == 1);
  std::string notes;
  for (const DiagnosticNote &note : diagnostics.diagnostics()[0].notes)
    notes += note.message + "\n";
  for (const char *part : {"CUDA_HOME: not set", "CUDA_PATH", "PATH", "usual/bin/ptxas", "VIRTUAL_ENV: not set",
                           "emulator", "scripts/setup", "--ptxas=FILE"})
    CHECK(notes.find(part) != std::string::npos);
  CHECK(toolchain.describe().find("ptxas: not found\n") != std::string::npos);
}

TEST_CASE("the doctor names path, source and version") {
  Fixture f;
  f.environment["CUDA_HOME"] = f.path("cuda");
  f.put("cuda/bin/ptxas");
  std::string text = Toolchain::discover(f.options).describe();
  CHECK(text.find("ptxas: " + f.path("cuda/bin/ptxas") + " (from CUDA_HOME, version 13.0.88)\n") != std::string::npos);
  CHECK(text.find("libdevice: not found\n") != std::string::npos);
  CHECK(ptxasVersion(f.path("nowhere")).empty());
}

TEST_CASE("a ptxas is asked for its version once a process") {
  Fixture f;
  const std::string ptxas = f.path("ptxas"), calls = f.path("calls");
  REQUIRE(writeFile(ptxas, "#!/bin/sh\necho call >> " + calls + "\necho 'release 13.0, V13.0.88'\n", f.error));
  REQUIRE(::chmod(ptxas.c_str(), 0755) == 0);
  CHECK(ptxasVersion(ptxas) == "13.0.88");
  CHECK(ptxasVersion(ptxas) == "13.0.88");
  CHECK(readFile(calls, f.error) == "call\n");
  // Another file in its place is another ptxas.
  REQUIRE(writeFile(ptxas, "#!/bin/sh\necho 'Cuda compilation tools, release 13.1, V13.1.2'\n", f.error));
  CHECK(ptxasVersion(ptxas) == "13.1.2");
}

TEST_CASE("the doctor says if what was named as ptxas is none") {
  Fixture f;
  f.options.ptxas = "/bin/ls";
  std::string text = Toolchain::discover(f.options).describe();
  CHECK(text.find("ptxas: /bin/ls (from --ptxas), which is none") != std::string::npos);
}
