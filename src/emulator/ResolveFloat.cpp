// Instructions on floats only.
#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

bool finish(Form &f, size_t sources) {
  f.result(f.decoded.type);
  f.values(sources, f.decoded.type);
  return true;
}

bool decodeFma(Form &f) {
  Decoded &d = f.decoded;
  if (!f.takeRounding())
    return false;
  f.takeFlag(d.ftz, "ftz");
  f.takeFlag(d.saturate, "sat");
  f.takeFlag(d.relu, "relu");
  if (!f.takeTypeInto(d.type, "f32 f64 f16 f16x2 bf16 bf16x2 f32x2") || (d.saturate && d.relu))
    return false;
  if (!d.ftz && !d.relu && f.takeNarrowSources(3))
    return true;
  const bool narrow = d.type.bits == 16;
  if ((narrow && d.rounding != Rounding::Nearest) || (d.relu && !narrow))
    return false;
  if ((d.type.kind == TypeClass::Bfloat || d.type.bits == 64) && (d.ftz || d.saturate))
    return false;
  return finish(f, 3);
}

/// rcp, sqrt: {.approx{.ftz}|.rnd{.ftz}}.f32, .rnd.f64; rcp.approx.ftz.f64
bool decodeRoot(Form &f) {
  Decoded &d = f.decoded;
  d.approximate = f.take("approx");
  if (!d.approximate && !f.takeRounding())
    return false;
  f.takeFlag(d.ftz, "ftz");
  if (!f.takeTypeInto(d.type, "f32 f64"))
    return false;
  const bool good = d.type.bits == 32 || (d.approximate ? d.ftz && d.opcode == Opcode::Rcp : !d.ftz);
  return good && finish(f, 1);
}

bool decodeApproximate(Form &f, StringRef types, StringRef typesWithFtz) {
  Decoded &d = f.decoded;
  d.approximate = f.take("approx");
  f.takeFlag(d.ftz, "ftz");
  return d.approximate && f.takeTypeInto(d.type, d.ftz ? typesWithFtz : types) && finish(f, 1);
}

bool decodeTest(Form &f) {
  f.decoded.mode = StringSwitch<Mode>(f.takeAnyOf("finite infinite number notanumber normal subnormal"))
                       .Case("finite", Mode::Finite)
                       .Case("infinite", Mode::Infinite)
                       .Case("number", Mode::Number)
                       .Case("notanumber", Mode::NotNumber)
                       .Case("normal", Mode::Normal)
                       .Case("subnormal", Mode::Subnormal)
                       .Default(Mode::None);
  if (f.decoded.mode == Mode::None || !f.takeTypeInto(f.decoded.type, "f32 f64"))
    return false;
  f.result(predicateType);
  f.value(f.decoded.type);
  return true;
}

} // namespace

bool decodeFloat(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Fma:
    return decodeFma(f);
  case Opcode::Rcp:
  case Opcode::Sqrt:
    return decodeRoot(f);
  case Opcode::Rsqrt:
    return decodeApproximate(f, "f32 f64", "f32 f64");
  case Opcode::Sin:
  case Opcode::Cos:
  case Opcode::Lg2:
    return decodeApproximate(f, "f32", "f32");
  case Opcode::Ex2:
    return decodeApproximate(f, "f32 f16 f16x2", "f32 bf16 bf16x2");
  case Opcode::Tanh:
    return decodeApproximate(f, "f32 f16 f16x2 bf16 bf16x2", "");
  case Opcode::Copysign:
    return f.takeTypeInto(f.decoded.type, "f32 f64") && finish(f, 2);
  case Opcode::Testp:
    return decodeTest(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
