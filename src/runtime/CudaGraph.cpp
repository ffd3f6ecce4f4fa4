#include "hloc/runtime/CudaGraph.h"

#include "CudaDeviceImpl.h"
#include "hloc_launch/Conditions.h"

#include <algorithm>
#include <list>
#include <utility>

namespace hloc {

using namespace cuda;
using hloc_launch::branchKernel, hloc_launch::conditionPtx, hloc_launch::roundKernel;

namespace {

/// Loops of a known number of rounds become as many copies of their body if these are no more nodes together: a node
/// more takes less time than a decision.
constexpr uint64_t mostUnrolled = 512;

// What nodes of a graph are made of, beside steps.
struct TakesBranch { ///< tells `handle` whether the selector chooses this branch
  ConditionHandle handle;
  BufferSlice selector;
  uint32_t branch, branches;
};
struct GoesRound { ///< counts in `counter`, and tells `handle` whether there are rounds left
  ConditionHandle handle;
  DevicePointer counter;
  uint64_t rounds;
};
struct ResetCounter {
  DevicePointer counter;
};
using Work = std::variant<const LaunchStep *, const CopyStep *, const FillStep *, const CallStep *, TakesBranch,
                          GoesRound, ResetCounter>;

template <typename Value> std::string bytesOf(Value value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}
DevicePointer addressIn(const std::string &bytes) {
  DevicePointer address = 0;
  std::copy_n(bytes.data(), sizeof address, reinterpret_cast<char *>(&address));
  return address;
}

/// Nodes of a graph one behind the other.
struct Line {
  Graph graph = nullptr;
  GraphNode last = nullptr;
  bool lastIsKernel = false;
  GraphNode early = nullptr; ///< that may still run when `last` has ended, which has not waited for its end
};

} // namespace

struct CudaGraph::Impl {
  Impl(CudaDevice &device, const DeviceProgram &program, std::string &error)
      : device(device), parts(*device.impl), driver(*device.impl->driver), program(program), error(&error) {}
  ~Impl();

  bool make();
  bool update();

  struct Item {
    Work work;
    std::string name; ///< of the step
    GraphNode node = nullptr;
    std::vector<std::string> arguments = {}; ///< as they were set last: what may change
  };

  bool check(int result, const std::string &doing) { return driver.check(result, doing, *error); }
  bool fail(std::string why) { return *error = std::move(why), false; }
  bool findFunctions();
  bool loadConditions();

  bool addSteps(Line &line, const Steps &steps);
  bool add(Line &line, const Step &step, const LaunchStep &launch);
  bool add(Line &line, const Step &step, const CopyStep &copy);
  bool add(Line &line, const Step &step, const FillStep &fill);
  bool add(Line &line, const Step &step, const CallStep &call);
  bool add(Line &line, const Step &step, const WhileStep &loop);
  bool add(Line &line, const Step &step, const ConditionalStep &choice);
  bool add(Line &line, const Step &step, const UnsupportedStep &unsupported);
  bool addCounted(Line &line, const Step &step, const WhileStep &loop);
  bool addItem(Line &line, const std::string &name, Work work);
  bool addNode(Line &line, NodeParams &params, bool programmatic, GraphNode &node);
  /// A conditional node, which runs `body` by what `handle` is told.
  bool addConditional(Line &line, ConditionHandle handle, ConditionalType type, Line &body);
  bool makeHandle(const Line &line, ConditionHandle &handle);
  uint64_t nodesOf(const Steps &steps) const;

  const DeviceKernel *kernelOf(const Work &work) const {
    const auto *launch = std::get_if<const LaunchStep *>(&work);
    return launch ? &program.kernels[(*launch)->kernel] : nullptr;
  }
  bool addressesOf(const std::vector<BufferSlice> &slices, std::vector<std::string> &arguments);
  bool argumentsOf(const Work &work, std::vector<std::string> &arguments);
  bool setKernel(const Work &work, std::vector<std::string> &arguments, std::vector<void *> &pointers,
                 NodeParams &params);
  /// Calls `use(NodeParams)`, which may not keep them.
  template <typename Use> bool withParams(const Work &work, std::vector<std::string> &arguments, const Use &use);
  bool capture(const CallStep &call, Graph &captured);

