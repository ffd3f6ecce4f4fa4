#pragma once
// What `hloc compile` writes and where: kinds of output, their suffixes, files in folders, standard output.

#include "Options.h"
#include "Timing.h"

#include "hloc/support/Diagnostics.h"

namespace hloc {

/// The stage after which an output of this kind can be written.
Stage stageOf(EmitKind kind);

/// The outputs of a command line. `prepare` decides the kind and refuses what makes no sense, before anything is
/// compiled; the others need that to have succeeded.
class Outputs {
public:
  Outputs(const CompileOptions &options, Timing &timing) : options(options), timing(timing) {}

  bool prepare(DiagnosticEngine &diagnostics);

  EmitKind kind() const { return emitKind; }
  /// Whether an output was asked for, other than by saying nothing.
  bool asked() const { return options.output != "-" || options.emit; }
  /// Whether kernels are described, apart from what --emit writes.
  bool describesKernels() const {
    return !options.goldenFolder.empty() || !options.manifestFile.empty() || options.listKernels;
  }
  /// Whether kernels are looked at.
  bool needsKernels() const { return describesKernels() || options.lint || options.estimate; }
  /// Whether an output of this kind is written: not if it was not asked for and golden files are checked, kernels
  /// listed, rules checked or times estimated instead.
  bool wanted() const {
    return (options.goldenFolder.empty() && !options.listKernels && !options.lint && !options.estimate &&
            !options.explain) ||
           asked();
  }

  /// How far the compiler has to go.
  Stage neededStage() const;
  /// Machine code, or the registers and spills that descriptions list where there is a ptxas.
  bool needsAssembler() const;

  /// Writes the output of `input`: the one for `target`, or the one for all targets if null.
  void write(llvm::StringRef input, const TargetInfo *target, llvm::StringRef bytes, DiagnosticEngine &diagnostics);
  /// Writes to the file or folder of `--manifest`.
  void writeManifest(llvm::StringRef input, const TargetInfo &target, llvm::StringRef text,
                     DiagnosticEngine &diagnostics);

private:
  std::string refusal();
  std::string partRefusal() const;
  std::string severalRefusal() const;
  std::string twiceRefusal() const;
  std::string inputRefusal() const;
  void writeTo(const std::string &path, llvm::StringRef bytes, DiagnosticEngine &diagnostics);
  /// A .fatbin and HLO are for all targets.
  bool oneForAllTargets() const;

  const CompileOptions &options;
  Timing &timing;
  EmitKind emitKind = EmitKind::Ptx;
};

/// What files made of `input` are called: its name without folder and last suffix, `stdin` for `-`.
std::string stemOf(llvm::StringRef input);

} // namespace hloc
