#include "passes/MathToLlvm.h"

#include "passes/PassDetail.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using namespace hloc;

namespace {

/// An op that is one LLVM intrinsic on every type.
template <typename MathOp, typename LlvmOp> struct ToIntrinsic : ConvertOpToLLVMPattern<MathOp> {
  using ConvertOpToLLVMPattern<MathOp>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LlvmOp>(op, this->getTypeConverter()->convertType(op.getType()), adaptor.getOperands());
    return success();
  }
};

/// Counting leading or trailing zeros: of zero, the width.
template <typename MathOp, typename LlvmOp> struct ToZeroCount : ConvertOpToLLVMPattern<MathOp> {
  using ConvertOpToLLVMPattern<MathOp>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LlvmOp>(op, adaptor.getOperand(), /*isZeroPoison=*/false);
    return success();
  }
};

/// A libdevice function for f32 and one for f64; narrower floats go through f32.
template <typename MathOp> struct ToLibdevice : ConvertOpToLLVMPattern<MathOp> {
  ToLibdevice(const LLVMTypeConverter &converter, StringRef f32Name, StringRef f64Name)
      : ConvertOpToLLVMPattern<MathOp>(converter), f32Name(f32Name), f64Name(f64Name) {}

  LogicalResult matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!isa<FloatType>(type))
      return rewriter.notifyMatchFailure(op, "not a scalar float");
    Location loc = op.getLoc();
    bool isDouble = type.isF64();
    Type wide = isDouble ? Type(rewriter.getF64Type()) : Type(rewriter.getF32Type());
    SmallVector<Value> operands;
    for (Value operand : adaptor.getOperands())
      operands.push_back(isa<FloatType>(operand.getType()) && operand.getType() != wide
                             ? LLVM::FPExtOp::create(rewriter, loc, wide, operand).getResult()
                             : operand);
    auto callee = declare(op, isDouble ? f64Name : f32Name, wide, operands, rewriter);
    Value result = LLVM::CallOp::create(rewriter, loc, callee, operands).getResult();
    if (type != wide)
      result = LLVM::FPTruncOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static LLVM::LLVMFuncOp declare(MathOp op, StringRef name, Type result, ValueRange operands,
                                  ConversionPatternRewriter &rewriter) {
    auto module = op->template getParentOfType<ModuleOp>();
    if (auto existing = module.template lookupSymbol<LLVM::LLVMFuncOp>(name))
      return existing;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(operands.getTypes()));
    return LLVM::LLVMFuncOp::create(rewriter, module.getLoc(), name, type);
  }

  StringRef f32Name, f64Name;
};

/// One instruction of NVPTX for f32, perhaps one for f64, that LLVM has no general intrinsic for; narrower floats go
/// through f32.
template <typename MathOp> struct ToInstruction : ConvertOpToLLVMPattern<MathOp> {
  ToInstruction(const LLVMTypeConverter &converter, StringRef f32Name, StringRef f64Name, PatternBenefit benefit = 1)
      : ConvertOpToLLVMPattern<MathOp>(converter, benefit), f32Name(f32Name), f64Name(f64Name) {}

  LogicalResult matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    Location loc = op.getLoc();
    if (!isa<FloatType>(type))
      return rewriter.notifyMatchFailure(op, "not a scalar float");
    bool isDouble = type.isF64();
    if (isDouble && f64Name.empty())
      return rewriter.notifyMatchFailure(op, "no instruction for f64");
    Type wide = isDouble ? Type(rewriter.getF64Type()) : Type(rewriter.getF32Type());
    Value operand = adaptor.getOperand();
    if (type != wide)
      operand = LLVM::FPExtOp::create(rewriter, loc, wide, operand);
    auto name = rewriter.getStringAttr(isDouble ? f64Name : f32Name);
    Value result = LLVM::CallIntrinsicOp::create(rewriter, loc, wide, name, operand).getResult(0);
    if (type != wide)
      result = LLVM::FPTruncOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  StringRef f32Name, f64Name;
};

/// 2^x of f32 whose subnormal results may be zeros (afn): ex2.approx alone is four instructions, three of them for
/// these.
struct ToFlushedPower : ConvertOpToLLVMPattern<math::Exp2Op> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32() || !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "subnormal results are kept");
    auto name = rewriter.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32");
    rewriter.replaceOp(
        op,
        LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(), op.getType(), name, adaptor.getOperand()).getResult(0));
    return success();
  }
};

/// LLVM and ptxas make one fma of a product and a difference, whatever flags it has, unless that names its rounding.
struct ToRoundedDifference : ConvertOpToLLVMPattern<arith::SubFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(arith::SubFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!(type.isF32() || type.isF64()) || bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::contract))
      return rewriter.notifyMatchFailure(op, "may be part of an fma");
    auto name = rewriter.getStringAttr(type.isF32() ? "llvm.nvvm.add.rn.f" : "llvm.nvvm.add.rn.d");
    Value negative = LLVM::FNegOp::create(rewriter, op.getLoc(), adaptor.getRhs());
    Value both[] = {adaptor.getLhs(), negative};
    rewriter.replaceOp(op, LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(), type, name, both).getResult(0));
    return success();
  }
};

} // namespace

