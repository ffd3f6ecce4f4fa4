// Reads a manifest without trusting it: each read names its JSON path when it fails; ManifestCheck.cpp refuses what
// is well formed but contradicts itself.

#include "hloc/kernel/Manifest.h"

#include "ManifestReader.h"
#include "TensorMapText.h"

#include "fmt/format.h"
#include "llvm/Support/JSON.h"

namespace hloc {

using namespace manifest_text;

namespace {

/// LLVM's JSON parser recurses, and so do steps: 2 levels for each loop or conditional around one.
constexpr unsigned maxDepth = 200;

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
                          if (key == "tensor_map")
                            return readTensorMap(member, parameter.tensorMap.emplace());
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

bool readRejection(const Reader &reader, HeroRejection &rejection) {
  return reader.members({"hero", "reason"}, [&](llvm::StringRef key, const Reader &member) {
    return key == "hero"     ? member.read(rejection.hero)
           : key == "reason" ? member.read(rejection.reason)
                             : member.unknownKey();
  });
}

bool readRemark(const Reader &reader, KernelRemark &remark) {
  return reader.members({"kind", "instruction", "factor", "message"}, [&](llvm::StringRef key, const Reader &member) {
    return key == "kind"          ? member.read(remark.kind)
           : key == "instruction" ? member.read(remark.instruction)
           : key == "factor"      ? member.read(remark.factor)
           : key == "message"     ? member.read(remark.message)
                                  : member.unknownKey();
  });
}

bool readPlace(const Reader &reader, ProofWitness::Place &place) {
  return reader.members({"block", "thread"}, [&](llvm::StringRef key, const Reader &member) {
    return key == "block"    ? member.read(place.block)
           : key == "thread" ? member.read(place.thread)
                             : member.unknownKey();
  });
}

bool readWitness(const Reader &reader, ProofWitness &witness) {
  return reader.members({"places", "buffer"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "places")
      return member.elements([&](const Reader &element) { return readPlace(element, witness.places.emplace_back()); });
    return key == "buffer"    ? member.read(witness.buffer)
           : key == "element" ? member.read(witness.element.emplace())
                              : member.unknownKey();
  });
}

bool readProof(const Reader &reader, PropertyProof &proof) {
  return reader.members({"property", "verdict", "reason"}, [&](llvm::StringRef key, const Reader &member) {
    return key == "property"  ? member.read(proof.property, ProofProperty::BarriersReached)
           : key == "verdict" ? member.read(proof.verdict, ProofVerdict::Refuted)
           : key == "reason"  ? member.read(proof.reason)
           : key == "witness" ? readWitness(member, proof.witness.emplace())
                              : member.unknownKey();
  });
}

bool readKernel(const Reader &reader, KernelSpec &kernel) {
  return reader.members({"name", "grid", "block", "parameters"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "name")
      return member.read(kernel.name);
    if (key == "instruction")
      return member.read(kernel.instruction);
    if (key == "line")
      return member.read(kernel.line);
    if (key == "op_name")
      return member.read(kernel.opName);
    if (key == "grid")
      return member.read(kernel.grid);
    if (key == "block")
      return member.read(kernel.block);
    if (key == "static_shared_bytes")
      return member.read(kernel.staticSharedBytes);
    if (key == "dynamic_shared_bytes")
      return member.read(kernel.dynamicSharedBytes);
    if (key == "cluster")
      return member.read(kernel.cluster.emplace());
    if (key == "programmatic")
      return member.read(kernel.programmatic);
    if (key == "hero")
      return member.read(kernel.hero);
    if (key == "plan")
      return member.read(kernel.plan);
    if (key == "rejections")
      return member.elements(
          [&](const Reader &element) { return readRejection(element, kernel.rejections.emplace_back()); });
    if (key == "remarks")
      return member.elements([&](const Reader &element) { return readRemark(element, kernel.remarks.emplace_back()); });
    if (key == "proofs")
      return member.elements([&](const Reader &element) { return readProof(element, kernel.proofs.emplace_back()); });
    if (key == "bytes_read")
      return member.read(kernel.bytesRead);
    if (key == "bytes_written")
      return member.read(kernel.bytesWritten);
    if (key == "planned_registers")
      return member.read(kernel.plannedRegisters);
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
    if (key == "offset")
      return member.read(buffer.offset);
    if (key == "donated")
      return member.read(buffer.donated);
    if (key == "data")
      return member.readHex(buffer.constantData);
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
                            return readSteps(member, manifest.steps);
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
