// Neighbouring loads and stores of one thread become vector accesses, and no byte more than the program touches.
//
// LLVM's load-store vectorizer completes three loads to a masked load of four, which NVPTX then selects as a whole
// vector: at the end of a buffer that reads what is not the program's. Here the vectorizer runs on its own, what it
// completed is cut back, and the code generator's run of it is switched off:
//
//   masked.load <4 x float> a, <1, 1, 1, 0>  ->  load <2 x float> a, load float a + 8

#include "LlvmStageParts.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/NVPTXAddrSpace.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Vectorize/LoadStoreVectorizer.h"

#include <mutex>

namespace hloc {

namespace {

using llvm::Value;

/// The lanes that are on, as runs of a power of two that are aligned to their length.
std::vector<std::pair<unsigned, unsigned>> piecesOf(const llvm::Constant &mask, unsigned lanes) {
  std::vector<std::pair<unsigned, unsigned>> pieces;
  auto isOn = [&](unsigned lane) { return lane < lanes && mask.getAggregateElement(lane)->isOneValue(); };
  for (unsigned lane = 0; lane < lanes;) {
    if (!isOn(lane)) {
      ++lane;
      continue;
    }
    unsigned length = 1;
    auto allOn = [&](unsigned count) {
      for (unsigned i = 0; i < count; ++i)
        if (!isOn(lane + i))
          return false;
      return true;
    };
    while (lane % (2 * length) == 0 && allOn(2 * length))
      length *= 2;
    pieces.emplace_back(lane, length);
    lane += length;
  }
  return pieces;
}

/// Loads or stores the lanes of `call` that its constant mask switches on.
void splitMasked(llvm::IntrinsicInst &call, const llvm::DataLayout &layout) {
  bool isLoad = call.getIntrinsicID() == llvm::Intrinsic::masked_load;
  Value *pointer = call.getArgOperand(isLoad ? 0 : 1);
  auto *mask = llvm::cast<llvm::Constant>(call.getArgOperand(isLoad ? 1 : 2));
  Value *whole = isLoad ? call.getArgOperand(2) : call.getArgOperand(0);
  auto *type = llvm::cast<llvm::FixedVectorType>(whole->getType());
  llvm::Type *element = type->getElementType();
  llvm::Align align = call.getParamAlign(isLoad ? 0 : 1).valueOrOne();
  llvm::IRBuilder<> builder(&call);
  for (auto [first, length] : piecesOf(*mask, type->getNumElements())) {
    uint64_t offset = first * layout.getTypeStoreSize(element);
    Value *at = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), pointer, offset);
    llvm::Align pieceAlign = llvm::commonAlignment(align, offset);
    llvm::Type *pieceType = length == 1 ? element : llvm::FixedVectorType::get(element, length);
    auto laneOf = [&](Value *piece, unsigned i) {
      return length == 1 ? piece : builder.CreateExtractElement(piece, i);
    };
    llvm::Instruction *access;
    if (isLoad) {
      access = builder.CreateAlignedLoad(pieceType, at, pieceAlign);
      for (unsigned i = 0; i < length; ++i)
        whole = builder.CreateInsertElement(whole, laneOf(access, i), first + i);
    } else {
      Value *piece = length == 1 ? builder.CreateExtractElement(whole, first) : llvm::PoisonValue::get(pieceType);
      for (unsigned i = 0; i < length && length > 1; ++i)
        piece = builder.CreateInsertElement(piece, builder.CreateExtractElement(whole, first + i), i);
      access = builder.CreateAlignedStore(piece, at, pieceAlign);
    }
    access->copyMetadata(call);
  }
  if (isLoad)
    call.replaceAllUsesWith(whole);
  call.eraseFromParent();
}

/// Vectors of elements of less than a byte, which merged accesses come to have where a byte's parts are taken out of
/// it: code generation would load them in pieces of two bytes.
///
///   load <32 x i4>, then lanes 2 and 3  ->  load <16 x i8>, then bits 0 to 3 and 4 to 7 of byte 1
void loadWholeBytes(llvm::LoadInst &load) {
  auto *type = llvm::dyn_cast<llvm::FixedVectorType>(load.getType());
  if (!type || !type->getElementType()->isIntegerTy() || !load.isSimple())
    return;
  unsigned bits = type->getScalarSizeInBits(), lanes = type->getNumElements();
  bool taken = llvm::all_of(load.users(), [](llvm::User *user) {
    auto *lane = llvm::dyn_cast<llvm::ExtractElementInst>(user);
    return lane && llvm::isa<llvm::ConstantInt>(lane->getIndexOperand());
  });
  if (bits >= 8 || 8 % bits != 0 || lanes * bits % 8 != 0 || !taken)
    return;
  llvm::IRBuilder<> builder(&load);
  llvm::Type *byte = builder.getInt8Ty();
  llvm::LoadInst *bytes = builder.CreateAlignedLoad(llvm::FixedVectorType::get(byte, lanes * bits / 8),
                                                    load.getPointerOperand(), load.getAlign());
  bytes->copyMetadata(load);
  for (llvm::User *user : llvm::make_early_inc_range(load.users())) {
    auto *lane = llvm::cast<llvm::ExtractElementInst>(user);
    uint64_t first = llvm::cast<llvm::ConstantInt>(lane->getIndexOperand())->getZExtValue() * bits;
    builder.SetInsertPoint(lane);
    Value *part = builder.CreateLShr(builder.CreateExtractElement(bytes, first / 8), first % 8);
    lane->replaceAllUsesWith(builder.CreateTrunc(part, lane->getType()));
    lane->eraseFromParent();
  }
  load.eraseFromParent();
}

