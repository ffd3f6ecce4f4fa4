// Signed bytes become 16-bit floats two at a time.
//
// A weight of 8 bits is converted by itself: a byte is cut out and extended, converted to f32, multiplied, and rounded
// with its neighbour. But a byte in the mantissa of a float is a number already:
//
//   f16    0x6400 + (b ^ 0x80)    1024 + b + 128: less 1152 it is b
//   bf16   0x4300 + (b & 0x7f)    128 + the lower bits, of which the mantissa has room for seven:
//        - 0x4300 - (b & 0x80)    less 128, or 256 where b is negative, it is b
//
// All of this is exact, and so is an f32 product of a byte and a 16-bit float: rounded to 16 bits it is the 16-bit
// product.
//
//   %a = extractelement <4 x i8> %x, 0                 %p = prmt (bitcast %x), 0x43434343, 0x4140
//   %f = sitofp i8 %a to float                         %v = fsub <2 x bfloat> (%p & 0xff7fff7f), (%p & 0xff80ff80)
//   %m = fmul float %f, (fpext bfloat %s)              %b = extractelement <2 x bfloat> %v, 0
//   %t = fptrunc float %m to bfloat                    %t = fmul bfloat %b, %s
//
// PackPairs, which comes next, makes one product of two, if this does not.

#include "ByteWords.h"
#include "LlvmStageParts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

#include <array>

