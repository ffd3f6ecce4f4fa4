#pragma once
// What each hero decides about a kernel, beyond what all plans have in common (FusionPlan.h): one struct a row of
// Heroes.def, as printable data. Emitters turn it into IR without deciding anything again.

#include "hloc/fusion/FusionGraph.h"
#include "hloc/fusion/SortPlan.h"
#include "hloc/indexing/IndexingMap.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace hloc {

/// The block of a kernel whose threads work each for itself, as XLA's loop emitter has it. 16 such blocks fill a
/// multiprocessor of 2048 threads.
constexpr uint32_t threadsPerLoopBlock = 128;

/// Outputs with equally many elements, computed in one loop over the memory order of the first.
struct LoopNest {
  llvm::SmallVector<unsigned> roots; ///< indices into FusionGraph::roots()
  int64_t elements = 0;
  /// Consecutive elements of one thread; a power of two. The last `elements % perThread` are one thread's.
  unsigned perThread = 1;
  /// Groups of `perThread` elements that a thread takes; a power of two. A block has `rounds * blockDim` groups that
  /// lie side by side, of which a thread takes one of each `blockDim`. With more than one, blocks have
  /// `threadsPerLoopBlock`.
  unsigned rounds = 1;
  /// Or each round is a part of the array, where that begins with a row: then the indices of a thread's groups differ
  /// by a constant, and are computed once. Its elements, a multiple of `perThread`; 0: rounds lie side by side.
  int64_t elementsOfRound = 0;
  /// Threads of a block whose groups of a round lie side by side: rounds of these follow each other, and then come
  /// those of the next threads. A power of two; fewer than the block has where a thread then stays in one row, and what
  /// is the same all along a row is read once.
  uint32_t lanesOfRound = threadsPerLoopBlock;
  std::string reason; ///< why not more per thread, if sectors decided; for people
  /// That take part, those of the last block who find nothing to do included.
  int64_t threads() const;
};

/// Every thread computes some neighbouring elements of all outputs. Outputs of different element counts get one nest
/// each, executed one after the other by one grid.
struct LoopPlan {
  llvm::SmallVector<LoopNest, 1> nests; ///< none with 0 elements

  std::string toString() const;
};

/// A box of elements as one of the two arrays has it in memory. Its minor dimensions, as far as the box covers them and
/// one more, are one dimension until the box has a run of `run` neighbouring elements.
///
///   run 32, box {32,1,5} of {8191,7,5}: dims {8191,7,5}, box {32,1,5}; box {32,7,5}: dims {286685}, box {1120}
struct TileWalk {
  llvm::SmallVector<unsigned> order; ///< the operand's dimensions, major to minor in this array
  unsigned outer = 0;                ///< so many of them are dimensions here too; the others are the run
  llvm::SmallVector<int64_t> dims;   ///< of the array
  llvm::SmallVector<int64_t> box;    ///< of the tile
  /// Is that dimension of the operand part of the run?
  bool isInRun(unsigned dim) const;
};

/// Permutations of memory through shared memory, all the same one. A hero is a `transpose` or a layout-changing `copy`
/// that takes neighbours apart; outputs read it elementwise. A block fills a tile with a box of the operand in the
/// order of the operand's memory, and reads it in that of the result: in both the box is made of runs long enough to
/// move whole sectors.
///
///   transpose of f32[20,160,170], dimensions={0,2,1}: inputDims {20,160,170}, permutation {0,2,1}, box {1,32,32}
///
/// Dimensions are those of memory, major to minor, with neighbours that stay neighbours merged and sizes of 1 dropped.
struct TransposePlan {
  llvm::SmallVector<const HloInstruction *, 2> heroes;
  llvm::SmallVector<unsigned> roots;      ///< computed when a tile is read back, at the heroes' position in memory
  llvm::SmallVector<unsigned> sideRoots;  ///< computed when a tile is filled, at their operands' position
  llvm::SmallVector<int64_t> inputDims;   ///< of the operand
  llvm::SmallVector<int64_t> permutation; ///< result dimension i is operand dimension permutation[i]
  llvm::SmallVector<int64_t> box;         ///< sizes of the tile along the operand's dimensions
  int64_t run = 1;                        ///< wanted in both orders: TileWalk
  int64_t threads = 0;                    ///< of a block
  unsigned inputVector = 1;               ///< neighbours in the operand that a thread moves at once: divides the runs
  unsigned outputVector = 1;              ///< neighbours in the result
  /// Neighbours along the operand's minor dimension that a thread reads from the tile at once: it turns blocks of
  /// tileVector x outputVector elements in registers. 1: elements come one by one.
  unsigned tileVector = 1;
  bool inOutputOrder = false; ///< the tile holds the box in the order of the result; otherwise in that of the operand
  /// After so many elements of a tile, `pad` are left free, so that both orders find their elements in different banks.
  int64_t period = 1;
  int64_t pad = 0;

