// The CUDA runtime against a driver that needs no GPU (tests/fake-cuda).
#include "hloc/runtime/Measure.h"

#include "unit/runtime/Fakes.h"

#include "llvm/ADT/StringRef.h"

using namespace hloc;
using Catch::Contains;
using test::Setting;

namespace {

std::unique_ptr<CudaDevice> openFake(std::string &error) { return CudaDevice::open({HLOC_FAKE_CUDA, 0}, error); }

std::string calls() { return test::callsOf(HLOC_FAKE_CUDA, "fakeCuda"); }
void forgetCalls() { test::forget(HLOC_FAKE_CUDA, "fakeCuda"); }

DeviceBuffer bufferOf(uint64_t bytes, DeviceBuffer::Contents contents = DeviceBuffer::Contents::Unwritten) {
  DeviceBuffer buffer;
  buffer.name = "b";
  buffer.bytes = bytes;
  buffer.contents = contents;
  return buffer;
}

/// A kernel of two arguments, and its launch.
struct Launch {
  DeviceKernel kernel;
  LaunchStep step{0, {BufferSlice{0, 0, 16}, ScalarValue{77, 4}}};
  explicit Launch(std::string name) : kernel{std::move(name), {3, 2, 1}, {64, 1, 2}, 0, {false, false}} {}
  operator DeviceLaunch() const { return {kernel, step}; }
};
Launch launchOf(std::string kernel) { return Launch(std::move(kernel)); }

/// Everything a run does; the error of the first step that fails.
std::string errorOfRun() {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  uint32_t data[4] = {1, 2, 3, 4};
  double milliseconds = 0;
  bool fine = device && device->load(".version 8.0", error) && device->allocate(bufferOf(16), error) &&
              device->allocate(bufferOf(16), error) && device->upload(0, data, 16, error) &&
              device->time([&] { return device->launch(launchOf("k"), error); }, milliseconds, error) &&
              device->copy({{0, 0, 16}, {1, 0, 16}}, error) && device->download({1, 0, 16}, data, error) &&
              device->synchronize(error) && device->reset(error);
  CHECK(fine == error.empty());
  return error;
}

} // namespace

TEST_CASE("cuda device moves bytes and launches with the arguments it was given") {
  std::string error;
  forgetCalls();
  {
    std::unique_ptr<CudaDevice> device = openFake(error);
    REQUIRE(device);
    CHECK(device->name() == "Fake 0");
    CHECK(device->target() == "sm_90");
    REQUIRE(device->load(".version 8.0", error));
    REQUIRE(device->allocate(bufferOf(16, DeviceBuffer::Contents::Input), error));
    REQUIRE(device->allocate(bufferOf(32), error));
    uint8_t in[16] = {42, 1, 2, 3}, out[32] = {};
    REQUIRE(device->upload(0, in, 16, error));
    REQUIRE(device->copy({{0, 0, 8}, {1, 4, 8}}, error));
    REQUIRE(device->download({1, 0, 32}, out, error));
    CHECK(out[3] == 0xA5);
    CHECK(out[4] == 42);
    CHECK(out[12] == 0xA5);
    REQUIRE(device->launch(launchOf("k"), error));
    CHECK_THAT(calls(), Contains("launch <<<3 2 1, 64 1 2, 0>>> first byte of memory 42, scalar 77"));
    CHECK_THAT(calls(), !Contains("cuFuncSetAttribute"));
    Launch structure = launchOf("k");
    structure.step.arguments[0] = StructureValue{std::string(16, '\1'), {{0, {0, 1, 8}}}};
    structure.step.arguments[1] = ScalarValue{78, 4};
    REQUIRE(device->launch(structure, error));
    CHECK_THAT(calls(), Contains("first byte of memory 1, scalar 78"));
    structure.step.arguments[0] = StructureValue{std::string(16, '\1'), {{8, {0, 1, 16}}}};
    CHECK(!device->launch(structure, error));
    CHECK_THAT(error, Contains("16 bytes from 1 of `b`"));
  }
  for (const char *released : {"cuMemFree_v2\ncuMemFree_v2", "cuModuleUnload", "cuEventDestroy_v2\ncuEventDestroy_v2",
                               "cuStreamDestroy_v2", "cuDevicePrimaryCtxRelease_v2"})
    CHECK_THAT(calls(), Contains(released));
}

