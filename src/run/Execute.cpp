#include "Execute.h"

#include "hloc/kernel/DeviceProgram.h"
#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

emulator::EmulatorOptions emulatorOptions(const RunOptions &options) {
  emulator::EmulatorOptions result;
  result.countEvents = options.countsEvents || options.estimates;
  result.checkUpdates = true;
  if (uint64_t seed = options.seed; options.approximations != "exact") {
    if (!options.approximations.empty())
      llvm::StringRef(options.approximations).getAsInteger(10, seed);
    for (auto [name, value] : {std::pair("largest", emulator::EmulatorOptions::largestApproximations),
                               std::pair("smallest", emulator::EmulatorOptions::smallestApproximations),
                               std::pair("hopper", emulator::EmulatorOptions::hopperApproximations)})
      if (options.approximations == name)
        seed = value;
    result.approximationSeed = seed;
  }
  result.schedule = options.schedule.value_or(emulator::Schedule());
  result.deadline = options.deadline;
  if (options.checks.empty())
    return result;
  result.checkBounds = result.checkUninit = result.checkRaces = result.checkDivergence = false;
  for (const std::string &check : options.checks) {
    bool all = check == "all";
    for (auto [name, flag] : {std::pair("bounds", &emulator::EmulatorOptions::checkBounds),
                              std::pair("races", &emulator::EmulatorOptions::checkRaces),
                              std::pair("uninit", &emulator::EmulatorOptions::checkUninit),
                              std::pair("divergence", &emulator::EmulatorOptions::checkDivergence)})
      if (all || check == name)
        result.*flag = true;
  }
  return result;
}

static void findLeaves(const Literal &value, const Shape &shape, std::vector<const Literal *> &leaves) {
  if (!shape.isTuple()) {
    leaves.push_back(&value);
    return;
  }
  for (auto [element, elementShape] : llvm::zip_equal(value.elements(), shape.elements()))
    findLeaves(element, elementShape, leaves);
}

std::vector<const Literal *> leavesOf(const Literal &value, const Shape &shape) {
  std::vector<const Literal *> leaves;
  findLeaves(value, shape, leaves);
  return leaves;
}

static Literal join(const Shape &shape, llvm::MutableArrayRef<Literal> &leaves) {
  if (!shape.isTuple()) {
    Literal leaf = std::move(leaves.front());
    leaves = leaves.drop_front();
    return leaf;
  }
  std::vector<Literal> elements;
  for (const Shape &element : shape.elements())
    elements.push_back(join(element, leaves));
  return Literal::tuple(std::move(elements));
}

Literal joinLeaves(const Shape &shape, std::vector<Literal> leaves) {
  llvm::MutableArrayRef<Literal> rest = leaves;
  Literal value = join(shape, rest);
  HLOC_CHECK(rest.empty(), "more leaves than the shape has");
  return value;
}

std::optional<Literal> downloadLeaf(Device &device, BufferSlice slice, const Shape &shape, std::string &error) {
  if (shape.isToken())
    return Literal::tuple({}); // as the interpreter has it
  const uint64_t wanted = uint64_t(shape.byteSize());
  if (slice.bytes < wanted) {
    error = fmt::format("a result of {} bytes for {}", slice.bytes, shape.toString());
    return std::nullopt;
  }
  slice.bytes = wanted;
  if (isDeviceOrder(shape)) {
    Literal value(shape);
    if (wanted && !device.download(slice, value.mutableBytes().data(), error))
      return std::nullopt;
    return value;
  }
  std::vector<uint8_t> bytes(wanted);
  if (!device.download(slice, bytes.data(), error))
    return std::nullopt;
  return fromDeviceBytes(shape, bytes);
}

bool Executor::check(bool worked, const std::string &error) {
  if (!worked && !error.empty())
    diagnostics.report(DiagnosticKind::BadLaunch, error);
  return worked;
}

static std::vector<uint32_t> indexOf(const Shape::Leaf &leaf) { return {leaf.index.begin(), leaf.index.end()}; }

