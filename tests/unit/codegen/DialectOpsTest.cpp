// Ops of the dialect from MLIR to PTX, and that on the emulator: what the kernels compute is what the ops promise.

#include "unit/SystemToolchain.h"
#include "unit/codegen/CompileKernel.h"
#include "unit/emulator/Harness.h"

#include "fmt/format.h"

#include <complex>
#include <numeric>

using namespace hloc;
using Harness = emulator::testing::Harness;

namespace {

struct Sizes {
  unsigned threads = 64, blocks = 1;
};

/// A kernel `k` of one input and one output, both of rank 1; `body` has %in, %out and %thread and ends with a return of
/// a tensor of the output's type.
std::string kernelText(const std::string &input, const std::string &output, const std::string &body,
                       const std::string &functions = "", Sizes sizes = {}) {
  return fmt::format(R"(
func.func @k(%in: {0} {{llvm.align = 16 : i32, xla_gpu.slice_index = 0 : index, xla_gpu.invariant}},
             %out: {1} {{llvm.align = 16 : i32, xla_gpu.slice_index = 1 : index}}) -> {1}
    attributes {{xla_gpu.entry, xla_gpu.block = array<i32: {2}, 1, 1>, xla_gpu.grid = array<i32: {3}, 1, 1>}} {{
  %thread = gpu.thread_id x {{xla_gpu.range = [0 : index, {4} : index]}}
  {5}
}}
{6})",
                     input, output, sizes.threads, sizes.blocks, sizes.threads - 1, body, functions);
}

/// The output after one launch with all checks of the emulator.
template <typename Out, typename In>
std::vector<Out> runKernel(const std::string &text, const std::vector<In> &input, const std::vector<Out> &output,
                           Sizes sizes = {}, const char *target = "sm_90") {
  INFO(text);
  Toolchain toolchain = test::systemToolchain();
  std::string ptx = tests::compileKernel(text, *findTarget(target), toolchain);
  INFO(ptx);
  Harness harness;
  harness.block = {sizes.threads, 1, 1};
  harness.grid = {sizes.blocks, 1, 1};
  harness.load(ptx);
  harness.input("in", input);
  auto out = harness.input("out", output, /*written=*/true);
  harness.launch();
  INFO(harness.messages());
  REQUIRE(harness.silent());
  return harness.read<Out>(out);
}

template <typename T> std::vector<T> counting(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

/// A function of two values of `type`.
std::string combiner(const std::string &type, const std::string &op) {
  return fmt::format(
      "func.func private @combine(%a: {0}, %b: {0}) -> {0} {{\n  %r = {1} : {0}\n  return %r : {0}\n}}\n", type, op);
}

/// Every thread reduces its element with those of its group of 2 * distance lanes; the first of each group writes.
std::string reductionText(const std::string &type, const std::string &op, unsigned distance) {
  std::string body = fmt::format(R"(
  %x = tensor.extract %in[%thread] : tensor<64x{0}>
  %r = xla_gpu.shuffle_reduce(%x) to {1} combiner=@combine : {0}
  %size = arith.constant {2} : index
  %zero = arith.constant 0 : index
  %lane = arith.remui %thread, %size : index
  %group = arith.divui %thread, %size : index
  %first = arith.cmpi eq, %lane, %zero : index
  %new = xla_gpu.predicated_insert %r into %out[%group] if %first : tensor<{3}x{0}>
  return %new : tensor<{3}x{0}>)",
                                 type, distance, 2 * distance, 32 / distance);
  return kernelText(fmt::format("tensor<64x{}>", type), fmt::format("tensor<{}x{}>", 32 / distance, type), body,
                    combiner(type, op));
}

template <typename T>
void checkReduction(const char *type, const char *op, unsigned distance, const std::vector<T> &input,
                    llvm::function_ref<T(T, T)> combine) {
  unsigned groupSize = 2 * distance;
  std::vector<T> expected;
  for (unsigned group = 0; group < 64 / groupSize; ++group)
    expected.push_back(std::accumulate(input.begin() + group * groupSize + 1, input.begin() + (group + 1) * groupSize,
                                       input[group * groupSize], combine));
  CHECK(runKernel<T>(reductionText(type, op, distance), input, std::vector<T>(expected.size())) == expected);
}

} // namespace

