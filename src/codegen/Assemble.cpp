#include "hloc/codegen/Assemble.h"

#include "AssembleJob.h"
#include "NvJitLink.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"
#include "hloc/support/Parallel.h"
#include "hloc/support/WorkProgress.h"

#include "fmt/format.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <future>

namespace hloc {

namespace {

/// Up to so many different kernels of a module are jobs of their own.
constexpr size_t singleKernels = 16;

/// Whether nvJitLink and ptxas give the same code: nvJitLink links, and what is linked may move, which costs an
/// instruction where shared memory or a variable is addressed and keeps functions that ptxas would inline.
bool sameWhenLinked(llvm::StringRef ptx) {
  return !ptx.contains(".shared") && !ptx.contains(".func") && !ptx.contains(".global .align");
}

/// Whether nvJitLink is of the release that ptxas is of: both lie in one toolkit.
bool inOneToolkit(const Toolchain &toolchain) {
  auto rootOf = [&](llvm::StringRef file) {
    llvm::SmallString<256> root;
    llvm::StringRef folder = llvm::sys::path::parent_path(llvm::sys::path::parent_path(file));
    return llvm::sys::fs::real_path(folder, root) ? std::string() : root.str().str();
  };
  if (!toolchain.has(Tool::Ptxas) || !toolchain.has(Tool::NvJitLink))
    return false;
  llvm::SmallString<256> ptxas;
  if (llvm::sys::fs::real_path(toolchain.find(Tool::Ptxas).path, ptxas))
    return false;
  std::string root = rootOf(ptxas);
  return !root.empty() && root == rootOf(toolchain.find(Tool::NvJitLink).path);
}

/// The method for a text with one kernel, or with several in one file.
AssembleMethod methodFor(llvm::StringRef ptx, const Toolchain &toolchain, AssemblerChoice choice) {
  bool both = choice == AssemblerChoice::Auto && toolchain.has(Tool::Ptxas);
  bool library = both ? inOneToolkit(toolchain) && sameWhenLinked(ptx) && ptxEntries(ptx).size() == 1
                      : choice != AssemblerChoice::Ptxas && toolchain.has(Tool::NvJitLink);
  return {library, /*object=*/false};
}

size_t countKernels(llvm::ArrayRef<AssembleJob> jobs, llvm::ArrayRef<size_t> which) {
  size_t count = 0;
  for (size_t i : which)
    count += jobs[i].numKernels();
  return count;
}

/// Does the jobs whose result is not known; equal ones once. False, and why, if one failed.
bool runJobs(std::vector<AssembleJob> &jobs, const Assembler &assembler, const AssembleOptions &options,
             DiagnosticEngine &diagnostics) {
  llvm::StringMap<size_t> firstWith;
  std::vector<size_t> source(jobs.size()), todo;
  for (size_t i = 0; i < jobs.size(); ++i) {
    source[i] = firstWith.try_emplace(jobs[i].ptx, i).first->second;
    if (source[i] == i && !assembler.lookUp(jobs[i]))
      todo.push_back(i);
  }
  // What takes long comes first, so that no thread is left with it at the end.
  llvm::stable_sort(todo, [&](size_t a, size_t b) { return jobs[a].ptx.size() > jobs[b].ptx.size(); });
  auto oneByOne = [&](size_t i) { return jobs[i].method.library && !jobs[i].method.object; };
  auto atOnce = std::stable_partition(todo.begin(), todo.end(), oneByOne);
  llvm::ArrayRef<size_t> own(todo.data(), atOnce - todo.begin()), others = llvm::ArrayRef(todo).drop_front(own.size());
  std::string error;
  std::optional<TemporaryFolder> folder = others.empty() ? std::nullopt : TemporaryFolder::create("hloc", error);
  if (!others.empty() && !folder) {
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot create a temporary folder: " + error);
    return false;
  }
  // One thread for cubins by the library, which makes one at a time, unlike objects; it waits for nobody.
  const unsigned threads = options.jobs;
  bool beside = threads > 1 && !own.empty() && !others.empty();
  auto run = [&](size_t i) {
    assembler.run(jobs[i], i, folder);
    if (options.work)
      options.work->advance(jobs[i].numKernels());
  };
  if (options.work)
    options.work->begin(countKernels(jobs, todo));
  auto runOwn = [&] {
    for (size_t i : own)
      run(i);
  };
  std::future<void> library = std::async(beside ? std::launch::async : std::launch::deferred, runOwn);
  runInParallel(others.size(), beside ? threads - 1 : threads, [&](size_t i) { run(others[i]); });
  library.get();
  for (size_t i = 0; i < jobs.size(); ++i)
    if (source[i] != i) {
      jobs[i].cubin = jobs[source[i]].cubin;
      jobs[i].failed = jobs[source[i]].failed;
    }
  bool failed = false;
  for (AssembleJob &job : jobs) {
    (job.method.library ? job.cubin.byNvJitLink : job.cubin.byPtxas) = true;
    if (!job.failed)
      restoreNames(job);
    diagnostics.append(job.diagnostics);
    failed |= job.failed;
  }
  return !failed;
}

} // namespace

bool canAssemble(const Toolchain &toolchain, AssemblerChoice choice) {
  return (choice != AssemblerChoice::NvJitLink && toolchain.has(Tool::Ptxas)) ||
         (choice != AssemblerChoice::Ptxas && toolchain.has(Tool::NvJitLink));
}

std::vector<std::pair<std::string, std::string>> assemblerVersions(const Cubin &cubin, const Toolchain &toolchain,
                                                                   const AssembleOptions &options) {
  std::vector<std::pair<std::string, std::string>> versions;
  auto ptxasVersion = [&] { return CubinCache(options.cache).ptxasVersion(toolchain.find(Tool::Ptxas).path); };
  if (cubin.byPtxas)
    versions.emplace_back("ptxas", ptxasVersion());
  if (cubin.byNvJitLink && options.assembler == AssemblerChoice::Auto && inOneToolkit(toolchain)) {
    versions.emplace_back("nvjitlink", ptxasVersion());
  } else if (cubin.byNvJitLink) {
    std::string error;
    const NvJitLink *library = NvJitLink::load(toolchain.find(Tool::NvJitLink).path, error);
    versions.emplace_back("nvjitlink", library ? library->version() : "");
  }
  return versions;
}

void prepareAssembling(const Toolchain &toolchain, const AssembleOptions &options, bool mayNeedLibrary) {
  if (toolchain.has(Tool::Ptxas))
    CubinCache(options.cache).ptxasVersion(toolchain.find(Tool::Ptxas).path);
  std::string error;
  mayNeedLibrary |= options.assembler == AssemblerChoice::NvJitLink || !toolchain.has(Tool::Ptxas);
  if (mayNeedLibrary && options.assembler != AssemblerChoice::Ptxas && toolchain.has(Tool::NvJitLink))
    NvJitLink::load(toolchain.find(Tool::NvJitLink).path, error);
}

llvm::FailureOr<std::vector<Cubin>> assemble(llvm::ArrayRef<std::string> ptx, const TargetInfo &target,
                                             const Toolchain &toolchain, const AssembleOptions &options,
                                             DiagnosticEngine &diagnostics) {
  if (!canAssemble(toolchain, options.assembler)) {
    toolchain.reportMissing(options.assembler == AssemblerChoice::NvJitLink ? Tool::NvJitLink : Tool::Ptxas,
                            "machine code", diagnostics);
    return llvm::failure();
  }
  std::vector<AssembleJob> jobs;
  for (const std::string &text : ptx)
    jobs.push_back(prepareJob(text, methodFor(text, toolchain, options.assembler)));
  if (!runJobs(jobs, Assembler(target, toolchain, options), options, diagnostics))
    return llvm::failure();
  std::vector<Cubin> cubins;
  for (AssembleJob &job : jobs)
    cubins.push_back(std::move(job.cubin));
  return cubins;
}

llvm::FailureOr<Cubin> assembleModule(llvm::ArrayRef<std::string> kernels, const std::string &merged,
                                      const TargetInfo &target, const Toolchain &toolchain,
                                      const AssembleOptions &options, DiagnosticEngine &diagnostics) {
  bool separately = kernels.size() > 1 && options.assembler == AssemblerChoice::Auto && inOneToolkit(toolchain) &&
                    llvm::none_of(kernels, [](llvm::StringRef ptx) { return ptx.contains(".func"); });
  if (!separately) {
    llvm::FailureOr<std::vector<Cubin>> cubins = assemble({merged}, target, toolchain, options, diagnostics);
    if (llvm::failed(cubins))
      return llvm::failure();
    Cubin &cubin = cubins->front();
    cubin.numFromCache = cubin.fromCache ? cubin.resources.size() : 0;
    return std::move(cubin);
  }
  Assembler assembler(target, toolchain, options);
  std::vector<AssembleJob> jobs;
  if (kernels.size() <= singleKernels) {
    for (const std::string &text : kernels)
      jobs.push_back(prepareJob(text, {sameWhenLinked(text), /*object=*/true}));
  } else if (std::optional<std::vector<AssembleJob>> batches = prepareBatches(kernels, diagnostics)) {
    jobs = std::move(*batches);
  } else {
    return llvm::failure();
  }
  Cubin cubin;
  if (!runJobs(jobs, assembler, options, diagnostics) || !assembler.link(jobs, cubin.bytes, diagnostics))
    return llvm::failure();
  for (const AssembleJob &job : jobs)
    cubin.numFromCache += job.cubin.fromCache ? job.cubin.resources.size() : 0;
  cubin.fromCache = llvm::all_of(jobs, [](const AssembleJob &job) { return job.cubin.fromCache; });
  for (AssembleJob &job : jobs) {
    cubin.byPtxas |= job.cubin.byPtxas;
    cubin.byNvJitLink |= job.cubin.byNvJitLink;
    llvm::append_range(cubin.resources, job.cubin.resources);
  }
  return cubin;
}

} // namespace hloc