  int64_t tilesAlong(unsigned dim) const;
  int64_t boxElements() const;
  /// Elements of a tile, the free ones between them included.
  int64_t tileElements() const;
  /// Bits of an element in a tile. Packed types take a byte.
  static unsigned tileBits(const HloInstruction &hero);
  /// A thread's block is neighbours in the tile: the operand's minor dimension has `tileVector` elements and lies
  /// inside of the result's. Then it is read in vectors of `outputVector`, across rows.
  bool readsWholeRows() const;
  TileWalk walk(bool ofOutput) const;
  /// Threads that take part where runs are dealt in `groups` each: a step moves whole runs, if a block has so many
  /// threads, and a thread keeps its place in them.
  int64_t activeThreads(int64_t groups) const;
  std::string toString() const;
};

/// Work that a range of blocks does alone: elements of some box of indices, in its memory order.
struct BlockSegment {
  int64_t elements = 0;    ///< never 0
  unsigned perThread = 1;  ///< consecutive elements of one thread; a power of two. The last are one thread's
  unsigned rounds = 1;     ///< groups that a thread takes: one of each `block` neighbouring groups
  uint32_t firstBlock = 0; ///< of the grid
  uint32_t blocks = 0;
  int64_t groups() const { return (elements + perThread - 1) / perThread; }
};

/// Dynamic-update-slices of arrays that lie where the outputs do: only the updates are computed and stored. An output
/// that does not take its operand's place is a copy of it first. Updates of an array that was updated before
/// (`dus(dus(x, ...), ...)`) follow in the same kernel if they meet nowhere, else in a kernel of their own.
///
///   dynamic-update-slice(f32[2048,1024] parameter, f32[256,512], i, j): 4 neighbours for each of 32768 threads; where
///   j is no multiple of 4, every 128th element instead
struct UpdateSlicePlan {
  struct Update {
    const HloInstruction *hero; ///< the dynamic-update-slice
    unsigned root;              ///< index into FusionGraph::roots(): the last update of this array, or a bitcast of it
    unsigned parameter;         ///< that the array is, or is a bitcast of
    /// Groups of a thread are aligned in the output where the start along this dimension is a multiple of
    /// `alignedStart`; 1: everywhere.
    unsigned alignedDim = 0;
    int64_t alignedStart = 1;
  };
  /// Updates of equal dimensions, each of another output.
  struct Segment : BlockSegment {
    llvm::SmallVector<Update, 1> updates;
    /// The updates' dimensions in the layout of the first updated array: its memory order is that of the threads.
    Shape space;
    /// Consecutive elements of one thread where its groups are not aligned, a divisor of `perThread`. Then they are in
    /// so many more rounds.
    unsigned perThreadElsewhere = 1;

    /// Elements of a run: neighbours in the update that are neighbours in the outputs, too.
    int64_t runElements() const;
    /// Where nothing is aligned, runs begin with half of a byte, and end with one.
    bool splitsBytes() const;
  };
  std::vector<Segment> segments; ///< of updates that have elements
  /// By root: the parameter whose place it takes.
  llvm::SmallVector<std::optional<unsigned>> places;

  std::string toString() const;
};

/// The start of a dynamic-update-slice along `dim`, as it is clamped, if that is known.
std::optional<int64_t> knownStart(const HloInstruction &hero, unsigned dim);

