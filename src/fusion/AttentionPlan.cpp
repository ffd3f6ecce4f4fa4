// One idea: all that lies between two dots has either an element for each score, at its own place, or one for each row
// of scores. What is a row follows from the second dot, which sums over it.

#include "hloc/fusion/AttentionPlan.h"

#include "fusion/ContractionMatch.h"
#include "fusion/OpWork.h"
#include "fusion/ReductionMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/fusion/PlanCounts.h"
#include "hloc/hlo/Literal.h"
#include "hloc/hlo/OnlineSoftmax.h"
#include "hloc/indexing/ShapeMaps.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

constexpr unsigned registersOfThread = 255;
/// Registers of a thread for addresses and what is computed of a score.
constexpr int64_t ofIndices = 56;

/// What depends on `origin`, by id.
llvm::BitVector dependents(const FusionGraph &graph, const HloInstruction &origin) {
  llvm::BitVector depends(graph.computation().instructions().size(), false);
  depends[origin.id()] = true;
  for (const HloInstruction *instr : graph.instructions())
    if (llvm::any_of(instr->operands(), [&](const HloInstruction *operand) { return depends[operand->id()]; }))
      depends[instr->id()] = true;
  return depends;
}

/// Dimensions of more than one element, major to minor in memory.
llvm::SmallVector<unsigned> memoryOrder(const Shape &shape) {
  llvm::SmallVector<unsigned> order;
  for (int64_t dim : llvm::reverse(shape.minorToMajor()))
    if (shape.dim(unsigned(dim)) > 1)
      order.push_back(unsigned(dim));
  return order;
}

/// Larger tiles do not fit into registers.
constexpr int64_t mostTerms = 256;

std::string tooLarge(const AttentionPlan &plan) {
  return fmt::format("`{}` has more than {} terms, or `{}` as many columns", plan.scores.hero->name().str(), mostTerms,
                     plan.product.hero->name().str());
}

/// The results of a reduction, each for all elements of its row; or one number.
const HloInstruction &behindBroadcasts(const HloInstruction &instr) {
  const HloInstruction *value = &instr;
  while (value->opcode() == Opcode::Broadcast || isRenaming(*value) || value->opcode() == Opcode::Reshape)
    value = value->operand(0);
  return *value;
}

class AttentionMatch {
public:
  AttentionMatch(AttentionPlan &plan, const FusionGraph &graph, const TargetInfo &target, MLIRContext *context)
      : plan(plan), graph(graph), target(target), context(context), roles(graph.computation()),
        stageOf(graph.computation().instructions().size(), 0) {}

  std::optional<Rejection> run() {
    for (auto step : {&AttentionMatch::findDots, &AttentionMatch::findMatrices, &AttentionMatch::findQuotient,
                      &AttentionMatch::assignRoles, &AttentionMatch::assignRoots, &AttentionMatch::assignStages,
                      &AttentionMatch::findDivisor})
      if (std::optional<Rejection> why = (this->*step)())
        return why;
    plan.mayJoinFirstStages = canJoin();
    if (plan.mayJoinFirstStages) {
      plan.logits = &behindBitcasts(*plan.stages[0].heroes.front().instr->operand(0));
      plan.isOnline = isOnline();
      plan.isSoftmax = plan.stages.size() == 2 && (plan.isOnline || areQuotients());
      plan.scale = scaleOfLogits();
    }
    findMask();
    plan.masksLogits = plan.mask && plan.mask == plan.logits && keepsRanges();
    countWork();
    return std::nullopt;
  }

  std::optional<ContractionSides> ofScores, ofProduct; ///< after `run`

private:
  const HloInstruction &first() const { return *plan.scores.hero; }
  const HloInstruction &second() const { return *plan.product.hero; }

