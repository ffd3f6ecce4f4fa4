#include "hloc/codegen/Assemble.h"
#include "codegen/AssembleJob.h"
#include "codegen/CubinNames.h"
#include "hloc/codegen/Ptx.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "unit/SystemToolchain.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <thread>

using namespace hloc;

namespace {

std::string kernel(const std::string &name, const std::string &body = "add.s64 %rd1, %rd1, 8;") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name + "(.param .u64 " + name +
         "_param_0)\n.reqntid 32,1,1\n{\n.reg .b64 %rd<4>;\nld.param.b64 %rd1, [" + name + "_param_0];\n" + body +
         "\nst.global.b64 [%rd1], %rd1;\nret;\n}\n";
}

/// A cache folder of its own, and whatever toolchain is here.
struct Fixture {
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc-test", error);
  Toolchain toolchain = test::systemToolchain();
  TargetInfo target = *findTarget("sm_90");
  AssembleOptions options;
  DiagnosticEngine diagnostics;

  Fixture() {
    REQUIRE(folder);
    options.cache.folder = folder->path();
  }
  bool skip() const {
    if (!toolchain.has(Tool::Ptxas))
      WARN("no ptxas: test skipped");
    return !toolchain.has(Tool::Ptxas);
  }
  bool skipWithoutNvJitLink() const {
    if (!toolchain.has(Tool::NvJitLink))
      WARN("no nvJitLink: test skipped");
    return skip() || !toolchain.has(Tool::NvJitLink);
  }
  std::vector<Cubin> run(std::vector<std::string> ptx) {
    auto cubins = assemble(ptx, target, toolchain, options, diagnostics);
    INFO(messages());
    REQUIRE(llvm::succeeded(cubins));
    return *cubins;
  }
  std::string messages() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    diagnostics.print(stream, false);
    return text;
  }
  std::vector<std::string> cacheFiles() const {
    std::vector<std::string> files;
    std::error_code code;
    for (llvm::sys::fs::recursive_directory_iterator it(folder->path() + "/cubin", code), end; it != end && !code;
         it.increment(code))
      if (llvm::sys::fs::is_regular_file(it->path()))
        files.push_back(it->path());
    return files;
  }
};

constexpr const char *sharedBody = ".shared .align 4 .b8 buffer[4096];\nst.shared.b64 [buffer], %rd1;\nbar.sync 0;\n"
                                   "ld.shared.b64 %rd2, [buffer+8];\nadd.s64 %rd1, %rd1, %rd2;";

/// The bytes of a section `.text.<entry>`.
std::string codeOf(const Cubin &cubin, const std::string &entry) {
  using namespace llvm::ELF;
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.bytes.data(), sizeof header);
  auto section = [&](unsigned i) {
    Elf64_Shdr record;
    std::memcpy(&record, cubin.bytes.data() + header.e_shoff + i * sizeof record, sizeof record);
    return record;
  };
  for (unsigned i = 0; i < header.e_shnum; ++i)
    if (cubin.bytes.data() + section(header.e_shstrndx).sh_offset + section(i).sh_name == ".text." + entry)
      return cubin.bytes.substr(section(i).sh_offset, section(i).sh_size);
  return "";
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("the ptxas report is read per entry") {
  auto report = parsePtxasReport(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'two' for 'sm_90'\n"
      "ptxas info    : Function properties for two\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n"
      "ptxas info    : Compile time = 14.613 ms\n"
      "ptxas info    : Compiling entry function 'gelu' for 'sm_90'\n"
      "ptxas info    : Function properties for gelu\n"
      "    16 bytes stack frame, 1628 bytes spill stores, 2024 bytes spill loads\n"
      "ptxas info    : Function properties for gelu__slow\n"
      "    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 24 bytes cumulative stack size, 4224 bytes smem, 368 bytes "
      "cmem[0]\n");
  REQUIRE(report.size() == 2);
  CHECK(report[0].first == "two");
  CHECK(report[0].second.registers == 8);
  CHECK(report[0].second.sharedBytes == 0);
  const KernelResources &gelu = report[1].second;
  CHECK(report[1].first == "gelu");
  CHECK(gelu.registers == 255);
  CHECK(gelu.barriers == 1);
  CHECK(gelu.spillStoreBytes == 1632);
  CHECK(gelu.spillLoadBytes == 2032);
  CHECK(gelu.stackBytes == 24);
  CHECK(gelu.sharedBytes == 4224);
  CHECK(parsePtxasReport("").empty());
  CHECK(parsePtxasReport("ptxas info : Used 8 registers\n").empty());
}

