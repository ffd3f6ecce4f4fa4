#pragma once
// What carrying out a program's steps once comes to, by the cost model: how often each kernel is launched, what is
// copied and filled, how long all of it takes.
//
//   launch k0; while (rounds 8) { condition: launch k1  body: launch k2 }      k0: 1, k1: 9, k2: 8 launches
//
// Of a conditional the branch that takes longest counts. A loop of which nobody knows how often it goes round counts as
// going round once; `openLoops` tells how many there are.

#include "hloc/kernel/Estimate.h"
#include "hloc/kernel/LibraryCall.h"
#include "hloc/kernel/Steps.h"

namespace hloc {

/// Of an empty kernel in a CUDA graph, from the end of the one before it; in a stream it is launchSeconds. Chains of
/// 1000 and of 100 empty kernels took 0.78 and 0.85 us each on an H100 with a driver of CUDA 13.0; published figures
/// are 0.6 to 2.7.
inline constexpr double graphLaunchSeconds = 0.8e-6;

/// A step that calls a library, with how often it is carried out.
struct LibraryTotals {
  std::string step, function, configuration;
  LibraryCost cost; ///< of one call
  double times = 0;
};

struct StepTotals {
  std::vector<double> launches; ///< by kernel
  double copies = 0, fills = 0; ///< steps
  double bytesCopied = 0, bytesFilled = 0;
  std::vector<LibraryTotals> calls; ///< in the order of the steps
  double seconds = 0;
  double starts = 0;    ///< of kernels, copies, fills, and calls as one each: launchSeconds of `seconds` every time
  double decisions = 0; ///< of loops and branches, by what the device has computed
  unsigned openLoops = 0;
};

/// `secondsOfKernel`: by kernel, of one launch.
StepTotals totalsOf(const Steps &steps, llvm::ArrayRef<double> secondsOfKernel, const DeviceModel &device);

} // namespace hloc
