// Which products of matrices dots are, by their layouts.
#include "hloc/fusion/LibraryForm.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/parser/Parser.h"

#include <catch2/catch.hpp>

using namespace hloc;
using Catch::Contains;

namespace {

struct Found {
  std::unique_ptr<HloModule> module;
  std::optional<MatmulCall> call;
  llvm::SmallVector<unsigned> reads;
  std::string why;
};

Found find(const std::string &text, const char *target = "sm_90") {
  DiagnosticEngine diagnostics;
  auto file = std::make_shared<const SourceFile>("t", "ENTRY e {\n" + text + "\n}\n");
  diagnostics.setFile(file);
  Found found;
  found.module = parseHloModule(file, diagnostics);
  REQUIRE(found.module);
  found.call = matmulOf(*found.module->entry()->root(), *findTarget(target), found.reads, found.why);
  return found;
}

Found dot(const std::string &x, const std::string &y, const std::string &out, const std::string &attributes,
          const char *target = "sm_90") {
  return find("x = " + x + " parameter(0) y = " + y + " parameter(1) ROOT d = " + out + " dot(x, y), " + attributes,
              target);
}

/// `m n k xBatch, a: N ld stride, b: ..., d: ld stride`
std::string textOf(const Found &found) {
  if (!found.call)
    return found.why;
  const MatmulCall &call = *found.call;
  auto matrix = [](const MatmulCall::Matrix &one) {
    return std::string(one.transposed ? "T" : "N") + std::to_string(one.leadingDimension) + "+" +
           std::to_string(one.batchStride);
  };
  return std::to_string(call.m) + " " + std::to_string(call.n) + " " + std::to_string(call.k) + " x" +
         std::to_string(call.batch) + ", " + std::to_string(found.reads[0]) + " " + matrix(call.a) + ", " +
         std::to_string(found.reads[1]) + " " + matrix(call.b) + ", " + matrix(call.d);
}

const char *const plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const char *const batched =
    "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";

} // namespace

TEST_CASE("row-major dots are the transposed product of a library with columns") {
  CHECK(textOf(dot("f32[5,7]", "f32[7,3]", "f32[5,3]", plain)) == "3 5 7 x1, 1 N3+0, 0 N7+0, N3+0");
  CHECK(textOf(dot("f32[5,7]", "f32[3,7]", "f32[5,3]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}")) ==
        "3 5 7 x1, 1 T7+0, 0 N7+0, N3+0");
  CHECK(textOf(dot("f32[7,5]", "f32[7,3]", "f32[5,3]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}")) ==
        "3 5 7 x1, 1 N3+0, 0 T5+0, N3+0");
  CHECK(textOf(dot("f32[5,7]{0,1}", "f32[7,3]{0,1}", "f32[5,3]", plain)) == "3 5 7 x1, 1 T7+0, 0 T5+0, N3+0");
  CHECK(textOf(dot("f32[5,7]", "f32[7,3]", "f32[5,3]{0,1}", plain)) == "5 3 7 x1, 0 T7+0, 1 T3+0, N5+0");
}

TEST_CASE("batches are strides, wherever they lie") {
  CHECK(textOf(dot("f32[4,5,7]", "f32[4,7,3]", "f32[4,5,3]", batched)) == "3 5 7 x4, 1 N3+21, 0 N7+35, N3+15");
  // Rows of all batches beside each other.
  CHECK(textOf(dot("f32[4,5,7]{2,0,1}", "f32[4,7,3]", "f32[4,5,3]{2,0,1}", batched)) ==
        "3 5 7 x4, 1 N3+21, 0 N28+7, N12+3");
  CHECK(textOf(dot("f32[2,4,5,7]", "f32[2,4,7,3]", "f32[2,4,5,3]",
                   "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}")) ==
        "3 5 7 x8, 1 N3+21, 0 N7+35, N3+15");
  CHECK_THAT(textOf(dot("f32[2,4,5,7]{3,2,0,1}", "f32[2,4,7,3]", "f32[2,4,5,3]",
                        "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, "
                        "rhs_contracting_dims={2}")),
             Contains("batch dimensions are not one"));
}

TEST_CASE("several dimensions are one where they continue each other") {
  CHECK(textOf(dot("f32[2,5,7]", "f32[7,3]", "f32[2,5,3]", "lhs_contracting_dims={2}, rhs_contracting_dims={0}")) ==
        "3 10 7 x1, 1 N3+0, 0 N7+0, N3+0");
  CHECK(textOf(dot("f32[5,2,7]", "f32[2,7,3]", "f32[5,3]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}")) ==
        "3 5 14 x1, 1 N3+0, 0 N14+0, N3+0");
  CHECK_THAT(
      textOf(dot("f32[5,2,7]", "f32[7,2,3]", "f32[5,3]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}")),
      Contains("contracting dimensions are not one"));
  CHECK_THAT(textOf(dot("f32[2,7,5]", "f32[7,3]", "f32[2,5,3]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}")),
             Contains("free dimensions are not one"));
}

