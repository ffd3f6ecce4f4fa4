#include "CompileKernel.h"

#include "fmt/format.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// Whether a kernel that is planned with so many registers is told so.
bool isLimited(const std::string &body, int registers = 64) {
  std::string text = "target triple = \"nvptx64-nvidia-cuda\"\n"
                     "define ptx_kernel void @k(ptr addrspace(1) noalias readonly %p, ptr addrspace(1) noalias %q) "
                     "\"hloc-registers\"=\"" +
                     std::to_string(registers) + "\" {\n" + body + "  ret void\n}\n!0 = !{}\n";
  std::string ptx = tests::compileLlvm(text, "sm_90");
  INFO(ptx);
  bool limited = ptx.find(fmt::format(".maxnreg {}\n", registers)) != std::string::npos;
  CHECK(limited == (ptx.find(".maxnreg") != std::string::npos));
  return limited;
}

/// The sum of `count` vectors of four elements.
std::string sumOfVectors(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("  %p{0} = getelementptr <4 x float>, ptr addrspace(1) %p, i64 {1}\n"
                        "  %v{0} = load <4 x float>, ptr addrspace(1) %p{0}, align 16, !invariant.load !0\n",
                        i, 100 * i);
    text += i == 0 ? "  %s0 = fadd <4 x float> %v0, splat (float 1.0)\n"
                   : fmt::format("  %s{0} = fadd <4 x float> %s{1}, %v{0}\n", i, i - 1);
  }
  return text + fmt::format("  store <4 x float> %s{}, ptr addrspace(1) %q, align 16\n", count - 1);
}

/// `count` values of which the first is wanted last.
std::string valuesThatLiveLong(int count) {
  std::string text = "  %x = load float, ptr addrspace(1) %p, align 4\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("  %y{} = fmul float %x, {}.5\n", i, i + 2);
  std::string sum = fmt::format("%y{}", count - 1);
  for (int i = count - 2; i >= 0; --i) {
    text += fmt::format("  %t{0} = fadd float {1}, %y{0}\n", i, sum);
    sum = fmt::format("%t{}", i);
  }
  return text + "  store float " + sum + ", ptr addrspace(1) %q, align 4\n";
}

} // namespace

TEST_CASE("limit registers: where loads in flight would take more, and the code needs less") {
  CHECK(isLimited(sumOfVectors(8)));
  CHECK(!isLimited(sumOfVectors(2))); // few loads
  CHECK(!isLimited(sumOfVectors(8) + valuesThatLiveLong(80)));
}

TEST_CASE("limit registers: where fewer would make room for more warps, but for fewer loads in flight") {
  CHECK(isLimited(sumOfVectors(8), 128));
  CHECK(!isLimited(sumOfVectors(3), 128));                          // all of them in 32 registers
  CHECK(!isLimited(sumOfVectors(8) + valuesThatLiveLong(80), 255)); // there is no room anyway
}

TEST_CASE("limit registers: values that live at once are counted, up to the plan's number") {
  CHECK(!isLimited(valuesThatLiveLong(20)));
  CHECK(isLimited(sumOfVectors(8) + valuesThatLiveLong(40)));
  CHECK(isLimited(
      valuesThatLiveLong(49))); // two loaded, fourteen for instructions: more than 64 if any more were in flight
  CHECK(!isLimited(valuesThatLiveLong(52)));
}

TEST_CASE("limit registers: values that live across blocks") {
  auto loop = [](int values) {
    std::string text = valuesThatLiveLong(values);
    // The first values are wanted behind a loop.
    return text +
           "  br label %loop\nloop:\n  %i = phi i32 [ 0, %0 ], [ %n, %loop ]\n"
           "  %n = add i32 %i, 1\n  %a = getelementptr float, ptr addrspace(1) %q, i32 %n\n"
           "  store volatile float 1.0, ptr addrspace(1) %a\n  %c = icmp eq i32 %n, 1000\n"
           "  br i1 %c, label %done, label %loop\ndone:\n" +
           [&] {
             std::string stores;
             for (int i = 0; i < values; ++i)
               stores += fmt::format("  store volatile float %y{}, ptr addrspace(1) %q, align 4\n", i);
             return stores;
           }();
  };
  CHECK(!isLimited(loop(60)));
  CHECK(isLimited(loop(20) + sumOfVectors(8)));
}
