#pragma once
// EqualComputations: which computations of a module are the same but for names, metadata and their place in the text.
//
//   double { x = f32[300] parameter(0)  ROOT s = f32[300] add(x, x) }
//   twice  { y = f32[300] parameter(0)  ROOT t = f32[300] add(y, y) }      first(twice) is double
//
// Equal are those whose instructions are, one by one in the order of the text, with everything that says what is
// computed and how: layouts, literals, attributes (InstructionKey.h), and called computations that are equal. Literals
// whose text was elided equal only themselves.

#include "hloc/hlo/HloModule.h"

namespace hloc {

class EqualComputations {
public:
  /// Good as long as the module does not change.
  explicit EqualComputations(const HloModule &module);

  /// The first, in the order of the module, that `computation` of the module equals; itself, if that is none.
  const HloComputation &first(const HloComputation &computation) const { return *firsts.lookup(&computation); }

private:
  bool equal(const HloComputation &a, const HloComputation &b) const;
  llvm::DenseMap<const HloComputation *, const HloComputation *> firsts;
};

} // namespace hloc
