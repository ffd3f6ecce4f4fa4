#include "passes/LowerAtomic.h"

#include "passes/GlobalUpdates.h"
#include "passes/PassDetail.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

constexpr StringLiteral scope = "device";

bool isInBody(AtomicRmwOp op, Value value) { return op.getRegion().isAncestor(value.getParentRegion()); }

std::optional<LLVM::AtomicBinOp> nativeKind(Operation *op) {
  using Kind = LLVM::AtomicBinOp;
  if (isa<arith::AddFOp>(op))
    return Kind::fadd;
  if (isa<arith::MaximumFOp>(op))
    return Kind::fmaximum;
  if (isa<arith::MinimumFOp>(op))
    return Kind::fminimum;
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

/// The real and the imaginary summand of current = current + summand, each null if that part stays as it is.
using ComplexSummand = std::array<Value, 2>;

/// x when `updated` is the same part of `current` plus x, null when it is that part; nothing if it is anything else.
template <typename PartOp> std::optional<Value> summandOfPart(Value updated, AtomicRmwOp op) {
  auto isCurrent = [&](Value value) {
    auto part = value.getDefiningOp<PartOp>();
    return part && part.getComplex() == op.current();
  };
  if (isCurrent(updated))
    return Value();
  auto add = updated.getDefiningOp<arith::AddFOp>();
  if (!add || !(isCurrent(add.getLhs()) || isCurrent(add.getRhs())))
    return std::nullopt;
  Value other = isCurrent(add.getLhs()) ? add.getRhs() : add.getLhs();
  return isInBody(op, other) ? std::nullopt : std::optional(other);
}

/// Sums are taken of both parts of a complex number, each atomically: nobody may rely on more. Nothing if the body is
/// no sum of `current` and what was made before.
std::optional<ComplexSummand> complexSummand(AtomicRmwOp op, OpBuilder &builder) {
  if (auto sum = op.updated().getDefiningOp<complex::AddOp>()) {
    Value other = sum.getLhs() == op.current() ? sum.getRhs() : sum.getRhs() == op.current() ? sum.getLhs() : Value();
    if (!other || isInBody(op, other))
      return std::nullopt;
    return ComplexSummand{complex::ReOp::create(builder, op.getLoc(), other),
                          complex::ImOp::create(builder, op.getLoc(), other)};
  }
  auto whole = op.updated().getDefiningOp<complex::CreateOp>();
  if (!whole || !isInBody(op, whole))
    return std::nullopt;
  std::optional<Value> real = summandOfPart<complex::ReOp>(whole.getReal(), op),
                       imaginary = summandOfPart<complex::ImOp>(whole.getImaginary(), op);
  if (!real || !imaginary)
    return std::nullopt;
  return ComplexSummand{*real, *imaginary};
}

void addComplex(const ComplexSummand &summand, Type type, Value pointer, Value index, MemoryBuilder &memory,
                OpBuilder &builder, Location loc) {
  Type part = cast<ComplexType>(type).getElementType();
  Value real = memory.address(pointer, index, ElementStorage(type).memory);
  Value imaginary = LLVM::GEPOp::create(builder, loc, real.getType(), part, real, ArrayRef<LLVM::GEPArg>{1},
                                        LLVM::GEPNoWrapFlags::inbounds);
  for (auto [address, value] : {std::pair(real, summand[0]), std::pair(imaginary, summand[1])})
    if (value)
      LLVM::AtomicRMWOp::create(builder, loc, LLVM::AtomicBinOp::fadd, address, value, LLVM::AtomicOrdering::monotonic,
                                scope);
}

/// The extremum of floats as one of integers: floats without a sign bit are ordered as their bits are, those with one
/// the other way, and a NaN on the far side of infinity wins against everything. What is already decided is left alone:
/// a NaN there stays, whatever its sign.
void updateExtremum(bool isMax, Value x, Value address, OpBuilder &builder, Location loc,
                    llvm::function_ref<void(LLVM::AtomicBinOp, Value)> updateBits) {
  Type type = x.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(bits);
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) -> Value {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  };
  Value seen = LLVM::LoadOp::create(builder, loc, type, address, bits / 8, /*isVolatile=*/false,
                                    /*isNonTemporal=*/false, /*isInvariant=*/false, /*isInvariantGroup=*/false,
                                    LLVM::AtomicOrdering::monotonic, scope);
  Value matters =
      arith::AndIOp::create(builder, loc, compare(arith::CmpFPredicate::ORD, seen, seen),
                            compare(isMax ? arith::CmpFPredicate::ULE : arith::CmpFPredicate::UGE, seen, x));
  auto update = scf::IfOp::create(builder, loc, matters, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(update.thenBlock());
  APFloat nan = APFloat::getQNaN(cast<FloatType>(type).getFloatSemantics(), /*Negative=*/!isMax);
  Value winner = arith::ConstantOp::create(builder, loc, FloatAttr::get(type, nan));
  Value settled = arith::SelectOp::create(builder, loc, compare(arith::CmpFPredicate::UNO, x, x), winner, x);
  Value pattern = arith::BitcastOp::create(builder, loc, integer, settled);
  Value zero = arith::ConstantIntOp::create(builder, loc, integer, 0);
  Value isPositive = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, pattern, zero);
  auto side = scf::IfOp::create(builder, loc, isPositive, /*withElseRegion=*/true);
  using Kind = LLVM::AtomicBinOp;
  for (auto [block, kind] : {std::pair(side.thenBlock(), isMax ? Kind::max : Kind::min),
                             std::pair(side.elseBlock(), isMax ? Kind::umin : Kind::umax)}) {
    builder.setInsertionPointToStart(block);
    updateBits(kind, pattern);
  }
}

