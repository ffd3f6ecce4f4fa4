#include "hloc/emulator/Ptx.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace hloc;

namespace {

std::optional<ptx::Module> parse(std::string text, DiagnosticEngine &diagnostics) {
  diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", std::move(text)));
  return ptx::parse(diagnostics);
}

std::string printed(const ptx::Module &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ptx::print(module, os);
  return text;
}

void requireRoundTrip(const std::string &text) {
  DiagnosticEngine diagnostics;
  auto first = parse(text, diagnostics);
  REQUIRE(first);
  auto second = parse(printed(*first), diagnostics);
  REQUIRE(second);
  CHECK(printed(*first) == printed(*second));
  REQUIRE(first->functions.size() == second->functions.size());
  for (size_t i = 0; i < first->functions.size(); ++i)
    CHECK(first->functions[i].body.size() == second->functions[i].body.size());
}

const char *sample = R"(.version 8.0
.target sm_90
.address_size 64
.global .align 4 .b8 table[4] = {1, 2, 3, 255};
.visible .entry f(
	.param .u64 .ptr .align 16 f_param_0,
	.param .u32 f_param_1
)
.reqntid 128, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param::entry.b64 %rd1, [f_param_0];
	@!%p1 bra $L__BB0_1;
	add.rn.f32 %r1, %r2, 0f3F800000;
	st.global.v2.b32 [%rd1+-8], {%r1, -1};
	cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1+64, {%r1, -1, 0}], [%r2], {%h1};
	setp.lt.and.u32 %p1|%p0, %r1, 7, !%p1;
$L__BB0_1:
	ret;
}
)";

} // namespace

TEST_CASE("ptx: syntax tree keeps what was written") {
  DiagnosticEngine diagnostics;
  auto module = parse(sample, diagnostics);
  REQUIRE(module);
  CHECK(module->target == "sm_90");
  REQUIRE(module->variables[0].initial.size() == 4);
  CHECK(module->variables[0].initial[3].value == 255);
  const ptx::Function &f = module->functions[0];
  CHECK(f.parameters[0].pointer);
  CHECK(f.parameters[0].align == 16);
  CHECK(f.directives == std::vector<std::string>{".reqntid 128, 1, 1"});
  const ptx::Instruction &store = f.body[6].instruction;
  CHECK(store.opcode() == "st.global.v2.b32");
  CHECK(store.line == 17);
  CHECK(int64_t(store.operands[0].value) == -8);
  CHECK(store.operands[1].elements.size() == 2);
  CHECK(f.body[4].instruction.guardNegated);
}

TEST_CASE("ptx: round trip") { requireRoundTrip(sample); }

TEST_CASE("ptx: functions, scopes, initial values and directives round-trip") {
  const char *text = R"(.version 8.7
.target sm_90a, debug
.address_size 64
.file 1 "gelu.hlo", 1234, 56
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);
.extern .shared .align 16 .b8 dynamic[];
.visible .const .align 4 .b32 grid[2][3] = {{1, 2, 3}, {0x10, -1, 0f3F800000}};
.global .align 8 .u64 pointers[3] = {grid, generic(grid)+4, 0xFF00(grid)};
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
.noreturn
{
	ret;
}
.alias other, twice;
.entry f(.param .align 8 .b8 f_param_0[24])
.maxntid 256, 1, 1
.minnctapersm 2
{
	.reg .b32 %r<4>, %t; /* a
	comment */
	.loc 1 7 3, function_name $L__info_string0, inlined_at 1 2 3
	.pragma "nounroll";
	mov.u32 %t, (1 << 4) | 3;
	mov.u32 %t, WARP_SZ;
	mov.u64 %r1, grid+8;
	st.shared.f32 [dynamic+-4], 1.5;
	{
	.param .b32 a;
	call.uni (a), twice, (a, 3);
	}
	ts: .branchtargets one, two;
	brx.idx %r1, ts;
one:
two: ret;
}
)";
  requireRoundTrip(text);
  DiagnosticEngine diagnostics;
  auto module = parse(text, diagnostics);
  REQUIRE(module);
  CHECK(module->files == std::vector<std::string>{"", "gelu.hlo"});
  CHECK(module->variables[1].length == 6);
  CHECK(module->variables[1].initial[3].value == 16);
  CHECK(module->variables[2].initial[1].generic);
  CHECK(module->variables[2].initial[2].mask == 0xff00);
  CHECK(!module->functions[0].hasBody);
  const auto &body = module->functions[2].body;
  CHECK(body[2].location == std::array<uint32_t, 3>{1, 7, 3});
  CHECK(body[4].instruction.operands[1].value == 19);
  CHECK(body[6].instruction.operands[1].value == 8);
  CHECK(body[4].instruction.line == 23);
  CHECK(body[8].kind == ptx::Statement::Kind::Open);
}