TEST_CASE("kernels become cubins with their names and resources") {
  Fixture f;
  if (f.skip())
    return;
  f.options.jobs = 2;
  std::vector<Cubin> cubins = f.run({kernel("alpha"), kernel("beta", "add.s64 %rd1, %rd1, 16;")});
  REQUIRE(cubins.size() == 2);
  CHECK(contains(cubins[0].bytes, std::string(".text.alpha\0", 12)));
  CHECK(contains(cubins[1].bytes, std::string(".text.beta\0", 11)));
  CHECK_FALSE(contains(cubins[0].bytes, "hloc_kernel"));
  REQUIRE(cubins[0].find("alpha"));
  CHECK(cubins[0].find("alpha")->registers > 0);
  CHECK(cubins[0].find("beta") == nullptr);
}

TEST_CASE("a second assembly comes from the cache, also under another name") {
  Fixture f;
  if (f.skip())
    return;
  Cubin cold = f.run({kernel("alpha")})[0];
  CHECK_FALSE(cold.fromCache);
  Cubin warm = f.run({kernel("alpha")})[0];
  CHECK(warm.fromCache);
  CHECK(warm.bytes == cold.bytes);
  CHECK(warm.find("alpha")->registers == cold.find("alpha")->registers);
  Cubin other = f.run({kernel("gamma_ray")})[0];
  CHECK(other.fromCache);
  CHECK(contains(other.bytes, std::string(".text.gamma_ray\0", 16)));
  CHECK(other.find("gamma_ray"));
}

TEST_CASE("equal kernels of one call are assembled once") {
  Fixture f;
  if (f.skip())
    return;
  std::vector<Cubin> cubins = f.run({kernel("a"), kernel("bb"), kernel("ccc")});
  CHECK(f.cacheFiles().size() == 1);
  CHECK(contains(cubins[2].bytes, std::string(".text.ccc\0", 10)));
  CHECK(contains(cubins[0].bytes, std::string(".text.a\0", 8)));
}

TEST_CASE("what the result depends on is in the key") {
  Fixture f;
  if (f.skip())
    return;
  f.run({kernel("alpha")});
  CHECK_FALSE(f.run({kernel("alpha", "add.s64 %rd1, %rd1, 9;")})[0].fromCache);
  f.options.flags = {"-O1"};
  CHECK_FALSE(f.run({kernel("alpha")})[0].fromCache);
  CHECK(CubinCache::key({"ab", "c"}) != CubinCache::key({"a", "bc"}));
}

TEST_CASE("damaged cache entries are ignored and replaced") {
  Fixture f;
  if (f.skip())
    return;
  Cubin good = f.run({kernel("alpha")})[0];
  REQUIRE(f.cacheFiles().size() == 1);
  std::string file = f.cacheFiles()[0], error;
  std::string bytes = *readFile(file, error);
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  for (const std::string &damaged :
       {bytes.substr(0, bytes.size() / 2), bytes.substr(0, bytes.size() - 1), std::string(), std::string("junk"),
        flipped, bytes + "x", std::string(300, '\n')}) {
    REQUIRE(writeFile(file, damaged, error));
    Cubin again = f.run({kernel("alpha")})[0];
    CHECK_FALSE(again.fromCache);
    CHECK(again.bytes == good.bytes);
    CHECK(f.run({kernel("alpha")})[0].fromCache);
  }
}

TEST_CASE("many threads may share a cache") {
  Fixture f;
  CubinCache cache({f.folder->path()});
  Cubin cubin{std::string(100000, 'c'), {{"k", KernelResources{1, 2, 3, 4, 5, 6}}}, false};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        std::string key = CubinCache::key({std::to_string(i % 5)});
        cache.store(key, cubin);
        std::optional<Cubin> found = cache.load(key);
        if (!found || found->bytes != cubin.bytes || found->find("k")->barriers != 6)
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(f.cacheFiles().size() == 5); // no temporary files stay
}

