#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/hlo/ReshapeLayouts.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {

LaunchGeometry launchOf(int64_t threads, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {uint32_t(std::clamp<int64_t>(threads, 1, threadsPerLoopBlock)), 1, 1};
  uint64_t blocks = (uint64_t(threads) + threadsPerLoopBlock - 1) / threadsPerLoopBlock;
  uint64_t rows = std::max<uint64_t>((blocks + target.maxGridX - 1) / target.maxGridX, 1);
  launch.grid = {uint32_t((blocks + rows - 1) / rows), uint32_t(rows), 1};
  return launch;
}

void StreamWidths::add(const Shape &shape) {
  unsigned bits = deviceBits(shape.elementType());
  narrowest = widest == 0 ? bits : std::min(narrowest, bits);
  widest = std::max(widest, bits);
}

unsigned StreamWidths::elements(const TargetInfo &target) const {
  unsigned vectorBits = target.maxVectorBytes * 8;
  const unsigned most = std::min({vectorBits / narrowest, 2 * vectorBits / std::max(widest, 8u), 32u});
  return asked ? std::min(asked, most) : most;
}

bool isRenaming(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Bitcast && instr.shape().isArray() && instr.operand(0)->shape().isArray() &&
         deviceBits(instr.shape().elementType()) == deviceBits(instr.operand(0)->shape().elementType());
}

const HloInstruction &behindBitcasts(const HloInstruction &instr) {
  const HloInstruction *value = &instr;
  while (isRenaming(*value))
    value = value->operand(0);
  return *value;
}

bool sameArray(const Shape &a, const Shape &b) { return a.sameDims(b) && a.minorToMajor() == b.minorToMajor(); }

namespace {

/// Does `instr`, at an index, read only that index of operand `operand`? Where a dynamic-update-slice keeps its
/// operand, it does.
bool readsInPlace(const HloInstruction &instr, unsigned operand) {
  return readsOperandsInPlace(instr) || (instr.opcode() == Opcode::DynamicUpdateSlice && operand == 0);
}

} // namespace

bool readsSamePosition(const HloInstruction &instr, unsigned operand) {
  const Shape &from = instr.operand(operand)->shape(), &to = instr.shape();
  if (!from.isArray() || !to.isArray())
    return false;
  if (readsOperandsInPlace(instr))
    return sameArray(from, to);
  if (from.numElements() != to.numElements())
    return false;
  return instr.opcode() == Opcode::Bitcast || (instr.opcode() == Opcode::Reshape && reshapeKeepsOrder(from, to));
}

unsigned narrowestOutput(const FusionGraph &graph) {
  unsigned bits = 64;
  for (const FusionRoot &root : graph.roots())
    bits = std::min(bits, deviceBits(root.shape.elementType()));
  return bits;
}

Places<Own> dependentInPlace(const FusionGraph &graph, const HloInstruction &origin) {
  Places<Own> places(graph.computation());
  places.set(origin, Own());
  places.follow(graph.instructions(), [&](const HloInstruction &instr, unsigned operand, Own own) {
    return placeIf(readsInPlace(instr, operand) && instr.shape().isArray() && instr.shape().sameDims(origin.shape()),
                   own);
  });
  return places;
}

Places<Own> dependentInOrder(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> heroes) {
  Places<Own> places(graph.computation());
  for (const HloInstruction *hero : heroes)
    places.set(*hero, Own());
  places.follow(graph.instructions(), [](const HloInstruction &instr, unsigned operand, Own own) {
    return placeIf(readsSamePosition(instr, operand), own);
  });
  return places;
}

bool mayOverwriteElements(const FusionGraph &graph, unsigned root, unsigned parameter) {
  const HloInstruction &read = *graph.parameters()[parameter];
  const Shape &written = graph.roots()[root].shape;
  if (!sameArray(read.shape(), written) || deviceBits(read.shape().elementType()) != deviceBits(written.elementType()))
    return false;
  const Places<Own> dependent = dependentInPlace(graph, read);
  return !dependent.firstElsewhere() && llvm::all_of(graph.roots(), [&](const FusionRoot &other) {
    return !dependent.at(*other.instr) || sameArray(other.shape, written);
  });
}

llvm::BitVector readFor(const FusionGraph &graph, llvm::ArrayRef<const HloInstruction *> values,
                        llvm::ArrayRef<const HloInstruction *> kept) {
  llvm::BitVector isRead(graph.computation().instructions().size(), false);
  for (const HloInstruction *value : values)
    isRead[value->id()] = true;
  for (const HloInstruction *instr : llvm::reverse(graph.instructions()))
    if (isRead[instr->id()] && !llvm::is_contained(kept, instr))
      for (const HloInstruction *operand : instr->operands())
        isRead[operand->id()] = true;
  return isRead;
}

llvm::SmallVector<const HloInstruction *, 2>
findHeroes(const FusionGraph &graph, llvm::function_ref<bool(const HloInstruction &)> isHero,
           llvm::function_ref<bool(const HloInstruction &, unsigned operand)> passes) {
  llvm::SmallVector<const HloInstruction *, 2> heroes;
  llvm::BitVector isRead(graph.computation().instructions().size(), false);
  for (const FusionRoot &root : graph.roots())
    isRead[root.instr->id()] = true;
  for (const HloInstruction *instr : llvm::reverse(graph.instructions())) {
    if (!isRead[instr->id()])
      continue;
    if (isHero(*instr)) {
      heroes.push_back(instr);
      continue;
    }
    for (auto [i, operand] : llvm::enumerate(instr->operands()))
      if (passes(*instr, unsigned(i)))
        isRead[operand->id()] = true;
  }
  std::reverse(heroes.begin(), heroes.end());
  return heroes;
}

} // namespace hloc
