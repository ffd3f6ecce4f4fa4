#include "compiler/Selection.h"

#include "hloc/hlo/ControlFlow.h"
#include "hloc/planner/ExecutionPlan.h"
#include "hloc/support/Names.h"
#include "hloc/support/Suggestion.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace hloc {

namespace {

constexpr size_t mostNamesListed = 16; ///< in a message, which is read by people

/// The entry first, whose kernels have the first claim to their names.
std::vector<HloComputation *> inOrder(const HloModule &fused) {
  std::vector<HloComputation *> computations = controlComputations(fused);
  std::rotate(computations.begin(), computations.end() - 1, computations.end());
  return computations;
}

class Selector {
public:
  explicit Selector(const HloModule &fused) : fused(fused) {
    UniqueNames unique;
    for (auto &[fusion, name] : kernelNames(fused, unique))
      kernels[fusion] = name;
  }

  /// The fusions that `name` means; none if it means nothing.
  std::vector<const HloInstruction *> find(llvm::StringRef name) const {
    auto select = [&](auto matches) {
      std::vector<const HloInstruction *> found;
      llvm::copy_if(works(), std::back_inserter(found), matches);
      return found;
    };
    auto found = select([&](const HloInstruction *instr) { return instr->name() == name; });
    if (found.size() != 1) // none, or one each in several computations
      if (auto kernel = select([&](const HloInstruction *instr) { return kernels.lookup(instr) == name; });
          !kernel.empty())
        found = kernel;
    if (found.empty())
      found =
          select([&](const HloInstruction *instr) { return instr->computation(AttributeKey::Calls)->name() == name; });
    return found;
  }

  void reportUnknown(llvm::StringRef name, DiagnosticEngine &diagnostics) const {
    llvm::SmallVector<llvm::StringRef> known;
    for (const HloInstruction *instr : works()) {
      known.push_back(instr->name());
      known.push_back(kernels.find(instr)->second);
      known.push_back(instr->computation(AttributeKey::Calls)->name());
    }
    Diagnostic &report =
        diagnostics.report(DiagnosticKind::BadUsage, fmt::format("--only: there is no kernel `{}`{}", name.str(),
                                                                 suggestion(nearestName(name, known))));
    if (const HloInstruction *fusion = computedIn(name))
      report.note(fmt::format("`{}` is computed inside `{}`", name.str(), fusion->name().str()));
    if (works().empty())
      report.note("the module has none");
    else if (works().size() > mostNamesListed)
      report.note("--list-kernels lists them");
    else
      report.note("there " + std::string(works().size() == 1 ? "is " : "are ") + list());
  }

private:
  std::vector<const HloInstruction *> works() const {
    std::vector<const HloInstruction *> result;
    for (const HloComputation *computation : inOrder(fused))
      for (const HloInstruction *instr : computation->instructions())
        if (kernels.contains(instr))
          result.push_back(instr);
    return result;
  }

  /// The fusion whose computation has an instruction of this name; null if there is none.
  const HloInstruction *computedIn(llvm::StringRef name) const {
    for (const HloInstruction *fusion : works())
      for (const HloInstruction *instr : fusion->computation(AttributeKey::Calls)->instructions())
        if (instr->name() == name && instr->opcode() != Opcode::Parameter)
          return fusion;
    return nullptr;
  }

  std::string list() const {
    std::string text;
    for (const HloInstruction *instr : works())
      text += (text.empty() ? "`" : ", `") + instr->name().str() + "`";
    return text;
  }

  const HloModule &fused;
  llvm::DenseMap<const HloInstruction *, std::string> kernels;
};

} // namespace

llvm::DenseMap<const HloInstruction *, std::string> kernelNames(const HloModule &fused, UniqueNames &names) {
  llvm::DenseMap<const HloInstruction *, std::string> result;
  names.unique("module"); // what concerns all kernels is dumped and timed by this name
  for (const HloComputation *computation : inOrder(fused))
    for (const HloInstruction *instr : computation->instructions())
      if (instr->opcode() == Opcode::Fusion && isWork(*instr))
        result[instr] = names.unique(identifierOf(instr->name()));
  return result;
}

std::vector<const HloInstruction *> selectFusions(const HloModule &fused, llvm::ArrayRef<std::string> names,
                                                  DiagnosticEngine &diagnostics) {
  Selector selector(fused);
  std::vector<const HloInstruction *> selected;
  bool good = true;
  for (llvm::StringRef name : names) {
    name.consume_front("%");
    std::vector<const HloInstruction *> found = selector.find(name);
    if (found.empty())
      selector.reportUnknown(name, diagnostics);
    good &= !found.empty();
    llvm::append_range(selected, found);
  }
  llvm::sort(selected, [](auto *a, auto *b) { return a->id() < b->id(); });
  selected.erase(llvm::unique(selected), selected.end());
  for (const HloInstruction *instr : selected)
    if (good && instr->parent() != selected.front()->parent()) {
      diagnostics.report(DiagnosticKind::BadUsage,
                         fmt::format("--only: `{}` and `{}` are in different computations, `{}` and `{}`",
                                     selected.front()->name().str(), instr->name().str(),
                                     selected.front()->parent()->name().str(), instr->parent()->name().str()));
      good = false;
    }
  return good ? selected : std::vector<const HloInstruction *>();
}

} // namespace hloc
