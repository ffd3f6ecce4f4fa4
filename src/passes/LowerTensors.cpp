// Tensors as handles to pointers. Every tensor value is the buffer it came from: an insert returns its destination, a
// loop its initial value. So one walk in program order replaces values by pointers and accesses by loads and stores,
// and structured control flow loses the operands and results that only threaded tensors.
#include "passes/PassDetail.h"

#include "hloc/dialect/TensorLayout.h"
#include "passes/LowerAtomic.h"
#include "passes/LowerProducts.h"
#include "passes/TensorMemory.h"

#include "fmt/format.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace hloc {
#define GEN_PASS_DEF_LOWERTENSORS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr unsigned globalAddressSpace = 1, sharedAddressSpace = 3;
/// Shared and constant arrays start where the widest access may.
constexpr uint64_t arrayAlignment = 16;

bool isPointer(Type type) { return isa<LLVM::LLVMPointerType>(type); }
bool isTensor(Type type) { return isa<RankedTensorType>(type); }

/// The array of `type` in memory: bytes for packed types.
LLVM::LLVMArrayType arrayTypeOf(RankedTensorType type) {
  ElementStorage storage(type.getElementType());
  int64_t count = type.getNumElements();
  if (storage.isPacked())
    return LLVM::LLVMArrayType::get(IntegerType::get(type.getContext(), 8),
                                    llvm::divideCeil(count, storage.elementsPerByte()));
  if (auto pair = dyn_cast<VectorType>(storage.memory))
    return LLVM::LLVMArrayType::get(pair.getElementType(), 2 * count);
  return LLVM::LLVMArrayType::get(storage.memory, count);
}

/// Raw bytes of `data`, element by element, as memory holds them.
Attribute memoryImage(DenseElementsAttr data, RankedTensorType type) {
  ElementStorage storage(type.getElementType());
  MLIRContext *context = type.getContext();
  if (isa<ComplexType>(storage.element)) {
    auto part = cast<FloatType>(cast<ComplexType>(storage.element).getElementType());
    SmallVector<Attribute> parts;
    for (std::complex<APFloat> value : data.getValues<std::complex<APFloat>>()) {
      parts.push_back(FloatAttr::get(part, value.real()));
      parts.push_back(FloatAttr::get(part, value.imag()));
    }
    return DenseElementsAttr::get(RankedTensorType::get({2 * type.getNumElements()}, part), parts);
  }
  if (storage.element == storage.memory && !storage.isPacked())
    return data;
  SmallVector<APInt> bits;
  for (Attribute value : data.getValues<Attribute>()) {
    APInt raw = isa<FloatAttr>(value) ? cast<FloatAttr>(value).getValue().bitcastToAPInt()
                                      : cast<IntegerAttr>(value).getValue();
    bits.push_back(raw.zext(std::max(8u, storage.bits)));
  }
  if (storage.isPacked()) {
    SmallVector<APInt> bytes(llvm::divideCeil(bits.size(), storage.elementsPerByte()), APInt(8, 0));
    for (auto [i, value] : llvm::enumerate(bits))
      bytes[i / storage.elementsPerByte()] |= value.shl(i % storage.elementsPerByte() * storage.bits);
    bits = std::move(bytes);
  }
  auto integer = IntegerType::get(context, std::max(8u, storage.bits));
  return DenseElementsAttr::get(RankedTensorType::get({int64_t(bits.size())}, integer), bits);
}

class TensorLowering {
public:
  TensorLowering(ModuleOp module, int64_t maxVectorBytes, int64_t computeCapability)
      : module(module), maxVectorBytes(maxVectorBytes), computeCapability(computeCapability),
        rewriter(module.getContext()), pointer(LLVM::LLVMPointerType::get(module.getContext())) {
    // Globals of several kernels may meet in one PTX file: they are named after the kernel.
    for (auto function : module.getOps<func::FuncOp>())
      if (prefix.empty() || function->hasAttr(attr::entry))
        prefix = function.getSymName().str();
  }

  LogicalResult run() {
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(lowerFunction(function)))
        return failure();
    return success();
  }

