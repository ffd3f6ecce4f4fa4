// One idea: every block adds up the sizes of all groups, until it has come to its own. That is one loop of a load and a
// few instructions beside the many of a tile, and no kernel before this one.

#include "emitters/heroes/RaggedTiles.h"

#include "emitters/RaggedGroups.h"
#include "hloc/dialect/XlaGpu.h"

using namespace mlir;

namespace hloc {
namespace {

class GroupSearch {
public:
  GroupSearch(const ContractionPlan &plan, KernelBuilder &kernel)
      : plan(plan), groups(*plan.ragged), kernel(kernel), b(kernel.code()), sizes(*plan.hero->operand(2)),
        none(integer(0)) {}

  llvm::LogicalResult emitSizes() {
    FunctionRequest request;
    request.indexSizes = {groups.number};
    request.roots.push_back({&sizes, 0, IndexingMap::identity(b.getContext(), {groups.number})});
    auto functions = kernel.emitFunctions(request);
    if (failed(functions))
      return failure();
    function = functions->front();
    return success();
  }

  /// Of the tile's number `at.row` among those of all groups; behind them are those of rows that belong to none.
  StepRange findRows(TilePlace &at) {
    const int64_t rows = plan.tile.rows(), unit = plan.rows.size / std::max<int64_t>(groups.extent, 1);
    Value tile = toI64(valueOf(at.row)), noGroup = integer(groups.number), all = integer(plan.rows.size);
    auto tileOf = [&](Value before) { return b.subI(tile, before); };
    // Tiles of groups before; of the tile that was looked for: first row, end of the group's rows, group.
    SmallVector<Value> found = forEachGroup({none, all, all, noGroup}, [&](const Group &group, ValueRange before) {
      Value ofGroup = b.mulI(b.subI(group.end, group.begin), integer(unit));
      Value tiles = arith::DivUIOp::create(b, b.addI(ofGroup, rows - 1), integer(rows));
      Value own = tileOf(before[0]), isIt = b.cmpI(CodeBuilder::IPred::ult, own, tiles);
      Value first = b.addI(b.mulI(group.begin, integer(unit)), b.mulI(own, integer(rows)));
      return SmallVector<Value>{b.addI(before[0], tiles), b.select(isIt, first, before[1]),
                                b.select(isIt, b.mulI(group.end, integer(unit)), before[2]),
                                b.select(isIt, toI64(group.number), before[3])};
    });
    // (ContractionPlan::rowTiles is a bound: behind the last row of all there are tiles without any.)
    Value begin = b.mulI(found[0], integer(unit));
    Value isOfGroup = b.cmpI(CodeBuilder::IPred::slt, found[4], noGroup);
    Value behind = b.minS(b.addI(begin, b.mulI(tileOf(found[1]), integer(rows))), all);
    at.firstRow = variable(b.select(isOfGroup, found[2], behind), plan.rows.size, "row");
    at.endOfRows = variable(b.select(isOfGroup, found[3], all), plan.rows.size, "end");
    at.group = variable(b.minS(found[4], integer(groups.number - 1)), groups.number - 1, "group");
    // Rows behind all groups have no terms.
    AffineExpr number = variable(found[4], groups.number, "number");
    return {{}, {}, IndexingMap::Constraint{number, Interval{0, groups.number - 1}}};
  }

