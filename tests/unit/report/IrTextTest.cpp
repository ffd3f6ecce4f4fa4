// Places are told beside the text, whose lines are what they are without places.

#include "report/IrText.h"
#include "report/MachineCode.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

using Lines = llvm::SmallVector<uint32_t, 2>;

ShownLine only(IrKind kind, const std::string &text) {
  std::vector<ShownLine> lines = shownLines(kind, text);
  REQUIRE(lines.size() == 1);
  return lines.front();
}

} // namespace

TEST_CASE("locations of MLIR are followed to lines of the HLO") {
  const std::string definitions =
      "#loc = loc(\"a.hlo\":7:3)\n#loc2 = loc(\"b\"(#loc))\n#loc3 = loc(fused[#loc2, #loc4])\n"
      "#loc4 = loc(\"c\"(\"a.hlo\":5:1))\n#loc5 = loc(\"d\"(#loc5))\n#loc6 = loc(unknown)\n";
  ShownLine line = only(IrKind::Mlir, definitions + "  %x = arith.addf %y, %z : f32 loc(#loc2)\n");
  CHECK(line.text == "  %x = arith.addf %y, %z : f32");
  CHECK(line.hloLines == Lines{7});
  CHECK(line.number == 7);
  CHECK(only(IrKind::Mlir, definitions + "} loc(#loc3)\n").hloLines == Lines{5, 7});
  CHECK(only(IrKind::Mlir, definitions + "} loc(#loc5)\n").hloLines.empty());
  CHECK(only(IrKind::Mlir, definitions + "} loc(#loc6)\n").hloLines.empty());
  // Arguments have locations of their own; the operation's is the last.
  line = only(IrKind::Mlir, definitions + "func.func @f(%a: f32 loc(\"x\"(#loc)), %b: f32 loc(#loc4)) { loc(#loc4)");
  CHECK(line.text == "func.func @f(%a: f32, %b: f32) {");
  CHECK(line.hloLines == Lines{5});
}

TEST_CASE("what looks like a place in a string of MLIR is none") {
  ShownLine line = only(IrKind::Mlir, "#loc = loc(\"a) \\\" loc(#loc9).hlo\":3:1)\n"
                                      "x.op {name = \" loc(\\\"q\\\":9:9)\"} loc(#loc)\n");
  CHECK(line.text == "x.op {name = \" loc(\\\"q\\\":9:9)\"}");
  CHECK(line.hloLines == Lines{3});
  CHECK(only(IrKind::Mlir, "op loc(").text == "op");
  CHECK(only(IrKind::Mlir, "op loc(\"").text == "op");
}

TEST_CASE("debug locations of LLVM IR are followed, and what is there for them is left out") {
  std::vector<ShownLine> lines = shownLines(
      IrKind::Llvm,
      "define void @f() #0 !dbg !3 {\n  %a = load i32, ptr %p, align 4, !dbg !6, !invariant.load !5\n  ret void\n}\n"
      "\n!llvm.dbg.cu = !{!0}\n!0 = distinct !DICompileUnit(file: !1)\n!1 = !DIFile(filename: \"a\")\n"
      "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n!5 = !{}\n!6 = !DILocation(line: 23, column: 8, scope: !3)\n");
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].text == "define void @f() #0 {");
  CHECK(lines[1].text == "  %a = load i32, ptr %p, align 4, !invariant.load !5");
  CHECK(lines[1].hloLines == Lines{23});
  CHECK(lines[2].hloLines.empty());
  CHECK(lines[5].text == "!5 = !{}");
}

TEST_CASE("a .loc of PTX holds until the next, for instructions") {
  std::vector<ShownLine> lines =
      shownLines(IrKind::Ptx, ".visible .entry f(\n)\n{\n\t.reg .b32 \t%r<3>;\n$L__func_begin0:\n\t.loc\t1 23 0\n\n"
                              "\tmov.u32 \t%r1, 1;\n$L__tmp0:\n\t.loc\t1 7 3\n\tadd.s32 \t%r2, %r1, %r1;\n$L__BB0_1:\n"
                              "\tmov.u32 \t%r1, 2;\n\t.loc\t1 0 0\n\tret;\n$L__func_end0:\n}\n\t.file\t1 \"a.hlo\"\n");
  std::vector<std::string> texts;
  std::vector<uint32_t> places;
  for (const ShownLine &line : lines) {
    texts.push_back(line.text);
    places.push_back(line.hloLines.empty() ? 0 : line.hloLines.front());
  }
  CHECK(texts == std::vector<std::string>{".visible .entry f(", ")", "{", "\t.reg .b32 \t%r<3>;", "\tmov.u32 \t%r1, 1;",
                                          "\tadd.s32 \t%r2, %r1, %r1;", "$L__BB0_1:", "\tmov.u32 \t%r1, 2;", "\tret;",
                                          "}"});
  CHECK(places == std::vector<uint32_t>{0, 0, 0, 0, 23, 7, 0, 7, 0, 0});
}

TEST_CASE("machine code is told by kernel, with the lines that it was made for") {
  auto kernels =
      machineCodeOf("\t.target\tsm_90\n\t.section\t.text.f,\"ax\",@progbits\n\t.align\t128\nf:\n.text.f:\n"
                    "\t//## File \"a.hlo\", line 23\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
                    ".L_x_0:\n\t//## File \"b.hlo\", line 5\n        /*0010*/                   EXIT ;\n"
                    "\t.section\t.text.g,\"ax\",@progbits\n        /*0000*/                   NOP ;\n",
                    "a.hlo");
  REQUIRE(kernels.size() == 2);
  const std::vector<ShownLine> &lines = kernels.at("f");
  REQUIRE(lines.size() == 3);
  CHECK(llvm::StringRef(lines[0].text).ends_with("LDC R1, c[0x0][0x28] ;"));
  CHECK(lines[0].hloLines == Lines{23});
  CHECK(lines[1].text == ".L_x_0:");
  CHECK(lines[2].hloLines.empty());
  CHECK(kernels.at("g").front().hloLines.empty());
}
