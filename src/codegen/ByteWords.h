#pragma once
// Vectors of bytes that consist of whole words, and their words.

#include "llvm/IR/IRBuilder.h"

namespace hloc {

inline constexpr unsigned bytesOfWord = 4;

/// `type` if it is such a vector, else null.
inline llvm::FixedVectorType *bytesInWords(llvm::Type *type) {
  auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const bool fits = vector && vector->getElementType()->isIntegerTy(8) && vector->getNumElements() % bytesOfWord == 0;
  return fits ? vector : nullptr;
}

/// The word that has byte `lane` of such a vector.
inline llvm::Value *wordOf(llvm::IRBuilder<> &builder, llvm::Value *bytes, uint64_t lane) {
  const unsigned words = llvm::cast<llvm::FixedVectorType>(bytes->getType())->getNumElements() / bytesOfWord;
  llvm::Type *word = builder.getInt32Ty();
  if (words == 1)
    return builder.CreateBitCast(bytes, word);
  llvm::Value *whole = builder.CreateBitCast(bytes, llvm::FixedVectorType::get(word, words));
  return builder.CreateExtractElement(whole, lane / bytesOfWord);
}

} // namespace hloc
