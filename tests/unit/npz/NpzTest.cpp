#include "hloc/npz/Npz.h"

#include "hloc/support/Files.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <random>

using namespace hloc;

namespace {

NpzArray floats(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
  auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
  return {std::move(name), "<f4", std::move(shape), {bytes, bytes + 4 * values.size()}};
}

std::string npy(std::string header, const std::string &data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += char(header.size());
  file += char(header.size() >> 8);
  return file + header + data;
}

} // namespace

TEST_CASE("what is written is read back") {
  std::vector<NpzArray> arrays{floats("0", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("scalar", {}, {7}),
                               floats("empty", {0, 4}, {}), NpzArray{"raw", "|V2", {3}, {1, 2, 3, 4, 5, 6}}};
  std::string file = writeNpz(arrays), error;
  CHECK(file == writeNpz(arrays));
  auto read = readNpz(file, error);
  REQUIRE(read);
  REQUIRE(read->size() == arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    CHECK((*read)[i].name == arrays[i].name);
    CHECK((*read)[i].descr == arrays[i].descr);
    CHECK((*read)[i].shape == arrays[i].shape);
    CHECK((*read)[i].bytes == arrays[i].bytes);
  }
}

TEST_CASE("column-major and big-endian arrays become row-major and little-endian") {
  std::string error;
  auto fortran = readNpy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "\1\4\2\5\3\6"), error);
  REQUIRE(fortran);
  CHECK(fortran->bytes == std::vector<uint8_t>{1, 2, 3, 4, 5, 6});
  auto big = readNpy(npy("{'shape': (2,), 'fortran_order': False, 'descr': '>u2'}", "\1\2\3\4"), error);
  REQUIRE(big);
  CHECK(big->bytes == std::vector<uint8_t>{2, 1, 4, 3});
  CHECK(big->descr == "<u2");
}

TEST_CASE("malformed .npy files are refused") {
  auto [header, data] = GENERATE(table<std::string, std::string>(
      {{"", ""},
       {"{", ""},
       {"{'descr': '<f4'}", ""},
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "12345678"},
       {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"},
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"},
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234"},
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", ""},
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", ""}}));
  std::string error;
  CHECK_FALSE(readNpy(npy(header, data), error));
  CHECK(error != "");
}

TEST_CASE("damaged archives are refused, never believed") {
  std::string good = writeNpz({floats("0", {64}, std::vector<float>(64, 1.5f)), floats("1", {2}, {1, 2})}), error;
  REQUIRE(readNpz(good, error));
  for (size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(readNpz(llvm::StringRef(good).take_front(length), error));
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) { // must return, with whatever answer, within bounds
    std::string bad = good;
    for (int flips = 0; flips < 3; ++flips)
      bad[random() % bad.size()] = char(random());
    readNpz(bad, error);
  }
}

TEST_CASE("an archive may not take more memory than allowed") {
  std::string file = writeNpz({floats("0", {64}, std::vector<float>(64, 1))}), error;
  CHECK_FALSE(readNpz(file, error, 100));
  CHECK(error == "a zip member claims an impossible size");
}

TEST_CASE("numpy's own archives are read") {
  const char *corpus = std::getenv("HLOC_CORPUS");
  if (!corpus)
    return;
  std::string error;
  auto file = readFile(std::string(corpus) + "/jax/norm_layer_norm/outputs.npz", error);
  REQUIRE(file);
  auto arrays = readNpz(*file, error);
  INFO(error);
  REQUIRE(arrays);
  CHECK(arrays->front().name == "0");
}
