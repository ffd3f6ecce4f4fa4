// Makes the number of registers that a plan counts on binding.
//
// Of a kernel whose plan wants many loads in flight, ptxas saves registers so that twice as many warps fit, and issues
// the loads one after the other; or, where it compiles objects (nvJitLink always does), takes as many as it likes. With
// `.maxnreg` it does neither. But what cannot do with so many would be spilled: only code that certainly can gets it.

#include "LlvmStageParts.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/NVPTXAddrSpace.h"

namespace hloc {

namespace {

/// 32-bit registers of a value. Predicates have registers of their own.
unsigned registersOf(const llvm::Type *type, const llvm::DataLayout &layout) {
  if (!type->isSized() || type->isIntegerTy(1))
    return 0;
  return unsigned((layout.getTypeSizeInBits(const_cast<llvm::Type *>(type)).getFixedValue() + 31) / 32);
}

bool isGlobal(const llvm::LoadInst &load) {
  unsigned space = load.getPointerAddressSpace();
  return space == llvm::NVPTXAS::ADDRESS_SPACE_GLOBAL || space == llvm::NVPTXAS::ADDRESS_SPACE_GENERIC;
}

/// Registers of what a block loads from global memory: what is in flight if all loads are issued first.
unsigned registersLoaded(const llvm::BasicBlock &block) {
  unsigned loaded = 0;
  for (const llvm::Instruction &instruction : block)
    if (const auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && isGlobal(*load))
      loaded += registersOf(load->getType(), block.getDataLayout());
  return loaded;
}

/// How many registers the values of a kernel need that live at once, if each load waits until its value is wanted.
class Pressure {
public:
  explicit Pressure(const llvm::Function &kernel) : kernel(kernel), layout(kernel.getDataLayout()) {
    for (const llvm::BasicBlock &block : kernel)
      order(block);
    findLiveOnEntry();
  }

  unsigned most() const {
    unsigned result = 0;
    for (const llvm::BasicBlock &block : kernel) {
      Values live = liveAtEnd(block);
      unsigned count = 0;
      for (const llvm::Value *value : live)
        count += weight(value);
      result = std::max(result, count);
      for (const llvm::Instruction *instruction : llvm::reverse(ordered.at(&block))) {
        step(*instruction, live, count);
        result = std::max(result, count);
      }
    }
    return result;
  }

  /// The same if each block issues all its loads of global memory first.
  unsigned mostLoadsFirst() const {
    unsigned result = 0;
    for (const llvm::BasicBlock &block : kernel) {
      unsigned count = registersLoaded(block);
      if (count != 0)
        for (const llvm::Value *value : liveOnEntry.at(&block))
          count += weight(value);
      result = std::max(result, count);
    }
    return result;
  }

private:
  using Values = llvm::DenseSet<const llvm::Value *>;

  /// Constant distances from an address are part of the instruction that uses them.
  static bool isFolded(const llvm::Value *value) {
    const auto *address = llvm::dyn_cast<llvm::GEPOperator>(value);
    return (address && address->hasAllConstantIndices()) || llvm::isa<llvm::AddrSpaceCastInst>(value);
  }
  static const llvm::Value *behind(const llvm::Value *value) {
    while (isFolded(value))
      value = llvm::cast<llvm::User>(value)->getOperand(0);
    return value;
  }

  unsigned weight(const llvm::Value *value) const { return registersOf(value->getType(), layout); }

  /// May the instruction be executed later without anybody noticing: until something is stored, if it is a load of what
  /// may change, else until its value is wanted?
  static bool mayWait(const llvm::Instruction &instruction) {
    if (const auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
      return load->isSimple();
    return llvm::isa<llvm::ExtractElementInst, llvm::InsertElementInst, llvm::ShuffleVectorInst, llvm::ExtractValueInst,
                     llvm::CastInst, llvm::GetElementPtrInst>(instruction);
  }
  static bool waitsForever(const llvm::Instruction &instruction) {
    return !llvm::isa<llvm::LoadInst>(instruction) || instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load);
  }