TEST_CASE("a cache over its limit loses its oldest files") {
  Fixture f;
  CubinCache cache({f.folder->path(), /*limit=*/10000});
  Cubin cubin{std::string(3000, 'c'), {}, false};
  for (const char *key : {"aa1", "bb2", "cc3"})
    cache.store(key, cubin);
  cache.prune();
  CHECK(f.cacheFiles().size() == 3);
  // Age decides, not the name.
  struct timespec old[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (f.folder->path() + "/cubin/cc/3").c_str(), old, 0) == 0);
  cache.store("dd4", cubin);
  cache.prune();
  CHECK(f.cacheFiles().size() == 2);
  CHECK_FALSE(cache.load("cc3"));
  CHECK(cache.load("dd4"));
}

TEST_CASE("a cache that cannot be written is no error") {
  Fixture f;
  if (f.skip())
    return;
  f.options.cache.folder = "/dev/null/cache";
  CHECK_FALSE(f.run({kernel("alpha")})[0].fromCache);
  f.options.cache.folder = "";
  CHECK_FALSE(f.run({kernel("alpha")})[0].fromCache);
}

TEST_CASE("errors of ptxas name the kernel and the PTX line") {
  Fixture f;
  if (f.skip())
    return;
  CHECK(llvm::failed(
      assemble({kernel("alpha", "fma.bogus %rd1;"), kernel("fine")}, f.target, f.toolchain, f.options, f.diagnostics)));
  INFO(f.messages());
  CHECK(f.diagnostics.exitCode() == ExitCode::InternalError);
  CHECK(contains(f.messages(), "kernel `alpha`"));
  CHECK(contains(f.messages(), "`fma.bogus %rd1;`"));
  CHECK_FALSE(contains(f.messages(), "hloc_kernel"));
}

TEST_CASE("limits of the installed ptxas and of the target are not bugs") {
  Fixture f;
  if (f.skip())
    return;
  std::string newer = kernel("alpha");
  newer.replace(newer.find("8.0"), 3, "9.9");
  CHECK(llvm::failed(assemble({newer}, f.target, f.toolchain, f.options, f.diagnostics)));
  std::string shared = ".shared .align 4 .b8 buffer[422400];\nst.shared.b64 [buffer], %rd1;\nbar.sync 0;\n"
                       "ld.shared.b64 %rd2, [buffer+8];\nadd.s64 %rd1, %rd1, %rd2;";
  CHECK(llvm::failed(assemble({kernel("alpha", shared)}, f.target, f.toolchain, f.options, f.diagnostics)));
  INFO(f.messages());
  CHECK(f.diagnostics.exitCode() == ExitCode::Unsupported);
  CHECK(contains(f.messages(), "too much shared data"));
}

TEST_CASE("nvJitLink gives the machine code and the resources that ptxas gives") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  f.options.assembler = AssemblerChoice::Ptxas;
  Cubin program = f.run({kernel("alpha")})[0];
  f.options.assembler = AssemblerChoice::NvJitLink;
  Cubin library = f.run({kernel("alpha")})[0];
  CHECK_FALSE(library.fromCache); // a cubin of the other assembler is another cubin
  CHECK(f.run({kernel("beta")})[0].fromCache);
  CHECK(codeOf(library, "alpha").size() > 0);
  CHECK(codeOf(library, "alpha") == codeOf(program, "alpha"));
  REQUIRE(library.find("alpha"));
  CHECK(library.find("alpha")->registers == program.find("alpha")->registers);
  CHECK(library.find("alpha")->barriers == program.find("alpha")->barriers);
  CHECK(library.bytes != program.bytes); // each is marked with its maker: the choice had an effect
}

