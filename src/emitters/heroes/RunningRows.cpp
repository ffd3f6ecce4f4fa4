// One idea: exponents need not be less by the greatest logit, only by one that is not much less. So sums are scaled
// where the greatest has grown by much, which after the first pieces is hardly ever, and a warp asks for all of its
// rows at once.

#include "emitters/heroes/RunningRows.h"

#include "emitters/heroes/SoftmaxArithmetic.h"
#include "hloc/dialect/XlaGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hloc {

namespace {
/// Exponentials are up to e^8 then: numbers of f16, and far from those that overflow sums.
constexpr double mostGrowth = 8;
} // namespace

void RunningRows::begin() {
  for (Row &row : rows) {
    row.maximum = row.base = ofMaximum.start([] { return Values(); }).front();
    row.sum = ofSum.start([] { return Values(); }).front();
  }
}

RunningRows::Values RunningRows::carried() const {
  Values all;
  for (const Row &row : rows)
    all.append({row.maximum, row.base, row.sum});
  return all;
}

void RunningRows::setCarried(ValueRange values) {
  for (auto [number, row] : llvm::enumerate(rows))
    row = {values[valuesOfRow * number], values[valuesOfRow * number + 1], values[valuesOfRow * number + 2]};
}

void RunningRows::meet(size_t row, Value greatest) {
  Value &maximum = rows[row].maximum;
  maximum = ofMaximum.combine(maximum, ofMaximum.shuffle(greatest, lanes / 2, /*toAll=*/true)).front();
}

void RunningRows::outgrow(Values &products) {
  Value any;
  for (const Row &row : rows) {
    Value grown = b.cmpF(CodeBuilder::FPred::OGT, row.maximum, b.addF(row.base, mostGrowth));
    any = any ? b.orI(any, grown) : grown;
  }
  const size_t count = products.size();
  Values state(products);
  llvm::append_range(state, carried());
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(state)), anyOfWarp(any), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, state);
  b.setInsertionPointToEnd(branch.thenBlock());
  for (size_t row = 0; row < rows.size(); ++row)
    rebase(row, rows[row].maximum, products);
  llvm::append_range(products, carried());
  scf::YieldOp::create(b, products);
  ValueRange results = branch.getResults();
  products.assign(results.begin(), results.begin() + count);
  setCarried(results.drop_front(count));
}

void RunningRows::rebase(size_t row, Value base, Values &products) {
  Row &own = rows[row];
  Value factor = math::ExpOp::create(b, b.subF(own.base, exponentBase(b, base)), CodeBuilder::flags);
  const size_t ofRow = products.size() / rows.size();
  for (Value &product : MutableArrayRef(products).slice(row * ofRow, ofRow))
    product = b.mulF(product, factor);
  own.sum = b.mulF(own.sum, factor);
  own.base = base;
}

Value RunningRows::take(size_t row, Value logit) {
  Row &own = rows[row];
  Value power = roughPower(b, b.subF(logit, exponentBase(b, own.base)));
  own.sum = ofSum.combine(own.sum, power).front();
  return power;
}

void RunningRows::meetSums() {
  for (Row &row : rows)
    row.sum = ofSum.shuffle(row.sum, lanes / 2, /*toAll=*/true).front();
}

Value RunningRows::takeAlike(size_t row, Value logit, Value count, Value isAny, Values &products) {
  Row &own = rows[row];
  own.maximum = b.select(isAny, ofMaximum.combine(own.maximum, logit).front(), own.maximum);
  rebase(row, own.maximum, products);
  Value power = math::ExpOp::create(b, b.subF(logit, exponentBase(b, own.base)), CodeBuilder::flags);
  power = b.select(isAny, power, b.floatingLike(power, 0));
  Value times = arith::SIToFPOp::create(b, power.getType(), arith::IndexCastOp::create(b, b.getI32Type(), count));
  own.sum = b.addF(own.sum, b.mulF(times, power));
  return power;
}

/// Where there is nothing but minus infinity, exponents are no numbers.
Value RunningRows::orNan(size_t row, Value value) {
  Value maximum = rows[row].maximum;
  Value isLeast = b.cmpF(CodeBuilder::FPred::OEQ, maximum, b.infinity(maximum.getType(), /*negative=*/true));
  return b.select(isLeast, b.quietNan(value.getType()), value);
}

RunningRows::Values RunningRows::results(size_t row) {
  const Row &own = rows[row];
  Value sum = orNan(row, rescaledSum(b, own.sum, own.base, exponentBase(b, own.maximum)));
  Values both = ofMaximum.results(own.maximum);
  llvm::append_range(both, ofSum.results(sum));
  return both;
}

Value RunningRows::share(size_t row) { return orNan(row, nearReciprocal(b, rows[row].sum)); }

Value RunningRows::anyOfWarp(Value condition) {
  constexpr int64_t halfWarp = 16;
  if (!either) {
    OpBuilder::InsertionGuard guard(b);
    Type truth = b.getI1Type();
    either = func::FuncOp::create(b.getLoc(), "either", b.getFunctionType({truth, truth}, {truth}));
    either.setPrivate();
    SymbolTable(kernel.moduleOp()).insert(either);
    b.setInsertionPointToEnd(either.addEntryBlock());
    func::ReturnOp::create(b, b.orI(either.getArgument(0), either.getArgument(1)));
  }
  return xla_gpu::ShuffleReduceOp::create(b, either, condition, halfWarp, /*toAll=*/true).getResult(0);
}

Value RunningRows::anyOfBlock(Value condition, int64_t warps) {
  Value any = anyOfWarp(condition);
  if (warps == 1)
    return any;
  Type ofFlag = b.getIntegerType(AttentionPlan::bitsOfFlag);
  Value flags = xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({warps}, ofFlag));
  auto valueOf = [&](AffineExpr expression) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return applyMap(b, map, kernel.ids()).front();
  };
  Value isFirst = b.cmpI(CodeBuilder::IPred::eq, valueOf(kernel.lane()), b.index(0));
  Value flag = arith::ExtUIOp::create(b, ofFlag, any);
  flags =
      xla_gpu::PredicatedInsertOp::create(b, flags.getType(), flag, flags, ValueRange{valueOf(kernel.warp())}, isFirst);
  flags = xla_gpu::SyncThreadsOp::create(b, TypeRange(flags), ValueRange(flags)).getResult(0);
  Value all = b.integer(ofFlag, 0);
  for (int64_t warp = 0; warp < warps; ++warp)
    all = b.orI(all, tensor::ExtractOp::create(b, flags, ValueRange{b.index(warp)}));
  return b.cmpI(CodeBuilder::IPred::ne, all, 0);
}

} // namespace hloc
