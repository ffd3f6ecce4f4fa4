// Runs a module compiled by hloc, on its own: no hloc, no CUDA toolkit.
//
//   hloc gelu.hlo -o gelu.ptx --manifest=gelu.json
//   launch gelu.json gelu.ptx --inputs=x.bin --results=out      # writes out.0, out.1, ...: bytes as on the device
//
// --threads=N does it N times at once, each on a stream of its own; --graph=N makes a CUDA graph of it, which is
// launched N times, and with --update once more with other arrays; --describe says where all buffers were; --external
// takes part in steps that are not hloc's by saying what they are and filling what they write with 0, --external=waits
// by waiting, too;
// --capturable: so that a graph can have it; --driver=FILE is another driver than libcuda.so.1; with --shift=BYTES
// arrays begin so many bytes behind the memory that they are given.

#include <hloc_launch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using hloc_launch::DevicePointer;
using hloc_launch::Status;

struct Arguments {
  std::string manifest, image, results, driver = "libcuda.so.1";
  std::vector<std::string> inputs;
  unsigned threads = 1, shift = 0, launches = 0;
  bool update = false, describe = false, external = false, waits = false, capturable = false;
};

bool readFile(const std::string &name, std::string &text) {
  std::ifstream file(name, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof())
    std::fprintf(stderr, "launch: cannot read %s\n", name.c_str());
  return file.good() || file.eof();
}

bool readArguments(int count, char **values, Arguments &arguments) {
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string value = values[i];
    const std::string name = value.substr(0, value.find('=')),
                      rest = value.substr(std::min(name.size() + 1, value.size()));
    if (name == "--inputs") {
      for (size_t at = 0; at <= rest.size();
           at = rest.find(',', at) == std::string::npos ? rest.size() + 1 : rest.find(',', at) + 1)
        arguments.inputs.push_back(rest.substr(at, rest.find(',', at) - at));
    } else if (name == "--results") {
      arguments.results = rest;
    } else if (name == "--driver") {
      arguments.driver = rest;
    } else if (name == "--threads") {
      arguments.threads = unsigned(std::atoi(rest.c_str()));
    } else if (name == "--shift") {
      arguments.shift = unsigned(std::atoi(rest.c_str()));
    } else if (name == "--describe") {
      arguments.describe = true;
    } else if (name == "--external") {
      arguments.external = true;
      arguments.waits = rest == "waits";
    } else if (name == "--graph") {
      arguments.launches = unsigned(std::atoi(rest.c_str()));
    } else if (name == "--update") {
      arguments.update = true;
    } else if (name == "--capturable") {
      arguments.capturable = true;
    } else {
      files.push_back(value);
    }
  }
  if (files.size() != 2)
    return std::fprintf(stderr, "usage: launch MANIFEST.json IMAGE [OPTIONS]\n"), false;
  arguments.manifest = files[0];
  arguments.image = files[1];
  return true;
}

/// Arrays of a module on the device, for one run of it.
class Arrays {
public:
  Arrays(const hloc_launch::Module &of, unsigned shift)
      : module(of), current(of.driver(), of.context()), shift(shift) {}
  ~Arrays() {
    for (DevicePointer address : inputs)
      module.driver().memoryFree(address - shift);
    for (DevicePointer address : results)
      module.driver().memoryFree(address ? address - shift : 0);
    if (stream)
      module.driver().streamDestroy(stream);
  }
  Status make() {
    const hloc_launch::Driver &driver = module.driver();
    Status status = driver.check(driver.streamCreate(&stream, /*CU_STREAM_NON_BLOCKING=*/1), "making a stream");
    for (size_t i = 0; status.ok() && i < module.inputs().size(); ++i)
      status = allocate(module.inputs()[i], inputs);
    // What is donated holds its result.
    for (size_t i = 0; status.ok() && i < module.results().size(); ++i)
      if (const hloc_launch::Array &result = module.results()[i]; result.isDonated)
        results.push_back(0);
      else
        status = allocate(result, results);
    return status;
  }
  Status upload(size_t input, const std::string &bytes) {
    if (bytes.size() != module.manifest().buffers[module.inputs()[input].buffer].bytes)
      return Status::failure("input " + std::to_string(input) + " has another size");
    const hloc_launch::Driver &driver = module.driver();
    return driver.check(driver.copyToDevice(inputs[input], bytes.data(), bytes.size(), stream), "copying an input");
  }
  /// Waits for the work on the stream.
  template <typename Launched> Status download(size_t result, const Launched &execution, std::string &bytes) {
    const hloc_launch::Driver &driver = module.driver();
    const hloc_launch::Slice &slice = module.manifest().results[result].slice;
    bytes.resize(slice.bytes);
    const DevicePointer from = results[result] ? results[result] : execution.address(slice);
    Status status;
    if (slice.bytes)
      status = driver.check(driver.copyToHost(bytes.data(), from, slice.bytes, stream), "copying a result");
    return status.ok() ? driver.check(driver.streamSynchronize(stream), "waiting for the device") : status;
  }

  std::vector<DevicePointer> inputs, results;
  hloc_launch::Stream stream = nullptr;

private:
  Status allocate(const hloc_launch::Array &array, std::vector<DevicePointer> &addresses) {
    DevicePointer &address = addresses.emplace_back();
    const int result = module.driver().memoryAllocate(&address, (array.bytes ? array.bytes : 1) + shift);
    address += shift;
    return module.driver().check(result, "allocating an array");
  }

