#pragma once
// One operand's tile of a contraction: what a block puts into shared memory for a step of its sums, on its way through
// the threads' registers.

#include "emitters/heroes/ContractionPlaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hloc {

class OperandTile : ContractionPlaces {
public:
  /// `side` is one of the plan's.
  OperandTile(const ContractionPlan &plan, const ContractionSide &side, KernelBuilder &kernel, const TilePlace &at);

  const ContractionSide &ofSide() const { return side; }
  bool isCopied() const { return side.copied; }

  /// For the function of an operand's element at its index, without which nothing is loaded.
  FunctionRequest request() const;
  void setFunction(mlir::func::FuncOp operand) { function = operand; }

  /// Of an element on its way, and of a factor in the tile.
  mlir::Type heldType() const;
  mlir::Type factorType() const;
  mlir::Value allocate() const;
  /// A thread's elements of the tile in the place's step number `number`; zeros where there are none.
  llvm::SmallVector<mlir::Value> load(mlir::Value number);
  /// Vectors that `load` gives.
  int64_t turns() const;
  /// Puts what was loaded into the tile, as factors; of several stages into that number `stage`.
  mlir::Value fill(mlir::ValueRange vectors, mlir::Value shared, mlir::Value stage = {});
  /// Starts to copy a thread's elements of the tile in the place's step number `number` into a stage.
  mlir::Value copy(mlir::Value number, mlir::Value shared, mlir::Value stage = {});

  /// Starts to copy all of the tile in bulk, by the tensor map number `map` of the kernel; its bytes are counted at
  /// `barriers[stage]`. By one thread.
  void copyInBulk(unsigned map, mlir::Value number, mlir::Value shared, mlir::Value stage, mlir::Value barriers);
  int64_t bytesOfTile() const { return plan.tileElements(side) * int64_t(plan.factorBits()) / 8; }

private:
  using Condition = std::pair<AffineExpr, Interval>;
  /// A thread's `side.vector` neighbours.
  struct Group {
    AffineExpr inSide, inDepth; ///< of an element, in the tile; s0 is its number in the group
    AffineExpr first;           ///< number of the group
    int64_t groups;             ///< of the tile
  };
  /// What has to hold for an element to be there, and where it is in the operand.
  struct Place {
    llvm::SmallVector<Condition> conditions;
    llvm::SmallVector<AffineExpr> indices;
  };

  ElementType fragmentType() const { return plan.fragmentType(side); }
  /// Are factors made of what was loaded when that goes to shared memory?
  bool isRoundedInTile() const;
  /// Is it held as it is stored until it goes to shared memory? Behind tests, as factors, each vector would be waited
  /// for before the next is loaded.
  bool isHeldAsStored() const { return tile.onTensorCores || !placeOf(0).conditions.empty(); }

  IndexingMap mapAt(llvm::ArrayRef<AffineExpr> results, llvm::ArrayRef<int64_t> loopSizes) const;
  llvm::SmallVector<mlir::Value> valuesAt(mlir::Value number) const;
  Group groupOf(int64_t turn) const;
  Place placeOf(int64_t turn) const;
  Place placeOf(const Group &group) const;
  void placeDepth(AffineExpr outer, AffineExpr inner, llvm::MutableArrayRef<AffineExpr> ranges) const;
  mlir::Value holds(llvm::ArrayRef<Condition> conditions, mlir::ValueRange operands, int64_t elements);
  bool holdsForAll(const Condition &condition) const;

  mlir::Value loadVector(const Place &place, mlir::Value number);
  mlir::Value loadChunk(const Place &place, mlir::Value number);
  mlir::Value loadElement(const Place &place, mlir::Value number, mlir::Value element);
  mlir::Value zeros(mlir::Type of);
  mlir::Value orZeros(mlir::Value condition, mlir::Type of, llvm::function_ref<mlir::Value()> make);
  /// `make` makes the next tile of one, where there is the group.
  mlir::Value whereGroupIs(const Group &group, mlir::Value shared,
                           llvm::function_ref<mlir::Value(mlir::Value shared)> make);
  mlir::Value placeOfChunk(const Group &group, mlir::Value stage, int64_t piece = 0);
  mlir::Value convertBytes(mlir::Value loaded);
  mlir::Value putChunk(const Group &group, mlir::Value values, mlir::Value shared, mlir::Value stage);
  mlir::Value putPiece(const Group &group, mlir::Value factors, int64_t piece, mlir::Value shared, mlir::Value stage);
  mlir::Value copyChunk(const Group &group, mlir::Value number, mlir::Value shared, mlir::Value stage);

  CodeBuilder &b;
  const ContractionSide &side;
  const HloInstruction &operand;
  const ElementType type;
  const IndexingMap map;
  ContractionValues values;
  mlir::func::FuncOp function;
};

} // namespace hloc
