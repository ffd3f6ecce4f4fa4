#include "lint/LaneValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace hloc::lint {

namespace {

LaneValue everywhere(uint64_t value) {
  LaneValue result;
  result.isKnown = true;
  result.lanes.fill(value);
  return result;
}

LaneValue assumed(uint64_t value) {
  LaneValue result = everywhere(value);
  result.isAssumed = true;
  return result;
}

uint64_t masked(uint64_t value, unsigned bits) { return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1); }

int64_t extended(uint64_t value, unsigned bits) {
  return bits == 0 || bits >= 64 ? int64_t(value) : int64_t(value << (64 - bits)) >> (64 - bits);
}

/// Operands of `bits` bits. Nothing for what is no arithmetic on addresses.
std::optional<uint64_t> evaluate(const CodeInstr &instr, unsigned bits, uint64_t a, uint64_t b, uint64_t c) {
  const llvm::StringRef name = instr.name();
  const bool isSigned = instr.type().starts_with("s");
  auto wide = [&](uint64_t value) { return isSigned ? uint64_t(extended(value, bits)) : masked(value, bits); };
  const uint64_t x = wide(a), y = wide(b);
  if (name == "mov" || name == "cvta")
    return a;
  if (name == "add")
    return x + y;
  if (name == "sub")
    return x - y;
  if (name == "neg")
    return 0 - x;
  if (name == "not")
    return ~x;
  if (name == "mul" || name == "mad") {
    if (instr.has("hi"))
      return bits > 32 ? std::nullopt : std::optional((x * y >> bits) + (name == "mad" ? c : 0));
    return x * y + (name == "mad" ? c : 0);
  }
  if (name == "shl")
    return b >= bits ? 0 : x << b;
  if (name == "shr")
    return isSigned ? uint64_t(extended(a, bits) >> std::min<uint64_t>(b, 63)) : b >= bits ? 0 : x >> b;
  if (name == "and")
    return x & y;
  if (name == "or")
    return x | y;
  if (name == "xor")
    return x ^ y;
  if (name == "min" || name == "max") {
    bool less = isSigned ? int64_t(x) < int64_t(y) : x < y;
    return less == (name == "min") ? x : y;
  }
  if ((name == "div" || name == "rem") && !isSigned && y)
    return name == "div" ? x / y : x % y;
  if (name == "bfe" && !isSigned)
    return b >= 64 ? 0 : masked(masked(a, bits) >> b, unsigned(std::min<uint64_t>(c, 64)));
  return std::nullopt;
}

bool isFloat(llvm::StringRef type) { return type.starts_with("f") || type.starts_with("bf"); }

} // namespace

LaneValues::LaneValues(const KernelCode &code, Dim3 grid, Dim3 block)
    : code(&code), grid(grid), block(block), registers(code.numRegisters()) {}

LaneValue LaneValues::special(llvm::StringRef name) const {
  auto part = [](uint64_t linear, Dim3 of, char axis) -> uint64_t {
    const uint64_t x = std::max(1u, of.x), y = std::max(1u, of.y);
    return axis == 'x' ? linear % x : axis == 'y' ? linear / x % y : linear / x / y;
  };
  const char axis = name.back();
  auto extent = [&](Dim3 of) { return axis == 'x' ? of.x : axis == 'y' ? of.y : of.z; };
  const uint64_t firstThread = block.count() / warpLanes / 2 * warpLanes;
  if (name.starts_with("%tid.")) {
    LaneValue result = everywhere(0);
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      result.lanes[lane] = part(firstThread + lane, block, axis);
    return result;
  }
  if (name == "%laneid") {
    LaneValue result = everywhere(0);
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      result.lanes[lane] = lane;
    return result;
  }
  if (name.starts_with("%ctaid."))
    return everywhere(part(grid.count() / 2, grid, axis));
  if (name.starts_with("%ntid."))
    return everywhere(extent(block));
  if (name.starts_with("%nctaid."))
    return everywhere(extent(grid));
  return {};
}

