#include "fusion/HeroMatch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace hloc {
namespace {

/// Of one thread: 64 bytes of loads in flight.
constexpr unsigned maxRounds = 4;
/// Ops of one thread's straight code, instructions times elements, up to which it has several rounds, and the copies of
/// that code over all segments. Estimates: beyond, what a thread does once is a small part, or the code a long one.
constexpr int64_t maxOpsWithRounds = 256, maxCopies = 64;

int64_t blocksOf(const BlockSegment &segment, int64_t threads, unsigned rounds) {
  return int64_t(llvm::divideCeil(uint64_t(segment.groups()), uint64_t(threads * rounds)));
}

/// What a thread does once, whatever it moves, is most of a copy's instructions: as many rounds as leave half of the
/// device's threads something to do, and do not make the code of many segments long.
unsigned chooseRounds(llvm::ArrayRef<BlockSegment *> segments, int64_t threads, const FusionGraph &graph,
                      const TargetInfo &target) {
  int64_t most = 1;
  for (const BlockSegment *segment : segments)
    most = std::max<int64_t>(most, segment->perThread);
  unsigned rounds = maxRounds;
  auto tooMany = [&] {
    int64_t blocks = 0;
    for (const BlockSegment *segment : segments)
      blocks += blocksOf(*segment, threads, rounds);
    return blocks < 8 * int64_t(target.multiprocessors) ||
           rounds * most * int64_t(graph.instructions().size()) > maxOpsWithRounds ||
           rounds * int64_t(segments.size()) > maxCopies;
  };
  while (rounds > 1 && tooMany())
    rounds /= 2;
  return rounds;
}

} // namespace

std::optional<LaunchGeometry> assignBlocks(llvm::ArrayRef<BlockSegment *> segments, const FusionGraph &graph,
                                           const TargetInfo &target) {
  int64_t mostGroups = 0, blocks = 0;
  for (const BlockSegment *segment : segments)
    mostGroups = std::max(mostGroups, segment->groups());
  LaunchGeometry launch;
  launch.block = {uint32_t(std::clamp<int64_t>(mostGroups, 1, threadsPerLoopBlock)), 1, 1};
  unsigned rounds = chooseRounds(segments, launch.block.x, graph, target);
  for (BlockSegment *segment : segments) {
    int64_t own = blocksOf(*segment, launch.block.x, 1);
    while (segment->rounds < rounds && own > segment->rounds)
      segment->rounds *= 2;
    own = blocksOf(*segment, launch.block.x, segment->rounds);
    if (own > int64_t(target.maxGridX) - blocks)
      return std::nullopt;
    segment->firstBlock = uint32_t(blocks);
    segment->blocks = uint32_t(own);
    blocks += own;
  }
  launch.grid = {uint32_t(blocks), 1, 1};
  return launch;
}

} // namespace hloc
