// Each rule: kernels that it finds something in, and ones like them that it does not.
#include "Kernels.h"

#include "llvm/ADT/StringSet.h"

using namespace hloc;
using namespace hloc::lint;

namespace {

/// A loop around compare-and-swap whose new value in %r4 is made of the old one in %r2 by `update`.
std::string casLoop(const std::string &update, const std::string &type = "b32") {
  return R"(
  ld.global.b32 %r2, [%rd1];
$L:
  )" + update +
         "\n  atom.relaxed.gpu.global.cas." + type + R"( %r5, [%rd1], %r2, %r4;
  setp.ne.b32 %p1, %r5, %r2;
  mov.b32 %r2, %r5;
  @%p1 bra $L;
)";
}

} // namespace

TEST_CASE("cas-loop: what one atomic does", "[lint]") {
  CHECK(found(casLoop("add.rn.f32 %r4, %r2, %r9;")) == "cas-loop");
  CHECK(found(casLoop("add.s32 %r4, %r2, %r9;")) == "cas-loop");
  CHECK(found(casLoop("max.s32 %r4, %r2, %r9;")) == "cas-loop");
  CHECK(found(casLoop("xor.b32 %r4, %r2, %r9;")) == "cas-loop");
  CHECK(found(casLoop("mov.b32 %r4, %r9;")) == "cas-loop");
  CHECK(found(casLoop("mov.b32 %f1, %r2; add.f32 %f2, %f1, %f3; mov.b32 %r4, %f2;")) == "cas-loop");
  // A half of a word: cut out, added, put back.
  const std::string half = "shr.u32 %r6, %r2, %r8; cvt.u16.u32 %rs1, %r6; add.rn.f16 %rs2, %rs1, %rs3; cvt.u32.u16 "
                           "%r7, %rs2; shl.b32 %r7, %r7, %r8; and.b32 %r6, %r2, %r10; or.b32 %r4, %r6, %r7;";
  CHECK(found(casLoop(half)) == "cas-loop");
  // The same through f32.
  const std::string wide = "cvt.u16.u32 %rs1, %r2; cvt.f32.f16 %f1, %rs1; add.f32 %f2, %f1, %f3; cvt.rn.f16.f32 %rs2, "
                           "%f2; mov.b32 %r4, {%rs2, %rs2};";
  CHECK(found(casLoop(wide)) == "cas-loop");
  // Bits of a byte: the word's atomic with zeros around them.
  const std::string byte = "shr.u32 %r6, %r2, %r8; cvt.u16.u32 %rs1, %r6; or.b16 %rs2, %rs1, %rs3; and.b32 %r10, %r2, "
                           "%r9; cvt.u32.u16 %r7, %rs2; shl.b32 %r7, %r7, %r8; or.b32 %r4, %r7, %r10;";
  CHECK_THAT(findingsOf(kernelText(casLoop(byte))).front().message, Catch::Contains("`atom.or.b32`"));
  CHECK_THAT(findingsOf(kernelText(casLoop("add.rn.f32 %r4, %r2, %r9;"))).front().message,
             Catch::Contains("`atom.add.f32`"));
}

TEST_CASE("cas-loop: what needs the loop", "[lint]") {
  CHECK(found(casLoop("mul.lo.s32 %r4, %r2, %r9;")) == "");
  CHECK(found(casLoop("mul.f32 %r4, %r2, %r9;")) == "");
  CHECK(found(casLoop("max.f32 %r4, %r2, %r9;")) == "");
  CHECK(found(casLoop("add.s32 %r4, %r2, %r9; min.s32 %r4, %r4, %r8;")) == "");
  // A byte of a word.
  CHECK(found(casLoop("shr.u32 %r6, %r2, 8; add.s32 %r6, %r6, %r9; shl.b32 %r6, %r6, 8; or.b32 %r4, %r2, %r6;")) == "");
  CHECK(found(casLoop(
            "shr.u32 %r6, %r2, %r8; cvt.u16.u32 %rs1, %r6; or.b16 %rs2, %rs1, %rs3; and.b16 %rs2, %rs2, %rs4; "
            "and.b32 %r10, %r2, %r9; cvt.u32.u16 %r7, %rs2; shl.b32 %r7, %r7, %r8; or.b32 %r4, %r7, %r10;")) == "");
  // bf16 before there was an atomic for it.
  const std::string bf16 = "cvt.u16.u32 %rs1, %r2; add.rn.bf16 %rs2, %rs1, %rs3; cvt.u32.u16 %r4, %rs2;";
  CHECK(found(casLoop(bf16), "sm_90") == "cas-loop");
  CHECK(found(casLoop(bf16), "sm_80") == "");
  // A lock: what is stored has nothing to do with what was there, and what is expected is not what was there.
  CHECK(found("$L: atom.global.cas.b32 %r5, [%rd1], 0, 1; setp.ne.b32 %p1, %r5, 0; @%p1 bra $L;") == "");
  // No loop.
  CHECK(found("ld.global.b32 %r2, [%rd1]; add.s32 %r4, %r2, 1; atom.global.cas.b32 %r5, [%rd1], %r2, %r4;") == "");
}

