#pragma once
/* Graphs of the fake driver, as strict as a real one: what it is given is checked and copied when it is given,
 * parameters of an executable graph are its own. A graph that is launched runs its nodes one by one, each when those
 * that it depends on have run, and of several that may run the one that was added last: a missing dependency is another
 * order. node 2: kernel after 1(early) 0      in the log where it is added; "copy", "fill", "graph", "if", "while"
 * Kernels do not run here, but those that decide do (include/hloc_launch/Conditions.h), and conditional nodes by what
 * these have said: FAKE_CUDA_DECISIONS (FakeTrace.h) stands for the byte or the word that they would read. Included by
 * FakeCuda.c, which says how a kernel is launched. */

enum { INVALID_VALUE = 1, ILLEGAL_STATE = 401, NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, UNKNOWN = 999 };
enum { kernelNode = 0, copyNode = 1, fillNode = 2, graphNode = 4, conditionalNode = 13, hostNode = 3 };
enum { mostGraphNodes = 4096, mostConditions = 1 << 16 };

struct FakeNode {
  int type, serial;
  struct FakeGraph *graph;
  const struct FakeNode *origin; /* of a copy */
  struct FakeNode **dependencies;
  size_t numDependencies;
  /* kernel */
  void *function;
  unsigned sizes[7], cluster[3];
  unsigned char *arguments; /* eight bytes each */
  /* copy, fill */
  uint64_t to, from;
  size_t bytes;
  unsigned char value;
  /* child graph, or the body of a conditional */
  struct FakeGraph *inner;
  uint64_t handle;
  int isLoop;
  /* what a library does */
  void (*work)(const void *);
  void *data;
};
struct FakeGraph {
  struct FakeNode *nodes[mostGraphNodes];
  int numNodes, numExecs, isBody, hasConditions;
};
struct FakeExec {
  struct FakeGraph *source, *own;
};
static struct {
  struct FakeGraph *graph;
  int isUsed, isTold, atFirst, hasDefault;
  unsigned value;
} conditions[mostConditions];
static uint64_t numConditions; /* handle n is conditions[n - 1] */
static struct FakeGraph *recording;
static void *recordingStream;

/* Functions that decide: (handle, selector, bytes, branch, branches), (handle, counter, rounds). */
static char branchFunction, roundFunction;
static unsigned numArguments(void *function) {
  return function == &branchFunction  ? 5
         : function == &roundFunction ? 3
         : traceFile()                ? ((struct Kernel *)function)->numParameters
                                      : 2;
}

static void recordNode(const struct FakeNode *node, const unsigned char *edges) {
  char text[400];
  const char *kind = node->type == kernelNode  ? "kernel"
                     : node->type == copyNode  ? "copy"
                     : node->type == fillNode  ? "fill"
                     : node->type == graphNode ? "graph"
                     : node->isLoop            ? "while"
                                               : "if";
  int length = snprintf(text, sizeof text, "node %d: %s%s", node->serial, kind, node->numDependencies ? " after" : "");
  for (size_t i = 0; i < node->numDependencies && length < 300; ++i)
    length += snprintf(text + length, sizeof text - length, " %d%s", node->dependencies[i]->serial,
                       edges && edges[8 * i + 2] ? "(early)" : "");
  record(text);
}

static struct FakeNode *newNode(struct FakeGraph *graph, int type) {
  if (graph->numNodes == mostGraphNodes)
    return NULL;
  struct FakeNode *node = calloc(1, sizeof *node);
  node->type = type;
  node->graph = graph;
  node->serial = graph->numNodes;
  return graph->nodes[graph->numNodes++] = node;
}

static void freeGraph(struct FakeGraph *graph) {
  for (int i = 0; graph && i < graph->numNodes; ++i) {
    struct FakeNode *node = graph->nodes[i];
    freeGraph(node->inner);
    free(node->dependencies);
    free(node->arguments);
    free(node->data);
    free(node);
  }
  for (uint64_t i = 0; i < numConditions; ++i) /* another graph may come to lie there */
    if (conditions[i].graph == graph)
      conditions[i].graph = NULL;
  free(graph);
}

