#pragma once
// What the hero of attention decides about a kernel: one contraction whose factor is made of another's results, row by
// row.

#include "hloc/fusion/ContractionPlan.h"
#include "hloc/fusion/KeptKeys.h"
#include "hloc/fusion/StagedReductions.h"

#include <optional>

namespace hloc {

/// Two dots, of which the second sums over rows of what is made of the first one's results, the scores: of each element
/// at its own place and of reductions of its row. Scores are never in memory. A block has some rows; keys, the columns
/// of the scores, come in pieces through shared memory. A warp has all of its 16 rows' scores of a piece in registers,
/// as tensor cores leave them, which is as they want factors.
///
/// Reductions come in stages, as in `rows`: each goes through all pieces, and scores are multiplied anew in each,
/// unless those of all keys stay in registers. So everything is rounded where the HLO rounds it. Of a softmax that may
/// be rounded elsewhere all stages go through the pieces at once.
///
///   softmax(q k / sqrt(64)) v of bf16[1,1024,12,64]: 12 times 1024 rows by 1024 keys, 64 terms, 64 columns; stages
///   max, sum; blocks of 64 rows, pieces of 64 keys
///
/// A gradient's weights are made of two dots that are beside each other, q k and do v, and what they are multiplied by
/// is what the scores' keys are made of. The gradient of keys has keys as rows, and rows as keys: what a row came to is
/// read.
///
///   ds = p (do v - sum(p do v)); dq = ds k: rows of q and do, keys of k and v, terms k
///   dk = ds^T q: rows of k and v, keys of q and do, terms q
struct AttentionPlan {
  static constexpr int64_t rowsOfWarp = ContractionTile::fragmentRows;
  static constexpr int64_t fragmentDepth = 16; ///< terms of a fragment of 16-bit factors

  /// Of the scores: rows by keys. A tile is a block's rows by the keys of a piece; all terms are one step.
  ContractionPlan scores;
  /// Of the outputs: rows by columns, of which a block has all; the terms are the keys, a piece is a step. It has the
  /// outputs at the second dot's index.
  ContractionPlan product;
  /// A dot whose results are beside the scores, if weights are made of both. The keys' tiles of the scores are terms
  /// then.
  std::optional<ContractionPlan> beside;
  /// Reductions of a row of scores; frames have no roots.
  llvm::SmallVector<ReductionFrame, 2> stages;
  llvm::SmallVector<bool, 2> stagesBeside; ///< which of these need the dot beside the scores
  llvm::SmallVector<unsigned> resultRoots; ///< outputs with one element a row, such as a log-sum-exp
  /// Are the first two a maximum, and a sum of exponentials of what is reduced less this?
  bool mayJoinFirstStages = false;
  /// What they are about then, of f32; and are weights its softmax, the quotients of these exponentials and their sum,
  /// converted or not? Of `isOnline` these exponentials.
  const HloInstruction *logits = nullptr;
  bool isSoftmax = false;
  /// The second dot's results divided by a row's sum, if nothing else is made of them, and as what they are stored:
  /// that or its conversion. Without a quotient the results themselves.
  const HloInstruction *quotient = nullptr, *finished = nullptr;
  /// Which sum that is, of the accumulators of all stages.
  unsigned divisor = 0;
  /// Are weights a softmax's exponentials, which may be rounded at any scale (decisions/0021)? Then scores are
  /// multiplied once: maxima and sums are kept while the pieces go by, and results are divided.
  bool isOnline = false;
  /// What they are times the scores, if they are nothing else, and it is positive: then the greatest score makes the
  /// greatest logit. Else 0.
  double scale = 0;
  bool holdsScores = false; ///< of all keys, in registers
  /// Instructions that make of a score what all stages reduce and the factor: if each is made once, as the fusion's
  /// work is counted; if stages have it in common, as in registers; and if each begins with the score.
  double workOnce = 0, workHeld = 0, workOfStages = 0;

  /// Tiles that it could have, of scores: rows, keys of a piece, terms, stages of keys. By time.
  llvm::SmallVector<TileSizes> tiles;

