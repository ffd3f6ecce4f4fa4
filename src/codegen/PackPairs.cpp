// Neighbouring lanes of unrolled code as one instruction.
//
// PTX computes on pairs of 16-bit floats, and from sm_100 on of f32. Emitters unroll a thread's elements, so that the
// same chain of operations stands there once for each lane of a vector that was loaded:
//
//   %a0 = extractelement <4 x bfloat> %x, 0      %a1 = extractelement <4 x bfloat> %x, 1
//   %b0 = fmul bfloat %a0, %k                    %b1 = fmul bfloat %a1, %k
//
// %a0 and %a1 are partners; so are two operations of one kind whose operands are the same or partners. Partners that
// PTX can compute together become one: %b = fmul <2 x bfloat> <%a0, %a1>, splat(%k). LLVM's SLP vectoriser finds the
// same pairs by trying, which takes longer than everything else that is done to such kernels together, and time that
// grows faster than they do; here each instruction is looked at a fixed number of times.

#include "LlvmStageParts.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

#include <array>
#include <unordered_map>

namespace hloc {

namespace {

using llvm::Instruction;
using llvm::Value;

/// No effect but its result: may stand anywhere between its operands and its users.
bool isPure(const Instruction &instruction) {
  return !instruction.isTerminator() && !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects() &&
         !llvm::isa<llvm::PHINode, llvm::AllocaInst>(instruction);
}

/// Operations with a packed form for 16-bit floats: `add.bf16x2`, `max.NaN.f16x2`, ...
bool isPackedHalf(const Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FNeg:
    return true;
  default:
    break;
  }
  const auto *intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!intrinsic)
    return false;
  switch (intrinsic->getIntrinsicID()) {
  case llvm::Intrinsic::fma:
  case llvm::Intrinsic::fmuladd:
  case llvm::Intrinsic::fabs:
  case llvm::Intrinsic::maximum:
  case llvm::Intrinsic::minimum:
  case llvm::Intrinsic::maxnum:
  case llvm::Intrinsic::minnum:
    return true;
  default:
    return false;
  }
}

