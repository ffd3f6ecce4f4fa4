#pragma once
// The first line of the IR that hloc writes: which pass left it, for which target. `hloc FILE` goes on from there.
//
//   // hloc stage: after cse#2, for sm_90          in MLIR
//   ; hloc stage: after optimized, for sm_90       in LLVM IR

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hloc {

struct StageLine {
  std::string after;  ///< id of a pass, as PassName has it
  std::string target; ///< as TargetInfo names it
};

/// With the end of the line. `comment`: `//` or `;`.
std::string printStageLine(const StageLine &line, llvm::StringRef comment);

/// What the first line of `text` says; nothing if that is another line.
std::optional<StageLine> parseStageLine(llvm::StringRef text, llvm::StringRef comment);

} // namespace hloc
