#pragma once
// `input_output_alias` of a module header: leaves of the result that are the buffers of leaves of parameters.
//
//   input_output_alias={ {0}: (1, {}, may-alias) }    result leaf {0} lies where parameter 1 was

#include "hloc/hlo/HloModule.h"

#include <optional>
#include <vector>

namespace hloc {

struct InputOutputAlias {
  llvm::SmallVector<int64_t, 2> output; ///< tuple index into the result
  int64_t parameter = 0;
  llvm::SmallVector<int64_t, 2> parameterPath; ///< tuple index into the parameter
};

/// All of a module's, in the order of the text; nothing if the text cannot be read (the verifier says so). Indices are
/// not checked.
std::optional<std::vector<InputOutputAlias>> inputOutputAliases(const HloModule &module);

} // namespace hloc
