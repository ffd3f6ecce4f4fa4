// One idea: a thread has, of each piece of keys, the scores of two rows that lie in its registers as tensor cores leave
// them: neighbours of the four lanes that share a row, eight keys after eight. All that is made of a score is made
// there, by the functions of the fusion at the score's place, with the score and what its row came to as arguments;
// what comes of it are factors of the second dot in the order in which tensor cores take them.
//
// Where a mask leaves a block none of a piece's keys, no scores are multiplied: those keys' scores are one number,
// which a stage takes as often as there are such, and their weights are one factor a row. They are multiplied like
// others, since infinities among the terms show even so.
//
// Keys, rows and terms beyond the edges are zeros in shared memory. Their scores are made at the last place that there
// is, so that nothing is read beyond it, and are left out where they would count.

#include "emitters/heroes/AttentionEmitter.h"

#include "emitters/heroes/ArrivingTiles.h"
#include "emitters/heroes/AttentionPlaces.h"
#include "emitters/heroes/OutputTile.h"
#include "emitters/heroes/PastedCalls.h"
#include "emitters/heroes/ReductionCode.h"
#include "emitters/heroes/RunningRows.h"
#include "emitters/heroes/ScoreProduct.h"
#include "emitters/heroes/SoftmaxArithmetic.h"
#include "emitters/heroes/WeightProduct.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <optional>

using namespace mlir;

namespace hloc {
namespace {

class AttentionEmitter : ArrivingTiles, AttentionPlaces {
public:
  AttentionEmitter(const AttentionPlan &plan, KernelBuilder &kernel)
      : ArrivingTiles(kernel.code(), plan.pieces()), AttentionPlaces(plan, kernel), values(b, plan.scores),
        terms(plan.product, plan.product.columns, kernel, place(none(), number(), plan.pieces())),
        outputs(plan.product, kernel, place(none(), none()), plan.finished) {
    auto add = [&](const ContractionPlan &dot) {
      dots.emplace_back(dot, plan, kernel, place(none(), none()), place(number(), none(), plan.pieces()));
    };
    add(plan.scores);
    if (plan.beside)
      add(*plan.beside);
  }

  llvm::LogicalResult emit() {
    if (failed(emitFunctions()))
      return failure();
    batch = valueOf(place(none(), none()).batch);
    for (int64_t i = 0; i < rowsOfThread; ++i)
      rows.push_back(clamped(rowOf(i), plan.scores.rows.size, {}));
    findPieces();
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
        stage = reduce(stage);
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
    return success(llvm::all_of(reductions, [](const ReductionCode &code) { return succeeded(code.succeeded()); }));
  }

private:
  static constexpr int64_t neighboursOfFragment = 4;
  /// A thread's scores of one piece, by row and then by the two neighbours of each eight keys; behind them those of the
  /// dot beside, where these are asked for.
  using Scores = SmallVector<Value>;

  // --- functions

  llvm::LogicalResult emitFunctions() {
    std::vector<FunctionRequest> requests = {outputs.request()};
    if (!plan.beside)
      requests.push_back(terms.request());
    SmallVector<InjectedValue> known;
    for (const ScoreProduct &dot : dots) {
      requests.push_back(dot.rows.request());
      requests.push_back(dot.keys.request());
      known.push_back(dot.hero());
    }
    for (const ReductionFrame &frame : plan.stages) {
      ReductionCode &code = reductions.emplace_back(frame, ReductionStage::Whole, kernel);
      code.readsResults(known);
      llvm::append_range(requests, code.requests());
      for (const Accumulator &accumulator : frame.accumulators)
        known.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
    }
    if (!plan.isSoftmax)
      requests.push_back(requestOf(plan.weights(), known));
    if (plan.logits)
      requests.push_back(requestOf(plan.shownLogits(), {plan.scores.hero}));
    if (plan.masksLogits)
      requests.push_back(requestOf(*plan.mask->operand(0), {}));
    if (!plan.resultRoots.empty())
      requests.push_back(requestOfResults(ArrayRef(known).drop_front(dots.size())));
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    ArrayRef<func::FuncOp> left = *functions;
    outputs.setFunction(left.consume_front());
    if (!plan.beside)
      terms.setFunction(left.consume_front());
    for (ScoreProduct &dot : dots) {
      dot.rows.setFunction(left.consume_front());
      dot.keys.setFunction(left.consume_front());
    }
    for (ReductionCode &code : reductions) {
      const size_t count = code.requests().size();
      code.setFunctions(left.take_front(count));
      left = left.drop_front(count);
    }
    if (!plan.isSoftmax)
      weightFunction = left.consume_front();
    if (plan.logits)
      logitFunction = left.consume_front();
    if (plan.masksLogits)
      maskFunction = left.consume_front();
    if (!left.empty())
      resultFunction = left.front();
    return success();
  }

