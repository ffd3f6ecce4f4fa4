#include "passes/LowerAtomic.h"

#include "passes/PassDetail.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr StringLiteral scope = "device";

/// An update that one atomicrmw does: current = kind(current, operand).
struct NativeUpdate {
  LLVM::AtomicBinOp kind;
  Value operand;
};

std::optional<LLVM::AtomicBinOp> nativeKind(Operation *op) {
  using Kind = LLVM::AtomicBinOp;
  if (isa<arith::AddFOp>(op))
    return Kind::fadd;
  if (isa<arith::AddIOp>(op))
    return Kind::add;
  if (isa<arith::AndIOp>(op))
    return Kind::_and;
  if (isa<arith::OrIOp>(op))
    return Kind::_or;
  if (isa<arith::XOrIOp>(op))
    return Kind::_xor;
  if (isa<arith::MaxSIOp>(op))
    return Kind::max;
  if (isa<arith::MinSIOp>(op))
    return Kind::min;
  if (isa<arith::MaxUIOp>(op))
    return Kind::umax;
  if (isa<arith::MinUIOp>(op))
    return Kind::umin;
  return std::nullopt;
}

bool isInBody(AtomicRmwOp op, Value value) { return op.getRegion().isAncestor(value.getParentRegion()); }

/// The value of `type` that `wide` is a widening conversion of; null if it is none.
Value narrowed(Value wide, Type type, OpBuilder &builder) {
  if (auto extension = wide.getDefiningOp<arith::ExtFOp>())
    return extension.getIn().getType() == type ? extension.getIn() : Value();
  APFloat constant(0.0f);
  if (!matchPattern(wide, m_ConstantFloat(&constant)))
    return {};
  bool losesInfo;
  constant.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  if (losesInfo)
    return {};
  return arith::ConstantOp::create(builder, wide.getLoc(), FloatAttr::get(type, constant));
}

std::optional<NativeUpdate> matchNative(AtomicRmwOp op) {
  Value updated = op.updated(), current = op.current();
  if (!isInBody(op, updated))
    return NativeUpdate{LLVM::AtomicBinOp::xchg, updated};
  Operation *producer = updated.getDefiningOp();
  if (!producer)
    return std::nullopt;
  if (std::optional<LLVM::AtomicBinOp> kind = nativeKind(producer))
    for (unsigned i : {0, 1})
      if (producer->getOperand(i) == current && !isInBody(op, producer->getOperand(1 - i)))
        return NativeUpdate{*kind, producer->getOperand(1 - i)};
  // truncf(addf(extf current, extf x)) on 16-bit floats rounds once in the end, as the 16-bit addition does.
  auto truncation = dyn_cast<arith::TruncFOp>(producer);
  auto sum = truncation ? truncation.getIn().getDefiningOp<arith::AddFOp>() : nullptr;
  if (!sum || !(updated.getType().isF16() || updated.getType().isBF16()))
    return std::nullopt;
  OpBuilder builder(op);
  for (unsigned i : {0, 1}) {
    auto extension = sum->getOperand(i).getDefiningOp<arith::ExtFOp>();
    if (!extension || extension.getIn() != current)
      continue;
    Value other = narrowed(sum->getOperand(1 - i), updated.getType(), builder);
    if (other && !isInBody(op, other))
      return NativeUpdate{LLVM::AtomicBinOp::fadd, other};
  }
  return std::nullopt;
}

bool hasNativeInstruction(LLVM::AtomicBinOp kind, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (kind == LLVM::AtomicBinOp::fadd)
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64(); // LLVM loops where the target has none
  return (isa<IntegerType>(type) || kind == LLVM::AtomicBinOp::xchg) && (bits == 32 || bits == 64);
}

class CasLoop {
public:
  CasLoop(AtomicRmwOp op, Value pointer, MemoryBuilder &memory, OpBuilder &builder)
      : op(op), pointer(pointer), memory(memory), builder(builder), loc(op.getLoc()), storage(op.current().getType()) {}

  LogicalResult emit() {
    if (storage.bits > 64)
      return op.emitOpError() << "updates " << storage.element << ", for which there is no atomic instruction";
    unsigned wordBits = exchangeableBits();
    if (wordBits == 0)
      return op.emitOpError() << "updates part of a word that is not all inside of " << op->getResult(0).getType();
    Type word = builder.getIntegerType(wordBits);
    auto [address, shift] = locate(wordBits);
    // A stale first value costs one more round; atomicity comes from the exchange.
    Value first = LLVM::LoadOp::create(builder, loc, word, address, word.getIntOrFloatBitWidth() / 8,
                                       /*isVolatile=*/true);
    auto loop = scf::WhileOp::create(builder, loc, TypeRange(word), ValueRange(first));
    OpBuilder::InsertionGuard guard(builder);
    Block *before = builder.createBlock(&loop.getBefore(), {}, {word}, {loc});
    Value next = mergeUpdate(before->getArgument(0), shift, word);
    Value seen = exchange(address, before->getArgument(0), next);
    Value again = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, seen, before->getArgument(0));
    scf::ConditionOp::create(builder, loc, again, seen);
    Block *after = builder.createBlock(&loop.getAfter(), {}, {word}, {loc});
    scf::YieldOp::create(builder, loc, after->getArguments());
    return success();
  }

