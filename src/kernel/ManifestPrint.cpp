#include "hloc/kernel/Manifest.h"

#include "ManifestText.h"
#include "TensorMapText.h"

#include "hloc/support/Check.h"

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
    json.attribute("instruction", llvm::json::fixUTF8(kernel.instruction));
    number("line", kernel.line);
    json.attribute("op_name", llvm::json::fixUTF8(kernel.opName));
    extents("grid", kernel.grid);
    extents("block", kernel.block);
    number("static_shared_bytes", kernel.staticSharedBytes);
    number("dynamic_shared_bytes", kernel.dynamicSharedBytes);
    if (kernel.cluster)
      extents("cluster", *kernel.cluster);
    if (kernel.programmatic)
      json.attribute("programmatic", true);
    json.attribute("hero", kernel.hero);
    json.attribute("plan", kernel.plan);
    list("rejections", kernel.rejections);
    list("remarks", kernel.remarks);
    if (!kernel.proofs.empty())
      list("proofs", kernel.proofs);
    number("bytes_read", kernel.bytesRead);
    number("bytes_written", kernel.bytesWritten);
    if (kernel.plannedRegisters != KernelSpec::usualRegisters)
      number("planned_registers", kernel.plannedRegisters);
    list("parameters", kernel.parameters);
    if (kernel.resources)
      json.attributeObject("resources", [&] { print(*kernel.resources); });
  }

  void print(const HeroRejection &rejection) {
    json.attribute("hero", rejection.hero);
    json.attribute("reason", rejection.reason);
  }

  void print(const KernelRemark &remark) {
    json.attribute("kind", remark.kind);
    json.attribute("instruction", remark.instruction);
    number("factor", remark.factor);
    json.attribute("message", remark.message);
  }

  void print(const PropertyProof &proof) {
    json.attribute("property", text(proof.property));
    json.attribute("verdict", text(proof.verdict));
    json.attribute("reason", llvm::json::fixUTF8(proof.reason));
    if (proof.witness)
      json.attributeObject("witness", [&] { print(*proof.witness); });
  }

  void print(const ProofWitness &witness) {
    json.attributeArray("places", [&] {
      for (const ProofWitness::Place &place : witness.places)
        json.object([&] {
          number("block", place.block);
          number("thread", place.thread);
        });
    });
    json.attribute("buffer", llvm::json::fixUTF8(witness.buffer));
    if (witness.element)
      json.attribute("element", *witness.element);
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
    if (parameter.tensorMap)
      manifest_text::printTensorMap(json, *parameter.tensorMap);
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
    if (buffer.offset)
      number("offset", *buffer.offset);
    if (buffer.donated)
      json.attribute("donated", true);
    if (buffer.kind == ModuleBuffer::Kind::Constant)
      json.attribute("data", llvm::toHex(buffer.constantData, /*LowerCase=*/true));
  }

  void print(const BufferSlice &slice) {
    number("buffer", slice.buffer);
    number("offset", slice.offset);
    number("bytes", slice.bytes);
  }

  void slice(llvm::StringRef name, const BufferSlice &value) {
    json.attributeObject(name, [&] { print(value); });
  }

  void print(const Step &step) {
    json.attribute("kind", manifest_text::kindOf(step));
    json.attribute("name", step.name);
    std::visit([&](const auto &action) { print(action); }, step.action);
  }

  void print(const LaunchStep &launch) {
    number("kernel", launch.kernel);
    json.attributeArray("arguments", [&] {
      for (const auto &argument : launch.arguments)
        json.object([&] { std::visit([&](const auto &value) { print(value); }, argument); });
    });
  }
  void print(const TensorMapSlice &) {
    HLOC_UNREACHABLE("a launch names the memory of a map, its kernel says the rest");
  }
  void print(const ScalarValue &scalar) {
    number("value", scalar.value);
    number("bytes", scalar.bytes);
  }
  void print(const StructureValue &) { HLOC_UNREACHABLE("a kernel of ours takes a structure"); }
  void print(const CopyStep &copy) {
    slice("from", copy.from);
    slice("to", copy.to);
  }
  void print(const FillStep &fill) {
    slice("to", fill.to);
    number("value", fill.value);
  }
  void print(const CallStep &call) {
    json.attribute("function", call.function);
    json.attribute("configuration", call.configuration);
    list("reads", call.reads);
    list("writes", call.writes);
  }
  void print(const WhileStep &loop) {
    if (!loop.isCounted()) {
      list("condition", loop.condition);
      slice("predicate", loop.predicate);
    }
    list("body", loop.body);
    if (loop.rounds)
      number("rounds", *loop.rounds);
  }
  void print(const ConditionalStep &choice) {
    slice("selector", choice.selector);
    json.attributeArray("branches", [&] {
      for (const Steps &branch : choice.branches)
        json.array([&] {
          for (const Step &step : branch)
            json.object([&] { print(step); });
        });
    });
  }

  void print(const UnsupportedStep &unsupported) {
    json.attribute("reason", llvm::json::fixUTF8(unsupported.reason));
    list("reads", unsupported.reads);
    list("writes", unsupported.writes);
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
