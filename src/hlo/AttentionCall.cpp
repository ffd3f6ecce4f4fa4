#include "hloc/hlo/AttentionCall.h"

#include "BackendConfig.h"
#include "CallReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace hloc {
namespace {

struct Target {
  bool isGradient = false, hasBias = false;
};

std::optional<Target> targetOf(llvm::StringRef name) {
  Target target;
  if (!name.consume_front("__cudnn$fmha"))
    return std::nullopt;
  target.hasBias = name.consume_front("ScaleBias");
  if (!name.consume_front("Softmax"))
    return std::nullopt;
  (void)name.consume_front("Dropout");
  target.isGradient = name.consume_front("Backward");
  return name.empty() ? std::optional(target) : std::nullopt;
}

/// A number, or one in quotes.
std::optional<int64_t> integerOf(const llvm::json::Value *value) {
  if (!value)
    return std::nullopt;
  int64_t number = 0;
  if (auto text = value->getAsString())
    return text->getAsInteger(10, number) ? std::nullopt : std::optional(number);
  return value->getAsInteger();
}

/// Fits a call to its target, up to the first thing that does not.
class Reader : CallReader {
public:
  Reader(const HloInstruction &call, const Target &target, std::string &why) : CallReader(call, why), target(target) {}

  std::optional<AttentionCall> read() {
    const llvm::json::Object whole = readBackendConfig(call.string(AttributeKey::BackendConfig));
    const llvm::json::Object *config = whole.getObject("cudnn_fmha_backend_config");
    made.isGradient = target.isGradient;
    if (!config || !readConfig(*config) || call.hasSideEffect())
      return failed(
          "its `backend_config` does not say all of `fmha_scale`, `mask_type` and how operands are multiplied");
    if (why.empty())
      fitShapes();
    return why.empty() ? std::optional(made) : std::nullopt;
  }

private:
  bool readConfig(const llvm::json::Object &config) {
    const std::optional<double> scale = config.getNumber("fmha_scale");
    const auto mask = config.getString("mask_type");
    const llvm::json::Object *product =
        config.getObject(target.isGradient ? "bmm2_grad_gemm2_dot_dimension_numbers" : "bmm1_dot_dimension_numbers");
    const llvm::json::Array *batch = product ? product->getArray("lhs_batch_dimensions") : nullptr;
    if (!scale || !mask || !batch || batch->size() != 2 || integerOf(&(*batch)[0]) != 0)
      return false;
    made.scale = *scale;
    const std::optional<int64_t> heads = integerOf(&(*batch)[1]);
    made.areHeadsFirst = heads == 1;
    if (!made.areHeadsFirst && heads != 2)
      return false;
    made.isCausal = *mask == "CAUSAL" || *mask == "PADDING_CAUSAL";
    isPadded = *mask == "PADDING" || *mask == "PADDING_CAUSAL";
    made.window = integerOf(config.get("sliding_window_length")).value_or(0);
    if (!made.isCausal && !isPadded && *mask != "NO_MASK")
      failed("its mask is " + mask->str());
    if (config.getNumber("dropout_rate").value_or(0) != 0)
      failed("it drops weights at random");
    if (config.getBoolean("is_paged_attention").value_or(false))
      failed("its keys are in pages");
    if (integerOf(config.get("max_seg_per_batch")).value_or(1) != 1)
      failed("several sequences are in one of its batch");
    return true;
  }

  const Shape &operand(unsigned i) const { return call.operand(i)->shape(); }

  /// [b, t, n, h], or [b, n, t, h] with heads first.
  Shape arranged(int64_t length, int64_t heads, int64_t size) const {
    return Shape::array(type, made.areHeadsFirst ? llvm::ArrayRef<int64_t>{made.batch, heads, length, size}
                                                 : llvm::ArrayRef<int64_t>{made.batch, length, heads, size});
  }
  Shape result(int64_t heads, int64_t length, int64_t size) const {
    return Shape::array(type, {made.batch, heads, length, size});
  }

