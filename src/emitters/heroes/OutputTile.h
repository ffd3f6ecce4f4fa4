#pragma once
// What becomes of a contraction's finished sums: outputs, each where its element lies.

#include "emitters/heroes/ContractionPlaces.h"
#include "hloc/fusion/OutputMaps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hloc {

class OutputTile : ContractionPlaces {
public:
  /// `finished`: what is made of the only hero's sums elsewhere, and is stored as that one would be.
  OutputTile(const ContractionPlan &plan, KernelBuilder &kernel, const TilePlace &at,
             const HloInstruction *finished = nullptr)
      : ContractionPlaces(plan, kernel, at), b(kernel.code()), heroes(plan.heroes()) {
    if (finished)
      heroes = {finished};
    type = heroes.front()->shape().elementType();
    places = outputMaps(kernel.graph(), heroes, plan.roots, kernel.context());
  }

  /// For the function of the outputs at an index of the heroes, from their values there, without which nothing is
  /// stored.
  FunctionRequest request() const;
  void setFunction(mlir::func::FuncOp outputs) { function = outputs; }

  /// Stores a thread's sums of the tile, by product, row and column. `shared`: memory of the hero's type that those of
  /// a single product may go through; otherwise they have their own.
  void store(llvm::ArrayRef<mlir::Value> sums, mlir::Value shared = {});
  /// Leaves them in scratch memory instead, as part number `part` of the sums.
  void storePartial(llvm::ArrayRef<mlir::Value> sums, AffineExpr part);
  /// Stores what is made of sums that lie side by side, of each product as many: `map` has their indices.
  void storeNeighbours(const IndexingMap &map, llvm::ArrayRef<mlir::Value> sums);

private:
  using StorePiece = llvm::function_ref<void(const IndexingMap &map, llvm::ArrayRef<mlir::Value> sums)>;

  ContractionValues values() { return ContractionValues(b, type, plan.bits); }
  const FusionRoot &root(unsigned number) const { return kernel.graph().roots()[number]; }
  /// Of each product, what lies side by side.
  llvm::SmallVector<mlir::Value> vectorsOf(llvm::ArrayRef<mlir::Value> sums);
  /// The side whose neighbours a thread stores side by side, and the other one, along which lines of these are.
  const ContractionSide &minor() const { return plan.areColumnsOfOutputs() ? plan.rows : plan.columns; }
  const ContractionSide &major() const { return plan.areColumnsOfOutputs() ? plan.columns : plan.rows; }
  /// Neighbours of one line, of each product as many, all of them in turn. `part`: stands before their indices, if
  /// there is one.
  void forEachPiece(llvm::ArrayRef<mlir::Value> sums, AffineExpr part, StorePiece store);
  IndexingMap mapOfPiece(int64_t line, int64_t piece, AffineExpr part) const;
  /// Of a product's sums, those of a piece.
  llvm::SmallVector<mlir::Value> sumsOfPiece(llvm::ArrayRef<mlir::Value> sums, int64_t line, int64_t piece) const;
  AffineExpr lineInTile(int64_t line) const;
  AffineExpr lineInTile(AffineExpr line, int64_t first, int64_t together) const;
  void addInside(IndexingMap &map, AffineExpr row, AffineExpr column) const;
  llvm::SmallVector<mlir::Value> insertOutputs(mlir::ValueRange at, mlir::ValueRange ofHeroes, mlir::ValueRange before);

  size_t elementsOfChunk() const { return size_t(ContractionPlan::sharedVectorBits) / deviceBits(type); }
  bool arePairsApart() const { return !plan.storesColumns && plan.isInterleaved(plan.rows); }
  AffineExpr placeInShared(AffineExpr line, AffineExpr inLine) const;
  void storeThroughShared(llvm::ArrayRef<mlir::Value> sums, mlir::Value shared);
  mlir::Value putLines(llvm::ArrayRef<mlir::Value> sums, int64_t first, int64_t together, mlir::Value shared);
  mlir::Value putPiece(AffineExpr line, AffineExpr inLine, llvm::ArrayRef<mlir::Value> sums, mlir::Value shared);
  void storeLines(int64_t first, int64_t together, int64_t groups, mlir::ValueRange shared);

  CodeBuilder &b;
  llvm::SmallVector<const HloInstruction *, 3> heroes;
  ElementType type;                ///< of each
  std::vector<IndexingMap> places; ///< of the plan's roots, from the hero's index
  mlir::func::FuncOp function;
};

} // namespace hloc
