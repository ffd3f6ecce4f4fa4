// Comparisons and selections.
#include "ResolveForm.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

std::optional<Compare> compareOf(StringRef name) {
  return StringSwitch<std::optional<Compare>>(name)
      .Case("eq", Compare::Eq)
      .Case("ne", Compare::Ne)
      .Cases({"lt", "lo"}, Compare::Lt)
      .Cases({"le", "ls"}, Compare::Le)
      .Cases({"gt", "hi"}, Compare::Gt)
      .Cases({"ge", "hs"}, Compare::Ge)
      .Case("equ", Compare::Equ)
      .Case("neu", Compare::Neu)
      .Case("ltu", Compare::Ltu)
      .Case("leu", Compare::Leu)
      .Case("gtu", Compare::Gtu)
      .Case("geu", Compare::Geu)
      .Case("num", Compare::Num)
      .Case("nan", Compare::Nan)
      .Default(std::nullopt);
}

/// Which comparisons a type has: bits only (in)equality, floats no lo, ls, hi, hs, integers nothing unordered.
bool fits(StringRef compare, Type type) {
  if (compare == "eq" || compare == "ne")
    return true;
  if (type.kind == TypeClass::Bits)
    return false;
  const bool wordly = compare == "lo" || compare == "ls" || compare == "hi" || compare == "hs";
  const bool ordered = compare == "lt" || compare == "le" || compare == "gt" || compare == "ge";
  return ordered || (type.isFloat() ? !wordly : wordly && type.kind == TypeClass::Unsigned);
}

bool decodeSet(Form &f) {
  Decoded &d = f.decoded;
  StringRef compare = f.takeAnyOf("eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan");
  if (compare.empty())
    return false;
  d.compare = *compareOf(compare);
  d.mode = StringSwitch<Mode>(f.takeAnyOf("and or xor"))
               .Case("and", Mode::And)
               .Case("or", Mode::Or)
               .Case("xor", Mode::Xor)
               .Default(Mode::None);
  f.takeFlag(d.ftz, "ftz");
  const bool set = d.opcode == Opcode::Set;
  if (set && !f.takeTypeInto(d.from, "u32 s32 f32 u16 s16 f16 bf16 f16x2 bf16x2"))
    return false;
  if (!f.takeTypeInto(d.type, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2"))
    return false;
  if (!fits(compare, d.type) || (d.ftz && !(d.type.kind == TypeClass::Float && d.type.bits <= 32)))
    return false;
  const bool pairs = d.type.lanes == 2;
  const bool mask = d.from.bits == 32 && !d.from.isFloat(); // of 16 bits a half
  if (set && (d.from.lanes == 2 || pairs) && (!pairs || !(mask || (d.from.lanes == 2 && d.from.kind == d.type.kind))))
    return false;
  if (set)
    f.result(d.from);
  else
    f.add(OperandForm::Kind::ResultPair, predicateType);
  f.values(2, d.type);
  if (d.mode != Mode::None)
    f.add(OperandForm::Kind::Predicate, predicateType);
  return true;
}

} // namespace

bool decodeCompare(Form &f) {
  Decoded &d = f.decoded;
  switch (d.opcode) {
  case Opcode::Set:
  case Opcode::Setp:
    return decodeSet(f);
  case Opcode::Selp:
    if (!f.takeTypeInto(d.type, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f32 f64"))
      return false;
    f.result(d.type);
    f.values(2, d.type);
    f.add(OperandForm::Kind::Predicate, predicateType);
    return true;
  case Opcode::Slct:
    f.takeFlag(d.ftz, "ftz");
    if (!f.takeTypeInto(d.type, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64") ||
        !f.takeTypeInto(d.from, d.ftz ? "f32" : "s32 f32"))
      return false;
    f.result(d.type);
    f.values(2, d.type);
    f.value(d.from);
    return true;
  default:
    return false;
  }
}

} // namespace hloc::emulator
