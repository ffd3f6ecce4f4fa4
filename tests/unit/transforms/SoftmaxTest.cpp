// Which softmax is divided behind the dot that its weights go into, where that is wanted, and which stays.
#include "RunPasses.h"

#include "hloc/hlo/OnlineSoftmax.h"

using namespace hloc;
using namespace hloc::test;

namespace {

constexpr const char *reducers = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
                                 "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n";
const std::string begin = "x = f32[2,8,16] parameter(0) v = bf16[2,16,4] parameter(1)\n"
                          "least = f32[] constant(-inf) zero = f32[] constant(0)\n";
const std::string maximum = "m = f32[2,8] reduce(x, least), dimensions={2}, to_apply=max\n"
                            "mb = f32[2,8,16] broadcast(m), dimensions={0,1}\n";
const std::string powers = "d = f32[2,8,16] subtract(x, mb) e = f32[2,8,16] exponential(d)\n"
                           "l = f32[2,8] reduce(e, zero), dimensions={2}, to_apply=add\n"
                           "lb = f32[2,8,16] broadcast(l), dimensions={0,1}\n";
const std::string weights = "p = f32[2,8,16] divide(e, lb) w = bf16[2,8,16] convert(p)\n";
const std::string dims = ", lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
const std::string product = "ROOT o = bf16[2,8,4] dot(w, v)" + dims;

std::string program(const std::string &body) {
  return std::string("HloModule m\n") + reducers + "ENTRY entry {\n" + body + "\n}\n";
}

/// How many dots became others.
size_t chosen(const std::string &body) {
  INFO(body);
  PassRun asItIs(program(body)), p(program(body));
  CHECK(asItIs.run(chooseSoftmax) == PassResult::Unchanged);
  p.context.options.softmax = SoftmaxChoice::Online;
  const PassResult result = p.run(chooseSoftmax);
  const size_t count = p.context.statistics.of("choose-softmax.online");
  CHECK(result == (count > 0 ? PassResult::Changed : PassResult::Unchanged));
  CHECK(p.run(chooseSoftmax) == PassResult::Unchanged);
  size_t marks = 0;
  for (const HloInstruction *instr : p.module->entry()->instructions())
    marks += isOnlineSoftmax(*instr);
  CHECK(marks == 2 * count);
  return count;
}

} // namespace

TEST_CASE("a softmax is divided behind its dot") {
  PassRun p(program(begin + maximum + powers + weights + product));
  p.context.options.softmax = SoftmaxChoice::Online;
  REQUIRE(p.run(chooseSoftmax) == PassResult::Changed);
  const HloInstruction &result = *p.module->entry()->root(), &quotient = *result.operand(0),
                       &dot = *quotient.operand(0), &sums = *quotient.operand(1);
  CHECK(result.opcode() == Opcode::Convert);
  CHECK(result.shape().elementType() == ElementType::BF16);
  CHECK(quotient.opcode() == Opcode::Divide);
  CHECK(isOnlineSoftmax(dot));
  CHECK(dot.shape().elementType() == ElementType::F32);
  CHECK(isOnlineSoftmax(*dot.operand(0)));
  CHECK(dot.operand(0)->operand(0)->name() == "e");
  CHECK(dot.operand(1)->name() == "v");
  CHECK(sums.operand(0)->name() == "l");
  CHECK(sums.ints(AttributeKey::Dimensions) == llvm::ArrayRef<int64_t>({0, 1}));
}

