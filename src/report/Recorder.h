#pragma once
// What the compiler tells while it compiles, kept for the page: the IR after every pass, line by line.

#include "LineTable.h"

#include "hloc/compiler/Observer.h"

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <mutex>

namespace hloc {

struct RecordedPass {
  llvm::StringRef kind; ///< `hlo`, `mlir`, `llvm`, `ptx`, `sass`
  std::string name;
  double milliseconds;
  std::vector<uint32_t> lines; ///< numbers in the track's table
};

/// The module's, or a kernel's.
struct RecordedTrack {
  LineTable table;
  std::vector<RecordedPass> passes;
  std::vector<ShownLine> ptx; ///< of a kernel that came so far
};

class Recorder : public CompileObserver {
public:
  bool wantsPasses() const override { return true; }
  bool wantsTexts() const override { return true; }
  void produced(const IrEvent &event) override;
  /// Null if nothing was heard of it.
  RecordedTrack *find(llvm::StringRef track);

private:
  RecordedTrack &get(llvm::StringRef track);
  std::mutex mutex; ///< of the map; a track belongs to one thread
  llvm::StringMap<std::unique_ptr<RecordedTrack>> tracks;
};

} // namespace hloc
