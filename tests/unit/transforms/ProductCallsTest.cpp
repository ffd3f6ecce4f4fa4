// Calls of cuDNN's attention and of dots scaled by blocks, beside loops that say what they mean.
#include "RunPasses.h"
#include "SameResults.h"

#include "hloc/hlo/AttentionCall.h"

#include "fmt/format.h"

#include <cmath>
#include <limits>

using namespace hloc;
using namespace hloc::test;

namespace {

struct Sizes {
  int64_t batch = 2, heads = 2, keyHeads = 2, queries = 5, keys = 7, size = 4, valueSize = 3;
};

struct Case {
  const char *name;
  Sizes sizes;
  bool headsFirst = false;
  std::string mask = "NO_MASK";
  int64_t window = 0;
  std::string bias = ""; ///< its shape
  bool wantsStatistics = false;
  std::string more = ""; ///< of the configuration

  bool isCausal() const { return mask == "CAUSAL" || mask == "PADDING_CAUSAL"; }
  bool isPadded() const { return mask.starts_with("PADDING"); }
};

constexpr double scale = 0.5;

std::string config(const Case &of, bool isGradient) {
  return fmt::format("{{\"cudnn_fmha_backend_config\": {{\"fmha_scale\": {}, \"mask_type\": \"{}\", \"{}\": "
                     "{{\"lhs_batch_dimensions\": [\"0\", \"{}\"]}}, \"sliding_window_length\": {}{}}}}}",
                     scale, of.mask,
                     isGradient ? "bmm2_grad_gemm2_dot_dimension_numbers" : "bmm1_dot_dimension_numbers",
                     of.headsFirst ? 1 : 2, of.window, of.more);
}

/// Of operands: [b, t, n, h], or [b, n, t, h].
std::string shape(const Case &of, int64_t length, int64_t heads, int64_t size) {
  return fmt::format("bf16[{},{},{},{}]", of.sizes.batch, of.headsFirst ? heads : length,
                     of.headsFirst ? length : heads, size);
}
std::string result(const Case &of, int64_t heads, int64_t length, int64_t size) {
  return fmt::format("bf16[{},{},{},{}]", of.sizes.batch, heads, length, size);
}

/// Parameters q, k, v, then the statistics, the output's gradient and the output of a gradient, a bias, lengths.
std::string program(const Case &of, bool isGradient, const std::string &name = "") {
  const Sizes &s = of.sizes;
  const std::string statistics = fmt::format("f32[{},{},{}]", s.batch, s.heads, s.queries),
                    output = shape(of, s.queries, s.heads, s.valueSize);
  std::string text = "HloModule m\nENTRY e {\n", operands;
  int64_t number = 0;
  auto parameter = [&](const std::string &what, const std::string &type) {
    text += fmt::format(" {} = {} parameter({})\n", what, type, number++);
    operands += (operands.empty() ? "" : ", ") + what;
  };
  parameter("q", shape(of, s.queries, s.heads, s.size));
  parameter("k", shape(of, s.keys, s.keyHeads, s.size));
  parameter("v", shape(of, s.keys, s.keyHeads, s.valueSize));
  if (isGradient) {
    parameter("st", statistics);
    parameter("do", output);
  }
  if (!of.bias.empty())
    parameter("z", of.bias);
  if (isGradient)
    parameter("o", output);
  if (of.isPadded()) {
    parameter("ql", fmt::format("s32[{}]", s.batch));
    parameter("kl", fmt::format("s32[{}]", s.batch));
  }
  std::string results = result(of, s.heads, s.queries, s.valueSize);
  if (isGradient)
    results = result(of, s.heads, s.queries, s.size) + ", " + result(of, s.keyHeads, s.keys, s.size) + ", " +
              result(of, s.keyHeads, s.keys, s.valueSize) + (of.bias.empty() ? "" : ", " + of.bias);
  else if (of.wantsStatistics)
    results += ", " + statistics;
  const std::string target = !name.empty() ? name
                                           : fmt::format("__cudnn$fmha{}Softmax{}", of.bias.empty() ? "" : "ScaleBias",
                                                         isGradient ? "Backward" : "");
  return text + fmt::format(" ROOT r = ({}, u8[0]) custom-call({}), custom_call_target=\"{}\", backend_config={}\n}}\n",
                            results, operands, target, config(of, isGradient));
}

/// [b, n, t or s, h] of an operand.
double element(const Case &of, const Literal &of4, int64_t b, int64_t n, int64_t t, int64_t h) {
  const auto dims = of4.shape().dims();
  const int64_t second = of.headsFirst ? n : t, third = of.headsFirst ? t : n;
  return of4.getDouble(((b * dims[1] + second) * dims[2] + third) * dims[3] + h);
}
double biasAt(const Literal &bias, int64_t b, int64_t n, int64_t t, int64_t s) {
  const auto dims = bias.shape().dims();
  return bias.getDouble(((std::min(b, dims[0] - 1) * dims[1] + std::min(n, dims[1] - 1)) * dims[2] + t) * dims[3] + s);
}

/// Of one query of a head, by key: the weights, and the logarithm of what they were divided by.
struct Row {
  std::vector<double> weights;
  double statistic = 0;
};

struct Attention {
  const Case &of;
  const std::vector<Literal> &in;
  bool isGradient;

