#include "ConfigurationReader.h"

#include <cmath>

namespace hloc {

bool ConfigurationReader::read(llvm::StringRef text, std::string &error, Body body) {
  error.clear();
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    error = "the configuration is no JSON: " + llvm::toString(parsed.takeError());
    return false;
  }
  const llvm::json::Object *object = parsed->getAsObject();
  if (!object) {
    error = "the configuration is no object";
    return false;
  }
  ConfigurationReader reader(*object, "", error);
  return body(reader);
}

const llvm::json::Value *ConfigurationReader::find(llvm::StringRef key) {
  seen.insert(key.str());
  return members.get(key);
}

bool ConfigurationReader::expected(llvm::StringRef key, llvm::StringRef what) {
  return fail("`" + path + key.str() + "` is " + (has(key) ? "no " + what.str() : std::string("missing")));
}

bool ConfigurationReader::fail(std::string reason) {
  if (error.empty())
    error = "the configuration: " + reason;
  return false;
}

bool ConfigurationReader::text(llvm::StringRef key, std::string &result) {
  const llvm::json::Value *value = find(key);
  std::optional<llvm::StringRef> found = value ? value->getAsString() : std::nullopt;
  if (found)
    result = found->str();
  return found || expected(key, "text");
}

bool ConfigurationReader::flag(llvm::StringRef key, bool &result) {
  const llvm::json::Value *value = find(key);
  std::optional<bool> found = value ? value->getAsBoolean() : std::nullopt;
  if (found)
    result = *found;
  return found || expected(key, "true or false");
}

bool ConfigurationReader::number(llvm::StringRef key, double &result) {
  const llvm::json::Value *value = find(key);
  std::optional<double> found = value ? value->getAsNumber() : std::nullopt;
  if (found)
    result = *found;
  return (found && std::isfinite(*found)) || expected(key, "finite number");
}

bool ConfigurationReader::count(llvm::StringRef key, uint64_t &result) {
  const llvm::json::Value *value = find(key);
  std::optional<uint64_t> found = value ? value->getAsUINT64() : std::nullopt;
  if (found)
    result = *found;
  return found || expected(key, "integer that is not negative");
}

bool ConfigurationReader::counts(llvm::StringRef key, std::vector<uint64_t> &result) {
  const llvm::json::Value *value = find(key);
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    return expected(key, "list");
  for (const llvm::json::Value &element : *array) {
    std::optional<uint64_t> found = element.getAsUINT64();
    if (!found)
      return expected(key, "list of integers that are not negative");
    result.push_back(*found);
  }
  return true;
}

bool ConfigurationReader::object(llvm::StringRef key, Body body) {
  const llvm::json::Value *value = find(key);
  const llvm::json::Object *inner = value ? value->getAsObject() : nullptr;
  if (!inner)
    return expected(key, "object");
  ConfigurationReader reader(*inner, path + key.str() + ".", error);
  return body(reader);
}

bool ConfigurationReader::isAll() {
  for (const auto &[key, value] : members)
    if (!seen.contains(key.str()))
      return fail("`" + path + key.str() + "` is not known");
  return true;
}

bool areApart(const std::vector<uint64_t> &sizes, const std::vector<uint64_t> &strides, uint64_t limit) {
  std::multiset<std::pair<uint64_t, uint64_t>> ordered;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1)
      ordered.insert({strides[i], sizes[i]});
  uint64_t extent = 1;
  for (auto [stride, size] : ordered) {
    if (stride < extent || stride > limit)
      return false;
    extent = stride * (size - 1) + extent;
    if (extent > limit)
      return false;
  }
  return true;
}

} // namespace hloc