TEST_CASE("by default nvJitLink takes what it does not make worse") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  std::string makers;
  auto bytes = [&](AssemblerChoice choice, const std::string &ptx) {
    f.options.cache.folder = "";
    f.options.assembler = choice;
    Cubin cubin = f.run({ptx})[0];
    makers.clear();
    for (auto &[tool, version] : assemblerVersions(cubin, f.toolchain, f.options)) {
      makers += tool + " ";
      CHECK(version.find('.') != std::string::npos);
    }
    return cubin.bytes;
  };
  std::string plain = kernel("alpha"), shared = kernel("alpha", sharedBody);
  CHECK(bytes(AssemblerChoice::Auto, plain) == bytes(AssemblerChoice::NvJitLink, plain));
  CHECK(makers == "nvjitlink ");
  CHECK(bytes(AssemblerChoice::Ptxas, shared) == bytes(AssemblerChoice::Auto, shared));
  CHECK(makers == "ptxas ");
  f.options.assembler = AssemblerChoice::Auto;
  llvm::FailureOr<Cubin> both =
      assembleModule({plain, kernel("beta", sharedBody)}, "", f.target, f.toolchain, f.options, f.diagnostics);
  REQUIRE(llvm::succeeded(both));
  CHECK(assemblerVersions(*both, f.toolchain, f.options).size() == 2);
  CHECK(bytes(AssemblerChoice::Ptxas, shared) != bytes(AssemblerChoice::NvJitLink, shared));
}

TEST_CASE("spills and shared memory are reported by nvJitLink, too") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  KernelResources found[2];
  for (bool library : {false, true}) {
    f.options.assembler = library ? AssemblerChoice::NvJitLink : AssemblerChoice::Ptxas;
    std::string body = std::string(sharedBody) + "\n.reg .b64 %v<200>;\n";
    for (int i = 0; i < 200; ++i)
      body += "ld.volatile.global.b64 %v" + std::to_string(i) + ", [%rd1+" + std::to_string(8 * i) + "];\n";
    for (int i = 0; i < 200; ++i)
      body += "st.volatile.global.b64 [%rd1+" + std::to_string(8 * i) + "], %v" + std::to_string(199 - i) + ";\n";
    found[library] = *f.run({kernel("alpha", body)})[0].find("alpha");
  }
  CHECK(found[0].spillStoreBytes > 0);
  CHECK(found[1].spillStoreBytes > 0);
  CHECK(found[1].registers > 200);
  CHECK(found[1].sharedBytes == found[0].sharedBytes);
  CHECK(found[1].barriers == 1);
}

TEST_CASE("the kernels of a module are jobs of their own, linked to one cubin") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  f.options.jobs = 2;
  std::vector<std::string> parts = {kernel("alpha"), kernel("beta"), kernel("gamma", sharedBody)};
  std::string merged = *mergePtx(parts, f.diagnostics);
  auto module = assembleModule(parts, merged, f.target, f.toolchain, f.options, f.diagnostics);
  INFO(f.messages());
  REQUIRE(llvm::succeeded(module));
  CHECK_FALSE(module->fromCache);
  CHECK(f.cacheFiles().size() == 2); // alpha and beta are equal
  for (const char *name : {"alpha", "beta", "gamma"}) {
    CHECK(codeOf(*module, name).size() > 0);
    REQUIRE(module->find(name));
    CHECK(module->find(name)->registers > 0);
  }
  CHECK(codeOf(*module, "alpha") == codeOf(*module, "beta"));
  CHECK(codeOf(*module, "alpha") != codeOf(*module, "gamma"));
  CHECK(module->find("gamma")->sharedBytes == 4096);
  CHECK_FALSE(contains(module->bytes, "hloc_kernel"));
  // Another module with one kernel more assembles that one only, and the same module gives the same bytes.
  auto again = assembleModule(parts, merged, f.target, f.toolchain, f.options, f.diagnostics);
  REQUIRE(llvm::succeeded(again));
  CHECK(again->fromCache);
  CHECK(again->bytes == module->bytes);
  parts.push_back(kernel("delta", "add.s64 %rd1, %rd1, 24;"));
  REQUIRE(llvm::succeeded(
      assembleModule(parts, *mergePtx(parts, f.diagnostics), f.target, f.toolchain, f.options, f.diagnostics)));
  CHECK(f.cacheFiles().size() == 3);
}

