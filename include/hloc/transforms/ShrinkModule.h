#pragma once
// A model with smaller dimensions that does the same kind of work: to be checked in seconds, instruction by instruction
// the one that it is made from.
//
//   f32[8,768] reshape -> f32[8,12,64], dot with f32[768,3072]    target 16
//   f32[8,48]  reshape -> f32[8,3,16],  dot with f32[48,12]
//
// Every size is renamed wherever it occurs (ShrinkSizes.h). Slices, windows, paddings and constants follow: a slice
// keeps the end of its dimension that it touched, a window keeps its size and stride and gets the padding that its
// result needs, a constant keeps its first elements. Numbers in the program that mean a size (the divisor of a mean, an
// index) stay as they are.

#include "hloc/hlo/HloModule.h"
#include "hloc/support/Diagnostics.h"

#include <map>
#include <memory>

namespace hloc {

struct ShrunkModule {
  std::unique_ptr<HloModule> module;
  std::map<int64_t, int64_t> sizes; ///< old and new, where they differ
};

/// `module` is verified. Dimensions become no larger than `target` (at least 2) where that is possible. Null after an
/// error: what has been made breaks a rule of HLO, which is reported as unsupported.
ShrunkModule shrinkModule(const HloModule &module, int64_t target, DiagnosticEngine &diagnostics);

/// What stands for sizes, none larger than before, and for element types, wherever they occur.
struct ModuleRenames {
  std::map<int64_t, int64_t> sizes;
  std::map<ElementType, ElementType> types;
};

/// The module with other sizes and types. Nobody has checked that it means something: verify it.
std::unique_ptr<HloModule> renameModule(const HloModule &module, const ModuleRenames &renames);

} // namespace hloc
