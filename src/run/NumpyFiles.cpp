#include "NumpyFiles.h"

#include "hloc/compare/NumpyLiteral.h"
#include "hloc/npz/Npz.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace hloc {

namespace {

/// "`a`, `b` and 7 more"
std::string listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t most = 12;
  std::string text;
  for (const std::string &name : names.take_front(most))
    text += (text.empty() ? "`" : ", `") + name + "`";
  if (names.size() > most)
    text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string arrays(llvm::ArrayRef<std::string> names) {
  return names.empty() ? "no arrays" : (names.size() == 1 ? "array " : "arrays ") + listed(names);
}

/// What of `wanted` is not found, and what is found and not wanted.
struct Difference {
  std::vector<std::string> missing, extra;
};

Difference differenceOf(llvm::ArrayRef<std::string> found, llvm::ArrayRef<std::string> wanted) {
  llvm::StringMap<int> counts;
  for (const std::string &name : wanted)
    ++counts[name];
  Difference difference;
  for (const std::string &name : found)
    if (--counts[name] < 0)
      difference.extra.push_back(name);
  for (const std::string &name : wanted)
    if (counts[name]-- > 0)
      difference.missing.push_back(name);
  return difference;
}

} // namespace

std::optional<std::vector<size_t>> matchArrays(llvm::ArrayRef<std::string> found, llvm::ArrayRef<ArrayNames> schemes,
                                               std::string &error) {
  std::optional<Difference> nearest;
  for (const ArrayNames &scheme : schemes) {
    Difference difference = differenceOf(found, scheme.names);
    if (difference.missing.empty() && difference.extra.empty()) {
      std::vector<size_t> order;
      for (const std::string &name : scheme.names)
        order.push_back(llvm::find(found, name) - found.begin());
      return order;
    }
    if (!nearest || difference.missing.size() < nearest->missing.size())
      nearest = std::move(difference);
  }
  error = "it has " + arrays(found);
  if (!nearest->missing.empty())
    error += ", but not " + listed(nearest->missing);
  if (!nearest->extra.empty())
    error += fmt::format(", of which {} {} unknown", listed(nearest->extra), nearest->extra.size() == 1 ? "is" : "are");
  std::string separator = "; expected are ";
  if (schemes.front().names.empty())
    error += separator + "none";
  else
    for (const ArrayNames &scheme : schemes) {
      error += separator + fmt::format("{} ({})", listed(scheme.names), scheme.scheme);
      separator = ", or ";
    }
  return std::nullopt;
}

namespace {

void collectLeaves(const Shape &shape, const std::string &name, std::vector<std::string> &names) {
  if (!shape.isTuple()) {
    names.push_back(name);
    return;
  }
  for (auto [i, element] : llvm::enumerate(shape.elements()))
    collectLeaves(element, name + "." + std::to_string(i), names);
}

std::vector<ArrayNames> numbered(size_t count) {
  ArrayNames own{"as --outputs writes them", {}}, savez{"as numpy.savez does", {}};
  for (size_t i = 0; i < count; ++i) {
    own.names.push_back(std::to_string(i));
    savez.names.push_back("arr_" + std::to_string(i));
  }
  return {std::move(own), std::move(savez)};
}

/// The arrays of one file, taken leaf by leaf.
class LeafReader {
public:
  LeafReader(const std::string &fileName, DiagnosticEngine &diagnostics)
      : fileName(fileName), diagnostics(diagnostics) {}

  bool open(llvm::ArrayRef<ArrayNames> schemes) {
    std::string error;
    std::optional<std::string> bytes = readFile(fileName, error);
    std::optional<std::vector<NpzArray>> read = bytes ? readNpz(*bytes, error) : std::nullopt;
    if (!read) {
      diagnostics.report(DiagnosticKind::UnreadableFile, "cannot read `" + fileName + "`: " + error);
      return false;
    }
    arrays = std::move(*read);
    std::vector<std::string> names;
    for (const NpzArray &array : arrays)
      names.push_back(array.name);
    std::optional<std::vector<size_t>> matched = matchArrays(names, schemes, error);
    if (!matched)
      return misfit(error);
    order = std::move(*matched);
    return true;
  }

  std::optional<Literal> take(const Shape &shape) {
    if (shape.isTuple()) {
      std::vector<Literal> elements;
      for (const Shape &element : shape.elements()) {
        std::optional<Literal> value = take(element);
        if (!value)
          return std::nullopt;
        elements.push_back(std::move(*value));
      }
      return Literal::tuple(std::move(elements));
    }
    const NpzArray &array = arrays[order[next++]];
    std::string error;
    std::optional<Literal> value = literalFromNumpy(array.descr, array.shape, array.bytes, shape, error);
    if (!value)
      misfit("array `" + array.name + "`: " + error);
    return value;
  }

private:
  bool misfit(const std::string &reason) {
    diagnostics.report(DiagnosticKind::ShapeMismatch, "`" + fileName + "` does not fit the program: " + reason);
    return false;
  }

  const std::string &fileName;
  DiagnosticEngine &diagnostics;
  std::vector<NpzArray> arrays;
  std::vector<size_t> order;
  size_t next = 0;
};

void collect(const Literal &value, std::vector<NpzArray> &arrays) {
  if (value.isTuple()) {
    for (const Literal &element : value.elements())
      collect(element, arrays);
    return;
  }
  NpzArray array;
  array.name = std::to_string(arrays.size());
  array.descr = numpyDescr(value.shape().elementType());
  array.shape.assign(value.shape().dims().begin(), value.shape().dims().end());
  array.bytes.assign(value.bytes().begin(), value.bytes().end());
  arrays.push_back(std::move(array));
}

} // namespace

std::optional<std::vector<Literal>> readArguments(const std::string &fileName, const HloModule &module,
                                                  DiagnosticEngine &diagnostics) {
  ArrayNames byName{"the names of the parameters", {}};
  for (const HloInstruction *parameter : module.entry()->parameters())
    collectLeaves(parameter->shape(), parameter->name().str(), byName.names);
  std::vector<ArrayNames> schemes = numbered(byName.names.size());
  schemes.push_back(std::move(byName));
  LeafReader reader(fileName, diagnostics);
  if (!reader.open(schemes))
    return std::nullopt;
  std::vector<Literal> arguments;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    std::optional<Literal> argument = reader.take(parameter->shape());
    if (!argument)
      return std::nullopt;
    arguments.push_back(std::move(*argument));
  }
  return arguments;
}

std::optional<Literal> readResult(const std::string &fileName, const HloModule &module, DiagnosticEngine &diagnostics) {
  const Shape &shape = module.entry()->root()->shape();
  std::vector<std::string> leaves;
  collectLeaves(shape, "", leaves);
  LeafReader reader(fileName, diagnostics);
  return reader.open(numbered(leaves.size())) ? reader.take(shape) : std::nullopt;
}

bool writeResult(const std::string &fileName, const Literal &result, DiagnosticEngine &diagnostics) {
  std::vector<NpzArray> arrays;
  collect(result, arrays);
  std::string error;
  if (writeFile(fileName, writeNpz(arrays), error))
    return true;
  diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + fileName + "`: " + error);
  return false;
}

} // namespace hloc