private:
  LogicalResult lowerFunction(func::FuncOp function) {
    function.walk([&](LoadFragmentsOp op) {
      bitsOfFragments[op] = op.getSource().getType().getElementType().getIntOrFloatBitWidth();
    });
    function.walk([&](MultiplyTilesOp op) {
      bitsOfFragments[op] = op.getLhs().getType().getElementType().getIntOrFloatBitWidth();
    });
    function.walk([&](MultiplyHeldOp op) {
      bitsOfFragments[op] = op.getRhs().getType().getElementType().getIntOrFloatBitWidth();
    });
    function.walk(
        [&](CopyBoxOp op) { bitsOfFragments[op] = op.getDest().getType().getElementType().getIntOrFloatBitWidth(); });
    for (BlockArgument argument : function.getArguments())
      if (isTensor(argument.getType()))
        argument.setType(pointer);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, attr::tensorMap))
        passByValue(function, i);
    SmallVector<Type> results;
    for (Type type : function.getResultTypes())
      if (!isTensor(type))
        results.push_back(type);
    function.setResAttrsAttr(nullptr);
    function.setFunctionType(
        FunctionType::get(function.getContext(), function.getBody().front().getArgumentTypes(), results));
    traces = {};
    for (Block &block : function.getBody())
      if (failed(lowerBlock(block)))
        return failure();
    return success();
  }

  /// A tensor map: as the driver wants it, and such that its address is that of the parameter itself.
  void passByValue(func::FuncOp function, unsigned argument) {
    constexpr int64_t alignment = 64;
    function.removeArgAttr(argument, attr::tensorMap);
    auto bytes = LLVM::LLVMArrayType::get(rewriter.getI8Type(), bytesOfTensorMap);
    function.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
    function.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(), rewriter.getI64IntegerAttr(alignment));
    function.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(), rewriter.getUnitAttr());
  }

  LogicalResult lowerBlock(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(lowerOp(&op)))
        return failure();
    return success();
  }

  LogicalResult lowerRegions(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(lowerBlock(block)))
          return failure();
    return success();
  }

  // Operands are read with getOperand: those that were tensors are pointers by now, whatever typed accessors say.
  LogicalResult lowerOp(Operation *op) {
    rewriter.setInsertionPoint(op);
    MemoryBuilder memory(rewriter, op->getLoc(), maxVectorBytes, &traces);
    if (isa<tensor::ExtractOp>(op)) {
      Value loaded = memory.load(op->getOperand(0), op->getOperand(1), op->getResult(0).getType());
      rewriter.replaceOp(op, loaded);
    } else if (isa<tensor::InsertOp>(op)) {
      memory.store(op->getOperand(0), op->getOperand(1), op->getOperand(2));
      rewriter.replaceOp(op, op->getOperand(1));
    } else if (auto read = dyn_cast<vector::TransferReadOp>(op)) {
      Value loaded = memory.loadVector(op->getOperand(0), op->getOperand(1), read.getVectorType());
      rewriter.replaceOp(op, loaded);
    } else if (isa<vector::TransferWriteOp>(op)) {
      memory.storeVector(op->getOperand(0), op->getOperand(1), op->getOperand(2));
      rewriter.replaceOp(op, op->getOperand(1));
    } else if (auto atomic = dyn_cast<AtomicRmwOp>(op)) {
      if (failed(lowerAtomic(atomic, op->getOperand(0), maxVectorBytes, computeCapability)))
        return failure();
      rewriter.replaceOp(op, op->getOperand(0));
    } else if (auto fragments = dyn_cast<LoadFragmentsOp>(op)) {
      rewriter.replaceOp(op, loadFragments(fragments, memory));
    } else if (auto products = dyn_cast<MultiplyTilesOp>(op)) {
      auto address = [&](unsigned tile) {
        Type factor = rewriter.getIntegerType(bitsOfFragments.lookup(op));
        return memory.address(op->getOperand(tile), op->getOperand(tile + 1), factor);
      };
      rewriter.replaceOp(op, multiplyTiles(products, address(0), address(2), rewriter));
    } else if (auto held = dyn_cast<MultiplyHeldOp>(op)) {
      const auto rhs = unsigned(held.getLhs().size());
      Type factor = rewriter.getIntegerType(bitsOfFragments.lookup(op));
      rewriter.replaceOp(op,
                         multiplyHeld(held, memory.address(op->getOperand(rhs), held.getRhsAt(), factor), rewriter));
    } else if (auto await = dyn_cast<AwaitProductsOp>(op)) {
      rewriter.replaceOp(op, awaitProducts(await, rewriter));
    } else if (isa<PublishTilesOp>(op)) {
      publishTiles(op->getLoc(), rewriter);
      rewriter.replaceOp(op, op->getOperands());
    } else if (isa<InitBarriersOp, ArriveOp, AwaitPhaseOp, CopyBoxOp, SyncClusterOp, SetRegistersOp, KeepOp>(op)) {
      lowerRing(op, memory);
      rewriter.replaceOp(op, op->getOperands().take_back(op->getNumResults())); // tiles that are waited for
    } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      return lowerCopy(copy, memory);
    } else if (isa<CommitCopiesOp>(op)) {
      LLVM::CallIntrinsicOp::create(rewriter, op->getLoc(), rewriter.getStringAttr("llvm.nvvm.cp.async.commit.group"),
                                    ValueRange{});
      rewriter.replaceOp(op, op->getOperands());
    } else if (auto await = dyn_cast<AwaitCopiesOp>(op)) {
      Value open =
          LLVM::ConstantOp::create(rewriter, op->getLoc(), rewriter.getI32IntegerAttr(int32_t(await.getOpen())));
      LLVM::CallIntrinsicOp::create(rewriter, op->getLoc(), rewriter.getStringAttr("llvm.nvvm.cp.async.wait.group"),
                                    open);
      rewriter.replaceOp(op, op->getOperands());
    } else if (isa<AllocateSharedOp>(op)) {
      auto dynamic = op->getParentOfType<func::FuncOp>()->getAttrOfType<IntegerAttr>(attr::dynamicShared);
      FailureOr<Value> array = dynamic ? dynamicArray(op, dynamic.getInt()) : sharedArray(op);
      if (failed(array))
        return failure();
      rewriter.replaceOp(op, *array);
    } else if (auto barrier = dyn_cast<SyncThreadsOp>(op)) {
      if (barrier.getThreads())
        syncThreads(op->getLoc(), int64_t(*barrier.getThreads()), barrier.getEach(), rewriter);
      else
        gpu::BarrierOp::create(rewriter, op->getLoc());
      rewriter.replaceOp(op, op->getOperands());
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isTensor(constant.getType()))
        rewriter.replaceOp(op, constantArray(constant));
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      return lowerFor(loop);
    } else if (isa<scf::IfOp, scf::IndexSwitchOp>(op)) {
      return lowerBranches(op);
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      return lowerCall(call);
    } else if (isa<func::ReturnOp>(op)) {
      return lowerReturn(op);
    } else {
      return lowerOther(op);
    }
    return success();
  }

  void lowerRing(Operation *op, MemoryBuilder &memory) {
    Type barrier = rewriter.getI64Type();
    if (auto made = dyn_cast<InitBarriersOp>(op)) {
      initBarriers(made, op->getOperand(0), rewriter);
    } else if (auto arrival = dyn_cast<ArriveOp>(op)) {
      arrive(arrival, memory.address(op->getOperand(0), arrival.getIndex(), barrier), rewriter);
    } else if (auto await = dyn_cast<AwaitPhaseOp>(op)) {
      awaitPhase(await, memory.address(op->getOperand(0), await.getIndex(), barrier), rewriter);
    } else if (auto copy = dyn_cast<CopyBoxOp>(op)) {
      const unsigned dest = 1 + unsigned(copy.getCoordinates().size()), barriers = dest + 2;
      Type element = rewriter.getIntegerType(bitsOfFragments.lookup(op));
      copyBox(copy, op->getOperand(0), memory.address(op->getOperand(dest), copy.getAt(), element),
              memory.address(op->getOperand(barriers), copy.getIndex(), barrier), rewriter);
    } else if (isa<SyncClusterOp>(op)) {
      syncCluster(op->getLoc(), rewriter);
    } else if (auto kept = dyn_cast<KeepOp>(op)) {
      keep(kept, rewriter);
    } else {
      setRegisters(cast<SetRegistersOp>(op), rewriter);
    }
  }

  Value loadFragments(LoadFragmentsOp op, MemoryBuilder &memory) {
    constexpr int64_t words = 4;
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    const unsigned bits = bitsOfFragments.lookup(op);
    Value address = memory.addressInLoop(op->getOperand(0), op.getIndex(), rewriter.getIntegerType(bits));
    SmallVector<Type> types(words, word);
    auto name = rewriter.getStringAttr(Twine("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.") +
                                       (op.getTransposed() ? "trans." : "") + "b16");
    Value loaded = LLVM::CallIntrinsicOp::create(
                       rewriter, loc, LLVM::LLVMStructType::getLiteral(op.getContext(), types), name, address)
                       .getResult(0);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < words; ++i)
      elements.push_back(LLVM::ExtractValueOp::create(rewriter, loc, loaded, i));
    if (op.getTransposed() && bits == 8)
      elements = bytesOfColumns(loc, elements, op.getSwapped());
    return vector::FromElementsOp::create(rewriter, loc, op.getResult().getType(), elements);
  }

  /// Words that have pairs of rows of two columns each become words of one column: bytes 0 and 2, or 1 and 3, of two,
  /// of the second one first where `swapped` holds.
  SmallVector<Value> bytesOfColumns(Location loc, ArrayRef<Value> pairs, Value swapped) {
    struct Selector {
      int32_t inOrder, swapped;
    };
    constexpr Selector even = {0x6420, 0x2064}, odd = {0x7531, 0x3175};
    auto constant = [&](int32_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(value));
    };
    SmallVector<Value> words;
    for (size_t i = 0; i < pairs.size(); i += 2)
      for (Selector selector : {even, odd}) {
        Value bytes = constant(selector.inOrder);
        if (swapped)
          bytes = arith::SelectOp::create(rewriter, loc, swapped, constant(selector.swapped), bytes);
        words.push_back(LLVM::CallIntrinsicOp::create(rewriter, loc, rewriter.getI32Type(),
                                                      rewriter.getStringAttr("llvm.nvvm.prmt"),
                                                      ValueRange{pairs[i], pairs[i + 1], bytes})
                            .getResult(0));
      }
    return words;
  }

  /// cp.async, past the first cache where it may be: what a block copies, it does not copy again.
  LogicalResult lowerCopy(CopyAsyncOp op, MemoryBuilder &memory) {
    Location loc = op.getLoc();
    // (By number: what were tensors are pointers, whatever accessors say.)
    Value source = op->getOperand(0), index = op->getOperand(1), dest = op->getOperand(2), at = op->getOperand(3);
    if (computeCapability < 80)
      return op.emitOpError("is not known to the target");
    ElementStorage storage(cast<RankedTensorType>(op.getResult().getType()).getElementType());
    const int64_t bytes = int64_t(op.getSize()) * storage.bits / 8;
    if (memory.alignmentOf(source, traces.of(index), 0, storage) < bytes ||
        memory.alignmentOf(dest, traces.of(at), 0, storage) < bytes)
      return op.emitOpError() << "copies " << bytes << " bytes from or to where fewer are aligned";
    if (cast<LLVM::LLVMPointerType>(dest.getType()).getAddressSpace() != sharedAddressSpace)
      return op.emitOpError("copies into a tensor that is not shared");
    auto globalPointer = LLVM::LLVMPointerType::get(op.getContext(), globalAddressSpace);
    SmallVector<Value> operands = {
        memory.addressInLoop(dest, at, storage.memory),
        LLVM::AddrSpaceCastOp::create(rewriter, loc, globalPointer, memory.address(source, index, storage.memory))};
    std::string name = fmt::format("llvm.nvvm.cp.async.{}.shared.global.{}", bytes == 16 ? "cg" : "ca", bytes);
    if (op->getNumOperands() > 4) {
      auto constant = [&](int64_t value) -> Value {
        return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(int32_t(value)));
      };
      Value all = constant(bytes), none = constant(0);
      operands.push_back(arith::SelectOp::create(rewriter, loc, op->getOperand(4), all, none));
      name += ".s";
    }
    LLVM::CallIntrinsicOp::create(rewriter, loc, rewriter.getStringAttr(name), operands);
    rewriter.replaceOp(op, dest);
    return success();
  }

  /// A kernel returns what it wrote. A buffer that it only reads would mean that a rewrite took equal values for equal
  /// memory, and that an output stays unwritten.
  LogicalResult lowerReturn(Operation *op) {
    auto function = cast<func::FuncOp>(op->getParentOp());
    llvm::BitVector buffers(op->getNumOperands());
    for (OpOperand &operand : op->getOpOperands()) {
      buffers[operand.getOperandNumber()] = isPointer(operand.get().getType());
      auto argument = dyn_cast<BlockArgument>(operand.get());
      if (function->hasAttr(attr::entry) && argument && function.getArgAttr(argument.getArgNumber(), attr::invariant))
        return op->emitOpError("returns a buffer that is only read");
    }
    op->eraseOperands(buffers);
    return success();
  }

  LogicalResult lowerOther(Operation *op) {
    if (op->getNumRegions() != 0 && failed(lowerRegions(op)))
      return failure();
    for (Type type : op->getResultTypes())
      if (isTensor(type))
        return op->emitOpError("makes a tensor that is no memory of the kernel");
    return success();
  }

  // --- control flow

  LogicalResult lowerFor(scf::ForOp loop) {
    auto inits = llvm::to_vector(loop->getOperands().drop_front(3));
    llvm::BitVector dropped(inits.size());
    for (auto [i, init] : llvm::enumerate(inits)) {
      if (!isPointer(init.getType()))
        continue;
      dropped.set(i);
      loop.getRegionIterArg(i).replaceAllUsesWith(init);
      loop.getResult(i).replaceAllUsesWith(init);
    }
    if (failed(lowerRegions(loop)))
      return failure();
    if (dropped.none())
      return success();
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<Value> keptInits;
    llvm::BitVector droppedArguments(1 + inits.size());
    for (auto [i, init] : llvm::enumerate(inits)) {
      if (!dropped[i])
        keptInits.push_back(init);
      else if (yield->getOperand(i) != init)
        return loop.emitOpError("exchanges the buffers it iterates over");
      if (dropped[i])
        droppedArguments.set(1 + i);
    }
    yield->eraseOperands(dropped);
    loop.getBody()->eraseArguments(droppedArguments);
    rewriter.setInsertionPoint(loop);
    auto replacement = scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                          loop.getStep(), keptInits);
    replacement.getRegion().getBlocks().clear();
    replacement.getRegion().takeBody(loop.getRegion());
    replaceKeptResults(loop, replacement, dropped);
    return success();
  }

  /// scf.if and scf.index_switch: all branches must yield the same buffer.
  LogicalResult lowerBranches(Operation *op) {
    if (failed(lowerRegions(op)))
      return failure();
    llvm::BitVector dropped(op->getNumResults());
    for (OpResult result : op->getResults()) {
      if (!isTensor(result.getType()))
        continue;
      unsigned number = result.getResultNumber();
      Value buffer = op->getRegion(0).front().getTerminator()->getOperand(number);
      for (Region &region : op->getRegions())
        if (region.front().getTerminator()->getOperand(number) != buffer)
          return op->emitOpError("yields different buffers from its branches");
      dropped.set(number);
      result.replaceAllUsesWith(buffer);
    }
    if (dropped.none())
      return success();
    for (Region &region : op->getRegions())
      region.front().getTerminator()->eraseOperands(dropped);
    SmallVector<Type> keptTypes;
    for (OpResult result : op->getResults())
      if (!dropped[result.getResultNumber()])
        keptTypes.push_back(result.getType());
    OperationState state(op->getLoc(), op->getName(), op->getOperands(), keptTypes, op->getAttrs());
    for (unsigned i = 0; i < op->getNumRegions(); ++i)
      state.addRegion();
    rewriter.setInsertionPoint(op);
    Operation *replacement = rewriter.create(state);
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), replacement->getRegions()))
      to.takeBody(from);
    replaceKeptResults(op, replacement, dropped);
    return success();
  }

  void replaceKeptResults(Operation *op, Operation *replacement, const llvm::BitVector &dropped) {
    unsigned kept = 0;
    for (OpResult result : op->getResults())
      if (!dropped[result.getResultNumber()])
        result.replaceAllUsesWith(replacement->getResult(kept++));
    rewriter.eraseOp(op);
  }

  LogicalResult lowerCall(func::CallOp call) {
    SmallVector<Value> operands;
    for (Value operand : call->getOperands()) {
      if (isPointer(operand.getType()) && operand.getType() != pointer)
        operand = LLVM::AddrSpaceCastOp::create(rewriter, call.getLoc(), pointer, operand);
      operands.push_back(operand);
    }
    for (Type type : call.getResultTypes())
      if (isTensor(type))
        return call.emitOpError("returns a tensor from a helper function");
    call->setOperands(operands);
    return success();
  }

  // --- memory of the kernel itself

  Value global(Operation *op, StringRef stem, unsigned number, RankedTensorType type, Attribute value,
               unsigned addressSpace, uint64_t alignment = arrayAlignment) {
    std::string name = (prefix + "__" + stem + "_" + Twine(number)).str();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(module.getBody());
    auto array = LLVM::GlobalOp::create(rewriter, op->getLoc(), arrayTypeOf(type), /*isConstant=*/bool(value),
                                        LLVM::Linkage::Internal, name, value, alignment, addressSpace);
    if (!value) { // shared memory starts uninitialised
      Block *block = rewriter.createBlock(&array.getInitializerRegion());
      rewriter.setInsertionPointToStart(block);
      Value undefined = LLVM::UndefOp::create(rewriter, op->getLoc(), array.getGlobalType());
      LLVM::ReturnOp::create(rewriter, op->getLoc(), undefined);
    }
    // The address is a constant of the function: one, at its start.
    rewriter.setInsertionPointToStart(&op->getParentOfType<func::FuncOp>().getBody().front());
    return LLVM::AddressOfOp::create(rewriter, op->getLoc(), array);
  }

  Value sharedArray(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    return global(op, "shared", sharedCount++, type, {}, sharedAddressSpace, alignmentOf(cast<AllocateSharedOp>(op)));
  }

  static uint64_t alignmentOf(AllocateSharedOp op) { return op.getAlignment().value_or(arrayAlignment); }

  /// The next part of the one array whose size the launch decides.
  FailureOr<Value> dynamicArray(Operation *op, int64_t size) {
    const uint64_t alignment = alignmentOf(cast<AllocateSharedOp>(op)), start = llvm::alignTo(dynamicBytes, alignment);
    LLVM::LLVMArrayType type = arrayTypeOf(cast<RankedTensorType>(op->getResult(0).getType()));
    dynamicBytes = start + uint64_t(type.getNumElements()) * type.getElementType().getIntOrFloatBitWidth() / 8;
    if (dynamicBytes > uint64_t(size))
      return op->emitOpError() << "ends at byte " << dynamicBytes << " of shared memory, of which there are " << size;
    const std::string name = prefix + "__shared";
    OpBuilder::InsertionGuard guard(rewriter);
    auto array = module.lookupSymbol<LLVM::GlobalOp>(name);
    Type byte = rewriter.getI8Type();
    if (!array) {
      rewriter.setInsertionPointToStart(module.getBody());
      array = LLVM::GlobalOp::create(rewriter, op->getLoc(), LLVM::LLVMArrayType::get(byte, 0), /*isConstant=*/false,
                                     LLVM::Linkage::External, name, Attribute(), arrayAlignment, sharedAddressSpace);
    }
    array.setAlignment(std::max(alignment, array.getAlignment().value_or(arrayAlignment)));
    rewriter.setInsertionPointToStart(&op->getParentOfType<func::FuncOp>().getBody().front());
    Value all = LLVM::AddressOfOp::create(rewriter, op->getLoc(), array);
    if (start == 0)
      return all;
    return LLVM::GEPOp::create(rewriter, op->getLoc(), all.getType(), byte, all, ArrayRef<LLVM::GEPArg>{int32_t(start)},
                               LLVM::GEPNoWrapFlags::inbounds)
        .getResult();
  }

  Value constantArray(arith::ConstantOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    return global(op, "constant", constantCount++, type, memoryImage(cast<DenseElementsAttr>(op.getValue()), type), 0);
  }

  ModuleOp module;
  int64_t maxVectorBytes, computeCapability;
  IRRewriter rewriter;
  IndexTraces traces; ///< of the function: accesses are replaced, what computes their indices stays
  DenseMap<Operation *, unsigned>
      bitsOfFragments; ///< of an element of the tensor, which is a pointer when it is lowered
  Type pointer;
  std::string prefix;
  unsigned sharedCount = 0, constantCount = 0;
  uint64_t dynamicBytes = 0; ///< of shared memory that the launch asks for: taken so far
};

struct LowerTensorsPass : hloc::impl::LowerTensorsBase<LowerTensorsPass> {
  using Base::Base;
  void runOnOperation() override {
    WalkResult flat = getOperation().walk([](Operation *op) {
      for (Type type : op->getOperandTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && (tensor.getRank() != 1 || tensor.getEncoding())) {
          op->emitOpError() << "uses " << tensor << ": tensors must be flat before they are lowered";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (flat.wasInterrupted() || failed(TensorLowering(getOperation(), maxVectorBytes, computeCapability).run()))
      signalPassFailure();
  }
};

} // namespace
