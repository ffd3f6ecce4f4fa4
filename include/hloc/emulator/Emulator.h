#pragma once
// Executes PTX text on the CPU as a SIMT machine: warps of 32 lanes in lockstep, blocks over all cores, global memory
// as named buffers with checks on every access. Knows no HLO: launched by plain data, results are bytes.
//
//   std::unique_ptr<Emulator> emulator = Emulator::load(diagnostics, options);   // the engine's file is the PTX text
//   BufferId in = emulator->allocate("p0", 4096, Emulator::Contents::Written);   // fill emulator->bytes(in)
//   BufferId out = emulator->allocate("r0", 4096, Emulator::Contents::Unwritten);
//   emulator->launch({"gelu", {8, 1, 1}, {128, 1, 1}, 0, {{in, 0, 4096, false}, {out, 0, 4096, true}}}, diagnostics);

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/TensorMapRecipe.h"
#include "hloc/support/WorkProgress.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

namespace llvm {
class raw_ostream;
}

namespace hloc {
class DiagnosticEngine;
}

namespace hloc::emulator {

/// In which order blocks and warps run where nothing else decides. Shuffled ones also change places before accesses
/// that other threads may see (atomics, .volatile, .relaxed, ...).
struct Schedule {
  enum class Order : uint8_t { Ascending, Reversed, Shuffled };
  Order order = Order::Ascending;
  uint64_t seed = 0;        ///< of Shuffled
  std::string name() const; ///< "ascending", "reversed", "shuffled:7"
};

/// What a kernel becomes for the host. Results do not depend on it.
enum class HostCode : uint8_t {
  Fitting,   ///< what is made and run in the least time, by the kernel's length and its warps
  Optimized, ///< for many warps
  Shared,    ///< calls of one function for all instructions of a kind
};

struct EmulatorOptions {
  bool checkBounds = true;     ///< out-of-bounds, misaligned, writes to read-only arguments, writes outside arguments
  bool checkUninit = true;     ///< reads of bytes that nobody wrote (global, shared, local)
  bool checkRaces = true;      ///< conflicting accesses of two threads that no barrier orders
  bool checkDivergence = true; ///< barriers and cross-lane instructions that not all named lanes reach
  bool countEvents = false;    ///< fill Counters
  unsigned numThreads = 0;     ///< host threads; 0: all cores
  HostCode hostCode = HostCode::Fitting;
  Schedule schedule = {};
  unsigned multiprocessors = 132; ///< of the device, which hold blocks that wait for each other
  uint64_t maxFindings = 20;      ///< reported per launch; the rest are counted
  /// If given: findings of this block and thread alone (along x, of blocks of one dimension), as a witness has them.
  std::optional<std::pair<uint64_t, uint32_t>> findingsOf;
  WorkProgress *progress = nullptr; ///< if given: counts the blocks of the launch in progress
  double deadline = 0;              ///< by the steady clock, in seconds, of all launches; 0: none
  double timeLimitSeconds = 0;      ///< of one launch; 0: none. A launch past it fails with a finding
  /// If given, reads of bytes without a value are no findings, and give this byte: bytes that nobody wrote, those
  /// behind a slice up to the next multiple of 256 behind its buffer, and lanes that take no part in a shuffle. Results
  /// that are the same for several such bytes do not depend on these reads.
  std::optional<uint8_t> undefinedByte;
  /// Besides, reads of what an update (and, or, cas, and loads before a cas) does not know and may leave as it is: so
  /// elements of less than a byte are stored. They are harmless, unless a result depends on what is there.
  bool checkUpdates = false;
  /// Not 0: they give other bytes instead, which differ from place to place.
  uint64_t undefinedSeed = 0;
  /// If given, approximate instructions (ex2.approx, div.full, ...) return values as far from the exact ones as PTX
  /// allows (src/emulator/Approximations.def): functions of seed, instruction and operands, the same in every thread.
  /// Unset: as accurate as is cheap.
  std::optional<uint64_t> approximationSeed;
  /// Seeds for all results as large as is allowed, or as small (where the bound is relative: in magnitude).
  static constexpr uint64_t largestApproximations = ~uint64_t(0), smallestApproximations = largestApproximations - 1;
  /// mma sums as an H100 does, bit for bit, and all else is as accurate as is cheap.
  static constexpr uint64_t hopperApproximations = largestApproximations - 2;
};

using BufferId = uint32_t;

/// A kernel argument that is memory: `bytes` from `offset` of a buffer. Accesses outside are findings.
struct BufferArgument {
  BufferId buffer = 0;
  uint64_t offset = 0, bytes = 0;
  bool written = false; ///< false: stores to it are findings
};

/// A kernel argument passed by value, little endian in the low `bytes` bytes (1, 2, 4, 8).
struct ScalarArgument {
  uint64_t value = 0;
  uint32_t bytes = 8;
};

/// A tensor map over a part of a buffer, which is passed by value in 128 bytes. Copies by it are accesses to that part.
struct TensorMapArgument {
  BufferArgument tensor;
  TensorMapRecipe recipe;
};

/// A kernel argument of any size, such as a structure.
struct BytesArgument {
  struct Map {
    uint64_t at = 0; ///< byte from which its 128 bytes replace `bytes`
    TensorMapArgument map;
  };
  std::vector<uint8_t> bytes;
  std::vector<Map> maps = {};
};

using LaunchArgument = std::variant<BufferArgument, ScalarArgument, BytesArgument, TensorMapArgument>;

struct LaunchRequest {
  std::string kernel;
  Dim3 grid, block; ///< the grid in blocks, of kernels with .blocksareclusters in clusters
  uint32_t dynamicSharedBytes = 0;
  std::vector<LaunchArgument> arguments; ///< one per kernel parameter
  /// Blocks of each cluster along each dimension; unset: as the kernel's .reqnctapercluster, or none.
  std::optional<Dim3> cluster = {};
  /// Besides, what the kernel finds by addresses in structures and in memory (Emulator::address).
  std::vector<BufferArgument> reached = {};
  /// It may begin before the launch before it is complete: what that reads and writes has to wait for
  /// griddepcontrol.wait.
  bool programmatic = false;
};

enum class FindingKind : uint8_t {
  OutOfBounds,
  Misaligned,
  ReadOnlyWrite,
  UninitializedRead,
  SharedRace,
  OpenCopy,       ///< a thread ends without having waited for its cp.async
  BrokenMbarrier, ///< used before it is initialized, overwritten, arrivals or bytes that it does not expect
  GlobalRace,
  AbsentBlock,     ///< shared memory of a block of the cluster that has not begun yet or has ended
  EarlyAccess,     ///< in a programmatic launch, of what the kernel before it may still write or read
  NonCoherentRead, ///< ld.global.nc of memory that the same kernel writes, in whatever order
  DivergentBarrier,
  Deadlock,   ///< some warps wait at a barrier that others never reach
  NoProgress, ///< some warps spin for what nobody will do
  InactiveShuffle,
  DivergentWarpgroup, ///< the warps of a warpgroup do not execute the same wgmma or setmaxnreg, or there are not four
  OpenMultiply,       ///< a warp ends without having waited for its wgmmas
  RegisterRace,       ///< registers of a wgmma in flight are touched, or written before one without a fence
  RegisterLimit,      ///< setmaxnreg asks for what the warp has not, or leaves too few
  BadDescriptor,      ///< of an operand of a wgmma
  BadTensorMap,       ///< a copy by what is no tensor map, or by one that it may not see yet
  BadBox,             ///< a copy by a tensor map of a box that may not begin where it does
  UnwrittenOutput,
  Trap,
  TimeLimit
};
llvm::StringRef findingName(FindingKind kind); ///< "out-of-bounds", ...

struct Finding {
  FindingKind kind = FindingKind::OutOfBounds;
  std::string kernel;
  Dim3 block, thread;            ///< blockIdx, threadIdx of one offender
  uint32_t line = 0;             ///< of the PTX text
  std::string message;           ///< what happened, with buffer name, offset and sizes
  std::string hloName;           ///< HLO instruction by the PTX's `.loc`/comments; empty where unknown
  uint64_t count = 1;            ///< occurrences of this kind at this line
  bool harmlessIfUnused = false; ///< a read that EmulatorOptions::undefinedByte is about
  bool ofUpdate = false;         ///< one that EmulatorOptions::checkUpdates asks for
};

/// Sums over all warps of the launches so far.
struct BufferCounters {
  std::string name;
  uint64_t bytesRead = 0, bytesWritten = 0; ///< requested by active lanes
};
struct Counters {
  /// Warp-level instructions by class, in the order of instructionClassNames().
  std::vector<uint64_t> warpInstructions;
  std::vector<uint64_t> threadInstructions;               ///< the same, times active lanes
  uint64_t globalLoadRequests = 0, globalLoadSectors = 0; ///< sectors are 32 bytes
  uint64_t globalStoreRequests = 0, globalStoreSectors = 0;
  /// Sectors that the bytes of the requests would fill if they lay side by side.
  uint64_t globalLoadIdealSectors = 0, globalStoreIdealSectors = 0;
  uint64_t sharedLoadRequests = 0, sharedLoadWavefronts = 0;
  uint64_t sharedStoreRequests = 0, sharedStoreWavefronts = 0;
  /// One a request, two of 8 and four of 16 bytes a lane; wavefronts beyond these are bank conflicts.
  uint64_t sharedLoadIdealWavefronts = 0, sharedStoreIdealWavefronts = 0;
  uint64_t atomics = 0, barriers = 0, shuffles = 0;
  uint64_t branches = 0, divergentBranches = 0; ///< warp-level
  uint64_t warps = 0, blocks = 0;
  std::vector<BufferCounters> buffers;
};
/// The same of the instructions of one line of the PTX text.
struct LineCounters {
  uint64_t warps = 0, threads = 0;        ///< executed, as Counters::warpInstructions and threadInstructions
  uint64_t requests = 0;                  ///< of memory, a warp each
  uint64_t sectors = 0, idealSectors = 0; ///< of global memory, loads and stores
  uint64_t passes = 0, idealPasses = 0;   ///< of shared memory; what is beyond the ideal ones are bank conflicts
  uint64_t divergent = 0;                 ///< branches that some lanes took and others did not
  LineCounters &operator+=(const LineCounters &other);
};
llvm::ArrayRef<llvm::StringRef> instructionClassNames();
void printTable(const Counters &counters, llvm::raw_ostream &os);
void printJson(const Counters &counters, llvm::raw_ostream &os);

class Emulator {
public:
  enum class Contents { Written, Unwritten };