  const Literal &bias() const { return in[isGradient ? 5 : 3]; }
  int64_t keyHead(int64_t n) const { return n / (of.sizes.heads / of.sizes.keyHeads); }
  int64_t length(bool ofKeys, int64_t b) const { return int64_t(in[in.size() - (ofKeys ? 1 : 2)].getDouble(b)); }

  bool sees(int64_t b, int64_t t, int64_t s) const {
    return (!of.isCausal() || s <= t) && (of.window == 0 || t - s < of.window) &&
           (!of.isPadded() || (t < length(false, b) && s < length(true, b)));
  }
  double score(int64_t b, int64_t n, int64_t t, int64_t s) const {
    double sum = 0;
    for (int64_t h = 0; h < of.sizes.size; ++h)
      sum += element(of, in[0], b, n, t, h) * element(of, in[1], b, keyHead(n), s, h);
    return sum * scale + (of.bias.empty() ? 0 : biasAt(bias(), b, n, t, s));
  }
  /// `known`: the statistic that a gradient is given.
  Row row(int64_t b, int64_t n, int64_t t, const double *known = nullptr) const {
    Row made;
    double sum = 0;
    for (int64_t s = 0; s < of.sizes.keys; ++s) {
      made.weights.push_back(sees(b, t, s) ? std::exp(score(b, n, t, s)) : 0);
      sum += made.weights.back();
    }
    made.statistic = known ? *known : std::log(sum);
    for (double &weight : made.weights)
      weight /= std::exp(made.statistic);
    return made;
  }
};

/// In the order of a result's rows.
void forEachQuery(const Sizes &sizes, llvm::function_ref<void(int64_t b, int64_t n, int64_t t)> visit) {
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t n = 0; n < sizes.heads; ++n)
      for (int64_t t = 0; t < sizes.queries; ++t)
        visit(b, n, t);
}

/// The arguments, and what the expansion makes of them.
std::pair<std::vector<Literal>, Literal> run(const Case &of, bool isGradient) {
  PassRun p(program(of, isGradient));
  REQUIRE(p.run(expandProductCalls) == PassResult::Changed);
  CHECK(p.run(expandProductCalls) == PassResult::Unchanged);
  auto arguments = makeArguments(*p.module, p.diagnostics, 1);
  REQUIRE(succeeded(arguments));
  if (of.isPadded())
    for (bool ofKeys : {false, true}) {
      auto lengths = (*arguments)[arguments->size() - (ofKeys ? 1 : 2)].mutableData<int32_t>();
      for (size_t b = 0; b < lengths.size(); ++b)
        lengths[b] = int32_t(b) + (ofKeys ? 3 : 4);
    }
  if (isGradient) { // (of padding, anything)
    const Attention meant{of, *arguments, true};
    auto given = (*arguments)[3].mutableData<float>();
    forEachQuery(of.sizes, [&](int64_t b, int64_t n, int64_t t) {
      const double statistic = meant.row(b, n, t).statistic;
      float &own = given[size_t((b * of.sizes.heads + n) * of.sizes.queries + t)];
      own = std::isfinite(statistic) ? float(statistic) : own;
    });
  }
  auto made = interpret(*p.module, *arguments, p.diagnostics);
  REQUIRE(succeeded(made));
  return {*arguments, std::move(*made)};
}

const std::vector<Case> cases = {
    {"plain", {}},
    {"heads first", {}, true},
    {"causal", {2, 2, 2, 6, 6, 4, 4}, false, "CAUSAL"},
    {"causal, more keys than queries", {1, 2, 1, 3, 8, 4, 4}, true, "CAUSAL"},
    {"window", {1, 2, 2, 9, 9, 4, 4}, false, "CAUSAL", 3},
    {"heads share keys", {2, 6, 2, 5, 7, 4, 3}},
    {"heads share keys, heads first", {2, 6, 2, 5, 7, 4, 3}, true},
    {"padding", {}, false, "PADDING"},
    {"padding, heads share keys", {2, 4, 2, 5, 7, 4, 3}, false, "PADDING_CAUSAL"},
    {"bias", {}, false, "NO_MASK", 0, "bf16[2,2,5,7]"},
    {"bias of all heads", {2, 4, 2, 5, 7, 4, 3}, false, "NO_MASK", 0, "bf16[2,1,5,7]"},
    {"bias of all of a batch", {2, 4, 2, 5, 7, 4, 3}, true, "NO_MASK", 0, "bf16[1,4,5,7]"},
    {"the same bias for all, causal", {}, false, "CAUSAL", 0, "bf16[1,1,5,7]"},
    {"statistics", {2, 4, 2, 5, 7, 4, 3}, false, "CAUSAL", 0, "", true},
};

