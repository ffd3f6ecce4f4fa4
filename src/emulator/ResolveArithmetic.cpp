// Instructions that exist for integers and for floats: the type decides which modifiers a form may have.
#include "ResolveForm.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr StringLiteral integerTypes = "u16 s16 u32 s32 u64 s64";

bool finish(Form &f, size_t sources) {
  f.result(f.decoded.type);
  f.values(sources, f.decoded.type);
  return true;
}

/// {.rnd}{.ftz}{.sat}.f32, {.rnd}.f64, {.rn}{.ftz}{.sat}.f16{x2}, {.rn}.bf16{x2} for add, sub, mul, fma;
/// {.rnd}{.sat}.f32.f16, .f32.bf16 for add and sub.
bool decodeFloatForm(Form &f, size_t sources) {
  Decoded &d = f.decoded;
  const bool rounded = f.takeRounding();
  f.takeFlag(d.ftz, "ftz");
  f.takeFlag(d.saturate, "sat");
  if (!f.takeTypeInto(d.type, "f32 f64 f16 f16x2 bf16 bf16x2 f32x2"))
    return false;
  if ((d.opcode == Opcode::Add || d.opcode == Opcode::Sub) && !d.ftz && f.takeNarrowSources(sources))
    return true;
  const bool wide = d.type.bits >= 32;
  if ((!wide && rounded && d.rounding != Rounding::Nearest) || (d.type.bits == 64 && (d.ftz || d.saturate)))
    return false;
  if (d.type.kind == TypeClass::Bfloat && (d.ftz || d.saturate))
    return false;
  return finish(f, sources);
}

/// add.cc, addc.cc and so on: carries travel in one hidden predicate; the resolver gives it a slot.
bool decodeCarry(Form &f) {
  Decoded &d = f.decoded;
  Source flag;
  flag.kind = Source::Kind::Register;
  flag.bits = 1;
  const bool multiplies = d.opcode == Opcode::Mad || d.opcode == Opcode::Madc;
  if (multiplies) {
    StringRef half = f.takeAnyOf("lo hi");
    if (half.empty())
      return false;
    d.mode = half == "lo" ? Mode::Lo : Mode::Hi;
  }
  if (d.opcode == Opcode::Addc || d.opcode == Opcode::Subc || d.opcode == Opcode::Madc)
    d.carryIn = flag;
  if (f.take("cc"))
    d.carryOut = flag;
  return f.takeTypeInto(d.type, "u32 s32 u64 s64") && finish(f, multiplies ? 3 : 2);
}

bool decodeAddSub(Form &f) {
  Decoded &d = f.decoded;
  if (f.next() == "cc")
    return decodeCarry(f);
  const bool adds = d.opcode == Opcode::Add; // there is no sub of pairs
  if (f.takeTypeInto(d.type, adds ? "u16 s16 u32 s32 u64 s64 u16x2 s16x2" : integerTypes))
    return finish(f, 2);
  if (f.next() == "sat" && f.instruction.parts.back() == "s32") {
    f.takeFlag(d.saturate, "sat");
    return f.takeTypeInto(d.type, "s32") && finish(f, 2);
  }
  return decodeFloatForm(f, 2);
}

/// mul.wide.u16: the result, and the addend of mad, is twice as wide.
bool decodeMultiply(Form &f) {
  Decoded &d = f.decoded;
  const bool mad = d.opcode == Opcode::Mad;
  const bool carries = mad && f.instruction.parts.size() > 2 && f.instruction.parts[2] == "cc";
  if (carries)
    return decodeCarry(f);
  StringRef half = f.takeAnyOf("lo hi wide");
  if (half.empty()) {
    if (mad)
      d.opcode = Opcode::Fma; // the same on every target since sm_20
    return decodeFloatForm(f, mad ? 3 : 2);
  }
  d.mode = half == "lo" ? Mode::Lo : half == "hi" ? Mode::Hi : Mode::Wide;
  if (mad && d.mode == Mode::Hi)
    f.takeFlag(d.saturate, "sat");
  if (!f.takeTypeInto(d.type, d.saturate ? "s32" : d.mode == Mode::Wide ? "u16 s16 u32 s32" : integerTypes))
    return false;
  if (d.mode != Mode::Wide)
    return finish(f, mad ? 3 : 2);
  Type twice = d.type;
  twice.bits *= 2;
  f.result(twice);
  f.values(2, d.type);
  if (mad)
    f.value(twice);
  return true;
}

bool decodeDivide(Form &f) {
  Decoded &d = f.decoded;
  if (f.takeTypeInto(d.type, integerTypes))
    return finish(f, 2);
  StringRef how = f.takeAnyOf("approx full");
  d.approximate = !how.empty();
  if (how == "full")
    d.mode = Mode::Full;
  if (!d.approximate && !f.takeRounding())
    return false;
  f.takeFlag(d.ftz, "ftz");
  return f.takeTypeInto(d.type, d.approximate || d.ftz ? "f32" : "f32 f64") && finish(f, 2);
}

bool decodeMinMax(Form &f) {
  Decoded &d = f.decoded;
  f.takeFlag(d.relu, "relu");
  if (f.takeTypeInto(d.type, d.relu ? "s32 s16x2" : "u16 s16 u32 s32 u64 s64 u16x2 s16x2"))
    return finish(f, 2);
  if (d.relu)
    return false;
  f.takeFlag(d.ftz, "ftz");
  f.takeFlag(d.nan, "NaN");
  const bool three = f.numOperands() == 4;
  if (three)
    f.takeFlag(d.magnitudes, "abs");
  else if (f.takeFlag(d.xorSign, "xorsign") && !f.take("abs"))
    return false;
  if (!f.takeTypeInto(d.type, d.ftz ? "f32 f16 f16x2" : "f32 f64 f16 f16x2 bf16 bf16x2"))
    return false;
  if (d.type.bits == 64 && (d.nan || d.xorSign))
    return false;
  return finish(f, three && d.type.bits == 32 ? 3 : 2);
}

bool decodeAbsNeg(Form &f) {
  Decoded &d = f.decoded;
  f.takeFlag(d.ftz, "ftz");
  return f.takeTypeInto(d.type, d.ftz ? "f32 f16 f16x2" : "s16 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2") && finish(f, 1);
}

} // namespace

bool decodeArithmetic(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Add:
  case Opcode::Sub:
    return decodeAddSub(f);
  case Opcode::Addc:
  case Opcode::Subc:
  case Opcode::Madc:
    return decodeCarry(f);
  case Opcode::Mul:
  case Opcode::Mad:
    return decodeMultiply(f);
  case Opcode::Div:
    return decodeDivide(f);
  case Opcode::Min:
  case Opcode::Max:
    return decodeMinMax(f);
  case Opcode::Abs:
  case Opcode::Neg:
    return decodeAbsNeg(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