TEST_CASE("of many kernels several are one job") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  auto numbered = [](int i) {
    std::string add = "add.s64 %rd1, %rd1, " + std::to_string(i) + ";\n";
    return kernel("k" + std::to_string(i), i % 3 ? add : add + sharedBody);
  };
  auto run = [&](const std::vector<std::string> &parts) {
    auto module =
        assembleModule(parts, *mergePtx(parts, f.diagnostics), f.target, f.toolchain, f.options, f.diagnostics);
    INFO(f.messages());
    REQUIRE(llvm::succeeded(module));
    return *module;
  };
  std::vector<std::string> parts;
  for (int i = 0; i < 40; ++i)
    parts.push_back(numbered(i));
  f.options.jobs = 3;
  Cubin module = run(parts);
  CHECK_FALSE(module.fromCache);
  const size_t numJobs = f.cacheFiles().size();
  CHECK(numJobs >= 3); // sixteen kernels at most each
  CHECK(numJobs < 20);
  CHECK_FALSE(contains(module.bytes, "hloc_kernel"));
  std::vector<std::string> few(parts.begin(), parts.begin() + 4);
  Cubin alone = run(few);
  CHECK(f.cacheFiles().size() == numJobs + 4);
  for (int i = 0; i < 40; ++i) {
    const std::string name = "k" + std::to_string(i);
    REQUIRE(module.find(name));
    CHECK(module.find(name)->sharedBytes == (i % 3 ? 0 : 4096));
    CHECK(codeOf(module, name).size() > 0);
    if (i < 4)
      CHECK(codeOf(module, name) == codeOf(alone, name));
  }
  // The same whatever the number of jobs and the state of the cache.
  CHECK(run(parts).bytes == module.bytes);
  Fixture fresh;
  fresh.options.jobs = 1;
  auto again = assembleModule(parts, *mergePtx(parts, fresh.diagnostics), fresh.target, fresh.toolchain, fresh.options,
                              fresh.diagnostics);
  REQUIRE(llvm::succeeded(again));
  CHECK(again->bytes == module.bytes);
  // Another order and other names: all is in the cache. A kernel more: the jobs that it changes are not, one or two.
  std::vector<std::string> others;
  for (int i = 40; i-- > 0;)
    others.push_back(renamePtxEntry(parts[i], "k" + std::to_string(i), "other" + std::to_string(i)));
  CHECK(run(others).fromCache);
  const size_t before = f.cacheFiles().size();
  parts.push_back(numbered(77));
  CHECK(run(parts).find("k77"));
  CHECK(f.cacheFiles().size() <= before + 2);
}

TEST_CASE("of many kernels those that are equal are assembled once") {
  Fixture f;
  // Ten texts, of each two kernels, of one three.
  std::vector<std::string> parts;
  for (int i = 0; i < 21; ++i) {
    const std::string name = "k" + std::to_string(i), buffer = name + "__" + name + "__shared_0";
    parts.push_back(kernel(name, "add.s64 %rd1, %rd1, " + std::to_string(i % 10 + i / 20) + ";\n.shared .align 4 .b8 " +
                                     buffer + "[4096];\nst.shared.b64 [" + buffer + "], %rd1;\nbar.sync 0;\n" +
                                     "ld.shared.b64 %rd1, [" + buffer + "+8];"));
  }
  std::optional<std::vector<AssembleJob>> jobs = prepareBatches(parts, f.diagnostics);
  REQUIRE(jobs);
  std::set<std::string> texts, names;
  size_t numEntries = 0;
  for (const AssembleJob &job : *jobs) {
    if (texts.insert(job.ptx).second)
      numEntries += ptxEntries(job.ptx).size();
    for (const NeutralName &name : job.names)
      names.insert(name.own);
  }
  CHECK(numEntries == 10);
  CHECK(names.size() == 21);
  if (f.skipWithoutNvJitLink())
    return;
  auto module = assembleModule(parts, *mergePtx(parts, f.diagnostics), f.target, f.toolchain, f.options, f.diagnostics);
  INFO(f.messages());
  REQUIRE(llvm::succeeded(module));
  CHECK_FALSE(contains(module->bytes, "hloc_kernel"));
  for (int i = 0; i < 21; ++i) {
    const std::string name = "k" + std::to_string(i);
    REQUIRE(module->find(name));
    CHECK(module->find(name)->sharedBytes == 4096);
    CHECK(codeOf(*module, name).size() > 0);
    CHECK(codeOf(*module, name) == codeOf(*module, "k" + std::to_string(i % 10 + i / 20)));
  }
}

