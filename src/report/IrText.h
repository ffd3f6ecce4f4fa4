#pragma once
// IR as it is shown: without what says where it stems from, which is told beside it, line by line.
//
//   %x_1 = arith.mulf %x_0, %x : f32 loc(#loc15)      #loc15 = loc("mul.7"(#loc3))  #loc3 = loc("f.hlo":11:3)
//   -> `%x_1 = arith.mulf %x_0, %x : f32`, for line 11 of the HLO

#include "hloc/compiler/Observer.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hloc {

struct ShownLine {
  std::string text;
  llvm::SmallVector<uint32_t, 2> hloLines; ///< that it was made for, ascending; none: it belongs to none
  uint32_t number = 0;                     ///< in the text that was given; the first is 1
  bool operator==(const ShownLine &) const = default;
};

/// MLIR with locations (CompilerOptions::locations), LLVM IR with debug locations and PTX with `.loc`
/// (CompilerOptions::lineInfo). Of texts without these, and of HLO, all lines belong to none.
///
/// Lines that are there for the sake of places are left out: what is left of PTX is what it is without line info.
std::vector<ShownLine> shownLines(IrKind kind, llvm::StringRef text);

} // namespace hloc