/// Parameters of kernels point to global memory. The code generator says so, too, but later; vectors of 32 bytes are
/// for those who have said it before.
///
/// Not where arrays of constants are: a choice between one of them, which has no address space yet, and a parameter
/// loses an operand in LLVM's InferAddressSpaces.
bool sayGlobal(llvm::Module &module) {
  for (const llvm::GlobalVariable &constant : module.globals())
    if (constant.getAddressSpace() == llvm::NVPTXAS::ADDRESS_SPACE_GENERIC)
      return false;
  for (llvm::Function &function : module)
    for (llvm::Argument &argument : function.args()) {
      if (function.isDeclaration() || function.getCallingConv() != llvm::CallingConv::PTX_Kernel ||
          argument.getType() != llvm::PointerType::get(module.getContext(), llvm::NVPTXAS::ADDRESS_SPACE_GENERIC) ||
          argument.hasByValAttr())
        continue;
      llvm::IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
      Value *global = builder.CreateAddrSpaceCast(
          &argument, llvm::PointerType::get(module.getContext(), llvm::NVPTXAS::ADDRESS_SPACE_GLOBAL));
      Value *generic = builder.CreateAddrSpaceCast(global, argument.getType());
      argument.replaceUsesWithIf(generic, [&](llvm::Use &use) { return use.getUser() != global; });
    }
  return true;
}

/// How long the pieces are that the vectorizer is given of a block: it numbers the instructions of the whole block anew
/// for each vector that it makes, and walks to the block's end.
constexpr size_t pieceLength = 2048;

/// Cuts blocks that are longer than a piece: the first one after `first` instructions, or soon after, where something
/// is written: what lies side by side is seldom read, or written, on both sides of that. What is cut off, in order.
std::vector<llvm::BasicBlock *> cutBlocks(llvm::Module &module, size_t first) {
  constexpr size_t mostLonger = pieceLength / 4;
  std::vector<llvm::Instruction *> cuts;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function) {
      if (block.size() <= pieceLength)
        continue;
      size_t length = pieceLength - first;
      bool isBehindWrite = false;
      for (llvm::Instruction &instruction : block) {
        const bool isFull = length >= pieceLength && (isBehindWrite || length >= pieceLength + mostLonger);
        if (isFull && !llvm::isa<llvm::PHINode>(instruction) && !llvm::isa<llvm::StoreInst>(instruction)) {
          cuts.push_back(&instruction);
          length = 0;
        }
        ++length;
        isBehindWrite = instruction.mayWriteToMemory();
      }
    }
  std::vector<llvm::BasicBlock *> pieces;
  for (llvm::Instruction *cut : llvm::reverse(cuts)) // from the end: each instruction changes its block once
    pieces.push_back(cut->getParent()->splitBasicBlock(cut));
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

/// Runs the vectorizer on blocks of at most a piece's length, and leaves them as they were. True if there were longer
/// ones.
bool vectorize(llvm::Module &module, llvm::PassBuilder &builder, size_t firstPiece) {
  std::vector<llvm::BasicBlock *> pieces = cutBlocks(module, firstPiece);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::LoadStoreVectorizerPass()));
  runPasses(module, builder, std::move(passes));
  for (llvm::BasicBlock *piece : pieces)
    llvm::MergeBlockIntoPredecessor(piece);
  std::vector<llvm::IntrinsicInst *> masked;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
          if (call->getIntrinsicID() == llvm::Intrinsic::masked_load ||
              call->getIntrinsicID() == llvm::Intrinsic::masked_store)
            masked.push_back(call);
  for (llvm::IntrinsicInst *call : masked)
    splitMasked(*call, module.getDataLayout());
  return !pieces.empty();
}

} // namespace

void switchOffVectorizerInCodeGeneration() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("disable-nvptx-load-store-vectorizer"); found != options.end())
      static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(true);
  });
}

void mergeAccesses(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target) {
  restoreOffsets(module);
  widenOffsets(module);
  llvm::PassBuilder builder(&machine);
  if (target.maxVectorBytes > 16 && sayGlobal(module)) {
    llvm::ModulePassManager passes;
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::InferAddressSpacesPass()));
    runPasses(module, builder, std::move(passes));
  }
  // What lies on both sides of a cut is merged by the second run, whose cuts are elsewhere.
  if (vectorize(module, builder, pieceLength))
    vectorize(module, builder, pieceLength / 2);
  // Those that are made just now, too. What follows a load is erased with it, so all are found first.
  std::vector<llvm::LoadInst *> loads;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
          loads.push_back(load);
  for (llvm::LoadInst *load : loads)
    loadWholeBytes(*load);
}

} // namespace hloc
