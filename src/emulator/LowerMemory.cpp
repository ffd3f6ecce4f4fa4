// Instructions that the machine executes: memory, barriers, everything across lanes. Operands and results travel as
// arrays in the caller's frame.
#include "WarpCode.h"

#include "llvm/IR/Constants.h"

namespace hloc::emulator {

using namespace llvm;

llvm::Value *WarpCode::address(const Source &source) {
  if (source.kind == Source::Kind::Constant)
    return constantOf(source, 64);
  Source base = source;
  base.value = 0;
  // Addresses held in 32 bits wrap there: a table in local memory may be indexed from before its first element.
  bool isNarrow = source.kind == Source::Kind::Register && widthOf(source.slot) == 32;
  unsigned bits = isNarrow ? 32 : 64;
  Value *value = read(base, bits);
  if (source.value)
    value = ir.CreateAdd(value, offsetOf(source, bits));
  return resize(value, 64, false);
}

/// Kernel parameters are the same for all lanes and lie in an image whose layout is known.
bool WarpCode::lowerParameterLoad(const Decoded &d) {
  const Source &from = d.operands[1];
  unsigned bytes = d.type.bytes();
  if (from.value + uint64_t(bytes) * d.count > kernel.paramBytes)
    return false;
  Value *field = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), warp, offsetof(WarpContext, parameters));
  Value *image = ir.CreateLoad(PointerType::get(context, 0), field);
  for (unsigned i = 0; i < d.count; ++i) {
    const Source &to = d.operands[0].kind == Source::Kind::Vector ? d.operands[0].elements[i] : d.operands[0];
    Value *at = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), image, from.value + i * bytes);
    write(to, splat(ir.CreateAlignedLoad(IntegerType::get(context, 8 * bytes), at, Align(1))), d.type.isSigned());
  }
  return true;
}

bool WarpCode::lowerMemory(const Decoded &d) {
  if (d.opcode == Opcode::Ld && d.space == Space::Param && d.operands[1].kind == Source::Kind::Constant)
    return lowerParameterLoad(d);
  unsigned bits = d.type.width(), step = d.type.bytes() * warpLanes;
  Value *active = activeMask(d);
  Value *addresses = scratch(ir.getInt64Ty(), warpLanes);
  bool isAtomic = d.opcode == Opcode::Atom, isRed = d.opcode == Opcode::Red;
  unsigned at = d.opcode == Opcode::Ld || isAtomic ? 1 : 0;
  ir.CreateAlignedStore(address(d.operands[at]), addresses, Align(64));
  auto element = [&](const Source &source, unsigned i) -> const Source & {
    return source.kind == Source::Kind::Vector ? source.elements[i] : source;
  };
  auto part = [&](Value *memory, unsigned i) {
    return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), memory, i * step);
  };
  auto pass = [&](const Source &source) {
    Value *memory = scratch(IntegerType::get(context, bits), uint64_t(warpLanes) * d.count);
    for (unsigned i = 0; i < d.count; ++i)
      ir.CreateAlignedStore(read(element(source, i), bits), part(memory, i), Align(32));
    return memory;
  };
  auto take = [&](Value *memory) {
    for (unsigned i = 0; i < d.count; ++i) {
      Value *value = ir.CreateAlignedLoad(intLanes(bits), part(memory, i), Align(32));
      write(element(d.operands[0], i), value, d.type.isSigned());
    }
  };
  Value *null = ConstantPointerNull::get(PointerType::get(context, 0));
  if (d.opcode == Opcode::St) {
    call((const void *)machine.store, ir.getVoidTy(), {warp, pointerTo(d), active, addresses, pass(d.operands[1])});
    return true;
  }
  Value *out = isRed ? null : scratch(IntegerType::get(context, bits), uint64_t(warpLanes) * d.count);
  if (d.opcode == Opcode::Ld) {
    call((const void *)machine.load, ir.getVoidTy(), {warp, pointerTo(d), active, addresses, out});
  } else {
    Value *b = pass(d.operands[at + 1]);
    Value *c = d.operands.size() > at + 2 ? pass(d.operands[at + 2]) : null;
    call((const void *)machine.atomic, ir.getVoidTy(), {warp, pointerTo(d), active, addresses, b, c, out});
  }
  if (!isRed)
    take(out);
  return true;
}