/* Conditions keep their handles. */
static struct FakeGraph *copyGraph(const struct FakeGraph *from) {
  struct FakeGraph *made = calloc(1, sizeof *made);
  for (int i = 0; i < from->numNodes; ++i) {
    const struct FakeNode *old = from->nodes[i];
    struct FakeNode *node = newNode(made, old->type), kept = *node;
    *node = *old;
    node->serial = kept.serial;
    node->graph = made;
    node->origin = old;
    node->dependencies = malloc(sizeof node * (old->numDependencies + 1));
    for (size_t d = 0; d < old->numDependencies; ++d)
      node->dependencies[d] = made->nodes[old->dependencies[d]->serial];
    if (old->arguments) {
      const size_t bytes = mapBytes * (size_t)numArguments(old->function);
      node->arguments = memcpy(malloc(bytes + mapBytes), old->arguments, bytes);
    }
    if (old->data)
      node->data = memcpy(malloc(old->bytes), old->data, old->bytes);
    if (old->inner)
      node->inner = copyGraph(old->inner);
  }
  return made;
}

/* ---- parameters, as they lie in CUgraphNodeParams */

struct FakeKernelParams {
  void *function;
  unsigned sizes[7];
  void **parameters, **extra;
  void *kernel, *context;
};
struct FakeCopyEnd {
  size_t x, y, z, level;
  int type;
  void *host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, height;
};
struct FakeParams {
  int type, reserved[3];
  union {
    char all[232];
    struct FakeKernelParams kernel;
    struct {
      int flags, reserved;
      void *context;
      struct FakeCopyEnd from, to;
      size_t width, height, depth;
    } copy;
    struct {
      uint64_t to;
      size_t pitch;
      unsigned value, elementBytes;
      size_t width, height;
      void *context;
    } fill;
    struct {
      struct FakeGraph *graph;
      int ownership;
    } child;
    struct {
      uint64_t handle;
      int type;
      unsigned size;
      struct FakeGraph **bodies;
      void *context;
    } conditional;
  };
  long long reservedEnd;
};

static int setKernelParams(struct FakeNode *node, const struct FakeKernelParams *params) {
  if (!params->function || params->extra || params->kernel || !params->parameters)
    return refuse(INVALID_VALUE, "a kernel node without function or parameters");
  for (int i = 0; i < 6; ++i)
    if (!params->sizes[i])
      return refuse(INVALID_VALUE, "a kernel node with an empty grid or block");
  const unsigned count = numArguments(params->function);
  node->function = params->function;
  memcpy(node->sizes, params->sizes, sizeof node->sizes);
  free(node->arguments);
  node->arguments = calloc(count + 1, mapBytes); /* of each as many as the largest has, a tensor map */
  const int isBranch = params->function == &branchFunction, isRound = params->function == &roundFunction;
  const struct Kernel *kernel = traceFile() && !isBranch && !isRound ? params->function : NULL;
  for (unsigned i = 0; i < count; ++i) {
    const size_t bytes = kernel && kernel->isMap[i] ? mapBytes : isBranch && i >= 2 ? 4 : 8;
    memcpy(node->arguments + mapBytes * i, params->parameters[i], bytes);
  }
  return 0;
}

static int setParams(struct FakeNode *node, const struct FakeParams *params) {
  if (params->type != node->type || params->reserved[0] || params->reserved[1] || params->reserved[2] ||
      params->reservedEnd)
    return refuse(INVALID_VALUE, "parameters of another type, or what is reserved in them is not 0");
  if (params->type == kernelNode)
    return setKernelParams(node, &params->kernel);
  if (params->type == copyNode) {
    const int isLine = params->copy.height == 1 && params->copy.depth == 1 && params->copy.width;
    if (!isLine || params->copy.from.type != 2 || params->copy.to.type != 2 || params->copy.context != currentContext)
      return refuse(INVALID_VALUE, "a copy node that is not one line between places on the device");
    node->to = params->copy.to.device;
    node->from = params->copy.from.device;
    node->bytes = params->copy.width;
    return 0;
  }
  if (params->type == fillNode) {
    if (params->fill.elementBytes != 1 || params->fill.height != 1 || !params->fill.width || params->fill.value > 255 ||
        params->fill.context != currentContext)
      return refuse(INVALID_VALUE, "a fill node that is not one line of bytes");
    node->to = params->fill.to;
    node->bytes = params->fill.width;
    node->value = (unsigned char)params->fill.value;
    return 0;
  }
  if (params->type != graphNode || !params->child.graph || params->child.graph->hasConditions)
    return refuse(INVALID_VALUE, "a node of no kind, or a child graph with conditions");
  freeGraph(node->inner);
  node->inner = copyGraph(params->child.graph);
  return 0;
}

