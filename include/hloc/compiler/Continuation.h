#pragma once
// Compiling on from the middle: MLIR, LLVM IR or PTX that an earlier run wrote, perhaps changed since by hand.
//
//   Continuation continuation(options, toolchain, observer, diagnostics);
//   WrittenIr ir{IrKind::Mlir, file, ""};
//   std::optional<CompiledModule> compiled = continuation.compile(ir, *findTarget("sm_90"), Stage::Ptx, false);
//
// From a dump, unchanged and with the options of the run that made it, comes that run's PTX to the byte. The text may
// be anything: what is wrong with it is reported, and is never taken for a mistake of the compiler's.

#include "hloc/compiler/Compiler.h"

#include <memory>
#include <optional>
#include <string>

namespace hloc {

struct WrittenIr {
  IrKind kind; ///< all but Hlo
  std::shared_ptr<const SourceFile> file;
  std::string startAfter; ///< id of a pass, of all that the file holds; empty: as its stage lines say
};

class Continuation {
public:
  Continuation(const CompilerOptions &options, const Toolchain &toolchain, CompileObserver &observer,
               DiagnosticEngine &diagnostics)
      : options(options), toolchain(toolchain), observer(observer), diagnostics(diagnostics) {}

  /// The target that the text names, in a stage line or as PTX does: `fallback` if it names none; nothing after an
  /// error.
  std::optional<TargetInfo> targetOf(const WrittenIr &ir, const TargetInfo &fallback);

  /// Up to `stage` (Mlir, Llvm or Ptx). MLIR may hold several modules, apart by lines `// -----`. The manifest has the
  /// kernels' names and nothing more: the rest is known of HLO only.
  std::optional<CompiledModule> compile(const WrittenIr &ir, const TargetInfo &target, Stage stage, bool keepTexts,
                                        llvm::StringRef trackSuffix = "");

private:
  const CompilerOptions &options;
  const Toolchain &toolchain;
  CompileObserver &observer;
  DiagnosticEngine &diagnostics;
};

} // namespace hloc