TEST_CASE("products with vectors, and of one element, are products of matrices") {
  CHECK(textOf(dot("f32[5,7]", "f32[7]", "f32[5]", plain)) == "1 5 7 x1, 1 N1+0, 0 N7+0, N1+0");
  CHECK(find("x = f32[7] parameter(0) y = f32[7] parameter(1) ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, "
             "rhs_contracting_dims={0}")
            .call);
  CHECK_THAT(textOf(dot("f32[5,0]", "f32[0,3]", "f32[5,3]", plain)), Contains("it has no elements"));
}

TEST_CASE("types are those that the library has on the target, and mean what the text says") {
  auto computeOf = [](const Found &found) { return found.call ? text(found.call->compute).str() : found.why; };
  auto of = [&](const std::string &type, const std::string &out, const std::string &attributes = plain,
                const char *target = "sm_90") {
    return computeOf(dot(type + "[16,32]", type + "[32,48]", out + "[16,48]", attributes, target));
  };
  const std::string algorithm = std::string(plain) + ", algorithm=";
  CHECK(of("f32", "f32") == "f32");
  CHECK(of("f32", "f32", algorithm + "dot_tf32_tf32_f32") == "tf32");
  CHECK(of("f32", "f32", algorithm + "dot_tf32_tf32_f32", "sm_75") == "f32");
  CHECK_THAT(of("f32", "f32", algorithm + "dot_bf16_bf16_f32"), Contains("no such algorithm"));
  CHECK(of("bf16", "bf16") == "f32");
  CHECK(of("bf16", "f32") == "f32");
  CHECK_THAT(of("bf16", "bf16", plain, "sm_75"), Contains("no such product of bf16 and bf16 to bf16 on sm_75"));
  CHECK(of("f64", "f64") == "f64");
  CHECK_THAT(of("s32", "s32"), Contains("no such product"));
  const char *const rowsByRows = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
  auto narrow = [&](const std::string &type, const std::string &out, const char *target) {
    return computeOf(dot(type + "[16,32]", type + "[48,32]", out + "[16,48]", rowsByRows, target));
  };
  CHECK(narrow("s8", "s32", "sm_90") == "s32");
  CHECK(narrow("f8e4m3fn", "bf16", "sm_90") == "f32");
  CHECK_THAT(narrow("f8e4m3fn", "bf16", "sm_80"), Contains("no such product"));
  CHECK_THAT(narrow("f8e5m2", "bf16", "sm_90"), Contains("no such product"));
  CHECK_THAT(of("s8", "s32"), Contains("none that the library multiplies in 8 bits")); // not transposed
}

TEST_CASE("calls of cuBLAS are products with what is done to them") {
  const std::string numbers = R"("dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],)"
                              R"("rhs_contracting_dimensions":["0"]})";
  auto call = [&](const std::string &operands, const std::string &config, const std::string &out = "bf16[16,48]") {
    return find("x = bf16[16,32] parameter(0) y = bf16[32,48] parameter(1) b = bf16[48] parameter(2) c = " + out +
                " parameter(3) ROOT d = (" + out + ", s8[4194304]) custom-call(" + operands +
                "), custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":{" + config +
                "," + numbers + "}}");
  };
  Found found = call("x, y, b", R"("alpha_real":1,"beta":0,"epilogue":"BIAS_GELU")");
  REQUIRE(found.call);
  CHECK(found.call->epilogue == MatmulCall::Epilogue::GeluBias);
  CHECK(found.reads == llvm::SmallVector<unsigned>{1, 0, 2});
  found = call("x, y, c, b", R"("alpha_real":0.5,"beta":2,"epilogue":"BIAS")");
  REQUIRE(found.call);
  CHECK(found.call->c.has_value());
  CHECK(found.call->alpha == 0.5);
  CHECK(found.reads == llvm::SmallVector<unsigned>{1, 0, 2, 3});
  CHECK_THAT(call("x, y", R"("alpha_real":1,"beta":0,"epilogue":"SILU")").why, Contains("no such epilogue"));
  CHECK_THAT(call("x, y, b", R"("alpha_real":1,"beta":0,"epilogue":"BIAS")", "bf16[16,48]{0,1}").why,
             Contains("its bias is one of columns"));
  CHECK_THAT(call("x, y, b", R"("alpha_real":1,"beta":0,"epilogue":"DEFAULT")").why, Contains("do not fit"));
}