  FunctionRequest requestOf(const HloInstruction &value, ArrayRef<InjectedValue> known) const {
    FunctionRequest request;
    request.indexSizes.assign(value.shape().dims().begin(), value.shape().dims().end());
    request.roots.push_back({&value, 0, IndexingMap::identity(context, value.shape().dims())});
    request.injected.assign(known.begin(), known.end());
    return request;
  }

  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }

  /// The outputs with one element a row, by batch and row.
  FunctionRequest requestOfResults(ArrayRef<InjectedValue> known) const {
    FunctionRequest request;
    request.indexSizes = {plan.scores.batchSize, plan.scores.rows.size};
    for (unsigned number : plan.resultRoots)
      request.roots.push_back({root(number).instr, root(number).result, mapOfResult(number)});
    request.injected.assign(known.begin(), known.end());
    return request;
  }

  IndexingMap mapOfResult(unsigned number) const { return places.ofThreadsRow(followed.at(*root(number).instr)->map); }

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

  /// What is known of a score's row: the results of the stages that are complete, after the score itself.
  Values argumentsOf(const Scores &scores, int64_t row, int64_t neighbour) {
    Values arguments;
    for (size_t dot = 0; dot < dots.size(); ++dot) {
      const size_t at = size_t((int64_t(dot) * rowsOfThread + row) * neighbours() + neighbour);
      // (What does not depend on the dot beside is not told of it.)
      arguments.push_back(at < scores.size() ? scores[at] : values.stored(values.zero()));
    }
    llvm::append_range(arguments, results[size_t(row)]);
    return arguments;
  }

  /// What stage `code` reduces, at a thread's score.
  Values elementOf(ReductionCode &code, Values arguments, int64_t row, Value key) {
    code.setResults(arguments);
    Values noOutputs;
    const ReductionFrame &frame = plan.stages[size_t(&code - reductions.data())];
    const HloInstruction &reduced = reducedScores(followed, *frame.heroes.front().instr);
    return code.elementAt(indicesOf(reduced, rows[size_t(row)], key), noOutputs);
  }

  /// What `function` makes of the array `value` at a thread's score.
  Value callAt(func::FuncOp function, const HloInstruction &value, int64_t row, Value key, ValueRange arguments) {
    const size_t rank = value.shape().rank();
    const Values indices = readsIndices(kernel, function, int64_t(rank)) ? indicesOf(value, rows[size_t(row)], key)
                                                                         : Values(rank, b.index(0));
    return pastedCall(kernel, function, indices, arguments);
  }

  /// What a softmax is of, but for the `scale`. What is hidden, or beyond the last key, is asked for at edges alone.
  Scores logitsOf(Value piece, const Scores &scores) {
    Scores logits = plan.scale > 0 ? scores : shownLogitsOf(piece, scores);
    Value edge = isAtEdge(piece);
    if (!edge)
      return logits;
    auto branch = scf::IfOp::create(b, TypeRange(ValueRange(logits)), edge, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, logits);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, hidden(piece, logits));
    return Scores(branch.getResults());
  }

  Value scaledLogit(Value logit) { return plan.scale > 0 ? b.mulF(logit, plan.scale) : logit; }

