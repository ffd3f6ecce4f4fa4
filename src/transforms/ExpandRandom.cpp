// rng-bit-generator -> the arithmetic of its generators, element by element: Philox4x32-10 and Threefry2x32-20 (Salmon
// et al., "Parallel random numbers: as easy as 1, 2, 3"), laid out as XLA's expander does it.

#include "Expansion.h"
#include "Rewriter.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

#include <array>

namespace hloc {

namespace {

using Value = Expansion::Value;

constexpr ElementType u32 = ElementType::U32, u64 = ElementType::U64;

/// Arithmetic of words at every element of an array.
class Words {
public:
  Words(Expansion &x, llvm::ArrayRef<int64_t> dims) : x(x), dims(dims) {}

  Value constant(ElementType type, uint64_t value) { return x.spread(x.pattern(type, value), dims); }
  Value spread(Value scalar) { return x.spread(scalar, dims); }
  Value low(Value word) { return x.builder().convert(word, u32); }
  Value high(Value word) { return low(shiftRight(word, 32)); }
  Value shiftRight(Value word, uint64_t bits) {
    return x.binary(Opcode::ShiftRightLogical, word, constant(word->shape().elementType(), bits));
  }
  Value shiftLeft(Value word, uint64_t bits) {
    return x.binary(Opcode::ShiftLeft, word, constant(word->shape().elementType(), bits));
  }
  Value rotateLeft(Value word, uint64_t bits) {
    return x.binary(Opcode::Or, shiftLeft(word, bits), shiftRight(word, 32 - bits));
  }
  Value bitXor(Value a, Value b) { return x.binary(Opcode::Xor, a, b); }
  Value bitAnd(Value word, uint64_t mask) {
    return x.binary(Opcode::And, word, constant(word->shape().elementType(), mask));
  }
  Value plus(Value word, uint64_t value) { return x.add(word, constant(word->shape().elementType(), value)); }
  Value joined(Value low, Value high) {
    return x.binary(Opcode::Or, x.builder().convert(low, u64), shiftLeft(x.builder().convert(high, u64), 32));
  }
  Value isSet(Value word, uint64_t bit) {
    Value one = bitAnd(word, bit);
    return x.builder().compare(ComparisonDirection::Ne, one, x.like(one, 0));
  }

  std::array<Value, 4> philox(std::array<Value, 4> words, std::array<Value, 2> key) {
    for (int round = 0; round < 10; ++round) {
      Value a = x.multiply(x.builder().convert(words[0], u64), constant(u64, 0xD2511F53));
      Value b = x.multiply(x.builder().convert(words[2], u64), constant(u64, 0xCD9E8D57));
      words = {bitXor(bitXor(high(b), words[1]), spread(key[0])), low(b),
               bitXor(bitXor(high(a), words[3]), spread(key[1])), low(a)};
      key = {x.add(key[0], x.pattern(u32, 0x9E3779B9)), x.add(key[1], x.pattern(u32, 0xBB67AE85))};
    }
    return words;
  }

