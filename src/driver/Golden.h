#pragma once
// Golden files for CI: what a kernel compiles to, in a form whose diffs a person can read.
//
//   // hloc golden 1: ../hlo/gelu.hlo for sm_90
//   // kernel gelu: hero loop, grid 12288x1x1, block 128x1x1, shared 0
//   // ptxas 13.0.88: gelu: 28 registers, 0 spill bytes, 0 stack bytes
//   .visible .entry gelu( ...
//
// The first line says whose golden it is, by its place seen from the golden file's: the golden of an input that is
// there is no other input's. Resources are compared only if both sides name the same ptxas.

#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <set>
#include <string>

namespace hloc {

/// PTX without comments, blank lines, `.version`, `.file` and `.loc`: what stays the same between builds of one
/// compiler.
std::string canonicalPtx(llvm::StringRef ptx);

/// `../hlo/gelu.hlo`: where `input` is, seen from `folder`; `stdin` for `-`.
std::string inputSeenFrom(llvm::StringRef folder, llvm::StringRef input);

/// The golden text of a compiled module. `input`: as inputSeenFrom gives it.
std::string goldenText(llvm::StringRef input, const Manifest &manifest, llvm::StringRef ptx);

/// `FOLDER/<stem>.<target>.golden`
std::string goldenPath(llvm::StringRef folder, llvm::StringRef input, llvm::StringRef target);

/// What of a golden text is about these kernels: their lines of the header, their entries and what stands before them.
std::string goldenPart(llvm::StringRef golden, llvm::ArrayRef<llvm::StringRef> kernels);

enum class GoldenUse {
  Compare,     ///< a difference is reported as a patch
  ComparePart, ///< the text has some of the golden's kernels; only these are compared
  Update
};

/// Compares `text`, or writes it. A golden of another input is neither compared with nor overwritten.
void checkGolden(const std::string &path, const std::string &text, GoldenUse use, DiagnosticEngine &diagnostics);

/// Warns of the golden files in `folder` whose input is no more: nothing compares them. `checked`: those that were.
void reportStaleGoldens(const std::string &folder, const std::set<std::string> &checked, DiagnosticEngine &diagnostics);

} // namespace hloc
