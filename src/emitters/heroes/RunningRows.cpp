// One idea: exponents need not be less by the greatest logit, only by one that is not much less. So sums are scaled
// where the greatest has grown by much, which after the first pieces is hardly ever, and a warp asks for all of its
// rows at once.

#include "emitters/heroes/RunningRows.h"

#include "emitters/heroes/ContractionPlaces.h"
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

/// For any thread of the warp.
Value RunningRows::anyRow(llvm::function_ref<Value(const Row &row)> holds) {
  Value any;
  for (const Row &row : rows) {
    Value own = holds(row);
    any = any ? b.orI(any, own) : own;
  }
  return anyOfWarp(any);
}

Value RunningRows::anyGrown() {
  return anyRow(
      [&](const Row &row) { return b.cmpF(CodeBuilder::FPred::OGT, row.maximum, b.addF(row.base, mostGrowth)); });
}

RunningRows::Values RunningRows::rebaseAll() {
  Values factors;
  for (size_t row = 0; row < rows.size(); ++row)
    factors.push_back(rebase(row, rows[row].maximum));
  return factors;
}

void RunningRows::outgrow(Values &products) {
  const size_t count = products.size();
  Values state(products);
  llvm::append_range(state, carried());
  const Values results = ifHolds(b, anyGrown(), state, [&] {
    Values made(products);
    multiply(rebaseAll(), made);
    llvm::append_range(made, carried());
    return made;
  });
  products.assign(results.begin(), results.begin() + ptrdiff_t(count));
  setCarried(ValueRange(results).drop_front(count));
}

RunningRows::Growth RunningRows::outgrow() {
  Value any = anyGrown();
  Values state = carried();
  state.append(rows.size(), b.floatingLike(rows.front().base, 1));
  const Values results = ifHolds(b, any, state, [&] {
    const Values factors = rebaseAll();
    Values made = carried();
    llvm::append_range(made, factors);
    return made;
  });
  setCarried(results);
  return {any, Values(ArrayRef(results).drop_front(numCarried()))};
}

void RunningRows::scale(const Growth &growth, Values &products) {
  products = ifHolds(b, growth.any, products, [&] {
    Values made(products);
    multiply(growth.factors, made);
    return made;
  });
}

Value RunningRows::rebase(size_t row, Value base) {
  Row &own = rows[row];
  Value before = own.base, less = exponentBase(b, base), factor;
  if (areSumsRead) {
    factor = exactPower(b, b.differenceF(before, less), /*flushes=*/true);
  } else {
    // As powers were made that are in the sum, and will be.
    Value folded = b.differenceF(b.mulF(before, log2OfE), b.mulF(less, log2OfE));
    Value isAny = b.orI(isLarge(before), isLarge(less));
    factor = flushedPower(b, b.select(isAny, b.mulF(b.differenceF(before, less), log2OfE), folded));
  }
  own.sum = b.mulF(own.sum, factor);
  own.base = base;
  return factor;
}

void RunningRows::multiply(ArrayRef<Value> factors, MutableArrayRef<Value> products) const {
  const size_t ofRow = products.size() / factors.size();
  for (auto [number, product] : llvm::enumerate(products))
    product = b.mulF(product, factors[number / ofRow]);
}

Value RunningRows::lessBase(Value x, double scale, Value base) {
  return b.subF(scale == 1 ? x : b.mulF(x, scale), base);
}

/// Scaled, and less than the base; times log2(e).
Value RunningRows::exponent(Value x, double scale, Value base) { return b.mulF(lessBase(x, scale, base), log2OfE); }

/// The same in one multiply-add: off by half a unit (roughPower), and for all of a row by one number more, since what
/// is subtracted was rounded. A softmax divides by what comes of that, if it is small.
Value RunningRows::foldedExponent(Value x, double scale, Value base) {
  return b.fma(x, b.floatingLike(x, scale * log2OfE), b.negF(b.mulF(base, log2OfE)));
}

/// Of larger ones that number is more than 2^-14.
Value RunningRows::isLarge(Value base) {
  constexpr double most = 1024;
  return b.cmpF(CodeBuilder::FPred::UGT, math::AbsFOp::create(b, base), most);
}

/// The logarithm of a sum would show what is off.
Value RunningRows::power(Value x, Value base, bool folds) {
  if (areSumsRead)
    return exactPower(b, lessBase(x, scaleOfLogits, base), /*flushes=*/true);
  return flushedPower(b, folds ? foldedExponent(x, scaleOfLogits, base) : exponent(x, scaleOfLogits, base));
}