  /// The instructions of a block, those that may wait where they are wanted.
  void order(const llvm::BasicBlock &block) {
    std::vector<const llvm::Instruction *> &result = ordered[&block];
    llvm::DenseSet<const llvm::Instruction *> waiting;
    llvm::SmallVector<const llvm::Instruction *> untilStore; // of those: loads of what may change
    // Chains of them are as long as the block: no recursion.
    auto take = [&](const llvm::Instruction *wanted) {
      llvm::SmallVector<const llvm::Instruction *> stack(1, wanted);
      while (!stack.empty()) {
        const llvm::Instruction *top = stack.back();
        if (!waiting.contains(top)) {
          stack.pop_back();
          continue;
        }
        size_t depth = stack.size();
        for (const llvm::Value *operand : top->operands())
          if (const auto *needed = llvm::dyn_cast<llvm::Instruction>(operand); needed && waiting.contains(needed))
            stack.push_back(needed);
        if (stack.size() != depth)
          continue;
        waiting.erase(top);
        result.push_back(top);
        stack.pop_back();
      }
    };
    for (const llvm::Instruction &instruction : block) {
      if (llvm::isa<llvm::PHINode, llvm::DbgInfoIntrinsic>(instruction))
        continue;
      if (mayWait(instruction)) {
        waiting.insert(&instruction);
        if (!waitsForever(instruction))
          untilStore.push_back(&instruction);
        continue;
      }
      if (instruction.mayWriteToMemory()) {
        llvm::for_each(untilStore, take);
        untilStore.clear();
      }
      if (instruction.isTerminator())
        for (const llvm::Instruction &other : block)
          take(&other);
      for (const llvm::Value *operand : instruction.operands())
        if (const auto *needed = llvm::dyn_cast<llvm::Instruction>(operand))
          take(needed);
      result.push_back(&instruction);
    }
  }

  static bool isValue(const llvm::Value *value) { return llvm::isa<llvm::Instruction>(value); }

  /// From behind an instruction to before it.
  void step(const llvm::Instruction &instruction, Values &live, unsigned &count) const {
    if (live.erase(&instruction))
      count -= weight(&instruction);
    if (isFolded(&instruction))
      return; // whoever uses it uses what it is made of
    for (const llvm::Value *operand : instruction.operands())
      if (const llvm::Value *value = behind(operand); isValue(value) && live.insert(value).second)
        count += weight(value);
  }

  Values liveAtEnd(const llvm::BasicBlock &block) const {
    Values live;
    for (const llvm::BasicBlock *next : llvm::successors(&block)) {
      if (auto found = liveOnEntry.find(next); found != liveOnEntry.end())
        live.insert(found->second.begin(), found->second.end());
      for (const llvm::PHINode &phi : next->phis())
        live.erase(&phi);
    }
    for (const llvm::BasicBlock *next : llvm::successors(&block))
      for (const llvm::PHINode &phi : next->phis())
        if (const llvm::Value *value = behind(phi.getIncomingValueForBlock(&block)); isValue(value))
          live.insert(value);
    return live;
  }

  void findLiveOnEntry() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const llvm::BasicBlock &block : llvm::reverse(kernel)) {
        Values live = liveAtEnd(block);
        unsigned count = 0; // not asked for
        for (const llvm::Instruction *instruction : llvm::reverse(ordered.at(&block)))
          step(*instruction, live, count);
        // Values are live on entry once and for ever: sets only grow.
        if (live.size() != liveOnEntry[&block].size()) {
          liveOnEntry[&block] = std::move(live);
          changed = true;
        }
      }
    }
  }

  const llvm::Function &kernel;
  const llvm::DataLayout &layout;
  llvm::DenseMap<const llvm::BasicBlock *, std::vector<const llvm::Instruction *>> ordered;
  llvm::DenseMap<const llvm::BasicBlock *, Values> liveOnEntry;
};

