// Calls of libraries whose meaning is public.
#include "OneOp.h"

#include "hloc/parser/Parser.h"

#include <cmath>

using namespace hloc;
using enum ElementType;

namespace {

llvm::FailureOr<Literal> runText(const std::string &text, std::vector<Literal> arguments,
                                 DiagnosticEngine &diagnostics) {
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", text), diagnostics);
  REQUIRE(module);
  return interpret(*module, arguments, diagnostics);
}

std::string convolutionCall(const std::string &result, const std::string &epilogue) {
  return "HloModule m\nENTRY e { x = f32[1,4,1] parameter(0) k = f32[1,3,1] parameter(1) c = (" + result +
         ", u8[0]) custom-call(x, k), window={size=3}, dim_labels=b0f_o0i->b0f, "
         "custom_call_target=\"__cudnn$convForward\", backend_config={\"cudnn_conv_backend_config\":{"
         "\"activation_mode\":\"" +
         epilogue + "\",\"conv_result_scale\":1}} ROOT r = " + result + " get-tuple-element(c), index=0 }\n";
}

} // namespace

TEST_CASE("a library's convolution is a convolution; with an epilogue or other shapes it is refused") {
  std::vector<Literal> arguments = {numbers(F32, {1, 4, 1}, {1, 2, 3, 4}), numbers(F32, {1, 3, 1}, {1, 10, 100})};
  DiagnosticEngine diagnostics;
  auto plain = runText(convolutionCall("f32[1,2,1]", "kNone"), arguments, diagnostics);
  REQUIRE(llvm::succeeded(plain));
  CHECK(doubles(*plain) == std::vector<double>{321, 432});
  for (const std::string &text : {convolutionCall("f32[1,2,1]", "kRelu"), convolutionCall("f32[1,7,1]", "kNone"),
                                  convolutionCall("f32[2]", "kNone")}) {
    DiagnosticEngine refusal;
    CHECK(llvm::failed(runText(text, arguments, refusal)));
    CHECK(refusal.exitCode() == ExitCode::Unsupported);
  }
}

namespace {

/// A forward convolution as text: shapes, window, labels and groups.
struct Forward {
  std::vector<int64_t> x, kernel, y;
  std::string attributes;
};

std::string shapeText(llvm::ArrayRef<int64_t> dims) {
  std::string text = "f32[";
  for (int64_t dim : dims)
    text += (text.back() == '[' ? "" : ",") + std::to_string(dim);
  return text + "]";
}

Literal someIntegers(llvm::ArrayRef<int64_t> dims, int64_t seed) {
  Literal literal(Shape::array(F32, dims));
  for (int64_t i = 0; i < literal.numElements(); ++i)
    literal.setDouble(i, double((i * i * 7 + i * seed + 3) % 13 - 6));
  return literal;
}

Literal unitVector(llvm::ArrayRef<int64_t> dims, int64_t at) {
  Literal literal(Shape::array(F32, dims));
  literal.setDouble(at, 1);
  return literal;
}

double innerProduct(const Literal &a, const Literal &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.getDouble(i) * b.getDouble(i);
  return sum;
}

Literal checkedRun(const std::string &text, std::vector<Literal> arguments) {
  DiagnosticEngine diagnostics;
  auto result = runText(text, std::move(arguments), diagnostics);
  INFO(text);
  REQUIRE(llvm::succeeded(result));
  return *result;
}

Literal convolve(const Forward &forward, const Literal &x, const Literal &kernel) {
  return checkedRun(
      "HloModule m\nENTRY e { x = " + shapeText(forward.x) + " parameter(0) k = " + shapeText(forward.kernel) +
          " parameter(1) ROOT c = " + shapeText(forward.y) + " convolution(x, k), " + forward.attributes + " }\n",
      {x, kernel});
}

std::string gradientText(const Forward &forward, const std::string &target, llvm::ArrayRef<int64_t> a,
                         llvm::ArrayRef<int64_t> b, llvm::ArrayRef<int64_t> result) {
  return "HloModule m\nENTRY e { a = " + shapeText(a) + " parameter(0) b = " + shapeText(b) + " parameter(1) c = (" +
         shapeText(result) + ", u8[0]) custom-call(a, b), " + forward.attributes + ", custom_call_target=\"" + target +
         "\", backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kNone\",\"conv_result_scale\":1}}"
         " ROOT r = " +
         shapeText(result) + " get-tuple-element(c), index=0 }\n";
}

const Forward forwards[] = {
    {{2, 5, 3}, {3, 3, 2}, {2, 3, 2}, "window={size=3}, dim_labels=b0f_0io->b0f"},
    // strides that leave a rest, other paddings on both sides, dilations, other orders of dimensions
    {{2, 6, 7, 2}, {3, 3, 2, 2}, {2, 3, 4, 3}, "window={size=3x2 stride=2x3 pad=1_0x2_3}, dim_labels=b01f_o01i->b01f"},
    {{3, 9, 1, 6},
     {2, 3, 3, 4},
     {4, 8, 1, 4},
     "window={size=3x2 stride=1x2 pad=2_1x3_2 rhs_dilate=2x3}, dim_labels=f0b1_10io->f0b1"},
    {{1, 5, 4},
     {3, 2, 6},
     {1, 3, 6},
     "window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=2"},
    {{2, 4, 3}, {3, 1, 6}, {2, 4, 6}, "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=3"},
    {{1, 6, 2}, {3, 2, 2}, {1, 3, 2}, "window={size=3 stride=2 pad=2_0 rhs_reversal=1}, dim_labels=b0f_0io->b0f"},
    {{1, 5, 1}, {2, 1, 1}, {1, 2, 1}, "window={size=2 pad=-1_-1 rhs_dilate=1}, dim_labels=b0f_0io->b0f"},
};

} // namespace

