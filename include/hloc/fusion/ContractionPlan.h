#pragma once
// What the hero of contractions (dot, ragged-dot, convolution) decides about a kernel.

#include "hloc/fusion/ContractionSpace.h"
#include "hloc/fusion/HeroPlans.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/PlanContext.h"
#include "hloc/kernel/TensorMapRecipe.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace hloc {

struct TargetInfo;

/// What threads and blocks have of a product of matrices, and how it is dealt to them. A warp is `laneRows` x
/// `laneColumns` lanes.
///
///   8x8 a thread, 4x2 warps: 128x128 results of a block of 256 threads
///   8x16 a thread, 2x2 warps on tensor cores: 128x128 results of a block of 128 threads
///   2x64 a thread, 8x1 warps in two warpgroups: 128x256 results of a block of 256 threads
struct ContractionTile {
  /// Of what tensor cores multiply at once: a thread has results of two rows, two of each.
  static constexpr int64_t fragmentRows = 16, fragmentColumns = 8;
  static constexpr int64_t warpsOfGroup = 4, rowsOfGroup = 64; ///< of a warpgroup, at once

  int64_t warpRows = 1, warpColumns = 1;     ///< of a block
  int64_t threadRows = 1, threadColumns = 1; ///< results of a thread; powers of two
  int64_t depth = 16;                        ///< terms of each sum that are in shared memory at once; a power of two
  /// Fragments of columns are loaded in pairs: `threadRows` is a multiple of 2 then, `threadColumns` of 4, `depth`
  /// of that of a fragment.
  bool onTensorCores = false;
  /// Do four warps at a time multiply what is in shared memory (wgmma)? Each such group has `warpRows / 4` by
  /// `warpColumns` parts of the tile, by 64 rows at once; columns of a part are a multiple of 8, 256 at most.
  bool ofWarpgroups = false;
  /// Of warpgroups: do they multiply f8 as they are? What they add up keeps 14 bits, so the sums of each step begin
  /// with nothing, and are added to others of f32 (decisions/0038): promoted, as it is called.
  bool promotes = false;
  /// Does one more warpgroup copy the tiles by tensor maps, into stages that are a ring, for those that multiply?
  bool hasProducer = false;
  /// Of a ring: blocks of a cluster, which have neighbouring rows, the same columns, and of these each copies a part
  /// for all (multicast); or neighbouring columns, and the same rows.
  int64_t cluster = 1;
  bool sharesRows = false;
  /// Of a side's tile in shared memory: one is filled while others are multiplied. One alone is filled between two
  /// barriers.
  int64_t stages = 1;

  int64_t laneRows() const { return onTensorCores ? 8 : 4; }
  int64_t laneColumns() const { return onTensorCores ? 4 : 8; }
  int64_t columnsOfGroup() const { return laneColumns() * threadColumns; }
  int64_t rows() const { return warpRows * laneRows() * threadRows; }
  int64_t columns() const { return warpColumns * laneColumns() * threadColumns; }
  int64_t threads() const { return warpRows * warpColumns * laneRows() * laneColumns(); } ///< that multiply
  int64_t threadsOfBlock() const { return threads() + (hasProducer ? warpsOfGroup * laneRows() * laneColumns() : 0); }
  TileSizes sizes() const {
    using By = TileSizes::By;
    return {rows(), columns(), depth, stages,
            cluster > 1    ? By::RingOfTwo
            : hasProducer  ? By::Ring
            : ofWarpgroups ? By::Groups
                           : By::Warps};
  }
  bool operator==(const ContractionTile &) const = default;
};

/// What becomes of a factor of f32 that is multiplied as narrower ones: one that is rounded, or several that are added
/// up, the largest first. An `algorithm` says so; or the other factor has the values of a bf16, and three pieces all
/// bits of an f32 (decisions/0020). Of all products of pieces, those are made whose numbers add up to no more than
/// `order`; all but the first are added up by themselves, so that an infinity does not meet its rest there.
///
///   dot_bf16_bf16_f32_x3: 2 pieces each, order 1, three products
///   dot of an f32 by a bf16: 3 pieces and 1, order 2, three products
struct FactorPieces {
  std::array<unsigned, 2> ofOperand = {1, 1};
  unsigned order = 0;
  bool areSeveral() const { return ofOperand[0] > 1 || ofOperand[1] > 1; }
  unsigned products() const;
  bool operator==(const FactorPieces &) const = default;
};

