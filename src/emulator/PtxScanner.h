#pragma once
// The characters of a PTX text: white space and comments, names, numbers, constant expressions. PTX has so few kinds of
// tokens, each with a first character of its own, that its parser works straight on the text.

#include "hloc/emulator/Ptx.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

namespace hloc::ptx {

class Scanner {
protected:
  explicit Scanner(DiagnosticEngine &diagnostics) : diagnostics(diagnostics), text(diagnostics.file()->text()) {}

  /// Reports the first error only and moves to the end of the text, so that every loop ends.
  void error(DiagnosticKind kind, std::string message);
  void skipSpace();
  bool atEnd();
  char peek(); ///< the next character that is not white space, '\0' at the end
  bool take(char c);
  bool takeText(llvm::StringRef token); ///< such as "<<"
  void expect(char c);
  bool atName();
  bool atNumber();

  std::string word();
  std::string name();   ///< a word, or one with the dot of `%tid.x`
  std::string dotted(); ///< the word after a dot; `param::entry` and `L1::no_allocate` count as one
  std::string restOfLine();
  std::string restOfDirective(); ///< to the end of the line, or before the next, `{` or `;`
  std::string quoted();

  /// A literal or a constant expression: 12, 0x1FU, 0f3F800000, 1.5, -(3 + 4) << 2.
  Operand number(unsigned depth = 0);
  uint64_t integer();
  uint64_t literalInteger(); ///< without operators: the N of `%r<N>` ends at `>`

  DiagnosticEngine &diagnostics;
  llvm::StringRef text;
  size_t at = 0;
  uint32_t line = 1;
  bool failed = false;

private:
  Operand literal();
  Operand unary(unsigned depth);
  Operand binary(unsigned minimum, unsigned depth);
};

} // namespace hloc::ptx
