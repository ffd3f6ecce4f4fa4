#pragma once
// Modules that do the same as one, with other layouts or a dimension that is filled up: what a program could be instead
// of what it is.

#include "hloc/hlo/HloModule.h"

#include <memory>
#include <string>
#include <vector>

namespace hloc {

struct OtherModule {
  std::unique_ptr<HloModule> module;
  SourceRange range;              ///< of what differs
  std::vector<std::string> about; ///< instructions
  std::string what;               ///< for people: "`t` reads `q` in another order: as f32[8,4]{0,1} it"
};

/// Values of the entry, parameters and results among them, as who reads or makes them would like to have them: what is
/// transposed or copied to another layout, and what is reduced over other dimensions than the minor ones.
std::vector<OtherModule> withOtherLayouts(const HloModule &module);
/// A dimension of parameters filled up to a multiple of what vectors and tiles have; of modules in which no dimension
/// depends on another.
std::vector<OtherModule> withFilledDims(const HloModule &module);

} // namespace hloc
