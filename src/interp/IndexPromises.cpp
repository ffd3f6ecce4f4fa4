#include "interp/IndexPromises.h"

#include "interp/WindowStarts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <optional>

namespace hloc::interp {

namespace {

std::string bracketed(llvm::ArrayRef<int64_t> values) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleave(values, os, ",");
  os << ']';
  return text;
}

/// The starts of one gather or scatter, in order.
class PromisedStarts {
public:
  explicit PromisedStarts(const Step &step)
      : instr(step.instr), isScatter(instr.opcode() == Opcode::Scatter),
        indices(step.array(isScatter ? unsigned(step.operands.size() / 2) : 1)), operand(step.array(0).shape()),
        dims(isScatter ? scatterDims(instr, updates(step)) : gatherDims(instr)), starts(indices, dims, operand.rank()),
        sizes(starts.batchSizes()) {
    if (isScatter)
      window = scatterWindow(dims, updates(step), operand.rank());
  }

  /// What is wrong with the first index that breaks a promise.
  std::optional<std::string> broken() {
    if (product(sizes) == 0)
      return std::nullopt;
    Index at(sizes.size(), 0);
    do {
      const Index start = starts.start(at);
      if (instr.flag(AttributeKey::UniqueIndices))
        if (std::optional<Index> same = firstAt(start, at))
          return "unique_indices=true, but the indices at " + bracketed(*same) + " and " + bracketed(at) +
                 " are both " + bracketed(start);
      if (instr.flag(AttributeKey::IndicesAreSorted))
        if (std::optional<Position> before = takePlaceOfLast(start, at); before && start < before->start)
          return "indices_are_sorted=true, but the index at " + bracketed(at) + ", " + bracketed(start) +
                 ", is less than the one before it, at " + bracketed(before->at) + ", " + bracketed(before->start);
    } while (increment(at, sizes));
    return std::nullopt;
  }

private:
  struct Position {
    Index start, at;
  };

  static const Shape &updates(const Step &step) { return step.array(unsigned(step.operands.size() / 2) + 1).shape(); }

  bool isLeftOut(const Index &start) const {
    for (size_t i = 0; isScatter && i < start.size(); ++i)
      if (start[i] < 0 || start[i] > operand.dim(unsigned(i)) - window[i])
        return true;
    return false;
  }

  /// Where the same start was met before.
  std::optional<Index> firstAt(const Index &start, const Index &at) {
    if (isLeftOut(start))
      return std::nullopt;
    auto [found, isNew] = met.try_emplace(start, at);
    return isNew ? std::nullopt : std::optional(found->second);
  }

  /// The one before it in its batch.
  std::optional<Position> takePlaceOfLast(const Index &start, const Index &at) {
    Index batch;
    for (int64_t dim : dims.operandBatching)
      batch.push_back(start[size_t(dim)]);
    auto [found, isNew] = last.try_emplace(batch, Position{start, at});
    return isNew ? std::nullopt : std::optional(std::exchange(found->second, {start, at}));
  }

  const HloInstruction &instr;
  bool isScatter;
  const Literal &indices;
  const Shape &operand;
  WindowDims dims;
  StartReader starts;
  Index sizes;
  Index window;                   ///< of a scatter
  std::map<Index, Index> met;     ///< by start: where it was met first
  std::map<Index, Position> last; ///< by batch
};

} // namespace

llvm::LogicalResult checkPromises(const Step &step) {
  const HloInstruction &instr = step.instr;
  if (!makesPromises(instr))
    return llvm::success();
  std::optional<std::string> broken = PromisedStarts(step).broken();
  if (!broken)
    return llvm::success();
  step.machine.diagnostics.report(DiagnosticKind::BrokenPromise, instr.range(),
                                  "`" + instr.name().str() + "` promises " + *broken);
  return llvm::failure();
}

} // namespace hloc::interp
