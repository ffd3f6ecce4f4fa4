#pragma once
// Running a compiled module, whoever compiled it and whatever executes it: a program as plain data (buffers, steps,
// results) and the interface of a device that carries it out. The emulator and the CUDA driver implement Device; a
// Manifest and a LaunchDescription both become a DeviceProgram.
//
//   gelu over f32[8]: buffers {p0: 32 bytes, input 0}, {r0: 32 bytes, unwritten}
//                     kernels gelu <<<1, 128>>>(read, written)
//                     steps   launch kernel 0 ({0, 0, 32}, {1, 0, 32})
//                     results {1, 0, 32}

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/Steps.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// Where a buffer lies in memory that several share, which are not needed at the same time.
struct DevicePlace {
  uint64_t offset = 0;
  uint64_t allBytes = 0; ///< of that memory, the same for all
};

struct DeviceBuffer {
  enum class Contents { Input, Constant, Unwritten };
  std::string name;   ///< for reports: `p0`, `p1{2}`, `result{0}`, `temporary 3`
  uint64_t bytes = 0; ///< as allocated: sizes of sub-byte arrays are rounded up to whole 32-bit words
  Contents contents = Contents::Unwritten;
  uint32_t input = 0;                    ///< Input: which entry parameter leaf, counted over all parameters in order
  std::string constant;                  ///< Constant: bytes in device layout
  std::vector<AddressPiece> pieces = {}; ///< Constant: addresses in it, which are filled in when all buffers have one
  std::optional<DevicePlace> place = std::nullopt; ///< Unwritten; nothing: memory of its own
};

/// A kernel as a program launches it.
struct DeviceKernel {
  std::string name; ///< PTX entry
  Dim3 grid, block; ///< an empty grid: launches do nothing
  uint32_t dynamicSharedBytes = 0;
  std::vector<bool> written;                  ///< by argument: false where it is only read, and for values
  uint64_t bytesRead = 0, bytesWritten = 0;   ///< least global traffic of a launch, for bandwidth figures; 0: unknown
  std::optional<Dim3> cluster = std::nullopt; ///< blocks of each; nothing: what the kernel itself says
  bool programmatic = false;                  ///< it may begin before the kernel before it is complete
};

struct DeviceProgram {
  std::vector<DeviceBuffer> buffers;
  std::vector<DeviceKernel> kernels;
  Steps steps;                      ///< launches name one of `kernels`
  std::vector<BufferSlice> results; ///< one per array leaf of the entry's result, in order
};

/// One launch as a device carries it out.
struct DeviceLaunch {
  const DeviceKernel &kernel;
  const LaunchStep &step;
};

/// Memory and kernels of one device. Buffers are numbered from 0 in the order of allocation, which is that of
/// DeviceProgram::buffers. Functions return false after a failure with `error` set, or empty where the device has
/// reported the failure itself. One thread uses a device at a time.
class Device {
public:
  virtual ~Device() = default;

  /// Makes the kernels of a PTX text (or a cubin, for devices that take one) known.
  virtual bool load(const std::string &image, std::string &error) = 0;
  /// Does ahead what the first launch of a kernel would have to do on the host.
  virtual bool prepare(const DeviceKernel &kernel, std::string &error) { return true; }
  /// Appends a buffer of `buffer.bytes`, at least 256-byte aligned; its contents are undefined until written.
  virtual bool allocate(const DeviceBuffer &buffer, std::string &error) = 0;
  /// Forgets all buffers, for the program to be run once more with other contents; kernels stay loaded.
  virtual bool reset(std::string &error) = 0;
  /// Host to device: the first `numBytes` of the buffer.
  virtual bool upload(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) = 0;
  /// Host to device: all of a buffer that no step writes. The bytes stay as they are until the next reset(), and a
  /// device may use them where they are.
  virtual bool lend(uint32_t buffer, const void *bytes, uint64_t numBytes, std::string &error) {
    return upload(buffer, bytes, numBytes, error);
  }
  /// Where the slice lies for kernels.
  virtual bool address(const BufferSlice &slice, uint64_t &result, std::string &error) = 0;
  /// Device to host; waits for all work before it. Devices that can tell report bytes that nothing has written.
  virtual bool download(const BufferSlice &slice, void *bytes, std::string &error) = 0;
  virtual bool copy(const CopyStep &copy, std::string &error) = 0;
  virtual bool fill(const FillStep &fill, std::string &error) = 0;
  /// May return before the kernel has run; failures of the kernel may then come from a later call.
  virtual bool launch(const DeviceLaunch &launch, std::string &error) = 0;
  /// A function of a library, which has passed checkLibraryCall(). Devices without libraries fail.
  virtual bool call(const CallStep &call, std::string &error) {
    error = "library function `" + call.function + "` cannot be carried out here";
    return false;
  }
  virtual bool synchronize(std::string &error) = 0;
  /// Device time that the steps issued by `work` take, in milliseconds. `work` returns false to give up. Devices
  /// without a clock of their own fail.
  virtual bool time(const std::function<bool()> &work, double &milliseconds, std::string &error) = 0;
  /// Whether the last failure means that the device or its driver is too old for what was asked.
  virtual bool isTooOld() const { return false; }
};

/// Visits what a launch of `kernel` may write. `visit(slice)`.
template <typename Visit>
void forEachWritten(const DeviceKernel &kernel, const LaunchStep &launch, const Visit &visit) {
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto *slice = sliceOf(launch.arguments[i]);
    if (slice && kernel.written[i])
      visit(*slice);
    if (const auto *structure = std::get_if<StructureValue>(&launch.arguments[i]))
      for (const AddressPiece &piece : structure->pieces)
        if (piece.written)
          visit(piece.slice);
  }
  for (const AddressPiece &piece : launch.reached)
    if (piece.written)
      visit(piece.slice);
}

/// Fills the addresses of `pieces` into `bytes`, which have room for them. False as the device's functions.
bool fillAddresses(Device &device, const std::vector<AddressPiece> &pieces, std::string &bytes, std::string &error);

/// Told while steps are carried out. Functions return false to give up, having said why.
class StepListener {
public:
  virtual ~StepListener() = default;
  /// The steps of part `part` of a loop (0: condition, 1: body) or of a conditional (a branch) come next.
  virtual bool enter(const Step &step, size_t part) = 0;
  /// They have been carried out.
  virtual bool leave(const Step &step, size_t part) = 0;
  /// A step, whatever it is, has been carried out.
  virtual bool done(const Step &step) = 0;
};

/// Carries out `steps`, which are those of `program` or inside them. Loops and conditionals read their predicate back
/// to the host. False after a failure, as the device's functions; steps that somebody else has to supply fail by name.
bool issueSteps(Device &device, const DeviceProgram &program, const Steps &steps, std::string &error,
                StepListener *listener = nullptr);

} // namespace hloc