TEST_CASE("scalar-access: neighbours of known alignment", "[lint]") {
  const std::string four =
      "ld.global.nc.b32 %r2, [%rd1]; ld.global.nc.b32 %r3, [%rd1+4]; ld.global.nc.b32 %r4, [%rd1+8]; "
      "ld.global.nc.b32 %r5, [%rd1+12];";
  CHECK(found(four) == "scalar-access");
  CHECK_THAT(findingsOf(kernelText(four)).front().message,
             Catch::Contains("4 loads of 4 bytes") && Catch::Contains("`.v4.b32`"));
  CHECK(found("mul.wide.u32 %rd4, %r1, 8; add.s64 %rd5, %rd1, %rd4; st.global.b32 [%rd5], %r2; st.global.b32 [%rd5+4], "
              "%r3;") == "scalar-access");
  CHECK(found("shl.b32 %r2, %r1, 4; or.b32 %r3, %r2, 8; cvt.u64.u32 %rd4, %r3; add.s64 %rd5, %rd1, %rd4; "
              "ld.global.nc.b8 %rs1, [%rd5]; ld.global.nc.b8 %rs2, [%rd5+1];") == "scalar-access");
  CHECK(found("shl.b32 %r2, %r1, 3; mov.b32 %r3, tile; add.s32 %r4, %r3, %r2; st.shared.b32 [%r4], %r5; st.shared.b32 "
              "[%r4+4], %r6;") == "scalar-access");
  // In any order, with arithmetic between them.
  CHECK(found("ld.global.nc.b32 %r2, [%rd1+4]; add.s32 %r3, %r2, 1; ld.global.nc.b32 %r4, [%rd1];") == "scalar-access");
  // An address that a loop carries along.
  CHECK(
      found("mov.b64 %rd4, %rd1; $L: ld.global.nc.b32 %r2, [%rd4]; ld.global.nc.b32 %r3, [%rd4+4]; add.s64 %rd4, %rd4, "
            "1024; setp.ne.b64 %p1, %rd4, %rd9; @%p1 bra $L;") == "scalar-access");
  // 32 bytes are one access where there are such.
  const std::string two = "ld.global.nc.v4.b32 {%r2, %r3, %r4, %r5}, [%rd4]; ld.global.nc.v4.b32 {%r6, %r7, %r8, %r9}, "
                          "[%rd4+16];";
  const std::string wide = "mul.wide.u32 %rd4, %r1, 32;" + two;
  CHECK(found(wide, "sm_100") == "scalar-access");
  CHECK(found(wide, "sm_90") == "");
}