/// How tiles of a side are copied in bulk, of a parameter as it lies in memory: a copy moves `recipe.box`, a panel of
/// the tile. What of the parameter a dimension of the map goes along: the side, the terms of the sums, or a part of the
/// batch, of whose position it is `position / divisor % size`.
struct TileMap {
  enum class Along : uint8_t { Side, Depth, Batch };
  struct Dim {
    Along along;
    int64_t size = 1, divisor = 1;
  };
  unsigned parameter = 0;
  TensorMapRecipe recipe;
  llvm::SmallVector<Dim, TensorMapRecipe::maxRank> dims; ///< the innermost first
};

/// One operand of a contraction, seen as a matrix: the space's dimensions that are its alone, by those it sums over.
struct ContractionSide {
  unsigned operand = 0;
  llvm::SmallVector<unsigned> dims; ///< of the space, major to minor in memory; none: one row
  int64_t size = 1;                 ///< product of their sizes
  bool alongDepth = false;          ///< neighbours in memory are terms of one sum; else of neighbouring sums
  unsigned vector = 1;              ///< neighbours that a thread reads at once; divides what is neighbours
  /// Are tiles copied as they lie in memory, in pieces of `vector`, by what a thread does not wait for? Else by way of
  /// its registers.
  bool copied = false;
  std::optional<TileMap> map; ///< by which a producer copies, if there is one
  double spread = 1;          ///< bytes of the sectors that are read, of each byte
  /// Of indices, that what the operand is computed of depends on (concatenate, pad, an update); all twice where any of
  /// it is a loop.
  unsigned tests = 0;
  /// Behind several tests elements are computed one after the other.
  bool branches() const { return tests > 1; }
  /// Elements that are left free after each row of the tile in shared memory.
  int64_t pad = 0;
};

/// An operand whose elements are those of a parameter of the fusion as they are stored: which, and at which indices.
struct StoredOperand {
  unsigned parameter;
  IndexingMap map;
};
std::optional<StoredOperand> storedOperand(const HloInstruction &operand, mlir::MLIRContext *context);

/// From an index of the space, and the range variables that are summed over, to the factor's. A last dim is the group
/// whose right side of a ragged-dot it is, if each has one.
IndexingMap factorMap(const HloInstruction &contraction, const ContractionSpace &space, unsigned operand,
                      mlir::MLIRContext *context);

/// A contraction that is made together with another: one operand is the same value, read in the same way, and is in
/// shared memory once for both; the other is a side of its own, as large as the other's. Results have the same places.
///
///   logistic(dot(x, g)) * dot(x, u): both have the rows of x, and columns of their own
struct ContractionTwin {
  const HloInstruction *hero = nullptr;
  ContractionSide side; ///< that is its own
};

/// What of a ragged-dot is whose group's: of its rows, which lie one group after the other, or of its terms, where
/// each group has results of its own. Sizes are known when the kernel runs.
struct RaggedGroups {
  RaggedDims dims;
  int64_t number = 1;
  int64_t extent = 0; ///< of the ragged dimension, from which on sizes are cut off
  bool areOfRows() const { return dims.kind == RaggedDims::Kind::Free; }
};

