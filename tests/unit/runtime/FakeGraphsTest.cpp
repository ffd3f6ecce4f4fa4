// The fake driver refuses what a real one refuses of graphs: else tests against it would say little.
#include "runtime/CudaDriver.h"

#include "unit/runtime/Fakes.h"

using namespace hloc;
using namespace hloc::cuda;
using Catch::Contains;

namespace {

constexpr int invalid = 1;

struct Graphs {
  std::string error;
  std::unique_ptr<Driver> driver = Driver::open(HLOC_FAKE_CUDA, error);
  Context context = nullptr;
  Stream stream = nullptr;
  Function function = nullptr;
  Graph graph = nullptr, other = nullptr;
  DevicePointer memory = 0;
  GraphExec exec = nullptr;

  Graphs() {
    REQUIRE(driver);
    REQUIRE(driver->cuDevicePrimaryCtxRetain(&context, 0) == 0);
    REQUIRE(driver->cuCtxSetCurrent(context) == 0);
    REQUIRE(driver->cuStreamCreate(&stream, 0) == 0);
    REQUIRE(driver->cuModuleGetFunction(&function, nullptr, "k") == 0);
    REQUIRE(driver->cuMemAlloc_v2(&memory, 64) == 0);
    REQUIRE(driver->cuGraphCreate(&graph, 0) == 0);
    REQUIRE(driver->cuGraphCreate(&other, 0) == 0);
    test::forget(HLOC_FAKE_CUDA, "fakeCuda");
  }
  ~Graphs() {
    if (exec)
      driver->cuGraphExecDestroy(exec);
    driver->cuGraphDestroy(graph);
    driver->cuGraphDestroy(other);
    driver->cuMemFree_v2(memory);
    driver->cuStreamDestroy_v2(stream);
  }

  NodeParams fill(uint8_t value = 0) const {
    NodeParams params{};
    params.type = FillNode;
    params.fill = {memory, 0, value, 1, 16, 1, context};
    return params;
  }
  NodeParams kernel() {
    NodeParams params{};
    params.type = KernelNode;
    params.kernel = {function, {1, 1, 1}, {1, 1, 1}, 0, parameters, nullptr, nullptr, nullptr};
    return params;
  }
  NodeParams conditional(ConditionHandle handle) const {
    NodeParams params{};
    params.type = ConditionalNode;
    params.conditional = {handle, ConditionalIf, 1, nullptr, context};
    return params;
  }
  int add(GraphNode &node, NodeParams params, std::vector<GraphNode> before = {}, EdgeData edge = {}) {
    std::vector<EdgeData> edges(before.size(), edge);
    return driver->cuGraphAddNode_v2(&node, graph, before.data(), edges.data(), before.size(), &params);
  }
  int makeHandle(ConditionHandle &handle) {
    return driver->cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0);
  }
  std::string why() const { return test::callsOf(HLOC_FAKE_CUDA, "fakeCuda"); }

  unsigned scalar = 5;
  void *parameters[2] = {&memory, &scalar};
};

} // namespace

TEST_CASE("nodes are refused with dependencies, edges and parameters that they cannot have") {
  Graphs g;
  GraphNode first = nullptr, node = nullptr, foreign = nullptr;
  REQUIRE(g.add(first, g.fill()) == 0);
  NodeParams params = g.fill();
  REQUIRE(g.driver->cuGraphAddNode_v2(&foreign, g.other, nullptr, nullptr, 0, &params) == 0);
  CHECK(g.add(node, g.fill(), {foreign}) == invalid);
  CHECK_THAT(g.why(), Contains("a dependency on a node of another graph"));
  CHECK(g.add(node, g.kernel(), {first}, {1, 0, ProgrammaticEdge, {}}) == invalid);
  CHECK_THAT(g.why(), Contains("an edge that begins early between what are not kernels"));
  for (auto spoil : {+[](NodeParams &p) { p.reserved[1] = 1; }, +[](NodeParams &p) { p.reservedEnd = 1; },
                     +[](NodeParams &p) { p.fill.width = 0; }, +[](NodeParams &p) { p.fill.height = 2; },
                     +[](NodeParams &p) { p.fill.value = 256; }, +[](NodeParams &p) { p.fill.context = nullptr; }}) {
    NodeParams spoilt = g.fill();
    spoil(spoilt);
    CHECK(g.add(node, spoilt) == invalid);
  }
  NodeParams without = g.kernel();
  without.kernel.function = nullptr;
  CHECK(g.add(node, without) == invalid);
  without = g.kernel();
  without.kernel.grid[2] = 0;
  CHECK(g.add(node, without) == invalid);
}

