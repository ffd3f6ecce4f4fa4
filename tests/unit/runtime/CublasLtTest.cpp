// Calls of cuBLASLt by the CUDA runtime, against a library and a driver that need no GPU (tests/fake-cuda).
#include "hloc/kernel/LibraryCall.h"

#include "unit/runtime/Fakes.h"

using namespace hloc;
using Catch::Contains;
using test::Setting;

namespace {

std::string calls() { return test::callsOf(HLOC_FAKE_CUBLASLT, "fakeCublasLt"); }
void forgetCalls() { test::forget(HLOC_FAKE_CUBLASLT, "fakeCublasLt"); }

/// d[n, m] of rows a[2, k = 3] and b[2, k], in memory a, b, d, workspace, and what else is read.
struct Product {
  MatmulCall call;
  std::vector<std::vector<float>> memory = {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 0, 10, 100}};

  Product() {
    call.m = call.n = 2;
    call.k = 3;
    call.a = {LibraryType::F32, true, 3, 0};
    call.b = {LibraryType::F32, false, 3, 0};
    call.d = {LibraryType::F32, false, 2, 0};
  }

  /// The result, or nothing and `error`.
  std::vector<float> run(CudaDevice &device, std::string &error, unsigned times = 1) const {
    CallStep step{CallStep::Kind::Library, MatmulCall::function.str(), call.configuration(), {}, {}};
    auto add = [&](uint64_t bytes) {
      DeviceBuffer buffer;
      buffer.name = "b";
      buffer.bytes = bytes;
      REQUIRE(device.allocate(buffer, error));
      return BufferSlice{numBuffers++, 0, bytes};
    };
    for (const std::vector<float> &values : memory) {
      step.reads.push_back(add(values.size() * 4));
      REQUIRE(device.upload(step.reads.back().buffer, values.data(), values.size() * 4, error));
    }
    step.writes = {add(16), add(workspace)};
    std::vector<float> result(4);
    for (unsigned i = 0; i < times; ++i)
      if (!device.call(step, error))
        return {};
    REQUIRE(device.download(step.writes[0], result.data(), error));
    return result;
  }
  mutable uint32_t numBuffers = 0;
  uint64_t workspace = 4 << 20;
};

std::unique_ptr<CudaDevice> open(std::string library = HLOC_FAKE_CUBLASLT) {
  std::string error;
  CudaOptions options;
  options.driver = HLOC_FAKE_CUDA;
  options.cublasLt = std::move(library);
  std::unique_ptr<CudaDevice> device = CudaDevice::open(options, error);
  REQUIRE(device);
  forgetCalls();
  return device;
}

std::string errorOf(const Product &product, std::string library = HLOC_FAKE_CUBLASLT) {
  std::string error;
  CHECK(product.run(*open(std::move(library)), error).empty());
  return error;
}

} // namespace

TEST_CASE("a product is multiplied by what its configuration says") {
  std::string error;
  const Product product;
  CHECK(product.run(*open(), error) == std::vector<float>{1, 4, 320, 650});
  CHECK(error.empty());
  CHECK_THAT(calls(), Contains("matmul TN m 2 n 2 k 3 batch 1 types 0 0 0 compute 68 epilogue 1"));
}

TEST_CASE("scales, what is added, and epilogues are handed on") {
  std::string error;
  Product product;
  product.call.alpha = -1;
  product.call.beta = 2;
  product.call.c = product.call.d;
  product.call.epilogue = MatmulCall::Epilogue::ReluBias;
  product.memory.push_back({1, 1, 200, 200});
  product.memory.push_back({0.5, 300});
  CHECK(product.run(*open(), error) == std::vector<float>{1.5, 298, 80.5, 50});
}

TEST_CASE("an algorithm is looked for once, and all that was made is released") {
  std::string error;
  {
    std::unique_ptr<CudaDevice> device = open();
    CHECK(Product().run(*device, error, 3).size() == 4);
  }
  const std::string log = calls();
  auto count = [&](const std::string &what) {
    size_t number = 0;
    for (size_t at = 0; (at = log.find(what + "\n", at)) != std::string::npos; ++at)
      ++number;
    return number;
  };
  CHECK(count("cublasLtMatmul") == 3);
  CHECK(count("cublasLtMatmulAlgoGetHeuristic") == 1);
  CHECK(count("cublasLtMatrixLayoutCreate") == 4);
  CHECK(count("cublasLtMatrixLayoutDestroy") == 4);
  CHECK(count("cublasLtMatmulDescDestroy") == 1);
  CHECK(count("cublasLtMatmulPreferenceDestroy") == 1);
  CHECK(count("cublasLtDestroy") == 1);
}

TEST_CASE("a library that is none, or fails, is named") {
  CHECK_THAT(errorOf(Product(), "libno-cublaslt.so"),
             Contains("there is no cuBLASLt here") && Contains("libno-cublaslt.so") && Contains("HLOC_CUBLASLT"));
  CHECK_THAT(errorOf(Product(), HLOC_FAKE_CUDA), Contains("not cuBLASLt: it lacks cublasLtGetVersion, "));
  for (const char *function :
       {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    Setting setting("FAKE_CUBLASLT_FAIL", std::string(function) + "=13");
    CHECK_THAT(errorOf(Product()),
               Contains(function) && Contains("CUBLAS_STATUS_EXECUTION_FAILED") && Contains("version 120903"));
  }
}

TEST_CASE("what the library does not take is refused") {
  Product product;
  product.call.compute = MatmulCall::Compute::F64; // of f32
  CHECK_THAT(errorOf(product), Contains("CUBLAS_STATUS_NOT_SUPPORTED"));
  CHECK_THAT(calls(), Contains("types that it has no product of"));
}
