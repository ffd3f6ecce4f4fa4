#include "AssembleJob.h"

#include "CubinNames.h"
#include "NvJitLink.h"
#include "PtxasReport.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"

namespace hloc {

namespace {

/// The name single kernels are assembled and cached under. Long, because names in a cubin can only shrink in place.
constexpr llvm::StringLiteral neutralName = "hloc_kernel_without_a_name_0123456789012345678901234567890123456";

llvm::StringRef nameOf(AssembleMethod method) {
  if (method.library)
    return method.object ? "nvJitLink -r" : "nvJitLink";
  return method.object ? "ptxas -c" : "ptxas";
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
  job.renamed = entries.size() == 1 && job.name.size() <= neutralName.size();
  if (job.renamed)
    job.ptx = renamePtxEntry(ptx, job.name, neutralName);
  return job;
}

void restoreName(AssembleJob &job) {
  if (!job.renamed)
    return;
  job.failed |= !renameInElf(job.cubin.bytes, neutralName, job.name);
  for (auto &[entry, resources] : job.cubin.resources)
    if (entry == neutralName)
      entry = job.name;
}

Assembler::Assembler(const TargetInfo &target, const Toolchain &toolchain, const AssembleOptions &options)
    : target(target), ptxas(toolchain.find(Tool::Ptxas).path), library(toolchain.find(Tool::NvJitLink).path),
      options(options), cache(options.cacheFolder) {
  if (!options.cacheFolder.empty())
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
  if (!result.succeeded()) {
    job.failed = true;
    if (job.renamed) {
      result.errors = renameAll(result.errors, neutralName, job.name);
      result.output = renameAll(result.output, neutralName, job.name);
    }
    job.diagnostics.setFile(options.given);
    return reportPtxasFailure(result, job.ptx, job.name, job.diagnostics);
  }
  job.cubin.resources = parsePtxasReport(result.output + "\n" + result.errors);
  if (!job.key.empty())
    cache.store(job.key, job.cubin);
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
