#include "AlgebraicRules.h"
#include "Matching.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc {

namespace {

using Ranges = llvm::SmallVector<SliceDim, 6>;

llvm::ArrayRef<SliceDim> rangesOf(const HloInstruction &slice) {
  return slice.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice);
}

int64_t sizeOf(const SliceDim &range) {
  return range.limit <= range.start ? 0 : (range.limit - range.start - 1) / range.stride + 1;
}
/// Behind the last element of a range that is not empty.
int64_t endOf(const SliceDim &range) { return range.start + (sizeOf(range) - 1) * range.stride + 1; }

bool isWhole(llvm::ArrayRef<SliceDim> ranges, const Shape &shape) {
  return llvm::all_of(llvm::enumerate(ranges), [&](const auto &range) {
    return range.value().start == 0 && range.value().stride == 1 && range.value().limit == shape.dim(range.index());
  });
}

HloInstruction *makeSlice(HloRewriter &r, HloInstruction *source, const Shape &shape, llvm::ArrayRef<SliceDim> ranges) {
  llvm::ArrayRef<SliceDim> saved = r.editor().module().arena().saveList(ranges);
  return r.builder().add(Opcode::Slice, shape, {source}, {{AttributeKey::Slice, saved}});
}

HloInstruction *sliceOfAll(HloInstruction &slice, HloRewriter &) {
  return isWhole(rangesOf(slice), slice.operand(0)->shape()) ? slice.operand(0) : nullptr;
}

HloInstruction *sliceTwice(HloInstruction &outer, HloRewriter &r) {
  HloInstruction *inner = outer.operand(0);
  if (!is(inner, Opcode::Slice) || outer.shape().numElements() == 0)
    return nullptr;
  Ranges composed;
  for (auto [first, second] : llvm::zip_equal(rangesOf(*inner), rangesOf(outer))) {
    int64_t start = first.start + second.start * first.stride;
    int64_t size = sizeOf(second), stride = size == 1 ? 1 : first.stride * second.stride;
    composed.push_back({start, start + (size - 1) * stride + 1, stride});
  }
  return makeSlice(r, inner->operand(0), outer.shape(), composed);
}

/// The operand that all elements of the slice come from, and where in the dimension it begins.
std::pair<HloInstruction *, int64_t> pieceOf(const HloInstruction &concatenate, int64_t dim, const SliceDim &range) {
  int64_t begin = 0;
  for (HloInstruction *piece : concatenate.operands()) {
    int64_t end = begin + piece->shape().dim(dim);
    if (range.start < end)
      return {range.start >= begin && endOf(range) <= end ? piece : nullptr, begin};
    begin = end;
  }
  return {nullptr, 0};
}

HloInstruction *sliceOfConcatenate(HloInstruction &slice, HloRewriter &r) {
  HloInstruction *concatenate = slice.operand(0);
  if (!is(concatenate, Opcode::Concatenate) || slice.shape().numElements() == 0)
    return nullptr;
  int64_t dim = concatenate->ints(AttributeKey::Dimensions)[0];
  Ranges ranges(rangesOf(slice));
  auto [piece, begin] = pieceOf(*concatenate, dim, ranges[dim]);
  if (!piece)
    return nullptr;
  ranges[dim] = {ranges[dim].start - begin, endOf(ranges[dim]) - begin, ranges[dim].stride};
  if (isWhole(ranges, piece->shape()) && piece->shape() == slice.shape())
    return piece;
  return makeSlice(r, piece, slice.shape(), ranges);
}

/// Where the padding is at the edges alone.
HloInstruction *sliceOfPad(HloInstruction &slice, HloRewriter &r) {
  HloInstruction *pad = slice.operand(0);
  if (!is(pad, Opcode::Pad) || slice.shape().numElements() == 0)
    return nullptr;
  HloInstruction *source = pad->operand(0);
  Ranges inside;
  bool beside = false, within = true;
  for (auto [i, padding] : llvm::enumerate(pad->get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding))) {
    if (padding.interior != 0)
      return nullptr;
    const SliceDim &range = rangesOf(slice)[i];
    int64_t size = source->shape().dim(i), start = range.start - padding.low, end = endOf(range) - padding.low;
    beside |= end <= 0 || start >= size;
    within &= start >= 0 && end <= size;
    inside.push_back({start, end, range.stride});
  }
  if (beside)
    return r.builder().broadcast(pad->operand(1), slice.shape(), {});
  if (!within)
    return nullptr;
  if (isWhole(inside, source->shape()) && source->shape() == slice.shape())
    return source;
  return makeSlice(r, source, slice.shape(), inside);
}

