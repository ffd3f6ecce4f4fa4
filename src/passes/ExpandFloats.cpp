// Floats of at most 8 bits have no arithmetic anywhere: operations on them go through f32, conversions from and to f32
// are one instruction for two values on sm_90 and later (f8E4M3FN, f8E5M2). Elsewhere these two become f16 as words of
// two, four neighbours together, and the others are converted in integer arithmetic.
#include "passes/PassDetail.h"

#include "passes/SmallFloat.h"

namespace hloc {
#define GEN_PASS_DEF_EXPANDFLOATS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;

namespace {

bool isSmall(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return smallFloatOf(vector ? vector.getElementType() : type).has_value();
}

/// The part of intrinsic names that says which type the hardware converts; empty if it has no conversion.
StringRef hardwareName(Type type) {
  return isa<Float8E4M3FNType>(type) ? "e4m3x2" : isa<Float8E5M2Type>(type) ? "e5m2x2" : "";
}

class FloatExpansion {
public:
  explicit FloatExpansion(bool hasHardware) : hasHardware(hasHardware) {}

  LogicalResult run(ModuleOp module) {
    if (!hasHardware)
      module.walk([&](Operation *op) {
        if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && op->getResult(0).getType().isBF16())
          widenToBrain(op);
      });
    // First everything becomes conversions, then conversions are expanded, in pairs where that helps.
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (llvm::any_of(op->getOperandTypes(), isSmall) || llvm::any_of(op->getResultTypes(), isSmall))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(widen(op)))
        return failure();
    SmallVector<Operation *> conversions;
    module.walk([&](Operation *op) {
      if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
          (isSmall(op->getOperand(0).getType()) || isSmall(op->getResult(0).getType())))
        conversions.push_back(op);
    });
    // Unrolled loops convert one lane after the other, with other work in between: each waits for others of its kind.
    llvm::MapVector<std::tuple<Block *, unsigned, Type>, SmallVector<Operation *, 4>> waiting;
    for (Operation *op : conversions) {
      SmallVector<Operation *, 4> &group = waiting[{op->getBlock(), unsigned(isExtension(op)), smallType(op)}];
      if (!group.empty() && !joins(group, op))
        expandGroup(group);
      group.push_back(op);
      if (group.size() == mostTogether(op))
        expandGroup(group);
    }
    for (auto &[kind, group] : waiting)
      expandGroup(group);
    return success();
  }

