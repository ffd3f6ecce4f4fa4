#pragma once
// Texts that have most of their lines in common, as numbers of lines: what a kernel is after each of thirty passes is
// little more than what the passes have changed. And of a line that is new mostly a few characters are: it is told by
// what it has of another line at its beginning and end, and what is between.
//
//   after cse: `%x.1_5 = arith.mulf %x.1_3, %x.1 : f32`     in the table as the line of the text before, its first 4
//   before:    `%x.1_7 = arith.mulf %x.1_6, %x.1 : f32`     and last 13 characters, and `5 = arith.mulf %x.1_3`

#include "IrText.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace llvm::json {
class OStream;
}

namespace hloc {

class LineTable {
public:
  /// Of a text, in which the one before it is most likely to have its like.
  std::vector<uint32_t> numbersOf(llvm::ArrayRef<ShownLine> text);

  /// Columns, a line an element. `of`: how many lines before it the one is that it is told by, or 0; `first` and
  /// `last`: how many characters it has of its beginning and end; `rest`: what is between; `place`: a number in
  /// `places`, each a list of HLO lines.
  void write(llvm::json::OStream &json) const;

private:
  struct Line {
    llvm::StringRef text;
    std::vector<uint32_t> hloLines;
    uint32_t of = 0, first = 0, last = 0;
  };
  void tellBy(Line &line, uint32_t number) const;

  llvm::StringMap<uint32_t> numbers; ///< by text and places
  std::vector<Line> lines;
  std::vector<uint32_t> before; ///< the text before
};

/// Each number less the one before it and one: runs of neighbours are zeros, which take next to nothing compressed.
void writeSteps(llvm::json::OStream &json, llvm::StringRef key, llvm::ArrayRef<uint32_t> numbers);

} // namespace hloc
