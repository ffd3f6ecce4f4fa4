// Calls of libraries whose meaning is public.
#include "OneOp.h"

#include "hloc/parser/Parser.h"

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
