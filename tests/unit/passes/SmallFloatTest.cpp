// The emitted arithmetic is evaluated by MLIR's constant folding and compared with APFloat, which knows the same
// formats.
#include "passes/SmallFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace mlir;
using namespace hloc;

namespace {

/// A straight line of foldable ops with one input.
class FoldedFunction {
public:
  FoldedFunction(MLIRContext &context, Type input, std::function<Value(OpBuilder &, Location, Value)> emit)
      : module(ModuleOp::create(UnknownLoc::get(&context))) {
    argument = module->getBody()->addArgument(input, module->getLoc());
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    result = emit(builder, module->getLoc(), argument);
  }

  Attribute operator()(Attribute input) {
    llvm::DenseMap<Value, Attribute> values = {{argument, input}};
    for (Operation &op : *module->getBody()) {
      SmallVector<Attribute> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values.at(operand));
      SmallVector<OpFoldResult> folded;
      REQUIRE(succeeded(op.fold(operands, folded)));
      REQUIRE(folded.size() == 1);
      Attribute value = dyn_cast<Attribute>(folded[0]);
      values[op.getResult(0)] = value ? value : values.at(cast<Value>(folded[0]));
    }
    return values.at(result);
  }

private:
  OwningOpRef<ModuleOp> module;
  Value argument, result;
};

/// What HLO says f32 rounds to.
uint32_t expectedBits(float value, FloatType type, const SmallFloat &format) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if (format.special == SmallFloat::Special::ExponentOnly) {
    int32_t b = int32_t(bits);
    return b <= 0 || b >= 0x7F400000 ? 0xFF : b <= 0x400000 ? 0 : uint32_t(b + 0x400000) >> 23;
  }
  llvm::APFloat converted(value);
  if (format.special == SmallFloat::Special::None && converted.isInfinity()) // saturates; APFloat has no opinion
    return (format.firstNonFinite() - 1) | (converted.isNegative() ? format.signBit() : 0);
  bool losesInfo;
  converted.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return uint32_t(converted.bitcastToAPInt().getZExtValue());
}

bool isNanPattern(uint32_t bits, FloatType type) {
  return llvm::APFloat(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits)).isNaN();
}

std::vector<FloatType> allTypes(MLIRContext *context) {
  return {Float8E5M2Type::get(context),        Float8E4M3Type::get(context),     Float8E3M4Type::get(context),
          Float8E4M3FNType::get(context),      Float8E5M2FNUZType::get(context), Float8E4M3FNUZType::get(context),
          Float8E4M3B11FNUZType::get(context), Float8E8M0FNUType::get(context),  Float6E3M2FNType::get(context),
          Float6E2M3FNType::get(context),      Float4E2M1FNType::get(context)};
}

/// Every value of the format, the midpoints between neighbours, what lies just beside both, and random bits.
std::vector<float> interestingInputs(FloatType type) {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               INFINITY,
                               -INFINITY,
                               std::numeric_limits<float>::denorm_min(),
                               1e30f,
                               -1e30f,
                               std::numeric_limits<float>::max(),
                               std::ldexp(1.0f, -126),
                               std::ldexp(1.5f, 127)};
  std::vector<float> exact;
  for (uint32_t bits = 0; bits < (1u << type.getWidth()); ++bits) {
    llvm::APFloat value(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits));
    if (!value.isFinite())
      continue;
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    exact.push_back(value.convertToFloat());
  }
  std::sort(exact.begin(), exact.end());
  for (size_t i = 0; i < exact.size(); ++i) {
    std::vector<float> centres = {exact[i]};
    if (i + 1 < exact.size())
      centres.push_back(float((double(exact[i]) + exact[i + 1]) / 2));
    for (float centre : centres)
      for (float value : {centre, std::nextafter(centre, -INFINITY), std::nextafter(centre, INFINITY)})
        values.push_back(value);
  }
  // The step beyond the largest finite value, where overflow begins.
  float last = exact.back(), step = last - exact[exact.size() - 2];
  for (float factor : {0.49f, 0.5f, 0.51f, 1.0f, 2.0f})
    values.insert(values.end(), {last + factor * step, -(last + factor * step)});
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    float value = llvm::bit_cast<float>(uint32_t(random()));
    if (!std::isnan(value))
      values.push_back(value);
  }
  return values;
}

} // namespace

TEST_CASE("small floats: extension of every bit pattern") {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  for (FloatType type : allTypes(&context)) {
    SmallFloat format = *smallFloatOf(type);
    Type integer = IntegerType::get(&context, format.bits);
    FoldedFunction extend(context, integer, [&](OpBuilder &builder, Location loc, Value raw) {
      return extendSmallFloat(builder, loc, raw, format);
    });
    for (uint32_t bits = 0; bits < (1u << format.bits); ++bits) {
      llvm::APFloat expected(type.getFloatSemantics(), llvm::APInt(format.bits, bits));
      bool losesInfo;
      expected.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      llvm::APFloat actual =
          cast<FloatAttr>(extend(IntegerAttr::get(integer, llvm::APInt(format.bits, bits)))).getValue();
      INFO("bits " << bits << " of a type of " << format.bits << " bits, bias " << format.bias);
      if (expected.isNaN())
        CHECK(actual.isNaN());
      else
        CHECK(actual.bitwiseIsEqual(expected));
    }
  }
}

TEST_CASE("small floats: rounding at and around every value, midpoint and limit") {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  for (FloatType type : allTypes(&context)) {
    SmallFloat format = *smallFloatOf(type);
    FoldedFunction round(context, Float32Type::get(&context), [&](OpBuilder &builder, Location loc, Value value) {
      return roundToSmallFloat(builder, loc, value, format);
    });
    auto apply = [&](float value) {
      return uint32_t(
          cast<IntegerAttr>(round(FloatAttr::get(Float32Type::get(&context), value))).getValue().getZExtValue());
    };
    for (float value : interestingInputs(type)) {
      INFO("value " << value << ", type of " << format.bits << " bits, bias " << format.bias);
      CHECK(apply(value) == expectedBits(value, type, format));
    }
    if (format.special != SmallFloat::Special::None)
      CHECK(isNanPattern(apply(std::numeric_limits<float>::quiet_NaN()), type));
  }
}
