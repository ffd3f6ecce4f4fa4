// LLVM IR that hloc has not just made itself: read, and checked for what LLVM trusts its callers not to do.

#include "LlvmStageParts.h"

#include "hloc/codegen/LlvmText.h"
#include "hloc/support/Names.h"

#include "fmt/format.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

// Limits of ours, far above what kernels have: instruction selection takes values apart into registers one by one, and
// the printer of PTX writes variables byte by byte.
constexpr uint64_t maxRegistersOfValue = 4096;
constexpr unsigned maxIntegerBits = 1024;
constexpr uint64_t maxVariableBytes = uint64_t(1) << 28;

/// Registers that a value of this type takes, about; saturated.
uint64_t registersOf(llvm::Type *type) {
  if (auto *integer = llvm::dyn_cast<llvm::IntegerType>(type))
    return integer->getBitWidth() <= maxIntegerBits ? 1 : maxRegistersOfValue + 1;
  if (auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    return llvm::SaturatingMultiply<uint64_t>(vector->getNumElements(), registersOf(vector->getElementType()));
  if (llvm::isa<llvm::ScalableVectorType>(type))
    return maxRegistersOfValue + 1;
  if (auto *array = llvm::dyn_cast<llvm::ArrayType>(type))
    return llvm::SaturatingMultiply<uint64_t>(array->getNumElements(), registersOf(array->getElementType()));
  uint64_t sum = llvm::isa<llvm::StructType>(type) ? 0 : 1;
  if (auto *structure = llvm::dyn_cast<llvm::StructType>(type))
    for (llvm::Type *element : structure->elements())
      sum = llvm::SaturatingAdd(sum, registersOf(element));
  return sum;
}

bool fitsRegisters(const llvm::Function &function) {
  auto fits = [](const llvm::Value &value) { return registersOf(value.getType()) <= maxRegistersOfValue; };
  for (const llvm::Argument &argument : function.args())
    if (!fits(argument))
      return false;
  for (const llvm::BasicBlock &block : function)
    for (const llvm::Instruction &instruction : block)
      if (!fits(instruction) || !llvm::all_of(instruction.operands(), [&](const llvm::Use &use) { return fits(*use); }))
        return false;
  return true;
}

/// What keeps code from being generated, or makes it take forever; empty if nothing does.
std::string refusal(const llvm::Module &module) {
  const llvm::Triple &triple = module.getTargetTriple();
  if (!triple.empty() && !triple.isNVPTX())
    return fmt::format("is for `{}`, not for NVIDIA's GPUs", triple.str());
  if (!triple.empty() && !triple.isArch64Bit())
    return "is for 32-bit addresses";
  for (const llvm::GlobalVariable &variable : module.globals()) {
    llvm::TypeSize size = module.getDataLayout().getTypeAllocSize(variable.getValueType());
    if (size.isScalable() || size.getFixedValue() > maxVariableBytes)
      return fmt::format("has a variable `{}` of more than {} bytes", variable.getName().str(), maxVariableBytes);
  }
  for (const llvm::Function &function : module)
    if (!fitsRegisters(function))
      return fmt::format("has values in `{}` that take more than {} registers or integers of more than {} bits",
                         function.getName().str(), maxRegistersOfValue, maxIntegerBits);
  return "";
}

} // namespace

std::unique_ptr<llvm::Module> readLlvm(const SourceFile &file, llvm::LLVMContext &context,
                                       DiagnosticEngine &diagnostics) {
  std::string name = file.name().str();
  CurrentKernelScope scope(name, /*given=*/true); // the parser ends the process over debug information it cannot read
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssembly(llvm::MemoryBufferRef(file.text(), file.name()), error, context);
  if (!module) {
    SourceRange range;
    if (error.getLineNo() > 0)
      range.begin = file.offsetOf({uint32_t(error.getLineNo()), uint32_t(std::max(error.getColumnNo(), 0)) + 1});
    range.end = range.isValid() ? range.begin + 1 : SourceRange::npos;
    diagnostics.report(DiagnosticKind::BadModule, range, error.getMessage().str());
    return nullptr;
  }
  std::string invalid;
  llvm::raw_string_ostream stream(invalid);
  if (llvm::verifyModule(*module, &stream)) {
    diagnostics.report(DiagnosticKind::BadModule, "invalid LLVM IR: " + llvm::StringRef(invalid).trim().str());
    return nullptr;
  }
  if (std::string reason = refusal(*module); !reason.empty()) {
    diagnostics.report(DiagnosticKind::UnsupportedFeature, "this LLVM IR " + reason);
    return nullptr;
  }
  for (const llvm::Function &function : *module) {
    bool isKernel = !function.isDeclaration() && function.getCallingConv() == llvm::CallingConv::PTX_Kernel;
    if (std::string name = function.getName().str(); isKernel && identifierOf(name) != name) {
      diagnostics.report(DiagnosticKind::BadName, fmt::format("a kernel cannot be called `{}` in PTX", name));
      return nullptr;
    }
  }
  return module;
}

} // namespace hloc
