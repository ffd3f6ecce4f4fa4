#pragma once
// What `hloc compile` writes and where: kinds of output, their suffixes, files in folders, standard output. Whether
// that makes sense has been decided before (ValueRules.h).

#include "Options.h"
#include "Timing.h"

#include "hloc/support/Diagnostics.h"

namespace hloc {

/// The stage after which an output of this kind can be written.
Stage stageOf(EmitKind kind);
/// `.ptx`
llvm::StringRef suffixOf(EmitKind kind);
/// Nothing if the suffix of `output` is no such, or it is a folder.
std::optional<EmitKind> kindOfSuffix(llvm::StringRef output);
/// There is one, or will be: a name that ends in `/`.
bool isFolder(llvm::StringRef path);
/// A .fatbin and HLO are.
bool isForAllTargets(EmitKind kind);
/// Where the output of an input goes: the one for `target`, or that for all of them.
std::string outputFile(const CompileOptions &options, llvm::StringRef input, const TargetInfo &target);

/// The outputs of a command line.
class Outputs {
public:
  Outputs(const CompileOptions &options, Timing &timing) : options(options), timing(timing) {}

  /// How far the compiler has to go.
  Stage neededStage() const;
  /// Machine code, or the registers and spills that descriptions list where there is a ptxas.
  bool needsAssembler() const;

  /// Writes the output of `input`.
  void write(llvm::StringRef input, const TargetInfo &target, llvm::StringRef bytes, DiagnosticEngine &diagnostics);
  /// Writes to the file or folder of `--manifest`.
  void writeManifest(llvm::StringRef input, const TargetInfo &target, llvm::StringRef text,
                     DiagnosticEngine &diagnostics);

private:
  void writeTo(const std::string &path, llvm::StringRef bytes, DiagnosticEngine &diagnostics);

  const CompileOptions &options;
  Timing &timing;
};

/// What files made of `input` are called: its name without folder and last suffix, `stdin` for `-`.
std::string stemOf(llvm::StringRef input);

} // namespace hloc
