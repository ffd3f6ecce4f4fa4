// A program as one CUDA graph, against a driver that needs no GPU and runs nodes in any order that their dependencies
// allow (tests/fake-cuda/FakeGraphs.h).
#include "hloc/runtime/CudaGraph.h"
#include "hloc/kernel/LibraryCall.h"

#include "unit/runtime/Fakes.h"

using namespace hloc;
using Catch::Contains;
using test::Setting;

namespace {

std::string calls() { return test::callsOf(HLOC_FAKE_CUDA, "fakeCuda"); }
void forgetCalls() { test::forget(HLOC_FAKE_CUDA, "fakeCuda"); }

/// What the graph's kernels, and nodes as they were added, have written into the log: lines that begin so.
std::string linesOf(const std::string &beginning) {
  std::string found, log = calls();
  for (size_t at = 0, end; (end = log.find('\n', at)) != std::string::npos; at = end + 1)
    if (std::string line = log.substr(at, end - at); line.starts_with(beginning))
      found += line + "\n";
  return found;
}
size_t numCalls(const std::string &function) {
  size_t number = 0;
  const std::string log = "\n" + calls(), wanted = "\n" + function + "\n";
  for (size_t at = 0; (at = log.find(wanted, at)) != std::string::npos; ++at)
    ++number;
  return number;
}

constexpr const char *aLaunch = "launch <<<1 1 1, 32 1 1, 0>>> first byte of memory ";

BufferSlice whole(uint32_t buffer) { return {buffer, 0, 16}; }
Step fill(uint32_t buffer, uint8_t value) { return {"fill", FillStep{whole(buffer), value}}; }
Step copy(uint32_t from, uint32_t to) { return {"copy", CopyStep{whole(from), whole(to)}}; }
/// A kernel that shows the first byte of a buffer, and a number.
Step show(uint32_t buffer, uint32_t number, uint32_t kernel = 0) {
  return {"show", LaunchStep{kernel, {whole(buffer), ScalarValue{number, 4}}}};
}
std::string shown(unsigned byte, unsigned number) {
  return aLaunch + std::to_string(byte) + ", scalar " + std::to_string(number) + "\n";
}

/// Steps over buffers of 16 bytes on a device.
struct Made {
  std::unique_ptr<CudaDevice> device;
  DeviceProgram program;
  std::string error;
  std::unique_ptr<CudaGraph> graph;

  explicit Made(Steps steps, uint32_t numBuffers = 3) {
    device = CudaDevice::open({HLOC_FAKE_CUDA, 0}, error);
    REQUIRE(device);
    REQUIRE(device->load(".version 8.0", error));
    for (const char *kernel : {"first", "second"})
      program.kernels.push_back({kernel, {1, 1, 1}, {32, 1, 1}, 0, {false, false}});
    program.steps = std::move(steps);
    program.buffers.resize(numBuffers);
    allocate();
    forgetCalls();
  }
  void allocate() {
    for (DeviceBuffer &buffer : program.buffers) {
      buffer.name = "b";
      buffer.bytes = 16;
      REQUIRE(device->allocate(buffer, error));
    }
  }
  CudaGraph &make() {
    graph = CudaGraph::make(*device, program, error);
    INFO(error);
    REQUIRE(graph);
    return *graph;
  }
  /// What the kernels show when it runs.
  std::string run() {
    forgetCalls();
    REQUIRE(graph->launch(error));
    return linesOf("launch ");
  }
  std::string failure() {
    graph = CudaGraph::make(*device, program, error);
    CHECK_FALSE(graph);
    return error;
  }
  void upload(uint32_t buffer, std::vector<uint8_t> bytes) {
    bytes.resize(16);
    REQUIRE(device->upload(buffer, bytes.data(), 16, error));
  }
};

} // namespace

