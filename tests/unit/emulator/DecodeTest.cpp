// Forms of opcodes: what is accepted, and that no modifier is ever ignored.
#include "emulator/Program.h"
#include "hloc/support/Diagnostics.h"

#include <catch2/catch.hpp>

using namespace hloc;
using namespace hloc::emulator;

namespace {

std::unique_ptr<Program> decode(const std::string &body, DiagnosticEngine &diagnostics) {
  diagnostics.setFile(std::make_shared<SourceFile>(
      "test.ptx", ".version 8.7\n.target sm_100\n.shared .align 16 .b8 s[64];\n.entry f(.param .u64 p) {\n"
                  ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<9>;\n.reg .b64 %d<4>;\n" +
                      body + "\n}\n"));
  auto module = ptx::parse(diagnostics);
  return module ? resolve(*module, diagnostics) : nullptr;
}

Decoded one(const std::string &body) {
  DiagnosticEngine diagnostics;
  INFO(body);
  auto program = decode(body, diagnostics);
  REQUIRE(program);
  return program->kernels.find("f")->second.code.at(0);
}

DiagnosticKind refusal(const std::string &body) {
  DiagnosticEngine diagnostics;
  INFO(body);
  REQUIRE(!decode(body, diagnostics));
  REQUIRE(diagnostics.numErrors() == 1);
  CHECK(diagnostics.diagnostics()[0].range.isValid());
  return diagnostics.diagnostics()[0].kind;
}

} // namespace

TEST_CASE("decode: forms and their fields") {
  CHECK(one("ld.relaxed.gpu.global.L1::no_allocate.L2::cache_hint.v2.b32 {%r1, %r2}, [%d1+8], %d2;").strong);
  CHECK(one("ld.global.nc.L2::128B.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];").nonCoherent);
  CHECK(one("atom.global.v2.f32.add {%r1, %r2}, [%d1], {%r3, %r4};").count == 2);
  CHECK(one("atom.add.noftz.f16x2 %r1, [%d1], %r2;").type.lanes == 2);
  CHECK(one("cp.async.cg.shared.global [s], [%d1], 16;").operands.size() == 4);
  for (const char *words : {"add.noftz", "noftz.add"})
    CHECK(one("cp.reduce.async.bulk.global.shared::cta.bulk_group." + std::string(words) + ".f16 [%d1], [s], 16;")
              .combine == Mode::Add);
  CHECK(one("bar.sync 1;").operands.size() == 2);
  CHECK(one("barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;").operands.size() == 4);
  CHECK(one("add.cc.u32 %r1, %r2, %r3;").carryOut.kind == Source::Kind::Register);
  CHECK(one("madc.hi.cc.u64 %d1, %d2, %d3, 0;").carryIn.kind == Source::Kind::Register);
  CHECK(one("mad.rn.f32 %r1, %r2, %r3, 0f3F800000;").opcode == Opcode::Fma);
  CHECK(one("mov.b64 {%h1, %h2, %h3, _}, %d1;").operands[0].elements.size() == 4);
  CHECK(one("prefetch.global.L2 [%d1];").opcode == Opcode::Nop);
  CHECK(one("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d1}, {%d2}, {%d1, %d2};").shape[2] == 4);
  CHECK(one("mov.u32 %r1, %clusterid.x;").operands[1].special == Special::ClusterX);
  CHECK(one("setp.lt.and.f16x2 %p1|%p2, %r1, %r2, !%p3;").operands[3].negated);
  CHECK(one(".loc 1 7 3\nmov.u32 %r1, 0;").locLine == 7);
}

