#include "hloc/kernel/LibraryConvolution.h"

#include <catch2/catch.hpp>

using namespace hloc;
using Catch::Contains;

namespace {

/// y[2, 6, 5, 4] of x[2, 4, 10, 4] and kernels of 3 x 3 in two groups, features last in memory.
LibraryConvolution convolution() {
  LibraryConvolution made;
  made.type = LibraryType::BF16;
  made.x = {2, 4, 10, 4};
  made.xStrides = {160, 1, 16, 4};
  made.kernel = {6, 2, 3, 3};
  made.kernelFeaturesLast = true;
  made.y = {2, 6, 5, 4};
  made.yStrides = {120, 1, 24, 6};
  made.padding = {1, 1};
  made.strides = {2, 1};
  made.dilations = {1, 1};
  made.groups = 2;
  return made;
}

std::string errorOf(LibraryConvolution changed) {
  std::string error;
  CHECK_FALSE(LibraryConvolution::parse(changed.kind, changed.configuration(), error));
  return error;
}

} // namespace

TEST_CASE("a convolution's configuration is read as it was written") {
  const LibraryConvolution made = convolution();
  std::string error;
  CHECK(LibraryConvolution::parse(made.kind, made.configuration(), error) == made);
  CHECK(error.empty());
  CHECK(made.kernelStrides() == LibraryConvolution::Sizes{18, 1, 6, 2});
  CHECK(made.reachOfX() == 2 * 160 * 2);
  CHECK(made.reachOfKernel() == 6 * 18 * 2);
  CHECK(made.reachOfY() == 2 * 120 * 2);
  CHECK(LibraryConvolution::kindOf(made.function()) == LibraryConvolution::Kind::Forward);
}

TEST_CASE("a convolution whose sizes do not fit each other is none") {
  LibraryConvolution changed = convolution();
  changed.y[2] = 4;
  CHECK_THAT(errorOf(changed), Contains("window does not give"));
  changed = convolution();
  changed.groups = 3;
  CHECK_THAT(errorOf(changed), Contains("groups do not fit"));
  changed = convolution();
  changed.groups = 0;
  CHECK_THAT(errorOf(changed), Contains("groups do not fit"));
  changed = convolution();
  changed.yStrides[3] = 5;
  CHECK_THAT(errorOf(changed), Contains("lie in one place"));
  changed = convolution();
  changed.xStrides[0] = uint64_t(1) << 40;
  CHECK_THAT(errorOf(changed), Contains("too far apart"));
  changed = convolution();
  changed.padding.pop_back();
  CHECK_THAT(errorOf(changed), Contains("differ in length"));
  changed = convolution();
  changed.strides[0] = 0;
  CHECK_THAT(errorOf(changed), Contains("a size of 0"));
  changed = convolution();
  changed.kernel[0] = changed.kernel[1] = changed.kernel[2] = 1 << 20;
  CHECK_THAT(errorOf(changed), Contains("kernel is too large"));
}

TEST_CASE("steps of convolutions have memory for what their function reads and writes") {
  LibraryConvolution made = convolution();
  const uint64_t x = made.reachOfX(), kernel = made.reachOfKernel(), y = made.reachOfY();
  using Kind = LibraryConvolution::Kind;
  for (auto [kind, first, second, result] : {std::tuple(Kind::Forward, x, kernel, y),
                                             {Kind::InputGradient, kernel, y, x},
                                             {Kind::KernelGradient, x, y, kernel}}) {
    made.kind = kind;
    CallStep step{CallStep::Kind::Library,
                  made.function().str(),
                  made.configuration(),
                  {{0, 0, first}, {1, 0, second}},
                  {{2, 0, result}, {3, 0, 0}}};
    CHECK(checkLibraryCall(step) == "");
    step.reads[1].bytes -= 2;
    CHECK_THAT(checkLibraryCall(step), Contains("reads[1]"));
    step.reads[1].bytes += 2;
    step.writes[0].bytes -= 2;
    CHECK_THAT(checkLibraryCall(step), Contains("writes[0]"));
    CHECK(libraryCost(step, *findDevice("h100")).flops == 2.0 * 2 * 6 * 5 * 4 * 2 * 9);
  }
}
