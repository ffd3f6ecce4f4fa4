#pragma once
// The recursive-descent parser; its member functions are spread over Parser.cpp (modules, computations, instructions),
// ParseShapes.cpp, ParseLiterals.cpp and ParseAttributes.cpp.

#include "hloc/parser/Lexer.h"

#include "hloc/parser/Parser.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>

namespace hloc {

/// Nested tuples, operands, computations and literals deeper than this are refused: the parser recurses, and its stack
/// must be enough with sanitizers too.
inline constexpr unsigned maxNesting = 500;
/// An inline computation counts as this many levels: its frames are larger.
inline constexpr unsigned computationLevels = 5;

class ModuleParser {
public:
  ModuleParser(std::shared_ptr<const SourceFile> file, DiagnosticEngine &diagnostics);
  ReadModule parse();

private:
  // --- errors and tokens
  bool error(DiagnosticKind kind, SourceRange range, std::string message);
  /// Nothing more would be kept; going on only costs time.
  bool tooManyErrors() const { return diagnostics.numErrors() >= DiagnosticEngine::maxErrors; }
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
    std::optional<Shape> roundedTo; ///< the result, where the instruction computes in a higher precision
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
  /// shape opcode(operands), attributes
  HloInstruction *parseRhs(Scope &scope, llvm::StringRef name, SourceRange nameRange, unsigned depth);
  bool parseOpcode(Draft &draft);
  bool parseOperands(Scope &scope, Draft &draft, unsigned depth);
  bool parseOperand(Scope &scope, Draft &draft, unsigned depth);
  HloInstruction *lookUp(Scope &scope, llvm::StringRef name, SourceRange range, bool &poisoned);
  HloInstruction *tupleElement(Scope &scope, HloInstruction *tuple, int64_t index, SourceRange range);
  bool wrapAsync(Draft &draft, llvm::StringRef name);
  bool parseName(llvm::StringRef &name, SourceRange &range);
  bool checkName(llvm::StringRef name, SourceRange range);
  std::string uniqueComputationName(llvm::StringRef base);
  /// `base`, or with a number after it, as no instruction of the computation is called so far.
  static std::string freshName(const Scope &scope, const llvm::Twine &base);
  HloInstruction *addInstruction(Scope &scope, const Draft &draft);

  // --- ReadAsMeant.cpp: texts that mean something other than what is written
  void readAsMeant(Scope &scope, Draft &draft);
  void readResultAsMeant(Draft &draft);
  void readDependenciesAsMeant(const Draft &draft);
  void readCompareAsMeant(Draft &draft);
  void readPrecisionAsMeant(Scope &scope, Draft &draft);
  HloInstruction *convertTo(Scope &scope, HloInstruction *operand, ElementType type, SourceRange range);

  // --- Recovery.cpp
  void recover(uint32_t failedInstruction);
  void skipToComputation();
  bool skipToBody();
  void verifyWhatIsThere();
  /// "expected X, found Y", with a note of the bracket that is not closed. False, as the next two.
  bool unclosed(llvm::StringRef what, SourceRange open);
  bool unknownElementType();
  bool unknownOpcode();
  void undefinedName(const Scope &scope, llvm::StringRef name, SourceRange use);
  SourceRange definitionAfter(llvm::StringRef name, uint32_t from) const;
  void undefinedComputation(llvm::StringRef name, SourceRange use);
  SourceRange computationAfter(llvm::StringRef name, uint32_t from) const;

  // --- CheckInstruction.cpp
  bool checkDraft(Scope &scope, Draft &draft);
  bool checkRequiredAttributes(const Draft &draft);
  bool checkBroadcast(const Draft &draft);
  bool checkOperandCount(const Draft &draft);
  bool checkReshape(const Draft &draft);
  bool checkTupleElement(const Draft &draft);
  bool checkConditional(const Draft &draft);
  bool checkOneDimension(const Draft &draft);
  bool checkDynamicIndices(const Draft &draft);
  bool checkPairs(const Draft &draft);
  bool checkLayoutConstraints(const Draft &draft);
  bool checkAsync(const Draft &draft);

  // --- ParseShapes.cpp
  std::optional<Shape> parseShape(unsigned depth = 0);
  std::optional<Shape> parseArrayShape(ElementType type);
  bool parseDimensions(llvm::SmallVectorImpl<int64_t> &dims, llvm::SmallVectorImpl<bool> &dynamic);
  bool parseLayout(Layout &layout, unsigned rank);
  bool parseLayoutExtras(Layout &layout);
  bool startsShape() const;

  // --- ParseLiterals.cpp
  std::optional<Literal> parseLiteral(const Shape &shape, unsigned depth = 0);
  /// `s32[2] {1, 2}`, `(f32[] 1, s32[2] {1, 2})`
  std::optional<Literal> parseLiteralWithShape(unsigned depth = 0);
  bool startsElided();
  std::optional<Literal> parseElided(const Shape &shape);
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
  /// Text in braces, kept as it is; `lengthOf` says what closes it.
  std::optional<llvm::StringRef> parseRaw(llvm::StringRef what, size_t (*lengthOf)(llvm::StringRef) = balancedLength);
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

  // --- ParseStructuredText.cpp: values that are checked and kept as they are written
  std::optional<llvm::StringRef> parseStructuredText(AttributeKey key);
  bool parseMetadata();
  bool parseFrontendAttributes();
  bool parseBools();
  bool parseModuleAliases(bool donors);
  bool parseDomain();
  bool parseSharding(unsigned depth = 0);

  std::shared_ptr<const SourceFile> file;
  DiagnosticEngine &diagnostics;
  Lexer lexer;
  std::unique_ptr<HloModule> module;
  HloArena *arena = nullptr;
  llvm::DenseMap<llvm::StringRef, HloComputation *> computations;
  llvm::DenseMap<llvm::StringRef, SourceRange> computationRanges;
  llvm::SmallVector<llvm::StringRef, 4> openComputations;    ///< whose bodies are being read, outermost first
  llvm::DenseMap<llvm::StringRef, Shape> shapeCache;         ///< spelling of simple array shapes
  llvm::StringMap<unsigned> nextSuffix;                      ///< of generated computation names
  llvm::DenseMap<HloComputation *, SourceRange> asyncStarts; ///< by the computation they call
  /// With errors in some instructions, which are left out.
  std::vector<std::unique_ptr<HloComputation>> brokenComputations;
  int64_t unwrittenBytes = 0; ///< of literals whose elements are not in the text
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
  llvm::DenseMap<std::pair<HloInstruction *, unsigned>, HloInstruction *> conversions;  ///< by element type
  llvm::DenseMap<int64_t, SourceRange> parameters;
  std::map<Opcode, unsigned> anonymous; ///< next suffix of the names of nested instructions
  unsigned depth = 0;                   ///< of the inline computation
  bool poisoned = false;
  bool impliedParameters = false; ///< single-instruction text: unknown operands with a shape are parameters
};

} // namespace hloc