TEST_CASE("a graph runs a program's steps in their order, at one call") {
  Made made({fill(0, 7), show(0, 1), fill(0, 8), show(0, 2), copy(0, 1), fill(0, 9), show(1, 3), show(0, 4)});
  CHECK(made.make().numNodes() == 8);
  CHECK(linesOf("launch ").empty());
  CHECK_THAT(linesOf("node "),
             Contains("node 0: fill\nnode 1: kernel after 0\n") && Contains("node 7: kernel after 6"));
  const std::string all = shown(7, 1) + shown(8, 2) + shown(8, 3) + shown(9, 4);
  CHECK(made.run() == all);
  CHECK(made.run() == all);
  CHECK(numCalls("cuGraphLaunch") == 1);
  for (const char *function : {"cuLaunchKernel", "cuMemsetD8Async", "cuGraphExecNodeSetParams", "cuGraphAddNode_v2"})
    CHECK(numCalls(function) == 0);
  forgetCalls();
  made.graph.reset();
  CHECK(numCalls("cuGraphExecDestroy") == 1);
  CHECK(numCalls("cuGraphDestroy") == 1);
}

TEST_CASE("what does nothing is no node") {
  Made made(
      {fill(0, 7), show(0, 1, 1), Step{"none", FillStep{{0, 16, 0}, 1}}, Step{"none", CopyStep{{0, 0, 0}, {1, 0, 0}}}});
  made.program.kernels[1].grid = {0, 1, 1};
  CHECK(made.make().numNodes() == 1);
}

TEST_CASE("with other buffers a graph is changed in place, and only where it has to be") {
  Made made({show(0, 1), copy(0, 1), fill(2, 3), show(1, 2), show(2, 3)});
  made.upload(0, {10});
  made.make();
  CHECK(made.run() == shown(10, 1) + shown(10, 2) + shown(3, 3));
  CHECK(made.graph->numUpdates() == 0);
  DeviceBuffer more; // those that the graph knows stay where they are
  more.name = "more";
  more.bytes = 4096;
  REQUIRE(made.device->allocate(more, made.error));
  CHECK(made.run() == shown(10, 1) + shown(10, 2) + shown(3, 3));
  CHECK(made.graph->numUpdates() == 0);

  // What the first buffers had stays allocated elsewhere, so that the next ones are not in their place.
  uint64_t before = 0, after = 0;
  REQUIRE(made.device->address(whole(0), before, made.error));
  REQUIRE(made.device->reset(made.error));
  REQUIRE(made.device->allocate(more, made.error));
  REQUIRE(made.device->reset(made.error));
  made.program.buffers[0].place = DevicePlace{256, 1024};
  made.allocate();
  REQUIRE(made.device->address(whole(0), after, made.error));
  REQUIRE(before != after);
  made.upload(0, {20});
  CHECK(made.run() == shown(20, 1) + shown(20, 2) + shown(3, 3));
  CHECK(made.graph->numUpdates() >= 2);
  CHECK(numCalls("cuGraphExecNodeSetParams") == made.graph->numUpdates());
  CHECK(numCalls("cuGraphInstantiateWithFlags") == 0);
  CHECK(numCalls("cuGraphAddNode_v2") == 0);
  CHECK(made.run() == shown(20, 1) + shown(20, 2) + shown(3, 3));
  CHECK(numCalls("cuGraphExecNodeSetParams") == 0);
}

TEST_CASE("a loop decides on the device how often it goes round") {
  const WhileStep loop{{show(1, 1)}, {0, 0, 1}, {show(1, 2), copy(2, 0)}};
  Made made({fill(1, 5), Step{"loop", loop}, show(0, 3)});
  made.upload(0, {1});
  made.upload(2, {0});
  CHECK(made.make().numNodes() == 9); // the condition twice, and what tells the loop
  CHECK(made.run() == shown(5, 1) + shown(5, 2) + shown(5, 1) + shown(0, 3));
  CHECK(made.run() == shown(5, 1) + shown(0, 3)); // the predicate is 0 by now
  Setting decisions("FAKE_CUDA_DECISIONS", "110");
  CHECK(made.run() == shown(5, 1) + shown(5, 2) + shown(5, 1) + shown(5, 2) + shown(5, 1) + shown(0, 3));
  CHECK(numCalls("cuMemcpyDtoHAsync_v2") == 0);
  CHECK(numCalls("cuStreamSynchronize") == 0);
}

