// Rare float instructions, lane by lane: conversions to and from f8 and tf32, .relu and .satfinite, cvt.pack, and the
// minima and maxima that translated code does not have.
#include "CollectiveParts.h"

#include "hloc/support/Check.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hloc::emulator {
namespace {

constexpr SmallFormat formatOf(Type type) {
  return type.kind == TypeClass::Bfloat ? bfloat : type.bits == 16 ? half : single;
}

/// Value of element `part` of a packed float.
double elementOf(uint64_t bits, Type type, unsigned part) {
  bits >>= part * type.bits;
  switch (type.kind) {
  case TypeClass::E4m3:
    return decodeE4m3(uint8_t(bits));
  case TypeClass::E5m2:
    return decode(uint32_t(bits & 0xff) << 8, half);
  default:
    return type.bits == 64 ? std::bit_cast<double>(bits)
                           : decode(uint32_t(type.bits == 16 ? bits & 0xffff : bits), formatOf(type));
  }
}

/// tf32 is f32 whose 13 low mantissa bits are zero.
uint32_t encodeTf32(double value, const Decoded &at) {
  constexpr uint32_t low = 0x1fff, canonicalNan = 0x7fffffff, largest = 0x7f7fe000;
  if (std::isnan(value))
    return canonicalNan;
  uint32_t bits = std::bit_cast<uint32_t>(float(value)); // was an f32
  if (std::isfinite(value)) {
    if (at.tiesAway)
      bits += 0x1000;
    else if (at.rounding == Rounding::Nearest)
      bits += 0xfff + (bits >> 13 & 1);
    bits &= ~low;
  }
  if (at.satfinite && (bits & 0x7fffffff) > largest)
    bits = (bits & 0x80000000) | largest;
  return bits;
}

/// One element of the result of cvt, fma, min or max.
uint64_t encodeElement(double value, const Decoded &at) {
  if (at.relu && (value < 0 || (value == 0 && std::signbit(value))))
    value = 0;
  switch (at.type.kind) {
  case TypeClass::E4m3:
    return encodeE4m3(value);
  case TypeClass::E5m2:
    return encodeE5m2(value);
  case TypeClass::Tf32:
    return encodeTf32(value, at);
  default:
    break;
  }
  if (at.type.bits == 64)
    return std::isnan(value) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(value);
  const SmallFormat format = formatOf(at.type);
  uint32_t bits = encode(value, format, at.rounding);
  const uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
  const uint32_t sign = 1u << (format.exponentBits + format.mantissaBits);
  if (at.satfinite && (bits & ~sign) == infinity)
    bits -= 1;
  return bits;
}

uint64_t convert(const CollectiveCall &call, unsigned lane) {
  const Decoded &at = call.at;
  if (at.type.lanes == 1)
    return encodeElement(elementOf(call.value(0, lane), at.from, 0), at);
  const bool two = at.from.lanes == 1; // the first source is the upper half
  uint64_t result = 0;
  for (unsigned part = 0; part < 2; ++part) {
    const double value =
        two ? elementOf(call.value(1 - part, lane), at.from, 0) : elementOf(call.value(0, lane), at.from, part);
    result |= encodeElement(value, at) << part * at.type.bits;
  }
  return result;
}

/// cvt.pack.sat: a above b, above the low half of c for bytes.
uint64_t pack(const CollectiveCall &call, unsigned lane) {
  const Type type = call.at.type;
  const int64_t highest = (1ll << (type.bits - type.isSigned())) - 1, lowest = type.isSigned() ? -highest - 1 : 0;
  auto part = [&](unsigned i) {
    return uint64_t(std::clamp<int64_t>(int32_t(call.value(i, lane)), lowest, highest)) & ((1ull << type.bits) - 1);
  };
  const uint64_t above = type.bits == 8 ? call.value(2, lane) << 16 : 0;
  return uint32_t(above | part(0) << type.bits | part(1));
}

double flushed(double value, const Decoded &at) {
  const double smallest = at.type.bits == 16 ? 0x1p-14 : 0x1p-126;
  return at.ftz && std::fabs(value) < smallest ? std::copysign(0.0, value) : value;
}

/// a or b; numbers win over NaN unless .NaN; -0 is below +0; .xorsign.abs takes magnitudes and the product's sign, to
/// which a NaN that loses contributes its own; .abs takes magnitudes.
double extreme(const Decoded &at, double a, double b) {
  const bool isMin = at.opcode == Opcode::Min, sign = std::signbit(a) != std::signbit(b);
  if (at.xorSign || at.magnitudes) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  const bool anyNan = std::isnan(a) || std::isnan(b);
  if (anyNan && (at.nan || (std::isnan(a) && std::isnan(b))))
    return NAN;
  const bool less = a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  const double result = std::isnan(a) ? b : std::isnan(b) ? a : less == isMin ? a : b;
  return at.xorSign ? std::copysign(result, sign ? -1.0 : 1.0) : result;
}

uint64_t extremeFloats(const CollectiveCall &call, unsigned lane) {
  const Decoded &at = call.at;
  uint64_t result = 0;
  for (unsigned part = 0; part < at.type.lanes; ++part) {
    auto source = [&](unsigned i) { return flushed(elementOf(call.value(i, lane), at.type, part), at); };
    double value = extreme(at, source(0), source(1));
    if (at.operands.size() == 4)
      value = extreme(at, value, source(2));
    result |= encodeElement(value, at) << part * at.type.bits % 64;
  }
  return result;
}

/// min.relu and max.relu of s32 and s16x2.
uint64_t extremeIntegers(const CollectiveCall &call, unsigned lane) {
  const Decoded &at = call.at;
  const unsigned bits = at.type.bits;
  uint64_t result = 0;
  for (unsigned part = 0; part < at.type.lanes; ++part) {
    auto source = [&](unsigned i) { return int64_t(call.value(i, lane) >> part * bits << (64 - bits)) >> (64 - bits); };
    int64_t value = at.opcode == Opcode::Min ? std::min(source(0), source(1)) : std::max(source(0), source(1));
    if (at.relu)
      value = std::max<int64_t>(value, 0);
    result |= (uint64_t(value) & ((1ull << bits) - 1)) << part * bits;
  }
  return result;
}

uint64_t multiplyAdd(const CollectiveCall &call, unsigned lane) {
  const Decoded &at = call.at;
  uint64_t result = 0;
  for (unsigned part = 0; part < at.type.lanes; ++part) {
    auto source = [&](unsigned i) { return flushed(elementOf(call.value(i, lane), at.type, part), at); };
    const double value = fmaToOdd(source(0), source(1), source(2));
    const uint64_t rounded = encodeElement(value, at);
    Decoded plain = {};
    plain.type = at.type;
    result |= (at.ftz ? encodeElement(flushed(elementOf(rounded, at.type, 0), at), plain) : rounded)
              << part * at.type.bits;
  }
  return result;
}

} // namespace

void runScalarFloat(const CollectiveCall &call) {
  const Decoded &at = call.at;
  call.forEachLane([&](unsigned lane) {
    switch (at.opcode) {
    case Opcode::Cvt: {
      const bool packs = !at.from.isFloat() && at.from.kind == TypeClass::Signed;
      return call.setResult(lane, packs ? pack(call, lane) : convert(call, lane));
    }
    case Opcode::Fma:
      return call.setResult(lane, multiplyAdd(call, lane));
    case Opcode::Min:
    case Opcode::Max:
      return call.setResult(lane, at.type.isFloat() ? extremeFloats(call, lane) : extremeIntegers(call, lane));
    default:
      HLOC_UNREACHABLE("a collective without meaning");
    }
  });
}

} // namespace hloc::emulator
