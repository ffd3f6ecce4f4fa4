#include "RunPasses.h"

using namespace hloc;
using namespace hloc::test;

TEST_CASE("results that read the same are one fusion") {
  PassRun p(entry("p = f32[2,3]{1,0} parameter(0)\n q = (f32[2,3]{1,0}, f32[4]{0}) parameter(1)\n"
                  "g = f32[2,3]{1,0} get-tuple-element(q), index=0\n l = f32[2,3]{1,0} log(g)\n"
                  "a = f32[2,3]{1,0} add(l, p)\n b = s32[2,3]{1,0} convert(l)\n"
                  "t = (f32[2,3]{1,0}, s32[2,3]{1,0}) tuple(a, b)\n"
                  "ROOT r = (f32[2,3]{1,0}, (f32[2,3]{1,0}, s32[2,3]{1,0}), f32[2,3]{1,0}) tuple(a, t, p)"));
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nq = parameter()\ng = get-tuple-element(q)\nm = fusion(p g)\n"
                    "get-tuple-element.1.anon = get-tuple-element(m)\nget-tuple-element.2.anon = "
                    "get-tuple-element(m)\ntuple.3.anon = tuple(get-tuple-element.1.anon get-tuple-element.2.anon)\n"
                    "ROOT tuple.4.anon = tuple(get-tuple-element.1.anon tuple.3.anon p)\n");
  CHECK(p.body("fused_e") ==
        "p = parameter()\ng = parameter()\nl = log(g)\na = add(l p)\nb = convert(l)\nROOT tuple.1.anon = tuple(a b)\n");
  CHECK(p.run(formFusions) == PassResult::Unchanged);
}

