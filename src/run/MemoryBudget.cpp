#include "MemoryBudget.h"

#include "Execute.h"

#include "hloc/interp/Interpreter.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <unistd.h>

namespace hloc {

uint64_t machineMemory() {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  // What a container may take, by the first and the second version of control groups.
  for (const char *file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::string error;
    uint64_t limit = 0;
    if (std::optional<std::string> text = readFile(file, error);
        text && !llvm::StringRef(*text).trim().getAsInteger(10, limit) && limit)
      bytes = std::min(bytes, limit);
  }
  return bytes;
}

static uint64_t bytesOf(const Shape &shape) {
  uint64_t bytes = 0;
  for (const Shape::Leaf &leaf : shape.leaves())
    if (leaf.shape.isArray())
      bytes =
          llvm::SaturatingMultiplyAdd<uint64_t>(leaf.shape.numElements(), hostBytes(leaf.shape.elementType()), bytes);
  return bytes;
}

MemoryBudget::MemoryBudget(const RunOptions &options)
    : bytes(options.memoryBytes ? options.memoryBytes : machineMemory()), isGiven(options.memoryBytes) {
  const emulator::EmulatorOptions machine = emulatorOptions(options);
  checksBounds = machine.checkBounds;
  checksUninit = machine.checkUninit;
  checksRaces = machine.checkRaces;
}

uint64_t MemoryBudget::rest(uint64_t taken) const {
  const uint64_t left = bytes - std::min(bytes, taken);
  return isGiven ? left : std::min(left, InterpreterOptions().maxBytes);
}

bool MemoryBudget::admit(const HloModule &module, const DeviceProgram *program, bool compares,
                         DiagnosticEngine &diagnostics) {
  const HloInstruction *largest = module.entry()->root();
  results = bytesOf(largest->shape());
  arguments = device = 0;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    arguments = llvm::SaturatingAdd(arguments, bytesOf(parameter->shape()));
    if (bytesOf(parameter->shape()) > bytesOf(largest->shape()))
      largest = parameter;
  }
  if (program) {
    const std::vector<bool> written = findWritten(*program);
    for (auto [number, buffer] : llvm::enumerate(program->buffers)) {
      // Who wrote a byte takes a byte, and who touched 4 bytes last half of one, while a kernel runs that writes it.
      const bool isInput = buffer.contents == DeviceBuffer::Contents::Input;
      uint64_t ofBuffer = isInput && checksBounds && !written[number] ? 0 : buffer.bytes;
      if (buffer.contents == DeviceBuffer::Contents::Unwritten && checksUninit)
        ofBuffer = llvm::SaturatingAdd(ofBuffer, buffer.bytes);
      if (written[number] && checksRaces)
        ofBuffer = llvm::SaturatingAdd(ofBuffer, buffer.bytes / 8);
      device = llvm::SaturatingAdd(device, ofBuffer);
    }
  }
  const uint64_t atOnce = llvm::SaturatingAdd(arguments, results, std::max(device, compares ? results : 0));
  if (atOnce <= bytes)
    return true;
  auto text = [](uint64_t size) { return fmt::format("{:.3g} GiB", double(size) / double(uint64_t(1) << 30)); };
  diagnostics
      .report(DiagnosticKind::UnsupportedFeature, largest->range(),
              fmt::format("the run needs about {} of memory, which is more than {}: {} of arguments, {} of results, {} "
                          "of device memory, of which `{}` is the largest",
                          text(atOnce), text(bytes), text(arguments), text(results), text(device),
                          largest->name().str()))
      .note("`--memory=GIB` allows more, `--shrink` runs a smaller module of the same form");
  return false;
}

} // namespace hloc
