// Blocks, masks, registers of one warp.
#include "WarpCode.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

#include <cstddef>

namespace hloc::emulator {

using namespace llvm;

void WarpCode::buildBlock(uint32_t block) {
  currentBlock = block;
  values.clear();
  ir.SetInsertPoint(gates[block]);
  if (live.isLoopHeader(block)) { // else values nobody reads would be carried around the loop
    BitVector dead = live.deadAt(block);
    for (unsigned slot : dead.set_bits())
      if (slots[slot])
        ir.CreateStore(Constant::getNullValue(intLanes(slotBits[slot])), slots[slot]);
  }
  Value *waiting = ir.CreateLoad(ir.getInt32Ty(), pendingAt(block));
  ir.CreateCondBr(ir.CreateICmpNE(waiting, ir.getInt32(0)), bodies[block], gates[block + 1]);
  ir.SetInsertPoint(bodies[block]);
  mask = waiting;
  ir.CreateStore(ir.getInt32(0), pendingAt(block));
  for (uint32_t i = live.begin(block); i < live.end(block); ++i) {
    const Decoded &d = kernel.code[i];
    currentGuard = nullptr;
    memoryUsed = 0;
    Value *active = activeMask(d);
    if (isPartial(d) && !callsOps)
      currentGuard = toLanes(active);
    countInstruction(d, active);
    if (d.watched && d.opcode != Opcode::Wgmma)
      call((const void *)machine.touch, ir.getVoidTy(), {warp, pointerTo(d), active});
    switch (d.opcode) {
    case Opcode::Bra:
      return branch(d, block);
    case Opcode::Trap:
      call((const void *)machine.trap, ir.getVoidTy(), {warp, pointerTo(d), active});
      [[fallthrough]];
    case Opcode::Exit:
    case Opcode::Ret:
      exitLanes(active);
      if (isPartial(d))
        leaveTo(block + 1, ir.CreateAnd(mask, ir.CreateNot(active)));
      ir.CreateBr(gates[block + 1]);
      return;
    default:
      if (callsOps)
        callOp(d, active);
      else if (!lower(d))
        unsupported(d);
    }
  }
  leaveTo(block + 1, mask);
  ir.CreateBr(gates[block + 1]);
}

void WarpCode::unsupported(const Decoded &d) {
  SourceRange range;
  if (diagnostics.file()) {
    range.begin = diagnostics.file()->offsetOf({d.line, 1});
    range.end = range.begin + uint32_t(diagnostics.file()->lineAt(range.begin).size());
  }
  diagnostics.report(DiagnosticKind::UnsupportedFeature, range,
                     "instruction `" + kernel.forms[d.form] + "` is not supported (PTX line " + std::to_string(d.line) +
                         ")");
}

/// Lanes that leave to the end of the code have exited.
void WarpCode::leaveTo(uint32_t target, Value *lanes) {
  if (target == live.numBlocks())
    return exitLanes(lanes);
  Value *waiting = pendingAt(target);
  ir.CreateStore(ir.CreateOr(ir.CreateLoad(ir.getInt32Ty(), waiting), lanes), waiting);
}

void WarpCode::branch(const Decoded &d, uint32_t block) {
  uint32_t target = live.blockOf(d.target);
  Value *taken = activeMask(d);
  if (options.count && isPartial(d))
    call((const void *)machine.branch, ir.getVoidTy(), {warp, pointerTo(d), mask, taken});
  if (isPartial(d))
    leaveTo(block + 1, ir.CreateAnd(mask, ir.CreateNot(taken)));
  leaveTo(target, taken);
  if (target > block) {
    ir.CreateBr(gates[block + 1]);
    return;
  }
  BasicBlock *jump = BasicBlock::Create(context, "back", function);
  ir.CreateCondBr(ir.CreateICmpNE(taken, ir.getInt32(0)), jump, gates[block + 1]);
  BasicBlock *goOn = gates[target];
  if (uint32_t chunk = chunkOf(target); chunk != currentChunk) {
    goOn = BasicBlock::Create(context, "leave", function);
    ir.SetInsertPoint(goOn);
    leaveFor(chunk);
  }
  ir.SetInsertPoint(jump);
  callTick(d, goOn);
}

void WarpCode::callTick(const Decoded &d, BasicBlock *goOn) {
  Value *field = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), warp, offsetof(WarpContext, budget));
  Value *left = ir.CreateSub(ir.CreateLoad(ir.getInt64Ty(), field), ir.getInt64(1));
  ir.CreateStore(left, field);
  BasicBlock *spent = BasicBlock::Create(context, "spent", function);
  BasicBlock *stop = BasicBlock::Create(context, "stop", function);
  ir.CreateCondBr(ir.CreateICmpSLT(left, ir.getInt64(0)), spent, goOn);
  ir.SetInsertPoint(spent);
  Value *what = call((const void *)machine.tick, ir.getInt8Ty(), {warp, pointerTo(d)});
  SwitchInst *choice = ir.CreateSwitch(what, goOn, 2);
  choice->addCase(ir.getInt8(uint8_t(Tick::Stop)), stop);
  if (options.rotates)
    choice->addCase(ir.getInt8(uint8_t(Tick::Rotate)), gates[currentBlock + 1]);
  ir.SetInsertPoint(stop);
  leaveFor(uint32_t(chunks.size()));
}

