// Reads a manifest without trusting it: each read names its JSON path when it fails; ManifestCheck.cpp refuses what
// is well formed but contradicts itself.

#include "hloc/kernel/Manifest.h"

#include "ManifestText.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>

namespace hloc {

namespace {

/// LLVM's JSON parser recurses; a manifest is 6 levels deep.
constexpr unsigned maxDepth = 16;

bool tooDeep(llvm::StringRef text) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxDepth)
        return true;
    } else if ((c == ']' || c == '}') && depth) {
      --depth;
    }
  }
  return false;
}

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
  bool unknownKey() const { return fail("unknown key"); }

private:
  const llvm::json::Value &value;
  std::string path;
  std::string &error;
};

bool readParameter(const Reader &reader, KernelParameter &parameter) {
  return reader.members({"role", "index", "shape", "bytes", "alignment", "written"},
                        [&](llvm::StringRef key, const Reader &member) {
                          if (key == "role")
                            return member.read(parameter.role, KernelParameter::Role::Temporary);
                          if (key == "index")
                            return member.read(parameter.index);
                          if (key == "shape")
                            return member.read(parameter.shape);
                          if (key == "bytes")
                            return member.read(parameter.bytes);
                          if (key == "alignment")
                            return member.read(parameter.alignment);
                          if (key == "written")
                            return member.read(parameter.written);
                          if (key == "alias")
                            return member.read(parameter.alias);
                          return member.unknownKey();
                        });
}

bool readResources(const Reader &reader, KernelResources &resources) {
  return reader.members(
      {"registers", "spill_store_bytes", "spill_load_bytes", "stack_bytes", "shared_bytes", "barriers"},
      [&](llvm::StringRef key, const Reader &member) {
        if (key == "registers")
          return member.read(resources.registers);
        if (key == "spill_store_bytes")
          return member.read(resources.spillStoreBytes);
        if (key == "spill_load_bytes")
          return member.read(resources.spillLoadBytes);
        if (key == "stack_bytes")
          return member.read(resources.stackBytes);
        if (key == "shared_bytes")
          return member.read(resources.sharedBytes);
        if (key == "barriers")
          return member.read(resources.barriers);
        return member.unknownKey();
      });
}

bool readKernel(const Reader &reader, KernelSpec &kernel) {
  return reader.members({"name", "grid", "block", "parameters"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "name")
      return member.read(kernel.name);
    if (key == "grid")
      return member.read(kernel.grid);
    if (key == "block")
      return member.read(kernel.block);
    if (key == "static_shared_bytes")
      return member.read(kernel.staticSharedBytes);
    if (key == "dynamic_shared_bytes")
      return member.read(kernel.dynamicSharedBytes);
    if (key == "hero")
      return member.read(kernel.hero);
    if (key == "hero_why")
      return member.read(kernel.heroWhy);
    if (key == "bytes_read")
      return member.read(kernel.bytesRead);
    if (key == "bytes_written")
      return member.read(kernel.bytesWritten);
    if (key == "parameters")
      return member.elements(
          [&](const Reader &element) { return readParameter(element, kernel.parameters.emplace_back()); });
    if (key == "resources")
      return readResources(member, kernel.resources.emplace());
    return member.unknownKey();
  });
}

bool readBuffer(const Reader &reader, ModuleBuffer &buffer) {
  return reader.members({"kind", "bytes"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "kind")
      return member.read(buffer.kind, ModuleBuffer::Kind::Constant);
    if (key == "bytes")
      return member.read(buffer.bytes);
    if (key == "shape")
      return member.read(buffer.shape);
    if (key == "parameter")
      return member.read(buffer.parameterNumber);
    if (key == "leaf")
      return member.read(buffer.leafIndex);
    if (key == "data")
      return member.readHex(buffer.constantData);
    return member.unknownKey();
  });
}

bool readSlice(const Reader &reader, BufferSlice &slice) {
  return reader.members({"buffer", "offset", "bytes"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "buffer")
      return member.read(slice.buffer);
    if (key == "offset")
      return member.read(slice.offset);
    if (key == "bytes")
      return member.read(slice.bytes);
    return member.unknownKey();
  });
}

bool readStep(const Reader &reader, ModuleStep &step) {
  return reader.members({"kind", "arguments"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "kind")
      return member.read(step.kind, ModuleStep::Kind::Copy);
    if (key == "kernel")
      return member.read(step.kernel);
    if (key == "arguments")
      return member.elements([&](const Reader &element) { return readSlice(element, step.arguments.emplace_back()); });
    return member.unknownKey();
  });
}

bool readResult(const Reader &reader, ModuleResult &result) {
  return reader.members({"leaf", "slice"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "leaf")
      return member.read(result.leafIndex);
    if (key == "slice")
      return readSlice(member, result.slice);
    if (key == "shape")
      return member.read(result.shape);
    return member.unknownKey();
  });
}

bool readTool(const Reader &reader, std::pair<std::string, std::string> &tool) {
  return reader.members({"name", "version"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "name")
      return member.read(tool.first);
    if (key == "version")
      return member.read(tool.second);
    return member.unknownKey();
  });
}

bool readVersion(const Reader &reader) {
  uint32_t version = 0;
  if (!reader.read(version))
    return false;
  if (version != static_cast<uint32_t>(Manifest::currentVersion))
    return reader.fail(
        fmt::format("version {} is not understood; this hloc reads version {}", version, Manifest::currentVersion));
  return true;
}

bool readManifest(const Reader &reader, Manifest &manifest) {
  return reader.members({"version", "module", "target", "kernels", "buffers", "steps", "results"},
                        [&](llvm::StringRef key, const Reader &member) {
                          if (key == "version")
                            return readVersion(member);
                          if (key == "module")
                            return member.read(manifest.module);
                          if (key == "target")
                            return member.read(manifest.target);
                          if (key == "ptx_version")
                            return member.read(manifest.ptxVersion);
                          if (key == "tools")
                            return member.elements([&](const Reader &element) {
                              return readTool(element, manifest.toolVersions.emplace_back());
                            });
                          if (key == "kernels")
                            return member.elements([&](const Reader &element) {
                              return readKernel(element, manifest.kernels.emplace_back());
                            });
                          if (key == "buffers")
                            return member.elements([&](const Reader &element) {
                              return readBuffer(element, manifest.buffers.emplace_back());
                            });
                          if (key == "steps")
                            return member.elements([&](const Reader &element) {
                              return readStep(element, manifest.steps.emplace_back());
                            });
                          if (key == "results")
                            return member.elements([&](const Reader &element) {
                              return readResult(element, manifest.results.emplace_back());
                            });
                          return member.unknownKey();
                        });
}

} // namespace

bool parseManifest(const std::string &text, Manifest &manifest, std::string &error) {
  manifest = Manifest();
  error.clear();
  if (tooDeep(text)) {
    error = "manifest: nested too deeply";
    return false;
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    error = "manifest: not JSON: " + llvm::toString(value.takeError());
    return false;
  }
  // The version first: another version may have other keys.
  const llvm::json::Object *object = value->getAsObject();
  const llvm::json::Value *version = object ? object->get("version") : nullptr;
  if (version && !readVersion(Reader(*version, "version", error)))
    return false;
  if (!readManifest(Reader(*value, "", error), manifest))
    return false;
  error = manifest_text::findContradiction(manifest);
  return error.empty();
}

} // namespace hloc
