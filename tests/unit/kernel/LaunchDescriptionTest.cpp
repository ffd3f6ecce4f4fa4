#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/DeviceProgram.h"
#include "hloc/support/Diagnostics.h"

#include "MemoryDevice.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

using namespace hloc;

namespace {
std::optional<LaunchDescription> parse(std::string text) {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("launch.json", std::move(text)));
  auto result = parseLaunchDescription(diagnostics);
  CHECK(bool(result) == !diagnostics.hasErrors());
  return result;
}

const std::string good =
    R"({"target": "sm_90", "buffers": [{"id": 7, "bytes": 64, "parameter": 0}, {"id": 9, "bytes": 32}],
  "steps": [{"copy": {"from": {"buffer": 7, "offset": 32, "bytes": 32}, "to": {"buffer": 9, "offset": 0, "bytes": 32}}},
            {"launch": {"kernel": "f", "grid": [2, 1, 1], "block": [16, 1, 1], "dynamic_shared_bytes": 8, "inputs": 1,
              "arguments": [{"buffer": 9, "offset": 0, "bytes": 32}, {"value": 5, "bytes": 4}]}}],
  "results": [{"index": [1], "buffer": 9, "offset": 0, "bytes": 32}]})";
} // namespace

TEST_CASE("launch description: all parts") {
  auto d = parse(good);
  REQUIRE(d);
  CHECK(d->buffers[0].parameter == 0);
  CHECK(std::get<CopyStep>(d->steps[0].action).from.offset == 32);
  const auto &launch = std::get<LaunchStep>(d->steps[1].action);
  CHECK(d->kernels[launch.kernel].grid.x == 2);
  CHECK(d->kernels[launch.kernel].inputs == 1);
  CHECK(std::get<BufferSlice>(launch.arguments[0]).buffer == 1);
  CHECK(std::get<ScalarValue>(launch.arguments[1]).value == 5);
  CHECK(d->results[0].index == std::vector<int64_t>{1});
}

TEST_CASE("launch description: launches that may begin early") {
  CHECK(!parse(good)->kernels[0].programmatic);
  std::string text = good;
  const std::string inputs = "\"inputs\": 1";
  text.replace(text.find(inputs), inputs.size(), inputs + ", \"programmatic\": true");
  auto d = parse(text);
  REQUIRE(d);
  CHECK(d->kernels[0].programmatic);
  text.replace(text.find("true"), 4, "1");
  CHECK(!parse(text));
}

TEST_CASE("launch description: clusters") {
  CHECK(!parse(good)->kernels[0].cluster);
  std::string text = good;
  const std::string grid = "\"grid\": [2, 1, 1]";
  text.replace(text.find(grid), grid.size(), grid + ", \"cluster\": [2, 1, 1]");
  auto d = parse(text);
  REQUIRE(d);
  CHECK(d->kernels[0].cluster == Dim3{2, 1, 1});
  text.replace(text.find("er\": [2"), 8, "er\": [0");
  CHECK(!parse(text));
}

namespace {
std::string withMap(const std::string &fields) {
  std::string text = good;
  const std::string value = R"({"value": 5, "bytes": 4})";
  return text.replace(text.find(value), value.size(),
                      R"({"tensor_map": {"buffer": 7, "offset": 0, "bytes": 64)" + fields + "}}");
}

std::string messageOf(const std::string &text, ExitCode exitCode = ExitCode::InvalidInput) {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("launch.json", text));
  CHECK_FALSE(parseLaunchDescription(diagnostics));
  REQUIRE(diagnostics.diagnostics().size() == 1);
  CHECK(diagnostics.exitCode() == exitCode);
  return diagnostics.diagnostics()[0].message;
}
} // namespace

