// Ops that have no kernel of their own become others: bits and loops, equations, transforms, scans.
#include "RunPasses.h"
#include "SameResults.h"

using namespace hloc;
using namespace hloc::test;

namespace {

std::string program(const std::string &body, const std::string &callees = "") {
  return "HloModule m\n" + callees + "ENTRY e {\n" + body + "\n}\n";
}

size_t count(const HloModule &module, Opcode opcode) {
  size_t found = 0;
  for (const auto &computation : module.computations())
    found +=
        size_t(llvm::count_if(computation->instructions(), [&](auto *instr) { return instr->opcode() == opcode; }));
  return found;
}

/// The op goes, and the pass finds nothing the second time.
void expands(PassRun &p, PassResult (*pass)(HloModule &, HloPassContext &), Opcode opcode) {
  Shape before = p.module->entry()->root()->shape();
  REQUIRE(count(*p.module, opcode) > 0);
  CHECK(p.run(pass) == PassResult::Changed);
  CHECK(count(*p.module, opcode) == 0);
  CHECK(p.module->entry()->root()->shape() == before);
  CHECK(p.run(pass) == PassResult::Unchanged);
}

const std::string sum = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] add(a, b)\n"
                        "ROOT r = (f32[], f32[]) tuple(c, c) }\n";

} // namespace

