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

#include "emitters/heroes/FragmentTiles.h"
#include "emitters/heroes/OperandTile.h"
#include "emitters/heroes/OutputTile.h"
#include "emitters/heroes/ReductionCode.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/indexing/ShapeMaps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <optional>

using namespace mlir;

namespace hloc {
namespace {

class AttentionEmitter {
public:
  AttentionEmitter(const AttentionPlan &plan, KernelBuilder &kernel)
      : plan(plan), kernel(kernel), b(kernel.code()), context(kernel.context()), values(b, plan.scores),
        queries(plan.scores, plan.scores.rows, kernel, place(none(), none())),
        keys(plan.scores, plan.scores.columns, kernel, place(number(), none(), plan.pieces())),
        terms(plan.product, plan.product.columns, kernel, place(none(), number(), plan.pieces())),
        outputs(plan.product, kernel, place(none(), none())), scoreTiles(plan.scores, kernel, queries.factorType()),
        productTiles(plan.product, kernel, queries.factorType()) {}

  llvm::LogicalResult emit() {
    if (failed(emitFunctions()))
      return failure();
    batch = valueOf(place(none(), none()).batch);
    for (int64_t i = 0; i < rowsOfThread; ++i)
      rows.push_back(clamped(rowOf(i), plan.scores.rows.size, {}));
    findPieces();
    loadQueries();
    pieceTile =
        xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({plan.pieceElements()}, queries.factorType()));
    if (plan.holdsScores)
      holdScores();
    for (size_t stage = 0; stage < stages.size();)
      stage = reduce(stage);
    SmallVector<Value> sums = multiplyWeights();
    outputs.store(sums, plan.storesInRowTile() ? queryTile : Value());
    storeResults();
    return success(llvm::all_of(stages, [](const ReductionCode &code) { return succeeded(code.succeeded()); }));
  }

private:
  using Values = ReductionCode::Values;
  static constexpr int64_t rowsOfThread = 2, lanesOfRow = 4;
  /// A thread's scores of one piece, by row and then by the two neighbours of each eight keys.
  using Scores = SmallVector<Value>;

  // --- places

  AffineExpr none() const { return getAffineConstantExpr(0, context); }
  /// Of a piece.
  AffineExpr number() const { return getAffineDimExpr(kernel.idVariables().size(), context); }
  TilePlace place(AffineExpr column, AffineExpr step, int64_t numbers = 1) const {
    AffineExpr block = kernel.block();
    return {block.floorDiv(plan.rowTiles()), block % plan.rowTiles(), column, step, numbers};
  }
  /// Of a thread's row, in its batch.
  AffineExpr rowOf(int64_t row) const {
    return place(none(), none()).row * plan.scores.tile.rows() + kernel.warp() * AttentionPlan::rowsOfWarp +
           kernel.lane().floorDiv(lanesOfRow) + row * (AttentionPlan::rowsOfWarp / rowsOfThread);
  }
  AffineExpr keyOf(int64_t neighbour) const {
    return number() * plan.piece() + kernel.lane() % lanesOfRow * 2 + neighbour / 2 * ContractionTile::fragmentColumns +
           neighbour % 2;
  }
  int64_t neighbours() const { return plan.scores.tile.threadColumns; }

  Value valueOf(AffineExpr expression) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return applyMap(b, map, kernel.ids()).front();
  }

  /// The value of an expression of the launch space and a piece, if there is one; the last place of those beyond it.
  Value clamped(AffineExpr expression, int64_t size, Value piece) {
    IndexingMap map = mapOfPiece(expression);
    const bool mayBeBeyond = map.range(expression).upper >= size;
    map.simplify();
    SmallVector<Value> operands(kernel.ids());
    operands.push_back(piece ? piece : b.index(0));
    Value value = applyMap(b, map, operands).front();
    if (!mayBeBeyond)
      return value;
    return known(b.minS(value, b.index(size - 1)), size);
  }

