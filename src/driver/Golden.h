#pragma once
// Golden files for CI: what a kernel compiles to, in a form whose diffs a person can read.
//
//   // hloc golden 1: gelu.hlo for sm_90
//   // kernel gelu: hero loop, grid 12288x1x1, block 128x1x1, shared 0
//   // ptxas 13.0.88: gelu: 28 registers, 0 spill bytes, 0 stack bytes
//   .visible .entry gelu( ...
//
// Resources are compared only if both sides name the same ptxas.

#include "hloc/kernel/Manifest.h"
#include "hloc/support/Diagnostics.h"

#include <string>

namespace hloc {

/// PTX without comments, blank lines, `.version`, `.file` and `.loc`: what stays the same between builds of one
/// compiler.
std::string canonicalPtx(llvm::StringRef ptx);

/// The golden text of a compiled module. `inputName` has no folder in it.
std::string goldenText(llvm::StringRef inputName, const Manifest &manifest, llvm::StringRef ptx);

/// `FOLDER/<stem>.<target>.golden`
std::string goldenPath(llvm::StringRef folder, llvm::StringRef inputName, llvm::StringRef target);

/// Compares or, with `update`, rewrites. A difference is reported as a unified diff.
void checkGolden(const std::string &path, const std::string &text, bool update, DiagnosticEngine &diagnostics);

/// Lines that differ with three lines of context, as `diff -u` shows them. Empty if the texts are equal.
std::string unifiedDiff(llvm::StringRef before, llvm::StringRef after, llvm::StringRef beforeName,
                        llvm::StringRef afterName);

} // namespace hloc
