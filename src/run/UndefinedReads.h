#pragma once
// Kernels of other compilers read bytes that have no value: beyond the end of an argument, of memory that nobody wrote,
// of a lane that is not there. Compilers do so ahead of the test whether there is anything to load, and throw the value
// away. Whether they do is seen by running again with other bytes in such places.

#include "hloc/emulator/Emulator.h"
#include "hloc/hlo/Literal.h"
#include "hloc/kernel/Device.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// Gives each group of overlapping slices of a buffer that nobody fills ahead a buffer of its own: an argument ends
/// where its slice ends, not where the next one of the same arena begins.
void separateSlices(DeviceProgram &program);

/// Whether some result of `replay` depends on bytes without a value. `result` is that of a run with `options`; of
/// programs with few `bytes` of buffers more is tried, and less `ofUpdates` alone, which leave such bytes as they are.
bool dependsOnUndefined(const emulator::EmulatorOptions &options, const Literal &result, uint64_t bytes, bool ofUpdates,
                        llvm::function_ref<llvm::FailureOr<Literal>(const emulator::EmulatorOptions &)> replay);

} // namespace hloc
