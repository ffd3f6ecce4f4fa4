// One idea: f32 is cut off behind the bits of a narrower type, which overflows nowhere and leaves a rest that is exact;
// the last piece is rounded.

#include "emitters/heroes/FactorPieces.h"

#include "emitters/Convert.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace hloc {
namespace {

constexpr unsigned lowBitsOfBrain = 16, lowBitsOfWord = 13; ///< of an f32, that bf16 and tf32 do not have

Value word(CodeBuilder &b, Value value) { return arith::BitcastOp::create(b, b.getI32Type(), value); }
Value single(CodeBuilder &b, Value bits) { return arith::BitcastOp::create(b, b.getF32Type(), bits); }

/// NaN, whose bits may all be among those that are cut off or carry into its sign, has others.
Value unlessNan(CodeBuilder &b, Value value, Value bits) {
  constexpr int64_t nan = 0x7fc00000;
  return single(b, b.select(b.isNan(value), b.integer(b.getI32Type(), nan), bits));
}

/// Behind the bits that a fragment of the type has.
Value cutOff(CodeBuilder &b, Value value, ElementType fragment) {
  const unsigned lowBits = fragment == ElementType::F32 ? lowBitsOfWord : lowBitsOfBrain;
  Value mask = b.integer(b.getI32Type(), int32_t(~((uint32_t(1) << lowBits) - 1)));
  return single(b, b.andI(word(b, value), mask));
}

/// To the nearest, ties away from zero. Tensor cores do not look at what is below.
Value roundedToWord(CodeBuilder &b, Value value) {
  Value half = b.integer(b.getI32Type(), int64_t(1) << (lowBitsOfWord - 1));
  return unlessNan(b, value, b.addI(word(b, value), half));
}

Value rounded(CodeBuilder &b, Value value, ElementType fragment) {
  return fragment == ElementType::F32 ? roundedToWord(b, value) : convertElement(b, value, ElementType::F32, fragment);
}

} // namespace

Value asFragmentFactor(CodeBuilder &b, Value stored, ElementType from, ElementType fragment) {
  return from == fragment ? stored : convertElement(b, stored, from, fragment);
}

SmallVector<Value> factorPieces(CodeBuilder &b, Value value, ElementType fragment, unsigned number) {
  SmallVector<Value> pieces;
  for (unsigned i = 0; i + 1 < number; ++i) {
    Value first = unlessNan(b, value, word(b, cutOff(b, value, fragment)));
    pieces.push_back(convertElement(b, first, ElementType::F32, fragment));
    value = b.subF(value, first);
  }
  pieces.push_back(rounded(b, value, fragment));
  return pieces;
}

SmallVector<Value> piecesOfOneSign(CodeBuilder &b, Value value, ElementType fragment, unsigned number) {
  Value isAny = b.cmpF(CodeBuilder::FPred::UNE, value, 0.0);
  Value unit = b.select(isAny, b.integer(b.getI32Type(), 1), b.integer(b.getI32Type(), 0));
  SmallVector<Value> pieces;
  for (unsigned i = 0; i + 1 < number; ++i) {
    Value less = single(b, b.subI(word(b, value), unit)); // the next number towards 0
    Value first = cutOff(b, less, fragment);
    pieces.push_back(convertElement(b, first, ElementType::F32, fragment));
    value = b.subF(value, first);
  }
  pieces.push_back(rounded(b, value, fragment));
  return pieces;
}

} // namespace hloc
