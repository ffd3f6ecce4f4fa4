// Loads, stores, atomics and asynchronous copies. The order in which hints stand differs between versions of PTX, so
// they are taken as a set, each at most once. Ordering and cache hints change no value: memory here is sequentially
// consistent; how strong an access is, and for whom, is kept for the race check.
#include "ResolveForm.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
Mode atomicMode(StringRef name) {
  return StringSwitch<Mode>(name)
      .Case("and", Mode::And)
      .Case("or", Mode::Or)
      .Case("xor", Mode::Xor)
      .Case("exch", Mode::Exch)
      .Case("cas", Mode::Cas)
      .Case("add", Mode::Add)
      .Case("min", Mode::Min)
      .Case("max", Mode::Max)
      .Case("inc", Mode::Inc)
      .Case("dec", Mode::Dec)
      .Default(Mode::None);
}

namespace {

constexpr StringLiteral accessTypes = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64";
constexpr StringLiteral strongWords = "volatile relaxed acquire release acq_rel mmio";
constexpr StringLiteral scopes = "cta cluster gpu sys";
constexpr StringLiteral cacheHints =
    "ca cg cs lu cv wb wt L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_first L2::evict_last L2::64B L2::128B L2::256B";
constexpr StringLiteral spaces = "global const shared shared::cta shared::cluster local param param::entry param::func";

struct Hints {
  bool space = false, policy = false;
};

void setSpace(Decoded &d, StringRef name) {
  d.space = StringSwitch<Space>(name)
                .Cases({"global", "const"}, Space::Global)
                .Cases({"shared", "shared::cta"}, Space::Shared)
                .Case("shared::cluster", Space::SharedCluster)
                .Case("local", Space::Local)
                .Default(Space::Param);
}

/// Takes every hint that stands next; false if one is repeated.
bool takeHints(Form &f, Hints &hints, bool isLoad) {
  Decoded &d = f.decoded;
  StringSet<> seen;
  while (!f.next().empty()) {
    StringRef part = f.next();
    if (!seen.insert(part).second)
      return false;
    if (StringRef space = f.takeAnyOf(spaces); !space.empty()) {
      if (hints.space || (space == "const" && !isLoad))
        return false;
      hints.space = true;
      setSpace(d, space);
    } else if (StringRef order = f.takeAnyOf(strongWords); !order.empty()) {
      d.strong = true;
      d.acquires = order == "acquire" || order == "acq_rel";
      d.releases = order == "release" || order == "acq_rel";
    } else if (StringRef scope = f.takeAnyOf(scopes); !scope.empty()) {
      d.scope = scopeOf(scope);
    } else if (f.take("L2::cache_hint")) {
      hints.policy = true;
    } else if (isLoad && f.take("nc")) {
      d.nonCoherent = true;
    } else if (f.takeAnyOf(cacheHints).empty() && !f.take("weak")) {
      return true;
    }
  }
  return true;
}

unsigned vectorOf(StringRef part) { return part.empty() ? 1 : unsigned(part.back() - '0'); }

bool decodeAccess(Form &f) {
  Decoded &d = f.decoded;
  const bool isLoad = d.opcode == Opcode::Ld;
  Hints hints;
  if (!takeHints(f, hints, isLoad))
    return false;
  d.count = uint8_t(vectorOf(f.takeAnyOf("v2 v4 v8")));
  if (!f.takeTypeInto(d.type, accessTypes) || d.count * d.type.bytes() > 32 || (d.count == 8 && d.type.bits != 32))
    return false;
  if (d.count * d.type.bytes() > 16 && d.space != Space::Global)
    return false;
  if (f.instruction.parts[0] == "ldu" && d.space != Space::Global && d.space != Space::Generic)
    return false;
  using Kind = OperandForm::Kind;
  if (isLoad)
    f.add(d.count > 1 ? Kind::Results : Kind::Result, d.type, d.count, true);
  f.add(Kind::Address, b64);
  if (!isLoad)
    f.add(d.count > 1 ? Kind::Values : Kind::Value, d.type, d.count, true);
  if (hints.policy)
    f.add(Kind::Dropped, b64);
  return true;
}

StringRef atomicTypes(Mode mode, bool vector) {
  switch (mode) {
  case Mode::And:
  case Mode::Or:
  case Mode::Xor:
    return "b32 b64";
  case Mode::Exch:
    return "b32 b64";
  case Mode::Cas:
    return "b16 b32 b64";
  case Mode::Inc:
  case Mode::Dec:
    return "u32";
  case Mode::Add:
    return vector ? "f32 f16 bf16 f16x2 bf16x2" : "u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2";
  default:
    return vector ? "f16 bf16 f16x2 bf16x2" : "u32 s32 u64 s64";
  }
}

/// atom{.sem}{.scope}{.space}.op{.noftz}{.vec}.type; XLA writes the vector before the operation.
bool decodeAtomic(Form &f) {
  Decoded &d = f.decoded;
  Hints hints;
  if (!takeHints(f, hints, false) || d.space == Space::Local || d.space == Space::Param)
    return false;
  StringRef early = f.takeAnyOf("v2 v4 v8");
  auto earlyType = early.empty() ? std::nullopt : f.takeType("f32 f16 bf16 f16x2 bf16x2");
  d.mode = atomicMode(f.takeAnyOf("and or xor exch cas add min max inc dec"));
  if (d.mode == Mode::None)
    return false;
  const bool noFlush = f.take("noftz");
  if (!takeHints(f, hints, false))
    return false;
  StringRef vector = early.empty() ? f.takeAnyOf("v2 v4 v8") : early;
  d.count = uint8_t(vectorOf(vector));
  if (earlyType)
    d.type = *earlyType;
  else if (!f.takeTypeInto(d.type, atomicTypes(d.mode, d.count > 1)))
    return false;
  const bool narrow = d.type.isFloat() && d.type.bits == 16;
  if (noFlush != narrow || d.count * d.type.bytes() > 16 || (d.count > 1 && d.space != Space::Global))
    return false;
  if (d.opcode == Opcode::Red && (d.mode == Mode::Exch || d.mode == Mode::Cas))
    return false;
  using Kind = OperandForm::Kind;
  d.strong = true;
  if (d.opcode == Opcode::Atom)
    f.add(d.count > 1 ? Kind::Results : Kind::Result, d.type, d.count);
  f.add(Kind::Address, b64);
  f.add(d.count > 1 ? Kind::Values : Kind::Value, d.type, d.count);
  if (d.mode == Mode::Cas)
    f.value(d.type);
  if (hints.policy)
    f.add(Kind::Dropped, b64);
  return true;
}

/// cp.async.cg.shared.global [to], [from], 16{, bytes that are read}{, policy}
bool decodeCopy(Form &f) {
  Decoded &d = f.decoded;
  d.type = b32;
  d.space = Space::Shared;
  if (f.next() == "reduce")
    return decodeAsynchronous(f);
  if (!f.take("async"))
    return false;
  if (f.next() == "bulk" || f.next() == "mbarrier")
    return decodeAsynchronous(f);
  if (f.take("commit_group")) {
    d.mode = Mode::Commit;
    return true;
  }
  if (f.take("wait_all")) {
    d.mode = Mode::WaitAll;
    return true;
  }
  using Kind = OperandForm::Kind;
  if (f.take("wait_group")) {
    d.mode = Mode::WaitGroup;
    f.add(Kind::Immediate, b32);
    return true;
  }
  StringRef cache = f.takeAnyOf("ca cg");
  if (cache.empty() || f.takeAnyOf("shared shared::cta").empty() || !f.take("global"))
    return false;
  const bool policy = f.take("L2::cache_hint");
  f.takeAnyOf("L2::64B L2::128B L2::256B");
  const auto &operands = f.instruction.operands;
  const uint64_t bytes = operands.size() > 2 ? operands[2].value : 0;
  if (bytes != 16 && (cache == "cg" || (bytes != 4 && bytes != 8)))
    return false;
  f.add(Kind::Address, b64);
  f.add(Kind::Address, b64);
  f.add(Kind::Immediate, b32);
  if (operands.size() > 3u + policy)
    f.value(b32);
  if (policy)
    f.add(Kind::Dropped, b64);
  return true;
}

} // namespace

bool decodeMemory(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Ld:
    return decodeAccess(f);
  case Opcode::St:
    return f.take("async") ? decodeAsyncStore(f) : decodeAccess(f);
  case Opcode::Atom:
    return decodeAtomic(f);
  case Opcode::Red:
    return f.take("async") ? decodeAsyncStore(f) : decodeAtomic(f);
  case Opcode::Cp:
    if (std::optional<bool> isTensorCopy = decodeTensorCopy(f))
      return *isTensorCopy;
    return decodeCopy(f);
  case Opcode::Tensormap:
    return decodeTensormap(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
