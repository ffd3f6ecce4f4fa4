// Matrix fragments: ldmatrix, stmatrix and mma. The shapes that exist for each input type are a table.
#include "ResolveForm.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

using Kind = OperandForm::Kind;

struct Shape {
  StringLiteral name;
  uint16_t m, n, k;
  StringLiteral inputs;       ///< types of a and b
  StringLiteral accumulators; ///< types of c and d
};

constexpr Shape shapes[] = {
    {"m16n8k8", 16, 8, 8, "f16", "f16 f32"},
    {"m16n8k16", 16, 8, 16, "f16", "f16 f32"},
    {"m16n8k8", 16, 8, 8, "bf16", "f32"},
    {"m16n8k16", 16, 8, 16, "bf16", "f32"},
    {"m16n8k4", 16, 8, 4, "tf32", "f32"},
    {"m16n8k8", 16, 8, 8, "tf32", "f32"},
    {"m8n8k4", 8, 8, 4, "f64", "f64"},
    {"m16n8k4", 16, 8, 4, "f64", "f64"},
    {"m16n8k8", 16, 8, 8, "f64", "f64"},
    {"m16n8k16", 16, 8, 16, "f64", "f64"},
    {"m8n8k16", 8, 8, 16, "u8 s8", "s32"},
    {"m16n8k16", 16, 8, 16, "u8 s8", "s32"},
    {"m16n8k32", 16, 8, 32, "u8 s8", "s32"},
    {"m8n8k32", 8, 8, 32, "u4 s4", "s32"},
    {"m16n8k32", 16, 8, 32, "u4 s4", "s32"},
    {"m16n8k64", 16, 8, 64, "u4 s4", "s32"},
    {"m16n8k16", 16, 8, 16, "e4m3 e5m2", "f16 f32"},
    {"m16n8k32", 16, 8, 32, "e4m3 e5m2", "f16 f32"},
    {"m8n8k128", 8, 8, 128, "b1", "s32"},
    {"m16n8k128", 16, 8, 128, "b1", "s32"},
    {"m16n8k256", 16, 8, 256, "b1", "s32"},
};

bool contains(StringRef list, StringRef word) {
  for (; !list.empty(); list = list.split(' ').second)
    if (list.split(' ').first == word)
      return true;
  return false;
}

/// Registers of one lane that hold `elements` of the 32 lanes' share; f64 has 64-bit registers, others 32-bit ones.
void addFragment(Form &f, Kind kind, Type type, unsigned elements) {
  const Type reg = type.bits == 64                                    ? Type{TypeClass::Float, 64, 1}
                   : type.kind == TypeClass::Float && type.bits == 32 ? Type{TypeClass::Float, 32, 1}
                                                                      : b32;
  f.add(kind, reg, elements * type.bits / 32 / reg.bits);
}

bool matchesShape(Form &f, StringRef name, StringRef a, StringRef b, StringRef accumulator) {
  for (const Shape &shape : shapes)
    if (shape.name == name && contains(shape.inputs, a) && contains(shape.inputs, b) &&
        contains(shape.accumulators, accumulator)) {
      f.decoded.shape = {shape.m, shape.n, shape.k};
      return true;
    }
  return false;
}

/// mma.sync.aligned.m16n8k16.row.col{.satfinite}.f32.bf16.bf16.f32{.xor|.and.popc}
bool decodeMma(Form &f) {
  Decoded &d = f.decoded;
  if (!f.take("sync") || !f.take("aligned"))
    return false;
  StringRef shape = f.next();
  constexpr StringLiteral names =
      "m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256";
  if (f.takeAnyOf(names).empty() || !f.take("row") || !f.take("col"))
    return false;
  f.takeFlag(d.satfinite, "satfinite");
  constexpr StringLiteral inputs = "f16 bf16 tf32 f64 u8 s8 u4 s4 e4m3 e5m2 b1", outputs = "f16 f32 f64 s32";
  if (!f.takeTypeInto(d.type, outputs))
    return false;
  StringRef a = f.next();
  if (!f.takeTypeInto(d.from, inputs))
    return false;
  StringRef b = f.next();
  if (!f.takeTypeInto(d.typeB, inputs))
    return false;
  StringRef c = f.next();
  if (!f.takeTypeInto(d.typeC, outputs) || !matchesShape(f, shape, a, b, c) || d.type.bits != d.typeC.bits ||
      d.type.kind != d.typeC.kind || (d.satfinite && !(d.from.bits == 4 || d.from.bits == 8)))
    return false;
  if (d.satfinite && d.type.kind != TypeClass::Signed)
    return false;
  if (d.from.bits == 1) {
    StringRef op = f.takeAnyOf("and xor");
    d.mode = op == "and" ? Mode::And : Mode::Xor;
    if (op.empty() || !f.take("popc"))
      return false;
  }
  const auto [m, n, k] = d.shape;
  addFragment(f, Kind::Results, d.type, m * n);
  addFragment(f, Kind::Values, d.from, m * k);
  addFragment(f, Kind::Values, d.typeB, k * n);
  addFragment(f, Kind::Values, d.typeC, m * n);
  return true;
}

