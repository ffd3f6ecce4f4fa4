#pragma once
// LLVM IR as text.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace hloc {

class DiagnosticEngine;
class SourceFile;

/// One LLVM module with what is in all `parts`, in that order: the texts one after the other are none, for they number
/// metadata and declare intrinsics each for itself. One part comes back unchanged.
llvm::FailureOr<std::string> mergeLlvm(llvm::ArrayRef<std::string> parts, DiagnosticEngine &diagnostics);

/// A module of somebody else's, which LLVM's verifier has found good and which code can be generated for in time. Null
/// after an error, reported at its place in the file that the engine points into.
std::unique_ptr<llvm::Module> readLlvm(const SourceFile &file, llvm::LLVMContext &context,
                                       DiagnosticEngine &diagnostics);

} // namespace hloc