LaneValue LaneValues::valueOf(const ptx::Operand &operand) const {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::Integer)
    return everywhere(operand.value);
  if ((operand.kind != Kind::Name && operand.kind != Kind::Address) || operand.negated)
    return {};
  if (operand.name.empty())
    return everywhere(operand.value);
  LaneValue value;
  if (code->variables.contains(operand.name))
    value = assumed(0);
  else if (uint32_t number = code->findRegister(operand.name); number != none)
    value = code->writers[number].empty() ? special(operand.name) : registers[number];
  for (uint64_t &lane : value.lanes)
    lane += operand.value;
  return value;
}

LaneValue LaneValues::resultOf(const CodeInstr &instr) const {
  const ptx::Instruction &text = *instr.text;
  if (instr.name() == "ld" && spaceOf(instr) == "param" && text.operands.size() == 2) {
    // Arrays begin, and extents passed by value are, at multiples of what matters here.
    return assumed(typeBits(instr.type()) == 64 ? uint64_t(1) << 40 : 1 << 12);
  }
  if (text.operands.size() < 2 || text.operands[0].kind != ptx::Operand::Kind::Name || instr.name() == "ld")
    return {};
  std::array<LaneValue, 3> of;
  for (size_t i = 1; i < std::min<size_t>(text.operands.size(), 4); ++i) {
    of[i - 1] = valueOf(text.operands[i]);
    if (!of[i - 1].isKnown)
      return {};
  }
  LaneValue result;
  result.isAssumed = llvm::any_of(of, [](const LaneValue &value) { return value.isAssumed; });
  const unsigned bits = typeBits(instr.type());
  if (instr.name() == "cvt") {
    llvm::StringRef to = text.parts.size() >= 3 ? llvm::StringRef(text.parts[text.parts.size() - 2]) : "";
    if (isFloat(instr.type()) || isFloat(to) || !bits)
      return {};
    result.isKnown = true;
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      result.lanes[lane] = masked(instr.type().starts_with("s") ? uint64_t(extended(of[0].lanes[lane], bits))
                                                                : masked(of[0].lanes[lane], bits),
                                  typeBits(to));
    return result;
  }
  if (!bits || isFloat(instr.type()))
    return {};
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    auto value = evaluate(instr, bits, of[0].lanes[lane], of[1].lanes[lane], of[2].lanes[lane]);
    if (!value)
      return {};
    result.lanes[lane] = masked(*value, instr.has("wide") ? 2 * bits : bits);
  }
  result.isKnown = true;
  return result;
}

void LaneValues::execute(const CodeInstr &instr) {
  if (instr.results.empty())
    return;
  LaneValue result = resultOf(instr);
  for (uint32_t number : instr.results)
    registers[number] = LaneValue();
  registers[instr.results.front()] = std::move(result);
}

unsigned LaneValues::sectorsOf(const CodeInstr &access) const {
  constexpr uint64_t sectorBytes = 32;
  const unsigned bytes = std::max(1u, bytesOf(access)), each = (bytes + sectorBytes - 1) / sectorBytes;
  const ptx::Instruction &text = *access.text;
  const ptx::Operand *address = nullptr;
  for (const ptx::Operand &operand : text.operands)
    if (operand.kind == ptx::Operand::Kind::Address && !address)
      address = &operand;
  const LaneValue value = address ? valueOf(*address) : LaneValue();
  const unsigned lanes = unsigned(std::min<uint64_t>(warpLanes, std::max<uint64_t>(1, block.count())));
  if (!value.isKnown)
    return lanes * each;
  llvm::SmallVector<uint64_t, 64> sectors;
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (uint64_t sector = value.lanes[lane] / sectorBytes; sector <= (value.lanes[lane] + bytes - 1) / sectorBytes;
         ++sector)
      sectors.push_back(sector);
  llvm::sort(sectors);
  return unsigned(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

} // namespace hloc::lint