  CudaDevice &device;
  CudaDevice::Impl &parts;
  Driver &driver;
  const DeviceProgram &program;
  std::string *error; ///< of the call that goes on
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  Module conditions = nullptr;
  Function takesBranch = nullptr, goesRound = nullptr;
  std::vector<DevicePointer> counters;
  std::list<Item> items;
  uint64_t generation = 0;
  unsigned loads = 0, numNodes = 0, numUpdates = 0;
};

/// Results are not looked at, as the device's.
CudaGraph::Impl::~Impl() {
  if (exec)
    driver.cuGraphExecDestroy(exec);
  if (graph)
    driver.cuGraphDestroy(graph);
  for (DevicePointer counter : counters)
    driver.cuMemFree_v2(counter);
  if (conditions)
    driver.cuModuleUnload(conditions);
}

bool CudaGraph::Impl::findFunctions() {
  std::string missing;
#define HLOC_CUDA_NEWER_FUNCTION(symbol, parameters)                                                                   \
  if (!driver.symbol)                                                                                                  \
    missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
#include "CudaGraphFunctions.def"
#undef HLOC_CUDA_NEWER_FUNCTION
  return missing.empty() || fail("the CUDA driver `" + driver.name() + "` is too old for graphs: it lacks " + missing);
}

bool CudaGraph::Impl::loadConditions() {
  return conditions || (check(driver.cuModuleLoadDataEx(&conditions, conditionPtx, 0, nullptr, nullptr),
                              "loading the kernels that decide (cuModuleLoadDataEx)") &&
                        check(driver.cuModuleGetFunction(&takesBranch, conditions, branchKernel),
                              "looking for a kernel that decides (cuModuleGetFunction)") &&
                        check(driver.cuModuleGetFunction(&goesRound, conditions, roundKernel),
                              "looking for a kernel that decides (cuModuleGetFunction)"));
}

bool CudaGraph::Impl::make() {
  generation = parts.generation;
  loads = parts.loads;
  if (!findFunctions() || !check(driver.cuGraphCreate(&graph, 0), "making a graph (cuGraphCreate)"))
    return false;
  Line line{graph};
  return addSteps(line, program.steps) &&
         check(driver.cuGraphInstantiateWithFlags(&exec, graph, 0),
               "making a graph ready of " + std::to_string(numNodes) + " nodes (cuGraphInstantiateWithFlags)");
}

/// Only what has changed, and in place: making a graph ready anew takes several times as long.
bool CudaGraph::Impl::update() {
  for (Item &item : items) {
    std::vector<std::string> arguments;
    if (!argumentsOf(item.work, arguments))
      return false;
    if (arguments == item.arguments)
      continue;
    auto set = [&](NodeParams &params) {
      return check(driver.cuGraphExecNodeSetParams(exec, item.node, &params),
                   "step `" + item.name + "`: changing a graph in place (cuGraphExecNodeSetParams)");
    };
    if (!withParams(item.work, arguments, set))
      return false;
    item.arguments = std::move(arguments);
    ++numUpdates;
  }
  generation = parts.generation;
  return true;
}

// ---- nodes of steps

bool CudaGraph::Impl::addSteps(Line &line, const Steps &steps) {
  return std::all_of(steps.begin(), steps.end(), [&](const Step &step) {
    return std::visit([&](const auto &action) { return add(line, step, action); }, step.action);
  });
}

bool CudaGraph::Impl::add(Line &line, const Step &step, const LaunchStep &launch) {
  return !program.kernels[launch.kernel].grid.count() || addItem(line, step.name, &launch);
}
bool CudaGraph::Impl::add(Line &line, const Step &step, const CopyStep &copy) {
  if (copy.from.bytes != copy.to.bytes)
    return fail("a copy of " + std::to_string(copy.from.bytes) + " bytes to " + std::to_string(copy.to.bytes));
  return !copy.from.bytes || addItem(line, step.name, &copy);
}
bool CudaGraph::Impl::add(Line &line, const Step &step, const FillStep &fill) {
  return !fill.to.bytes || addItem(line, step.name, &fill);
}
bool CudaGraph::Impl::add(Line &line, const Step &step, const CallStep &call) {
  if (call.kind == CallStep::Kind::External)
    return fail("external step `" + call.function + "` cannot be carried out here");
  return addItem(line, step.name, &call);
}
bool CudaGraph::Impl::add(Line &, const Step &, const UnsupportedStep &unsupported) {
  return fail("not compiled: " + unsupported.reason);
}

/// The condition stands before the loop and at the end of its body, each time with what tells the loop its result.
bool CudaGraph::Impl::add(Line &line, const Step &step, const WhileStep &loop) {
  if (loop.isCounted())
    return addCounted(line, step, loop);
  ConditionHandle handle = 0;
  Line body;
  if (!loadConditions() || !makeHandle(line, handle))
    return false;
  const TakesBranch goesOn{handle, loop.predicate, 0, 2};
  return addSteps(line, loop.condition) && addItem(line, step.name, goesOn) &&
         addConditional(line, handle, ConditionalWhile, body) && addSteps(body, loop.body) &&
         addSteps(body, loop.condition) && addItem(body, step.name, goesOn);
}

bool CudaGraph::Impl::addCounted(Line &line, const Step &step, const WhileStep &loop) {
  const uint64_t rounds = loop.rounds.value_or(0), nodes = nodesOf(loop.body);
  if (nodes == 0)
    return true;
  if (rounds <= mostUnrolled / nodes) {
    for (uint64_t i = 0; i < rounds; ++i)
      if (!addSteps(line, loop.body))
        return false;
    return true;
  }
  ConditionHandle handle = 0;
  Line body;
  DevicePointer counter = 0;
  if (!loadConditions() || !makeHandle(line, handle) ||
      !check(driver.cuMemAlloc_v2(&counter, sizeof(uint64_t)), "allocating a counter (cuMemAlloc)"))
    return false;
  counters.push_back(counter);
  const GoesRound goesOn{handle, counter, rounds};
  return addItem(line, step.name, ResetCounter{counter}) && addItem(line, step.name, goesOn) &&
         addConditional(line, handle, ConditionalWhile, body) && addSteps(body, loop.body) &&
         addItem(body, step.name, goesOn);
}

/// A conditional node for each branch. All are told before the first runs: a branch may write over the selector.
bool CudaGraph::Impl::add(Line &line, const Step &step, const ConditionalStep &choice) {
  const uint32_t numBranches = uint32_t(choice.branches.size());
  std::vector<ConditionHandle> handles(numBranches);
  if (!loadConditions())
    return false;
  for (uint32_t i = 0; i < numBranches; ++i)
    if (nodesOf(choice.branches[i]) &&
        (!makeHandle(line, handles[i]) ||
         !addItem(line, step.name, TakesBranch{handles[i], choice.selector, i, numBranches})))
      return false;
  for (uint32_t i = 0; i < numBranches; ++i) {
    Line body;
    if (nodesOf(choice.branches[i]) &&
        (!addConditional(line, handles[i], ConditionalIf, body) || !addSteps(body, choice.branches[i])))
      return false;
  }
  return true;
}

/// How many nodes steps become, about; 0 only if they become none.
uint64_t CudaGraph::Impl::nodesOf(const Steps &steps) const {
  uint64_t nodes = 0;
  for (const Step &step : steps) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
      nodes += program.kernels[launch->kernel].grid.count() != 0;
    } else if (const auto *copy = std::get_if<CopyStep>(&step.action)) {
      nodes += copy->to.bytes != 0;
    } else if (const auto *fill = std::get_if<FillStep>(&step.action)) {
      nodes += fill->to.bytes != 0;
    } else if (const auto *loop = std::get_if<WhileStep>(&step.action)) {
      const uint64_t body = nodesOf(loop->body), rounds = loop->rounds.value_or(0);
      if (!loop->isCounted())
        nodes += 2 * nodesOf(loop->condition) + body + 3;
      else if (body)
        nodes += rounds <= mostUnrolled / body ? rounds * body : body + 4;
    } else if (const auto *choice = std::get_if<ConditionalStep>(&step.action)) {
      for (const Steps &branch : choice->branches)
        if (uint64_t inside = nodesOf(branch))
          nodes += inside + 2;
    } else {
      ++nodes;
    }
  }
  return nodes;
}

