// One idea: all that lies between two dots has either an element for each score, at its own place, or one for each row
// of scores. What is a row follows from the second dot, which sums over it (ScorePlaces.h).
//
// Of gradients two dots are beside each other, and what is made of both is a factor of the last.

#include "fusion/AttentionMatch.h"

#include "fusion/OpWork.h"
#include "fusion/ReductionMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/fusion/ScorePlaces.h"
#include "hloc/hlo/Literal.h"
#include "hloc/hlo/OnlineSoftmax.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace hloc {

std::string tooLarge(const AttentionPlan &plan) {
  return fmt::format("`{}` has more than {} terms, or `{}` as many columns", plan.scores.hero->name().str(),
                     mostTermsOfAttention, plan.product.hero->name().str());
}

namespace {

/// What depends on `origin`, by id.
llvm::BitVector dependents(const FusionGraph &graph, const HloInstruction &origin) {
  llvm::BitVector depends(graph.computation().instructions().size(), false);
  depends[origin.id()] = true;
  for (const HloInstruction *instr : graph.instructions())
    if (llvm::any_of(instr->operands(), [&](const HloInstruction *operand) { return depends[operand->id()]; }))
      depends[instr->id()] = true;
  return depends;
}

/// The results of a reduction, each for all elements of its row; or one number.
const HloInstruction &behindBroadcasts(const HloInstruction &instr) {
  const HloInstruction *value = &instr;
  while (value->opcode() == Opcode::Broadcast || isRenaming(*value) || value->opcode() == Opcode::Reshape)
    value = value->operand(0);
  return *value;
}

/// What a factor is made of by putting elements elsewhere, or by converting those of the `narrow` type that it is
/// multiplied in to one that has all of them.
MovedOperand sourceOf(const HloInstruction &factor, ElementType narrow, MLIRContext *context) {
  return movedOperand(factor, context, [&](const HloInstruction &convert) {
    return convert.operand(0)->shape().elementType() == narrow && typeOfValues(convert) == narrow;
  });
}

class AttentionMatch {
public:
  AttentionMatch(AttentionPlan &plan, AttentionSides &sides, const FusionGraph &graph, const TargetInfo &target,
                 MLIRContext *context)
      : plan(plan), sides(sides), graph(graph), target(target), context(context),
        stageOf(graph.computation().instructions().size(), 0) {}

  std::optional<Rejection> run() {
    for (auto step : {&AttentionMatch::findDots, &AttentionMatch::findMatrices, &AttentionMatch::findQuotient,
                      &AttentionMatch::checkReaders, &AttentionMatch::assignRoots, &AttentionMatch::assignStages,
                      &AttentionMatch::findDivisor})
      if (std::optional<Rejection> why = (this->*step)())
        return why;
    plan.mayJoinFirstStages = canJoin();
    for (const ReductionFrame &stage : plan.stages)
      plan.stagesBeside.push_back(llvm::any_of(stage.heroes, [&](const ReductionHero &hero) {
        return llvm::any_of(hero.instr->operands(), [&](const HloInstruction *value) { return ofBeside(*value); });
      }));
    if (plan.mayJoinFirstStages) {
      plan.logits = &behindBitcasts(*plan.stages[0].heroes.front().instr->operand(0));
      plan.isOnline = !plan.beside && isOnline();
      plan.isSoftmax = !plan.beside && plan.stages.size() == 2 && (plan.isOnline || areQuotients());
      plan.scale = scaleOfLogits();
    }
    if (!plan.beside)
      findMask();
    plan.masksLogits = plan.mask && plan.mask == plan.logits && keepsRanges();
    countWork();
    return std::nullopt;
  }

private:
  const HloInstruction &first() const { return *plan.scores.hero; }
  const HloInstruction &second() const { return *plan.product.hero; }

