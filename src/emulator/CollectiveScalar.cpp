// Rare integer instructions and comparisons, lane by lane, after the pseudo-code of the PTX ISA.
#include "Cluster.h"
#include "CollectiveParts.h"

#include "hloc/support/Check.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hloc::emulator {
namespace {

int64_t signExtend(uint64_t value, unsigned bits) {
  return bits == 64 ? int64_t(value) : int64_t(value << (64 - bits)) >> (64 - bits);
}
int64_t typed(uint64_t value, Type type) {
  return type.isSigned() ? signExtend(value, type.bits) : int64_t(value & (~0ull >> (64 - type.bits)));
}

uint64_t findBit(const Decoded &at, uint64_t x) {
  uint64_t value = x & (~0ull >> (64 - at.type.bits));
  if (at.type.isSigned() && (value >> (at.type.bits - 1) & 1))
    value = ~value & (~0ull >> (64 - at.type.bits));
  if (!value)
    return 0xffffffff;
  const unsigned position = 63 - unsigned(llvm::countl_zero(value));
  return at.wrap ? at.type.bits - 1 - position : position;
}

uint64_t bitMask(const Decoded &at, uint64_t a, uint64_t b) {
  const uint64_t from = at.wrap ? a & 31 : std::min<uint64_t>(a, 32);
  const uint64_t width = at.wrap ? b & 31 : std::min<uint64_t>(b, 32);
  return uint32_t(((1ull << width) - 1) << from);
}

uint64_t extend(const Decoded &at, uint64_t a, uint64_t b) {
  const unsigned width = unsigned(at.wrap ? b & 31 : std::min<uint64_t>(b, 32));
  if (!width)
    return 0;
  return uint32_t(typed(a & ((1ull << width) - 1), {at.type.kind, uint8_t(width), 1}));
}

/// The |offset|-th set bit from `base` on, counting base itself; offset 0 asks for base.
uint64_t findNth(uint32_t mask, uint32_t base, int32_t offset) {
  constexpr uint64_t none = 0xffffffff;
  if (base > 31)
    return none;
  if (offset == 0)
    return mask >> base & 1 ? base : none;
  int64_t left = std::abs(int64_t(offset)) - 1;
  for (int position = int(base), step = offset > 0 ? 1 : -1; position >= 0 && position < 32; position += step)
    if ((mask >> position & 1) && left-- == 0)
      return uint64_t(position);
  return none;
}

uint64_t dot4(const Decoded &at, uint64_t a, uint64_t b, uint64_t c) {
  for (unsigned i = 0; i < 4; ++i)
    c += uint64_t(typed(a >> 8 * i & 0xff, {at.type.kind, 8, 1}) * typed(b >> 8 * i & 0xff, {at.from.kind, 8, 1}));
  return uint32_t(c);
}

uint64_t dot2(const Decoded &at, uint64_t a, uint64_t b, uint64_t c) {
  const unsigned first = at.mode == Mode::Lo ? 0 : 2;
  for (unsigned i = 0; i < 2; ++i)
    c += uint64_t(typed(a >> 16 * i & 0xffff, {at.type.kind, 16, 1}) *
                  typed(b >> 8 * (first + i) & 0xff, {at.from.kind, 8, 1}));
  return uint32_t(c);
}

uint64_t multiply24(const Decoded &at, uint64_t a, uint64_t b, uint64_t c) {
  const Type narrow{at.type.kind, 24, 1};
  const int64_t product = typed(a & 0xffffff, narrow) * typed(b & 0xffffff, narrow);
  const int64_t part = at.mode == Mode::Lo ? int64_t(int32_t(product)) : product >> 16;
  if (at.opcode == Opcode::Mul24)
    return uint32_t(part);
  const int64_t sum = signExtend(uint32_t(part), 32) + signExtend(uint32_t(c), 32);
  return uint32_t(at.saturate ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
}

uint64_t absoluteDifference(const Decoded &at, uint64_t a, uint64_t b, uint64_t c) {
  const int64_t x = typed(a, at.type), y = typed(b, at.type);
  const bool less = at.type.isSigned() ? x < y : uint64_t(x) < uint64_t(y);
  return c + (less ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y));
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

bool selectsFirst(const Decoded &at, uint64_t c) {
  if (!at.from.isFloat())
    return int32_t(c) >= 0;
  const float value = std::bit_cast<float>(uint32_t(c));
  return (at.ftz ? flushed(value) : value) >= 0;
}

bool testProperty(const Decoded &at, uint64_t a) {
  const bool wide = at.type.bits == 64;
  const int kind =
      wide ? std::fpclassify(std::bit_cast<double>(a)) : std::fpclassify(std::bit_cast<float>(uint32_t(a)));
  switch (at.mode) {
  case Mode::Finite:
    return kind != FP_INFINITE && kind != FP_NAN;
  case Mode::Infinite:
    return kind == FP_INFINITE;
  case Mode::Number:
    return kind != FP_NAN;
  case Mode::NotNumber:
    return kind == FP_NAN;
  case Mode::Normal:
    return kind == FP_NORMAL;
  default:
    return kind == FP_SUBNORMAL;
  }
}

/// prmt with a mode: which of the eight bytes of {b, a} each byte of the result is.
uint64_t permute(const Decoded &at, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t bytes = a | b << 32;
  uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned n = unsigned(c & 3);
    unsigned from = n;
    if (at.mode == Mode::Forward4)
      from = n + i;
    else if (at.mode == Mode::Backward4)
      from = (n - i) & 7;
    else if (at.mode == Mode::ClampLeft)
      from = std::max(i, n);
    else if (at.mode == Mode::ClampRight)
      from = std::min(i, n);
    else if (at.mode == Mode::Replicate16)
      from = (i & 1) + 2 * (n & 1);
    result |= (bytes >> 8 * from & 0xff) << 8 * i;
  }
  return result;
}

bool isInSpace(const Warp &warp, const Decoded &at, uint64_t address) {
  const uint64_t block = (address - sharedWindow) >> rankShift; // of addresses of shared memory
  if (at.space == Space::Shared && block && block != warp.rank + 1)
    return false;
  const Space space = address >> regionShift == sharedWindow >> regionShift      ? Space::Shared
                      : address >> regionShift == localWindow >> regionShift     ? Space::Local
                      : address >> regionShift == parameterWindow >> regionShift ? Space::Param
                                                                                 : Space::Global;
  return space == at.space || (space == Space::Shared && at.space == Space::SharedCluster);
}

uint64_t evaluate(const CollectiveCall &call, unsigned lane) {
  const Decoded &at = call.at;
  uint64_t x[3] = {};
  for (unsigned i = 0; i < std::min<size_t>(3, at.operands.size() - at.results); ++i)
    x[i] = call.value(i, lane);
  switch (at.opcode) {
  case Opcode::Bfind:
    return findBit(at, x[0]);
  case Opcode::Bmsk:
    return bitMask(at, x[0], x[1]);
  case Opcode::Szext:
    return extend(at, x[0], x[1]);
  case Opcode::Fns:
    return findNth(uint32_t(x[0]), uint32_t(x[1]), int32_t(x[2]));
  case Opcode::Cnot:
    return x[0] == 0;
  case Opcode::Dp4a:
    return dot4(at, x[0], x[1], x[2]);
  case Opcode::Dp2a:
    return dot2(at, x[0], x[1], x[2]);
  case Opcode::Mul24:
  case Opcode::Mad24:
    return multiply24(at, x[0], x[1], x[2]);
  case Opcode::Sad:
    return absoluteDifference(at, x[0], x[1], x[2]);
  case Opcode::Slct:
    return selectsFirst(at, x[2]) ? x[0] : x[1];
  case Opcode::Testp:
    return testProperty(at, x[0]);
  case Opcode::Prmt:
    return permute(at, x[0], x[1], x[2]);
  case Opcode::Mapa:
    return mapToBlock(call.warp, at, lane, x[0], x[1]);
  case Opcode::Getctarank:
    return rankOf(call.warp, at, lane, x[0]);
  case Opcode::Isspacep:
    return isInSpace(call.warp, at, x[0]);
  default:
    HLOC_UNREACHABLE("a collective without meaning");
  }
}

// set and setp.

bool compareIntegers(Compare compare, int64_t a, int64_t b, bool isSigned) {
  const bool less = isSigned ? a < b : uint64_t(a) < uint64_t(b);
  switch (compare) {
  case Compare::Eq:
    return a == b;
  case Compare::Ne:
    return a != b;
  case Compare::Lt:
    return less;
  case Compare::Le:
    return less || a == b;
  case Compare::Gt:
    return !less && a != b;
  default:
    return !less;
  }
}

bool compareDoubles(Compare compare, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  switch (compare) {
  case Compare::Eq:
    return a == b;
  case Compare::Ne:
    return a != b && !unordered;
  case Compare::Lt:
    return a < b;
  case Compare::Le:
    return a <= b;
  case Compare::Gt:
    return a > b;
  case Compare::Ge:
    return a >= b;
  case Compare::Equ:
    return a == b || unordered;
  case Compare::Neu:
    return a != b;
  case Compare::Ltu:
    return a < b || unordered;
  case Compare::Leu:
    return a <= b || unordered;
  case Compare::Gtu:
    return a > b || unordered;
  case Compare::Geu:
    return a >= b || unordered;
  case Compare::Num:
    return !unordered;
  case Compare::Nan:
    return unordered;
  }
  HLOC_UNREACHABLE("a comparison without meaning");
}

double floatValue(const Decoded &at, uint64_t bits) {
  if (at.type.bits == 64)
    return std::bit_cast<double>(bits);
  if (at.type.bits == 32) {
    const float value = std::bit_cast<float>(uint32_t(bits));
    return at.ftz ? flushed(value) : value;
  }
  const uint32_t magnitude = uint32_t(bits) & 0x7fff;
  if (at.ftz && magnitude < 0x400)
    return 0;
  return decode(uint32_t(bits), at.type.kind == TypeClass::Bfloat ? bfloat : half);
}

bool compareLane(const CollectiveCall &call, unsigned lane, unsigned part) {
  const Decoded &at = call.at;
  uint64_t a = call.value(0, lane), b = call.value(1, lane);
  if (at.type.bits < 64) {
    a = a >> part * at.type.bits & ((1ull << at.type.bits) - 1);
    b = b >> part * at.type.bits & ((1ull << at.type.bits) - 1);
  }
  return at.type.isFloat() ? compareDoubles(at.compare, floatValue(at, a), floatValue(at, b))
                           : compareIntegers(at.compare, typed(a, at.type), typed(b, at.type), at.type.isSigned());
}

bool combined(const CollectiveCall &call, unsigned lane, bool result) {
  if (call.at.mode == Mode::None)
    return result;
  bool other = call.value(2, lane) != 0;
  if (call.source(2).kind == Source::Kind::Constant && call.source(2).negated)
    other = !other;
  return call.at.mode == Mode::And ? result && other : call.at.mode == Mode::Or ? result || other : result != other;
}

/// True is all ones in an integer, 1.0 in a float; pairs have a half each.
uint64_t trueValue(const Decoded &at) {
  if (at.type.lanes == 2 && !at.from.isFloat())
    return 0xffff;
  if (!at.from.isFloat())
    return ~0ull >> (64 - at.from.bits);
  return at.from.kind == TypeClass::Bfloat ? 0x3f80 : at.from.bits == 16 ? 0x3c00 : 0x3f800000;
}

void compareAndSet(const CollectiveCall &call, unsigned lane) {
  const bool pairs = call.at.type.lanes == 2;
  const bool low = combined(call, lane, compareLane(call, lane, 0));
  const bool high = pairs && combined(call, lane, compareLane(call, lane, 1));
  if (call.at.opcode == Opcode::Setp)
    return call.setPair(lane, low, high);
  const uint64_t yes = trueValue(call.at);
  call.setResult(lane, (low ? yes : 0) | (high ? yes << 16 : 0));
}

} // namespace

void runScalar(const CollectiveCall &call) {
  call.forEachLane([&](unsigned lane) {
    if (call.at.opcode == Opcode::Set || call.at.opcode == Opcode::Setp)
      compareAndSet(call, lane);
    else
      call.setResult(lane, evaluate(call, lane));
  });
}

} // namespace hloc::emulator