  /// Of the group that is the batch's.
  StepRange findTerms(TilePlace &at, AffineExpr group) {
    Value wanted = valueOf(group);
    SmallVector<Value> found = forEachGroup({none, none}, [&](const Group &each, ValueRange before) {
      Value isIt = b.cmpI(CodeBuilder::IPred::eq, each.number, wanted);
      return SmallVector<Value>{b.select(isIt, each.begin, before[0]), b.select(isIt, each.end, before[1])};
    });
    Value begin = found[1], end = found[2];
    at.firstOfTerms = variable(begin, groups.extent, "first");
    at.endOfTerms = variable(end, groups.extent, "end");
    if (plan.depth.front() != groups.dims.position) // other terms are the outer ones
      return {};
    // Of one of the ragged dimension's: steps if each is several, else a part of one.
    int64_t ofOne = plan.steps() / std::max<int64_t>(groups.extent, 1), ofStep = 1;
    if (plan.outerDepth == 0) {
      ofOne = plan.innerDepth() / std::max<int64_t>(groups.extent, 1);
      ofStep = plan.tile.depth;
    }
    auto stepOf = [&](Value term, int64_t more) -> Value {
      return arith::DivUIOp::create(b, b.addI(b.mulI(term, integer(ofOne)), more), integer(ofStep));
    };
    Value first = b.minS(stepOf(begin, 0), integer(plan.steps() - 1)), last = stepOf(end, ofStep - 1);
    Value isEmpty = b.cmpI(CodeBuilder::IPred::eq, begin, end);
    return {toIndex(first, plan.steps() - 1), toIndex(b.select(isEmpty, first, last), plan.steps()), {}};
  }

private:
  struct Group {
    Value number, begin, end; ///< of elements of the ragged dimension
  };

  Value integer(int64_t value) { return b.integer(b.getI64Type(), value); }
  Value toI64(Value index) { return arith::IndexCastOp::create(b, b.getI64Type(), index); }
  Value toIndex(Value value, int64_t most) {
    Value index = arith::IndexCastOp::create(b, b.getIndexType(), value);
    index.getDefiningOp()->setAttr(xla_gpu::attr::range, xla_gpu::rangeAttr(b.getContext(), Interval{0, most}));
    return index;
  }
  AffineExpr variable(Value value, int64_t most, const char *name) {
    return kernel.addVariable(arith::IndexCastOp::create(b, b.getIndexType(), value), {Interval{0, most}, name});
  }
  Value valueOf(AffineExpr expression) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return applyMap(b, map, kernel.ids()).front();
  }

  /// What `next` carries through all groups, in order, behind the end of the last.
  SmallVector<Value> forEachGroup(ArrayRef<Value> carried,
                                  llvm::function_ref<SmallVector<Value>(const Group &, ValueRange)> next) {
    SmallVector<Value> start = {none};
    llvm::append_range(start, carried);
    IndexingMap each =
        IndexingMap::fromSizes(AffineMap::get(0, 1, {}, b.getContext()), {}, {std::max<int64_t>(groups.number, 0)});
    return kernel.loop(each, {}, start, [&](ValueRange number, ValueRange, ValueRange before) {
      ElementType type = sizes.shape().elementType();
      Value size = fromStorage(b, kernel.call(function, number.front()).front(), type);
      Value rest = b.subI(integer(groups.extent), before[0]);
      Value end = b.addI(before[0], elementsOfGroup(b, size, type, rest));
      SmallVector<Value> made = {end};
      llvm::append_range(made, next({number.front(), before[0], end}, before.drop_front()));
      return made;
    });
  }

  const ContractionPlan &plan;
  const RaggedGroups &groups;
  KernelBuilder &kernel;
  CodeBuilder &b;
  const HloInstruction &sizes;
  const Value none;
  func::FuncOp function;
};

} // namespace

llvm::FailureOr<StepRange> findGroup(const ContractionPlan &plan, KernelBuilder &kernel, TilePlace &at) {
  const unsigned numIds = unsigned(kernel.idVariables().size());
  GroupSearch search(plan, kernel);
  if (failed(search.emitSizes()))
    return failure();
  StepRange steps;
  if (plan.ragged->areOfRows()) {
    steps = search.findRows(at);
  } else {
    SmallVector<int64_t> sizes;
    for (unsigned dim : plan.batch)
      sizes.push_back(plan.space.dim(dim));
    const auto *position = llvm::find(plan.batch, 0u); // groups are the result's first dimension
    steps = search.findTerms(at, delinearize(at.batch, sizes, kernel.context())[size_t(position - plan.batch.begin())]);
  }
  MLIRContext *context = kernel.context();
  at.step = at.step.replace(getAffineDimExpr(numIds, context),
                            getAffineDimExpr(unsigned(kernel.idVariables().size()), context));
  return steps;
}

} // namespace hloc
