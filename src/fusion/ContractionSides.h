#pragma once
// What is rows, columns and terms of a contraction, and how each side is read: for all heroes that multiply tiles.

#include "fusion/ContractionMatch.h"
#include "fusion/OperandStrides.h"

#include <array>
#include <map>
#include <vector>

namespace hloc {

/// Finding the sides of a plan's hero. The plan outlives it; what does not depend on the tile is found once.
class ContractionSides {
public:
  ContractionSides(ContractionPlan &plan, const FusionGraph &graph, const TargetInfo &target,
                   mlir::MLIRContext *context);

  /// Rows, columns and the terms of its sums, for a plan without a tile. `areTurned`: rows are what lies side by side
  /// in the result's memory, where that does not matter. Rows are what does in that of all outputs if the plan stores
  /// columns.
  std::optional<Rejection> find(bool areTurned = false);
  /// Then: along what, and how many neighbours at once, all sides of the plan's tile are read.
  void chooseAccesses();
  /// Then, which of them are copied (`ContractionSide::copied`), if tiles come in stages.
  void chooseCopies();
  /// Then, if tensor maps can copy the tiles of all sides, or of columns.
  bool chooseMaps();
  bool chooseMapOfColumns() { return chooseMap(plan.columns); }

  /// What an operand of one of the products is read by, and what is known of it for all tiles.
  struct Factor {
    const HloInstruction *operand;
    IndexingMap map;
    std::optional<OperandStrides> strides;
    double work = 0;                       ///< instructions that make an element each time that a tile is filled
    unsigned widest = 0;                   ///< bits of the widest that is read for one
    std::map<unsigned, unsigned> copiedBy; ///< copiedAtOnce, by vector
  };
  Factor &factorOf(const ContractionSide &side);
  /// Of product number `product`; what they share is the first's.
  const Factor &factorOf(size_t product, unsigned operand) const { return factors[product][operand]; }
  /// Were sides chosen so that outputs are stored side by side, though results are not?
  bool areTurned() const { return minorOfOutputs.has_value(); }

private:
  mlir::MLIRContext *context() const { return factors.front().front().map.context(); }
  const IndexingMap &map(unsigned operand) const { return factors.front()[operand].map; }
  void forEachSide(llvm::function_ref<void(ContractionSide &)> visit);

  std::optional<Rejection> placeTwins();
  void findStrides();
  std::pair<double, unsigned> workOf(const HloInstruction &operand) const;
  bool turn();
  bool turnToOutputs();
  std::optional<Rejection> chooseDimensionsAgain();
  std::optional<Rejection> chooseDimensions();
  std::optional<Rejection> placeGroups();
  Interval depthBounds(unsigned variable) const;
  void orderDepth();
  void chooseCopies(ContractionSide &side);
  unsigned copiedAtOnce(const ContractionSide &side);
  void chooseAccess(ContractionSide &side);
  bool chooseMap(ContractionSide &side);

  ContractionPlan &plan;
  const FusionGraph &graph;
  const TargetInfo &target;
  const ContractionSpace &space;              ///< the plan's
  std::vector<std::array<Factor, 2>> factors; ///< of all products, by operand
  std::optional<unsigned> minorOfOutputs;     ///< a dimension of the space, if turned
};

} // namespace hloc