/// Of bf16, whose roundings are those of weights and results.
bool isNear(double a, double b) { return std::fabs(a - b) <= 0.02 * (1 + std::fabs(b)); }

} // namespace

TEST_CASE("cuDNN's attention is scores, a softmax and its products") {
  for (const Case &of : cases) {
    INFO(of.name);
    auto [in, made] = run(of, false);
    const Attention meant{of, in, false};
    const Sizes &s = of.sizes;
    int64_t at = 0;
    forEachQuery(s, [&](int64_t b, int64_t n, int64_t t) {
      const bool isThere = !of.isPadded() || t < meant.length(false, b);
      const Row row = meant.row(b, n, t);
      if (of.wantsStatistics)
        CHECK(isNear(made.element(1).getDouble((b * s.heads + n) * s.queries + t), row.statistic));
      for (int64_t h = 0; h < s.valueSize; ++h, ++at) {
        double sum = 0;
        for (int64_t key = 0; isThere && key < s.keys; ++key)
          sum += row.weights[size_t(key)] * element(of, in[2], b, meant.keyHead(n), key, h);
        CHECK(isNear(made.element(0).getDouble(at), sum));
      }
    });
  }
}

TEST_CASE("the gradients of cuDNN's attention are those of its scores and products") {
  for (const Case &of : cases) {
    INFO(of.name);
    auto [in, made] = run(of, true);
    const Attention meant{of, in, true};
    const Sizes &s = of.sizes;
    std::vector<double> dq(size_t(s.batch * s.heads * s.queries * s.size)),
        dk(size_t(s.batch * s.keyHeads * s.keys * s.size)), dv(size_t(s.batch * s.keyHeads * s.keys * s.valueSize)), dz;
    if (!of.bias.empty())
      dz.resize(size_t(meant.bias().shape().numElements()));
    const Literal &output = in[of.bias.empty() ? 5 : 6];
    forEachQuery(s, [&](int64_t b, int64_t n, int64_t t) {
      const int64_t kn = meant.keyHead(n);
      const double known = in[3].getDouble((b * s.heads + n) * s.queries + t);
      const Row row = meant.row(b, n, t, &known);
      double both = 0;
      for (int64_t h = 0; h < s.valueSize; ++h)
        both += element(of, output, b, n, t, h) * element(of, in[4], b, n, t, h);
      for (int64_t key = 0; key < s.keys; ++key) {
        double product = 0;
        const double weight = row.weights[size_t(key)];
        for (int64_t h = 0; h < s.valueSize; ++h) {
          const double gradient = element(of, in[4], b, n, t, h);
          product += gradient * element(of, in[2], b, kn, key, h);
          dv[size_t(((b * s.keyHeads + kn) * s.keys + key) * s.valueSize + h)] += weight * gradient;
        }
        const double ofScore = weight * (product - both);
        for (int64_t h = 0; h < s.size; ++h) {
          dq[size_t(((b * s.heads + n) * s.queries + t) * s.size + h)] +=
              scale * ofScore * element(of, in[1], b, kn, key, h);
          dk[size_t(((b * s.keyHeads + kn) * s.keys + key) * s.size + h)] +=
              scale * ofScore * element(of, in[0], b, n, t, h);
        }
        if (!dz.empty()) {
          const auto dims = meant.bias().shape().dims();
          dz[size_t(((std::min(b, dims[0] - 1) * dims[1] + std::min(n, dims[1] - 1)) * dims[2] + t) * dims[3] + key)] +=
              ofScore;
        }
      }
    });
    for (auto [number, wanted] : llvm::enumerate(std::vector<std::vector<double>>{dq, dk, dv, dz}))
      for (auto [i, value] : llvm::enumerate(wanted)) {
        INFO("result " << number << ", element " << i);
        CHECK(isNear(made.element(number).getDouble(int64_t(i)), value));
      }
  }
}

