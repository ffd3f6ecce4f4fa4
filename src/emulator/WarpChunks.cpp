// The host functions of one kernel: a single one, or chunks and the driver that calls them; their frames.
#include "WarpCode.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

#include <cstddef>

namespace hloc::emulator {

using namespace llvm;

static_assert(std::is_standard_layout_v<WarpContext>);

WarpCode::WarpCode(llvm::Module &module, const Kernel &kernel, const MachineFunctions &machine,
                   const TranslateOptions &options, BumpPtrAllocator &records, DiagnosticEngine &diagnostics)
    : context(module.getContext()), module(module), kernel(kernel), machine(machine), options(options),
      records(records), diagnostics(diagnostics), live(kernel, options.rotates), ir(context) {}

bool WarpCode::build(llvm::StringRef name) {
  slotBits.assign(kernel.registers, 1);
  auto width = [&](const Source &r) { slotBits[r.slot] = std::max<unsigned>(slotBits[r.slot], r.bits); };
  for (const Decoded &d : kernel.code) {
    forEachUse(d, width);
    forEachDefinition(d, width);
  }
  callsOps = options.quickly && (options.shared || opsPay());
  planChunks();
  frameOffsets.assign(kernel.registers, 0);
  frameBytes = alignTo(4 * (uint64_t(live.numBlocks()) + 1), 64); // pending masks
  if (callsOps)
    planFrameOfOps();
  else if (isChunked())
    planFrame();
  if (!isChunked()) {
    buildChunk(0, name);
    buildOps();
    return !diagnostics.hasErrors();
  }
  SmallVector<Function *, 16> functions;
  for (uint32_t c = 0; c < chunks.size() && !diagnostics.hasErrors(); ++c) {
    buildChunk(c, (name + "." + Twine(c)).str());
    functions.push_back(function);
  }
  if (!diagnostics.hasErrors())
    buildDriver(name, functions);
  buildOps();
  return !diagnostics.hasErrors();
}

void WarpCode::planChunks() {
  uint32_t blocks = live.numBlocks();
  uint32_t limit = options.chunkInstructions;
  for (uint32_t b = 0; b < blocks; ++b) {
    bool fits = !chunks.empty() && live.end(b) - live.begin(chunks.back().begin) <= limit;
    if (kernel.code.size() > 2 * size_t(limit) ? !fits : chunks.empty())
      chunks.push_back({b, b});
    chunks.back().end = b + 1;
  }
  if (chunks.empty())
    chunks.push_back({0, 0});
  for (Chunk &chunk : chunks)
    chunk.again |= options.rotates;
  for (const Decoded &d : kernel.code) {
    if (d.opcode != Opcode::Bra)
      continue;
    uint32_t from = chunkOf(live.blockOf(uint32_t(&d - kernel.code.data()))), to = chunkOf(live.blockOf(d.target));
    for (uint32_t c = to; to < from && c <= from; ++c)
      chunks[c].again = true;
  }
}

uint32_t WarpCode::chunkOf(uint32_t block) const {
  auto after = llvm::upper_bound(chunks, block, [](uint32_t b, const Chunk &chunk) { return b < chunk.begin; });
  return uint32_t(after - chunks.begin()) - 1;
}

void WarpCode::placeInFrame(uint32_t slot) {
  constexpr uint64_t alignment = 64;
  frameOffsets[slot] = frameBytes;
  frameBytes += alignTo(std::max(1u, slotBits[slot] / 8) * warpLanes, alignment);
}

/// Every register that instructions of these blocks name.
void WarpCode::forEachRegisterOf(uint32_t firstBlock, uint32_t endBlock, function_ref<void(uint32_t)> visit) const {
  auto name = [&](const Source &r) { visit(r.slot); };
  for (uint32_t i = live.begin(firstBlock); i < live.end(endBlock - 1); ++i) {
    forEachUse(kernel.code[i], name);
    forEachDefinition(kernel.code[i], name);
  }
}

/// Which registers must outlive a chunk, and where they lie.
void WarpCode::planFrame() {
  constexpr uint32_t nowhere = ~0u;
  std::vector<uint32_t> home(kernel.registers, nowhere);
  for (uint32_t c = 0; c < chunks.size(); ++c)
    forEachRegisterOf(chunks[c].begin, chunks[c].end, [&](uint32_t slot) {
      uint32_t &first = home[slot];
      if (first == nowhere)
        first = c;
      if (!frameOffsets[slot] && live.crossesBlocks(slot) && (first != c || chunks[c].again))
        placeInFrame(slot);
    });
}

/// Where all registers lie: those that only one block names, in the same bytes as those of other blocks.
void WarpCode::planFrameOfOps() {
  constexpr uint32_t nowhere = ~0u;
  std::vector<uint32_t> home(kernel.registers, nowhere);
  for (uint32_t b = 0; b < live.numBlocks(); ++b)
    forEachRegisterOf(b, b + 1, [&](uint32_t slot) {
      uint32_t &first = home[slot];
      if (first == nowhere)
        first = b;
      if (!frameOffsets[slot] && (first != b || live.crossesBlocks(slot)))
        placeInFrame(slot);
    });
  const uint64_t begin = frameBytes;
  uint64_t end = begin;
  for (uint32_t b = 0; b < live.numBlocks(); ++b) {
    frameBytes = begin;
    forEachRegisterOf(b, b + 1, [&](uint32_t slot) {
      if (!frameOffsets[slot])
        placeInFrame(slot);
    });
    end = std::max(end, frameBytes);
  }
  frameBytes = end;
}

void WarpCode::buildChunk(uint32_t index, llvm::StringRef name) {
  const Chunk &chunk = chunks[index];
  currentChunk = index;
  auto *pointer = PointerType::get(context, 0);
  FunctionType *type = isChunked() ? FunctionType::get(ir.getInt32Ty(), {pointer, pointer}, false)
                                   : FunctionType::get(ir.getVoidTy(), {pointer}, false);
  function =
      Function::Create(type, isChunked() ? GlobalValue::InternalLinkage : GlobalValue::ExternalLinkage, name, module);
  warp = function->getArg(0);
  frame = isChunked() ? function->getArg(1) : nullptr;
  prologue();
  for (uint32_t b = chunk.begin; b < chunk.end; ++b)
    buildBlock(b);
  ir.SetInsertPoint(gates[chunk.end]);
  if (options.rotates && index + 1 == chunks.size())
    returnToLoops();
  leaveFor(index + 1);
  memory->setOperand(0, ir.getInt64(std::max<uint64_t>(memoryNeeded, 1)));
}

/// At the end of the code: lanes that let others go first wait at their loops.
void WarpCode::returnToLoops() {
  Value *waiting = ir.getInt32(0);
  for (uint32_t b = 0; b < live.numBlocks(); ++b)
    if (live.isLoopHeader(b))
      waiting = ir.CreateOr(waiting, ir.CreateLoad(ir.getInt32Ty(), pendingAt(b)));
  BasicBlock *again = BasicBlock::Create(context, "again", function);
  BasicBlock *end = BasicBlock::Create(context, "end", function);
  ir.CreateCondBr(ir.CreateICmpNE(waiting, ir.getInt32(0)), again, end);
  ir.SetInsertPoint(again);
  if (isChunked())
    leaveFor(0);
  else
    ir.CreateBr(gates[0]);
  ir.SetInsertPoint(end);
}

void WarpCode::leaveFor(uint32_t chunk) {
  if (isChunked())
    ir.CreateRet(ir.getInt32(chunk));
  else
    ir.CreateRetVoid();
}

void WarpCode::prologue() {
  const Chunk &chunk = chunks[currentChunk];
  ir.SetInsertPoint(BasicBlock::Create(context, "entry", function));
  memory = ir.CreateAlloca(ir.getInt8Ty(), ir.getInt64(1)); // the size is known in the end
  memory->setAlignment(Align(64));
  memoryNeeded = 0;
  makeSlots();
  if (callsOps && !isChunked())
    makeFrame();
  gates.assign(live.numBlocks() + 1, nullptr);
  bodies.assign(live.numBlocks() + 1, nullptr);
  for (uint32_t b = chunk.begin; b <= chunk.end; ++b) {
    gates[b] = BasicBlock::Create(context, "gate" + Twine(b), function);
    if (b < chunk.end)
      bodies[b] = BasicBlock::Create(context, "block" + Twine(b), function);
  }
  if (!callsOps)
    rememberSpecials();
  if (!isChunked())
    ir.CreateStore(ir.CreateLoad(ir.getInt32Ty(), liveField()), pendingAt(0));
  ir.CreateBr(gates[chunk.begin]);
}

void WarpCode::rememberSpecials() {
  auto field = [&](size_t offset) { return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), warp, offset); };
  auto scalar = [&](size_t offset) { return splat(ir.CreateLoad(ir.getInt32Ty(), field(offset))); };
  auto remember = [&](Special special, Value *value) { specials[unsigned(special)] = value; };
  for (unsigned i = 0; i < 3; ++i) {
    remember(Special(unsigned(Special::TidX) + i),
             ir.CreateAlignedLoad(intLanes(32), field(offsetof(WarpContext, thread) + i * 4 * warpLanes), Align(4)));
    remember(Special(unsigned(Special::NtidX) + i), scalar(offsetof(WarpContext, blockSize) + 4 * i));
    remember(Special(unsigned(Special::CtaX) + i), scalar(offsetof(WarpContext, block) + 4 * i));
    remember(Special(unsigned(Special::NctaX) + i), scalar(offsetof(WarpContext, gridSize) + 4 * i));
    remember(Special(unsigned(Special::ClusterX) + i), scalar(offsetof(WarpContext, cluster) + 4 * i));
    remember(Special(unsigned(Special::NclusterX) + i), scalar(offsetof(WarpContext, gridClusters) + 4 * i));
    remember(Special(unsigned(Special::ClusterCtaX) + i), scalar(offsetof(WarpContext, blockOfCluster) + 4 * i));
    remember(Special(unsigned(Special::ClusterNctaX) + i), scalar(offsetof(WarpContext, clusterSize) + 4 * i));
  }
  remember(Special::Warp, scalar(offsetof(WarpContext, warp)));
  remember(Special::ClusterRank, scalar(offsetof(WarpContext, rank)));
  remember(Special::ClusterBlocks, scalar(offsetof(WarpContext, clusterBlocks)));
  remember(Special::ExplicitCluster, scalar(offsetof(WarpContext, explicitCluster)));
  remember(Special::NumWarps, scalar(offsetof(WarpContext, numWarps)));
  remember(Special::DynamicSharedSize, scalar(offsetof(WarpContext, dynamicShared)));
  Value *totalShared = scalar(offsetof(WarpContext, totalShared));
  remember(Special::TotalSharedSize, totalShared);
  remember(Special::AggregateSharedSize, ir.CreateAdd(totalShared, splatInt(32, reservedSharedBytes)));
}

