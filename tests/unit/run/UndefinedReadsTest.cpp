// Slices of one arena as buffers of their own.
#include "run/UndefinedReads.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("undefined reads: slices that do not overlap get buffers of their own") {
  DeviceProgram program;
  program.buffers = {{"p0", 4096, DeviceBuffer::Contents::Input, 0, ""},
                     {"buffer 1", 4096, DeviceBuffer::Contents::Unwritten, 0, ""}};
  // The first two only touch; the third overlaps the second.
  LaunchStep first{0, {BufferSlice{0, 128, 64}, BufferSlice{1, 0, 1024}, BufferSlice{1, 1024, 1024}}};
  LaunchStep second{1, {BufferSlice{1, 1040, 16}, ScalarValue{7, 4}}};
  program.steps = {{"", first}, {"", CopyStep{{1, 0, 512}, {1, 2064, 512}}}, {"", second}};
  program.results = {{1, 1024, 1024}, {1, 2064, 512}};
  separateSlices(program);

  REQUIRE(program.buffers.size() == 4);
  CHECK(program.buffers[0].bytes == 4096);
  CHECK(program.buffers[1].bytes == 1024);
  CHECK(program.buffers[2].bytes == 1024);
  CHECK(program.buffers[3].bytes == 528); // begins at the multiple of 256 below: alignment stays as it was
  CHECK(program.buffers[2].name == "buffer 1[1024, 2048)");
  auto sliceOf = [&](size_t step, size_t argument) {
    return std::get<BufferSlice>(std::get<LaunchStep>(program.steps[step].action).arguments[argument]);
  };
  auto is = [](const BufferSlice &slice, uint32_t buffer, uint64_t offset, uint64_t bytes) {
    return slice.buffer == buffer && slice.offset == offset && slice.bytes == bytes;
  };
  CHECK(is(sliceOf(0, 0), 0, 128, 64)); // what arguments fill stays whole
  CHECK(is(sliceOf(0, 1), 1, 0, 1024));
  CHECK(is(sliceOf(0, 2), 2, 0, 1024));
  CHECK(is(sliceOf(2, 0), 2, 16, 16));
  const auto &copy = std::get<CopyStep>(program.steps[1].action);
  CHECK(is(copy.from, 1, 0, 512));
  CHECK(is(copy.to, 3, 16, 512));
  CHECK(is(program.results[0], 2, 0, 1024));
  CHECK(is(program.results[1], 3, 16, 512));
}

TEST_CASE("undefined reads: fillings decide what depends on them") {
  const Literal result(Shape::array(ElementType::S32, {2}));
  Literal other = result;
  other.mutableBytes()[0] = 1;
  emulator::EmulatorOptions options;
  unsigned runs = 0;
  auto same = [&](const emulator::EmulatorOptions &with) -> llvm::FailureOr<Literal> {
    ++runs;
    CHECK(with.undefinedByte);
    return result;
  };
  CHECK(!dependsOnUndefined(options, result, 1 << 30, /*ofUpdates=*/false, same));
  CHECK(runs == 7);
  CHECK(!dependsOnUndefined(options, result, 8, /*ofUpdates=*/false, same)); // eight fillings of small numbers more
  CHECK(runs == 7 + 7 + 8);
  // One that compares undefined values with each other: they differ only where fillings differ from place to place.
  auto compares = [&](const emulator::EmulatorOptions &with) -> llvm::FailureOr<Literal> {
    return with.undefinedSeed ? other : result;
  };
  CHECK(dependsOnUndefined(options, result, 8, /*ofUpdates=*/false, compares));
  auto fails = [&](const emulator::EmulatorOptions &) -> llvm::FailureOr<Literal> { return llvm::failure(); };
  CHECK(dependsOnUndefined(options, result, 8, /*ofUpdates=*/false, fails));
}