/// The update of an element's bits that `op` is, `and`, `or` or `xor` with an integer as memory has it; nothing if it
/// is another. A predicate may lie there as any number that is not zero: `and` with ones keeps it, `or` with 1 as well.
std::optional<NativeUpdate> matchBitUpdate(AtomicRmwOp op, OpBuilder &builder) {
  using Kind = LLVM::AtomicBinOp;
  if (std::optional<NativeUpdate> native = matchNativeUpdate(op)) {
    bool isBits = native->kind == Kind::_and || native->kind == Kind::_or || native->kind == Kind::_xor;
    return isBits ? native : std::nullopt;
  }
  auto stored = op.updated().getDefiningOp<arith::ExtUIOp>();
  Operation *operation = stored ? stored.getIn().getDefiningOp() : nullptr;
  if (!operation || !stored.getIn().getType().isInteger(1) || !isa<arith::AndIOp, arith::OrIOp>(operation))
    return std::nullopt;
  auto isCurrent = [&](Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == arith::CmpIPredicate::ne && compare.getLhs() == op.current() &&
           matchPattern(compare.getRhs(), m_Zero());
  };
  for (unsigned i : {0, 1}) {
    Value other = operation->getOperand(1 - i);
    if (!isCurrent(operation->getOperand(i)) || isInBody(op, other))
      continue;
    Type type = op.current().getType();
    if (isa<arith::AndIOp>(operation))
      return NativeUpdate{Kind::_and, arith::ExtSIOp::create(builder, op.getLoc(), type, other)};
    return NativeUpdate{Kind::_or, arith::ExtUIOp::create(builder, op.getLoc(), type, other)};
  }
  return std::nullopt;
}

/// Do pointers to this tensor surely point to global memory?
bool isKernelArgument(Value pointer) {
  auto argument = dyn_cast<BlockArgument>(pointer);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  return function && function->hasAttr(attr::entry);
}

class Lowering {
public:
  Lowering(AtomicRmwOp op, Value pointer, int64_t maxVectorBytes, int64_t computeCapability)
      : op(op), pointer(pointer), builder(op), loc(op.getLoc()), memory(builder, loc, maxVectorBytes),
        computeCapability(computeCapability) {}

  LogicalResult emit() {
    Type type = op.current().getType();
    if (isa<VectorType>(type))
      return emitVector();
    if (isa<ComplexType>(type))
      if (std::optional<ComplexSummand> summand = complexSummand(op, builder)) {
        emitComplexSum(*summand);
        return success();
      }
    std::optional<NativeUpdate> native = matchNativeUpdate(op);
    if (native && emitNative(*native))
      return success();
    if (emitBitUpdate())
      return success();
    return CasLoop(op, pointer, memory, builder).emit();
  }

private:
  using Kind = LLVM::AtomicBinOp;
  Value index() { return op.getIndices().front(); }
  GlobalUpdates global() { return {pointer, memory, builder, loc, computeCapability}; }

  void emitComplexSum(const ComplexSummand &summand) {
    Type type = op.current().getType();
    bool pairs = isKernelArgument(pointer) && cast<ComplexType>(type).getElementType().isF32() &&
                 computeCapability >= 90 && summand[0] && summand[1];
    if (!pairs)
      return addComplex(summand, type, pointer, index(), memory, builder, loc);
    global().reduce("add.v2.f32", index(), ElementStorage(type).memory, summand);
  }

