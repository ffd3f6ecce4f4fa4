#pragma once
// What integer registers hold in the lanes of one warp, as far as it follows from its place in the grid and not from
// memory: enough to say which bytes an access touches. Parameters are taken to be pointers to memory of any alignment
// that matters, or extents.
//
//   mov.u32 %r1, %tid.x;              0, 1, ..., 31
//   mul.wide.u32 %rd2, %r1, 8;        0, 8, ..., 248
//   add.s64 %rd3, %rd1, %rd2;         p, p + 8, ...             ld.global.b32 [%rd3]: 8 sectors
//
// Instructions are executed in the order in which they are given, by the lanes that are said to be active.

#include "hloc/kernel/KernelSpec.h"
#include "lint/KernelCode.h"

#include <array>
#include <optional>

namespace hloc::lint {

constexpr unsigned warpLanes = 32;
/// A bit a lane.
using LaneMask = uint32_t;

struct LaneValue {
  bool isKnown = false;
  bool isAssumed = false; ///< made of parameters: what matters of it is how it is aligned
  bool isWritten = false;
  std::array<uint64_t, warpLanes> lanes = {}; ///< of predicates 0 and 1
};

/// One warp of a launch: number of its block, and its own in it.
struct WarpPlace {
  uint64_t block = 0, warp = 0;
};

/// What `setp` compares integers by.
enum class Relation { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };
std::optional<Relation> relationOf(const CodeInstr &setp);
bool holds(Relation relation, double left, double right);
/// An integer of the instruction's type.
double numberOf(const CodeInstr &instr, uint64_t value);

class LaneValues {
public:
  LaneValues(const KernelCode &code, Dim3 grid, Dim3 block, WarpPlace place);

  /// Lanes that have threads.
  LaneMask allLanes() const;
  /// Which lanes execute what follows.
  void setActive(LaneMask lanes) { active = lanes; }
  LaneMask activeLanes() const { return active; }
  unsigned firstActive() const;
  /// Lanes, of the active ones, in which the guard holds; nothing if that is not known.
  std::optional<LaneMask> guarded(const CodeInstr &instr) const;

  /// In the active lanes, or in those that a guard leaves of them.
  void execute(const CodeInstr &instr);
  /// 32-byte sectors of global memory that an access touches; one a lane if nothing is known of its address.
  unsigned sectorsOf(const CodeInstr &access) const;
  LaneValue valueOf(const ptx::Operand &operand) const;

  /// What a variable of the parameter space holds from here on: an argument, or the result of a call.
  void setParameter(llvm::StringRef name, LaneValue value) { parameters[name] = std::move(value); }
  /// As it was stored last; unknown if it was not.
  LaneValue parameter(llvm::StringRef name) const { return parameters.lookup(name); }

private:
  LaneValue special(llvm::StringRef name) const;
  LaneValue resultOf(const CodeInstr &instr) const;
  LaneValue loadedParameter(const CodeInstr &load) const;

  const KernelCode *code;
  Dim3 grid, block;
  WarpPlace place;
  LaneMask active;
  std::vector<LaneValue> registers;
  llvm::StringMap<LaneValue> parameters; ///< that were stored, or set
};

} // namespace hloc::lint
