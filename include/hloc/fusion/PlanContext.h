#pragma once
// PlanContext: what plans of any number of fusions are made with, one after the other.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>

namespace mlir {
class MLIRContext;
}

namespace hloc {

/// Of a contraction: results of a block, terms of a step, stages in shared memory. Of attention, those of its scores:
/// rows, keys of a piece, terms.
struct TileSizes {
  /// Who multiplies: threads or warps by themselves; warpgroups; these, of tiles that another copies into a ring, which
  /// two blocks do for each other.
  enum class By : uint8_t { Warps, Groups, Ring, RingOfTwo };
  int64_t rows = 0, columns = 0, depth = 0, stages = 1;
  By by = By::Warps;
  bool operator==(const TileSizes &) const = default;
  /// `128x256x32/3`, `128x256x64/3-groups`, `128x256x64/4-ring`, `128x256x64/4-ring2`
  std::string toString() const;
  static std::optional<TileSizes> parse(llvm::StringRef text);
  static std::string list(llvm::ArrayRef<TileSizes> tiles); ///< with commas
};

/// What plans are asked for instead of what is best.
struct PlanChoices {
  std::optional<TileSizes> tile = {}; ///< that is asked for: contractions have it, attention if it can
  std::string hero = {};              ///< by name; empty: whichever takes the least time
  unsigned vector = 0;                ///< neighbours that a thread has at once, a power of two; 0: as many as are best
  int64_t parts = 0;                  ///< of each sum, which a second kernel adds up; 1: none; 0: as many as are best
  int64_t rounds = 0; ///< tiles of a contraction's ring that a block has, one after another; 0: as are best
};

class PlanContext {
public:
  /// `given`: outlives it.
  explicit PlanContext(mlir::MLIRContext *given = nullptr);
  ~PlanContext();
  /// The one given, or its own, made when it is first needed: that takes longer than most plans.
  mlir::MLIRContext *mlir();

  PlanChoices choices;
  /// Plans are asked for how long they take: contractions have the fastest tiles, as far as estimates tell them apart.
  bool comparesTimes = false;
  std::string tileRefusal; ///< why the last that was planned has not the tile; empty: it has
  /// Why the last has not the hero, vector, parts or rounds, and what is best instead; empty: it has.
  std::string refusal;

private:
  std::unique_ptr<mlir::MLIRContext> own;
  mlir::MLIRContext *context;
};

} // namespace hloc
