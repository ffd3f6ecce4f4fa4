// Instructions as host functions. Most kernels run few warps, and to make good code for each of their instructions
// takes many times longer than to run it. Then a kernel's own function holds calls and control flow only, which the
// host's compiler takes in at once; all instructions of a kind share one function, which is made as the other
// translation makes its code (Lower*.cpp).
//
//   add.f32 %f3, %f1, %f2;    op(warp, frame, lanes, {at, offset of %f3, offset of %f1, offset of %f2})
//
//   frame    the warp's registers
//   lanes    those that execute it: the block's mask and the guard
//   at       its Decoded, for what the machine is called for
//
// After the offsets come constants that instructions of a kind need not share. What they share is the Operation, the
// kinds and widths of operands, and which of them are one register.
#include "WarpCode.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc::emulator {

using namespace llvm;

/// Whether constant operands are read as registers are, by nothing but read(). Others make code of their own: shifts,
/// permutations and divisions by constants.
static bool readsConstants(const Decoded &d) {
  switch (d.opcode) {
  case Opcode::Add:
  case Opcode::And:
  case Opcode::Fma:
  case Opcode::Mad:
  case Opcode::Max:
  case Opcode::Min:
  case Opcode::Mov:
  case Opcode::Mul:
  case Opcode::Or:
  case Opcode::Selp:
  case Opcode::Setp:
  case Opcode::Sub:
  case Opcode::Xor:
    return true;
  default:
    return false;
  }
}

WarpCode::Shape WarpCode::shapeOf(const Decoded &d) const {
  Shape shape;
  shape.instruction = d;
  shape.instruction.guard = {};
  raw_string_ostream key(shape.key);
  key << unsigned(d.opcode) << '.' << unsigned(d.mode) << '.' << unsigned(d.type.kind) << unsigned(d.type.bits);
  SmallDenseMap<uint32_t, uint32_t> numbers;
  const bool takesConstants = readsConstants(d);
  auto number = [&](auto &number, Source &source) -> void {
    key << ' ' << unsigned(source.kind) << (source.negated ? "!" : "") << (source.address ? "@" : "")
        << unsigned(source.bits);
    switch (source.kind) {
    case Source::Kind::None:
      return;
    case Source::Kind::Special:
      shape.readsSpecials = true;
      key << '%' << unsigned(source.special);
      return;
    case Source::Kind::Constant:
      source.slot = 0;
      if (takesConstants) {
        shape.constants.push_back(source.value);
        source.slot = uint32_t(shape.constants.size());
      } else {
        key << '=' << source.value;
      }
      return;
    case Source::Kind::Register: {
      auto [entry, isNew] = numbers.try_emplace(source.slot, uint32_t(shape.registers.size()));
      if (isNew) {
        shape.registers.push_back(source.slot);
        shape.widths.push_back(slotBits[source.slot]);
      }
      source.slot = entry->second;
      key << 'r' << source.slot << ':' << shape.widths[source.slot];
      if (source.value) {
        shape.constants.push_back(source.value);
        source.value = shape.constants.size();
        key << '+';
      }
      return;
    }
    case Source::Kind::Vector:
      key << '{';
      for (Source &element : source.elements)
        number(number, element);
      key << '}';
    }
  };
  number(number, shape.instruction.carryIn);
  number(number, shape.instruction.carryOut);
  for (Source &operand : shape.instruction.operands)
    number(number, operand);
  shape.keeps.resize(unsigned(shape.registers.size()));
  shape.seen.resize(unsigned(shape.registers.size()));
  forEachDefinition(d, [&](const Source &r) {
    const uint32_t i = numbers.lookup(r.slot);
    shape.keeps[i] = isPartial(d) || live.mustKeep(currentBlock, r.slot);
    shape.seen[i] = live.bitsSeen(r.slot);
    key << " d" << i << (shape.keeps[i] ? "k" : "") << (shape.seen[i] ? "s" : "");
  });
  return shape;
}

