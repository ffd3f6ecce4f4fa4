#include "CompileKernel.h"

#include "llvm/ADT/StringRef.h"

using namespace hloc;

TEST_CASE("merge accesses: parts of bytes are taken out of whole words") {
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "define ptx_kernel void @k(ptr addrspace(1) noalias readonly %p, ptr addrspace(1) noalias %q) {\n"
                     "  %x = load <32 x i4>, ptr addrspace(1) %p, align 16\n";
  for (int i : {0, 1, 30, 31}) {
    std::string number = std::to_string(i);
    text += "  %x" + number + " = extractelement <32 x i4> %x, i32 " + number + "\n  %w" + number + " = zext i4 %x" +
            number + " to i32\n  %q" + number + " = getelementptr i32, ptr addrspace(1) %q, i64 " +
            std::to_string(100 * i) + "\n  store i32 %w" + number + ", ptr addrspace(1) %q" + number + "\n";
  }
  std::string ptx = tests::compileLlvm(text + "  ret void\n}\n", "sm_90");
  INFO(ptx);
  CHECK(llvm::StringRef(ptx).count("ld.global") == 1);
  CHECK(ptx.find(".v4.b32") != std::string::npos);
}
