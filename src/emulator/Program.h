#pragma once
// A PTX module resolved for execution (nothing executes it yet): registers are slots, symbols are addresses, opcodes
// are enumerators with a type.

#include "Floats.h"
#include "hloc/emulator/Ptx.h"

#include "llvm/ADT/StringMap.h"

#include <array>
#include <memory>

namespace hloc {
class DiagnosticEngine;
}

namespace hloc::emulator {

/// State spaces are told apart by the high bits of a generic address; shared and local addresses proper are offsets.
inline constexpr uint64_t sharedWindow = 0x7f01ull << 40;
inline constexpr uint64_t localWindow = 0x7f02ull << 40;
inline constexpr unsigned regionShift = 40; ///< region r of global memory starts at (r + 1) << regionShift

enum class Space : uint8_t { Generic, Global, Shared, Local, Param };
enum class TypeClass : uint8_t { Bits, Unsigned, Signed, Float, Bfloat, Predicate };

struct Type {
  TypeClass kind = TypeClass::Bits;
  uint8_t bits = 0;  ///< of one element; 1 for predicates
  uint8_t lanes = 1; ///< 2 for f16x2 and bf16x2
  unsigned bytes() const { return bits * lanes / 8; }
  bool isFloat() const { return kind == TypeClass::Float || kind == TypeClass::Bfloat; }
  bool isSigned() const { return kind == TypeClass::Signed; }
};

enum class Opcode : uint8_t {
#define HLOC_PTX_OPCODE(name, text) name,
#include "Opcodes.def"
};

enum class Special : uint8_t {
  None,
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaX,
  CtaY,
  CtaZ,
  NctaX,
  NctaY,
  NctaZ,
  Lane,
  Warp
};

struct Source {
  enum class Kind : uint8_t { None, Register, Constant, Special, Vector };
  Kind kind = Kind::None;
  bool negated = false;
  uint8_t bits = 0; ///< width of the register
  Special special = Special::None;
  uint32_t slot = 0;
  uint64_t value = 0; ///< constant, or byte offset added to an address register
  std::vector<Source> elements;
};

enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum class Mode : uint8_t {
  None,
  Lo,
  Hi,
  Wide,
  And,
  Or,
  Xor,
  Exch,
  Cas,
  Add,
  Min,
  Max,
  Inc,
  Dec,
  Up,
  Down,
  Bfly,
  Idx,
  Any,
  All,
  Uni,
  Ballot
};

struct Decoded {
  Opcode opcode;
  Type type, from; ///< `from`: source of cvt, mma inputs
  Rounding rounding = Rounding::Nearest;
  bool integral = false, ftz = false, saturate = false, nan = false, wrap = false, transposed = false, reduce = false;
  uint8_t count = 1; ///< vector length of ld, st, ldmatrix
  Space space = Space::Generic;
  Mode mode = Mode::None, combine = Mode::None;
  Compare compare = Compare::Eq;
  Source guard;
  std::vector<Source> operands;
  uint32_t target = 0; ///< of bra
  uint32_t line = 0;
};

struct Symbol {
  Space space;
  uint64_t address; ///< within its space
};

struct Kernel {
  std::string name;
  std::vector<Decoded> code;
  uint32_t registers = 0;
  uint64_t sharedBytes = 0, localBytes = 0, paramBytes = 0;
  std::array<uint32_t, 3> required = {}; ///< .reqntid; zero when absent
  std::vector<uint64_t> paramOffsets;
  std::vector<unsigned> paramSizes;
};

/// Module variables live in one image that is region 0 of global memory.
struct Program {
  llvm::StringMap<Kernel> kernels;
  std::vector<uint8_t> image;
};

std::unique_ptr<Program> resolve(const ptx::Module &module, DiagnosticEngine &diagnostics);

} // namespace hloc::emulator