void WarpCode::makeFrame() {
  AllocaInst *lies = ir.CreateAlloca(ir.getInt8Ty(), ir.getInt64(frameBytes));
  lies->setAlignment(Align(64));
  frame = lies;
  ir.CreateMemSet(frame, ir.getInt8(0), 4 * (uint64_t(live.numBlocks()) + 1), Align(64));
  for (uint32_t r = 0; r < kernel.registers; ++r) // others are written before any lane reads them
    if (frameOffsets[r] && live.isReadFirst(r))
      ir.CreateMemSet(slotAddress(r), ir.getInt8(0), std::max(1u, slotBits[r] / 8) * warpLanes, Align(64));
}

/// Memory that SROA turns into values again.
void WarpCode::makeSlots() {
  const Chunk &chunk = chunks[currentChunk];
  slots.assign(kernel.registers, nullptr);
  pending.clear();
  auto make = [&](const Source &r) {
    if (slots[r.slot] || frameOffsets[r.slot] || !live.crossesBlocks(r.slot))
      return;
    slots[r.slot] = ir.CreateAlloca(intLanes(slotBits[r.slot]));
    ir.CreateStore(Constant::getNullValue(intLanes(slotBits[r.slot])), slots[r.slot]);
  };
  for (uint32_t b = chunk.begin; b < chunk.end; ++b)
    for (uint32_t i = live.begin(b); i < live.end(b); ++i) {
      forEachUse(kernel.code[i], make);
      forEachDefinition(kernel.code[i], make);
    }
  for (uint32_t b = 0; b <= live.numBlocks() && !isChunked(); ++b) {
    pending.push_back(ir.CreateAlloca(ir.getInt32Ty()));
    ir.CreateStore(ir.getInt32(0), pending.back());
  }
}