TEST_CASE("calls of attention that do not fit stay, and say why") {
  auto whyNot = [](const Case &of, const std::string &name = "", bool isGradient = false) {
    PassRun p(program(of, isGradient, name));
    CHECK(p.run(expandProductCalls) == PassResult::Unchanged);
    CHECK_FALSE(isProductCall(*p.module->entry()->root()));
    std::string why;
    CHECK_FALSE(AttentionCall::of(*p.module->entry()->root(), why));
    return why;
  };
  CHECK(whyNot({"", {}, false, "ALIBI"}) == "its mask is ALIBI");
  CHECK(whyNot({"", {}, false, "NO_MASK", 0, "", false, ", \"dropout_rate\": 0.1"}, "__cudnn$fmhaSoftmaxDropout") ==
        "it drops weights at random");
  CHECK(whyNot({"", {}, false, "NO_MASK", 0, "", false, ", \"is_paged_attention\": true"}) == "its keys are in pages");
  CHECK(whyNot({"", {}, false, "NO_MASK", 0, "", false, ", \"max_seg_per_batch\": 2"}) ==
        "several sequences are in one of its batch");
  for (int64_t large : {int64_t(1) << 31, int64_t(1) << 32}) // positions, and bytes of scores
    CHECK(whyNot({"", {1, 1, 1, large, large, 1, 1}}) == "its scores are too many");
  CHECK(whyNot({"", {1, 3, 2}}) == "it has 3 heads of queries for 2");
  CHECK(whyNot({"", {}, false, "NO_MASK", 0, "bf16[2,2,5,6]"}) == "its bias is bf16[2,2,5,6]");
  CHECK(whyNot({"", {}, false, "NO_MASK", 0, "bf16[2,2,5,7]"}, "__cudnn$fmhaSoftmax") ==
        "it has 4 operands, where 3 are expected");
  CHECK(whyNot({"", {}}, "__cudnn$fmhaSoftmaxBackward", false).find("does not say all") != std::string::npos);
  // Others' calls are nobody's here.
  CHECK(whyNot({"", {}}, "__cudnn$fmhaSoftmaxF8") == "");
  CHECK(whyNot({"", {}}, "te_fused_attn_forward_ffi") == "");
}

TEST_CASE("a dot scaled by blocks multiplies what its factors are worth") {
  for (bool hasBatch : {false, true})
    for (bool scalesBoth : {false, true}) {
      const std::string batch = hasBatch ? "2," : "";
      PassRun p(fmt::format(
          "HloModule m\nENTRY e {{\n x = f8e4m3fn[{0}6,64] parameter(0)\n y = f8e5m2[{0}5,64] parameter(1)\n"
          " a = f8e8m0fnu[{0}6,2] parameter(2)\n b = f8e4m3fn[{0}5,4] parameter(3)\n"
          " ROOT d = f32[{0}6,5] custom-call(x, y, a{1}), custom_call_target=\"__op$block_scaled_dot\"\n}}\n",
          batch, scalesBoth ? ", b" : ""));
      CHECK(isProductCall(*p.module->entry()->root()));
      REQUIRE(p.run(expandProductCalls) == PassResult::Changed);
      auto in = makeArguments(*p.module, p.diagnostics, 1);
      REQUIRE(succeeded(in));
      for (int64_t i = 0; i < (*in)[2].shape().numElements(); ++i)
        (*in)[2].mutableData<uint8_t>()[size_t(i)] = uint8_t(124 + i % 7); // powers of two around one
      auto made = interpret(*p.module, *in, p.diagnostics);
      REQUIRE(succeeded(made));
      for (int64_t b = 0; b < (hasBatch ? 2 : 1); ++b)
        for (int64_t m = 0; m < 6; ++m)
          for (int64_t n = 0; n < 5; ++n) {
            double sum = 0, most = 0;
            for (int64_t k = 0; k < 64; ++k) {
              const double x = (*in)[0].getDouble((b * 6 + m) * 64 + k) * (*in)[2].getDouble((b * 6 + m) * 2 + k / 32),
                           y = (*in)[1].getDouble((b * 5 + n) * 64 + k) *
                               (scalesBoth ? (*in)[3].getDouble((b * 5 + n) * 4 + k / 16) : 1);
              sum += x * y;
              most += std::fabs(x * y);
            }
            CHECK(std::fabs(made->getDouble((b * 6 + m) * 5 + n) - sum) <= 1e-5 * most);
          }
    }
  // Scales that are no blocks of anything.
  PassRun odd("HloModule m\nENTRY e {\n x = f8e4m3fn[6,64] parameter(0)\n y = f8e4m3fn[5,64] parameter(1)\n"
              " a = f8e8m0fnu[6,3] parameter(2)\n ROOT d = f32[6,5] custom-call(x, y, a), "
              "custom_call_target=\"__op$block_scaled_dot\"\n}\n");
  CHECK(odd.run(expandProductCalls) == PassResult::Unchanged);
}