  Scores shownLogitsOf(Value piece, const Scores &scores) {
    const HloInstruction &shown = plan.shownLogits();
    const bool readsKeys = readsIndices(kernel, logitFunction, shown.shape().rank());
    Scores logits;
    for (int64_t row = 0; row < rowsOfThread; ++row)
      for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour)
        logits.push_back(callAt(logitFunction, shown, row, readsKeys ? keyAt(neighbour, piece) : b.index(0),
                                scores[size_t(row * neighbours() + neighbour)]));
    return logits;
  }

  /// Logits, where there are any and the mask shows them.
  Scores hidden(Value piece, Scores logits) {
    for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour) {
      Value key = keyAt(neighbour, piece), exists = isKey(neighbour, piece);
      for (int64_t row = 0; row < rowsOfThread; ++row) {
        Value &logit = logits[size_t(row * neighbours() + neighbour)];
        if (plan.masksLogits)
          logit = b.select(isShown(row, key), logit, hiddenLogit());
        if (exists)
          logit = b.select(exists, logit, b.infinity(logit.getType(), /*negative=*/true));
      }
    }
    return logits;
  }

  /// At the select's index; the predicate may have another layout.
  Value isShown(int64_t row, Value key) {
    Value predicate = fromStorage(b, callAt(maskFunction, *plan.mask, row, key, {}), ElementType::Pred);
    return plan.isKept ? predicate : b.notI(predicate);
  }

  Value hiddenLogit() { return b.floating(b.getF32Type(), plan.hiddenLogit()); }

  Value keyAt(int64_t neighbour, Value piece) { return clamped(keyOf(neighbour), plan.keys(), piece); }

  /// Goes through the pieces for a stage, or for two; returns the number of the next.
  size_t reduce(size_t stage) {
    if (stage == 0 && plan.joinsFirstStages()) {
      reduceJoined();
      return 2;
    }
    ReductionCode &code = reductions[stage];
    Values start;
    for (int64_t row = 0; row < rowsOfThread; ++row)
      llvm::append_range(start, code.start([] { return Values(); }));
    const size_t count = start.size() / rowsOfThread;
    Values reduced =
        forEachPiece(start, plan.stagesBeside[stage], [&](Value piece, const Scores &scores, Values carried) {
          for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour) {
            Value key = keyAt(neighbour, piece), exists = isKey(neighbour, piece);
            for (int64_t row = 0; row < rowsOfThread; ++row) {
              MutableArrayRef<Value> own = MutableArrayRef(carried).slice(size_t(row) * count, count);
              Values element = elementOf(code, argumentsOf(scores, row, neighbour), row, key);
              llvm::copy(code.combine(Values(own.begin(), own.end()), exists ? code.where(exists, element) : element),
                         own.begin());
            }
          }
          return carried;
        });
    for (int64_t row = 0; row < rowsOfThread; ++row)
      llvm::append_range(results[size_t(row)],
                         code.results(code.shuffle(ArrayRef(reduced).slice(size_t(row) * count, count), lanesOfRow / 2,
                                                   /*toAll=*/true)));
    return stage + 1;
  }

  /// Each thread has the maximum of its own scores so far, and the sum of exponentials less that; lanes that share a
  /// row meet at the end.
  void reduceJoined() {
    ReductionCode &ofMaximum = reductions[0], &ofSum = reductions[1];
    Values start;
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      llvm::append_range(start, ofMaximum.start([] { return Values(); }));
      llvm::append_range(start, ofSum.start([] { return Values(); }));
    }
    Values reduced =
        forEachPiece(start, /*areBoth=*/false, [&](Value piece, const Scores &scores, const Values &carried) {
          const Scores logits = logitsOf(piece, scores);
          Values next;
          for (int64_t row = 0; row < rowsOfThread; ++row)
            llvm::append_range(next, joinPiece(ArrayRef(logits).slice(size_t(row * neighbours()), size_t(neighbours())),
                                               carried[size_t(2 * row)], carried[size_t(2 * row) + 1]));
          return next;
        });
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      Value own = reduced[size_t(2 * row)], sum = reduced[size_t(2 * row) + 1];
      Value maximum = ofMaximum.shuffle(own, lanesOfRow / 2, /*toAll=*/true).front();
      sum = ofSum.shuffle(rescaledSum(b, sum, own, exponentBase(b, maximum)), lanesOfRow / 2, /*toAll=*/true).front();
      if (plan.skipsPieces)
        addMasked(row, maximum, sum);
      // Where there is nothing but minus infinity, exponents are no numbers.
      Value isLeast = b.cmpF(CodeBuilder::FPred::OEQ, maximum, b.infinity(maximum.getType(), /*negative=*/true));
      sum = b.select(isLeast, b.quietNan(sum.getType()), sum);
      llvm::append_range(results[size_t(row)], ofMaximum.results(maximum));
      llvm::append_range(results[size_t(row)], ofSum.results(sum));
    }
  }

  /// The scores of the pieces that were left out.
  void addMasked(int64_t row, Value &maximum, Value &sum) {
    const auto [isAny, count, key] = leftKeys();
    Value before = maximum, masked = maskedLogit(row, key);
    maximum = b.select(isAny, reductions[0].combine(maximum, masked).front(), maximum);
    Value less = exponentBase(b, maximum), power = math::ExpOp::create(b, b.subF(masked, less), CodeBuilder::flags);
    Value times = arith::SIToFPOp::create(b, power.getType(), arith::IndexCastOp::create(b, b.getI32Type(), count));
    Value powers = b.select(isAny, b.mulF(times, power), b.floatingLike(power, 0));
    sum = b.addF(rescaledSum(b, sum, before, less), powers);
  }

  /// Of a key that the mask hides from all rows of the block.
  Value maskedLogit(int64_t row, Value key) {
    return plan.masksLogits ? hiddenLogit() : callAt(logitFunction, *plan.logits, row, key, noScores().front());
  }

  /// What stands for scores that nothing is made of.
  Scores noScores() { return Scores(size_t(rowsOfThread * neighbours()), values.stored(values.zero())); }

  /// Of a row, with a piece's logits.
  Values joinPiece(ArrayRef<Value> logits, Value maximum, Value sum) {
    ReductionCode &ofMaximum = reductions[0], &ofSum = reductions[1];
    Value before = maximum, largest = logits.front();
    for (Value logit : logits.drop_front())
      largest = ofMaximum.combine(largest, logit).front();
    maximum = ofMaximum.combine(maximum, scaledLogit(largest)).front();
    Value less = exponentBase(b, maximum);
    sum = rescaledSum(b, sum, before, less);
    for (Value logit : logits)
      sum = ofSum.combine(sum, roughPower(b, b.subF(scaledLogit(logit), less))).front();
    return {maximum, sum};
  }

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
        value = plan.isOnline ? roughPower(b, exponent) : power(exponent);
        sum = ofSum.combine(sum, value);
      });
      sum = ofSum.shuffle(sum, lanesOfRow / 2, /*toAll=*/true);
      llvm::append_range(results[size_t(row)], ofMaximum.results(maximum));
      llvm::append_range(results[size_t(row)], ofSum.results(sum));
    }
  }

  Value power(Value exponent) {
    const PowerInFactors power = powerOf(b, exponent);
    return b.fma(power.power, power.rest, power.power);
  }

  // --- the second dot

  SmallVector<Value> multiplyWeights() {
    for (int64_t row = 0; plan.isSoftmax && row < rowsOfThread; ++row)
      shares.push_back(nearReciprocal(b, results[size_t(row)].back()));
    Values sums(size_t(rowsOfThread * plan.product.tile.threadColumns), values.zero());
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
      const SmallVector<WeightFragments> weights = weightsOf(piece, scores);
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
    const Values sums(size_t(rowsOfThread * plan.product.tile.threadColumns), values.zero());
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
    RunningRows running(kernel, reductions[0], reductions[1], rowsOfThread, lanesOfRow);
    running.begin();
    Values sums(size_t(rowsOfThread * plan.product.tile.threadColumns), values.zero()), state(sums);
    const size_t count = sums.size(), ofRows = running.numCarried();
    llvm::append_range(state, running.carried());
    llvm::append_range(state, onItsWay);
    state = loopPieces(state, firstPiece, endPiece, [&](Value piece, ValueRange before) {
      Value ofKeys = stageOf(0), ofTerms = stageOf(1);
      Values loaded(before.drop_front(count + ofRows)), next(before.take_front(count));
      running.setCarried(before.slice(count, ofRows));
      arrive(dots.front().keys, loaded, ofKeys);
      Values loadedTerms = begin(terms, piece, ofTerms);
      Scores powers = powersOf(running, logitsOf(piece, multiplyScores(ofKeys)), next);
      const SmallVector<WeightFragments> weights = weightsOf(piece, powers);
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
    for (size_t row = 0; row < rowsOfThread; ++row) {
      results[row] = running.results(row);
      shares.push_back(running.share(row));
    }
    return sums;
  }

  /// Of a piece's logits the exponentials, with which rows, and their sums of products, are scaled before.
  Scores powersOf(RunningRows &running, const Scores &logits, Values &products) {
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      ArrayRef<Value> own = ArrayRef(logits).slice(size_t(row * neighbours()), size_t(neighbours()));
      Value greatest = own.front();
      for (Value logit : own.drop_front())
        greatest = reductions[0].combine(greatest, logit).front();
      running.meet(size_t(row), scaledLogit(greatest));
    }
    running.outgrow(products);
    Scores powers;
    for (auto [number, logit] : llvm::enumerate(logits))
      powers.push_back(running.take(number / size_t(neighbours()), scaledLogit(logit)));
    return powers;
  }

  /// With the pieces that a mask has left out, if they have any weight: only in rows that have hardly anything else.
  SmallVector<Value> multiplyHidden(RunningRows &running, Values sums) {
    Value isThere;
    for (size_t row = 0; row < rowsOfThread; ++row) {
      const LeftKeys left = leftKeys();
      hiddenPowers.push_back(
          running.takeAlike(row, maskedLogit(int64_t(row), left.first), left.count, left.isAny, sums));
      Value isSeen = b.cmpF(CodeBuilder::FPred::OGT, hiddenPowers.back(), 0.0);
      isThere = isThere ? b.orI(isThere, isSeen) : isSeen;
    }
    Value pieces = b.select(running.anyOfBlock(isThere, plan.scores.tile.warpRows), leftPieces(), b.index(0));
    return multiplyMasked(sums, known(pieces, plan.pieces() + 1));
  }

  /// By the sums of their rows.
  void divide(SmallVector<Value> &sums) {
    const size_t ofRow = sums.size() / rowsOfThread;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      const size_t row = number / ofRow;
      sum = plan.isOnline ? b.mulF(sum, shares[row]) : b.divF(sum, results[row][plan.divisor]);
    }
  }

  /// All weights are made before the first is multiplied: two of them take a register.
  Values multiplyHeld(Values sums) {
    std::vector<SmallVector<WeightFragments>> weights;
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

  /// The products of the pieces that were left out, whose weights are those of their first key.
  SmallVector<Value> multiplyMasked(const Values &sums, Value left) {
    Value skipped = b.subI(endPiece, firstPiece);
    auto pieceOf = [&](Value turn) {
      Value isBefore = b.cmpI(CodeBuilder::IPred::slt, turn, firstPiece);
      return clampedPiece(b.select(isBefore, turn, b.addI(turn, skipped)));
    };
    tiles = synchronized(tiles);
    onItsWay = begin(terms, pieceOf(b.index(0)), stageOf(0));
    return loopTiles(terms, sums, b.index(0), left, pieceOf, [&](Value piece, Value stage, const Values &before) {
      Value key = clamped(number() * plan.piece(), plan.keys(), piece);
      SmallVector<Value> ofRows;
      SmallVector<WeightFragments> weights;
      for (int64_t row = 0; row < rowsOfThread; ++row)
        ofRows.push_back(plan.isOnline    ? asWeight(hiddenPowers[size_t(row)], ElementType::F32)
                         : plan.isSoftmax ? softmaxWeight(maskedLogit(row, key), row)
                                          : weightAt(noScores(), row, 0, key));
      for (int64_t first = 0; first < neighbours(); first += neighboursOfFragment)
        weights.push_back(weightFragments(
            b, plan, [&](int64_t row, int64_t i) { return whereKey(ofRows[size_t(row)], first + i, piece); }));
      return multiplyTerms(before, stage, weights);
    });
  }

  /// The fragments of a piece's keys, 16 each. Of an online softmax, `scores` are exponentials.
  SmallVector<WeightFragments> weightsOf(Value piece, const Scores &scores) {
    const Scores &logits = plan.isSoftmax && !plan.isOnline && !plan.holdsScores ? logitsOf(piece, scores) : scores;
    SmallVector<WeightFragments> weights;
    for (int64_t number = 0; number < neighbours() / neighboursOfFragment; ++number)
      weights.push_back(weightsOf(piece, logits, number));
    return weights;
  }

  /// Of 16 keys. `scores`: of a softmax its logits, or exponentials.
  WeightFragments weightsOf(Value piece, const Scores &scores, int64_t number) {
    return weightFragments(b, plan, [&](int64_t row, int64_t i) {
      const int64_t neighbour = number * neighboursOfFragment + i;
      if (!plan.isSoftmax)
        return whereKey(weightAt(scores, row, neighbour, keyAt(neighbour, piece)), neighbour, piece);
      Value logit = scores[size_t(row * neighbours() + neighbour)];
      if (plan.isOnline)
        return asWeight(logit, ElementType::F32);
      return plan.holdsScores ? asWeight(b.mulF(logit, shares[size_t(row)]), ElementType::F32)
                              : softmaxWeight(logit, row);
    });
  }

  /// (1 + rest) / sum; the share, the multiply-add and the product are rounded, within what a quotient may be off.
  Value softmaxWeight(Value logit, int64_t row) {
    Value maximum = results[size_t(row)].front(), share = shares[size_t(row)];
    const PowerInFactors power = powerOf(b, b.subF(scaledLogit(logit), maximum));
    return asWeight(b.mulF(power.power, b.fma(power.rest, share, share)), ElementType::F32);
  }

  Value weightAt(const Scores &scores, int64_t row, int64_t neighbour, Value key) {
    const HloInstruction &weights = plan.weights();
    return asWeight(callAt(weightFunction, weights, row, key, argumentsOf(scores, row, neighbour)),
                    weights.shape().elementType());
  }

  Value asWeight(Value weight, ElementType type) { return hloc::asWeight(b, plan, weight, type); }

  Values multiplyTerms(const Values &sums, Value stage, llvm::function_ref<WeightFragments(int64_t number)> weights) {
    return hloc::multiplyTerms(plan, kernel, {tiles, stage, dots.front().factorType()}, sums, weights);
  }
  Values multiplyTerms(const Values &sums, Value stage, const SmallVector<WeightFragments> &weights) {
    return multiplyTerms(sums, stage, [&](int64_t number) { return weights[size_t(number)]; });
  }

  /// 0 beyond the last key.
  Value whereKey(Value weight, int64_t neighbour, Value piece) {
    Value exists = isKey(neighbour, piece);
    return exists ? b.select(exists, weight, arith::ConstantOp::create(b, b.getZeroAttr(weight.getType()))) : weight;
  }

  // --- outputs with one element a row

  void storeResults() {
    if (plan.resultRoots.empty())
      return;
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      IndexingMap exists = kernel.mapOf({}, {});
      exists.addConstraint(kernel.lane() % lanesOfRow, Interval{0, 0});
      exists.addConstraint(rowOf(row), Interval{0, plan.scores.rows.size - 1});
      exists.simplify();
      Values before;
      for (unsigned number : plan.resultRoots)
        before.push_back(kernel.outputs()[number]);
      Values stored = kernel.loop(exists, before, [&](ValueRange, ValueRange, ValueRange carried) {
        Values at = {batch, rows[size_t(row)]}, next;
        ValueRange made = kernel.call(resultFunction, at, results[size_t(row)]);
        for (auto [value, output, number] : llvm::zip_equal(made, carried, plan.resultRoots))
          next.push_back(tensor::InsertOp::create(b, value, output, applyMap(b, mapOfResult(number), at)));
        return next;
      });
      for (auto [number, output] : llvm::zip_equal(plan.resultRoots, stored))
        kernel.outputs()[number] = output;
    }
  }

  ContractionValues values;       ///< of scores
  std::vector<ScoreProduct> dots; ///< the scores', and the one beside
  OperandTile terms;              ///< unless they are keys
  OutputTile outputs;
  std::vector<ReductionCode> reductions;
  func::FuncOp weightFunction, resultFunction, logitFunction, maskFunction;
  SmallVector<Value> rows;                  ///< of a thread
  Values onItsWay;                          ///< `begin` of the next tile
  bool firstHasArrived = false;             ///< of the first piece of keys, what each thread itself copied
  std::vector<Scores> held;                 ///< by piece; of a softmax logits, then exponentials
  std::array<Values, rowsOfThread> results; ///< of complete stages, by row
  Values shares;                            ///< of a softmax, one over a row's sum
  Values hiddenPowers;                      ///< of an online one, by row, of keys that were left out
};

} // namespace

llvm::LogicalResult emitHero(const AttentionPlan &plan, KernelBuilder &kernel) {
  return AttentionEmitter(plan, kernel).emit();
}

} // namespace hloc
