#include "AssembleJob.h"

#include "CubinNames.h"
#include "NvJitLink.h"
#include "PtxasReport.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

namespace hloc {

namespace {

/// The name single kernels are assembled and cached under. Long, because names in a cubin can only shrink in place.
constexpr llvm::StringLiteral neutralName = "hloc_kernel_without_a_name_0123456789012345678901234567890123456";

llvm::StringRef nameOf(AssembleMethod method) {
  if (method.library)
    return method.object ? "nvJitLink -r" : "nvJitLink";
  return method.object ? "ptxas -c" : "ptxas";
}

/// The same for the kernel at `position` of several.
std::string neutralNameAt(size_t position) {
  std::string digits = fmt::format("{:04}", position);
  return neutralName.drop_back(digits.size()).str() + digits;
}

std::string renameAll(std::string text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = text.find(from.str()); at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  return text;
}

void fail(AssembleJob &job, DiagnosticKind kind, std::string message) {
  job.failed = true;
  job.diagnostics.report(kind, std::move(message));
}

} // namespace

AssembleJob prepareJob(const std::string &ptx, AssembleMethod method) {
  AssembleJob job;
  job.method = method;
  job.ptx = ptx;
  std::vector<std::string> entries = ptxEntries(ptx);
  job.name = entries.empty() ? "" : entries.front();
  if (entries.size() == 1 && job.name.size() <= neutralName.size()) {
    job.names = {{neutralName.str(), job.name}};
    job.ptx = renamePtxEntry(ptx, job.name, neutralName);
  }
  return job;
}

namespace {

/// Of a batch. The bytes are of PTX: kernels of this size take as long as all others of a batch together.
constexpr size_t mostKernels = 16, mostBytes = 96 << 10;
/// One of so many kernels is the last of its batch, whatever comes before it.
constexpr uint64_t kernelsABatch = 8;

struct NeutralKernel {
  uint64_t digest;
  AssembleJob job;                        ///< for the first of them alone
  std::vector<std::string> names;         ///< of all kernels that are this one
  std::vector<const std::string *> given; ///< their texts
  size_t numEqual() const { return names.size(); }
};

/// In the order of how many kernels have the text, then of digests.
std::vector<NeutralKernel> collectEqual(std::vector<std::pair<AssembleJob, const std::string *>> jobs) {
  llvm::StringMap<size_t> numbers;
  std::vector<NeutralKernel> kernels;
  for (auto &[job, given] : jobs) {
    auto [found, isNew] = numbers.try_emplace(job.ptx, kernels.size());
    std::string name = job.name;
    if (isNew)
      kernels.push_back({llvm::xxh3_64bits(job.ptx), std::move(job), {}, {}});
    kernels[found->second].names.push_back(std::move(name));
    kernels[found->second].given.push_back(given);
  }
  llvm::stable_sort(kernels, [](const NeutralKernel &a, const NeutralKernel &b) {
    return std::pair(a.numEqual(), a.digest) < std::pair(b.numEqual(), b.digest);
  });
  return kernels;
}

/// One text, and a job of it for each kernel that has the same: the first is done, the others are its copies with
/// other names.
std::optional<std::vector<AssembleJob>> joinKernels(llvm::ArrayRef<NeutralKernel> kernels,
                                                    DiagnosticEngine &diagnostics) {
  std::vector<AssembleJob> jobs(kernels.front().numEqual());
  std::vector<std::string> texts;
  for (auto [position, kernel] : llvm::enumerate(kernels)) {
    const std::string neutral = neutralNameAt(position);
    texts.push_back(renamePtxEntry(kernel.job.ptx, neutralName, neutral));
    for (auto [job, name, given] : llvm::zip_equal(jobs, kernel.names, kernel.given)) {
      job.names.push_back({neutral, name});
      job.parts.push_back(*given);
    }
  }
  llvm::FailureOr<std::string> merged = mergePtx(texts, diagnostics);
  if (failed(merged))
    return std::nullopt;
  for (AssembleJob &job : jobs) {
    job.method.object = true;
    job.name = job.names.front().own;
    job.ptx = *merged;
  }
  return jobs;
}

/// How many of the kernels are a batch: those that as many kernels have, up to where a digest says so.
size_t countBatch(llvm::ArrayRef<NeutralKernel> kernels) {
  size_t count = 0, bytes = 0;
  do
    bytes += kernels[count].job.ptx.size();
  while (kernels[count++].digest % kernelsABatch && count < kernels.size() && count < mostKernels &&
         bytes < mostBytes && kernels[count].numEqual() == kernels.front().numEqual());
  return count;
}

} // namespace

std::optional<std::vector<AssembleJob>> prepareBatches(llvm::ArrayRef<std::string> kernels,
                                                       DiagnosticEngine &diagnostics) {
  std::vector<AssembleJob> jobs;
  std::vector<std::pair<AssembleJob, const std::string *>> named;
  for (const std::string &text : kernels) {
    AssembleJob job = prepareJob(text, {/*library=*/false, /*object=*/true});
    if (job.names.empty())
      jobs.push_back(std::move(job)); // a long name, which nothing in its place can stand for
    else
      named.emplace_back(std::move(job), &text);
  }
  const std::vector<NeutralKernel> neutral = collectEqual(std::move(named));
  for (llvm::ArrayRef<NeutralKernel> rest = neutral; !rest.empty();) {
    size_t count = countBatch(rest);
    std::optional<std::vector<AssembleJob>> batch = joinKernels(rest.take_front(count), diagnostics);
    if (!batch)
      return std::nullopt;
    std::move(batch->begin(), batch->end(), std::back_inserter(jobs));
    rest = rest.drop_front(count);
  }
  return jobs;
}

void restoreNames(AssembleJob &job) {
  for (const NeutralName &name : job.names) {
    job.failed |= !renameInElf(job.cubin.bytes, name.neutral, name.own);
    for (auto &[entry, resources] : job.cubin.resources)
      if (entry == name.neutral)
        entry = name.own;
  }
}

Assembler::Assembler(const TargetInfo &target, const Toolchain &toolchain, const AssembleOptions &options)
    : target(target), ptxas(toolchain.find(Tool::Ptxas).path), library(toolchain.find(Tool::NvJitLink).path),
      options(options), cache(options.cache) {
  if (!options.cache.folder.empty())
    version =
        ptxas.empty() || options.assembler == AssemblerChoice::NvJitLink ? libraryVersion() : cache.ptxasVersion(ptxas);
}

bool Assembler::lookUp(AssembleJob &job) const {
  if (version.empty())
    return false;
  std::vector<llvm::StringRef> parts = {nameOf(job.method), version, target.name, job.ptx};
  parts.insert(parts.end(), options.flags.begin(), options.flags.end());
  job.key = CubinCache::key(parts);
  std::optional<Cubin> found = cache.load(job.key);
  if (!found)
    return false;
  job.cubin = std::move(*found);
  return true;
}

void Assembler::run(AssembleJob &job, size_t number, const std::optional<TemporaryFolder> &folder) const {
  ProcessResult result = job.method.library ? runLibrary(job) : runProgram(job, number, *folder);
  if (job.failed)
    return;
  if (!result.succeeded() && job.parts.size() > 1)
    return blame(job, number, folder);
  if (!result.succeeded()) {
    job.failed = true;
    for (const NeutralName &name : job.names) {
      result.errors = renameAll(result.errors, name.neutral, name.own);
      result.output = renameAll(result.output, name.neutral, name.own);
    }
    job.diagnostics.setFile(options.given);
    return reportPtxasFailure(result, job.ptx, job.name, job.diagnostics);
  }
  job.cubin.resources = parsePtxasReport(result.output + "\n" + result.errors);
  if (!job.key.empty())
    cache.store(job.key, job.cubin);
}

void Assembler::blame(AssembleJob &job, size_t number, const std::optional<TemporaryFolder> &folder) const {
  job.failed = true;
  for (const std::string &part : job.parts) {
    AssembleJob one = prepareJob(part, job.method);
    run(one, number, folder);
    job.diagnostics.append(one.diagnostics);
  }
  if (!job.diagnostics.hasErrors())
    fail(job, DiagnosticKind::Internal,
         fmt::format("ptxas takes kernel `{}` and {} others alone, but not together", job.name, job.parts.size() - 1));
}

bool Assembler::link(llvm::ArrayRef<AssembleJob> jobs, std::string &bytes, DiagnosticEngine &diagnostics) const {
  std::string error;
  const NvJitLink *linker = NvJitLink::load(library, error);
  if (!linker) {
    diagnostics.report(DiagnosticKind::MissingTool, "cannot load nvJitLink: " + error);
    return false;
  }
  std::vector<NvJitLinkInput> objects;
  for (const AssembleJob &job : jobs)
    objects.push_back({NvJitLinkInput::Object, job.cubin.bytes});
  ProcessResult result = linker->run(objects, {"-arch=" + target.name}, bytes);
  if (!result.succeeded())
    diagnostics.report(DiagnosticKind::Internal, "nvJitLink cannot link the kernels: " + result.errors);
  return result.succeeded();
}

/// Without the file's size, two releases of nvJitLink with the same `13.0` would share cubins.
std::string Assembler::libraryVersion() const {
  std::string error;
  uint64_t size = 0;
  const NvJitLink *loaded = NvJitLink::load(library, error);
  if (!loaded || llvm::sys::fs::file_size(library, size))
    return "";
  return fmt::format("{} {}", loaded->version(), size);
}

ProcessResult Assembler::runProgram(AssembleJob &job, size_t number, const TemporaryFolder &folder) const {
  std::string input = folder.file(fmt::format("{}.ptx", number)), output = folder.file(fmt::format("{}.cubin", number));
  std::string error;
  if (!writeFile(input, job.ptx, error)) {
    fail(job, DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", input, error));
    return {};
  }
  std::vector<std::string> command = {ptxas, "-v", "-arch=" + target.name, input, "-o", output};
  if (job.method.object)
    command.push_back("-c");
  command.insert(command.end(), options.flags.begin(), options.flags.end());
  ProcessResult result = runProcess(command);
  if (!result.started)
    fail(job, DiagnosticKind::MissingTool, fmt::format("cannot run `{}`: {}", ptxas, result.error));
  if (!result.succeeded())
    return result;
  std::optional<std::string> bytes = readFile(output, error);
  if (!bytes || bytes->empty())
    fail(job, DiagnosticKind::Internal, fmt::format("ptxas left no cubin for kernel `{}`", job.name));
  else
    job.cubin.bytes = std::move(*bytes);
  return result;
}

ProcessResult Assembler::runLibrary(AssembleJob &job) const {
  std::string error;
  const NvJitLink *loaded = NvJitLink::load(library, error);
  if (!loaded) {
    fail(job, DiagnosticKind::MissingTool, "cannot load nvJitLink: " + error);
    return {};
  }
  std::vector<std::string> arguments = {"-arch=" + target.name, "-verbose", "-O3"};
  if (job.method.object)
    arguments.push_back("-r");
  for (const std::string &flag : options.flags)
    arguments.push_back("-Xptxas=" + flag);
  return loaded->run({{NvJitLinkInput::Ptx, job.ptx}}, arguments, job.cubin.bytes);
}

} // namespace hloc
