#include "LlvmStageParts.h"

#include "hloc/dialect/XlaGpu.h"

#include "fmt/format.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Target/LLVMIR/LLVMTranslationInterface.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"

namespace hloc {

namespace {

/// `array<i32: x, y, z>`; nothing if it is not that, or has an extent below one.
std::optional<Dim3> readExtents(mlir::Operation *op, llvm::StringRef name) {
  auto array = op->getAttrOfType<mlir::DenseI32ArrayAttr>(name);
  if (!array || array.size() != 3)
    return std::nullopt;
  for (int32_t extent : array.asArrayRef())
    if (extent < 1)
      return std::nullopt;
  return Dim3{uint32_t(array[0]), uint32_t(array[1]), uint32_t(array[2])};
}

constexpr llvm::StringLiteral valueName = "xla_gpu.value_name";

/// Gives instructions the names that markNames has left at the operations they are translated from.
class NameTranslation : public mlir::LLVMTranslationDialectInterface {
public:
  using LLVMTranslationDialectInterface::LLVMTranslationDialectInterface;

  mlir::LogicalResult amendOperation(mlir::Operation *op, llvm::ArrayRef<llvm::Instruction *>,
                                     mlir::NamedAttribute attribute,
                                     mlir::LLVM::ModuleTranslation &translation) const override {
    if (attribute.getName() != valueName)
      return mlir::success();
    auto *value = llvm::dyn_cast_if_present<llvm::Instruction>(translation.lookupValue(op->getResult(0)));
    if (value && !value->hasName())
      value->setName(llvm::cast<mlir::StringAttr>(attribute.getValue()).getValue());
    return mlir::success();
  }
};

/// Contexts made elsewhere may lack the translations; registering them is cheap, but not free.
void registerTranslations(mlir::MLIRContext &context) {
  mlir::Dialect *dialect = context.getLoadedDialect("llvm");
  if (dialect && dialect->getRegisteredInterface<mlir::LLVMTranslationDialectInterface>())
    return;
  mlir::registerBuiltinDialectTranslation(context);
  mlir::registerLLVMDialectTranslation(context);
  mlir::registerNVVMDialectTranslation(context);
  if (mlir::Dialect *own = context.getLoadedDialect("xla_gpu"))
    own->addInterface(std::make_unique<NameTranslation>(own));
}

/// Each operation with one result is marked by the HLO instruction that its location names: `mul.7`, `mul.7_1`, ...
/// LLVM would number them `mul.71`, which may be another instruction.
void markNames(mlir::LLVM::LLVMFuncOp function) {
  llvm::DenseMap<mlir::StringAttr, unsigned> uses;
  for (mlir::BlockArgument argument : function.getArguments())
    if (auto name = argument.getLoc()->findInstanceOf<mlir::NameLoc>())
      ++uses[name.getName()];
  function->walk([&](mlir::Operation *op) {
    auto name = op->getLoc()->findInstanceOf<mlir::NameLoc>();
    if (op->getNumResults() != 1 || !name)
      return;
    std::string text = name.getName().str();
    if (unsigned number = uses[name.getName()]++)
      text += "_" + std::to_string(number);
    op->setDiscardableAttr(valueName, mlir::StringAttr::get(op->getContext(), text));
  });
}

void nameArguments(mlir::ModuleOp module, llvm::Module &translated) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (llvm::Function *result = translated.getFunction(function.getName()); result && !function.isExternal())
      for (auto [argument, value] : llvm::zip_equal(function.getArguments(), result->args()))
        if (auto name = argument.getLoc()->findInstanceOf<mlir::NameLoc>())
          value.setName(name.getName().getValue());
}

/// The first place in a file that `location` stems from; null if none.
mlir::FileLineColLoc findFile(mlir::Location location) {
  mlir::FileLineColLoc found;
  location->walk([&](mlir::Location inner) {
    found = llvm::dyn_cast<mlir::FileLineColLoc>(inner);
    return found ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return found;
}

/// LLVM keeps locations only inside functions that debug information describes. Directives are all we want of it: no
/// sections, and no `debug` target, which would make ptxas compile without optimisation.
void describeForDebugging(mlir::LLVM::LLVMFuncOp function) {
  mlir::FileLineColLoc place = findFile(function.getLoc());
  if (!place && !function.isExternal())
    function.walk([&](mlir::Operation *op) {
      place = findFile(op->getLoc());
      return place ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
    });
  if (!place || function.isExternal())
    return;
  mlir::MLIRContext *context = function.getContext();
  auto distinct = [&] { return mlir::DistinctAttr::create(mlir::UnitAttr::get(context)); };
  auto file = mlir::LLVM::DIFileAttr::get(context, place.getFilename().getValue(), "");
  auto unit = mlir::LLVM::DICompileUnitAttr::get(distinct(), llvm::dwarf::DW_LANG_C, file,
                                                 mlir::StringAttr::get(context, "hloc"), /*isOptimized=*/true,
                                                 mlir::LLVM::DIEmissionKind::DebugDirectivesOnly);
  auto type = mlir::LLVM::DISubroutineTypeAttr::get(context, llvm::dwarf::DW_CC_normal, {});
  auto subprogram = mlir::LLVM::DISubprogramAttr::get(
      context, distinct(), unit, file, function.getNameAttr(), function.getNameAttr(), file, place.getLine(),
      place.getLine(), mlir::LLVM::DISubprogramFlags::Definition | mlir::LLVM::DISubprogramFlags::Optimized, type, {},
      {});
  function->setLoc(mlir::FusedLoc::get(context, {place}, subprogram));
}

/// LLVM has products of fragments for functions of each thread's words, and might compute them where only some threads
/// need them: all of a warp have to be there. Of assembly it does not know who has to be there.
void keepWarpsTogether(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (isProductOfFragments(function))
      for (llvm::User *user : function.users())
        llvm::cast<llvm::CallInst>(user)->setConvergent();
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (auto *text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()))
          if (text->getAsmString().contains("sync"))
            call->setConvergent();
  }
}

} // namespace

