#pragma once
// Tokens of HLO text. A token is a kind and a piece of the text; nothing is copied.
//
// Values with a grammar of their own (windows, paddings, dim labels, JSON, sharding, literals) are not tokens: the
// parser reads them from the text at the current position (`rest`, `seek`).

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace hloc {

enum class TokenKind : uint8_t {
  End,
  Identifier,  ///< add, all-reduce.3, f32
  Name,        ///< %add.3; text without the %
  Attribute,   ///< `dimensions=`; text without the =
  Integer,     ///< -12
  Decimal,     ///< 1.5e3
  String,      ///< "..." or '...', quotes included
  Punctuation, ///< one of = , : * ? # + ~ - [ ] { } ( )
  Arrow,       ///< ->
  LessEqual,   ///< <=
  Ellipsis,    ///< ...
  Invalid,     ///< already reported
};

struct Token {
  TokenKind kind = TokenKind::End;
  llvm::StringRef text;
  uint32_t begin = 0, end = 0; ///< with decoration: quotes, %, =
  SourceRange range() const { return {begin, end}; }
  bool is(char c) const { return kind == TokenKind::Punctuation && text[0] == c; }
};

/// Where a string ends that is not closed.
enum class OpenStrings : uint8_t {
  ToTheEnd,    ///< it takes what follows: one error
  ToEndOfLine, ///< as editors see it, where a quote that is being typed must not change the lines below
};

class Lexer {
public:
  Lexer(llvm::StringRef text, DiagnosticEngine &diagnostics, OpenStrings openStrings = OpenStrings::ToTheEnd);

  const Token &token() const { return current; }
  /// To the next token.
  void advance();
  /// The text from the start of the current token, for values that are not made of tokens.
  llvm::StringRef rest() const { return text.drop_front(current.begin); }
  /// The first character behind the current token that is no blank, 0 at the end; comments are not skipped.
  char nextCharacter() const;
  /// Continues behind `offset`.
  void seek(uint32_t offset);
  llvm::StringRef source() const { return text; }

private:
  bool skipBlanks();
  void lexIdentifier(uint32_t begin);
  void lexNumber(uint32_t begin);
  void lexString(uint32_t begin, char quote);
  void finish(TokenKind kind, uint32_t begin, uint32_t end);
  void invalid(DiagnosticKind kind, uint32_t begin, uint32_t end, std::string message);

  llvm::StringRef text;
  DiagnosticEngine &diagnostics;
  OpenStrings openStrings;
  uint32_t position = 0;
  Token current;
};

bool isIdentifierStart(char c);
bool isIdentifierBody(char c);

/// The contents of a string token. False if an escape is malformed.
bool unescape(llvm::StringRef quoted, std::string &out);

/// Length of the balanced text at the start of `text`, which begins with `{`, `[` or `(`: strings protect brackets.
/// npos if it does not end.
size_t balancedLength(llvm::StringRef text);

/// The same where only braces count, as in JSON that need not be any: `{a [ b}` is balanced.
size_t balancedBraces(llvm::StringRef text);

} // namespace hloc
