// Forms that ptxas refuses for a target are refused, by name, and accepted for the first target that has them.
#include "emulator/Program.h"
#include "hloc/support/Diagnostics.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::emulator;

namespace {

/// The messages; empty if the text is fine.
std::vector<Diagnostic> complaints(const std::string &target, const std::string &body,
                                   const std::string &variables = "") {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>(
      "test.ptx", ".version 9.0\n.target " + target + "\n.address_size 64\n" + variables +
                      ".visible .entry f(.param .u64 p) {\n.reg .pred %p<9>;\n.reg .b16 %h<40>;\n.reg .b32 %r<40>;\n"
                      ".reg .f32 %f<40>;\n.reg .b64 %l<40>;\n.reg .f64 %d<40>;\n" +
                      body + "\nret;\n}\n"));
  if (auto module = ptx::parse(diagnostics))
    resolve(*module, diagnostics);
  return diagnostics.diagnostics();
}

struct Row {
  const char *least;   ///< the first target that has it
  const char *lacking; ///< one that has not; null: there is none
  const char *body;
};

// As ptxas 13.0 has it; sm_70 by the manual.
const Row rows[] = {
    {"sm_80", "sm_70", "redux.sync.add.u32 %r1, %r2, -1;"},
    {"sm_100a", "sm_100", "redux.sync.min.f32 %f1, %f2, -1;"},
    {"sm_103f", "sm_120a", "redux.sync.max.abs.NaN.f32 %f1, %f2, -1;"},
    {"sm_100", "sm_90a", "add.f32x2 %l1, %l2, %l3;"},
    {"sm_100", "sm_90", "fma.rn.f32x2 %l1, %l2, %l3, %l3;"},
    {"sm_100", "sm_90", "min.f32 %f1, %f2, %f3, %f4;"},
    {"sm_100", "sm_90", "max.ftz.NaN.abs.f32 %f1, %f2, %f3, %f4;"},
    {"sm_80", "sm_75", "min.f16 %h1, %h2, %h3;"},
    {"sm_80", "sm_75", "min.NaN.f32 %f1, %f2, %f3;"},
    {"sm_70", nullptr, "min.ftz.f32 %f1, %f2, %f3;"},
    {"sm_86", "sm_80", "min.xorsign.abs.f32 %f1, %f2, %f3;"},
    {"sm_90", "sm_89", "min.relu.s32 %r1, %r2, %r3;"},
    {"sm_90", "sm_80", "add.u16x2 %r1, %r2, %r3;"},
    {"sm_90", "sm_89", "add.rn.bf16x2 %r1, %r2, %r3;"},
    {"sm_80", "sm_75", "fma.rn.bf16 %h1, %h2, %h3, %h4;"},
    {"sm_80", "sm_75", "fma.rn.relu.f16 %h1, %h2, %h3, %h4;"},
    {"sm_80", "sm_75", "mov.u32 %r1, %reserved_smem_offset_1;"},
    {"sm_90", "sm_89", "mov.u32 %r1, %aggr_smem_size;"},
    {"sm_75", "sm_70", "tanh.approx.f32 %f1, %f2;"},
    {"sm_90", "sm_80", "tanh.approx.bf16x2 %r1, %r2;"},
    {"sm_75", "sm_70", "ex2.approx.f16x2 %r1, %r2;"},
    {"sm_90", "sm_86", "ex2.approx.ftz.bf16 %h1, %h2;"},
    {"sm_100", "sm_90", "add.f32.f16 %f1, %h2, %f3;"},
    {"sm_90", "sm_89", "setp.eq.bf16 %p1, %h2, %h3;"},
    {"sm_89", "sm_87", "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;"},
    {"sm_89", "sm_80", "cvt.rn.f16x2.e5m2x2 %r1, %h1;"},
    {"sm_80", "sm_75", "cvt.rn.bf16.f32 %h1, %f1;"},
    {"sm_90", "sm_80", "cvt.rn.bf16.s32 %h1, %r1;"},
    {"sm_90", "sm_89", "cvt.rzi.s32.bf16 %r1, %h1;"},
    {"sm_80", "sm_75", "cvt.rn.f16x2.f32 %r1, %f1, %f2;"},
    {"sm_70", nullptr, "cvt.rn.f16.f32 %h1, %f1;"},
    {"sm_80", "sm_75", "cvt.rna.tf32.f32 %r1, %f1;"},
    {"sm_90", "sm_80", "cvt.rn.tf32.f32 %r1, %f1;"},
    {"sm_100", "sm_90", "cvt.rn.satfinite.tf32.f32 %r1, %f1;"},
    {"sm_80", "sm_75", "cp.async.ca.shared.global [%r1], [%l1], 4;"},
    {"sm_90", "sm_80", "atom.global.add.noftz.bf16x2 %r1, [%l1], %r2;"},
    {"sm_90", "sm_80", "atom.global.v4.f32.add {%f1,%f2,%f3,%f4}, [%l1], {%f1,%f2,%f3,%f4};"},
    {"sm_70", nullptr, "atom.global.add.noftz.f16 %h1, [%l1], %h2;"},
    {"sm_90", "sm_80", "atom.acq_rel.cluster.global.add.u32 %r1, [%l1], %r2;"},
    {"sm_100", "sm_90", "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%l1];"},
    {"sm_100", "sm_90a", "st.global.v4.b64 [%l1], {%l1,%l2,%l3,%l4};"},
    {"sm_80", "sm_75", "ld.global.L2::cache_hint.u32 %r1, [%l1], %l2;"},
    {"sm_90", "sm_80", "ld.shared::cluster.u32 %r1, [%r1];"},
    {"sm_75", "sm_70", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r5];"},
    {"sm_90", "sm_80", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r1};"},
    {"sm_75", "sm_70", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r1,%r2}, {%r3}, {%r1,%r2};"},
    {"sm_80", "sm_75",
     "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r1,%r2,%r3,%r4}, {%r3,%r4}, {%r1,%r2};"},
    {"sm_89", "sm_87",
     "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r1,%r2}, {%r1,%r2,%r3,%r4}, {%r3,%r4}, {%r1,%r2};"},
    {"sm_90", "sm_80",
     "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d1,%d2,%d3,%d4}, {%d1,%d2}, {%d2}, {%d1,%d2,%d3,%d4};"},
    {"sm_80", "sm_75", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%r1,%r2}, {%r1}, {%r2}, {%r1,%r2};"},
    {"sm_90", "sm_80", "griddepcontrol.wait;"},
    {"sm_90", "sm_80", "elect.sync %r1|%p1, -1;"},
    {"sm_90", "sm_80", "barrier.cluster.arrive;"},
    {"sm_90", "sm_80", "mov.u32 %r1, %cluster_ctaid.x;"},
    {"sm_80", "sm_75", "createpolicy.fractional.L2::evict_last.b64 %l2, 1.0;"},
    {"sm_90a", "sm_90", "wgmma.fence.sync.aligned;"},
    {"sm_90a", "sm_100a", "wgmma.wait_group.sync.aligned 1;"},
    {"sm_90a", "sm_90", "setmaxnreg.inc.sync.aligned.u32 64;"},
};

} // namespace