TEST_CASE("scalar-access: what no vector could do", "[lint]") {
  // Apart.
  CHECK(found("ld.global.nc.b32 %r2, [%rd1]; ld.global.nc.b32 %r3, [%rd1+8];") == "");
  // Off any alignment.
  CHECK(
      found("mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ld.global.nc.b32 %r2, [%rd5]; ld.global.nc.b32 %r3, "
            "[%rd5+4];") == "");
  CHECK(found("ld.global.nc.b32 %r2, [%rd1+4]; ld.global.nc.b32 %r3, [%rd1+8];") == "");
  // A loop that shifts the address.
  CHECK(
      found("mov.b64 %rd4, %rd1; $L: ld.global.nc.b32 %r2, [%rd4]; ld.global.nc.b32 %r3, [%rd4+4]; add.s64 %rd4, %rd4, "
            "4; setp.ne.b64 %p1, %rd4, %rd9; @%p1 bra $L;") == "");
  // Something between them that may be the same memory, or that others see.
  CHECK(found("ld.global.b32 %r2, [%rd1]; st.global.b32 [%rd2], %r2; ld.global.b32 %r3, [%rd1+4];") == "");
  CHECK(found("ld.global.b32 %r2, [%rd1]; bar.sync 0; ld.global.b32 %r3, [%rd1+4];") == "");
  CHECK(found("ld.volatile.global.b32 %r2, [%rd1]; ld.volatile.global.b32 %r3, [%rd1+4];") == "");
  // Another address in the register, another condition.
  CHECK(found("ld.global.nc.b32 %r2, [%rd1]; mov.b64 %rd1, %rd2; ld.global.nc.b32 %r3, [%rd1+4];") == "");
  CHECK(found("@%p1 ld.global.nc.b32 %r2, [%rd1]; @%p2 ld.global.nc.b32 %r3, [%rd1+4];") == "");
  CHECK(found("@%p1 bra $E; ld.global.nc.b32 %r2, [%rd1]; $E: ld.global.nc.b32 %r3, [%rd1+4];") == "");
}

TEST_CASE("local-memory", "[lint]") {
  CHECK(found(".local .align 4 .b8 depot[64]; mov.b32 %r2, depot; st.local.b32 [%r2], %r3;") == "local-memory");
  CHECK(found(".local .align 4 .b8 depot[64];") == "local-memory");
  CHECK(found("mov.b32 %r2, tile; st.shared.b32 [%r2], %r3;") == "");
}

TEST_CASE("accidental-double: in from f32 and out to f32", "[lint]") {
  CHECK(found("cvt.f64.f32 %d1, %f1; mul.f64 %d2, %d1, 0d3FE0000000000000; cvt.rn.f32.f64 %f2, %d2;") ==
        "accidental-double");
  CHECK(
      found("cvt.f64.f32 %d1, %f1; mov.b64 %d3, 0d3FE0000000000000; add.f64 %d2, %d1, %d3; setp.lt.f64 %p1, %d2, %d3; "
            "selp.f64 %d4, %d2, %d3, %p1; cvt.rn.f32.f64 %f2, %d4;") == "accidental-double");
  const std::string meant = "mul.f64 %d2, %d1, 0d3FE0000000000000; cvt.rn.f32.f64 %f2, %d2;";
  CHECK(found("ld.global.nc.b64 %d1, [%rd1];" + meant) == "");
  CHECK(found("cvt.rn.f64.s64 %d1, %rd4;" + meant) == ""); // exact, as the reduction of an argument of sine is
  CHECK(found("cvt.f64.f32 %d1, %f1; add.f64 %d2, %d1, %d1; st.global.b64 [%rd1], %d2;") == "");
  CHECK(found("cvt.f64.f32 %d1, %f1; cvt.rn.f32.f64 %f2, %d1;") == ""); // nothing is computed
  KernelFacts facts;
  facts.wantsDouble = true;
  CHECK(found("cvt.f64.f32 %d1, %f1; mul.f64 %d2, %d1, 0d3FE0000000000000; cvt.rn.f32.f64 %f2, %d2;", "sm_90", facts) ==
        "");
}

TEST_CASE("slow-division", "[lint]") {
  CHECK(found("div.rn.f32 %f1, %f2, %f3;") == "slow-division");
  CHECK(found("div.full.f32 %f1, %f2, %f3;") == "");
  CHECK(found("div.approx.ftz.f32 %f1, %f2, %f3;") == "");
  CHECK(found("div.rn.f64 %d1, %d2, %d3;") == ""); // there is no other
  CHECK(found("div.u32 %r2, %r1, 7;") == "slow-division");
  CHECK(found("mov.b32 %r3, 7; rem.u32 %r2, %r1, %r3;") == "slow-division");
  CHECK(found("div.u32 %r2, %r1, %r3;") == "");
  const std::string loop = "$L: rem.s32 %r2, %r2, %r3; setp.ne.b32 %p1, %r2, 0; @%p1 bra $L;";
  CHECK(found(loop) == "slow-division");
  KernelFacts facts;
  facts.wantsIntegerDivision = true;
  CHECK(found(loop, "sm_90", facts) == "");
  // After the loop, and on a way back to before it that is none.
  CHECK(found("$L: add.s32 %r2, %r2, 1; setp.ne.b32 %p1, %r2, 9; @%p1 bra $L; rem.s32 %r2, %r2, %r3;") == "");
  CHECK(found("@%p1 bra $COLD; $BACK: rem.s32 %r2, %r2, %r3; ret; $COLD: add.s32 %r2, %r2, 1; bra $BACK;") == "");
}

