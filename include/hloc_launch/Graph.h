#pragma once
// The steps of a module as one CUDA graph.

#include "Execution.h"
#include "GraphApi.h"

#include <list>

namespace hloc_launch {

/// All steps of a module as one CUDA graph, instantiated once and launched many times: a launch is one call, and the
/// device itself decides how often loops go round and which branches are taken.
///
///   Graph graph;
///   Status status = Graph::create(module, {x}, {y}, graph);
///   if (status.ok()) status = graph.launch(stream);              // y of x
///   if (status.ok()) status = graph.update({otherX}, {otherY});  // in place
///   if (status.ok()) status = graph.launch(stream);              // otherY of otherX
///
/// It takes a driver of CUDA 12.3 or later, and callbacks that can be captured (Options::capturable). Where that is not
/// so, create() fails with cudaResult() == Status::notSupported, and Execution::run does the same work.
///
/// A graph has memory of its own for values in between, as an Execution has. One thread at a time uses it. Launches run
/// one after the other, also on several streams: CUDA has one launch of an executable graph run at a time.
class Graph {
public:
  Graph() = default;
  Graph(Graph &&other) noexcept { swap(other); }
  Graph &operator=(Graph &&other) noexcept { return swap(other), *this; }
  ~Graph();

  /// Makes a graph for these arrays, which are told as Execution::run is, and instantiates it; nothing runs yet.
  /// Results that are null here are left where they are by every launch. Errors: no module, addresses that are missing
  /// or not aligned, what graphs cannot do (Status::notSupported), a callback's, failures of the driver.
  static Status create(const Module &of, const std::vector<DevicePointer> &inputs,
                       const std::vector<DevicePointer> &results, Graph &graph);

  /// Later launches take these arrays; those before, also if they have not run yet, keep theirs. Only parameters of
  /// nodes that have other addresses now are set, in the executable graph. Errors: as create(), and a result that is
  /// null where it was not when the graph was made, or the other way round. A graph whose update the driver has refused
  /// cannot be launched before another one succeeds; after other errors it keeps its arrays.
  Status update(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results);

  /// Enqueues all steps. Errors: no graph, failures of the driver, also of work that was enqueued before.
  Status launch(Stream stream);

  /// Where a buffer of the manifest lies, in launches from now on.
  DevicePointer address(const Slice &slice) const { return execution.address(slice); }
  /// CUgraphExec, for cuGraphUpload and its like; null if there is no graph.
  CUgraphExec_st *handle() const { return exec; }

private:
  /// Nodes one behind the other, of the graph itself or of a conditional node's body.
  struct Line {
    CUgraph_st *graph = nullptr;
    CUgraphNode_st *last = nullptr;
    bool lastIsKernel = false;
    CUgraphNode_st *early = nullptr; ///< that may still run when `last` has ended, which has not waited for its end
  };
  /// A node that has parameters.
  struct Node {
    enum class Kind { Launch, Copy, CopyResult, Fill, Call, TakesBranch, GoesRound, ResetCounter };
    Kind kind;
    const Step *step = nullptr; ///< null of CopyResult
    size_t result = 0;          ///< CopyResult: which
    ConditionHandle handle = 0; ///< TakesBranch and GoesRound: what they tell
    uint32_t branch = 0, branches = 0;
    DevicePointer counter = 0; ///< GoesRound, ResetCounter
    CUgraphNode_st *node = nullptr;
    std::vector<DevicePointer> addresses = {}; ///< as they were set last
  };
  /// A loop of a known number of rounds becomes as many copies of its body if these are no more nodes together: a node
  /// more takes less time than a decision.
  static constexpr uint64_t mostUnrolled = 512;

  void swap(Graph &other);
  const Module::State &module() const { return *execution.module; }
  const Driver &driver() const { return *execution.module->driver; }
  Status failure(const Node &node, const Status &why) const;
  Status findFunctions() const;
  Status build();

