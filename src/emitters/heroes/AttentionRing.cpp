// One idea: warpgroups go through the pieces each at its own pace, so that one makes weights while tensor cores
// multiply for another; and each begins the next piece's scores before it multiplies the weights that it has, so that
// they are made while it makes weights of those.
//
// Tiles come in the order in which they are multiplied: of a pass for a stage of reductions, keys, and those of the dot
// beside where it is reduced; of the last pass, the first piece's keys, then of each piece the keys of the next one and
// its own terms; then the terms of the pieces that a mask has left out. Where there is a dot beside, both keys of a
// piece come together, and the first are terms, too.

#include "emitters/heroes/AttentionRing.h"

#include "emitters/heroes/AttentionScores.h"
#include "emitters/heroes/TileRing.h"
#include "emitters/heroes/WarpgroupProduct.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace hloc {
namespace {

class AttentionRing : AttentionScores {
public:
  AttentionRing(const AttentionPlan &plan, KernelBuilder &kernel)
      : AttentionScores(plan, kernel), ring(plan.scores.tile, kernel, plan.mayWeighHidden()) {}

  llvm::LogicalResult emit() {
    if (failed(emitFunctions()))
      return failure();
    tiles = xla_gpu::AllocateSharedOp::create(
        b, RankedTensorType::get({plan.stagesInShared() * plan.pieceElements()}, dots.front().factorType()),
        b.getI64IntegerAttr(ContractionPlan::alignmentOfTiles));
    for (ScoreProduct &dot : dots)
      dot.allocateRows();
    if (plan.mayWeighHidden())
      flags = RunningRows::allocateFlags(b, plan.scores.tile.warpRows);
    findPieces(/*atLeastOne=*/true);
    ring.run(plan.registersOfConsumers(), [&] { fill(); }, [&] { multiply(); });
    return succeeded();
  }

private:
  using Turn = TileRing::Turn;

  // --- the producer

  void fill() {
    Turn turn = ring.beforeFills();
    for (size_t stage = 0; !plan.isOnline && stage < reductions.size(); stage += stagesOfPass(stage))
      turn = forEachFill(turn, first(), end(), [&](Value piece, Turn turn) {
        turn = fillKeys(piece, turn);
        return stagesOfPass(stage) == 1 && plan.stagesBeside[stage] ? fillSecond(piece, turn) : turn;
      });
    if (plan.beside) {
      forEachFill(turn, first(), end(),
                  [&](Value piece, Turn turn) { return fillSecond(piece, fillKeys(piece, turn)); });
      return;
    }
    turn = fillKeys(first(), turn);
    turn = forEachFill(turn, first(), last(), [&](Value piece, Turn turn) {
      return fillSecond(piece, fillKeys(clampedPiece(b.addI(piece, b.index(1))), turn));
    });
    turn = fillSecond(clampedPiece(last()), turn);
    if (!multipliesHidden())
      return;
    if (flags)
      ring.awaitTold();
    Value end = flags ? hiddenPieces(RunningRows::anyOf(b, flags)) : leftPieces();
    forEachFill(turn, b.index(0), end, [&](Value piece, Turn turn) { return fillSecond(pieceLeftOut(piece), turn); });
  }

  Turn forEachFill(Turn turn, Value first, Value end, llvm::function_ref<Turn(Value piece, Turn turn)> fill) {
    const Values after = forEach(first, end, {turn.stage, turn.parity}, [&](Value piece, const Values &before) {
      const Turn made = fill(piece, {before[0], before[1]});
      return Values{made.stage, made.parity};
    });
    return {after[0], after[1]};
  }

  Turn fillKeys(Value piece, const Turn &before) { return fill(dots.front().keys, 0, piece, before); }
  /// Terms, or keys of the dot beside.
  Turn fillSecond(Value piece, const Turn &before) {
    return fill(plan.beside ? dots.back().keys : terms, 1, piece, before);
  }

  /// `map`: number of the operand's among the kernel's (tensorMapsOf).
  Turn fill(OperandTile &operand, unsigned map, Value piece, const Turn &before) {
    const Turn turn = ring.following(before);
    ring.begin(turn, operand.bytesOfTile());
    operand.copyInBulk(map, piece, tiles, turn.stage, ring.allBarriers());
    return turn;
  }

  // --- pieces

  Value first() { return firstPiece ? firstPiece : b.index(0); }
  Value end() { return endPiece ? endPiece : b.index(plan.pieces()); }
  Value last() { return b.subI(end(), b.index(1)); }
  bool multipliesHidden() const { return plan.skipsPieces && (!plan.isOnline || plan.mayWeighHidden()); }
  /// Of an online softmax: those that were left out, where they have a weight in any row of the block.
  Value hiddenPieces(Value haveWeight) {
    return known(b.select(haveWeight, leftPieces(), b.index(0)), plan.pieces() + 1);
  }

