#include "hloc/kernel/Manifest.h"
#include "hloc/kernel/DeviceProgram.h"
#include "hloc/kernel/LibraryCall.h"

#include "unit/kernel/Schema.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// A parameter, a result, a temporary and a constant; a launch, and one of each other kind of step.
Manifest sample() {
  Manifest manifest;
  manifest.module = "jit_\"gelu\"\n";
  manifest.target = "sm_90";
  manifest.ptxVersion = "8.0";
  manifest.toolVersions = {{"hloc", "0.1.0"}, {"ptxas", "13.0.88"}, {"llvm", "22.1.8"}};
  KernelSpec kernel;
  kernel.name = "gelu";
  kernel.instruction = "fusion.7";
  kernel.line = 12;
  kernel.opName = "jit(f)/jit(main)/mul";
  kernel.grid = {12288, 2, 1};
  kernel.block = {128, 1, 1};
  kernel.staticSharedBytes = 4224;
  kernel.dynamicSharedBytes = 16;
  kernel.hero = "loop";
  kernel.plan = "loop: roots 0, 16 elements, 1 per thread; grid 12288x2, block 128";
  kernel.rejections = {{"transpose", "nothing is transposed"}, {"reduction", "nothing is reduced"}};
  kernel.remarks = {{"recomputation", "reduce.1", 256, "`reduce.1` is computed 256 times for each of its 64 elements"}};
  kernel.bytesRead = 1ull << 40;
  kernel.bytesWritten = 64;
  kernel.parameters.push_back({KernelParameter::Role::Input, 0, "f32[16]{0}", 64, 16, false, std::nullopt});
  kernel.parameters.push_back({KernelParameter::Role::Output, 0, "f32[16]{0}", 64, 128, true, 0});
  kernel.resources = KernelResources{28, 4, 8, 12, 4224, 1};
  manifest.kernels = {kernel};
  manifest.buffers = {{ModuleBuffer::Kind::Parameter, 128, "f32[32]{0}", 1, {0, 3}, ""},
                      {ModuleBuffer::Kind::Result, 64, "f32[16]{0}", 0, {1}, ""},
                      {ModuleBuffer::Kind::Temporary, 1ull << 33, "", 0, {}, ""},
                      {ModuleBuffer::Kind::Constant, 3, "u8[3]{0}", 0, {}, std::string("\0\xff\x7f", 3)}};
  const BufferSlice temporary{2, 1ull << 32, 64}, predicate{2, 0, 1}, selector{2, 4, 4};
  LaunchStep launch{0, {BufferSlice{0, 64, 64}, temporary}};
  CopyStep copy{temporary, {1, 0, 64}};
  Steps inner = {{"fusion.1", launch}};
  manifest.steps = {
      {"fusion", launch},
      {"", copy},
      {"broadcast", FillStep{{2, 64, 64}, 255}},
      {"while", WhileStep{inner, predicate, {{"body", copy}}}},
      {"conditional", ConditionalStep{selector, {inner, {}, {{"deep", WhileStep{inner, predicate, {}}}}}}},
      {"dot", CallStep{CallStep::Kind::Library,
                       "cublasLtMatmul",
                       MatmulCall().configuration(),
                       {{0, 0, 4}, {0, 4, 4}},
                       {{2, 8, 4}, {2, 512, 256}}}},
      {"all-reduce", CallStep{CallStep::Kind::External, "all-reduce", "", {{0, 0, 4}}, {}}},
      {"counted", WhileStep{{}, {}, inner, 12}},
      {"sort.3", UnsupportedStep{"opcode `sort`", {{0, 0, 4}}, {{1, 0, 64}}}}};
  manifest.results = {{{1}, {1, 0, 64}, "f32[16]{0}"}};
  return manifest;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string errorOf(const std::string &text) {
  Manifest manifest;
  std::string error;
  bool fine = parseManifest(text, manifest, error);
  CHECK(fine == error.empty());
  return error;
}

/// Where and why a manifest is not of the published schema; empty if it is.
std::string schemaViolation(const std::string &manifest) {
  auto file = llvm::MemoryBuffer::getFile(std::string(HLOC_SOURCE_DIR) + "/src/kernel/manifest.schema.json");
  REQUIRE(file);
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*file)->getBuffer());
  REQUIRE(bool(json));
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(manifest);
  REQUIRE(bool(value));
  return test::Schema(*json).violation(*value);
}

