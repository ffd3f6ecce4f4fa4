// One idea: a thread has, of each piece of keys, the scores of two rows that lie in its registers as tensor cores leave
// them: neighbours of the four lanes that share a row, eight keys after eight. All that is made of a score is made
// there, by the functions of the fusion at the score's place, with the score and what its row came to as arguments;
// what comes of it are factors of the second dot in the order in which tensor cores take them.
//
// Keys, rows and terms beyond the edges are zeros in shared memory. Their scores are made at the last place that there
// is, so that nothing is read beyond it, and are left out where they would count.

#include "emitters/heroes/AttentionScores.h"

#include "emitters/heroes/PastedCalls.h"
#include "emitters/heroes/SoftmaxArithmetic.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

AttentionScores::AttentionScores(const AttentionPlan &plan, KernelBuilder &kernel)
    : AttentionPlaces(plan, kernel), b(kernel.code()), values(b, plan.scores),
      terms(plan.product, plan.product.columns, kernel, place(none(), number(), plan.pieces())),
      outputs(plan.product, kernel, place(none(), none()), plan.finished) {
  auto add = [&](const ContractionPlan &dot) {
    dots.emplace_back(dot, plan, kernel, place(none(), none()), place(number(), none(), plan.pieces()));
  };
  add(plan.scores);
  if (plan.beside)
    add(*plan.beside);
}

void AttentionScores::findRows() {
  batch = valueOf(place(none(), none()).batch);
  for (int64_t i = 0; i < rowsOfThread; ++i)
    rows.push_back(clamped(rowOf(i), plan.scores.rows.size, {}));
}

llvm::LogicalResult AttentionScores::succeeded() const {
  return success(llvm::all_of(reductions, [](const ReductionCode &code) { return llvm::succeeded(code.succeeded()); }));
}

// --- functions