TEST_CASE("requirements: a form is refused, by name, for targets that lack it") {
  for (const Row &row : rows) {
    INFO(row.body);
    for (const Diagnostic &d : complaints(row.least, row.body))
      FAIL_CHECK(row.least << ": " << d.message);
    if (!row.lacking)
      continue;
    std::vector<Diagnostic> found = complaints(row.lacking, row.body);
    INFO(row.lacking);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == DiagnosticKind::UnsupportedTarget);
    const std::string opcode = std::string(row.body).substr(0, std::string(row.body).find_first_of(" ;"));
    CHECK(found[0].message.find("`" + opcode + "`") != std::string::npos);
    CHECK(found[0].message.find(row.lacking) != std::string::npos);
  }
}

TEST_CASE("requirements: forms that no target has") {
  for (const char *body :
       {"sub.u16x2 %r1, %r2, %r3;", "min.xorsign.abs.f32 %f1, %f2, %f3, %f4;", "min.abs.f32 %f1, %f2, %f3;",
        "add.sat.f64 %d1, %d2, %d3;", "ex2.approx.bf16 %h1, %h2;", "ex2.approx.ftz.f16 %h1, %h2;",
        "atom.global.min.noftz.f16 %h1, [%l1], %h2;", "cvt.rn.sat.bf16.f32 %h1, %f1;", "cvt.sat.f32.bf16 %f1, %h1;",
        "ld.shared.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r1];"}) {
    std::vector<Diagnostic> found = complaints("sm_100a", body);
    INFO(body);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == DiagnosticKind::UnsupportedFeature);
    const std::string opcode = std::string(body).substr(0, std::string(body).find(' '));
    CHECK(found[0].message.find("`" + opcode + "`") != std::string::npos);
  }
}

TEST_CASE("requirements: static shared memory has 48 KiB, and all that there is for one architecture only") {
  const std::string use = "mov.u32 %r1, s;\nst.shared.u32 [%r1], %r2;";
  auto refused = [&](const char *target, unsigned bytes) {
    return !complaints(target, use, ".shared .align 4 .b8 s[" + std::to_string(bytes) + "];\n").empty();
  };
  CHECK(!refused("sm_75", 49152));
  CHECK(refused("sm_75", 49156));
  CHECK(refused("sm_90", 61440));
  CHECK(refused("sm_100f", 61440));
  CHECK(!refused("sm_90a", 61440));
  CHECK(!refused("sm_90a", 232448));
  CHECK(refused("sm_90a", 233472));
  CHECK(refused("sm_121a", 166912));
  CHECK(!refused("sm_121a", 101376));
  // What the kernel does not use takes no room.
  CHECK(complaints("sm_90", "mov.u32 %r1, %r2;", ".shared .align 4 .b8 s[61440];\n").empty());
}

TEST_CASE("requirements: a text for no known target may use anything") {
  CHECK(complaints("sm_100a, debug", "add.f32x2 %l1, %l2, %l3;").empty());
  CHECK(!complaints("sm_90, texmode_independent", "add.f32x2 %l1, %l2, %l3;").empty());
  CHECK(complaints("compute_future", "add.f32x2 %l1, %l2, %l3;").empty());
}