TEST_CASE("system-scope", "[lint]") {
  CHECK(found("atom.relaxed.sys.global.add.u32 %r2, [%rd1], 1;") == "system-scope");
  CHECK(found("red.release.sys.global.add.u32 [%rd1], 1; fence.sc.sys; membar.sys;") ==
        "system-scope system-scope system-scope");
  CHECK(found("atom.relaxed.gpu.global.add.u32 %r2, [%rd1], 1; red.global.add.u32 [%rd1], 1; fence.acq_rel.gpu; "
              "membar.gl;") == "");
}

TEST_CASE("what ptxas and the launch say", "[lint]") {
  KernelFacts facts;
  CHECK(found("", "sm_90", facts) == "");
  facts.resources = KernelResources{64, 0, 0, 0, 0, 0};
  CHECK(found("", "sm_90", facts) == "");
  facts.resources->registers = 65;
  CHECK(found("", "sm_90", facts) == "registers");
  facts.block = Dim3{128, 1, 1};
  facts.grid = Dim3{7 * 132, 1, 1}; // 65 registers are 72: seven blocks of four warps instead of eight
  CHECK(found("", "sm_90", facts) == "");
  facts.grid->x += 1;
  CHECK(found("", "sm_90", facts) == "registers");
  CHECK(found("", "sm_100", facts) == "");
  facts.registerLimit = 80;
  CHECK(found("", "sm_90", facts) == "");
  facts.resources->spillLoadBytes = 8;
  CHECK(found("", "sm_90", facts) == "spills");
  facts = {};
  facts.grid = Dim3{40, 1, 1};
  CHECK(found("", "sm_90", facts) == "");
  facts.bytesMoved = 8 << 20;
  CHECK(found("", "sm_90", facts) == "small-grid");
  CHECK(found("", "sm_80", facts) == "");
  facts.grid = Dim3{41, 1, 1}; // of 75 bytes a nanosecond each
  CHECK(found("", "sm_90", facts) == "");
}

TEST_CASE("rules can be left out, and are in the order of the text", "[lint]") {
  const std::string text = kernelText("div.rn.f32 %f1, %f2, %f3;\n  membar.sys;");
  ptx::Module module = parsed(text);
  LintOptions options;
  options.target = *findTarget("sm_90");
  std::vector<Finding> both = lint::lint(module, {}, options);
  REQUIRE(both.size() == 2);
  CHECK(both[0].rule == Rule::SlowDivision);
  CHECK(text.substr(both[1].where.begin, both[1].where.end - both[1].where.begin) == "membar.sys");
  options.disabled = {Rule::SystemScope};
  CHECK(lint::lint(module, {}, options).size() == 1);
  CHECK(findRule("system-scope") == Rule::SystemScope);
  CHECK_FALSE(findRule("no-such-rule"));
}

TEST_CASE("a finding names the line of the program by .loc", "[lint]") {
  const std::string text = ".file 1 \"f.hlo\"\n";
  std::vector<Finding> findings = findingsOf(kernelText(".loc 1 12 3\n  membar.sys;") + text);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().source == "f.hlo:12");
  CHECK_THAT(printJson(findings, SourceFile("k.ptx", kernelText(".loc 1 12 3\n  membar.sys;"))),
             Catch::Contains("\"rule\": \"system-scope\"") && Catch::Contains("\"source\": \"f.hlo:12\"") &&
                 Catch::Contains("\"text\": \"membar.sys\""));
}

TEST_CASE("every rule has a name of its own", "[lint]") {
  llvm::StringSet<> names;
  for (const RuleRow &rule : rules()) {
    CHECK(names.insert(rule.name).second);
    CHECK(&row(rule.rule) == &rule);
  }
}