TEST_CASE("forms that frontends write") {
  CHECK(chosen(begin + maximum + powers + weights + product) == 1);
  CHECK(chosen(begin + maximum + powers + weights + "ROOT o = f32[2,8,4] dot(w, v)" + dims) == 1);
  // Dots round their factors to their results' type, or to an algorithm's.
  CHECK(chosen(begin + maximum + powers + "p = f32[2,8,16] divide(e, lb) ROOT o = bf16[2,8,4] dot(p, v)" + dims) == 1);
  CHECK(chosen(begin + maximum + powers + "p = f32[2,8,16] divide(e, lb) ROOT o = f32[2,8,4] dot(p, v)" + dims +
               ", algorithm=dot_bf16_bf16_f32") == 1);
  // What has been widened is as it was.
  CHECK(chosen(begin + maximum + powers + weights + "vf = f32[2,16,4] convert(v) ROOT o = f32[2,8,4] dot(w, vf)" +
               dims) == 1);
  // One over the sum.
  const std::string times = " w = bf16[2,8,16] convert(p)\n" + product;
  CHECK(chosen(begin + maximum + powers +
               "one = f32[] constant(1) ones = f32[2,8] broadcast(one), dimensions={}\n"
               "r = f32[2,8] divide(ones, l) rb = f32[2,8,16] broadcast(r), dimensions={0,1}\n"
               "p = f32[2,8,16] multiply(rb, e)" +
               times) == 1);
  // Rows that keep a dimension of one element, and a maximum that begins twice.
  CHECK(chosen(
            begin +
            "m = f32[2,8] reduce(x, least), dimensions={2}, to_apply=max\n"
            "none = f32[2,8] broadcast(least), dimensions={} m2 = f32[2,8] maximum(none, m)\n"
            "m3 = f32[2,8,1] reshape(m2) m4 = f32[2,8] reshape(m3) mb = f32[2,8,16] broadcast(m4), dimensions={0,1}\n" +
            powers + weights + product) == 1);
  // The right factor, and a row that is another dimension of the results.
  CHECK(chosen(begin + maximum + powers + weights +
               "ROOT o = bf16[2,4,8] dot(v, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
               "rhs_contracting_dims={2}") == 1);
  // Whoever else reads weights keeps them.
  CHECK(chosen(begin + maximum + powers + weights + "o = bf16[2,8,4] dot(w, v)" + dims +
               "\nROOT t = (bf16[2,8,4], bf16[2,8,16]) tuple(o, w)") == 1);
}

TEST_CASE("what is no softmax of the dot's rows stays") {
  // Without a maximum, with another's, of a product behind the division, of narrower sums.
  CHECK(chosen(begin + "mb = f32[2,8,16] parameter(2)\n" + powers + weights + product) == 0);
  CHECK(chosen(begin +
               "y = f32[2,8,16] parameter(2) m = f32[2,8] reduce(y, least), dimensions={2}, to_apply=max\n"
               "mb = f32[2,8,16] broadcast(m), dimensions={0,1}\n" +
               powers + weights + product) == 0);
  CHECK(chosen(begin + maximum + powers +
               "p = f32[2,8,16] divide(e, lb) y = f32[2,8,16] parameter(2)\n"
               "dropped = f32[2,8,16] multiply(p, y) w = bf16[2,8,16] convert(dropped)\n" +
               product) == 0);
  CHECK(chosen(begin + maximum + powers + "p = f32[2,8,16] divide(lb, e) w = bf16[2,8,16] convert(p)\n" + product) ==
        0);
  CHECK(chosen(begin + maximum + powers + "p = f32[2,8,16] multiply(e, lb) w = bf16[2,8,16] convert(p)\n" + product) ==
        0);
  // Sums of other rows than the dot's, or of some of their elements alone.
  CHECK(chosen(begin +
               "m = f32[2,16] reduce(x, least), dimensions={1}, to_apply=max\n"
               "mb = f32[2,8,16] broadcast(m), dimensions={0,2} d = f32[2,8,16] subtract(x, mb)\n"
               "e = f32[2,8,16] exponential(d) l = f32[2,16] reduce(e, zero), dimensions={1}, to_apply=add\n"
               "lb = f32[2,8,16] broadcast(l), dimensions={0,2}\n" +
               weights + product) == 0);
  CHECK(chosen(begin + maximum + powers +
               "k = f32[] constant(1) l1 = f32[2,8] reduce(e, k), dimensions={2}, to_apply=add\n"
               "l2 = f32[2,8,16] broadcast(l1), dimensions={0,1} p = f32[2,8,16] divide(e, l2)\n"
               "w = bf16[2,8,16] convert(p)\n" +
               product) == 0);
  // The other factor is not rounded.
  CHECK(chosen(begin + maximum + powers + weights + "y = f32[2,16,4] parameter(2) ROOT o = f32[2,8,4] dot(w, y)" +
               dims) == 0);
  CHECK(chosen(begin + maximum + powers + weights + "y = f32[2,16,4] parameter(2) ROOT o = f32[2,8,4] dot(w, y)" +
               dims + ", algorithm=dot_bf16_bf16_f32_x6") == 0);
  // Nothing is rounded.
  CHECK(chosen(begin + maximum + powers +
               "p = f32[2,8,16] divide(e, lb) vf = f32[2,16,4] convert(v)\n"
               "ROOT o = f32[2,8,4] dot(p, vf)" +
               dims) == 0);
}

