#include "EmulatorDevice.h"

#include "HostLibrary.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace hloc {

using namespace emulator;

bool EmulatorDevice::load(const std::string &image, std::string &error) {
  if (twin) {
    file = twin->file;
    machine = twin->machine->another(diagnostics, options);
    return machine != nullptr;
  }
  DiagnosticEngine ofPtx;
  file = std::make_shared<const SourceFile>(imageName, image);
  ofPtx.setFile(file);
  machine = Emulator::load(ofPtx, options);
  diagnostics.append(ofPtx);
  return machine != nullptr;
}

bool EmulatorDevice::prepare(const DeviceKernel &kernel, std::string &error) {
  return succeeded(machine->translate(kernel.name, kernel.grid, kernel.block, diagnostics));
}

bool EmulatorDevice::allocate(const DeviceBuffer &buffer, std::string &error) {
  bool known = buffer.contents != DeviceBuffer::Contents::Unwritten;
  isCurrent.push_back(false);
  if (places.emplace_back(); buffer.place)
    places.back() = {buffer.place->offset, buffer.place->offset + buffer.bytes};
  machine->allocate(buffer.name, buffer.bytes, known ? Emulator::Contents::Written : Emulator::Contents::Unwritten);
  return true;
}

/// What lies where the buffer does is gone, unless the buffer is the last that was written there.
void EmulatorDevice::beginWriting(uint32_t buffer) {
  if (!places[buffer] || isCurrent[buffer])
    return;
  for (uint32_t other = 0; other < places.size(); ++other)
    if (isCurrent[other] && places[other]->first < places[buffer]->second &&
        places[buffer]->first < places[other]->second) {
      machine->discard(other);
      isCurrent[other] = false;
    }
  isCurrent[buffer] = true;
}

bool EmulatorDevice::reset(std::string &error) {
  places.clear();
  isCurrent.clear();
  machine->reset();
  numReported = numLaunches = 0;
  withheld.clear();
  return true;
}

bool EmulatorDevice::upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) {
  llvm::MutableArrayRef<uint8_t> memory = machine->bytes(buffer);
  if (numBytes > memory.size()) {
    error = fmt::format("{} bytes for a buffer of {}", numBytes, memory.size());
    return false;
  }
  if (numBytes)
    std::memcpy(memory.data(), bytes, numBytes);
  return true;
}

bool EmulatorDevice::lend(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) {
  return machine->lend(buffer, {static_cast<const uint8_t *>(bytes), size_t(numBytes)}) ||
         upload(buffer, bytes, numBytes, error);
}

bool EmulatorDevice::address(const BufferSlice &slice, uint64_t &result, std::string &) {
  result = machine->address(slice.buffer) + slice.offset;
  return true;
}

bool EmulatorDevice::download(const BufferSlice &slice, void *bytes, std::string &error) {
  machine->requireWritten(slice.buffer, slice.offset, slice.bytes);
  if (slice.bytes)
    std::memcpy(bytes, machine->bytes(slice.buffer).data() + slice.offset, slice.bytes);
  return reportFindings();
}

bool EmulatorDevice::copy(const CopyStep &copy, std::string &error) {
  beginWriting(copy.to.buffer);
  machine->copy(copy.from.buffer, copy.from.offset, copy.to.buffer, copy.to.offset, copy.from.bytes);
  return true;
}

bool EmulatorDevice::fill(const FillStep &fill, std::string &error) {
  beginWriting(fill.to.buffer);
  machine->fill(fill.to.buffer, fill.to.offset, fill.value, fill.to.bytes);
  return true;
}

static BufferArgument argumentOf(const AddressPiece &piece) {
  return {piece.slice.buffer, piece.slice.offset, piece.slice.bytes, piece.written};
}

