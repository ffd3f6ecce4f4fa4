#pragma once
// FusionGraph: one fusion as the emitters see it: a computation, its parameters and its roots.
//
//   ENTRY of `(f32[8], s32[8]) tuple(%a, %b)`: roots {%a, 0}, {%b, 0}; nested tuples are flattened, in order, and the
//   same instruction may be a root several times. A variadic reduce that is the root is one root per result.

#include "hloc/hlo/HloComputation.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Support/LogicalResult.h"

namespace hloc {

/// Result number `result` of `instr` is written to one output buffer.
struct FusionRoot {
  const HloInstruction *instr;
  unsigned result;
  Shape shape; ///< of the output, an array
};

class FusionGraph {
public:
  /// Reports and fails if a parameter or output is not an array of static shape.
  static llvm::FailureOr<FusionGraph> build(const HloComputation &body, DiagnosticEngine &diagnostics);
  /// The same fusion with `value`, an array, as its only root.
  FusionGraph upTo(const HloInstruction &value) const;

  const HloComputation &computation() const { return *body; }
  llvm::ArrayRef<FusionRoot> roots() const { return rootList; }
  llvm::ArrayRef<HloInstruction *> parameters() const { return body->parameters(); }
  /// Instructions that some root depends on, operands before users. Parameters included, the root tuple not.
  llvm::ArrayRef<const HloInstruction *> instructions() const { return live; }
  bool isLive(const HloInstruction &instr) const { return liveIds[instr.id()]; }

  /// Bytes of the parameters that are read, of those that a slice or a gather picks from no more than it picks, and of
  /// the outputs: what memory has to move at least.
  uint64_t bytesRead() const;
  uint64_t bytesWritten() const;

private:
  explicit FusionGraph(const HloComputation &body) : body(&body) {}
  void findLive();
  const HloComputation *body;
  std::vector<FusionRoot> rootList;
  std::vector<const HloInstruction *> live;
  llvm::BitVector liveIds;
};

} // namespace hloc