  /// Sizes are those of the first three operands.
  void readSizes() {
    for (unsigned i = 0; i < 3; ++i)
      if (call.numOperands() <= i || !operand(i).isArray() || operand(i).rank() != 4 || operand(i).hasDynamicDims() ||
          operand(i).numElements() == 0)
        return (void)failed("it has no queries, keys and values of four dimensions");
    const unsigned ofHeads = made.areHeadsFirst ? 1 : 2, ofLength = 3 - ofHeads;
    type = operand(0).elementType();
    made.batch = operand(0).dim(0);
    made.heads = operand(0).dim(ofHeads);
    made.queries = operand(0).dim(ofLength);
    made.size = operand(0).dim(3);
    made.keyHeads = operand(1).dim(ofHeads);
    made.keys = operand(1).dim(ofLength);
    made.valueSize = operand(2).dim(3);
    if (type != ElementType::BF16 && type != ElementType::F16)
      failed("its queries are " + operand(0).toString(false));
    if (haveTooManyScores())
      failed("its scores are too many");
    if (made.heads % made.keyHeads != 0)
      failed("it has " + std::to_string(made.heads) + " heads of queries for " + std::to_string(made.keyHeads));
  }

  /// An array of them has no more bytes than a text may have, and 32 bits tell their positions.
  bool haveTooManyScores() const {
    constexpr int64_t bytesOfScore = 4, most = std::numeric_limits<int32_t>::max();
    int64_t bytes = bytesOfScore;
    for (int64_t size : {made.batch, made.heads, made.queries, made.keys})
      if (llvm::MulOverflow(bytes, size, bytes))
        return true;
    return made.queries > most || made.keys > most;
  }

  void fitShapes() {
    readSizes();
    if (!why.empty())
      return;
    const unsigned own = target.isGradient ? 5 : 3, outputs = target.isGradient ? 1 : 0;
    const unsigned count = own + outputs + (target.hasBias ? 1 : 0) + (isPadded ? 2 : 0);
    if (call.numOperands() != count)
      return (void)failed("it has " + std::to_string(call.numOperands()) + " operands, where " + std::to_string(count) +
                          " are expected");
    fit(operand(1), arranged(made.keys, made.keyHeads, made.size), "operand 1");
    fit(operand(2), arranged(made.keys, made.keyHeads, made.valueSize), "operand 2");
    const Shape output = arranged(made.queries, made.heads, made.valueSize), statistics = statisticsShape();
    if (target.hasBias) {
      made.bias = own;
      fitBias(operand(own));
    }
    if (target.isGradient) {
      fit(operand(AttentionCall::statistics), statistics, "operand 3");
      fit(operand(AttentionCall::outputGradient), output, "operand 4");
      fit(operand(made.output()), output, "operand " + std::to_string(made.output()));
    }
    if (isPadded) {
      made.queryLengths = count - 2;
      made.keyLengths = count - 1;
      for (unsigned i : {count - 2, count - 1})
        fit(operand(i), Shape::array(ElementType::S32, {made.batch}), "operand " + std::to_string(i));
    }
    fitResults();
  }

  Shape statisticsShape() const { return Shape::array(ElementType::F32, {made.batch, made.heads, made.queries}); }

  void fitBias(const Shape &bias) {
    auto isAny = [](int64_t given, int64_t wanted) { return given == 1 || given == wanted; };
    if (!bias.isArray() || bias.rank() != 4 || !isFloat(bias.elementType()) || !isAny(bias.dim(0), made.batch) ||
        !isAny(bias.dim(1), made.heads) || bias.dim(2) != made.queries || bias.dim(3) != made.keys)
      failed("its bias is " + bias.toString(false));
  }

  /// The last one is scratch memory.
  void fitResults() {
    llvm::SmallVector<Shape> wanted = {result(made.heads, made.queries, made.valueSize)};
    const size_t given = call.shape().isTuple() ? call.shape().elements().size() : 0;
    if (target.isGradient) {
      wanted = {result(made.heads, made.queries, made.size), result(made.keyHeads, made.keys, made.size),
                result(made.keyHeads, made.keys, made.valueSize)};
      made.hasBiasGradient = given == 5 && made.bias;
      if (made.hasBiasGradient)
        wanted.push_back(operand(*made.bias));
    } else if (given == 3) {
      made.hasStatistics = true;
      wanted.push_back(statisticsShape());
    }
    if (given != wanted.size() + 1 || !call.shape().elements().back().isArray())
      return (void)failed("its result is " + call.shape().toString(false));
    for (auto [i, shape] : llvm::enumerate(wanted))
      fit(call.shape().element(unsigned(i)), shape, "result " + std::to_string(i));
  }

  const Target &target;
  ElementType type = ElementType::BF16;
  bool isPadded = false;
  AttentionCall made;
};

} // namespace

std::optional<AttentionCall> AttentionCall::of(const HloInstruction &call, std::string &why) {
  if (call.opcode() != Opcode::CustomCall)
    return std::nullopt;
  const std::optional<Target> target = targetOf(call.string(AttributeKey::CustomCallTarget));
  return target ? Reader(call, *target, why).read() : std::nullopt;
}

} // namespace hloc