bool EmulatorDevice::launch(const DeviceLaunch &launch, std::string &error) {
  const DeviceKernel &kernel = launch.kernel;
  LaunchRequest request{kernel.name, kernel.grid,    kernel.block, kernel.dynamicSharedBytes,
                        {},          kernel.cluster, {},           kernel.programmatic};
  auto reach = [&](const AddressPiece &piece) { request.reached.push_back(argumentOf(piece)); };
  forEachWritten(kernel, launch.step, [&](const BufferSlice &slice) { beginWriting(slice.buffer); });
  for (size_t i = 0; i < launch.step.arguments.size(); ++i) {
    const auto &argument = launch.step.arguments[i];
    if (const auto *slice = sliceOf(argument)) {
      const BufferArgument memory{slice->buffer, slice->offset, slice->bytes, kernel.written[i]};
      if (const auto *map = std::get_if<TensorMapSlice>(&argument))
        request.arguments.push_back(TensorMapArgument{memory, map->recipe});
      else
        request.arguments.push_back(memory);
    } else if (const auto *structure = std::get_if<StructureValue>(&argument)) {
      BytesArgument made;
      std::vector<AddressPiece> addresses;
      for (const AddressPiece &piece : structure->pieces)
        if (piece.map)
          made.maps.push_back({piece.at, {argumentOf(piece), *piece.map}});
        else
          addresses.push_back(piece);
      std::string bytes = structure->data;
      if (!fillAddresses(*this, addresses, bytes, error))
        return false;
      llvm::for_each(addresses, reach);
      made.bytes.assign(bytes.begin(), bytes.end());
      request.arguments.push_back(std::move(made));
    } else {
      const auto &scalar = std::get<ScalarValue>(argument);
      request.arguments.push_back(ScalarArgument{scalar.value, scalar.bytes});
    }
  }
  llvm::for_each(launch.step.reached, reach);
  ++numLaunches;
  if (launchListener)
    launchListener(kernel.name, numLaunches, options.schedule.name());
  size_t numBefore = machine->findings().size();
  bool fine = succeeded(machine->launch(request, diagnostics));
  forEachWritten(kernel, launch.step, [&](const BufferSlice &slice) { // two that lie in one place: neither is right
    if (places[slice.buffer] && !isCurrent[slice.buffer])
      machine->discard(slice.buffer);
  });
  bool ran = fine || machine->findings().size() > numBefore;
  return reportFindings() && ran;
}

/// What is read has to be written; of what is written, the bytes that the function leaves.
bool EmulatorDevice::call(const CallStep &call, std::string &error) {
  for (const BufferSlice &slice : call.reads)
    machine->requireWritten(slice.buffer, slice.offset, slice.bytes);
  if (!reportFindings())
    return false;
  for (const BufferSlice &slice : call.writes)
    beginWriting(slice.buffer);
  auto bytesOf = [&](const BufferSlice &slice) {
    return llvm::ArrayRef<uint8_t>(machine->bytes(slice.buffer)).slice(slice.offset, slice.bytes);
  };
  auto write = [&](const BufferSlice &slice, uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
    machine->fill(slice.buffer, slice.offset + offset, 0, bytes.size());
    llvm::copy(bytes, machine->bytes(slice.buffer).begin() + slice.offset + offset);
  };
  return carryOutOnHost(call, bytesOf, write, diagnostics, error);
}

bool EmulatorDevice::time(const std::function<bool()> &, double &, std::string &error) {
  error = "the emulator has no device clock; --repeat needs --platform=cuda";
  return false;
}

/// The text of a line, without its indentation.
static SourceRange rangeOfLine(const SourceFile &file, uint32_t line) {
  uint32_t begin = file.offsetOf({line, 1});
  llvm::StringRef text = file.lineAt(begin), trimmed = text.ltrim();
  begin += uint32_t(text.size() - trimmed.size());
  return {begin, begin + uint32_t(trimmed.rtrim().size())};
}

