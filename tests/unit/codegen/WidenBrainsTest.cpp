#include "CompileKernel.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// PTX of a kernel that loads four bf16, takes two of them, %x0 and %x1, and stores %r, an f32 or a bf16.
std::string ptxOf(const std::string &body, const char *result, const char *target) {
  return tests::compileLlvm("target triple = \"nvptx64-nvidia-cuda\"\n"
                            "define ptx_kernel void @k(ptr addrspace(1) noalias readonly %p, ptr addrspace(1) noalias "
                            "%q) {\n"
                            "  %x = load <4 x bfloat>, ptr addrspace(1) %p, align 8\n"
                            "  %x0 = extractelement <4 x bfloat> %x, i32 2\n"
                            "  %x1 = extractelement <4 x bfloat> %x, i32 3\n" +
                                body + "  store " + result + " %r, ptr addrspace(1) %q\n  ret void\n}\n",
                            target);
}

} // namespace

TEST_CASE("bf16 of a loaded vector become f32 as halves of words") {
  const std::string sum = "  %a = fpext bfloat %x0 to float\n"
                          "  %b = fpext bfloat %x1 to float\n"
                          "  %r = fadd float %a, %b\n";
  for (const char *target : {"sm_75", "sm_90"}) {
    std::string ptx = ptxOf(sum, "float", target);
    INFO(ptx);
    llvm::StringRef text(ptx);
    CHECK(text.count("shl.b32") == 1);
    CHECK(text.count("and.b32") == 1);
    CHECK(text.count(".b16") == 0); // no register of half a word
    CHECK(text.count("cvt") == 0);
  }
}

TEST_CASE("what is made of bf16 alone stays bf16") {
  const std::string sum = "  %a = fpext bfloat %x0 to float\n"
                          "  %b = fpext bfloat %x1 to float\n"
                          "  %s = fadd float %a, %b\n"
                          "  %r = fptrunc float %s to bfloat\n";
  std::string ptx = ptxOf(sum, "bfloat", "sm_90");
  INFO(ptx);
  CHECK(llvm::StringRef(ptx).count("f32") == 0);
}
