#pragma once
// One kernel under test: an HLO program, its PTX (compiled, or `<name>.ptx` with `<name>.json` beside it), inputs of
// several seeds and what the interpreter makes of them.

#include "driver/Execute.h"

#include "hloc/compare/Compare.h"
#include "hloc/emulator/Ptx.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hloc::mutation {

class Subject {
public:
  /// Null, with the reason printed, if the program cannot be run even unchanged.
  static std::unique_ptr<Subject> open(const std::string &hloFile, unsigned numSeeds);

  const std::string &name() const { return title; }
  const ptx::Module &ptx() const { return *original; }

  /// `` if the PTX computes what the interpreter does for all seeds without findings; else the name of the first
  /// finding, `mismatch`, or `refused: ...` for PTX that is not executed at all.
  std::string symptomOf(const ptx::Module &mutant);

private:
  bool compile(const std::string &hloFile);
  bool readPtx(const std::string &base);
  bool makeCases(unsigned numSeeds);
  std::string symptomOf(const std::string &text, size_t seed);

  std::string title, image;
  std::unique_ptr<HloModule> module, laidOut;
  std::optional<DeviceProgram> program;
  std::optional<ptx::Module> original;
  std::vector<std::vector<Literal>> arguments; ///< by seed
  std::vector<Literal> expected;
  Backend backend = Backend::Hloc;
  Timing timing{false};
};

} // namespace hloc::mutation