TEST_CASE("sums of rows in another order than the results'") {
  PassRun p(program("x = f32[8,16,2] parameter(0) v = f16[16,2,4] parameter(1)\n"
                    "least = f32[] constant(-inf) zero = f32[] constant(-0)\n"
                    "m = f32[8,2] reduce(x, least), dimensions={1}, to_apply=max\n"
                    "mb = f32[8,16,2] broadcast(m), dimensions={0,2} d = f32[8,16,2] subtract(x, mb)\n"
                    "e = f32[8,16,2] exponential(d) l = f32[8,2] reduce(e, zero), dimensions={1}, to_apply=add\n"
                    "lb = f32[8,16,2] broadcast(l), dimensions={0,2} p = f32[8,16,2] divide(e, lb)\n"
                    "w = f16[8,16,2] convert(p) ROOT o = f16[2,8,4] dot(w, v), lhs_batch_dims={2}, rhs_batch_dims={1}, "
                    "lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  p.context.options.softmax = SoftmaxChoice::Online;
  REQUIRE(p.run(chooseSoftmax) == PassResult::Changed);
  const HloInstruction &sums = *p.module->entry()->root()->operand(0)->operand(1);
  CHECK(sums.operand(0)->opcode() == Opcode::Transpose);
  CHECK(sums.ints(AttributeKey::Dimensions) == llvm::ArrayRef<int64_t>({0, 1}));
}

TEST_CASE("weights on the right go to the left") {
  PassRun p(program("x = f32[2,8,16] parameter(0) v = bf16[3,2,16] parameter(1)\n"
                    "least = f32[] constant(-inf) zero = f32[] constant(0)\n" +
                    maximum + powers + weights +
                    "ROOT o = bf16[2,3,8] dot(v, w), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                    "rhs_contracting_dims={2}"));
  p.context.options.softmax = SoftmaxChoice::Online;
  REQUIRE(p.run(chooseSoftmax) == PassResult::Changed);
  const HloInstruction &turned = *p.module->entry()->root(), &dot = *turned.operand(0)->operand(0)->operand(0);
  CHECK(turned.opcode() == Opcode::Transpose);
  CHECK(turned.ints(AttributeKey::Dimensions) == llvm::ArrayRef<int64_t>({0, 2, 1}));
  CHECK(isOnlineSoftmax(dot));
  CHECK(dot.shape().dims() == llvm::ArrayRef<int64_t>({2, 8, 3}));
  CHECK(isOnlineSoftmax(*dot.operand(0)));
  CHECK(dot.ints(AttributeKey::RhsBatchDims) == llvm::ArrayRef<int64_t>({1}));
  CHECK(dot.ints(AttributeKey::RhsContractingDims) == llvm::ArrayRef<int64_t>({2}));
}

TEST_CASE("the mark is one attribute of its name, on what it is about") {
  auto isMarked = [](const std::string &instruction, const std::string &attributes) {
    const PassRun p(program("x = f32[8] parameter(0) y = s32[8] parameter(1) z = bf16[8] parameter(2)\nROOT r = " +
                            instruction + ", frontend_attributes={" + attributes + "}"));
    return isOnlineSoftmax(*p.module->entry()->root());
  };
  const std::string mark = "hloc_softmax=\"online\"", dims = ", lhs_contracting_dims={0}, rhs_contracting_dims={0}";
  CHECK(isMarked("bf16[8] convert(x)", mark));
  CHECK(isMarked("f16[8] convert(x)", "other=\"1\"," + mark));
  CHECK(isMarked("f32[] dot(z, z)" + dims, mark + ",other=\"1\""));
  CHECK_FALSE(isMarked("bf16[8] convert(x)", "not_" + mark));
  CHECK_FALSE(isMarked("bf16[8] convert(x)", "hloc_softmax=\"strict\""));
  CHECK_FALSE(isMarked("f8e4m3fn[8] convert(x)", mark));
  CHECK_FALSE(isMarked("f16[8] convert(y)", mark));
  CHECK_FALSE(isMarked("bf16[] dot(z, z)" + dims, mark));
  CHECK_FALSE(isMarked("f32[8] negate(x)", mark));
}
