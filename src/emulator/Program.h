#pragma once
// A PTX module resolved for execution: registers are slots, symbols are addresses, opcodes are enumerators with a type,
// calls are inlined, scopes are gone. Every part of an opcode has been given a meaning; what has none was refused.
//
//   @!%p1 add.rn.f32 %f3, %f1, 0f3F800000;
//     -> Add, type f32, rounding Nearest, guard {Register, slot of %p1, negated},
//        operands {%f3, %f1, Constant 0x3f800000}, results 1

#include "Floats.h"
#include "hloc/emulator/Ptx.h"

#include "llvm/ADT/StringMap.h"

#include <array>
#include <memory>
#include <optional>

namespace hloc {
class DiagnosticEngine;
}

namespace hloc::emulator {

/// State spaces are told apart by the high bits of a generic address; shared and local addresses proper are offsets.
/// Of shared memory of any block of a cluster the upper 8 of 32 bits are its rank plus 1, or 0 for the own block.
inline constexpr unsigned rankShift = 24;
inline constexpr uint64_t sharedWindow = 0x7f01ull << 40;
inline constexpr uint64_t localWindow = 0x7f02ull << 40;
inline constexpr uint64_t parameterWindow = 0x7f03ull << 40;
inline constexpr uint64_t bufferAlignment = 256; ///< of buffers and of the memory allocated for them
inline constexpr unsigned regionShift = 40;      ///< region r of global memory starts at (r + 1) << regionShift

/// SharedCluster: only of addresses, never where something lies: shared memory of any block of the cluster.
enum class Space : uint8_t { Generic, Global, Shared, SharedCluster, Local, Param };
/// Who may take part in what a strong access or a fence orders.
enum class Scope : uint8_t { Block, Cluster, Device };
inline constexpr unsigned numScopes = 3;
inline bool isShared(Space space) { return space == Space::Shared || space == Space::SharedCluster; }
/// The last row are storage formats that only cvt and mma know.
enum class TypeClass : uint8_t { Bits, Unsigned, Signed, Float, Bfloat, Predicate, Tf32, E4m3, E5m2 };

struct Type {
  TypeClass kind = TypeClass::Bits;
  uint8_t bits = 0;  ///< of one element; 1 for predicates
  uint8_t lanes = 1; ///< 2 for f16x2, bf16x2, u16x2, e4m3x2, ...
  unsigned bytes() const { return bits * lanes / 8; }
  unsigned width() const { return bits * lanes; } ///< of the register that holds it
  bool isFloat() const { return kind == TypeClass::Float || kind == TypeClass::Bfloat; }
  bool isSigned() const { return kind == TypeClass::Signed; }
  bool operator==(const Type &) const = default;
};

enum class Opcode : uint8_t {
#define HLOC_PTX_OPCODE(name, ...) name,
#include "Opcodes.def"
};

enum class Special : uint8_t {
  None,
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaX,
  CtaY,
  CtaZ,
  NctaX,
  NctaY,
  NctaZ,
  Lane,
  Warp,
  NumWarps,
  LaneMaskEq, ///< bit of this lane; Le, Lt, Ge, Gt: this and lower, lower, this and higher, higher
  LaneMaskLe,
  LaneMaskLt,
  LaneMaskGe,
  LaneMaskGt,
  Clock, ///< 32 bits
  ClockHigh,
  Clock64, ///< 64 bits; never decreases
  GlobalTimerLow,
  GlobalTimerHigh,
  GlobalTimer,
  DynamicSharedSize,
  TotalSharedSize,
  AggregateSharedSize,
  ClusterX, ///< which cluster of the grid; NclusterX: of how many
  ClusterY,
  ClusterZ,
  NclusterX,
  NclusterY,
  NclusterZ,
  ClusterCtaX, ///< which block of the cluster
  ClusterCtaY,
  ClusterCtaZ,
  ClusterNctaX,
  ClusterNctaY,
  ClusterNctaZ,
  ClusterRank,
  ClusterBlocks,
  ExplicitCluster
};

/// One operand. None is the sink `_`. A destination pair `%r|%p` and a list `{%a, %b}` are Vectors.
struct Source {
  enum class Kind : uint8_t { None, Register, Constant, Special, Vector };
  Kind kind = Kind::None;
  bool negated = false; ///< predicates: logically
  uint8_t bits = 0;     ///< width of the register; of others, the width that the instruction reads
  Special special = Special::None;
  uint32_t slot = 0;
  bool address = false; ///< of memory
  uint64_t value = 0;   ///< constant, or byte offset added to an address register
  std::vector<Source> elements;
};

enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum class Mode : uint8_t {
  None,
  Lo,
  Hi,
  Wide,
  And,
  Or,
  Xor,
  Exch,
  Cas,
  Add,
  Min,
  Max,
  Inc,
  Dec,
  Up,
  Down,
  Bfly,
  Idx,
  Any,
  All,
  Uni,
  Ballot,
  Popc,
  Arrive,
  Forward4, ///< prmt.f4e, b4e, rc8, ecl, ecr, rc16
  Backward4,
  Replicate8,
  ClampLeft,
  ClampRight,
  Replicate16,
  Full,   ///< div.full
  Finite, ///< testp
  Infinite,
  Number,
  NotNumber,
  Normal,
  Subnormal,
  Commit, ///< cp.async.commit_group, wait_group, wait_all
  WaitGroup,
  WaitAll,
  Init, ///< mbarrier
  Invalidate,
  ExpectTransfer,
  CompleteTransfer,
  ArriveDrop,
  ArriveOnCopies,
  TestWait,
  TryWait,
  PendingCount,
  Proxy, ///< fence.proxy.async
  BulkLoad,
  BulkStore,
  BulkToCluster,
  Wait, ///< barrier.cluster, griddepcontrol
  Load, ///< wmma
  Store,
  Multiply,
  TensorLoad, ///< cp.async.bulk.tensor into shared memory
  TensorStore,
  TensorReduce,
  TensorPrefetch,
  ReplaceField, ///< tensormap
  CopyMap,
  TensorMapRelease, ///< fence.proxy.tensormap
  TensorMapAcquire
};

/// What an instruction does, whatever its operands: the opcode and all that follows from its modifiers.
struct Operation {
  Opcode opcode;
  Type type, from; ///< `from`: source of cvt, mma inputs
  Type typeB, typeC;
  Rounding rounding = Rounding::Nearest;
  bool integral = false, ftz = false, saturate = false, nan = false, wrap = false, transposed = false, reduce = false;
  bool approximate = false;  ///< .approx, .full: a result near the exact one will do
  bool tiesAway = false;     ///< cvt.rna: ties away from zero
  bool relu = false;         ///< negative results become +0
  bool satfinite = false;    ///< overflow and infinity become the largest finite value
  bool xorSign = false;      ///< min, max: .xorsign.abs
  bool magnitudes = false;   ///< min, max of three: .abs
  bool partial = false;      ///< see above
  bool byParity = false;     ///< waits for the phase of a parity, not for that of a state
  bool transposedB = false;  ///< wgmma: b lies along n; `transposed`: a along m
  bool negated = false;      ///< wgmma: products are subtracted
  bool ignoreSource = false; ///< cp.async: its last operand is a predicate, and where it is true zeros are copied
  bool strong = false;       ///< .volatile, .relaxed, .acquire, .release, ...: no race with other such accesses
  bool acquires = false, releases = false; ///< .acquire, .release, .acq_rel, fences
  Scope scope = Scope::Device;             ///< of strong accesses and fences: means nothing to threads outside of it
  bool nonCoherent = false;                ///< .nc
  bool im2col = false;                     ///< cp.async.bulk.tensor: .im2col, .im2col_no_offs
  bool offset = false;                     ///< with offsets of pixels
  bool multicast = false;                  ///< .multicast::cluster
  uint8_t field = 0;                       ///< tensormap.replace: a TensorMapField
  bool aligned = false;                    ///< of barriers of the cluster: all lanes of a warp come together
  uint8_t count = 1;                       ///< vector length of ld, st, atom, red, ldmatrix
  uint8_t results = 0;                     ///< the first so many operands are written
  std::array<uint16_t, 3> shape = {};      ///< of mma
  Space space = Space::Generic;
  Mode mode = Mode::None, combine = Mode::None;
  Compare compare = Compare::Eq;