bool WarpCode::lowerBarrier(const Decoded &d) {
  Value *active = activeMask(d);
  if (d.mode == Mode::All) {
    Value *members = scratch(ir.getInt32Ty(), warpLanes);
    ir.CreateAlignedStore(read(d.operands[0], 32), members, Align(64));
    call((const void *)machine.warpSync, ir.getVoidTy(), {warp, pointerTo(d), active, members});
    return true;
  }
  bool reduces = d.mode == Mode::And || d.mode == Mode::Or || d.mode == Mode::Popc;
  unsigned at = reduces ? 1 : 0;
  auto scalar = [&](unsigned i) -> Value * {
    return i < d.operands.size() ? ir.CreateExtractElement(read(d.operands[i], 32), uint64_t(0)) : ir.getInt32(0);
  };
  Value *predicate = ir.getInt32(0);
  if (reduces)
    predicate = ir.CreateAnd(active, toBits(readPredicate(d.operands[at + 2])));
  Value *result = call((const void *)machine.barrier, ir.getInt32Ty(),
                       {warp, pointerTo(d), active, scalar(at), scalar(at + 1), predicate});
  if (!reduces)
    return true;
  if (d.mode == Mode::Popc)
    write(d.operands[0], splat(result));
  else
    write(d.operands[0], splat(ir.CreateICmpNE(result, ir.getInt32(0))));
  return true;
}

bool WarpCode::lowerCollective(const Decoded &d) {
  Value *active = activeMask(d);
  auto flatten = [](const Source &source) {
    SmallVector<const Source *, 8> parts;
    if (source.kind != Source::Kind::Vector)
      parts.push_back(&source);
    for (const Source &element : source.elements)
      parts.push_back(&element);
    return parts;
  };
  // Predicates travel as 32-bit zeros and ones.
  auto bitsOf = [&](const Source &source) {
    unsigned bits = source.kind == Source::Kind::Register ? slotBits[source.slot] : source.bits;
    return bits == 1 ? 32u : bits ? bits : d.type.width() ? d.type.width() : 32u;
  };
  auto isPredicate = [&](const Source &s) { return s.kind == Source::Kind::Register && slotBits[s.slot] == 1; };
  auto part = [&](Value *memory, uint64_t bytes) {
    return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), memory, bytes);
  };
  auto pointers = [&](ArrayRef<Value *> items) {
    Value *array = scratch(PointerType::get(context, 0), std::max<size_t>(1, items.size()));
    for (size_t i = 0; i < items.size(); ++i)
      ir.CreateAlignedStore(items[i], part(array, 8 * i), Align(8));
    return array;
  };
  auto frame = [&](const Source &operand) {
    uint64_t bytes = 0;
    for (const Source *s : flatten(operand))
      bytes += warpLanes * bitsOf(*s) / 8;
    return scratch(ir.getInt8Ty(), std::max<uint64_t>(bytes, 64));
  };
  SmallVector<Value *, 4> inputs, outputs;
  for (size_t i = d.results; i < d.operands.size(); ++i) {
    Value *memory = frame(d.operands[i]);
    uint64_t offset = 0;
    for (const Source *s : flatten(d.operands[i])) {
      unsigned bits = bitsOf(*s);
      Value *value;
      if (isPredicate(*s))
        value = ir.CreateZExt(readPredicate(*s), intLanes(32));
      else
        value = s->value && s->kind == Source::Kind::Register // an offset: it is an address
                    ? resize(address(*s), bits, false)
                    : read(*s, bits);
      ir.CreateAlignedStore(value, part(memory, offset), Align(4));
      offset += warpLanes * bits / 8;
    }
    inputs.push_back(memory);
  }
  for (size_t i = 0; i < d.results; ++i)
    outputs.push_back(frame(d.operands[i]));
  call((const void *)machine.collective, ir.getVoidTy(),
       {warp, pointerTo(d), active, pointers(inputs), pointers(outputs)});
  for (size_t i = 0; i < d.results; ++i) {
    uint64_t offset = 0;
    for (const Source *s : flatten(d.operands[i])) {
      unsigned bits = bitsOf(*s);
      Value *value = ir.CreateAlignedLoad(intLanes(bits), part(outputs[i], offset), Align(4));
      write(*s, isPredicate(*s) ? ir.CreateICmpNE(value, splatInt(32, 0)) : value);
      offset += warpLanes * bits / 8;
    }
  }
  return true;
}

} // namespace hloc::emulator