TEST_CASE("shuffle_reduce gives the first lane of each group the reduction of all") {
  for (unsigned distance : {1u, 4u, 16u})
    checkReduction<float>("f32", "arith.addf %a, %b", distance, counting<float>(64),
                          [](float a, float b) { return a + b; });
  checkReduction<double>("f64", "arith.maximumf %a, %b", 16, counting<double>(64),
                         [](double a, double b) { return std::max(a, b); });
  std::vector<int64_t> wide(64);
  for (size_t i = 0; i < 64; ++i)
    wide[i] = int64_t(i * 0x123456789abcdefu);
  checkReduction<int64_t>("i64", "arith.xori %a, %b", 16, wide, [](int64_t a, int64_t b) { return a ^ b; });
  checkReduction<uint8_t>("i8", "arith.addi %a, %b", 8, counting<uint8_t>(64),
                          [](uint8_t a, uint8_t b) { return uint8_t(a + b); });
}

TEST_CASE("shuffle_reduce of complex numbers moves both parts") {
  std::vector<std::complex<float>> input(64);
  for (size_t i = 0; i < 64; ++i)
    input[i] = {float(i), -2.0f * float(i)};
  checkReduction<std::complex<float>>("complex<f32>", "complex.add %a, %b", 16, input,
                                      [](std::complex<float> a, std::complex<float> b) { return a + b; });
}

TEST_CASE("shuffle_reduce of pairs: the least value and the first place it is at") {
  std::vector<float> input(64);
  for (size_t i = 0; i < 64; ++i)
    input[i] = float((i * 29 + 7) % 16); // every value several times
  std::string text = kernelText("tensor<64xf32>", "tensor<2xi32>", R"(
  %x = tensor.extract %in[%thread] : tensor<64xf32>
  %place = arith.index_cast %thread : index to i32
  %r:2 = xla_gpu.shuffle_reduce(%x, %place) to 16 combiner=@least : f32, i32
  %size = arith.constant 32 : index
  %zero = arith.constant 0 : index
  %lane = arith.remui %thread, %size : index
  %warp = arith.divui %thread, %size : index
  %first = arith.cmpi eq, %lane, %zero : index
  %new = xla_gpu.predicated_insert %r#1 into %out[%warp] if %first : tensor<2xi32>
  return %new : tensor<2xi32>)",
                                R"(
func.func private @least(%a: f32, %i: i32, %b: f32, %j: i32) -> (f32, i32) {
  %less = arith.cmpf olt, %a, %b : f32
  %equal = arith.cmpf oeq, %a, %b : f32
  %before = arith.cmpi slt, %i, %j : i32
  %first = arith.andi %equal, %before : i1
  %left = arith.ori %less, %first : i1
  %v = arith.select %left, %a, %b : f32
  %at = arith.select %left, %i, %j : i32
  return %v, %at : f32, i32
}
)");
  auto placeOfLeast = [&](size_t begin) {
    return int32_t(std::min_element(input.begin() + begin, input.begin() + begin + 32) - input.begin());
  };
  CHECK(runKernel<int32_t>(text, input, {-1, -1}) == std::vector<int32_t>{placeOfLeast(0), placeOfLeast(32)});
}

namespace {

/// All threads of two blocks update element thread % 4 of the output with their element of the input.
template <typename T>
void checkAtomic(const char *type, const std::string &update, llvm::function_ref<T(T, T)> apply, const char *target) {
  std::string text = kernelText(fmt::format("tensor<64x{}>", type), fmt::format("tensor<4x{}>", type),
                                fmt::format(R"(
  %x = tensor.extract %in[%thread] : tensor<64x{0}>
  %count = arith.constant 4 : index
  %i = arith.remui %thread, %count : index
  %new = xla_gpu.atomic_rmw %out[%i] : tensor<4x{0}> {{
  ^bb0(%current: {0}):
    {1}
    xla_gpu.yield %next : {0}
  }}
  return %new : tensor<4x{0}>)",
                                            type, update),
                                "", {64, 2});
  std::vector<T> input = counting<T>(64), expected = {T(1), T(2), T(3), T(4)}, initial = expected;
  for (unsigned block = 0; block < 2; ++block)
    for (size_t i = 0; i < 64; ++i)
      expected[i % 4] = apply(expected[i % 4], input[i]);
  INFO(target);
  CHECK(runKernel<T>(text, input, initial, {64, 2}, target) == expected);
}

} // namespace