  std::optional<Rejection> findDots() {
    llvm::SmallVector<const HloInstruction *> dots;
    llvm::copy_if(graph.instructions(), std::back_inserter(dots),
                  [](const HloInstruction *instr) { return isContraction(*instr); });
    if (dots.size() < 2 || dots.size() > 3 ||
        !llvm::all_of(dots, [](auto *dot) { return dot->opcode() == Opcode::Dot; }))
      return Rejection{"there are not two dots, nor three"};
    plan.product.hero = dots.pop_back_val();
    if (std::optional<Rejection> why = checkFactors(dots))
      return why;
    if (std::optional<Rejection> why = chooseScores(dots))
      return why;
    for (ContractionPlan *dot : {&plan.scores, &plan.product, plan.beside ? &*plan.beside : &plan.scores}) {
      const std::string name = dot->hero->name().str();
      if (!target.atLeast(8, 0) || !typeOfFactors(*dot))
        return Rejection{fmt::format("`{}` is not multiplied by fragments of 16 bits", name)};
      if (typeOfFactors(*dot) != typeOfFactors(plan.scores))
        return Rejection{fmt::format("`{}` and `{}` have factors of different types", first().name().str(), name)};
      dot->bits = 32;
    }
    after = dependents(graph, second());
    ofScores = dependents(graph, first());
    return std::nullopt;
  }

  /// One factor of the last dot is made of each of the first, which have nothing to do with each other.
  std::optional<Rejection> checkFactors(llvm::ArrayRef<const HloInstruction *> firsts) {
    for (const HloInstruction *dot : firsts) {
      const llvm::BitVector depends = dependents(graph, *dot);
      const bool isLeft = depends[second().operand(0)->id()], isRight = depends[second().operand(1)->id()];
      if (isLeft == isRight || (dot != firsts.front() && weights != unsigned(isRight)) ||
          llvm::any_of(firsts, [&](auto *other) { return other != dot && depends[other->id()]; }))
        return Rejection{
            fmt::format("`{}` is not made of one factor of `{}`", second().name().str(), dot->name().str())};
      weights = isRight;
      // (Layers one behind the other are two dots, too: it is told before more is asked.)
      int64_t terms = 1;
      for (int64_t dim : dot->ints(AttributeKey::LhsContractingDims))
        terms *= dot->operand(0)->shape().dim(unsigned(dim));
      plan.scores.hero = dot;
      if (terms > mostTermsOfAttention)
        return Rejection{tooLarge(plan)};
    }
    return std::nullopt;
  }

  /// Of two, the one whose keys are the terms of the last dot: they are in shared memory once for both.
  std::optional<Rejection> chooseScores(llvm::ArrayRef<const HloInstruction *> firsts) {
    plan.scores.hero = firsts.front();
    if (firsts.size() == 1)
      return std::nullopt;
    const std::optional<ElementType> type = typeOfFactors(plan.product);
    if (!type)
      return Rejection{fmt::format("`{}` is not multiplied by fragments of 16 bits", second().name().str())};
    const HloInstruction *terms = sourceOf(*second().operand(1 - weights), *type, context).source;
    for (unsigned number : {0u, 1u})
      for (const HloInstruction *operand : firsts[number]->operands())
        if (sourceOf(*operand, *type, context).source == terms) {
          plan.scores.hero = firsts[number];
          plan.beside.emplace().hero = firsts[1 - number];
          beside = dependents(graph, *plan.beside->hero);
          return std::nullopt;
        }
    return Rejection{fmt::format("terms of `{}` are factors neither of `{}` nor of `{}`", second().name().str(),
                                 firsts[0]->name().str(), firsts[1]->name().str())};
  }

  /// Nothing: they have not the same 16 bits. Weights may be in pieces.
  std::optional<ElementType> typeOfFactors(const ContractionPlan &dot) const {
    const auto types = ContractionPlan::fragmentTypes(*dot.hero);
    const FactorPieces pieces = ContractionPlan::piecesOf(*dot.hero, dot.algorithm());
    const bool areWhole = dot.hero == plan.product.hero ? pieces.ofOperand[1 - weights] == 1 : !pieces.areSeveral();
    const bool areHalves = types && types->front() == types->back() && isFloat(types->front()) &&
                           deviceBits(types->front()) == 16 && areWhole;
    return areHalves ? std::optional(types->front()) : std::nullopt;
  }