TEST_CASE("cuda device has the driver make tensor maps") {
  std::string error;
  forgetCalls();
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load(".version 8.0", error));
  REQUIRE(device->allocate(bufferOf(4096), error));
  TensorMapRecipe tiles;
  tiles.type = TensorMapType::Bf16;
  tiles.dims = {64, 16};
  tiles.strides = {128};
  tiles.box = {32, 8};
  tiles.swizzle = TensorMapSwizzle::Bytes64;
  tiles.l2 = TensorMapL2::Bytes128;
  tiles.fill = TensorMapFill::Nan;
  Launch launch = launchOf("k");
  launch.step.arguments[1] = TensorMapSlice{{0, 16, 2048}, tiles};
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("map of type 9, 64*0/1 16*128/1, box 32 8, modes 0 2 2 1"));
  CHECK_THAT(calls(), Contains("scalar 544235885")); // `map `

  TensorMapRecipe pixels;
  pixels.type = TensorMapType::F32;
  pixels.dims = {4, 5, 6, 2};
  pixels.strides = {16, 80, 480};
  pixels.elementStrides = {1, 2, 1, 1};
  pixels.im2col = TensorMapPixels{{-1, -2}, {-3, 0}, 4, 16};
  StructureValue structure{std::string(192, '\1'), {{64, {0, 0, 4096}, false, pixels}}};
  launch.step.arguments[1] = structure;
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("map of type 7, 4*0/1 5*16/2 6*80/1 2*480/1, 16 of 4 -1:-3 -2:0, modes 0 0 0 0"));

  launch.step.arguments[1] = TensorMapSlice{{0, 8, 2048}, tiles};
  CHECK_FALSE(device->launch(launch, error));
  CHECK_THAT(error, Contains("making a tensor map (cuTensorMapEncodeTiled)"));

  TensorMapRecipe line; // of no stride
  line.type = TensorMapType::U8;
  line.dims = {1000};
  line.box = {256};
  launch.step.arguments[1] = TensorMapSlice{{0, 0, 1000}, line};
  CHECK(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("map of type 0, 1000*0/1, box 256,"));
}

TEST_CASE("cuda device has a tensor map made once for each address") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load(".version 8.0", error));
  TensorMapRecipe rows;
  rows.type = TensorMapType::F32;
  rows.dims = {64};
  rows.box = {32};
  Launch launch = launchOf("k");
  /// How many maps are made for a launch with the map of the 256 bytes at `offset`.
  auto madeFor = [&](uint64_t offset) {
    forgetCalls();
    launch.step.arguments[1] = TensorMapSlice{{0, offset, 256}, rows};
    const bool isFine = device->launch(launch, error);
    INFO(error);
    CHECK(isFine);
    const std::string all = calls();
    CHECK_THAT(all, Contains("scalar 544235885")); // `map `
    return llvm::StringRef(all).count("map of type 7, 64*0/1, box ");
  };
  REQUIRE(device->allocate(bufferOf(4096), error));
  CHECK(madeFor(0) == 1);
  CHECK(madeFor(0) == 0);
  CHECK(madeFor(1024) == 1);
  CHECK(madeFor(0) == 0);
  rows.box = {16};
  CHECK(madeFor(0) == 1);
  CHECK(madeFor(0) == 0);
  REQUIRE(device->reset(error));
  REQUIRE(device->allocate(bufferOf(4096), error));
  CHECK(madeFor(0) == 1);
  // What failed is not remembered.
  launch.step.arguments[1] = TensorMapSlice{{0, 2048, 256}, rows};
  {
    Setting failing("FAKE_CUDA_FAIL", "cuTensorMapEncodeTiled=2");
    CHECK_FALSE(device->launch(launch, error));
    CHECK_THAT(error, Contains("cuTensorMapEncodeTiled") && Contains("CUDA_ERROR_OUT_OF_MEMORY"));
  }
  CHECK(madeFor(2048) == 1);
}