/// A dot or convolution as a batch of products of matrices, in blocks of results. A block takes pieces of the sums one
/// after another: of both operands it puts what a piece needs into shared memory, each element once, in the type in
/// which sums are computed; from there each thread multiplies some rows by some columns in registers. What the operands
/// are computed of is computed when they are put there; what the outputs are made of, when a sum is complete.
/// Factors of types that tensor cores multiply stay as they are, and warps multiply fragments of them there, where the
/// target has any. Nothing is computed of most of them then: tiles are copied several steps ahead, into one of several
/// stages.
///
///   dot of f32[512,256] by f32[256,1024]: rows 512, columns 1024, depth 256 in 16 steps of 16; 8x8 results of each of
///   256 threads, 32 blocks
///
/// A convolution's rows are positions of the result, its depth the window by the input's features: elements in the
/// padding are zeros. Columns are what is minor in the result's memory, or else in that of all outputs, so that results
/// are stored side by side.
///
/// Of a ragged-dot whose groups are of rows, a block has rows of one group, from its first on: one more tile for each
/// group than without, and for the rows behind all groups, which are zeros. Where they are of terms, each group is one
/// of a batch, of which a block takes the steps that have any.
///
/// Contractions that share an operand and have results of one shape are twins: a block has the same tile of each, with
/// sums of their own, and what is made of all of them is made where all are complete.
///
/// Long sums of few results are divided: `splits` blocks have a range of the steps each and leave their sums in scratch
/// memory, for each product [splits][the result's dimensions]; a second kernel adds these up and makes the outputs.
struct ContractionPlan {
  /// Widest access of a thread to shared memory, and what is left free after a row that is filled across rows.
  static constexpr int64_t sharedVectorBits = 128;

  const HloInstruction *hero = nullptr;
  llvm::SmallVector<unsigned> roots; ///< all outputs: where OutputMaps.h says
  ContractionSpace space;
  llvm::SmallVector<unsigned> batch; ///< dimensions of the space that both operands have, major to minor in memory
  int64_t batchSize = 1;
  ContractionSide rows, columns;
  llvm::SmallVector<ContractionTwin, 2> twins; ///< of `hero`; all have the rows, or all have the columns, that it has
  std::optional<RaggedGroups> ragged;
  /// What is summed over: numbers of the range variables of the operands' maps, outer to inner. A step takes one value
  /// of each of the first `outerDepth`, and `tile.depth` neighbours of the others taken as one.
  llvm::SmallVector<unsigned> depth;
  unsigned outerDepth = 0;
  llvm::SmallVector<int64_t> depthStarts, depthSizes; ///< bounds of these variables, in the order of `depth`
  ContractionTile tile;
  int64_t leastStage = 0; ///< elements that a stage has at least, if other tiles take their turns there
  unsigned bits = 32;     ///< of the type in which sums are computed
  int64_t splits = 1;
  /// Of a ring: tiles that a block has, one after the other. Terms of the next one are copied meanwhile.
  int64_t rounds = 1;
  ReductionStage stage = ReductionStage::Whole;
  /// Of neighbours in memory that a thread stores at once, if results of tensor cores go through shared memory first,
  /// where they are in fragments; 0: each thread stores its own.
  unsigned outputVector = 0;
  bool storesColumns = false; ///< are these neighbours of a column of results, instead of a row?
  int64_t perThread = 1;      ///< results of a thread that combines, neighbours in memory
  /// The algorithm of which it is asked what the plan would be; else it is the hero's.
  std::optional<DotAlgorithm> asIf;

  /// Of which the hero's is the first.
  unsigned numProducts() const { return 1 + unsigned(twins.size()); }
  llvm::SmallVector<const HloInstruction *, 3> heroes() const;
  /// Rows, columns, and those that are the twins' own.
  llvm::SmallVector<const ContractionSide *, 4> sides() const;
  const HloInstruction &heroOf(const ContractionSide &side) const; ///< a twin of its own side, else the hero
  bool isOfRows(const ContractionSide &side) const { return side.operand == rows.operand; }
  /// Of which neighbours are stored side by side: a dimension of the space; nothing, of a single row.
  std::optional<unsigned> minorOfStored() const {
    const llvm::SmallVector<unsigned> &dims = storesColumns ? rows.dims : columns.dims;
    return dims.empty() ? std::nullopt : std::optional(dims.back());
  }
  /// Blocks of a cluster that each copy a part of a side's tile for all.
  int64_t copiersOf(const ContractionSide &side) const { return isOfRows(side) == tile.sharesRows ? tile.cluster : 1; }
  /// As if that product were alone.
  ContractionPlan ofProduct(unsigned number) const;
  /// Where tiles of warpgroups start in shared memory: swizzles are a matter of addresses.
  static constexpr int64_t alignmentOfTiles = 1024;
  /// Of neighbours in a row of a side's tile of warpgroups, as many as swizzles go over; a tile is panels of as many.
  int64_t panelOf(const ContractionSide &side) const;
  /// Of a ring: barriers, two for each stage, lie behind all tiles.
  static constexpr int64_t bytesOfBarrier = 8;
  bool copiesAny() const;
  bool copiesAll() const;

