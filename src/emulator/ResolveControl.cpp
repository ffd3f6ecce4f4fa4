// Control flow, fences and hints. Hints (Nop) keep their place in the code so that they are counted and located.
#include "ResolveForm.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

using Kind = OperandForm::Kind;

bool decodeHint(Form &f) {
  StringRef name = f.instruction.parts[0];
  if (name == "nanosleep") {
    f.value(b32);
    return f.take("u32");
  }
  if (name == "pmevent") {
    f.take("mask");
    f.add(Kind::Immediate, b32);
    return true;
  }
  if (name == "prefetch" && f.instruction.parts.back() == "tensormap") {
    f.takeAnyOf("const param");
    f.add(Kind::Address, b64);
    return f.take("tensormap");
  }
  if (name == "prefetch" || name == "prefetchu" || name == "applypriority") {
    const bool global = f.take("global") || f.take("local");
    StringRef level = f.takeAnyOf(global ? "L1 L2 L2::evict_last L2::evict_normal" : "L1 L2 L2::evict_normal");
    f.add(Kind::Address, b64);
    if (name == "applypriority")
      f.add(Kind::Immediate, b32);
    return !level.empty();
  }
  return false;
}

bool decodeFence(Form &f) {
  if (f.instruction.parts.size() > 2 && f.instruction.parts[2] == "tensormap::generic") {
    f.take("proxy");
    return decodeTensormapFence(f);
  }
  Decoded &d = f.decoded;
  if (f.take("proxy")) {
    if (f.take("alias"))
      return true;
    d.mode = Mode::Proxy;
    return !f.takeAnyOf("async async::global async::shared::cta async::shared::cluster").empty() &&
           (f.next().empty() || !f.takeAnyOf("global shared::cta shared::cluster").empty());
  }
  if (f.take("mbarrier_init")) {
    d.releases = true;
    d.scope = Scope::Cluster;
    return f.take("release") && f.take("cluster");
  }
  StringRef order = f.takeAnyOf("sc acq_rel acquire release"), scope = f.takeAnyOf("cta cluster gpu sys");
  d.acquires = order != "release";
  d.releases = order != "acquire";
  d.scope = scopeOf(scope);
  return !scope.empty();
}

bool decodeMembar(Form &f) {
  if (f.take("proxy"))
    return f.take("alias");
  StringRef scope = f.takeAnyOf("cta gl sys");
  f.decoded.acquires = f.decoded.releases = true;
  f.decoded.scope = scopeOf(scope);
  return !scope.empty();
}

bool decodeRegisterCount(Form &f) {
  const StringRef what = f.takeAnyOf("inc dec");
  f.decoded.mode = what == "inc" ? Mode::Inc : Mode::Dec;
  f.add(Kind::Immediate, b32);
  return !what.empty() && f.take("sync") && f.take("aligned") && f.take("u32");
}

} // namespace

bool decodeControl(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Bra: // its target is looked up by the caller
  case Opcode::Ret:
    f.take("uni");
    return true;
  case Opcode::Exit:
  case Opcode::Trap:
    return true;
  case Opcode::Griddepcontrol:
    f.decoded.mode = f.next() == "wait" ? Mode::Wait : Mode::None;
    return !f.takeAnyOf("wait launch_dependents").empty();
  case Opcode::Membar:
    return decodeMembar(f);
  case Opcode::Fence:
    return decodeFence(f);
  case Opcode::Setmaxnreg:
    return decodeRegisterCount(f);
  case Opcode::Nop:
    return decodeHint(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
