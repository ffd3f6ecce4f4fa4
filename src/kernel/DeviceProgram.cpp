#include "hloc/kernel/DeviceProgram.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {

namespace {

/// Elements of less than a byte are stored by atomics on the 32-bit words around them.
bool storesWholeWords(const std::string &shape) {
  return llvm::any_of(std::initializer_list<const char *>{"s1[", "u1[", "s2[", "u2[", "s4[", "u4[", "f4e2m1fn["},
                      [&](const char *type) { return shape.starts_with(type); });
}

uint64_t wholeWords(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

/// A slice at the end of its buffer grows to whole words, and the buffer with it.
void widen(BufferSlice &slice, uint64_t bufferBytes, DeviceProgram &program) {
  if (slice.offset + slice.bytes < bufferBytes)
    return;
  slice.bytes = wholeWords(slice.offset + slice.bytes) - slice.offset;
  DeviceBuffer &buffer = program.buffers[slice.buffer];
  buffer.bytes = std::max(buffer.bytes, slice.offset + slice.bytes);
}

std::string leafText(llvm::ArrayRef<uint32_t> leaf) {
  return leaf.empty() ? "" : fmt::format("{{{}}}", fmt::join(leaf, ","));
}

std::string nameOf(const ModuleBuffer &buffer, size_t index) {
  switch (buffer.kind) {
  case ModuleBuffer::Kind::Parameter:
    return fmt::format("p{}{}", buffer.parameterNumber, leafText(buffer.leafIndex));
  case ModuleBuffer::Kind::Result:
    return "result" + leafText(buffer.leafIndex);
  case ModuleBuffer::Kind::Temporary:
    return fmt::format("temporary {}", index);
  case ModuleBuffer::Kind::Constant:
    return fmt::format("constant {}", index);
  }
  return "";
}

std::vector<uint32_t> indexOf(const ModuleResult &result) { return result.leafIndex; }
std::vector<uint32_t> indexOf(const LaunchResult &result) { return {result.index.begin(), result.index.end()}; }

/// Puts results into the order of `leaves`.
template <typename Result, typename SliceOf>
bool orderResults(llvm::ArrayRef<Result> results, llvm::ArrayRef<std::vector<uint32_t>> leaves, SliceOf sliceOf,
                  DeviceProgram &program, std::string &error) {
  for (const std::vector<uint32_t> &leaf : leaves) {
    const Result *found = llvm::find_if(results, [&](const Result &result) { return indexOf(result) == leaf; });
    if (found == results.end()) {
      error = fmt::format("no result {} is described", leaf.empty() ? "" : leafText(leaf));
      return false;
    }
    program.results.push_back(sliceOf(*found));
  }
  return true;
}

bool findInput(const InputNumbering &inputs, uint32_t parameter, llvm::ArrayRef<uint32_t> leaf, DeviceBuffer &buffer,
               std::string &error) {
  std::optional<uint32_t> number = inputs(parameter, leaf);
  if (!number) {
    error = fmt::format("the program has no parameter {}{}", parameter, leafText(leaf));
    return false;
  }
  buffer.contents = DeviceBuffer::Contents::Input;
  buffer.input = *number;
  return true;
}

} // namespace

uint64_t sharedTemporaryBytes(const std::vector<ModuleBuffer> &buffers) {
  uint64_t bytes = 0;
  for (const ModuleBuffer &buffer : buffers)
    if (buffer.offset)
      bytes = std::max(bytes, *buffer.offset + placementEnd(buffer.bytes));
  return bytes;
}

uint64_t temporaryBytes(const std::vector<ModuleBuffer> &buffers) {
  uint64_t bytes = sharedTemporaryBytes(buffers);
  for (const ModuleBuffer &buffer : buffers)
    if (buffer.kind == ModuleBuffer::Kind::Temporary && !buffer.offset)
      bytes += placementEnd(buffer.bytes);
  return bytes;
}

std::optional<DeviceProgram> deviceProgram(const Manifest &manifest, const InputNumbering &inputs,
                                           llvm::ArrayRef<std::vector<uint32_t>> leaves, std::string &error) {
  if (const Step *missing = findUnsupported(manifest.steps)) {
    error = describeUnsupported(*missing);
    return std::nullopt;
  }
  DeviceProgram program;
  const uint64_t sharedBytes = sharedTemporaryBytes(manifest.buffers);
  for (size_t i = 0; i < manifest.buffers.size(); ++i) {
    const ModuleBuffer &buffer = manifest.buffers[i];
    DeviceBuffer made;
    made.name = nameOf(buffer, i);
    made.bytes = buffer.bytes;
    if (buffer.offset)
      made.place = DevicePlace{*buffer.offset, sharedBytes};
    if (buffer.kind == ModuleBuffer::Kind::Parameter &&
        !findInput(inputs, buffer.parameterNumber, buffer.leafIndex, made, error))
      return std::nullopt;
    if (buffer.kind == ModuleBuffer::Kind::Constant) {
      made.contents = DeviceBuffer::Contents::Constant;
      made.constant = buffer.constantData;
    }
    program.buffers.push_back(std::move(made));
  }
  for (const KernelSpec &kernel : manifest.kernels) {
    DeviceKernel made{kernel.name,      kernel.grid,         kernel.block,   kernel.dynamicSharedBytes, {},
                      kernel.bytesRead, kernel.bytesWritten, kernel.cluster, kernel.programmatic};
    for (const KernelParameter &parameter : kernel.parameters)
      made.written.push_back(parameter.written);
    program.kernels.push_back(std::move(made));
  }
  program.steps = manifest.steps;
  forEachStep(program.steps, [&](Step &step) {
    auto *launch = std::get_if<LaunchStep>(&step.action);
    for (size_t i = 0; launch && i < launch->arguments.size(); ++i) {
      const KernelParameter &parameter = manifest.kernels[launch->kernel].parameters[i];
      auto *slice = std::get_if<BufferSlice>(&launch->arguments[i]);
      if (slice && storesWholeWords(parameter.shape))
        widen(*slice, manifest.buffers[slice->buffer].bytes, program);
      if (slice && parameter.tensorMap)
        launch->arguments[i] = TensorMapSlice{*slice, *parameter.tensorMap};
    }
  });
  if (!orderResults(
          llvm::ArrayRef(manifest.results), leaves, [](const ModuleResult &result) { return result.slice; }, program,
          error))
    return std::nullopt;
  return program;
}

/// What the kernel finds through addresses in the contents of buffers that it is given, and of those that it so finds.
static void addReached(const LaunchDescription &description, LaunchStep &launch) {
  std::vector<bool> seen(description.buffers.size());
  std::vector<uint32_t> open;
  auto see = [&](const BufferSlice &slice) {
    if (!seen[slice.buffer])
      open.push_back(slice.buffer);
    seen[slice.buffer] = true;
  };
  for (const StepArgument &argument : launch.arguments) {
    if (const auto *slice = sliceOf(argument))
      see(*slice);
    else if (const auto *structure = std::get_if<StructureValue>(&argument))
      for (const AddressPiece &piece : structure->pieces)
        see(piece.slice);
  }
  while (!open.empty()) {
    const std::optional<StructureValue> &contents = description.buffers[open.back()].contents;
    open.pop_back();
    if (!contents)
      continue;
    for (const AddressPiece &piece : contents->pieces) {
      launch.reached.push_back(piece);
      see(piece.slice);
    }
  }
}

/// Whether what lies at the end of a buffer may have elements of less than a byte.
static bool mayBeSubByte(size_t buffer, const LaunchDescription &description, const DeviceProgram &program,
                         const SubByteArrays &subByte, llvm::ArrayRef<std::vector<uint32_t>> leaves) {
  if (description.buffers[buffer].parameter)
    return subByte.inputs[program.buffers[buffer].input];
  for (const LaunchResult &result : description.results) {
    size_t leaf = llvm::find(leaves, indexOf(result)) - leaves.begin();
    bool isLast =
        result.slice.buffer == buffer && result.slice.offset + result.slice.bytes == description.buffers[buffer].bytes;
    if (isLast && leaf < leaves.size())
      return subByte.results[leaf];
  }
  return llvm::is_contained(subByte.inputs, true) || llvm::is_contained(subByte.results, true);
}

std::optional<DeviceProgram> deviceProgram(const LaunchDescription &description, const SubByteArrays &subByte,
                                           const InputNumbering &inputs, llvm::ArrayRef<std::vector<uint32_t>> leaves,
                                           std::string &error) {
  DeviceProgram program;
  for (const LaunchBuffer &buffer : description.buffers) {
    DeviceBuffer made;
    made.name = fmt::format("buffer {}", buffer.id);
    made.bytes = buffer.bytes;
    if (buffer.parameter) {
      if (*buffer.parameter < 0 || *buffer.parameter > UINT32_MAX ||
          !findInput(inputs, uint32_t(*buffer.parameter), {}, made, error)) {
        error = fmt::format("the program has no array parameter {}", *buffer.parameter);
        return std::nullopt;
      }
      made.name = fmt::format("p{}", *buffer.parameter);
    } else if (buffer.contents) {
      made.contents = DeviceBuffer::Contents::Constant;
      made.constant = buffer.contents->data;
      made.pieces = buffer.contents->pieces;
    }
    program.buffers.push_back(std::move(made));
  }
  for (const LaunchKernel &kernel : description.kernels)
    program.kernels.push_back({kernel.name,
                               kernel.grid,
                               kernel.block,
                               kernel.dynamicSharedBytes,
                               {},
                               0,
                               0,
                               kernel.cluster,
                               kernel.programmatic});
  program.steps = description.steps;
  for (Step &step : program.steps) {
    auto *launch = std::get_if<LaunchStep>(&step.action);
    if (!launch)
      continue;
    DeviceKernel &kernel = program.kernels[launch->kernel];
    const uint32_t numInputs = description.kernels[launch->kernel].inputs;
    addReached(description, *launch);
    auto use = [&](BufferSlice &slice, bool written) {
      (written ? kernel.bytesWritten : kernel.bytesRead) += slice.bytes;
    };
    auto useWords = [&](BufferSlice &slice, bool written) {
      if (mayBeSubByte(slice.buffer, description, program, subByte, leaves))
        widen(slice, description.buffers[slice.buffer].bytes, program);
      use(slice, written);
    };
    for (StepArgument &argument : launch->arguments) {
      auto *slice = sliceOf(argument);
      const bool written = slice && kernel.written.size() >= numInputs;
      kernel.written.push_back(written);
      if (std::holds_alternative<BufferSlice>(argument))
        useWords(*slice, written);
      else if (slice)
        use(*slice, written);
      else if (auto *structure = std::get_if<StructureValue>(&argument))
        for (AddressPiece &piece : structure->pieces)
          piece.map ? use(piece.slice, piece.written) : useWords(piece.slice, piece.written);
    }
    for (AddressPiece &piece : launch->reached)
      useWords(piece.slice, piece.written);
  }
  if (!orderResults(
          llvm::ArrayRef(description.results), leaves, [](const LaunchResult &result) { return result.slice; }, program,
          error))
    return std::nullopt;
  return program;
}

} // namespace hloc
