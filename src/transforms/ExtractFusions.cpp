#include "hloc/transforms/ExtractFusions.h"

#include "FuseGroups.h"
#include "hloc/search/FusionPolicy.h"

#include "hloc/hlo/CloneComputations.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

class Extraction {
public:
  Extraction(const HloModule &module, llvm::ArrayRef<ExtractedFusion> fusions)
      : module(module), made(std::make_unique<HloModule>(module.name(), module.arenaPointer())),
        old(*fusions.front().fusion->parent()), chosen(old.instructions().size(), false), kept(chosen),
        isResult(chosen), names(chosen.size()) {
    for (const ExtractedFusion &one : fusions) {
      chosen[one.fusion->id()] = true;
      names[one.fusion->id()] = one.name;
    }
    keepBetween();
    findResults();
  }

  std::unique_ptr<HloModule> run(llvm::ArrayRef<InPlaceOutput> inPlace) {
    llvm::SmallVector<HloInstruction *> callers;
    llvm::copy_if(old.instructions(), std::back_inserter(callers), [&](auto *instr) { return kept[instr->id()]; });
    callees = cloneComputations(calledComputations(module, callers), *made);
    HloComputation &entry = *made->addComputation(freshComputationName(module, old.name()));
    entry.setRange(old.range());
    HloBuilder builder(entry);
    addParameters(builder);
    addInstructions(builder);
    setRoot(entry, builder);
    made->setEntry(&entry);
    made->setStackFrames(module.stackFrames());
    setHeader(inPlace);
    return std::move(made);
  }

private:
  /// The fusions, the structure that leads from one of them to another, and the constants that they read.
  void keepBetween() {
    llvm::BitVector leadsToChosen(chosen.size(), false), comesFromChosen(chosen);
    for (HloInstruction *instr : llvm::reverse(old.instructions()))
      if (chosen[instr->id()] || (isStructure(*instr) && leadsToChosen[instr->id()]))
        for (HloInstruction *operand : instr->operands()) {
          leadsToChosen[operand->id()] = true;
          if (chosen[instr->id()] && operand->opcode() == Opcode::Constant)
            kept[operand->id()] = true;
        }
    for (HloInstruction *instr : old.instructions()) {
      const uint32_t id = instr->id();
      if (isStructure(*instr) && leadsToChosen[id])
        comesFromChosen[id] =
            llvm::any_of(instr->operands(), [&](auto *operand) { return comesFromChosen[operand->id()]; });
      if (comesFromChosen[id])
        kept[id] = true;
    }
  }

  /// The fusions whose values something else reads, through the structure that is kept or not.
  void findResults() {
    llvm::BitVector isRead(chosen.size(), false);
    isRead[old.root()->id()] = true;
    for (HloInstruction *instr : llvm::reverse(old.instructions())) {
      const bool read = isRead[instr->id()];
      isResult[instr->id()] = read && chosen[instr->id()];
      if (!kept[instr->id()] || (read && !chosen[instr->id()]))
        for (HloInstruction *operand : instr->operands())
          isRead[operand->id()] = true;
    }
    if (isResult.none())
      isResult = chosen; // read by nobody, or by each other alone
  }

  void addParameters(HloBuilder &builder) {
    int64_t number = 0;
    mapped.assign(chosen.size(), nullptr);
    for (HloInstruction *reader : old.instructions())
      for (HloInstruction *operand : reader->operands()) {
        HloInstruction *&parameter = mapped[operand->id()];
        if (!kept[reader->id()] || kept[operand->id()] || parameter)
          continue;
        builder.setRange(operand->range());
        parameter = builder.parameter(number++, operand->shape(), operand->name());
      }
  }

  void addInstructions(HloBuilder &builder) {
    llvm::SmallVector<HloInstruction *> operands;
    for (HloInstruction *instr : old.instructions()) {
      if (!kept[instr->id()])
        continue;
      operands.clear();
      for (HloInstruction *operand : instr->operands())
        operands.push_back(mapped[operand->id()]);
      builder.setRange(instr->range());
      const std::string &name = names[instr->id()];
      mapped[instr->id()] =
          name.empty() ? builder.clone(*instr, operands, callees)
                       : builder.add(instr->opcode(), instr->shape(), operands, fusionAttributes(*instr), name);
    }
  }