TEST_CASE("conditions belong to one node, which somebody has to tell") {
  Graphs g;
  ConditionHandle handle = 0, spare = 0;
  GraphNode node = nullptr;
  REQUIRE(g.makeHandle(handle) == 0);
  CHECK(g.driver->cuGraphInstantiateWithFlags(&g.exec, g.graph, 0) == invalid);
  CHECK_THAT(g.why(), Contains("a condition of no node"));
  REQUIRE(g.add(node, g.conditional(handle)) == 0);
  GraphNode again = nullptr;
  CHECK(g.add(again, g.conditional(handle)) == invalid);
  CHECK(g.add(again, g.conditional(99999)) == invalid);
  NodeParams elsewhere{};
  REQUIRE(g.makeHandle(spare) == 0);
  elsewhere = g.conditional(spare);
  CHECK(g.driver->cuGraphAddNode_v2(&again, g.other, nullptr, nullptr, 0, &elsewhere) == invalid);
  CHECK_THAT(g.why(), Contains("a condition of another graph"));
}

TEST_CASE("a graph with conditions is ready once, and fails where nobody has told them") {
  Graphs g;
  ConditionHandle handle = 0;
  GraphNode node = nullptr;
  REQUIRE(g.makeHandle(handle) == 0);
  REQUIRE(g.add(node, g.conditional(handle)) == 0);
  REQUIRE(g.driver->cuGraphInstantiateWithFlags(&g.exec, g.graph, 0) == 0);
  GraphExec second = nullptr;
  CHECK(g.driver->cuGraphInstantiateWithFlags(&second, g.graph, 0) == invalid);
  CHECK(g.driver->cuGraphLaunch(g.exec, g.stream) == 999);
  CHECK_THAT(g.why(), Contains("a condition that nobody has told"));
  NodeParams params = g.conditional(handle);
  CHECK(g.driver->cuGraphExecNodeSetParams(g.exec, node, &params) == invalid);
}

TEST_CASE("parameters are copied when they are given, and an executable graph has its own") {
  Graphs g;
  GraphNode node = nullptr, later = nullptr;
  REQUIRE(g.add(node, g.kernel()) == 0);
  g.scalar = 6;
  REQUIRE(g.driver->cuGraphInstantiateWithFlags(&g.exec, g.graph, 0) == 0);
  REQUIRE(g.add(later, g.fill()) == 0);
  REQUIRE(g.driver->cuGraphLaunch(g.exec, g.stream) == 0);
  CHECK_THAT(g.why(), Contains("scalar 5") && !Contains("scalar 6"));
  NodeParams params = g.kernel();
  REQUIRE(g.driver->cuGraphExecNodeSetParams(g.exec, node, &params) == 0);
  g.scalar = 7;
  REQUIRE(g.driver->cuGraphLaunch(g.exec, g.stream) == 0);
  CHECK_THAT(g.why(), Contains("scalar 6") && !Contains("scalar 7"));
  CHECK(g.driver->cuGraphExecNodeSetParams(g.exec, later, &params) == invalid); // it has come later
  params = g.fill();
  CHECK(g.driver->cuGraphExecNodeSetParams(g.exec, node, &params) == invalid);
}

TEST_CASE("a stream that is recorded is not waited for") {
  Graphs g;
  Graph recorded = nullptr;
  CHECK(g.driver->cuStreamEndCapture(g.stream, &recorded) == 401);
  REQUIRE(g.driver->cuStreamBeginCapture_v2(g.stream, CaptureRelaxed) == 0);
  CHECK(g.driver->cuStreamBeginCapture_v2(g.stream, CaptureRelaxed) == 401);
  CHECK(g.driver->cuStreamSynchronize(g.stream) == 900);
  CHECK(g.driver->cuMemcpyDtoDAsync_v2(g.memory, g.memory + 16, 16, g.stream) == 900);
  REQUIRE(g.driver->cuStreamEndCapture(g.stream, &recorded) == 0);
  CHECK(g.driver->cuStreamSynchronize(g.stream) == 0);
  CHECK(g.driver->cuGraphDestroy(recorded) == 0);
}

TEST_CASE("a fill on a stream that is recorded is done when the graph is launched") {
  Graphs g;
  Graph recorded = nullptr;
  auto *byte = reinterpret_cast<unsigned char *>(g.memory); // the fake's memory is the host's
  REQUIRE(g.driver->cuMemsetD8Async(g.memory, 1, 16, g.stream) == 0);
  REQUIRE(g.driver->cuStreamBeginCapture_v2(g.stream, CaptureRelaxed) == 0);
  CHECK(g.driver->cuMemsetD8Async(g.memory, 2, 16, g.stream) == 0);
  REQUIRE(g.driver->cuStreamEndCapture(g.stream, &recorded) == 0);
  CHECK(*byte == 1);
  REQUIRE(g.driver->cuGraphInstantiateWithFlags(&g.exec, recorded, 0) == 0);
  REQUIRE(g.driver->cuGraphLaunch(g.exec, g.stream) == 0);
  CHECK(*byte == 2);
  CHECK(g.driver->cuGraphDestroy(recorded) == 0);
}
