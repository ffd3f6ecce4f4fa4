#include "fusion/OperandStrides.h"

#include "fusion/ContractionMatch.h"
#include "hloc/indexing/Divisibility.h"
#include "hloc/indexing/ShapeMaps.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hloc {

static int64_t middleOf(const IndexingVariable &variable) {
  return variable.bounds.lower + (variable.bounds.upper - variable.bounds.lower) / 2;
}

OperandStrides::OperandStrides(const HloInstruction &operand, IndexingMap map) : map(std::move(map)), source(&operand) {
  while (follow())
    ;
  int64_t flat[] = {source->shape().numElements()}, flatLayout[] = {0};
  this->map = compose(this->map, bitcastMap(source->shape().dims(), source->shape().minorToMajor(), flat, flatLayout,
                                            this->map.context()));
  for (const IndexingVariable &variable : this->map.dims())
    dims.push_back(middleOf(variable));
  for (const IndexingVariable &variable : this->map.ranges())
    symbols.push_back(middleOf(variable));
  ofDims.resize(dims.size());
  ofRanges.resize(symbols.size());
}

unsigned OperandStrides::bits() const { return deviceBits(source->shape().elementType()); }

bool OperandStrides::areAlignedPieces(AffineExpr variable, int64_t start, int64_t length) const {
  auto speaksOf = [&](const auto &constraint) {
    return constraint.first.replace(variable, getAffineConstantExpr(0, map.context())) != constraint.first;
  };
  if (llvm::any_of(map.constraints(), speaksOf))
    return false;
  SmallVector<IndexingVariable> dims(map.dims()), ranges(map.ranges());
  const unsigned number = unsigned(ranges.size());
  auto dim = dyn_cast<AffineDimExpr>(variable);
  IndexingVariable &own = dim ? dims[dim.getPosition()] : ranges[cast<AffineSymbolExpr>(variable).getPosition()];
  own.bounds = Interval{0, (own.bounds.upper - start) / length};
  ranges.push_back({Interval{0, length - 1}, {}});
  AffineExpr element = getAffineSymbolExpr(number, map.context());
  AffineExpr place = map.result(0).replace(variable, variable * length + start + element);
  IndexingMap pieces(AffineMap::get(dims.size(), ranges.size(), place), dims, ranges, {});
  return strideOf(place, element, pieces) == 1 &&
         knownDivisor(place.replace(element, getAffineConstantExpr(0, map.context())), pieces) % length == 0;
}

/// To the largest operand, if all that is read of it is one element.
bool OperandStrides::follow() {
  std::optional<unsigned> largest;
  for (unsigned i = 0; i < source->numOperands(); ++i)
    if (source->operand(i)->shape().isArray() &&
        (!largest || source->operand(i)->shape().numElements() > source->operand(*largest)->shape().numElements()))
      largest = i;
  if (!largest)
    return false;
  std::optional<OperandIndexing> indexing = operandIndexing(*source, *largest, map.context());
  if (!indexing || !indexing->runtimes.empty() || !indexing->map.ranges().empty() || indexing->map.isKnownEmpty())
    return false;
  map = compose(map, indexing->map);
  source = source->operand(*largest);
  return true;
}

int64_t OperandStrides::difference(SmallVector<int64_t> &point, unsigned variable) {
  auto here = map.evaluate(dims, symbols);
  ++point[variable];
  auto there = map.evaluate(dims, symbols);
  point[variable] -= 2;
  auto before = here ? map.evaluate(dims, symbols) : std::nullopt;
  ++point[variable];
  if (!here || (!there && !before))
    return unknown;
  return std::abs(there ? there->front() - here->front() : here->front() - before->front());
}

MovedOperand movedOperand(const HloInstruction &operand, MLIRContext *context,
                          llvm::function_ref<bool(const HloInstruction &convert)> passes) {
  using enum Opcode;
  MovedOperand moved{&operand, IndexingMap::identity(context, operand.shape().dims())};
  auto isMoved = [&](const HloInstruction &instr) {
    if (instr.opcode() == Convert)
      return passes(instr);
    return llvm::is_contained({Bitcast, Broadcast, Copy, Reshape, Slice, Transpose}, instr.opcode()) &&
           instr.shape().elementType() == instr.operand(0)->shape().elementType();
  };
  for (; isMoved(*moved.source); moved.source = moved.source->operand(0))
    moved.map = compose(moved.map, operandIndexing(*moved.source, 0, context)->map);
  moved.map.simplify();
  return moved;
}

double spreadOf(int64_t stride, int64_t run, unsigned bits) {
  constexpr double sectorBits = 256;
  const double elements = double(std::max<int64_t>(run, 1)), size = double(std::max(bits, 8u));
  const double sectors = std::min(elements, std::ceil(elements * double(stride) * size / sectorBits));
  return std::max(1.0, sectors * sectorBits / (elements * size));
}

std::optional<StoredOperand> storedOperand(const HloInstruction &operand, MLIRContext *context) {
  MovedOperand moved = movedOperand(operand, context, [](const HloInstruction &) { return false; });
  if (moved.source->opcode() != Opcode::Parameter)
    return std::nullopt;
  return StoredOperand{unsigned(moved.source->parameterNumber()), std::move(moved.map)};
}

} // namespace hloc
