#include "lint/LaneValues.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"

#include <algorithm>

namespace hloc::lint {

namespace {

LaneValue everywhere(uint64_t value) {
  LaneValue result;
  result.isKnown = true;
  result.lanes.fill(value);
  return result;
}

bool isUniform(const LaneValue &value) { return value.isKnown && llvm::all_equal(value.lanes); }

LaneValue assumed(uint64_t value) {
  LaneValue result = everywhere(value);
  result.isAssumed = true;
  return result;
}

uint64_t masked(uint64_t value, unsigned bits) { return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1); }

int64_t extended(uint64_t value, unsigned bits) {
  return bits == 0 || bits >= 64 ? int64_t(value) : int64_t(value << (64 - bits)) >> (64 - bits);
}

enum class Operation {
  Move,
  Add,
  Subtract,
  Negate,
  Not,
  Multiply,
  MultiplyHigh,
  ShiftLeft,
  ShiftRight,
  And,
  Or,
  Xor,
  Least,
  Greatest,
  Divide,
  Remainder,
  Field,
  Compare,
  Select
};

/// Nothing for what is no arithmetic on addresses, or on what branches depend on.
std::optional<Operation> operationOf(const CodeInstr &instr) {
  const llvm::StringRef name = instr.name();
  if (name == "mul" || name == "mad")
    return instr.has("hi") ? Operation::MultiplyHigh : Operation::Multiply;
  if (name == "setp" && (instr.text->operands.size() != 3 || !relationOf(instr)))
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Operation>>(name)
      .Cases("mov", "cvta", Operation::Move)
      .Case("add", Operation::Add)
      .Case("sub", Operation::Subtract)
      .Case("neg", Operation::Negate)
      .Case("not", Operation::Not)
      .Case("shl", Operation::ShiftLeft)
      .Case("shr", Operation::ShiftRight)
      .Case("and", Operation::And)
      .Case("or", Operation::Or)
      .Case("xor", Operation::Xor)
      .Case("min", Operation::Least)
      .Case("max", Operation::Greatest)
      .Case("div", Operation::Divide)
      .Case("rem", Operation::Remainder)
      .Case("bfe", Operation::Field)
      .Case("setp", Operation::Compare)
      .Case("selp", Operation::Select)
      .Default(std::nullopt);
}

/// The upper `bits` of a product of extended factors.
uint64_t highHalf(uint64_t x, uint64_t y, unsigned bits, bool isSigned) {
  using Wide = unsigned __int128;
  const Wide product = isSigned ? Wide(static_cast<__int128>(int64_t(x)) * int64_t(y)) : Wide(x) * y;
  return uint64_t(product >> bits);
}

/// `length` bits of `value` from bit `first` on; signed ones are extended by the last of them that there is.
uint64_t field(uint64_t value, unsigned bits, uint64_t first, uint64_t length, bool isSigned) {
  const uint64_t of = masked(value, bits);
  length = std::min<uint64_t>(length & 255, 64);
  first = std::min<uint64_t>(first & 255, 64);
  if (!isSigned)
    return first >= 64 ? 0 : masked(of >> first, unsigned(length));
  if (length == 0)
    return 0;
  const uint64_t all = uint64_t(extended(of, bits));
  return uint64_t(extended(uint64_t(int64_t(all) >> std::min<uint64_t>(first, 63)), unsigned(length)));
}

/// Nothing where it is not defined.
std::optional<uint64_t> quotient(uint64_t x, uint64_t y, bool isSigned, bool isRemainder) {
  if (y == 0)
    return std::nullopt;
  if (!isSigned)
    return isRemainder ? x % y : x / y;
  if (int64_t(y) == -1)
    return isRemainder ? 0 : 0 - x;
  return uint64_t(isRemainder ? int64_t(x) % int64_t(y) : int64_t(x) / int64_t(y));
}

/// Operands of `bits` bits. Nothing for what is not defined.
std::optional<uint64_t> evaluate(Operation operation, const CodeInstr &instr, unsigned bits, uint64_t a, uint64_t b,
                                 uint64_t c) {
  const bool isSigned = instr.type().starts_with("s");
  auto wide = [&](uint64_t value) { return isSigned ? uint64_t(extended(value, bits)) : masked(value, bits); };
  const uint64_t x = wide(a), y = wide(b);
  const bool isLess = isSigned ? int64_t(x) < int64_t(y) : x < y;
  switch (operation) {
  case Operation::Move:
    return a;
  case Operation::Add:
    return x + y;
  case Operation::Subtract:
    return x - y;
  case Operation::Negate:
    return 0 - x;
  case Operation::Not:
    return ~x;
  case Operation::Multiply: // c is 0 where nothing is added
    return x * y + c;
  case Operation::MultiplyHigh:
    return highHalf(x, y, bits, isSigned) + c;
  case Operation::ShiftLeft:
    return b >= bits ? 0 : x << b;
  case Operation::ShiftRight:
    return isSigned ? uint64_t(extended(a, bits) >> std::min<uint64_t>(b, 63)) : b >= bits ? 0 : x >> b;
  case Operation::And:
    return x & y;
  case Operation::Or:
    return x | y;
  case Operation::Xor:
    return x ^ y;
  case Operation::Least:
    return isLess ? x : y;
  case Operation::Greatest:
    return isLess ? y : x;
  case Operation::Divide:
    return quotient(x, y, isSigned, /*isRemainder=*/false);
  case Operation::Remainder:
    return quotient(x, y, isSigned, /*isRemainder=*/true);
  case Operation::Field:
    return field(a, bits, b, c, isSigned);
  case Operation::Compare:
    return holds(*relationOf(instr), numberOf(instr, a), numberOf(instr, b));
  case Operation::Select:
    return c & 1 ? a : b;
  }
  HLOC_UNREACHABLE("operation");
}

bool isFloat(llvm::StringRef type) { return type.starts_with("f") || type.starts_with("bf"); }

} // namespace

