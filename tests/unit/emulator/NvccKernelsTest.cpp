// Kernels that nvcc compiled (tests/emulator) give the right results, with all checks on and nothing found.
#include "emulator/Floats.h"
#include "hloc/emulator/Emulator.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

using namespace hloc;
using namespace hloc::emulator;

namespace {

std::string textOf(const std::string &name) {
  auto text = llvm::MemoryBuffer::getFile(std::string(HLOC_SOURCE_DIR) + "/tests/emulator/" + name + ".ptx");
  REQUIRE(text);
  return (*text)->getBuffer().str();
}

/// One program with its buffers.
class Machine {
public:
  explicit Machine(std::string text) {
    diagnostics.setFile(std::make_shared<SourceFile>("kernel.ptx", std::move(text)));
    EmulatorOptions options;
    options.countEvents = true;
    emulator = Emulator::load(diagnostics, options);
    INFO(messages());
    REQUIRE(emulator);
  }

  template <typename T> BufferArgument input(const std::vector<T> &data) {
    BufferId id = emulator->allocate("input", data.size() * sizeof(T), Emulator::Contents::Written);
    std::memcpy(emulator->bytes(id).data(), data.data(), data.size() * sizeof(T));
    return {id, 0, data.size() * sizeof(T), false};
  }
  BufferArgument output(uint64_t bytes, Emulator::Contents contents = Emulator::Contents::Unwritten) {
    BufferId id = emulator->allocate("output", bytes, contents);
    if (contents == Emulator::Contents::Written)
      std::memset(emulator->bytes(id).data(), 0, bytes);
    return {id, 0, bytes, true};
  }
  template <typename T> std::vector<T> contents(const BufferArgument &argument) {
    std::vector<T> data(argument.bytes / sizeof(T));
    std::memcpy(data.data(), emulator->bytes(argument.buffer).data(), argument.bytes);
    return data;
  }
  bool run(LaunchRequest request) { return succeeded(emulator->launch(request, diagnostics)); }
  void requireRun(LaunchRequest request) {
    const bool good = run(std::move(request));
    INFO(messages());
    REQUIRE(good);
    CHECK(emulator->findings().empty());
  }
  bool found(FindingKind kind) const {
    for (const Finding &finding : emulator->findings())
      if (finding.kind == kind)
        return true;
    return false;
  }
  std::string messages() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    diagnostics.print(os, false);
    if (emulator)
      for (const Finding &finding : emulator->findings())
        os << findingName(finding.kind).str() << " at line " << finding.line << ": " << finding.message << '\n';
    return text;
  }

private:
  DiagnosticEngine diagnostics;
  std::unique_ptr<Emulator> emulator;
};

ScalarArgument scalar(uint32_t value) { return {value, 4}; }

std::vector<float> someFloats(size_t count) {
  std::vector<float> data(count);
  for (size_t i = 0; i < count; ++i)
    data[i] = float(int(i * 37 % 101) - 50) * 0.25f;
  return data;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("nvcc: vector add") {
  Machine machine(textOf("vector_add"));
  const std::vector<float> a = someFloats(1000), b = someFloats(1001);
  auto out = machine.output(4000);
  machine.requireRun(
      {"vector_add", {8, 1, 1}, {128, 1, 1}, 0, {machine.input(a), machine.input(b), out, scalar(1000)}});
  const auto result = machine.contents<float>(out);
  for (size_t i = 0; i < 1000; ++i)
    REQUIRE(result[i] == a[i] + b[i]);
}

TEST_CASE("nvcc: tiled transpose") {
  constexpr unsigned rows = 70, columns = 100;
  Machine machine(textOf("transpose"));
  const std::vector<float> in = someFloats(rows * columns);
  auto out = machine.output(rows * columns * 4);
  machine.requireRun({"transpose", {4, 3, 1}, {32, 8, 1}, 0, {machine.input(in), out, scalar(rows), scalar(columns)}});
  const auto result = machine.contents<float>(out);
  for (unsigned y = 0; y < rows; ++y)
    for (unsigned x = 0; x < columns; ++x)
      REQUIRE(result[x * rows + y] == in[y * columns + x]);
}

TEST_CASE("nvcc: warp reduction") {
  constexpr unsigned rows = 5, columns = 1000;
  Machine machine(textOf("warp_reduction"));
  const std::vector<float> in = someFloats(rows * columns); // quarters: every sum is exact
  auto out = machine.output(rows * 4);
  machine.requireRun({"row_sum", {rows, 1, 1}, {256, 1, 1}, 0, {machine.input(in), out, scalar(columns)}});
  const auto result = machine.contents<float>(out);
  for (unsigned y = 0; y < rows; ++y) {
    float sum = 0;
    for (unsigned x = 0; x < columns; ++x)
      sum += in[y * columns + x];
    CHECK(result[y] == sum);
  }
}

TEST_CASE("nvcc: block scan") {
  Machine machine(textOf("block_scan"));
  std::vector<int> in(1024);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = int(i * 7919 % 1000) - 500;
  auto out = machine.output(4096);
  machine.requireRun({"block_scan", {4, 1, 1}, {256, 1, 1}, 1024, {machine.input(in), out}});
  const auto result = machine.contents<int>(out);
  for (size_t i = 0, sum = 0; i < in.size(); ++i) {
    sum = i % 256 ? sum + size_t(in[i]) : size_t(in[i]);
    REQUIRE(result[i] == int(sum));
  }
}

TEST_CASE("nvcc: histogram") {
  Machine machine(textOf("histogram"));
  std::vector<uint8_t> in(5000);
  std::vector<uint32_t> expected(64);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = uint8_t(i * i % 251);
    ++expected[in[i] & 63];
  }
  auto bins = machine.output(256, Emulator::Contents::Written);
  machine.requireRun({"histogram", {3, 1, 1}, {128, 1, 1}, 0, {machine.input(in), bins, scalar(5000)}});
  CHECK(machine.contents<uint32_t>(bins) == expected);
}

