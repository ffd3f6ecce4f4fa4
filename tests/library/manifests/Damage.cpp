// Damages manifests at random: the launcher has to refuse them or carry them out, whatever they have become, without
// touching memory that is not theirs. Built with sanitizers, and run with the fake driver, which is strict about
// addresses:
//   damage --seed=1 --count=10000 --driver=libfake-cuda.so MANIFEST.json PTX ...
// Exit code 1: a manifest was accepted by which a step leaves the memory that was allocated; --keep=PREFIX writes it to
// PREFIX<number>.json.

#include <hloc_launch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using hloc_launch::DevicePointer;
using hloc_launch::Status;

std::mt19937_64 randomBits;

size_t below(size_t bound) { return bound ? randomBits() % bound : 0; }

std::string readFile(const char *name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Begin and end of a number, a string or a list somewhere in the text, for it to become another.
std::pair<size_t, size_t> findValue(const std::string &text) {
  // Mostly among buffers, steps and results, which decide more than what is said of kernels.
  const size_t start = below(4) ? std::min(text.find("\"buffers\""), text.size()) : 0;
  const size_t from = start + below(text.size() - start);
  const size_t begin = text.find_first_of("0123456789\"[{", from);
  if (begin == std::string::npos)
    return {0, 0};
  if (text[begin] == '"')
    return {begin, std::min(text.find('"', begin + 1), text.size() - 1) + 1};
  if (text[begin] == '[' || text[begin] == '{')
    return {begin, std::min(text.find_first_of("]}", begin), text.size() - 1) + 1};
  return {begin, std::min(text.find_first_not_of("0123456789", begin), text.size())};
}

std::string otherValue(const std::string &text) {
  static const char *const values[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "4",
                                       "7",
                                       "255",
                                       "256",
                                       "1024",
                                       "65536",
                                       "4294967295",
                                       "4294967296",
                                       "1152921504606846976",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "99999999999999999999999",
                                       "-1",
                                       "1.5",
                                       "1e9",
                                       "00",
                                       "null",
                                       "true",
                                       "false",
                                       "[]",
                                       "{}",
                                       "\"\"",
                                       "\"\\u0000\"",
                                       "\"\\ud800\"",
                                       "\"launch\"",
                                       "\"copy\"",
                                       "\"fill\"",
                                       "\"while\"",
                                       "\"conditional\"",
                                       "\"external\"",
                                       "\"unsupported\"",
                                       "\"parameter\"",
                                       "\"result\"",
                                       "\"temporary\"",
                                       "\"constant\"",
                                       "\"ff\"",
                                       "\"f\"",
                                       "[[[[[[",
                                       "]"};
  if (below(3)) {
    const auto [begin, end] = findValue(text); // of another place
    return text.substr(begin, end - begin);
  }
  return values[below(std::size(values))];
}

void damage(std::string &text) {
  const size_t at = below(text.size());
  switch (below(16)) {
  case 0:
    text[at] = char(randomBits());
    break;
  case 1:
    text.erase(at, below(40));
    break;
  case 2:
    text.insert(at, text.substr(below(text.size()), below(200)));
    break;
  case 3: { // it ends, maybe inside an escape
    static const char *const ends[] = {"",   "\"", "\"\\", "\"\\u",  "\"\\u00", "-",
                                       "1.", "1e", "tru",  "{\"a\"", "{\"a\":"};
    text = text.substr(0, at) + ends[below(std::size(ends))];
    break;
  }
  default: {
    const auto [begin, end] = findValue(text);
    text.replace(begin, end - begin, otherValue(text));
  }
  }
}

/// Loops that go round too often to wait for.
bool isLong(const std::vector<hloc_launch::Step> &steps, uint64_t rounds = 1) {
  for (const hloc_launch::Step &step : steps) {
    const uint64_t all = step.kind == hloc_launch::Step::Kind::While && !step.choice.bytes ? step.rounds : 1;
    if (all > 1000 || all * rounds > 1000)
      return true;
    for (const auto &part : step.parts)
      if (isLong(part, all * rounds))
        return true;
  }
  return false;
}

class Trial {
public:
  Trial(const char *driver, std::string_view manifest, const std::string &image) {
    hloc_launch::Options options;
    options.driver = driver;
    for (const char *function : {"cublasLtMatmul", "all-reduce"}) {
      options.callbacks[function] = [](const hloc_launch::ExternalCall &) { return Status(); };
      options.capturable.insert(function);
    }
    status = hloc_launch::Module::load(manifest, {image.data(), image.size()}, options, module);
  }
  /// What run() says, and where it is fine what a graph says; fine if it was not tried.
  Status run() {
    if (!status.ok() || isLong(module.manifest().steps))
      return {};
    hloc_launch::CurrentContext current(module.driver(), module.context());
    hloc_launch::Execution execution;
    std::vector<DevicePointer> inputs, results;
    bool fits = hloc_launch::Execution::create(module, execution).ok();
    for (const hloc_launch::Array &array : module.inputs())
      fits = fits && allocate(array, inputs);
    for (const hloc_launch::Array &array : module.results())
      fits = fits && allocate(array, results);
    Status done;
    if (fits)
      done = execution.run(inputs, results, nullptr);
    if (fits && done.ok())
      done = launch(inputs, results);
    for (const auto *all : {&inputs, &results})
      for (DevicePointer address : *all)
        if (address)
          module.driver().memoryFree(address);
    return done;
  }

  Status status;

private:
  Status launch(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results) {
    hloc_launch::Graph graph;
    Status done = hloc_launch::Graph::create(module, inputs, results, graph);
    return done.ok() ? graph.launch(nullptr) : done;
  }
  bool allocate(const hloc_launch::Array &array, std::vector<DevicePointer> &addresses) {
    return !module.driver().memoryAllocate(&addresses.emplace_back(), array.bytes ? array.bytes : 1);
  }
  hloc_launch::Module module;
};

} // namespace