std::optional<Relation> relationOf(const CodeInstr &setp) {
  if (setp.text->parts.size() < 3 || isFloat(setp.type()))
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Relation>>(setp.text->parts[1])
      .Case("eq", Relation::Equal)
      .Case("ne", Relation::NotEqual)
      .Cases("lt", "lo", Relation::Less)
      .Cases("le", "ls", Relation::LessOrEqual)
      .Cases("gt", "hi", Relation::Greater)
      .Cases("ge", "hs", Relation::GreaterOrEqual)
      .Default(std::nullopt);
}

bool holds(Relation relation, double left, double right) {
  switch (relation) {
  case Relation::Equal:
    return left == right;
  case Relation::NotEqual:
    return left != right;
  case Relation::Less:
    return left < right;
  case Relation::LessOrEqual:
    return left <= right;
  case Relation::Greater:
    return left > right;
  case Relation::GreaterOrEqual:
    return left >= right;
  }
  HLOC_UNREACHABLE("relation");
}

double numberOf(const CodeInstr &instr, uint64_t value) {
  const unsigned bits = std::clamp(typeBits(instr.type()), 1u, 64u);
  return instr.type().starts_with("s") ? double(extended(value, bits)) : double(masked(value, bits));
}

LaneValues::LaneValues(const KernelCode &code, Dim3 grid, Dim3 block, WarpPlace place)
    : code(&code), grid(grid), block(block), place(place), active(0), registers(code.numRegisters()) {
  active = allLanes();
}

LaneMask LaneValues::allLanes() const {
  const uint64_t threads = std::max<uint64_t>(1, block.count()), first = place.warp * warpLanes;
  const uint64_t lanes = threads > first ? std::min<uint64_t>(warpLanes, threads - first) : 1;
  return LaneMask((uint64_t(1) << lanes) - 1);
}

unsigned LaneValues::firstActive() const { return active ? unsigned(llvm::countr_zero(active)) : 0; }

std::optional<LaneMask> LaneValues::guarded(const CodeInstr &instr) const {
  if (instr.text->guard.empty())
    return active;
  const uint32_t number = code->findRegister(instr.text->guard);
  if (number == none || !registers[number].isKnown || registers[number].isAssumed)
    return std::nullopt;
  LaneMask mask = 0;
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    if (bool(registers[number].lanes[lane] & 1) != instr.text->guardNegated)
      mask |= LaneMask(1) << lane;
  return mask & active;
}

LaneValue LaneValues::special(llvm::StringRef name) const {
  auto part = [](uint64_t linear, Dim3 of, char axis) -> uint64_t {
    const uint64_t x = std::max(1u, of.x), y = std::max(1u, of.y);
    return axis == 'x' ? linear % x : axis == 'y' ? linear / x % y : linear / x / y;
  };
  const char axis = name.back();
  auto extent = [&](Dim3 of) { return axis == 'x' ? of.x : axis == 'y' ? of.y : of.z; };
  const uint64_t firstThread = place.warp * warpLanes;
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
    return everywhere(part(place.block, grid, axis));
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
  if (operand.kind != Kind::Name && operand.kind != Kind::Address)
    return {};
  if (operand.name.empty())
    return everywhere(operand.value);
  LaneValue value;
  if (code->variables.contains(operand.name))
    value = assumed(0);
  else if (uint32_t number = code->findRegister(operand.name); number != none)
    value = code->writers[number].empty() ? special(operand.name) : registers[number];
  for (uint64_t &lane : value.lanes)
    lane = operand.negated ? lane ^ 1 : lane + operand.value; // only predicates are negated
  return value;
}

