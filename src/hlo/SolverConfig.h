#pragma once
// `backend_config` of calls of solvers: the attributes that MLIR prints, or JSON.
//
//   {side = 76 : ui8, left = true, magma = "auto"}        side 76, left true, magma auto
//   {"left_side":true,"transpose_a":"ADJOINT"}            left_side true, transpose_a ADJOINT

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>

namespace hloc {

using SolverConfig = std::map<std::string, std::string>;

/// Numbers without their types, strings without quotes. Of a text that is neither as much as can be read.
SolverConfig readSolverConfig(llvm::StringRef text);

} // namespace hloc
