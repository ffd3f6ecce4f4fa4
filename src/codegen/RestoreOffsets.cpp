// Indices that differ by a constant are that again, after LLVM has left out what it does not need to know.
//
// Of (x & 60) + 320 with x < 128, the simplifier leaves out the mask's bit 64, which 320 sets anyway, and with it what
// the index has in common with those of other rows. Each then is an address of its own, which nothing can compare with
// others but at length:
//
//   %a = and i32 %x, 60                    %a = and i32 %x, 60
//   %b = or i32 %x, 320              ->    %b = or disjoint i32 %a, 320
//   %c = or i32 %x, 448                    %c = or disjoint i32 %a, 448

#include "LlvmStageParts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

namespace hloc {

namespace {

using namespace llvm::PatternMatch;

bool isIndex(const llvm::Value &value) {
  return llvm::any_of(value.users(), [](const llvm::User *user) {
    return llvm::isa<llvm::GetElementPtrInst>(user) ||
           (llvm::isa<llvm::ZExtInst, llvm::SExtInst>(user) && llvm::any_of(user->users(), [](const llvm::User *next) {
              return llvm::isa<llvm::GetElementPtrInst>(next);
            }));
  });
}

/// By value and the bits of it that are left: what sets all others that the value may have.
using Offsets = llvm::MapVector<std::pair<llvm::Instruction *, uint64_t>, llvm::SmallVector<llvm::BinaryOperator *, 8>>;

Offsets findOffsets(llvm::Function &function, const llvm::DataLayout &layout) {
  Offsets found;
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block) {
      llvm::Instruction *value;
      const llvm::APInt *set;
      if (!match(&instruction, m_Or(m_Instruction(value), m_APInt(set))) || set->getBitWidth() > 64 ||
          llvm::isa<llvm::PHINode>(value) || value->isTerminator() ||
          llvm::cast<llvm::PossiblyDisjointInst>(instruction).isDisjoint() || !isIndex(instruction))
        continue;
      llvm::APInt possible = ~llvm::computeKnownBits(value, layout).Zero;
      found[{value, (possible & ~*set).getZExtValue()}].push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    }
  return found;
}

/// What else has these bits of `value`, without being an offset.
llvm::SmallVector<llvm::Instruction *, 2> sameBits(llvm::Instruction &value, uint64_t mask,
                                                   const llvm::DataLayout &layout) {
  llvm::SmallVector<llvm::Instruction *, 2> same;
  llvm::APInt possible = ~llvm::computeKnownBits(&value, layout).Zero;
  for (llvm::User *user : value.users()) {
    const llvm::APInt *kept;
    if (match(user, m_And(m_Specific(&value), m_APInt(kept))) && (*kept & possible) == mask)
      same.push_back(llvm::cast<llvm::Instruction>(user));
  }
  return same;
}

/// `index` in a wider type, as a sum with a constant there, if it is one in its own and that may be too narrow; null:
/// not.
///
/// LLVM 22's vectorizer multiplies what two indices differ by with the size of an element in their type: of `i8` 180
/// and 0, four bytes each, it takes (180 * 4) mod 256 for the distance, and may take two loads for one.
llvm::Value *widened(llvm::CastInst &index) {
  llvm::Value *rest;
  const llvm::APInt *offset;
  const bool isSigned = llvm::isa<llvm::SExtInst>(index);
  llvm::Value *narrow = index.getOperand(0);
  if (isSigned ? !match(narrow, m_NSWAdd(m_Value(rest), m_APInt(offset)))
               : !match(narrow, m_CombineOr(m_NUWAdd(m_Value(rest), m_APInt(offset)),
                                            m_DisjointOr(m_Value(rest), m_APInt(offset)))))
    return nullptr;
  const unsigned bits = index.getType()->getScalarSizeInBits();
  const llvm::APInt wide = isSigned ? offset->sext(bits) : offset->zext(bits);
  constexpr uint64_t mostBytes = 64; // twice what an element, or a vector of them, has
  if (wide.abs().ult((uint64_t(1) << (offset->getBitWidth() - 1)) / mostBytes))
    return nullptr;
  llvm::IRBuilder<> builder(&index);
  llvm::Value *base = builder.CreateCast(index.getOpcode(), rest, index.getType());
  return builder.CreateAdd(base, llvm::ConstantInt::get(index.getType(), wide), "", /*HasNUW=*/!isSigned,
                           /*HasNSW=*/true);
}

} // namespace

void widenOffsets(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      const bool isWidening = llvm::isa<llvm::ZExtInst, llvm::SExtInst>(instruction) && isIndex(instruction) &&
                              instruction.getType()->isIntegerTy(64);
      if (llvm::Value *sum = isWidening ? widened(llvm::cast<llvm::CastInst>(instruction)) : nullptr) {
        sum->takeName(&instruction);
        instruction.replaceAllUsesWith(sum);
        instruction.eraseFromParent();
      }
    }
}

void restoreOffsets(llvm::Module &module) {
  const llvm::DataLayout &layout = module.getDataLayout();
  for (llvm::Function &function : module)
    for (auto &[key, offsets] : findOffsets(function, layout)) {
      auto [value, mask] = key;
      llvm::SmallVector<llvm::Instruction *, 2> same = sameBits(*value, mask, layout);
      if (offsets.size() + same.size() < 2)
        continue; // one alone has nothing in common with others
      llvm::IRBuilder<> builder(value->getNextNode());
      llvm::Value *common = builder.CreateAnd(value, mask, value->getName());
      for (llvm::BinaryOperator *offset : offsets) {
        offset->setOperand(0, common);
        llvm::cast<llvm::PossiblyDisjointInst>(offset)->setIsDisjoint(true);
      }
      // They stay, without users: they may be the value of other offsets.
      for (llvm::Instruction *other : same)
        other->replaceAllUsesWith(common);
    }
}

} // namespace hloc
