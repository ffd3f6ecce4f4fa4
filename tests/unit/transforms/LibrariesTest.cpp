// Which dots, convolutions and calls become, or stay, calls of libraries.
#include "RunPasses.h"
#include "SameResults.h"

#include "hloc/hlo/LibraryMark.h"

using namespace hloc;
using namespace hloc::test;
using Catch::Contains;

namespace {

std::string program(const std::string &body) { return "HloModule m\nENTRY entry {\n" + body + "\n}\n"; }

const std::string parameters = "x = f32[16,32] parameter(0) y = f32[32,48] parameter(1)\n";
const std::string product = "d = f32[16,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
const std::string numbers = R"("dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],)"
                            R"("rhs_contracting_dimensions":["0"]})";

struct Remarks {
  std::string text;
  explicit Remarks(HloPassContext &context) {
    context.remark = [this](DiagnosticKind, const HloInstruction &instr, const std::string &message) {
      text += instr.name().str() + ": " + message + "\n";
    };
  }
};

size_t marks(const HloModule &module) {
  return size_t(llvm::count_if(module.entry()->instructions(), [](auto *instr) { return hasLibraryMark(*instr); }));
}

/// Changed, or not, as the second time; the same results.
PassResult choose(PassRun &p) {
  const std::unique_ptr<HloModule> before = cloneModule(*p.module);
  const PassResult result = p.run(chooseLibraries);
  CHECK(resultDifference(*before, *p.module) == "");
  CHECK(p.run(chooseLibraries) == PassResult::Unchanged);
  return result;
}

} // namespace

TEST_CASE("a dot becomes a call where libraries are wanted, and nowhere else") {
  PassRun own(program(parameters + product + "ROOT t = f32[16,48] tanh(d)"));
  own.context.options.convolutions = Multiplier::Library;
  CHECK(choose(own) == PassResult::Unchanged);
  PassRun p(program(parameters + product + "ROOT t = f32[16,48] tanh(d)"));
  p.context.options.dots = Multiplier::Library;
  CHECK(choose(p) == PassResult::Changed);
  CHECK(p.body() == "x = parameter()\ny = parameter()\nd = custom-call(x y)\nROOT t = tanh(d)\n");
  CHECK(marks(*p.module) == 1);
  // And back: what steps are compared with.
  CHECK(p.run(expandLibraryCalls) == PassResult::Changed);
  CHECK_THAT(p.body(), Contains("dot(x y)"));
}

TEST_CASE("the algorithm of a dot goes along and comes back") {
  for (const char *algorithm : {"", ", algorithm=dot_tf32_tf32_f32", ", operand_precision={highest,highest}"}) {
    PassRun p(program(parameters + "ROOT " + product + algorithm));
    p.context.options.dots = Multiplier::Library;
    CHECK(choose(p) == PassResult::Changed);
    CHECK(p.run(expandLibraryCalls) == PassResult::Changed);
    if (*algorithm)
      CHECK_THAT(print(*p.module), Contains(algorithm + 2));
    else
      CHECK_THAT(print(*p.module), !Contains("algorithm") && !Contains("operand_precision"));
  }
}

TEST_CASE("auto compares a kernel with all that it makes, and says so") {
  const std::string large = "x = bf16[4096,4096] parameter(0) y = bf16[4096,4096] parameter(1)\n"
                            "ROOT d = bf16[4096,4096] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  PassRun p(program(large));
  Remarks remarks(p.context);
  p.context.options.dots = Multiplier::Auto;
  CHECK(p.run(chooseLibraries) == PassResult::Changed);
  CHECK_THAT(remarks.text, Contains("`d` is multiplied by cuBLASLt: ") && Contains(" us by a kernel, "));
  PassRun small(program(parameters + product + "ROOT t = f32[16,48] tanh(d)"));
  Remarks ofSmall(small.context);
  small.context.options.dots = Multiplier::Auto;
  CHECK(small.run(chooseLibraries) == PassResult::Unchanged);
  CHECK_THAT(ofSmall.text, Contains("`d` is multiplied by a kernel: ") && Contains("for what the kernel has beside"));
}

TEST_CASE("convolutions become calls, in layouts that cuDNN has") {
  const std::string text = "x = f32[2,9,10,4] parameter(0) k = f32[6,3,3,4] parameter(1)\n"
                           "ROOT y = f32[2,4,8,6] convolution(x, k), window={size=3x3 stride=2x1}, "
                           "dim_labels=b01f_o01i->b01f";
  PassRun p(program(text));
  p.context.options.convolutions = Multiplier::Library;
  CHECK(choose(p) == PassResult::Changed);
  CHECK_THAT(p.body(), Contains("y = custom-call(x k)\n") && Contains("get-tuple-element(y)"));
  CHECK(p.run(expandLibraryCalls) == PassResult::Changed);
  CHECK_THAT(p.body(), Contains("convolution(x k)"));
}

TEST_CASE("calls stay, without their workspace, where the library has them") {
  const std::string text =
      parameters +
      "b = f32[48] parameter(2)\n"
      "g = (f32[16,48], s8[64]) custom-call(x, y, b), custom_call_target=\"__cublas$lt$matmul\", "
      "backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0,\"epilogue\":\"BIAS_RELU\"," +
      numbers + "}}\n";
  PassRun own(program(text + "ROOT r = f32[16,48] get-tuple-element(g), index=0"));
  CHECK(own.run(expandCustomCalls) == PassResult::Changed);
  CHECK(marks(*own.module) == 0);
  for (const char *root : {"ROOT r = f32[16,48] get-tuple-element(g), index=0",
                           "ROOT r = s8[64] get-tuple-element(g), index=1", "ROOT r = (f32[16,48], s8[64]) copy(g)"}) {
    PassRun p(program(text + root));
    p.context.options.dots = Multiplier::Library;
    const std::unique_ptr<HloModule> before = cloneModule(*p.module);
    CHECK(p.run(expandCustomCalls) == PassResult::Changed);
    CHECK(resultDifference(*before, *p.module) == "");
    CHECK(p.run(expandCustomCalls) == PassResult::Unchanged);
  }
  PassRun tf32(program(text + "ROOT r = f32[16,48] get-tuple-element(g), index=0"));
  tf32.context.options.dots = Multiplier::Library;
  tf32.context.options.f32Dots = F32Dots::Tf32; // then its dot is asked what it is multiplied as
  CHECK(tf32.run(expandCustomCalls) == PassResult::Changed);
  CHECK(marks(*tf32.module) == 0);
}
