#pragma once
// What integer registers hold in the lanes of one warp, as far as it follows from its place in the grid and not from
// memory: enough to say which bytes an access touches. Parameters are taken to be pointers to memory of any alignment
// that matters, or extents.
//
//   mov.u32 %r1, %tid.x;              0, 1, ..., 31
//   mul.wide.u32 %rd2, %r1, 8;        0, 8, ..., 248
//   add.s64 %rd3, %rd1, %rd2;         p, p + 8, ...             ld.global.b32 [%rd3]: 8 sectors
//
// Instructions are executed in the order in which they are given, branches and guards ignored.

#include "hloc/kernel/KernelSpec.h"
#include "lint/KernelCode.h"

#include <array>

namespace hloc::lint {

constexpr unsigned warpLanes = 32;

struct LaneValue {
  bool isKnown = false;
  bool isAssumed = false; ///< made of parameters: what matters of it is how it is aligned
  std::array<uint64_t, warpLanes> lanes = {};
};

class LaneValues {
public:
  /// Of a warp in the middle of a block in the middle of the grid; edges of arrays are elsewhere.
  LaneValues(const KernelCode &code, Dim3 grid, Dim3 block);

  void execute(const CodeInstr &instr);
  /// 32-byte sectors that an access touches; one a lane if nothing is known of its address.
  unsigned sectorsOf(const CodeInstr &access) const;
  LaneValue valueOf(const ptx::Operand &operand) const;

private:
  LaneValue special(llvm::StringRef name) const;
  LaneValue resultOf(const CodeInstr &instr) const;

  const KernelCode *code;
  Dim3 grid, block;
  std::vector<LaneValue> registers;
};

} // namespace hloc::lint
