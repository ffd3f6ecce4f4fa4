#pragma once
// What is proved of a kernel before it is lowered: five properties, each with a verdict and what it rests on. Plain
// data; who proves is the layer `prove`.
//
//   in-bounds: refuted, "`x` has 200 elements along dimension 1", block 34, thread 0, element 200 of `x`

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

enum class ProofProperty : uint8_t {
  WrittenOnce,    ///< every element of every output is written exactly once
  InBounds,       ///< all accesses are inside their buffers
  Ordered,        ///< no two threads meet at an element without order, unless both read or both are atomic
  FitsWidth,      ///< no index leaves 32 bits where it is computed in 32
  BarriersReached ///< by all threads of the block, or of the warp
};
constexpr unsigned numProofProperties = 5;
/// `written-once`, `in-bounds`, `ordered`, `fits-width`, `barriers-reached`
const char *text(ProofProperty property);

enum class ProofVerdict : uint8_t { Unknown, Proved, Refuted };
const char *text(ProofVerdict verdict);

/// Where a property does not hold. Blocks and threads are counted along x.
struct ProofWitness {
  struct Place {
    uint64_t block = 0, thread = 0;
    bool operator==(const Place &) const = default;
  };
  std::vector<Place> places;      ///< one or two threads; none: nobody writes the element
  std::string buffer;             ///< as the kernel calls it; empty: it is not about memory
  std::optional<int64_t> element; ///< of the buffer, in the order of its memory
  bool operator==(const ProofWitness &) const = default;
  /// "block 34, thread 0 and block 35, thread 0, element 200 of `x`"
  std::string toString() const;
};

struct PropertyProof {
  ProofProperty property = ProofProperty::WrittenOnce;
  ProofVerdict verdict = ProofVerdict::Unknown;
  std::string reason; ///< of what is not proved; and how far what is proved goes, if not all the way
  std::optional<ProofWitness> witness;
  bool operator==(const PropertyProof &) const = default;
};

} // namespace hloc