  /// What HloBuilder::clone would make of them.
  llvm::SmallVector<Attribute, 8> fusionAttributes(const HloInstruction &fusion) const {
    llvm::SmallVector<Attribute, 8> attributes;
    for (Attribute attribute : fusion.attributes()) {
      if (attribute.key == AttributeKey::Calls)
        attribute.value = callees.lookup(std::get<HloComputation *>(attribute.value));
      if (attribute.key != AttributeKey::ControlPredecessors)
        attributes.push_back(attribute);
    }
    return attributes;
  }

  void setRoot(HloComputation &entry, HloBuilder &builder) {
    llvm::SmallVector<HloInstruction *> results;
    for (HloInstruction *instr : old.instructions())
      if (isResult[instr->id()]) {
        resultNumber[instr->id()] = results.size();
        results.push_back(mapped[instr->id()]);
      }
    numResults = results.size();
    builder.setRange(old.root()->range());
    entry.setRoot(numResults == 1 ? results.front() : builder.tuple(results));
  }

  void setHeader(llvm::ArrayRef<InPlaceOutput> inPlace) {
    std::vector<Attribute> attributes;
    for (const Attribute &attribute : module.attributes())
      if (!llvm::is_contained({AttributeKey::EntryComputationLayout, AttributeKey::InputOutputAlias,
                               AttributeKey::BufferDonor, AttributeKey::AliasPassthroughParams},
                              attribute.key))
        attributes.push_back(attribute);
    std::string aliases;
    for (const InPlaceOutput &one : inPlace)
      if (std::string text = aliasText(one); !text.empty())
        aliases += (aliases.empty() ? "" : ", ") + text;
    if (!aliases.empty())
      attributes.push_back({AttributeKey::InputOutputAlias, made->arena().save("{ " + aliases + " }")});
    made->setAttributes(attributes);
  }

  /// `{1}: (0, {}, may-alias)`; empty unless a result lies in what is a parameter.
  std::string aliasText(const InPlaceOutput &alias) const {
    const HloInstruction *fusion = mapped[alias.fusion->id()];
    auto result = resultNumber.find(alias.fusion->id());
    if (result == resultNumber.end())
      return "";
    llvm::SmallVector<int64_t, 2> output;
    if (numResults > 1)
      output.push_back(int64_t(result->second));
    llvm::append_range(output, fusion->shape().leaves()[alias.output].index);
    unsigned first = 0;
    for (const HloInstruction *operand : fusion->operands()) {
      llvm::SmallVector<Shape::Leaf, 4> leaves = operand->shape().leaves();
      if (alias.operand < first + leaves.size())
        return operand->opcode() != Opcode::Parameter
                   ? ""
                   : fmt::format("{{{}}}: ({}, {{{}}}, may-alias)", fmt::join(output, ", "), operand->parameterNumber(),
                                 fmt::join(leaves[alias.operand - first].index, ", "));
      first += leaves.size();
    }
    return "";
  }

  const HloModule &module;
  std::unique_ptr<HloModule> made;
  const HloComputation &old;
  llvm::DenseMap<const HloComputation *, HloComputation *> callees; ///< their copies
  llvm::BitVector chosen, kept, isResult;                           ///< by id
  std::vector<std::string> names;                                   ///< by id: new ones
  std::vector<HloInstruction *> mapped;                             ///< by id: what stands for it in the new entry
  llvm::DenseMap<uint32_t, size_t> resultNumber;
  size_t numResults = 0;
};

} // namespace

std::unique_ptr<HloModule> extractFusions(const HloModule &module, llvm::ArrayRef<ExtractedFusion> fusions,
                                          llvm::ArrayRef<InPlaceOutput> inPlace) {
  return Extraction(module, fusions).run(inPlace);
}

} // namespace hloc
