// Steps in a manifest: their words, reading them, and what must hold of each before anything may be launched by it.

#include "ManifestReader.h"

#include "hloc/kernel/LibraryCall.h"

namespace hloc::manifest_text {

llvm::StringRef kindOf(const Step &step) {
  struct Name {
    llvm::StringRef operator()(const LaunchStep &) const { return "launch"; }
    llvm::StringRef operator()(const CopyStep &) const { return "copy"; }
    llvm::StringRef operator()(const FillStep &) const { return "fill"; }
    llvm::StringRef operator()(const CallStep &call) const {
      return call.kind == CallStep::Kind::Library ? "library-call" : "external";
    }
    llvm::StringRef operator()(const WhileStep &) const { return "while"; }
    llvm::StringRef operator()(const ConditionalStep &) const { return "conditional"; }
    llvm::StringRef operator()(const UnsupportedStep &) const { return "unsupported"; }
  };
  return std::visit(Name(), step.action);
}

bool setKind(llvm::StringRef kind, Step &step) {
  const decltype(Step::action) all[] = {LaunchStep(),
                                        CopyStep(),
                                        FillStep(),
                                        CallStep{CallStep::Kind::Library, "", "", {}, {}},
                                        CallStep{CallStep::Kind::External, "", "", {}, {}},
                                        WhileStep(),
                                        ConditionalStep(),
                                        UnsupportedStep()};
  for (const auto &action : all) {
    step.action = action;
    if (kindOf(step) == kind)
      return true;
  }
  return false;
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

namespace {

bool readStep(const Reader &reader, Step &step);

bool readSlices(const Reader &reader, std::vector<BufferSlice> &slices) {
  return reader.elements([&](const Reader &element) { return readSlice(element, slices.emplace_back()); });
}

/// A slice, or a value (`{"value": 7, "bytes": 4}`).
bool readArgument(const Reader &reader, StepArgument &argument) {
  if (!reader.has("value"))
    return readSlice(reader, argument.emplace<BufferSlice>());
  auto &scalar = argument.emplace<ScalarValue>();
  return reader.members({"value", "bytes"}, [&](llvm::StringRef key, const Reader &member) {
    return key == "value"   ? member.read(scalar.value)
           : key == "bytes" ? member.read(scalar.bytes)
                            : member.unknownKey();
  });
}

// One a kind of step: its keys, and what each is read into.

bool readAction(const Reader &reader, LaunchStep &launch) {
  return reader.stepMembers({"kernel", "arguments"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "kernel")
      return member.read(launch.kernel);
    return member.elements(
        [&](const Reader &element) { return readArgument(element, launch.arguments.emplace_back()); });
  });
}

bool readAction(const Reader &reader, CopyStep &copy) {
  return reader.stepMembers({"from", "to"}, [&](llvm::StringRef key, const Reader &member) {
    return readSlice(member, key == "from" ? copy.from : copy.to);
  });
}

bool readAction(const Reader &reader, FillStep &fill) {
  return reader.stepMembers({"to", "value"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "to")
      return readSlice(member, fill.to);
    uint32_t value = 0;
    if (!member.read(value))
      return false;
    fill.value = uint8_t(value);
    return value < 256 || member.fail("expected a byte");
  });
}

bool readAction(const Reader &reader, CallStep &call) {
  return reader.stepMembers({"function", "configuration", "reads", "writes"},
                            [&](llvm::StringRef key, const Reader &member) {
                              if (key == "function" || key == "configuration")
                                return member.read(key == "function" ? call.function : call.configuration);
                              return readSlices(member, key == "reads" ? call.reads : call.writes);
                            });
}

bool readAction(const Reader &reader, WhileStep &loop) {
  auto read = [&](llvm::StringRef key, const Reader &member) {
    if (key == "predicate")
      return readSlice(member, loop.predicate);
    if (key == "rounds")
      return member.read(loop.rounds);
    return readSteps(member, key == "condition" ? loop.condition : loop.body);
  };
  return reader.has("condition") ? reader.stepMembers({"condition", "predicate", "body"}, read, "rounds")
                                 : reader.stepMembers({"body", "rounds"}, read);
}

bool readAction(const Reader &reader, ConditionalStep &choice) {
  return reader.stepMembers({"selector", "branches"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "selector")
      return readSlice(member, choice.selector);
    return member.elements([&](const Reader &branch) { return readSteps(branch, choice.branches.emplace_back()); });
  });
}

bool readAction(const Reader &reader, UnsupportedStep &unsupported) {
  return reader.stepMembers({"reason", "reads", "writes"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "reason")
      return member.read(unsupported.reason);
    return readSlices(member, key == "reads" ? unsupported.reads : unsupported.writes);
  });
}

bool readStep(const Reader &reader, Step &step) {
  std::string kind;
  bool known = reader.members({"kind", "name"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "name")
      return member.read(step.name);
    if (key != "kind")
      return true; // the kind's own, below
    return member.read(kind) &&
           (manifest_text::setKind(kind, step) || member.fail(fmt::format("unknown word `{}`", kind)));
  });
  return known && std::visit([&](auto &action) { return readAction(reader, action); }, step.action);
}

std::string checkWritten(const Manifest &manifest, const BufferSlice &slice) {
  const ModuleBuffer &buffer = manifest.buffers[slice.buffer];
  if (buffer.kind == ModuleBuffer::Kind::Constant)
    return fmt::format("writes constant buffer {}", slice.buffer);
  if (buffer.kind == ModuleBuffer::Kind::Parameter && !buffer.donated)
    return fmt::format("writes parameter buffer {}, which is not donated", slice.buffer);
  return "";
}