static std::optional<DeviceProgram> convert(const Manifest &manifest, const SubByteArrays &,
                                            const InputNumbering &inputs, llvm::ArrayRef<std::vector<uint32_t>> leaves,
                                            std::string &error) {
  return deviceProgram(manifest, inputs, leaves, error);
}
static std::optional<DeviceProgram> convert(const LaunchDescription &description, const SubByteArrays &subByte,
                                            const InputNumbering &inputs, llvm::ArrayRef<std::vector<uint32_t>> leaves,
                                            std::string &error) {
  return deviceProgram(description, subByte, inputs, leaves, error);
}

template <typename Source> std::optional<DeviceProgram> Executor::make(const Source &source) {
  SubByteArrays subByte;
  auto isSubByte = [](const Shape::Leaf &leaf) {
    return leaf.shape.isArray() && leaf.shape.elementType() != ElementType::Pred &&
           bitWidth(leaf.shape.elementType()) < 8;
  };
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> inputs;
  for (const HloInstruction *parameter : module.entry()->parameters())
    for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
      inputs.emplace_back(uint32_t(parameter->parameterNumber()), indexOf(leaf));
      subByte.inputs.push_back(isSubByte(leaf));
    }
  auto number = [&](uint32_t parameter, llvm::ArrayRef<uint32_t> leaf) -> std::optional<uint32_t> {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].first == parameter && llvm::ArrayRef(inputs[i].second) == leaf)
        return uint32_t(i);
    return std::nullopt;
  };
  std::vector<std::vector<uint32_t>> leaves;
  for (const Shape::Leaf &leaf : module.entry()->root()->shape().leaves()) {
    leaves.push_back(indexOf(leaf));
    subByte.results.push_back(isSubByte(leaf));
  }
  std::string error;
  std::optional<DeviceProgram> program = convert(source, subByte, number, leaves, error);
  check(program.has_value(), error);
  return program;
}

std::optional<DeviceProgram> Executor::programOf(const Manifest &manifest) {
  if (const Step *missing = findUnsupported(manifest.steps)) {
    diagnostics
        .report(DiagnosticKind::UnsupportedFeature,
                "the manifest is that of a part of the module: " + describeUnsupported(*missing))
        .note("`hloc run --only=NAME` runs one kernel of it");
    return std::nullopt;
  }
  const Step *external = nullptr;
  forEachStep(manifest.steps, [&](const Step &step) {
    const auto *call = std::get_if<CallStep>(&step.action);
    if (!external && call && call->kind == CallStep::Kind::External)
      external = &step;
  });
  if (external) {
    const std::string &function = std::get<CallStep>(external->action).function;
    diagnostics
        .report(DiagnosticKind::UnsupportedFeature,
                fmt::format("step `{}` is external: nobody is there to supply `{}`", external->name, function))
        .note("`hloc run --only=NAME` runs one kernel of the module");
    return std::nullopt;
  }
  return make(manifest);
}
std::optional<DeviceProgram> Executor::programOf(const LaunchDescription &description) { return make(description); }

/// The parameter's layout in device memory is that of the entry computation. `storage` holds what had to be reordered.
static llvm::ArrayRef<uint8_t> bytesWithLayout(const Literal &value, const Shape &shape,
                                               std::vector<uint8_t> &storage) {
  return isDeviceOrder(shape) ? value.bytes() : llvm::ArrayRef(storage = toDeviceBytes(value, shape));
}

std::vector<bool> findWritten(const DeviceProgram &program) {
  std::vector<bool> written(program.buffers.size());
  forEachStep(program.steps, [&](const Step &step) {
    if (const auto *copy = std::get_if<CopyStep>(&step.action))
      written[copy->to.buffer] = true;
    else if (const auto *fill = std::get_if<FillStep>(&step.action))
      written[fill->to.buffer] = true;
    else if (const auto *call = std::get_if<CallStep>(&step.action))
      for (const BufferSlice &slice : call->writes)
        written[slice.buffer] = true;
    else if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      forEachWritten(program.kernels[launch->kernel], *launch,
                     [&](const BufferSlice &slice) { written[slice.buffer] = true; });
  });
  return written;
}