TEST_CASE("of many kernels the one that is wrong is named") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  std::vector<std::string> parts;
  for (int i = 0; i < 20; ++i)
    parts.push_back(kernel("k" + std::to_string(i), i == 7 ? "bogus.f32 %f1;" : "add.s64 %rd1, %rd1, 8;"));
  std::string merged = *mergePtx(parts, f.diagnostics);
  CHECK(llvm::failed(assembleModule(parts, merged, f.target, f.toolchain, f.options, f.diagnostics)));
  CHECK(contains(f.messages(), "kernel `k7`"));
  CHECK_FALSE(contains(f.messages(), "kernel `k6`"));
  CHECK_FALSE(contains(f.messages(), "hloc_kernel"));
}

TEST_CASE("a module is one job where nothing can link it, or where functions are called") {
  Fixture f;
  if (f.skip())
    return;
  std::vector<std::string> parts = {kernel("alpha"), kernel("beta")};
  f.options.assembler = AssemblerChoice::Ptxas;
  REQUIRE(llvm::succeeded(
      assembleModule(parts, *mergePtx(parts, f.diagnostics), f.target, f.toolchain, f.options, f.diagnostics)));
  CHECK(f.cacheFiles().size() == 1);
  f.options.assembler = AssemblerChoice::Auto;
  std::string function = ".func beta__f()\n{\nret;\n}\n";
  parts[1].insert(parts[1].find(".visible"), function);
  auto module = assembleModule(parts, *mergePtx(parts, f.diagnostics), f.target, f.toolchain, f.options, f.diagnostics);
  REQUIRE(llvm::succeeded(module));
  CHECK(f.cacheFiles().size() == 2);
  CHECK(module->find("beta"));
}

TEST_CASE("errors of nvJitLink are reported like those of ptxas") {
  Fixture f;
  if (f.skipWithoutNvJitLink())
    return;
  f.options.assembler = AssemblerChoice::NvJitLink;
  CHECK(llvm::failed(assemble({kernel("alpha", "fma.bogus %rd1;")}, f.target, f.toolchain, f.options, f.diagnostics)));
  INFO(f.messages());
  CHECK(contains(f.messages(), "kernel `alpha`"));
  CHECK(contains(f.messages(), "`fma.bogus %rd1;`"));
  CHECK_FALSE(contains(f.messages(), "hloc_kernel"));
  Fixture older; // a toolkit that no longer knows the target is a limit, not a bug
  older.options.assembler = AssemblerChoice::NvJitLink;
  older.target = *findTarget("sm_70");
  CHECK(llvm::failed(assemble({kernel("alpha")}, older.target, older.toolchain, older.options, older.diagnostics)));
  INFO(older.messages());
  CHECK(older.diagnostics.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("without ptxas the message says what was tried and what still works") {
  DiagnosticEngine diagnostics;
  CHECK(llvm::failed(assemble({kernel("k")}, *findTarget("sm_90"), Toolchain(), {}, diagnostics)));
  CHECK(diagnostics.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("fat binaries hold an image per target") {
  Fixture f;
  if (f.skip() || !f.toolchain.has(Tool::Fatbinary))
    return;
  std::string ptx = kernel("alpha");
  Cubin cubin = f.run({ptx})[0];
  auto fatbin = makeFatbin({{f.target, cubin.bytes, ptx}}, f.toolchain, f.diagnostics);
  INFO(f.messages());
  REQUIRE(llvm::succeeded(fatbin));
  CHECK(llvm::StringRef(*fatbin).starts_with("\x50\xed\x55\xba")); // magic of the container
}

TEST_CASE("names in files that are not ELF are refused") {
  std::string text = "not an ELF file at all, only some text that is long enough to hold a header ........";
  CHECK_FALSE(renameInElf(text, "file", "f"));
  std::string empty;
  CHECK_FALSE(renameInElf(empty, "file", "f"));
}