TEST_CASE("a library's gradients of a convolution are those of `convolution`") {
  for (const Forward &forward : forwards) {
    INFO(forward.attributes);
    Literal x = someIntegers(forward.x, 5), kernel = someIntegers(forward.kernel, 3), dy = someIntegers(forward.y, 1);
    Literal dx = checkedRun(gradientText(forward, "__cudnn$convBackwardInput", forward.y, forward.kernel, forward.x),
                            {dy, kernel});
    for (int64_t i = 0; i < dx.numElements(); ++i)
      CHECK(dx.getDouble(i) == innerProduct(dy, convolve(forward, unitVector(forward.x, i), kernel)));
    Literal dKernel =
        checkedRun(gradientText(forward, "__cudnn$convBackwardFilter", forward.x, forward.y, forward.kernel), {x, dy});
    for (int64_t i = 0; i < dKernel.numElements(); ++i)
      CHECK(dKernel.getDouble(i) == innerProduct(dy, convolve(forward, x, unitVector(forward.kernel, i))));
  }
}

TEST_CASE("a library's gradients of shapes that do not fit are refused") {
  Forward fits = forwards[0];
  for (const std::string &text : {gradientText(fits, "__cudnn$convBackwardInput", fits.y, fits.kernel, {2, 6, 3}),
                                  gradientText(fits, "__cudnn$convBackwardInput", fits.x, fits.kernel, fits.y),
                                  gradientText({{}, {}, {}, "window={size=3 lhs_dilate=2}, dim_labels=b0f_0io->b0f"},
                                               "__cudnn$convBackwardInput", fits.y, fits.kernel, fits.x)}) {
    DiagnosticEngine refusal;
    auto result = runText(text, {someIntegers(fits.y, 1), someIntegers(fits.kernel, 1)}, refusal);
    CHECK(llvm::failed(result));
  }
  DiagnosticEngine refusal;
  CHECK(llvm::failed(runText(gradientText(fits, "__cudnn$convBackwardFilter", fits.x, fits.y, {3, 3, 3}),
                             {someIntegers(fits.x, 1), someIntegers(fits.y, 1)}, refusal)));
  CHECK(refusal.exitCode() == ExitCode::Unsupported);
}

