#pragma once
// The part of JSON Schema that src/kernel/manifest.schema.json uses.

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace hloc::test {

class Schema {
public:
  explicit Schema(const llvm::json::Value &root) : root(*root.getAsObject()) {}

  /// Where and why `value` is not of the schema; empty if it is.
  std::string violation(const llvm::json::Value &value) const { return check(value, root, "$"); }

private:
  using Value = llvm::json::Value;
  using Object = llvm::json::Object;

  const Object &resolve(llvm::StringRef reference) const {
    reference.consume_front("#/$defs/");
    return *root.getObject("$defs")->getObject(reference);
  }

  std::string check(const Value &value, const Object &schema, const std::string &path) const {
    for (const auto &[keyword, argument] : schema) {
      std::string why = checkKeyword(value, llvm::StringRef(keyword), argument, schema, path);
      if (!why.empty())
        return why;
    }
    return "";
  }

  std::string checkKeyword(const Value &value, llvm::StringRef keyword, const Value &argument, const Object &schema,
                           const std::string &path) const {
    auto failUnless = [&](bool holds) { return holds ? "" : path + ": " + keyword.str(); };
    if (keyword == "$ref")
      return check(value, resolve(*argument.getAsString()), path);
    if (keyword == "type")
      return failUnless(isOfType(value, *argument.getAsString()));
    if (keyword == "const")
      return failUnless(value == argument);
    if (keyword == "enum")
      return failUnless(llvm::is_contained(*argument.getAsArray(), value));
    if (keyword == "minimum" || keyword == "maximum") {
      std::optional<double> number = value.getAsNumber();
      return failUnless(
          number && (keyword == "minimum" ? *number >= *argument.getAsNumber() : *number <= *argument.getAsNumber()));
    }
    if (keyword == "minItems" || keyword == "maxItems") {
      int64_t size = value.getAsArray() ? int64_t(value.getAsArray()->size()) : -1;
      return failUnless(keyword == "minItems" ? size >= *argument.getAsInteger() : size <= *argument.getAsInteger());
    }
    if (keyword == "items")
      return checkItems(value, *argument.getAsObject(), path);
    if (keyword == "required")
      return failUnless(value.getAsObject() && llvm::all_of(*argument.getAsArray(), [&](const Value &key) {
                          return value.getAsObject()->get(*key.getAsString());
                        }));
    if (keyword == "properties" || keyword == "additionalProperties")
      return value.getAsObject() ? checkMembers(*value.getAsObject(), schema, path) : "";
    if (keyword == "oneOf")
      return failUnless(llvm::count_if(*argument.getAsArray(), [&](const Value &one) {
                          return check(value, *one.getAsObject(), path).empty();
                        }) == 1);
    bool says = keyword == "description" || keyword == "title" || keyword == "$schema" || keyword == "$defs";
    return says ? "" : "the schema uses `" + keyword.str() + "`, which this test does not know";
  }

  static bool isOfType(const Value &value, llvm::StringRef type) {
    switch (value.kind()) {
    case Value::String:
      return type == "string";
    case Value::Boolean:
      return type == "boolean";
    case Value::Number:
      return type == "integer" && (value.getAsInteger() || value.getAsUINT64());
    case Value::Array:
      return type == "array";
    case Value::Object:
      return type == "object";
    default:
      return false;
    }
  }

  std::string checkItems(const Value &value, const Object &item, const std::string &path) const {
    const llvm::json::Array *array = value.getAsArray();
    for (size_t i = 0; array && i < array->size(); ++i)
      if (std::string why = check((*array)[i], item, path + "[" + std::to_string(i) + "]"); !why.empty())
        return why;
    return "";
  }

  std::string checkMembers(const Object &object, const Object &schema, const std::string &path) const {
    const Object *known = schema.getObject("properties");
    for (const auto &[key, member] : object) {
      llvm::StringRef name = key;
      const Object *own = known ? known->getObject(name) : nullptr;
      if (!own)
        return path + "." + name.str() + ": not in the schema";
      if (std::string why = check(member, *own, path + "." + name.str()); !why.empty())
        return why;
    }
    return "";
  }

  const Object &root;
};

} // namespace hloc::test