bool contains(const std::string &text, const char *part) { return llvm::StringRef(text).contains(part); }

} // namespace

TEST_CASE("a manifest survives printing and parsing") {
  std::string text = printManifest(sample());
  Manifest read;
  std::string error;
  REQUIRE(parseManifest(text, read, error));
  CHECK(printManifest(read) == text);
  CHECK(read.module == sample().module);
  CHECK(read.toolVersions == sample().toolVersions);
  CHECK(read.kernels[0].grid == Dim3{12288, 2, 1});
  CHECK(read.kernels[0].bytesRead == 1ull << 40);
  CHECK(read.kernels[0].parameters[1].alias == 0u);
  CHECK(read.kernels[0].parameters[1].written);
  CHECK_FALSE(read.kernels[0].parameters[0].alias.has_value());
  CHECK(read.kernels[0].resources->spillLoadBytes == 8);
  CHECK(read.buffers[0].parameterNumber == 1);
  CHECK(read.buffers[0].leafIndex == std::vector<uint32_t>{0, 3});
  CHECK(read.buffers[3].constantData == std::string("\0\xff\x7f", 3));
  CHECK(read.kernels[0].plan == sample().kernels[0].plan);
  CHECK(read.kernels[0].rejections == sample().kernels[0].rejections);
  CHECK(read.kernels[0].remarks == sample().kernels[0].remarks);
  REQUIRE(read.steps.size() == 9);
  CHECK(std::get<BufferSlice>(std::get<LaunchStep>(read.steps[0].action).arguments[1]).offset == 1ull << 32);
  CHECK(std::get<CopyStep>(read.steps[1].action).to == BufferSlice{1, 0, 64});
  CHECK(std::get<FillStep>(read.steps[2].action).value == 255);
  CHECK(std::get<WhileStep>(read.steps[3].action).body[0].name == "body");
  CHECK(std::get<ConditionalStep>(read.steps[4].action).branches[2][0].name == "deep");
  CHECK(std::get<CallStep>(read.steps[5].action).kind == CallStep::Kind::Library);
  CHECK(std::get<CallStep>(read.steps[6].action).function == "all-reduce");
  CHECK(std::get<WhileStep>(read.steps[7].action).rounds == 12u);
  CHECK(std::get<WhileStep>(read.steps[7].action).isCounted());
  CHECK(std::get<UnsupportedStep>(read.steps[8].action).reason == "opcode `sort`");
  CHECK(std::get<UnsupportedStep>(read.steps[8].action).writes[0].bytes == 64);
  CHECK(read.results[0].slice.buffer == 1);
}

TEST_CASE("the printed form is stable and readable") {
  std::string text = printManifest(sample());
  CHECK(contains(text, "\n      \"grid\": [12288, 2, 1],\n"));
  CHECK(contains(text, "\"data\": \"00ff7f\""));
  CHECK(text.back() == '\n');
  CHECK(text.find("\"version\": 2") < text.find("\"module\""));
  CHECK(text.find("\"kernels\"") < text.find("\"buffers\""));
}

TEST_CASE("malformed manifests are refused with the place") {
  std::string text = printManifest(sample());
  CHECK(contains(errorOf(""), "not JSON"));
  CHECK(contains(errorOf(text.substr(0, text.size() / 2)), "not JSON"));
  CHECK(contains(errorOf(std::string(100000, '[')), "deep"));
  CHECK(contains(errorOf("[]"), "expected an object"));
  CHECK(contains(errorOf("{}"), "`version` is missing"));
  CHECK(contains(errorOf(replaced(text, "\"version\": 2", "\"version\": 3")), "version 3 is not understood"));
  CHECK(contains(errorOf(replaced(text, "[12288, 2, 1]", "[12288, 2]")), "kernels[0].grid: expected three"));
  CHECK(contains(errorOf(replaced(text, "[12288, 2, 1]", "[0, 2, 1]")), "kernels[0].grid"));
  CHECK(contains(errorOf(replaced(text, "[12288, 2, 1]", "[-1, 2, 1]")), "kernels[0].grid[0]"));
  CHECK(contains(errorOf(replaced(text, "[12288, 2, 1]", "[4294967296, 2, 1]")), "too large"));
  CHECK(contains(errorOf(replaced(text, "\"hero\"", "\"herring\"")), "kernels[0].herring: unknown key"));
  CHECK(contains(errorOf(replaced(text, "\"launch\"", "\"lunch\"")), "steps[0].kind: unknown word `lunch`"));
  CHECK(contains(errorOf(replaced(text, "\"predicate\"", "\"predicament\"")), "steps[3]: `predicate` is missing"));
  CHECK(contains(errorOf(replaced(text, "\"value\": 255", "\"value\": 256")), "steps[2].value: expected a byte"));
  CHECK_FALSE(errorOf(replaced(text, "00ff7f", "00ff")).empty());
  CHECK(contains(errorOf(replaced(text, "00ff7f", "00ffzz")), "buffers[3].data: expected pairs"));
  CHECK(contains(errorOf(replaced(text, "\"name\": \"gelu\"", "\"name\": 7")), "kernels[0].name: expected a string"));
}