LaneValue LaneValues::loadedParameter(const CodeInstr &load) const {
  const ptx::Operand &from = load.text->operands[1];
  if (auto known = parameters.find(from.name); known != parameters.end())
    return from.value == 0 ? known->second : LaneValue(); // (of several elements the first)
  // Arrays begin, and extents passed by value are, at multiples of what matters here.
  return assumed(typeBits(load.type()) == 64 ? uint64_t(1) << 40 : 1 << 12);
}

LaneValue LaneValues::resultOf(const CodeInstr &instr) const {
  const ptx::Instruction &text = *instr.text;
  if (instr.name() == "ld" && spaceOf(instr) == "param" && text.operands.size() == 2)
    return loadedParameter(instr);
  // What all lanes load from one place is one value, as is where a dynamic slice begins.
  if (instr.name() == "ld" && text.operands.size() == 2 && !isFloat(instr.type()) &&
      isUniform(valueOf(text.operands[1])))
    return assumed(0);
  if (text.operands.size() < 2 || text.operands[0].kind != ptx::Operand::Kind::Name || instr.name() == "ld")
    return {};
  std::array<LaneValue, 3> of;
  for (size_t i = 1; i < std::min<size_t>(text.operands.size(), 4); ++i)
    of[i - 1] = valueOf(text.operands[i]);
  // Where nobody knows which of two places, as when a sorted run is halved, the first.
  if (instr.name() == "selp" && !of[2].isKnown && of[1].isKnown) {
    of[0].isAssumed = true;
    return of[0];
  }
  for (size_t i = 1; i < std::min<size_t>(text.operands.size(), 4); ++i)
    if (!of[i - 1].isKnown)
      return {};
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
  const std::optional<Operation> operation = operationOf(instr);
  if (!bits || !operation || isFloat(instr.type()))
    return {};
  const unsigned bitsOfResult = operation == Operation::Compare ? 1 : instr.has("wide") ? 2 * bits : bits;
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    auto value = evaluate(*operation, instr, bits, of[0].lanes[lane], of[1].lanes[lane], of[2].lanes[lane]);
    if (!value)
      return {};
    result.lanes[lane] = masked(*value, bitsOfResult);
  }
  result.isKnown = true;
  return result;
}

void LaneValues::execute(const CodeInstr &instr) {
  const std::vector<ptx::Operand> &operands = instr.text->operands;
  if (instr.name() == "st" && spaceOf(instr) == "param" && operands.size() == 2 && operands[0].value == 0)
    setParameter(operands[0].name, valueOf(operands[1]));
  if (instr.results.empty())
    return;
  // (A guard of which nothing is known is taken to hold.)
  const LaneMask writes = guarded(instr).value_or(active);
  LaneValue result = resultOf(instr);
  for (uint32_t number : instr.results) {
    LaneValue &known = registers[number];
    LaneValue value = number == instr.results.front() ? result : LaneValue();
    if (writes != allLanes() && known.isWritten) { // the other lanes keep theirs
      value.isKnown &= known.isKnown;
      value.isAssumed |= known.isAssumed;
      for (unsigned lane = 0; lane < warpLanes; ++lane)
        if (!(writes >> lane & 1))
          value.lanes[lane] = known.lanes[lane];
    }
    value.isWritten = true;
    known = std::move(value);
  }
}

unsigned LaneValues::sectorsOf(const CodeInstr &access) const {
  constexpr uint64_t sectorBytes = 32;
  const unsigned bytes = std::max(1u, bytesOf(access)), each = (bytes + sectorBytes - 1) / sectorBytes;
  const ptx::Instruction &text = *access.text;
  const ptx::Operand *address = nullptr;
  for (const ptx::Operand &operand : text.operands)
    if (operand.kind == ptx::Operand::Kind::Address && (!address || isAsyncCopy(access)))
      address = &operand; // the second one of a copy
  const LaneValue value = address ? valueOf(*address) : LaneValue();
  const LaneMask lanes = guarded(access).value_or(active);
  if (!value.isKnown)
    return unsigned(llvm::popcount(lanes)) * each;
  llvm::SmallVector<uint64_t, 64> sectors;
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    for (uint64_t sector = value.lanes[lane] / sectorBytes;
         (lanes >> lane & 1) && sector <= (value.lanes[lane] + bytes - 1) / sectorBytes; ++sector)
      sectors.push_back(sector);
  llvm::sort(sectors);
  return unsigned(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

} // namespace hloc::lint
