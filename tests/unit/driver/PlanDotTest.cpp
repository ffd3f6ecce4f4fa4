// What the picture of a plan says of steps and buffers that small modules do not have.
#include "driver/Dot.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

ModuleBuffer temporary(uint64_t bytes, std::optional<uint64_t> offset) {
  ModuleBuffer buffer;
  buffer.bytes = bytes;
  buffer.offset = offset;
  return buffer;
}

bool says(const std::string &graph, const std::string &line) {
  INFO(graph);
  return graph.find("  " + line + "\n") != std::string::npos;
}

size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("plan graph: who lies in whose memory after it") {
  Manifest manifest;
  manifest.module = "m";
  // By first use: 1 lies inside of 0, 2 over what that leaves of it behind, 3 over what it leaves in front and 1; 4
  // lies behind all, 5 in memory of its own.
  manifest.buffers = {temporary(1024, 0), temporary(256, 256), temporary(1536, 512),
                      temporary(512, 0),  temporary(64, 2048), temporary(64, std::nullopt)};
  for (uint32_t i : {0, 1, 4, 2, 3, 5})
    manifest.steps.push_back({"f", FillStep{{i, 0, manifest.buffers[i].bytes}, 7}});
  const std::string graph = planGraph(manifest), edge = " [style=dashed, color=blue, label=\"memory of\"";
  CHECK(count(graph, edge) == 4);
  CHECK(count(graph, "b0 -> b1" + edge) == 1);
  CHECK(count(graph, "b0 -> b2" + edge) == 1);
  CHECK(count(graph, "b0 -> b3" + edge) == 1);
  CHECK(count(graph, "b1 -> b3" + edge) == 1);
  CHECK(says(graph, "s0 [label=\"f\\nfill 1.0 KiB with 7\", fillcolor=lightblue];"));
  CHECK(count(graph, "label=\"temporaries that share 2.2 KiB\"") == 1);
  CHECK(says(graph, "b5 [label=\"b5: temporary\\n64 B\", shape=ellipse, fillcolor=white];"));
}

TEST_CASE(
    "plan graph: parts of buffers, scalars, what kernels write in place, libraries, and names that need escapes") {
  Manifest manifest;
  manifest.module = "a \"module\"";
  manifest.buffers = {temporary(64, std::nullopt), temporary(64, std::nullopt)};
  KernelSpec kernel;
  kernel.name = "k";
  kernel.hero = "rows";
  kernel.grid = {7, 1, 3};
  kernel.block = {32, 4, 1};
  kernel.parameters.resize(3);
  kernel.parameters[0].written = true; // its place is taken by the output
  kernel.parameters[2] = {KernelParameter::Role::Output, 0, "f32[4]{0}", 16, 16, true, 0};
  manifest.kernels = {kernel};
  manifest.steps = {{"x", LaunchStep{0, {BufferSlice{0, 16, 16}, ScalarValue{1, 8}, BufferSlice{0, 16, 16}}}},
                    {"y", CallStep{CallStep::Kind::Library, "gemm", "", {{0, 0, 64}}, {{1, 0, 64}}}},
                    {"z", UnsupportedStep{"a \"reason\"", {{1, 0, 64}}, {}}}};
  const std::string graph = planGraph(manifest);
  CHECK(graph.rfind("digraph \"a \\\"module\\\"\" {\n", 0) == 0);
  CHECK(says(graph, "s0 [label=\"x\\nkernel k\\nrows: 7x1x3 blocks of 32x4\", fillcolor=khaki];"));
  CHECK(count(graph, "b0 -> s0 [label=\"16 B at 16\"];") == 1);
  CHECK(count(graph, "s0 -> b0 [label=\"16 B at 16\"];") == 1);
  CHECK(says(graph, "s1 [label=\"y\\nlibrary: gemm\", fillcolor=salmon];"));
  CHECK(count(graph, "s2 [label=\"z\\nnot compiled: a \\\"reason\\\"\"") == 1);
  CHECK(says(graph, "s0 -> s1 [style=dotted, weight=10];"));
}

TEST_CASE("plan graph: a loop without condition steps goes back to its test") {
  Manifest manifest;
  manifest.module = "m";
  manifest.buffers = {temporary(1, std::nullopt)};
  manifest.steps = {{"w", WhileStep{{}, {0, 0, 1}, {{"f", FillStep{{0, 0, 1}, 0}}}}}};
  const std::string graph = planGraph(manifest);
  CHECK(says(graph, "s1 -> s0 [style=dotted, label=again, constraint=false];"));
  CHECK(says(graph, "b0 -> s0;"));
}