llvm::Value *WarpCode::pendingAt(uint32_t block) {
  return isChunked() ? ir.CreateConstInBoundsGEP1_64(ir.getInt32Ty(), frame, block) : pending[block];
}

/// Predicates lie in the frame as masks.
llvm::Value *WarpCode::loadSlot(uint32_t slot) {
  if (!shape && slots[slot])
    return ir.CreateLoad(intLanes(slotBits[slot]), slots[slot]);
  Value *at = slotAddress(slot);
  if (slotBits[slot] == 1)
    return toLanes(ir.CreateLoad(ir.getInt32Ty(), at));
  Value *value = ir.CreateAlignedLoad(intLanes(slotBits[slot]), at, Align(32));
  // LLVM 22 miscompiles some masked AVX512 instructions of memory (Translator.cpp). What is frozen is no memory
  // operand.
  return shape ? ir.CreateFreeze(value) : value;
}

void WarpCode::storeSlot(uint32_t slot, Value *value) {
  if (!shape && slots[slot]) {
    ir.CreateStore(value, slots[slot]);
    return;
  }
  Value *at = slotAddress(slot);
  ir.CreateAlignedStore(slotBits[slot] == 1 ? toBits(value) : value, at, Align(slotBits[slot] == 1 ? 4 : 32));
}

