#include "MachineCode.h"

#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Object/ELFObjectFile.h"

namespace hloc {

std::optional<double> codeBytes(llvm::StringRef cubin) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(cubin, "cubin"));
  if (!object) {
    llvm::consumeError(object.takeError());
    return std::nullopt;
  }
  double bytes = 0;
  for (const llvm::object::SectionRef &section : (*object)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (name && name->starts_with(".text."))
      bytes += double(section.getSize());
    else if (!name)
      llvm::consumeError(name.takeError());
  }
  return bytes;
}

/// `.target sm_90a, texmode_independent`
static std::optional<TargetInfo> targetOf(llvm::StringRef ptx) {
  llvm::StringRef name = ptx.split(".target").second.ltrim().take_until([](char c) { return c == ',' || isspace(c); });
  return findTarget(name.str());
}

std::optional<Cubin> machineCodeOf(const std::string &ptx, const Toolchain &toolchain) {
  std::optional<TargetInfo> target = targetOf(ptx);
  if (!target || !toolchain.has(Tool::Ptxas))
    return std::nullopt;
  AssembleOptions options;
  options.assembler = AssemblerChoice::Ptxas;
  DiagnosticEngine unheard; // what ptxas does not take has no machine code
  llvm::FailureOr<std::vector<Cubin>> cubins = assemble({ptx}, *target, toolchain, options, unheard);
  if (failed(cubins) || cubins->empty())
    return std::nullopt;
  return std::move(cubins->front());
}

} // namespace hloc
