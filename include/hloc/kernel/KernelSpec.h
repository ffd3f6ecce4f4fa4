#pragma once
// What a launched kernel is, as plain data: shared by code generation (which fills it), the manifest, the emulator and
// the CUDA runtime (which launch by it). Knows no HLO, no MLIR, no LLVM IR.
//
// Example: gelu over bf16[6,512,4096] is one KernelSpec {name "gelu", grid {12288,1,1}, block {128,1,1}} with two
// parameters: {input 0, 25165824 bytes, read} and {output 0, 25165824 bytes, written}.

#include "hloc/kernel/Proofs.h"
#include "hloc/kernel/TensorMapRecipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
  bool operator==(const Dim3 &) const = default;
};

/// One parameter of a kernel, in PTX parameter order: pointers to inputs, then to outputs and temporaries, then tensor
/// maps.
struct KernelParameter {
  enum class Role { Input, Output, Temporary };
  Role role = Role::Input;
  uint32_t index = 0;      ///< which input or output of the fusion
  std::string shape;       ///< HLO text of the shape with layout, e.g. `bf16[6,512,4096]{2,1,0}`
  uint64_t bytes = 0;      ///< size of the buffer; sub-byte element types are packed, low bits first
  uint32_t alignment = 16; ///< bytes; launchers must honour it
  bool written = false;
  std::optional<uint32_t> alias; ///< parameter whose buffer this is too: an output that takes an input's place
  /// By value, 128 bytes aligned to 64, instead of a pointer: a map of the buffer that a parameter before it points to.
  /// All else here is as there, and launches name the same slice for both. The buffer holds the whole tensor of the map
  /// and is aligned as maps need it.
  std::optional<TensorMapRecipe> tensorMap = std::nullopt;
};

/// Why an emitter that comes before the chosen one in the order of heroes was not taken.
struct HeroRejection {
  std::string hero, reason;
  bool operator==(const HeroRejection &) const = default;
};

/// Something that makes a kernel slow and that its plan shows: why a kernel is not what a person would write.
struct KernelRemark {
  std::string kind; ///< as diagnostics name it: `recomputation`, `serial-reduction`, `f32-dot`, `no-tensor-cores`
  std::string instruction; ///< HLO name, in the fusion's computation
  /// How many times an element is computed; steps of the loop that one thread runs for it; how often tf32 would be
  /// done in the time that f32 takes; terms of a product.
  uint64_t factor = 0;
  std::string message;
  bool operator==(const KernelRemark &) const = default;
};

/// What ptxas said about one entry.
struct KernelResources {
  uint32_t registers = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t stackBytes = 0;
  uint32_t sharedBytes = 0;
  uint32_t barriers = 0;
};

struct KernelSpec {
  std::string name;        ///< PTX entry name
  std::string instruction; ///< of the HLO: the fusion that it was made for, the first of those that share it
  uint32_t line = 0;       ///< of the HLO text, where that or, if a pass made it, its root stands; 0 if unknown
  std::string opName;      ///< `op_name` of the metadata there: which operation of the framework it was; may be empty
  std::vector<KernelParameter> parameters;
  Dim3 grid;
  Dim3 block;
  uint32_t staticSharedBytes = 0;
  uint32_t dynamicSharedBytes = 0;
  std::optional<Dim3> cluster = std::nullopt; ///< blocks of each; nothing: what the PTX says, or no clusters
  bool programmatic = false;                  ///< it may begin before the kernel before it is complete
  std::string hero;                           ///< emitter that was chosen: `loop`, `transpose`, ...
  std::string plan;                           ///< the emitter's decisions on one line
  std::vector<HeroRejection> rejections;
  std::vector<KernelRemark> remarks;
  std::vector<PropertyProof> proofs; ///< all properties in order, if they were asked for
  uint64_t bytesRead = 0;            ///< minimum global traffic of the fusion, for bandwidth figures
  uint64_t bytesWritten = 0;
  /// That a thread may take: 64 leave a multiprocessor 1024 threads. More only where the plan says why.
  uint32_t plannedRegisters = usualRegisters;
  static constexpr uint32_t usualRegisters = 64;
  std::optional<KernelResources> resources; ///< set once ptxas ran
};

} // namespace hloc