llvm::Value *WarpCode::scratch(IrType *type, uint64_t elements) {
  constexpr uint64_t alignment = 64;
  uint64_t begin = memoryUsed;
  memoryUsed += alignTo(elements * module.getDataLayout().getTypeAllocSize(type), alignment);
  memoryNeeded = std::max(memoryNeeded, memoryUsed);
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), memory, begin);
}

/// Calls chunks until one says that there is none to go on with.
void WarpCode::buildDriver(llvm::StringRef name, ArrayRef<Function *> functions) {
  auto *type = FunctionType::get(ir.getVoidTy(), {PointerType::get(context, 0)}, false);
  function = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
  warp = function->getArg(0);
  BasicBlock *entry = BasicBlock::Create(context, "entry", function);
  BasicBlock *next = BasicBlock::Create(context, "next", function), *end = BasicBlock::Create(context, "end", function);
  ir.SetInsertPoint(entry);
  makeFrame();
  ir.CreateStore(ir.CreateLoad(ir.getInt32Ty(), liveField()), pendingAt(0));
  ir.CreateBr(next);
  ir.SetInsertPoint(next);
  PHINode *chunk = ir.CreatePHI(ir.getInt32Ty(), unsigned(functions.size()) + 1);
  chunk->addIncoming(ir.getInt32(0), entry);
  SwitchInst *go = ir.CreateSwitch(chunk, end, unsigned(functions.size()));
  for (uint32_t c = 0; c < functions.size(); ++c) {
    BasicBlock *block = BasicBlock::Create(context, "chunk" + Twine(c), function);
    go->addCase(ir.getInt32(c), block);
    ir.SetInsertPoint(block);
    chunk->addIncoming(ir.CreateCall(functions[c], {warp, frame}), block);
    ir.CreateBr(next);
  }
  ir.SetInsertPoint(end);
  ir.CreateRetVoid();
}

} // namespace hloc::emulator
