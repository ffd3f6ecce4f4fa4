#pragma once
// What translated code and the machine know of each other. Translated code is one host function per kernel that runs
// one warp, 32 lanes in lockstep; registers are vectors of 32. It does arithmetic itself and calls the machine for
// everything that touches memory, other lanes or other warps. Masks have bit i set where lane i takes part.
//
// Lane vectors in memory are arrays of 32 elements, element widths 1, 2, 4 or 8 bytes (predicates travel as masks).
// Instructions with several elements per lane (ld.v4, st.v2, mma fragments) pass element 0 of all lanes, then element
// 1 of all lanes, ...

#include "Program.h"

#include <cstdint>
#include <optional>

namespace hloc::emulator {

inline constexpr unsigned warpLanes = 32;

/// Read by translated code at these offsets (static_asserts in Translator.cpp). Everything else about the warp lives
/// in the machine's own structure, which derives from this one.
struct WarpContext {
  uint32_t live = 0; ///< lanes that exist and have not exited; translated code clears bits
  uint32_t warp = 0; ///< %warpid
  uint32_t block[3] = {}, gridSize[3] = {}, blockSize[3] = {};
  /// %clusterid, %nclusterid, %cluster_ctaid, %cluster_nctaid
  uint32_t cluster[3] = {}, gridClusters[3] = {}, blockOfCluster[3] = {}, clusterSize[3] = {};
  uint32_t rank = 0, clusterBlocks = 1;  ///< %cluster_ctarank, %cluster_nctarank
  uint32_t explicitCluster = 0;          ///< %is_explicit_cluster: 0 or 1
  uint32_t numWarps = 0;                 ///< %nwarpid
  uint32_t dynamicShared = 0;            ///< %dynamic_smem_size
  uint32_t totalShared = 0;              ///< %total_smem_size
  const uint8_t *parameters = nullptr;   ///< image of the kernel's parameter space
  uint64_t *instructionCounts = nullptr; ///< two per instruction: warps, threads; null when not counting
  int64_t budget = 0;                    ///< decremented at each backward branch; below zero: call `tick`
  uint32_t thread[3][warpLanes] = {};    ///< %tid.x, .y, .z by lane
};

/// What a warp that jumps back does: leaves, goes on, or lets lanes that wait further on go first.
enum class Tick : uint8_t { Stop, GoOn, Rotate };

/// The machine's entry points, called by translated code. `at` is the instruction (line, space, type, ...), alive for
/// as long as the code is. Addresses are generic or of the space of `at`, one per lane; only lanes in `mask` are read.
struct MachineFunctions {
  /// ld: fills `out` (at->count elements of at->type.bytes() per lane, raw bytes, no extension); lanes outside `mask`
  /// are left alone. Global, shared, local and generic spaces; not param.
  void (*load)(WarpContext *, const Decoded *at, uint32_t mask, const uint64_t *addresses, void *out);
  void (*store)(WarpContext *, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *in);
  /// atom and red; `b` and `c` as the instruction has them (cas: compare, new value), `out` null for red.
  void (*atomic)(WarpContext *, const Decoded *at, uint32_t mask, const uint64_t *addresses, const void *b,
                 const void *c, void *out);
  /// bar.sync / barrier.sync / bar.arrive of barrier `id` with `count` threads (0: all of the block). Returns when the
  /// barrier is complete. bar.red: `predicate` is the mask of lanes with a true predicate; returns popc, or all-ones or
  /// zero for and/or.
  uint32_t (*barrier)(WarpContext *, const Decoded *at, uint32_t mask, uint32_t id, uint32_t count, uint32_t predicate);
  /// bar.warp.sync, or any other warp-wide instruction's check of its member mask (one per lane).
  void (*warpSync)(WarpContext *, const Decoded *at, uint32_t mask, const uint32_t *members);
  /// Everything else that crosses lanes or is too rare to translate: shfl, vote, match, redux, ldmatrix, stmatrix, mma,
  /// cp.async and its waits. `operands[i]` is the i-th source operand as a lane vector (a vector operand: its elements
  /// in a row; predicates: an array of 32 uint32_t 0 or 1), `results[i]` the i-th destination likewise.
  void (*collective)(WarpContext *, const Decoded *at, uint32_t mask, const void *const *operands,
                     void *const *results);
  /// Before an instruction that is `watched`.
  void (*touch)(WarpContext *, const Decoded *at, uint32_t mask);
  /// Warp-level branch statistics; only called when counting.
  void (*branch)(WarpContext *, const Decoded *at, uint32_t active, uint32_t taken);
  /// Refills the budget or ends the launch.
  Tick (*tick)(WarpContext *, const Decoded *at);
  /// trap, or an instruction that ends the kernel.
  void (*trap)(WarpContext *, const Decoded *at, uint32_t mask);
};

using WarpFunction = void (*)(WarpContext *);

/// Class of an instruction for the counters: index into instructionClassNames().
unsigned instructionClass(const Decoded &instruction);

struct TranslateOptions {
  bool count = false;               ///< update WarpContext::instructionCounts and call `branch`
  uint32_t chunkInstructions = 400; ///< kernels of more than twice as many are cut into several host functions
  std::optional<uint64_t> approximationSeed = {}; ///< as EmulatorOptions::approximationSeed
  bool quickly = false; ///< without optimisation: for what runs so few warps that better code does not pay
  bool shared = false;  ///< with it: as calls of functions for all instructions of a kind, whether or not that pays
  bool rotates = false; ///< `tick` may ask to rotate lanes: any block may run while lanes wait at loops
};

/// Owns the host code of the kernels of one program.
class Translator {
public:
  static std::unique_ptr<Translator> create(const MachineFunctions &machine, std::string &error);
  ~Translator();
  /// Host code of a kernel. The kernel must outlive the translator. Null, with a diagnostic that names the instruction,
  /// if one of them cannot be translated.
  WarpFunction translate(const Kernel &kernel, const TranslateOptions &options, DiagnosticEngine &diagnostics);

private:
  Translator();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Whether some thread waits for another warp: at a barrier of the block, or for its warpgroup. Others need no fiber.
bool needsFibers(const Kernel &kernel);
/// Whether it has global atomics, whose order would show in float results: blocks then run in order on one core.
bool hasGlobalAtomics(const Kernel &kernel);

} // namespace hloc::emulator
