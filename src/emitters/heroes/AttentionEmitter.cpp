// One idea: a tile of keys or terms is on its way to shared memory, by all threads, while the one before it is
// multiplied. What is made of scores is in AttentionScores; where one warpgroup brings tiles for the others, in
// AttentionRing.
//
// Where a mask leaves a block none of a piece's keys, no scores are multiplied: those keys' scores are one number,
// which a stage takes as often as there are such, and their weights are one factor a row. They are multiplied like
// others, since infinities among the terms show even so.

#include "emitters/heroes/AttentionEmitter.h"

#include "emitters/heroes/ArrivingTiles.h"
#include "emitters/heroes/AttentionRing.h"
#include "emitters/heroes/AttentionScores.h"
#include "emitters/heroes/SoftmaxArithmetic.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

class AttentionEmitter : ArrivingTiles, AttentionScores {
public:
  AttentionEmitter(const AttentionPlan &plan, KernelBuilder &kernel)
      : ArrivingTiles(kernel.code(), plan.pieces()), AttentionScores(plan, kernel) {}

  llvm::LogicalResult emit() {
    if (failed(emitFunctions()))
      return failure();
    findRows();
    findPieces(/*atLeastOne=*/false);
    ofWarpgroups = plan.scores.tile.ofWarpgroups;
    allocate(plan.pieceElements(), plan.stagesInShared(), dots.front().factorType());
    onItsWay = begin(dots.front().keys, firstOfPass(), b.index(0));
    loadRows();
    if (plan.holdsScores)
      holdScores();
    if (plan.holdsScores && plan.isSoftmax)
      reduceHeld();
    else
      for (size_t stage = 0; !plan.isOnline && stage < reductions.size();)
        stage = reduce(stage, [&](const Values &carried, bool areBoth, OfPiece body) {
          return forEachPiece(carried, areBoth, body);
        });
    SmallVector<Value> sums = plan.beside                          ? multiplyBoth()
                              : plan.isOnline && !plan.holdsScores ? multiplyOnline()
                                                                   : multiplyWeights();
    if (plan.quotient)
      divide(sums);
    // Where a block may have no pieces, nobody has waited for those who read the rows' factors.
    Value &rowTile = dots.front().rowTile;
    if (plan.isOnline && plan.skipsPieces && !plan.mayWeighHidden() && plan.storesInRowTile())
      rowTile = synchronized(rowTile);
    outputs.store(sums, plan.storesInRowTile() ? rowTile : Value());
    storeResults();
    return succeeded();
  }

private:
  using AttentionScores::b;
  using Values = AttentionScores::Values;

  // --- scores

  void loadRows() {
    if (plan.beside) {
      for (ScoreProduct &dot : dots) {
        dot.bringRows();
        if (dot.rows.isCopied())
          dot.rowTile = arrived(dot.rowTile);
        dot.rowTile = synchronized(dot.rowTile);
        if (plan.holdsRows())
          dot.holdRows();
      }
      return;
    }
    ScoreProduct &dot = dots.front();
    dot.bringRows();
    // Both are waited for at once, by all who need them.
    bringsOthers = dot.rows.isCopied() && !plan.holdsRows();
    firstHasArrived = plan.holdsRows() && dot.rows.isCopied() && dot.keys.isCopied();
    if (firstHasArrived)
      tiles = arrived(tiles);
    else if (plan.holdsRows() && dot.rows.isCopied())
      dot.rowTile = arrived(dot.rowTile);
    if (!plan.holdsRows())
      return;
    dot.rowTile = synchronized(dot.rowTile);
    dot.holdRows();
  }

  Scores multiplyScores(Value stage) { return dots.front().multiply(tiles, stage); }

  /// Of all pieces, one after the other; the first piece of terms is on its way then.
  void holdScores() {
    for (int64_t piece = 0; piece < plan.pieces(); ++piece) {
      if (piece == 0 && firstHasArrived)
        tiles = synchronized(tiles);
      else
        arrive(dots.front().keys, onItsWay, stageOf(piece));
      onItsWay = piece + 1 < plan.pieces() ? begin(dots.front().keys, b.index(piece + 1), stageOf(piece + 1))
                                           : begin(terms, b.index(0), stageOf(piece + 1));
      Scores scores = multiplyScores(stageOf(piece));
      held.push_back(plan.isSoftmax ? logitsOf(b.index(piece), scores) : scores);
    }
  }

