#pragma once
// Pieces of random fusions: arrays of sizes beside edges, chains of elementwise ops, ops that move. Everything is added
// to the computation of the GeneratorState. A piece that cannot be made of what it is given gives it back.

#include "fuzz/GeneratorState.h"

namespace hloc {

class FusionMaker {
public:
  FusionMaker(GeneratorState &g, int64_t maxElements);

  using Dims = llvm::SmallVector<int64_t, 6>;

  /// From now on arrays may have as many elements as any array of any fusion: the number.
  int64_t allowLargest() { return budget = largest; }

  // Choices.
  ElementType anyType();                         ///< that kernels can have in memory
  int64_t edgeSize(int64_t most);                ///< in [1, most], 0 now and then
  Dims dims(unsigned least, unsigned most);      ///< so many dimensions
  Shape anyArray(unsigned least, unsigned most); ///< with any layout, of so many dimensions
  Shape anyLayout(const Shape &shape);           ///< most often the one it has

  // Values.
  /// Null if operands and attributes do not go together or the result is too large. `layout`: instead of the inferred.
  HloInstruction *add(Opcode opcode, Operands operands, Attributes attributes = {}, const Shape &declared = Shape(),
                      std::optional<llvm::ArrayRef<int64_t>> layout = std::nullopt);
  HloInstruction *parameter(const Shape &shape);
  /// A parameter, a constant, or a scalar or a vector broadcast.
  HloInstruction *operand(const Shape &shape);
  HloInstruction *index(ElementType type, int64_t most); ///< a scalar, constant or not, that may lie outside [0, most]

  /// Up to `most` elementwise ops on `x`; the dimensions stay, the type may not.
  HloInstruction *elementwise(HloInstruction *x, int64_t most);
  HloInstruction *move(HloInstruction *x); ///< an op that puts elements elsewhere, or takes some of them
  HloInstruction *slice(HloInstruction *x);
  HloInstruction *transpose(HloInstruction *x, llvm::ArrayRef<int64_t> permutation);
  HloInstruction *convert(HloInstruction *x, ElementType type);

  GeneratorState &g;

private:
  HloInstruction *step(HloInstruction *x);
  HloInstruction *unary(HloInstruction *x);
  HloInstruction *binary(HloInstruction *x);
  HloInstruction *choice(HloInstruction *x);
  HloInstruction *pad(HloInstruction *x);
  HloInstruction *broadcast(HloInstruction *x);
  HloInstruction *regroup(HloInstruction *x);
  HloInstruction *dynamicSlice(HloInstruction *x);

  int64_t largest; ///< elements of an array
  int64_t budget;  ///< those of the arrays of this fusion
};

} // namespace hloc
