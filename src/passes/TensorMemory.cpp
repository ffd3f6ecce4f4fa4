#include "passes/TensorMemory.h"

#include "hloc/indexing/Divisibility.h"
#include "passes/PassDetail.h"

#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// Alignment of anything whose index is always 0, before the buffer's own limits it.
constexpr int64_t unlimitedAlignment = 256;

int64_t powerOfTwoPart(int64_t value) { return value == 0 ? unlimitedAlignment : value & -value; }

/// A vector of integers as wide as `type`'s elements.
Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

} // namespace

ElementStorage::ElementStorage(Type element) : element(element) {
  MLIRContext *context = element.getContext();
  if (auto complex = dyn_cast<ComplexType>(element)) {
    memory = VectorType::get({2}, complex.getElementType());
    bits = 2 * complex.getElementType().getIntOrFloatBitWidth();
    return;
  }
  bits = element.getIntOrFloatBitWidth();
  memory = element;
  if (bits == 6) // six-bit floats take a byte each
    bits = 8;
  bool isNarrowFloat = isa<FloatType>(element) && bits <= 8;
  if (isNarrowFloat || element.getIntOrFloatBitWidth() != bits)
    memory = IntegerType::get(context, bits);
}

BufferFacts hloc::factsOf(Value pointer) {
  if (auto cast = pointer.getDefiningOp<LLVM::AddrSpaceCastOp>())
    pointer = cast.getArg();
  if (auto argument = dyn_cast<BlockArgument>(pointer)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!function)
      return {};
    unsigned number = argument.getArgNumber();
    auto align = function.getArgAttrOfType<IntegerAttr>(number, LLVM::LLVMDialect::getAlignAttrName());
    return {align ? align.getInt() : 0, bool(function.getArgAttr(number, attr::invariant))};
  }
  if (auto address = pointer.getDefiningOp<LLVM::AddressOfOp>()) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(address, address.getGlobalNameAttr());
    return {int64_t(global.getAlignment().value_or(0)), global.getConstant()};
  }
  // A part of an array.
  if (auto part = pointer.getDefiningOp<LLVM::GEPOp>();
      part && part.getDynamicIndices().empty() && part.getRawConstantIndices().size() == 1) {
    BufferFacts facts = factsOf(part.getBase());
    facts.alignment = std::min(facts.alignment, powerOfTwoPart(part.getRawConstantIndices().front()));
    return facts;
  }
  return {};
}

AppliedMap hloc::traceIndex(Value index) {
  AppliedMap applied = AppliedMap::identity(index, index.getContext());
  applied.composeProducers();
  applied.simplify();
  return applied;
}

AppliedMap IndexTraces::of(Value index) {
  auto found = known.find(index);
  if (found == known.end())
    found = known.try_emplace(index, traceIndex(index)).first;
  return found->second;
}

/// `divisor`: power of two that divides the index.
int64_t MemoryBuilder::alignmentOf(Value pointer, int64_t divisor, const ElementStorage &storage) const {
  int64_t known = std::max<int64_t>(1, std::min(divisor, unlimitedAlignment) * storage.bits / 8);
  int64_t natural = std::max<int64_t>(1, storage.bits / 8);
  int64_t buffer = factsOf(pointer).alignment;
  return std::max(natural, std::min(known, powerOfTwoPart(buffer == 0 ? natural : buffer)));
}

int64_t MemoryBuilder::alignmentOf(Value pointer, const AppliedMap &index, int64_t offset,
                                   const ElementStorage &storage) const {
  return alignmentOf(pointer, powerOfTwoPart(knownDivisor(index.map.result(0) + offset, index.map)), storage);
}

SmallVector<MemoryBuilder::Chunk> MemoryBuilder::split(Value pointer, const AppliedMap &index, int64_t size,
                                                       const ElementStorage &storage) const {
  SmallVector<Chunk> chunks;
  for (int64_t offset = 0; offset < size;) {
    // An element of a packed type may start inside a byte: then only its own position counts.
    int64_t aligned = powerOfTwoPart(knownDivisor(index.map.result(0) + offset, index.map));
    int64_t alignment = alignmentOf(pointer, aligned, storage);
    int64_t fitting = std::min(std::min(alignment, maxVectorBytes) * 8 / storage.bits, aligned);
    int64_t chunk = std::max<int64_t>(1, std::min(fitting, int64_t(llvm::bit_floor(uint64_t(size - offset)))));
    if (storage.isPacked() && chunk < storage.elementsPerByte())
      chunk = 1;
    chunks.push_back({offset, chunk, alignment});
    offset += chunk;
  }
  return chunks;
}