  bool emitNative(const NativeUpdate &update) {
    Type type = update.operand.getType();
    ElementStorage storage(op.current().getType());
    if (update.kind == Kind::xchg) {
      // Whoever comes last wins. Elements that share a byte are exchanged with it.
      if (storage.isPacked() || storage.bits > 64)
        return false;
      if (isKernelArgument(pointer))
        global().store(index(), update.operand);
      else
        memory.store(update.operand, pointer, index());
      return true;
    }
    if (isa<ComplexType>(type))
      return false;
    if (update.kind == Kind::fmaximum || update.kind == Kind::fminimum) {
      if (!type.isF32() && !type.isF64())
        return false;
      updateExtremum(update.kind == Kind::fmaximum, update.operand, memory.address(pointer, index(), type), builder,
                     loc, [&](Kind kind, Value bits) { reduce(kind, bits); });
      return true;
    }
    bool isHalf = type.isF16() || type.isBF16();
    if (!isHalf && reductionName(update.kind, type).empty())
      return false;
    if (type.isBF16() && !global().hasPairs(type))
      return false; // LLVM's loop would exchange words that end outside of the tensor
    if (isHalf && isKernelArgument(pointer) && hasWholePairs(type))
      global().addHalf(index(), update.operand);
    else
      reduce(update.kind, update.operand);
    return true;
  }

  /// Updates of bits of a part of a word; all words must lie inside of the tensor.
  bool emitBitUpdate() {
    Type type = op.current().getType();
    if (!isa<IntegerType>(type) || type.getIntOrFloatBitWidth() >= 32 || !isKernelArgument(pointer))
      return false;
    ElementStorage storage(type);
    if (cast<ShapedType>(op->getResult(0).getType()).getNumElements() * int64_t(storage.bits) % 32 != 0)
      return false;
    std::optional<NativeUpdate> update = matchBitUpdate(op, builder);
    if (update)
      global().updateBits(update->kind, index(), memory.toMemory(update->operand, storage), storage);
    return update.has_value();
  }

  /// LLVM loops where the target has no such instruction.
  void reduce(Kind kind, Value operand) {
    if (isKernelArgument(pointer) && global().reduceOne(kind, index(), operand))
      return;
    LLVM::AtomicRMWOp::create(builder, loc, kind, memory.address(pointer, index(), operand.getType()), operand,
                              LLVM::AtomicOrdering::monotonic, scope);
  }

  /// Pairs are available, and the last one is inside the tensor.
  bool hasWholePairs(Type type) {
    return global().hasPairs(type) && cast<ShapedType>(op->getResult(0).getType()).getNumElements() % 2 == 0;
  }

  LogicalResult emitVector() {
    std::optional<NativeUpdate> native = matchNativeUpdate(op);
    if (!native || (native->kind != Kind::xchg && native->kind != Kind::fadd))
      return op.emitOpError("updates a vector other than by a sum or an exchange");
    auto type = cast<VectorType>(op.current().getType());
    Type element = type.getElementType();
    bool exchanges = native->kind == Kind::xchg;
    int64_t together = 1;
    if (exchanges || (computeCapability >= 90 && !element.isF64()))
      together = 16 * 8 / element.getIntOrFloatBitWidth();
    else if (element.isF16())
      together = 2;
    xla_gpu::AppliedMap start = traceIndex(index());
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back(vector::ExtractOp::create(builder, loc, native->operand, i));
    for (auto [offset, size] : memory.alignedParts(pointer, start, type.getNumElements(), element, together)) {
      ArrayRef<Value> part = ArrayRef(elements).slice(size_t(offset), size_t(size));
      Value at = memory.offsetIndex(start, offset);
      if (!isKernelArgument(pointer))
        return op.emitOpError("updates a vector of what may not be global memory");
      if (exchanges)
        global().store(at, part);
      else if (size > 1 || element.isF32() || element.isF64() || hasWholePairs(element))
        global().addVector(at, part);
      else
        LLVM::AtomicRMWOp::create(builder, loc, Kind::fadd, memory.address(pointer, at, element), part.front(),
                                  LLVM::AtomicOrdering::monotonic, scope);
    }
    return success();
  }

  AtomicRmwOp op;
  Value pointer;
  OpBuilder builder;
  Location loc;
  MemoryBuilder memory;
  int64_t computeCapability;
};

} // namespace

std::optional<NativeUpdate> hloc::matchNativeUpdate(AtomicRmwOp op) {
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

LogicalResult hloc::lowerAtomic(AtomicRmwOp op, Value pointer, int64_t maxVectorBytes, int64_t computeCapability) {
  return Lowering(op, pointer, maxVectorBytes, computeCapability).emit();
}