TEST_CASE("a cuda device that was reset numbers buffers from 0 again and keeps its module") {
  std::string error;
  forgetCalls();
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load(".version 8.0", error));
  REQUIRE(device->allocate(bufferOf(16), error));
  REQUIRE(device->reset(error));
  CHECK_THAT(calls(), Contains("cuMemFree_v2"));
  uint8_t in[32] = {7}, out[32] = {};
  CHECK_FALSE(device->upload(0, in, 16, error));
  REQUIRE(device->allocate(bufferOf(32), error));
  REQUIRE(device->upload(0, in, 32, error));
  REQUIRE(device->download({0, 0, 32}, out, error));
  CHECK(out[0] == 7);
  REQUIRE(device->launch(launchOf("k"), error));
}

TEST_CASE("buffers that share memory are parts of one allocation") {
  std::string error;
  forgetCalls();
  {
    std::unique_ptr<CudaDevice> device = openFake(error);
    REQUIRE(device);
    DeviceBuffer first = bufferOf(16), second = bufferOf(32), outside = bufferOf(300);
    first.place = DevicePlace{256, 512};
    second.place = DevicePlace{256, 512};
    outside.place = DevicePlace{256, 512};
    for (unsigned run = 0; run < 2; ++run) {
      REQUIRE(device->allocate(first, error));
      REQUIRE(device->allocate(bufferOf(16), error));
      REQUIRE(device->allocate(second, error));
      uint8_t in[16] = {42, 1, 2, 3}, out[32] = {};
      REQUIRE(device->upload(0, in, 16, error));
      REQUIRE(device->download({2, 0, 32}, out, error));
      CHECK(out[0] == 42);
      CHECK(out[16] == 0xA5);
      CHECK_FALSE(device->allocate(outside, error));
      CHECK_THAT(error, Contains("leaves the memory of the temporaries"));
      REQUIRE(device->reset(error));
    }
  }
  const std::string log = calls();
  size_t allocated = 0, freed = 0;
  for (size_t at = 0; (at = log.find("cuMemAlloc_v2", at)) != std::string::npos; ++at)
    ++allocated;
  for (size_t at = 0; (at = log.find("cuMemFree_v2", at)) != std::string::npos; ++at)
    ++freed;
  CHECK(allocated == 4);
  CHECK(freed == 4);
}

TEST_CASE("cuda device asks for shared memory above 48 KiB and knows the limits") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load("", error));
  REQUIRE(device->allocate(bufferOf(16), error));
  Launch launch = launchOf("k");
  launch.kernel.dynamicSharedBytes = 49152; // 1 KiB of static shared memory comes on top
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("attribute 8 = 49152"));
  launch.kernel.dynamicSharedBytes = 300000;
  CHECK_FALSE(device->launch(launch, error));
  CHECK_THAT(error, Contains("needs 301024 bytes of shared memory") && Contains("232448"));
  launch = launchOf("k");
  launch.kernel.block = {1025, 1, 1};
  CHECK_FALSE(device->launch(launch, error));
  CHECK_THAT(error, Contains("1025 threads"));
  CHECK_FALSE(device->launch(launchOf("absent"), error));
  CHECK_THAT(error, Contains("`absent`") && Contains("error 500"));
}

TEST_CASE("cuda device refuses what lies outside its buffers") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->allocate(bufferOf(16), error));
  uint8_t bytes[32];
  CHECK_FALSE(device->upload(0, bytes, 17, error));
  CHECK_FALSE(device->upload(1, bytes, 1, error));
  CHECK_FALSE(device->download({0, 8, 9}, bytes, error));
  CHECK_FALSE(device->download({0, ~0ull, 2}, bytes, error));
  CHECK_FALSE(device->copy({{0, 0, 8}, {0, 8, 4}}, error));
  CHECK_FALSE(device->launch(launchOf("k"), error));
  CHECK(error == "no module is loaded");
}

