// The last step: one conversion of everything that is left.
#include "passes/PassDetail.h"

#include "passes/MathToLlvm.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace hloc {
#define GEN_PASS_DEF_LOWERTOLLVM
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;
using namespace hloc::xla_gpu;

namespace {

/// gpu.thread_id and its kin: reads of 32-bit special registers, with the range the emitter gave them.
template <typename IdOp, typename X, typename Y, typename Z> struct LowerId : ConvertOpToLLVMPattern<IdOp> {
  using ConvertOpToLLVMPattern<IdOp>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(IdOp op, typename IdOp::Adaptor, ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    LLVM::ConstantRangeAttr range;
    if (std::optional<Interval> known = rangeOf(op.getResult()))
      range = LLVM::ConstantRangeAttr::get(op.getContext(), APInt(32, known->lower), APInt(32, known->upper + 1));
    Value id;
    switch (op.getDimension()) {
    case gpu::Dimension::x:
      id = X::create(rewriter, op.getLoc(), i32, range);
      break;
    case gpu::Dimension::y:
      id = Y::create(rewriter, op.getLoc(), i32, range);
      break;
    case gpu::Dimension::z:
      id = Z::create(rewriter, op.getLoc(), i32, range);
      break;
    }
    Type index = this->getTypeConverter()->convertType(op.getType());
    if (index != i32)
      id = LLVM::ZExtOp::create(rewriter, op.getLoc(), index, id);
    rewriter.replaceOp(op, id);
    return success();
  }
};

using LowerThreadId = LowerId<gpu::ThreadIdOp, NVVM::ThreadIdXOp, NVVM::ThreadIdYOp, NVVM::ThreadIdZOp>;
using LowerBlockId = LowerId<gpu::BlockIdOp, NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>;

struct LowerBarrier : ConvertOpToLLVMPattern<gpu::BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::BarrierOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::Barrier0Op>(op);
    return success();
  }
};

struct LowerShuffle : ConvertOpToLLVMPattern<gpu::ShuffleOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getValid().use_empty())
      return op.emitOpError("has a used validity result, which no pass makes");
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, i32, rewriter.getI32IntegerAttr(value));
    };
    // The low bits clamp the source lane to the warp; `up` clamps at its first lane instead.
    bool isUp = op.getMode() == gpu::ShuffleMode::UP;
    auto shuffleWord = [&](Value word) -> Value {
      return NVVM::ShflOp::create(rewriter, loc, i32, constant(-1), word, adaptor.getOffset(), constant(isUp ? 0 : 31),
                                  kindOf(op.getMode()), UnitAttr());
    };
    Value value = adaptor.getValue();
    rewriter.replaceOp(
        op, {value.getType() == i32 ? shuffleWord(value) : shuffleHalves(rewriter, loc, value, shuffleWord), Value()});
    return success();
  }

  /// The hardware moves 32-bit words. One instruction makes 64 bits of two; written as shifts it would be four.
  static Value shuffleHalves(OpBuilder &b, Location loc, Value value, llvm::function_ref<Value(Value)> shuffleWord) {
    Type i32 = b.getI32Type(), i64 = b.getI64Type(), f64 = b.getF64Type();
    Value low = LLVM::TruncOp::create(b, loc, i32, value);
    Value shift = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(32));
    Value high = LLVM::TruncOp::create(b, loc, i32, LLVM::LShrOp::create(b, loc, value, shift));
    Value halves[] = {shuffleWord(low), shuffleWord(high)};
    Value joined =
        LLVM::CallIntrinsicOp::create(b, loc, f64, b.getStringAttr("llvm.nvvm.lohi.i2d"), halves).getResult(0);
    return LLVM::BitcastOp::create(b, loc, i64, joined);
  }

  static NVVM::ShflKind kindOf(gpu::ShuffleMode mode) {
    switch (mode) {
    case gpu::ShuffleMode::XOR:
      return NVVM::ShflKind::bfly;
    case gpu::ShuffleMode::UP:
      return NVVM::ShflKind::up;
    case gpu::ShuffleMode::DOWN:
      return NVVM::ShflKind::down;
    case gpu::ShuffleMode::IDX:
      return NVVM::ShflKind::idx;
    }
    HLOC_UNREACHABLE("unknown shuffle mode");
  }
};

