// Convolutions by cuDNN of the CUDA runtime, against a library and a driver that need no GPU (tests/fake-cuda).
#include "hloc/kernel/LibraryConvolution.h"

#include "unit/runtime/Fakes.h"

using namespace hloc;
using Catch::Contains;
using test::Setting;

namespace {

std::string calls() { return test::callsOf(HLOC_FAKE_CUDNN, "fakeCudnn"); }

/// One dimension: x = 1, 2, 3, 4, 5 and a kernel of three.
LibraryConvolution convolution() {
  LibraryConvolution made;
  made.x = {1, 1, 5};
  made.xStrides = {5, 5, 1};
  made.kernel = {1, 1, 3};
  made.y = {1, 1, 5};
  made.yStrides = {5, 5, 1};
  made.padding = {1};
  made.strides = {1};
  made.dilations = {1};
  return made;
}

std::vector<float> run(const LibraryConvolution &made, const std::vector<float> &first,
                       const std::vector<float> &second, size_t results, std::string &error,
                       std::string library = HLOC_FAKE_CUDNN, uint64_t workspace = 1 << 20) {
  CudaOptions options;
  options.driver = HLOC_FAKE_CUDA;
  options.cudnn = std::move(library);
  std::unique_ptr<CudaDevice> device = CudaDevice::open(options, error);
  REQUIRE(device);
  DynamicLibrary({HLOC_FAKE_CUDNN}).function<void()>("fakeCudnnReset")();
  const std::vector<const std::vector<float> *> inputs = {&first, &second};
  for (uint64_t bytes : {uint64_t(first.size() * 4), uint64_t(second.size() * 4), uint64_t(results * 4), workspace}) {
    DeviceBuffer buffer;
    buffer.name = "b";
    buffer.bytes = bytes;
    REQUIRE(device->allocate(buffer, error));
  }
  for (uint32_t i = 0; i < 2; ++i)
    REQUIRE(device->upload(i, inputs[i]->data(), inputs[i]->size() * 4, error));
  const CallStep step{CallStep::Kind::Library,
                      made.function().str(),
                      made.configuration(),
                      {{0, 0, first.size() * 4}, {1, 0, second.size() * 4}},
                      {{2, 0, results * 4}, {3, 0, workspace}}};
  CHECK(checkLibraryCall(step) == "");
  std::vector<float> result(results);
  if (!device->call(step, error))
    return {};
  REQUIRE(device->download(step.writes[0], result.data(), error));
  return result;
}

using Values = std::vector<float>;

} // namespace

TEST_CASE("a convolution is carried out by what its configuration says") {
  std::string error;
  LibraryConvolution made = convolution();
  CHECK(run(made, {1, 2, 3, 4, 5}, {1, 10, 100}, 5, error) == Values{210, 321, 432, 543, 54});
  CHECK_THAT(calls(), Contains("forward type 0 math 3 mode 1 groups 1"));
  made.flipped = true;
  CHECK(run(made, {1, 2, 3, 4, 5}, {1, 10, 100}, 5, error) == Values{12, 123, 234, 345, 450});
  made = convolution();
  made.strides = {2};
  made.y = {1, 1, 3};
  CHECK(run(made, {1, 2, 3, 4, 5}, {1, 10, 100}, 3, error) == Values{210, 432, 54});
  made.compute = LibraryConvolution::Compute::Tf32;
  CHECK(run(made, {1, 2, 3, 4, 5}, {1, 10, 100}, 3, error) == Values{210, 432, 54});
  CHECK_THAT(calls(), Contains("forward type 0 math 0 mode 1 groups 1"));
}

TEST_CASE("gradients are those of the convolution in the configuration") {
  std::string error;
  LibraryConvolution made = convolution();
  made.kind = LibraryConvolution::Kind::InputGradient; // of kernel and dy
  CHECK(run(made, {1, 10, 100}, {1, 0, 0, 0, 0}, 5, error) == Values{10, 100, 0, 0, 0});
  made.kind = LibraryConvolution::Kind::KernelGradient; // of x and dy
  CHECK(run(made, {1, 2, 3, 4, 5}, {0, 1, 0, 0, 10}, 3, error) == Values{41, 52, 3});
}

TEST_CASE("groups and layouts are those of the configuration") {
  std::string error;
  LibraryConvolution made;
  made.x = {1, 2, 2, 2};
  made.xStrides = {8, 1, 4, 2}; // features last
  made.kernel = {2, 1, 1, 1};
  made.kernelFeaturesLast = true;
  made.y = {1, 2, 2, 2};
  made.yStrides = {8, 4, 2, 1};
  made.padding = {0, 0};
  made.strides = made.dilations = {1, 1};
  made.groups = 2;
  CHECK(run(made, {1, 2, 3, 4, 5, 6, 7, 8}, {10, 100}, 8, error) == Values{10, 30, 50, 70, 200, 400, 600, 800});
}

TEST_CASE("an algorithm that transforms its factors is not taken") {
  std::string error;
  Setting only("FAKE_CUDNN_ONLY", "6");
  CHECK(run(convolution(), {1, 2, 3, 4, 5}, {1, 10, 100}, 5, error).empty());
  CHECK_THAT(error, Contains("has no algorithm that adds products for {\"type\":\"f32\""));
}

TEST_CASE("a cuDNN that is none, or fails, is named, and so is too little workspace") {
  std::string error;
  const Values x = {1, 2, 3, 4, 5}, kernel = {1, 10, 100};
  CHECK(run(convolution(), x, kernel, 5, error, "libno-cudnn.so").empty());
  CHECK_THAT(error, Contains("there is no cuDNN here") && Contains("libno-cudnn.so") && Contains("HLOC_CUDNN"));
  CHECK(run(convolution(), x, kernel, 5, error, HLOC_FAKE_CUDA).empty());
  CHECK_THAT(error, Contains("not cuDNN: it lacks cudnnGetVersion, "));
  CHECK(run(convolution(), x, kernel, 5, error, HLOC_FAKE_CUDNN, 1 << 8).empty());
  CHECK_THAT(error, Contains("has no algorithm"));
  for (const char *function :
       {"cudnnCreate", "cudnnSetStream", "cudnnCreateTensorDescriptor", "cudnnSetTensorNdDescriptor",
        "cudnnCreateFilterDescriptor", "cudnnSetFilterNdDescriptor", "cudnnCreateConvolutionDescriptor",
        "cudnnSetConvolutionNdDescriptor", "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType",
        "cudnnConvolutionForward"}) {
    Setting setting("FAKE_CUDNN_FAIL", std::string(function) + "=8");
    CHECK(run(convolution(), x, kernel, 5, error).empty());
    CHECK_THAT(error, Contains(function) && Contains("CUDNN_STATUS_EXECUTION_FAILED") && Contains("version 91000"));
  }
}
