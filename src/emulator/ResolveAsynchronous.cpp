// Forms of mbarriers and of bulk copies without tensor maps.
#include "ResolveForm.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

using Kind = OperandForm::Kind;

constexpr Type u32{TypeClass::Unsigned, 32, 1};

/// {.sem}{.scope}: .release or .acquire of the block where nothing is said.
void takeOrder(Form &f, bool acquires) {
  Decoded &d = f.decoded;
  const bool relaxed = f.take("relaxed");
  if (!relaxed)
    f.take(acquires ? "acquire" : "release");
  (acquires ? d.acquires : d.releases) = !relaxed;
  f.takeAnyOf("cta cluster");
  d.strong = true;
  d.scope = Scope::Cluster; // without .cluster, too, threads of other blocks arrive
}

/// .shared, .shared::cta, .shared::cluster or, for a generic address, nothing.
bool takeSharedSpace(Form &f, bool ofCluster) {
  StringRef space = f.takeAnyOf(ofCluster ? "shared shared::cta shared::cluster" : "shared shared::cta");
  if (space.empty())
    return f.next() == "b64";
  f.decoded.space = space == "shared::cluster" ? Space::SharedCluster : Space::Shared;
  return true;
}

/// mbarrier.arrive{.expect_tx}{.noComplete}{.sem.scope}{.space}.b64 state|_, [mbarrier] {, count | bytes}
bool decodeArrive(Form &f) {
  Decoded &d = f.decoded;
  const bool expects = f.take("expect_tx");
  if (!expects)
    f.takeFlag(d.partial, "noComplete");
  takeOrder(f, false);
  if (!takeSharedSpace(f, true) || !f.take("b64"))
    return false;
  const size_t given = f.numOperands();
  f.result(b64);
  f.add(Kind::Address, b64);
  if (given > 2 || expects || d.partial)
    f.value(u32);
  d.combine = expects ? Mode::ExpectTransfer : Mode::None;
  return true;
}

bool decodeWait(Form &f, Mode mode) {
  Decoded &d = f.decoded;
  d.mode = mode;
  f.takeFlag(d.byParity, "parity");
  takeOrder(f, true);
  if (!takeSharedSpace(f, false) || !f.take("b64"))
    return false;
  f.result(predicateType);
  f.add(Kind::Address, b64);
  f.value(d.byParity ? u32 : b64);
  if (mode == Mode::TryWait && f.numOperands() > 3)
    f.add(Kind::Dropped, b32); // for how long it may wait
  return true;
}

bool decodeTransferCount(Form &f, Mode mode) {
  Decoded &d = f.decoded;
  d.mode = mode;
  d.strong = true;
  d.scope = Scope::Cluster;
  if (f.take("relaxed") && f.takeAnyOf("cta cluster").empty())
    return false;
  if (!takeSharedSpace(f, true))
    return false;
  f.add(Kind::Address, b64);
  f.value(u32);
  return f.take("b64");
}

bool decodeMbarrier(Form &f) {
  Decoded &d = f.decoded;
  d.type = b64;
  if (f.take("init") || f.take("inval")) {
    d.mode = f.instruction.parts[1] == "init" ? Mode::Init : Mode::Invalidate;
    if (!takeSharedSpace(f, false) || !f.take("b64"))
      return false;
    f.add(Kind::Address, b64);
    if (d.mode == Mode::Init)
      f.value(u32);
    return true;
  }
  if (f.take("expect_tx"))
    return decodeTransferCount(f, Mode::ExpectTransfer);
  if (f.take("complete_tx"))
    return decodeTransferCount(f, Mode::CompleteTransfer);
  if (f.take("test_wait"))
    return decodeWait(f, Mode::TestWait);
  if (f.take("try_wait"))
    return decodeWait(f, Mode::TryWait);
  if (f.take("pending_count")) {
    d.mode = Mode::PendingCount;
    f.result(u32);
    f.value(b64);
    return f.take("b64");
  }
  d.mode = f.take("arrive_drop") ? Mode::ArriveDrop : Mode::Arrive;
  return (d.mode == Mode::ArriveDrop || f.take("arrive")) && decodeArrive(f);
}

/// cp.async.mbarrier.arrive{.noinc}{.shared{::cta}}.b64 [mbarrier]
bool decodeArriveOnCopies(Form &f) {
  Decoded &d = f.decoded;
  d.opcode = Opcode::Mbarrier;
  d.type = b64;
  d.mode = Mode::ArriveOnCopies;
  d.strong = d.releases = true;
  d.space = Space::Generic;
  if (!f.take("arrive"))
    return false;
  f.takeFlag(d.partial, "noinc");
  f.add(Kind::Address, b64);
  return takeSharedSpace(f, false) && f.take("b64");
}