/// `add`, `sub`, `mul` and `fma` have a form for two f32.
bool isPackedSingle(const Instruction &instruction) {
  if (const auto *intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return llvm::is_contained({llvm::Intrinsic::fma, llvm::Intrinsic::fmuladd}, intrinsic->getIntrinsicID());
  return llvm::is_contained({Instruction::FAdd, Instruction::FSub, Instruction::FMul}, instruction.getOpcode());
}

bool isPackable(const Instruction &instruction, const TargetInfo &target) {
  llvm::Type *type = instruction.getType();
  if (type->isHalfTy())
    return isPackedHalf(instruction);
  if (type->isBFloatTy())
    return target.atLeast(9, 0) && isPackedHalf(instruction);
  return type->isFloatTy() && target.atLeast(10, 0) && isPackedSingle(instruction);
}

/// The operands that carry data; of a call, not the callee.
llvm::iterator_range<llvm::User::op_iterator> dataOperands(Instruction &instruction) {
  if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
    return call->args();
  return instruction.operands();
}

class BlockPacker {
public:
  BlockPacker(llvm::BasicBlock &block, const TargetInfo &target) : block(block), target(target) {}

  bool run() {
    findPartners();
    dropLosses();
    if (packed.empty())
      return false;
    for (auto [even, odd] : packed)
      rewrite(*even, *odd);
    removeScalars();
    orderByNeed();
    return true;
  }

private:
  void findPartners();
  Instruction *findPartner(Instruction &even, const std::unordered_multimap<size_t, Instruction *> &byOperation);
  void dropLosses();
  int costOf(Instruction &even, Instruction &odd);
  void rewrite(Instruction &even, Instruction &odd);
  Value *pairOf(Value *even, Value *odd, llvm::IRBuilder<> &builder);
  void removeScalars();
  void orderByNeed();

  Value *partnerOf(Value *value) const {
    auto it = partners.find(value);
    return it == partners.end() ? nullptr : it->second;
  }

  llvm::BasicBlock &block;
  const TargetInfo &target;
  llvm::DenseMap<Value *, Value *> partners;            ///< even lane -> odd lane
  llvm::MapVector<Instruction *, Instruction *> packed; ///< those that become one instruction, in order of the even
  llvm::DenseMap<std::pair<Value *, Value *>, Value *> vectors; ///< pairs that exist as vectors already
};

size_t hashOperation(const Instruction &instruction, llvm::ArrayRef<Value *> operands) {
  return llvm::hash_combine(instruction.getOpcode(), instruction.getType(),
                            llvm::hash_combine_range(operands.begin(), operands.end()));
}

void BlockPacker::findPartners() {
  std::unordered_multimap<size_t, Instruction *> byOperation;
  llvm::DenseMap<std::pair<Value *, uint64_t>, Instruction *> lanes;
  for (Instruction &instruction : block) {
    uint64_t lane;
    Value *vector;
    using namespace llvm::PatternMatch;
    if (match(&instruction, m_ExtractElt(m_Value(vector), m_ConstantInt(lane))))
      lanes.try_emplace({vector, lane}, &instruction);
    else if (isPure(instruction))
      byOperation.emplace(hashOperation(instruction, llvm::SmallVector<Value *>(instruction.operand_values())),
                          &instruction);
  }
  for (auto [key, instruction] : lanes)
    if (auto odd = lanes.find({key.first, key.second + 1}); key.second % 2 == 0 && odd != lanes.end())
      partners[instruction] = odd->second;
  for (Instruction &instruction : block) {
    if (!isPure(instruction) || partners.contains(&instruction))
      continue;
    Instruction *odd = findPartner(instruction, byOperation);
    if (!odd)
      continue;
    partners[&instruction] = odd;
    if (isPackable(instruction, target))
      packed[&instruction] = odd;
  }
}

Instruction *BlockPacker::findPartner(Instruction &even,
                                      const std::unordered_multimap<size_t, Instruction *> &byOperation) {
  llvm::SmallVector<Value *> operands;
  bool anyPartner = false;
  for (Value *operand : even.operand_values()) {
    Value *partner = partnerOf(operand);
    anyPartner |= partner != nullptr;
    operands.push_back(partner ? partner : operand);
  }
  if (!anyPartner)
    return nullptr;
  auto [begin, end] = byOperation.equal_range(hashOperation(even, operands));
  for (auto it = begin; it != end; ++it)
    if (it->second->isSameOperationAs(&even) && llvm::equal(it->second->operand_values(), operands))
      return it->second;
  return nullptr;
}

/// Instructions that packing `even` and `odd` adds, less the one it saves. A register holds a pair that was loaded or
/// is stored; only pairs that scalars compute or use have to be put together or taken apart.
int BlockPacker::costOf(Instruction &even, Instruction &odd) {
  int cost = -1;
  for (Value *operand : dataOperands(even)) {
    auto *instruction = llvm::dyn_cast<Instruction>(operand);
    bool isFree = llvm::isa<llvm::Constant>(operand) || (instruction && packed.contains(instruction)) ||
                  (llvm::isa<llvm::ExtractElementInst>(operand) && partnerOf(operand)) ||
                  // one conversion makes both halves
                  (llvm::isa<llvm::FPTruncInst>(operand) && partnerOf(operand) && operand->hasOneUse());
    cost += isFree ? 0 : 1;
  }
  auto isScalarUse = [&](llvm::User *user) {
    auto *instruction = llvm::cast<Instruction>(user);
    return !llvm::isa<llvm::InsertElementInst>(user) && !packed.contains(instruction);
  };
  cost += llvm::any_of(even.users(), isScalarUse);
  return cost;
}

/// Connected pairs are packed together or not at all.
void BlockPacker::dropLosses() {
  llvm::EquivalenceClasses<Instruction *> groups;
  for (auto [even, odd] : packed) {
    groups.insert(even);
    for (Value *operand : dataOperands(*even))
      if (auto *instruction = llvm::dyn_cast<Instruction>(operand); instruction && packed.contains(instruction))
        groups.unionSets(even, instruction);
  }
  llvm::DenseMap<Instruction *, int> costs;
  for (auto [even, odd] : packed)
    costs[groups.getLeaderValue(even)] += costOf(*even, *odd);
  packed.remove_if([&](auto &pair) { return costs[groups.getLeaderValue(pair.first)] >= 0; });
}

Value *BlockPacker::pairOf(Value *even, Value *odd, llvm::IRBuilder<> &builder) {
  auto [it, isNew] = vectors.try_emplace({even, odd});
  if (!isNew)
    return it->second;
  Value *vector, *oddVector;
  uint64_t lane;
  using namespace llvm::PatternMatch;
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(even); constant && even == odd)
    vector = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(2), constant);
  else if (match(even, m_ExtractElt(m_Value(vector), m_ConstantInt(lane))) &&
           match(odd, m_ExtractElt(m_Value(oddVector), m_SpecificInt(lane + 1))) && vector == oddVector)
    vector = builder.CreateShuffleVector(vector, {int(lane), int(lane) + 1});
  else
    vector = builder.CreateInsertElement(
        builder.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(even->getType(), 2)), even,
                                    uint64_t(0)),
        odd, uint64_t(1));
  return vectors[{even, odd}] = vector;
}

