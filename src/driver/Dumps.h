#pragma once
// `--dump-after-each-pass`: the IR after every pass of every stage, to stderr or to one numbered file a pass.
//
//   DIR/module/000.hlo.parse.hlo  001.hlo.inline-calls.hlo ...
//   DIR/gelu/000.mlir.emit.mlir  001.mlir.inline.mlir ... 019.llvm.optimized.ll  020.ptx.ptx  index.txt
//
// `ls` order is run order. index.txt has one line a pass: file, milliseconds, whether the IR changed.

#include "Timing.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Regex.h"

#include <memory>
#include <optional>
#include <string>

namespace hloc {

enum class DumpStage { Hlo, Mlir, Llvm, Ptx };

struct DumpOptions {
  bool enabled = false;
  std::string folder; ///< empty: stderr
  std::string filter; ///< regular expression over pass names; empty: all
  bool changedOnly = false;
  bool asDiff = false; ///< with changedOnly: what a pass changed, instead of the IR after it
  /// XLA's `--xla_dump_to`: passes of a stage are shown only if its expression is given; inputs and results always.
  bool xlaStyle = false;
  std::string hloFilter, emitterFilter;
};

/// The dumps of one track: the module, or one kernel. Used by one thread at a time.
class DumpTrack {
public:
  DumpTrack(const DumpOptions &options, llvm::StringRef name, bool immediate);
  bool enabled() const { return options.enabled; }

  /// After pass `pass` of `stage`. `text` is called only if something may be printed. `milestone`: shown in XLA's style
  /// whatever the pass filters say. `stageLine`: what a file of the text begins with.
  void after(DumpStage stage, llvm::StringRef pass, double milliseconds, llvm::function_ref<std::string()> text,
             bool milestone = false, llvm::StringRef stageLine = "");

  /// Writes the index and what was held back for order. Reports files that could not be written.
  void finish(DiagnosticEngine &diagnostics);

private:
  bool wanted(DumpStage stage, llvm::StringRef pass, bool milestone) const;
  void show(DumpStage stage, llvm::StringRef pass, llvm::StringRef extension, double milliseconds, bool changed,
            const std::string &text);
  const DumpOptions &options;
  std::string name;
  bool immediate; ///< write to stderr at once, or hold until finish
  unsigned number = 0;
  std::string held, index, error;
  std::string previous, previousPass;
  std::optional<DumpStage> previousStage;
};

} // namespace hloc