TEST_CASE("atomic_rmw loses no update, native or not") {
  for (const char *target : {"sm_70", "sm_90"}) {
    checkAtomic<float>("f32", "%next = arith.addf %current, %x : f32", [](float a, float b) { return a + b; }, target);
    checkAtomic<double>(
        "f64", "%next = arith.addf %current, %x : f64", [](double a, double b) { return a + b; }, target);
    checkAtomic<uint32_t>(
        "i32", "%next = arith.addi %current, %x : i32", [](uint32_t a, uint32_t b) { return a + b; }, target);
    checkAtomic<int64_t>(
        "i64", "%next = arith.maxsi %x, %current : i64", [](int64_t a, int64_t b) { return std::max(a, b); }, target);
    // Without an instruction: loops of compare-and-swap, of a word, and of a part of one.
    checkAtomic<float>(
        "f32", "%next = arith.maximumf %current, %x : f32", [](float a, float b) { return std::max(a, b); }, target);
    checkAtomic<uint32_t>(
        "i32",
        "%one = arith.constant 1 : i32\n%twice = arith.addi %x, %x : i32\n%odd = arith.addi %twice, %one : i32\n"
        "%next = arith.muli %current, %odd : i32",
        [](uint32_t a, uint32_t b) { return a * (2 * b + 1); }, target);
    checkAtomic<uint8_t>(
        "i8", "%next = arith.addi %current, %x : i8", [](uint8_t a, uint8_t b) { return uint8_t(a + b); }, target);
    checkAtomic<uint16_t>(
        "i16", "%next = arith.maxui %current, %x : i16", [](uint16_t a, uint16_t b) { return std::max(a, b); }, target);
  }
}

TEST_CASE("an atomic update of halfwords needs no whole words") {
  std::string text = kernelText("tensor<64xi16>", "tensor<3xi16>", R"(
  %x = tensor.extract %in[%thread] : tensor<64xi16>
  %count = arith.constant 3 : index
  %i = arith.remui %thread, %count : index
  %new = xla_gpu.atomic_rmw %out[%i] : tensor<3xi16> {
  ^bb0(%current: i16):
    %next = arith.maxui %current, %x : i16
    xla_gpu.yield %next : i16
  }
  return %new : tensor<3xi16>)");
  std::vector<uint16_t> expected = {64, 62, 63};
  CHECK(runKernel<uint16_t>(text, counting<uint16_t>(64), std::vector<uint16_t>(3)) == expected);
}

TEST_CASE("an atomic update of a part of a word stays inside the tensor") {
  // 6 bytes: words of 4 would reach behind them.
  std::string text = kernelText("tensor<64xi8>", "tensor<6xi8>", R"(
  %x = tensor.extract %in[%thread] : tensor<64xi8>
  %count = arith.constant 6 : index
  %i = arith.remui %thread, %count : index
  %new = xla_gpu.atomic_rmw %out[%i] : tensor<6xi8> {
  ^bb0(%current: i8):
    %next = arith.addi %current, %x : i8
    xla_gpu.yield %next : i8
  }
  return %new : tensor<6xi8>)");
  std::vector<uint8_t> input = counting<uint8_t>(64), expected(6);
  for (size_t i = 0; i < 64; ++i)
    expected[i % 6] = uint8_t(expected[i % 6] + input[i]);
  for (const char *target : {"sm_70", "sm_90"})
    CHECK(runKernel<uint8_t>(text, input, std::vector<uint8_t>(6), {}, target) == expected);
}

TEST_CASE("predicated accesses touch memory only where the condition holds") {
  // 64 threads, 50 elements to read and 40 to write: an access of any other thread would be out of bounds.
  std::string text = kernelText("tensor<50xi32>", "tensor<40xi32>", R"(
  %fifty = arith.constant 50 : index
  %forty = arith.constant 40 : index
  %minus = arith.constant -1 : i32
  %has = arith.cmpi ult, %thread, %fifty : index
  %x = xla_gpu.predicated_extract %in[%thread] if %has else %minus : tensor<50xi32>
  %last = arith.constant 63 : index
  %back = arith.subi %last, %thread : index
  %takes = arith.cmpi ult, %back, %forty : index
  %new = xla_gpu.predicated_insert %x into %out[%back] if %takes : tensor<40xi32>
  return %new : tensor<40xi32>)");
  std::vector<int32_t> expected(40);
  for (int32_t i = 0; i < 40; ++i)
    expected[i] = 63 - i < 50 ? 63 - i + 1 : -1;
  CHECK(runKernel<int32_t>(text, counting<int32_t>(50), std::vector<int32_t>(40, 7)) == expected);
}

