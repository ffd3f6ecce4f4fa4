#include "lint/LowBits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <array>

namespace hloc::lint {

namespace {

LowBits make(unsigned known, uint64_t value) {
  known = std::min(known, 64u);
  return {uint8_t(known), known == 64 ? value : value & ((uint64_t(1) << known) - 1), true};
}

LowBits aligned(uint64_t bytes) { return make(bytes ? llvm::countr_zero(bytes) : 0, 0); }

/// Trailing zeros that are certain.
unsigned zerosOf(const LowBits &bits) {
  return bits.value ? unsigned(llvm::countr_zero(bits.value)) : unsigned(bits.known);
}

/// Both may be.
LowBits meet(const LowBits &a, const LowBits &b) {
  if (!a.isSet || !b.isSet)
    return a.isSet ? a : b;
  unsigned same = a.value == b.value ? 64 : unsigned(llvm::countr_zero(a.value ^ b.value));
  return make(std::min({unsigned(a.known), unsigned(b.known), same}), a.value);
}

LowBits product(const LowBits &a, const LowBits &b) {
  unsigned known = std::min({a.known + zerosOf(b), b.known + zerosOf(a), unsigned(a.known) + b.known});
  return make(known, a.value * b.value);
}

LowBits logical(llvm::StringRef name, const LowBits &a, const LowBits &b) {
  unsigned known = 0;
  for (; known < 64; ++known) {
    bool knownA = known < a.known, knownB = known < b.known;
    bool bitA = a.value >> known & 1, bitB = b.value >> known & 1;
    bool absorbs =
        name == "and" ? (knownA && !bitA) || (knownB && !bitB) : name == "or" && ((knownA && bitA) || (knownB && bitB));
    if (!absorbs && !(knownA && knownB))
      break;
  }
  return make(known, name == "and" ? a.value & b.value : name == "or" ? a.value | b.value : a.value ^ b.value);
}

} // namespace

LowBitsOfRegisters::LowBitsOfRegisters(const KernelCode &code)
    : code(code), registers(code.numRegisters(), {0, 0, false}) {
  std::vector<uint32_t> waiting;
  std::vector<bool> waits(code.instrs.size(), true);
  for (uint32_t i = uint32_t(code.instrs.size()); i-- > 0;)
    waiting.push_back(i);
  // Nobody's registers (special ones, what is written elsewhere) may be anything.
  for (auto [i, writers] : llvm::enumerate(code.writers))
    if (writers.empty())
      registers[i] = {};
  while (!waiting.empty()) {
    uint32_t i = waiting.back();
    waiting.pop_back();
    waits[i] = false;
    for (auto [number, result] : llvm::enumerate(code.instrs[i].results)) {
      LowBits met = meet(registers[result], ofResult(code.instrs[i], number));
      if (met == registers[result])
        continue;
      registers[result] = met;
      for (uint32_t reader : code.readers[result])
        if (!waits[reader]) {
          waits[reader] = true;
          waiting.push_back(reader);
        }
    }
  }
}

LowBits LowBitsOfRegisters::ofVariable(const ptx::Variable &variable) const {
  unsigned natural = std::max(1u, typeBits(variable.type) / 8);
  return aligned(variable.align ? variable.align : natural);
}

LowBits LowBitsOfRegisters::ofOperand(const ptx::Operand &operand) const {
  if (operand.kind == ptx::Operand::Kind::Integer)
    return make(64, operand.value);
  if (operand.kind != ptx::Operand::Kind::Name || operand.negated)
    return {};
  LowBits bits;
  if (auto variable = code.variables.find(operand.name); variable != code.variables.end())
    bits = ofVariable(*variable->second);
  else if (uint32_t number = code.findRegister(operand.name); number != none)
    bits = registers[number];
  return bits.isSet ? make(bits.known, bits.value + operand.value) : bits;
}

LowBits LowBitsOfRegisters::ofAddress(const ptx::Operand &address) const {
  ptx::Operand name = address;
  name.kind = ptx::Operand::Kind::Name;
  return name.name.empty() ? make(64, address.value) : ofOperand(name);
}

/// A parameter that is a pointer to memory of known alignment. Others may be anything.
LowBits LowBitsOfRegisters::ofParameter(const ptx::Instruction &load) const {
  if (load.operands.size() < 2)
    return {};
  const ptx::Operand &address = load.operands[1];
  auto variable = code.variables.find(address.name);
  if (variable == code.variables.end() || address.value || !variable->second->pointer)
    return {};
  return aligned(std::max<uint64_t>(variable->second->align, 1));
}

LowBits LowBitsOfRegisters::ofResult(const CodeInstr &instr, size_t number) const {
  const ptx::Instruction &text = *instr.text;
  llvm::StringRef name = instr.name(), type = instr.type();
  if (name == "ld" && text.parts.size() > 1 && llvm::StringRef(text.parts[1]).starts_with("param"))
    return number ? LowBits() : ofParameter(text);
  if (text.operands.size() < 2 || text.operands[0].kind != ptx::Operand::Kind::Name)
    return {};
  std::array<LowBits, 4> of;
  bool isKnown = true;
  for (size_t i = 1; i < std::min<size_t>(text.operands.size(), 4); ++i) {
    of[i] = ofOperand(text.operands[i]);
    isKnown &= of[i].isSet;
  }
  if (name == "selp")
    return meet(of[1], of[2]);
  if (!isKnown) // looked at again when what it reads has been written
    return {0, 0, false};
  const bool isWide = instr.has("wide");
  const unsigned width = std::max(1u, typeBits(type));
  auto within = [&](const LowBits &bits, unsigned limit) {
    return make(std::min<unsigned>(bits.known, limit), bits.value);
  };
  const LowBits a = within(of[1], width), b = within(of[2], width), c = within(of[3], isWide ? 2 * width : width);
  auto sum = [&](const LowBits &one, const LowBits &other) {
    return make(std::min(one.known, other.known), one.value + other.value);
  };
  if (name == "mov" || name == "cvta")
    return a;
  if (type.starts_with("f") || type.starts_with("bf"))
    return {};
  if (name == "cvt") // the low bits stay, unless a value is clamped or made of a float
    return instr.has("sat") || typeBits(text.parts[1]) == 0 || text.parts[1].front() == 'f' ? LowBits() : a;
  if (name == "add")
    return sum(a, b);
  if (name == "sub")
    return make(std::min(a.known, b.known), a.value - b.value);
  if (name == "mul" && (isWide || instr.has("lo")))
    return within(product(a, b), isWide ? 2 * width : width);
  if (name == "mad" && (isWide || instr.has("lo")))
    return within(sum(product(a, b), c), isWide ? 2 * width : width);
  bool shifts = text.operands.size() > 2 && text.operands[2].kind == ptx::Operand::Kind::Integer;
  uint64_t by = shifts ? text.operands[2].value : 0;
  if (name == "shl" && shifts && by < width)
    return within(make(unsigned(a.known + by), a.value << by), width);
  if (name == "shr" && shifts && by < a.known)
    return make(unsigned(a.known - by), a.value >> by);
  if (name == "and" || name == "or" || name == "xor")
    return logical(name, a, b);
  return {};
}

} // namespace hloc::lint