  /// Parses and resolves the PTX; reports located errors (exit 1: malformed; exit 3: an instruction that the emulator
  /// does not execute). Kernels are translated at their first launch.
  static std::unique_ptr<Emulator> load(DiagnosticEngine &diagnostics, const EmulatorOptions &options);
  /// A machine of its own for the same PTX, with other options and no buffers. What has been parsed and translated
  /// serves all of them, in one host thread at a time. Fails where there is no memory.
  std::unique_ptr<Emulator> another(DiagnosticEngine &diagnostics, const EmulatorOptions &options) const;
  ~Emulator();

  /// 256-byte aligned device memory. `Unwritten` bytes are filled with a pattern (0xA5) and marked as nobody's.
  BufferId allocate(llvm::StringRef name, uint64_t bytes, Contents contents);
  llvm::MutableArrayRef<uint8_t> bytes(BufferId buffer);
  /// Where it lies for kernels.
  uint64_t address(BufferId buffer) const;
  /// The buffer, a `Written` one, lies in these bytes, which are as many and live until reset(), instead of in memory
  /// of its own. False if it has to have its own: stores to buffers that launches may only read are not kept away, or
  /// the bytes lie where no vector does.
  bool lend(BufferId buffer, llvm::ArrayRef<uint8_t> bytes);
  /// As after load(), but for the kernels' host code and the counters: no buffers, no findings.
  void reset();
  /// Device-side copy; carries written-ness along.
  void copy(BufferId from, uint64_t fromOffset, BufferId to, uint64_t toOffset, uint64_t numBytes);
  /// As memset on the device: the bytes are written.
  void fill(BufferId to, uint64_t offset, uint8_t value, uint64_t numBytes);
  /// As newly allocated, of an `Unwritten` buffer: nobody has written it.
  void discard(BufferId buffer);
  /// Reports a finding for every byte range of the slice that no kernel, copy or `Written` allocation wrote.
  void requireWritten(BufferId buffer, uint64_t offset, uint64_t numBytes);

  /// Host code for a kernel, as good as pays for one such launch; launches of kernels without it begin with this, and
  /// those of many warps with better code. Fails for an unknown kernel and for one that the host's compiler does not
  /// take.
  llvm::LogicalResult translate(const std::string &kernel, const Dim3 &grid, const Dim3 &block,
                                DiagnosticEngine &diagnostics);

  /// Runs one grid to its end. Fails for an unknown kernel, arguments that do not fit its parameters, limits of the
  /// machine (diagnostics), or findings (see findings()). Memory after a failed launch is unspecified.
  llvm::LogicalResult launch(const LaunchRequest &request, DiagnosticEngine &diagnostics);

  /// Whether the results of all launches so far may depend on the order of blocks and warps: kernels
  /// had accesses that may meet without a race, as atomics do. (Without races all others give the same in any order.)
  bool dependsOnSchedule() const;

  llvm::ArrayRef<Finding> findings() const;
  const Counters &counters() const;
  /// By line of the PTX text, from 0; empty where nothing was counted.
  llvm::ArrayRef<LineCounters> lineCounters() const;

private:
  Emulator();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hloc::emulator
