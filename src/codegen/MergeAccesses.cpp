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
  llvm::PassBuilder builder(&machine);
  llvm::ModulePassManager passes;
  if (target.maxVectorBytes > 16 && sayGlobal(module))
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::InferAddressSpacesPass()));
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