/// The line of the other file in the last `.loc` at or before a PTX line; 0 if its function has none.
static uint32_t sourceLineAt(const SourceFile &ptx, uint32_t ptxLine) {
  for (uint32_t line = ptxLine; line; --line) {
    llvm::StringRef text = ptx.lineAt(ptx.offsetOf({line, 1})).trim();
    if (text.contains(".entry ") || text.contains(".func "))
      return 0;
    if (!text.consume_front(".loc"))
      continue;
    uint32_t file = 0, found = 0;
    text = text.ltrim();
    if (text.consumeInteger(10, file) || text.ltrim().consumeInteger(10, found))
      return 0;
    return found;
  }
  return 0;
}

std::string EmulatorDevice::hloAt(uint32_t ptxLine) const {
  uint32_t line = source ? sourceLineAt(*file, ptxLine) : 0;
  if (!line || !sourceFile)
    return "";
  for (const auto &computation : source->computations())
    for (const HloInstruction *instr : computation->instructions())
      if (instr->range().isValid() && sourceFile->lineColumn(instr->range().begin).line == line)
        return fmt::format("`{}` ({}:{})", instr->name().str(), sourceFile->name().str(), line);
  return "";
}

bool EmulatorDevice::reportFindings() {
  std::vector<Finding> fresh = machine->findings().drop_front(numReported).vec();
  numReported = machine->findings().size();
  auto harmless = llvm::partition(
      fresh, [&](const Finding &finding) { return !finding.ofUpdate && !(withholds && finding.harmlessIfUnused); });
  withheld.insert(withheld.end(), harmless, fresh.end());
  fresh.erase(harmless, fresh.end());
  report(fresh);
  return fresh.empty();
}

void EmulatorDevice::reportWithheld() {
  report(withheld);
  withheld.clear();
}

bool EmulatorDevice::withholdsUpdatesAlone() const {
  return llvm::all_of(withheld, [](const Finding &finding) { return finding.ofUpdate; });
}

std::vector<std::string> EmulatorDevice::noteWithheld() {
  std::vector<std::string> notes;
  for (const Finding &finding : withheld)
    if (!finding.ofUpdate && noted.insert({finding.kind, finding.line}).second)
      notes.push_back(
          fmt::format("{}:{}: note: {}: kernel `{}`, block ({}, {}, {}), thread ({}, {}, {}) {}; {} in all, and "
                      "no result depends on the value",
                      imageName, finding.line, findingName(finding.kind).str(), finding.kernel, finding.block.x,
                      finding.block.y, finding.block.z, finding.thread.x, finding.thread.y, finding.thread.z,
                      finding.message, finding.count == 1 ? "once" : fmt::format("{} times", finding.count)));
  withheld.clear();
  return notes;
}

void EmulatorDevice::report(llvm::ArrayRef<Finding> findings) {
  DiagnosticEngine located;
  located.setFile(file);
  for (const Finding &finding : findings) {
    std::string name = findingName(finding.kind).str();
    if (!finding.line) {
      Diagnostic &report = diagnostics.report(DiagnosticKind::KernelFinding, name + ": " + finding.message);
      if (!circumstances.empty())
        report.note(circumstances);
      continue;
    }
    Diagnostic &report =
        located.report(DiagnosticKind::KernelFinding, rangeOfLine(*file, finding.line),
                       fmt::format("{}: kernel `{}`, block ({}, {}, {}), thread ({}, {}, {}) {}", name, finding.kernel,
                                   finding.block.x, finding.block.y, finding.block.z, finding.thread.x,
                                   finding.thread.y, finding.thread.z, finding.message));
    std::string hlo = hloAt(finding.line);
    if (hlo.empty())
      hlo = finding.hloName;
    if (!hlo.empty())
      report.note("emitted for HLO instruction " + hlo);
    if (!circumstances.empty())
      report.note(circumstances);
    if (finding.count > 1)
      report.note(fmt::format("{} times in all", finding.count));
  }
  diagnostics.append(located);
}

} // namespace hloc