/// n of m64nNkK of a wgmma with factors of so many bits, or 0: whole eights up to 256; of integers whole sixteens, and
/// 8 and 24. The depth always has 256 bits.
uint16_t columnsOf(StringRef shape, Type type) {
  unsigned n = 0, k = 0;
  if (!shape.consume_front("m64n") || shape.consumeInteger(10, n) || !shape.consume_front("k") ||
      shape.getAsInteger(10, k) || k != 256u / type.bits)
    return 0;
  const bool isInteger = type.kind == TypeClass::Signed || type.kind == TypeClass::Unsigned || type.bits == 1;
  const bool exists = isInteger ? n % 16 == 0 || n == 8 || n == 24 : n % 8 == 0;
  return exists && n <= 256 ? uint16_t(n) : 0;
}

/// wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {d}, a, b, scale-d, imm-scale-a, imm-scale-b{, imm-trans-a},
/// imm-trans-b; the last ones for 16-bit factors only. Of integers: .satfinite before the types; of bits: .and.popc.
bool decodeWarpgroupMultiply(Form &f) {
  Decoded &d = f.decoded;
  d.mode = Mode::Multiply;
  if (!f.take("sync") || !f.take("aligned"))
    return false;
  const StringRef shape = f.next();
  if (shape.starts_with("m64n") && !f.take(shape))
    return false;
  f.takeFlag(d.satfinite, "satfinite");
  constexpr StringLiteral inputs = "f16 bf16 tf32 u8 s8 e4m3 e5m2 b1";
  if (!f.takeTypeInto(d.type, "f16 f32 s32") || !f.takeTypeInto(d.from, inputs) || !f.takeTypeInto(d.typeB, inputs))
    return false;
  d.typeC = d.type;
  const uint16_t n = columnsOf(shape, d.from);
  const bool bytes = d.from.kind == TypeClass::E4m3 || d.from.kind == TypeClass::E5m2;
  const bool floats = d.from.isFloat() || bytes || d.from.kind == TypeClass::Tf32;
  const bool same = d.from.kind == d.typeB.kind && d.from.bits == d.typeB.bits;
  const bool mixed =
      bytes ? d.typeB.kind == TypeClass::E4m3 || d.typeB.kind == TypeClass::E5m2
            : d.from.bits == 8 && (d.typeB.kind == TypeClass::Signed || d.typeB.kind == TypeClass::Unsigned);
  const bool hasHalves = bytes || d.from.kind == TypeClass::Float;
  if (!n || !(same || mixed) || floats != d.type.isFloat() || (d.type.bits == 16 && !hasHalves) ||
      (d.satfinite && (floats || d.from.bits == 1)))
    return false;
  if (d.from.bits == 1 && (!f.take("and") || !f.take("popc")))
    return false;
  d.shape = {64, n, uint16_t(256 / d.from.bits)};
  constexpr unsigned rowsOfWarp = 16;
  addFragment(f, Kind::Results, d.type, rowsOfWarp * n);
  if (f.instruction.operands.size() > 1 && f.instruction.operands[1].kind == ptx::Operand::Kind::Vector)
    f.add(Kind::Values, b32, 4);
  else
    f.value(b64);
  const bool listed = f.operands.back().kind == Kind::Values;
  f.value(b64);
  f.add(Kind::Predicate, predicateType);
  const unsigned immediates = !floats ? 0 : d.from.bits != 16 ? 2 : listed ? 3 : 4;
  for (unsigned i = 0; i < immediates; ++i)
    f.add(Kind::Immediate, b32);
  return true;
}

/// wgmma.fence, commit_group and wait_group N, all .sync.aligned.
bool decodeWarpgroup(Form &f) {
  if (f.take("mma_async"))
    return decodeWarpgroupMultiply(f);
  const StringRef what = f.takeAnyOf("fence commit_group wait_group");
  if (what == "commit_group")
    f.decoded.mode = Mode::Commit;
  if (what == "wait_group") {
    f.decoded.mode = Mode::WaitGroup;
    f.add(Kind::Immediate, b32);
  }
  return !what.empty() && f.take("sync") && f.take("aligned");
}

bool decodeMatrixMove(Form &f) {
  Decoded &d = f.decoded;
  if (!f.take("sync") || !f.take("aligned"))
    return false;
  StringRef early = f.takeAnyOf("x1 x2 x4"); // before the shape, as older texts have it
  if (!f.take("m8n8"))
    return false;
  StringRef count = early.empty() ? f.takeAnyOf("x1 x2 x4") : early;
  if (count.empty())
    return false;
  d.count = uint8_t(count[1] - '0');
  f.takeFlag(d.transposed, "trans");
  if (!f.takeAnyOf("shared shared::cta").empty())
    d.space = Space::Shared;
  if (!f.takeTypeInto(d.type, "b16"))
    return false;
  if (d.opcode == Opcode::Ldmatrix)
    f.add(Kind::Results, b32, d.count);
  f.add(Kind::Address, b64);
  if (d.opcode == Opcode::Stmatrix)
    f.add(Kind::Values, b32, d.count);
  return true;
}

} // namespace

bool decodeMatrix(Form &f) {
  switch (f.decoded.opcode) {
  case Opcode::Mma:
    return decodeMma(f);
  case Opcode::Wgmma:
    return decodeWarpgroup(f);
  case Opcode::Ldmatrix:
  case Opcode::Stmatrix:
    return decodeMatrixMove(f);
  default:
    return false;
  }
}

} // namespace hloc::emulator
