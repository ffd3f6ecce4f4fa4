#pragma once
// Reading JSON that nobody vouches for: every read names its path when it fails.

#include "ManifestText.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>

namespace hloc::manifest_text {

/// A value with its path. All readers return false after the first error.
class Reader {
public:
  Reader(const llvm::json::Value &value, std::string path, std::string &error)
      : value(value), path(std::move(path)), error(error) {}

  bool fail(std::string reason) const {
    if (error.empty())
      error = fmt::format("{}: {}", path.empty() ? "manifest" : path, reason);
    return false;
  }

  bool read(std::string &result) const {
    auto text = value.getAsString();
    if (!text)
      return fail("expected a string");
    result = text->str();
    return true;
  }
  bool read(bool &result) const {
    auto flag = value.getAsBoolean();
    if (!flag)
      return fail("expected true or false");
    result = *flag;
    return true;
  }
  bool read(uint64_t &result) const {
    auto number = value.getAsUINT64();
    if (!number)
      return fail("expected an integer that is not negative");
    result = *number;
    return true;
  }
  bool read(int64_t &result) const {
    auto number = value.getAsInteger();
    if (!number)
      return fail("expected an integer");
    result = *number;
    return true;
  }
  bool read(uint32_t &result) const {
    uint64_t wide = 0;
    if (!read(wide))
      return false;
    if (wide > std::numeric_limits<uint32_t>::max())
      return fail("number too large");
    result = static_cast<uint32_t>(wide);
    return true;
  }
  bool read(std::optional<uint32_t> &result) const { return read(result.emplace()); }
  bool read(std::optional<uint64_t> &result) const { return read(result.emplace()); }
  bool read(std::vector<uint32_t> &result) const {
    return elements([&](const Reader &element) { return element.read(result.emplace_back()); });
  }
  bool read(Dim3 &result) const {
    std::vector<uint32_t> extents;
    if (!read(extents))
      return false;
    if (extents.size() != 3 || !extents[0] || !extents[1] || !extents[2])
      return fail("expected three positive integers");
    result = {extents[0], extents[1], extents[2]};
    return true;
  }
  template <typename Enum> bool read(Enum &result, Enum last) const {
    std::string word;
    return read(word) && (manifest_text::parse(word, last, result) || fail(fmt::format("unknown word `{}`", word)));
  }
  bool readHex(std::string &result) const {
    std::string digits;
    return read(digits) && (llvm::tryGetFromHex(digits, result) || fail("expected pairs of hexadecimal digits"));
  }

  template <typename Function> bool elements(Function function) const {
    const llvm::json::Array *array = value.getAsArray();
    if (!array)
      return fail("expected a list");
    for (size_t i = 0; i < array->size(); ++i)
      if (!function(Reader((*array)[i], fmt::format("{}[{}]", path, i), error)))
        return false;
    return true;
  }
  /// Calls `function` with each key and its value; false when it returns false or a required key is missing.
  template <typename Function> bool members(std::initializer_list<llvm::StringRef> required, Function function) const {
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      return fail("expected an object");
    for (llvm::StringRef key : required)
      if (!object->get(key))
        return fail(fmt::format("`{}` is missing", key.str()));
    for (const auto &[key, member] : *object) {
      llvm::StringRef name = key;
      Reader reader(member, path.empty() ? name.str() : path + "." + name.str(), error);
      if (!function(name, reader))
        return false;
    }
    return true;
  }
  /// Members of a step of one kind: `kind` and `name`, which every step has, those of `own`, and `optional` if it is
  /// there.
  template <typename Function>
  bool stepMembers(std::initializer_list<llvm::StringRef> own, Function function, llvm::StringRef optional = "") const {
    return members(own, [&](llvm::StringRef key, const Reader &member) {
      if (key == "kind" || key == "name")
        return true;
      return llvm::is_contained(own, key) || key == optional ? function(key, member) : member.unknownKey();
    });
  }
  bool has(llvm::StringRef key) const {
    const llvm::json::Object *object = value.getAsObject();
    return object && object->get(key);
  }
  bool unknownKey() const { return fail("unknown key"); }

private:
  const llvm::json::Value &value;
  std::string path;
  std::string &error;
};

bool readSlice(const Reader &reader, BufferSlice &slice);
bool readSteps(const Reader &reader, Steps &steps);

} // namespace hloc::manifest_text