TEST_CASE("ptx parser: directives of a kernel may share a line") {
  DiagnosticEngine diagnostics;
  auto module = parse(".version 8.6\n.target sm_90a\n.entry f() .reqntid 384, 1, 1 .minnctapersm 1 // of 3.5 KiB\n"
                      ".pragma \"a.b\" {\n\tret;\n}\n",
                      diagnostics);
  REQUIRE(module);
  CHECK(module->find("f")->directives ==
        std::vector<std::string>{".reqntid 384, 1, 1", ".minnctapersm 1", ".pragma \"a.b\""});
}

TEST_CASE("ptx: constant expressions") {
  for (auto [text, value] : {std::pair("2 + 3 * 4", 14),
                             {"(2 + 3) * 4", 20},
                             {"-7 / 2", -3},
                             {"-(3)", -3},
                             {"~0", -1},
                             {"1 << 4 | 2", 18},
                             {"7 & 3 == 3", 1},
                             {"10 - 3 - 2", 5},
                             {"(!0) + 1", 2},
                             {"0x10U >> 2", 4}}) {
    DiagnosticEngine diagnostics;
    INFO(text);
    auto module = parse(std::string(".version 8.0\n.entry f() { mov.u32 %r1, ") + text + "; }", diagnostics);
    REQUIRE(module);
    CHECK(int64_t(module->functions[0].body[0].instruction.operands[1].value) == value);
  }
}

TEST_CASE("ptx: every corpus file round-trips") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  std::error_code ec;
  size_t files = 0;
  for (const char *folder : {"/xla-ptx", "/triton-ptx"})
    for (llvm::sys::fs::recursive_directory_iterator it(std::string(corpus) + folder, ec), end; it != end && !ec;
         it.increment(ec)) {
      if (!llvm::StringRef(it->path()).ends_with(".ptx"))
        continue;
      INFO(it->path());
      auto text = llvm::MemoryBuffer::getFile(it->path());
      REQUIRE(text);
      requireRoundTrip((*text)->getBuffer().str());
      ++files;
    }
  CHECK(files > 0);
}

TEST_CASE("ptx: damaged text is reported, never fatal") {
  const std::string text = sample;
  for (size_t cut = 0; cut < text.size() - 2; ++cut) {
    DiagnosticEngine diagnostics;
    auto module = parse(text.substr(0, cut), diagnostics);
    CHECK(bool(module) == !diagnostics.hasErrors());
  }
  for (const char *bad :
       {"", "HloModule m", ".version 8.0\n.entry f() { add.u32 %r1 %r2; }",
        ".version 8.0\n.entry f() { mov.u32 %r1, 1 / 0; }", ".version 8.0\n.func (.param .b32 r f;",
        ".version 8.0\n/* open", ".version 8.0\n.section .debug", ".version 8.0\n.section .debug {"}) {
    DiagnosticEngine diagnostics;
    CHECK(!parse(bad, diagnostics));
    CHECK(diagnostics.numErrors() == 1);
  }
}
