// Which dots and convolutions become tf32 where that is wanted, and which say themselves how precise they are.
#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

namespace {

std::string program(const std::string &body, const std::string &callees = "") {
  return "HloModule m\n" + callees + "ENTRY e {\n" + body + "\n}\n";
}

/// `x` and `y` of these types and what `made` says, and their dot, of type `result` and with `attributes`.
std::string dot(const std::string &left, const std::string &right, const std::string &result,
                const std::string &attributes = "", const std::string &made = "", const char *factors = "x, y") {
  return program("x = " + left + "[4,8] parameter(0)\n y = " + right + "[8,4] parameter(1)\n" + made +
                 "ROOT d = " + result + "[4,4] dot(" + factors +
                 "), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + attributes);
}

DotAlgorithm algorithmOf(const HloModule &module, llvm::StringRef name = "d") {
  for (const auto &computation : module.computations())
    for (const HloInstruction *instr : computation->instructions())
      if (instr->name() == name)
        return instr->enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset);
  FAIL("there is no " << name.str());
  return DotAlgorithm::Unset;
}

void becomes(const std::string &text, DotAlgorithm wanted, size_t count = 1) {
  INFO(text);
  PassRun asItIs(text), p(text);
  const DotAlgorithm before = algorithmOf(*asItIs.module);
  CHECK(asItIs.run(chooseDotAlgorithms) == PassResult::Unchanged);
  CHECK(algorithmOf(*asItIs.module) == before);
  p.context.options.f32Dots = F32Dots::Tf32;
  CHECK(p.run(chooseDotAlgorithms) == (before == wanted ? PassResult::Unchanged : PassResult::Changed));
  CHECK(algorithmOf(*p.module) == wanted);
  CHECK(p.context.statistics.of("choose-dot-algorithms.tf32") == (before == wanted ? 0 : count));
  CHECK(p.run(chooseDotAlgorithms) == PassResult::Unchanged);
}

constexpr DotAlgorithm unset = DotAlgorithm::Unset, tf32 = DotAlgorithm::TF32TF32F32;

} // namespace

TEST_CASE("plain dots and convolutions of f32 become tf32 where that is wanted") {
  becomes(dot("f32", "f32", "f32"), tf32);
  becomes(dot("f32", "f32", "f32", ", operand_precision={default,default}"), tf32);
  becomes(dot("f32", "f32", "f32", ", algorithm=dot_unset"), tf32);
  becomes(dot("f32", "bf16", "f32"), tf32);
  becomes(dot("f32", "bf16", "f32", "", "z = f32[8,4] convert(y)\n", "x, z"), tf32);
  becomes(program("x = f32[2,8,8,4] parameter(0)\n k = f32[3,3,4,4] parameter(1)\n"
                  "ROOT d = f32[2,6,6,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f"),
          tf32);
}

TEST_CASE("dots in fusions, loops and branches are dots as well") {
  const std::string product = "{ x = f32[4,4] parameter(0)\n ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, "
                              "rhs_contracting_dims={0} }\n";
  becomes(program("x = f32[4,4] parameter(0)\n ROOT f = f32[4,4] fusion(x), kind=kLoop, calls=p", "p " + product),
          tf32);
  becomes(program("x = f32[4,4] parameter(0)\n ROOT f = f32[4,4] while(x), condition=c, body=p",
                  "c { x = f32[4,4] parameter(0)\n ROOT r = pred[] constant(false) }\np " + product),
          tf32);
}

TEST_CASE("what says how precise it is stays as it is") {
  for (const char *precision : {"high", "highest"})
    for (const std::string &both :
         {std::string("{") + precision + ",default}", std::string("{default,") + precision + "}",
          std::string("{") + precision + "," + precision + "}"})
      becomes(dot("f32", "f32", "f32", ", operand_precision=" + both), unset);
  becomes(dot("f32", "f32", "f32", ", algorithm=dot_f32_f32_f32"), DotAlgorithm::F32F32F32);
  becomes(dot("f32", "f32", "f32", ", algorithm=dot_bf16_bf16_f32_x3"), DotAlgorithm::BF16BF16F32X3);
  becomes(dot("f32", "f32", "f32", ", algorithm=dot_tf32_tf32_f32_x3"), DotAlgorithm::TF32TF32F32X3);
}