  /// A value that is known to be less than `size`.
  Value known(Value value, int64_t size) {
    value.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(context, Interval{0, size - 1}));
    return value;
  }

  /// The pieces of which scores are multiplied: from `firstPiece` on, before `endPiece`.
  void findPieces() {
    if (!plan.skipsPieces)
      return;
    /// Of the piece that has a key of the block's tile of rows, plus `more`.
    auto pieceOf = [&](AffineExpr key, int64_t more) {
      AffineExpr tile = place(none(), none()).row;
      Value piece = valueOf(key.replaceDims({tile}).floorDiv(plan.piece()) + more);
      return known(b.minS(b.maxS(piece, b.index(0)), b.index(plan.pieces())), plan.pieces() + 1);
    };
    const KeptKeys kept = plan.keysOfRows(context).ofTile(plan.scores.tile.rows());
    firstPiece = kept.first ? pieceOf(kept.first, 0) : b.index(0);
    endPiece = kept.last ? pieceOf(kept.last, 1) : b.index(plan.pieces());
    if (kept.first && kept.last)
      endPiece = known(b.maxS(endPiece, firstPiece), plan.pieces() + 1);
  }

  /// Is a thread's neighbour of a piece a key? Nothing: it always is.
  Value isKey(int64_t neighbour, Value piece) {
    if (plan.keys() % plan.piece() == 0)
      return {};
    IndexingMap map = mapOfPiece(keyOf(neighbour));
    map.simplify();
    SmallVector<Value> operands(kernel.ids());
    operands.push_back(piece);
    return b.cmpI(CodeBuilder::IPred::slt, applyMap(b, map, operands).front(), b.index(plan.keys()));
  }

  IndexingMap mapOfPiece(AffineExpr expression) const {
    SmallVector<IndexingVariable> dims(kernel.idVariables());
    dims.push_back({Interval{0, plan.pieces() - 1}, "piece"});
    return IndexingMap(AffineMap::get(unsigned(dims.size()), 0, {expression}, context), dims, {}, {});
  }

  /// Indices of an array whose memory has the scores' positions, or one element for each row of them.
  Values indicesOf(const Shape &shape, Value row, Value key) {
    const int64_t sizes[] = {plan.scores.batchSize, plan.scores.rows.size, key ? plan.keys() : 1};
    const int64_t rowMajor[] = {2, 1, 0};
    IndexingMap map = bitcastMap(sizes, rowMajor, shape.dims(), shape.minorToMajor(), context);
    map.simplify();
    return applyMap(b, map, {batch, row, key ? key : b.index(0)});
  }

  // --- functions

  llvm::LogicalResult emitFunctions() {
    std::vector<FunctionRequest> requests = {queries.request(), keys.request(), terms.request(), outputs.request()};
    SmallVector<InjectedValue> known = {plan.scores.hero};
    for (const ReductionFrame &frame : plan.stages) {
      ReductionCode &code = stages.emplace_back(frame, ReductionStage::Whole, kernel);
      code.readsResults(known);
      llvm::append_range(requests, code.requests());
      for (const Accumulator &accumulator : frame.accumulators)
        known.push_back({frame.heroes[accumulator.hero].instr, accumulator.result});
    }
    requests.push_back(requestOf({plan.weights()}, known));
    if (!plan.resultRoots.empty())
      requests.push_back(requestOfResults(ArrayRef(known).drop_front()));
    auto functions = kernel.emitFunctions(requests);
    if (failed(functions))
      return failure();
    ArrayRef<func::FuncOp> left = *functions;
    queries.setFunction(left.consume_front());
    keys.setFunction(left.consume_front());
    terms.setFunction(left.consume_front());
    outputs.setFunction(left.consume_front());
    for (ReductionCode &code : stages) {
      const size_t count = code.requests().size();
      code.setFunctions(left.take_front(count));
      left = left.drop_front(count);
    }
    weightFunction = left.consume_front();
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

  /// The outputs with one element a row, at the index of the first.
  FunctionRequest requestOfResults(ArrayRef<InjectedValue> known) const {
    FunctionRequest request;
    const Shape &space = root(plan.resultRoots.front()).shape;
    request.indexSizes.assign(space.dims().begin(), space.dims().end());
    for (unsigned number : plan.resultRoots)
      request.roots.push_back(
          {root(number).instr, root(number).result, bitcastIndexing(space, root(number).shape, context)});
    request.injected.assign(known.begin(), known.end());
    return request;
  }

  // --- sums of a thread's two rows, by row, two neighbours of each eight columns

  /// By eight columns.
  SmallVector<Value> productsOf(FragmentTiles &tiles, ArrayRef<Value> sums) {
    ArrayRef<Value> upper = sums.take_front(sums.size() / rowsOfThread), lower = sums.drop_front(upper.size());
    SmallVector<Value> products;
    for (size_t i = 0; i < upper.size(); i += 2)
      products.push_back(tiles.together({upper[i], upper[i + 1], lower[i], lower[i + 1]}));
    return products;
  }

  SmallVector<Value> sumsOf(FragmentTiles &tiles, ArrayRef<Value> products) {
    SmallVector<Value> upper, lower;
    for (Value product : products) {
      std::array<Value, 4> sums = tiles.oneByOne(product);
      upper.append({sums[0], sums[1]});
      lower.append({sums[2], sums[3]});
    }
    upper.append(lower);
    return upper;
  }

  // --- scores

  Value synchronized(Value tile) {
    return xla_gpu::SyncThreadsOp::create(b, TypeRange(tile), ValueRange(tile)).getResult(0);
  }

  void loadQueries() {
    queryTile = xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({plan.rowElements()}, queries.factorType()));
    queryTile = synchronized(queries.fill(queries.load(b.index(0)), queryTile));
    for (int64_t term = 0; plan.holdsRows() && term < plan.terms(); term += AttentionPlan::fragmentDepth)
      queryFragments.push_back(scoreTiles.loadRows(queryTile, 0, term));
  }

  /// Puts the loaded keys of a piece into shared memory, calls `meanwhile` and multiplies a thread's rows by them.
  Scores multiplyScores(ValueRange loaded, llvm::function_ref<void()> meanwhile) {
    pieceTile = synchronized(keys.fill(loaded, pieceTile));
    meanwhile();
    Scores scores(size_t(rowsOfThread * neighbours()), values.zero());
    SmallVector<Value> products = productsOf(scoreTiles, scores);
    for (int64_t term = 0; term < plan.terms(); term += AttentionPlan::fragmentDepth) {
      Value fragments = plan.holdsRows() ? queryFragments[size_t(term / AttentionPlan::fragmentDepth)]
                                         : scoreTiles.loadRows(queryTile, 0, term);
      for (int64_t pair = 0; pair < neighbours() / 4; ++pair)
        for (auto [half, columns] : llvm::enumerate(scoreTiles.loadColumns(pieceTile, pair, term))) {
          Value &sums = products[size_t(2 * pair) + half];
          sums = scoreTiles.addProducts(fragments, columns, sums);
        }
    }
    pieceTile = synchronized(pieceTile);
    scores = sumsOf(scoreTiles, products);
    for (Value &score : scores)
      score = values.stored(score);
    return scores;
  }

  void holdScores() {
    Values loaded = keys.load(b.index(0));
    for (int64_t piece = 0; piece < plan.pieces(); ++piece) {
      Values next;
      held.push_back(multiplyScores(loaded, [&] {
        if (piece + 1 < plan.pieces())
          next = keys.load(b.index(piece + 1));
      }));
      loaded = next;
    }
  }

  /// A piece in a pass through all of them.
  struct Piece {
    Value number;
    const Scores &scores;
    Values carried;
    Values terms; ///< loaded, of the second dot, if that was asked for
  };

  /// What `body` carries through all pieces. While a piece's scores are multiplied, what is needed next is on its way
  /// to registers.
  template <typename Body> Values forEachPiece(Values carried, bool needsTerms, Body body) {
    if (plan.holdsScores) {
      Values loaded = needsTerms ? terms.load(b.index(0)) : Values();
      for (int64_t piece = 0; piece < plan.pieces(); ++piece)
        carried = body(Piece{b.index(piece), held[size_t(piece)], carried, loaded}, [&] {
          if (needsTerms && piece + 1 < plan.pieces())
            loaded = terms.load(b.index(piece + 1));
        });
      return carried;
    }
    const size_t count = carried.size();
    llvm::append_range(carried, keys.load(firstPiece ? clampedPiece(firstPiece) : b.index(0)));
    return loopPieces(carried, count, firstPiece, endPiece, [&](Value piece, ValueRange before) {
      ValueRange loaded = before.drop_front(count);
      Values loadedTerms, following;
      auto loadNext = [&] { following = keys.loadFollowing(piece, loaded, endPiece); };
      Scores scores = multiplyScores(loaded, [&] {
        if (needsTerms)
          loadedTerms = terms.load(piece);
        else
          loadNext();
      });
      Values next = body(Piece{piece, scores, Values(before.take_front(count)), loadedTerms}, [&] {
        if (needsTerms)
          loadNext();
      });
      llvm::append_range(next, following);
      return next;
    });
  }

  Value clampedPiece(Value piece) { return known(b.minS(piece, b.index(plan.pieces() - 1)), plan.pieces()); }

  /// From `first` on and before `end`, or of all pieces if there are none; the first `count` of what is carried are
  /// returned. The pieces' memory is carried beside it.
  Values loopPieces(Values carried, size_t count, Value first, Value end,
                    llvm::function_ref<Values(Value piece, ValueRange before)> body) {
    carried.push_back(pieceTile);
    auto round = [&](Value piece, ValueRange before) {
      pieceTile = before.back();
      Values next = body(piece, before.drop_back());
      next.push_back(pieceTile);
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
    pieceTile = carried.back();
    carried.resize(count);
    return carried;
  }

  // --- rows

  /// What is known of a score's row: the results of the stages that are complete, after the score itself.
  Values argumentsOf(const Scores &scores, int64_t row, int64_t neighbour) const {
    Values arguments = {scores[size_t(row * neighbours() + neighbour)]};
    llvm::append_range(arguments, results[size_t(row)]);
    return arguments;
  }

  /// What stage `code` reduces, at a thread's score.
  Values elementOf(ReductionCode &code, Values arguments, int64_t row, Value key) {
    code.setResults(arguments);
    Values noOutputs;
    const ReductionFrame &frame = plan.stages[size_t(&code - stages.data())];
    return code.elementAt(indicesOf(frame.operandShape(), rows[size_t(row)], key), noOutputs);
  }

  Value keyAt(int64_t neighbour, Value piece) { return clamped(keyOf(neighbour), plan.keys(), piece); }

  /// Goes through the pieces for a stage, or for two; returns the number of the next.
  size_t reduce(size_t stage) {
    if (stage == 0 && plan.joinsFirstStages()) {
      reduceJoined();
      return 2;
    }
    ReductionCode &code = stages[stage];
    Values start;
    for (int64_t row = 0; row < rowsOfThread; ++row)
      llvm::append_range(start, code.start([] { return Values(); }));
    const size_t count = start.size() / rowsOfThread;
    Values reduced = forEachPiece(start, false, [&](Piece piece, auto) {
      Values carried = piece.carried;
      for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour) {
        Value key = keyAt(neighbour, piece.number), exists = isKey(neighbour, piece.number);
        for (int64_t row = 0; row < rowsOfThread; ++row) {
          MutableArrayRef<Value> own = MutableArrayRef(carried).slice(size_t(row) * count, count);
          Values element = elementOf(code, argumentsOf(piece.scores, row, neighbour), row, key);
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

  /// What exponents are less by: a maximum that is no number yet would make them none.
  Value subtrahend(Value maximum) {
    Value isLeast = b.cmpF(CodeBuilder::FPred::OEQ, maximum, b.infinity(maximum.getType(), /*negative=*/true));
    return b.select(isLeast, b.floatingLike(maximum, 0), maximum);
  }

  Value scaled(Value sum, Value maximum, Value newSubtrahend) {
    Value factor = math::ExpOp::create(b, b.subF(maximum, newSubtrahend), CodeBuilder::flags);
    return b.mulF(sum, factor);
  }

  /// Each thread has the maximum of its own scores so far, and the sum of exponentials less that; lanes that share a
  /// row meet at the end.
  void reduceJoined() {
    ReductionCode &ofMaximum = stages[0], &ofSum = stages[1];
    Values start;
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      llvm::append_range(start, ofMaximum.start([] { return Values(); }));
      llvm::append_range(start, ofSum.start([] { return Values(); }));
    }
    Values reduced = forEachPiece(start, false, [&](const Piece &piece, auto) {
      Values next;
      for (int64_t row = 0; row < rowsOfThread; ++row)
        llvm::append_range(next, joinPiece(piece.number, piece.scores, row, piece.carried[size_t(2 * row)],
                                           piece.carried[size_t(2 * row) + 1]));
      return next;
    });
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      Value own = reduced[size_t(2 * row)], sum = reduced[size_t(2 * row) + 1];
      Value maximum = ofMaximum.shuffle(own, lanesOfRow / 2, /*toAll=*/true).front();
      sum = ofSum.shuffle(scaled(sum, own, subtrahend(maximum)), lanesOfRow / 2, /*toAll=*/true).front();
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
    ReductionCode &ofMaximum = stages[0], &ofSum = stages[1];
    Value left = b.subI(b.index(plan.pieces()), b.subI(endPiece, firstPiece));
    Value isAny = b.cmpI(CodeBuilder::IPred::sgt, left, b.index(0));
    auto keysBefore = [&](Value piece) { return b.minS(b.mulI(piece, b.index(plan.piece())), b.index(plan.keys())); };
    Value count = b.subI(b.index(plan.keys()), b.subI(keysBefore(endPiece), keysBefore(firstPiece)));
    // Behind the last of the others, or the first of all.
    Value key = known(b.select(b.cmpI(CodeBuilder::IPred::slt, endPiece, b.index(plan.pieces())),
                               b.minS(keysBefore(endPiece), b.index(plan.keys() - 1)), b.index(0)),
                      plan.keys());
    Value before = maximum, noScore = noScores().front();
    Value masked = elementOf(ofMaximum, {noScore}, row, key).front();
    maximum = b.select(isAny, ofMaximum.combine(maximum, masked).front(), maximum);
    Value less = subtrahend(maximum);
    Values arguments = {noScore};
    llvm::append_range(arguments, ofMaximum.results(less));
    Value power = elementOf(ofSum, arguments, row, key).front();
    Value times = arith::SIToFPOp::create(b, power.getType(), arith::IndexCastOp::create(b, b.getI32Type(), count));
    Value powers = b.select(isAny, b.mulF(times, power), b.floatingLike(power, 0));
    sum = b.addF(scaled(sum, before, less), powers);
  }

  /// What stands for scores that nothing is made of.
  Scores noScores() { return Scores(size_t(rowsOfThread * neighbours()), values.stored(values.zero())); }

  Values joinPiece(Value piece, const Scores &scores, int64_t row, Value maximum, Value sum) {
    ReductionCode &ofMaximum = stages[0], &ofSum = stages[1];
    Value before = maximum;
    SmallVector<Value> keyOfNeighbour, exists;
    for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour) {
      keyOfNeighbour.push_back(keyAt(neighbour, piece));
      exists.push_back(isKey(neighbour, piece));
      Values element = elementOf(ofMaximum, argumentsOf(scores, row, neighbour), row, keyOfNeighbour.back());
      maximum = ofMaximum.combine(maximum, exists.back() ? ofMaximum.where(exists.back(), element) : element).front();
    }
    Value less = subtrahend(maximum);
    sum = scaled(sum, before, less);
    for (int64_t neighbour = 0; neighbour < neighbours(); ++neighbour) {
      Values arguments = argumentsOf(scores, row, neighbour);
      llvm::append_range(arguments, ofMaximum.results(less));
      Values element = elementOf(ofSum, arguments, row, keyOfNeighbour[size_t(neighbour)]);
      sum = ofSum.combine(sum, exists[size_t(neighbour)] ? ofSum.where(exists[size_t(neighbour)], element) : element)
                .front();
    }
    return {maximum, sum};
  }

  // --- the second dot

  SmallVector<Value> multiplyWeights() {
    Values start(size_t(rowsOfThread * plan.product.tile.threadColumns), values.zero());
    Values sums = forEachPiece(start, true, [&](Piece piece, auto loadNext) {
      pieceTile = synchronized(terms.fill(piece.terms, pieceTile));
      loadNext();
      return multiplyTerms(piece.carried, [&](int64_t first) { return weightsOf(piece.number, piece.scores, first); });
    });
    return plan.skipsPieces ? multiplyMasked(sums) : sums;
  }

  /// Adds the products of a piece's terms, which are in shared memory. `weights`: the fragment of the 16 keys from a
  /// thread's neighbour of that number on.
  Values multiplyTerms(const Values &sums, llvm::function_ref<Value(int64_t first)> weights) {
    SmallVector<Value> products = productsOf(productTiles, sums);
    for (int64_t term = 0; term < plan.piece(); term += AttentionPlan::fragmentDepth) {
      Value rows = weights(term / ContractionTile::fragmentColumns * 2);
      for (int64_t pair = 0; pair < plan.columns() / (2 * ContractionTile::fragmentColumns); ++pair)
        for (auto [half, fragments] : llvm::enumerate(productTiles.loadColumns(pieceTile, pair, term))) {
          Value &ofColumns = products[size_t(2 * pair) + half];
          ofColumns = productTiles.addProducts(rows, fragments, ofColumns);
        }
    }
    pieceTile = synchronized(pieceTile);
    return sumsOf(productTiles, products);
  }

  /// The products of the pieces that were left out, whose weights are those of their first key.
  Values multiplyMasked(const Values &sums) {
    Value skipped = b.subI(endPiece, firstPiece), left = b.subI(b.index(plan.pieces()), skipped);
    return loopPieces(sums, sums.size(), b.index(0), left, [&](Value turn, ValueRange before) {
      Value isBefore = b.cmpI(CodeBuilder::IPred::slt, turn, firstPiece);
      Value piece = clampedPiece(b.select(isBefore, turn, b.addI(turn, skipped)));
      pieceTile = synchronized(terms.fill(terms.load(piece), pieceTile));
      Value key = clamped(number() * plan.piece(), plan.keys(), piece);
      SmallVector<Value> weights;
      for (int64_t row = 0; row < rowsOfThread; ++row)
        weights.push_back(weightAt(noScores(), row, 0, key));
      return multiplyTerms(Values(before), [&](int64_t first) {
        return fragmentOf(
            [&](int64_t row, int64_t neighbour) { return whereKey(weights[size_t(row)], first + neighbour, piece); });
      });
    });
  }

  /// A thread's factors of a fragment of 16 rows and 16 keys: of each eight keys both rows.
  Value fragmentOf(llvm::function_ref<Value(int64_t row, int64_t neighbour)> weight) {
    Values factors;
    for (int64_t eight = 0; eight < 2; ++eight)
      for (int64_t row = 0; row < rowsOfThread; ++row)
        for (int64_t i = 0; i < 2; ++i)
          factors.push_back(weight(row, 2 * eight + i));
    Value all = vector::FromElementsOp::create(b, VectorType::get({int64_t(factors.size())}, factors.front().getType()),
                                               factors);
    return vector::BitCastOp::create(b, VectorType::get({int64_t(factors.size()) / 2}, b.getI32Type()), all);
  }

  Value weightsOf(Value piece, const Scores &scores, int64_t first) {
    return fragmentOf([&](int64_t row, int64_t i) {
      return whereKey(weightAt(scores, row, first + i, keyAt(first + i, piece)), first + i, piece);
    });
  }

  Value weightAt(const Scores &scores, int64_t row, int64_t neighbour, Value key) {
    const HloInstruction &weights = plan.weights();
    Values indices = indicesOf(weights.shape(), rows[size_t(row)], key);
    Value weight = kernel.call(weightFunction, indices, argumentsOf(scores, row, neighbour)).front();
    const ElementType type = weights.shape().elementType(), held = plan.product.fragmentType(plan.product.rows);
    return type == held ? weight : convertElement(b, weight, type, held);
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
    const Shape &space = root(plan.resultRoots.front()).shape;
    for (int64_t row = 0; row < rowsOfThread; ++row) {
      IndexingMap exists = kernel.mapOf({}, {});
      exists.addConstraint(kernel.lane() % lanesOfRow, Interval{0, 0});
      exists.addConstraint(rowOf(row), Interval{0, plan.scores.rows.size - 1});
      exists.simplify();
      Values before;
      for (unsigned number : plan.resultRoots)
        before.push_back(kernel.outputs()[number]);
      Values stored = kernel.loop(exists, before, [&](ValueRange, ValueRange, ValueRange carried) {
        Values at = indicesOf(space, rows[size_t(row)], {}), next;
        ValueRange made = kernel.call(resultFunction, at, results[size_t(row)]);
        for (auto [value, output, number] : llvm::zip_equal(made, carried, plan.resultRoots)) {
          IndexingMap map = bitcastIndexing(space, root(number).shape, context);
          map.simplify();
          next.push_back(tensor::InsertOp::create(b, value, output, applyMap(b, map, at)));
        }
        return next;
      });
      for (auto [number, output] : llvm::zip_equal(plan.resultRoots, stored))
        kernel.outputs()[number] = output;
    }
  }

  const AttentionPlan &plan;
  KernelBuilder &kernel;
  CodeBuilder &b;
  MLIRContext *context;
  ContractionValues values; ///< of scores
  OperandTile queries, keys, terms;
  OutputTile outputs;
  FragmentTiles scoreTiles, productTiles;
  std::vector<ReductionCode> stages;
  func::FuncOp weightFunction, resultFunction;
  Value batch;
  SmallVector<Value> rows; ///< of a thread
  Value queryTile, pieceTile;
  Value firstPiece, endPiece;               ///< findPieces; none: all
  SmallVector<Value> queryFragments;        ///< by terms
  std::vector<Scores> held;                 ///< by piece
  std::array<Values, rowsOfThread> results; ///< of complete stages, by row
};

} // namespace

llvm::LogicalResult emitHero(const AttentionPlan &plan, KernelBuilder &kernel) {
  return AttentionEmitter(plan, kernel).emit();
}

} // namespace hloc
