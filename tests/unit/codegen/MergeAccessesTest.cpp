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

TEST_CASE("merge accesses: neighbours in a loop become the widest vectors of the target") {
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "define ptx_kernel void @k(ptr noalias readonly align 32 %p, ptr noalias %q) {\n"
                     "entry:\n  br label %loop\n"
                     "loop:\n"
                     "  %i = phi i64 [ 0, %entry ], [ %n, %loop ]\n"
                     "  %s = phi float [ 0.0, %entry ], [ %s7, %loop ]\n"
                     "  %a = getelementptr <8 x float>, ptr %p, i64 %i\n";
  for (int k = 0; k < 8; ++k) {
    std::string number = std::to_string(k), sum = k ? "%s" + std::to_string(k - 1) : "%s";
    text += "  %p" + number + " = getelementptr float, ptr %a, i64 " + number + "\n  %x" + number +
            " = load float, ptr %p" + number + ", !invariant.load !0\n  %s" + number + " = fadd float " + sum + ", %x" +
            number + "\n";
  }
  text += "  %n = add i64 %i, 1\n  %c = icmp eq i64 %n, 1000\n  br i1 %c, label %end, label %loop\n"
          "end:\n  store float %s7, ptr %q\n  ret void\n}\n!0 = !{}\n";
  for (auto [target, width, count] : {std::tuple{"sm_90", ".v4.b32", 2}, {"sm_100", ".v8.b32", 1}}) {
    std::string ptx = tests::compileLlvm(text, target);
    INFO(ptx);
    size_t perRound = llvm::StringRef(ptx).count("add.rn.f32") + llvm::StringRef(ptx).count("add.f32");
    CHECK(llvm::StringRef(ptx).count(width) * 8 == perRound * size_t(count));
    CHECK(llvm::StringRef(ptx).count("ld.global.nc.b32") == 0);
  }
}

TEST_CASE("merge accesses: neighbours on both sides of a cut in a long block") {
  constexpr int count = 4000; // instructions: three times that many
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "define ptx_kernel void @k(ptr noalias readonly align 16 %p, ptr noalias %q) {\n"
                     "  %s0 = load float, ptr %p, align 16, !invariant.load !0\n";
  for (int i = 1; i < count; ++i) {
    std::string number = std::to_string(i);
    text += "  %p" + number + " = getelementptr float, ptr %p, i64 " + number + "\n  %x" + number +
            " = load float, ptr %p" + number + (i % 4 ? ", align 4" : ", align 16") + ", !invariant.load !0\n  %s" +
            number + " = fadd float %s" + std::to_string(i - 1) + ", %x" + number + "\n";
  }
  text += "  store float %s" + std::to_string(count - 1) + ", ptr %q\n  ret void\n}\n!0 = !{}\n";
  std::string ptx = tests::compileLlvm(text, "sm_90");
  CHECK(llvm::StringRef(ptx).count(".v4.b32") == count / 4);
  CHECK(llvm::StringRef(ptx).count("ld.global") == count / 4);
  CHECK(llvm::StringRef(ptx).count("\tbra") == 0); // the pieces are one block again
}

TEST_CASE("merge accesses: offsets that the simplifier has hidden") {
  // Of (x & 60) + 64 i with x < 128, the mask's bit 64 is left out where 64 i sets it.
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "define ptx_kernel void @k(ptr noalias readonly align 16 %p, ptr noalias %q) {\n"
                     "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                     "  %l = and i32 %t, 31\n  %x = shl nuw nsw i32 %l, 2\n  %s = and i32 %x, 60\n";
  std::string sum = "0.0";
  for (int row : {1, 3, 5}) {
    for (int k = 0; k < 4; ++k) {
      std::string number = std::to_string(4 * row + k);
      text += "  %i" + number + " = or i32 %x, " + std::to_string(64 * row + k) + "\n  %e" + number +
              " = zext nneg i32 %i" + number + " to i64\n  %p" + number +
              " = getelementptr inbounds float, ptr %p, i64 %e" + number + "\n  %x" + number + " = load float, ptr %p" +
              number + ", align " + (k ? "4" : "16") + ", !invariant.load !0\n  %s" + number + " = fadd float " + sum +
              ", %x" + number + "\n";
      sum = "%s" + number;
    }
  }
  text += "  store float " + sum + ", ptr %q\n  ret void\n}\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n!0 = !{}\n";
  std::string ptx = tests::compileLlvm(text, "sm_90");
  INFO(ptx);
  CHECK(llvm::StringRef(ptx).count("ld.global.nc.v4.b32") == 3);
  CHECK(llvm::StringRef(ptx).count("ld.global.nc.b32") == 0);
  CHECK(llvm::StringRef(ptx).count("mul.wide") == 1); // one address, and constants
}