TEST_CASE("other types stay, and what is made of at most eight bits") {
  for (const char *type : {"bf16", "f16", "f64", "f8e4m3fn", "s8", "s32", "c64"})
    becomes(dot(type, type, type), unset);
  becomes(dot("bf16", "bf16", "f32"), unset);
  becomes(dot("f16", "bf16", "f32"), unset);
  becomes(dot("f32", "f32", "f64"), unset);
  becomes(dot("f32", "f32", "bf16"), unset);
  becomes(dot("bf16", "bf16", "f32", "", "a = f32[4,8] convert(x)\n b = f32[8,4] convert(y)\n", "a, b"), unset);
  for (const char *type : {"pred", "s4", "u8", "s8", "f8e4m3fn", "f8e5m2"}) {
    becomes(dot(type, "f32", "f32", "", "a = f32[4,8] convert(x)\n", "a, y"), unset);
    becomes(dot("f32", type, "f32", "",
                "a = f32[8,4] convert(y)\n b = f32[4,8] transpose(a), dimensions={1,0}\n"
                "c = f32[8,4] reshape(b)\n",
                "x, c"),
            unset);
  }
  becomes(dot("s16", "f32", "f32", "", "a = f32[4,8] convert(x)\n", "a, y"), tf32);
  becomes(dot("bf16", "f32", "f32", "", "a = f32[4,8] convert(x)\n", "a, y"), tf32);
  // A scale makes f32 of it, which has bits to be rounded.
  becomes(dot("s8", "f32", "f32", "", "a = f32[4,8] convert(x)\n b = f32[4,8] multiply(a, a)\n", "b, y"), tf32);
}

TEST_CASE("calls of libraries say how precise their dots are") {
  auto gemm = [](const std::string &precision) {
    return program("x = f32[4,8] parameter(0)\n y = f32[8,4] parameter(1)\n"
                   "ROOT c = f32[4,4] custom-call(x, y), custom_call_target=\"__cublas$gemm\", backend_config="
                   "{\"gemm_backend_config\":{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,\"dot_dimension_numbers\":"
                   "{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"]," +
                   ("\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]}" + precision) +
                   ",\"epilogue\":\"DEFAULT\"}}");
  };
  auto convolution = [](const std::string &precision) {
    return program("x = f32[2,8,8,4] parameter(0)\n k = f32[4,3,3,4] parameter(1)\n"
                   "c = (f32[2,6,6,4], u8[0]) custom-call(x, k), window={size=3x3}, dim_labels=b01f_o01i->b01f" +
                   precision +
                   ", custom_call_target=\"__cudnn$convForward\", backend_config="
                   "{\"cudnn_conv_backend_config\":{\"activation_mode\":\"kNone\",\"conv_result_scale\":1}}\n"
                   "ROOT r = f32[2,6,6,4] get-tuple-element(c), index=0");
  };
  auto isChosen = [](const std::string &text) {
    INFO(text);
    PassRun p(text);
    p.context.options.f32Dots = F32Dots::Tf32;
    CHECK(p.run(expandCustomCalls) == PassResult::Changed);
    return p.run(chooseDotAlgorithms) == PassResult::Changed;
  };
  CHECK(isChosen(gemm("")));
  CHECK(isChosen(gemm(",\"precision_config\":{\"operand_precision\":[\"DEFAULT\",\"DEFAULT\"],"
                      "\"algorithm\":\"ALG_UNSET\"}")));
  CHECK(!isChosen(gemm(",\"precision_config\":{\"operand_precision\":[\"HIGHEST\",\"DEFAULT\"]}")));
  CHECK(!isChosen(gemm(",\"precision_config\":{\"operand_precision\":[\"DEFAULT\",\"DEFAULT\"],"
                       "\"algorithm\":\"ALG_DOT_F32_F32_F32\"}")));
  CHECK(isChosen(convolution("")));
  CHECK(!isChosen(convolution(", operand_precision={highest,highest}")));
}
