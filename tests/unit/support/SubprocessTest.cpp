#include "hloc/support/Subprocess.h"
#include "hloc/support/DynamicLibrary.h"
#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <thread>
#include <unistd.h>

using namespace hloc;

TEST_CASE("a process gives its output, errors and exit code") {
  ProcessResult result = runProcess({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(result.started);
  CHECK(result.output == "out\n");
  CHECK(result.errors == "err\n");
  CHECK(result.exitCode == 3);
  CHECK_FALSE(result.succeeded());
  CHECK(result.describe() == "exit code 3");
  CHECK(runProcess({"true"}).succeeded());
}

TEST_CASE("output larger than a pipe does not block") {
  ProcessResult result = runProcess({"sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"});
  CHECK(result.output.size() == 1000000);
  CHECK(result.errors.size() == 1000000);
}

TEST_CASE("signals, timeouts and missing programs are told apart") {
  CHECK(runProcess({"sh", "-c", "kill -SEGV $$"}).signal == SIGSEGV);
  ProcessResult slow = runProcess({"sleep", "30"}, std::chrono::milliseconds(50));
  CHECK(slow.timedOut);
  CHECK_FALSE(slow.succeeded());
  ProcessResult missing = runProcess({"/nonexistent/program"});
  CHECK_FALSE(missing.started);
  CHECK(missing.describe() == "No such file or directory");
}

TEST_CASE("stdin is empty") { CHECK(runProcess({"cat"}, std::chrono::seconds(5)).succeeded()); }

TEST_CASE("files are written whole and read back") {
  std::string error;
  auto folder = TemporaryFolder::create("hloc-test", error);
  REQUIRE(folder);
  std::string path = folder->path();
  std::string bytes("a\0b\n", 4);
  REQUIRE(createFolders(folder->file("x/y"), error));
  REQUIRE(writeFile(folder->file("x/y/f"), bytes, error));
  CHECK(readFile(folder->file("x/y/f"), error) == bytes);
  REQUIRE(writeFileAtomically(folder->file("x/y/f"), "new", error));
  CHECK(readFile(folder->file("x/y/f"), error) == "new");
  CHECK_FALSE(readFile(folder->file("absent"), error));
  CHECK(error == "No such file or directory");
  CHECK_FALSE(writeFile(folder->file("absent/f"), "", error));
  CHECK_FALSE(writeFileAtomically(folder->file("absent/f"), "", error));
  {
    TemporaryFolder moved = std::move(*folder);
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("libraries are opened by the first name that loads") {
  DynamicLibrary library({"libdoes-not-exist.so.1", "libm.so.6"});
  REQUIRE(library.isOpen());
  CHECK(library.name() == "libm.so.6");
  auto *cosine = library.function<double(double)>("cos");
  REQUIRE(cosine);
  CHECK(cosine(0) == 1);
  CHECK(library.symbol("no_such_function") == nullptr);
  DynamicLibrary none({"libdoes-not-exist.so.1"});
  CHECK_FALSE(none.isOpen());
  CHECK(none.error().find("libdoes-not-exist.so.1") != std::string::npos);
}