  /// Rows, columns and terms of all dots, which have the same rows in the same order.
  std::optional<Rejection> findMatrices() {
    const ContractionPlan &product = plan.product, begun = product;
    for (bool areTurned : {false, true}) { // where they lie side by side, outputs may have them elsewhere
      plan.product = begun;
      if (std::optional<Rejection> why = sides.product.emplace(plan.product, graph, target, context).find(areTurned))
        return why;
      if (product.rows.operand == weights)
        break;
    }
    if (product.rows.operand != weights)
      return Rejection{fmt::format("rows of `{}` lie side by side", second().name().str())};
    plan.product.outerDepth = 0;
    places.emplace(plan, context);
    if (const HloInstruction *elsewhere = places->firstElsewhere())
      return readsElsewhere(*elsewhere);
    if (std::optional<Rejection> unlike = findScores(plan.scores, sides.scores))
      return unlike;
    if (plan.beside)
      if (std::optional<Rejection> unlike = findScores(*plan.beside, sides.beside))
        return unlike;
    numRows = plan.scores.batchSize * plan.scores.rows.size;
    return plan.beside ? checkTerms() : std::nullopt;
  }

  static Rejection readsElsewhere(const HloInstruction &instr) {
    return {fmt::format("`{}` reads scores, or what rows come to, at other places than its own", instr.name().str())};
  }

  /// Batches, rows and keys in the order of the last dot's batches, rows and terms.
  std::optional<Rejection> findScores(ContractionPlan &dot, std::optional<ContractionSides> &own) {
    const auto variables = places->variablesOf(*dot.hero);
    if (!variables)
      return Rejection{fmt::format("elements of `{}` are not those of `{}`, one for each", dot.hero->name().str(),
                                   plan.weights().name().str())};
    auto dimsOf = [&](llvm::ArrayRef<unsigned> ofProduct) {
      llvm::SmallVector<unsigned> dims;
      for (unsigned variable : ofProduct)
        for (auto [dim, found] : llvm::enumerate(*variables))
          if (found == variable)
            dims.push_back(unsigned(dim));
      return dims;
    };
    llvm::SmallVector<unsigned> terms;
    for (unsigned range : plan.product.depth)
      terms.push_back(places->keyVariable(range));
    const llvm::SmallVector<unsigned> batch = dimsOf(plan.product.batch), rows = dimsOf(plan.product.rows.dims),
                                      keys = dimsOf(terms);
    const ContractionPlan begun = dot;
    for (bool areTurned : {false, true}) {
      dot = begun;
      if (std::optional<Rejection> why = own.emplace(dot, graph, target, context).find(areTurned))
        return why;
      if (reorder(dot, batch, rows, keys)) {
        dot.outerDepth = 0;
        return std::nullopt;
      }
    }
    return Rejection{fmt::format("`{}` and `{}` have different rows", dot.hero->name().str(), second().name().str())};
  }

  /// Are dimensions of more than one element these? Then they are in this order.
  bool reorder(ContractionPlan &dot, llvm::ArrayRef<unsigned> batch, llvm::ArrayRef<unsigned> rows,
               llvm::ArrayRef<unsigned> keys) const {
    const ContractionPlan &product = plan.product;
    if (dot.space.rank() != dot.hero->shape().rank() || dot.batchSize != product.batchSize ||
        dot.rows.size != product.rows.size || dot.columns.size != product.innerDepth())
      return false;
    auto takeOrder = [&](llvm::SmallVector<unsigned> &dims, llvm::ArrayRef<unsigned> order) {
      llvm::SmallVector<unsigned> own;
      llvm::copy_if(dims, std::back_inserter(own), [&](unsigned dim) { return dot.space.dim(dim) == 1; });
      llvm::append_range(own, order);
      const bool areSame =
          llvm::all_of(order, [&](unsigned dim) { return llvm::is_contained(dims, dim); }) && own.size() == dims.size();
      dims = std::move(own);
      return areSame;
    };
    return takeOrder(dot.batch, batch) && takeOrder(dot.rows.dims, rows) && takeOrder(dot.columns.dims, keys);
  }

