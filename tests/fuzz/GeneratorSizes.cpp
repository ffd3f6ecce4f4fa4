// Generator: arrays whose sizes are at, one below and one above those at which kernels change: vectors of every width,
// the threads that fill a device, warps, blocks, sides of tiles.
#include "fuzz/GeneratorState.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Half of the ops are these: what has an emitter of its own or decides which one is taken, and what puts other indices
/// between it and its neighbours.
constexpr Opcode movers[] = {Opcode::Transpose, Opcode::Transpose, Opcode::Copy,           Opcode::Reduce,
                             Opcode::Fusion,    Opcode::Fusion,    Opcode::Concatenate,    Opcode::DynamicUpdateSlice,
                             Opcode::Scatter,   Opcode::Slice,     Opcode::DynamicSlice,   Opcode::Broadcast,
                             Opcode::Reverse,   Opcode::Pad,       Opcode::BitcastConvert, Opcode::Bitcast};

/// An edge of at most `most`, or a size beside it: beside an edge of vectors, any tail.
int64_t besideAnEdge(GeneratorState &g, int64_t least, int64_t most) {
  llvm::SmallVector<int64_t, 64> edges;
  // Multiples of powers of two: devices have 8, 16, 20, ... multiprocessors.
  for (int64_t factor : {1, 3, 5})
    for (int64_t edge = least; edge * factor <= most; edge *= 2)
      edges.push_back(edge * factor);
  if (edges.empty())
    return most;
  llvm::sort(edges);
  int64_t size = edges[std::max(g.below(edges.size()), g.below(edges.size()))]; // small ones have tests of their own
  if (g.oneIn(2))
    size += g.oneIn(2) ? g.between(-31, 31) : g.between(-1, 1);
  return std::clamp<int64_t>(size, 1, std::max<int64_t>(most, 1));
}

} // namespace

std::vector<Opcode> opcodesOfLargeArrays() {
  std::vector<Opcode> elementwise, all;
  for (unsigned i = 0; i < numOpcodes(); ++i)
    if (isElementwise(static_cast<Opcode>(i)))
      elementwise.push_back(static_cast<Opcode>(i));
  for (size_t i = 0; i < elementwise.size(); ++i) {
    all.push_back(elementwise[i]);
    all.push_back(movers[i % std::size(movers)]);
  }
  return all;
}

llvm::SmallVector<int64_t, 6> GeneratorState::edgeDims() {
  if (oneIn(3))
    return {besideAnEdge(*this, 256, options.maxElements)};
  // Two sides of a tile, perhaps with a small dimension somewhere.
  int64_t most = options.maxElements, batch = oneIn(2) ? between(1, 5) : 1;
  int64_t rows = oneIn(3) ? between(8, 16) : besideAnEdge(*this, 16, std::min<int64_t>(most / (batch * 8), 300));
  int64_t columns = besideAnEdge(*this, 8, most / (batch * rows));
  llvm::SmallVector<int64_t, 6> sizes{rows, columns};
  if (oneIn(2))
    std::swap(sizes[0], sizes[1]);
  if (batch > 1)
    sizes.insert(sizes.begin() + below(3), batch);
  return sizes;
}

HloInstruction *generateTiledTranspose(GeneratorState &g) {
  static const ElementType types[] = {ElementType::Pred, ElementType::S8,  ElementType::F8E5M2,
                                      ElementType::BF16, ElementType::U16, ElementType::F32};
  // Narrow elements move in groups where both sides are multiples of four and there are many tiles.
  int64_t most = g.options.maxElements;
  int64_t rows = g.oneIn(2) ? 4 * g.between(2, 16) : besideAnEdge(g, 16, 300);
  int64_t columns = g.oneIn(2) ? most / rows / 4 * 4 : besideAnEdge(g, 16, most / rows);
  if (g.oneIn(2))
    std::swap(rows, columns);
  Shape shape = Shape::array(types[g.below(std::size(types))], {rows, columns});
  HloInstruction *x = g.withShape(shape);
  return g.add(Opcode::Transpose, Shape::array(shape.elementType(), {columns, rows}), {x},
               {g.ints(AttributeKey::Dimensions, {1, 0})});
}

} // namespace hloc
