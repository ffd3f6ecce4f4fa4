// Barriers and instructions that look at other lanes of the warp.
#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

using Kind = OperandForm::Kind;

/// barrier.cluster.arrive{.release, .relaxed}{.aligned}; barrier.cluster.wait{.acquire}{.aligned}
bool decodeClusterBarrier(Form &f) {
  Decoded &d = f.decoded;
  d.opcode = Opcode::ClusterBarrier;
  d.scope = Scope::Cluster;
  if (f.take("wait")) {
    d.mode = Mode::Wait;
    d.acquires = true;
    f.take("acquire");
  } else {
    d.mode = Mode::Arrive;
    if (!f.take("arrive"))
      return false;
    d.releases = f.takeAnyOf("release relaxed") != "relaxed";
  }
  f.takeFlag(d.aligned, "aligned");
  return true;
}

/// bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, p; bar.warp.sync mask; and the same as barrier.
bool decodeBarrier(Form &f) {
  Decoded &d = f.decoded;
  const bool modern = d.opcode == Opcode::Barrier;
  if (modern && f.take("cluster"))
    return decodeClusterBarrier(f);
  if (!modern && f.take("warp")) {
    d.mode = Mode::All;
    f.value(b32);
    return f.take("sync");
  }
  f.take("cta");
  StringRef what = f.takeAnyOf("sync arrive red");
  if (what.empty())
    return false;
  const bool reduces = what == "red";
  if (what == "arrive")
    d.mode = Mode::Arrive;
  if (reduces)
    d.mode = StringSwitch<Mode>(f.takeAnyOf("popc and or"))
                 .Case("popc", Mode::Popc)
                 .Case("and", Mode::And)
                 .Case("or", Mode::Or)
                 .Default(Mode::None);
  if (reduces && d.mode == Mode::None)
    return false;
  if (modern)
    f.take("aligned");
  if (reduces) {
    d.type = d.mode == Mode::Popc ? b32 : predicateType;
    if (!f.take(d.mode == Mode::Popc ? "u32" : "pred"))
      return false;
    f.result(d.type);
  }
  const size_t fixed = reduces ? 2 : 0;
  const bool counted = f.numOperands() == fixed + 2;
  f.values(counted ? 2 : 1, b32);
  if (reduces)
    f.add(Kind::Predicate, predicateType);
  return counted || what != "arrive";
}

bool decodeShuffle(Form &f) {
  Decoded &d = f.decoded;
  if (!f.take("sync"))
    return false;
  d.mode = StringSwitch<Mode>(f.takeAnyOf("up down bfly idx"))
               .Case("up", Mode::Up)
               .Case("down", Mode::Down)
               .Case("bfly", Mode::Bfly)
               .Case("idx", Mode::Idx)
               .Default(Mode::None);
  if (d.mode == Mode::None || !f.takeTypeInto(d.type, "b32"))
    return false;
  f.add(Kind::ResultPair, b32);
  f.values(4, b32);
  return true;
}

bool decodeVote(Form &f) {
  Decoded &d = f.decoded;
  if (!f.take("sync"))
    return false;
  d.mode = StringSwitch<Mode>(f.takeAnyOf("all any uni ballot"))
               .Case("all", Mode::All)
               .Case("any", Mode::Any)
               .Case("uni", Mode::Uni)
               .Case("ballot", Mode::Ballot)
               .Default(Mode::None);
  if (d.mode == Mode::None || !f.takeTypeInto(d.type, d.mode == Mode::Ballot ? "b32" : "pred"))
    return false;
  f.result(d.type);
  f.add(Kind::Predicate, predicateType);
  f.value(b32);
  return true;
}

bool decodeMatch(Form &f) {
  Decoded &d = f.decoded;
  StringRef mode = f.takeAnyOf("any all");
  d.mode = mode == "all" ? Mode::All : Mode::Any;
  if (mode.empty() || !f.take("sync") || !f.takeTypeInto(d.type, "b32 b64"))
    return false;
  f.add(d.mode == Mode::All ? Kind::ResultPair : Kind::Result, b32);
  f.value(d.type);
  f.value(b32);
  return true;
}

bool decodeReduce(Form &f) {
  Decoded &d = f.decoded;
  if (!f.take("sync"))
    return false;
  StringRef op = f.takeAnyOf("add min max and or xor");
  d.mode = StringSwitch<Mode>(op)
               .Case("add", Mode::Add)
               .Case("min", Mode::Min)
               .Case("max", Mode::Max)
               .Case("and", Mode::And)
               .Case("or", Mode::Or)
               .Case("xor", Mode::Xor)
               .Default(Mode::None);
  const bool bitwise = op == "and" || op == "or" || op == "xor", extreme = op == "min" || op == "max";
  if (extreme) {
    f.takeFlag(d.integral, "abs"); // of f32: the larger or smaller magnitude
    f.takeFlag(d.nan, "NaN");
  }
  if (d.mode == Mode::None || !f.takeTypeInto(d.type, bitwise               ? "b32"
                                                      : d.integral || d.nan ? "f32"
                                                      : extreme             ? "u32 s32 f32"
                                                                            : "u32 s32"))
    return false;
  f.result(d.type);
  f.value(d.type);
  f.value(b32);
  return true;
}

} // namespace

bool decodeCrossLane(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Bar:
  case Opcode::Barrier:
    return decodeBarrier(f);
  case Opcode::Shfl:
    return decodeShuffle(f);
  case Opcode::Vote:
    return decodeVote(f);
  case Opcode::Match:
    return decodeMatch(f);
  case Opcode::Redux:
    return decodeReduce(f);
  case Opcode::Activemask:
    f.result(b32);
    return f.takeTypeInto(f.decoded.type, "b32");
  case Opcode::Elect:
    f.decoded.type = b32;
    f.add(Kind::ResultPair, b32);
    f.value(b32);
    return f.take("sync");
  default:
    return false;
  }
}

} // namespace hloc::emulator