TEST_CASE("loops inside loops, and branches inside them") {
  const Steps inner{Step{"inner", WhileStep{{}, {1, 0, 1}, {show(2, 1), copy(2, 1)}}}, show(2, 2), copy(2, 0)};
  const ConditionalStep choice{{0, 0, 1}, {{show(2, 3)}, {show(2, 4)}}};
  Made made({Step{"outer", WhileStep{{Step{"choice", choice}}, {0, 0, 1}, inner}}});
  made.upload(0, {1});
  made.upload(1, {1});
  made.upload(2, {0});
  made.make();
  CHECK(made.run() == shown(0, 3) + shown(0, 1) + shown(0, 2) + shown(0, 4));
}

TEST_CASE("few rounds are unrolled, many are counted on the device") {
  auto loop = [](uint64_t rounds) { return Step{"loop", WhileStep{{}, {}, {show(0, 1), fill(1, 2)}, rounds}}; };
  const std::string round = shown(0xA5, 1);
  Made few({loop(3)});
  CHECK(few.make().numNodes() == 6);
  CHECK(few.run() == round + round + round);

  Made none({loop(0)});
  CHECK(none.make().numNodes() == 0);

  Made many({Step{"twice", WhileStep{{}, {}, {loop(300)}, 2}}});
  CHECK(many.make().numNodes() == 2 * 6);
  for (int times = 0; times < 2; ++times) {
    const std::string all = many.run();
    CHECK(all.size() == 2 * 300 * round.size());
    CHECK(all.substr(0, round.size()) == round);
  }
  CHECK(numCalls("cuGraphLaunch") == 1);
  forgetCalls();
  many.graph.reset();
  CHECK(numCalls("cuMemFree_v2") == 2);
  CHECK(numCalls("cuModuleUnload") == 1);
}

TEST_CASE("a conditional takes the branch of its selector") {
  // Branch 0 writes over the selector: the others have been told before.
  const Steps branches[] = {{show(1, 10), fill(0, 1)}, {show(1, 11)}, {}, {show(1, 13)}};
  Made made(
      {fill(1, 6), Step{"choice", ConditionalStep{{0, 0, 4}, {branches[0], branches[1], branches[2], branches[3]}}}});
  made.make();
  for (auto [selector, number] : {std::pair(0, 10), {1, 11}, {3, 13}, {4, 13}, {-1, 13}, {1 << 24, 13}}) {
    std::vector<uint8_t> bytes(4);
    for (unsigned i = 0; i < 4; ++i)
      bytes[i] = uint8_t(uint32_t(selector) >> 8 * i);
    made.upload(0, bytes);
    CHECK(made.run() == shown(6, number));
  }
  made.upload(0, {2});
  CHECK(made.run() == "");

  Made ofPredicate({Step{"choice", ConditionalStep{{0, 3, 1}, {{show(1, 1)}, {show(1, 2)}}}}});
  ofPredicate.make();
  ofPredicate.upload(0, {0, 0, 0, 1, 0});
  CHECK(ofPredicate.run() == shown(0xA5, 1));
  ofPredicate.upload(0, {1, 1, 1, 0, 1});
  CHECK(ofPredicate.run() == shown(0xA5, 2));
}

TEST_CASE("what decides is changed in place, too") {
  Made made({Step{"loop", WhileStep{{}, {0, 0, 1}, {show(0, 1), copy(1, 0)}}}});
  made.upload(0, {1});
  made.upload(1, {0});
  made.make();
  CHECK(made.run() == shown(1, 1));
  std::vector<uint8_t> kept(1);
  REQUIRE(made.device->reset(made.error));
  for (uint32_t i : {0, 1})
    made.program.buffers[i].place = DevicePlace{512 * i, 1024};
  made.allocate();
  made.upload(0, {1});
  made.upload(1, {0});
  CHECK(made.run() == shown(1, 1));
  CHECK(made.run() == "");
}