namespace hloc {

namespace {

using llvm::Value;
using namespace llvm::PatternMatch;

/// A byte of a vector that becomes a 16-bit float, as it is or multiplied.
struct Conversion {
  llvm::Instruction *result = nullptr; ///< the 16-bit float
  Value *factor = nullptr;             ///< of its type; null: it is the byte itself
};

/// By vector and lane; lanes that stay as they are have none.
using Conversions = llvm::MapVector<Value *, llvm::SmallVector<Conversion, 8>>;

bool isHalf(const llvm::Type *type) { return type->isHalfTy() || type->isBFloatTy(); }

/// What becomes of the number that `extract` is, if nothing else reads it.
std::optional<Conversion> conversionOf(llvm::Instruction &extract) {
  auto *number = extract.hasOneUse() ? llvm::dyn_cast<llvm::SIToFPInst>(*extract.user_begin()) : nullptr;
  if (!number)
    return std::nullopt;
  if (isHalf(number->getType()))
    return Conversion{number};
  if (!number->getType()->isFloatTy() || !number->hasOneUse())
    return std::nullopt;
  Conversion found;
  llvm::User *user = *number->user_begin();
  Value *factor = nullptr;
  if (match(user, m_c_FMul(m_Specific(number), m_FPExt(m_Value(factor))))) {
    if (!user->hasOneUse())
      return std::nullopt;
    user = *user->user_begin();
  }
  found.result = llvm::dyn_cast<llvm::FPTruncInst>(user);
  found.factor = factor;
  const bool fits =
      found.result && isHalf(found.result->getType()) && (!factor || factor->getType() == found.result->getType());
  return fits ? std::optional(found) : std::nullopt;
}

void find(llvm::BasicBlock &block, Conversions &conversions) {
  for (llvm::Instruction &instruction : block) {
    Value *vector = nullptr;
    uint64_t lane = 0;
    if (!match(&instruction, m_ExtractElt(m_Value(vector), m_ConstantInt(lane))))
      continue;
    auto *type = bytesInWords(vector->getType());
    if (!type || lane >= type->getNumElements() || !llvm::isa<llvm::Instruction>(vector) ||
        llvm::isa<llvm::PHINode>(vector))
      continue;
    if (auto conversion = conversionOf(instruction)) {
      auto &lanes = conversions[vector];
      lanes.resize(type->getNumElements());
      lanes[lane] = *conversion;
    }
  }
}

/// Bytes 0 and 1 of a word, or 2 and 3, as floats. Each nibble of prmt's selector names a byte: 0 to 3 of the word, 4
/// of what is to be the upper half of a float.
Value *pairOf(llvm::IRBuilder<> &builder, Value *word, bool isUpper, llvm::Type *type) {
  const bool isBrain = type->isBFloatTy();
  auto *pair = llvm::FixedVectorType::get(type, 2);
  auto permuted = [&](Value *bytes, uint32_t exponents) {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt,
                                   {bytes, builder.getInt32(exponents), builder.getInt32(isUpper ? 0x4342 : 0x4140)});
  };
  auto asPair = [&](Value *bits) { return builder.CreateBitCast(bits, pair); };
  if (isBrain) {
    Value *bits = permuted(word, 0x43434343);
    return builder.CreateFSub(asPair(builder.CreateAnd(bits, 0xff7fff7f)), asPair(builder.CreateAnd(bits, 0xff80ff80)));
  }
  Value *bits = permuted(builder.CreateXor(word, 0x80808080), 0x64646464);
  return builder.CreateFSub(asPair(bits), llvm::ConstantFP::get(pair, 1152));
}

/// Neighbouring factors that a block before this one has loaded, as a pair: where PackPairs, which looks at one block,
/// would have to put them together. Null if they are none.
Value *factorsOf(llvm::IRBuilder<> &builder, const std::array<Conversion, 2> &both) {
  Value *vector = nullptr;
  uint64_t lane = 0;
  if (!both[0].factor || !both[1].factor ||
      !match(both[0].factor, m_ExtractElt(m_Value(vector), m_ConstantInt(lane))) || lane % 2 != 0 ||
      !match(both[1].factor, m_ExtractElt(m_Specific(vector), m_SpecificInt(lane + 1))))
    return nullptr;
  auto *definition = llvm::dyn_cast<llvm::Instruction>(vector);
  if (!definition || definition->getParent() == builder.GetInsertBlock() ||
      both[0].result->getParent() != builder.GetInsertBlock())
    return nullptr;
  return builder.CreateShuffleVector(vector, {int(lane), int(lane) + 1});
}

/// Neighbours become floats together where both are converted to the same type. What they replace is added to `dead`.
void rewrite(Value *vector, llvm::ArrayRef<Conversion> lanes, llvm::SmallVectorImpl<llvm::WeakTrackingVH> &dead) {
  auto *definition = llvm::cast<llvm::Instruction>(vector);
  llvm::IRBuilder<> builder(definition->getNextNode());
  for (size_t even = 0; even < lanes.size(); even += 2) {
    const std::array<Conversion, 2> both = {lanes[even], lanes[even + 1]};
    if (!both[0].result || !both[1].result || both[0].result->getType() != both[1].result->getType())
      continue;
    Value *word = wordOf(builder, vector, even);
    Value *pair = pairOf(builder, word, even % bytesOfWord != 0, both[0].result->getType());
    Value *factors = factorsOf(builder, both);
    if (factors)
      pair = builder.CreateFMul(pair, factors);
    for (auto [lane, conversion] : llvm::enumerate(both)) {
      llvm::IRBuilder<> at(conversion.result);
      Value *value = at.CreateExtractElement(pair, uint64_t(lane));
      if (conversion.factor && !factors)
        value = at.CreateFMul(value, conversion.factor);
      value->takeName(conversion.result);
      conversion.result->replaceAllUsesWith(value);
      dead.push_back(conversion.result);
    }
  }
}

} // namespace

bool packIntegers(llvm::Module &module, const TargetInfo &target) {
  if (!target.atLeast(9, 0)) // before, no bf16 is subtracted
    return false;
  llvm::SmallVector<llvm::WeakTrackingVH, 32> dead;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function) {
      Conversions conversions;
      find(block, conversions);
      for (auto &[vector, lanes] : conversions)
        rewrite(vector, lanes, dead);
    }
  const bool changed = !dead.empty();
  llvm::RecursivelyDeleteTriviallyDeadInstructions(dead);
  return changed;
}

} // namespace hloc