TEST_CASE("bias, side input and activation follow a library's convolution") {
  auto run = [](const std::string &config, bool side) {
    std::string text = "HloModule m\nENTRY e { x = f32[1,4,1] parameter(0) k = f32[2,1,2] parameter(1) b = f32[2] "
                       "parameter(2) s = f32[1,4,2] parameter(3) c = (f32[1,4,2], u8[0]) custom-call(x, k, b";
    text += std::string(side ? ", s" : "") +
            "), window={size=2 pad=0_1}, dim_labels=b0f_0io->b0f, custom_call_target="
            "\"__cudnn$convBiasActivationForward\", backend_config={\"cudnn_conv_backend_config\":{" +
            config + "}} ROOT r = f32[1,4,2] get-tuple-element(c), index=0 }\n";
    return doubles(checkedRun(text, {numbers(F32, {1, 4, 1}, {1, -2, 3, -4}), numbers(F32, {2, 1, 2}, {1, 10, 0, 1}),
                                     numbers(F32, {2}, {1, 100}), numbers(F32, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}));
  };
  // Without an epilogue: {1, 8}, {-2, -17}, {3, 26}, {-4, -40}
  CHECK(run("\"activation_mode\":\"kNone\",\"conv_result_scale\":1", false) ==
        std::vector<double>{2, 108, -1, 83, 4, 126, -3, 60});
  CHECK(run("\"activation_mode\":\"kRelu\",\"conv_result_scale\":2", false) ==
        std::vector<double>{3, 116, 0, 66, 7, 152, 0, 20});
  CHECK(run("\"activation_mode\":\"kRelu6\",\"conv_result_scale\":2,\"side_input_scale\":1", true) ==
        std::vector<double>{4, 6, 0, 6, 6, 6, 0, 6});
  CHECK(run("\"activation_mode\":\"kLeakyRelu\",\"conv_result_scale\":1,\"leakyrelu_alpha\":0.5,"
            "\"side_input_scale\":-1",
            true) == std::vector<double>{1, 106, -2, 79, -0.5, 120, -5, 52});
  CHECK(run("\"activation_mode\":\"kElu\",\"conv_result_scale\":1", false)[2] == double(float(std::expm1(-1.0))));
}

TEST_CASE("a library's Cholesky factors say which minor is not positive") {
  DiagnosticEngine diagnostics;
  auto result =
      runText("HloModule m\nENTRY e { a = f32[2,2,2] parameter(0) ROOT c = (f32[2,2,2], s32[2]) custom-call(a), "
              "custom_call_target=\"cusolver_potrf_ffi\", backend_config={lower = true} }\n",
              {numbers(F32, {2, 2, 2}, {4, -99, 2, 10, 1, 0, 0, -1})}, diagnostics);
  REQUIRE(llvm::succeeded(result));
  CHECK(llvm::ArrayRef(doubles(result->element(0))).take_front(4).equals({2.0, 0.0, 1.0, 3.0}));
  CHECK(result->element(1).getInt(0) == 0);
  CHECK(result->element(1).getInt(1) == 2);
}

namespace {

/// A call of cuBLAS with `operands` besides the factors f32[2,3] and f32[3,2].
std::string gemmText(const std::string &target, const std::string &epilogue, const std::string &numbers,
                     const std::string &operands = "") {
  return "HloModule m\nENTRY e { x = f32[2,3] parameter(0) y = f32[3,2] parameter(1) c = f32[2,2] parameter(2) "
         "v = f32[2] parameter(3) r = (f32[2,2], s8[16]) custom-call(x, y" +
         operands + "), custom_call_target=\"" + target + "\", backend_config={\"gemm_backend_config\":{" + numbers +
         ",\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"]}," +
         "\"epilogue\":\"" + epilogue + "\"}} ROOT g = f32[2,2] get-tuple-element(r), index=0 }\n";
}

} // namespace