  /// Are the last dot's terms the keys of the scores, of which a tile is in shared memory?
  std::optional<Rejection> checkTerms() const {
    const ContractionPlan &scores = plan.scores, &product = plan.product;
    const auto keys = tileSource(scores, scores.columns, /*areKeysDepth=*/false),
               terms = tileSource(product, product.columns, /*areKeysDepth=*/true);
    if (keys && terms && keys->source == terms->source && keys->map == terms->map &&
        scores.innerDepth() == product.columns.size)
      return std::nullopt;
    return Rejection{
        fmt::format("terms of `{}` are not the keys of `{}`", second().name().str(), first().name().str())};
  }

  /// What a side's tiles are of, with a map from the indices of batches, the key, and the number of its element.
  std::optional<MovedOperand> tileSource(const ContractionPlan &dot, const ContractionSide &side,
                                         bool areKeysDepth) const {
    const MovedOperand moved = sourceOf(*dot.hero->operand(side.operand), *typeOfFactors(dot), context);
    const IndexingMap map = compose(factorMap(*dot.hero, dot.space, side.operand, context), moved.map);
    llvm::SmallVector<IndexingVariable> variables;
    llvm::SmallVector<AffineExpr> dims(map.dims().size(), getAffineConstantExpr(0, context)),
        symbols(map.ranges().size(), getAffineConstantExpr(0, context));
    auto add = [&](AffineExpr &index, int64_t size) {
      if (size == 1)
        return;
      index = getAffineDimExpr(unsigned(variables.size()), context);
      variables.push_back({Interval{0, size - 1}, ""});
    };
    auto addSide = [&](llvm::ArrayRef<unsigned> own) {
      for (unsigned dim : own)
        add(dims[dim], dot.space.dim(dim));
    };
    auto addDepth = [&] {
      for (auto [variable, size] : llvm::zip_equal(dot.depth, dot.depthSizes))
        add(symbols[variable], size);
    };
    addSide(dot.batch);
    if (areKeysDepth)
      addDepth();
    addSide(side.dims);
    if (!areKeysDepth)
      addDepth();
    if (!map.constraints().empty() || llvm::any_of(dot.depthStarts, [](int64_t start) { return start != 0; }))
      return std::nullopt;
    IndexingMap result(map.affine().replaceDimsAndSymbols(dims, symbols, unsigned(variables.size()), 0), variables, {},
                       {});
    result.simplify();
    return MovedOperand{moved.source, std::move(result)};
  }

  /// Of the second dot's results, each divided by the same of its row. Then it is known where everything has scores.
  std::optional<Rejection> findQuotient() {
    plan.finished = &second();
    const HloInstruction *quotient = onlyUser(second());
    const bool isQuotient = quotient && quotient->opcode() == Opcode::Divide && quotient->operand(0) == &second() &&
                            quotient->shape().sameDims(second().shape()) &&
                            quotient->shape().elementType() == ElementType::F32;
    const std::optional<IndexingMap> read = isQuotient ? findDivisorOf(*quotient) : std::nullopt;
    followScores();
    if (!read)
      return std::nullopt;
    const Rearranged *ofRow = followed->at(*divisor);
    if (!ofRow || ofRow->map != *read) {
      ofQuotient.clear();
      followScores();
      return std::nullopt;
    }
    plan.quotient = plan.finished = quotient;
    if (const HloInstruction *converted = onlyUser(*quotient);
        converted && converted->opcode() == Opcode::Convert &&
        converted->shape().elementType() == plan.product.fragmentType(plan.product.rows))
      plan.finished = converted;
    return std::nullopt;
  }