TEST_CASE("kernels begin early in a graph as in a stream, and what comes behind waits for both") {
  Made made({show(0, 1), show(0, 2, 1), show(0, 3, 1), show(0, 4), fill(0, 1), show(0, 5, 1)});
  made.program.kernels[1].programmatic = true;
  made.make();
  CHECK(linesOf("node ") == "node 0: kernel\nnode 1: kernel after 0(early)\nnode 2: kernel after 1(early) 0\n"
                            "node 3: kernel after 2 1\nnode 4: fill after 3\nnode 5: kernel after 4\n");
  CHECK(made.run().size() == 5 * shown(165, 1).size() - 2); // one of them shows a byte of one digit
}

TEST_CASE("clusters and large shared memory are asked for") {
  Made made({show(0, 1), show(0, 2, 1)});
  made.program.kernels[1].cluster = Dim3{9, 1, 1};
  made.program.kernels[1].grid = {9, 1, 1};
  made.program.kernels[1].dynamicSharedBytes = 65536;
  made.make();
  CHECK_THAT(calls(), Contains("attribute 8 = 65536") && Contains("attribute 14 = 1"));
  made.run();
  CHECK_THAT(calls(), Contains("clusters of 9 1 1\nlaunch <<<9 1 1, 32 1 1, 65536>>>"));
}

TEST_CASE("calls of libraries are recorded, and again for other buffers") {
  MatmulCall call;
  call.m = call.n = call.k = 2;
  call.a = {LibraryType::F32, true, 2, 0};
  call.b = {LibraryType::F32, false, 2, 0};
  call.d = {LibraryType::F32, false, 2, 0};
  CallStep step{CallStep::Kind::Library,
                MatmulCall::function.str(),
                call.configuration(),
                {whole(0), whole(1)},
                {whole(2), {3, 0, 4 << 20}}};
  std::string error;
  CudaOptions options;
  options.driver = HLOC_FAKE_CUDA;
  options.cublasLt = HLOC_FAKE_CUBLASLT;
  std::unique_ptr<CudaDevice> device = CudaDevice::open(options, error);
  REQUIRE(device);
  DeviceProgram program;
  program.steps = {Step{"clear", FillStep{whole(2), 0}}, Step{"dot", step}};
  program.buffers.resize(4);
  auto prepare = [&](float scale) {
    const float a[] = {1 * scale, 2 * scale, 3 * scale, 4 * scale}, b[] = {1, 0, 0, 1};
    for (DeviceBuffer &buffer : program.buffers) {
      buffer.bytes = &buffer == &program.buffers.back() ? 4 << 20 : 16;
      REQUIRE(device->allocate(buffer, error));
    }
    REQUIRE(device->upload(0, a, 16, error));
    REQUIRE(device->upload(1, b, 16, error));
  };
  auto result = [&] {
    float made[4] = {};
    REQUIRE(device->download(whole(2), made, error));
    return std::vector<float>(made, made + 4);
  };
  prepare(1);
  std::unique_ptr<CudaGraph> graph = CudaGraph::make(*device, program, error);
  INFO(error);
  REQUIRE(graph);
  CHECK(graph->numNodes() == 2);
  CHECK(result() != std::vector<float>{1, 3, 2, 4}); // recorded, not done
  REQUIRE(graph->launch(error));
  CHECK(result() == std::vector<float>{1, 3, 2, 4});
  REQUIRE(device->reset(error));
  for (uint32_t i : {0, 1, 2})
    program.buffers[i].place = DevicePlace{256 * i, 1024};
  prepare(10);
  REQUIRE(graph->launch(error));
  CHECK(result() == std::vector<float>{10, 30, 20, 40});
  CHECK(graph->numUpdates() == 2);

  // Whether it works or not, the stream is of use afterwards.
  Setting failing("FAKE_CUBLASLT_FAIL", "cublasLtMatmul=13");
  CHECK_FALSE(CudaGraph::make(*device, program, error));
  CHECK_THAT(error, Contains("step `dot`: ") && Contains("CUBLAS_STATUS_EXECUTION_FAILED"));
  CHECK(device->synchronize(error));
}