TEST_CASE("launch description: tensor maps") {
  auto d = parse(withMap(R"(, "type": "bf16", "dims": [16, 2], "strides": [32], "box": [8, 2], "swizzle": "32B",
                            "element_strides": [1, 1], "interleave": "none", "fill": "nan", "l2": "128B")"));
  REQUIRE(d);
  const auto &map = std::get<TensorMapSlice>(std::get<LaunchStep>(d->steps[1].action).arguments[1]);
  CHECK(map.slice == BufferSlice{0, 0, 64});
  CHECK(map.recipe.type == TensorMapType::Bf16);
  CHECK(map.recipe.dims == std::vector<uint64_t>{16, 2});
  CHECK(map.recipe.strides == std::vector<uint64_t>{32});
  CHECK(map.recipe.box == std::vector<uint32_t>{8, 2});
  CHECK(map.recipe.swizzle == TensorMapSwizzle::Bytes32);
  CHECK(map.recipe.fill == TensorMapFill::Nan);
  CHECK(map.recipe.l2 == TensorMapL2::Bytes128);

  d = parse(withMap(R"(, "type": "f32", "dims": [4, 2, 2], "strides": [16, 32],
                        "im2col": {"lower": [-1], "upper": [-1], "channels": 4, "pixels": 2})"));
  REQUIRE(d);
  const auto &pixels = std::get<TensorMapSlice>(std::get<LaunchStep>(d->steps[1].action).arguments[1]);
  CHECK(pixels.recipe.im2col == TensorMapPixels{{-1}, {-1}, 4, 2});
}

TEST_CASE("launch description: tensor maps that are none") {
  const std::string place = "launch description: argument 1 of `f`, tensor map";
  CHECK(messageOf(withMap("")) ==
        place + ": only the memory is named; `type`, `dims`, `strides` and `box` say what the map is");
  CHECK(messageOf(withMap(R"(, "type": "bf17", "dims": [16])")) == place + ".type: unknown word `bf17`");
  CHECK(messageOf(withMap(R"(, "type": "bf16", "dims": [16], "boxes": [16])")) == place + ".boxes: unknown key");
  CHECK(messageOf(withMap(R"(, "type": "bf16", "dims": [16])")) ==
        place + ": the driver would refuse this map: its box has 0 dimensions, its tensor 1");
  CHECK(messageOf(withMap(R"(, "type": "16u4_align8b", "dims": [16], "box": [16])"), ExitCode::Unsupported) ==
        "launch description: tensor maps of elements of less than a byte are not supported");
  std::string elsewhere = withMap(R"(, "type": "bf16", "dims": [16], "box": [16])");
  elsewhere.replace(elsewhere.find(R"({"buffer": 7, "offset": 0)"), 12, R"({"buffer": 8)");
  CHECK(messageOf(elsewhere) == "launch description: there is no buffer 8");
}

TEST_CASE("launch description: bad ones are refused") {
  const std::pair<const char *, const char *> changes[] = {{"\"bytes\": 64", "\"bytes\": 60"},
                                                           {"\"id\": 9", "\"id\": 7"},
                                                           {"[16, 1, 1]", "[16, 0, 1]"},
                                                           {"[2, 1, 1]", "[2]"},
                                                           {"\"inputs\": 1", "\"inputs\": 3"},
                                                           {"\"bytes\": 4}", "\"bytes\": 3}"},
                                                           {"\"f\"", "0"},
                                                           {"\"copy\"", "\"move\""},
                                                           {"[1]", "[-1]"},
                                                           {"\"offset\": 32", "\"offset\": 9e99"},
                                                           {"{\"target\"", "\"target\""}};
  for (auto [from, to] : changes) {
    std::string text = good;
    text.replace(text.find(from), std::string(from).size(), to);
    INFO(text);
    CHECK(!parse(text));
  }
}

namespace {
/// A structure with two addresses; the second is that of a buffer that holds the address of the first.
const std::string withPieces =
    R"({"target": "sm_90a", "buffers": [{"id": 3, "bytes": 8, "contents": {"data": "0000000000000000",
                                         "pieces": [{"at": 0, "buffer": 7, "offset": 16, "bytes": 48, "written": true}]}},
                                        {"id": 7, "bytes": 64}, {"id": 8, "bytes": 4, "contents": {"data": "0a0B0c0d"}}],
  "steps": [{"fill": {"to": {"buffer": 7, "offset": 0, "bytes": 16}, "value": 255}},
            {"launch": {"kernel": "f", "grid": [2, 1, 1], "block": [16, 1, 1], "dynamic_shared_bytes": 8, "inputs": 0,
              "arguments": [{"data": "01020304050607080000000000000000090a0b0c0d0e0f10",
                             "pieces": [{"at": 16, "buffer": 3, "offset": 0, "bytes": 8},
                                        {"at": 8, "buffer": 8, "offset": 0, "bytes": 4}]}]}}],
  "results": [{"index": [], "buffer": 7, "offset": 0, "bytes": 64}]})";
} // namespace

