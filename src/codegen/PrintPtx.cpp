// The NVPTX back end: target machine, names, text.

#include "LlvmStageParts.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/support/Check.h"
#include "hloc/support/Names.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"

#include <mutex>

// Only this target's initialisers: InitializeAllTargets would link and start every back end.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace hloc {

namespace {

void initializeNvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

llvm::CodeGenOptLevel codegenLevel(unsigned level) {
  return level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive;
}

/// Instructions that LLVM does not know are assembler text. Some need a later PTX ISA than their target does.
void raiseVersion(std::string &ptx) {
  constexpr std::pair<llvm::StringLiteral, unsigned> newer[] = {{"red.relaxed.gpu.global.add.v", 81},
                                                                {"red.relaxed.gpu.global.add.noftz.v", 81}};
  unsigned version = ptxVersionOf(ptx), wanted = version;
  for (const auto &[instruction, since] : newer)
    if (wanted < since && llvm::StringRef(ptx).contains(instruction))
      wanted = since;
  if (wanted == version)
    return;
  std::string before = fmt::format(".version {}.{}", version / 10, version % 10);
  ptx.replace(ptx.find(before), before.size(), fmt::format(".version {}.{}", wanted / 10, wanted % 10));
}

} // namespace

std::unique_ptr<llvm::TargetMachine> createTargetMachine(const TargetInfo &target, const LlvmOptions &options,
                                                         DiagnosticEngine &diagnostics) {
  initializeNvptx();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) {
    diagnostics.report(DiagnosticKind::Internal, "this LLVM cannot generate PTX: " + error);
    return nullptr;
  }
  uint32_t version = options.ptxVersion ? options.ptxVersion : target.ptxVersion;
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = options.contract ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.name, fmt::format("+ptx{}", version), targetOptions, std::nullopt,
                                   std::nullopt, codegenLevel(options.optimizationLevel)));
}

void prefixLocalNames(llvm::Module &module, llvm::StringRef kernel) {
  auto rename = [&](llvm::GlobalValue &value) {
    if (!value.hasLocalLinkage())
      return;
    // PTX identifiers have no dots; LLVM would replace them by `_$_`.
    std::string name = identifierOf((kernel + "__" + value.getName()).str());
    std::string unique = name;
    for (unsigned i = 2; module.getNamedValue(unique) && module.getNamedValue(unique) != &value; ++i)
      unique = fmt::format("{}_{}", name, i);
    value.setName(unique);
  };
  for (llvm::GlobalVariable &variable : module.globals())
    rename(variable);
  for (llvm::Function &function : module)
    rename(function);
}

std::string printPtx(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  HLOC_CHECK(!unsupported, "the NVPTX back end cannot print assembly");
  passes.run(module);
  // Left over by line directives without debug sections; means nothing.
  constexpr llvm::StringLiteral emptySection = "\t.section\t.debug_macinfo\t{\t}\n";
  std::string ptx = text.str().str();
  if (size_t at = ptx.find(emptySection.str()); at != std::string::npos)
    ptx.erase(at, emptySection.size());
  raiseVersion(ptx);
  return ptx;
}

} // namespace hloc
