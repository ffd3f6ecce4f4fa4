// The configuration of a product of matrices by cuBLASLt: writing it, and reading what nobody vouches for.

#include "hloc/kernel/LibraryCall.h"

#include "hloc/support/Check.h"

#include "ConfigurationReader.h"

#include <array>
#include <limits>

namespace hloc {

namespace {

using Matrix = MatmulCall::Matrix;

constexpr std::array<llvm::StringLiteral, 4> computeNames = {"f32", "tf32", "f64", "s32"};
constexpr std::array<llvm::StringLiteral, 6> epilogueNames = {"default", "relu",      "gelu",
                                                              "bias",    "relu_bias", "gelu_bias"};

void print(llvm::json::OStream &json, llvm::StringRef key, const Matrix &matrix, bool isFactor) {
  json.attributeObject(key, [&] {
    json.attribute("type", text(matrix.type));
    if (isFactor)
      json.attribute("transposed", matrix.transposed);
    json.attribute("leading_dimension", int64_t(matrix.leadingDimension));
    json.attribute("batch_stride", int64_t(matrix.batchStride));
  });
}

bool read(ConfigurationReader &reader, llvm::StringRef key, Matrix &matrix, bool isFactor) {
  return reader.object(key, [&](ConfigurationReader &inner) {
    std::string type;
    if (!inner.text("type", type) || (isFactor && !inner.flag("transposed", matrix.transposed)) ||
        !inner.count("leading_dimension", matrix.leadingDimension) || !inner.count("batch_stride", matrix.batchStride))
      return false;
    std::optional<LibraryType> found = findLibraryType(type);
    if (found)
      matrix.type = *found;
    return found ? inner.isAll() : inner.fail("`" + type + "` is no type of a library");
  });
}

template <typename Enum, size_t size>
bool readWord(ConfigurationReader &reader, llvm::StringRef key, const std::array<llvm::StringLiteral, size> &names,
              Enum &value) {
  std::string word;
  if (!reader.text(key, word))
    return false;
  for (size_t i = 0; i < size; ++i)
    if (word == names[i]) {
      value = Enum(i);
      return true;
    }
  return reader.fail("`" + word + "` is no `" + key.str() + "`");
}

/// Are there as many bytes in 2^62 at most?
bool hasReach(const MatmulCall &call, const Matrix &matrix) {
  using Wide = unsigned __int128;
  const Wide elements = Wide(call.batch - 1) * matrix.batchStride +
                        Wide(call.columnsOf(matrix) - 1) * matrix.leadingDimension + call.rowsOf(matrix);
  return elements <= (uint64_t(1) << 62) / bytesOf(matrix.type);
}

std::string findContradiction(const MatmulCall &call) {
  constexpr uint64_t limit = std::numeric_limits<int32_t>::max(); // numbers of batches are int32_t there
  for (uint64_t size : {call.m, call.n, call.k, call.batch})
    if (size == 0 || size > limit)
      return "a size of " + std::to_string(size);
  for (auto [name, matrix] :
       {std::pair("a", &call.a), {"b", &call.b}, {"c", call.c ? &*call.c : nullptr}, {"d", &call.d}}) {
    if (!matrix)
      continue;
    if (matrix->leadingDimension < call.rowsOf(*matrix))
      return "columns of `" + std::string(name) + "` have " + std::to_string(call.rowsOf(*matrix)) +
             " elements, and begin every " + std::to_string(matrix->leadingDimension);
    if (matrix->leadingDimension > limit || !hasReach(call, *matrix))
      return "`" + std::string(name) + "` is too large";
  }
  if (call.d.transposed || (call.c && call.c->transposed))
    return "a result is transposed";
  // (Products do not overflow: the matrix has a reach.)
  if (!areApart({call.m, call.n, call.batch}, {1, call.d.leadingDimension, call.d.batchStride},
                std::numeric_limits<int64_t>::max()))
    return "elements of the result lie in one place";
  if (call.c.has_value() != (call.beta != 0))
    return "`c` is there where `beta` is not 0";
  return call.c && call.c->type != call.d.type ? "`c` and `d` differ in type" : "";
}

} // namespace

llvm::StringRef text(MatmulCall::Compute compute) { return computeNames[size_t(compute)]; }
llvm::StringRef text(MatmulCall::Epilogue epilogue) { return epilogueNames[size_t(epilogue)]; }

uint64_t MatmulCall::rowsOf(const Matrix &matrix) const {
  if (&matrix == &a)
    return matrix.transposed ? k : m;
  if (&matrix == &b)
    return matrix.transposed ? n : k;
  return m;
}

uint64_t MatmulCall::columnsOf(const Matrix &matrix) const {
  if (&matrix == &a)
    return matrix.transposed ? m : k;
  if (&matrix == &b)
    return matrix.transposed ? k : n;
  return n;
}

uint64_t MatmulCall::reachOf(const Matrix &matrix) const {
  return ((batch - 1) * matrix.batchStride + (columnsOf(matrix) - 1) * matrix.leadingDimension + rowsOf(matrix)) *
         bytesOf(matrix.type);
}

std::string MatmulCall::configuration() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::json::OStream json(os);
  json.object([&] {
    for (auto [key, size] : {std::pair("m", m), {"n", n}, {"k", k}, {"batch", batch}})
      json.attribute(key, int64_t(size));
    print(json, "a", a, /*isFactor=*/true);
    print(json, "b", b, /*isFactor=*/true);
    if (c)
      print(json, "c", *c, /*isFactor=*/false);
    print(json, "d", d, /*isFactor=*/false);
    json.attribute("compute", text(compute));
    json.attribute("alpha", alpha);
    json.attribute("beta", beta);
    json.attribute("epilogue", text(epilogue));
  });
  return result;
}

std::optional<MatmulCall> MatmulCall::parse(llvm::StringRef configuration, std::string &error) {
  MatmulCall call;
  const bool isRead = ConfigurationReader::read(configuration, error, [&](ConfigurationReader &reader) {
    if (!reader.count("m", call.m) || !reader.count("n", call.n) || !reader.count("k", call.k) ||
        !reader.count("batch", call.batch) || !read(reader, "a", call.a, /*isFactor=*/true) ||
        !read(reader, "b", call.b, /*isFactor=*/true) || !read(reader, "d", call.d, /*isFactor=*/false) ||
        !readWord(reader, "compute", computeNames, call.compute) || !reader.number("alpha", call.alpha) ||
        !reader.number("beta", call.beta) || !readWord(reader, "epilogue", epilogueNames, call.epilogue))
      return false;
    if (reader.has("c") && !read(reader, "c", call.c.emplace(), /*isFactor=*/false))
      return false;
    return reader.isAll();
  });
  if (isRead)
    error = findContradiction(call);
  return isRead && error.empty() ? std::optional(call) : std::nullopt;
}

} // namespace hloc