  /// The select that hides scores behind one number, if nothing else depends on a row's keys, and what its predicate is
  /// where it does not. Without room for all scores, pieces of nothing but hidden ones are not multiplied.
  const HloInstruction *mask = nullptr;
  bool isKept = false;
  /// Which keys a row has, as far as the mask says so. (Plans outlive the context of who makes them.)
  KeptKeys keysOfRows(mlir::MLIRContext *context) const;
  bool skipsPieces = false;
  /// Is the mask what logits are behind? Then it is asked for only in pieces of which it does not say that rows have
  /// all their keys.
  bool masksLogits = false;
  /// Behind which the mask hides them.
  double hiddenLogit() const;
  /// Of which the mask is asked for, or the logits themselves if it always is.
  const HloInstruction &shownLogits() const { return masksLogits ? *mask->operand(isKept ? 1 : 2) : *logits; }
  /// Of an online softmax: may keys of pieces that were left out have weights, in rows that have hardly any others?
  /// Then the warps of a block tell each other if any has such a row.
  bool mayWeighHidden() const;
  static constexpr int64_t bitsOfFlag = 32;
  /// Of the pieces that a block multiplies scores of, a share of all, on average.
  double keptPieces = 1;
  /// Do the last rows of a batch have more of them than the first? Blocks of these begin before: what is left to the
  /// end is short.
  bool beginsWithLastRows = false;
  /// And of those whose terms it multiplies: what is hidden has no weight in an online softmax.
  double keptTerms() const { return isOnline ? keptPieces : 1; }

  const HloInstruction &weights() const { return *product.hero->operand(product.rows.operand); }
  /// Products of fragments for each weight.
  int64_t piecesOfWeight() const { return int64_t(product.piecesOf(product.rows)); }
  int64_t keys() const { return scores.columns.size; }
  int64_t piece() const { return scores.tile.columns(); }
  int64_t pieces() const { return scores.columnTiles(); }
  int64_t rowTiles() const { return scores.rowTiles(); }
  int64_t blocks() const { return scores.batchSize * rowTiles(); }
  /// Those go through the pieces together then, the sum scaled whenever a larger element is found.
  bool joinsFirstStages() const { return mayJoinFirstStages && !holdsScores; }
  /// How often scores are multiplied.
  int64_t passes() const {
    return holdsScores || isOnline ? 1 : int64_t(stages.size()) - int64_t(joinsFirstStages()) + 1;
  }
  /// How often the dot beside the scores is.
  int64_t passesOfBeside() const;
  /// Instructions of a score: what several stages compute of those in registers is computed once.
  double workOfScore() const { return holdsScores ? workHeld : workOfStages; }
  /// Fragments' terms and columns that are there: tiles are powers of two, of which the rest is left out.
  static int64_t termsOf(const ContractionPlan &dot) { return roundedUp(dot.innerDepth(), fragmentDepth); }
  int64_t terms() const { return termsOf(scores); }
  int64_t columns() const { return roundedUp(product.columns.size, 2 * ContractionTile::fragmentColumns); }
  /// Do warpgroups multiply what one more copies by tensor maps, all in one ring?
  bool inRing() const { return scores.tile.hasProducer; }
  /// Whose columns come beside the scores' keys: terms, or the keys of the dot beside, where terms are keys.
  const ContractionPlan &secondInRing() const { return beside ? *beside : product; }
  /// Of a thread; and if there is a producer, what those that multiply have when it has given its own away.
  int64_t wantedRegisters() const;
  int64_t registersOfConsumers() const;
  /// Are the fragments of a warp's rows in registers all the time? Otherwise they are loaded for each piece.
  /// (Warpgroups multiply what is in shared memory.)
  bool holdsRows() const { return !scores.tile.ofWarpgroups && termsOfRows() <= 128; }
  int64_t termsOfRows() const { return terms() + (beside ? termsOf(*beside) : 0); } ///< of all dots that have rows
  /// Are outputs put together where the rows' factors were, of the same type?
  bool storesInRowTile() const;
  /// For which there is room in shared memory then.
  int64_t rowElements() const;
  /// Of a piece's keys, or of its terms. One such tile is multiplied while the next one arrives; of the keys of a dot
  /// beside the scores there is one more, and a ring has as many as it has stages.
  static constexpr int64_t stagesOfTiles = 2;
  int64_t stagesInShared() const { return inRing() ? scores.tile.stages : stagesOfTiles + int64_t(beside.has_value()); }
  int64_t pieceElements() const;
  /// Of a block: the rows' factors, both tiles, outputs on their way, and what its warps tell each other.
  uint64_t sharedBytes() const;
  std::string toString() const;

private:
  static int64_t roundedUp(int64_t size, int64_t to) { return (size + to - 1) / to * to; }
};

} // namespace hloc
