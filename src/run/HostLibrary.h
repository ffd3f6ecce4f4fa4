#pragma once
// What a call of a library leaves in memory, by what the interpreter says that its custom call means: the parameters of
// the step tell where elements lie, so that a wrong one gives wrong results here as on a device.

#include "hloc/kernel/LibraryCall.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc {

using ReadSlice = llvm::function_ref<llvm::ArrayRef<uint8_t>(const BufferSlice &)>;
using WriteSlice = llvm::function_ref<void(const BufferSlice &, uint64_t offset, llvm::ArrayRef<uint8_t>)>;

/// `call` has passed checkLibraryCall(). Workspace stays as it is. False after a failure, with `error` set or reported.
bool carryOutOnHost(const CallStep &call, ReadSlice read, WriteSlice write, DiagnosticEngine &diagnostics,
                    std::string &error);

} // namespace hloc
