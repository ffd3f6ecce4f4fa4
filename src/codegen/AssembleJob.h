#pragma once
// One PTX text on its way to machine code: the cache, ptxas or nvJitLink, the names.

#include "hloc/codegen/Assemble.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"
#include "hloc/support/Subprocess.h"

namespace hloc {

/// Where a job is done, and what comes of it.
struct AssembleMethod {
  bool library = false; ///< by nvJitLink, else by ptxas
  bool object = false;  ///< an object to be linked, else a cubin
};

/// A kernel that has a neutral name in the text.
struct NeutralName {
  std::string neutral, own;
};

struct AssembleJob {
  std::string ptx;
  AssembleMethod method;
  std::string name;               ///< for messages: the entry, or the first of several
  std::vector<NeutralName> names; ///< none: the text has the kernels' own
  std::vector<std::string> parts; ///< of several kernels that were joined: each as it was given
  std::string key;
  Cubin cubin;
  DiagnosticEngine diagnostics;
  bool failed = false;
  size_t numKernels() const { return std::max<size_t>(parts.size(), 1); }
};

/// The job for `ptx`; a single kernel gets a neutral name, which equal kernels share.
AssembleJob prepareJob(const std::string &ptx, AssembleMethod method);
/// Jobs of about eight kernels each, for objects: a process costs as much as assembling one or two. Neither names nor
/// the order of the kernels matter to the texts of the jobs, and where one kernel is new, or another, few jobs are.
/// Kernels that are equal are in jobs with one text, which is assembled once.
/// Nothing if the texts cannot be joined, which is reported.
std::optional<std::vector<AssembleJob>> prepareBatches(llvm::ArrayRef<std::string> kernels,
                                                       DiagnosticEngine &diagnostics);
/// Gives the results the kernels' own names.
void restoreNames(AssembleJob &job);

/// What all jobs of one call share.
class Assembler {
public:
  Assembler(const TargetInfo &target, const Toolchain &toolchain, const AssembleOptions &options);

  /// Sets the key; true if the cubin was in the cache.
  bool lookUp(AssembleJob &job) const;
  /// `folder` is needed for ptxas only; file names are made of `number`.
  void run(AssembleJob &job, size_t number, const std::optional<TemporaryFolder> &folder) const;
  /// One cubin of the objects of several jobs.
  bool link(llvm::ArrayRef<AssembleJob> jobs, std::string &bytes, DiagnosticEngine &diagnostics) const;

private:
  std::string libraryVersion() const;
  /// Which kernels of a job of several are at fault, and why.
  void blame(AssembleJob &job, size_t number, const std::optional<TemporaryFolder> &folder) const;
  ProcessResult runProgram(AssembleJob &job, size_t number, const TemporaryFolder &folder) const;
  ProcessResult runLibrary(AssembleJob &job) const;

  const TargetInfo &target;
  const std::string &ptxas, &library;
  const AssembleOptions &options;
  CubinCache cache;
  std::string version;
};

} // namespace hloc
