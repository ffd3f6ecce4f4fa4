// Writes generated modules to a folder, one file a seed, for runs of the compiler against the interpreter.
//
//   hloc-generate-modules FIRST-SEED COUNT INSTRUCTIONS MAX-ELEMENTS FOLDER [--edge-sizes]

#include "fuzz/ModuleGenerator.h"
#include "hloc/hlo/Printer.h"
#include "hloc/support/Files.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

int main(int argc, char **argv) {
  bool edgeSizes = argc == 7 && llvm::StringRef(argv[6]) == "--edge-sizes";
  if (argc != 6 && !edgeSizes) {
    llvm::errs() << "usage: " << argv[0] << " FIRST-SEED COUNT INSTRUCTIONS MAX-ELEMENTS FOLDER [--edge-sizes]\n";
    return 2;
  }
  uint64_t first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
  hloc::GeneratorOptions options;
  options.instructions = unsigned(std::strtoul(argv[3], nullptr, 10));
  options.maxElements = std::strtol(argv[4], nullptr, 10);
  options.deadCode = false;
  options.edgeSizes = edgeSizes;
  std::string error, folder = argv[5];
  if (!hloc::createFolders(folder, error)) {
    llvm::errs() << folder << ": " << error << "\n";
    return 2;
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string text;
    llvm::raw_string_ostream os(text);
    hloc::printHlo(*hloc::generateModule(seed, options), os, hloc::PrintOptions());
    if (!hloc::writeFile(folder + "/" + std::to_string(seed) + ".hlo", text, error)) {
      llvm::errs() << folder << ": " << error << "\n";
      return 2;
    }
  }
  return 0;
}
