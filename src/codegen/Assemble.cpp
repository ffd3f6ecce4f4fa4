#include "hloc/codegen/Assemble.h"

#include "CubinNames.h"
#include "PtxasReport.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/StringMap.h"

#include <atomic>
#include <thread>

namespace hloc {

namespace {

/// The name single kernels are assembled and cached under. Long, because names in a cubin can only shrink in place.
constexpr llvm::StringLiteral neutralName = "hloc_kernel_without_a_name_0123456789012345678901234567890123456";

/// One PTX text on its way to a cubin.
struct Job {
  std::string ptx;
  std::string name;     ///< for messages: the entry, or the first of several
  bool renamed = false; ///< `ptx` has the neutral name instead of `name`
  std::string key;
  Cubin cubin;
  DiagnosticEngine diagnostics;
  bool failed = false;
};

Job prepare(const std::string &ptx) {
  Job job;
  std::vector<std::string> entries = ptxEntries(ptx);
  job.name = entries.empty() ? "" : entries.front();
  job.renamed = entries.size() == 1 && job.name.size() <= neutralName.size();
  job.ptx = job.renamed ? renamePtxEntry(ptx, job.name, neutralName) : ptx;
  return job;
}

void restoreName(Job &job) {
  if (!job.renamed)
    return;
  job.failed |= !renameInElf(job.cubin.bytes, neutralName, job.name);
  for (auto &[entry, resources] : job.cubin.resources)
    if (entry == neutralName)
      entry = job.name;
}

std::string renameAll(std::string text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = text.find(from.str()); at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  return text;
}

/// What all jobs of one call share.
class Assembler {
public:
  Assembler(const TargetInfo &target, const std::string &ptxas, const AssembleOptions &options)
      : target(target), ptxas(ptxas), options(options), cache(options.cacheFolder) {
    version = options.cacheFolder.empty() ? "" : cache.ptxasVersion(ptxas);
  }

  /// Sets the key; true if the cubin was in the cache.
  bool lookUp(Job &job) const {
    if (version.empty())
      return false;
    std::vector<llvm::StringRef> parts = {version, target.name, job.ptx};
    parts.insert(parts.end(), options.flags.begin(), options.flags.end());
    job.key = CubinCache::key(parts);
    std::optional<Cubin> found = cache.load(job.key);
    if (!found)
      return false;
    job.cubin = std::move(*found);
    return true;
  }

