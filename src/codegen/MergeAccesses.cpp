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

} // namespace

void switchOffVectorizerInCodeGeneration() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("disable-nvptx-load-store-vectorizer"); found != options.end())
      static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(true);
  });
}

void mergeAccesses(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::LoadStoreVectorizerPass()));
  runPasses(module, builder, std::move(passes));
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
}

} // namespace hloc
