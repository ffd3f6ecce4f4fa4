#pragma once
// From LLVM dialect (or LLVM IR) to PTX text: the last part of the compiler that runs in our process.
//
// Input: a module whose kernel entries carry their launch as discardable attributes; everything else is helpers of
// theirs.
//
//   llvm.func @gelu(%in: !llvm.ptr {llvm.noalias, llvm.align = 16 : i32}, %out: ...)
//       attributes {xla_gpu.block = array<i32: 128, 1, 1>, xla_gpu.grid = array<i32: 12288, 1, 1>}
//
// Steps: audit, translate, fix the launch (exact block size, ranges of thread and block ids), link what is used of
// libdevice, optimise, audit again, print. Every LLVM context is private to one call, so that kernels may be compiled
// on any number of threads; the same input gives the same bytes.

#include "hloc/kernel/TargetInfo.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/DisabledPasses.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"

#include <chrono>
#include <functional>
#include <string>

namespace llvm {
class Module;
}
namespace mlir {
class ModuleOp;
}

namespace hloc {

class Toolchain;

/// Receives `(stage, producer)` after each stage; call the producer for the text, or do not and pay nothing.
/// Stages in order: `llvm-translated`, `llvm-linked` (only if libdevice was needed), `llvm-optimized`, `ptx`.
using LlvmDumpCallback = std::function<void(llvm::StringRef stage, llvm::function_ref<std::string()> text)>;
/// Receives each stage's name and the time it took.
using LlvmTimingCallback = std::function<void(llvm::StringRef stage, std::chrono::nanoseconds elapsed)>;

/// A pass over LLVM IR that has run: one of LLVM's over a function, a loop or the module, or a step of hloc's own.
struct LlvmPassRun {
  std::string name; ///< `instcombine`
  std::string id;   ///< `instcombine#2`, the second run; of hloc's own steps the name
  std::chrono::steady_clock::time_point begin, end;
  std::function<std::string()> text; ///< the whole module; valid during the call
};
using LlvmPassCallback = std::function<void(const LlvmPassRun &)>;

struct LlvmOptions {
  /// Where libdevice is; null or without one: kernels that need it are refused with a `missing-tool` diagnostic.
  const Toolchain *toolchain = nullptr;
  unsigned optimizationLevel = 3; ///< 0 to 3, as clang's -O
  bool contract = true;           ///< mul and add may become one fma
  /// f32 division by `div.full` (2 ulp, no slow path) and reciprocals by `rcp.approx` (1 ulp), as XLA has it; false:
  /// `div.rn`. Divisions by powers of two are exact either way.
  bool fastDivision = true;
#ifdef NDEBUG
  static constexpr bool verifiesByDefault = false;
#else
  static constexpr bool verifiesByDefault = true;
#endif
  bool verify = verifiesByDefault; ///< run LLVM's verifier on what was translated and on what was optimised
  bool lineInfo = false;           ///< `.file` and `.loc` directives that point into the HLO text
  uint32_t ptxVersion = 0;         ///< PTX ISA times ten; 0: the target's own
  LlvmDumpCallback dump;
  LlvmTimingCallback timing;
  LlvmPassCallback pass; ///< receives each pass, in the order of running
  /// Of LLVM IR: the step after which to go on, by the id that dumps name; empty: all steps. canStartAfter tells
  /// whether that is one.
  std::string startAfter;
  DisabledPasses disabled = {}; ///< passes that are left out, of those that LLVM can do without
  bool given = false;           ///< the IR is the user's, so that LLVM's giving up is no bug of ours
  bool nameValues = false;      ///< after the HLO instructions that MLIR's locations name; costs time, changes no PTX
};

/// PTX of one module with one or more kernels. On failure, `diagnostics` says why.
/// Names of helper functions and variables start with the (first) kernel's name, so that mergePtx may join the results
/// of many calls in one file.
llvm::FailureOr<std::string> compileToPtx(mlir::ModuleOp module, const TargetInfo &target, const LlvmOptions &options,
                                          DiagnosticEngine &diagnostics);

/// The same from LLVM IR, whose kernels have the calling convention `ptx_kernel`. `module` is changed, and useless
/// after. It must suit `target` (readLlvm checks that).
llvm::FailureOr<std::string> compileToPtx(llvm::Module &module, const TargetInfo &target, const LlvmOptions &options,
                                          DiagnosticEngine &diagnostics);

/// Whether what follows the step `id` gives the same PTX if it starts from the text of `module`: not in the midst of
/// LLVM's own passes over several blocks, which keep analyses from one to the next.
bool canStartAfter(const llvm::Module &module, llvm::StringRef id);

/// What slipped through the audits and made LLVM give up.
struct LlvmFailure {
  const char *kernel; ///< `?` if it is none's
  const char *reason;
  bool isGiven; ///< the IR is the user's
};

/// `handler` is called, by the thread that compiles, where LLVM can neither go on nor return; if it returns, LLVM ends
/// the process with a signal. For programs, once, at start-up: the handler is global in LLVM.
void installLlvmFailureHandler(void (*handler)(const LlvmFailure &failure));

} // namespace hloc
