#pragma once
// What attention makes of a thread's scores, in whatever way keys and terms come: logits, what rows come to, weights,
// outputs.

#include "emitters/heroes/AttentionPlaces.h"
#include "emitters/heroes/OutputTile.h"
#include "emitters/heroes/ReductionCode.h"
#include "emitters/heroes/RunningRows.h"
#include "emitters/heroes/ScoreProduct.h"
#include "emitters/heroes/WeightProduct.h"

namespace hloc {

class AttentionScores : protected AttentionPlaces {
protected:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  /// A thread's scores of one piece, by row and then by the two neighbours of each eight keys; behind them those of the
  /// dot beside, where these are asked for.
  using Scores = llvm::SmallVector<Value>;
  using Weights = llvm::SmallVector<WeightFragments>; ///< of a piece, for 16 keys each

  AttentionScores(const AttentionPlan &plan, KernelBuilder &kernel);

  llvm::LogicalResult emitFunctions();
  /// Which rows a thread has: before anything else is asked for, but pieces.
  void findRows();
  llvm::LogicalResult succeeded() const;

  // --- scores

  /// What a softmax is of, but for the `scale`. What is hidden, or beyond the last key, is asked for at edges alone.
  Scores logitsOf(Value piece, const Scores &scores);
  Value scaledLogit(Value logit);
  /// Of a key that the mask hides from all rows of the block.
  Value maskedLogit(int64_t row, Value key);

  // --- stages

  using OfPiece = llvm::function_ref<Values(Value piece, const Scores &scores, const Values &carried)>;
  /// What a body carries through all pieces of keys, whose scores it is given, if `areBoth` those beside, too.
  using ForEachPiece = llvm::function_ref<Values(const Values &carried, bool areBoth, OfPiece body)>;
  /// Goes through the pieces for a stage, or for two; returns the number of the next.
  size_t reduce(size_t stage, ForEachPiece forEachPiece);
  /// How many stages the pass for this one is for.
  size_t stagesOfPass(size_t stage) const { return stage == 0 && plan.joinsFirstStages() ? 2 : 1; }

  // --- weights

  /// Of products of weights and terms.
  Values noSums();
  /// Before weights of a softmax, whose rows are known.
  void findShares();
  /// Of an online softmax, `scores` are exponentials.
  Weights weightsOf(Value piece, const Scores &scores);
  /// Of 16 keys. `scores`: of a softmax its logits, or exponentials.
  WeightFragments weightsOf(Value piece, const Scores &scores, int64_t number);
  /// The same in two steps: weights that are not rounded yet, by the places of scores, of which those of an online
  /// softmax are exponentials; and as they are multiplied.
  Scores weighed(Value piece, const Scores &scores);
  Weights rounded(Value piece, const Scores &weighed);
  /// Rows meet a piece's logits.
  void meet(RunningRows &running, const Scores &logits);
  /// Behind the last piece, rows meet keys that were left out, if there are any. Do these have a weight in any?
  Value meetHidden(RunningRows &running, Values &sums);
  /// What running rows came to.
  void finish(RunningRows &running);
  /// The piece of that turn, of those that were left out.
  Value pieceLeftOut(Value turn);
  /// Its weights, which are those of its first key.
  Weights weightsOfHidden(Value piece);

  // --- outputs

  /// By the sums of their rows.
  void divide(Values &sums);
  /// Outputs with one element a row.
  void storeResults();

  CodeBuilder &b;
  ContractionValues values;       ///< of scores
  std::vector<ScoreProduct> dots; ///< the scores', and the one beside
  OperandTile terms;              ///< unless they are keys
  OutputTile outputs;
  std::vector<ReductionCode> reductions;
  std::array<Values, rowsOfThread> results; ///< of complete stages, by row

private:
  static constexpr int64_t neighboursOfFragment = 4;

  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }
  FunctionRequest requestOf(const HloInstruction &value, llvm::ArrayRef<InjectedValue> known) const;
  FunctionRequest requestOfResults(llvm::ArrayRef<InjectedValue> known) const;
  IndexingMap mapOfResult(unsigned number) const;

  Values argumentsOf(const Scores &scores, int64_t row, int64_t neighbour);
  Values elementOf(ReductionCode &code, Values arguments, int64_t row, Value key);
  Value callAt(mlir::func::FuncOp function, const HloInstruction &value, int64_t row, Value key,
               mlir::ValueRange arguments);
  Scores shownLogitsOf(Value piece, const Scores &scores);
  Scores hidden(Value piece, Scores logits);
  Value isShown(int64_t row, Value key);
  Value hiddenLogit();
  Value keyAt(int64_t neighbour, Value piece);
  Scores noScores();

  void reduceJoined(ForEachPiece forEachPiece);
  void addMasked(int64_t row, Value &maximum, Value &sum);
  Values joinPiece(llvm::ArrayRef<Value> logits, Value maximum, Value sum);

  bool hasLogits() const;
  Value softmaxWeight(Value logit, int64_t row);
  Value weightAt(const Scores &scores, int64_t row, int64_t neighbour, Value key);
  Value weightOf(Value piece, const Scores &scores, int64_t row, int64_t neighbour);
  Value asWeight(Value weight);
  WeightFragments weightsAt(int64_t number, llvm::function_ref<Value(int64_t row, int64_t neighbour)> weight);
  Value ofKey(Value weight, int64_t neighbour, Value piece);
  Value whereKey(Value weight, int64_t neighbour, Value piece);

  mlir::func::FuncOp weightFunction, resultFunction, logitFunction, maskFunction;
  Values rows;         ///< of a thread
  Values shares;       ///< of a softmax, one over a row's sum
  Values hiddenPowers; ///< of an online one, by row, of keys that were left out
};

} // namespace hloc