  bool operator==(const Operation &) const = default;
};

/// Forms that differ from the order of operands in the text:
///   bar, barrier   mode None (sync) and Arrive: {id, count}; And, Or, Popc (red): {result, id, count, predicate};
///                  count 0 is the whole block. All: bar.warp.sync {member mask}
///   setp, set      mode And, Or, Xor: the comparison combined with the last operand. `type` is compared; set: the
///                  result has type `from`
///   add.cc, ...    carryOut is the carry flag's register; addc, subc, madc: carryIn. For subtractions it is the borrow
///   ld, st, cp     of function parameters have Space::Local; a cache policy operand is dropped
///   atom, red      mode is the operation; {result,} address, b {, c}; cas: b is compared, c is stored
///   cvt            `type` <- `from`; pairs have type.lanes 2 and two sources, the first for the upper half
///   dp4a, dp2a     types of a and b in `type` and `from`; mode Lo or Hi of dp2a
///   slct           `type`, and `from` of the selector; bfind: `wrap` is .shiftamt; szext, bmsk: `wrap` is .wrap
///   mma            `type` of d, `from` of a, `typeB`, `typeC`; shape {m, n, k}; bit operations in `mode`
///   wgmma          mode Multiply (mma_async): types and shape as of mma; a operand that is no list is a descriptor;
///                  {d, a, b, scale-d, d before}; None: the fence; Commit; WaitGroup: {groups left}
///   setmaxnreg     mode Inc or Dec: {registers}
///   ldmatrix, stmatrix  `count` matrices
///   cp             mode None: {shared address, global address, bytes copied, bytes read}; the last may be a predicate
///                  (ignoreSource). WaitGroup: {groups left}
///                  TensorLoad: {shared address, map, coordinates, mbarrier{, offsets}{, multicast mask}}.
///                  TensorStore and TensorReduce (operation in `combine`): {map, coordinates, shared address}.
///                  TensorPrefetch: {map, coordinates{, offsets}}. `shape[0]` dimensions, `space` of shared memory
///   tensormap      ReplaceField: {map, ordinal, value}; `field`. CopyMap: {global address, shared address}
///   fence          TensorMapAcquire: {map}
///   mbarrier       Init: {address, count}. ExpectTransfer, CompleteTransfer: {address, bytes}. Arrive, ArriveDrop:
///                  {state, address {, count, or with combine ExpectTransfer bytes}}; `partial`: .noComplete. TestWait,
///                  TryWait: {done, address, state, or parity with `byParity`}. PendingCount: {count, state}.
///                  ArriveOnCopies (cp.async.mbarrier.arrive): {address}; `partial`: .noinc
///   Bulk           mode BulkLoad, BulkToCluster: {shared address, source, bytes, mbarrier {, mask of blocks}}.
///                  BulkStore: {global address, shared address, bytes}; `combine`, `type`: the operation of cp.reduce.
///                  Commit; WaitGroup {groups left}, `partial`: .read
///   shfl, match.all, elect, vote  {result or result|predicate, ...}
struct Decoded : Operation {
  bool watched = false; ///< calls MachineFunctions::touch, or is a wgmma to look at: see RegisterHazards.h
  Source guard;
  Source carryIn, carryOut;
  std::vector<Source> operands;
  uint32_t target = 0;                              ///< of bra
  uint32_t form = 0;                                ///< the opcode's text, in Kernel::forms
  uint32_t line = 0;                                ///< of the PTX text
  uint32_t locFile = 0, locLine = 0, locColumn = 0; ///< by the last `.loc`; line 0: none. See Program::location
};

struct Symbol {
  Space space;
  uint64_t address; ///< within its space
};

/// Bytes of shared memory that a block of sm_80 and later keeps for the system: zero when it begins, and not the
/// kernel's. Cooperative groups keep barriers of tiles of several warps there.
inline constexpr uint64_t reservedSharedBytes = 1024;

/// Bytes of the workspace that the driver gives to a grid whose blocks are all on the device (a cooperative launch): a
/// size, which the emulator leaves zero, and the word of the grid's barrier. %envreg1 and %envreg2 are the upper and
/// the lower half of its address.
inline constexpr uint64_t gridWorkspaceBytes = 8;

/// A variable as it lies in memory, for bounds and for messages.
struct VariableInfo {
  std::string name;
  Space space = Space::Global;
  uint64_t address = 0, bytes = 0;
  bool constant = false;    ///< .const: stores are findings
  bool initialized = false; ///< global and const ones always are: PTX zeroes what has no initial value
};

struct Kernel {
  std::string name;
  std::vector<Decoded> code; ///< a branch to code.size() ends the thread, as does running into it
  uint32_t registers = 0;
  uint64_t sharedBytes = 0, localBytes = 0, paramBytes = 0;
  /// Where in shared memory the system's own part begins (%reserved_smem_offset_*); only kernels that ask for it have
  /// one.
  std::optional<uint64_t> reservedShared;
  bool cooperative = false;                 ///< it asks for the workspace of its grid
  std::array<uint32_t, 3> cluster = {};     ///< .reqnctapercluster; zero when absent
  uint32_t maxClusterBlocks = 0;            ///< .maxclusterrank; zero when absent
  bool explicitCluster = false;             ///< it has to be launched with clusters
  bool blocksAreClusters = false;           ///< the grid of a launch counts clusters
  std::array<uint32_t, 3> required = {};    ///< .reqntid; zero when absent
  std::array<uint32_t, 3> maximum = {};     ///< .maxntid; zero when absent
  uint32_t maxRegisters = 0, minBlocks = 0; ///< .maxnreg, .minnctapersm; zero when absent
  std::vector<uint64_t> paramOffsets;
  std::vector<unsigned> paramSizes;
  std::vector<std::string> forms;      ///< "add.sat.s32", ...; for messages
  std::vector<VariableInfo> variables; ///< shared and local; dynamic shared memory has 0 bytes and comes last
};

/// Module variables live in one image that is region 0 of global memory.
struct Program {
  llvm::StringMap<Kernel> kernels;
  std::vector<uint8_t> image;
  std::vector<VariableInfo> variables; ///< global and const
  uint64_t gridWorkspace = 0;          ///< where it is in the image, if some kernel is cooperative
  std::vector<std::string> files;      ///< by number of `.file`
  /// "gelu.hlo:7:8" by the `.loc` before the instruction, empty where there is none.
  std::string location(const Decoded &instruction) const;
};

std::unique_ptr<Program> resolve(const ptx::Module &module, DiagnosticEngine &diagnostics);

/// Whether translated code hands the instruction to MachineFunctions::collective (and so to runCollective): those that
/// cross lanes, and those so rare that a loop over the lanes is good enough.
bool isCollective(const Decoded &instruction);

} // namespace hloc::emulator