HloInstruction *sliceOfBroadcast(HloInstruction &slice, HloRewriter &r) {
  HloInstruction *broadcast = slice.operand(0);
  if (!is(broadcast, Opcode::Broadcast) || broadcast->operand(0)->shape().isScalar())
    return nullptr;
  HloInstruction *source = broadcast->operand(0);
  llvm::ArrayRef<int64_t> dims = broadcast->ints(AttributeKey::Dimensions);
  Ranges ranges;
  for (int64_t dim : dims)
    ranges.push_back(rangesOf(slice)[dim]);
  HloInstruction *part = isWhole(ranges, source->shape()) ? source : r.builder().slice(source, ranges);
  return r.builder().broadcast(part, slice.shape(), dims);
}

/// Index i of a dynamic slice or update, by the rule that keeps it inside; nothing if it is not known.
std::optional<int64_t> knownStart(const HloInstruction *index, int64_t last) {
  const HloInstruction *constant = splatOf(index);
  if (last == 0)
    return 0;
  if (!constant)
    return std::nullopt;
  int64_t start = constant->literal().getInt(0);
  bool huge = isUnsigned(typeOf(constant)) && start < 0;
  return huge ? last : std::clamp<int64_t>(start, 0, last);
}

HloInstruction *dynamicSliceOfKnown(HloInstruction &slice, HloRewriter &r) {
  HloInstruction *source = slice.operand(0);
  // The old form has all indices in one operand.
  if (slice.numOperands() != source->shape().rank() + 1 ||
      (slice.numOperands() > 1 && !slice.operand(1)->shape().isScalar()))
    return nullptr;
  Ranges ranges;
  for (unsigned i = 0; i < source->shape().rank(); ++i) {
    std::optional<int64_t> start = knownStart(slice.operand(i + 1), source->shape().dim(i) - slice.shape().dim(i));
    if (!start)
      return nullptr;
    ranges.push_back({*start, *start + slice.shape().dim(i), 1});
  }
  return isWhole(ranges, source->shape()) ? source : makeSlice(r, source, slice.shape(), ranges);
}

HloInstruction *updateOfAll(HloInstruction &instr, HloRewriter &) {
  return instr.operand(1)->shape().sameDims(instr.shape()) ? instr.operand(1) : nullptr;
}

HloInstruction *updateOfNothing(HloInstruction &instr, HloRewriter &) {
  return instr.operand(1)->shape().numElements() == 0 ? instr.operand(0) : nullptr;
}

HloInstruction *padOfNothing(HloInstruction &pad, HloRewriter &) {
  bool nothing = llvm::all_of(pad.get<llvm::ArrayRef<PaddingDim>>(AttributeKey::Padding),
                              [](const PaddingDim &dim) { return dim == PaddingDim(); });
  return nothing ? pad.operand(0) : nullptr;
}

HloInstruction *padOfEmpty(HloInstruction &pad, HloRewriter &r) {
  bool empty = pad.operand(0)->shape().numElements() == 0;
  return empty ? r.builder().broadcast(pad.operand(1), pad.shape(), {}) : nullptr;
}

HloInstruction *concatenateOfOne(HloInstruction &concatenate, HloRewriter &) {
  return concatenate.numOperands() == 1 ? concatenate.operand(0) : nullptr;
}

HloInstruction *concatenateOfEmpty(HloInstruction &concatenate, HloRewriter &r) {
  llvm::SmallVector<HloInstruction *> pieces;
  llvm::copy_if(concatenate.operands(), std::back_inserter(pieces),
                [](const HloInstruction *piece) { return piece->shape().numElements() != 0; });
  if (pieces.empty() || pieces.size() == concatenate.numOperands())
    return nullptr;
  return again(r, concatenate, concatenate.shape(), pieces);
}

