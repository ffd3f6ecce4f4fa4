#include "hloc/hlo/GemmCall.h"

#include "BackendConfig.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace hloc {

namespace {

using Activation = GemmCall::Activation;

struct Epilogue {
  Activation activation;
  bool hasBias, hasAux;
};

std::optional<Epilogue> epilogueOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<Epilogue>>(name)
      .Case("DEFAULT", Epilogue{Activation::None, false, false})
      .Case("BIAS", Epilogue{Activation::None, true, false})
      .Case("RELU", Epilogue{Activation::Relu, false, false})
      .Case("BIAS_RELU", Epilogue{Activation::Relu, true, false})
      .Case("GELU", Epilogue{Activation::Gelu, false, false})
      .Case("GELU_AUX", Epilogue{Activation::Gelu, false, true})
      .Case("BIAS_GELU", Epilogue{Activation::Gelu, true, false})
      .Case("BIAS_GELU_AUX", Epilogue{Activation::Gelu, true, true})
      .Case("SILU", Epilogue{Activation::Silu, false, false})
      .Case("BIAS_SILU", Epilogue{Activation::Silu, true, false})
      .Default(std::nullopt);
}

/// Numbers of dimensions, which JSON has as strings (64 bits) or as numbers; those of a rank, each once.
bool readDims(const llvm::json::Object &numbers, llvm::StringRef key, unsigned rank,
              llvm::SmallVectorImpl<int64_t> &dims) {
  const llvm::json::Array *array = numbers.getArray(key);
  if (!array)
    return !numbers.get(key); // an empty list need not be there
  for (const llvm::json::Value &value : *array) {
    int64_t dim = -1;
    if (std::optional<int64_t> number = value.getAsInteger())
      dim = *number;
    else if (std::optional<llvm::StringRef> text = value.getAsString(); !text || text->getAsInteger(10, dim))
      return false;
    if (dim < 0 || dim >= int64_t(rank) || llvm::is_contained(dims, dim))
      return false;
    dims.push_back(dim);
  }
  return true;
}

bool sameSizes(const Shape &x, llvm::ArrayRef<int64_t> xDims, const Shape &y, llvm::ArrayRef<int64_t> yDims) {
  if (xDims.size() != yDims.size())
    return false;
  for (auto [a, b] : llvm::zip(xDims, yDims))
    if (x.dim(unsigned(a)) != y.dim(unsigned(b)))
      return false;
  return true;
}

/// [batch..., free of lhs..., free of rhs...]
llvm::SmallVector<int64_t> resultDims(const GemmCall &gemm, const Shape &lhs, const Shape &rhs) {
  llvm::SmallVector<int64_t> dims;
  for (int64_t dim : gemm.lhsBatch)
    dims.push_back(lhs.dim(unsigned(dim)));
  auto addFree = [&](const Shape &shape, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> contracting) {
    for (unsigned i = 0; i < shape.rank(); ++i)
      if (!llvm::is_contained(batch, int64_t(i)) && !llvm::is_contained(contracting, int64_t(i)))
        dims.push_back(shape.dim(i));
  };
  addFree(lhs, gemm.lhsBatch, gemm.lhsContracting);
  addFree(rhs, gemm.rhsBatch, gemm.rhsContracting);
  return dims;
}

/// Factors have the kind of the result's numbers and no more bits than these.
bool isFactor(const Shape &shape, const Shape &result) {
  if (!shape.isArray())
    return false;
  const ElementType type = shape.elementType(), wanted = result.elementType();
  return type == wanted || (isFloat(type) && isFloat(wanted) && bitWidth(type) <= bitWidth(wanted)) ||
         (isInteger(type) && isInteger(wanted) && bitWidth(type) <= bitWidth(wanted));
}

/// Results beside the product: the activation's operand, where there is one, and scratch memory.
bool fitResults(const GemmCall &gemm, const Shape &shape) {
  if (!shape.isTuple())
    return shape.isArray() && !gemm.hasAux;
  const size_t known = gemm.hasAux ? 2 : 1, count = shape.elements().size();
  return (count == known || count == known + 1) &&
         llvm::all_of(shape.elements(), [](const Shape &element) { return element.isArray(); }) &&
         (!gemm.hasAux || shape.element(1) == shape.element(0)) &&
         (count == known || bitWidth(shape.element(unsigned(known)).elementType()) == 8);
}

