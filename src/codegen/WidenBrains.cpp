// bf16 that are loaded side by side become f32 as halves of words.
//
// bf16 is the upper half of an f32. LLVM takes the words of a vector apart into 16-bit registers and converts each:
// three instructions for two elements, where a shift and a mask of the word do:
//
//   %a = extractelement <8 x bfloat> %x, 4      %w = extractelement <4 x i32> (bitcast %x), 2
//   %f = fpext bfloat %a to float               %f = bitcast (shl %w, 16)
//
// After everything that looks for conversions, such as what makes one bf16 addition of two, an f32 one and another.

#include "LlvmStageParts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"

namespace hloc {

namespace {

using namespace llvm::PatternMatch;

struct Half {
  llvm::Instruction *conversion;
  uint64_t lane;
};

/// By loaded vector: those that become f32, if it consists of whole words.
using LoadedHalves = llvm::MapVector<llvm::LoadInst *, llvm::SmallVector<Half, 8>>;

void findHalves(llvm::BasicBlock &block, LoadedHalves &found) {
  for (llvm::Instruction &instruction : block) {
    llvm::Value *brain, *source;
    uint64_t lane;
    if (!instruction.getType()->isFloatTy() || !match(&instruction, m_FPExt(m_Value(brain))) ||
        !brain->getType()->isBFloatTy() || !match(brain, m_ExtractElt(m_Value(source), m_ConstantInt(lane))))
      continue;
    auto *load = llvm::dyn_cast<llvm::LoadInst>(source);
    auto *type = llvm::dyn_cast<llvm::FixedVectorType>(source->getType());
    if (load && type && type->getNumElements() % 2 == 0 && lane < type->getNumElements())
      found[load].push_back({&instruction, lane});
  }
}

void widen(Half half, llvm::Value *words) {
  llvm::IRBuilder<> builder(half.conversion);
  llvm::Value *word = words->getType()->isVectorTy() ? builder.CreateExtractElement(words, half.lane / 2) : words;
  llvm::Value *bits = half.lane % 2 == 0 ? builder.CreateShl(word, 16) : builder.CreateAnd(word, 0xffff0000);
  llvm::Value *single = builder.CreateBitCast(bits, builder.getFloatTy());
  single->takeName(half.conversion);
  half.conversion->replaceAllUsesWith(single);
  auto *extract = llvm::cast<llvm::Instruction>(half.conversion->getOperand(0));
  half.conversion->eraseFromParent();
  if (extract->use_empty())
    extract->eraseFromParent();
}

} // namespace

void widenBrains(llvm::Module &module) {
  LoadedHalves found;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      findHalves(block, found);
  for (auto &[load, halves] : found) {
    llvm::IRBuilder<> builder(load->getNextNode());
    unsigned numWords = llvm::cast<llvm::FixedVectorType>(load->getType())->getNumElements() / 2;
    llvm::Type *word = builder.getInt32Ty();
    llvm::Value *words = builder.CreateBitCast(load, numWords == 1 ? word : llvm::FixedVectorType::get(word, numWords));
    for (Half half : halves)
      widen(half, words);
  }
}

} // namespace hloc