  std::array<Value, 2> threefry(std::array<Value, 2> words, std::array<Value, 2> key) {
    Value parity = x.binary(Opcode::Xor, x.binary(Opcode::Xor, key[0], key[1]), x.pattern(u32, 0x1BD11BDA));
    const Value keys[3] = {key[0], key[1], parity};
    const uint64_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    words = {x.add(words[0], spread(keys[0])), x.add(words[1], spread(keys[1]))};
    for (unsigned group = 1; group <= 5; ++group) {
      for (uint64_t rotation : rotations[(group - 1) % 2]) {
        words[0] = x.add(words[0], words[1]);
        words[1] = bitXor(rotateLeft(words[1], rotation), words[0]);
      }
      words[0] = x.add(words[0], spread(keys[group % 3]));
      words[1] = x.add(words[1], spread(x.add(keys[(group + 1) % 3], x.pattern(u32, group))));
    }
    return words;
  }

private:
  Expansion &x;
  llvm::SmallVector<int64_t> dims;
};

ElementType unsignedType(unsigned bits) {
  switch (bits) {
  case 4:
    return ElementType::U4;
  case 8:
    return ElementType::U8;
  case 16:
    return ElementType::U16;
  default:
    return bits == 32 ? u32 : u64;
  }
}

/// Unsigned words as elements of a type: the low bits.
Value elementsOf(Expansion &x, Words &words, Value bits, ElementType type) {
  HloBuilder &b = x.builder();
  if (isInteger(type))
    return b.convert(bits, type);
  if (isPred(type))
    return words.isSet(bits, 1);
  ElementType pattern = unsignedType(bitWidth(type));
  return b.infer(Opcode::BitcastConvert, {b.convert(bits, pattern)}, {}, Shape::array(type, bits->shape().dims()));
}

/// The blocks used, and the bits: block i is made of the counter plus i, and gives the elements from 4i on, of 64 bits
/// those from 2i on.
int64_t philoxBits(Expansion &x, const Shape &shape, Value key, Value low, Value high, Value &bits) {
  bool isWide = bitWidth(shape.elementType()) == 64;
  int64_t count = shape.numElements();
  Words w(x, {count});
  Words one(x, {});
  Value element = x.iota(u64, {count}, 0);
  Value counter = x.add(w.spread(low), w.shiftRight(element, isWide ? 1 : 2));
  Value carry = x.builder().compare(ComparisonDirection::Lt, counter, w.spread(low));
  Value counterHigh = x.add(w.spread(high), x.builder().convert(carry, u64));
  std::array<Value, 4> words = w.philox({w.low(counter), w.high(counter), w.low(counterHigh), w.high(counterHigh)},
                                        {one.low(key), one.high(key)});
  if (isWide) {
    bits = x.select(w.isSet(element, 1), w.joined(words[2], words[3]), w.joined(words[0], words[1]));
  } else {
    Value isOdd = w.isSet(element, 1);
    bits = x.select(w.isSet(element, 2), x.select(isOdd, words[3], words[2]), x.select(isOdd, words[1], words[0]));
  }
  bits = x.reshape(elementsOf(x, w, bits, shape.elementType()), shape.dims());
  return isWide ? (count + 1) / 2 : (count + 3) / 4;
}

/// The dimension along which the two words of a block lie: the first of even size, else the largest.
unsigned splitDimension(llvm::ArrayRef<int64_t> dims) {
  for (auto [i, size] : llvm::enumerate(dims))
    if (size % 2 == 0)
      return unsigned(i);
  return unsigned(llvm::max_element(dims) - dims.begin());
}

int64_t threefryBits(Expansion &x, const Shape &shape, Value key, Value counter, Value &bits) {
  Words w(x, shape.dims());
  Words one(x, {});
  bool isWide = bitWidth(shape.elementType()) == 64, isWhole = isWide || shape.isScalar();
  unsigned split = isWhole ? 0 : splitDimension(shape.dims());
  llvm::SmallVector<int64_t> blocks(shape.dims());
  if (!isWhole)
    blocks[split] = (blocks[split] + 1) / 2;
  Value block = w.constant(u64, 0), isSecond = nullptr;
  int64_t stride = 1;
  for (unsigned dim = shape.rank(); dim-- > 0;) {
    Value index = x.iota(u64, shape.dims(), dim);
    if (!isWhole && dim == split) {
      isSecond = w.isSet(index, 1);
      index = w.shiftRight(index, 1);
    }
    block = x.add(block, x.multiply(index, w.constant(u64, uint64_t(stride))));
    stride *= blocks[dim];
  }
  Value at = x.add(w.spread(counter), block);
  std::array<Value, 2> words = w.threefry({w.low(at), w.high(at)}, {one.low(key), one.high(key)});
  bits = isWide ? w.joined(words[0], words[1]) : isSecond ? x.select(isSecond, words[1], words[0]) : words[0];
  bits = elementsOf(x, w, bits, shape.elementType());
  return stride;
}

/// The state is a key and a counter, for philox of 64 or 128 bits; of a counter of 64 the key is the high half.
HloInstruction *expandBitGenerator(HloInstruction &instr, HloRewriter &rewriter) {
  bool isThreefry = instr.enumOr(AttributeKey::Algorithm, RandomAlgorithm::Default) == RandomAlgorithm::ThreeFry;
  const Shape &stateShape = instr.operand(0)->shape();
  const Shape &shape = instr.shape().isTuple() ? instr.shape().element(1) : instr.shape();
  if (stateShape.elementType() != u64 || stateShape.rank() != 1 || stateShape.numElements() < 2 ||
      stateShape.numElements() > (isThreefry ? 2 : 3) || isComplex(shape.elementType()) ||
      bitWidth(shape.elementType()) == 6)
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  HloBuilder &b = x.builder();
  llvm::SmallVector<Value, 3> state;
  for (int64_t i = 0; i < stateShape.dim(0); ++i)
    state.push_back(x.reshape(x.range(instr.operand(0), 0, i, i + 1), {}));
  Value bits = nullptr, counter = state[1];
  int64_t used = 0;
  if (shape.numElements() == 0)
    bits = x.zeros(shape);
  else
    used = isThreefry ? threefryBits(x, shape, state[0], counter, bits)
                      : philoxBits(x, shape, state[0], counter, state.size() == 3 ? state[2] : state[0], bits);
  bits = x.result(bits, shape);
  if (!instr.shape().isTuple())
    return bits;
  state[1] = x.add(counter, x.pattern(u64, uint64_t(used)));
  if (state.size() == 3)
    state[2] = x.add(state[2], b.convert(b.compare(ComparisonDirection::Lt, state[1], counter), u64));
  for (Value &word : state)
    word = x.reshape(word, {1});
  return b.tuple({x.result(b.concatenate(state, 0), instr.shape().element(0)), bits});
}

constexpr RewriteRule rules[] = {
    {"expand-random.bit-generator", Opcode::RngBitGenerator, expandBitGenerator},
};

} // namespace

PassResult expandRandom(HloModule &module, HloPassContext &context) { return rewriteModule(module, rules, context); }

} // namespace hloc