TEST_CASE("every failing call that makes a graph is named with what it was for") {
  const Steps steps{show(0, 1), Step{"loop", WhileStep{{}, {0, 0, 1}, {show(0, 1)}}},
                    Step{"rounds", WhileStep{{}, {}, {show(0, 2)}, 1000}}, show(0, 3, 1)};
  Made made(steps);
  made.program.kernels[1].cluster = Dim3{2, 1, 1};
  for (std::string function :
       {"cuGraphCreate", "cuGraphAddNode_v2", "cuGraphConditionalHandleCreate", "cuGraphKernelNodeSetAttribute",
        "cuGraphInstantiateWithFlags", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuMemAlloc_v2"}) {
    Setting failing("FAKE_CUDA_FAIL", function + "=700");
    const std::string spoken = function.ends_with("_v2") ? function.substr(0, function.size() - 3) : function;
    CHECK_THAT(made.failure(), Contains("(" + spoken + ")") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  made.make();
  {
    Setting failing("FAKE_CUDA_FAIL", "cuGraphLaunch=700");
    CHECK_FALSE(made.graph->launch(made.error));
    CHECK_THAT(made.error, Contains("(cuGraphLaunch): CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  {
    Setting failing("FAKE_CUDA_FAIL", "cuStreamSynchronize=700");
    CHECK_FALSE(made.device->synchronize(made.error));
    CHECK_THAT(made.error, Contains("after a graph of "));
  }
  REQUIRE(made.device->reset(made.error));
  for (uint32_t i : {0, 1})
    made.program.buffers[i].place = DevicePlace{512 * i, 1024};
  made.allocate();
  Setting failing("FAKE_CUDA_FAIL", "cuGraphExecNodeSetParams=1");
  CHECK_FALSE(made.graph->launch(made.error));
  CHECK_THAT(made.error, Contains("step `show`: changing a graph in place (cuGraphExecNodeSetParams)"));
}

TEST_CASE("programs that nobody here can carry out become no graph") {
  Made external({Step{"x", CallStep{CallStep::Kind::External, "all-reduce", "", {}, {}}}});
  CHECK_THAT(external.failure(), Contains("external step `all-reduce`"));
  Made missing({Step{"x", UnsupportedStep{"no emitter", {}, {}}}});
  CHECK_THAT(missing.failure(), Contains("not compiled: no emitter"));
  Made outside({Step{"x", FillStep{{0, 8, 9}, 0}}});
  CHECK_THAT(outside.failure(), Contains("step `x`: 9 bytes from 8 of `b`"));
  Made unequal({Step{"x", CopyStep{{0, 0, 8}, {1, 0, 9}}}});
  CHECK_THAT(unequal.failure(), Contains("a copy of 8 bytes to 9"));
  Made gone({show(0, 1)});
  gone.make();
  REQUIRE(gone.device->load(".version 8.0", gone.error));
  CHECK_FALSE(gone.graph->launch(gone.error));
  CHECK_THAT(gone.error, Contains("another module"));

  std::string error;
  std::unique_ptr<CudaDevice> device = CudaDevice::open({HLOC_GRAPHLESS_CUDA, 0}, error);
  REQUIRE(device);
  CHECK_FALSE(CudaGraph::make(*device, {}, error));
  CHECK_THAT(error, Contains("too old for graphs: it lacks cuGraphCreate, ") && Contains("cuGraphAddNode_v2"));
}
