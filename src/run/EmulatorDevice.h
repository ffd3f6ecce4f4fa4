#pragma once
// The PTX emulator as a Device: findings become diagnostics.

#include "hloc/emulator/Emulator.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/kernel/Device.h"
#include "hloc/support/Diagnostics.h"

#include <functional>
#include <memory>
#include <set>

namespace hloc {

class EmulatorDevice : public Device {
public:
  /// `diagnostics` receives what is wrong with the PTX (located in it) and every finding.
  EmulatorDevice(const emulator::EmulatorOptions &options, std::string imageName, DiagnosticEngine &diagnostics)
      : options(options), imageName(std::move(imageName)), diagnostics(diagnostics) {}
  /// The module that `.loc` directives of the PTX point into, and its text: findings then name its instructions.
  void setSource(const HloModule &module, std::shared_ptr<const SourceFile> text) {
    source = &module;
    sourceFile = std::move(text);
  }

  /// Is told of each launch before it begins: of which kernel, the how manyth since the last reset, in which order.
  using LaunchListener = std::function<void(const std::string &kernel, size_t number, const std::string &schedule)>;
  void setLaunchListener(LaunchListener listener) { launchListener = std::move(listener); }

  /// A device that has loaded what this one will load, and lives no less long: what has been translated there serves
  /// here.
  void setTwin(const EmulatorDevice &device) { twin = &device; }
  /// From now on reads of undefined bytes are kept back: whether they matter is seen from the results.
  void withholdHarmless() { withholds = true; }
  /// What the arguments of the runs to come are, for notes to findings; empty: nothing worth saying.
  void setCircumstances(std::string text) { circumstances = std::move(text); }
  bool hasWithheld() const { return !withheld.empty(); }
  /// Only of updates, which all may do without harm.
  bool withholdsUpdatesAlone() const;
  void reportWithheld();
  /// After it has turned out that no result depends on them: a note for each line of the PTX that does so, once.
  std::vector<std::string> noteWithheld();

  bool load(const std::string &image, std::string &error) override;
  bool prepare(const DeviceKernel &kernel, std::string &error) override;
  bool allocate(const DeviceBuffer &buffer, std::string &error) override;
  bool reset(std::string &error) override;
  bool upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) override;
  bool lend(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) override;
  bool address(const BufferSlice &slice, uint64_t &result, std::string &error) override;
  bool download(const BufferSlice &slice, void *bytes, std::string &error) override;
  bool copy(const CopyStep &copy, std::string &error) override;
  bool fill(const FillStep &fill, std::string &error) override;
  bool launch(const DeviceLaunch &launch, std::string &error) override;
  bool call(const CallStep &call, std::string &error) override;
  bool synchronize(std::string &error) override { return true; }
  bool time(const std::function<bool()> &work, double &milliseconds, std::string &error) override;

  bool dependsOnSchedule() const { return machine->dependsOnSchedule(); }
  const emulator::Counters &counters() const { return machine->counters(); }
  llvm::ArrayRef<emulator::LineCounters> lineCounters() const { return machine->lineCounters(); }

private:
  void beginWriting(uint32_t buffer);
  /// Reports findings that came since the last call; true if there were none.
  bool reportFindings();
  void report(llvm::ArrayRef<emulator::Finding> findings);
  std::string hloAt(uint32_t ptxLine) const;

  emulator::EmulatorOptions options;
  std::string imageName, circumstances;
  DiagnosticEngine &diagnostics;
  std::shared_ptr<const SourceFile> file; ///< the PTX
  std::unique_ptr<emulator::Emulator> machine;
  const EmulatorDevice *twin = nullptr;
  const HloModule *source = nullptr;
  std::shared_ptr<const SourceFile> sourceFile;
  size_t numReported = 0, numLaunches = 0;
  // By buffer: its place in memory that several share, and whether it is the last of those there that was written.
  std::vector<std::optional<std::pair<uint64_t, uint64_t>>> places;
  std::vector<bool> isCurrent;
  LaunchListener launchListener;
  bool withholds = false;
  std::vector<emulator::Finding> withheld;
  std::set<std::pair<emulator::FindingKind, uint32_t>> noted; ///< with the line
};

} // namespace hloc