namespace {

TensorMapRecipe tiles() {
  TensorMapRecipe recipe;
  recipe.type = TensorMapType::Bf16;
  recipe.dims = {16, 2};
  recipe.strides = {32};
  recipe.box = {8, 2};
  recipe.swizzle = TensorMapSwizzle::Bytes32;
  recipe.fill = TensorMapFill::Nan;
  return recipe;
}

/// The kernel of `sample()` has maps of both its buffers behind its pointers.
Manifest sampleWithMaps(const TensorMapRecipe &recipe) {
  Manifest manifest = sample();
  KernelSpec &kernel = manifest.kernels[0];
  for (size_t i = 0; i < 2; ++i) {
    kernel.parameters.push_back(kernel.parameters[i]);
    kernel.parameters.back().tensorMap = recipe;
  }
  forEachStep(manifest.steps, [&](Step &step) {
    if (auto *launch = std::get_if<LaunchStep>(&step.action)) {
      const std::vector<StepArgument> pointers = launch->arguments;
      launch->arguments.insert(launch->arguments.end(), pointers.begin(), pointers.end());
    }
  });
  return manifest;
}

} // namespace

TEST_CASE("tensor maps survive printing and parsing") {
  TensorMapRecipe pixels;
  pixels.type = TensorMapType::F32;
  pixels.dims = {4, 2, 2};
  pixels.strides = {16, 32};
  pixels.elementStrides = {1, 2, 1};
  pixels.l2 = TensorMapL2::Bytes256;
  pixels.im2col = TensorMapPixels{{-1}, {-1}, 4, 2};
  for (const TensorMapRecipe &recipe : {tiles(), pixels}) {
    const Manifest manifest = sampleWithMaps(recipe);
    const std::string text = printManifest(manifest);
    Manifest read;
    std::string error;
    const bool isFine = parseManifest(text, read, error);
    INFO(error);
    REQUIRE(isFine);
    REQUIRE(read.kernels[0].parameters.size() == 4);
    CHECK(!read.kernels[0].parameters[1].tensorMap);
    CHECK(read.kernels[0].parameters[3].tensorMap == recipe);
    CHECK(printManifest(read) == text);
    CHECK(schemaViolation(text) == "");
    CHECK(contains(errorOf(replaced(text, "\"tensor_map\": {", "\"tensor_map\": {\"boxes\": 1,")),
                   "kernels[0].parameters[2].tensor_map.boxes: unknown key"));
    CHECK(contains(errorOf(replaced(text, "\"strides\"", "\"stride\"")), "tensor_map: `strides` is missing"));
    CHECK(
        contains(errorOf(replaced(text, "\"swizzle\": \"", "\"swizzle\": \"no")), "tensor_map.swizzle: unknown word"));
    CHECK(contains(errorOf(replaced(text, "\"dims\": [", "\"dims\": [-")), "tensor_map.dims[0]: expected an integer"));
  }
}