  const hloc_launch::Module &module;
  hloc_launch::CurrentContext current;
  unsigned shift;
};

/// Says where everything lies. `launched`: an Execution or a Graph.
template <typename Launched>
void describe(const hloc_launch::Module &module, const Arrays &arrays, const Launched &launched) {
  for (uint32_t i = 0; i < module.manifest().buffers.size(); ++i)
    std::printf("buffer %u %llx\n", i, launched.address({i, 0, 0}));
  for (size_t i = 0; i < arrays.results.size(); ++i)
    std::printf("result %zu %llx\n", i, arrays.results[i]);
}

/// Waits, writes what came of it and says where it lay.
template <typename Launched>
Status tell(const hloc_launch::Module &module, Arrays &arrays, const Launched &launched, const Arguments &arguments) {
  Status status;
  for (size_t i = 0; status.ok() && i < arrays.results.size(); ++i) {
    std::string bytes;
    status = arrays.download(i, launched, bytes);
    if (status.ok() && !arguments.results.empty())
      std::ofstream(arguments.results + "." + std::to_string(i), std::ios::binary) << bytes;
  }
  if (status.ok() && arguments.describe)
    describe(module, arrays, launched);
  return status;
}

Status runGraph(const hloc_launch::Module &module, Arrays &arrays, Arrays &others, const Arguments &arguments) {
  hloc_launch::Graph graph;
  Status status = hloc_launch::Graph::create(module, arrays.inputs, arrays.results, graph);
  for (unsigned i = 0; status.ok() && i < arguments.launches; ++i)
    status = graph.launch(arrays.stream);
  if (!status.ok() || !arguments.update)
    return status.ok() ? tell(module, arrays, graph, arguments) : status;
  if (arguments.describe)
    describe(module, arrays, graph);
  status = graph.update(others.inputs, others.results);
  if (status.ok())
    status = graph.launch(arrays.stream);
  return status.ok() ? tell(module, others, graph, arguments) : status;
}

Status runOnce(const hloc_launch::Module &module, const std::vector<std::string> &inputs, const Arguments &arguments) {
  Arrays arrays(module, arguments.shift), others(module, arguments.shift);
  Status status = arrays.make();
  if (status.ok() && arguments.update)
    status = others.make();
  for (size_t i = 0; status.ok() && i < inputs.size(); ++i) {
    status = arrays.upload(i, inputs[i]);
    if (status.ok() && arguments.update)
      status = others.upload(i, inputs[i]);
  }
  if (!status.ok())
    return status;
  if (arguments.launches)
    return runGraph(module, arrays, others, arguments);
  hloc_launch::Execution execution;
  status = hloc_launch::Execution::create(module, execution);
  if (status.ok())
    status = execution.run(arrays.inputs, arrays.results, arrays.stream);
  return status.ok() ? tell(module, arrays, execution, arguments) : status;
}

/// What takes the place of collectives and libraries.
hloc_launch::Status callExternal(const hloc_launch::ExternalCall &call, const Arguments &arguments) {
  std::printf("external %s %s %zu %zu\n", call.name.c_str(), call.function.c_str(), call.reads.size(),
              call.writes.size());
  const hloc_launch::Driver *driver = nullptr;
  Status status = hloc_launch::Driver::open(driver, arguments.driver.c_str());
  for (const auto &[address, bytes] : call.writes)
    if (status.ok())
      status = driver->check(driver->fill(address, 0, bytes, call.stream), "filling");
  if (status.ok() && arguments.waits)
    status = driver->check(driver->streamSynchronize(call.stream), "waiting");
  return status;
}

Status run(const Arguments &arguments) {
  std::string manifest, image;
  std::vector<std::string> inputs(arguments.inputs.size());
  bool isRead = readFile(arguments.manifest, manifest) && readFile(arguments.image, image);
  for (size_t i = 0; i < inputs.size(); ++i)
    isRead = isRead && readFile(arguments.inputs[i], inputs[i]);
  if (!isRead)
    return Status::failure("a file is missing");
  hloc_launch::Options options;
  options.driver = arguments.driver.c_str();
  if (arguments.external)
    for (const char *function : {"all-reduce", "all-gather", "cublasLtMatmul"}) {
      options.callbacks[function] = [&](const hloc_launch::ExternalCall &call) {
        return callExternal(call, arguments);
      };
      if (arguments.capturable)
        options.capturable.insert(function);
    }
  hloc_launch::Module module;
  if (Status status = hloc_launch::Module::load(manifest, {image.data(), image.size()}, options, module); !status.ok())
    return status;
  if (!inputs.empty() && inputs.size() != module.inputs().size())
    return Status::failure("the module has " + std::to_string(module.inputs().size()) + " inputs");
  std::vector<Status> statuses(arguments.threads);
  std::vector<std::thread> threads;
  Arguments silent = arguments;
  silent.results.clear();
  silent.describe = false;
  for (unsigned i = 0; i < arguments.threads; ++i)
    threads.emplace_back([&, i] { statuses[i] = runOnce(module, inputs, i ? silent : arguments); });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    if (!status.ok())
      return status;
  return {};
}

} // namespace

int main(int count, char **values) {
  Arguments arguments;
  if (!readArguments(count, values, arguments))
    return 2;
  const Status status = run(arguments);
  if (!status.ok())
    std::fprintf(stderr, "launch: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
