#include "MachineCode.h"

#include "hloc/support/Files.h"
#include "hloc/support/Subprocess.h"

#include "llvm/ADT/StringExtras.h"

#include <chrono>

namespace hloc {

std::map<std::string, std::vector<ShownLine>> machineCodeOf(llvm::StringRef printed, llvm::StringRef hloFile) {
  std::map<std::string, std::vector<ShownLine>> kernels;
  std::vector<ShownLine> *kernel = nullptr;
  uint32_t place = 0, number = 0;
  while (!printed.empty()) {
    auto [line, rest] = printed.split('\n');
    printed = rest;
    ++number;
    llvm::StringRef word = line.trim();
    if (word.consume_front(".section")) {
      // `.section .text.gelu,"ax",@progbits`
      word = word.ltrim();
      kernel = word.consume_front(".text.") ? &kernels[word.split(',').first.str()] : nullptr;
      place = 0;
    } else if (word.consume_front("//## File \"")) {
      auto [file, after] = word.split("\", line ");
      if (file != hloFile || after.take_while(llvm::isDigit).getAsInteger(10, place))
        place = 0;
    } else if (kernel && (word.starts_with("/*") || word.starts_with(".L_x"))) {
      ShownLine &shown = kernel->emplace_back();
      shown.text = (word.starts_with("/*") ? "  " : "") + word.str();
      shown.number = number;
      if (place && word.starts_with("/*"))
        shown.hloLines.push_back(place);
    }
  }
  return kernels;
}

std::map<std::string, std::vector<ShownLine>> disassemble(const std::string &cubin, llvm::StringRef hloFile,
                                                          const Toolchain &toolchain) {
  std::string error;
  if (!toolchain.has(Tool::Nvdisasm))
    return {};
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("hloc-report", error);
  if (!folder)
    return {};
  const std::string path = folder->file("module.cubin");
  if (!writeFile(path, cubin, error))
    return {};
  const ProcessResult printed =
      runProcess({toolchain.find(Tool::Nvdisasm).path, "-g", "-c", path}, std::chrono::minutes(2));
  return printed.succeeded() ? machineCodeOf(printed.output, hloFile) : std::map<std::string, std::vector<ShownLine>>();
}

} // namespace hloc