/// A scatter into arrays that lie where the outputs do: one thread for each few elements of the updates, whose windows
/// are left out as a whole if they are not inside. An output that does not take its operand's place is made before, as
/// a copy of it, a fill, or by another kernel.
///
///   scatter(f32[8192,256] parameter, s32[4096,1], f32[4096,1,256]): 4 neighbours of one window for each of 262144
///   threads; if the indices are sorted, 4 neighbours of each of 8 windows for each of 32768
struct ScatterPlan {
  /// How an update meets what is there.
  enum class Access {
    Store, ///< its place is nobody else's, and what is there does not matter
    Plain, ///< its place is nobody else's: read, combined, written
    Atomic ///< others may write there
  };
  struct Output {
    unsigned root;                     ///< index into FusionGraph::roots(): the result, or a bitcast of it
    std::optional<unsigned> parameter; ///< that the operand is, or is a bitcast of; nothing: computed
    bool inPlace = false;              ///< the output takes the parameter's place
  };
  const HloInstruction *hero;
  llvm::SmallVector<Output, 1> outputs; ///< by result of the scatter
  /// Shape of the updates: its memory order is that of the threads.
  Shape space;
  /// Consecutive elements of one thread; a divisor of their number.
  unsigned perThread = 1;
  bool oneWindow = true; ///< they are neighbours of one window, and neighbours in the outputs
  /// Windows that a thread takes one after another along dimension `alongWindows` of the updates, the same elements of
  /// each. While their place is the same, they are combined in registers.
  unsigned runs = 1;
  int64_t alongWindows = -1;
  bool acrossLanes = false; ///< then the lanes of a warp combine what they have, in the order of the windows
  Access access = Access::Atomic;

  /// The updates with as many windows as there are runs: its memory order is that of the threads.
  Shape groups() const;
  std::string toString() const;
};

/// What one operand of a concatenate gives: blocks that walk the operand's part of the result. Segments of the same
/// blocks are made together: each thread makes an element of each of these operands, which are made of the same values.
struct ConcatenateSegment : BlockSegment {
  unsigned operand = 0;
  int64_t offset = 0; ///< where it begins along the concatenated dimension
};

/// Concatenates of one shape with equal operand shapes, segment by segment: which operand an element comes from is
/// decided once a block, and a large operand leaves no thread of a small one idle.
///
///   concatenate of f32[8,96], f32[8,32] along 1: two segments of 768 and 256 elements
///
/// Outputs are elementwise functions and bitcasts of the concatenates, or have their shape.
struct ConcatenatePlan {
  llvm::SmallVector<const HloInstruction *, 2> heroes;
  llvm::SmallVector<ConcatenateSegment> segments; ///< of the operands that have elements, in order

  int64_t dimension() const { return heroes.front()->ints(AttributeKey::Dimensions).front(); }
  /// The part of the result that is the segment's: the operand's sizes, in the result's layout.
  Shape shapeOf(const ConcatenateSegment &segment) const;
  std::string toString() const;
};

struct SliceRegion;

/// A box of an array and the outputs that show it: the same start, stride and size in each dimension.
struct SliceWindow {
  llvm::SmallVector<int64_t, 4> starts, strides, sizes;
  llvm::SmallVector<const HloInstruction *, 1> heroes; ///< slices; none: the box is the whole array
  llvm::SmallVector<unsigned, 1> roots;                ///< indices into FusionGraph::roots()

  /// Those of the region's indices along `dim` between which its own are: every `stride / region stride`-th from the
  /// first on.
  Interval indicesIn(const SliceRegion &region, unsigned dim) const;
};

/// Elements of the sliced array that blocks of their own compute, and store to every output that shows them. Index i of
/// the region is index `starts + i * strides` of the array.
struct SliceRegion : BlockSegment {
  llvm::SmallVector<int64_t, 4> starts, strides, sizes;
  llvm::SmallVector<unsigned, 4> windows; ///< that show some of it
};

