#include "passes/GlobalUpdates.h"

#include "passes/PassDetail.h"

using namespace mlir;
using namespace hloc;

namespace {

constexpr unsigned globalAddressSpace = 1;

/// The constraint of a register that holds a value of the type.
char registerOf(Type type) {
  if (type.isF32())
    return 'f';
  if (type.isF64())
    return 'd';
  unsigned bits = isa<LLVM::LLVMPointerType>(type) ? 64 : type.getIntOrFloatBitWidth();
  return bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
}

StringRef pairName(Type type) { return type.isF16() ? "f16x2" : "bf16x2"; }

} // namespace

std::string hloc::reductionName(LLVM::AtomicBinOp kind, Type type) {
  using Kind = LLVM::AtomicBinOp;
  unsigned bits = type.getIntOrFloatBitWidth();
  if (kind == Kind::fadd)
    return type.isF32() ? "add.f32" : type.isF64() ? "add.f64" : "";
  if (!isa<IntegerType>(type) || (bits != 32 && bits != 64))
    return "";
  auto named = [&](const char *operation, const char *kindOfBits) {
    return (Twine(operation) + "." + kindOfBits + Twine(bits)).str();
  };
  switch (kind) {
  case Kind::add:
    return named("add", "u");
  case Kind::_and:
    return named("and", "b");
  case Kind::_or:
    return named("or", "b");
  case Kind::_xor:
    return named("xor", "b");
  case Kind::max:
    return named("max", "s");
  case Kind::min:
    return named("min", "s");
  case Kind::umax:
    return named("max", "u");
  case Kind::umin:
    return named("min", "u");
  default:
    return "";
  }
}

GlobalUpdates::GlobalUpdates(Value pointer, MemoryBuilder &memory, OpBuilder &builder, Location loc,
                             int64_t computeCapability)
    : memory(memory), builder(builder), loc(loc), computeCapability(computeCapability),
      pointer(LLVM::AddrSpaceCastOp::create(
          builder, loc, LLVM::LLVMPointerType::get(builder.getContext(), globalAddressSpace), pointer)) {}

void GlobalUpdates::reduce(const Twine &operation, Value index, Type element, ArrayRef<Value> operands) {
  emit(("red.relaxed.gpu.global." + operation).str(), memory.address(pointer, index, element), operands);
}

bool GlobalUpdates::reduceOne(LLVM::AtomicBinOp kind, Value index, Value operand) {
  std::string name = reductionName(kind, operand.getType());
  if (name.empty())
    return false;
  reduce(name, index, operand.getType(), operand);
  return true;
}

void GlobalUpdates::addHalf(Value index, Value operand) {
  Type type = operand.getType(), i16 = builder.getI16Type(), i32 = builder.getI32Type();
  auto [word, shift] = memory.packedWord(pointer, index, ElementStorage(type));
  // -0 in both halves; the operand's is exchanged for it.
  constexpr int64_t sign = 0x8000, signs = 0x80008000;
  Value bits = arith::BitcastOp::create(builder, loc, i16, operand);
  Value flipped = arith::XOrIOp::create(builder, loc, bits, arith::ConstantIntOp::create(builder, loc, i16, sign));
  Value wide = arith::ExtUIOp::create(builder, loc, i32, flipped);
  Value placed = arith::ShLIOp::create(builder, loc, wide, shift);
  Value pair = arith::XOrIOp::create(builder, loc, placed, arith::ConstantIntOp::create(builder, loc, i32, signs));
  emit(("red.relaxed.gpu.global.add.noftz." + pairName(type)).str(), word, pair);
}

void GlobalUpdates::updateBits(LLVM::AtomicBinOp kind, Value index, Value operand, const ElementStorage &storage) {
  Type i32 = builder.getI32Type();
  auto inverted = [&](Value value) -> Value {
    return arith::XOrIOp::create(builder, loc, value, arith::ConstantIntOp::create(builder, loc, value.getType(), -1));
  };
  auto [word, shift] = memory.packedWord(pointer, index, storage);
  const bool isAnd = kind == LLVM::AtomicBinOp::_and; // ones elsewhere
  Value wide = arith::ExtUIOp::create(builder, loc, i32, isAnd ? inverted(operand) : operand);
  Value placed = arith::ShLIOp::create(builder, loc, wide, shift);
  emit("red.relaxed.gpu.global." + reductionName(kind, i32), word, isAnd ? inverted(placed) : placed);
}

void GlobalUpdates::addVector(Value index, ArrayRef<Value> operands) {
  Type type = operands.front().getType();
  if (operands.size() == 1) {
    if (!reduceOne(LLVM::AtomicBinOp::fadd, index, operands.front()))
      addHalf(index, operands.front());
    return;
  }
  if (type.isF32())
    return reduce("add.v" + Twine(operands.size()) + ".f32", index, type, operands);
  SmallVector<Value> words = asWords(operands, 32);
  std::string vector = words.size() == 1 ? "" : "v" + std::to_string(words.size()) + ".";
  reduce("add.noftz." + Twine(vector) + pairName(type), index, type, words);
}

void GlobalUpdates::store(Value index, ArrayRef<Value> elements) {
  ElementStorage storage(elements.front().getType());
  SmallVector<Value> stored;
  for (Value element : elements)
    stored.push_back(memory.toMemory(element, storage));
  Value address = memory.address(pointer, index, storage.memory);
  unsigned bits = unsigned(elements.size()) * storage.bits;
  SmallVector<Value> words = asWords(stored, std::min(bits, storage.bits == 64 ? 64u : 32u));
  std::string width = std::to_string(words.front().getType().getIntOrFloatBitWidth());
  std::string vector = words.size() == 1 ? "" : "v" + std::to_string(words.size()) + ".";
  if (width == "8") // there are no registers of that size
    words.front() = arith::ExtUIOp::create(builder, loc, builder.getI16Type(), words.front());
  emit("st.relaxed.gpu.global." + vector + "b" + width, address, words);
}

SmallVector<Value> GlobalUpdates::asWords(ArrayRef<Value> elements, unsigned wordBits) {
  Type element = elements.front().getType(), word = builder.getIntegerType(wordBits);
  bool isPair = isa<VectorType>(element); // a complex number
  int64_t perElement = isPair ? 2 : 1;
  Type part = isPair ? cast<VectorType>(element).getElementType() : element;
  int64_t bits = int64_t(elements.size()) * perElement * part.getIntOrFloatBitWidth();
  auto from = VectorType::get({int64_t(elements.size()) * perElement}, part);
  auto to = VectorType::get({bits / wordBits}, word);
  Value whole = isPair ? elements.front() : vector::FromElementsOp::create(builder, loc, from, elements).getResult();
  Value cast = vector::BitCastOp::create(builder, loc, to, whole);
  SmallVector<Value> words;
  for (int64_t i = 0; i < to.getNumElements(); ++i)
    words.push_back(vector::ExtractOp::create(builder, loc, cast, i));
  return words;
}

void GlobalUpdates::emit(const std::string &instruction, Value address, ArrayRef<Value> operands) {
  SmallVector<Value> all = {address};
  std::string list, constraints = "l";
  for (auto [i, operand] : llvm::enumerate(operands)) {
    all.push_back(operand);
    list += (i ? ", $" : "$") + std::to_string(i + 1);
    constraints += std::string(",") + registerOf(operand.getType());
  }
  if (operands.size() > 1)
    list = "{" + list + "}";
  LLVM::InlineAsmOp::create(builder, loc, TypeRange(), all, instruction + " [$0], " + list + ";",
                            constraints + ",~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}
