#pragma once
// What the words of a text are, whether or not it parses: an index of names, and what else editors ask that is a
// matter of words alone. One pass over the tokens, a few milliseconds a megabyte; it goes on at the next line that
// begins an instruction or a computation, so that what is being typed changes nothing below.
//
//   %r = f32[4] reduce(%x, %zero), dimensions={1}, to_apply=%sum
//   InstructionName, Type, Opcode, 2 OperandName, AttributeKey, Number, AttributeKey, ComputationUse

#include "hloc/hlo/Attribute.h"
#include "hloc/parser/Lexer.h"
#include "hloc/support/SourceFile.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace hloc::lsp {

enum class Role : uint8_t {
  Other, ///< punctuation, and what is not understood
  Keyword,
  ModuleName,
  ComputationName, ///< at its definition
  SignatureName,   ///< of a parameter, before the body
  InstructionName, ///< at its definition
  Type,
  Opcode,
  OperandName, ///< and control predecessors
  AttributeKey,
  ComputationUse,
  Word, ///< a value: `GT`, `true`
  Number,
  String,
};

struct ScannedToken {
  enum Flags : uint8_t {
    FirstOnLine = 1,
    StartsStatement = 2, ///< an instruction, or what begins or ends a computation
    Shape = 4,           ///< inside a shape
    Verbatim = 8,        ///< inside a value with a grammar of its own, or a literal
    Opens = 16,          ///< the body of a computation
    Closes = 32,         ///< it
  };
  uint32_t begin, end; ///< with `%`, `=`, quotes
  TokenKind kind;
  Role role;
  uint8_t flags;
  bool is(Flags flag) const { return flags & flag; }
};

constexpr uint32_t none = ~0u;

struct NamedComputation {
  SourceRange name; ///< without `%`; invalid: it is written inside an attribute, or the text is one instruction
  SourceRange range;
  uint32_t open = none; ///< offset of its `{`
  bool isEntry = false;
  bool isInner = false;                              ///< the value of an attribute
  uint32_t firstInstruction = 0, endInstruction = 0; ///< those of inner computations among them
};

struct NamedInstruction {
  SourceRange name;   ///< without `%`
  uint32_t nameToken; ///< offset of the name with its `%`
  SourceRange range;  ///< from ROOT or the name to the last token
  SourceRange shape;  ///< as written; invalid if it is not
  SourceRange opcode; ///< invalid: there is none so far
  uint32_t computation;
  bool isRoot = false;
};

struct NameUse {
  SourceRange name; ///< without `%`
  bool ofComputation, isDefinition;
  uint32_t computation;   ///< in which it stands; none: outside
  uint32_t target = none; ///< index of an instruction or a computation; none: no such name
};

/// Of one text, which has to outlive it.
struct TextScan {
  llvm::StringRef text;
  std::vector<ScannedToken> tokens;
  std::vector<NamedComputation> computations; ///< in the order of their beginnings
  std::vector<NamedInstruction> instructions; ///< likewise
  std::vector<NameUse> uses;                  ///< ascending, definitions among them
  llvm::DenseMap<llvm::StringRef, uint32_t> computationOfName;
  llvm::DenseMap<std::pair<uint32_t, llvm::StringRef>, uint32_t> instructionOfName; ///< by computation

  llvm::StringRef slice(SourceRange range) const {
    return range.isValid() ? text.slice(range.begin, range.end) : llvm::StringRef();
  }
  /// Index of the token that `offset` is in or directly behind, of a word and a comma the word; none.
  uint32_t tokenAt(uint32_t offset) const;
  /// The name that `offset` is in or directly behind; null.
  const NameUse *useAt(uint32_t offset) const;
  /// The instruction that `offset` is in, of several the innermost; none.
  uint32_t instructionAt(uint32_t offset) const;
  /// The computation in whose braces `offset` is, of several the innermost; none.
  uint32_t computationAt(uint32_t offset) const;
};

TextScan scanText(llvm::StringRef text);

/// How the value of an attribute is written, of an opcode by its own table; nothing if there is no such attribute.
std::optional<AttributeGrammar> grammarOf(llvm::StringRef key, llvm::StringRef opcode);

} // namespace hloc::lsp