constexpr llvm::StringLiteral noAlgorithm = "ALG_UNSET", tf32Algorithm = "ALG_DOT_TF32_TF32_F32";

llvm::StringRef algorithmOf(const llvm::json::Object &config) {
  const llvm::json::Object *precision = config.getObject("precision_config");
  return precision ? precision->getString("algorithm").value_or(noAlgorithm) : llvm::StringRef(noAlgorithm);
}

bool isPrecise(const llvm::json::Object &config) {
  const llvm::json::Object *precision = config.getObject("precision_config");
  if (!precision)
    return false;
  const llvm::json::Array *operands = precision->getArray("operand_precision");
  return algorithmOf(config) != noAlgorithm ||
         (operands && llvm::any_of(*operands, [](const auto &value) { return value.getAsString() != "DEFAULT"; }));
}

/// The numbers of the configuration, which is the call's own or stands in one for all calls.
bool readConfiguration(llvm::StringRef text, const Shape &lhs, const Shape &rhs, GemmCall &gemm, Epilogue &epilogue) {
  const llvm::json::Object whole = readBackendConfig(text);
  const llvm::json::Object *inner = whole.getObject("gemm_backend_config"), *config = inner ? inner : &whole;
  const llvm::json::Object *numbers = config->getObject("dot_dimension_numbers");
  if (!numbers || config->getNumber("alpha_imag").value_or(0) != 0 ||
      config->getBoolean("damax_output").value_or(false))
    return false;
  gemm.alpha = config->getNumber("alpha_real").value_or(0); // as the protocol buffer has it
  gemm.beta = config->getNumber("beta").value_or(0);
  gemm.isPrecise = isPrecise(*config);
  gemm.allowsTf32 = algorithmOf(*config) == tf32Algorithm;
  std::optional<Epilogue> known = epilogueOf(config->getString("epilogue").value_or("DEFAULT"));
  if (!known)
    return false;
  epilogue = *known;
  return readDims(*numbers, "lhs_contracting_dimensions", lhs.rank(), gemm.lhsContracting) &&
         readDims(*numbers, "rhs_contracting_dimensions", rhs.rank(), gemm.rhsContracting) &&
         readDims(*numbers, "lhs_batch_dimensions", lhs.rank(), gemm.lhsBatch) &&
         readDims(*numbers, "rhs_batch_dimensions", rhs.rank(), gemm.rhsBatch);
}

bool overlap(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  return llvm::any_of(a, [&](int64_t dim) { return llvm::is_contained(b, dim); });
}

} // namespace

bool isGemmTarget(llvm::StringRef target) { return target == "__cublas$gemm" || target == "__cublas$lt$matmul"; }

std::optional<GemmCall> readGemmCall(const HloInstruction &call) {
  if (!isGemmTarget(call.string(AttributeKey::CustomCallTarget)) || call.numOperands() < 2 ||
      (call.shape().isTuple() && call.shape().elements().empty()))
    return std::nullopt;
  GemmCall gemm;
  const Shape &lhs = call.operand(0)->shape(), &rhs = call.operand(1)->shape(), &result = call.resultShape();
  if (!result.isArray() || isPred(result.elementType()) || !isFactor(lhs, result) || !isFactor(rhs, result))
    return std::nullopt;
  Epilogue epilogue{};
  if (!readConfiguration(call.string(AttributeKey::BackendConfig), lhs, rhs, gemm, epilogue))
    return std::nullopt;
  if (overlap(gemm.lhsBatch, gemm.lhsContracting) || overlap(gemm.rhsBatch, gemm.rhsContracting) ||
      !sameSizes(lhs, gemm.lhsBatch, rhs, gemm.rhsBatch) ||
      !sameSizes(lhs, gemm.lhsContracting, rhs, gemm.rhsContracting) ||
      result.dims() != llvm::ArrayRef(resultDims(gemm, lhs, rhs)))
    return std::nullopt;
  gemm.activation = epilogue.activation;
  gemm.hasAux = epilogue.hasAux;
  unsigned operands = 2;
  if (gemm.beta != 0)
    gemm.addend = operands++;
  if (epilogue.hasBias)
    gemm.bias = operands++;
  if (call.numOperands() != operands || !fitResults(gemm, call.shape()))
    return std::nullopt;
  if (gemm.addend &&
      (!isFactor(call.operand(gemm.addend)->shape(), result) || !call.operand(gemm.addend)->shape().sameDims(result)))
    return std::nullopt;
  if (gemm.bias && (result.rank() == 0 || !isFactor(call.operand(gemm.bias)->shape(), result) ||
                    call.operand(gemm.bias)->shape().dims() != llvm::ArrayRef(result.dims().back())))
    return std::nullopt;
  const bool isWhole = gemm.alpha == 1 && (gemm.beta == 0 || gemm.beta == 1);
  const bool isReal = isFloat(result.elementType());
  if ((isInteger(result.elementType()) && !isWhole) || (!isReal && gemm.activation != Activation::None))
    return std::nullopt;
  return gemm;
}

