// What hloc_launch::Graph says of itself, with the fake driver:
//   graphs MANIFEST.json PTX DRIVER
// of a module of which a result is copied to where the caller wants it. Exit code 1: something is otherwise.

#include <hloc_launch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using hloc_launch::Array;
using hloc_launch::DevicePointer;
using hloc_launch::Graph;
using hloc_launch::Module;
using hloc_launch::Status;

int problems = 0;

/// `message` is a part of what is said; empty: that it is fine.
void expect(const char *what, const Status &status, const std::string &message = "") {
  if (status.ok() == message.empty() && status.message().find(message) != std::string::npos)
    return;
  ++problems;
  std::fprintf(stderr, "%s: `%s`, not `%s`\n", what, status.message().c_str(), message.c_str());
}

std::string readFile(const char *name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Memory of its own for each array.
struct Arrays {
  explicit Arrays(const Module &module) {
    for (const auto &[arrays, addresses] :
         {std::pair(&module.inputs(), &inputs), std::pair(&module.results(), &results)})
      for (const Array &array : *arrays)
        (void)module.driver().memoryAllocate(&addresses->emplace_back(), array.bytes ? array.bytes : 1);
  }
  std::vector<DevicePointer> inputs, results;
};

size_t firstCopied(const Module &module) {
  for (size_t i = 0; i < module.results().size(); ++i)
    if (!module.results()[i].isBound && module.results()[i].bytes)
      return i;
  return 0;
}

void checkUpdates(const Module &module, const Arrays &first, const Arrays &second) {
  Graph graph;
  expect("launching no graph", graph.launch(nullptr), "no graph has been made");
  expect("updating no graph", graph.update(first.inputs, first.results), "no graph has been made");
  expect("a graph of no module", Graph::create(Module(), {}, {}, graph), "no module is loaded");
  expect("a graph of too few arrays", Graph::create(module, {}, first.results, graph), " results, not 0 and ");
  expect("making", Graph::create(module, first.inputs, first.results, graph));

  // What does not fit changes nothing.
  Arrays wrong = second;
  wrong.inputs.back() += 1;
  expect("updating with what is not aligned", graph.update(wrong.inputs, wrong.results), "is not aligned to");
  const size_t copied = firstCopied(module);
  wrong = second;
  wrong.results[copied] = 0;
  const std::string number = std::to_string(copied);
  expect("updating with null", graph.update(wrong.inputs, wrong.results),
         "result " + number + " was not null when the graph was made, and is null now");
  const hloc_launch::Slice input{module.inputs().back().buffer, 0, 0};
  if (graph.address(input) != first.inputs.back())
    expect("after a refused update", Status::failure("it has the other arrays"));
  expect("launching after that", graph.launch(nullptr));

  // The driver fails in the middle.
  setenv("FAKE_CUDA_FAIL", "cuGraphExecNodeSetParams=700", 1);
  expect("a failing update", graph.update(second.inputs, second.results), "cuGraphExecNodeSetParams");
  unsetenv("FAKE_CUDA_FAIL");
  expect("launching after that", graph.launch(nullptr), "the graph's last update has failed");
  expect("updating again", graph.update(second.inputs, second.results));
  expect("launching after that", graph.launch(nullptr));

  // Nothing changes: the driver is not asked.
  setenv("FAKE_CUDA_FAIL", "cuGraphExecNodeSetParams=700", 1);
  expect("the same arrays", graph.update(second.inputs, second.results));
  unsetenv("FAKE_CUDA_FAIL");

  // Null from the beginning: it is left where the module has it.
  Graph other;
  expect("making with null", Graph::create(module, wrong.inputs, wrong.results, other));
  expect("null becoming an array", other.update(second.inputs, second.results),
         "result " + number + " was null when the graph was made, and is not null now");
  if (!graph.handle() || graph.handle() == other.handle())
    expect("two graphs", Status::failure("they have one handle"));
  graph = std::move(other);
  expect("launching what was moved", graph.launch(nullptr));
}

/// What comes behind a kernel that began early also waits for what that one may have begun before the end of.
void checkEdges(const Module &module, const Arrays &arrays, const char *driver) {
  void *library = dlopen(driver, RTLD_NOW | RTLD_NOLOAD);
  auto *reset = reinterpret_cast<void (*)()>(dlsym(library, "fakeCudaReset"));
  auto *log = reinterpret_cast<const char *(*)()>(dlsym(library, "fakeCudaLog"));
  reset();
  Graph graph;
  expect("making", Graph::create(module, arrays.inputs, arrays.results, graph));
  const std::string text = log();
  const size_t last = text.rfind("(early)");
  const std::string kernel = text.substr(std::min(text.rfind("node ", last), text.size())),
                    next = kernel.substr(kernel.find('\n') + 1);
  int node = 0, before = 0, after = 0, also = 0;
  if (std::sscanf(kernel.c_str(), "node %d: kernel after %d(early) ", &node, &before) != 2 || before != node - 1)
    expect("a kernel that may begin early", Status::failure(kernel.substr(0, kernel.find('\n'))));
  const size_t edges = next.find("after "); // other calls are logged in between
  if (std::sscanf(next.c_str() + std::min(edges, next.size()), "after %d %d", &after, &also) != 2 || after != node ||
      also != before)
    expect("what comes behind it", Status::failure(next));
}

/// A module's graphs may be made and launched by several threads.
void checkThreads(const Module &module) {
  std::vector<Status> statuses(4);
  std::vector<std::thread> threads;
  for (Status &status : statuses)
    threads.emplace_back([&module, &status] {
      hloc_launch::CurrentContext current(module.driver(), module.context());
      Arrays arrays(module);
      Graph graph;
      status = Graph::create(module, arrays.inputs, arrays.results, graph);
    });
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    expect("a thread", statuses[i]);
  }
}

} // namespace

int main(int count, char **values) {
  setenv("FAKE_CUDA_TRACE", "/dev/null", 1);
  setenv("FAKE_CUDA_DECISIONS", "1101", 1); // then 0: loops end
  if (count != 4)
    return 2;
  const std::string manifest = readFile(values[1]), image = readFile(values[2]);
  hloc_launch::Options options;
  options.driver = values[3];
  Module module;
  expect("loading", Module::load(manifest, {image.data(), image.size()}, options, module));
  if (!module.isLoaded())
    return 1;
  hloc_launch::CurrentContext current(module.driver(), module.context());
  checkUpdates(module, Arrays(module), Arrays(module));
  checkEdges(module, Arrays(module), values[3]);
  checkThreads(module);
  return problems ? 1 : 0;
}