unsigned mostLoaded(const llvm::Function &kernel) {
  unsigned most = 0;
  for (const llvm::BasicBlock &block : kernel)
    most = std::max(most, registersLoaded(block));
  return most;
}

/// Of a thread: with 2,048 threads on a multiprocessor 64 KiB, twice what it takes to hide the latency of memory.
constexpr unsigned enoughRegisters = 8;
/// With which a multiprocessor has all threads that it can have, and half of them.
constexpr unsigned registersOfMostWarps = 32, registersOfHalfTheWarps = 64;

/// Loops of which one round has enough in flight are not unrolled by ptxas as well, which then takes any number of
/// registers, or spills them.
void keepLoopsAsTheyAre(llvm::Function &kernel) {
  llvm::DominatorTree dominators(kernel);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    unsigned loaded = 0;
    for (const llvm::BasicBlock *block : loop->blocks())
      loaded += registersLoaded(*block);
    if (loop->isInnermost() && loaded >= enoughRegisters)
      loop->setLoopAlreadyUnrolled();
  }
}

bool multipliesFragments(const llvm::Function &kernel) {
  return llvm::any_of(llvm::instructions(kernel), [](const llvm::Instruction &instruction) {
    const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    if (const auto *text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr)
      return text->getAsmString().contains("wgmma.mma_async");
    return llvm::isa_and_nonnull<llvm::IntrinsicInst>(call) && isProductOfFragments(*call->getCalledFunction());
  });
}

bool callsFunctions(const llvm::Function &kernel) {
  for (const llvm::Instruction &instruction : llvm::instructions(kernel))
    if (const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        call && !call->isInlineAsm() && !llvm::isa<llvm::IntrinsicInst>(call))
      return true;
  return false;
}

} // namespace

void limitRegisters(llvm::Module &module) {
  /// For what is not in LLVM IR: the calling convention, addresses of parameters, temporaries of single instructions.
  constexpr unsigned ofInstructions = 14;
  /// By how many ptxas missed what is counted here, of 421 kernels: nine, all with a hundred or more registers to load.
  constexpr unsigned ofReordering = 6;
  /// Beyond these it would take longer than it is worth.
  constexpr size_t mostBlocks = 200, mostInstructions = 20000;
  for (llvm::Function &kernel : module) {
    unsigned registers = unsigned(kernel.getFnAttributeAsParsedInteger(plannedRegistersAttribute));
    if (!registers)
      continue;
    kernel.removeFnAttr(plannedRegistersAttribute);
    keepLoopsAsTheyAre(kernel);
    if (callsFunctions(kernel) || kernel.size() > mostBlocks || kernel.getInstructionCount() > mostInstructions)
      continue;
    // Fragments are words to LLVM: how many sums and factors there are at once, plans know better.
    if (multipliesFragments(kernel)) {
      kernel.addFnAttr("nvvm.maxnreg", std::to_string(registers));
      continue;
    }
    Pressure pressure(kernel);
    unsigned least = pressure.most() + ofInstructions, loadsFirst = pressure.mostLoadsFirst() + ofInstructions;
    // In loops ptxas issues those of the next round, too.
    unsigned loaded = mostLoaded(kernel);
    bool wantsMore = least + 2 * loaded > registers;
    // Left alone, ptxas puts off loads if that makes room for more warps: not if most registers hold other things, nor
    // if even the least are too many. What converts narrow elements counts too much in `least`.
    bool couldSave = loadsFirst > std::max(registersOfMostWarps, least * 3 / 4) && least <= registersOfHalfTheWarps;
    // Where there is that much to put off, ptxas does not find the best order.
    unsigned missed = loaded > registers ? ofReordering : 0;
    if ((wantsMore || couldSave) && least + missed <= registers)
      kernel.addFnAttr("nvvm.maxnreg", std::to_string(registers));
  }
}

} // namespace hloc