HloInstruction *concatenateTwice(HloInstruction &outer, HloRewriter &r) {
  constexpr size_t worthTheList = 256; // each level of a long chain would copy all before it
  int64_t dim = outer.ints(AttributeKey::Dimensions)[0];
  llvm::SmallVector<HloInstruction *> pieces;
  for (HloInstruction *operand : outer.operands()) {
    bool inner =
        is(operand, Opcode::Concatenate) && operand->ints(AttributeKey::Dimensions)[0] == dim && r.hasOneUser(operand);
    if (inner)
      llvm::append_range(pieces, operand->operands());
    else
      pieces.push_back(operand);
  }
  bool flattened = pieces.size() > outer.numOperands() && pieces.size() <= worthTheList;
  return flattened ? again(r, outer, outer.shape(), pieces) : nullptr;
}

/// Does `next` go on in `dim` where `first` ends?
bool continues(const HloInstruction *first, const HloInstruction *next, int64_t dim) {
  if (!is(first, Opcode::Slice) || !is(next, Opcode::Slice) || first->operand(0) != next->operand(0))
    return false;
  for (auto [i, ranges] : llvm::enumerate(llvm::zip_equal(rangesOf(*first), rangesOf(*next)))) {
    auto [a, b] = ranges;
    bool fits = static_cast<int64_t>(i) == dim ? a.stride == 1 && b.stride == 1 && a.limit == b.start : a == b;
    if (!fits)
      return false;
  }
  return true;
}

HloInstruction *concatenateOfNeighbours(HloInstruction &concatenate, HloRewriter &r) {
  int64_t dim = concatenate.ints(AttributeKey::Dimensions)[0];
  llvm::ArrayRef<HloInstruction *> operands = concatenate.operands();
  llvm::SmallVector<HloInstruction *> pieces;
  bool merged = false;
  for (size_t i = 0, end; i < operands.size(); i = end) {
    for (end = i + 1; end < operands.size() && continues(operands[end - 1], operands[end], dim);)
      ++end;
    if (end == i + 1) {
      pieces.push_back(operands[i]);
      continue;
    }
    merged = true;
    Ranges ranges(rangesOf(*operands[i]));
    ranges[dim].limit = rangesOf(*operands[end - 1])[dim].limit;
    pieces.push_back(r.builder().slice(operands[i]->operand(0), ranges));
  }
  return merged ? again(r, concatenate, concatenate.shape(), pieces) : nullptr;
}

constexpr RewriteRule rules[] = {
    {"slice-of-all", Opcode::Slice, sliceOfAll, "slice of everything -> x"},
    {"slice-twice", Opcode::Slice, sliceTwice, "slice of a slice -> one"},
    {"slice-of-concatenate", Opcode::Slice, sliceOfConcatenate, "slice of a concatenate -> of the piece it lies in"},
    {"slice-of-pad", Opcode::Slice, sliceOfPad, "slice of a pad -> of what was padded, or the padding"},
    {"slice-of-broadcast", Opcode::Slice, sliceOfBroadcast, "slice of a broadcast -> a broadcast of a slice"},
    {"dynamic-slice-of-known", Opcode::DynamicSlice, dynamicSliceOfKnown, "dynamic-slice at known indices -> slice"},
    {"update-of-all", Opcode::DynamicUpdateSlice, updateOfAll, "update of everything -> the update"},
    {"update-of-nothing", Opcode::DynamicUpdateSlice, updateOfNothing, "update by nothing -> x"},
    {"pad-of-nothing", Opcode::Pad, padOfNothing, "pad by nothing -> x"},
    {"pad-of-empty", Opcode::Pad, padOfEmpty, "pad of no elements -> the padding"},
    {"concatenate-of-one", Opcode::Concatenate, concatenateOfOne, "concatenate of one operand -> x"},
    {"concatenate-of-empty", Opcode::Concatenate, concatenateOfEmpty, "empty operands of a concatenate go"},
    {"concatenate-twice", Opcode::Concatenate, concatenateTwice, "concatenate of a concatenate -> one"},
    {"concatenate-of-neighbours", Opcode::Concatenate, concatenateOfNeighbours, "neighbouring slices -> one slice"},
};

} // namespace

llvm::ArrayRef<RewriteRule> slicingRules() { return rules; }

} // namespace hloc