/// Whether functions save more than they cost, which is several times an instruction's own code. In short kernels
/// hardly two instructions are of a kind.
bool WarpCode::opsPay() {
  constexpr size_t costOfOp = 2;
  StringSet<> kinds;
  for (currentBlock = 0; currentBlock < live.numBlocks(); ++currentBlock)
    for (uint32_t i = live.begin(currentBlock); i < live.end(currentBlock); ++i)
      kinds.insert(shapeOf(kernel.code[i]).key);
  return kernel.code.size() > costOfOp * kinds.size();
}

/// The function of all instructions of this shape, empty yet.
llvm::Function *WarpCode::opOf(Shape shape) {
  std::vector<size_t> &candidates = opsByKey[shape.key];
  for (size_t i : candidates)
    if (static_cast<const Operation &>(ops[i].second->instruction) == shape.instruction)
      return ops[i].first;
  candidates.push_back(ops.size());
  auto *pointer = PointerType::get(context, 0);
  auto *type = FunctionType::get(ir.getVoidTy(), {pointer, pointer, ir.getInt32Ty(), pointer}, false);
  Function *op = Function::Create(type, GlobalValue::InternalLinkage, "op" + Twine(ops.size()), module);
  ops.emplace_back(op, std::make_unique<Shape>(std::move(shape)));
  return op;
}

void WarpCode::callOp(const Decoded &d, Value *active) {
  Shape shape = shapeOf(d);
  uint64_t *record = records.Allocate<uint64_t>(1 + shape.registers.size() + shape.constants.size()), *next = record;
  *next++ = reinterpret_cast<uintptr_t>(&d);
  for (uint32_t slot : shape.registers)
    *next++ = frameOffsets[slot];
  llvm::copy(shape.constants, next);
  Value *at = ir.CreateIntToPtr(ir.getInt64(reinterpret_cast<uintptr_t>(record)), PointerType::get(context, 0));
  ir.CreateCall(opOf(std::move(shape)), {warp, frame, active, at});
}

void WarpCode::buildOps() {
  for (auto &[op, its] : ops) {
    function = op;
    shape = its.get();
    warp = op->getArg(0);
    frame = op->getArg(1);
    mask = op->getArg(2);
    record = op->getArg(3);
    slotBits = shape->widths;
    values.clear();
    specials.clear();
    memoryUsed = memoryNeeded = 0;
    currentGuard = nullptr;
    ir.SetInsertPoint(BasicBlock::Create(context, "entry", function));
    memory = ir.CreateAlloca(ir.getInt8Ty(), ir.getInt64(1));
    memory->setAlignment(Align(64));
    if (shape->readsSpecials)
      rememberSpecials();
    if (!lower(shape->instruction))
      unsupported(shape->instruction);
    ir.CreateRetVoid();
    memory->setOperand(0, ir.getInt64(std::max<uint64_t>(memoryNeeded, 1)));
  }
  shape = nullptr;
}

llvm::Value *WarpCode::recordWord(size_t index) {
  return ir.CreateLoad(ir.getInt64Ty(), ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), record, index));
}

llvm::Value *WarpCode::constantOf(const Source &source, unsigned bits) {
  if (shape && source.slot)
    return splat(ir.CreateZExtOrTrunc(recordWord(shape->registers.size() + source.slot), ir.getIntNTy(bits)));
  return splatInt(bits, source.value);
}

llvm::Value *WarpCode::offsetOf(const Source &source, unsigned bits) {
  if (shape)
    return splat(ir.CreateZExtOrTrunc(recordWord(shape->registers.size() + source.value), ir.getIntNTy(bits)));
  return ConstantInt::get(intLanes(bits), APInt(bits, source.value, false, true));
}

llvm::Value *WarpCode::slotAddress(uint32_t slot) {
  if (shape)
    return ir.CreateInBoundsGEP(ir.getInt8Ty(), frame, recordWord(1 + slot));
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), frame, frameOffsets[slot]);
}

bool WarpCode::mustKeep(uint32_t slot) const { return shape ? shape->keeps[slot] : live.mustKeep(currentBlock, slot); }
bool WarpCode::bitsSeen(uint32_t slot) const { return shape ? shape->seen[slot] : live.bitsSeen(slot); }
bool WarpCode::hasSlot(uint32_t slot) const { return shape || slots[slot] || frameOffsets[slot]; }

} // namespace hloc::emulator
