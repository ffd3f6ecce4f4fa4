#pragma once
// The smallest module that still does something: crashes the compiler, differs from the reference, takes for ever.
//
//   ENTRY e { p = f32[8,8] parameter(0)  a = tanh(p)  b = dot(a, p)  c = reduce(b) ...  ROOT t = tuple(c, z) }
//   judge: "hloc run ends with 4"        ROOT a = f32[2,2] tanh(p)
//
// Delta debugging on the data model. A move (Moves.h) is a way to make a module smaller, at any set of places of it:
// large sets are tried first, then halves of them. A candidate is the best text so far, parsed anew, changed, verified
// and printed; so that what one leaves behind no other sees, and what is written is what was judged. Which candidates
// are made depends on the verdicts alone: the same verdicts, the same result, however many are asked for at a time.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hloc {

/// Says which candidates still do it. The texts are HLO that the verifier takes, or lines of PTX.
class ReduceJudge {
public:
  virtual ~ReduceJudge() = default;
  /// How many candidates it wants to be shown at once.
  virtual size_t width() const { return 1; }
  /// The first of them that does it. Those behind it do not matter.
  virtual std::optional<size_t> firstOf(llvm::ArrayRef<std::string> texts) = 0;
  /// No more candidates: there is no time left, or nobody waits.
  virtual bool isOver() const { return false; }
};

/// Size of a candidate, for progress.
struct ReducedSize {
  size_t instructions = 0; ///< of all computations that the entry reaches; of PTX: statements
  size_t parameters = 0;   ///< among them
  size_t bytes = 0;        ///< of the text
};

class ReduceObserver {
public:
  virtual ~ReduceObserver() = default;
  /// A smaller one that does it; the best so far.
  virtual void improved(llvm::StringRef text, const ReducedSize &size) {}
  /// What is tried now: the move's name.
  virtual void trying(llvm::StringRef move) {}
};

struct Reduction {
  std::string text;
  ReducedSize before, after;
  size_t numTried = 0;    ///< candidates that were judged
  bool isSettled = false; ///< no move makes it smaller; else it was cut off
};

/// `text` is a module that the verifier takes. Nothing if `judge` says that not even the module printed anew does it.
std::optional<Reduction> reduceHlo(llvm::StringRef text, ReduceJudge &judge, ReduceObserver &observer);

/// The same of PTX: statements go.
std::optional<Reduction> reducePtx(llvm::StringRef text, ReduceJudge &judge, ReduceObserver &observer);

} // namespace hloc
