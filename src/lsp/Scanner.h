#pragma once
// The pass that makes a TextScan: recursive descent that never fails.

#include "TextScan.h"

#include "hloc/support/Diagnostics.h"

namespace hloc::lsp {

class Scanner {
public:
  explicit Scanner(llvm::StringRef text);
  TextScan scan();

private:
  // --- tokens
  const Token &token() const { return lexer.token(); }
  bool atEnd() const { return token().kind == TokenKind::End; }
  bool isWord() const { return token().kind == TokenKind::Identifier || token().kind == TokenKind::Name; }
  /// Records the current token and goes on to the next.
  void take(Role role = Role::Other, unsigned flags = 0);
  void takeValueToken(unsigned flags);
  bool isFirstOnLine() const;
  bool startsComputation();
  bool startsInstruction();
  /// Something that cannot stand inside an instruction.
  bool endsInstruction();
  /// From a bracket to the one that closes it, or to what cannot stand inside.
  void takeBalanced(unsigned flags);
  SourceRange nameOfToken() const;

  // --- what a text is made of
  void takeHeader();
  void takeComputation();
  void takeSignature();
  void takeBody(uint32_t computation);
  void takeInner();
  void takeInstruction(uint32_t computation);
  void takeRhs(uint32_t computation, uint32_t instruction);
  bool startsShape();
  SourceRange takeShape();
  void takeOperands(uint32_t computation, llvm::StringRef opcode);
  void takeAttributes(uint32_t computation, llvm::StringRef opcode);
  void takeValue(uint32_t computation, std::optional<AttributeGrammar> grammar);
  void takeComputationUse(uint32_t computation);
  void takeNames(uint32_t computation, bool ofComputations);
  void use(bool ofComputation, bool isDefinition, uint32_t computation, uint32_t target = none);
  uint32_t addComputation(bool isInner);
  void resolve();

  DiagnosticEngine unheard;
  Lexer lexer;
  TextScan made;
  uint32_t lastEnd = 0; ///< of the token before the current one
  unsigned depth = 0;   ///< of nested operands and computations
};

} // namespace hloc::lsp