TEST_CASE("launch description: structures hold addresses, and so does memory") {
  auto d = parse(withPieces);
  REQUIRE(d);
  REQUIRE(d->buffers[0].contents);
  CHECK(d->buffers[0].contents->pieces[0].slice == BufferSlice{1, 16, 48});
  CHECK(d->buffers[0].contents->pieces[0].written);
  CHECK(d->buffers[2].contents->data == "\x0a\x0b\x0c\x0d");
  CHECK(std::get<FillStep>(d->steps[0].action).value == 255);
  const auto &structure = std::get<StructureValue>(std::get<LaunchStep>(d->steps[1].action).arguments[0]);
  CHECK(structure.data.size() == 24);
  CHECK(structure.data[16] == 9);
  REQUIRE(structure.pieces.size() == 2);
  CHECK(structure.pieces[0].at == 8);
  CHECK(structure.pieces[1].slice == BufferSlice{0, 0, 8});
  CHECK(!structure.pieces[1].written);
}

TEST_CASE("launch description: kernels reach what the contents of their buffers name") {
  auto d = parse(withPieces);
  REQUIRE(d);
  std::string error;
  auto program =
      deviceProgram(*d, {{}, {false}}, [](uint32_t, llvm::ArrayRef<uint32_t>) { return std::nullopt; }, {{}}, error);
  INFO(error);
  REQUIRE(program);
  const auto &launch = std::get<LaunchStep>(program->steps[1].action);
  REQUIRE(launch.reached.size() == 1);
  CHECK(launch.reached[0].slice == BufferSlice{1, 16, 48});
  std::vector<BufferSlice> written;
  forEachWritten(program->kernels[0], launch, [&](const BufferSlice &slice) { written.push_back(slice); });
  CHECK(written == std::vector<BufferSlice>{{1, 16, 48}});
  CHECK(program->kernels[0].bytesWritten == 48);
  CHECK(program->kernels[0].bytesRead == 12);
  CHECK(program->buffers[0].contents == DeviceBuffer::Contents::Constant);
  CHECK(program->buffers[1].contents == DeviceBuffer::Contents::Unwritten);

  test::MemoryDevice device;
  for (const DeviceBuffer &buffer : program->buffers)
    REQUIRE(device.allocate(buffer, error));
  std::string bytes = program->buffers[0].constant;
  REQUIRE(fillAddresses(device, program->buffers[0].pieces, bytes, error));
  uint64_t address = 0;
  std::memcpy(&address, bytes.data(), sizeof address);
  CHECK(address == reinterpret_cast<uintptr_t>(device.buffers[1].data() + 16));
}