private:
  /// Arithmetic on small floats: convert, compute in f32, convert back. Moves of them stay.
  LogicalResult widen(Operation *op) {
    if (auto convert = dyn_cast<arith::ExtFOp>(op))
      return splitConversion(convert);
    if (auto convert = dyn_cast<arith::TruncFOp>(op))
      return splitConversion(convert);
    if (isa<math::AbsFOp, arith::NegFOp>(op) && expandSign(op))
      return success();
    bool isArithmetic = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
                        !isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op);
    if (!isArithmetic)
      return success();
    OpBuilder builder(op);
    Type f32 = builder.getF32Type();
    for (OpOperand &operand : op->getOpOperands()) {
      if (isa<VectorType>(operand.get().getType()))
        return op->emitOpError("computes with vectors of small floats");
      if (isSmall(operand.get().getType()))
        operand.set(arith::ExtFOp::create(builder, op->getLoc(), f32, operand.get()));
    }
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      Type type = result.getType();
      if (!isSmall(type))
        continue;
      result.setType(f32);
      auto narrowed = arith::TruncFOp::create(builder, op->getLoc(), type, result);
      result.replaceAllUsesExcept(narrowed, narrowed);
    }
    return success();
  }

  /// Integers to bf16, which LLVM would round to f32 first: what f32 does not hold is rounded to odd there, so that the
  /// second rounding gives what one would. An integer of n bits loses the last n - 24 if it is large.
  void widenToBrain(Operation *op) {
    Type type = op->getOperand(0).getType();
    unsigned width = type.getIntOrFloatBitWidth();
    if (!type.isIntOrIndex() || width <= 24)
      return;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    bool isSigned = isa<arith::SIToFPOp>(op);
    auto constant = [&](uint64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, APInt(64, value).trunc(width)));
    };
    Value value = op->getOperand(0);
    // Of 64 bits 40 in steps, so that numbers between lose no more than they must.
    for (unsigned lost = 8; lost + 24 <= width; lost += 8) {
      uint64_t limit = uint64_t(1) << (lost + 16); // numbers of 24 bits beyond the last step's
      Value dropped = arith::AndIOp::create(builder, loc, value, constant((uint64_t(1) << lost) - 1));
      Value isExact = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, dropped, constant(0));
      Value sticky = arith::SelectOp::create(builder, loc, isExact, constant(0), constant(uint64_t(1) << lost));
      Value kept = arith::AndIOp::create(builder, loc, value, constant(~((uint64_t(1) << lost) - 1)));
      Value collapsed = arith::OrIOp::create(builder, loc, kept, sticky);
      Value shifted = isSigned ? arith::AddIOp::create(builder, loc, value, constant(limit)).getResult() : value;
      Value isSmall = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, shifted,
                                            constant(isSigned ? 2 * limit : limit));
      value = arith::SelectOp::create(builder, loc, isSmall, value, collapsed);
    }
    Type f32 = builder.getF32Type();
    Value wide = isSigned ? arith::SIToFPOp::create(builder, loc, f32, value).getResult()
                          : arith::UIToFPOp::create(builder, loc, f32, value).getResult();
    op->getResult(0).replaceAllUsesWith(
        arith::TruncFOp::create(builder, loc, op->getResult(0).getType(), wide).getResult());
    op->erase();
  }

  /// Every conversion has f32 on one side. The emitters convert no f64 here, which would be rounded twice.
  template <typename OpTy> LogicalResult splitConversion(OpTy op) {
    Type from = op.getIn().getType(), to = op.getType();
    if (isa<VectorType>(to))
      return op.emitOpError("converts a vector of small floats");
    if (from.isF32() || to.isF32())
      return success();
    OpBuilder builder(op);
    Type f32 = builder.getF32Type();
    auto step = [&](Value value, Type type) -> Value {
      unsigned width = value.getType().getIntOrFloatBitWidth();
      if (width < type.getIntOrFloatBitWidth())
        return arith::ExtFOp::create(builder, op.getLoc(), type, value);
      return arith::TruncFOp::create(builder, op.getLoc(), type, value);
    };
    op.replaceAllUsesWith(step(step(op.getIn(), f32), to));
    op.erase();
    return success();
  }

  /// Sign changes are bit operations where the sign is a bit of its own.
  bool expandSign(Operation *op) {
    Type type = op->getResult(0).getType();
    if (isa<VectorType>(type))
      return false;
    SmallFloat format = *smallFloatOf(type);
    if (format.special == SmallFloat::Special::NegativeZero || format.special == SmallFloat::Special::ExponentOnly)
      return false;
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Type integer = builder.getIntegerType(format.bits);
    Value bits = arith::BitcastOp::create(builder, loc, integer, op->getOperand(0));
    auto constant = [&](uint32_t value) {
      return arith::ConstantOp::create(builder, loc, IntegerAttr::get(integer, APInt(format.bits, value)));
    };
    Value changed = isa<math::AbsFOp>(op)
                        ? arith::AndIOp::create(builder, loc, bits, constant(format.magnitudeMask())).getResult()
                        : arith::XOrIOp::create(builder, loc, bits, constant(format.signBit())).getResult();
    op->getResult(0).replaceAllUsesWith(arith::BitcastOp::create(builder, loc, type, changed));
    op->erase();
    return true;
  }

  // --- conversions between a small type and f32

  static bool isExtension(Operation *op) { return isa<arith::ExtFOp>(op); }
  static Type smallType(Operation *op) {
    return isExtension(op) ? op->getOperand(0).getType() : op->getResult(0).getType();
  }

  /// In words of the bits of f16.
  bool isByHalves(Operation *op) const { return !hasHardware && isExtension(op) && becomesHalves(smallType(op)); }
  bool isByHardware(Operation *op) const { return hasHardware && !hardwareName(smallType(op)).empty(); }
  /// Conversions of one kind that share instructions.
  size_t mostTogether(Operation *op) const { return isByHardware(op) ? 2 : isByHalves(op) ? 4 : 1; }

  /// Expands them where the first is, and leaves none.
  void expandGroup(SmallVectorImpl<Operation *> &group) {
    if (group.empty())
      return;
    if (isByHardware(group.front()))
      expandByHardware(group, OpBuilder(group.front()));
    else if (isByHalves(group.front()))
      expandByHalves(group, OpBuilder(group.front()));
    else
      expandOne(group.front());
    group.clear();
  }

  static void expandOne(Operation *op) {
    OpBuilder builder(op);
    SmallFloat format = *smallFloatOf(smallType(op));
    Type integer = builder.getIntegerType(format.bits);
    Value result;
    if (isExtension(op)) {
      Value raw = arith::BitcastOp::create(builder, op->getLoc(), integer, op->getOperand(0));
      result = extendSmallFloat(builder, op->getLoc(), raw, format);
    } else {
      Value raw = roundToSmallFloat(builder, op->getLoc(), op->getOperand(0), format);
      result = arith::BitcastOp::create(builder, op->getLoc(), op->getResult(0).getType(), raw);
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  /// Can a conversion be made together with others of its kind before it? It moves to them, or those wait for it.
  static bool joins(ArrayRef<Operation *> group, Operation *op) {
    if (moveOperandBefore(op, group))
      return true;
    if (group.size() != 1 || !moveUsersBehind(group.front(), op))
      return false;
    group.front()->moveBefore(op);
    return true;
  }

  /// What packs a value into words and unpacks it: as many operations may move with a conversion.
  static constexpr size_t maxMoved = 4;
  static bool canMove(Operation *op) { return isPure(op) && op->getNumRegions() == 0; }
  static void sortInBlock(SmallVectorImpl<Operation *> &ops) {
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  }

  /// Makes the operand of `second` known at the first of `group`, operations before it in its block.
  static bool moveOperandBefore(Operation *second, ArrayRef<Operation *> group) {
    Operation *first = group.front();
    SmallVector<Operation *> moved;
    SmallVector<Value> needed = {second->getOperand(0)};
    while (!needed.empty()) {
      Operation *definition = needed.pop_back_val().getDefiningOp();
      if (!definition || definition->getBlock() != first->getBlock() || definition->isBeforeInBlock(first) ||
          llvm::is_contained(moved, definition))
        continue;
      if (!canMove(definition) || llvm::is_contained(group, definition) || moved.size() == maxMoved)
        return false;
      moved.push_back(definition);
      llvm::append_range(needed, definition->getOperands());
    }
    sortInBlock(moved);
    for (Operation *definition : moved)
      definition->moveBefore(first);
    return true;
  }

  /// Makes everything that uses `first` come after `second`, an operation behind it in its block.
  static bool moveUsersBehind(Operation *first, Operation *second) {
    SmallVector<Operation *> moved;
    SmallVector<Operation *> users = {first};
    while (!users.empty())
      for (Operation *user : users.pop_back_val()->getUsers()) {
        if (user->getBlock() == second->getBlock() && second->isBeforeInBlock(user))
          continue;
        if (user->getBlock() != second->getBlock() || user == second || !canMove(user))
          return false;
        if (llvm::is_contained(moved, user))
          continue;
        if (moved.size() == maxMoved)
          return false;
        moved.push_back(user);
        users.push_back(user);
      }
    sortInBlock(moved);
    for (Operation *user : llvm::reverse(moved))
      user->moveAfter(second);
    return true;
  }

  static Value intrinsic(OpBuilder &builder, Location loc, Type type, const Twine &name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(name), operands).getResult(0);
  }

  static void expandByHalves(ArrayRef<Operation *> ops, OpBuilder builder) {
    Location loc = ops.front()->getLoc();
    SmallVector<Value> raw;
    for (Operation *op : ops)
      raw.push_back(arith::BitcastOp::create(builder, loc, builder.getI8Type(), op->getOperand(0)));
    SmallVector<Value> halves = extendToHalves(builder, loc, raw, smallType(ops.front()));
    SmallVector<Value> results;
    for (Value half : halves)
      results.push_back(arith::ExtFOp::create(builder, loc, builder.getF32Type(), half));
    replace(ops, results);
  }

  static void replace(ArrayRef<Operation *> ops, ArrayRef<Value> results) {
    for (auto [op, result] : llvm::zip_equal(ops, results)) {
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }

  void expandByHardware(ArrayRef<Operation *> ops, OpBuilder builder) {
    Location loc = ops.front()->getLoc();
    StringRef name = hardwareName(smallType(ops.front()));
    Type i8 = builder.getI8Type(), i16 = builder.getIntegerType(16), f32 = builder.getF32Type();
    SmallVector<Value> results;
    if (isExtension(ops.front())) {
      Value packed;
      for (auto [lane, op] : llvm::enumerate(ops)) {
        Value raw = arith::BitcastOp::create(builder, loc, i8, op->getOperand(0));
        raw = arith::ExtUIOp::create(builder, loc, i16, raw);
        if (lane == 0) {
          packed = raw;
          continue;
        }
        Value eight = arith::ConstantIntOp::create(builder, loc, i16, 8);
        packed = arith::OrIOp::create(builder, loc, packed, arith::ShLIOp::create(builder, loc, raw, eight));
      }
      Value halves = intrinsic(builder, loc, VectorType::get({2}, builder.getF16Type()),
                               "llvm.nvvm." + name + ".to.f16x2.rn", packed);
      for (unsigned lane = 0; lane < ops.size(); ++lane) {
        Value half = vector::ExtractOp::create(builder, loc, halves, lane);
        results.push_back(arith::ExtFOp::create(builder, loc, f32, half));
      }
    } else {
      // The first operand of the instruction lands in the upper byte.
      Value low = ops.front()->getOperand(0), high = ops.back()->getOperand(0);
      Value packed = intrinsic(builder, loc, i16, "llvm.nvvm.ff.to." + name + ".rn", {high, low});
      for (auto [lane, op] : llvm::enumerate(ops)) {
        Value shift = arith::ConstantIntOp::create(builder, loc, i16, 8 * lane);
        Value raw = lane == 0 ? packed : arith::ShRUIOp::create(builder, loc, packed, shift).getResult();
        raw = arith::TruncIOp::create(builder, loc, i8, raw);
        raw = undoSaturation(builder, loc, raw, op->getOperand(0), *smallFloatOf(smallType(op)));
        results.push_back(arith::BitcastOp::create(builder, loc, smallType(op), raw));
      }
    }
    replace(ops, results);
  }

  /// The hardware turns what overflows into the largest finite value; HLO wants infinity or NaN. NaN is right already.
  static Value undoSaturation(OpBuilder &builder, Location loc, Value raw, Value value, const SmallFloat &format) {
    Type i32 = builder.getI32Type(), i8 = builder.getI8Type();
    Value bits = arith::BitcastOp::create(builder, loc, i32, value);
    Value mask = arith::ConstantIntOp::create(builder, loc, i32, 0x7FFFFFFF);
    Value magnitude = arith::AndIOp::create(builder, loc, bits, mask);
    // One unsigned comparison for (limit, infinity].
    uint32_t first = format.largestRoundingToFinite() + 1, infinity = 0x7F800000;
    Value offset =
        arith::SubIOp::create(builder, loc, magnitude, arith::ConstantIntOp::create(builder, loc, i32, first));
    Value overflows = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, offset,
                                            arith::ConstantIntOp::create(builder, loc, i32, infinity - first));
    Value signMask = arith::ConstantIntOp::create(builder, loc, i8, -128);
    Value special = arith::ConstantIntOp::create(builder, loc, i8, format.firstNonFinite());
    Value sign = arith::AndIOp::create(builder, loc, raw, signMask);
    return arith::SelectOp::create(builder, loc, overflows, arith::OrIOp::create(builder, loc, sign, special), raw);
  }

  bool hasHardware;
};

struct ExpandFloatsPass : hloc::impl::ExpandFloatsBase<ExpandFloatsPass> {
  using Base::Base;
  void runOnOperation() override {
    // sm_89 has the instructions only from PTX ISA 8.1 on, which is newer than what knows the target.
    if (failed(FloatExpansion(computeCapability >= 90).run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
