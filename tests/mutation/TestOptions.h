#pragma once
// Command lines of the tests in this folder: paths, `--flag` and `--name=VALUE`.
//
//   TestOptions options;
//   bool all = false;
//   options.addFlag("--all", all);
//   if (!options.parse("my-test", argc, argv)) return 2;

#include "HlocRuns.h"

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace hloc::mutation {

class TestOptions {
public:
  /// With what all of them take: --seeds=N, --jobs=N, --seconds=S, --only=REGEX.
  TestOptions(unsigned seeds, double secondsPerRun);
  TestOptions(const TestOptions &) = delete; // options point into it

  void addFlag(llvm::StringRef name, bool &value);
  void addText(llvm::StringRef name, llvm::StringRef shown, std::string &value);
  template <typename Integer> void addNumber(llvm::StringRef name, Integer &value) {
    rows.push_back({name.str(), "N", [&value](llvm::StringRef text) { return !text.getAsInteger(10, value); }});
  }

  /// False after the usage was printed, because the line is wrong or names no path.
  bool parse(llvm::StringRef program, int argc, char **argv);

  /// Whether --only, if there is one, matches.
  bool wants(llvm::StringRef name) const;

  std::vector<std::string> paths;
  unsigned seeds;
  HlocLimits limits;
  std::string only;

private:
  struct Row {
    std::string name, shown; ///< what stands for the value in the usage; empty: there is none
    std::function<bool(llvm::StringRef)> read;
  };
  bool read(llvm::StringRef word);
  std::vector<Row> rows;
};

} // namespace hloc::mutation