// ---- nodes

bool CudaGraph::Impl::makeHandle(const Line &line, ConditionHandle &handle) {
  return check(driver.cuGraphConditionalHandleCreate(&handle, line.graph, parts.context, 0, 0),
               "making a condition (cuGraphConditionalHandleCreate)");
}

/// A kernel that may begin early waits itself for the end of the one before it, as far as it has to. What comes behind
/// it knows nothing of that, so it waits for both.
bool CudaGraph::Impl::addNode(Line &line, NodeParams &params, bool programmatic, GraphNode &node) {
  const bool isKernel = params.type == KernelNode, beginsEarly = programmatic && isKernel && line.lastIsKernel;
  std::vector<GraphNode> before;
  std::vector<EdgeData> edges;
  if (line.last) {
    before.push_back(line.last);
    edges.push_back(beginsEarly ? EdgeData{1, 0, ProgrammaticEdge, {}} : EdgeData{});
  }
  if (line.early) {
    before.push_back(line.early);
    edges.push_back({});
  }
  if (!check(driver.cuGraphAddNode_v2(&node, line.graph, before.data(), edges.data(), before.size(), &params),
             "adding to a graph (cuGraphAddNode)"))
    return false;
  line.early = beginsEarly ? line.last : nullptr;
  line.last = node;
  line.lastIsKernel = isKernel;
  ++numNodes;
  return true;
}