  /// What `body` carries through all pieces of keys, of which a stage of reductions takes each. Another pass follows.
  Values forEachPiece(Values carried, bool areBoth,
                      llvm::function_ref<Values(Value piece, const Scores &scores, const Values &carried)> body) {
    if (areBoth) {
      carried = loopBoth(carried, [&](Value piece, const Scores &scores, Value, const Values &before) {
        return body(piece, scores, before);
      });
      // Nobody reads keys of the first dot any more: all have come to where the other's were there.
      onItsWay = begin(dots.front().keys, b.index(0), b.index(0));
      return carried;
    }
    if (plan.holdsScores) {
      for (int64_t piece = 0; piece < plan.pieces(); ++piece)
        carried = body(b.index(piece), held[size_t(piece)], carried);
      return carried;
    }
    carried = loopTiles(
        dots.front().keys, carried, firstPiece, endPiece, [](Value turn) { return turn; },
        [&](Value piece, Value stage, const Values &before) {
          Scores scores = multiplyScores(stage);
          return body(piece, scores, before);
        });
    tiles = synchronized(tiles);
    onItsWay = begin(dots.front().keys, firstOfPass(), b.index(0));
    return carried;
  }

  /// The same with scores of both dots: the tile of keys of the first is in `stage`, with one more on its way to the
  /// stage that is not that one, while the other's come and go in a third.
  Values
  loopBoth(const Values &carried,
           llvm::function_ref<Values(Value piece, const Scores &scores, Value stage, const Values &carried)> body) {
    ScoreProduct &first = dots.front(), &second = dots.back();
    Values state(carried);
    state.push_back(b.index(0));
    llvm::append_range(state, onItsWay);
    state = loopPieces(state, {}, {}, [&](Value piece, ValueRange before) {
      Value stage = before[carried.size()], third = b.index(stages);
      Values loaded(before.drop_front(carried.size() + 1));
      arrive(first.keys, loaded, stage);
      Values loadedBeside = begin(second.keys, piece, third);
      Scores scores = first.multiply(tiles, stage);
      arrive(second.keys, loadedBeside, third);
      Value other = otherStage(stage);
      loaded = beginFollowing(first.keys, piece, other, {}, loaded, [](Value turn) { return turn; });
      llvm::append_range(scores, second.multiply(tiles, third));
      Values next = body(piece, scores, stage, Values(before.take_front(carried.size())));
      next.push_back(other);
      llvm::append_range(next, loaded);
      return next;
    });
    state.resize(carried.size());
    return state;
  }

  /// What `body` carries through turns from `first` on and before `end`, or as many as there are pieces. The tile of
  /// `pieceOf` the first turn is on its way to the first stage, each next one to the other than the one before.
  Values loopTiles(OperandTile &operand, const Values &carried, Value first, Value end,
                   llvm::function_ref<Value(Value turn)> pieceOf,
                   llvm::function_ref<Values(Value piece, Value stage, const Values &before)> body) {
    Values state(carried);
    state.push_back(b.index(0));
    llvm::append_range(state, onItsWay);
    state = loopPieces(state, first, end, [&](Value turn, ValueRange before) {
      Value stage = before[carried.size()];
      Values loaded(before.drop_front(carried.size() + 1));
      arrive(operand, loaded, stage);
      Value other = otherStage(stage);
      loaded = beginFollowing(operand, turn, other, end, loaded, pieceOf);
      Values next = body(pieceOf(turn), stage, Values(before.take_front(carried.size())));
      next.push_back(other);
      llvm::append_range(next, loaded);
      return next;
    });
    awaitUnused(operand, first);
    state.resize(carried.size());
    return state;
  }

