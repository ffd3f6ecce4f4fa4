// What kernels of contractions compute, where, in how many blocks and steps, and what that takes, once they are
// planned.

#include "fusion/ContractionMatch.h"
#include "fusion/RingRegisters.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/kernel/Estimate.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>

using namespace mlir;

namespace hloc {

llvm::SmallVector<const HloInstruction *, 3> ContractionPlan::heroes() const {
  llvm::SmallVector<const HloInstruction *, 3> all = {hero};
  for (const ContractionTwin &twin : twins)
    all.push_back(twin.hero);
  return all;
}

llvm::SmallVector<const ContractionSide *, 4> ContractionPlan::sides() const {
  llvm::SmallVector<const ContractionSide *, 4> all = {&rows, &columns};
  for (const ContractionTwin &twin : twins)
    all.push_back(&twin.side);
  return all;
}

const HloInstruction &ContractionPlan::heroOf(const ContractionSide &side) const {
  const auto *own = llvm::find_if(twins, [&](const ContractionTwin &twin) { return &twin.side == &side; });
  return own == twins.end() ? *hero : *own->hero;
}

ContractionPlan ContractionPlan::ofProduct(unsigned number) const {
  ContractionPlan plan = *this;
  plan.twins.clear();
  if (number > 0) {
    const ContractionTwin &twin = twins[number - 1];
    plan.hero = twin.hero;
    (isOfRows(twin.side) ? plan.rows : plan.columns) = twin.side;
  }
  return plan;
}

int64_t ContractionPlan::panelOf(const ContractionSide &side) const {
  constexpr int64_t mostBits = 128 * 8;
  return std::min(side.alongDepth ? tile.depth : stride(side), mostBits / int64_t(factorBits()));
}

bool ContractionPlan::copiesAny() const {
  return llvm::any_of(sides(), [](const ContractionSide *side) { return side->copied; });
}

bool ContractionPlan::copiesAll() const {
  return llvm::all_of(sides(), [](const ContractionSide *side) { return side->copied; });
}

bool ContractionPlan::holdsAllAsBytes() const {
  return llvm::all_of(sides(), [&](const ContractionSide *side) { return isHeldAsBytes(*side); });
}

/// (Of columns, lanes of a row and the next two are written together, in pairs.)
int64_t ContractionPlan::outputStride() const {
  constexpr int64_t pad = 8;
  if (!areColumnsOfOutputs())
    return tile.columns() + pad;
  return tile.rows() + (deviceBits(hero->shape().elementType()) < 32 ? pad : pad / 2);
}

/// With one line of each thread.
static int64_t outputElementsOfLine(const ContractionPlan &plan) {
  const ContractionTile &tile = plan.tile;
  return plan.outputStride() *
         (plan.areColumnsOfOutputs() ? tile.warpColumns * tile.laneColumns() : tile.warpRows * tile.laneRows());
}

int64_t ContractionPlan::outputLinesOfThread() const {
  /// Of all lines of a thread, as many as leave room for other blocks; of columns, which only bytes have, beside four
  /// stages of 256x128x128 in the 227 KiB of a block.
  constexpr int64_t mostBytes = 20 << 10, mostBytesOfColumns = 36 << 10;
  const int64_t most = areColumnsOfOutputs() ? mostBytesOfColumns : mostBytes;
  int64_t lines = areColumnsOfOutputs() ? tile.threadColumns : tile.threadRows;
  const int64_t bytesOfLine = numProducts() * outputElementsOfLine(*this) * deviceBits(hero->shape().elementType()) / 8;
  const int64_t fewest = areColumnsOfOutputs() || isInterleaved(rows) ? 2 : 1;
  while (lines % 2 == 0 && lines > fewest && lines * bytesOfLine > most)
    lines /= 2;
  return lines;
}

int64_t ContractionPlan::outputElements() const { return outputLinesOfThread() * outputElementsOfLine(*this); }

int64_t ContractionPlan::rowTiles() const {
  if (!ragged || !ragged->areOfRows())
    return llvm::divideCeil(rows.size, tile.rows());
  // Of each group, and of the rows behind all, the last tile lacks all rows but one at most.
  return (rows.size + (ragged->number + 1) * (tile.rows() - 1)) / tile.rows();
}

double ContractionPlan::busyTiles() const {
  if (!ragged || !ragged->areOfRows())
    return double(tiles() * splits);
  const int64_t ofGroup = llvm::divideCeil(llvm::divideCeil(rows.size, ragged->number), tile.rows());
  return double(batchSize * ragged->number * ofGroup * columnTiles() * splits);
}

double ContractionPlan::busySteps() const {
  if (!ragged || ragged->areOfRows())
    return double(stepsOfSplit());
  return std::min(double(steps()) / double(ragged->number) + 1, double(steps()));
}

bool ContractionPlan::isRaggedAlong(const ContractionSide &side) const {
  if (!ragged)
    return false;
  return ragged->areOfRows() ? isOfRows(side) && !side.alongDepth
                             : side.alongDepth && depth.back() == ragged->dims.position;
}

int64_t ContractionPlan::innerDepth() const {
  return llvm::product_of(llvm::ArrayRef(depthSizes).drop_front(outerDepth));
}

int64_t ContractionPlan::steps() const {
  return llvm::product_of(llvm::ArrayRef(depthSizes).take_front(outerDepth)) * stepsOfInner();
}

int64_t ContractionPlan::stride(const ContractionSide &side) const {
  return (isOfRows(side) ? tile.rows() : tile.columns()) + side.pad;
}

int64_t ContractionPlan::loadedWords() const {
  int64_t all = 0;
  for (const ContractionSide *side : sides())
    if (!side->copied)
      all += (isOfRows(*side) ? tile.rows() : tile.columns()) * tile.depth *
             int64_t(tile.onTensorCores ? heldBits(*side) : bits);
  return all / 32 / tile.threads();
}

uint64_t ContractionPlan::sharedBytes() const {
  uint64_t bytes = 0;
  for (const ContractionSide *side : sides()) {
    const auto ofSide = uint64_t(tile.stages * tileElements(*side) * int64_t(factorBits()) / 8);
    bytes += tile.ofWarpgroups ? llvm::alignTo(ofSide, uint64_t(alignmentOfTiles)) : ofSide;
  }
  bytes += bytesOfBarriers(tile);
  if (outputVector)
    bytes += numProducts() * uint64_t(outputElements()) * deviceBits(hero->shape().elementType()) / 8;
  return bytes;
}

Shape ContractionPlan::partialSums() const {
  const Shape &result = hero->shape();
  ElementType type = result.elementType();
  if (isFloat(type))
    type = bits == 64 ? ElementType::F64 : ElementType::F32;
  else
    type = bits == 64 ? ElementType::S64 : ElementType::S32;
  llvm::SmallVector<int64_t> sizes = {splits}, layout;
  llvm::append_range(sizes, result.dims());
  for (int64_t dim : result.minorToMajor())
    layout.push_back(dim + 1);
  layout.push_back(0);
  return Shape::array(type, sizes).withLayout(layout);
}

/// An element of an operand that only the output at its own index reads: by the thread that stores that.
template <>
bool mayTakePlace<ContractionPlan>(const ContractionPlan &, const FusionGraph &graph, unsigned root,
                                   unsigned parameter) {
  return mayOverwriteElements(graph, root, parameter);
}

IndexingMap factorMap(const HloInstruction &contraction, const ContractionSpace &space, unsigned operand,
                      MLIRContext *context) {
  if (contraction.opcode() != Opcode::RaggedDot) {
    IndexingMap map = operandIndexing(contraction, operand, context)->map;
    if (space.rank() == contraction.shape().rank())
      return map;
    map = compose(space.toResult(context), map);
    map.simplify();
    return map;
  }
  const IndexingMap map = raggedDotMap(contraction, operand, context);
  SmallVector<IndexingVariable> dims(map.dims());
  SmallVector<AffineExpr> symbols;
  for (unsigned i = 0; i < map.ranges().size(); ++i)
    symbols.push_back(getAffineSymbolExpr(i, context));
  for (const IndexingVariable &group : map.runtimes()) {
    symbols.push_back(getAffineDimExpr(unsigned(dims.size()), context));
    dims.push_back(group);
  }
  AffineMap affine =
      map.affine().replaceDimsAndSymbols({}, symbols, unsigned(dims.size()), unsigned(map.ranges().size()));
  return IndexingMap(affine, dims, map.ranges(), {});
}

IndexingMap filledElements(const ContractionPlan &plan, const ContractionSide &side, int64_t times,
                           MLIRContext *context) {
  SmallVector<int64_t> sizes;
  SmallVector<AffineExpr> indices;
  for (auto [dim, size] : llvm::enumerate(plan.space.shape().dims())) {
    bool isOwn = llvm::is_contained(side.dims, dim) || llvm::is_contained(plan.batch, dim);
    sizes.push_back(isOwn ? size : 1);
    indices.push_back(getAffineDimExpr(dim, context));
  }
  const IndexingMap factors = factorMap(*plan.hero, plan.space, side.operand, context);
  if (factors.dims().size() > indices.size()) { // the group
    indices.push_back(getAffineDimExpr(unsigned(sizes.size()), context));
    sizes.push_back(factors.dims().back().bounds.size());
    times = std::max<int64_t>(times / sizes.back(), 1); // a tile of rows has one group's
  }
  sizes.push_back(times);
  IndexingMap ofSide = IndexingMap::fromSizes(AffineMap::get(sizes.size(), 0, indices, context), sizes);
  IndexingMap map = compose(ofSide, factors);
  for (auto [variable, start, size] : llvm::zip_equal(plan.depth, plan.depthStarts, plan.depthSizes))
    map.addConstraint(getAffineSymbolExpr(variable, context), Interval{start, start + size - 1});
  return map.symbolsToDims();
}

/// Each block fills its tiles with elements of both operands; outputs are made at the hero's indices, of divided sums
/// by the kernel that combines these.
template <>
ComputedSpaces computedSpaces<ContractionPlan>(const ContractionPlan &plan, const FusionGraph &graph,
                                               mlir::MLIRContext *context) {
  ComputedSpaces result;
  llvm::append_range(result.kept, plan.heroes());
  auto fill = [&](const ContractionPlan &product, const ContractionSide &side) {
    const int64_t times = product.isOfRows(side) ? product.columnTiles() : product.rowTiles();
    result.spaces.emplace_back().values.push_back(
        {product.hero->operand(side.operand), filledElements(product, side, times, context)});
  };
  if (plan.stage != ReductionStage::Combine) {
    fill(plan, plan.rows);
    fill(plan, plan.columns);
    for (auto [number, twin] : llvm::enumerate(plan.twins)) {
      const ContractionPlan product = plan.ofProduct(unsigned(number) + 1);
      fill(product, product.isOfRows(twin.side) ? product.rows : product.columns);
    }
  }
  if (plan.stage == ReductionStage::Partial)
    return result;
  ComputedSpace outputs;
  for (auto [root, place] : llvm::zip_equal(plan.roots, outputMaps(graph, plan.heroes(), plan.roots, context)))
    outputs.values.push_back({graph.roots()[root].instr, place});
  result.spaces.push_back(std::move(outputs));
  return result;
}

template <> KernelTraffic trafficOf<ContractionPlan>(const ContractionPlan &plan, const FusionGraph &graph) {
  const uint64_t partial = plan.numProducts() * uint64_t(plan.partialSums().byteSize());
  switch (plan.stage) {
  case ReductionStage::Whole:
    return wholeTraffic(graph);
  case ReductionStage::Partial:
    return {graph.bytesRead(), partial};
  case ReductionStage::Combine:
    return {partial, graph.bytesWritten()};
  }
  HLOC_UNREACHABLE("stage");
}

int64_t ContractionPlan::columnsPromoted() const {
  constexpr int64_t most = 128, mostBesideMany = 64, manyResults = 128;
  return std::min(tile.columnsOfGroup(), holdsRows() && results() >= manyResults ? mostBesideMany : most);
}

int64_t ContractionPlan::wantedRegisters() const {
  constexpr int64_t ofIndices = 40;
  // (A product's factors give way to the next one's.)
  const int64_t factors = tile.threadRows * piecesOf(rows) + tile.threadColumns * piecesOf(columns);
  // (Of fragments a thread has two registers of factors for each of its rows and columns.)
  const int64_t wordsOfSum = int64_t(bits) / 32, wordsOfRegister = factorBits() == 64 ? 2 : 1;
  // (Of many terms threads' straight code loads factors ahead.)
  const int64_t ahead = !tile.onTensorCores && tile.depth > 16 ? 24 : 0;
  const int64_t promoted = tile.promotes ? columnsPromoted() / 2 : 0;
  const int64_t held = holdsRows() ? wordsOfHeld() : 0;
  const int64_t ofProducts = tile.ofWarpgroups    ? sums() + promoted + held
                             : tile.onTensorCores ? sums() * wordsOfSum + 2 * factors * wordsOfRegister
                                                  : (sums() + factors + ahead) * wordsOfSum;
  return int64_t(llvm::alignTo(uint64_t(ofIndices + ofProducts + loadedWords()), 8));
}

/// Two, if that many have the registers that they want.
static int64_t blocksOfRing(const ContractionPlan &plan) {
  constexpr int64_t sharedOfMultiprocessor = 228 * 1024, ofSystem = 1024;
  return registersOfConsumers(plan.tile, 2) >= plan.wantedRegisters() &&
                 2 * (int64_t(plan.sharedBytes()) + ofSystem) <= sharedOfMultiprocessor
             ? 2
             : 1;
}

int64_t ContractionPlan::registersOfConsumers() const { return hloc::registersOfConsumers(tile, blocksOfRing(*this)); }

bool ContractionPlan::exchangesRegisters() const {
  return registersOfConsumers() > registersOfRing(tile, blocksOfRing(*this));
}

template <> unsigned plannedRegisters<ContractionPlan>(const ContractionPlan &plan) {
  if (plan.stage == ReductionStage::Combine)
    return KernelSpec::usualRegisters;
  if (plan.tile.hasProducer)
    return unsigned(registersOfRing(plan.tile, blocksOfRing(plan)));
  return unsigned(
      std::clamp<int64_t>(plan.wantedRegisters(), KernelSpec::usualRegisters, ContractionPlan::mostRegisters));
}

/// (Neighbours share loads where there are threads enough.)
FollowingKernel combinePartialSums(ContractionPlan plan, const TargetInfo &target) {
  plan.stage = ReductionStage::Combine;
  const int64_t results = plan.hero->shape().numElements(), vector = ContractionPlan::sharedVectorBits / plan.bits;
  const bool isMany = results / vector >= int64_t(target.multiprocessors) * target.threadsPerMultiprocessor / 2;
  plan.perThread = isMany && results % vector == 0 ? vector : 1;
  LaunchGeometry launch;
  launch.block = {combiningThreads, 1, 1};
  launch.grid = {uint32_t(llvm::divideCeil(results / plan.perThread, combiningThreads)), 1, 1};
  return {std::move(plan), launch};
}

int64_t ContractionPlan::fewestRounds(const TargetInfo &target) const {
  const double warps = double(tile.threadsOfBlock()) / double(target.warpSize);
  const bool areAlone =
      residentBlocks(plannedRegisters(*this), uint32_t(sharedBytes()), warps, deviceOf(target).sharedBytes) < 2;
  return areAlone ? llvm::divideCeil(tiles(), int64_t(target.multiprocessors)) : 1;
}

static std::string nameOf(unsigned products) {
  return products == 1 ? "product" : fmt::format("{} products", products);
}

std::string ContractionPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  if (stage == ReductionStage::Combine)
    return fmt::format("{}: {} parts of each of {} sums, {} a thread", nameOf(numProducts()), splits,
                       hero->shape().numElements(), perThread);
  os << nameOf(numProducts()) << " of ";
  if (batchSize != 1)
    os << batchSize << " times ";
  os << fmt::format("{} rows (operand {}) by {} columns (operand {}), {} terms in {} step{}; ", rows.size, rows.operand,
                    columns.size, columns.operand, llvm::product_of(depthSizes), steps(), steps() == 1 ? "" : "s");
  if (ragged)
    os << fmt::format("{} groups of {}; ", ragged->number, ragged->areOfRows() ? "rows" : "terms");
  os << fmt::format("tiles of {}x{}, {}x{} a thread{}, {} terms a step; ", tile.rows(), tile.columns(), tile.threadRows,
                    tile.threadColumns,
                    tile.promotes        ? " in warpgroups, promoted each step"
                    : tile.ofWarpgroups  ? " in warpgroups"
                    : tile.onTensorCores ? " on tensor cores"
                                         : "",
                    tile.depth);
  if (holdsRows())
    os << "rows transposed on their way to registers; ";
  const bool areAllCopied = copiesAll();
  os << (areAllCopied ? "copied by " : "read by ");
  llvm::interleave(
      sides(), os,
      [&](const ContractionSide *side) {
        os << fmt::format("{} {}{}", side->vector, side->alongDepth ? "terms" : "neighbours",
                          side->copied && !areAllCopied ? ", copied," : "");
      },
      " and ");
  if (tile.hasProducer)
    os << fmt::format(" by tensor maps in a ring of {} stages{}", tile.stages,
                      tile.cluster == 1 ? ""
                      : tile.sharesRows ? ", rows for a neighbour, too"
                                        : ", columns for a neighbour, too");
  else if (tile.stages > 1)
    os << fmt::format(" in {} stages", tile.stages);
  if (rounds > 1)
    os << fmt::format("; {} tiles a block", rounds);
  os << "; roots ";
  llvm::interleave(roots, os, ",");
  if (stage == ReductionStage::Partial)
    os << fmt::format("; sums in {} parts of {} steps", splits, stepsOfSplit());
  return result;
}

} // namespace hloc