llvm::LogicalResult AttentionScores::emitFunctions() {
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

FunctionRequest AttentionScores::requestOf(const HloInstruction &value, ArrayRef<InjectedValue> known) const {
  FunctionRequest request;
  request.indexSizes.assign(value.shape().dims().begin(), value.shape().dims().end());
  request.roots.push_back({&value, 0, IndexingMap::identity(context, value.shape().dims())});
  request.injected.assign(known.begin(), known.end());
  return request;
}

/// The outputs with one element a row, by batch and row.
FunctionRequest AttentionScores::requestOfResults(ArrayRef<InjectedValue> known) const {
  FunctionRequest request;
  request.indexSizes = {plan.scores.batchSize, plan.scores.rows.size};
  for (unsigned number : plan.resultRoots)
    request.roots.push_back({root(number).instr, root(number).result, mapOfResult(number)});
  request.injected.assign(known.begin(), known.end());
  return request;
}

IndexingMap AttentionScores::mapOfResult(unsigned number) const {
  return places.ofThreadsRow(followed.at(*root(number).instr)->map);
}

/// What is known of a score's row: the results of the stages that are complete, after the score itself.
AttentionScores::Values AttentionScores::argumentsOf(const Scores &scores, int64_t row, int64_t neighbour) {
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
AttentionScores::Values AttentionScores::elementOf(ReductionCode &code, Values arguments, int64_t row, Value key) {
  code.setResults(arguments);
  Values noOutputs;
  const ReductionFrame &frame = plan.stages[size_t(&code - reductions.data())];
  const HloInstruction &reduced = reducedScores(followed, *frame.heroes.front().instr);
  return code.elementAt(indicesOf(reduced, rows[size_t(row)], key), noOutputs);
}

/// What `function` makes of the array `value` at a thread's score.
Value AttentionScores::callAt(func::FuncOp function, const HloInstruction &value, int64_t row, Value key,
                              ValueRange arguments) {
  const size_t rank = value.shape().rank();
  const Values indices = readsIndices(kernel, function, int64_t(rank)) ? indicesOf(value, rows[size_t(row)], key)
                                                                       : Values(rank, b.index(0));
  return pastedCall(kernel, function, indices, arguments);
}

/// What a softmax is of, but for the `scale`. What is hidden, or beyond the last key, is asked for at edges alone.
AttentionScores::Scores AttentionScores::logitsOf(Value piece, const Scores &scores) {
  Scores logits = plan.scale > 0 ? scores : shownLogitsOf(piece, scores);
  Value edge = isAtEdge(piece);
  if (!edge)
    return logits;
  return ifHolds(b, edge, logits, [&] { return hidden(piece, logits); });
}

Value AttentionScores::scaledLogit(Value logit) { return plan.scale > 0 ? b.mulF(logit, plan.scale) : logit; }

AttentionScores::Scores AttentionScores::shownLogitsOf(Value piece, const Scores &scores) {
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
AttentionScores::Scores AttentionScores::hidden(Value piece, Scores logits) {
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
Value AttentionScores::isShown(int64_t row, Value key) {
  Value predicate = fromStorage(b, callAt(maskFunction, *plan.mask, row, key, {}), ElementType::Pred);
  return plan.isKept ? predicate : b.notI(predicate);
}

Value AttentionScores::hiddenLogit() { return b.floating(b.getF32Type(), plan.hiddenLogit()); }

Value AttentionScores::keyAt(int64_t neighbour, Value piece) { return clamped(keyOf(neighbour), plan.keys(), piece); }

// --- stages of reductions

/// Goes through the pieces for a stage, or for two; returns the number of the next.
size_t AttentionScores::reduce(size_t stage, ForEachPiece forEachPiece) {
  if (stagesOfPass(stage) == 2) {
    reduceJoined(forEachPiece);
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
void AttentionScores::reduceJoined(ForEachPiece forEachPiece) {
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
void AttentionScores::addMasked(int64_t row, Value &maximum, Value &sum) {
  const auto [isAny, count, key] = leftKeys();
  Value before = maximum, masked = maskedLogit(row, key);
  maximum = b.select(isAny, reductions[0].combine(maximum, masked).front(), maximum);
  Value less = exponentBase(b, maximum), power = math::ExpOp::create(b, b.subF(masked, less), CodeBuilder::flags);
  Value times = arith::SIToFPOp::create(b, power.getType(), arith::IndexCastOp::create(b, b.getI32Type(), count));
  Value powers = b.select(isAny, b.mulF(times, power), b.floatingLike(power, 0));
  sum = b.addF(rescaledSum(b, sum, before, less), powers);
}

/// Of a key that the mask hides from all rows of the block.
Value AttentionScores::maskedLogit(int64_t row, Value key) {
  return plan.masksLogits ? hiddenLogit() : callAt(logitFunction, *plan.logits, row, key, noScores().front());
}

AttentionScores::Values AttentionScores::noSums() {
  return Values(size_t(rowsOfThread * plan.product.tile.threadColumns), values.zero());
}

/// What stands for scores that nothing is made of.
AttentionScores::Scores AttentionScores::noScores() {
  return Scores(size_t(rowsOfThread * neighbours()), values.stored(values.zero()));
}

/// Of a row, with a piece's logits.
AttentionScores::Values AttentionScores::joinPiece(ArrayRef<Value> logits, Value maximum, Value sum) {
  ReductionCode &ofMaximum = reductions[0], &ofSum = reductions[1];
  Value before = maximum, largest = logits.front();
  for (Value logit : logits.drop_front())
    largest = ofMaximum.combine(largest, logit).front();
  maximum = ofMaximum.combine(maximum, scaledLogit(largest)).front();
  Value less = exponentBase(b, maximum);
  std::vector<Values> powers;
  for (Value logit : logits) {
    Value exponent = b.subF(scaledLogit(logit), less);
    // A sum that is an output shows more of its terms than quotients by it do.
    powers.push_back({plan.resultRoots.empty() ? roughPower(b, exponent) : exactPower(b, exponent, /*flushes=*/true)});
  }
  // Not one after the other: of many alike, such as a mask leaves, each would be rounded the same way.
  return {maximum, ofSum.combine(rescaledSum(b, sum, before, less), ofSum.combineAll(powers)).front()};
}

// --- weights

void AttentionScores::findShares() {
  for (int64_t row = 0; plan.isSoftmax && row < rowsOfThread; ++row)
    shares.push_back(nearReciprocal(b, results[size_t(row)].back()));
}

AttentionScores::Weights AttentionScores::weightsOf(Value piece, const Scores &scores) {
  const Scores &own = hasLogits() ? logitsOf(piece, scores) : scores;
  Weights weights;
  for (int64_t number = 0; number < neighbours() / neighboursOfFragment; ++number)
    weights.push_back(weightsOf(piece, own, number));
  return weights;
}

WeightFragments AttentionScores::weightsOf(Value piece, const Scores &scores, int64_t number) {
  return weightsAt(number, [&](int64_t row, int64_t neighbour) {
    return ofKey(asWeight(weightOf(piece, scores, row, neighbour)), neighbour, piece);
  });
}

AttentionScores::Scores AttentionScores::weighed(Value piece, const Scores &scores) {
  const Scores &own = hasLogits() ? logitsOf(piece, scores) : scores;
  Scores weights;
  for (int64_t row = 0; row < rowsOfThread; ++row)
    for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour)
      weights.push_back(weightOf(piece, own, row, neighbour));
  return weights;
}

AttentionScores::Weights AttentionScores::rounded(Value piece, const Scores &weighed) {
  Weights weights;
  for (int64_t number = 0; number < neighbours() / neighboursOfFragment; ++number)
    weights.push_back(weightsAt(number, [&](int64_t row, int64_t neighbour) {
      return ofKey(asWeight(weighed[size_t(row * neighbours() + neighbour)]), neighbour, piece);
    }));
  return weights;
}

/// Of 16 keys, by their places among the piece's.
WeightFragments AttentionScores::weightsAt(int64_t number,
                                           llvm::function_ref<Value(int64_t row, int64_t neighbour)> weight) {
  return weightFragments(b, plan,
                         [&](int64_t row, int64_t i) { return weight(row, number * neighboursOfFragment + i); });
}

/// Are weights made of logits, which scores become first?
bool AttentionScores::hasLogits() const { return plan.isSoftmax && !plan.isOnline && !plan.holdsScores; }

/// Of a softmax, in f32; otherwise of the type that weights have.
Value AttentionScores::weightOf(Value piece, const Scores &scores, int64_t row, int64_t neighbour) {
  if (!plan.isSoftmax)
    return weightAt(scores, row, neighbour, keyAt(neighbour, piece));
  Value logit = scores[size_t(row * neighbours() + neighbour)];
  if (plan.isOnline)
    return logit;
  return plan.holdsScores ? b.mulF(logit, shares[size_t(row)]) : softmaxWeight(logit, row);
}

/// (1 + rest) / sum; the share, the multiply-add and the product are rounded, within what a quotient may be off.
Value AttentionScores::softmaxWeight(Value logit, int64_t row) {
  Value maximum = results[size_t(row)].front(), share = shares[size_t(row)];
  const PowerInFactors power = powerOf(b, b.subF(scaledLogit(logit), maximum));
  return b.mulF(power.power, b.fma(power.rest, share, share));
}

Value AttentionScores::weightAt(const Scores &scores, int64_t row, int64_t neighbour, Value key) {
  return callAt(weightFunction, plan.weights(), row, key, argumentsOf(scores, row, neighbour));
}

/// Of what `weightOf` gives.
Value AttentionScores::asWeight(Value weight) {
  return hloc::asWeight(b, plan, weight, plan.isSoftmax ? ElementType::F32 : plan.weights().shape().elementType());
}

/// (Of a softmax, logits beyond the last key are minus infinity.)
Value AttentionScores::ofKey(Value weight, int64_t neighbour, Value piece) {
  return plan.isSoftmax ? weight : whereKey(weight, neighbour, piece);
}

/// 0 beyond the last key.
Value AttentionScores::whereKey(Value weight, int64_t neighbour, Value piece) {
  Value exists = isKey(neighbour, piece);
  return exists ? b.select(exists, weight, arith::ConstantOp::create(b, b.getZeroAttr(weight.getType()))) : weight;
}

// --- an online softmax

void AttentionScores::meet(RunningRows &running, const Scores &logits) {
  for (int64_t row = 0; row < rowsOfThread; ++row) {
    ArrayRef<Value> own = ArrayRef(logits).slice(size_t(row * neighbours()), size_t(neighbours()));
    Value greatest = own.front();
    for (Value logit : own.drop_front())
      greatest = reductions[0].combine(greatest, logit).front();
    running.meet(size_t(row), scaledLogit(greatest));
  }
}

Value AttentionScores::meetHidden(RunningRows &running, Values &sums) {
  Value isThere;
  for (size_t row = 0; row < rowsOfThread; ++row) {
    const LeftKeys left = leftKeys();
    hiddenPowers.push_back(running.takeAlike(row, maskedLogit(int64_t(row), left.first), left.count, left.isAny, sums));
    Value isSeen = b.cmpF(CodeBuilder::FPred::OGT, hiddenPowers.back(), 0.0);
    isThere = isThere ? b.orI(isThere, isSeen) : isSeen;
  }
  return isThere;
}

void AttentionScores::finish(RunningRows &running) {
  for (size_t row = 0; row < rowsOfThread; ++row) {
    results[row] = running.results(row);
    shares.push_back(running.share(row));
  }
}

// --- what a mask has left out

Value AttentionScores::pieceLeftOut(Value turn) {
  Value isBefore = b.cmpI(CodeBuilder::IPred::slt, turn, firstPiece);
  return clampedPiece(b.select(isBefore, turn, b.addI(turn, b.subI(endPiece, firstPiece))));
}

AttentionScores::Weights AttentionScores::weightsOfHidden(Value piece) {
  Value key = clamped(number() * plan.piece(), plan.keys(), piece);
  Values ofRows;
  Weights weights;
  for (int64_t row = 0; row < rowsOfThread; ++row)
    ofRows.push_back(asWeight(plan.isOnline    ? hiddenPowers[size_t(row)]
                              : plan.isSoftmax ? softmaxWeight(maskedLogit(row, key), row)
                                               : weightAt(noScores(), row, 0, key)));
  for (int64_t number = 0; number < neighbours() / neighboursOfFragment; ++number)
    weights.push_back(weightsAt(
        number, [&](int64_t row, int64_t neighbour) { return whereKey(ofRows[size_t(row)], neighbour, piece); }));
  return weights;
}

// --- outputs

/// By the sums of their rows.
void AttentionScores::divide(SmallVector<Value> &sums) {
  const size_t ofRow = sums.size() / rowsOfThread;
  for (auto [number, sum] : llvm::enumerate(sums)) {
    const size_t row = number / ofRow;
    sum = plan.isOnline ? b.mulF(sum, shares[row]) : b.divF(sum, results[row][plan.divisor]);
  }
}

void AttentionScores::storeResults() {
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

} // namespace hloc
