#include "hloc/codegen/Assemble.h"

#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"
#include "hloc/support/Subprocess.h"

#include "fmt/format.h"

namespace hloc {

llvm::FailureOr<std::string> makeFatbin(llvm::ArrayRef<FatbinImage> images, const Toolchain &toolchain,
                                        DiagnosticEngine &diagnostics) {
  if (!toolchain.has(Tool::Fatbinary)) {
    toolchain.reportMissing(Tool::Fatbinary, "fat binaries", diagnostics);
    return llvm::failure();
  }
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc", error);
  if (!folder) {
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot create a temporary folder: " + error);
    return llvm::failure();
  }
  std::string output = folder->file("out.fatbin");
  std::vector<std::string> command = {toolchain.find(Tool::Fatbinary).path, "-64", "--create", output};
  for (const FatbinImage &image : images) {
    llvm::StringRef number = llvm::StringRef(image.target.name).drop_front(3);
    for (const auto &[kind, suffix, bytes] :
         {std::tuple{"elf", "cubin", &image.cubin}, std::tuple{"ptx", "ptx", &image.ptx}}) {
      if (bytes->empty())
        continue;
      std::string file = folder->file(image.target.name + "." + suffix);
      if (!writeFile(file, *bytes, error)) {
        diagnostics.report(DiagnosticKind::UnwritableFile, fmt::format("cannot write `{}`: {}", file, error));
        return llvm::failure();
      }
      command.push_back(fmt::format("--image3=kind={},sm={},file={}", kind, number.str(), file));
    }
  }
  ProcessResult result = runProcess(command);
  std::optional<std::string> bytes = result.succeeded() ? readFile(output, error) : std::nullopt;
  if (!bytes) {
    diagnostics.report(DiagnosticKind::Internal, fmt::format("fatbinary: {} {}", result.describe(), result.errors));
    return llvm::failure();
  }
  return *bytes;
}

} // namespace hloc