  void run(Job &job, size_t number, const TemporaryFolder &folder) const {
    std::string input = folder.file(fmt::format("{}.ptx", number)),
                output = folder.file(fmt::format("{}.cubin", number));
    std::string error;
    if (!writeFile(input, job.ptx, error))
      return fail(job, DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", input, error));
    std::vector<std::string> command = {ptxas, "-v", "-arch=" + target.name, input, "-o", output};
    command.insert(command.end(), options.flags.begin(), options.flags.end());
    ProcessResult result = runProcess(command);
    if (!result.started)
      return fail(job, DiagnosticKind::MissingTool, fmt::format("cannot run `{}`: {}", ptxas, result.error));
    if (!result.succeeded()) {
      job.failed = true;
      if (job.renamed) {
        result.errors = renameAll(result.errors, neutralName, job.name);
        result.output = renameAll(result.output, neutralName, job.name);
      }
      return reportPtxasFailure(result, job.ptx, job.name, job.diagnostics);
    }
    std::optional<std::string> bytes = readFile(output, error);
    if (!bytes || bytes->empty())
      return fail(job, DiagnosticKind::Internal, fmt::format("ptxas left no cubin for kernel `{}`", job.name));
    job.cubin.bytes = std::move(*bytes);
    job.cubin.resources = parsePtxasReport(result.output + "\n" + result.errors);
    if (!job.key.empty())
      cache.store(job.key, job.cubin);
  }

private:
  static void fail(Job &job, DiagnosticKind kind, std::string message) {
    job.failed = true;
    job.diagnostics.report(kind, std::move(message));
  }

  const TargetInfo &target;
  const std::string &ptxas;
  const AssembleOptions &options;
  CubinCache cache;
  std::string version;
};

/// Calls `work(i)` for i below `count` on up to `jobs` threads.
template <typename Work> void inParallel(size_t count, unsigned jobs, Work work) {
  std::atomic<size_t> next = 0;
  auto worker = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs && i < count; ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread &thread : threads)
    thread.join();
}

std::optional<TemporaryFolder> makeFolder(DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc", error);
  if (!folder)
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot create a temporary folder: " + error);
  return folder;
}

} // namespace

llvm::FailureOr<std::vector<Cubin>> assemble(llvm::ArrayRef<std::string> ptx, const TargetInfo &target,
                                             const Toolchain &toolchain, const AssembleOptions &options,
                                             DiagnosticEngine &diagnostics) {
  if (!toolchain.has(Tool::Ptxas)) {
    toolchain.reportMissing(Tool::Ptxas, "machine code", diagnostics);
    return llvm::failure();
  }
  Assembler assembler(target, toolchain.find(Tool::Ptxas).path, options);
  std::vector<Job> jobs;
  for (const std::string &text : ptx)
    jobs.push_back(prepare(text));
  // Equal kernels are assembled once; the others copy what the first got.
  llvm::StringMap<size_t> firstWith;
  std::vector<size_t> source(jobs.size()), todo;
  for (size_t i = 0; i < jobs.size(); ++i) {
    source[i] = firstWith.try_emplace(jobs[i].ptx, i).first->second;
    if (source[i] == i && !assembler.lookUp(jobs[i]))
      todo.push_back(i);
  }
  std::optional<TemporaryFolder> folder = todo.empty() ? std::nullopt : makeFolder(diagnostics);
  if (!todo.empty() && !folder)
    return llvm::failure();
  inParallel(todo.size(), options.jobs, [&](size_t i) { assembler.run(jobs[todo[i]], todo[i], *folder); });

  for (size_t i = 0; i < jobs.size(); ++i)
    if (source[i] != i) {
      jobs[i].cubin = jobs[source[i]].cubin;
      jobs[i].failed = jobs[source[i]].failed;
    }

  std::vector<Cubin> cubins;
  bool failed = false;
  for (Job &job : jobs) {
    if (!job.failed)
      restoreName(job);
    diagnostics.append(job.diagnostics);
    failed |= job.failed;
    cubins.push_back(std::move(job.cubin));
  }
  if (failed)
    return llvm::failure();
  return cubins;
}

llvm::FailureOr<std::string> makeFatbin(llvm::ArrayRef<FatbinImage> images, const Toolchain &toolchain,
                                        DiagnosticEngine &diagnostics) {
  if (!toolchain.has(Tool::Fatbinary)) {
    toolchain.reportMissing(Tool::Fatbinary, "fat binaries", diagnostics);
    return llvm::failure();
  }
  std::optional<TemporaryFolder> folder = makeFolder(diagnostics);
  if (!folder)
    return llvm::failure();
  std::string output = folder->file("out.fatbin"), error;
  std::vector<std::string> command = {toolchain.find(Tool::Fatbinary).path, "-64", "--create", output};
  for (const FatbinImage &image : images) {
    llvm::StringRef number = llvm::StringRef(image.target.name).drop_front(3);
    for (const auto &[kind, suffix, bytes] :
         {std::tuple{"elf", "cubin", &image.cubin}, std::tuple{"ptx", "ptx", &image.ptx}}) {
      if (bytes->empty())
        continue;
      std::string file = folder->file(image.target.name + "." + suffix);
      if (!writeFile(file, *bytes, error)) {
        diagnostics.report(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", file, error));
        return llvm::failure();
      }
      command.push_back(fmt::format("--image3=kind={},sm={},file={}", kind, number.str(), file));
    }
  }
  ProcessResult result = runProcess(command);
  std::optional<std::string> bytes = result.succeeded() ? readFile(output, error) : std::nullopt;
  if (!bytes) {
    diagnostics.report(DiagnosticKind::Internal, fmt::format("fatbinary: {} {}", result.describe(), result.errors));
    return llvm::failure();
  }
  return *bytes;
}

} // namespace hloc