TEST_CASE("tensor maps that do not fit their buffers are refused") {
  auto errorAfter = [](auto change) {
    Manifest manifest = sampleWithMaps(tiles());
    change(manifest);
    return errorOf(printManifest(manifest));
  };
  auto parameter = [](Manifest &m, size_t i = 2) -> KernelParameter & { return m.kernels[0].parameters[i]; };
  auto map = [&](Manifest &m) -> TensorMapRecipe & { return *parameter(m).tensorMap; };
  auto launch = [](Manifest &m) -> LaunchStep & { return std::get<LaunchStep>(m.steps[0].action); };
  CHECK(errorAfter([](Manifest &) {}).empty());
  CHECK(contains(errorAfter([&](Manifest &m) { map(m).box = {24, 2}; }),
                 "kernels[0]: parameters[2]: the driver would refuse this tensor map: a row of its box has 48 bytes"));
  CHECK(contains(errorAfter([&](Manifest &m) { map(m).box.pop_back(); }), "its box has 1 dimensions, its tensor 2"));
  CHECK(contains(errorAfter([&](Manifest &m) { map(m).strides[0] = 8; }), "the stride of dimension 1 is 8 bytes"));
  CHECK(contains(errorAfter([&](Manifest &m) { map(m).dims[1] = 3; }), "a tensor map of 96 bytes of a buffer of 64"));
  CHECK(contains(errorAfter([&](Manifest &m) { map(m).strides[0] = 1ull << 39; }), "of a buffer of 64"));
  CHECK(contains(errorAfter([&](Manifest &m) { // more bytes than can be counted
                   map(m).dims = {16, 1ull << 32, 1ull << 32};
                   map(m).strides = {1ull << 39, 1ull << 39};
                   map(m).box = {8, 1, 1};
                 }),
                 "a tensor map of 18446744073709551615 bytes"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m).alignment = parameter(m, 0).alignment = 8; }),
                 "a tensor map of a buffer aligned to 8 bytes; maps need 16"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m).index = 7; }),
                 "a tensor map of input 7, to which no parameter points"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m).role = KernelParameter::Role::Temporary; }),
                 "a tensor map of temporary 0, to which no parameter points"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m).bytes = 32; }), "parameters[0] says something else"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m).written = true; }), "parameters[0] says something else"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m, 1).alias = parameter(m, 3).alias = 2; }),
                 "alias 2 is no other parameter that is a pointer"));
  CHECK(contains(errorAfter([&](Manifest &m) { parameter(m, 3).tensorMap.reset(); }), "a pointer behind a tensor map"));
  CHECK(contains(errorAfter([&](Manifest &m) { launch(m).arguments.pop_back(); }), "3 arguments for the 4 parameters"));
  CHECK(contains(errorAfter([&](Manifest &m) { sliceOf(launch(m).arguments[2])->offset = 0; }),
                 "steps[0]: arguments[2]: a tensor map of other memory than arguments[0]"));
  CHECK(contains(errorAfter([&](Manifest &m) { launch(m).arguments[2] = ScalarValue{7, 4}; }), "that is a pointer"));
  const std::string text = printManifest(sampleWithMaps(tiles()));
  CHECK(contains(errorOf(replaced(text, "\"buffer\": 0,", "\"tensor_map\": {}, \"buffer\": 0,")),
                 "steps[0].arguments[0].tensor_map: unknown key"));
}

TEST_CASE("a program for devices has tensor maps as arguments") {
  Manifest manifest = sampleWithMaps(tiles());
  manifest.kernels[0].cluster = Dim3{2, 1, 1};
  manifest.kernels[0].programmatic = true;
  manifest.steps.pop_back(); // what was not compiled
  std::string error;
  const std::optional<DeviceProgram> program = deviceProgram(
      manifest, [](uint32_t, llvm::ArrayRef<uint32_t>) { return std::optional<uint32_t>(0); }, std::vector<uint32_t>{1},
      error);
  INFO(error);
  REQUIRE(program);
  CHECK(program->kernels[0].cluster == Dim3{2, 1, 1});
  CHECK(program->kernels[0].programmatic);
  CHECK(program->kernels[0].written == std::vector<bool>{false, true, false, true});
  size_t launches = 0;
  forEachStep(program->steps, [&](const Step &step) {
    const auto *launch = std::get_if<LaunchStep>(&step.action);
    launches += launch ? 1 : 0;
    for (size_t i = 0; launch && i < 2; ++i) {
      const auto *pointer = std::get_if<BufferSlice>(&launch->arguments[i]);
      REQUIRE(pointer);
      CHECK(launch->arguments[i + 2] == StepArgument(TensorMapSlice{*pointer, tiles()}));
    }
  });
  CHECK(launches == 5);
}