int main(int count, char **values) {
  setenv("FAKE_CUDA_TRACE", "/dev/null", 1);
  setenv("FAKE_CUDA_DECISIONS", "1101", 1);
  const char *driver = "libcuda.so.1";
  std::string keep;
  size_t trials = 1000, accepted = 0, wrong = 0;
  std::vector<std::pair<std::string, std::string>> modules;
  for (int i = 1; i < count; ++i) {
    const std::string value = values[i];
    if (value.rfind("--seed=", 0) == 0)
      randomBits.seed(std::strtoull(values[i] + 7, nullptr, 10));
    else if (value.rfind("--count=", 0) == 0)
      trials = std::strtoull(values[i] + 8, nullptr, 10);
    else if (value.rfind("--driver=", 0) == 0)
      driver = values[i] + 9;
    else if (value.rfind("--keep=", 0) == 0)
      keep = value.substr(7);
    else if (i + 1 < count)
      modules.emplace_back(readFile(values[i]), readFile(values[i + 1])), ++i;
  }
  for (size_t i = 0; i < trials && !modules.empty(); ++i) {
    const auto &[manifest, image] = modules[below(modules.size())];
    std::string text = manifest;
    for (size_t times = 1 + below(2); times > 0; --times)
      damage(text);
    // Of its size alone, so that a byte behind it is no one's.
    const std::vector<char> exact(text.begin(), text.end());
    Trial trial(driver, {exact.data(), exact.size()}, image);
    accepted += trial.status.ok();
    const Status done = trial.run();
    const bool fails = trial.status.ok() ? !done.ok() : trial.status.message().empty();
    if (!fails)
      continue;
    ++wrong;
    std::fprintf(stderr, "trial %zu: %s\n", i, done.message().c_str());
    if (!keep.empty())
      std::ofstream(keep + std::to_string(i) + ".json") << text;
  }
  std::printf("%zu damaged manifests, %zu of them accepted, %zu wrongly\n", trials, accepted, wrong);
  return wrong || modules.empty() ? 1 : 0;
}
