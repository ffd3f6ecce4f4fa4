// atom and red: one lane after the other, lowest first. Blocks of kernels with global atomics run in order on one host
// thread, so plain read-modify-write is atomic and sums of floats do not depend on timing.
#include "Machine.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace hloc::emulator {

namespace {

template <typename T> T combineNumbers(Mode mode, T old, T b) {
  switch (mode) {
  case Mode::Add:
    return T(old + b);
  case Mode::Min:
    return b < old ? b : old;
  case Mode::Max:
    return b > old ? b : old;
  default:
    return b;
  }
}

uint64_t combineIntegers(const Type &type, Mode mode, uint64_t old, uint64_t b, uint64_t c, unsigned bits) {
  uint64_t ones = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  auto extend = [&](uint64_t v) { return int64_t(v << (64 - bits)) >> (64 - bits); };
  switch (mode) {
  case Mode::And:
    return old & b;
  case Mode::Or:
    return old | b;
  case Mode::Xor:
    return old ^ b;
  case Mode::Exch:
    return b;
  case Mode::Cas:
    return old == b ? c : old;
  case Mode::Add:
    return (old + b) & ones;
  case Mode::Inc:
    return old >= b ? 0 : old + 1;
  case Mode::Dec:
    return old == 0 || old > b ? b : old - 1;
  case Mode::Min:
  case Mode::Max: {
    bool less = type.isSigned() ? extend(b) < extend(old) : b < old;
    return less == (mode == Mode::Min) ? b : old;
  }
  default:
    return old;
  }
}

float minMaxNumber(Mode mode, float old, float b) {
  if (std::isnan(old) || std::isnan(b))
    return std::isnan(old) ? b : old;
  return combineNumbers(mode, old, b);
}

float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

/// `flushes`: sums of f32 have zeros for subnormal operands and results. Those of all other types never have.
uint64_t combineFloat(const Type &type, Mode mode, uint64_t old, uint64_t b, unsigned bits, bool flushes) {
  if (mode == Mode::Exch)
    return b;
  if (bits == 64) {
    double x, y;
    std::memcpy(&x, &old, 8);
    std::memcpy(&y, &b, 8);
    x = x + y;
    uint64_t result;
    std::memcpy(&result, &x, 8);
    return std::isnan(x) ? 0x7ff8000000000000ull : result;
  }
  if (bits == 32) {
    uint32_t low = uint32_t(old), other = uint32_t(b);
    float x, y;
    std::memcpy(&x, &low, 4);
    std::memcpy(&y, &other, 4);
    if (mode != Mode::Add)
      x = minMaxNumber(mode, x, y);
    else
      x = flushes ? flushed(flushed(x) + flushed(y)) : x + y;
    std::memcpy(&low, &x, 4);
    return std::isnan(x) ? 0x7fffffff : low;
  }
  SmallFormat format = type.kind == TypeClass::Float ? half : bfloat;
  double x = decode(uint32_t(old), format), y = decode(uint32_t(b), format);
  double result = mode == Mode::Add ? x + y : double(minMaxNumber(mode, float(x), float(y)));
  return encode(result, format, Rounding::Nearest);
}

uint64_t combine(const Type &type, Mode mode, uint64_t old, uint64_t b, uint64_t c, bool flushes) {
  unsigned bits = type.bits;
  if (!type.isFloat())
    return combineIntegers(type, mode, old, b, c, type.width());
  if (type.lanes == 1)
    return combineFloat(type, mode, old, b, bits, flushes);
  uint64_t low = combineFloat(type, mode, old & 0xffff, b & 0xffff, 16, flushes);
  return low | combineFloat(type, mode, old >> 16 & 0xffff, b >> 16 & 0xffff, 16, flushes) << 16;
}

/// The bytes that a bitwise operation can change; nothing: all. Elements of less than a byte are stored by such updates
/// of the word around them, beside others that store whole bytes of that word.
std::optional<ByteRange> changedBytes(const Decoded &at, uint64_t operand) {
  if (at.type.isFloat() || (at.mode != Mode::And && at.mode != Mode::Or && at.mode != Mode::Xor))
    return std::nullopt;
  uint64_t bits = at.mode == Mode::And ? ~operand : operand;
  if (at.type.bits < 64)
    bits &= (uint64_t(1) << at.type.bits) - 1;
  if (!bits)
    return ByteRange();
  uint64_t begin = uint64_t(llvm::countr_zero(bits)) / 8;
  return ByteRange{begin, uint64_t(63 - llvm::countl_zero(bits)) / 8 - begin + 1};
}

} // namespace

void machineAtomic(WarpContext *context, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *b,
                   const void *c, void *out) {
  Warp &warp = warpOf(context);
  unsigned width = at->type.bytes();
  uint64_t bytes = uint64_t(width) * at->count;
  giveWay(warp);
  if (warp.core->launch.options.countEvents) {
    warp.core->counters.atomics += llvm::popcount(mask);
    countRequest(warp, *at, at->space, mask, addresses, unsigned(bytes), true);
  }
  auto load = [&](const void *from, size_t index) {
    uint64_t value = 0;
    if (from)
      std::memcpy(&value, static_cast<const uint8_t *>(from) + index * width, width);
    return value;
  };
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = llvm::countr_zero(rest);
    std::optional<ByteRange> changed;
    if (at->count == 1)
      changed = changedBytes(*at, load(b, lane));
    Place place = accessLane(warp, *at, at->space, lane, addresses[lane], bytes, Access::Atomic, changed);
    bool changes = false;
    for (unsigned e = 0; e < at->count; ++e) {
      size_t index = e * warpLanes + lane;
      uint64_t old = 0;
      if (place.data) {
        std::memcpy(&old, place.data + e * width, width);
        uint64_t result =
            combine(at->type, at->mode, old, load(b, index), load(c, index), place.space == Space::Global);
        std::memcpy(place.data + e * width, &result, width);
        warp.core->launch.progress += warp.core->launch.together && result != old;
        changes |= at->mode != Mode::Cas || old == load(b, index);
      }
      if (out)
        std::memcpy(static_cast<uint8_t *>(out) + index * width, &old, width);
    }
    if (warp.core->launch.causal)
      followStrong(warp, *at, lane, place, at->opcode == Opcode::Atom, changes);
  }
}

void combineInPlace(const Type &type, Mode mode, uint8_t *to, const uint8_t *from, bool flushes) {
  uint64_t old = 0, operand = 0;
  std::memcpy(&old, to, type.bytes());
  std::memcpy(&operand, from, type.bytes());
  const uint64_t result = combine(type, mode, old, operand, 0, flushes);
  std::memcpy(to, &result, type.bytes());
}

} // namespace hloc::emulator
