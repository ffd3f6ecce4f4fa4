#include "hloc/fusion/FusionGraph.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

namespace hloc {
namespace {

/// Roots below a (nested) tuple, in order, without recursion. A barrier around a tuple keeps nothing apart in a kernel.
void flattenRoots(const HloInstruction *root, std::vector<FusionRoot> &roots) {
  llvm::SmallVector<const HloInstruction *> pending = {root};
  while (!pending.empty()) {
    const HloInstruction *instr = pending.pop_back_val();
    if (instr->opcode() == Opcode::Tuple) {
      for (const HloInstruction *element : llvm::reverse(instr->operands()))
        pending.push_back(element);
    } else if (instr->opcode() == Opcode::OptimizationBarrier) {
      pending.push_back(instr->operand(0));
    } else if (instr->shape().isTuple()) {
      for (auto [i, element] : llvm::enumerate(instr->shape().elements()))
        roots.push_back({instr, unsigned(i), element});
    } else {
      roots.push_back({instr, 0, instr->shape()});
    }
  }
}

bool checkBuffer(const HloInstruction &instr, const Shape &shape, const char *role, DiagnosticEngine &diagnostics) {
  if (shape.isArray() && isArrayType(shape.elementType()) && !shape.hasDynamicDims())
    return true;
  diagnostics.report(DiagnosticKind::UnsupportedFeature, instr.range(),
                     "a fusion's " + std::string(role) + " must be an array of static shape, `" + instr.name().str() +
                         "` is " + shape.toString());
  return false;
}

/// Memory moves no less than whole sectors of 32 bytes: slices of one f32 cost as much as of eight.
double sectorShare(const HloInstruction &gather) {
  double bytes = deviceBits(gather.shape().elementType()) / 8.0;
  for (int64_t size : gather.ints(AttributeKey::SliceSizes))
    bytes *= double(size);
  return bytes > 0 ? std::max(1.0, 32 / bytes) : 1;
}

/// Elements of an operand that are read for `count` elements of the result, at most.
double elementsRead(const HloInstruction &instr, unsigned number, double count) {
  const Shape &operand = instr.operand(number)->shape(), &result = instr.resultShape();
  if (!operand.isArray() || !result.isArray())
    return std::numeric_limits<double>::infinity();
  double all = double(operand.numElements());
  using enum Opcode;
  const Opcode opcode = instr.opcode();
  if (opcode == Gather)
    return number == 0 ? std::min(all, count * sectorShare(instr)) : all;
  const bool isTermOfSum = opcode == Reduce && number < instr.numOperands() / 2 && all > 0;
  if (isTermOfSum || opcode == Bitcast || opcode == BitcastConvert) // of another width: as many bytes
    return count * all / std::max(double(result.numElements()), 1.0);
  const bool isOneForOne =
      isElementwise(opcode) || (number == 0 && opcode == DynamicSlice) ||
      llvm::is_contained({Broadcast, Concatenate, Copy, Pad, Reshape, Reverse, Slice, Transpose}, opcode);
  return isOneForOne ? count : all;
}

} // namespace

llvm::FailureOr<FusionGraph> FusionGraph::build(const HloComputation &body, DiagnosticEngine &diagnostics) {
  FusionGraph graph(body);
  flattenRoots(body.root(), graph.rootList);
  bool good = true;
  for (const FusionRoot &root : graph.rootList)
    good &= checkBuffer(*root.instr, root.shape, "result", diagnostics);
  for (const HloInstruction *parameter : body.parameters())
    good &= checkBuffer(*parameter, parameter->shape(), "parameter", diagnostics);
  if (!good)
    return llvm::failure();
  graph.findLive();
  return graph;
}

FusionGraph FusionGraph::upTo(const HloInstruction &value) const {
  FusionGraph graph(*body);
  graph.rootList = {{&value, 0, value.shape()}};
  graph.findLive();
  return graph;
}

void FusionGraph::findLive() {
  liveIds = llvm::BitVector(body->instructions().size());
  for (const FusionRoot &root : rootList)
    liveIds[root.instr->id()] = true;
  for (const HloInstruction *instr : llvm::reverse(body->instructions())) {
    if (!liveIds[instr->id()])
      continue;
    live.push_back(instr);
    for (const HloInstruction *operand : instr->operands())
      liveIds[operand->id()] = true;
  }
  std::reverse(live.begin(), live.end());
}

uint64_t FusionGraph::bytesRead() const {
  std::vector<double> needed(body->instructions().size());
  auto need = [&](const HloInstruction &instr, double count) {
    double all =
        instr.shape().isArray() ? double(instr.shape().numElements()) : std::numeric_limits<double>::infinity();
    needed[instr.id()] = std::min(needed[instr.id()] + count, all);
  };
  for (const FusionRoot &root : rootList)
    need(*root.instr, double(root.shape.numElements()));
  for (const HloInstruction *instr : llvm::reverse(live))
    for (unsigned i = 0; i < instr->numOperands(); ++i)
      need(*instr->operand(i), elementsRead(*instr, i, needed[instr->id()]));
  double bytes = 0;
  for (const HloInstruction *parameter : parameters())
    if (int64_t elements = parameter->shape().numElements(); isLive(*parameter) && elements > 0)
      bytes += std::ceil(needed[parameter->id()] / double(elements) * double(parameter->shape().byteSize()));
  return uint64_t(bytes);
}

uint64_t FusionGraph::bytesWritten() const {
  uint64_t bytes = 0;
  for (const FusionRoot &root : rootList)
    bytes += root.shape.byteSize();
  return bytes;
}

} // namespace hloc