  /// In which tensor cores multiply both operands' factors, if they do: types that have all of their values (of f8,
  /// f16). Bytes of each side have a sign of their own; F32 are words of which tensor cores look at 19 bits.
  static std::optional<std::array<ElementType, 2>> fragmentTypes(const HloInstruction &hero) {
    return fragmentTypes(hero, algorithmOf(hero));
  }
  static std::optional<std::array<ElementType, 2>> fragmentTypes(const HloInstruction &hero, DotAlgorithm algorithm);
  std::optional<std::array<ElementType, 2>> fragmentTypes() const { return fragmentTypes(*hero, algorithm()); }
  ElementType fragmentType(const ContractionSide &side) const {
    return tile.promotes ? typeOfFactor(side) : (*fragmentTypes())[side.operand];
  }
  ElementType typeOfFactor(const ContractionSide &side) const {
    return heroOf(side).operand(side.operand)->shape().elementType();
  }
  /// Are factors of all products f8 that warpgroups multiply as they are, where sums of 14 bits are admissible?
  bool mayPromote() const;
  /// Has a target tensor cores that multiply factors of these types? (Of sm_75, f16 and bytes.)
  static bool hasTensorCores(const TargetInfo &target, const std::array<ElementType, 2> &types);
  static FactorPieces piecesOf(const HloInstruction &hero, DotAlgorithm algorithm);
  /// Do tensor cores multiply factors as they are, neither rounded nor in pieces?
  static bool multipliesWholeFactors(const HloInstruction &hero) {
    return fragmentTypes(hero, DotAlgorithm::Unset) && !piecesOf(hero, DotAlgorithm::Unset).areSeveral();
  }
  FactorPieces pieces() const { return tile.onTensorCores ? piecesOf(*hero, algorithm()) : FactorPieces(); }
  unsigned piecesOf(const ContractionSide &side) const { return pieces().ofOperand[side.operand]; }
  static DotAlgorithm algorithmOf(const HloInstruction &hero) {
    return hero.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset);
  }
  DotAlgorithm algorithm() const { return asIf.value_or(algorithmOf(*hero)); }
  /// Of a thread, of each product and of all.
  int64_t results() const { return tile.threadRows * tile.threadColumns; }
  int64_t sumsOfProduct() const { return results() * (pieces().areSeveral() ? 2 : 1); }
  int64_t sums() const { return sumsOfProduct() * numProducts(); }
  /// Where a thread multiplies by itself, terms whose products are the code of one iteration: about so many, and a
  /// power of two, as the depth is.
  int64_t termsTogether() const {
    constexpr uint64_t products = 128;
    return std::clamp<int64_t>(int64_t(llvm::bit_floor(products / uint64_t(results() * numProducts()))), 1, tile.depth);
  }
  /// Of a factor in shared memory: as it is stored, or nearly so, for tensor cores.
  unsigned factorBits() const { return tile.onTensorCores ? deviceBits(fragmentType(rows)) : bits; }
  /// Of one on its way there: pieces are made when it arrives, and bytes converted that are wider there.
  unsigned heldBits(const ContractionSide &side) const {
    return piecesOf(side) > 1 ? 32 : isHeldAsBytes(side) ? 8 : factorBits();
  }
  /// Tensor cores multiply floats of a byte as wider ones.
  bool isHeldAsBytes(const ContractionSide &side) const {
    const ElementType type = typeOfFactor(side);
    return tile.onTensorCores && piecesOf(side) == 1 && isFloat(type) && deviceBits(type) == 8 && factorBits() > 8;
  }
  bool holdsAllAsBytes() const;
  /// Terms of a product of fragments: eight registers of four lanes.
  int64_t fragmentDepth() const { return 8 * std::max<int64_t>(1, 32 / int64_t(factorBits())); }
  /// Has a thread, of a side's fragments of 16 rows or of 2 x 8 columns, neighbours instead of those eight apart? Where
  /// these neighbours are in one access to shared memory and ldmatrix does not transpose them.
  bool isInterleaved(const ContractionSide &side) const {
    return tile.onTensorCores && !side.alongDepth && factorBits() != 16;
  }
  /// Do warpgroups take rows from registers? The hardware transposes factors of 16 bits alone: other rows that lie
  /// across their sums go there as fragments. Columns lie along theirs.
  bool holdsRows() const {
    return tile.ofWarpgroups && factorBits() != 16 && !rows.alongDepth && !pieces().areSeveral();
  }
  /// Registers of a thread for these fragments of 64 rows and the terms of a step.
  int64_t wordsOfHeld() const { return tile.depth * int64_t(factorBits()) / 64; }
  /// Of a group's columns whose sums are promoted, so many are multiplied at once, by 64 rows: those sums that they are
  /// added to want registers, too, and so do rows that are held.
  int64_t columnsPromoted() const;
  int64_t innerDepth() const;
  int64_t stepsOfInner() const { return (innerDepth() + tile.depth - 1) / tile.depth; }
  int64_t steps() const;
  /// At most.
  int64_t rowTiles() const;
  int64_t columnTiles() const { return (columns.size + tile.columns() - 1) / tile.columns(); }
  int64_t stepsOfSplit() const { return (steps() + splits - 1) / splits; }
  int64_t tiles() const { return batchSize * rowTiles() * columnTiles(); }
  /// That add up products. In each round they have tiles that follow each other; in the last one some may have none.
  int64_t blocks() const { return (tiles() / tile.cluster + rounds - 1) / rounds * tile.cluster * splits; }
  /// Of a ring whose block is alone on a multiprocessor: as many as each would have, one block after the other.
  int64_t fewestRounds(const TargetInfo &target) const;
  /// Of tiles that have rows, one for each part of their sums, and of the steps of one, if all groups are of one size.
  double busyTiles() const;
  double busySteps() const;
  /// Are neighbours of a side those of a ragged dimension, of which groups begin anywhere?
  bool isRaggedAlong(const ContractionSide &side) const;
  /// Of a stage of a side's tile in shared memory: elements from one term to the next, of a piece, and all.
  int64_t stride(const ContractionSide &side) const;
  int64_t pieceElements(const ContractionSide &side) const { return stride(side) * tile.depth; }
  int64_t tileElements(const ContractionSide &side) const { return pieceElements(side) * piecesOf(side); }
  int64_t stageElements(const ContractionSide &side) const { return std::max(tileElements(side), leastStage); }
  /// Of a tile of results in shared memory: is it lines of rows side by side, instead of columns? Then, how many of its
  /// rows, or of its columns if these are the lines, a thread has there at a time; elements from one line to the next,
  /// such that fragments are in different banks, and all.
  bool areColumnsOfOutputs() const { return storesColumns && holdsRows(); }
  int64_t outputLinesOfThread() const;
  int64_t outputStride() const;
  int64_t outputElements() const;
  /// Registers of a thread for what is on its way to shared memory.
  int64_t loadedWords() const;
  /// Of a thread: sums, fragments or factors, what is on its way to shared memory, and addresses.
  int64_t wantedRegisters() const;
  /// Where there is a producer: of those that copy, and of those that multiply when these gave theirs away.
  static constexpr int64_t registersOfProducer = 40;
  int64_t registersOfConsumers() const;
  bool exchangesRegisters() const; ///< or have all enough from the start?
  static constexpr int64_t mostRegisters = 255;
  uint64_t sharedBytes() const;
  Shape partialSums() const; ///< what lies in scratch memory of each product
  std::string toString() const;
};

} // namespace hloc