std::optional<GemmCall> gemmOfDot(const HloInstruction &dot) {
  GemmCall gemm;
  auto take = [&](AttributeKey key, llvm::SmallVectorImpl<int64_t> &dims) { llvm::append_range(dims, dot.ints(key)); };
  take(AttributeKey::LhsContractingDims, gemm.lhsContracting);
  take(AttributeKey::RhsContractingDims, gemm.rhsContracting);
  take(AttributeKey::LhsBatchDims, gemm.lhsBatch);
  take(AttributeKey::RhsBatchDims, gemm.rhsBatch);
  gemm.isPrecise = llvm::any_of(dot.ints(AttributeKey::OperandPrecision),
                                [](int64_t precision) { return precision != int64_t(Precision::Default); });
  const ElementType type = dot.operand(0)->shape().elementType();
  switch (dot.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset)) {
  case DotAlgorithm::Unset:
    return gemm;
  case DotAlgorithm::TF32TF32F32:
    gemm.isPrecise = gemm.allowsTf32 = true;
    return type == ElementType::F32 ? std::optional(gemm) : std::nullopt;
  case DotAlgorithm::F32F32F32:
    return type == ElementType::F32 ? std::optional(gemm) : std::nullopt;
  case DotAlgorithm::BF16BF16F32:
    return type == ElementType::BF16 ? std::optional(gemm) : std::nullopt;
  case DotAlgorithm::F16F16F32:
    return type == ElementType::F16 ? std::optional(gemm) : std::nullopt;
  case DotAlgorithm::F64F64F64:
    return type == ElementType::F64 ? std::optional(gemm) : std::nullopt;
  default:
    return std::nullopt;
  }
}

std::string gemmConfiguration(const GemmCall &gemm, llvm::StringRef epilogue) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  auto print = [&](llvm::StringRef key, llvm::ArrayRef<int64_t> dims) { // 64 bits are strings in JSON
    json.attributeArray(key, [&] {
      for (int64_t dim : dims)
        json.value(std::to_string(dim));
    });
  };
  json.object([&] {
    json.attributeObject("gemm_backend_config", [&] {
      json.attribute("alpha_real", gemm.alpha);
      json.attribute("alpha_imag", 0);
      json.attribute("beta", gemm.beta);
      json.attributeObject("dot_dimension_numbers", [&] {
        print("lhs_contracting_dimensions", gemm.lhsContracting);
        print("rhs_contracting_dimensions", gemm.rhsContracting);
        print("lhs_batch_dimensions", gemm.lhsBatch);
        print("rhs_batch_dimensions", gemm.rhsBatch);
      });
      json.attributeObject("precision_config", [&] {
        const char *precision = gemm.isPrecise && !gemm.allowsTf32 ? "HIGHEST" : "DEFAULT";
        json.attributeArray("operand_precision", [&] {
          json.value(precision);
          json.value(precision);
        });
        json.attribute("algorithm", gemm.allowsTf32 ? tf32Algorithm : noAlgorithm);
      });
      json.attribute("epilogue", epilogue);
    });
  });
  return text;
}

} // namespace hloc