/// Slices of arrays of equal dimensions that overlap, or differ in shape: each element that some output shows is
/// computed once, and stored to all that show it.
///
///   slices [0:6] and [4:10] of f32[10]: regions [0:4], [4:6] of both, [6:10]
///
/// Where such regions would share sectors, being narrow or lying between each other, windows are one region whose
/// elements are tested.
/// Outputs are elementwise functions and bitcasts of slices, or have the sliced array's shape.
struct InputSlicesPlan {
  std::vector<SliceWindow> windows;
  std::vector<SliceRegion> regions; ///< none if no output has elements
  Shape space;                      ///< the sliced array's dimensions in the layout of the slices

  /// Every index of the region is in the window, or all are tested.
  bool covers(const SliceWindow &window, const SliceRegion &region) const;
  /// The region's indices in the space's layout.
  Shape shapeOf(const SliceRegion &region) const;
  std::string toString() const;
};

/// How one result of a reduction is carried until it is complete.
struct Accumulator {
  unsigned hero = 0; ///< index into ReductionFrame::heroes
  unsigned result = 0;
  /// What it is carried as. Narrow integers as 32 bits, of which the result is the lower ones; narrow floats as f32,
  /// rounded once, but for 16-bit floats that are only compared.
  ElementType type = ElementType::F32;
  /// What combines two of it, apart from all other results; none: the reducer, with all of them.
  std::optional<Opcode> combiner;
};

/// A reduction whose reducer may be applied in any order.
struct ReductionHero {
  const HloInstruction *instr = nullptr; ///< the reduce
  /// Of reducers that choose one of two elements (argmax): the operand that numbers the elements, in ascending order.
  /// Its first argument has to be the one with the smaller number, then the order does not matter.
  std::optional<unsigned> position;
  /// The dimensions of the results in the order in which the operand's memory has them.
  Shape kept;
};

/// An output made of reductions' results, or with as many elements.
struct ReducedRoot {
  unsigned root = 0; ///< index into FusionGraph::roots()
  /// Its dimensions in the order in which the operand's memory has them: its element number i there is made of the
  /// results' elements number i.
  Shape order;
};

/// What row and column reductions have in common: reductions of one shape, and what is made of them.
///
/// Dimensions are those of the operands' memory, major to minor, with sizes of 1 dropped and neighbours of one kind
/// merged: kept and reduced ones take turns.
struct ReductionFrame {
  llvm::SmallVector<ReductionHero, 2> heroes;     ///< operands before users
  llvm::SmallVector<Accumulator, 2> accumulators; ///< of all results of all heroes, in order
  llvm::SmallVector<ReducedRoot, 2> roots;
  /// Outputs with as many elements as the operands: stored when the element at their place is read.
  llvm::SmallVector<unsigned, 1> sideRoots;
  llvm::SmallVector<int64_t> dims; ///< none is 1
  bool minorIsReduced = true;      ///< rows; else columns

  bool isReduced(unsigned dim) const { return ((dims.size() - 1 - dim) % 2 == 0) == minorIsReduced; }
  /// Sizes of the kept or of the reduced dimensions, major to minor.
  llvm::SmallVector<int64_t> sizes(bool reduced) const;
  int64_t numResults() const; ///< elements of one result
  int64_t numReduced() const; ///< elements that one of these is made of
  const Shape &operandShape() const { return heroes.front().instr->operand(0)->shape(); }
  /// "[7,100,128] over 0,2; roots 0, side roots 1"
  std::string toString() const;
};

/// Which part of a reduction a kernel does.
enum class ReductionStage : uint8_t {
  Whole,
  Partial, ///< of parts of the reduced elements, into scratch memory
  Combine  ///< of what that kernel left there
};

