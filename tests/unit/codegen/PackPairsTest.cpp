#include "CompileKernel.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// PTX of a kernel that loads `%x`, four elements of `type`, applies `body` to its lanes %x0 to %x3, and stores %r0 to
/// %r3.
std::string ptxOf(const std::string &type, const std::string &body, const char *target) {
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
                     "define ptx_kernel void @k(ptr addrspace(1) noalias readonly %p, ptr addrspace(1) noalias %q, " +
                     type + " %u, i1 %c) {\n  %x = load <4 x " + type + ">, ptr addrspace(1) %p, align 16\n";
  for (int i = 0; i < 4; ++i)
    text += "  %x" + std::to_string(i) + " = extractelement <4 x " + type + "> %x, i32 " + std::to_string(i) + "\n";
  text += body;
  for (int i = 0; i < 4; ++i) {
    std::string before = i ? "%s" + std::to_string(i - 1) : "poison";
    text += "  %s" + std::to_string(i) + " = insertelement <4 x " + type + "> " + before + ", " + type + " %r" +
            std::to_string(i) + ", i32 " + std::to_string(i) + "\n";
  }
  text += "  store <4 x " + type + "> %s3, ptr addrspace(1) %q, align 16\n  ret void\n}\n";
  return tests::compileLlvm(text, target);
}

/// `line` for lanes 0 to 3, with # replaced by the lane; all of one lane stand before all of the next.
std::string lanes(std::vector<std::string> lines) {
  std::string text;
  for (char lane = '0'; lane < '4'; ++lane)
    for (std::string line : lines) {
      for (char &c : line)
        c = c == '#' ? lane : c;
      text += "  " + line + "\n";
    }
  return text;
}

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

} // namespace

TEST_CASE("lanes of 16-bit floats are computed two at a time") {
  std::string body = lanes({"%a# = fmul bfloat %x#, %x#", "%b# = fadd bfloat %a#, %u", "%r# = fsub bfloat %b#, %x#"});
  std::string ptx = ptxOf("bfloat", body, "sm_90");
  INFO(ptx);
  CHECK(count(ptx, "bf16x2") >= 4);
  CHECK(count(ptx, "mul.bf16 ") + count(ptx, "mul.rn.bf16 ") + count(ptx, "sub.rn.bf16 ") == 0);

  ptx = ptxOf("half", lanes({"%a# = fmul half %x#, %u", "%r# = call half @llvm.maximum.f16(half %a#, half %x#)"}),
              "sm_80");
  INFO(ptx);
  CHECK(count(ptx, "max.NaN.f16x2") == 2);
}

TEST_CASE("f32 is packed from sm_100 on") {
  std::string body = lanes({"%a# = fmul float %x#, %x#", "%b# = fmul float %a#, %u", "%r# = fmul float %b#, %x#"});
  CHECK(count(ptxOf("float", body, "sm_90"), "f32x2") == 0);
  CHECK(count(ptxOf("float", body, "sm_100"), "mul.f32x2") + count(ptxOf("float", body, "sm_100"), "mul.rn.f32x2") ==
        6);
}

TEST_CASE("a pair between scalar code is not worth taking apart and putting together") {
  std::string body = lanes({"%w# = fpext half %x# to float", "%t# = call float @llvm.floor.f32(float %w#)",
                            "%h# = fptrunc float %t# to half", "%g# = select i1 %c, half %h#, half %x#",
                            "%a# = fmul half %g#, %x#", "%f# = fpext half %a# to float",
                            "%k# = call float @llvm.ceil.f32(float %f#)", "%r# = fptrunc float %k# to half"});
  std::string ptx = ptxOf("half", body, "sm_90");
  INFO(ptx);
  CHECK(count(ptx, "mul.f16x2") + count(ptx, "mul.rn.f16x2") == 0);
}

TEST_CASE("lanes that differ in one operation stay scalar there") {
  std::string body = "  %r0 = fmul half %x0, %x0\n  %r1 = fadd half %x1, %x1\n"
                     "  %r2 = fmul half %x2, %x2\n  %r3 = fmul half %x3, %x3\n";
  std::string ptx = ptxOf("half", body, "sm_90");
  INFO(ptx);
  CHECK(count(ptx, "f16x2") == 1);
}

TEST_CASE("what uses a lane before its partner exists still finds it") {
  // %b0 is used by %t0 long before lane 1 starts; %v is used by both lanes and computed from lane 0.
  std::string body = "  %a0 = fmul half %x0, %u\n  %b0 = fmul half %a0, %a0\n  %v = fadd half %b0, %u\n"
                     "  %d0 = fmul half %b0, %v\n  %r0 = fadd half %d0, %x0\n"
                     "  %a1 = fmul half %x1, %u\n  %b1 = fmul half %a1, %a1\n  %d1 = fmul half %b1, %v\n"
                     "  %r1 = fadd half %d1, %x1\n  %r2 = fneg half %v\n  %r3 = fadd half %v, %r1\n";
  std::string ptx = ptxOf("half", body, "sm_90");
  INFO(ptx);
  CHECK(count(ptx, "f16x2") >= 3);
}

TEST_CASE("thousands of lanes are packed in no time") {
  std::vector<std::string> lines;
  for (int i = 0; i < 5000; ++i) {
    std::string from = i ? "%a" + std::to_string(i) + "_#" : "%x#";
    lines.push_back("%a" + std::to_string(i + 1) + "_# = fmul half " + from + ", %x#");
  }
  lines.push_back("%r# = fmul half %a5000_#, %a5000_#");
  CHECK(count(ptxOf("half", lanes(lines), "sm_90"), "mul.f16x2") == 10002);
}
