#pragma once
// PTX to machine code by NVIDIA's ptxas, run as parallel processes in front of a cache.
//
//   assemble({ptxOfGelu, ptxOfSoftmax}, sm_90, toolchain, options, diagnostics)
//     -> {Cubin {bytes, {{"gelu", 28 registers, ...}}}, Cubin {...}}
//
// A file costs ptxas about 10 ms before it does anything, so that many small kernels are best joined by mergePtx first.

#include "hloc/codegen/CubinCache.h"
#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;
class Toolchain;

struct AssembleOptions {
  unsigned jobs = 1;              ///< ptxas processes at a time
  std::string cacheFolder;        ///< CubinCache::defaultFolder() for users; empty: no cache
  std::vector<std::string> flags; ///< more arguments for ptxas, e.g. `-O1`
};

/// One cubin a PTX text, in order. A text with a single entry is looked up under a neutral name, so that equal kernels
/// with different names share one assembly. Errors of ptxas, a missing ptxas, a target or PTX version it does not know
/// are reported; spills are not errors and are found in the resources.
llvm::FailureOr<std::vector<Cubin>> assemble(llvm::ArrayRef<std::string> ptx, const TargetInfo &target,
                                             const Toolchain &toolchain, const AssembleOptions &options,
                                             DiagnosticEngine &diagnostics);

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
