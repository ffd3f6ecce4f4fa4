#pragma once
// The recursive-descent parser; its member functions are spread over Parser.cpp (modules, computations, instructions),
// ParseShapes.cpp, ParseLiterals.cpp and ParseAttributes.cpp.

#include "Lexer.h"

#include "hloc/parser/Parser.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace hloc {

/// Nested tuples, operands, computations and literals deeper than this are refused: the parser recurses.
inline constexpr unsigned maxNesting = 1000;

class ModuleParser {
public:
  ModuleParser(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics);
  std::unique_ptr<HloModule> parse();

private:
  // --- errors and tokens
  bool error(DiagnosticKind kind, SourceRange range, std::string message);
  bool errorHere(DiagnosticKind kind, std::string message);
  /// "expected X, found Y" at the current token.
  bool expected(llvm::StringRef what);
  bool accept(char punctuation);
  bool expect(char punctuation);
  std::string describeToken() const;
  const Token &token() const { return lexer.token(); }

  // --- Parser.cpp
  struct Scope; ///< names of one computation
  /// What an instruction is made of before it is added.
  struct Draft {
    InstructionSpec spec;
    llvm::SmallVector<HloInstruction *, 4> operands;
    llvm::SmallVector<Attribute, 4> attributes;
    llvm::StringRef opcodeText;
    SourceRange opcodeRange;
    enum class Async : uint8_t { None, Start, Update, Done } async = Async::None;
    bool shapeGiven = false;
    bool poisoned = false; ///< uses something whose definition was wrong; nothing more to say about it
  };

  bool parseModuleHeader();
  bool parseHeaderAttribute(llvm::SmallVectorImpl<Attribute> &attributes);
  bool parseStackFrames();
  void parseComputations();
  bool parseComputation();
  bool parseSignature(std::optional<Shape> &result);
  bool parseSingleInstruction();
  HloComputation *parseBody(llvm::StringRef name, SourceRange nameRange, unsigned depth);
  bool finishComputation(HloComputation &computation, HloInstruction *root, Scope &scope, SourceRange range);
  HloInstruction *parseInstruction(Scope &scope, bool &isRoot);
  void recover();
  /// shape opcode(operands), attributes
  HloInstruction *parseRhs(Scope &scope, llvm::StringRef name, SourceRange nameRange, unsigned depth);
  bool parseOpcode(Draft &draft);
  bool parseOperands(Scope &scope, Draft &draft, unsigned depth);
  bool parseOperand(Scope &scope, Draft &draft, unsigned depth);
  HloInstruction *lookUp(Scope &scope, llvm::StringRef name, SourceRange range, bool &poisoned);
  HloInstruction *tupleElement(Scope &scope, HloInstruction *tuple, int64_t index, SourceRange range);
  bool checkDraft(Draft &draft);
  bool checkTupleElement(const Draft &draft);
  bool wrapAsync(Draft &draft, llvm::StringRef name);
  bool parseName(llvm::StringRef &name, SourceRange &range);
  bool checkName(llvm::StringRef name, SourceRange range);
  std::string uniqueComputationName(llvm::StringRef base);

  // --- ParseShapes.cpp
  std::optional<Shape> parseShape(unsigned depth = 0);
  std::optional<Shape> parseArrayShape(ElementType type);
  bool parseDimensions(llvm::SmallVectorImpl<int64_t> &dims, llvm::SmallVectorImpl<bool> &dynamic);
  bool parseLayout(Layout &layout, unsigned rank);
  bool parseLayoutExtras(Layout &layout);
  bool startsShape() const;

  // --- ParseLiterals.cpp
  std::optional<Literal> parseLiteral(const Shape &shape, unsigned depth = 0);
  bool parseArrayLiteral(Literal &literal);
  bool parseScalar(Literal &literal, int64_t index);
  bool parseComplexPart(ElementType component, double &value);
  bool storeInteger(Literal &literal, int64_t index, llvm::StringRef text, SourceRange range);
  bool storeFloat(Literal &literal, int64_t index, double value, SourceRange range);
  bool parseNan(Literal &literal, int64_t index, bool negative);

  // --- ParseAttributes.cpp
  bool parseAttributes(Draft &draft, Scope &scope, unsigned depth);
  std::optional<AttributeValue> parseValue(AttributeKey key, AttributeGrammar grammar, Scope *scope, unsigned depth);
  std::optional<bool> parseBool();
  std::optional<int64_t> parseInt();
  std::optional<double> parseDouble();
  bool parseInts(llvm::SmallVectorImpl<int64_t> &values);
  std::optional<AttributeValue> parseIntLists();
  std::optional<AttributeValue> parseEnum(EnumType type);
  std::optional<AttributeValue> parseEnumList(EnumType type);
  std::optional<llvm::StringRef> parseString();
  std::optional<llvm::StringRef> parseRaw(llvm::StringRef what);
  std::optional<AttributeValue> parseWindow();
  std::optional<AttributeValue> parsePadding();
  std::optional<AttributeValue> parseSlice();
  std::optional<AttributeValue> parseDimLabels();
  HloComputation *parseComputationRef(unsigned depth);
  std::optional<AttributeValue> parseInstructionList(Scope &scope);
  std::optional<AttributeValue> parseAlias();
  std::optional<AttributeValue> parseProgramShape();
  std::optional<llvm::StringRef> parseReplicaGroups();
  /// Text up to a character that cannot be part of a `1x2_3` value; moves behind it.
  llvm::StringRef takeWord(llvm::StringRef extraCharacters);

  std::shared_ptr<const SourceFile> file;
  DiagnosticEngine &diagnostics;
  Lexer lexer;
  std::unique_ptr<HloModule> module;
  HloArena *arena = nullptr;
  llvm::DenseMap<llvm::StringRef, HloComputation *> computations;
  llvm::DenseMap<llvm::StringRef, SourceRange> computationRanges;
  llvm::DenseMap<llvm::StringRef, Shape> shapeCache; ///< spelling of simple array shapes
  SourceRange entryRange;
  bool failed = false;
};

struct ModuleParser::Scope {
  struct Entry {
    HloInstruction *instr = nullptr; ///< null: its definition was wrong
    SourceRange range;
  };
  HloComputation *computation = nullptr;
  llvm::DenseMap<llvm::StringRef, Entry> names;
  llvm::DenseMap<std::pair<HloInstruction *, int64_t>, HloInstruction *> tupleElements; ///< `%x#0`
  llvm::DenseMap<int64_t, SourceRange> parameters;
  bool poisoned = false;
  bool impliedParameters = false; ///< single-instruction text: unknown operands with a shape are parameters
};

} // namespace hloc