  /// The reduction that a quotient may divide by; gives which of its results each is divided by.
  std::optional<IndexingMap> findDivisorOf(const HloInstruction &quotient) {
    IndexingMap map = places->ofResult();
    const HloInstruction *value = quotient.operand(1);
    llvm::SmallVector<const HloInstruction *, 2> between;
    for (; value->opcode() != Opcode::Reduce; value = value->operand(0)) {
      if (!onlyUser(*value) || value->numOperands() != 1 || !hasTrait(value->opcode(), OpcodeTrait::Moves))
        return std::nullopt;
      map = compose(map, operandIndexing(*value, 0, context)->map);
      between.push_back(value);
    }
    map.simplify();
    divisor = value;
    ofQuotient = std::move(between);
    return map;
  }

  void followScores() {
    llvm::SmallVector<const HloInstruction *, 2> ignored = ofQuotient;
    ignored.push_back(&second());
    followed.emplace(places->follow(graph, ignored));
  }

  /// Null: it is an output, or has several users.
  const HloInstruction *onlyUser(const HloInstruction &value) const {
    if (llvm::any_of(graph.roots(), [&](const FusionRoot &root) { return root.instr == &value; }))
      return nullptr;
    const HloInstruction *user = nullptr;
    for (const HloInstruction *instr : graph.instructions())
      for (const HloInstruction *operand : instr->operands())
        if (operand == &value) {
          if (user)
            return nullptr;
          user = instr;
        }
    return user;
  }

  std::optional<Rejection> findDivisor() {
    unsigned number = 0;
    for (const ReductionFrame &stage : plan.stages)
      for (const Accumulator &accumulator : stage.accumulators) {
        if (plan.quotient && stage.heroes[accumulator.hero].instr == divisor) {
          plan.divisor = number;
          return std::nullopt;
        }
        ++number;
      }
    return plan.quotient ? std::optional(Rejection{
                               fmt::format("`{}` divides by no sum of a row of scores", plan.quotient->name().str())})
                         : std::nullopt;
  }

  std::optional<Rejection> checkReaders() {
    if (const HloInstruction *elsewhere = followed->firstElsewhere())
      return readsElsewhere(*elsewhere);
    const Places<Rearranged> outputs = rearrangements(graph, second(), context);
    if (outputs.firstElsewhere())
      return Rejection{fmt::format("`{}` is read at several places, or not as a whole", second().name().str())};
    for (const HloInstruction *instr : graph.instructions())
      if (outputs.at(*instr) && instr != &second() && instr != plan.quotient &&
          llvm::any_of(instr->operands(),
                       [&](const HloInstruction *operand) { return !outputs.at(*operand) && isOfScores(*operand); }))
        return Rejection{fmt::format("`{}` reads scores beside `{}`", instr->name().str(), second().name().str())};
    return std::nullopt;
  }

  std::optional<Rejection> assignRoots() {
    for (auto [number, root] : llvm::enumerate(graph.roots())) {
      if (deviceBits(root.shape.elementType()) < 8)
        return Rejection{fmt::format("output {} shares bytes between elements", number)};
      if (after[root.instr->id()] && root.shape.numElements() == second().shape().numElements())
        plan.product.roots.push_back(unsigned(number));
      else if (isOfRows(*root.instr) && root.shape.numElements() == numRows)
        plan.resultRoots.push_back(unsigned(number));
      else
        return Rejection{
            fmt::format("output {} is made neither of `{}` nor of rows of scores", number, second().name().str())};
    }
    if (plan.product.roots.empty())
      return Rejection{fmt::format("no output is made of `{}`", second().name().str())};
    std::optional<Rejection> why = checkOutputs(plan.product, graph, context);
    plan.product.storesColumns = why.has_value();
    return why ? checkOutputs(plan.product, graph, context) : std::nullopt;
  }