  std::optional<Rejection> findDots() {
    llvm::SmallVector<const HloInstruction *> dots;
    llvm::copy_if(graph.instructions(), std::back_inserter(dots),
                  [](const HloInstruction *instr) { return isContraction(*instr); });
    if (dots.size() != 2 || !llvm::all_of(dots, [](auto *dot) { return dot->opcode() == Opcode::Dot; }))
      return Rejection{"there are not two dots"};
    plan.scores.hero = dots[0];
    plan.product.hero = dots[1];
    for (ContractionPlan *dot : {&plan.scores, &plan.product}) {
      const std::string name = dot->hero->name().str();
      if (!target.atLeast(8, 0) || !typeOfFactors(*dot))
        return Rejection{fmt::format("`{}` is not multiplied by fragments of 16 bits", name)};
      dot->bits = 32;
    }
    if (typeOfFactors(plan.scores) != typeOfFactors(plan.product))
      return Rejection{
          fmt::format("`{}` and `{}` have factors of different types", first().name().str(), second().name().str())};
    const llvm::BitVector depends = dependents(graph, first());
    if (depends[second().operand(0)->id()] == depends[second().operand(1)->id()])
      return Rejection{
          fmt::format("`{}` is not made of one factor of `{}`", second().name().str(), first().name().str())};
    // (Layers one behind the other are two dots, too: it is told before more is asked.)
    int64_t terms = 1;
    for (int64_t dim : first().ints(AttributeKey::LhsContractingDims))
      terms *= first().operand(0)->shape().dim(unsigned(dim));
    if (terms > mostTerms)
      return Rejection{tooLarge(plan)};
    weights = depends[second().operand(0)->id()] ? 0 : 1;
    after = dependents(graph, second());
    return std::nullopt;
  }

  /// Nothing: they have not the same 16 bits.
  static std::optional<ElementType> typeOfFactors(const ContractionPlan &dot) {
    const auto types = ContractionPlan::fragmentTypes(*dot.hero);
    const bool areHalves = types && types->front() == types->back() && isFloat(types->front()) &&
                           deviceBits(types->front()) == 16 &&
                           !ContractionPlan::piecesOf(*dot.hero, dot.algorithm()).areSeveral();
    return areHalves ? std::optional(types->front()) : std::nullopt;
  }

  /// Rows, columns and terms of both dots, which have the same rows in the same order.
  std::optional<Rejection> findMatrices() {
    for (ContractionSides *sides : {&ofScores.emplace(plan.scores, graph, target, context),
                                    &ofProduct.emplace(plan.product, graph, target, context)})
      if (std::optional<Rejection> why = sides->find())
        return why;
    for (ContractionPlan *dot : {&plan.scores, &plan.product})
      dot->outerDepth = 0;
    const ContractionPlan &scores = plan.scores, &product = plan.product;
    if (product.rows.operand != weights)
      return Rejection{fmt::format("rows of `{}` lie side by side", second().name().str())};
    // Of the scores and of the weights, at the same positions of memory: batches, rows, keys.
    if (memoryOrder(first().shape()) != order({scores.batch, scores.rows.dims, scores.columns.dims}, first().shape()))
      return Rejection{fmt::format("keys are not the rows of memory of `{}`", first().name().str())};
    if (std::optional<Rejection> why = checkWeights())
      return why;
    if (scores.batchSize != product.batchSize || scores.rows.size != product.rows.size ||
        scores.columns.size != product.innerDepth())
      return Rejection{fmt::format("`{}` and `{}` have different rows", first().name().str(), second().name().str())};
    shape = {scores.batchSize * scores.rows.size, scores.columns.size, 1};
    return std::nullopt;
  }

  static llvm::SmallVector<unsigned> order(std::initializer_list<llvm::ArrayRef<unsigned>> parts, const Shape &shape) {
    llvm::SmallVector<unsigned> dims;
    for (llvm::ArrayRef<unsigned> part : parts)
      llvm::copy_if(part, std::back_inserter(dims), [&](unsigned dim) { return shape.dim(dim) > 1; });
    return dims;
  }

  /// The weights' dimensions in memory: the second dot's batches and rows in the order that they have in its result,
  /// then its terms.
  std::optional<Rejection> checkWeights() const {
    const ContractionPlan &product = plan.product;
    const IndexingMap map = operandIndexing(second(), weights, context)->map;
    const Shape &read = plan.weights().shape();
    llvm::SmallVector<unsigned> kept = order({product.batch, product.rows.dims}, second().shape());
    size_t next = 0;
    unsigned terms = 0;
    for (unsigned dim : memoryOrder(read)) {
      AffineExpr index = map.affine().getResult(dim);
      if (isa<AffineSymbolExpr>(index))
        ++terms;
      else if (terms > 0 || next == kept.size() || index != getAffineDimExpr(kept[next++], context))
        return Rejection{fmt::format("terms of `{}` are not the rows of memory of `{}`", second().name().str(),
                                     plan.weights().name().str())};
    }
    if (terms > 1 || next != kept.size())
      return Rejection{fmt::format("`{}` sums over several dimensions", second().name().str())};
    return std::nullopt;
  }