TEST_CASE("launch description: structures hold tensor maps, memory does not") {
  const std::string map = R"("tensor_map": {"buffer": 8, "offset": 0, "bytes": 4, "type": "u8", "dims": [4],
                             "strides": [], "box": [16], "fill": "zero"}, "written": true)";
  auto with = [&](size_t bytes, const std::string &at) {
    return llvm::formatv(R"({{"target": "sm_90a", "buffers": [{{"id": 8, "bytes": 4}],
      "steps": [{{"launch": {{"kernel": "f", "grid": [1, 1, 1], "block": [1, 1, 1], "dynamic_shared_bytes": 0, "inputs": 0,
        "arguments": [{{"data": "{0}", "pieces": [{{"at": {1}, {2}}, {{"at": 0, "buffer": 8, "offset": 0, "bytes": 4}]}]}}],
      "results": []})",
                         std::string(2 * bytes, '0'), at, map)
        .str();
  };
  auto d = parse(with(192, "64"));
  REQUIRE(d);
  const auto &pieces = std::get<StructureValue>(std::get<LaunchStep>(d->steps[0].action).arguments[0]).pieces;
  REQUIRE(pieces.size() == 2);
  CHECK(!pieces[0].map);
  REQUIRE(pieces[1].map);
  CHECK(pieces[1].at == 64);
  CHECK(pieces[1].map->box == std::vector<uint32_t>{16});
  CHECK(pieces[1].slice == BufferSlice{0, 0, 4});
  CHECK(pieces[1].written);
  CHECK(!parse(with(191, "64"))); // reaches beyond the structure
  CHECK(!parse(with(192, "7")));  // overlaps the address

  std::string inMemory = withPieces;
  const std::string address = R"("buffer": 7, "offset": 16, "bytes": 48, "written": true)";
  REQUIRE(inMemory.find(address) != std::string::npos);
  inMemory.replace(inMemory.find(address), address.size(), map);
  CHECK(!parse(inMemory));
}

TEST_CASE("launch description: bad structures, contents and fills are refused") {
  const std::pair<const char *, const char *> changes[] = {
      {"\"at\": 8", "\"at\": 9"},   // overlaps the piece at 16
      {"\"at\": 16", "\"at\": 17"}, // reaches beyond the structure
      {"\"at\": 8", "\"at\": -1"},
      {"\"at\": 8, ", ""},
      {"\"0a0B0c0d\"", "\"0a0B0c0\""}, // half a byte
      {"\"0a0B0c0d\"", "\"0a0B0c\""},  // not all of the buffer
      {"\"0a0B0c0d\"", "\"0a0B0c0g\""},
      {"\"0a0B0c0d\"", "7"},
      {"\"bytes\": 4, \"contents\"", "\"bytes\": 4, \"parameter\": 0, \"contents\""},
      {"{\"data\": \"0a0B0c0d\"}", "[]"},
      {"\"written\": true", "\"written\": 1"},
      {"\"buffer\": 8", "\"buffer\": 9"},
      {"\"bytes\": 48", "\"bytes\": 49"},
      {"\"at\": 8, ", "\"at\": 8, \"tensor_map\": {}, "},
      {"\"value\": 255", "\"value\": 256"},
      {"\"fill\": {\"to\"", "\"fill\": {\"from\""},
      {"\"pieces\": [{\"at\": 16", "\"pieces\": [7, {\"at\": 16"}};
  for (auto [from, to] : changes) {
    std::string text = withPieces;
    size_t at = text.find(from);
    INFO(from << " -> " << to);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(from).size(), to);
    CHECK(!parse(text));
  }
}

TEST_CASE("launch description: words reach beyond the end of arrays of sub-byte elements, and of no others") {
  auto d = parse(R"({"target": "sm_90",
  "buffers": [{"id": 0, "bytes": 251, "parameter": 0}, {"id": 1, "bytes": 1001}, {"id": 2, "bytes": 5}, {"id": 3, "bytes": 9}],
  "steps": [{"launch": {"kernel": "f", "grid": [1, 1, 1], "block": [32, 1, 1], "dynamic_shared_bytes": 0, "inputs": 1,
              "arguments": [{"buffer": 0, "offset": 0, "bytes": 251}, {"buffer": 1, "offset": 0, "bytes": 1001},
                            {"buffer": 2, "offset": 0, "bytes": 5}, {"buffer": 3, "offset": 0, "bytes": 9}]}}],
  "results": [{"index": [0], "buffer": 1, "offset": 0, "bytes": 1001}, {"index": [1], "buffer": 2, "offset": 0, "bytes": 5}]})");
  REQUIRE(d);
  auto sizes = [&](bool input, bool first, bool second) {
    std::string error;
    std::optional<DeviceProgram> program = deviceProgram(
        *d, {{input}, {first, second}}, [](uint32_t, llvm::ArrayRef<uint32_t>) { return 0; }, {{0}, {1}}, error);
    REQUIRE(program);
    std::vector<uint64_t> bytes;
    for (const DeviceBuffer &buffer : program->buffers)
      bytes.push_back(buffer.bytes);
    const auto &launch = std::get<LaunchStep>(program->steps[0].action);
    for (size_t i = 0; i < 4; ++i)
      CHECK(std::get<BufferSlice>(launch.arguments[i]).bytes == bytes[i]);
    return bytes;
  };
  using Sizes = std::vector<uint64_t>;
  CHECK(sizes(false, false, false) == Sizes{251, 1001, 5, 9});
  CHECK(sizes(true, false, false) == Sizes{252, 1001, 5, 12}); // of the last buffer nobody knows the type
  CHECK(sizes(false, true, false) == Sizes{251, 1004, 5, 12});
  CHECK(sizes(false, false, true) == Sizes{251, 1001, 8, 12});
}

TEST_CASE("launch description: the corpus parses") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  std::error_code ec;
  size_t files = 0;
  for (const char *folder : {"/xla-ptx", "/triton-ptx"})
    for (llvm::sys::fs::recursive_directory_iterator it(std::string(corpus) + folder, ec), end; it != end && !ec;
         it.increment(ec))
      if (llvm::StringRef(it->path()).ends_with(".json")) {
        INFO(it->path());
        CHECK(parse((*llvm::MemoryBuffer::getFile(it->path()))->getBuffer().str()));
        ++files;
      }
  CHECK(files > 0);
}
