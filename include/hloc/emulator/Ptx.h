#pragma once
// Syntax tree of a PTX text. It keeps what was written (names, opcode parts, operands) and decides nothing about
// meaning; Program.h resolves it. `print` gives canonical text whose parse prints the same again.
//
//   @%p1 add.rn.f32 %r3, %r1, 0f3F800000;
//     -> guard "%p1", parts {"add", "rn", "f32"}, operands {Name "%r3", Name "%r1", Float32 0x3F800000}

#include "hloc/support/SourceFile.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace hloc {
class DiagnosticEngine;
}

namespace hloc::ptx {

struct Operand {
  enum class Kind : uint8_t {
    Name,    ///< register, special register, variable (+ value), label; `negated` for `!%p`
    Integer, ///< `value`, two's complement
    Float32, ///< `value` is the bit pattern of 0fXXXXXXXX
    Float64, ///< `value` is the bit pattern of 0dXXXXXXXXXXXXXXXX
    Address, ///< [name + value], [name + value, {elements}]; an empty name is an absolute address
    Vector,  ///< {elements}
    Sink,    ///< _
    Pair,    ///< elements[0] | elements[1]
    List     ///< (elements): arguments and results of call
  };
  Kind kind = Kind::Sink;
  bool negated = false;
  std::string name;
  uint64_t value = 0;
  std::vector<Operand> elements;
};

struct Instruction {
  std::string guard; ///< predicate register, or empty
  bool guardNegated = false;
  std::vector<std::string> parts; ///< opcode split at `.`; `param::entry` is one part
  std::vector<Operand> operands;
  SourceRange range;
  uint32_t line = 0; ///< 1-based line of the PTX text
  std::string opcode() const;
};

/// One element of an initial value: bits, or (symbol + value) masked and shifted down as `0xFF00(symbol)` asks.
struct Initializer {
  uint64_t value = 0;
  std::string symbol;
  bool generic = false; ///< generic(symbol): the generic address instead of the one in its space
  uint64_t mask = 0;    ///< 0: all bits
};

/// A variable of any state space, a register declaration or a kernel parameter.
struct Variable {
  std::string linkage; ///< "extern", "visible", "weak", "common" or empty
  std::string space;   ///< reg, param, shared, global, const, local
  std::string type;    ///< b32, f16, pred, ...
  std::string name;
  uint64_t align = 0;             ///< bytes; 0: not written
  std::optional<uint64_t> range;  ///< %r<N>
  std::optional<uint64_t> length; ///< [N], or the product of [N][M]; 0 for []
  bool pointer = false;           ///< `.ptr`
  std::string pointerSpace;       ///< `.ptr .global`
  std::vector<Initializer> initial;
  SourceRange where;
};

struct Statement {
  enum class Kind : uint8_t {
    Label,
    Instruction,
    Variable,
    Open,     ///< { of a scope with its own registers, variables and labels
    Close,    ///< }
    Location, ///< .loc file line column `text`
    Targets,  ///< label: .branchtargets `names`;
    Directive ///< `text` as it stands, such as .pragma "nounroll";
  };
  Kind kind = Kind::Label;
  std::string label;
  std::string text;
  std::vector<std::string> names;
  std::array<uint32_t, 3> location = {}; ///< file, line, column
  Instruction instruction;
  Variable variable;
};

struct Function {
  std::string linkage;
  std::string name;
  bool isEntry = true;
  bool hasBody = true;           ///< else a prototype
  std::vector<Variable> results; ///< of .func
  std::vector<Variable> parameters;
  std::vector<std::string> directives; ///< such as ".reqntid 128, 1, 1"
  std::vector<Statement> body;
  SourceRange where;
};

struct Module {
  std::string version, target, addressSize;
  std::vector<std::string> files; ///< by number of `.file`
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> aliases; ///< .alias first, second: first means second
  /// The definition if there is one, else a prototype, else null.
  const Function *find(llvm::StringRef name) const;
};

/// The engine's file is the text. Nothing after an error.
std::optional<Module> parse(DiagnosticEngine &diagnostics);
void print(const Module &module, llvm::raw_ostream &os);

} // namespace hloc::ptx
