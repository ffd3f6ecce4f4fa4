#include "lint/KernelCode.h"
#include "Kernels.h"
#include "lint/LowBits.h"

using namespace hloc;
using namespace hloc::lint;

namespace {

struct Read {
  explicit Read(const std::string &body) : module(parsed(kernelText(body))), code(module, module.functions.front()) {}
  /// The innermost loop's depth of the instruction with that opcode.
  unsigned depthOf(const std::string &opcode) const {
    for (size_t i = 0; i < code.instrs.size(); ++i)
      if (code.instrs[i].text->opcode() == opcode)
        return code.loopOf(uint32_t(i)) == none ? 0 : code.loops[code.loopOf(uint32_t(i))].depth;
    FAIL("no " << opcode);
    return 0;
  }
  ptx::Module module;
  KernelCode code;
};

/// Low bits of %rd9 after a body, as `known:value`.
std::string lowBits(const std::string &body) {
  Read read(body);
  ptx::Operand address;
  address.kind = ptx::Operand::Kind::Address;
  address.name = "%rd9";
  LowBits bits = LowBitsOfRegisters(read.code).ofAddress(address);
  return std::to_string(bits.known) + ":" + std::to_string(bits.value);
}

} // namespace

TEST_CASE("results and reads of instructions", "[lint]") {
  Read read("@%p1 ld.global.v2.b32 {%r2, %r3}, [%rd4+8]; st.global.b32 [%rd5], %r2; setp.lt.s32 %p2|%p3, %r2, 4; "
            "atom.global.add.u32 %r6, [%rd6], %r3;");
  auto instr = [&](const char *opcode) -> const CodeInstr & {
    for (const CodeInstr &one : read.code.instrs)
      if (one.text->opcode() == opcode)
        return one;
    FAIL("no " << opcode);
    return read.code.instrs.front();
  };
  auto numbers = [&](std::initializer_list<const char *> names) {
    std::vector<uint32_t> all;
    for (const char *name : names)
      all.push_back(read.code.findRegister(name));
    return all;
  };
  auto is = [](const auto &list, const std::vector<uint32_t> &wanted) {
    return std::vector<uint32_t>(list.begin(), list.end()) == wanted;
  };
  CHECK(is(instr("ld.global.v2.b32").results, numbers({"%r2", "%r3"})));
  CHECK(is(instr("ld.global.v2.b32").reads, numbers({"%p1", "%rd4"})));
  CHECK(instr("st.global.b32").results.empty());
  CHECK(is(instr("st.global.b32").reads, numbers({"%rd5", "%r2"})));
  CHECK(is(instr("setp.lt.s32").results, numbers({"%p2", "%p3"})));
  CHECK(is(instr("atom.global.add.u32").results, numbers({"%r6"})));
}

TEST_CASE("loops by what reaches what", "[lint]") {
  Read nested(
      "$A: add.s32 %r2, %r2, 1; $B: sub.s32 %r3, %r3, 1; @%p1 bra $B; xor.b32 %r4, %r4, 1; @%p2 bra $A; not.b32 "
      "%r5, %r5;");
  CHECK(nested.depthOf("add.s32") == 1);
  CHECK(nested.depthOf("sub.s32") == 2);
  CHECK(nested.depthOf("xor.b32") == 1);
  CHECK(nested.depthOf("not.b32") == 0);
  // A jump back to where nothing comes from is no loop; a block behind the loop's end may belong to it.
  Read moved(
      "$A: add.s32 %r2, %r2, 1; @%p1 bra $FAR; @%p2 bra $A; $END: not.b32 %r5, %r5; ret; $FAR: xor.b32 %r4, %r4, 1; "
      "bra $A; $COLD: sub.s32 %r3, %r3, 1; bra $END;");
  CHECK(moved.depthOf("add.s32") == 1);
  CHECK(moved.depthOf("xor.b32") == 1);
  CHECK(moved.depthOf("not.b32") == 0);
  CHECK(moved.depthOf("sub.s32") == 0);
}

TEST_CASE("many loops inside each other, and many blocks, are read in little time", "[lint]") {
  std::string deep, wide;
  for (int i = 0; i < 2000; ++i)
    deep += "$L" + std::to_string(i) + ": add.s32 %r2, %r2, 1;\n";
  for (int i = 2000; i-- > 0;)
    deep += "@%p1 bra $L" + std::to_string(i) + ";\n";
  CHECK(Read(deep).depthOf("add.s32") >= 1);
  for (int i = 0; i < 20000; ++i)
    wide += "@%p1 bra $E; add.s32 %r2, %r2, 1;\n";
  CHECK(Read(wide + "$E:").depthOf("add.s32") == 0);
}

TEST_CASE("low bits of addresses", "[lint]") {
  CHECK(lowBits("mov.b64 %rd9, %rd1;") == "4:0");
  CHECK(lowBits("add.s64 %rd9, %rd1, 24;") == "4:8");
  CHECK(lowBits("mul.wide.u32 %rd9, %r1, 12;") == "2:0");
  CHECK(lowBits("mad.wide.u32 %rd9, %r1, 32, %rd1;") == "4:0");
  CHECK(lowBits("mul.lo.s32 %r2, %r1, 6; or.b32 %r3, %r2, 1; cvt.u64.u32 %rd9, %r3;") == "1:1");
  CHECK(lowBits("shl.b32 %r2, %r1, 5; shr.u32 %r3, %r2, 2; cvt.u64.u32 %rd9, %r3;") == "3:0");
  CHECK(lowBits("and.b32 %r2, %r1, -8; cvt.u64.u32 %rd9, %r2;") == "3:0");
  CHECK(lowBits("selp.b64 %rd9, 8, 24, %p1;") == "4:8");
  CHECK(lowBits("mov.b64 %rd9, 0; $L: add.s64 %rd9, %rd9, 48; @%p1 bra $L;") == "4:0");
  CHECK(lowBits("cvt.u64.u32 %rd9, %r1;") == "0:0");
  CHECK(lowBits("ld.global.b64 %rd9, [%rd1];") == "0:0");
  CHECK(lowBits("mov.b64 %rd9, tile;") == "4:0");
}
