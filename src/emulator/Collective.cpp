// Shuffles, votes, matches and reductions across the lanes of a warp, and the choice among the families of collectives.
#include "Cluster.h"
#include "CollectiveParts.h"
#include "Undefined.h"

#include "hloc/support/Check.h"

#include "fmt/format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hloc::emulator {

void CollectiveCall::setPair(unsigned lane, uint32_t value, bool predicate) const {
  resultWords()[lane] = value;
  if (at.operands[0].kind == Source::Kind::Vector)
    resultWords()[warpLanes + lane] = predicate;
}

void CollectiveCall::requireWholeWarp() const {
  if (mask == ~0u)
    return;
  uint32_t everyone[warpLanes];
  std::fill(std::begin(everyone), std::end(everyone), ~0u);
  checkMembers(warp, at, mask, everyone);
}

namespace {

/// PTX ISA, shfl.sync: c holds the clamp in bits 0-4 and the segment mask in bits 8-12.
void shuffle(const CollectiveCall &call) {
  const uint32_t *a = call.words(0), *b = call.words(1), *c = call.words(2), *members = call.words(3);
  uint32_t value[warpLanes];
  std::copy(a, a + warpLanes, value);
  ++call.warp.core->counters.shuffles;
  LaneSources sources = {};
  call.forEachLane([&](unsigned lane) {
    const int by = int(b[lane] & 31), clamp = int(c[lane] & 31), segment = int(c[lane] >> 8 & 31), self = int(lane);
    const int limit = (self & segment) | (clamp & ~segment), lowest = self & segment;
    int from = self;
    switch (call.at.mode) {
    case Mode::Up:
      from = self - by;
      break;
    case Mode::Down:
      from = self + by;
      break;
    case Mode::Bfly:
      from = self ^ by;
      break;
    default:
      from = lowest | (by & ~segment);
      break;
    }
    const bool inside = call.at.mode == Mode::Up ? from >= limit : from <= limit;
    if (!inside)
      from = self;
    uint32_t result = value[from];
    if (inside && !(call.mask & members[lane] & (1u << from))) { // its register has no value that means anything
      const EmulatorOptions &options = call.warp.core->launch.options;
      auto message = [&] { return fmt::format("shuffles from lane {}, which does not take part", from); };
      if (options.checkDivergence)
        reportFinding(call.warp, call.at, lane, FindingKind::InactiveShuffle, message, true);
      fillUndefined(options, uint64_t(call.at.line) << 8 | uint64_t(from) << 2, &result, sizeof result, 0);
    } else {
      sources[lane] = 1u << from;
    }
    call.setPair(lane, result, inside);
  });
  if (call.warp.core->launch.causal)
    followCollective(call.warp, call.at, sources);
}

/// Lanes that named the same members work together, so that parts of a warp may each do their own.
template <typename Compute> void byGroups(const CollectiveCall &call, const uint32_t *members, Compute compute) {
  for (uint32_t rest = call.mask; rest;) {
    const uint32_t named = members[llvm::countr_zero(rest)];
    uint32_t group = 0;
    for (uint32_t lanes = rest & named; lanes; lanes &= lanes - 1)
      if (members[llvm::countr_zero(lanes)] == named)
        group |= lanes & -lanes;
    group |= rest & -rest;
    compute(group);
    rest &= ~group;
  }
}

/// Every lane of a group gets a value made of those of all.
void followGroups(const CollectiveCall &call, const uint32_t *members) {
  if (!call.warp.core->launch.causal)
    return;
  LaneSources sources = {};
  byGroups(call, members, [&](uint32_t group) {
    for (uint32_t lanes = group; lanes; lanes &= lanes - 1)
      sources[unsigned(llvm::countr_zero(lanes))] = group;
  });
  followCollective(call.warp, call.at, sources);
}

template <typename Visit> void visitLanes(uint32_t lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1)
    visit(unsigned(llvm::countr_zero(lanes)));
}

void vote(const CollectiveCall &call) {
  byGroups(call, call.words(1), [&](uint32_t group) {
    uint32_t votes = 0;
    visitLanes(group, [&](unsigned lane) { votes |= uint32_t(call.words(0)[lane] != 0) << lane; });
    if (call.source(0).negated && call.source(0).kind == Source::Kind::Constant)
      votes = ~votes & group;
    const uint32_t result = call.at.mode == Mode::Ballot ? votes
                            : call.at.mode == Mode::Any  ? votes != 0
                            : call.at.mode == Mode::All  ? votes == group
                                                         : votes == group || votes == 0;
    visitLanes(group, [&](unsigned lane) { call.resultWords()[lane] = result; });
  });
}

void match(const CollectiveCall &call) {
  byGroups(call, call.words(1), [&](uint32_t group) {
    visitLanes(group, [&](unsigned lane) {
      uint32_t same = 0;
      visitLanes(group,
                 [&](unsigned other) { same |= uint32_t(call.value(0, lane) == call.value(0, other)) << other; });
      if (call.at.mode == Mode::All)
        call.setPair(lane, same == group ? same : 0, same == group);
      else
        call.setPair(lane, same, false);
    });
  });
}

