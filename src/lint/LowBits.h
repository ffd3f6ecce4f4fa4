#pragma once
// What is known of the low bits of each register, whatever the thread: enough to say how addresses are aligned.
//
//   ld.param.b64 %rd1, [p];          p is `.ptr .align 16`     4 bits: ...0000
//   mul.wide.u32 %rd2, %r1, 8;       %r1 unknown               3 bits: ...000
//   add.s64 %rd3, %rd1, %rd2;                                  3 bits: ...000
//   add.s64 %rd4, %rd3, 4;                                     3 bits: ...100

#include "lint/KernelCode.h"

namespace hloc::lint {

/// The low `known` bits are those of `value`; bits of `value` above are 0. `isSet` false: nobody has written it yet.
struct LowBits {
  uint8_t known = 0;
  uint64_t value = 0;
  bool isSet = true;
  bool operator==(const LowBits &) const = default;
};

class LowBitsOfRegisters {
public:
  explicit LowBitsOfRegisters(const KernelCode &code);

  /// Of an address operand, offset included.
  LowBits ofAddress(const ptx::Operand &address) const;

private:
  LowBits ofOperand(const ptx::Operand &operand) const;
  LowBits ofResult(const CodeInstr &instr, size_t number) const;
  LowBits ofVariable(const ptx::Variable &variable) const;
  LowBits ofParameter(const ptx::Instruction &load) const;

  const KernelCode &code;
  std::vector<LowBits> registers;
};

} // namespace hloc::lint
