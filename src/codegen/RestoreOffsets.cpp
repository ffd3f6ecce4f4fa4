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

} // namespace

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