bool Executor::prepare(Device &device, const DeviceProgram &program, llvm::ArrayRef<Literal> arguments) {
  std::vector<const Literal *> values;
  std::vector<Shape> shapes;
  for (auto [parameter, argument] : llvm::zip_equal(module.entry()->parameters(), arguments)) {
    llvm::append_range(values, leavesOf(argument, parameter->shape()));
    for (const Shape::Leaf &leaf : parameter->shape().leaves())
      shapes.push_back(leaf.shape);
  }
  const std::vector<bool> written = findWritten(program);
  std::string error;
  for (const DeviceBuffer &buffer : program.buffers)
    if (!check(device.allocate(buffer, error), error))
      return false;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const DeviceBuffer &buffer = program.buffers[i];
    std::string constant;
    std::vector<uint8_t> storage;
    llvm::ArrayRef<uint8_t> bytes;
    if (buffer.contents == DeviceBuffer::Contents::Input)
      bytes = bytesWithLayout(*values[buffer.input], shapes[buffer.input], storage);
    else if (buffer.contents == DeviceBuffer::Contents::Constant && buffer.pieces.empty())
      bytes = llvm::arrayRefFromStringRef(buffer.constant);
    else if (buffer.contents == DeviceBuffer::Contents::Constant) {
      constant = buffer.constant;
      if (!check(fillAddresses(device, buffer.pieces, constant, error), error))
        return false;
      bytes = llvm::arrayRefFromStringRef(constant);
    } else
      continue;
    if (bytes.size() > buffer.bytes)
      return check(false,
                   fmt::format("`{}` has {} bytes, its value takes {}", buffer.name, buffer.bytes, bytes.size()));
    // The arguments' own bytes stay where they are; reordered ones do not.
    const bool lends = buffer.contents == DeviceBuffer::Contents::Input && storage.empty() && !written[i];
    if (!check(lends ? device.lend(i, bytes.data(), bytes.size(), error)
                     : device.upload(i, bytes.data(), bytes.size(), error),
               error))
      return false;
  }
  return true;
}

bool Executor::load(Device &device, const std::string &image, const DeviceProgram &program) {
  std::string error;
  {
    TimedScope scope(timing, "load");
    if (!device.load(image, error)) {
      if (device.isTooOld())
        diagnostics.report(DiagnosticKind::UnsupportedTarget, error);
      else
        check(false, error);
      return false;
    }
  }
  TimedScope scope(timing, "translate");
  for (const DeviceKernel &kernel : program.kernels)
    if (kernel.grid.count() && !check(device.prepare(kernel, error), error))
      return false;
  return true;
}

llvm::FailureOr<Literal> Executor::execute(Device &device, const DeviceProgram &program,
                                           llvm::ArrayRef<Literal> arguments, StepListener *listener,
                                           const Issue &issue) {
  std::string error;
  {
    TimedScope scope(timing, "upload");
    if (!prepare(device, program, arguments))
      return llvm::failure();
  }
  {
    TimedScope scope(timing, "execute");
    const bool issued = issue ? issue(error) : issueSteps(device, program, program.steps, error, listener);
    if (!check(issued, error) || !check(device.synchronize(error), error))
      return llvm::failure();
  }
  TimedScope scope(timing, "fetch results");
  return collect(device, program);
}

llvm::FailureOr<Literal> Executor::collect(Device &device, const DeviceProgram &program) {
  const Shape &shape = module.entry()->root()->shape();
  std::vector<Literal> values;
  for (auto [leaf, slice] : llvm::zip_equal(shape.leaves(), program.results)) {
    std::string error;
    std::optional<Literal> value = downloadLeaf(device, slice, leaf.shape, error);
    if (!check(value.has_value(), error))
      return llvm::failure();
    values.push_back(std::move(*value));
  }
  return joinLeaves(shape, std::move(values));
}

} // namespace hloc