/// Of a whole warp, which must come here together.
struct LowerSubgroupReduce : ConvertOpToLLVMPattern<gpu::SubgroupReduceOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::SubgroupReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value value = adaptor.getValue();
    Value members = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(), rewriter.getI32IntegerAttr(-1));
    if (value.getType().isInteger(1)) {
      auto kind = op.getOp() == gpu::AllReduceOperation::AND ? NVVM::VoteSyncKind::all : NVVM::VoteSyncKind::any;
      rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, value.getType(), members, value, kind);
      return success();
    }
    std::optional<NVVM::ReduxKind> kind = kindOf(op.getOp());
    bool isFloat = kind == NVVM::ReduxKind::FMAX || kind == NVVM::ReduxKind::FMIN;
    if (!kind || !(isFloat ? value.getType().isF32() : value.getType().isInteger(32)))
      return op.emitOpError("has no instruction");
    rewriter.replaceOpWithNewOp<NVVM::ReduxOp>(op, value.getType(), value, *kind, members, /*abs=*/false,
                                               /*nan=*/isFloat);
    return success();
  }

  static std::optional<NVVM::ReduxKind> kindOf(gpu::AllReduceOperation operation) {
    switch (operation) {
    case gpu::AllReduceOperation::ADD:
      return NVVM::ReduxKind::ADD;
    case gpu::AllReduceOperation::AND:
      return NVVM::ReduxKind::AND;
    case gpu::AllReduceOperation::OR:
      return NVVM::ReduxKind::OR;
    case gpu::AllReduceOperation::XOR:
      return NVVM::ReduxKind::XOR;
    case gpu::AllReduceOperation::MAXSI:
      return NVVM::ReduxKind::MAX;
    case gpu::AllReduceOperation::MINSI:
      return NVVM::ReduxKind::MIN;
    case gpu::AllReduceOperation::MAXUI:
      return NVVM::ReduxKind::UMAX;
    case gpu::AllReduceOperation::MINUI:
      return NVVM::ReduxKind::UMIN;
    case gpu::AllReduceOperation::MAXIMUMF:
      return NVVM::ReduxKind::FMAX;
    case gpu::AllReduceOperation::MINIMUMF:
      return NVVM::ReduxKind::FMIN;
    default:
      return std::nullopt;
    }
  }
};

/// What only this project's passes read must not reach LLVM; the launch stays.
void dropProtocolAttributes(LLVM::LLVMFuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (StringRef name : {attr::invariant, attr::range, attr::sliceIndex})
      function.removeArgAttr(i, name);
}

struct LowerToLlvmPass : hloc::impl::LowerToLlvmBase<LowerToLlvmPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LowerToLLVMOptions options(&getContext());
    auto indexBits = module->getAttrOfType<IntegerAttr>(attr::indexBits);
    options.overrideIndexBitwidth(indexBits ? indexBits.getInt() : 64);
    LLVMTypeConverter converter(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateComplexToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    populateMathToLlvmPatterns(converter, patterns);
    patterns.add<LowerThreadId, LowerBlockId, LowerBarrier, LowerShuffle, LowerSubgroupReduce>(converter);
    LLVMConversionTarget target(getContext());
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addLegalOp<ModuleOp>();
    // Every pattern succeeds or fails before it changes anything: no log of changes is needed, which saves a third of
    // the time.
    ConversionConfig config;
    config.allowPatternRollback = false;
    if (failed(applyFullConversion(module, target, std::move(patterns), config)))
      return signalPassFailure();
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      dropProtocolAttributes(function);
  }
};

} // namespace

void hloc::registerNvvmDialect(mlir::DialectRegistry &registry) { registry.insert<NVVM::NVVMDialect>(); }
