#pragma once
// PTX to machine code by NVIDIA's ptxas, as parallel processes or in this one through nvJitLink, behind a cache.
//
//   assemble({ptxOfGelu, ptxOfSoftmax}, sm_90, toolchain, options, diagnostics)
//     -> {Cubin {bytes, {{"gelu", 28 registers, ...}}}, Cubin {...}}
//
// A file costs ptxas about 10 ms before it does anything, so that many small kernels are best joined by mergePtx first.

#include "hloc/codegen/CubinCache.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <memory>
#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;
class SourceFile;
class Toolchain;
struct WorkProgress;

/// `--assembler`. Auto: nvJitLink where it gives the code that ptxas gives and both are of one toolkit, or where there
/// is no ptxas; ptxas otherwise. The choice never depends on the machine's load or the cache, so that bytes do not
/// either.
enum class AssemblerChoice { Auto, NvJitLink, Ptxas };

struct AssembleOptions {
  AssemblerChoice assembler = AssemblerChoice::Auto;
  unsigned jobs = 1;              ///< ptxas processes at a time
  CacheSettings cache;            ///< those of the environment for users; without a folder: none
  std::vector<std::string> flags; ///< more arguments for ptxas, e.g. `-O1`
  WorkProgress *work = nullptr;   ///< counts kernels; null: nobody wants to know
  /// Set: the PTX is not ours but this file, and what ptxas says against it is said at its lines.
  std::shared_ptr<const SourceFile> given;
};

/// One cubin a PTX text, in order. A text with a single entry is looked up under a neutral name, so that equal kernels
/// with different names share one assembly. Errors of ptxas, a missing ptxas, a target or PTX version it does not know
/// are reported; spills are not errors and are found in the resources.
llvm::FailureOr<std::vector<Cubin>> assemble(llvm::ArrayRef<std::string> ptx, const TargetInfo &target,
                                             const Toolchain &toolchain, const AssembleOptions &options,
                                             DiagnosticEngine &diagnostics);

/// One cubin with all kernels of a module. `kernels` holds the PTX of each, `merged` of all in one file. Where
/// nvJitLink is there to link, each kernel is a job of its own, in parallel, and found in the cache whatever its name;
/// of more than sixteen, about eight are a job, and are found together. Elsewhere, and if a kernel calls functions
/// (what it needs besides its own registers is known after linking), ptxas gets `merged`. Linked code may take an
/// instruction more where shared memory is addressed.
llvm::FailureOr<Cubin> assembleModule(llvm::ArrayRef<std::string> kernels, const std::string &merged,
                                      const TargetInfo &target, const Toolchain &toolchain,
                                      const AssembleOptions &options, DiagnosticEngine &diagnostics);

/// Whether there is anything to assemble with.
bool canAssemble(const Toolchain &toolchain, AssemblerChoice choice);
/// What made the cubin: `ptxas` and `nvjitlink` with their versions. nvJitLink knows its version as `13.0` only; where
/// Auto takes it for that of the toolkit's ptxas, it has the version of that, `13.0.88`.
std::vector<std::pair<std::string, std::string>> assemblerVersions(const Cubin &cubin, const Toolchain &toolchain,
                                                                   const AssembleOptions &options);
/// Does in advance what the first call of assemble would wait for: loading nvJitLink, asking ptxas for its version.
/// `mayNeedLibrary`: false where Auto certainly takes ptxas, as of one kernel with shared memory.
void prepareAssembling(const Toolchain &toolchain, const AssembleOptions &options, bool mayNeedLibrary);

/// What `ptxas -v` printed about each entry.
std::vector<std::pair<std::string, KernelResources>> parsePtxasReport(llvm::StringRef output);

/// Machine code and, if not empty, PTX (for devices that are newer) of one target in a fat binary.
struct FatbinImage {
  TargetInfo target;
  std::string cubin;
  std::string ptx;
};

/// One file that the CUDA driver picks the fitting image from; needs the tool `fatbinary`.
llvm::FailureOr<std::string> makeFatbin(llvm::ArrayRef<FatbinImage> images, const Toolchain &toolchain,
                                        DiagnosticEngine &diagnostics);

} // namespace hloc