SmallVector<std::pair<int64_t, int64_t>> MemoryBuilder::alignedParts(Value pointer, const AppliedMap &index,
                                                                     int64_t size, Type element,
                                                                     int64_t together) const {
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (const Chunk &chunk : split(pointer, index, size, ElementStorage(element)))
    for (int64_t done = 0; done < chunk.size; done += together)
      parts.push_back({chunk.offset + done, std::min(together, chunk.size - done)});
  return parts;
}

Value MemoryBuilder::offsetIndex(const AppliedMap &index, int64_t offset) {
  AppliedMap moved = index;
  AffineExpr expression = index.map.result(0) + offset;
  moved.map = IndexingMap(AffineMap::get(index.map.dims().size(), 0, expression, index.map.context()), index.map.dims(),
                          {}, {});
  return moved.materialize(builder, loc).front();
}

Value MemoryBuilder::address(Value pointer, Value index, Type memory) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)) && constant.isZero())
    return pointer;
  Value offset = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(), index);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), memory, pointer, ValueRange(offset),
                             LLVM::GEPNoWrapFlags::inbounds);
}

/// Adds the terms of a sum to the part they belong to.
static void splitSum(AffineExpr sum, llvm::function_ref<unsigned(AffineExpr)> partOf,
                     MutableArrayRef<AffineExpr> parts) {
  if (sum.getKind() == AffineExprKind::Add) {
    auto both = cast<AffineBinaryOpExpr>(sum);
    splitSum(both.getLHS(), partOf, parts);
    splitSum(both.getRHS(), partOf, parts);
    return;
  }
  AffineExpr &part = parts[partOf(sum)];
  part = part + sum;
}