RunningRows::Values RunningRows::takeAll(ValueRange logits, bool folds) {
  const size_t ofRow = logits.size() / rows.size();
  Values powers;
  for (auto [number, row] : llvm::enumerate(rows)) {
    Value less = exponentBase(b, row.base);
    std::vector<Values> own;
    for (Value logit : logits.slice(number * ofRow, ofRow)) {
      powers.push_back(power(logit, less, folds));
      own.push_back({powers.back()});
    }
    row.sum = ofSum.combine(row.sum, ofSum.combineAll(own)).front();
  }
  return powers;
}

RunningRows::Values RunningRows::take(ValueRange logits) {
  if (areSumsRead)
    return takeAll(logits, /*folds=*/false);
  Value any = anyRow([&](const Row &row) { return isLarge(exponentBase(b, row.base)); });
  const Values before = carried();
  Values types(logits);
  llvm::append_range(types, before);
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(types)), any, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool folds : {false, true}) {
    b.setInsertionPointToEnd(folds ? branch.elseBlock() : branch.thenBlock());
    setCarried(before);
    Values made = takeAll(logits, folds);
    llvm::append_range(made, carried());
    scf::YieldOp::create(b, made);
  }
  ValueRange results = branch.getResults();
  setCarried(results.drop_front(logits.size()));
  return Values(results.take_front(logits.size()));
}

void RunningRows::meetSums() {
  for (Row &row : rows)
    row.sum = ofSum.shuffle(row.sum, lanes / 2, /*toAll=*/true).front();
}

Value RunningRows::takeAlike(size_t row, Value logit, Value count, Value isAny, Values &products) {
  Row &own = rows[row];
  own.maximum = b.select(isAny, ofMaximum.combine(own.maximum, logit).front(), own.maximum);
  const size_t ofRow = products.size() / rows.size();
  multiply(rebase(row, own.maximum), MutableArrayRef(products).slice(row * ofRow, ofRow));
  Value less = exponentBase(b, own.base), made;
  if (areSumsRead)
    made = exactPower(b, b.subF(logit, less), /*flushes=*/true);
  else
    made = flushedPower(b, b.select(isLarge(less), exponent(logit, 1, less), foldedExponent(logit, 1, less)));
  made = b.select(isAny, made, b.floatingLike(made, 0));
  Value times = arith::SIToFPOp::create(b, made.getType(), arith::IndexCastOp::create(b, b.getI32Type(), count));
  own.sum = b.addF(own.sum, b.mulF(times, made));
  return made;
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

Value RunningRows::allocateFlags(CodeBuilder &b, int64_t warps) {
  Type ofFlag = b.getIntegerType(AttentionPlan::bitsOfFlag);
  return xla_gpu::AllocateSharedOp::create(b, RankedTensorType::get({warps}, ofFlag));
}

Value RunningRows::anyOfBlock(Value condition, Value flags, llvm::function_ref<Value(Value flags)> synchronized) {
  Value any = anyOfWarp(condition);
  if (!flags)
    return any;
  auto valueOf = [&](AffineExpr expression) {
    IndexingMap map = kernel.mapOf({expression}, {});
    map.simplify();
    return applyMap(b, map, kernel.ids()).front();
  };
  Value isFirst = b.cmpI(CodeBuilder::IPred::eq, valueOf(kernel.lane()), b.index(0));
  Value flag = arith::ExtUIOp::create(b, b.getIntegerType(AttentionPlan::bitsOfFlag), any);
  flags =
      xla_gpu::PredicatedInsertOp::create(b, flags.getType(), flag, flags, ValueRange{valueOf(kernel.warp())}, isFirst);
  return anyOf(b, synchronized(flags));
}

Value RunningRows::anyOf(CodeBuilder &b, Value flags) {
  Value all = b.integer(b.getIntegerType(AttentionPlan::bitsOfFlag), 0);
  for (int64_t warp = 0; warp < cast<RankedTensorType>(flags.getType()).getNumElements(); ++warp)
    all = b.orI(all, tensor::ExtractOp::create(b, flags, ValueRange{b.index(warp)}));
  return b.cmpI(CodeBuilder::IPred::ne, all, 0);
}

} // namespace hloc