  /// What `body` carries from `first` on and before `end`.
  Values forEach(Value first, Value end, const Values &carried,
                 llvm::function_ref<Values(Value piece, const Values &before)> body) {
    auto loop = scf::ForOp::create(b, first, end, b.index(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(b, body(clampedPiece(loop.getInductionVar()), Values(loop.getRegionIterArgs())));
    return Values(loop.getResults());
  }

  // --- those that multiply

  void multiply() {
    findRows();
    bringRows();
    turn = ring.beforeUses();
    for (size_t stage = 0; !plan.isOnline && stage < reductions.size();)
      stage = reduce(stage, [&](const Values &carried, bool areBoth, OfPiece body) {
        return forEachPiece(carried, areBoth, body);
      });
    Values sums = plan.beside ? multiplyBoth() : plan.isOnline ? multiplyOnline() : multiplyWeights();
    if (plan.quotient)
      divide(sums);
    // The others may still multiply the rows' factors.
    Value &rowTile = dots.front().rowTile;
    if (plan.storesInRowTile())
      rowTile = ring.synchronized(rowTile).front();
    outputs.store(sums, plan.storesInRowTile() ? rowTile : Value());
    storeResults();
  }

  void bringRows() {
    Values brought;
    bool isAnyCopied = false;
    for (ScoreProduct &dot : dots) {
      dot.bringRows();
      brought.push_back(dot.rowTile);
      isAnyCopied |= dot.rows.isCopied();
    }
    auto all = [&] { return TypeRange(ValueRange(brought)); };
    if (isAnyCopied) {
      brought = Values(xla_gpu::CommitCopiesOp::create(b, all(), brought).getResults());
      brought = Values(xla_gpu::AwaitCopiesOp::create(b, all(), brought, uint64_t(0)).getResults());
    }
    brought = Values(xla_gpu::PublishTilesOp::create(b, all(), brought).getResults());
    brought = ring.synchronized(brought);
    for (auto [dot, tile] : llvm::zip_equal(dots, brought))
      dot.rowTile = tile;
  }

  /// The next stage, when it is filled.
  Value arrived() {
    awaitNext();
    return turn.stage;
  }
  void awaitNext() {
    turn = ring.following(turn);
    (void)ring.await(turn);
  }

  Values withTurn(Values carried) const {
    carried.append({turn.stage, turn.parity});
    return carried;
  }
  Values takeTurn(const Values &carried) {
    turn = {carried[carried.size() - 2], carried.back()};
    return Values(ArrayRef(carried).drop_back(TileRing::valuesOfTurn));
  }

  Values forEachPiece(const Values &carried, bool areBoth, OfPiece body) {
    return takeTurn(forEach(first(), end(), withTurn(carried), [&](Value piece, const Values &before) {
      const Values own = takeTurn(before);
      if (!areBoth)
        return withTurn(body(piece, scoresOfNext(), own));
      Value ofKeys;
      const Scores scores = scoresOfBoth(ofKeys);
      ring.release(ofKeys);
      return withTurn(body(piece, scores, own));
    }));
  }

  /// Of the keys that come next.
  Scores scoresOfNext() {
    Value stage = arrived();
    Scores scores = dots.front().known(dots.front().start(tiles, stage), /*open=*/0);
    ring.release(stage);
    return scores;
  }

  /// The same of both dots; the first one's keys, whose stage is `ofKeys`, are left there.
  Scores scoresOfBoth(Value &ofKeys) {
    ScoreProduct &first = dots.front(), &second = dots.back();
    ofKeys = arrived();
    Scores all = first.start(tiles, ofKeys);
    const size_t count = all.size();
    Value ofSecond = arrived();
    llvm::append_range(all, second.start(tiles, ofSecond));
    all = awaitProducts(b, all);
    ring.release(ofSecond);
    Scores scores = first.stored(ArrayRef(all).take_front(count));
    llvm::append_range(scores, second.stored(ArrayRef(all).drop_front(count)));
    return scores;
  }

  /// What a piece's scores become: what weights are made of when the products of those before are there, and all that
  /// is carried on.
  struct Made {
    Scores ofWeights;
    Values carried;
  };
  /// Weights of a piece in registers, and what is carried beside the sums of products.
  struct Step {
    Values carried;
    Weights weights;
  };
  /// The stage of `turn` is filled whenever products are started. A piece's weights are multiplied by its terms while
  /// `make` makes of the next one's scores what is rounded to weights behind that, in the same registers. `scale` does
  /// what has to be done with the sums before more is added. Returns sums and what was carried.
  using Make = llvm::function_ref<Made(Value piece, const Scores &scores, const Values &carried)>;
  Values multiplyPieces(Values sums, const Values &carried, Make make, llvm::function_ref<void(Values &sums)> scale) {
    const size_t numSums = sums.size(), numCarried = carried.size();
    auto weigh = [&](Value piece, const Made &made) { return Step{made.carried, rounded(piece, made.ofWeights)}; };
    const Step begun = weigh(first(), make(first(), scoresOfNext(), carried));
    awaitNext();
    auto pack = [&](const Values &sums, const Step &step) {
      Values all(sums);
      llvm::append_range(all, step.carried);
      for (const WeightFragments &fragments : step.weights)
        llvm::append_range(all, fragments);
      return withTurn(all);
    };
    auto unpack = [&](const Values &all, Values &sums) {
      const Values own = takeTurn(all);
      Step step = begun;
      sums.assign(own.begin(), own.begin() + ptrdiff_t(numSums));
      step.carried.assign(own.begin() + ptrdiff_t(numSums), own.begin() + ptrdiff_t(numSums + numCarried));
      size_t at = numSums + numCarried;
      for (WeightFragments &fragments : step.weights)
        for (Value &fragment : fragments)
          fragment = own[at++];
      return step;
    };
    const Values all = forEach(first(), last(), pack(sums, begun), [&](Value number, const Values &before) {
      Values own;
      const Step step = unpack(before, own);
      Value piece = clampedPiece(b.addI(number, b.index(1))), ofKeys = turn.stage;
      Scores scores = dots.front().start(tiles, ofKeys);
      Value ofTerms = arrived();
      own = startTerms(own, ofTerms, step.weights);
      scores = dots.front().known(scores, /*open=*/1);
      ring.release(ofKeys);
      const Made made = make(piece, scores, step.carried);
      keep(made.ofWeights);
      // ptxas, too, leaves what is before this loop there. (The terms still have their stage: there are two at least.)
      awaitNext();
      own = productsOf(own, step.weights);
      ring.release(ofTerms);
      scale(own);
      return pack(own, weigh(piece, made));
    });
    const Step step = unpack(all, sums);
    sums = productsOf(startTerms(sums, turn.stage, step.weights), step.weights);
    ring.release(turn.stage);
    llvm::append_range(sums, step.carried);
    return sums;
  }

  /// Nothing that values are made of comes behind this. (Narrow ones take their chances.)
  void keep(const Values &values) {
    if (!values.empty() && values.front().getType().isF32())
      xla_gpu::KeepOp::create(b, ValueRange(values));
  }

  Values startTerms(const Values &sums, Value stage, const Weights &weights) {
    return hloc::startTerms(plan, kernel, {tiles, stage, dots.front().factorType()}, sums, weights);
  }
  /// When all products are there, for which weights were kept.
  Values productsOf(const Values &sums, const Weights &weights) {
    Values all = awaitProducts(b, sums), kept;
    for (const WeightFragments &fragments : weights)
      llvm::append_range(kept, fragments);
    xla_gpu::KeepOp::create(b, ValueRange(kept));
    return all;
  }

  /// Weights are made of both dots' results, and multiplied by the keys of the first. Two warpgroups take turns: what
  /// is computed of a score takes as long as all its products.
  Values multiplyBoth() {
    return takeTurn(forEach(first(), end(), withTurn(noSums()), [&](Value piece, const Values &before) {
      Values own = takeTurn(before);
      Value ofKeys;
      const Weights weights = weightsOf(piece, scoresOfBoth(ofKeys));
      own = productsOf(startTerms(own, ofKeys, weights), weights);
      ring.release(ofKeys);
      return withTurn(own);
    }));
  }

  Values multiplyWeights() {
    findShares();
    Values sums = multiplyPieces(
        noSums(), {},
        [&](Value piece, const Scores &scores, const Values &) { return Made{weighed(piece, scores), {}}; },
        [](Values &) {});
    return multipliesHidden() ? multiplyHidden(sums, leftPieces()) : sums;
  }

  /// The products of the pieces that were left out.
  Values multiplyHidden(const Values &sums, Value pieces) {
    return takeTurn(forEach(b.index(0), pieces, withTurn(sums), [&](Value number, const Values &before) {
      Values own = takeTurn(before);
      const Weights weights = weightsOfHidden(pieceLeftOut(number));
      Value stage = arrived();
      own = productsOf(startTerms(own, stage, weights), weights);
      ring.release(stage);
      return withTurn(own);
    }));
  }

  Values multiplyOnline() {
    RunningRows running(kernel, plan, reductions[0], reductions[1], rowsOfThread, lanesOfRow);
    running.begin();
    RunningRows::Growth growth;
    auto make = [&](Value piece, const Scores &scores, const Values &carried) {
      running.setCarried(carried);
      const Scores logits = logitsOf(piece, scores);
      meet(running, logits);
      growth = running.outgrow();
      const Scores powers = running.take(logits);
      return Made{powers, running.carried()};
    };
    Values sums = noSums();
    const size_t count = sums.size();
    const Values all =
        multiplyPieces(sums, running.carried(), make, [&](Values &sums) { running.scale(growth, sums); });
    sums.assign(all.begin(), all.begin() + ptrdiff_t(count));
    running.setCarried(ValueRange(all).drop_front(count));
    running.meetSums();
    if (plan.mayWeighHidden()) {
      Value any = running.anyOfBlock(meetHidden(running, sums), flags, [&](Value flags) {
        Value there = ring.synchronized(flags).front();
        ring.tell();
        return there;
      });
      sums = multiplyHidden(sums, hiddenPieces(any));
    }
    finish(running);
    return sums;
  }

  TileRing ring;
  Value tiles, flags;
  Turn turn; ///< of those that multiply, the last one
};

} // namespace

llvm::LogicalResult emitInRing(const AttentionPlan &plan, KernelBuilder &kernel) {
  return AttentionRing(plan, kernel).emit();
}

} // namespace hloc