  std::optional<Rejection> assignStages() {
    std::vector<llvm::SmallVector<const HloInstruction *>> stages;
    for (const HloInstruction *instr : graph.instructions()) {
      if (!isOfScores(*instr) || after[instr->id()])
        continue;
      for (const HloInstruction *operand : instr->operands())
        stageOf[instr->id()] = std::max(stageOf[instr->id()], stageOf[behindTuple(*operand).id()]);
      if (instr->opcode() != Opcode::Reduce)
        continue;
      if (!isOfRows(*instr) || instr->operand(0)->shape().numElements() != numRows * plan.keys())
        return Rejection{fmt::format("`{}` reduces something else than rows of scores", instr->name().str())};
      const unsigned stage = stageOf[instr->id()]++;
      stages.resize(std::max<size_t>(stages.size(), stage + 1));
      stages[stage].push_back(instr);
    }
    for (llvm::ArrayRef<const HloInstruction *> stage : stages) {
      std::variant<ReductionFrame, Rejection> frame = frameOf(stage);
      if (auto *why = std::get_if<Rejection>(&frame))
        return *why;
      for (const Accumulator &accumulator : std::get<ReductionFrame>(frame).accumulators)
        if (!accumulator.combiner)
          return Rejection{fmt::format("`{}` chooses elements", stage.front()->name().str())};
      for (const HloInstruction *reduction : stage)
        if (!sameArray(reduction->operand(0)->shape(), stage.front()->operand(0)->shape()) ||
            *followed->at(reducedScores(*followed, *reduction)) !=
                *followed->at(reducedScores(*followed, *stage.front())))
          return Rejection{fmt::format("`{}` and `{}` reduce arrays in which scores have other places",
                                       stage.front()->name().str(), reduction->name().str())};
      plan.stages.push_back(std::move(std::get<ReductionFrame>(frame)));
    }
    return std::nullopt;
  }

  void countWork() {
    /// Of a logit: to find the maximum, the difference, a rough exponential, the sum; the difference, an exponential,
    /// its share of the sum, half a conversion. An exponential that is kept is made once.
    constexpr double ofMaximumAndSum = 5, ofWeight = 9.5, ofAll = 11.5, ofOnline = 5.5;
    /// Of a weight that is multiplied in pieces, to make these.
    constexpr double ofPieces = 9.5;
    llvm::SmallVector<const HloInstruction *> all = {&plan.weights()};
    plan.workOfStages = workFor(all);
    for (const ReductionFrame &stage : plan.stages)
      for (const ReductionHero &hero : stage.heroes) {
        llvm::SmallVector<const HloInstruction *> values(hero.instr->operands());
        plan.workOfStages += workFor(values);
        llvm::append_range(all, values);
      }
    plan.workOnce = plan.workHeld = workFor(all);
    if (plan.isSoftmax) {
      const HloInstruction *shown = &plan.shownLogits();
      // A product with a scale is one with the subtraction behind it.
      const double ofLogit = plan.scale > 0 ? 0 : workFor(shown);
      plan.workHeld = ofLogit + (plan.isOnline ? ofOnline : ofAll);
      plan.workOfStages = plan.isOnline ? ofLogit + ofOnline : 2 * ofLogit + ofMaximumAndSum + ofWeight;
    }
    if (ContractionPlan::piecesOf(second(), plan.product.algorithm()).areSeveral()) {
      plan.workHeld += ofPieces;
      plan.workOfStages += ofPieces;
    }
  }

  double scaleOfLogits() const {
    const HloInstruction &product = *plan.logits;
    if (product.opcode() != Opcode::Multiply || first().shape().elementType() != ElementType::F32)
      return 0;
    for (unsigned number : {0u, 1u}) {
      const HloInstruction &factor = behindBroadcasts(*product.operand(1 - number));
      if (&behindBitcasts(*product.operand(number)) != &first() || factor.opcode() != Opcode::Constant ||
          !factor.shape().isScalar())
        continue;
      const double scale = factor.literal().getDouble(0);
      return scale > 0 && std::isfinite(scale) ? scale : 0;
    }
    return 0;
  }