bool CudaGraph::Impl::addConditional(Line &line, ConditionHandle handle, ConditionalType type, Line &body) {
  NodeParams params{};
  GraphNode node = nullptr;
  params.type = ConditionalNode;
  params.conditional = {handle, type, 1, nullptr, parts.context};
  if (!addNode(line, params, false, node))
    return false;
  body.graph = *params.conditional.bodies;
  return true;
}

bool CudaGraph::Impl::addItem(Line &line, const std::string &name, Work work) {
  Item &item = items.emplace_back(Item{work, name});
  const DeviceKernel *kernel = kernelOf(work);
  auto addIt = [&](NodeParams &params) { return addNode(line, params, kernel && kernel->programmatic, item.node); };
  bool fine = argumentsOf(work, item.arguments) && withParams(work, item.arguments, addIt);
  if (fine && kernel && kernel->cluster) {
    const Dim3 &cluster = *kernel->cluster;
    const LaunchAttribute attribute{ClusterDimension, {cluster.x, cluster.y, cluster.z}, {}};
    fine = check(driver.cuGraphKernelNodeSetAttribute(item.node, ClusterDimension, attribute.value),
                 "asking for clusters (cuGraphKernelNodeSetAttribute)");
  }
  return fine || fail("step `" + name + "`: " + *error);
}

// ---- parameters

bool CudaGraph::Impl::addressesOf(const std::vector<BufferSlice> &slices, std::vector<std::string> &arguments) {
  return std::all_of(slices.begin(), slices.end(), [&](const BufferSlice &slice) {
    DevicePointer address = 0;
    if (!parts.address(slice, address, *error))
      return false;
    arguments.push_back(bytesOf(address));
    return true;
  });
}

bool CudaGraph::Impl::argumentsOf(const Work &work, std::vector<std::string> &arguments) {
  if (const auto *launch = std::get_if<const LaunchStep *>(&work))
    return parts.argumentsOf(**launch, arguments, *error);
  if (const auto *copy = std::get_if<const CopyStep *>(&work))
    return addressesOf({(*copy)->from, (*copy)->to}, arguments);
  if (const auto *fill = std::get_if<const FillStep *>(&work))
    return addressesOf({(*fill)->to}, arguments);
  if (const auto *call = std::get_if<const CallStep *>(&work))
    return addressesOf((*call)->reads, arguments) && addressesOf((*call)->writes, arguments);
  if (const auto *takes = std::get_if<TakesBranch>(&work)) {
    arguments = {bytesOf(takes->handle)};
    if (!addressesOf({takes->selector}, arguments))
      return false;
    for (uint32_t value : {uint32_t(takes->selector.bytes), takes->branch, takes->branches})
      arguments.push_back(bytesOf(value));
    return true;
  }
  if (const auto *goes = std::get_if<GoesRound>(&work))
    arguments = {bytesOf(goes->handle), bytesOf(goes->counter), bytesOf(goes->rounds)};
  else
    arguments = {bytesOf(std::get<ResetCounter>(work).counter)};
  return true;
}