/// The number of a dimension and its factor, where that is all.
static std::optional<std::pair<unsigned, int64_t>> multipleOfDim(AffineExpr expression) {
  if (expression.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto product = cast<AffineBinaryOpExpr>(expression);
  if (!isa<AffineDimExpr>(product.getLHS()) || !isa<AffineConstantExpr>(product.getRHS()))
    return std::nullopt;
  return std::pair(cast<AffineDimExpr>(product.getLHS()).getPosition(),
                   cast<AffineConstantExpr>(product.getRHS()).getValue());
}

Value MemoryBuilder::addressOfMultiple(Value pointer, Value number, int64_t bytes) {
  const Type i64 = builder.getI64Type();
  Value wide = arith::IndexCastUIOp::create(builder, loc, i64, number);
  Value offset = arith::MulIOp::create(builder, loc, wide, arith::ConstantIntOp::create(builder, loc, i64, bytes),
                                       arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer, ValueRange(offset),
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value MemoryBuilder::addressInLoop(Value pointer, Value index, Type memory) {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  auto loop = isa<scf::ForOp>(parent) ? cast<scf::ForOp>(parent) : parent->getParentOfType<scf::ForOp>();
  if (!loop)
    return address(pointer, index, memory);
  AppliedMap traced = trace(index);
  enum Part : unsigned { Same, Changing, Constant };
  auto partOf = [&](AffineExpr term) {
    if (isa<AffineConstantExpr>(term))
      return unsigned(Constant);
    for (auto [number, operand] : llvm::enumerate(traced.operands))
      if (term.isFunctionOfDim(unsigned(number)) && !loop.isDefinedOutsideOfLoop(operand))
        return unsigned(Changing);
    return unsigned(Same);
  };
  SmallVector<AffineExpr> parts(3, getAffineConstantExpr(0, traced.map.context()));
  splitSum(traced.map.result(0), partOf, parts);
  // (Offsets are extended as unsigned numbers.)
  if (llvm::any_of(parts, [&](AffineExpr part) { return traced.map.range(part).lower < 0; }))
    return address(pointer, index, memory);
  for (auto [number, part] : llvm::enumerate(parts)) {
    if (auto multiple = multipleOfDim(part); multiple && number == Changing) {
      const int64_t bytes = int64_t(memory.getIntOrFloatBitWidth() / 8);
      pointer = addressOfMultiple(pointer, traced.operands[multiple->first], multiple->second * bytes);
      continue;
    }
    AppliedMap offset = traced;
    offset.map = IndexingMap(AffineMap::get(traced.map.dims().size(), 0, part), traced.map.dims(), {}, {});
    pointer = address(pointer, offset.materialize(builder, loc).front(), memory);
  }
  return pointer;
}

std::pair<Value, Value> MemoryBuilder::packedWord(Value pointer, Value index, const ElementStorage &storage,
                                                  unsigned wordBits) {
  int64_t perWord = wordBits / storage.bits;
  AppliedMap traced = trace(index);
  AffineExpr expression = traced.map.result(0);
  auto affine = AffineMap::get(traced.map.dims().size(), 0,
                               {expression.floorDiv(perWord), (expression % perWord) * int64_t(storage.bits)},
                               traced.map.context());
  traced.map = IndexingMap(affine, traced.map.dims(), {}, {});
  traced.simplify();
  SmallVector<Value> parts = traced.materialize(builder, loc);
  Type word = builder.getIntegerType(wordBits);
  Value shift = arith::IndexCastUIOp::create(builder, loc, word, parts[1]);
  return {address(pointer, parts[0], word), shift};
}

Value MemoryBuilder::toMemory(Value value, const ElementStorage &storage) {
  Type type = value.getType();
  if (isa<ComplexType>(storage.element)) {
    Value real = complex::ReOp::create(builder, loc, value), imaginary = complex::ImOp::create(builder, loc, value);
    return vector::FromElementsOp::create(builder, loc, storage.memory, ValueRange{real, imaginary});
  }
  if (storage.element == storage.memory)
    return value;
  Type integer = builder.getIntegerType(storage.element.getIntOrFloatBitWidth());
  if (isa<FloatType>(storage.element))
    value = arith::BitcastOp::create(builder, loc, withElement(type, integer), value);
  if (integer != storage.memory)
    value = arith::ExtUIOp::create(builder, loc, withElement(type, storage.memory), value);
  return value;
}

Value MemoryBuilder::fromMemory(Value value, const ElementStorage &storage) {
  Type type = value.getType();
  if (isa<ComplexType>(storage.element)) {
    Value real = vector::ExtractOp::create(builder, loc, value, 0);
    Value imaginary = vector::ExtractOp::create(builder, loc, value, 1);
    return complex::CreateOp::create(builder, loc, storage.element, real, imaginary);
  }
  if (storage.element == storage.memory)
    return value;
  Type integer = builder.getIntegerType(storage.element.getIntOrFloatBitWidth());
  if (integer != storage.memory)
    value = arith::TruncIOp::create(builder, loc, withElement(type, integer), value);
  if (isa<FloatType>(storage.element))
    value = arith::BitcastOp::create(builder, loc, withElement(type, storage.element), value);
  return value;
}

Value MemoryBuilder::load(Value pointer, Value index, Type element) {
  ElementStorage storage(element);
  BufferFacts facts = factsOf(pointer);
  if (!storage.isPacked()) {
    int64_t alignment = alignmentOf(pointer, trace(index), 0, storage);
    Value loaded =
        LLVM::LoadOp::create(builder, loc, storage.memory, address(pointer, index, storage.memory), alignment,
                             /*isVolatile=*/false, /*isNonTemporal=*/false, facts.invariant);
    return fromMemory(loaded, storage);
  }
  // The byte that holds the element.
  int64_t perByte = storage.elementsPerByte();
  AppliedMap traced = trace(index);
  AffineExpr expression = traced.map.result(0);
  auto affine = AffineMap::get(traced.map.dims().size(), 0,
                               {expression.floorDiv(perByte), (expression % perByte) * int64_t(storage.bits)},
                               traced.map.context());
  traced.map = IndexingMap(affine, traced.map.dims(), {}, {});
  traced.simplify();
  SmallVector<Value> parts = traced.materialize(builder, loc);
  Type byte = builder.getI8Type();
  Value loaded =
      LLVM::LoadOp::create(builder, loc, byte, address(pointer, parts[0], byte), 1, false, false, facts.invariant);
  Value shift = arith::IndexCastUIOp::create(builder, loc, byte, parts[1]);
  Value shifted = arith::ShRUIOp::create(builder, loc, loaded, shift);
  Value packed = arith::TruncIOp::create(builder, loc, builder.getIntegerType(storage.bits), shifted);
  return fromMemory(packed, storage);
}

void MemoryBuilder::store(Value value, Value pointer, Value index) {
  ElementStorage storage(value.getType());
  Value stored = toMemory(value, storage);
  if (!storage.isPacked()) {
    int64_t alignment = alignmentOf(pointer, trace(index), 0, storage);
    LLVM::StoreOp::create(builder, loc, stored, address(pointer, index, storage.memory), alignment);
    return;
  }
  // Clear, then set: between the two only this element is undefined, and nobody else reads or writes it.
  auto [word, shift] = packedWord(pointer, index, storage);
  Type i32 = builder.getI32Type();
  Value ones = arith::ConstantIntOp::create(builder, loc, i32, (int64_t(1) << storage.bits) - 1);
  Value allOnes = arith::ConstantIntOp::create(builder, loc, i32, -1);
  Value mask = arith::XOrIOp::create(builder, loc, arith::ShLIOp::create(builder, loc, ones, shift), allOnes);
  Value bits = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, i32, stored), shift);
  for (auto [op, operand] : {std::pair(LLVM::AtomicBinOp::_and, mask), std::pair(LLVM::AtomicBinOp::_or, bits)})
    LLVM::AtomicRMWOp::create(builder, loc, op, word, operand, LLVM::AtomicOrdering::monotonic, "device", 4);
}

SmallVector<Value> MemoryBuilder::loadChunk(Value pointer, Value index, const Chunk &chunk,
                                            const ElementStorage &storage) {
  if (chunk.size == 1)
    return {load(pointer, index, storage.element)};
  bool invariant = factsOf(pointer).invariant;
  SmallVector<Value> elements;
  // Bytes come in words too: LLVM takes vectors of bytes apart into single loads.
  if (storage.bits > 8) {
    auto type = VectorType::get({chunk.size}, storage.memory);
    Value loaded = LLVM::LoadOp::create(builder, loc, type, address(pointer, index, storage.memory), chunk.alignment,
                                        false, false, invariant);
    loaded = fromMemory(loaded, storage);
    for (int64_t i = 0; i < chunk.size; ++i)
      elements.push_back(vector::ExtractOp::create(builder, loc, loaded, i));
    return elements;
  }
  int64_t bits = chunk.size * storage.bits, wordBits = std::min<int64_t>(bits, 32), words = bits / wordBits;
  Type word = builder.getIntegerType(wordBits);
  Type type = words == 1 ? word : Type(VectorType::get({words}, word));
  AppliedMap bytes = trace(index);
  bytes.map = IndexingMap(AffineMap::get(bytes.map.dims().size(), 0,
                                         bytes.map.result(0).floorDiv(storage.elementsPerByte()), bytes.map.context()),
                          bytes.map.dims(), {}, {});
  bytes.simplify();
  Value first = address(pointer, bytes.materialize(builder, loc).front(), builder.getI8Type());
  // Words of packed elements are loaded one by one, and become a vector again late (MergeAccesses.cpp): InstCombine
  // takes the pieces of a vector for a vector of pieces, which NVPTX then loads two bytes at a time.
  bool apart = storage.isPacked();
  Value loaded;
  if (!apart)
    loaded = LLVM::LoadOp::create(builder, loc, type, first, chunk.alignment, false, false, invariant);
  for (int64_t i = 0; i < words; ++i) {
    Value source;
    if (apart) {
      int64_t offset = i * wordBits / 8;
      Value at = first;
      if (offset != 0)
        at = LLVM::GEPOp::create(builder, loc, first.getType(), builder.getI8Type(), first,
                                 ArrayRef<LLVM::GEPArg>{int32_t(offset)}, LLVM::GEPNoWrapFlags::inbounds);
      int64_t alignment = std::min(chunk.alignment, powerOfTwoPart(offset));
      source = LLVM::LoadOp::create(builder, loc, word, at, alignment, false, false, invariant);
    } else {
      source = words == 1 ? loaded : vector::ExtractOp::create(builder, loc, loaded, i).getResult();
    }
    for (int64_t shift = 0; shift < wordBits; shift += storage.bits) {
      Value amount = arith::ConstantIntOp::create(builder, loc, word, shift);
      Value shifted = arith::ShRUIOp::create(builder, loc, source, amount);
      Value packed = arith::TruncIOp::create(builder, loc, builder.getIntegerType(storage.bits), shifted);
      elements.push_back(fromMemory(packed, storage));
    }
  }
  return elements;
}

void MemoryBuilder::storeChunk(ArrayRef<Value> elements, Value pointer, Value index, const Chunk &chunk,
                               const ElementStorage &storage) {
  if (chunk.size == 1)
    return store(elements.front(), pointer, index);
  if (!storage.isPacked()) {
    SmallVector<Value> stored;
    for (Value element : elements)
      stored.push_back(toMemory(element, storage));
    auto type = VectorType::get({chunk.size}, storage.memory);
    Value vector = vector::FromElementsOp::create(builder, loc, type, stored);
    LLVM::StoreOp::create(builder, loc, vector, address(pointer, index, storage.memory), chunk.alignment);
    return;
  }
  int64_t bits = chunk.size * storage.bits, wordBits = std::min<int64_t>(bits, 32);
  Type word = builder.getIntegerType(wordBits);
  SmallVector<Value> words;
  for (int64_t start = 0; start < chunk.size; start += wordBits / storage.bits) {
    Value whole;
    for (int64_t i = 0; i < wordBits / storage.bits; ++i) {
      Value part = arith::ExtUIOp::create(builder, loc, word, toMemory(elements[start + i], storage));
      Value amount = arith::ConstantIntOp::create(builder, loc, word, i * storage.bits);
      part = i == 0 ? part : arith::ShLIOp::create(builder, loc, part, amount).getResult();
      whole = whole ? arith::OrIOp::create(builder, loc, whole, part).getResult() : part;
    }
    words.push_back(whole);
  }
  AppliedMap bytes = trace(index);
  bytes.map = IndexingMap(AffineMap::get(bytes.map.dims().size(), 0,
                                         bytes.map.result(0).floorDiv(storage.elementsPerByte()), bytes.map.context()),
                          bytes.map.dims(), {}, {});
  bytes.simplify();
  Value first = address(pointer, bytes.materialize(builder, loc).front(), builder.getI8Type());
  Value stored = words.front();
  if (words.size() > 1)
    stored = vector::FromElementsOp::create(builder, loc, VectorType::get({int64_t(words.size())}, word), words);
  LLVM::StoreOp::create(builder, loc, stored, first, chunk.alignment);
}

Value MemoryBuilder::loadVector(Value pointer, Value index, VectorType type) {
  ElementStorage storage(type.getElementType());
  AppliedMap traced = trace(index);
  SmallVector<Value> elements;
  for (const Chunk &chunk : split(pointer, traced, type.getNumElements(), storage)) {
    Value start = chunk.offset == 0 ? index : offsetIndex(traced, chunk.offset);
    llvm::append_range(elements, loadChunk(pointer, start, chunk, storage));
  }
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

void MemoryBuilder::storeVector(Value vector, Value pointer, Value index) {
  auto type = cast<VectorType>(vector.getType());
  ElementStorage storage(type.getElementType());
  AppliedMap traced = trace(index);
  SmallVector<Value> elements;
  auto built = vector.getDefiningOp<vector::FromElementsOp>();
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    elements.push_back(built ? built.getElements()[i] : vector::ExtractOp::create(builder, loc, vector, i).getResult());
  for (const Chunk &chunk : split(pointer, traced, type.getNumElements(), storage)) {
    Value start = chunk.offset == 0 ? index : offsetIndex(traced, chunk.offset);
    storeChunk(ArrayRef(elements).slice(chunk.offset, chunk.size), pointer, start, chunk, storage);
  }
}
