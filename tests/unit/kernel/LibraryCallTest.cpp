#include "hloc/kernel/LibraryCall.h"

#include <catch2/catch.hpp>

using namespace hloc;
using Catch::Contains;

namespace {

MatmulCall product() {
  MatmulCall call;
  call.m = 5;
  call.n = 3;
  call.k = 7;
  call.batch = 2;
  call.a = {LibraryType::BF16, true, 8, 40};
  call.b = {LibraryType::BF16, false, 7, 21};
  call.d = {LibraryType::F32, false, 5, 15};
  return call;
}

CallStep stepOf(const MatmulCall &call) {
  CallStep step{CallStep::Kind::Library, MatmulCall::function.str(), call.configuration(), {}, {}};
  step.reads = {{0, 0, call.reachOf(call.a)}, {1, 0, call.reachOf(call.b)}};
  if (call.c)
    step.reads.push_back({2, 0, call.reachOf(*call.c)});
  if (call.hasBias())
    step.reads.push_back({3, 0, call.m * 4});
  step.writes = {{4, 0, call.reachOf(call.d)}, {5, 0, 0}};
  return step;
}

std::string errorOf(std::string configuration, const std::string &from, const std::string &to) {
  const size_t at = configuration.find(from);
  REQUIRE(at != std::string::npos);
  configuration.replace(at, from.size(), to);
  std::string error;
  CHECK_FALSE(MatmulCall::parse(configuration, error));
  return error;
}

} // namespace

TEST_CASE("a product's configuration is read as it was written") {
  MatmulCall call = product();
  std::string error;
  CHECK(MatmulCall::parse(call.configuration(), error) == call);
  call.c = MatmulCall::Matrix{LibraryType::F32, false, 6, 18};
  call.beta = 0.5;
  call.alpha = -2;
  call.epilogue = MatmulCall::Epilogue::GeluBias;
  call.compute = MatmulCall::Compute::F32;
  CHECK(MatmulCall::parse(call.configuration(), error) == call);
  CHECK(error.empty());
}

TEST_CASE("matrices reach from their first to their last element") {
  const MatmulCall call = product();
  CHECK(call.rowsOf(call.a) == 7); // transposed
  CHECK(call.columnsOf(call.a) == 5);
  CHECK(call.reachOf(call.a) == (40 + 4 * 8 + 7) * 2);
  CHECK(call.reachOf(call.b) == (21 + 2 * 7 + 7) * 2);
  CHECK(call.reachOf(call.d) == (15 + 2 * 5 + 5) * 4);
}

TEST_CASE("a configuration that is none says what is wrong with it") {
  const std::string good = product().configuration();
  CHECK_THAT(errorOf(good, "\"m\":5", "\"m\":0"), Contains("a size of 0"));
  CHECK_THAT(errorOf(good, "\"m\":5", "\"m\":-5"), Contains("`m` is no integer that is not negative"));
  CHECK_THAT(errorOf(good, "\"m\":5,", ""), Contains("`m` is missing"));
  CHECK_THAT(errorOf(good, "\"m\":5", "\"m\":5,\"x\":1"), Contains("`x` is not known"));
  CHECK_THAT(errorOf(good, "\"m\":5", "\"m\":2147483648"), Contains("a size of 2147483648"));
  CHECK_THAT(errorOf(good, "\"leading_dimension\":8", "\"leading_dimension\":6"),
             Contains("columns of `a` have 7 elements, and begin every 6"));
  CHECK_THAT(errorOf(good, "\"leading_dimension\":8", "\"leading_dimension\":4294967296"),
             Contains("`a` is too large"));
  CHECK_THAT(errorOf(good, "\"batch_stride\":40", "\"batch_stride\":18446744073709551615"),
             Contains("`a` is too large"));
  CHECK_THAT(errorOf(good, "\"batch_stride\":15", "\"batch_stride\":14"),
             Contains("elements of the result lie in one place"));
  CHECK_THAT(errorOf(good, "bf16", "bf17"), Contains("`bf17` is no type of a library"));
  CHECK_THAT(errorOf(good, "\"transposed\":true", "\"transposed\":1"), Contains("`a.transposed` is no true or false"));
  CHECK_THAT(errorOf(good, "\"compute\":\"f32\"", "\"compute\":\"f16\""), Contains("`f16` is no `compute`"));
  CHECK_THAT(errorOf(good, "\"beta\":0", "\"beta\":1"), Contains("`c` is there where `beta` is not 0"));
  CHECK_THAT(errorOf(good, "{\"m\"", "{{\"m\""), Contains("no JSON"));
}

TEST_CASE("a step of a library has memory for all that it reads and writes") {
  CallStep step = stepOf(product());
  CHECK(checkLibraryCall(step) == "");
  step.reads[1].bytes -= 1;
  CHECK(checkLibraryCall(step) == "reads[1]: 83 bytes for 84");
  step = stepOf(product());
  step.writes[0].bytes -= 1;
  CHECK_THAT(checkLibraryCall(step), Contains("writes[0]: 119 bytes for 120"));
  step = stepOf(product());
  step.writes.pop_back();
  CHECK_THAT(checkLibraryCall(step), Contains("2 slices are read and 1 written"));
  step.function = "cublasGemmEx";
  CHECK_THAT(checkLibraryCall(step), Contains("`cublasGemmEx` is no function"));
}

TEST_CASE("a large product takes what it takes on an H100, a small one what starting it does") {
  MatmulCall call;
  call.m = call.n = call.k = 4096;
  call.a = call.b = call.d = {LibraryType::BF16, false, 4096, 0};
  const DeviceModel &h100 = *findDevice("h100");
  const LibraryCost large = libraryCost(call, h100);
  CHECK(large.flops == 2.0 * 4096 * 4096 * 4096);
  CHECK(large.bytes == 3.0 * 4096 * 4096 * 2);
  CHECK(large.seconds == Approx(178e-6).epsilon(0.05)); // measured, cuBLAS 12
  call.a.type = call.b.type = call.d.type = LibraryType::F32;
  CHECK(libraryCost(call, h100).seconds > 10 * large.seconds);
  call.compute = MatmulCall::Compute::Tf32;
  CHECK(libraryCost(call, h100).seconds == Approx(2 * large.seconds).epsilon(0.05));
  call.m = call.n = call.k = 1;
  CHECK(libraryCost(call, h100).seconds < 4e-6);
  CHECK(libraryCost(call, h100).seconds > launchSeconds);
}