TEST_CASE("nvcc: f16x2 math") {
  Machine machine(textOf("half_math"));
  std::vector<uint16_t> a(512), b(512), c(512);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = uint16_t(encode(double(int(i % 77) - 38) / 7, half, Rounding::Nearest));
    b[i] = uint16_t(encode(double(int(i % 53) - 26) / 3, half, Rounding::Nearest));
    c[i] = uint16_t(encode(double(i) / 11, half, Rounding::Nearest));
  }
  auto out = machine.output(1024);
  machine.requireRun({"half_math",
                      {2, 1, 1},
                      {128, 1, 1},
                      0,
                      {machine.input(a), machine.input(b), machine.input(c), out, scalar(256)}});
  const auto result = machine.contents<uint16_t>(out);
  for (size_t i = 0; i < a.size(); ++i) {
    const double fma = decode(
        encode(fmaToOdd(decode(a[i], half), decode(b[i], half), decode(c[i], half)), half, Rounding::Nearest), half);
    REQUIRE(decode(result[i], half) == std::max(fma, -decode(a[i], half)));
  }
}

namespace {

constexpr unsigned matmulM = 64, matmulN = 96, matmulK = 128;

struct MatmulRun {
  std::vector<uint16_t> a = std::vector<uint16_t>(matmulM * matmulK), b = std::vector<uint16_t>(matmulK * matmulN);
  BufferArgument out;

  MatmulRun() {
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = uint16_t(encode(double(int(i * 29 % 17) - 8) / 4, half, Rounding::Nearest));
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = uint16_t(encode(double(int(i * 31 % 23) - 11) / 8, half, Rounding::Nearest));
  }
  LaunchRequest on(Machine &machine) {
    out = machine.output(matmulM * matmulN * 4);
    return {"matmul_mma",
            {matmulN / 32, matmulM / 32, 1},
            {128, 1, 1},
            0,
            {machine.input(a), machine.input(b), out, scalar(matmulN), scalar(matmulK)}};
  }
};

} // namespace

TEST_CASE("nvcc: tiled matmul with mma, ldmatrix and cp.async") {
  Machine machine(textOf("matmul_mma"));
  MatmulRun run;
  machine.requireRun(run.on(machine));
  const auto result = machine.contents<float>(run.out);
  for (unsigned y = 0; y < matmulM; ++y)
    for (unsigned x = 0; x < matmulN; ++x) {
      double sum = 0; // multiples of 1/32 below 2^19: exact
      for (unsigned k = 0; k < matmulK; ++k)
        sum += decode(run.a[y * matmulK + k], half) * decode(run.b[k * matmulN + x], half);
      REQUIRE(result[y * matmulN + x] == sum);
    }
}

TEST_CASE("nvcc: a copy that nobody waits for is found") {
  Machine machine(replaced(textOf("matmul_mma"), "cp.async.wait_group 1;", ""));
  MatmulRun run;
  CHECK(!machine.run(run.on(machine)));
  CHECK(machine.found(FindingKind::UninitializedRead));
}

namespace {

#pragma pack(push, 8)
struct Options {
  int32_t scale = 17;
  int16_t offsets[5] = {5, -4, 3, -2, 1};
  double factor = 2.75;
};
#pragma pack(pop)

int64_t remix(int64_t x, int rounds) {
  constexpr int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  for (int i = 0; i < rounds; ++i)
    x = x / 3 + (x % 7) * table[i & 7];
  return x;
}

int64_t branchesOf(int v, const Options &options) {
  switch (v % 9) {
  case 0:
    return v * 3ll;
  case 1:
    return v - options.scale;
  case 2:
    return llvm::popcount(uint32_t(v)) + 100;
  case 3:
    return remix(v, 4);
  case 4:
    return options.offsets[v % 5];
  case 5:
    return int64_t(v * options.factor);
  case 6:
    return llvm::countl_zero(uint32_t(v)) * 1000;
  case 7:
    return remix(remix(v, 2), 3);
  default:
    return -1;
  }
}

} // namespace

TEST_CASE("nvcc: switches, calls, structures, tables, assertions") {
  Machine machine(textOf("branches"));
  std::vector<int> in(100);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = int(i * 7919 % 100003);
  const Options options;
  auto out = machine.output(8 * in.size());
  LaunchRequest request{"branches", {1, 1, 1}, {128, 1, 1}, 0, {machine.input(in), out}};
  request.arguments.push_back(BytesArgument{
      {reinterpret_cast<const uint8_t *>(&options), reinterpret_cast<const uint8_t *>(&options) + sizeof(options)}});
  request.arguments.push_back(scalar(uint32_t(in.size())));
  machine.requireRun(request);
  const auto result = machine.contents<int64_t>(out);
  for (size_t i = 0; i < in.size(); ++i) {
    int votes = 0;
    for (size_t k = i / 32 * 32; k < std::min<size_t>(in.size(), i / 32 * 32 + 32); ++k)
      votes += in[k] % 2;
    REQUIRE(result[i] == branchesOf(in[i], options) + ((int(unsigned(in[i]) % 6) * in[i]) & 255) + votes);
  }
}