TEST_CASE("every failing call of the cuda driver is named with what it was for") {
  CHECK(errorOfRun() == "");
  const char *functions[] = {"cuInit",
                             "cuDriverGetVersion",
                             "cuDeviceGetCount",
                             "cuDeviceGet",
                             "cuDeviceGetName",
                             "cuDeviceGetAttribute",
                             "cuDevicePrimaryCtxRetain",
                             "cuCtxSetCurrent",
                             "cuStreamCreate",
                             "cuEventCreate",
                             "cuModuleLoadDataEx",
                             "cuMemAlloc_v2",
                             "cuMemsetD8Async",
                             "cuMemcpyHtoDAsync_v2",
                             "cuStreamSynchronize",
                             "cuEventRecord",
                             "cuModuleGetFunction",
                             "cuFuncGetAttribute",
                             "cuLaunchKernel",
                             "cuEventSynchronize",
                             "cuEventElapsedTime",
                             "cuMemcpyDtoDAsync_v2",
                             "cuMemcpyDtoHAsync_v2"};
  for (std::string function : functions) {
    Setting failing("FAKE_CUDA_FAIL", function + "=700");
    std::string spoken = function.ends_with("_v2") ? function.substr(0, function.size() - 3) : function;
    CHECK_THAT(errorOfRun(), Contains("(" + spoken + ")") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS") &&
                                 Contains("(an illegal memory access was encountered)"));
  }
}

TEST_CASE("memory that cannot be freed is named") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->allocate(bufferOf(16), error));
  {
    Setting failing("FAKE_CUDA_FAIL", "cuMemFree_v2=700");
    CHECK_FALSE(device->reset(error));
  }
  CHECK_THAT(error, Contains("(cuMemFree)") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("launches may have clusters, and begin early") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load(".version 8.0", error));
  REQUIRE(device->allocate(bufferOf(16), error));
  forgetCalls();
  Launch launch = launchOf("k");
  launch.kernel.cluster = Dim3{3, 2, 1};
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("launch attribute 4 is 3 2 1\n") && Contains("launch <<<3 2 1, 64 1 2, 0>>>"));
  CHECK_THAT(calls(), !Contains("cuFuncSetAttribute") && !Contains("attribute 6"));
  launch.kernel.grid = launch.kernel.cluster.emplace(Dim3{9, 1, 1});
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("cuFuncSetAttribute") && Contains("4 is 9 1 1"));
  forgetCalls();
  launch.kernel.programmatic = true;
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("launch attribute 4 is 9 1 1\nlaunch attribute 6 is 1 0 0"));
  launch.kernel.cluster.reset();
  forgetCalls();
  REQUIRE(device->launch(launch, error));
  CHECK_THAT(calls(), Contains("launch attribute 6 is 1 0 0") && !Contains("attribute 4"));
}

TEST_CASE("failures after a launch name the kernel") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load("", error));
  REQUIRE(device->allocate(bufferOf(16), error));
  REQUIRE(device->launch(launchOf("broken"), error));
  Setting failing("FAKE_CUDA_FAIL", "cuStreamSynchronize=700");
  CHECK_FALSE(device->synchronize(error));
  CHECK_THAT(error, Contains("after kernel `broken`"));
}

TEST_CASE("loading reports the driver's log, and what is too old") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  {
    Setting failing("FAKE_CUDA_FAIL", "cuModuleLoadDataEx=218");
    CHECK_FALSE(device->load("nonsense", error));
    CHECK_THAT(error, Contains("error 218") && Contains("the log of the driver"));
    CHECK_FALSE(device->isTooOld());
  }
  Setting failing("FAKE_CUDA_FAIL", "cuModuleLoadDataEx=222");
  CHECK_FALSE(device->load(".version 9.9", error));
  CHECK(device->isTooOld());
  CHECK_THAT(error, Contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION") && Contains("sm_90") && Contains("CUDA 12.4"));
}