llvm::Value *WarpCode::liveField() {
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), warp, offsetof(WarpContext, live));
}

void WarpCode::exitLanes(Value *leaving) {
  Value *field = liveField(), *lanes = ir.CreateLoad(ir.getInt32Ty(), field);
  ir.CreateStore(ir.CreateAnd(lanes, ir.CreateNot(leaving)), field);
}

void WarpCode::countInstruction(const Decoded &d, Value *active) {
  if (!options.count)
    return;
  Value *field = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), warp, offsetof(WarpContext, instructionCounts));
  Value *counts = ir.CreateLoad(PointerType::get(context, 0), field);
  auto add = [&](unsigned index, Value *amount) {
    Value *at = ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), counts, index);
    ir.CreateStore(ir.CreateAdd(ir.CreateLoad(ir.getInt64Ty(), at), amount), at);
  };
  const auto index = unsigned(2 * (&d - kernel.code.data()));
  add(index, ir.CreateZExt(ir.CreateICmpNE(active, ir.getInt32(0)), ir.getInt64Ty()));
  add(index + 1, ir.CreateZExt(ir.CreateUnaryIntrinsic(Intrinsic::ctpop, active), ir.getInt64Ty()));
}

// Values.

llvm::Type *WarpCode::lanes(IrType *element) const { return FixedVectorType::get(element, warpLanes); }
llvm::Type *WarpCode::intLanes(unsigned bits) const { return lanes(IntegerType::get(context, bits)); }
llvm::Value *WarpCode::splat(Value *scalar) { return ir.CreateVectorSplat(warpLanes, scalar); }
llvm::Value *WarpCode::splatInt(unsigned bits, uint64_t value) {
  return ConstantInt::get(intLanes(bits), APInt(64, value).zextOrTrunc(bits));
}

llvm::Value *WarpCode::resize(Value *value, unsigned bits, bool isSigned) {
  return isSigned ? ir.CreateSExtOrTrunc(value, intLanes(bits)) : ir.CreateZExtOrTrunc(value, intLanes(bits));
}

llvm::Value *WarpCode::read(const Source &source, unsigned bits) {
  switch (source.kind) {
  case Source::Kind::None:
    return splatInt(bits, 0);
  case Source::Kind::Constant:
    return constantOf(source, bits);
  case Source::Kind::Special:
    return resize(readSpecial(source.special), bits, false);
  case Source::Kind::Register: {
    Value *value = readRegister(source.slot);
    if (source.negated)
      value = ir.CreateNot(value);
    return resize(value, bits, false);
  }
  case Source::Kind::Vector: { // {low, ..., high}
    unsigned part = bits / unsigned(source.elements.size());
    Value *whole = splatInt(bits, 0);
    for (size_t i = 0; i < source.elements.size(); ++i) {
      Value *element = resize(read(source.elements[i], part), bits, false);
      whole = ir.CreateOr(whole, ir.CreateShl(element, splatInt(bits, i * part)));
    }
    return whole;
  }
  }
  return nullptr;
}

/// Within a block values pass from instruction to instruction, between blocks through memory that SROA removes.
llvm::Value *WarpCode::readRegister(uint32_t slot) {
  Value *&value = values[slot];
  if (!value) // what was never written is zero
    value = hasSlot(slot) ? loadSlot(slot) : cast<Value>(Constant::getNullValue(intLanes(slotBits[slot])));
  return value;
}

