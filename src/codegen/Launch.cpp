// Puts what is known about a kernel's launch into its LLVM IR.

#include "LlvmStageParts.h"

#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace hloc {

namespace {

/// What a special register reads as: an id below `extent`, or the extent itself.
struct SpecialRegister {
  uint32_t extent;
  bool isExtent;
};

std::optional<SpecialRegister> describeRegister(llvm::Intrinsic::ID id, const KernelEntry &kernel) {
  auto make = [](const std::optional<Dim3> &extents, uint32_t Dim3::*axis,
                 bool isExtent) -> std::optional<SpecialRegister> {
    if (!extents)
      return std::nullopt;
    return SpecialRegister{(*extents).*axis, isExtent};
  };
  switch (id) {
  case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return make(kernel.block, &Dim3::x, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y:
    return make(kernel.block, &Dim3::y, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z:
    return make(kernel.block, &Dim3::z, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    return make(kernel.block, &Dim3::x, true);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_y:
    return make(kernel.block, &Dim3::y, true);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_z:
    return make(kernel.block, &Dim3::z, true);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return make(kernel.grid, &Dim3::x, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    return make(kernel.grid, &Dim3::y, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    return make(kernel.grid, &Dim3::z, false);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    return make(kernel.grid, &Dim3::x, true);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    return make(kernel.grid, &Dim3::y, true);
  case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z:
    return make(kernel.grid, &Dim3::z, true);
  default:
    return std::nullopt;
  }
}

/// Ids get their exact range (LLVM folds those with one value), extents become constants.
void applyToRegisterReads(llvm::Function &function, const KernelEntry &kernel) {
  std::vector<std::pair<llvm::CallInst *, SpecialRegister>> reads;
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block)
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (auto what = describeRegister(call->getIntrinsicID(), kernel))
          reads.push_back({call, *what});
  for (auto [call, what] : reads) {
    if (what.isExtent) {
      call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), what.extent));
      call->eraseFromParent();
    } else {
      call->setMetadata(llvm::LLVMContext::MD_range, nullptr);
      call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, what.extent)));
    }
  }
}

/// A plan's registers, and those that would be left over beside them.
uint32_t bindingRegisters(const KernelEntry &kernel) {
  constexpr uint64_t warpSize = 32;
  return kernel.block
             ? mostRegistersBeside(*kernel.registers, double(llvm::divideCeil(kernel.block->count(), warpSize)))
             : *kernel.registers;
}

} // namespace

void applyLaunch(llvm::Module &module, const std::vector<KernelEntry> &kernels) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  for (const KernelEntry &kernel : kernels) {
    llvm::Function *function = module.getFunction(kernel.name);
    function->setLinkage(llvm::GlobalValue::ExternalLinkage);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    if (kernel.block)
      function->addFnAttr("nvvm.reqntid", fmt::format("{},{},{}", kernel.block->x, kernel.block->y, kernel.block->z));
    if (kernel.registers)
      function->addFnAttr(plannedRegistersAttribute, std::to_string(bindingRegisters(kernel)));
    applyToRegisterReads(*function, kernel);
  }
  // With a single kernel, every helper runs under its launch.
  if (kernels.size() == 1)
    for (llvm::Function &function : module)
      if (!function.isDeclaration() && function.getName() != kernels.front().name)
        applyToRegisterReads(function, kernels.front());
}

} // namespace hloc