namespace {
/// With a sum, and arrays of 16 MiB.
PassRun formed(const std::string &body) {
  PassRun p("HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
            "ENTRY e {\n p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n" +
            body + "}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  return p;
}
const std::string rowSum = " r = f32[4096] reduce(p, z), dimensions={1}, to_apply=sum\n"
                           " b = f32[4096,1024] broadcast(r), dimensions={0}\n";
} // namespace

TEST_CASE("a reduction ends a fusion, unless it is read element by element") {
  PassRun once = formed(" r = f32[4096] reduce(p, z), dimensions={1}, to_apply=sum\n ROOT n = f32[4096] negate(r)\n");
  CHECK(once.body() == "p = parameter()\nROOT m = fusion(p)\n");
  PassRun again = formed(" r = f32[1024] reduce(p, z), dimensions={0}, to_apply=sum\n"
                         " b = f32[4096,1024] broadcast(r), dimensions={1}\n ROOT n = f32[4096,1024] subtract(p, b)\n");
  CHECK(again.body() == "p = parameter()\nr = fusion(p)\nROOT m = fusion(p r)\n");
  CHECK(again.body("fused_r") == "p = parameter()\nz = constant()\nROOT r = reduce(p z)\n");
}

TEST_CASE("what rows come to goes back to their elements inside one fusion") {
  // Two reductions one after the other, and the first result needed outside.
  PassRun p = formed(rowSum + " d = f32[4096,1024] subtract(p, b)\n e = f32[4096,1024] exponential(d)\n"
                              " q = f32[4096] reduce(e, z), dimensions={1}, to_apply=sum\n"
                              " g = f32[4096,1024] broadcast(q), dimensions={0}\n n = f32[4096,1024] divide(e, g)\n"
                              " ROOT t = (f32[4096,1024], f32[4096]) tuple(n, r)\n");
  CHECK(p.body() == "p = parameter()\nm = fusion(p)\nget-tuple-element.1.anon = get-tuple-element(m)\n"
                    "get-tuple-element.2.anon = get-tuple-element(m)\n"
                    "ROOT tuple.3.anon = tuple(get-tuple-element.2.anon get-tuple-element.1.anon)\n");
  CHECK(p.run(formFusions) == PassResult::Unchanged);
}

TEST_CASE("what columns come to goes back to their elements inside one fusion, if they fit") {
  auto normal = [](int64_t slices) {
    std::string all = std::to_string(slices), shape = all + "," + std::to_string(4096 / slices) + ",1024]";
    return " x = f32[" + shape + " reshape(p)\n s = f32[" + all +
           ",1024] reduce(x, z), dimensions={1}, to_apply=sum\n b = f32[" + shape +
           " broadcast(s), dimensions={0,2}\n d = f32[" + shape + " subtract(x, b)\n e = f32[" + shape +
           " exponential(d)\n q = f32[" + all + ",1024] reduce(e, z), dimensions={1}, to_apply=sum\n g = f32[" + shape +
           " broadcast(q), dimensions={0,2}\n ROOT n = f32[" + shape + " divide(e, g)\n";
  };
  CHECK(llvm::StringRef(formed(normal(8)).body()).count("fusion") == 1);
  CHECK(llvm::StringRef(formed(normal(2)).body()).count("fusion") == 1);
  CHECK(llvm::StringRef(formed(normal(1)).body()).count("fusion") == 3);
}

TEST_CASE("fusions of rows end where other rows are read, and where a product stands between") {
  const std::string normal = rowSum + " d = f32[4096,1024] divide(p, b)\n";
  PassRun transposed = formed(normal + " ROOT t = f32[1024,4096] transpose(d), dimensions={1,0}\n");
  CHECK(transposed.body() == "p = parameter()\nr = fusion(p)\nROOT m = fusion(p r)\n");
  PassRun twice =
      formed(normal + " w = f32[1024,1024] parameter(1)\n x = f32[4096,1024] dot(d, w), lhs_contracting_dims={1}, "
                      "rhs_contracting_dims={0}\n q = f32[4096] reduce(x, z), dimensions={1}, to_apply=sum\n"
                      " g = f32[4096,1024] broadcast(q), dimensions={0}\n ROOT n = f32[4096,1024] divide(x, g)\n");
  CHECK(twice.body() == "p = parameter()\nw = parameter()\nd = fusion(p)\nx = fusion(d w)\nROOT m = fusion(x)\n");
}

TEST_CASE("a value goes into all of its readers or into none") {
  // Cheap: both compute it, or one kernel does; dear, and read by other rows: it is stored.
  const std::string reversed = " v = f32[4096,1024] reverse(u), dimensions={0}\n"
                               " w = f32[4096,1024] reverse(u), dimensions={1}\n"
                               " ROOT t = (f32[4096,1024], f32[4096,1024]) tuple(v, w)\n";
  PassRun cheap = formed(" u = f32[4096,1024] negate(p)\n" + reversed);
  CHECK(llvm::StringRef(cheap.body()).count("fusion") == 1);
  std::string chain = " chain0 = f32[4096,1024] sine(p)\n";
  for (int i = 1; i < 6; ++i)
    chain += " chain" + std::to_string(i) + " = f32[4096,1024] power(chain" + std::to_string(i - 1) + ", p)\n";
  PassRun dear = formed(chain + " u = f32[4096,1024] cosine(chain5)\n" + reversed);
  CHECK(dear.body("fused_u").find("cosine") != std::string::npos);
}

TEST_CASE("a renaming of what is stored anyway is no kernel") {
  PassRun p = formed(" n = f32[4096,1024] negate(p)\n r = f32[4194304] reshape(n)\n"
                     " ROOT t = (f32[4096,1024], f32[4194304]) tuple(n, r)\n");
  CHECK(p.body() == "p = parameter()\nm = fusion(p)\nbitcast.2.anon = bitcast(m)\n"
                    "ROOT tuple.1.anon = tuple(m bitcast.2.anon)\n");
}

TEST_CASE("why values are stored is said") {
  PassRun p("HloModule m\nsum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
            "ENTRY e {\n p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
            " e = f32[4096,1024] exponential(p)\n r = f32[1024] reduce(e, z), dimensions={0}, to_apply=sum\n"
            " b = f32[4096,1024] broadcast(r), dimensions={1}\n ROOT n = f32[4096,1024] subtract(p, b)\n}\n");
  FusionExplanation explanation;
  p.context.explanation = &explanation;
  CHECK(p.run(formFusions) == PassResult::Changed);
  std::string text;
  for (const FusionDecision &one : explanation.decisions)
    text += one.producer + " -> " + one.user + (one.fused ? " fused\n" : ": " + one.reason + "\n");
  CHECK(text.find("e -> r fused\n") == 0);
  CHECK(text.find("r -> b: the columns do not fit into the registers of a block") != std::string::npos);
  CHECK(text.find("b -> n fused\n") != std::string::npos);
}

TEST_CASE("a headerless text is one fusion body") {
  PassRun p("fusion {\n p = f32[4] parameter(0)\n n = f32[4] negate(p)\n ROOT t = (f32[4], f32[4]) tuple(n, p)\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nROOT fusion = fusion(p)\n");
  CHECK(p.module->entry()->name() == "entry");
}

namespace {
const char *twoFusions = "HloModule m\n"
                         "f {\n x = f32[4] parameter(0)\n c = f32[4] parameter(1)\n i = f32[4] parameter(2)\n"
                         " a = f32[4] add(x, c)\n ROOT s = f32[4] subtract(a, i)\n}\n"
                         "ENTRY e {\n k = f32[4] constant({1,2,3,4})\n p = f32[4] parameter(0)\n"
                         " n = f32[4] multiply(p, k)\n j = f32[4] iota(), iota_dimension=0\n"
                         " v = f32[4] fusion(j, k, n), kind=kLoop, calls=f\n"
                         " ROOT t = (f32[4], f32[4]) tuple(v, n)\n}\n";
}

TEST_CASE("beside fusions every op is one of its own, and constants go into their readers") {
  PassRun p(twoFusions);
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nn = fusion(p)\nv = fusion(n)\nROOT t = tuple(v n)\n");
  CHECK(p.body("wrapped_n") == "k = constant()\np = parameter()\nROOT n = multiply(p k)\n");
  CHECK(p.body("f") == "j = iota()\nk = constant()\ni = parameter()\na = add(j k)\nROOT s = subtract(a i)\n");
  CHECK(p.module->computations().size() == 3);
  CHECK(p.run(formFusions) == PassResult::Unchanged);
}

TEST_CASE("a fusion that a constant goes into keeps its attributes, and its aliases the operands that they mean") {
  auto body = [](const char *name) {
    return std::string(name) +
           " {\n k = f32[4] parameter(0)\n x = f32[4] parameter(1)\n ROOT a = f32[4] add(k, x)\n}\n";
  };
  PassRun p("HloModule m\n" + body("f") + body("g") +
            "ENTRY e {\n p = f32[4] parameter(0)\n k = f32[4] constant({1,2,3,4})\n"
            " v = f32[4] fusion(k, p), kind=kInput, calls=f, output_to_operand_aliasing={{}: (1, {})},"
            " metadata={op_name=\"n\"}\n ROOT w = f32[4] fusion(k, v), kind=kLoop, calls=g,"
            " output_to_operand_aliasing={{}: (0, {})}\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  std::string text = print(*p.module);
  INFO(text);
  CHECK(text.find("fusion(%p), kind=kInput") != std::string::npos);
  CHECK(text.find("output_to_operand_aliasing={{}: (0, {})}") != std::string::npos);
  CHECK(text.find("op_name=\"n\"") != std::string::npos);
  CHECK(std::get<llvm::ArrayRef<OutputAlias>>(*p.module->entry()->root()->find(AttributeKey::OutputToOperandAliasing))
            .empty());
}

TEST_CASE("a constant that needs a buffer gets a kernel") {
  PassRun p("HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n"
            "ENTRY e {\n k = f32[4] constant({1,2,3,4})\n v = f32[4] fusion(k), kind=kLoop, calls=f\n"
            " ROOT t = (f32[4], f32[4]) tuple(v, k)\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "k = fusion()\nv = fusion(k)\nROOT t = tuple(v k)\n");
}

TEST_CASE("a body that two fusions share is copied before a constant goes into it") {
  PassRun p("HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n"
            "ENTRY e {\n p = f32[4] parameter(0)\n k = f32[4] constant({1,2,3,4})\n"
            " v = f32[4] fusion(k), kind=kLoop, calls=f\n w = f32[4] fusion(p), kind=kLoop, calls=f\n"
            " ROOT t = (f32[4], f32[4]) tuple(v, w)\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\nv = fusion()\nw = fusion(p)\nROOT t = tuple(v w)\n");
  CHECK(p.body("f") == "x = parameter()\nROOT n = negate(x)\n");
  CHECK(p.body("f.1") == "k = constant()\nROOT n = negate(k)\n");
}

TEST_CASE("a side effect that no result reads is not dropped") {
  PassRun p(entry("p = s32[] parameter(0)\n o = s32[] rng(p, p), distribution=rng_uniform\n ROOT n = s32[] negate(p)"));
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\no = fusion(p)\nROOT m = fusion(p)\n");
  CHECK(p.body("fused_o") == "p = parameter()\nROOT o = rng(p p)\n");
}

TEST_CASE("external steps stand between fusions, with or without results") {
  const std::string steps = "p = s32[4] parameter(0)\n n = s32[4] negate(p)\n t = token[] after-all()\n"
                            "o = token[] outfeed(n, t), outfeed_shape=s32[4]\n k = s32[] constant(7)\n"
                            "c = s32[4] custom-call(n, k), custom_call_target=\"mine\"\n";
  PassRun p(entry(steps + "ROOT a = s32[4] add(c, n)"));
  CHECK(p.run(formFusions) == PassResult::Changed);
  const std::string negated = "get-tuple-element.1.anon", seven = "get-tuple-element.2.anon";
  CHECK(p.body() == "p = parameter()\nt = after-all()\nk = fusion(p)\n" + negated +
                        " = get-tuple-element(k)\no = outfeed(" + negated + " t)\n" + seven +
                        " = get-tuple-element(k)\nc = custom-call(" + negated + " " + seven + ")\nROOT m = fusion(" +
                        negated + " c)\n");
  CHECK(p.run(formFusions) == PassResult::Unchanged);
  PassRun fused("HloModule m\nf { x = s32[4] parameter(0)\n ROOT n = s32[4] negate(x) }\nENTRY e {\n" + steps +
                "ROOT a = s32[4] fusion(c), kind=kLoop, calls=f }\n");
  CHECK(fused.run(formFusions) == PassResult::Changed);
  CHECK(fused.body() == "p = parameter()\nn = fusion(p)\nt = after-all()\no = outfeed(n t)\nk = fusion()\n"
                        "c = custom-call(n k)\nROOT a = fusion(c)\n");
}

TEST_CASE("a sort ends a fusion, in a headerless text too") {
  const std::string below =
      "below { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n";
  const std::string body = "p = f32[4] parameter(0)\n m = f32[4] negate(p)\n"
                           "o = f32[4] sort(m), dimensions={0}, to_apply=below\n ROOT n = f32[4] abs(o)\n}\n";
  PassRun p("HloModule m\n" + below + "ENTRY e {\n" + body);
  CHECK(p.run(formFusions) == PassResult::Changed);
  CHECK(p.body() == "p = parameter()\no = fusion(p)\nROOT m = fusion(o)\n");
  CHECK(p.body("fused_o") == "p = parameter()\nm = negate(p)\nROOT o = sort(m)\n");
  PassRun headerless(below + "e {\n" + body);
  CHECK(headerless.run(formFusions) == PassResult::Changed);
  CHECK(headerless.module->entry()->name() == "e");
}

TEST_CASE("what is scattered into a loop's state is computed of that state before") {
  const std::string state = "(s32[], f32[6,8])";
  PassRun p("HloModule m\n"
            "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
            "cond {\n t = " +
            state +
            " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
            " n = s32[] constant(6)\n ROOT c = pred[] compare(i, n), direction=LT\n}\n"
            "body {\n t = " +
            state +
            " parameter(0)\n i = s32[] get-tuple-element(t), index=0\n"
            " x = f32[6,8] get-tuple-element(t), index=1\n z = f32[] constant(0)\n one = s32[] constant(1)\n"
            " u = f32[8] reduce(x, z), dimensions={0}, to_apply=sum\n at = s32[1] reshape(i)\n"
            " d = f32[6,8] scatter(x, at, u), update_window_dims={0}, inserted_window_dims={0},\n"
            "  scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=sum\n"
            " j = s32[] add(i, one)\n ROOT r = " +
            state +
            " tuple(j, d)\n}\n"
            "ENTRY e {\n y = f32[6,8] parameter(0)\n i = s32[] parameter(1)\n t = " +
            state +
            " tuple(i, y)\n"
            " ROOT w = " +
            state + " while(t), condition=cond, body=body\n}\n");
  CHECK(p.run(formFusions) == PassResult::Changed);
  const HloInstruction *made = p.module->findComputation("body")->root()->operand(1);
  REQUIRE(made->opcode() == Opcode::Fusion);
  unsigned readsOfState = 0;
  for (const HloInstruction *operand : made->operands())
    readsOfState += operand->name() == "x";
  CHECK(readsOfState == 1);
  for (const HloInstruction *instr : made->computation(AttributeKey::Calls)->instructions())
    CHECK(instr->opcode() != Opcode::Reduce);
}