/// Users get extracts; orderByNeed puts everything where its operands are.
void BlockPacker::rewrite(Instruction &even, Instruction &odd) {
  llvm::IRBuilder<> builder(&even);
  llvm::SmallVector<Value *, 3> operands;
  for (auto [evenOperand, oddOperand] : llvm::zip_equal(dataOperands(even), dataOperands(odd)))
    operands.push_back(pairOf(evenOperand, oddOperand, builder));
  Value *result;
  if (auto *intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&even))
    result = builder.CreateIntrinsic(operands.front()->getType(), intrinsic->getIntrinsicID(), operands);
  else if (even.getOpcode() == Instruction::FNeg)
    result = builder.CreateFNeg(operands[0]);
  else
    result = builder.CreateBinOp(llvm::Instruction::BinaryOps(even.getOpcode()), operands[0], operands[1]);
  if (auto *instruction = llvm::dyn_cast<Instruction>(result)) {
    instruction->copyIRFlags(&even);
    instruction->andIRFlags(&odd);
  }
  vectors[{&even, &odd}] = result;
}

/// What still reads one lane extracts it; the scalar operations go.
void BlockPacker::removeScalars() {
  llvm::SmallPtrSet<Instruction *, 32> dead;
  for (auto [even, odd] : packed)
    dead.insert({even, odd});
  for (auto [even, odd] : packed) {
    Value *vector = vectors.lookup({even, odd});
    if (even->hasName()) // only where dumps are asked for
      vector->takeName(even);
    const std::array<Instruction *, 2> lanes = {even, odd};
    for (auto [lane, scalar] : llvm::enumerate(lanes)) {
      llvm::IRBuilder<> builder(scalar);
      Value *extract = builder.CreateExtractElement(vector, uint64_t(lane));
      scalar->replaceUsesWithIf(extract,
                                [&](llvm::Use &use) { return !dead.contains(llvm::cast<Instruction>(use.getUser())); });
      if (auto *instruction = llvm::dyn_cast<Instruction>(extract); instruction && instruction->use_empty())
        instruction->eraseFromParent();
    }
  }
  for (Instruction *scalar : dead)
    scalar->dropAllReferences();
  for (Instruction *scalar : dead)
    scalar->eraseFromParent();
}

/// Pure instructions move to where their first user needs them, depth first; all others keep their order. Operands of a
/// pair stood before either of its lanes, so there is such an order.
void BlockPacker::orderByNeed() {
  std::vector<Instruction *> anchors;
  llvm::SmallPtrSet<Instruction *, 32> waiting;
  for (Instruction &instruction : block)
    if (isPure(instruction))
      waiting.insert(&instruction);
    else if (!llvm::isa<llvm::PHINode>(instruction))
      anchors.push_back(&instruction);
  // Needed by other blocks, or at this block's end by a phi, wherever it stands.
  std::vector<Instruction *> exported;
  auto leaves = [&](const llvm::User *user) {
    return llvm::isa<llvm::PHINode>(user) || llvm::cast<Instruction>(user)->getParent() != &block;
  };
  for (Instruction &instruction : block)
    if (waiting.contains(&instruction) && llvm::any_of(instruction.users(), leaves))
      exported.push_back(&instruction);

  std::vector<std::pair<Instruction *, unsigned>> stack;
  auto place = [&](Instruction *root, Instruction *before) {
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[instruction, next] = stack.back();
      if (next < instruction->getNumOperands()) {
        auto *operand = llvm::dyn_cast<Instruction>(instruction->getOperand(next++));
        if (operand && waiting.erase(operand))
          stack.push_back({operand, 0});
        continue;
      }
      if (instruction != before)
        instruction->moveBefore(before->getIterator());
      stack.pop_back();
    }
  };
  for (Instruction *anchor : anchors) {
    if (anchor->isTerminator())
      for (Instruction *instruction : exported)
        if (waiting.erase(instruction))
          place(instruction, anchor);
    place(anchor, anchor);
  }
  for (Instruction *unused : waiting)
    unused->replaceAllUsesWith(llvm::PoisonValue::get(unused->getType()));
  for (Instruction *unused : waiting)
    unused->eraseFromParent();
}

} // namespace

bool packPairs(llvm::Module &module, const TargetInfo &target) {
  bool changed = false;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      changed |= BlockPacker(block, target).run();
  return changed;
}

} // namespace hloc