  /// Turns from `first` on and before `end`, or as many as there are pieces; the tiles' memory is carried beside.
  Values loopPieces(Values carried, Value first, Value end,
                    llvm::function_ref<Values(Value piece, ValueRange before)> body) {
    carried.push_back(tiles);
    auto round = [&](Value piece, ValueRange before) {
      tiles = before.back();
      Values next = body(piece, before.drop_back());
      next.push_back(tiles);
      return next;
    };
    if (first) {
      auto loop = scf::ForOp::create(b, first, end, b.index(1), carried);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      scf::YieldOp::create(b, round(clampedPiece(loop.getInductionVar()), loop.getRegionIterArgs()));
      carried = Values(loop.getResults());
    } else {
      IndexingMap pieces = IndexingMap::fromSizes(AffineMap::get(0, 1, {}, context), {}, {plan.pieces()});
      carried = kernel.loop(pieces, {}, carried, [&](ValueRange piece, ValueRange, ValueRange before) {
        return round(piece.front(), before);
      });
    }
    tiles = carried.pop_back_val();
    return carried;
  }

  // --- rows

  /// Of logits in registers, which become exponentials.
  void reduceHeld() {
    ReductionCode &ofMaximum = reductions[0], &ofSum = reductions[1];
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      auto forEachOfRow = [&](llvm::function_ref<void(Value &)> body) {
        for (Scores &piece : held)
          for (Value &value : MutableArrayRef(piece).slice(size_t(row * neighbours()), size_t(neighbours())))
            body(value);
      };
      Values maximum = ofMaximum.start([] { return Values(); }), sum = ofSum.start([] { return Values(); });
      forEachOfRow([&](Value &value) { maximum = ofMaximum.combine(maximum, value); });
      maximum = ofMaximum.shuffle(maximum, lanesOfRow / 2, /*toAll=*/true);
      maximum.front() = scaledLogit(maximum.front());
      forEachOfRow([&](Value &value) {
        Value exponent = b.subF(scaledLogit(value), maximum.front());
        value = plan.isOnline && plan.resultRoots.empty() ? roughPower(b, exponent)
                                                          : exactPower(b, exponent, plan.isOnline);
        sum = ofSum.combine(sum, value);
      });
      sum = ofSum.shuffle(sum, lanesOfRow / 2, /*toAll=*/true);
      llvm::append_range(results[size_t(row)], ofMaximum.results(maximum));
      llvm::append_range(results[size_t(row)], ofSum.results(sum));
    }
  }

  // --- the second dot

  SmallVector<Value> multiplyWeights() {
    findShares();
    Values sums = noSums();
    if (plan.holdsScores)
      return multiplyHeld(sums);
    const size_t count = sums.size();
    llvm::append_range(sums, onItsWay);
    sums = loopPieces(sums, firstPiece, endPiece, [&](Value piece, ValueRange before) {
      Value ofKeys = stageOf(0), ofTerms = stageOf(1);
      Values loaded(before.drop_front(count));
      arrive(dots.front().keys, loaded, ofKeys);
      Values loadedTerms = begin(terms, piece, ofTerms);
      Scores scores = multiplyScores(ofKeys);
      const Weights weights = weightsOf(piece, scores);
      arrive(terms, loadedTerms, ofTerms);
      loaded = beginFollowing(dots.front().keys, piece, ofKeys, endPiece, loaded, [](Value turn) { return turn; });
      Values next = multiplyTerms(Values(before.take_front(count)), ofTerms, weights);
      llvm::append_range(next, loaded);
      return next;
    });
    awaitUnused(dots.front().keys, firstPiece);
    sums.resize(count);
    return plan.skipsPieces ? multiplyMasked(sums, leftPieces()) : sums;
  }

  /// Weights are made of both dots' results, and multiplied by the keys of the first.
  SmallVector<Value> multiplyBoth() {
    const Values sums = noSums();
    SmallVector<Value> all = loopBoth(sums, [&](Value piece, const Scores &scores, Value stage, const Values &before) {
      // Of a few keys at a time: all weights, in pieces, are more than registers have room for.
      return multiplyTerms(before, stage, [&](int64_t number) { return weightsOf(piece, scores, number); });
    });
    // Outputs may take the place of the rows' factors, which others still multiply.
    dots.front().rowTile = synchronized(dots.front().rowTile);
    return all;
  }

  /// All in one pass, of what a softmax has not divided.
  SmallVector<Value> multiplyOnline() {
    RunningRows running(kernel, plan, reductions[0], reductions[1], rowsOfThread, lanesOfRow);
    running.begin();
    Values sums = noSums(), state(sums);
    const size_t count = sums.size(), ofRows = running.numCarried();
    llvm::append_range(state, running.carried());
    llvm::append_range(state, onItsWay);
    state = loopPieces(state, firstPiece, endPiece, [&](Value piece, ValueRange before) {
      Value ofKeys = stageOf(0), ofTerms = stageOf(1);
      Values loaded(before.drop_front(count + ofRows)), next(before.take_front(count));
      running.setCarried(before.slice(count, ofRows));
      arrive(dots.front().keys, loaded, ofKeys);
      Values loadedTerms = begin(terms, piece, ofTerms);
      const Scores logits = logitsOf(piece, multiplyScores(ofKeys));
      meet(running, logits);
      running.outgrow(next);
      const Weights weights = weightsOf(piece, running.take(logits));
      arrive(terms, loadedTerms, ofTerms);
      loaded = beginFollowing(dots.front().keys, piece, ofKeys, endPiece, loaded, [](Value turn) { return turn; });
      next = multiplyTerms(next, ofTerms, weights);
      llvm::append_range(next, running.carried());
      llvm::append_range(next, loaded);
      return next;
    });
    awaitUnused(dots.front().keys, firstPiece);
    sums.assign(state.begin(), state.begin() + count);
    running.setCarried(ValueRange(state).slice(count, ofRows));
    running.meetSums();
    if (plan.mayWeighHidden())
      sums = multiplyHidden(running, sums);
    finish(running);
    return sums;
  }

  /// With the pieces that a mask has left out, if they have any weight: only in rows that have hardly anything else.
  SmallVector<Value> multiplyHidden(RunningRows &running, Values sums) {
    Value isThere = meetHidden(running, sums);
    const int64_t warps = plan.scores.tile.warpRows;
    Value flags = warps > 1 ? RunningRows::allocateFlags(b, warps) : Value();
    Value any = running.anyOfBlock(isThere, flags, [&](Value flags) { return synchronized(flags); });
    return multiplyMasked(sums, known(b.select(any, leftPieces(), b.index(0)), plan.pieces() + 1));
  }

  /// All weights are made before the first is multiplied: two of them take a register.
  Values multiplyHeld(Values sums) {
    std::vector<Weights> weights;
    for (int64_t piece = 0; piece < plan.pieces(); ++piece)
      weights.push_back(weightsOf(b.index(piece), held[size_t(piece)]));
    for (int64_t piece = 0; piece < plan.pieces(); ++piece) {
      const int64_t tile = plan.pieces() + piece; // behind those of keys
      arrive(terms, onItsWay, stageOf(tile));
      if (piece + 1 < plan.pieces())
        onItsWay = begin(terms, b.index(piece + 1), stageOf(tile + 1));
      sums = multiplyTerms(sums, stageOf(tile), weights[size_t(piece)]);
    }
    return sums;
  }

  /// The products of the pieces that were left out.
  SmallVector<Value> multiplyMasked(const Values &sums, Value left) {
    auto pieceOf = [&](Value turn) { return pieceLeftOut(turn); };
    tiles = synchronized(tiles);
    onItsWay = begin(terms, pieceOf(b.index(0)), stageOf(0));
    return loopTiles(terms, sums, b.index(0), left, pieceOf, [&](Value piece, Value stage, const Values &before) {
      return multiplyTerms(before, stage, weightsOfHidden(piece));
    });
  }

  Values multiplyTerms(const Values &sums, Value stage, llvm::function_ref<WeightFragments(int64_t number)> weights) {
    return hloc::multiplyTerms(plan, kernel, {tiles, stage, dots.front().factorType()}, sums, weights);
  }
  Values multiplyTerms(const Values &sums, Value stage, const Weights &weights) {
    return multiplyTerms(sums, stage, [&](int64_t number) { return weights[size_t(number)]; });
  }

  Values onItsWay;              ///< `begin` of the next tile
  bool firstHasArrived = false; ///< of the first piece of keys, what each thread itself copied
  std::vector<Scores> held;     ///< by piece; of a softmax logits, then exponentials
};

} // namespace

llvm::LogicalResult emitHero(const AttentionPlan &plan, KernelBuilder &kernel) {
  return plan.inRing() ? emitInRing(plan, kernel) : AttentionEmitter(plan, kernel).emit();
}

} // namespace hloc