TEST_CASE("clusters and programmatic launches survive printing and parsing") {
  Manifest manifest = sample(), read;
  std::string error;
  CHECK(!contains(printManifest(manifest), "cluster"));
  manifest.kernels[0].cluster = Dim3{4, 2, 1};
  manifest.kernels[0].programmatic = true;
  const std::string text = printManifest(manifest);
  CHECK(schemaViolation(text) == "");
  REQUIRE(parseManifest(text, read, error));
  CHECK(read.kernels[0].cluster == Dim3{4, 2, 1});
  CHECK(read.kernels[0].programmatic);
  CHECK(printManifest(read) == text);
  auto errorWith = [&](const char *cluster) { return errorOf(replaced(text, "[4, 2, 1]", cluster)); };
  CHECK(contains(errorWith("[5, 2, 1]"), "clusters of 5 x 2 x 1 blocks do not make up its grid of 12288 x 2 x 1"));
  CHECK(contains(errorWith("[16, 2, 1]"), "clusters of 16 x 2 x 1 blocks are too large"));
  CHECK(contains(errorWith("[65536, 65536, 4294967295]"), "are too large"));
  CHECK(contains(errorWith("[4, 0, 1]"), "kernels[0].cluster: expected three positive integers"));
}

TEST_CASE("manifests that contradict themselves are refused") {
  auto errorAfter = [](auto change) {
    Manifest manifest = sample();
    change(manifest);
    return errorOf(printManifest(manifest));
  };
  CHECK(errorAfter([](Manifest &) {}).empty());
  auto launch = [](Manifest &m) -> LaunchStep & { return std::get<LaunchStep>(m.steps[0].action); };
  auto argument = [&](Manifest &m) -> BufferSlice & { return std::get<BufferSlice>(launch(m).arguments[0]); };
  auto copy = [](Manifest &m) -> CopyStep & { return std::get<CopyStep>(m.steps[1].action); };
  auto loop = [](Manifest &m) -> WhileStep & { return std::get<WhileStep>(m.steps[3].action); };
  auto choice = [](Manifest &m) -> ConditionalStep & { return std::get<ConditionalStep>(m.steps[4].action); };
  CHECK(contains(errorAfter([&](Manifest &m) { launch(m).kernel = 1; }), "steps[0]: there is no kernel 1"));
  CHECK(contains(errorAfter([&](Manifest &m) { launch(m).arguments.pop_back(); }), "1 arguments for the 2"));
  CHECK(contains(errorAfter([&](Manifest &m) { launch(m).arguments[0] = ScalarValue{7, 4}; }), "that is a pointer"));
  CHECK(contains(errorAfter([&](Manifest &m) { argument(m).offset = 80; }), "leave buffer 0"));
  CHECK(contains(errorAfter([&](Manifest &m) { argument(m).offset = ~0ull; }), "leave buffer 0"));
  CHECK(contains(errorAfter([&](Manifest &m) { argument(m).offset = 8; }), "not aligned to 16"));
  CHECK(contains(errorAfter([&](Manifest &m) { argument(m).bytes = 32; }), "32 bytes for a parameter of 64"));
  CHECK(contains(errorAfter([&](Manifest &m) { copy(m).to.bytes = 32; }), "same size"));
  CHECK(contains(errorAfter([&](Manifest &m) { copy(m).to.buffer = 9; }), "there is no buffer 9"));
  CHECK(contains(errorAfter([&](Manifest &m) { copy(m).to = copy(m).from; }), "onto itself"));
  CHECK(contains(errorAfter([&](Manifest &m) { copy(m).to.buffer = 0; }), "which is not donated"));
  CHECK(contains(errorAfter([&](Manifest &m) { m.buffers[2].donated = true; }), "only parameters are donated"));
  CHECK(contains(errorAfter([&](Manifest &m) { m.buffers[0].offset = 256; }), "only temporaries share memory"));
  CHECK(contains(errorAfter([&](Manifest &m) { loop(m).predicate.bytes = 2; }), "steps[3]: a predicate is one byte"));
  CHECK(contains(errorAfter([&](Manifest &m) { std::get<LaunchStep>(loop(m).condition[0].action).kernel = 5; }),
                 "steps[3]: condition[0]: there is no kernel 5"));
  CHECK(contains(errorAfter([&](Manifest &m) { choice(m).selector.bytes = 2; }), "selector"));
  CHECK(contains(errorAfter([&](Manifest &m) { choice(m).selector.bytes = 1; }), "3 branches"));
  auto counted = [](Manifest &m) -> WhileStep & { return std::get<WhileStep>(m.steps[7].action); };
  CHECK(contains(errorAfter([&](Manifest &m) { counted(m).rounds.reset(); }), "steps[7]: `rounds` is missing"));
  auto missing = [](Manifest &m) -> UnsupportedStep & { return std::get<UnsupportedStep>(m.steps[8].action); };
  CHECK(contains(errorAfter([&](Manifest &m) { missing(m).reason = ""; }), "steps[8]: an unsupported step without a"));
  CHECK(contains(errorAfter([&](Manifest &m) { missing(m).reads[0].buffer = 9; }), "there is no buffer 9"));
  CHECK(contains(errorAfter([&](Manifest &m) { missing(m).writes[0] = {0, 0, 4}; }), "which is not donated"));
  CHECK(contains(errorAfter([](Manifest &m) { m.results[0].slice.buffer = 4; }), "results[0].slice"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].parameters[1].alias = 1; }), "no other parameter"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].parameters[1].alias = 7; }), "no other parameter"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].parameters[1].alignment = 12; }), "power of two"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].block = {1024, 2, 1}; }), "1024 x 2 x 1 threads"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].block = {1u << 31, 1u << 31, 4}; }), "too large"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].grid = {1, 65536, 1}; }), "1 x 65536 x 1 blocks"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels[0].name = "2x"; }), "PTX identifier"));
  CHECK(contains(errorAfter([](Manifest &m) { m.kernels.push_back(m.kernels[0]); }), "second kernel named `gelu`"));
  CHECK(contains(errorAfter([](Manifest &m) { m.buffers[3].bytes = 4; }), "3 bytes of data for 4"));
}

