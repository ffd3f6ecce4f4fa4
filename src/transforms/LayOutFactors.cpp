// Factors of a dot that lie across its sums, where tensor cores multiply such only if threads turn them over on the way
// -> copies that lie along the sums, which warpgroups multiply as they lie. Elements of 16 bits need none: these are
// multiplied both ways. Of bytes, and of f32 as tf32, one factor may lie across.
//
//   d = s32[m,n] dot(s8[k,m] x, s8[k,n] y), over k   ->   c = s8[k,m]{0,1} copy(x)
//                                                         d = s32[m,n] dot(c, y), over k
//
// By the model of the search: a copy stays where its kernel and that of the dot take less time than that of the dot
// alone.

#include "Simplify.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/search/FusionPolicy.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <array>

namespace hloc {

namespace {

using Dims = llvm::SmallVector<int64_t>;

/// Which of the two factors are copied.
using Copied = std::array<bool, 2>;

/// Are they multiplied by warpgroups, at least one from where it lies only along the sums: as bytes, or as tf32?
bool wantsFactorsAlongSums(const HloInstruction &dot) {
  if (dot.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset) == DotAlgorithm::TF32TF32F32)
    return true;
  return llvm::all_of(dot.operands().take_front(2),
                      [](auto *factor) { return deviceBits(factor->shape().elementType()) == 8; });
}

class DotFactors {
public:
  explicit DotFactors(const HloInstruction &dot) : dot(dot) {}

  bool liesAcross(unsigned side) const {
    const Shape &shape = dot.operand(side)->shape();
    // What counts for nothing lies in no order.
    const auto *minor = llvm::find_if(shape.minorToMajor(), [&](int64_t dim) { return shape.dim(unsigned(dim)) > 1; });
    return minor != shape.minorToMajor().end() && !llvm::is_contained(contracted(side), *minor);
  }

  /// Minor to major: what is summed, in the order that the other factor has it in if that stays as it is; the rows;
  /// the batch.
  Shape along(unsigned side, const Copied &copied) const {
    const unsigned ordering = copied[1 - side] ? 0 : 1 - side;
    const Shape &shape = dot.operand(side)->shape();
    Dims layout;
    for (int64_t dim : dot.operand(ordering)->shape().minorToMajor())
      if (const auto *found = llvm::find(contracted(ordering), dim); found != contracted(ordering).end())
        layout.push_back(contracted(side)[size_t(found - contracted(ordering).begin())]);
    for (bool isBatch : {false, true})
      for (int64_t dim : shape.minorToMajor())
        if (!llvm::is_contained(contracted(side), dim) && llvm::is_contained(batch(side), dim) == isBatch)
          layout.push_back(dim);
    return shape.withLayout(layout);
  }

private:
  llvm::ArrayRef<int64_t> contracted(unsigned side) const {
    return dot.ints(side == 0 ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims);
  }
  llvm::ArrayRef<int64_t> batch(unsigned side) const {
    return dot.ints(side == 0 ? AttributeKey::LhsBatchDims : AttributeKey::RhsBatchDims);
  }
  const HloInstruction &dot;
};

/// The dot with copies of some factors, all of it by kernels that the search finds, in seconds.
double secondsWith(const HloInstruction &dot, const Copied &copied, const TargetInfo &target) {
  HloModule module("question");
  HloComputation &entry = *module.addComputation("entry");
  HloBuilder b(entry);
  llvm::SmallVector<HloInstruction *, 2> factors;
  for (unsigned side : {0u, 1u})
    factors.push_back(b.parameter(side, dot.operand(side)->shape()));
  for (unsigned side : {0u, 1u})
    if (copied[side])
      factors[side] = b.add(Opcode::Copy, DotFactors(dot).along(side, copied), {factors[side]});
  entry.setRoot(b.clone(dot, factors));
  module.setEntry(&entry);
  FusionExplanation found;
  groupByCost(entry, "question", target, &found);
  double seconds = 0;
  for (const FormedKernel &kernel : found.kernels)
    seconds += kernel.seconds;
  return seconds;
}

/// Nothing is copied where that takes less time, or where nothing lies across the sums.
Copied fastest(const HloInstruction &dot, const TargetInfo &target) {
  const DotFactors factors(dot);
  const bool mayCopy[] = {factors.liesAcross(0), factors.liesAcross(1)};
  Copied best = {false, false};
  if (!mayCopy[0] && !mayCopy[1])
    return best;
  double least = secondsWith(dot, best, target);
  for (Copied copied : {Copied{true, false}, Copied{false, true}, Copied{true, true}}) {
    if ((copied[0] && !mayCopy[0]) || (copied[1] && !mayCopy[1]))
      continue;
    if (double seconds = secondsWith(dot, copied, target); seconds < least) {
      least = seconds;
      best = copied;
    }
  }
  return best;
}

size_t layOutFactors(HloComputation &computation, const TargetInfo &target) {
  std::vector<std::pair<HloInstruction *, Copied>> chosen;
  for (HloInstruction *instr : computation.instructions())
    if (instr->opcode() == Opcode::Dot && !instr->shape().hasDynamicDims() && wantsFactorsAlongSums(*instr))
      if (Copied copied = fastest(*instr, target); copied[0] || copied[1])
        chosen.emplace_back(instr, copied);
  if (chosen.empty())
    return 0;
  HloEditor editor(computation);
  std::vector<std::pair<HloInstruction *, HloInstruction *>> copies; ///< of what, and the copy: dots share them
  for (auto [dot, copied] : chosen) {
    HloBuilder b(editor, dot);
    b.setRange(dot->range());
    llvm::SmallVector<HloInstruction *> operands(dot->operands());
    for (unsigned side : {0u, 1u}) {
      if (!copied[side])
        continue;
      const Shape along = DotFactors(*dot).along(side, copied);
      const auto known = llvm::find_if(copies, [&](const auto &copy) {
        return copy.first == operands[side] && copy.second->shape().minorToMajor() == along.minorToMajor();
      });
      if (known == copies.end()) {
        HloInstruction *copy =
            b.add(Opcode::Copy, along, {operands[side]}, {}, operands[side]->name().str() + "_along");
        copies.emplace_back(operands[side], copy);
        operands[side] = copy;
      } else {
        operands[side] = known->second;
      }
    }
    editor.replaceAllUses(dot, b.clone(*dot, operands));
    editor.eraseIfDead(dot);
  }
  return copies.size();
}

} // namespace

PassResult layOutFactors(HloModule &module, HloPassContext &context) {
  if (!context.target.hasWarpgroups() || !arrivesUnfused(module) || context.options.fusion == FusionMode::None)
    return PassResult::Unchanged;
  size_t copies = 0;
  for (HloComputation *computation : computationsToSimplify(module))
    copies += layOutFactors(*computation, context.target);
  context.statistics.add("lay-out-factors.copies", copies);
  return changedIf(copies > 0);
}

} // namespace hloc