void hloc::populateMathToLlvmPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ToIntrinsic<math::AbsFOp, LLVM::FAbsOp>, ToIntrinsic<math::CeilOp, LLVM::FCeilOp>,
               ToIntrinsic<math::FloorOp, LLVM::FFloorOp>, ToIntrinsic<math::TruncOp, LLVM::FTruncOp>,
               ToIntrinsic<math::RoundOp, LLVM::RoundOp>, ToIntrinsic<math::RoundEvenOp, LLVM::RoundEvenOp>,
               ToIntrinsic<math::SqrtOp, LLVM::SqrtOp>, ToIntrinsic<math::FmaOp, LLVM::FMAOp>,
               ToIntrinsic<math::CopySignOp, LLVM::CopySignOp>, ToIntrinsic<math::CtPopOp, LLVM::CtPopOp>,
               ToZeroCount<math::CountLeadingZerosOp, LLVM::CountLeadingZerosOp>,
               ToZeroCount<math::CountTrailingZerosOp, LLVM::CountTrailingZerosOp>>(converter);
  patterns.add<ToInstruction<math::RsqrtOp>>(converter, "llvm.nvvm.rsqrt.approx.f", "llvm.nvvm.rsqrt.approx.d");
  patterns.add<ToLibdevice<math::ExpOp>>(converter, "__nv_expf", "__nv_exp");
  // libdevice's function is this instruction, too; to read libdevice takes longer than many a kernel's passes.
  patterns.add<ToInstruction<math::Exp2Op>>(converter, "llvm.nvvm.ex2.approx.f32", "", /*benefit=*/2);
  patterns.add<ToFlushedPower>(converter, /*benefit=*/3);
  patterns.add<ToRoundedDifference>(converter, /*benefit=*/2);
  patterns.add<ToLibdevice<math::Exp2Op>>(converter, "__nv_exp2f", "__nv_exp2");
  patterns.add<ToLibdevice<math::ExpM1Op>>(converter, "__nv_expm1f", "__nv_expm1");
  patterns.add<ToLibdevice<math::LogOp>>(converter, "__nv_logf", "__nv_log");
  patterns.add<ToLibdevice<math::Log2Op>>(converter, "__nv_log2f", "__nv_log2");
  patterns.add<ToLibdevice<math::Log10Op>>(converter, "__nv_log10f", "__nv_log10");
  patterns.add<ToLibdevice<math::Log1pOp>>(converter, "__nv_log1pf", "__nv_log1p");
  patterns.add<ToLibdevice<math::SinOp>>(converter, "__nv_sinf", "__nv_sin");
  patterns.add<ToLibdevice<math::CosOp>>(converter, "__nv_cosf", "__nv_cos");
  patterns.add<ToLibdevice<math::TanOp>>(converter, "__nv_tanf", "__nv_tan");
  patterns.add<ToLibdevice<math::AsinOp>>(converter, "__nv_asinf", "__nv_asin");
  patterns.add<ToLibdevice<math::AcosOp>>(converter, "__nv_acosf", "__nv_acos");
  patterns.add<ToLibdevice<math::AtanOp>>(converter, "__nv_atanf", "__nv_atan");
  patterns.add<ToLibdevice<math::Atan2Op>>(converter, "__nv_atan2f", "__nv_atan2");
  patterns.add<ToLibdevice<math::SinhOp>>(converter, "__nv_sinhf", "__nv_sinh");
  patterns.add<ToLibdevice<math::CoshOp>>(converter, "__nv_coshf", "__nv_cosh");
  patterns.add<ToLibdevice<math::TanhOp>>(converter, "__nv_tanhf", "__nv_tanh");
  patterns.add<ToLibdevice<math::AsinhOp>>(converter, "__nv_asinhf", "__nv_asinh");
  patterns.add<ToLibdevice<math::AcoshOp>>(converter, "__nv_acoshf", "__nv_acosh");
  patterns.add<ToLibdevice<math::AtanhOp>>(converter, "__nv_atanhf", "__nv_atanh");
  patterns.add<ToLibdevice<math::CbrtOp>>(converter, "__nv_cbrtf", "__nv_cbrt");
  patterns.add<ToLibdevice<math::ErfOp>>(converter, "__nv_erff", "__nv_erf");
  patterns.add<ToLibdevice<math::ErfcOp>>(converter, "__nv_erfcf", "__nv_erfc");
  patterns.add<ToLibdevice<math::PowFOp>>(converter, "__nv_powf", "__nv_pow");
  patterns.add<ToLibdevice<math::FPowIOp>>(converter, "__nv_powif", "__nv_powi");
  patterns.add<ToLibdevice<arith::RemFOp>>(converter, "__nv_fmodf", "__nv_fmod");
}