TEST_CASE("decode: modifiers that a form does not have are refused") {
  for (const char *body : {"add.sat.u32 %r1, %r2, %r3;",
                           "add.ftz.f64 %d1, %d2, %d3;",
                           "add.rz.f16 %h1, %h2, %h3;",
                           "mul.u32 %r1, %r2, %r3;",
                           "setp.lo.s32 %p1, %r1, %r2;",
                           "setp.lt.b32 %p1, %r1, %r2;",
                           "fma.f32 %r1, %r2, %r3, %r4;",
                           "cvt.f16.f32 %h1, %r1;",
                           "cvt.rn.s32.f32 %r1, %r2;",
                           "ld.global.ca.ca.b32 %r1, [%d1];",
                           "ld.global.shared.b32 %r1, [%d1];",
                           "st.const.b32 [%d1], %r1;",
                           "atom.inc.s32 %r1, [%d1], %r2;",
                           "red.cas.b32 [%d1], %r1;",
                           "atom.add.f16 %h1, [%d1], %h2;",
                           "shfl.down.b32 %r1, %r2, 1, 31;",
                           "shfl.sync.down.b64 %d1, %d2, 1, 31, -1;",
                           "vote.sync.ballot.pred %p1, %p2, -1;",
                           "redux.sync.and.s32 %r1, %r2, -1;",
                           "cp.async.cg.shared.global [s], [%d1], 8;",
                           "cp.async.bulk.wait_all;",
                           "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 "
                           "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};",
                           "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [s];",
                           "lop3.or.b32 %p1, %r1;",
                           "div.f32 %r1, %r2, %r3;",
                           "tanh.approx.ftz.f32 %r1, %r2;",
                           "min.NaN.f64 %d1, %d2, %d3;",
                           "ex2.f32 %r1, %r2;",
                           "fence.frob.gpu;",
                           "call (%r1), %d1, (%r2);",
                           "tex.1d.v4.f32.s32 %r1;"})
    CHECK(refusal(body) == DiagnosticKind::UnsupportedFeature);
}

TEST_CASE("decode: operands that do not fit are refused") {
  for (const char *body : {"add.u32 %r1, %r2, %d1;", "add.f32 %r1, %r2, 1;", "mov.u32 %p1, %r1;",
                           "ld.global.v2.b32 {%r1, %r2, %r3}, [%d1];", "add.u32 5, %r1, %r2;",
                           "selp.b32 %r1, %r2, %r3, %r4;", "ld.global.b32 %r1, %d1;", "st.global.b32 [%h1], %r1;"})
    CHECK(refusal(body) == DiagnosticKind::TypeMismatch);
  CHECK(refusal("add.u32 %r1, %r2;") == DiagnosticKind::OperandCount);
}

TEST_CASE("decode: calls are inlined, recursion is refused by name") {
  const std::string text = ".version 8.0\n.func (.param .b32 out) twice(.param .b32 in) {\n.reg .b32 %r<3>;\n"
                           "ld.param.b32 %r1, [in];\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [out], %r2;\nret;\n}\n";
  const std::string caller = ".entry f() {\n.reg .b32 %r<3>;\n{\n.param .b32 a;\n.param .b32 b;\n"
                             "st.param.b32 [a], 7;\ncall (b), twice, (a);\nld.param.b32 %r1, [b];\n}\nret;\n}\n";
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", text + caller));
  auto module = ptx::parse(diagnostics);
  REQUIRE(module);
  auto program = resolve(*module, diagnostics);
  REQUIRE(program);
  const Kernel &kernel = program->kernels.find("f")->second;
  REQUIRE(kernel.code.size() == 7);
  CHECK(kernel.localBytes == 8);
  CHECK(kernel.code[1].space == Space::Local);
  CHECK(kernel.code[1].operands[1].value == kernel.code[0].operands[0].value);
  CHECK(kernel.code[4].opcode == Opcode::Bra);
  CHECK(kernel.code[4].target == 5);

  DiagnosticEngine later;
  later.setFile(std::make_shared<SourceFile>(
      "test.ptx", ".version 8.0\n.func g() { call h; ret; }\n.func h() { call g; ret; }\n.entry f() { call g; ret; }"));
  auto recursive = ptx::parse(later);
  REQUIRE(recursive);
  CHECK(!resolve(*recursive, later));
  CHECK(later.diagnostics()[0].message.find("recursive call of `g`") != std::string::npos);
}
