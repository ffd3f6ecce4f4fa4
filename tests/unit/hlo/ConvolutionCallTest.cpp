#include "hloc/hlo/ConvolutionCall.h"

#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::test;

namespace {

/// A call of two operands, or more, with what may be wrong about it.
struct CallText {
  std::string target = "__cudnn$convForward", operands = "x, k", result = "(f32[2,5,4], u8[0])",
              window = "window={size=3}", labels = "dim_labels=b0f_0io->b0f", more,
              epilogue = R"("activation_mode":"kNone","conv_result_scale":1)", x = "f32[2,7,3]", k = "f32[3,3,4]",
              bias = "f32[4]", side = "f32[2,5,4]";

  std::string text() const {
    return "HloModule m\nENTRY e { x = " + x + " parameter(0)\n k = " + k + " parameter(1)\n b = " + bias +
           " parameter(2)\n s = " + side + " parameter(3)\n ROOT c = " + result + " custom-call(" + operands + "), " +
           window + ", " + labels + ", custom_call_target=\"" + target + "\"" + more +
           ", backend_config={\"cudnn_conv_backend_config\":{" + epilogue + "}} }\n";
  }
};

struct Read {
  explicit Read(const CallText &call)
      : parsed(call.text()),
        found(parsed.module ? ConvolutionCall::of(*parsed.module->entry()->root()) : std::nullopt) {
    INFO(call.text());
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
  }
  Parsed parsed;
  std::optional<ConvolutionCall> found;
};

bool isRead(const CallText &call) { return Read(call).found.has_value(); }

} // namespace

TEST_CASE("a forward call says what it convolves") {
  Read read({});
  REQUIRE(read.found);
  CHECK(read.found->kind == ConvolutionCallKind::Forward);
  CHECK(read.found->shapes.x.dims() == llvm::ArrayRef<int64_t>({2, 7, 3}));
  CHECK(read.found->shapes.kernel.dims() == llvm::ArrayRef<int64_t>({3, 3, 4}));
  CHECK(read.found->shapes.y.dims() == llvm::ArrayRef<int64_t>({2, 5, 4}));
  CHECK(read.found->groups == 1);
  CHECK(read.found->xSize(0) == 7);
  CHECK(read.found->ySize(0) == 5);
  CHECK(read.found->epilogue.isPlain());
}

TEST_CASE("gradients have the forward convolution's shapes in other places") {
  CallText input;
  input.target = "__cudnn$convBackwardInput";
  std::swap(input.x, input.side); // dy
  input.result = "(f32[2,7,3], u8[0])";
  Read ofInput(input);
  REQUIRE(ofInput.found);
  CHECK(ofInput.found->kind == ConvolutionCallKind::InputGradient);
  CHECK(ofInput.found->xSize(0) == 7);
  CHECK(ofInput.found->shapes.kernel.dims() == llvm::ArrayRef<int64_t>({3, 3, 4}));

  CallText kernel;
  kernel.target = "__cudnn$convBackwardFilter";
  kernel.operands = "x, s";
  kernel.result = "(f32[3,3,4], u8[0])";
  Read ofKernel(kernel);
  REQUIRE(ofKernel.found);
  CHECK(ofKernel.found->kind == ConvolutionCallKind::KernelGradient);
  CHECK(ofKernel.found->shapes.kernel.dims() == llvm::ArrayRef<int64_t>({3, 3, 4}));
  CHECK(ofKernel.found->ySize(0) == 5);
}