TEST_CASE("cuda drivers that cannot be used say why") {
  std::string error;
  CHECK_FALSE(CudaDevice::open({"libno-such-driver.so", 0}, error));
  CHECK_THAT(error, Contains("no CUDA driver") && Contains("libno-such-driver.so") && Contains("HLOC_CUDA_DRIVER"));
  CHECK_FALSE(CudaDevice::open({HLOC_OLD_CUDA, 0}, error));
  CHECK_THAT(error, Contains("too old") && Contains("it lacks cuLaunchKernel"));
  {
    Setting old("FAKE_CUDA_VERSION", "10020");
    CHECK_FALSE(openFake(error));
    CHECK_THAT(error, Contains("serves CUDA 10.2") && Contains("11.0"));
  }
  {
    Setting none("FAKE_CUDA_DEVICES", "0");
    CHECK_FALSE(openFake(error));
    CHECK_THAT(error, Contains("finds no device"));
  }
  {
    Setting none("FAKE_CUDA_FAIL", "cuInit=100");
    CHECK_FALSE(openFake(error));
    CHECK_THAT(error, Contains("CUDA_ERROR_NO_DEVICE"));
  }
  CHECK_FALSE(CudaDevice::open({HLOC_FAKE_CUDA, 5}, error));
  CHECK_THAT(error, Contains("no device 5"));
}

TEST_CASE("measurements compare with a copy that moves as many bytes") {
  std::string error;
  std::unique_ptr<CudaDevice> device = openFake(error);
  REQUIRE(device);
  REQUIRE(device->load("", error));
  REQUIRE(device->allocate(bufferOf(16), error));
  DeviceProgram program;
  program.buffers.push_back(bufferOf(16));
  Launch launch = launchOf("k");
  launch.kernel.bytesRead = 4096;
  launch.kernel.bytesWritten = 2048;
  program.kernels.push_back(launch.kernel);
  program.steps.push_back({"k", launch.step});
  Measurement measured;
  CHECK_FALSE(measure(*device, program, 0, measured, error));
  forgetCalls();
  REQUIRE(measure(*device, program, 8, measured, error));
  CHECK(measured.milliseconds.size() == 8);
  CHECK(measured.median == Approx(0.625)); // the fake clock goes 0.25, 0.5, 0.75, 1
  CHECK(measured.least == Approx(0.25));
  CHECK(measured.bytesMoved == 6144);
  CHECK(measured.copyMedian == Approx(0.625));
  CHECK(measured.bytesPerSecond() == Approx(6144 / 0.000625));
  CHECK_THAT(calls(),
             Contains("copy 268435456\ncuEventRecord") && Contains("cuEventRecord\ncuMemcpyDtoDAsync_v2\ncopy 3072\n"));
  CHECK_THAT(report(measured), Contains("100.0 %") && !Contains("kernel k"));
  CHECK(measured.kernels.empty()); // the program is one kernel
  CHECK_THAT(report(measured), !Contains("graph"));
  measured.whyNoGraph = "the driver is too old";
  CHECK_THAT(report(measured), Contains("not timed as a CUDA graph: the driver is too old\n"));

  // Behind the flush as the steps are, and made ready once.
  std::unique_ptr<CudaGraph> graph = CudaGraph::make(*device, program, error);
  REQUIRE(graph);
  REQUIRE(device->reset(error));
  REQUIRE(device->allocate(bufferOf(16), error));
  forgetCalls();
  REQUIRE(measure(*device, program, 4, measured, error, graph.get()));
  REQUIRE(measured.graph);
  CHECK(measured.graph->nodes == 1);
  CHECK(measured.graph->median == Approx(0.625));
  CHECK_THAT(calls(), Contains("copy 268435456\ncuEventRecord\n") && Contains("cuEventRecord\ncuGraphLaunch\n") &&
                          !Contains("cuGraphInstantiateWithFlags"));
  CHECK_THAT(report(measured), Contains("as one CUDA graph of 1 node: median 0.6250 ms, least 0.2500 ms\n"));
  graph.reset();

  program.kernels.push_back(launch.kernel);
  program.kernels.back().name = "k2";
  program.steps.push_back({"k", launch.step});
  launch.step.kernel = 1;
  program.steps.push_back({"k2", launch.step});
  REQUIRE(device->reset(error));
  REQUIRE(device->allocate(bufferOf(16), error));
  REQUIRE(measure(*device, program, 4, measured, error));
  CHECK_THAT(report(measured), Contains("kernel k, 2 launches: median 0.6250 ms, least 0.2500 ms\n") &&
                                   Contains("kernel k2, 1 launch: median 0.6250 ms"));
  Setting failing("FAKE_CUDA_FAIL", "cuEventRecord=700");
  CHECK_FALSE(measure(*device, program, 1, measured, error));
}