  Status addSteps(Line &line, const std::vector<Step> &steps);
  Status addStep(Line &line, const Step &step);
  Status addLoop(Line &line, const Step &step);
  Status addCountedLoop(Line &line, const Step &step);
  Status addBranches(Line &line, const Step &step);
  Status addResults(Line &line);
  Status add(Line &line, Node node);
  Status addToLine(Line &line, NodeParams &params, bool isProgrammatic, CUgraphNode_st *&node);
  Status addConditional(Line &line, ConditionHandle handle, ConditionalType type, Line &body);
  Status makeCondition(const Line &line, ConditionHandle &handle);
  static uint64_t nodesOf(const std::vector<Step> &steps);

  std::vector<DevicePointer> addressesOf(const Node &node) const;
  template <typename Use> Status withParams(const Node &node, std::vector<DevicePointer> &addresses, const Use &use);
  Status setKernel(const Node &node, std::vector<DevicePointer> &addresses, std::vector<void *> &pointers,
                   KernelNodeParams &params);
  void setCopy(DevicePointer to, DevicePointer from, uint64_t bytes, NodeParams &params) const;
  void setFill(DevicePointer to, uint32_t value, uint64_t bytes, NodeParams &params) const;
  Status capture(const Step &step, CUgraph_st *&captured);

