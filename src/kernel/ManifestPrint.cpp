#include "hloc/kernel/Manifest.h"

#include "ManifestText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : json(os, /*IndentSize=*/2) {}

  void print(const Manifest &manifest) {
    json.object([&] {
      json.attribute("version", Manifest::currentVersion);
      json.attribute("module", manifest.module);
      json.attribute("target", manifest.target);
      json.attribute("ptx_version", manifest.ptxVersion);
      json.attributeArray("tools", [&] {
        for (const auto &[name, version] : manifest.toolVersions)
          json.object([&] {
            json.attribute("name", name);
            json.attribute("version", version);
          });
      });
      list("kernels", manifest.kernels);
      list("buffers", manifest.buffers);
      list("steps", manifest.steps);
      list("results", manifest.results);
    });
  }

private:
  template <typename Element> void list(llvm::StringRef name, const std::vector<Element> &elements) {
    json.attributeArray(name, [&] {
      for (const Element &element : elements)
        json.object([&] { print(element); });
    });
  }

  /// Short lists of numbers on one line: `"grid": [12288, 1, 1]`.
  template <typename Numbers> void numbers(llvm::StringRef name, const Numbers &values) {
    std::string text;
    for (uint64_t value : values)
      text += (text.empty() ? "" : ", ") + std::to_string(value);
    json.attributeBegin(name);
    json.rawValue("[" + text + "]");
    json.attributeEnd();
  }
  void extents(llvm::StringRef name, const Dim3 &value) {
    numbers(name, std::initializer_list<uint64_t>{value.x, value.y, value.z});
  }
  void number(llvm::StringRef name, uint64_t value) { json.attribute(name, value); }

  void print(const KernelSpec &kernel) {
    json.attribute("name", kernel.name);
    extents("grid", kernel.grid);
    extents("block", kernel.block);
    number("static_shared_bytes", kernel.staticSharedBytes);
    number("dynamic_shared_bytes", kernel.dynamicSharedBytes);
    json.attribute("hero", kernel.hero);
    json.attribute("hero_why", kernel.heroWhy);
    number("bytes_read", kernel.bytesRead);
    number("bytes_written", kernel.bytesWritten);
    list("parameters", kernel.parameters);
    if (kernel.resources)
      json.attributeObject("resources", [&] { print(*kernel.resources); });
  }

  void print(const KernelParameter &parameter) {
    json.attribute("role", manifest_text::name(parameter.role));
    number("index", parameter.index);
    json.attribute("shape", parameter.shape);
    number("bytes", parameter.bytes);
    number("alignment", parameter.alignment);
    json.attribute("written", parameter.written);
    if (parameter.alias)
      number("alias", *parameter.alias);
  }

  void print(const KernelResources &resources) {
    number("registers", resources.registers);
    number("spill_store_bytes", resources.spillStoreBytes);
    number("spill_load_bytes", resources.spillLoadBytes);
    number("stack_bytes", resources.stackBytes);
    number("shared_bytes", resources.sharedBytes);
    number("barriers", resources.barriers);
  }

  void print(const ModuleBuffer &buffer) {
    json.attribute("kind", manifest_text::name(buffer.kind));
    number("bytes", buffer.bytes);
    json.attribute("shape", buffer.shape);
    if (buffer.kind == ModuleBuffer::Kind::Parameter)
      number("parameter", buffer.parameterNumber);
    if (buffer.kind == ModuleBuffer::Kind::Parameter || buffer.kind == ModuleBuffer::Kind::Result)
      numbers("leaf", buffer.leafIndex);
    if (buffer.kind == ModuleBuffer::Kind::Constant)
      json.attribute("data", llvm::toHex(buffer.constantData, /*LowerCase=*/true));
  }

  void print(const BufferSlice &slice) {
    number("buffer", slice.buffer);
    number("offset", slice.offset);
    number("bytes", slice.bytes);
  }

  void print(const ModuleStep &step) {
    json.attribute("kind", manifest_text::name(step.kind));
    if (step.kind == ModuleStep::Kind::Launch)
      number("kernel", step.kernel);
    list("arguments", step.arguments);
  }

  void print(const ModuleResult &result) {
    numbers("leaf", result.leafIndex);
    json.attributeObject("slice", [&] { print(result.slice); });
    json.attribute("shape", result.shape);
  }

  llvm::json::OStream json;
};

} // namespace

std::string printManifest(const Manifest &manifest) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Printer(stream).print(manifest);
  text += '\n';
  return text;
}

} // namespace hloc