class StepChecker {
public:
  explicit StepChecker(const Manifest &manifest) : manifest(manifest) {}

  std::string operator()(const LaunchStep &launch) const {
    if (launch.kernel >= manifest.kernels.size())
      return fmt::format("there is no kernel {}", launch.kernel);
    const KernelSpec &kernel = manifest.kernels[launch.kernel];
    if (launch.arguments.size() != kernel.parameters.size())
      return fmt::format("{} arguments for the {} parameters of `{}`", launch.arguments.size(),
                         kernel.parameters.size(), kernel.name);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      std::string why = checkArgument(kernel.parameters[i], launch.arguments[i]);
      if (why.empty() && kernel.parameters[i].tensorMap)
        why = checkMapped(launch, kernel, i);
      if (!why.empty())
        return fmt::format("arguments[{}]: {}", i, why);
    }
    return "";
  }
  std::string operator()(const CopyStep &copy) const {
    if (copy.from.bytes != copy.to.bytes)
      return "a copy needs two slices of the same size";
    bool apart = copy.from.buffer != copy.to.buffer || copy.from.offset + copy.from.bytes <= copy.to.offset ||
                 copy.to.offset + copy.to.bytes <= copy.from.offset;
    return apart ? checkWritten(manifest, copy.to) : "a copy onto itself";
  }
  std::string operator()(const FillStep &fill) const { return checkWritten(manifest, fill.to); }
  std::string operator()(const CallStep &call) const {
    if (call.function.empty())
      return "a call of nothing";
    for (const BufferSlice &slice : call.writes)
      if (std::string why = checkWritten(manifest, slice); !why.empty())
        return why;
    return call.kind == CallStep::Kind::Library ? checkLibraryCall(call) : "";
  }
  std::string operator()(const WhileStep &loop) const {
    if (loop.isCounted() ? !loop.condition.empty() || !loop.rounds : loop.predicate.bytes != 1)
      return "a predicate is one byte, and only what is counted does without";
    std::string why = checkSteps(manifest, loop.condition, "condition");
    return why.empty() ? checkSteps(manifest, loop.body, "body") : why;
  }
  std::string operator()(const ConditionalStep &choice) const {
    bool isPredicate = choice.selector.bytes == 1;
    if (!isPredicate && choice.selector.bytes != 4)
      return "a selector is a predicate of one byte or an s32";
    if (choice.branches.empty() || (isPredicate && choice.branches.size() != 2))
      return fmt::format("{} branches", choice.branches.size());
    for (size_t i = 0; i < choice.branches.size(); ++i)
      if (std::string why = checkSteps(manifest, choice.branches[i], fmt::format("branches[{}]", i)); !why.empty())
        return why;
    return "";
  }

  std::string operator()(const UnsupportedStep &unsupported) const {
    if (unsupported.reason.empty())
      return "an unsupported step without a reason";
    for (const BufferSlice &slice : unsupported.writes)
      if (std::string why = checkWritten(manifest, slice); !why.empty())
        return why;
    return "";
  }

private:
  /// That the memory of a map is that of its pointer.
  static std::string checkMapped(const LaunchStep &launch, const KernelSpec &kernel, size_t map) {
    const size_t pointer = *findPointer(kernel, kernel.parameters[map]);
    if (launch.arguments[map] == launch.arguments[pointer])
      return "";
    return fmt::format("a tensor map of other memory than arguments[{}], which points to its buffer", pointer);
  }

  std::string checkArgument(const KernelParameter &parameter, const StepArgument &argument) const {
    const auto *slice = sliceOf(argument);
    if (!slice)
      return "a value for a parameter that is a pointer";
    if (slice->bytes < parameter.bytes)
      return fmt::format("{} bytes for a parameter of {}", slice->bytes, parameter.bytes);
    if (slice->offset % parameter.alignment)
      return fmt::format("offset {} is not aligned to {}", slice->offset, parameter.alignment);
    return parameter.written ? checkWritten(manifest, *slice) : "";
  }

  const Manifest &manifest;
};

} // namespace

bool readSteps(const Reader &reader, Steps &steps) {
  return reader.elements([&](const Reader &element) { return readStep(element, steps.emplace_back()); });
}

std::string checkSlice(const Manifest &manifest, const BufferSlice &slice) {
  if (slice.buffer >= manifest.buffers.size())
    return fmt::format("there is no buffer {}", slice.buffer);
  uint64_t bytes = manifest.buffers[slice.buffer].bytes;
  if (slice.offset > bytes || slice.bytes > bytes - slice.offset)
    return fmt::format("bytes {} to {}+{} leave buffer {} of {} bytes", slice.offset, slice.offset, slice.bytes,
                       slice.buffer, bytes);
  return "";
}

std::string checkSteps(const Manifest &manifest, const Steps &steps, const std::string &path) {
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string why;
    forEachSlice(steps[i], [&](const BufferSlice &slice) {
      if (why.empty())
        why = checkSlice(manifest, slice);
    });
    if (why.empty())
      why = std::visit(StepChecker(manifest), steps[i].action);
    if (!why.empty())
      return fmt::format("{}[{}]: {}", path, i, why);
  }
  return "";
}

} // namespace hloc::manifest_text
