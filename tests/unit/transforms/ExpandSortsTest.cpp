#include "RunPasses.h"

#include "hloc/interp/Inputs.h"
#include "hloc/interp/Interpreter.h"

using namespace hloc;
using namespace hloc::test;

namespace {

std::string program(const std::string &body, const std::string &callees = "") {
  return "HloModule m\n" + callees + "ENTRY e {\n" + body + "\n}\n";
}

const std::string comparator =
    "below { a = u4[] parameter(0)\n b = u4[] parameter(1)\n c = f32[] parameter(2)\n d = f32[] parameter(3)\n"
    "ROOT r = pred[] compare(a, b), direction=LT }\n";

size_t count(const HloModule &module, Opcode opcode) {
  return size_t(llvm::count_if(module.entry()->instructions(), [&](auto *instr) { return instr->opcode() == opcode; }));
}

} // namespace

TEST_CASE("topk becomes a stable sort with positions, of which the first are taken") {
  PassRun p(program("x = f32[3,9] parameter(0)\n ROOT t = (f32[3,2], s32[3,2]) topk(x), k=2, largest=true"));
  CHECK(p.run(expandSorts) == PassResult::Changed);
  CHECK(count(*p.module, Opcode::TopK) == 0);
  CHECK(count(*p.module, Opcode::Slice) == 2);
  const HloComputation *order = p.module->findComputation("largest_first.f32");
  REQUIRE(order);
  CHECK(order->root()->comparisonType() == ComparisonType::TotalOrder);
  CHECK(p.module->entry()->root()->shape().toString() == "(f32[3,2]{1,0}, s32[3,2]{1,0})");
  for (const HloInstruction *instr : p.module->entry()->instructions())
    if (instr->opcode() == Opcode::Sort)
      CHECK(instr->flag(AttributeKey::IsStable));
  CHECK(p.run(expandSorts) == PassResult::Unchanged);
}

TEST_CASE("of long rows the first of parts are sorted, until they are short") {
  PassRun p(program("x = f32[2,1048577] parameter(0)\n ROOT t = (f32[2,8], s32[2,8]) topk(x), k=8"));
  CHECK(p.run(expandSorts) == PassResult::Changed);
  std::vector<std::string> sorted;
  for (const HloInstruction *instr : p.module->entry()->instructions())
    if (instr->opcode() == Opcode::Sort)
      sorted.push_back(instr->shape().element(0).toString(false));
  CHECK(sorted == std::vector<std::string>{"f32[2,1024,1024]", "f32[2,8,1024]", "f32[2,65]"});
  PassRun many(program("x = f32[4096] parameter(0)\n ROOT t = (f32[129], s32[129]) topk(x), k=129"));
  CHECK(many.run(expandSorts) == PassResult::Changed);
  CHECK(count(*many.module, Opcode::Sort) == 1);
}

TEST_CASE("orders are shared, largest and smallest first apart") {
  PassRun p(program("x = s32[9] parameter(0)\n y = s32[8] parameter(1)\n t = (s32[2], s32[2]) topk(x), k=2\n"
                    "u = (s32[2], s32[2]) topk(y), k=2\n v = (s32[3], s32[3]) topk(y), k=3, largest=false\n"
                    "ROOT r = ((s32[2], s32[2]), (s32[2], s32[2]), (s32[3], s32[3])) tuple(t, u, v)"));
  CHECK(p.run(expandSorts) == PassResult::Changed);
  CHECK(p.module->computations().size() == 3);
}

TEST_CASE("complex numbers have no order") {
  PassRun p(program("x = c64[9] parameter(0)\n ROOT t = (c64[2], s32[2]) topk(x), k=2"));
  CHECK(p.run(expandSorts) == PassResult::Unchanged);
}

TEST_CASE("elements of less than a byte are sorted as bytes") {
  PassRun p(program("x = u4[3,9]{0,1} parameter(0)\n y = f32[3,9]{0,1} parameter(1)\n"
                    "ROOT s = (u4[3,9]{0,1}, f32[3,9]{0,1}) sort(x, y), dimensions={1}, to_apply=below",
                    comparator));
  CHECK(p.run(expandSorts) == PassResult::Changed);
  for (const HloInstruction *instr : p.module->entry()->instructions())
    if (instr->opcode() == Opcode::Sort)
      CHECK(instr->shape().toString() == "(u8[3,9]{0,1}, f32[3,9]{0,1})");
  CHECK(p.module->entry()->root()->shape().toString() == "(u4[3,9]{0,1}, f32[3,9]{0,1})");
  CHECK(p.run(expandSorts) == PassResult::Unchanged);
}

TEST_CASE("expanded programs mean the same") {
  for (const std::string &text :
       {program("x = bf16[3,40] parameter(0)\n ROOT t = (bf16[3,7], s32[3,7]) topk(x), k=7"),
        program("x = u8[3,5003]{0,1} parameter(0)\n ROOT t = (u8[3,4], s32[3,4]) topk(x), k=4"),
        program("x = s8[50] parameter(0)\n ROOT t = (s8[7], s32[7]) topk(x), k=7, largest=false"),
        program("x = f4e2m1fn[50] parameter(0)\n ROOT t = (f4e2m1fn[50], s32[50]) topk(x), k=50"),
        program("x = u4[3,9] parameter(0)\n y = f32[3,9] parameter(1)\n"
                "ROOT s = (u4[3,9], f32[3,9]) sort(x, y), dimensions={1}, to_apply=below",
                comparator)}) {
    PassRun p(text);
    auto arguments = makeArguments(*p.module, p.diagnostics, /*seed=*/1);
    REQUIRE(succeeded(arguments));
    auto before = interpret(*p.module, *arguments, p.diagnostics);
    CHECK(p.run(expandSorts) == PassResult::Changed);
    auto after = interpret(*p.module, *arguments, p.diagnostics);
    REQUIRE((succeeded(before) && succeeded(after)));
    for (auto [one, other] : llvm::zip_equal(before->elements(), after->elements()))
      CHECK(one.bytes() == other.bytes());
  }
}