void elect(const CollectiveCall &call) {
  byGroups(call, call.words(0), [&](uint32_t group) {
    const uint32_t leader = uint32_t(llvm::countr_zero(group));
    visitLanes(group, [&](unsigned lane) { call.setPair(lane, leader, lane == leader); });
  });
}

/// min and max of f32: NaN gives way to numbers, or wins with .NaN; -0 is below +0; .abs compares magnitudes.
uint32_t extremeFloat(const Decoded &at, uint32_t x, uint32_t y) {
  constexpr uint32_t canonicalNan = 0x7fffffff;
  if (at.integral) {
    x &= 0x7fffffff;
    y &= 0x7fffffff;
  }
  const float a = std::bit_cast<float>(x), b = std::bit_cast<float>(y);
  if (std::isnan(a) || std::isnan(b))
    return at.nan || (std::isnan(a) && std::isnan(b)) ? canonicalNan : std::isnan(a) ? y : x;
  const bool less = a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  return less == (at.mode == Mode::Min) ? x : y;
}

uint32_t combine(const Decoded &at, uint32_t a, uint32_t b) {
  switch (at.mode) {
  case Mode::Add:
    return a + b;
  case Mode::And:
    return a & b;
  case Mode::Or:
    return a | b;
  case Mode::Xor:
    return a ^ b;
  default:
    if (at.type.isFloat())
      return extremeFloat(at, a, b);
    const bool less = at.type.isSigned() ? int32_t(a) < int32_t(b) : a < b;
    return less == (at.mode == Mode::Min) ? a : b;
  }
}

void reduce(const CollectiveCall &call) {
  byGroups(call, call.words(1), [&](uint32_t group) {
    const unsigned first = unsigned(llvm::countr_zero(group));
    uint32_t result = call.words(0)[first];
    if (call.at.type.isFloat()) // magnitude and canonical NaN even of a single lane
      result = combine(call.at, result, result);
    visitLanes(group & (group - 1), [&](unsigned lane) { result = combine(call.at, result, call.words(0)[lane]); });
    visitLanes(group, [&](unsigned lane) { call.resultWords()[lane] = result; });
  });
}

} // namespace

void runCollective(Warp &warp, const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  if (!mask)
    return;
  const CollectiveCall call{warp, at, mask, operands, results};
  // They wait for each other, but order none of their own accesses.
  auto meet = [&](unsigned members) { checkMembers(warp, at, mask, call.words(members)); };
  auto share = [&](unsigned members) {
    meet(members);
    followGroups(call, call.words(members));
  };
  switch (at.opcode) {
  case Opcode::Shfl:
    meet(3);
    return shuffle(call);
  case Opcode::Vote:
    share(1);
    return vote(call);
  case Opcode::Redux:
    share(1);
    return reduce(call);
  case Opcode::Match:
    share(1);
    return match(call);
  case Opcode::Elect:
    meet(0);
    return elect(call);
  case Opcode::Activemask:
    return call.forEachLane([&](unsigned lane) { call.resultWords()[lane] = mask; });
  case Opcode::Ldmatrix:
    call.requireWholeWarp();
    return runLoadMatrix(call);
  case Opcode::Stmatrix:
    call.requireWholeWarp();
    return runStoreMatrix(call);
  case Opcode::Mma:
    call.requireWholeWarp();
    return runMultiply(call);
  case Opcode::Wgmma:
    call.requireWholeWarp();
    return runWarpgroup(call);
  case Opcode::Setmaxnreg:
    call.requireWholeWarp();
    return runRegisterCount(call);
  case Opcode::Cp:
    return isTensorCopy(at) ? runTensorCopy(call) : runAsyncCopy(call);
  case Opcode::Tensormap:
    return runTensormap(call);
  case Opcode::Mbarrier:
    return runMbarrier(call);
  case Opcode::AsyncStore:
    return runAsyncStore(call);
  case Opcode::Bulk:
    return runBulk(call);
  case Opcode::ClusterBarrier:
    return runClusterBarrier(warp, at, mask);
  case Opcode::Griddepcontrol:
    return runGridDependency(warp, at, mask);
  case Opcode::Fence:
    if (at.mode == Mode::TensorMapAcquire)
      acquireTensorMaps(call);
    return followFence(warp, at, mask);
  case Opcode::Membar:
    return followFence(warp, at, mask);
  case Opcode::Cvt:
  case Opcode::Fma:
  case Opcode::Max:
  case Opcode::Min:
    return runScalarFloat(call);
  default:
    HLOC_CHECK(isCollective(at), "an instruction that translated code lowers itself");
    return runScalar(call);
  }
}

} // namespace hloc::emulator
