#pragma once
// What several compilers have made of the same HLO, by the same numbers: whether it is right, and what it does, counted
// by the emulator, read from its machine code and estimated.
//
//              agrees  launches      bytes  sectors  instructions  ...    us
//   hloc          yes         1   16777216   524288        139264  ...  7.71
//   f.ptx         yes         2   16785408   524544        163840  ...  9.90

#include "hloc/kernel/Estimate.h"
#include "hloc/run/RunOptions.h"
#include "hloc/run/RunReport.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

class Toolchain;

/// A number of a program, of which less is better.
struct ComparedColumn {
  llvm::StringRef name; ///< of the column
  llvm::StringRef key;  ///< of the attribute in JSON
};
/// launches; bytes that kernels asked global memory for; sectors of 32 bytes; warp instructions; passes of shared
/// memory; bank conflicts; atomics; and of the worst kernel: registers a thread, bytes of shared memory a block; bytes
/// of machine code; microseconds of all launches by the cost model.
llvm::ArrayRef<ComparedColumn> comparedColumns();

struct ComparedKernels {
  std::string name; ///< whose they are
  RunVerdict verdict = RunVerdict::NotRun;
  std::string problem;                       ///< the first error; empty: none
  std::vector<std::optional<double>> values; ///< by comparedColumns(); unset: not known
};

/// `options` say what is compiled, or which PTX runs; counting and estimates are switched on. Machine code is for the
/// target that the PTX names, where ptxas is found.
ComparedKernels compareKernels(std::string name, std::shared_ptr<const SourceFile> file, RunOptions options,
                               const DeviceModel &device, const Toolchain &toolchain);

} // namespace hloc
