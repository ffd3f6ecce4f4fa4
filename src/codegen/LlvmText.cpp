#include "hloc/codegen/LlvmText.h"

#include "LlvmStageParts.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

llvm::FailureOr<std::string> mergeLlvm(llvm::ArrayRef<std::string> parts, DiagnosticEngine &diagnostics) {
  if (parts.size() == 1)
    return parts.front();
  llvm::LLVMContext context;
  LlvmDiagnosticScope scope(context);
  llvm::Module merged("module", context);
  llvm::Linker linker(merged);
  for (const std::string &part : parts) {
    llvm::SMDiagnostic error;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(part, error, context);
    if (!module) {
      diagnostics.report(DiagnosticKind::Internal, "LLVM IR of a kernel: " + error.getMessage().str());
      return llvm::failure();
    }
    if (merged.getTargetTriple().empty()) { // an empty module has none, and the linker warns of a difference
      merged.setTargetTriple(module->getTargetTriple());
      merged.setDataLayout(module->getDataLayout());
    }
    bool failed = linker.linkInModule(std::move(module));
    if (!scope.flush("module", diagnostics) || failed)
      return llvm::failure();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  merged.print(os, nullptr);
  return text;
}

} // namespace hloc