  /// Of the second dot's results, each divided by the same of its row.
  std::optional<Rejection> findQuotient() {
    plan.finished = &second();
    const HloInstruction *quotient = onlyUser(second());
    if (!quotient || quotient->opcode() != Opcode::Divide || quotient->operand(0) != &second() ||
        !quotient->shape().sameDims(second().shape()) || quotient->shape().elementType() != ElementType::F32)
      return std::nullopt;
    IndexingMap map = IndexingMap::identity(context, quotient->shape().dims());
    const HloInstruction *value = quotient->operand(1);
    llvm::SmallVector<const HloInstruction *> between;
    for (; value->opcode() != Opcode::Reduce; value = value->operand(0)) {
      if (!onlyUser(*value) || value->numOperands() != 1 || !hasTrait(value->opcode(), OpcodeTrait::Moves))
        return std::nullopt;
      map = compose(map, operandIndexing(*value, 0, context)->map);
      map.simplify();
      between.push_back(value);
    }
    const llvm::SmallVector<unsigned> kept = order({plan.product.batch, plan.product.rows.dims}, second().shape()),
                                      own = memoryOrder(value->shape());
    const bool isOfRow = kept.size() == own.size() && llvm::all_of(llvm::zip(kept, own), [&](auto dims) {
                           auto [to, from] = dims;
                           return map.affine().getResult(from) == getAffineDimExpr(to, context);
                         });
    if (!isOfRow)
      return std::nullopt;
    plan.quotient = plan.finished = quotient;
    for (const HloInstruction *instr : between)
      ofQuotient.push_back(instr);
    divisor = value;
    if (const HloInstruction *converted = onlyUser(*quotient);
        converted && converted->opcode() == Opcode::Convert &&
        converted->shape().elementType() == plan.product.fragmentType(plan.product.rows))
      plan.finished = converted;
    return std::nullopt;
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

  std::optional<Rejection> assignRoles() {
    roles.set(first(), ReducedRole::Element);
    roles.follow(graph.instructions(),
                 [&](const HloInstruction &instr, unsigned operand, ReducedRole read) -> PlaceAnswer<ReducedRole> {
                   if (llvm::is_contained(ofQuotient, &instr))
                     return Independent();
                   if (&instr == &second())
                     return placeIf(operand == weights && read == ReducedRole::Element, ReducedRole::Element);
                   return roleThrough(instr, operand, read, shape);
                 });
    if (const HloInstruction *elsewhere = roles.firstElsewhere(); elsewhere && !after[elsewhere->id()])
      return Rejection{fmt::format("`{}` reads scores, or what rows come to, at other places than its own",
                                   elsewhere->name().str())};
    const Places<Rearranged> outputs = rearrangements(graph, second(), context);
    if (outputs.firstElsewhere())
      return Rejection{fmt::format("`{}` is read at several places, or not as a whole", second().name().str())};
    for (const HloInstruction *instr : graph.instructions())
      if (outputs.at(*instr) && instr != &second() && instr != plan.quotient &&
          llvm::any_of(instr->operands(),
                       [&](const HloInstruction *operand) { return !outputs.at(*operand) && roles.at(*operand); }))
        return Rejection{fmt::format("`{}` reads scores beside `{}`", instr->name().str(), second().name().str())};
    return std::nullopt;
  }

  std::optional<Rejection> assignRoots() {
    for (auto [number, root] : llvm::enumerate(graph.roots())) {
      if (deviceBits(root.shape.elementType()) < 8)
        return Rejection{fmt::format("output {} shares bytes between elements", number)};
      if (after[root.instr->id()] && root.shape.numElements() == second().shape().numElements())
        plan.product.roots.push_back(unsigned(number));
      else if (roles.isAt(*root.instr, ReducedRole::Result) && root.shape.numElements() == shape.count)
        plan.resultRoots.push_back(unsigned(number));
      else
        return Rejection{
            fmt::format("output {} is made neither of `{}` nor of rows of scores", number, second().name().str())};
    }
    if (plan.product.roots.empty())
      return Rejection{fmt::format("no output is made of `{}`", second().name().str())};
    return checkOutputs(plan.product, graph, context);
  }

  std::optional<Rejection> assignStages() {
    std::vector<llvm::SmallVector<const HloInstruction *>> stages;
    for (const HloInstruction *instr : graph.instructions()) {
      if (!roles.at(*instr) || after[instr->id()])
        continue;
      for (const HloInstruction *operand : instr->operands())
        stageOf[instr->id()] = std::max(stageOf[instr->id()], stageOf[behindTuple(*operand).id()]);
      if (instr->opcode() != Opcode::Reduce)
        continue;
      if (shapeOfReduction(*instr) != shape)
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
      plan.stages.push_back(std::move(std::get<ReductionFrame>(frame)));
    }
    return std::nullopt;
  }

  void countWork() {
    /// Of a logit: to find the maximum, the difference, a rough exponential, the sum; the difference, an exponential,
    /// its share of the sum, half a conversion. An exponential that is kept is made once.
    constexpr double ofMaximumAndSum = 5, ofWeight = 9.5, ofAll = 11.5, ofOnline = 5.5;
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
    for (const ReductionFrame &stage : plan.stages)
      for (const ReductionHero &hero : stage.heroes)
        kept.push_back(hero.instr);
    const llvm::BitVector isRead = readFor(graph, values, kept);
    double work = 0;
    for (const HloInstruction *instr : graph.instructions())
      if (isRead[instr->id()] && !llvm::is_contained(kept, instr) && instr->shape().isArray() &&
          instr->shape().numElements() == shape.elements())
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
    if (instr.opcode() != Opcode::Select || !roles.isAt(instr, ReducedRole::Element) || roles.at(*instr.operand(0)) ||
        !instr.operand(0)->shape().sameDims(instr.shape()))
      return std::nullopt;
    for (unsigned number : {1u, 2u}) {
      const HloInstruction &constant = behindBroadcasts(*instr.operand(3 - number));
      if (roles.at(*instr.operand(number)) && constant.opcode() == Opcode::Constant && constant.shape().isScalar())
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
      if (!roles.at(*instr) || after[instr->id()] || instr == mask.select || (!behind[instr->id()] && !isSeen(*instr)))
        continue;
      for (const HloInstruction *operand : instr->operands()) {
        const bool isMade = behind[operand->id()] || operand == mask.select->operand(0) ||
                            (!roles.at(*operand) && behindBroadcasts(*operand).shape().isScalar());
        if (!isMade)
          return false;
      }
    }
    return true;
  }

  /// Do rows or weights have it, and not just other scores?
  bool isSeen(const HloInstruction &instr) const {
    return instr.opcode() == Opcode::Reduce || &instr == &plan.weights();
  }

  /// Is it a maximum, and then a sum of exponentials of the same less the maximum?
  bool canJoin() const {
    if (plan.stages.size() < 2 || plan.stages[0].accumulators.size() != 1 || plan.stages[1].accumulators.size() != 1)
      return false;
    const HloInstruction &maximum = *plan.stages[0].heroes.front().instr, &sum = *plan.stages[1].heroes.front().instr;
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
  const FusionGraph &graph;
  const TargetInfo &target;
  MLIRContext *context;
  unsigned weights = 0;                                    ///< operand of the second dot
  const HloInstruction *divisor = nullptr;                 ///< the quotient's
  llvm::SmallVector<const HloInstruction *, 2> ofQuotient; ///< which it has at each result
  llvm::BitVector after;                                   ///< what depends on the second dot, itself included; by id
  ReducedShape shape;
  Places<ReducedRole> roles;
  std::vector<unsigned> stageOf; ///< stages that are complete where the instruction can be computed
};

// --- tiles

int64_t powerOfTwo(int64_t size, int64_t least) { return std::max(powerOf2Ceil(size), least); }

int64_t registersOf(const AttentionPlan &plan) {
  const int64_t held = plan.holdsScores ? plan.pieces() : 1;
  const int64_t scores = held * plan.piece() / 2, sums = plan.columns() / 2;
  const int64_t rows = plan.holdsRows() ? plan.terms() / 4 : 4;
  auto loaded = [&](const ContractionPlan &dot, int64_t inRow) {
    return dot.columns.copied ? 0 : plan.piece() * inRow / plan.scores.tile.threads() / 2;
  };
  const int64_t onTheirWay =
      std::max(loaded(plan.scores, plan.scores.tile.depth), loaded(plan.product, plan.product.tile.columns()));
  // Weights, of which two fill a register, are made of all scores before any is multiplied.
  if (plan.holdsScores && plan.isSoftmax)
    return ofIndices + scores + onTheirWay + std::max(rows, sums - scores / 2);
  return ofIndices + scores + sums + rows + onTheirWay;
}

struct Effort {
  double seconds, sectors;
};

Effort effortOf(const AttentionPlan &plan, const LaunchGeometry &launch, const TargetInfo &target) {
  constexpr double sectorBits = 256, lanesPerWarp = 32;
  const PlanCounts own = countsOf(plan);
  KernelCounts counts = kernelCounts(own);
  counts.blocks = uint64_t(plan.blocks());
  counts.threadsPerBlock = uint32_t(launch.block.count());
  counts.registers = plannedRegisters(plan);
  counts.sharedBytes = uint32_t(plan.sharedBytes());
  for (const PlanCounts::OperandRead &read : own.reads) {
    const Shape &shape = read.instr->operand(read.operand)->shape();
    if (read.instr == plan.product.hero && read.operand == plan.product.rows.operand)
      continue;
    counts.sectors += read.elements * read.spread * deviceBits(shape.elementType()) / sectorBits;
    counts.footprint += double(shape.byteSize()) * 8 / sectorBits;
  }
  const double written = double(plan.finished->shape().byteSize()) * 8 / sectorBits;
  counts.sectors += written;
  counts.footprint += written;
  counts.instructions += plan.workOnce * double(plan.scores.hero->shape().numElements()) / lanesPerWarp;
  return {estimate(counts, deviceOf(target)).total, counts.sectors};
}

LaunchGeometry launchOf(const AttentionPlan &plan) {
  LaunchGeometry launch;
  launch.grid = {uint32_t(plan.blocks()), 1, 1};
  launch.block = {uint32_t(plan.scores.tile.threads()), 1, 1};
  launch.sharedBytes = plan.sharedBytes();
  return launch;
}

/// The pieces of keys that a mask leaves to a tile of rows.
int64_t keptPiecesOf(const AttentionPlan &plan, const KeptKeys &keys, int64_t tile) {
  auto at = [&](AffineExpr key, int64_t otherwise) {
    const auto value =
        key ? dyn_cast<AffineConstantExpr>(key.replaceDims({getAffineConstantExpr(tile, key.getContext())}))
            : AffineConstantExpr();
    return value ? value.getValue() : otherwise;
  };
  const int64_t first = std::max<int64_t>(at(keys.first, 0), 0),
                last = std::min(at(keys.last, plan.keys()), plan.keys() - 1);
  return last < first ? 0 : last / plan.piece() - first / plan.piece() + 1;
}

void countKeptPieces(AttentionPlan &plan, const KeptKeys &keys) {
  constexpr int64_t mostTiles = 64;
  plan.keptPieces = 1;
  plan.beginsWithLastRows = false;
  if (!plan.skipsPieces)
    return;
  const int64_t tiles = plan.rowTiles(), step = llvm::divideCeil(tiles, mostTiles);
  int64_t kept = 0, all = 0;
  for (int64_t tile = 0; tile < tiles; tile += step) {
    kept += keptPiecesOf(plan, keys, tile);
    all += plan.pieces();
  }
  plan.keptPieces = double(kept) / double(std::max<int64_t>(all, 1));
  plan.beginsWithLastRows = keptPiecesOf(plan, keys, tiles - 1) > keptPiecesOf(plan, keys, 0);
}

/// Where not every multiprocessor has a block, smaller ones are a little faster, and read keys many times as often.
constexpr double nearlyAsFastHere = 1.2;

/// The tile that takes the least time; of those that are nearly as fast the one that moves least.
std::optional<Rejection> chooseTiles(AttentionPlan &plan, AttentionMatch &match, const FusionGraph &graph,
                                     const TargetInfo &target, MLIRContext *context) {
  const int64_t terms = powerOfTwo(plan.scores.innerDepth(), AttentionPlan::fragmentDepth);
  const int64_t columns = powerOfTwo(plan.product.columns.size, 2 * ContractionTile::fragmentColumns);
  if (terms > mostTerms || columns > mostTerms)
    return Rejection{tooLarge(plan)};
  std::vector<std::pair<AttentionPlan, Effort>> fitting;
  double least = std::numeric_limits<double>::infinity();
  auto tileOf = [](int64_t warps, int64_t tileColumns, int64_t depth) {
    ContractionTile tile;
    tile.onTensorCores = true;
    tile.warpRows = warps;
    tile.threadRows = 2;
    tile.threadColumns = tileColumns / tile.laneColumns();
    tile.depth = depth;
    tile.stages = AttentionPlan::stagesOfTiles;
    return tile;
  };
  const unsigned outputVector = chooseOutputVector(plan.product, graph, context);
  const KeptKeys keysOfRows = plan.keysOfRows(context);
  for (int64_t warps : {8, 4, 2, 1})
    for (int64_t piece : {128, 64, 32, 16}) {
      if (piece > powerOfTwo(plan.keys(), 16))
        continue;
      plan.scores.tile = tileOf(warps, piece, terms);
      plan.product.tile = tileOf(warps, columns, piece);
      plan.product.outputVector = outputVector;
      match.ofScores->chooseAccesses();
      match.ofProduct->chooseAccesses();
      match.ofScores->chooseCopies();
      match.ofProduct->chooseCopies();
      plan.scores.leastStage = plan.product.leastStage = plan.pieceElements();
      const KeptKeys kept = keysOfRows.ofTile(plan.scores.tile.rows());
      for (bool holds : {true, false}) {
        plan.holdsScores = holds;
        plan.skipsPieces = !holds && kept;
        countKeptPieces(plan, kept);
        if (registersOf(plan) > int64_t(registersOfThread) || plan.sharedBytes() > target.maxSharedBytes ||
            plan.blocks() > int64_t(target.maxGridX))
          continue;
        fitting.emplace_back(plan, effortOf(plan, launchOf(plan), target));
        least = std::min(least, fitting.back().second.seconds);
      }
    }
  if (fitting.empty())
    return Rejection{"no tile fits into registers and shared memory"};
  llvm::erase_if(fitting, [&](const auto &one) { return one.second.seconds > nearlyAsFastHere * least; });
  auto *best = &*llvm::min_element(fitting, [](const auto &a, const auto &b) {
    return std::pair(a.second.sectors, a.second.seconds) < std::pair(b.second.sectors, b.second.seconds);
  });
  plan = std::move(best->first);
  return std::nullopt;
}

} // namespace

KeptKeys AttentionPlan::keysOfRows(MLIRContext *context) const {
  if (!mask)
    return {};
  const int64_t sizes[] = {scores.batchSize, scores.rows.size, keys()}, rowMajor[] = {2, 1, 0};
  IndexingMap place = bitcastMap(sizes, rowMajor, mask->shape().dims(), mask->shape().minorToMajor(), context);
  place.simplify();
  return keptKeys(*mask->operand(0), isKept, place);
}

double AttentionPlan::hiddenLogit() const {
  return behindBroadcasts(*mask->operand(isKept ? 2 : 1)).literal().getDouble(0);
}

bool AttentionPlan::mayWeighHidden() const {
  return isOnline && skipsPieces && !(masksLogits && hiddenLogit() == -std::numeric_limits<double>::infinity());
}

bool AttentionPlan::storesInRowTile() const {
  return product.outputVector && finished->shape().elementType() == scores.fragmentType(scores.rows);
}

int64_t AttentionPlan::rowElements() const {
  return std::max(scores.tileElements(scores.rows), storesInRowTile() ? product.outputElements() : 0);
}

int64_t AttentionPlan::pieceElements() const {
  return std::max(scores.tileElements(scores.columns), product.tileElements(product.columns));
}

uint64_t AttentionPlan::sharedBytes() const {
  const int64_t factors = rowElements() + stagesOfTiles * pieceElements();
  const int64_t outputs = product.outputVector && !storesInRowTile() ? product.outputElements() : 0;
  // What lies behind flags begins at a vector.
  constexpr int64_t flagsOfVector = ContractionPlan::sharedVectorBits / bitsOfFlag;
  const int64_t warps = scores.tile.warpRows,
                flags = mayWeighHidden() && warps > 1 ? roundedUp(warps, flagsOfVector) : 0;
  return uint64_t(factors * int64_t(scores.factorBits()) + flags * bitsOfFlag +
                  outputs * int64_t(deviceBits(finished->shape().elementType()))) /
         8;
}

template <>
HeroMatch<AttentionPlan> matchHero<AttentionPlan>(const FusionGraph &graph, const FusionAliasing &,
                                                  const TargetInfo &target, PlanContext &plans) {
  AttentionPlan plan;
  AttentionMatch match(plan, graph, target, plans.mlir());
  if (std::optional<Rejection> why = match.run())
    return std::move(*why);
  if (std::optional<Rejection> why = chooseTiles(plan, match, graph, target, plans.mlir()))
    return std::move(*why);
  LaunchGeometry launch = launchOf(plan);
  return {std::move(plan), launch};
}

/// Other blocks read an operand's rows at other times.
template <> bool mayTakePlace<AttentionPlan>(const AttentionPlan &, const FusionGraph &, unsigned, unsigned) {
  return false;
}

template <>
ComputedSpaces computedSpaces<AttentionPlan>(const AttentionPlan &plan, const FusionGraph &graph,
                                             MLIRContext *context) {
  ComputedSpaces result;
  auto fill = [&](const ContractionPlan &dot, const ContractionSide &side, int64_t times) {
    result.spaces.emplace_back().values.push_back(
        {dot.hero->operand(side.operand), filledElements(dot, side, times, context)});
  };
  fill(plan.scores, plan.scores.rows, 1);
  fill(plan.scores, plan.scores.columns, plan.rowTiles() * plan.passes());
  fill(plan.product, plan.product.columns, plan.rowTiles());
  auto elements = [&](const HloInstruction &value) {
    result.spaces.emplace_back().values.push_back({&value, IndexingMap::identity(context, value.shape().dims())});
  };
  for (const ReductionFrame &stage : plan.stages)
    for (const ReductionHero &hero : stage.heroes)
      elements(*hero.instr->operand(0));
  elements(plan.weights());
  ComputedSpace outputs;
  for (auto [root, place] :
       llvm::zip_equal(plan.product.roots, outputMaps(graph, *plan.finished, plan.product.roots, context)))
    outputs.values.push_back({graph.roots()[root].instr, place});
  result.spaces.push_back(std::move(outputs));
  for (unsigned root : plan.resultRoots)
    elements(*graph.roots()[root].instr);
  result.kept = {plan.scores.hero, plan.finished};
  for (const ReductionFrame &stage : plan.stages)
    for (const ReductionHero &hero : stage.heroes)
      result.kept.push_back(hero.instr);
  return result;
}

template <> KernelTraffic trafficOf<AttentionPlan>(const AttentionPlan &, const FusionGraph &graph) {
  return wholeTraffic(graph);
}

template <> unsigned plannedRegisters<AttentionPlan>(const AttentionPlan &plan) {
  return unsigned(std::clamp<int64_t>(int64_t(llvm::alignTo(uint64_t(registersOf(plan)), 8)),
                                      KernelSpec::usualRegisters, registersOfThread));
}

std::string AttentionPlan::toString() const {
  std::string result = "attention: ";
  llvm::raw_string_ostream os(result);
  if (scores.batchSize != 1)
    os << scores.batchSize << " times ";
  os << fmt::format("{} rows by {} keys, {} terms, {} columns; {} stage{}{}; ", scores.rows.size, keys(),
                    scores.innerDepth(), product.columns.size, stages.size(), stages.size() == 1 ? "" : "s",
                    isOnline             ? ", all in one pass, divided afterwards"
                    : joinsFirstStages() ? ", the first two together"
                                         : "");
  os << fmt::format("blocks of {} rows, pieces of {} keys{}; roots ", scores.tile.rows(), piece(),
                    holdsScores ? ", scores in registers"
                    : isOnline  ? ""
                                : fmt::format(", {} times", passes()));
  llvm::interleave(product.roots, os, ",");
  if (skipsPieces)
    os << fmt::format("; a mask leaves {:.0f} % of the pieces{}", 100 * keptPieces,
                      beginsWithLastRows ? ", most to the last rows, which come first" : "");
  if (!resultRoots.empty()) {
    os << ", roots of rows ";
    llvm::interleave(resultRoots, os, ",");
  }
  const bool areKeys = scores.columns.copied, areTerms = product.columns.copied;
  os << (areKeys && areTerms ? "; keys and terms copied"
         : areKeys           ? "; keys copied"
         : areTerms          ? "; terms copied"
                             : "");
  return result;
}

} // namespace hloc
