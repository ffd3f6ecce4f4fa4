#pragma once
// One opcode text given a meaning. A decoder takes the parts of an opcode one after the other, fills `decoded`, and
// says which operands the form has. Parts that nobody took make the instruction unsupported, so none is ever ignored.
//
//   shfl.sync.down.b32   ->  decoded {Shfl, Mode::Down, b32}, operands {pair b32, b32, b32, b32, b32}

#include "Program.h"

#include "llvm/ADT/SmallVector.h"

namespace hloc::emulator {

std::optional<Type> typeOf(llvm::StringRef name);
/// cta, cluster, gpu and gl, sys: the machine is one device.
Scope scopeOf(llvm::StringRef name);

struct OperandForm {
  enum class Kind : uint8_t {
    Result,
    ResultPair, ///< %r, or %r|%p with a predicate
    Results,    ///< {elements} registers; one may stand without braces
    Value,
    Values,
    Predicate, ///< may be negated
    Address,
    TensorAddress, ///< [map, {elements}]: two operands, the address of the map and its coordinates
    Immediate,
    Dropped ///< a cache policy: checked, not kept
  };
  Kind kind;
  Type type;
  unsigned elements = 1;
  bool wider = false; ///< the register may be wider than the type (ld, st, cvt)
  bool isResult() const { return kind == Kind::Result || kind == Kind::ResultPair || kind == Kind::Results; }
};

class Form {
public:
  Form(const ptx::Instruction &instruction, Opcode opcode) : instruction(instruction) { decoded.opcode = opcode; }

  bool take(llvm::StringRef part);
  /// Takes the next part if it is among the words of `list`; else empty.
  llvm::StringRef takeAnyOf(llvm::StringRef list);
  /// Takes the next part if it is a type among the words of `list`.
  std::optional<Type> takeType(llvm::StringRef list);
  bool takeTypeInto(Type &type, llvm::StringRef list);
  /// After .f32 of add, sub, fma: .f16 or .bf16, the type of all sources but the last.
  bool takeNarrowSources(size_t sources);
  /// .rn, .rz, .rm, .rp; with `integral`: .rni, ...
  bool takeRounding(bool integral = false);
  bool takeFlag(bool &flag, llvm::StringRef part) { return take(part) && (flag = true); }
  llvm::StringRef next() const; ///< the first part that was not taken, or empty
  size_t numOperands() const { return instruction.operands.size(); }

  void result(Type type, bool wider = false) { operands.push_back({OperandForm::Kind::Result, type, 1, wider}); }
  void value(Type type, bool wider = false) { operands.push_back({OperandForm::Kind::Value, type, 1, wider}); }
  void values(size_t count, Type type) { operands.append(count, {OperandForm::Kind::Value, type, 1, false}); }
  void add(OperandForm::Kind kind, Type type, unsigned elements = 1, bool wider = false) {
    operands.push_back({kind, type, elements, wider});
  }

  const ptx::Instruction &instruction;
  Decoded decoded;
  llvm::SmallVector<OperandForm, 6> operands;

private:
  size_t at = 1;
};

inline constexpr Type predicateType{TypeClass::Predicate, 1, 1};
inline constexpr Type b16{TypeClass::Bits, 16, 1}, b32{TypeClass::Bits, 32, 1}, b64{TypeClass::Bits, 64, 1};

// Families of opcodes, a file each. False: the form is not supported.
bool decodeInteger(Form &form);
bool decodeLogic(Form &form);
bool decodeArithmetic(Form &form); ///< on integers and floats alike: add, mul, min, ...
bool decodeFloat(Form &form);
bool decodeCompare(Form &form);
bool decodeConvert(Form &form);
bool decodeMemory(Form &form);
/// Copies by tensor maps and to L2; nothing for other forms of cp.
std::optional<bool> decodeTensorCopy(Form &form);
bool decodeTensormap(Form &form);
/// fence.proxy.tensormap::generic, of which `fence.proxy` has been taken.
bool decodeTensormapFence(Form &form);
bool decodeCrossLane(Form &form);
bool decodeMatrix(Form &form);
bool decodeAsyncStore(Form &form); ///< behind st.async, red.async
bool decodeControl(Form &form);
bool decodeAsynchronous(Form &form); ///< mbarriers, bulk copies

/// What atom, red and reductions by copies do: and, or, xor, exch, cas, add, min, max, inc, dec. Else None.
Mode atomicMode(llvm::StringRef name);

/// The opcode of the first part; hints such as `prefetch` are Nop.
std::optional<Opcode> opcodeOf(llvm::StringRef name);
/// Runs the family that the opcode belongs to, and checks that every part was taken.
bool decodeOpcode(Form &form);

} // namespace hloc::emulator