private:
  /// Bits of the words that are exchanged. All words must lie inside the tensor: what is behind it is not ours to
  /// touch, even to write what was there. 0: there are no such words.
  unsigned exchangeableBits() {
    if (storage.bits >= 32)
      return storage.bits;
    int64_t bits = cast<ShapedType>(op->getResult(0).getType()).getNumElements() * int64_t(storage.bits);
    for (unsigned wordBits : {32u, 16u}) // atom.cas.b16: sm_70
      if (bits % wordBits == 0 && storage.bits <= wordBits)
        return wordBits;
    return 0;
  }

  /// Address of the word that holds the element, and the bit it starts at (null: the word is the element).
  std::pair<Value, Value> locate(unsigned wordBits) {
    Value index = op.getIndices().front();
    if (storage.bits == wordBits)
      return {memory.address(pointer, index, storage.memory), Value()};
    return memory.packedWord(pointer, index, storage, wordBits);
  }

  /// What was at `address`: `next` is there now, if that was `expected`.
  Value exchange(Value address, Value expected, Value next) {
    if (expected.getType().isInteger(16)) // LLVM's cmpxchg would exchange the word around it
      return LLVM::InlineAsmOp::create(builder, loc, expected.getType(), ValueRange{address, expected, next},
                                       "atom.relaxed.gpu.cas.b16 $0, [$1], $2, $3;", "=h,l,h,h,~{memory}",
                                       /*has_side_effects=*/true, /*is_align_stack=*/false,
                                       LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
          .getResult(0);
    Value exchanged = LLVM::AtomicCmpXchgOp::create(
        builder, loc, address, expected, next, LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic, scope);
    return LLVM::ExtractValueOp::create(builder, loc, exchanged, 0);
  }

  Value mergeUpdate(Value current, Value shift, Type word) {
    Type integer = builder.getIntegerType(storage.bits);
    Value bits = current;
    if (shift)
      bits = arith::TruncIOp::create(builder, loc, integer, arith::ShRUIOp::create(builder, loc, current, shift));
    Value updated = toBits(inlineBody(fromBits(bits)), integer);
    if (!shift)
      return updated;
    Value ones = arith::ConstantIntOp::create(builder, loc, word, (int64_t(1) << storage.bits) - 1);
    Value allOnes = arith::ConstantIntOp::create(builder, loc, word, -1);
    Value mask = arith::XOrIOp::create(builder, loc, arith::ShLIOp::create(builder, loc, ones, shift), allOnes);
    Value kept = arith::AndIOp::create(builder, loc, current, mask);
    Value placed = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, word, updated), shift);
    return arith::OrIOp::create(builder, loc, kept, placed);
  }

  Value fromBits(Value bits) {
    if (bits.getType() != storage.memory)
      bits = LLVM::BitcastOp::create(builder, loc, storage.memory, bits);
    return memory.fromMemory(bits, storage);
  }

  Value toBits(Value value, Type integer) {
    Value stored = memory.toMemory(value, storage);
    return stored.getType() == integer ? stored : LLVM::BitcastOp::create(builder, loc, integer, stored).getResult();
  }

  Value inlineBody(Value current) {
    IRMapping mapping;
    mapping.map(op.current(), current);
    for (Operation &inner : op.getBody()->without_terminator())
      builder.clone(inner, mapping);
    return mapping.lookupOrDefault(op.updated());
  }

  AtomicRmwOp op;
  Value pointer;
  MemoryBuilder &memory;
  OpBuilder &builder;
  Location loc;
  ElementStorage storage;
};

/// current = current + x on both parts of a complex number, each atomically: nobody may rely on more.
bool emitComplexAdd(AtomicRmwOp op, Value pointer, MemoryBuilder &memory, OpBuilder &builder) {
  auto sum = op.updated().getDefiningOp<complex::AddOp>();
  if (!sum || !isInBody(op, sum))
    return false;
  Value other = sum.getLhs() == op.current() ? sum.getRhs() : sum.getLhs();
  if ((sum.getLhs() != op.current() && sum.getRhs() != op.current()) || isInBody(op, other))
    return false;
  Location loc = op.getLoc();
  Type part = cast<ComplexType>(other.getType()).getElementType();
  ElementStorage storage(other.getType());
  Value real = memory.address(pointer, op.getIndices().front(), storage.memory);
  Value imaginary = LLVM::GEPOp::create(builder, loc, real.getType(), part, real, ArrayRef<LLVM::GEPArg>{1},
                                        LLVM::GEPNoWrapFlags::inbounds);
  for (auto [address, value] : {std::pair<Value, Value>(real, complex::ReOp::create(builder, loc, other)),
                                std::pair<Value, Value>(imaginary, complex::ImOp::create(builder, loc, other))})
    LLVM::AtomicRMWOp::create(builder, loc, LLVM::AtomicBinOp::fadd, address, value, LLVM::AtomicOrdering::monotonic,
                              scope);
  return true;
}

} // namespace

LogicalResult hloc::lowerAtomic(AtomicRmwOp op, Value pointer, int64_t maxVectorBytes, int64_t) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  MemoryBuilder memory(builder, loc, maxVectorBytes);
  Type type = op.current().getType();
  if (isa<VectorType>(type))
    return op.emitOpError("updates a vector; atomics of single elements are supported");
  if (isa<ComplexType>(type) && emitComplexAdd(op, pointer, memory, builder))
    return success();
  std::optional<NativeUpdate> native = matchNative(op);
  if (native && !isa<ComplexType>(type) && hasNativeInstruction(native->kind, type)) {
    Value address = memory.address(pointer, op.getIndices().front(), type);
    LLVM::AtomicRMWOp::create(builder, loc, native->kind, address, native->operand, LLVM::AtomicOrdering::monotonic,
                              scope);
    return success();
  }
  if (native && native->kind == LLVM::AtomicBinOp::xchg) {
    // Whoever comes last wins either way: a plain store is as good, and packed elements store atomically.
    memory.store(native->operand, pointer, op.getIndices().front());
    return success();
  }
  return CasLoop(op, pointer, memory, builder).emit();
}