TEST_CASE("damaged manifests are read or refused, and what is read holds together") {
  const std::string texts[] = {printManifest(sample()), printManifest(sampleWithMaps(tiles()))};
  uint32_t state = 12345;
  auto random = [&](size_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string damaged = texts[i % 2];
    switch (random(4)) {
    case 0:
      damaged[random(damaged.size())] = static_cast<char>(random(256));
      break;
    case 1:
      damaged.erase(random(damaged.size()), random(40));
      break;
    case 2:
      damaged.insert(random(damaged.size()), damaged.substr(random(damaged.size()), random(40)));
      break;
    case 3:
      damaged[damaged.find_first_of("0123456789", random(damaged.size() - 200))] = static_cast<char>('0' + random(10));
      break;
    }
    Manifest manifest;
    std::string error;
    if (!parseManifest(damaged, manifest, error)) {
      ++refused;
      CHECK_FALSE(error.empty());
      continue;
    }
    forEachStep(manifest.steps, [&](const Step &step) {
      forEachSlice(step, [&](const BufferSlice &slice) {
        REQUIRE(slice.buffer < manifest.buffers.size());
        REQUIRE(slice.offset + slice.bytes <= manifest.buffers[slice.buffer].bytes);
      });
    });
    for (const KernelSpec &kernel : manifest.kernels)
      for (const KernelParameter &parameter : kernel.parameters)
        REQUIRE((!parameter.tensorMap || (extentOf(*parameter.tensorMap) <= parameter.bytes &&
                                          findTensorMapError(*parameter.tensorMap, parameter.alignment) == "")));
    REQUIRE(parseManifest(printManifest(manifest), manifest, error));
  }
  CHECK(refused > 2000);
}

TEST_CASE("what is printed is of the published schema, and the schema refuses what is not") {
  const std::string text = printManifest(sample());
  const auto violation = schemaViolation;
  CHECK(violation(text) == "");
  for (auto [from, to] : {std::pair("\"kind\": \"while\"", "\"kind\": \"until\""),
                          {"\"predicate\"", "\"predicament\""},
                          {"\"version\": 2", "\"version\": 1"},
                          {"[12288, 2, 1]", "[12288, 0, 1]"},
                          {"\"value\": 255", "\"value\": 256"},
                          {"\"hero\"", "\"herring\""},
                          {"\"registers\": 28", "\"registers\": \"28\""}}) {
    INFO(from);
    CHECK(violation(replaced(text, from, to)) != "");
  }
}