/// What a reduction into shared memory or, with more types, into global memory knows.
StringRef typesOf(Mode mode, bool global) {
  switch (mode) {
  case Mode::And:
  case Mode::Or:
  case Mode::Xor:
    return global ? "b32 b64" : "b32";
  case Mode::Inc:
  case Mode::Dec:
    return "u32";
  case Mode::Add:
    return global ? "u32 s32 u64 f16 bf16 f32 f64" : "u32 s32 u64";
  default:
    return global ? "u32 s32 u64 s64 f16 bf16" : "u32 s32";
  }
}

bool takeReduction(Form &f) {
  Decoded &d = f.decoded;
  bool noFlush = f.take("noftz"); // ptxas takes it in either place
  d.combine = atomicMode(f.takeAnyOf("and or xor add inc dec min max"));
  noFlush |= f.take("noftz");
  if (d.combine == Mode::None || !f.takeTypeInto(d.type, typesOf(d.combine, d.mode == Mode::BulkStore)))
    return false;
  return noFlush == (d.combine == Mode::Add && d.type.isFloat() && d.type.bits == 16);
}

/// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], bytes, [mbarrier] and its kin.
bool decodeBulk(Form &f, bool reduces) {
  Decoded &d = f.decoded;
  d.opcode = Opcode::Bulk;
  d.space = Space::Shared;
  d.type = b32;
  const bool toGlobal = f.take("global");
  if (!toGlobal && f.takeAnyOf("shared::cluster shared::cta").empty())
    return false;
  const bool fromGlobal = !toGlobal && !reduces && f.take("global");
  if (!fromGlobal && !f.take("shared::cta"))
    return false;
  d.mode = toGlobal ? Mode::BulkStore : fromGlobal ? Mode::BulkLoad : Mode::BulkToCluster;
  if (!f.take(toGlobal ? "bulk_group" : "mbarrier::complete_tx::bytes"))
    return false;
  const bool multicast = fromGlobal && f.take("multicast::cluster");
  const bool policy = f.take("L2::cache_hint");
  if (reduces && !takeReduction(f))
    return false;
  f.add(Kind::Address, b64);
  f.add(Kind::Address, b64);
  f.value(u32);
  if (!toGlobal)
    f.add(Kind::Address, b64);
  if (multicast)
    f.value(Type{TypeClass::Bits, 16, 1});
  if (policy)
    f.add(Kind::Dropped, b64);
  return true;
}

bool decodeBulkForm(Form &f) {
  Decoded &d = f.decoded;
  const bool reduces = f.take("reduce");
  if (reduces ? !f.take("async") : false)
    return false;
  if (!f.take("bulk"))
    return false;
  if (!reduces && f.take("commit_group")) {
    d.opcode = Opcode::Bulk;
    d.mode = Mode::Commit;
    return true;
  }
  if (!reduces && f.take("wait_group")) {
    d.opcode = Opcode::Bulk;
    d.mode = Mode::WaitGroup;
    f.takeFlag(d.partial, "read");
    f.add(Kind::Immediate, b32);
    return true;
  }
  return decodeBulk(f, reduces);
}

} // namespace

/// st.async{.weak}{.shared::cluster}{.mbarrier::complete_tx::bytes}{.v2, .v4}.b32 [to], value, [mbarrier];
/// red.async.relaxed.cluster{...}.add.u32 [to], value, [mbarrier]
bool decodeAsyncStore(Form &f) {
  Decoded &d = f.decoded;
  const bool reduces = d.opcode == Opcode::Red;
  d.opcode = Opcode::AsyncStore;
  if (reduces ? !f.take("relaxed") || !f.take("cluster") : false)
    return false;
  if (!reduces)
    f.take("weak");
  d.space = f.take("shared::cluster") ? Space::SharedCluster : Space::Generic;
  f.take("mbarrier::complete_tx::bytes");
  if (reduces) {
    d.combine = atomicMode(f.takeAnyOf("and or xor add inc dec min max"));
    if (d.combine == Mode::None || !f.takeTypeInto(d.type, typesOf(d.combine, false)))
      return false;
  } else {
    const StringRef vector = f.takeAnyOf("v2 v4");
    d.count = vector.empty() ? 1 : vector == "v2" ? 2 : 4;
    constexpr unsigned most = 16;
    if (!f.takeTypeInto(d.type, "b32 b64 u32 u64 s32 s64 f32 f64") || d.count * d.type.bytes() > most)
      return false;
  }
  f.add(Kind::Address, b64);
  f.add(d.count > 1 ? Kind::Values : Kind::Value, d.type, d.count);
  f.add(Kind::Address, b64);
  return true;
}

bool decodeAsynchronous(Form &f) {
  if (f.decoded.opcode == Opcode::Mbarrier)
    return decodeMbarrier(f);
  return f.take("mbarrier") ? decodeArriveOnCopies(f) : decodeBulkForm(f);
}

} // namespace hloc::emulator