TEST_CASE("random bits are what the interpreter says, and so is the state") {
  for (const std::string &text :
       {program("s = u64[2] parameter(0)\n ROOT r = (u64[2], u32[3,5]) rng-bit-generator(s), algorithm=rng_three_fry"),
        program("s = u64[2] parameter(0)\n ROOT r = (u64[2], u64[7]) rng-bit-generator(s), algorithm=rng_three_fry"),
        program("s = u64[2] parameter(0)\n ROOT r = (u64[2], u8[]) rng-bit-generator(s), algorithm=rng_three_fry"),
        program(
            "s = u64[3] parameter(0)\n ROOT r = (u64[3], u32[2,3]{0,1}) rng-bit-generator(s), algorithm=rng_philox"),
        program("s = u64[2] parameter(0)\n ROOT r = (u64[2], s16[0]) rng-bit-generator(s), algorithm=rng_default"),
        program("s = u64[3] constant({7, 18446744073709551615, 3})\n"
                "ROOT r = (u64[3], u64[5]) rng-bit-generator(s), algorithm=rng_philox")}) {
    INFO(text);
    PassRun p(text);
    expands(p, expandRandom, Opcode::RngBitGenerator);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
}

TEST_CASE("random numbers draw on a state that goes through loops") {
  const std::string loop = "more { s = (s32[], u64[2]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
                           "n = s32[] constant(3)\n ROOT r = pred[] compare(i, n), direction=LT }\n"
                           "draw { s = (s32[], u64[2]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
                           "n = s32[] constant(1)\n j = s32[] add(i, n)\n"
                           "x = u64[2] rng-get-and-update-state(), delta=7\n ROOT r = (s32[], u64[2]) tuple(j, x) }\n";
  PassRun p(program("z = s32[] constant(0)\n x = u64[2] rng-get-and-update-state(), delta=2\n"
                    "t = (s32[], u64[2]) tuple(z, x)\n w = (s32[], u64[2]) while(t), condition=more, body=draw\n"
                    "y = u64[2] get-tuple-element(w), index=1\n"
                    "a = s8[9] rng(s8[] constant(-100), s8[] constant(100)), distribution=rng_uniform\n"
                    "ROOT r = (u64[2], s8[9]) tuple(y, a)",
                    loop));
  expands(p, expandRng, Opcode::RngGetAndUpdateState);
  CHECK(count(*p.module, Opcode::Rng) == 0);
  CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  PassRun condition(
      program("z = s32[] constant(0)\n ROOT w = s32[] while(z), condition=more, body=same",
              "more { s = s32[] parameter(0)\n b = pred[] rng(pred[] constant(false), pred[] constant(true)), "
              "distribution=rng_uniform\n ROOT r = pred[] not(b) }\n"
              "same { ROOT s = s32[] parameter(0) }\n"));
  CHECK(condition.run(expandRng) == PassResult::Unchanged);
}

TEST_CASE("factors and solutions are made by loops, of which nothing is left of empty matrices") {
  PassRun p(program("x = bf16[2,3,3]{0,1,2} parameter(0)\n"
                    "ROOT r = bf16[2,3,3]{0,1,2} cholesky(x), lower=true"));
  expands(p, expandLinearAlgebra, Opcode::Cholesky);
  CHECK(count(*p.module, Opcode::While) == 1);
  PassRun q(program("a = c64[3,3] parameter(0)\n b = c64[4,3] parameter(1)\n"
                    "ROOT r = c64[4,3] triangular-solve(a, b), lower=true, transpose_a=ADJOINT"));
  expands(q, expandLinearAlgebra, Opcode::TriangularSolve);
  CHECK(count(*q.module, Opcode::While) == 1);
  PassRun empty(program("x = f32[2,0,0] parameter(0)\n ROOT r = f32[2,0,0] cholesky(x)"));
  expands(empty, expandLinearAlgebra, Opcode::Cholesky);
  CHECK(count(*empty.module, Opcode::While) == 0);
}

TEST_CASE("a transform is a contraction for each factor of its length") {
  auto contractions = [](int64_t length) {
    std::string n = std::to_string(length);
    PassRun p(program("x = c64[" + n + "] parameter(0)\n ROOT r = c64[" + n + "] fft(x), fft_type=FFT, fft_length={" +
                      n + "}"));
    expands(p, expandFfts, Opcode::Fft);
    return count(*p.module, Opcode::Dot);
  };
  CHECK(contractions(1) == 0);
  CHECK(contractions(16) == 1);
  CHECK(contractions(31) == 1);
  CHECK(contractions(4096) == 3);
  CHECK(contractions(2 * 3 * 5 * 7 * 11) == 4); // 6, 5, 7, 11
  PassRun p(
      program("x = c64[2,4]{0,1} parameter(0)\n ROOT r = f32[2,6]{0,1} fft(x), fft_type=IRFFT, fft_length={2,6}"));
  expands(p, expandFfts, Opcode::Fft);
}

TEST_CASE("a scan is a loop that carries what it does") {
  for (const std::string &text :
       {program("x = f32[9] parameter(0)\n i = f32[] parameter(1)\n"
                "ROOT r = (f32[9], f32[]) scan(x, i), dimensions={0}, num_carries=1, to_apply=sum",
                sum),
        program("x = f32[9] parameter(0)\n i = f32[] parameter(1)\n"
                "ROOT r = (f32[9], f32[]) scan(x, i), dimensions={0}, num_carries=1, is_reverse=true, to_apply=sum",
                sum)}) {
    PassRun p(text);
    expands(p, expandScans, Opcode::Scan);
    CHECK(count(*p.module, Opcode::While) == 1);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
}

TEST_CASE("reductions that round are made in the type of their reducer, and rounded") {
  const std::string add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n";
  for (const std::string &text :
       {program("x = f32[5,70] parameter(0)\n i = f32[] parameter(1)\n"
                "ROOT r = bf16[5]{0} reduce(x, i), dimensions={1}, to_apply=add",
                add),
        program("x = f32[9] parameter(0)\n i = f32[] parameter(1)\n"
                "ROOT r = f16[7] reduce-window(x, i), window={size=3}, to_apply=add",
                add),
        program("x = f32[5,9] parameter(0)\n i = f32[] parameter(1)\n"
                "ROOT r = (f32[5], f16[5]) reduce(x, x, i, i), dimensions={1}, to_apply=both",
                "both { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] parameter(2)\n"
                " d = f32[] parameter(3)\n s = f32[] add(a, c)\n m = f32[] maximum(b, d)\n"
                " ROOT t = (f32[], f32[]) tuple(s, m) }\n")}) {
    INFO(text);
    PassRun p(text);
    const Shape before = p.module->entry()->root()->shape();
    CHECK(p.run(expandMixedPrecision) == PassResult::Changed);
    CHECK(p.run(expandMixedPrecision) == PassResult::Unchanged);
    CHECK(p.module->entry()->root()->shape() == before);
    CHECK(count(*p.module, Opcode::Convert) == 1);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
}

TEST_CASE("calls with a public meaning become ops") {
  const std::string config =
      "backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kNone\",\"conv_result_scale\":1}}";
  auto forward = [&](const std::string &kernel, const std::string &more = "") {
    return program("x = f32[2,7,3] parameter(0)\n k = f32[" + kernel + "] parameter(1)\n" +
                   "c = (f32[2,5,4], u8[0]) custom-call(x, k), window={size=3}, dim_labels=b0f_o0i->b0f, "
                   "custom_call_target=\"__cudnn$convForward\", " +
                   more + config + "\n ROOT r = f32[2,5,4] get-tuple-element(c), index=0");
  };
  PassRun p(forward("4,3,3"));
  expands(p, expandCustomCalls, Opcode::CustomCall);
  CHECK(count(*p.module, Opcode::Convolution) == 1);
  CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  PassRun wrongSize(forward("4,3,2"));
  CHECK(wrongSize.run(expandCustomCalls) == PassResult::Unchanged);
  PassRun effect(forward("4,3,3", "custom_call_has_side_effect=true, "));
  CHECK(effect.run(expandCustomCalls) == PassResult::Unchanged);
  PassRun unknown(program("x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), custom_call_target=\"foo\""));
  CHECK(unknown.run(expandCustomCalls) == PassResult::Unchanged);
  PassRun top(program("x = f32[2,9] parameter(0)\n"
                      "ROOT r = (f32[2,4], s32[2,4]) custom-call(x), custom_call_target=\"TopK\""));
  expands(top, expandCustomCalls, Opcode::CustomCall);
  CHECK(count(*top.module, Opcode::TopK) == 1);
}

TEST_CASE("calls of cuBLAS and CUB become ops where they fit") {
  auto gemm = [](const std::string &rhs, const std::string &numbers) {
    return program("x = f32[9,7] parameter(0)\n y = f32[" + rhs + R"(] parameter(1)
  c = f32[9,5] parameter(2)
  g = (f32[9,5], s8[16]) custom-call(x, y, c), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{
    "dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]},)" +
                   numbers + "}}\n ROOT r = f32[9,5] get-tuple-element(g), index=0");
  };
  PassRun p(gemm("7,5", R"("alpha_real":1,"beta":1)"));
  expands(p, expandCustomCalls, Opcode::CustomCall);
  CHECK(count(*p.module, Opcode::Dot) == 1);
  CHECK(count(*p.module, Opcode::Add) == 1);
  CHECK(count(*p.module, Opcode::Multiply) == 0);
  PassRun alone(program(R"(x = f32[9,7] parameter(0)
  y = f32[7,5] parameter(1)
  ROOT g = f32[9,5] custom-call(x, y), custom_call_target="__cublas$lt$matmul", backend_config={"alpha_real":1,
    "dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}})"));
  expands(alone, expandCustomCalls, Opcode::CustomCall);
  CHECK(resultDifference(*alone.parsed.module, *alone.module) == "");
  for (const std::string &text : {gemm("7,4", R"("alpha_real":1,"beta":1)"), gemm("7,5", R"("alpha_real":1,"beta":0)"),
                                  gemm("7,5", R"("alpha_real":1,"beta":1,"epilogue":"OTHER")")}) {
    PassRun other(text);
    CHECK(other.run(expandCustomCalls) == PassResult::Unchanged);
  }
  PassRun sort(program(R"(k = f32[3,40] parameter(0)
  v = s8[3,40] parameter(1)
  ROOT r = (f32[3,40], s8[3,40], u8[5]) custom-call(k, v), custom_call_target="xla.gpu.ext.cub_sort_pairs",
    backend_config={"descending":true})"));
  expands(sort, expandCustomCalls, Opcode::CustomCall);
  CHECK(count(*sort.module, Opcode::Sort) == 1);
  CHECK(resultDifference(*sort.parsed.module, *sort.module) == "");
}

TEST_CASE("cuSOLVER's factorisation says which leading minor is not positive") {
  PassRun p(program("m = f32[2,2,2] constant({{{4,2},{2,5}},{{4,2},{2,1}}})\n"
                    "ROOT r = (f32[2,2,2], s32[2]) custom-call(m), custom_call_target=\"cusolver_potrf_ffi\", "
                    "backend_config={lower = true}"));
  expands(p, expandLinearAlgebra, Opcode::CustomCall);
  CHECK(resultDifference(*p.parsed.module, *p.module) == "");
}

namespace {

const std::string addS32 = "add_s32 { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\n";

std::string window(const std::string &window, const std::string &from, const std::string &to,
                   const std::string &init = "constant(0)") {
  return program("x = s32[" + from + "] parameter(0)\n i = s32[] " + init + "\n ROOT r = s32[" + to +
                     "] reduce-window(x, i), window={" + window + "}, to_apply=add_s32",
                 addS32);
}

} // namespace

TEST_CASE("windows that read elements often become several that do not") {
  auto windows = [](const std::string &text, size_t expected, size_t loops = 0) {
    INFO(text);
    PassRun p(text);
    CHECK(p.run(expandWindows) == PassResult::Changed);
    CHECK(count(*p.module, Opcode::ReduceWindow) == expected);
    CHECK(count(*p.module, Opcode::While) == loops);
    for (const HloInstruction *instr : p.module->entry()->instructions())
      if (instr->opcode() == Opcode::ReduceWindow)
        for (const WindowDim &dim : instr->windowOr(instr->shape().rank()).dims)
          CHECK(dim.size <= 48);
    CHECK(p.run(expandWindows) == PassResult::Unchanged);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  };
  windows(window("size=1024 pad=1023_0", "1024", "1024"), 2);         // of 32, over 32
  windows(window("size=1025 pad=0_1024", "1025", "1025"), 3);         // one more
  windows(window("size=1x33 pad=0_0x32_0", "2,33", "2,33"), 2);       // along the second
  windows(window("size=96", "200", "105"), 2);                        // 32 * 3
  windows(window("size=97 pad=5_6", "200", "115"), 3);                // 16 * 6 + 1
  windows(window("size=9x8", "20,30", "12,23"), 2);                   // one after the other
  windows(window("size=64 pad=63_0", "64", "64", "parameter(1)"), 2); // from anything
  windows(program("x = f32[64] parameter(0)\n i = f32[] parameter(1)\n"
                  "ROOT r = f32[64] reduce-window(x, i), window={size=64 pad=63_0}, to_apply=at_most_one",
                  "at_most_one { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] maximum(a, b)\n"
                  "one = f32[] constant(1)\n ROOT r = f32[] minimum(c, one) }\n"),
          0, 1); // of any combiner: six rounds
}

TEST_CASE("windows that a loop may go over are kept, and so are all within fusions") {
  for (const std::string &text : {window("size=32 pad=31_0", "32", "32"), window("size=100 stride=50", "1000", "19"),
                                  window("size=3x3", "9,9", "7,7")}) {
    INFO(text);
    PassRun p(text);
    CHECK(p.run(expandWindows) == PassResult::Unchanged);
  }
  PassRun p(program("x = s32[99] parameter(0)\n ROOT r = s32[99] fusion(x), kind=kLoop, calls=body",
                    addS32 + "body { x = s32[99] parameter(0)\n i = s32[] constant(0)\n ROOT r = s32[99] "
                             "reduce-window(x, i), window={size=99 pad=98_0}, to_apply=add_s32 }\n"));
  CHECK(p.run(expandWindows) == PassResult::Unchanged);
}

TEST_CASE("an associative scan of one op is a cumulative window") {
  const std::string step = "step { a = s32[2] parameter(0)\n b = s32[2] parameter(1)\n c = s32[2] maximum(a, b)\n"
                           "ROOT r = (s32[2], s32[2]) tuple(c, c) }\n";
  for (const char *way : {"", ", is_reverse=true"}) {
    PassRun p(program("x = s32[2,70] parameter(0)\n i = s32[2] parameter(1)\n ROOT r = (s32[2,70], s32[2]) scan(x, i), "
                      "dimensions={1}, num_carries=1, is_associative=true, to_apply=step" +
                          std::string(way),
                      step));
    expands(p, expandWindows, Opcode::Scan);
    CHECK(count(*p.module, Opcode::While) == 0);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
}

TEST_CASE("products of matrices and vectors are sums of integers that wrap as those of dots do") {
  for (const std::string &body :
       {"v = s32[1,70] parameter(0)\n m = s32[70,5] parameter(1)\n"
        "ROOT r = s32[1,5] dot(v, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "v = s8[70] parameter(0)\n m = s8[5,70]{0,1} parameter(1)\n"
        "ROOT r = s8[5] dot(m, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "v = s8[1,3,70]{1,2,0} parameter(0)\n m = u8[70,4,3] parameter(1)\n"
        "ROOT r = s32[3,1,4]{0,2,1} dot(v, m), lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={0}",
        "v = u16[9,1,8] parameter(0)\n m = u16[8,5,9] parameter(1)\n"
        "ROOT r = u16[5,1] dot(m, v), lhs_contracting_dims={0,2}, rhs_contracting_dims={2,0}",
        "v = s32[64] parameter(0)\n m = s32[64] parameter(1)\n"
        "ROOT r = s32[] dot(v, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}"}) {
    INFO(body);
    PassRun p(program(body));
    expands(p, expandVectorProducts, Opcode::Dot);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
}

TEST_CASE("products that nothing is summed of are elementwise") {
  for (const char *body : {"v = s32[7] parameter(0)\n m = s32[5] parameter(1)\n ROOT r = s32[7,5] dot(v, m)",
                           "v = s32[7]{0} parameter(0)\n m = s32[7,5]{0,1} parameter(1)\n"
                           "ROOT r = s32[7,5]{0,1} dot(v, m), lhs_batch_dims={0}, rhs_batch_dims={0}",
                           "v = s8[7,3] parameter(0)\n m = u8[7,5,2] parameter(1)\n"
                           "ROOT r = s32[7,3,5,2] dot(v, m), lhs_batch_dims={0}, rhs_batch_dims={0}",
                           "v = u16[] parameter(0)\n m = u16[33] parameter(1)\n ROOT r = u16[33] dot(v, m)"}) {
    INFO(body);
    PassRun p(program(body));
    expands(p, expandVectorProducts, Opcode::Dot);
    CHECK(count(*p.module, Opcode::Reduce) == 0);
    CHECK(resultDifference(*p.parsed.module, *p.module) == "");
  }
  // A sum of one -0 is 0. What is less than the least float and negative becomes -0 before: not the same bits.
  PassRun p(program("v = f32[7] parameter(0)\n m = f32[5] parameter(1)\n ROOT r = f32[7,5] dot(v, m)"));
  expands(p, expandVectorProducts, Opcode::Dot);
  CHECK(count(*p.module, Opcode::Add) == 1);
}

TEST_CASE("of products of matrices and vectors floats are summed in 32 bits and rounded once") {
  PassRun p(program("v = f32[70] parameter(0)\n m = bf16[5,70] parameter(1)\n"
                    "ROOT r = bf16[5] dot(m, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  expands(p, expandVectorProducts, Opcode::Dot);
  auto first = [&](Opcode opcode) {
    return *llvm::find_if(p.module->entry()->instructions(), [&](auto *instr) { return instr->opcode() == opcode; });
  };
  CHECK(first(Opcode::Reduce)->shape().elementType() == ElementType::F32);
  CHECK(first(Opcode::Multiply)->shape().elementType() == ElementType::F32);
  // What a dot multiplies has the type of its result.
  CHECK(first(Opcode::Convert)->operand(0)->name() == "m");
  CHECK(llvm::any_of(p.module->entry()->instructions(), [](auto *instr) {
    return instr->shape() == Shape::array(ElementType::BF16, {70}) && instr->opcode() == Opcode::Convert;
  }));
}

TEST_CASE("products of matrices and vectors stay where a thread for each result is enough") {
  auto stays = [](const std::string &lhs, const std::string &rhs, const std::string &result, FusionMode fusion) {
    PassRun p(program("v = f32[" + lhs + "] parameter(0)\n m = f32[" + rhs + "] parameter(1)\n" + "ROOT r = f32[" +
                      result + "] dot(v, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
    p.context.options.fusion = fusion;
    return p.run(expandVectorProducts) == PassResult::Unchanged;
  };
  CHECK(!stays("1,64", "64,9", "1,9", FusionMode::Keep));
  CHECK(stays("1,63", "63,9", "1,9", FusionMode::Keep)); // short sums
  CHECK(!stays("1,64", "64,1048576", "1,1048576", FusionMode::Keep));
  CHECK(stays("1,64", "64,1048577", "1,1048577", FusionMode::Keep)); // many of them
  CHECK(stays("2,64", "64,9", "2,9", FusionMode::Keep));             // two rows
  CHECK(stays("1,64", "64,9", "1,9", FusionMode::None));             // each op is to be a kernel
}

TEST_CASE("reductions on both sides of a dimension that stays are two") {
  auto reduces = [](const std::string &type, const std::string &operand, const std::string &result,
                    const std::string &dimensions, const std::string &op, const std::string &init) {
    PassRun p(program("x = " + type + operand + " parameter(0)\n z = " + type + "[] constant(" + init +
                          ")\n ROOT r = " + type + result + " reduce(x, z), dimensions={" + dimensions +
                          "}, to_apply=f",
                      "f { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT c = " + type +
                          "[] " + op + "(a, b) }\n"));
    const bool changed = p.run(splitReductions) == PassResult::Changed;
    if (changed)
      CHECK(p.run(splitReductions) == PassResult::Unchanged);
    CHECK(count(*p.module, Opcode::Reduce) == (changed ? 2 : 1));
    if (op != "add" || type[0] != 'f')
      CHECK(resultDifference(*p.parsed.module, *p.module) == "");
    return changed;
  };
  CHECK(reduces("s32", "[3,4,9,5]", "[4,5]", "0,2", "add", "0"));
  CHECK(reduces("f32", "[3,4,9,5]", "[4,5]", "0,2", "add", "0"));
  CHECK(reduces("f32", "[3,4,9,5]", "[4,5]", "0,2", "maximum", "-1"));
  CHECK(reduces("bf16", "[3,4,9,5]", "[4,5]{0,1}", "0,2", "minimum", "1"));
  CHECK(reduces("pred", "[3,4,9,5]", "[4,5]", "2,0", "or", "false"));
  // The order in memory decides, and what has one element does not.
  CHECK(reduces("s32", "[4,5,3,9]{1,3,0,2}", "[4,5]", "2,3", "add", "0"));
  CHECK(reduces("s32", "[3,1,4,2,8,5]", "[4,5]", "0,1,3,4", "add", "0"));
  CHECK(!reduces("s32", "[3,4,9,1]", "[4,1]", "0,2", "add", "0")); // rows
  CHECK(!reduces("s32", "[4,9,5]", "[4,5]", "1", "add", "0"));
  CHECK(!reduces("s32", "[3,4,9,5]", "[3,5]", "1,2", "add", "0"));
  // What is left would be nearly as much; a sum begins with what is not nothing; halves are rounded too often; others.
  CHECK(!reduces("s32", "[3,4,7,5]", "[4,5]", "0,2", "add", "0"));
  CHECK(!reduces("s32", "[3,4,9,5]", "[4,5]", "0,2", "add", "1"));
  CHECK(!reduces("f16", "[3,4,9,5]", "[4,5]", "0,2", "add", "0"));
  CHECK(!reduces("s32", "[3,4,9,5]", "[4,5]", "0,2", "multiply", "1"));
}