static int setConditional(struct FakeNode *node, struct FakeParams *params) {
  const uint64_t handle = params->conditional.handle;
  if (!handle || handle > numConditions || conditions[handle - 1].isUsed || params->conditional.size != 1 ||
      params->conditional.type > 1 || params->conditional.context != currentContext)
    return refuse(INVALID_VALUE, "a conditional node without a condition of its own");
  if (conditions[handle - 1].graph != node->graph)
    return refuse(INVALID_VALUE, "a condition of another graph");
  conditions[handle - 1].isUsed = 1;
  node->handle = handle;
  node->isLoop = params->conditional.type == 1;
  node->inner = calloc(1, sizeof *node->inner);
  node->inner->isBody = 1;
  node->graph->hasConditions = 1;
  params->conditional.bodies = &node->inner;
  return 0;
}

/* ---- running */

static int runKernel(void *function, const unsigned *sizes, const unsigned *cluster, void *stream, void **parameters);
static int runCopy(uint64_t to, uint64_t from, size_t bytes);
static int runFill(uint64_t to, unsigned char value, size_t bytes);
static int runGraph(const struct FakeGraph *graph, void *stream);

static int decideCondition(const struct FakeNode *node) {
  static uint64_t lastAt;
  static uint32_t lastBranch;
  static int32_t lastSelector;
  uint64_t handle, at, rounds;
  memcpy(&handle, node->arguments, 8);
  memcpy(&at, node->arguments + mapBytes, 8);
  if (!handle || handle > numConditions)
    return refuse(700, "a condition that there is none of");
  unsigned value;
  if (node->function == &roundFunction) {
    if (refusal(at, 8))
      return refusal(at, 8);
    uint64_t *counter = (uint64_t *)(uintptr_t)at;
    memcpy(&rounds, node->arguments + 2 * mapBytes, 8);
    value = (*counter)++ < rounds;
  } else {
    uint32_t numbers[3]; /* bytes, branch, branches */
    for (int i = 0; i < 3; ++i)
      memcpy(&numbers[i], node->arguments + mapBytes * (2 + i), 4);
    if (refusal(at, numbers[0]))
      return refusal(at, numbers[0]);
    int32_t selector = 0;
    memcpy(&selector, (void *)(uintptr_t)at, numbers[0]);
    if (at == lastAt && numbers[1] > lastBranch) /* another branch of the same conditional: it sees the same */
      selector = lastSelector;
    else {
      trace("decide %llx %u\n", (unsigned long long)at, numbers[0]);
      decide(&selector, numbers[0]);
    }
    lastAt = at;
    lastBranch = numbers[1];
    lastSelector = selector;
    unsigned chosen = numbers[0] == 1                                    ? (selector & 255 ? 0 : 1)
                      : selector < 0 || (uint32_t)selector >= numbers[2] ? numbers[2] - 1
                                                                         : (unsigned)selector;
    value = chosen == numbers[1];
  }
  conditions[handle - 1].isTold = 1;
  conditions[handle - 1].value = value;
  return 0;
}

static int runConditional(const struct FakeNode *node, void *stream) {
  int failed = 0;
  do {
    if (!conditions[node->handle - 1].isTold)
      return refuse(UNKNOWN, "a condition that nobody has told");
    if (!conditions[node->handle - 1].value)
      break;
    failed = runGraph(node->inner, stream);
  } while (!failed && node->isLoop);
  return failed;
}