TEST_CASE("cuBLAS's product is scaled, added to and activated before it is stored") {
  // x . y = {{-4, 5}, {-10, 11}}
  const std::vector<Literal> arguments = {numbers(F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                                          numbers(F32, {3, 2}, {-1, 0, 0, 1, -1, 1}),
                                          numbers(F32, {2, 2}, {10, 20, 30, 40}), numbers(F32, {2}, {1, -1})};
  auto run = [&](const std::string &text) {
    DiagnosticEngine diagnostics;
    auto result = runText(text, arguments, diagnostics);
    REQUIRE(llvm::succeeded(result));
    return doubles(*result);
  };
  const std::string plain = R"("alpha_real":1,"beta":0)", scaled = R"("alpha_real":2,"beta":-1)";
  CHECK(run(gemmText("__cublas$gemm", "DEFAULT", plain)) == std::vector<double>{-4, 5, -10, 11});
  CHECK(run(gemmText("__cublas$gemm", "DEFAULT", scaled, ", c")) == std::vector<double>{-18, -10, -50, -18});
  CHECK(run(gemmText("__cublas$lt$matmul", "BIAS_RELU", plain, ", v")) == std::vector<double>{0, 4, 0, 10});
  CHECK(run(gemmText("__cublas$lt$matmul", "BIAS", scaled, ", c, v")) == std::vector<double>{-17, -11, -49, -19});
  const std::vector<double> gelu = run(gemmText("__cublas$lt$matmul", "GELU", plain));
  CHECK(gelu[1] == Approx(4.99999977).epsilon(1e-6));
  CHECK(gelu[0] == Approx(-7.0221e-05).epsilon(1e-3));
  const std::vector<double> silu = run(gemmText("__cublas$lt$matmul", "SILU", plain));
  CHECK(silu[0] == Approx(-4 / (1 + std::exp(4.0))));

  for (const std::string &text :
       {gemmText("__cublas$gemm", "DEFAULT", scaled), gemmText("__cublas$gemm", "DEFAULT", plain, ", c"),
        gemmText("__cublas$lt$matmul", "BIAS", plain), gemmText("__cublas$lt$matmul", "BIAS", plain, ", c"),
        gemmText("__cublas$lt$matmul", "D_GELU", plain), gemmText("__cublas$lt$matmul$f8", "DEFAULT", plain),
        gemmText("__cublas$lt$matmul", "GELU_AUX", plain),
        gemmText("__cublas$gemm", "DEFAULT", R"("alpha_real":1,"alpha_imag":1)"),
        gemmText("__cublas$lt$matmul", "DEFAULT", R"("alpha_real":1,"damax_output":true)")}) {
    DiagnosticEngine refusal;
    INFO(text);
    CHECK(llvm::failed(runText(text, arguments, refusal)));
    CHECK(refusal.exitCode() == ExitCode::Unsupported);
  }
}

TEST_CASE("CUB's sort is stable, takes -0 for 0 and has NaN at the end of its sign") {
  auto text = [](const std::string &descending) {
    return "HloModule m\nENTRY e { k = f32[7] parameter(0) v = s32[7] parameter(1) r = (f32[7], s32[7], u8[1]) "
           "custom-call(k, v), custom_call_target=\"xla.gpu.ext.cub_sort_pairs\", backend_config={\"descending\":" +
           descending + "} ROOT g = s32[7] get-tuple-element(r), index=1 }\n";
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Literal> arguments = {numbers(F32, {7}, {0, 2, -0.0, nan, -1, 2, -nan}),
                                          numbers(S32, {7}, {0, 1, 2, 3, 4, 5, 6})};
  DiagnosticEngine diagnostics;
  auto up = runText(text("false"), arguments, diagnostics), down = runText(text("true"), arguments, diagnostics);
  REQUIRE((llvm::succeeded(up) && llvm::succeeded(down)));
  CHECK(doubles(*up) == std::vector<double>{6, 4, 0, 2, 1, 5, 3});
  CHECK(doubles(*down) == std::vector<double>{3, 1, 5, 0, 2, 4, 6});
  CHECK(llvm::failed(runText(text("1"), arguments, diagnostics)));
}
