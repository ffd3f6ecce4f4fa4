#pragma once
// Where the outputs of a fusion are that are made of the elements of a hero, or of several at the same index, one of
// each: by elementwise ops, and through reshapes, bitcasts, transposes and copies to other layouts, which only put
// elements elsewhere.
//
//   dot = f32[4,8,16] dot(..), t = f32[8,4,16] transpose(dot), dimensions={1,0,2}, ROOT r = negate(t):
//   (d0, d1, d2) -> (d1, d0, d2)

#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/Places.h"
#include "hloc/indexing/IndexingMap.h"

namespace hloc {

/// An index of the hero -> that of an instruction.
struct Rearranged {
  IndexingMap map;
  bool operator==(const Rearranged &) const = default;
};

/// From an index of the operand to that of the result, if the result has the same elements elsewhere.
std::optional<IndexingMap> stepThrough(const HloInstruction &instr, unsigned operand, mlir::MLIRContext *context);

/// Heroes of one shape.
using HeroesOfOneShape = llvm::ArrayRef<const HloInstruction *>;

/// Of all that depends on heroes, one of their elements each; elsewhere is what reads them at several places, or not
/// all.
Places<Rearranged> rearrangements(const FusionGraph &graph, HeroesOfOneShape heroes, mlir::MLIRContext *context);

inline Places<Rearranged> rearrangements(const FusionGraph &graph, const HloInstruction &hero,
                                         mlir::MLIRContext *context) {
  return rearrangements(graph, HeroesOfOneShape(&hero), context);
}

/// Of outputs that have such places; of those that are not made of heroes, where their memory has the same position.
std::vector<IndexingMap> outputMaps(const FusionGraph &graph, HeroesOfOneShape heroes, llvm::ArrayRef<unsigned> roots,
                                    mlir::MLIRContext *context);
inline std::vector<IndexingMap> outputMaps(const FusionGraph &graph, const HloInstruction &hero,
                                           llvm::ArrayRef<unsigned> roots, mlir::MLIRContext *context) {
  return outputMaps(graph, HeroesOfOneShape(&hero), roots, context);
}

/// How many of the first elements along dimension `dim` of the hero, of up to `most`, are side by side in the memory of
/// an output with that map.
int64_t neighboursKept(const IndexingMap &map, const Shape &output, unsigned dim, int64_t most);

} // namespace hloc