static int runNode(const struct FakeNode *node, void *stream) {
  if (node->type == kernelNode && (node->function == &branchFunction || node->function == &roundFunction))
    return decideCondition(node);
  if (node->type == kernelNode) {
    void *parameters[1024];
    for (unsigned i = 0; i < numArguments(node->function) && i < 1024; ++i)
      parameters[i] = node->arguments + mapBytes * i;
    if (node->cluster[0])
      trace("attribute 4 %u %u %u\n", node->cluster[0], node->cluster[1], node->cluster[2]);
    return runKernel(node->function, node->sizes, node->cluster, stream, parameters);
  }
  if (node->type == copyNode)
    return runCopy(node->to, node->from, node->bytes);
  if (node->type == fillNode)
    return runFill(node->to, node->value, node->bytes);
  if (node->type == graphNode)
    return runGraph(node->inner, stream);
  if (node->type == conditionalNode)
    return runConditional(node, stream);
  node->work(node->data);
  return 0;
}

static int isReady(const struct FakeNode *node, const char *isDone) {
  for (size_t i = 0; i < node->numDependencies; ++i)
    if (!isDone[node->dependencies[i]->serial])
      return 0;
  return 1;
}

static int runGraph(const struct FakeGraph *graph, void *stream) {
  char isDone[mostGraphNodes] = {0};
  for (int left = graph->numNodes; left > 0; --left) {
    int next = graph->numNodes - 1;
    while (isDone[next] || !isReady(graph->nodes[next], isDone))
      --next;
    int failed = runNode(graph->nodes[next], stream);
    if (failed)
      return failed;
    isDone[next] = 1;
  }
  return 0;
}

/* ---- the driver's functions */

