#include "UndefinedReads.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace hloc {

namespace {

template <typename Visit> void forEachSlice(DeviceProgram &program, const Visit &visit) {
  forEachStep(program.steps, [&](Step &step) { forEachSlice(step, visit); });
  for (BufferSlice &result : program.results)
    visit(result);
  for (DeviceBuffer &buffer : program.buffers)
    for (AddressPiece &piece : buffer.pieces)
      visit(piece.slice);
}

struct Part {
  uint64_t begin, end;
  uint32_t buffer = 0; ///< what it becomes
};

/// Slices that overlap, joined; in order. Slices that only touch are parts of their own.
std::vector<Part> partsOf(DeviceProgram &program, uint32_t buffer) {
  std::vector<Part> slices, parts;
  forEachSlice(program, [&](const BufferSlice &slice) {
    if (slice.buffer == buffer && slice.bytes)
      slices.push_back({slice.offset, slice.offset + slice.bytes});
  });
  llvm::sort(slices, [](const Part &a, const Part &b) { return a.begin < b.begin; });
  for (const Part &slice : slices) {
    if (parts.empty() || slice.begin >= parts.back().end)
      parts.push_back(slice);
    parts.back().end = std::max(parts.back().end, slice.end);
  }
  return parts;
}

} // namespace

void separateSlices(DeviceProgram &program) {
  constexpr uint64_t alignment = 256; // of a buffer: what it begins with keeps the alignment that it had
  std::vector<std::vector<Part>> parts(program.buffers.size());
  for (uint32_t b = 0; b < parts.size(); ++b)
    if (program.buffers[b].contents == DeviceBuffer::Contents::Unwritten)
      parts[b] = partsOf(program, b);
  for (uint32_t b = 0; b < parts.size(); ++b) {
    const DeviceBuffer arena = program.buffers[b];
    for (size_t i = 0; i < parts[b].size(); ++i) {
      Part &part = parts[b][i];
      DeviceBuffer made = arena;
      const bool whole = parts[b].size() == 1;
      if (!whole)
        made.name = fmt::format("{}[{}, {})", made.name, part.begin, part.end);
      made.bytes = part.end - part.begin / alignment * alignment;
      part.buffer = i ? uint32_t(program.buffers.size()) : b;
      if (i)
        program.buffers.push_back(std::move(made));
      else
        program.buffers[b] = std::move(made);
    }
  }
  forEachSlice(program, [&](BufferSlice &slice) {
    if (slice.buffer >= parts.size() || !slice.bytes)
      return;
    for (const Part &part : parts[slice.buffer])
      if (slice.offset >= part.begin && slice.offset < part.end) {
        slice = {part.buffer, slice.offset - part.begin / alignment * alignment, slice.bytes};
        return;
      }
  });
}

bool dependsOnUndefined(const emulator::EmulatorOptions &options, const Literal &result, uint64_t bytes, bool ofUpdates,
                        llvm::function_ref<llvm::FailureOr<Literal>(const emulator::EmulatorOptions &)> replay) {
  // Zero, the largest and the lowest numbers and NaN decide comparisons, minima and products; bytes that differ from
  // place to place and from run to run, and small numbers, decide what compares undefined values with each other.
  // Several of these, for what depends on two values at once, an index and what is added there, where runs are short.
  constexpr uint64_t seeds = 3, seedsOfSmall = 18, smallBytes = 1 << 20;
  auto differs = [&](uint8_t byte, uint64_t seed) {
    emulator::EmulatorOptions other = options;
    other.undefinedByte = byte;
    other.undefinedSeed = seed;
    other.countEvents = false;
    llvm::FailureOr<Literal> replayed = replay(other);
    return failed(replayed) || !(result == *replayed);
  };
  if (ofUpdates)
    return differs(0x00, 0) || differs(0xff, 0) || differs(0, 1);
  return llvm::any_of(std::initializer_list<uint8_t>{0x00, 0x7e, 0xfe, 0xff},
                      [&](uint8_t byte) { return differs(byte, 0); }) ||
         llvm::any_of(llvm::seq<uint64_t>(1, (bytes <= smallBytes ? seedsOfSmall : seeds) + 1),
                      [&](uint64_t seed) { return (seed <= seeds || seed % 2 == 0) && differs(0, seed); });
}

} // namespace hloc