llvm::Value *WarpCode::readPredicate(const Source &source) {
  if (source.kind == Source::Kind::Constant)
    return shape && source.slot
               ? ir.CreateXor(ir.CreateICmpNE(constantOf(source, 64), splatInt(64, 0)), splatInt(1, source.negated))
               : splatInt(1, (source.value != 0) != source.negated);
  return read(source, 1);
}

llvm::Value *WarpCode::readSpecial(Special special) {
  if (Value *known = specials.lookup(unsigned(special)))
    return known;
  auto perLane = [&](llvm::function_ref<uint32_t(unsigned)> value) {
    SmallVector<uint32_t, warpLanes> values;
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      values.push_back(value(lane));
    return ConstantDataVector::get(context, values);
  };
  switch (special) {
  case Special::Lane:
    return perLane([](unsigned lane) { return lane; });
  case Special::LaneMaskEq:
    return perLane([](unsigned lane) { return 1u << lane; });
  case Special::LaneMaskLe:
    return perLane([](unsigned lane) { return (2u << lane) - 1; });
  case Special::LaneMaskLt:
    return perLane([](unsigned lane) { return (1u << lane) - 1; });
  case Special::LaneMaskGe:
    return perLane([](unsigned lane) { return ~((1u << lane) - 1); });
  case Special::LaneMaskGt:
    return perLane([](unsigned lane) { return ~((2u << lane) - 1); });
  case Special::ClockHigh:
  case Special::GlobalTimerHigh:
    return ir.CreateLShr(readSpecial(Special::Clock64), splatInt(64, 32));
  case Special::Clock:
  case Special::Clock64:
  case Special::GlobalTimer:
  case Special::GlobalTimerLow:
    return splat(ir.CreateIntrinsic(Intrinsic::readcyclecounter, {}));
  default:
    return splatInt(32, 0);
  }
}

void WarpCode::write(const Source &destination, Value *value, bool isSigned) {
  if (destination.kind == Source::Kind::Vector) { // {low, ..., high}
    unsigned bits = value->getType()->getScalarSizeInBits(), part = bits / unsigned(destination.elements.size());
    for (size_t i = 0; i < destination.elements.size(); ++i)
      write(destination.elements[i], resize(ir.CreateLShr(value, splatInt(bits, i * part)), part, false));
    return;
  }
  if (destination.kind != Source::Kind::Register)
    return;
  uint32_t slot = destination.slot;
  value = resize(value, slotBits[slot], isSigned);
  if (currentGuard || mustKeep(slot))
    value = ir.CreateSelect(currentGuard ? currentGuard : toLanes(mask), value, readRegister(slot));
  values[slot] = value;
  if (shape || live.isReadAfter(currentBlock, slot))
    storeSlot(slot, value);
}

void WarpCode::writePredicate(const Source &destination, Value *value) { write(destination, value); }

llvm::Value *WarpCode::activeMask(const Decoded &d) {
  if (!isPartial(d))
    return mask;
  return ir.CreateAnd(mask, predicateBits(d.guard));
}

llvm::Value *WarpCode::predicateBits(const Source &source) {
  if (!callsOps || shape || source.kind != Source::Kind::Register)
    return toBits(readPredicate(source));
  Value *bits = ir.CreateLoad(ir.getInt32Ty(), slotAddress(source.slot)); // no vectors outside of ops
  return source.negated ? ir.CreateNot(bits) : bits;
}

llvm::Value *WarpCode::toBits(Value *predicate) { return ir.CreateBitCast(predicate, ir.getInt32Ty()); }
llvm::Value *WarpCode::toLanes(Value *bits) { return ir.CreateBitCast(bits, intLanes(1)); }

llvm::Value *WarpCode::call(const void *target, IrType *result, ArrayRef<Value *> arguments) {
  SmallVector<IrType *, 8> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  auto *type = FunctionType::get(result, types, false);
  Value *callee = ir.CreateIntToPtr(ir.getInt64(reinterpret_cast<uintptr_t>(target)), PointerType::get(context, 0));
  return ir.CreateCall(type, callee, arguments);
}

llvm::Value *WarpCode::pointerTo(const Decoded &d) {
  auto *pointer = PointerType::get(context, 0);
  return ir.CreateIntToPtr(shape ? recordWord(0) : ir.getInt64(reinterpret_cast<uintptr_t>(&d)), pointer);
}

} // namespace hloc::emulator
