// Conversions between types and between address spaces.
#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr StringLiteral plainTypes = "u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64";

bool isSmall(Type type) { return type.kind == TypeClass::E4m3 || type.kind == TypeClass::E5m2; }

/// cvt.pack.sat.u8.s32.b32 %r, %a, %b, %c: a above b, above the low half of c
bool decodePack(Form &f) {
  Decoded &d = f.decoded;
  if (!f.takeFlag(d.saturate, "sat") || !f.takeTypeInto(d.type, "u8 s8 u16 s16") || !f.takeTypeInto(d.from, "s32"))
    return false;
  const bool bytes = d.type.bits == 8;
  if (bytes && !f.take("b32"))
    return false;
  f.result(b32);
  f.values(bytes ? 3 : 2, b32);
  return true;
}

/// Rules by pairs of types: when a rounding must or may not be there.
bool roundingFits(const Decoded &d, bool rounded, bool integral) {
  const bool toFloat = d.type.isFloat(), fromFloat = d.from.isFloat();
  if (toFloat && fromFloat && d.type.kind == d.from.kind && d.type.bits == d.from.bits)
    return !rounded; // only .rni and the like
  if (toFloat && fromFloat) {
    const bool narrows = d.type.bits < d.from.bits; // between f16 and bf16, no rounding means to the nearest
    return !integral && (rounded || !narrows);
  }
  if (toFloat)
    return rounded && !integral;
  return fromFloat ? integral : !rounded && !integral;
}

bool decodePlain(Form &f, bool rounded, bool integral) {
  Decoded &d = f.decoded;
  if (!roundingFits(d, rounded, integral))
    return false;
  if (d.ftz && !(d.type.kind == TypeClass::Float && d.type.bits == 32) &&
      !(d.from.kind == TypeClass::Float && d.from.bits == 32))
    return false;
  const bool narrowFloat =
      d.type.isFloat() && d.type.bits == 16 && d.from.kind == TypeClass::Float && d.from.bits == 32;
  if ((d.relu || d.satfinite) && (!narrowFloat || d.saturate))
    return false;
  if (d.saturate && (d.type.kind == TypeClass::Bfloat || d.from.kind == TypeClass::Bfloat))
    return false;
  f.result(d.type, true);
  f.value(d.from, true);
  return true;
}

/// Pairs: f16x2, bf16x2, e4m3x2, e5m2x2 <- two f32; e4m3x2, e5m2x2 <-> f16x2, bf16x2.
bool decodePairs(Form &f, bool rounded) {
  Decoded &d = f.decoded;
  const bool fromTwo = d.from.kind == TypeClass::Float && d.from.bits == 32 && d.from.lanes == 1;
  const bool halves = d.type.isFloat() && d.type.bits == 16 && d.type.lanes == 2;
  const bool small = isSmall(d.type) && d.type.lanes == 2;
  const bool fromHalves = d.from.isFloat() && d.from.bits == 16 && d.from.lanes == 2;
  if (d.saturate || d.ftz || !rounded || (small && (!d.satfinite || d.rounding != Rounding::Nearest)))
    return false;
  if (fromTwo && (halves || small)) {
    f.result(d.type);
    f.values(2, d.from);
    return d.rounding == Rounding::Nearest || d.rounding == Rounding::Zero;
  }
  const bool widens = isSmall(d.from) && d.from.lanes == 2 && halves && !d.satfinite;
  if (!widens && !(fromHalves && small))
    return false;
  f.result(d.type);
  f.value(d.from);
  return d.rounding == Rounding::Nearest;
}

bool decodeCvt(Form &f) {
  Decoded &d = f.decoded;
  if (f.take("pack"))
    return decodePack(f);
  d.tiesAway = f.take("rna");
  const bool integral = !d.tiesAway && f.takeRounding(true);
  const bool rounded = !d.tiesAway && !integral && f.takeRounding();
  f.takeFlag(d.ftz, "ftz");
  f.takeFlag(d.saturate, "sat");
  f.takeFlag(d.satfinite, "satfinite");
  f.takeFlag(d.relu, "relu");
  f.takeFlag(d.satfinite, "satfinite");
  if (f.takeTypeInto(d.type, "tf32")) {
    f.result(d.type);
    f.value(Type{TypeClass::Float, 32, 1});
    return (d.tiesAway || rounded) && !d.ftz && !d.saturate && !(d.tiesAway && d.relu) &&
           (d.rounding == Rounding::Nearest || d.rounding == Rounding::Zero) && f.takeTypeInto(d.from, "f32");
  }
  if (d.tiesAway)
    return false;
  if (f.takeTypeInto(d.type, "f16x2 bf16x2 e4m3x2 e5m2x2"))
    return f.takeTypeInto(d.from, "f32 f16x2 bf16x2 e4m3x2 e5m2x2") && decodePairs(f, rounded);
  return f.takeTypeInto(d.type, plainTypes) && f.takeTypeInto(d.from, plainTypes) && decodePlain(f, rounded, integral);
}

std::optional<Space> takeSpace(Form &f) {
  return StringSwitch<std::optional<Space>>(
             f.takeAnyOf("global const shared shared::cta shared::cluster local param param::entry"))
      .Cases({"global", "const"}, Space::Global)
      .Cases({"shared", "shared::cta"}, Space::Shared)
      .Case("shared::cluster", Space::SharedCluster)
      .Case("local", Space::Local)
      .Cases({"param", "param::entry"}, Space::Param)
      .Default(std::nullopt);
}

/// mapa{.shared::cluster}.u32 d, a, b; getctarank{.shared::cluster}.u32 d, a: of generic addresses where there is no
/// space, which have 64 bits.
bool decodeClusterAddress(Form &f) {
  Decoded &d = f.decoded;
  d.space = f.take("shared::cluster") ? Space::SharedCluster : Space::Generic;
  if (!f.takeTypeInto(d.type, d.space == Space::Generic ? "u64" : "u32 u64"))
    return false;
  const bool maps = d.opcode == Opcode::Mapa;
  f.result(maps ? d.type : b32);
  f.value(d.type);
  if (maps)
    f.value(b32);
  return true;
}

} // namespace

bool decodeConvert(Form &f) {
  Decoded &d = f.decoded;
  if (d.opcode == Opcode::Cvt)
    return decodeCvt(f);
  if (d.opcode == Opcode::Mapa || d.opcode == Opcode::Getctarank)
    return decodeClusterAddress(f);
  if (d.opcode == Opcode::Cvta)
    f.takeFlag(d.reduce, "to");
  else if (f.next() == "const")
    return false; // constants lie among global variables here
  auto space = takeSpace(f);
  if (!space)
    return false;
  d.space = *space;
  if (d.opcode == Opcode::Isspacep) {
    d.type = b64;
    f.result(predicateType);
    f.value(b64);
    return true;
  }
  if (!f.takeTypeInto(d.type, "u64"))
    return false;
  f.result(d.type);
  f.value(d.type);
  return true;
}

} // namespace hloc::emulator