llvm::FailureOr<std::vector<KernelEntry>> findKernels(mlir::ModuleOp module, DiagnosticEngine &diagnostics) {
  std::vector<KernelEntry> kernels;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(xla_gpu::attr::block) && !function->hasAttr(xla_gpu::attr::grid))
      continue;
    std::optional<Dim3> block = readExtents(function, xla_gpu::attr::block),
                        grid = readExtents(function, xla_gpu::attr::grid);
    if (!block || !grid || function.isExternal()) {
      diagnostics.report(DiagnosticKind::Internal,
                         fmt::format("kernel `{}` has no body or no valid launch", function.getName().str()));
      return llvm::failure();
    }
    KernelEntry &kernel = kernels.emplace_back(KernelEntry{function.getName().str(), block, grid});
    if (auto registers = function->getAttrOfType<mlir::IntegerAttr>(xla_gpu::attr::registers))
      kernel.registers = uint32_t(registers.getInt());
  }
  if (kernels.empty()) {
    diagnostics.report(DiagnosticKind::Internal, "LLVM dialect module without a kernel");
    return llvm::failure();
  }
  return kernels;
}

std::unique_ptr<llvm::Module> translateToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context,
                                              const LlvmOptions &options, DiagnosticEngine &diagnostics) {
  registerTranslations(*module.getContext());
  if (options.nameValues)
    for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        markNames(function);
  if (options.lineInfo)
    for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
      describeForDebugging(function);
  std::string reasons;
  mlir::ScopedDiagnosticHandler handler(module.getContext(), [&](mlir::Diagnostic &diagnostic) {
    reasons += (reasons.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  std::unique_ptr<llvm::Module> translated =
      mlir::translateModuleToLLVMIR(module, context, "kernel", /*disableVerification=*/true);
  if (!translated)
    diagnostics.report(DiagnosticKind::Internal, "the LLVM dialect module cannot be translated: " + reasons);
  else if (options.nameValues)
    nameArguments(module, *translated);
  if (translated)
    keepWarpsTogether(*translated);
  return translated;
}

} // namespace hloc
