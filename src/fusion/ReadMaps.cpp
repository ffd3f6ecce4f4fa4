#include "fusion/ReadMaps.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace hloc {

namespace {

/// Reads of the operand for each element of the result, on average. Where some elements read nothing (pad, concatenate,
/// dynamic-update-slice) the others read each element once.
double elementsRead(const OperandIndexing &indexing, const HloInstruction &operand, const HloInstruction &instr) {
  double reads = pointsOf(indexing.map.dims()) * pointsOf(indexing.map.ranges());
  if (!indexing.map.constraints().empty() && indexing.map.ranges().empty())
    reads = std::min(reads, double(operand.shape().numElements()));
  return reads / double(instr.resultShape().numElements());
}

} // namespace

ReadMaps::ReadMaps(const FusionGraph &graph, PlanContext &plans, size_t most)
    : graph(graph), plans(plans), most(most), known(graph.computation().instructions().size()) {}

void ReadMaps::read(const HloInstruction &written, Read read) {
  std::vector<Read> &reads = known[behindTuple(written).id()];
  if (reads.size() < most && llvm::none_of(reads, [&](const Read &other) { return other.isSameAs(read); }))
    reads.push_back(read);
}

void ReadMaps::readOperand(const HloInstruction &instr, unsigned number, ArrayRef<Read> reads) {
  const HloInstruction &operand = *instr.operand(number);
  if (readsOperandsInPlace(instr) && operand.shape().isArray() && operand.shape().sameDims(instr.shape())) {
    for (const Read &one : reads)
      read(operand, one);
    return;
  }
  std::optional<OperandIndexing> indexing = operandIndexing(instr, number, context());
  if (!indexing) { // nothing is known but that it is read
    double count = 0;
    for (const Read &one : reads)
      count = std::min(count + one.count, mostPoints);
    if (operand.shape().isArray())
      read(operand, {newSpace(), MapPool::same, 0, count});
    return;
  }
  if (indexing->map.isKnownEmpty())
    return;
  const double perElement = elementsRead(*indexing, operand, instr);
  const bool entersLoop = !indexing->map.ranges().empty() || !indexing->runtimes.empty();
  const unsigned map = pool.intern(std::move(indexing->map));
  for (const Read &one : reads) {
    const MapPool::Composition composed = pool.composed(one.map, map);
    const IndexingMap &whole = pool[composed.map];
    if (whole.isKnownEmpty())
      continue;
    Read next = one;
    next.map = composed.map;
    next.count = std::min(one.count * perElement * composed.kept, mostPoints);
    // Outside of the loops whose variables it does not depend on.
    if (whole.ranges().empty() && whole.runtimes().empty())
      next.loops = 0;
    else if (entersLoop)
      next.loops = loopNumbers.try_emplace({one.loops, &instr}, loopNumbers.size() + 1).first->second;
    read(operand, next);
  }
}

void ReadMaps::readOperands(const HloInstruction &instr, ArrayRef<Read> reads) {
  for (unsigned i = 0; i < instr.numOperands(); ++i)
    readOperand(instr, i, reads);
}

void ReadMaps::follow(function_ref<void(const HloInstruction &, ArrayRef<Read>)> visit) {
  for (const HloInstruction *instr : llvm::reverse(graph.instructions()))
    if (std::vector<Read> reads = std::move(known[instr->id()]); !reads.empty())
      visit(*instr, reads);
}

} // namespace hloc