  /// Are weights what `canJoin` found, divided by its sum?
  bool areQuotients() const {
    const HloInstruction *value = &behindBitcasts(plan.weights());
    if (value->opcode() == Opcode::Convert)
      value = &behindBitcasts(*value->operand(0));
    const HloInstruction &sum = *plan.stages[1].heroes.front().instr;
    return value->opcode() == Opcode::Divide &&
           &behindBitcasts(*value->operand(0)) == &behindBitcasts(*sum.operand(0)) &&
           &behindBroadcasts(*value->operand(1)) == &sum;
  }

  /// Are weights the exponentials that `canJoin` found, as an online softmax has them, and is their sum what divides?
  bool isOnline() const {
    const HloInstruction &weights = behindBitcasts(plan.weights()), &sum = *plan.stages[1].heroes.front().instr;
    return plan.stages.size() == 2 && divisor == &sum && isOnlineSoftmax(weights) && isOnlineSoftmax(second()) &&
           &behindBitcasts(*weights.operand(0)) == &behindBitcasts(*sum.operand(0));
  }

  /// Is the mask a range of keys for each row, and what it hides scores behind a constant?
  bool keepsRanges() const { return plan.keysOfRows(context).isAll; }

  /// Of an element of each of `values`, from the score and what rows come to.
  double workFor(llvm::ArrayRef<const HloInstruction *> values) const {
    llvm::SmallVector<const HloInstruction *> kept = {&first()};
    if (plan.beside)
      kept.push_back(plan.beside->hero);
    for (const ReductionFrame &stage : plan.stages)
      for (const ReductionHero &hero : stage.heroes)
        kept.push_back(hero.instr);
    const llvm::BitVector isRead = readFor(graph, values, kept);
    double work = 0;
    for (const HloInstruction *instr : graph.instructions())
      if (isRead[instr->id()] && !llvm::is_contained(kept, instr) && instr->shape().isArray() &&
          instr->shape().numElements() == numRows * plan.keys())
        work += workPerElement(*instr);
    return work;
  }

  /// A constant initial value that changes nothing of what it begins.
  static bool beginsWith(const HloInstruction &init, double value) {
    return init.opcode() == Opcode::Constant && init.shape().isScalar() && isFloat(init.shape().elementType()) &&
           init.literal().getDouble(0) == value;
  }

  /// The scores behind a mask: chosen between by a predicate of no score, and one number.
  struct Mask {
    const HloInstruction *select = nullptr;
    bool isKept = false; ///< where the predicate is this
  };

  std::optional<Mask> maskAt(const HloInstruction &instr) const {
    if (instr.opcode() != Opcode::Select || !places->at(instr) || isOfScores(*instr.operand(0)) ||
        !instr.operand(0)->shape().sameDims(instr.shape()))
      return std::nullopt;
    for (unsigned number : {1u, 2u}) {
      const HloInstruction &constant = behindBroadcasts(*instr.operand(3 - number));
      if (isOfScores(*instr.operand(number)) && constant.opcode() == Opcode::Constant && constant.shape().isScalar())
        return Mask{&instr, number == 1};
    }
    return std::nullopt;
  }

  void findMask() {
    if (!plan.stages.empty() && (!plan.mayJoinFirstStages || plan.stages.size() != 2))
      return;
    for (const HloInstruction *instr : graph.instructions())
      if (std::optional<Mask> mask = maskAt(*instr); mask && hidesScores(*mask)) {
        plan.mask = instr;
        plan.isKept = mask->isKept;
        return;
      }
  }

  /// Is all that is made of scores made of the masked ones, and of nothing else that differs between a row's keys?
  bool hidesScores(const Mask &mask) const {
    const llvm::BitVector behind = dependents(graph, *mask.select);
    for (const HloInstruction *instr : graph.instructions()) {
      if (!isOfScores(*instr) || after[instr->id()] || instr == mask.select ||
          (!behind[instr->id()] && !isSeen(*instr)))
        continue;
      for (const HloInstruction *operand : instr->operands()) {
        const bool isMade = behind[operand->id()] || operand == mask.select->operand(0) ||
                            (!isOfScores(*operand) && behindBroadcasts(*operand).shape().isScalar());
        if (!isMade)
          return false;
      }
    }
    return true;
  }

