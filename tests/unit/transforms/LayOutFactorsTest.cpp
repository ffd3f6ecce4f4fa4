// Which factors of dots are copied along their sums.
#include "RunPasses.h"
#include "SameResults.h"

using namespace hloc;
using namespace hloc::test;

namespace {

/// A dot of two parameters x and y, of types and sizes that are given.
std::string dotOf(const std::string &x, const std::string &y, const std::string &result,
                  const std::string &attributes) {
  return "HloModule m\nENTRY entry {\n  x = " + x + " parameter(0)\n  y = " + y +
         " parameter(1)\n  ROOT d = " + result + " dot(x, y), " + attributes + "\n}\n";
}

struct LayOut : PassRun {
  LayOut(const std::string &text, const char *target = "sm_90a") : PassRun(text) {
    context.target = *findTarget(target);
    result = run(layOutFactors);
  }
  PassResult result;

  /// Minor to major of the factor, and whether it is a copy.
  std::pair<std::vector<int64_t>, bool> factor(unsigned side) {
    const HloInstruction &value = *module->entry()->root()->operand(side);
    return {value.shape().minorToMajor().vec(), value.opcode() == Opcode::Copy};
  }
};

using Factor = std::pair<std::vector<int64_t>, bool>;
const char *const plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const char *const across = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"; ///< both
/// Which warpgroups multiply as it lies only along the sums.
const std::string tf32 = ", algorithm=dot_tf32_tf32_f32";

} // namespace

TEST_CASE("of bytes and tf32, one factor is copied where both lie across their sums") {
  for (const char *type : {"s8", "u8", "f8e4m3fn", "f8e5m2", "f32"}) {
    INFO(type);
    const std::string square = std::string(type) + "[4096,4096]";
    const std::string result = type[0] == 'f' ? "f32[4096,4096]" : "s32[4096,4096]";
    const std::string more = square[1] == '3' ? tf32 : "";
    for (const char *attributes : {plain, "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                                   "lhs_contracting_dims={0}, rhs_contracting_dims={1}"})
      CHECK(LayOut(dotOf(square, square, result, attributes + more)).result == PassResult::Unchanged);
    LayOut both(dotOf(square, square, result, across + more));
    CHECK(both.factor(0).second != both.factor(1).second);
    CHECK(both.factor(both.factor(0).second ? 0 : 1) == Factor{{0, 1}, true});
    CHECK(both.run(layOutFactors) == PassResult::Unchanged);
  }
}

TEST_CASE("what would not be faster stays: small factors, 16 bits, targets that multiply both ways") {
  CHECK(LayOut(dotOf("s8[64,64]", "s8[64,64]", "s32[64,64]", plain)).result == PassResult::Unchanged);
  CHECK(LayOut(dotOf("bf16[4096,4096]", "bf16[4096,4096]", "f32[4096,4096]", plain)).result == PassResult::Unchanged);
  const std::string bytes = dotOf("s8[4096,4096]", "s8[4096,4096]", "s32[4096,4096]", plain);
  for (const char *target : {"sm_80", "sm_90", "sm_100"})
    CHECK(LayOut(bytes, target).result == PassResult::Unchanged);
  // One row is bound by the bytes of the matrix.
  CHECK(LayOut(dotOf("s8[16,4096]", "s8[4096,4096]", "s32[16,4096]", plain)).result == PassResult::Unchanged);
}

TEST_CASE("a batch becomes major, and several sums have the order of the other factor") {
  LayOut batch(
      dotOf("f32[2048,8,2048]", "f32[2048,8,2048]", "f32[8,2048,2048]",
            "lhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_batch_dims={1}, rhs_contracting_dims={0}" + tf32));
  const unsigned copied = batch.factor(0).second ? 0 : 1;
  CHECK(batch.factor(copied) == Factor{{0, 2, 1}, true});
  CHECK(batch.factor(1 - copied) == Factor{{2, 1, 0}, false});
  LayOut two(dotOf("f32[64,64,4096]{2,0,1}", "f32[64,64,4096]{2,0,1}", "f32[4096,4096]",
                   "lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}" + tf32));
  CHECK(two.factor(0).second != two.factor(1).second);
  CHECK(two.factor(two.factor(0).second ? 0 : 1) == Factor{{0, 1, 2}, true});
}

TEST_CASE("dots share the copy of a factor") {
  LayOut p(R"(HloModule m
ENTRY entry {
  x = f32[4096,4096] parameter(0)
  z = f32[4096,4096] parameter(1)
  w = f32[4096,4096] parameter(2)
  d = f32[4096,4096] dot(w, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_tf32_tf32_f32
  e = f32[4096,4096] dot(w, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_tf32_tf32_f32
  ROOT t = tuple(d, e)
}
)");
  const HloInstruction &tuple = *p.module->entry()->root();
  CHECK(tuple.operand(0)->operand(0)->opcode() == Opcode::Copy);
  CHECK(tuple.operand(0)->operand(0) == tuple.operand(1)->operand(0));
}

TEST_CASE("results stay what they are") {
  // Small enough for the interpreter, and large enough to be copied.
  PassRun p(
      dotOf("s8[1024,512]", "s8[1024,512]", "s32[512,512]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"));
  p.context.target = *findTarget("sm_90a");
  const std::unique_ptr<HloModule> before = cloneModule(*p.module);
  CHECK(p.run(layOutFactors) == PassResult::Changed);
  CHECK(resultDifference(*before, *p.module) == "");
}
