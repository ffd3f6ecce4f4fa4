#include "hloc/fusion/OutputMaps.h"

#include "hloc/fusion/HloIndexing.h"
#include "hloc/indexing/ShapeMaps.h"

using namespace mlir;

namespace hloc {

std::optional<IndexingMap> stepThrough(const HloInstruction &instr, unsigned operand, MLIRContext *context) {
  const Shape &from = instr.operand(operand)->shape(), &to = instr.shape();
  if (!from.isArray() || !to.isArray() || from.numElements() != to.numElements())
    return std::nullopt;
  if (from.sameDims(to) && (readsOperandsInPlace(instr) || instr.opcode() == Opcode::Copy))
    return IndexingMap::identity(context, from.dims());
  if (instr.opcode() == Opcode::Transpose) {
    llvm::ArrayRef<int64_t> dimensions = instr.ints(AttributeKey::Dimensions);
    return permutationMap(dimensions, from.dims(), context);
  }
  if (instr.opcode() == Opcode::Reshape)
    return reshapeMap(from.dims(), to.dims(), context);
  if (instr.opcode() == Opcode::Bitcast && deviceBits(from.elementType()) == deviceBits(to.elementType()))
    return bitcastIndexing(from, to, context);
  return std::nullopt;
}

Places<Rearranged> rearrangements(const FusionGraph &graph, HeroesOfOneShape heroes, MLIRContext *context) {
  Places<Rearranged> places(graph.computation());
  for (const HloInstruction *hero : heroes)
    places.set(*hero, {IndexingMap::identity(context, hero->shape().dims())});
  places.follow(graph.instructions(),
                [&](const HloInstruction &instr, unsigned operand, const Rearranged &read) -> PlaceAnswer<Rearranged> {
                  std::optional<IndexingMap> step = stepThrough(instr, operand, context);
                  if (!step)
                    return Elsewhere();
                  IndexingMap map = compose(read.map, *step);
                  map.simplify();
                  return Rearranged{std::move(map)};
                });
  return places;
}

std::vector<IndexingMap> outputMaps(const FusionGraph &graph, HeroesOfOneShape heroes, llvm::ArrayRef<unsigned> roots,
                                    MLIRContext *context) {
  const Places<Rearranged> places = rearrangements(graph, heroes, context);
  std::vector<IndexingMap> maps;
  for (unsigned root : roots) {
    const Rearranged *place = places.at(*graph.roots()[root].instr);
    maps.push_back(place ? place->map : bitcastIndexing(heroes.front()->shape(), graph.roots()[root].shape, context));
    maps.back().simplify();
  }
  return maps;
}

int64_t neighboursKept(const IndexingMap &map, const Shape &output, unsigned dim, int64_t most) {
  const int64_t flat[] = {output.numElements()}, flatLayout[] = {0};
  const IndexingMap position =
      compose(map, bitcastMap(output.dims(), output.minorToMajor(), flat, flatLayout, map.context()));
  most = std::min(most, map.dims()[dim].bounds.size());
  llvm::SmallVector<int64_t> index(map.dims().size(), 0);
  const int64_t first = position.evaluate(index, {})->front();
  int64_t kept = 1;
  for (; kept < most; ++kept) {
    index[dim] = kept;
    if (position.evaluate(index, {})->front() != first + kept)
      break;
  }
  return kept;
}

} // namespace hloc