  bool isOfRows(const HloInstruction &value) const {
    const Rearranged *place = followed->at(value);
    return place && !places->dependsOnKey(place->map);
  }
  bool isOfScores(const HloInstruction &value) const {
    return ofScores[value.id()] || (plan.beside && beside[value.id()]);
  }
  /// Does it depend on the dot beside the scores?
  bool ofBeside(const HloInstruction &value) const { return plan.beside && beside[value.id()]; }

  /// Do rows or weights have it, and not just other scores?
  bool isSeen(const HloInstruction &instr) const {
    return instr.opcode() == Opcode::Reduce || &instr == &plan.weights();
  }

  /// Is it a maximum, and then a sum of exponentials of the same less the maximum?
  bool canJoin() const {
    if (plan.stages.size() < 2 || plan.stages[0].accumulators.size() != 1 || plan.stages[1].accumulators.size() != 1)
      return false;
    const HloInstruction &maximum = *plan.stages[0].heroes.front().instr, &sum = *plan.stages[1].heroes.front().instr;
    if (ofBeside(*maximum.operand(0)))
      return false;
    auto combines = [&](unsigned stage, Opcode combiner) {
      const Accumulator &accumulator = plan.stages[stage].accumulators.front();
      return accumulator.type == ElementType::F32 && accumulator.combiner == combiner;
    };
    if (!combines(0, Opcode::Maximum) || !combines(1, Opcode::Add) ||
        !beginsWith(*maximum.operand(1), -std::numeric_limits<double>::infinity()) || !beginsWith(*sum.operand(1), 0) ||
        maximum.shape().elementType() != ElementType::F32)
      return false;
    const HloInstruction &power = behindBitcasts(*sum.operand(0));
    if (power.opcode() != Opcode::Exponential)
      return false;
    const HloInstruction &difference = behindBitcasts(*power.operand(0));
    return difference.opcode() == Opcode::Subtract &&
           &behindBitcasts(*difference.operand(0)) == &behindBitcasts(*maximum.operand(0)) &&
           &behindBroadcasts(*difference.operand(1)) == &maximum;
  }

  AttentionPlan &plan;
  AttentionSides &sides;
  const FusionGraph &graph;
  const TargetInfo &target;
  MLIRContext *context;
  unsigned weights = 0;                                    ///< operand of the second dot
  const HloInstruction *divisor = nullptr;                 ///< the quotient's
  llvm::SmallVector<const HloInstruction *, 2> ofQuotient; ///< which it has at each result
  llvm::BitVector after;                                   ///< what depends on the second dot, itself included; by id
  llvm::BitVector ofScores, beside;                        ///< the same of the scores, and of the dot beside
  int64_t numRows = 0;                                     ///< of scores
  std::optional<ScorePlaces> places;
  std::optional<Places<Rearranged>> followed; ///< where scores are, and what rows come to
  std::vector<unsigned> stageOf;              ///< stages that are complete where the instruction can be computed
};

} // namespace

std::optional<Rejection> matchAttention(AttentionPlan &plan, AttentionSides &sides, const FusionGraph &graph,
                                        const TargetInfo &target, MLIRContext *context) {
  return AttentionMatch(plan, sides, graph, target, context).run();
}

KeptKeys AttentionPlan::keysOfRows(MLIRContext *context) const {
  if (!mask)
    return {};
  const ScorePlaces places(*this, context);
  return keptKeys(*mask->operand(0), isKept, places.ofThread(*places.at(*mask)));
}

double AttentionPlan::hiddenLogit() const {
  return behindBroadcasts(*mask->operand(isKept ? 2 : 1)).literal().getDouble(0);
}

} // namespace hloc
