#pragma once
// Where the scores of an attention are, in each array that is made of them, and what their rows come to: by the index
// in the last dot's products, whatever the arrays' dimensions are and how they lie in memory.
//
//   s = f32[2,8,T,4,S] dot(..), t = f32[4,2,8,T,S] transpose(s), w = softmax(t), o = bf16[2,8,D,4,T] dot(v, w): batches
//   (b, k), rows (g, t), keys (s); s has them at [b,k,t,g,s], w at [g,b,k,t,s], and a row's maximum at [g,b,k,t]

#include "hloc/fusion/OutputMaps.h"

#include <map>
#include <optional>

namespace hloc {

struct AttentionPlan;

class ScorePlaces {
public:
  /// Of a plan whose dots are known, and of the last one batches, rows and terms. Plans outlive contexts.
  ScorePlaces(const AttentionPlan &plan, mlir::MLIRContext *context);

  /// Null: nothing reads what is made of scores at other places than its own.
  const HloInstruction *firstElsewhere() const { return elsewhere; }

  /// From an index of the last dot's space, and its terms behind that, to an instruction's index; null: the factor is
  /// not made of it.
  const IndexingMap *at(const HloInstruction &instr) const;
  /// The same of all that is made of scores; of `ignored` instructions, and what is made of these alone, nothing.
  Places<Rearranged> follow(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> ignored) const;
  /// The same of the last dot's results.
  IndexingMap ofResult() const;
  bool dependsOnKey(const IndexingMap &map) const;
  /// The variables of that domain that a dot's dimensions are, each one, where there are several elements; nothing:
  /// they are no variables.
  std::optional<llvm::SmallVector<std::optional<unsigned>>> variablesOf(const HloInstruction &dot) const;
  unsigned keyVariable(unsigned ofDepth) const { return numSpace + ofDepth; }

  /// From (batch, row, key) to the index in a map's array.
  IndexingMap ofThread(const IndexingMap &map) const;
  /// From (batch, row).
  IndexingMap ofThreadsRow(const IndexingMap &map) const;

private:
  IndexingMap mapTo(llvm::ArrayRef<mlir::AffineExpr> results) const;
  void walk(const HloInstruction &weights);
  std::optional<IndexingMap> operandMap(const HloInstruction &instr, unsigned operand, const IndexingMap &map) const;
  std::optional<IndexingMap> ofReduced(const HloInstruction &reduce, const IndexingMap &map) const;
  std::optional<IndexingMap> ofReduction(const HloInstruction &reduce, const IndexingMap &map) const;
  PlaceAnswer<Rearranged> placeThrough(const HloInstruction &instr, unsigned operand, const IndexingMap &map) const;
  IndexingMap ofPlace(unsigned numDims) const;

  const AttentionPlan &plan;
  mlir::MLIRContext *context;
  unsigned numSpace = 0, numVariables = 0;
  llvm::SmallVector<IndexingVariable> variables;
  std::map<uint32_t, IndexingMap> maps; ///< by id
  const HloInstruction *elsewhere = nullptr;
};

/// The first of what a reduction reduces that is made of scores; the others are at its index.
const HloInstruction &reducedScores(const Places<Rearranged> &places, const HloInstruction &reduce);

} // namespace hloc
