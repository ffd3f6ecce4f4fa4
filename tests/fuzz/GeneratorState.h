#pragma once
// The module under construction and its random choices, shared by the op families of the generator.

#include "fuzz/ModuleGenerator.h"

#include "hloc/hlo/ShapeInference.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <random>

namespace hloc {

using Operands = llvm::ArrayRef<HloInstruction *>;
using Attributes = llvm::ArrayRef<Attribute>;

struct GeneratorState {
  /// What is made goes to a computation of this name, the module's entry.
  GeneratorState(HloModule &module, uint64_t seed, const GeneratorOptions &options, llvm::StringRef name = "main");

  // Choices.
  int64_t below(int64_t limit) { return limit > 0 ? static_cast<int64_t>(random() % limit) : 0; }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); } ///< both included
  bool oneIn(int64_t n) { return below(n) == 0; }
  ElementType anyType();
  llvm::SmallVector<int64_t, 6> permutation(unsigned n);
  llvm::SmallVector<int64_t, 6> someOf(unsigned n); ///< ascending
  llvm::SmallVector<int64_t, 6> smallDims(unsigned rank);
  llvm::SmallVector<int64_t, 6> edgeDims(); ///< for GeneratorOptions::edgeSizes
  Shape anyArray();
  /// With a random layout, if these are wanted.
  Shape laidOut(const Shape &shape);

  // Operands.
  HloInstruction *anyInstruction();
  HloInstruction *anyArrayInstruction();
  HloInstruction *arrayWhere(llvm::function_ref<bool(const Shape &)> suits, const Shape &otherwise);
  /// An instruction of this shape, made if there is none.
  HloInstruction *withShape(const Shape &shape);
  HloInstruction *parameter(const Shape &shape);
  HloInstruction *constant(const Shape &shape);

  /// Adds an instruction if it is valid. `declared` is the empty tuple for inferred shapes.
  HloInstruction *add(Opcode opcode, const Shape &declared, Operands operands, Attributes attributes);

  // Attributes.
  Attribute ints(AttributeKey key, llvm::ArrayRef<int64_t> values);
  Attribute integer(AttributeKey key, int64_t value) { return {key, value}; }
  Attribute flag(AttributeKey key, bool value) { return {key, value}; }
  Attribute string(AttributeKey key, llvm::StringRef text);
  Attribute callee(AttributeKey key, HloComputation *computation) { return {key, computation}; }
  Attribute window(llvm::ArrayRef<WindowDim> dims);

  // Computations, callees first.
  /// (types..., types...) -> types... for a reducer that combines accumulators and elements.
  HloComputation *reducer(llvm::ArrayRef<ElementType> types);
  /// Two scalars of each type -> pred[], comparing the first pair.
  HloComputation *comparator(llvm::ArrayRef<ElementType> types);
  /// Shapes -> a value made of them by `build`, which gets the parameters.
  HloComputation *function(llvm::ArrayRef<Shape> parameters,
                           llvm::function_ref<HloInstruction *(HloComputation &, Operands)> build);
  HloModule &module;
  const GeneratorOptions &options;
  HloComputation *entry = nullptr;

private:
  std::mt19937_64 random;
  unsigned nextComputation = 0;
};

/// A copy with callees before their callers and the entry last: they were added while the callers were open.
std::unique_ptr<HloModule> withEntryLast(const HloModule &module);

/// Tries to add an instruction with this opcode, and operands for it. False if the choices made gave nothing valid.
bool generateInstruction(GeneratorState &state, Opcode opcode);

// The families, one file each.
HloInstruction *generateElementwise(GeneratorState &state, Opcode opcode);
HloInstruction *generateMovement(GeneratorState &state, Opcode opcode);
HloInstruction *generateIndexed(GeneratorState &state, Opcode opcode);
HloInstruction *generateStructured(GeneratorState &state, Opcode opcode);
HloInstruction *generateContraction(GeneratorState &state, Opcode opcode);
HloInstruction *generateStructure(GeneratorState &state, Opcode opcode);
HloInstruction *generateFusion(GeneratorState &state);
HloInstruction *generateRemote(GeneratorState &state, Opcode opcode);

/// Gives parameters' buffers to results of their shape, or does not.
void generateDonations(GeneratorState &state);
/// For GeneratorOptions::edgeSizes: the opcodes, each as often as it should be drawn, ...
std::vector<Opcode> opcodesOfLargeArrays();
/// ... and a transpose that is worth a tile.
HloInstruction *generateTiledTranspose(GeneratorState &state);

} // namespace hloc