  Execution execution; ///< whose memory and addresses are the graph's
  std::vector<DevicePointer> results;
  CUgraph_st *graph = nullptr;
  CUgraphExec_st *exec = nullptr;
  std::vector<DevicePointer> counters;
  std::list<Node> nodes;
  bool isWhole = false; ///< no update has failed halfway
};

// ---- the interface

inline Graph::~Graph() {
  if (!execution.module)
    return;
  CurrentContext current(driver(), module().context);
  if (exec)
    driver().graphExecDestroy(exec);
  if (graph)
    driver().graphDestroy(graph);
  for (DevicePointer counter : counters)
    driver().memoryFree(counter);
}

inline void Graph::swap(Graph &other) {
  std::swap(execution, other.execution);
  std::swap(results, other.results);
  std::swap(graph, other.graph);
  std::swap(exec, other.exec);
  std::swap(counters, other.counters);
  std::swap(nodes, other.nodes);
  std::swap(isWhole, other.isWhole);
}

inline Status Graph::create(const Module &of, const std::vector<DevicePointer> &inputs,
                            const std::vector<DevicePointer> &results, Graph &graph) {
  Graph made;
  Status status = Execution::create(of, made.execution);
  if (status.ok())
    status = made.findFunctions();
  if (status.ok())
    status = made.execution.bind(inputs, results);
  if (!status.ok())
    return status;
  made.results = results;
  CurrentContext current(made.driver(), made.module().context);
  status = current.status();
  if (status.ok())
    status = made.build();
  if (status.ok())
    graph.swap(made);
  return status;
}

inline Status Graph::update(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &given) {
  if (!exec)
    return Status::failure("no graph has been made");
  std::vector<DevicePointer> before = execution.addresses;
  Status status = execution.bind(inputs, given);
  for (size_t i = 0; status.ok() && i < given.size(); ++i)
    if (!given[i] != !results[i])
      status = Status::failure("result " + std::to_string(i) + " was " + (given[i] ? "" : "not ") +
                               "null when the graph was made, and is " + (given[i] ? "not " : "") + "null now");
  if (!status.ok()) {
    execution.addresses = std::move(before);
    return status;
  }
  results = given;
  CurrentContext current(driver(), module().context);
  status = current.status();
  for (auto node = nodes.begin(); status.ok() && node != nodes.end(); ++node) {
    std::vector<DevicePointer> addresses = addressesOf(*node);
    if (addresses == node->addresses)
      continue;
    status = withParams(*node, addresses, [&](NodeParams &params) {
      const int result = driver().graphExecNodeSetParams(exec, node->node, &params);
      return result ? driver().failure(result, "changing a graph in place (cuGraphExecNodeSetParams)") : Status();
    });
    node->addresses = status.ok() ? std::move(addresses) : std::vector<DevicePointer>();
    if (!status.ok())
      status = failure(*node, status);
  }
  isWhole = status.ok();
  return status;
}

inline Status Graph::launch(Stream stream) {
  if (!exec)
    return Status::failure("no graph has been made");
  if (!isWhole)
    return Status::failure("the graph's last update has failed");
  CurrentContext current(driver(), module().context);
  if (Status status = current.status(); !status.ok())
    return status;
  const int result = driver().graphLaunch(exec, stream);
  return result ? driver().failure(result, "launching a graph (cuGraphLaunch)") : Status();
}

inline Status Graph::failure(const Node &node, const Status &why) const {
  const std::string what = node.step ? "step `" + node.step->name + "`" : "result " + std::to_string(node.result);
  return Status::failure(what + ": " + why.message(), why.cudaResult());
}

inline Status Graph::findFunctions() const {
  std::string missing;
#define HLOC_LAUNCH_FIND(member, function, version, parameters)                                                        \
  if (!driver().member)                                                                                                \
    missing += std::string(missing.empty() ? "" : ", ") + #function version;
  HLOC_LAUNCH_GRAPH_FUNCTIONS(HLOC_LAUNCH_FIND)
#undef HLOC_LAUNCH_FIND
  return missing.empty()
             ? Status()
             : Status::failure("the CUDA driver is too old for graphs, which take CUDA 12.3: it lacks " + missing,
                               Status::notSupported);
}

inline Status Graph::build() {
  if (int result = driver().graphCreate(&graph, 0))
    return driver().failure(result, "making a graph (cuGraphCreate)");
  Line line;
  line.graph = graph;
  Status status = addSteps(line, module().manifest.steps);
  if (status.ok())
    status = addResults(line);
  if (status.ok())
    status = driver().check(driver().graphInstantiate(&exec, graph, 0), "instantiating a graph of " +
                                                                            std::to_string(nodes.size()) +
                                                                            " steps (cuGraphInstantiateWithFlags)");
  isWhole = status.ok();
  return status;
}

// ---- nodes of steps

inline Status Graph::addSteps(Line &line, const std::vector<Step> &steps) {
  for (const Step &step : steps)
    if (Status status = addStep(line, step); !status.ok())
      return status;
  return {};
}

inline Status Graph::addStep(Line &line, const Step &step) {
  switch (step.kind) {
  case Step::Kind::Launch:
    return add(line, {Node::Kind::Launch, &step});
  case Step::Kind::Copy:
    return step.to.bytes ? add(line, {Node::Kind::Copy, &step}) : Status();
  case Step::Kind::Fill:
    return step.to.bytes ? add(line, {Node::Kind::Fill, &step}) : Status();
  case Step::Kind::LibraryCall:
  case Step::Kind::External:
    if (!module().capturable.count(step.function))
      return Status::failure("step `" + step.name + "` calls `" + step.function +
                                 "`, which no graph can do: it is not among Options::capturable",
                             Status::notSupported);
    return add(line, {Node::Kind::Call, &step});
  case Step::Kind::While:
    return step.choice.bytes ? addLoop(line, step) : addCountedLoop(line, step);
  case Step::Kind::Conditional:
    return addBranches(line, step);
  case Step::Kind::Unsupported:
    break;
  }
  return Status::failure("step `" + step.name + "` was not compiled");
}

/// The condition stands before the loop and at the end of its body, each time with what tells the loop its result.
inline Status Graph::addLoop(Line &line, const Step &step) {
  Node decides{Node::Kind::TakesBranch, &step};
  decides.branches = 2;
  Line body;
  Status status = makeCondition(line, decides.handle);
  if (status.ok())
    status = addSteps(line, step.parts[0]);
  if (status.ok())
    status = add(line, decides);
  if (status.ok())
    status = addConditional(line, decides.handle, ConditionalWhile, body);
  for (const auto &part : {&step.parts[1], &step.parts[0]})
    if (status.ok())
      status = addSteps(body, *part);
  return status.ok() ? add(body, decides) : status;
}

inline Status Graph::addCountedLoop(Line &line, const Step &step) {
  const uint64_t numNodes = nodesOf(step.parts[1]);
  if (!numNodes)
    return {};
  Status status;
  if (step.rounds <= mostUnrolled / numNodes) {
    for (uint64_t i = 0; status.ok() && i < step.rounds; ++i)
      status = addSteps(line, step.parts[1]);
    return status;
  }
  Node reset{Node::Kind::ResetCounter, &step}, decides{Node::Kind::GoesRound, &step};
  status = makeCondition(line, decides.handle);
  if (status.ok())
    status = driver().check(driver().memoryAllocate(&reset.counter, sizeof(uint64_t)),
                            "allocating a counter of rounds (cuMemAlloc)");
  if (!status.ok())
    return status;
  counters.push_back(reset.counter);
  decides.counter = reset.counter;
  Line body;
  status = add(line, reset);
  if (status.ok())
    status = add(line, decides);
  if (status.ok())
    status = addConditional(line, decides.handle, ConditionalWhile, body);
  if (status.ok())
    status = addSteps(body, step.parts[1]);
  return status.ok() ? add(body, decides) : status;
}

/// A conditional node for each branch. All are told before the first runs: a branch may write over the selector.
inline Status Graph::addBranches(Line &line, const Step &step) {
  std::vector<ConditionHandle> handles(step.parts.size());
  Status status;
  for (uint32_t i = 0; status.ok() && i < handles.size(); ++i) {
    if (!nodesOf(step.parts[i]))
      continue;
    status = makeCondition(line, handles[i]);
    Node decides{Node::Kind::TakesBranch, &step};
    decides.handle = handles[i];
    decides.branch = i;
    decides.branches = uint32_t(handles.size());
    if (status.ok())
      status = add(line, decides);
  }
  for (size_t i = 0; status.ok() && i < handles.size(); ++i) {
    Line body;
    if (!nodesOf(step.parts[i]))
      continue;
    status = addConditional(line, handles[i], ConditionalIf, body);
    if (status.ok())
      status = addSteps(body, step.parts[i]);
  }
  return status;
}

/// What steps do not write where the caller wants it is copied there at the end.
inline Status Graph::addResults(Line &line) {
  Status status;
  for (size_t i = 0; status.ok() && i < results.size(); ++i)
    if (!module().results[i].isBound && results[i] && module().manifest.results[i].slice.bytes)
      status = add(line, {Node::Kind::CopyResult, nullptr, i});
  return status;
}

/// How many nodes steps become, about; 0 only if they become none.
inline uint64_t Graph::nodesOf(const std::vector<Step> &steps) {
  uint64_t count = 0;
  for (const Step &step : steps) {
    if (step.kind == Step::Kind::Copy || step.kind == Step::Kind::Fill) {
      count += step.to.bytes != 0;
    } else if (step.kind == Step::Kind::While && step.choice.bytes) {
      count += 2 * nodesOf(step.parts[0]) + nodesOf(step.parts[1]) + 3;
    } else if (step.kind == Step::Kind::While) {
      if (const uint64_t body = nodesOf(step.parts[1]))
        count += step.rounds <= mostUnrolled / body ? step.rounds * body : body + 4;
    } else if (step.kind == Step::Kind::Conditional) {
      for (const auto &branch : step.parts)
        if (const uint64_t inside = nodesOf(branch))
          count += inside + 2;
    } else {
      ++count;
    }
  }
  return count;
}

// ---- nodes

inline Status Graph::add(Line &line, Node node) {
  const Kernel *kernel = node.kind == Node::Kind::Launch ? &module().manifest.kernels[node.step->kernel] : nullptr;
  node.addresses = addressesOf(node);
  Status status = withParams(node, node.addresses, [&](NodeParams &params) {
    return addToLine(line, params, kernel && kernel->isProgrammatic, node.node);
  });
  if (status.ok() && kernel && kernel->cluster[0]) {
    const LaunchAttribute attribute = {4, {kernel->cluster[0], kernel->cluster[1], kernel->cluster[2]}, {}};
    status = driver().check(driver().graphKernelNodeSetAttribute(node.node, attribute.id, attribute.value),
                            "asking for clusters (cuGraphKernelNodeSetAttribute)");
  }
  if (!status.ok())
    return failure(node, status);
  nodes.push_back(std::move(node));
  return status;
}

/// A kernel that may begin early waits itself for the end of the one before it, as far as it has to. What comes behind
/// it knows nothing of that, so it waits for both.
inline Status Graph::addToLine(Line &line, NodeParams &params, bool isProgrammatic, CUgraphNode_st *&node) {
  const bool isKernel = params.type == KernelNode, beginsEarly = isProgrammatic && line.lastIsKernel;
  CUgraphNode_st *before[2] = {};
  EdgeData edges[2] = {};
  size_t count = 0;
  if (line.last) {
    if (beginsEarly)
      edges[count] = {1, 0, 1, {}};
    before[count++] = line.last;
  }
  if (line.early)
    before[count++] = line.early;
  if (int result = driver().graphAddNode(&node, line.graph, before, edges, count, &params))
    return driver().failure(result, "adding to a graph (cuGraphAddNode)");
  line.early = beginsEarly ? line.last : nullptr;
  line.last = node;
  line.lastIsKernel = isKernel;
  return {};
}

/// A conditional node, which runs `body` by what `handle` is told.
inline Status Graph::addConditional(Line &line, ConditionHandle handle, ConditionalType type, Line &body) {
  NodeParams params{};
  CUgraphNode_st *node = nullptr;
  params.type = ConditionalNode;
  params.conditional = {handle, type, 1, nullptr, module().context};
  Status status = addToLine(line, params, false, node);
  if (status.ok())
    body.graph = *params.conditional.bodies;
  return status;
}

inline Status Graph::makeCondition(const Line &line, ConditionHandle &handle) {
  Status status = execution.module->loadConditions();
  return status.ok() ? driver().check(driver().graphConditionCreate(&handle, line.graph, module().context, 0, 0),
                                      "making a condition (cuGraphConditionalHandleCreate)")
                     : status;
}

// ---- parameters

inline std::vector<DevicePointer> Graph::addressesOf(const Node &node) const {
  std::vector<DevicePointer> addresses;
  auto take = [&](const std::vector<Slice> &slices) {
    for (const Slice &slice : slices)
      addresses.push_back(address(slice));
  };
  switch (node.kind) {
  case Node::Kind::Launch:
    take(node.step->slices);
    break;
  case Node::Kind::Copy:
    take({node.step->to, node.step->from});
    break;
  case Node::Kind::CopyResult:
    addresses = {results[node.result], address(module().manifest.results[node.result].slice)};
    break;
  case Node::Kind::Fill:
    take({node.step->to});
    break;
  case Node::Kind::Call:
    take(node.step->reads);
    take(node.step->writes);
    break;
  case Node::Kind::TakesBranch:
    take({node.step->choice});
    break;
  case Node::Kind::GoesRound:
  case Node::Kind::ResetCounter:
    addresses = {node.counter};
    break;
  }
  return addresses;
}

/// Calls `use(NodeParams)`, which may not keep them. `addresses`: what the node has now or gets.
template <typename Use>
Status Graph::withParams(const Node &node, std::vector<DevicePointer> &addresses, const Use &use) {
  NodeParams params{};
  std::vector<void *> pointers;
  switch (node.kind) {
  case Node::Kind::Copy:
    setCopy(addresses[0], addresses[1], node.step->to.bytes, params);
    break;
  case Node::Kind::CopyResult:
    setCopy(addresses[0], addresses[1], module().manifest.results[node.result].slice.bytes, params);
    break;
  case Node::Kind::Fill:
    setFill(addresses[0], node.step->value, node.step->to.bytes, params);
    break;
  case Node::Kind::ResetCounter:
    setFill(addresses[0], 0, sizeof(uint64_t), params);
    break;
  case Node::Kind::Call: {
    params.type = ChildGraphNode;
    Status status = capture(*node.step, params.child.graph);
    if (!status.ok())
      return status;
    status = use(params);
    driver().graphDestroy(params.child.graph); // the node has a copy
    return status;
  }
  case Node::Kind::Launch:
    params.type = KernelNode;
    if (Status status = setKernel(node, addresses, pointers, params.kernel); !status.ok())
      return status;
    break;
  case Node::Kind::TakesBranch:
  case Node::Kind::GoesRound: {
    params.type = KernelNode;
    const bool isBranch = node.kind == Node::Kind::TakesBranch;
    ConditionHandle handle = node.handle;
    uint64_t rounds = node.step->rounds;
    uint32_t numbers[3] = {uint32_t(node.step->choice.bytes), node.branch, node.branches};
    pointers = {&handle, &addresses[0]};
    if (isBranch)
      pointers.insert(pointers.end(), {&numbers[0], &numbers[1], &numbers[2]});
    else
      pointers.push_back(&rounds);
    params.kernel = {isBranch ? module().takesBranch : module().goesRound,
                     {1, 1, 1},
                     {1, 1, 1},
                     0,
                     pointers.data(),
                     nullptr,
                     nullptr,
                     nullptr};
    return use(params);
  }
  }
  return use(params);
}

inline Status Graph::setKernel(const Node &node, std::vector<DevicePointer> &addresses, std::vector<void *> &pointers,
                               KernelNodeParams &params) {
  const Kernel &kernel = module().manifest.kernels[node.step->kernel];
  if (Status status = execution.parameters(kernel, addresses, pointers); !status.ok())
    return status;
  const uint32_t *grid = kernel.grid, *block = kernel.block;
  params = {module().functions[node.step->kernel],
            {grid[0], grid[1], grid[2]},
            {block[0], block[1], block[2]},
            kernel.dynamicSharedBytes,
            pointers.data(),
            nullptr,
            nullptr,
            nullptr};
  return {};
}

inline void Graph::setCopy(DevicePointer to, DevicePointer from, uint64_t bytes, NodeParams &params) const {
  params.type = CopyNode;
  params.copy.context = module().context;
  params.copy.from.memoryType = params.copy.to.memoryType = 2; // CU_MEMORYTYPE_DEVICE
  params.copy.from.device = from;
  params.copy.to.device = to;
  params.copy.width = bytes;
  params.copy.height = params.copy.depth = 1;
}

inline void Graph::setFill(DevicePointer to, uint32_t value, uint64_t bytes, NodeParams &params) const {
  params.type = FillNode;
  params.fill = {to, 0, value, 1, bytes, 1, module().context};
}

/// What a callback enqueues.
inline Status Graph::capture(const Step &step, CUgraph_st *&captured) {
  const std::string doing = "capturing what `" + step.function + "` does ";
  Stream stream = nullptr;
  captured = nullptr;
  Status status =
      driver().check(driver().streamCreate(&stream, /*CU_STREAM_NON_BLOCKING=*/1), doing + "(cuStreamCreate)");
  if (!status.ok())
    return status;
  status = driver().check(driver().streamBeginCapture(stream, /*CU_STREAM_CAPTURE_MODE_RELAXED=*/2),
                          doing + "(cuStreamBeginCapture)");
  if (status.ok()) {
    status = execution.call(step, stream);
    const int ended = driver().streamEndCapture(stream, &captured); // also where the call has failed
    if (status.ok())
      status = driver().check(ended, doing + "(cuStreamEndCapture)");
  }
  driver().streamDestroy(stream);
  if (!status.ok() && captured)
    driver().graphDestroy(captured);
  return status;
}

} // namespace hloc_launch