EXPORT int cuGraphCreate(struct FakeGraph **graph, unsigned flags) {
  CALL(cuGraphCreate);
  *graph = calloc(1, sizeof **graph);
  return flags ? INVALID_VALUE : 0;
}
EXPORT int cuGraphDestroy(struct FakeGraph *graph) {
  CALL(cuGraphDestroy);
  if (!graph || graph->isBody)
    return refuse(INVALID_VALUE, "a graph that belongs to a node");
  freeGraph(graph);
  return 0;
}
EXPORT int cuGraphAddNode_v2(struct FakeNode **made, struct FakeGraph *graph, struct FakeNode **dependencies,
                             const unsigned char *edges, size_t numDependencies, struct FakeParams *params) {
  CALL(cuGraphAddNode_v2);
  for (size_t i = 0; i < numDependencies; ++i) {
    const unsigned char *edge = edges ? edges + 8 * i : NULL;
    if (dependencies[i]->graph != graph)
      return refuse(INVALID_VALUE, "a dependency on a node of another graph");
    if (edge && (edge[0] || edge[2]) &&
        (edge[0] != 1 || edge[2] != 1 || params->type != kernelNode || dependencies[i]->type != kernelNode))
      return refuse(INVALID_VALUE, "an edge that begins early between what are not kernels");
  }
  struct FakeNode *node = newNode(graph, params->type);
  if (!node)
    return refuse(2, "more nodes than there is room for");
  int failed = params->type == conditionalNode ? setConditional(node, params) : setParams(node, params);
  if (failed) {
    free(graph->nodes[--graph->numNodes]);
    return failed;
  }
  node->dependencies = malloc(sizeof node * (numDependencies + 1));
  if (numDependencies > 0)
    memcpy(node->dependencies, dependencies, sizeof node * numDependencies);
  node->numDependencies = numDependencies;
  recordNode(node, edges);
  *made = node;
  return 0;
}
EXPORT int cuGraphConditionalHandleCreate(uint64_t *handle, struct FakeGraph *graph, void *context, unsigned atFirst,
                                          unsigned flags) {
  CALL(cuGraphConditionalHandleCreate);
  if (numConditions == mostConditions || context != currentContext || flags > 1)
    return INVALID_VALUE;
  pthread_mutex_lock(&traceMutex);
  memset(&conditions[numConditions], 0, sizeof conditions[0]);
  conditions[numConditions].graph = graph;
  conditions[numConditions].atFirst = (int)atFirst;
  conditions[numConditions].hasDefault = (int)flags;
  *handle = ++numConditions;
  pthread_mutex_unlock(&traceMutex);
  return 0;
}
EXPORT int cuGraphKernelNodeSetAttribute(struct FakeNode *node, int attribute, const unsigned *value) {
  CALL(cuGraphKernelNodeSetAttribute);
  if (node->type != kernelNode || attribute != 4)
    return INVALID_VALUE;
  memcpy(node->cluster, value, sizeof node->cluster);
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(struct FakeExec **exec, struct FakeGraph *graph, unsigned long long flags) {
  CALL(cuGraphInstantiateWithFlags);
  for (uint64_t i = 0; i < numConditions; ++i)
    if (conditions[i].graph == graph && !conditions[i].isUsed)
      return refuse(INVALID_VALUE, "a condition of no node");
  if (flags || (graph->hasConditions && graph->numExecs))
    return refuse(INVALID_VALUE, "a graph with conditions that is instantiated twice");
  ++graph->numExecs;
  trace("graph instantiate\n");
  *exec = malloc(sizeof **exec);
  (*exec)->source = graph;
  (*exec)->own = copyGraph(graph);
  return 0;
}
static struct FakeNode *findCopy(struct FakeGraph *graph, const struct FakeNode *origin) {
  struct FakeNode *found = NULL;
  for (int i = 0; !found && i < graph->numNodes; ++i) {
    struct FakeNode *node = graph->nodes[i];
    found = node->origin == origin ? node : node->type == conditionalNode ? findCopy(node->inner, origin) : NULL;
  }
  return found;
}
EXPORT int cuGraphExecNodeSetParams(struct FakeExec *exec, struct FakeNode *node, struct FakeParams *params) {
  CALL(cuGraphExecNodeSetParams);
  trace("graph set\n");
  struct FakeNode *own = findCopy(exec->own, node);
  if (!own || own->type == conditionalNode)
    return refuse(INVALID_VALUE, "a node that the executable graph has not, or that cannot be changed in it");
  if (own->type == fillNode && params->type == fillNode && own->bytes != params->fill.width)
    return refuse(INVALID_VALUE, "a fill node that changes its size");
  return setParams(own, params);
}
EXPORT int cuGraphExecDestroy(struct FakeExec *exec) {
  CALL(cuGraphExecDestroy);
  freeGraph(exec->own);
  free(exec);
  return 0;
}
EXPORT int cuGraphLaunch(struct FakeExec *exec, void *stream) {
  CALL(cuGraphLaunch);
  if (recording)
    return CAPTURE_UNSUPPORTED;
  trace("graph launch\n");
  for (uint64_t i = 0; i < numConditions; ++i) { /* also those of others, which are told before they are asked */
    conditions[i].isTold = conditions[i].hasDefault;
    conditions[i].value = (unsigned)conditions[i].atFirst;
  }
  return runGraph(exec->own, stream);
}

/* ---- recording what a library does on a stream */

struct FakeFill {
  uint64_t to;
  size_t bytes;
  unsigned char value;
};
static void workOfFill(const void *data) {
  const struct FakeFill *fill = data;
  runFill(fill->to, fill->value, fill->bytes);
}
static void recordWork(void *stream, void (*work)(const void *), const void *data, size_t bytes) {
  if (!recording || stream != recordingStream) {
    work(data);
    return;
  }
  struct FakeNode *before = recording->numNodes ? recording->nodes[recording->numNodes - 1] : NULL;
  struct FakeNode *node = newNode(recording, hostNode);
  node->work = work;
  node->data = memcpy(malloc(bytes), data, bytes);
  node->bytes = bytes;
  node->dependencies = malloc(sizeof node);
  node->numDependencies = before != NULL;
  node->dependencies[0] = before;
}
EXPORT int cuStreamBeginCapture_v2(void *stream, int mode) {
  CALL(cuStreamBeginCapture_v2);
  if (recording || !stream || mode < 0 || mode > 2)
    return ILLEGAL_STATE;
  char text[32];
  recording = calloc(1, sizeof *recording);
  recordingStream = stream;
  snprintf(text, sizeof text, "%llx", (unsigned long long)(uintptr_t)recordWork);
  setenv("FAKE_CUDA_RECORDER", text, 1); /* FakeCalls.h */
  return 0;
}
EXPORT int cuStreamEndCapture(void *stream, struct FakeGraph **graph) {
  if (!recording || stream != recordingStream)
    return ILLEGAL_STATE;
  *graph = recording;
  recording = NULL;
  unsetenv("FAKE_CUDA_RECORDER");
  CALL(cuStreamEndCapture);
  return 0;
}