TEST_CASE("calls whose parts do not fit each other are not read") {
  auto with = [](std::string CallText::*part, const std::string &text) {
    CallText call;
    call.*part = text;
    return isRead(call);
  };
  CHECK(with(&CallText::target, "__cudnn$convForward"));
  CHECK(!with(&CallText::target, "__cudnn$convForwardGraph"));
  CHECK(!with(&CallText::operands, "x"));
  CHECK(!with(&CallText::operands, "x, k, b"));
  CHECK(!with(&CallText::result, "f32[2,5,4]"));
  CHECK(!with(&CallText::result, "(f32[2,5,4], u8[0], u8[0])"));
  CHECK(!with(&CallText::result, "(f32[2,5,4], (u8[0]))"));
  // labels: each dimension once
  CHECK(!with(&CallText::labels, "dim_labels=b0f_0io->b01f"));
  CHECK(!with(&CallText::labels, "dim_labels=b?0f_0io->b0f"));
  CHECK(!with(&CallText::labels, "dim_labels=b0f_0?io->b0f"));
  CHECK(!with(&CallText::labels, "dim_labels=b0f_0io->b0?f"));
  CHECK(!with(&CallText::labels, "dim_labels=b0f_0io->0bf"));
  // features, batches and groups
  CHECK(!with(&CallText::x, "f32[2,7,4]"));
  CHECK(!with(&CallText::x, "f32[1,7,3]"));
  CHECK(!with(&CallText::k, "f32[3,3,5]"));
  CHECK(!with(&CallText::more, ", feature_group_count=3"));
  CHECK(!with(&CallText::more, ", feature_group_count=0"));
  CHECK(!with(&CallText::more, ", feature_group_count=9223372036854775807"));
  CHECK(!with(&CallText::more, ", batch_group_count=2"));
  // windows
  CHECK(with(&CallText::window, "window={size=3 pad=1_-1}"));
  CHECK(!with(&CallText::window, "window={size=3 pad=1_0}"));
  CHECK(!with(&CallText::window, "window={size=2}"));
  CHECK(!with(&CallText::window, "window={size=3 stride=2}"));
  CHECK(!with(&CallText::window, "window={size=3 lhs_dilate=2}"));
  CHECK(!with(&CallText::window, "window={size=3x1}"));
  CHECK(!with(&CallText::window, "window={size=3 pad=1073741824_-1073741824}"));
  CHECK(!with(&CallText::window, "window={size=3 pad=-9223372036854775808_0}"));
  // an epilogue that a plain call does not have, or that says too little
  CHECK(!with(&CallText::epilogue, R"("activation_mode":"kRelu","conv_result_scale":1)"));
  CHECK(!with(&CallText::epilogue, R"("activation_mode":"kNone","conv_result_scale":2)"));
  CHECK(!with(&CallText::epilogue, R"("activation_mode":"kNone")"));
}

TEST_CASE("groups divide features") {
  CallText call;
  call.more = ", feature_group_count=2";
  call.x = "f32[2,7,6]";
  Read read(call);
  REQUIRE(read.found);
  CHECK(read.found->groups == 2);
  call.k = "f32[3,3,5]";
  call.result = "(f32[2,5,5], u8[0])";
  CHECK(!isRead(call));
}

TEST_CASE("bias and side input have the result's features and dimensions") {
  CallText call;
  call.target = "__cudnn$convBiasActivationForward";
  call.epilogue =
      R"("activation_mode":"kLeakyRelu","conv_result_scale":0.5,"side_input_scale":3,"leakyrelu_alpha":0.25)";
  CHECK(!isRead(call));
  for (const char *operands : {"x, k, b", "x, k, b, s"}) {
    call.operands = operands;
    Read read(call);
    REQUIRE(read.found);
    CHECK(read.found->kind == ConvolutionCallKind::BiasActivation);
    CHECK(read.found->epilogue.activation == ConvolutionEpilogue::Activation::LeakyRelu);
    CHECK(read.found->epilogue.scale == 0.5);
    CHECK(read.found->epilogue.sideScale == 3);
    CHECK(read.found->epilogue.leak == 0.25);
  }
  CallText wrongBias = call, wrongSide = call, unknown = call, tooMany = call;
  wrongBias.bias = "f32[5]";
  wrongSide.side = "f32[2,4,5]";
  unknown.epilogue = R"("activation_mode":"kSomething","conv_result_scale":1)";
  tooMany.operands += ", s";
  for (const CallText &wrong : {wrongBias, wrongSide, unknown, tooMany})
    CHECK(!isRead(wrong));
}

TEST_CASE("a configuration says what follows the convolution, or nothing is known") {
  using Activation = ConvolutionEpilogue::Activation;
  auto activation = [](const std::string &text) { return ConvolutionEpilogue::parse(text).activation; };
  for (auto [name, expected] : {std::pair("kNone", Activation::None),
                                {"kRelu", Activation::Relu},
                                {"kRelu6", Activation::Relu6},
                                {"kLeakyRelu", Activation::LeakyRelu},
                                {"kElu", Activation::Elu},
                                {"kSigmoid", Activation::Unknown}})
    CHECK(activation(std::string("{\"cudnn_conv_backend_config\":{\"conv_result_scale\":1,\"activation_mode\":\"") +
                     name + "\"}}") == expected);
  for (const char *text : {"", "{", "[1]", "{}", R"({"cudnn_conv_backend_config":3})",
                           R"({"cudnn_conv_backend_config":{"activation_mode":"kNone"}})",
                           R"({"cudnn_conv_backend_config":{"conv_result_scale":1}})"})
    CHECK(activation(text) == Activation::Unknown);
}