bool CudaGraph::Impl::setKernel(const Work &work, std::vector<std::string> &arguments, std::vector<void *> &pointers,
                                NodeParams &params) {
  params.type = KernelNode;
  for (std::string &argument : arguments)
    pointers.push_back(argument.data());
  const DeviceKernel *kernel = kernelOf(work);
  if (!kernel) {
    Function function = std::holds_alternative<TakesBranch>(work) ? takesBranch : goesRound;
    params.kernel = {function, {1, 1, 1}, {1, 1, 1}, 0, pointers.data(), nullptr, nullptr, nullptr};
    return true;
  }
  if (!parts.module)
    return fail("no module is loaded");
  Function function = nullptr;
  if (!parts.functionOf(*kernel, function, *error) || !parts.allowClusters(*kernel, function, *error))
    return false;
  const Dim3 &grid = kernel->grid, &block = kernel->block;
  params.kernel = {function,
                   {grid.x, grid.y, grid.z},
                   {block.x, block.y, block.z},
                   kernel->dynamicSharedBytes,
                   pointers.data(),
                   nullptr,
                   nullptr,
                   nullptr};
  return true;
}

template <typename Use>
bool CudaGraph::Impl::withParams(const Work &work, std::vector<std::string> &arguments, const Use &use) {
  NodeParams params{};
  if (const auto *call = std::get_if<const CallStep *>(&work)) {
    params.type = ChildGraphNode;
    if (!capture(**call, params.child.graph))
      return false;
    const bool fine = use(params);
    driver.cuGraphDestroy(params.child.graph); // the node has a copy
    return fine;
  }
  auto setFill = [&](DevicePointer to, uint8_t value, uint64_t bytes) {
    params.type = FillNode;
    params.fill = {to, 0, value, 1, bytes, 1, parts.context};
  };
  if (const auto *copy = std::get_if<const CopyStep *>(&work)) {
    params.type = CopyNode;
    params.copy.context = parts.context;
    params.copy.from.type = params.copy.to.type = DeviceMemory;
    params.copy.from.device = addressIn(arguments[0]);
    params.copy.to.device = addressIn(arguments[1]);
    params.copy.width = (*copy)->from.bytes;
    params.copy.height = params.copy.depth = 1;
    return use(params);
  }
  if (const auto *fill = std::get_if<const FillStep *>(&work)) {
    setFill(addressIn(arguments[0]), (*fill)->value, (*fill)->to.bytes);
    return use(params);
  }
  if (const auto *reset = std::get_if<ResetCounter>(&work)) {
    setFill(reset->counter, 0, sizeof(uint64_t));
    return use(params);
  }
  std::vector<void *> pointers;
  return setKernel(work, arguments, pointers, params) && use(params);
}

/// What a function of a library launches: it takes a stream, and knows nothing of graphs.
bool CudaGraph::Impl::capture(const CallStep &call, Graph &captured) {
  if (!parts.openLibrary(call, *error) || // not while the stream records
      !check(driver.cuStreamBeginCapture_v2(parts.stream, CaptureRelaxed),
             "recording what `" + call.function + "` does (cuStreamBeginCapture)"))
    return false;
  const bool called = device.call(call, *error);
  const int ended = driver.cuStreamEndCapture(parts.stream, &captured); // also where the call has failed
  if (called && check(ended, "recording what `" + call.function + "` does (cuStreamEndCapture)"))
    return true;
  if (captured)
    driver.cuGraphDestroy(captured);
  return false;
}

// ---- the interface

CudaGraph::CudaGraph() = default;
CudaGraph::~CudaGraph() = default;

std::unique_ptr<CudaGraph> CudaGraph::make(CudaDevice &device, const DeviceProgram &program, std::string &error) {
  std::unique_ptr<CudaGraph> graph(new CudaGraph());
  graph->impl = std::make_unique<Impl>(device, program, error);
  return graph->impl->make() ? std::move(graph) : nullptr;
}

bool CudaGraph::launch(std::string &error) {
  impl->error = &error;
  if (impl->loads != impl->parts.loads)
    return impl->fail("the device has loaded another module since the graph was made");
  if (impl->generation != impl->parts.generation && !impl->update())
    return false;
  impl->parts.lastWork = "a graph of " + std::to_string(impl->numNodes) + " nodes";
  return impl->check(impl->driver.cuGraphLaunch(impl->exec, impl->parts.stream), "starting a graph (cuGraphLaunch)");
}

unsigned CudaGraph::numNodes() const { return impl->numNodes; }
unsigned CudaGraph::numUpdates() const { return impl->numUpdates; }

} // namespace hloc
