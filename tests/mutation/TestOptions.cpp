#include "TestOptions.h"

#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <thread>

namespace hloc::mutation {

TestOptions::TestOptions(unsigned seeds, double secondsPerRun)
    : seeds(seeds), limits{std::max(1u, std::thread::hardware_concurrency()), secondsPerRun} {
  addNumber("--seeds", this->seeds);
  addNumber("--jobs", limits.jobs);
  rows.push_back({"--seconds", "S", [this](llvm::StringRef text) { return !text.getAsDouble(limits.secondsPerRun); }});
  addText("--only", "REGEX", only);
}

void TestOptions::addFlag(llvm::StringRef name, bool &value) {
  rows.push_back({name.str(), "", [&value](llvm::StringRef text) { return value = text.empty(); }});
}

void TestOptions::addText(llvm::StringRef name, llvm::StringRef shown, std::string &value) {
  rows.push_back({name.str(), shown.str(), [&value](llvm::StringRef text) {
                    value = text.str();
                    return !text.empty();
                  }});
}

bool TestOptions::read(llvm::StringRef word) {
  if (!word.starts_with("-")) {
    paths.push_back(word.str());
    return true;
  }
  auto [name, value] = word.split('=');
  for (const Row &row : rows)
    if (name == row.name)
      return word.contains('=') == !row.shown.empty() && row.read(value);
  return false;
}

bool TestOptions::parse(llvm::StringRef program, int argc, char **argv) {
  bool fine = true;
  for (llvm::StringRef word : llvm::ArrayRef(argv, size_t(argc)).drop_front())
    fine &= read(word);
  std::string error;
  fine &= only.empty() || llvm::Regex(only).isValid(error);
  if (fine && !paths.empty() && seeds && limits.jobs)
    return true;
  llvm::errs() << "usage: " << program << " PATH...";
  for (const Row &row : rows)
    llvm::errs() << " [" << row.name << (row.shown.empty() ? "" : "=") << row.shown << "]";
  llvm::errs() << "\n";
  return false;
}

bool TestOptions::wants(llvm::StringRef name) const { return only.empty() || llvm::Regex(only).match(name); }

} // namespace hloc::mutation
