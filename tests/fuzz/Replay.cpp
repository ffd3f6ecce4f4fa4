// fuzz-replay FOLDER: runs every file of FOLDER/<target>/ through its target. An ordinary test of every build.
#include "fuzz/Targets.h"

#include "hloc/support/Files.h"

#include "llvm/Support/raw_ostream.h"

#include <filesystem>

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: fuzz-replay FOLDER\n";
    return 2;
  }
  size_t files = 0;
  for (const auto &folder : std::filesystem::directory_iterator(argv[1])) {
    std::string name = folder.path().filename();
    const hloc::FuzzTarget *target = hloc::findFuzzTarget(name);
    if (!target) {
      llvm::errs() << "no fuzz target is called " << name << "\n";
      return 1;
    }
    for (const auto &file : std::filesystem::directory_iterator(folder)) {
      std::string error;
      std::optional<std::string> bytes = hloc::readFile(file.path(), error);
      if (!bytes) {
        llvm::errs() << file.path().string() << ": " << error << "\n";
        return 1;
      }
      llvm::outs() << name << "/" << file.path().filename().string() << "\n";
      llvm::outs().flush(); // a crash must leave the name of its file
      target->run(*bytes);
      ++files;
    }
  }
  if (files == 0) {
    llvm::errs() << "nothing to replay under " << argv[1] << "\n";
    return 1;
  }
  return 0;
}
