#include "LlvmStageParts.h"

#include "hloc/codegen/Toolchain.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/IPO/Internalize.h"

namespace hloc {

namespace {

bool isUndefinedLibdeviceFunction(const llvm::Function &function) {
  return function.isDeclaration() && function.getName().starts_with("__nv_") && !function.use_empty();
}

bool isSharedProduct(const llvm::Value *value) {
  const auto *product = llvm::dyn_cast<llvm::BinaryOperator>(value);
  return product && product->getOpcode() == llvm::Instruction::FMul && product->hasNUsesOrMore(2);
}

/// libdevice finds the rounding error of a product p by computing with a - p beside p itself, so p must be rounded in
/// both. LLVM contracts the difference, ptxas may: powf is then off by 85 ulp instead of 1.8. Additions that name their
/// rounding are left alone.
void keepSharedProducts(llvm::Function &function) {
  for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    llvm::Type *type = instruction.getType();
    if (instruction.getOpcode() != llvm::Instruction::FSub || !(type->isFloatTy() || type->isDoubleTy()) ||
        !(isSharedProduct(instruction.getOperand(0)) || isSharedProduct(instruction.getOperand(1))))
      continue;
    llvm::IRBuilder<> builder(&instruction);
    llvm::Intrinsic::ID add = type->isFloatTy() ? llvm::Intrinsic::nvvm_add_rn_f : llvm::Intrinsic::nvvm_add_rn_d;
    llvm::Value *negated = builder.CreateFNeg(instruction.getOperand(1));
    instruction.replaceAllUsesWith(builder.CreateIntrinsic(type, add, {instruction.getOperand(0), negated}));
    instruction.eraseFromParent();
  }
}

} // namespace

bool needsLibdevice(const llvm::Module &module) { return llvm::any_of(module, isUndefinedLibdeviceFunction); }

bool linkLibdevice(llvm::Module &module, const Toolchain *toolchain, DiagnosticEngine &diagnostics) {
  std::string firstUse;
  for (const llvm::Function &function : module)
    if (firstUse.empty() && isUndefinedLibdeviceFunction(function))
      firstUse = function.getName().str();
  if (!toolchain || !toolchain->has(Tool::Libdevice)) {
    (toolchain ? *toolchain : Toolchain()).reportMissing(Tool::Libdevice, fmt::format("`{}`", firstUse), diagnostics);
    return false;
  }
  const std::string &path = toolchain->find(Tool::Libdevice).path;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    diagnostics.report(DiagnosticKind::MissingTool,
                       fmt::format("cannot read libdevice `{}`: {}", path, buffer.getError().message()));
    return false;
  }
  // Lazily: only the bodies that are linked are ever read (0.8 ms instead of 14).
  auto library = llvm::getOwningLazyBitcodeModule(std::move(*buffer), module.getContext());
  if (!library) {
    diagnostics.report(DiagnosticKind::MissingTool,
                       fmt::format("`{}` is not a libdevice: {}", path, llvm::toString(library.takeError())));
    return false;
  }
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  llvm::DenseSet<const llvm::Function *> ours;
  for (const llvm::Function &function : module)
    if (!function.isDeclaration())
      ours.insert(&function);
  auto internalize = [](llvm::Module &linked, const llvm::StringSet<> &names) {
    llvm::internalizeModule(
        linked, [&](const llvm::GlobalValue &value) { return !value.hasName() || !names.contains(value.getName()); });
  };
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded, internalize)) {
    diagnostics.report(DiagnosticKind::Internal, fmt::format("linking `{}` failed", path));
    return false;
  }
  for (llvm::Function &function : module)
    if (!ours.contains(&function))
      keepSharedProducts(function);
  return true;
}

} // namespace hloc