TEST_CASE("a conditional part of a tensor that is not written keeps its values") {
  std::string text = kernelText("tensor<64xi32>", "tensor<64xi32>", R"(
  %x = tensor.extract %in[%thread] : tensor<64xi32>
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %rest = arith.remui %x, %three : i32
  %third = arith.cmpi eq, %rest, %zero : i32
  %new = xla_gpu.predicated_insert %x into %out[%thread] if %third : tensor<64xi32>
  return %new : tensor<64xi32>)");
  std::vector<int32_t> expected(64, -5);
  for (int32_t i = 2; i < 64; i += 3)
    expected[i] = i + 1;
  CHECK(runKernel<int32_t>(text, counting<int32_t>(64), std::vector<int32_t>(64, -5)) == expected);
}

TEST_CASE("sync_threads orders what threads of other warps wrote") {
  std::string text = kernelText("tensor<64xf32>", "tensor<64xf32>", R"(
  %x = tensor.extract %in[%thread] : tensor<64xf32>
  %shared = xla_gpu.allocate_shared : tensor<64xf32>
  %filled = tensor.insert %x into %shared[%thread] : tensor<64xf32>
  %sync = xla_gpu.sync_threads %filled : tensor<64xf32>
  %last = arith.constant 63 : index
  %back = arith.subi %last, %thread : index
  %y = tensor.extract %sync[%back] : tensor<64xf32>
  %new = tensor.insert %y into %out[%thread] : tensor<64xf32>
  return %new : tensor<64xf32>)");
  std::vector<float> input = counting<float>(64), expected(input.rbegin(), input.rend());
  CHECK(runKernel<float>(text, input, std::vector<float>(64)) == expected);
}

TEST_CASE("copy_async fills shared memory behind the thread's back, with zeros where the condition does not hold") {
  // Each of 64 threads copies `size` elements of which nothing exists from thread 48 on, waits for all but its second
  // group, and reads what another thread of another warp has copied.
  for (unsigned size : {1u, 2u, 4u}) {
    std::string text = kernelText(fmt::format("tensor<{}xf32>", 48 * size), fmt::format("tensor<{}xf32>", 64 * size),
                                  fmt::format(R"(
  %shared = xla_gpu.allocate_shared : tensor<{0}xf32>
  %other = xla_gpu.allocate_shared : tensor<{0}xf32>
  %limit = arith.constant 48 : index
  %has = arith.cmpi ult, %thread, %limit : index
  %from = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * {1}), domain: d0 in [0, 63]">(%thread)
  %a = xla_gpu.copy_async {1} of %in[%from] into %shared[%from] if %has : tensor<{2}xf32>, tensor<{0}xf32>
  %b = xla_gpu.commit_copies %a : tensor<{0}xf32>
  %second = xla_gpu.copy_async {1} of %in[%from] into %other[%from] if %has : tensor<{2}xf32>, tensor<{0}xf32>
  %both:2 = xla_gpu.commit_copies %b, %second : tensor<{0}xf32>, tensor<{0}xf32>
  %c:2 = xla_gpu.await_copies %both#0, %both#1 but 1 : tensor<{0}xf32>, tensor<{0}xf32>
  %d = xla_gpu.sync_threads %c#0 : tensor<{0}xf32>
  %new = xla_gpu.loop (%thread)[%i] -> (%back, %at) in
      #xla_gpu.indexing_map<"(d0)[s0] -> ({3} - d0 * {1} - s0, d0 * {1} + s0), domain: d0 in [0, 63], s0 in [0, {4}]">
      iter_args(%o = %out) -> (tensor<{0}xf32>) {{
    %x = tensor.extract %d[%back] : tensor<{0}xf32>
    %n = tensor.insert %x into %o[%at] : tensor<{0}xf32>
    xla_gpu.yield %n : tensor<{0}xf32>
  }}
  %e = xla_gpu.await_copies %c#1 but 0 : tensor<{0}xf32>
  return %new : tensor<{0}xf32>)",
                                              64 * size, size, 48 * size, 64 * size - 1, size - 1));
    std::vector<float> input = counting<float>(48 * size), expected(input);
    expected.resize(64 * size, 0);
    std::reverse(expected.begin(), expected.end());
    CHECK(runKernel<float>(text, input, std::vector<float>(64 * size, -1), {}, "sm_80") == expected);
  }
}
