// rng-bit-generator (defined bit for bit), rng and rng-get-and-update-state (whose values HLO leaves open; here they
// follow from the seed in InterpreterOptions).

#include "interp/LaneOp.h"
#include "interp/Ops.h"
#include "interp/RandomBits.h"
#include "interp/Strided.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

namespace hloc::interp {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> x, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * x[0], b = uint64_t(0xCD9E8D57) * x[2];
    x = {uint32_t(b >> 32) ^ x[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ x[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return x;
}

std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> x, std::array<uint32_t, 2> key) {
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x[0] += keys[0];
  x[1] += keys[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (int rotation : rotations[(group - 1) % 2]) {
      x[0] += x[1];
      x[1] = std::rotl(x[1], rotation) ^ x[0];
    }
    x[0] += keys[group % 3];
    x[1] += keys[(group + 1) % 3] + group;
  }
  return x;
}

namespace {

std::array<uint32_t, 2> halves(uint64_t x) { return {uint32_t(x), uint32_t(x >> 32)}; }

/// Puts generated words into elements; types under 32 bits take the low bits of a word each.
void setWord(Literal &bits, int64_t element, uint64_t word) {
  ElementType type = bits.shape().elementType();
  if (isInteger(type))
    bits.setInt(element, int64_t(word)); // truncates
  else
    bits.setBits(element, bitWidth(type) >= 64 ? word : word & ((uint64_t(1) << bitWidth(type)) - 1));
}

/// Fills `bits` from the counter on and returns the number of blocks used.
uint64_t fillPhilox(Literal &bits, uint64_t key, uint64_t low, uint64_t high) {
  bool wide = bitWidth(bits.shape().elementType()) == 64;
  int64_t perBlock = wide ? 2 : 4, count = bits.numElements();
  int64_t blocks = (count + perBlock - 1) / perBlock;
  for (int64_t block = 0; block < blocks; ++block) {
    uint64_t blockLow = low + uint64_t(block), blockHigh = high + (blockLow < low);
    auto [l0, l1] = halves(blockLow);
    auto [h0, h1] = halves(blockHigh);
    std::array<uint32_t, 4> words = philox({l0, l1, h0, h1}, halves(key));
    for (int64_t i = 0; i < perBlock && block * perBlock + i < count; ++i)
      setWord(bits, block * perBlock + i,
              wide ? words[size_t(2 * i)] | uint64_t(words[size_t(2 * i + 1)]) << 32 : words[size_t(i)]);
  }
  return uint64_t(blocks);
}

/// The dimension along which the two words of a block lie: the first of even size, else the largest.
size_t splitDimension(llvm::ArrayRef<int64_t> dims) {
  size_t largest = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] % 2 == 0)
      return i;
    if (dims[i] > dims[largest])
      largest = i;
  }
  return largest;
}

uint64_t fillThreefry(Literal &bits, uint64_t key, uint64_t counter) {
  const Shape &shape = bits.shape();
  if (bitWidth(shape.elementType()) == 64 || shape.isScalar()) {
    bool wide = bitWidth(shape.elementType()) == 64;
    for (int64_t i = 0; i < bits.numElements(); ++i) {
      std::array<uint32_t, 2> words = threefry(halves(counter + uint64_t(i)), halves(key));
      setWord(bits, i, wide ? words[0] | uint64_t(words[1]) << 32 : words[0]);
    }
    return uint64_t(bits.numElements());
  }
  size_t split = splitDimension(shape.dims());
  Index half(shape.dims().begin(), shape.dims().end()), strides = rowMajorStrides(shape.dims());
  half[split] = (half[split] + 1) / 2;
  Index at(half.size(), 0);
  uint64_t block = 0;
  if (product(half) == 0)
    return 0;
  do {
    std::array<uint32_t, 2> words = threefry(halves(counter + block++), halves(key));
    int64_t first = linearIndex(at, strides) + at[split] * strides[split]; // index 2*at along the split dimension
    setWord(bits, first, words[0]);
    if (2 * at[split] + 1 < shape.dim(unsigned(split)))
      setWord(bits, first + strides[split], words[1]);
  } while (increment(at, half));
  return block;
}

/// 64 fresh bits of the hidden state.
uint64_t nextBits(Machine &machine) {
  std::array<uint32_t, 2> words = threefry(halves(machine.rngState++), {0x68, 0x6C});
  return words[0] | uint64_t(words[1]) << 32;
}
double nextUnit(Machine &machine) { return double(nextBits(machine) >> 11) * 0x1p-53; }

} // namespace

llvm::FailureOr<Value> evaluateRngBitGenerator(Step &step) {
  const Literal &state = step.array(0);
  auto algorithm = step.instr.enumOr(AttributeKey::Algorithm, RandomAlgorithm::Default);
  bool isThreefry = algorithm == RandomAlgorithm::ThreeFry;
  if (state.shape().elementType() != ElementType::U64 || state.shape().rank() != 1 || state.numElements() < 2 ||
      state.numElements() > (isThreefry ? 2 : 3))
    return step.unsupported("a state of this shape");
  const bool givesState = step.shape().isTuple();
  Literal bits(givesState ? step.shape().element(1) : step.shape()), newState = state;
  auto words = newState.mutableData<uint64_t>();
  if (isThreefry) {
    words[1] += fillThreefry(bits, words[0], words[1]);
  } else {
    // A state of two words is its own high half of the counter.
    bool three = words.size() == 3;
    uint64_t low = words[1], blocks = fillPhilox(bits, words[0], low, three ? words[2] : words[0]);
    words[1] += blocks;
    if (three && words[1] < low)
      ++words[2];
  }
  if (!givesState)
    return Value(std::move(bits));
  return Value::tuple({Value(std::move(newState)), Value(std::move(bits))});
}

llvm::FailureOr<Value> evaluateRng(Step &step) {
  Literal result(step.shape());
  ElementType type = step.shape().elementType();
  const Literal &a = step.array(0), &b = step.array(1);
  bool normal =
      step.instr.enumOr(AttributeKey::Distribution, RandomDistribution::Uniform) == RandomDistribution::Normal;
  if (isComplex(type) || (normal && !isFloat(type)))
    return step.unsupported("this element type", DiagnosticKind::UnsupportedType);
  for (int64_t i = 0; i < result.numElements(); ++i) {
    if (normal) { // Box-Muller
      double radius = std::sqrt(-2 * std::log(1 - nextUnit(step.machine)));
      result.setDouble(i, a.getDouble(0) +
                              b.getDouble(0) * radius * std::cos(2 * std::numbers::pi * nextUnit(step.machine)));
    } else if (isFloat(type)) {
      double low = a.getDouble(0), high = b.getDouble(0);
      result.setDouble(i, low + nextUnit(step.machine) * (high - low));
      if (result.getDouble(i) >= high) // rounded up to the excluded end
        result.setDouble(i, low);
    } else {
      uint64_t range = uint64_t(b.getInt(0)) - uint64_t(a.getInt(0)), bits = nextBits(step.machine);
      result.setInt(i, int64_t(uint64_t(a.getInt(0)) + (range ? bits % range : 0)));
    }
  }
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateRngGetAndUpdateState(Step &step) {
  Literal state(step.shape());
  state.setInt(0, int64_t(step.machine.rngState));
  step.machine.rngState += uint64_t(step.instr.intOr(AttributeKey::Delta, 0));
  return Value(std::move(state));
}

} // namespace hloc::interp