/// Reductions whose operands' minor dimension is reduced, or of partial results of any reduction: a power of two of
/// threads for a row.
///
///   f32[4096,1024] over 1: 64 threads a row, each 4 vectors of 4 elements; 4 rows a block
///   f32[8,16,16384] over 0,2: rows of 8 runs, each walked by itself; 8 parts of a run
struct RowReductionPlan {
  ReductionFrame frame;
  ReductionStage stage = ReductionStage::Whole;
  int64_t splits = 1; ///< parts of a row, each made by one block (Combine: were made)
  /// Elements that are walked as one: a row, or what of it lies side by side. So no place is looked for by dividing.
  int64_t runLength = 1;
  int64_t runsPerPart = 1; ///< runs of which a part has something; the last may have fewer
  int64_t partsOfRun = 1;  ///< that a run is divided into; 1 if parts have several runs
  int64_t perSplit = 0;    ///< groups of `perThread` elements of a run in a part; the last may have fewer
  unsigned perThread = 1;  ///< neighbouring elements that a thread reads at once, aligned to as many
  /// Runs begin and end between groups: what they have before their first and after their last is read one by one. Else
  /// `perThread` divides the minor dimension, or is the elements of one or several whole rows, which are one thread's.
  bool hasEdges = false;
  uint32_t threadsPerRow = 32; ///< a power of two
  uint32_t rowsPerBlock = 1;   ///< a power of two
  /// The warps of a row leave what each thread has to one of them, which alone shuffles. Else each warp shuffles, and
  /// one thread combines what they have come to.
  bool meetsBeforeShuffling = false;

  int64_t numRuns() const { return frame.numReduced() / runLength; }
  /// Of a part, at most.
  int64_t groups() const { return runsPerPart * perSplit; }
  std::string toString() const;
};

/// How blocks and threads share a reduction over the rows of [slices, rows, columns], an array in memory order. A run
/// is contiguous memory that `lanes` threads read at once: a row's part in one tile of columns, or several rows.
/// `groups` runs of each of `slicesPerBlock` slices make what a block reads at once.
///
///   f32[4096,1024]: 32 lanes of 4 columns by 8 groups; 8 tiles, the rows in 43 splits of 3 chunks of 32
///   f32[65537,3]: 3 lanes of 4 elements read runs of 4 rows, 85 of them at once
struct ColumnTiling {
  int64_t slices = 1, rows = 1, columns = 1;
  unsigned perThread = 1; ///< neighbouring elements of one load; a power of two that divides a run
  int64_t rowsPerRun = 1; ///< more than one only with one tile
  int64_t lanes = 1;      ///< threads side by side
  int64_t groups = 1;     ///< threads one above the other
  int64_t slicesPerBlock = 1;
  int64_t unroll = 1;         ///< runs of which a thread has the elements in flight
  int64_t tiles = 1;          ///< blocks side by side
  int64_t splits = 1;         ///< blocks one above the other: more than one leave partial results
  int64_t chunksPerSplit = 1; ///< chunks of groups * unroll runs; what is no whole chunk is the last split's

  int64_t threads() const { return lanes * groups * slicesPerBlock; }
  int64_t blocks() const;
  int64_t runs() const { return (rows + rowsPerRun - 1) / rowsPerRun; }
  int64_t wholeChunks() const { return rows / rowsPerRun / (groups * unroll); }
  /// Elements of a run, and the different columns that it has.
  int64_t runElements() const { return lanes * perThread; }
  int64_t blockColumns() const { return runElements() / rowsPerRun; }
  /// Rows of accumulators that the block has of each of its slices.
  int64_t partialRows() const { return groups * rowsPerRun; }
  /// Those are combined to so many, and these to one; 1: at once.
  int64_t combinedRows() const;
};

/// How the accumulators of a block's threads lie in shared memory: in pieces of at most 16 bytes, which one thread
/// stores at once, the same piece of all threads side by side. So neither storing them nor reading the neighbouring
/// columns of one row makes two lanes of a warp use one bank.
struct ThreadTile {
  int64_t perPiece = 1; ///< neighbouring columns
  int64_t pieces = 1;   ///< of a thread
  int64_t stride = 0;   ///< elements from one piece of a thread to its next
  int64_t elements = 0;
};

/// Reductions whose operands' minor dimension is kept, or reduced in short pieces (ColumnPieces.h), or of partial
/// results: neighbouring threads have neighbouring columns.
struct ColumnReductionPlan {
  ReductionFrame frame;
  ReductionStage stage = ReductionStage::Whole;
  int64_t splits = 1;  ///< parts of a column, each made by one block (Combine: were made)
  ColumnTiling tiling; ///< of the operand, or (Combine) of [splits, results]

  ThreadTile tileOf(const Accumulator &accumulator) const;
  uint64_t sharedBytes() const;
  std::string toString() const;
};

} // namespace hloc
