// The same instructions in plainer form: smaller sizes, common types, default layouts, no attributes that change
// nothing.

#include "Moves.h"

#include "hloc/hlo/HloEditor.h"
#include "hloc/transforms/ShrinkModule.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::reduction {

namespace {

constexpr int64_t targets[] = {2, 4, 8, 16, 64, 256};

std::set<int64_t> sizesIn(const HloModule &module) {
  std::set<int64_t> sizes;
  for (const HloComputation *computation : reachableComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      for (const Shape::Leaf &leaf : instr->shape().leaves())
        if (leaf.shape.isArray())
          sizes.insert(leaf.shape.dims().begin(), leaf.shape.dims().end());
  sizes.erase(sizes.begin(), sizes.upper_bound(1));
  return sizes;
}

/// `smaller` gives what stands for a size.
ModulePointer resize(ModulePointer module, const llvm::BitVector &places, int64_t (*smaller)(int64_t)) {
  ModuleRenames renames;
  for (auto [i, size] : llvm::enumerate(sizesIn(*module)))
    if (places[unsigned(i)] && smaller(size) < size)
      renames.sizes[size] = smaller(size);
  return renames.sizes.empty() ? nullptr : renameModule(*module, renames);
}

/// Itself if there is none plainer.
ElementType plainer(ElementType type) {
  if (isFloat(type))
    return ElementType::F32;
  if (isComplex(type))
    return ElementType::C64;
  return isInteger(type) ? ElementType::S32 : type;
}

std::set<ElementType> oddTypesIn(const HloModule &module) {
  std::set<ElementType> types;
  for (const HloComputation *computation : reachableComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      for (const Shape::Leaf &leaf : instr->shape().leaves())
        if (leaf.shape.isArray() && plainer(leaf.shape.elementType()) != leaf.shape.elementType())
          types.insert(leaf.shape.elementType());
  return types;
}

bool hasOddLayout(const HloInstruction &instr) {
  return llvm::any_of(instr.shape().leaves(),
                      [](const Shape::Leaf &leaf) { return leaf.shape.isArray() && !leaf.shape.hasDefaultLayout(); });
}

constexpr AttributeKey idleKeys[] = {
    AttributeKey::Metadata,         AttributeKey::BackendConfig,    AttributeKey::FrontendAttributes,
    AttributeKey::Sharding,         AttributeKey::Statistics,       AttributeKey::ResultAccuracy,
    AttributeKey::Origin,           AttributeKey::OperandPrecision, AttributeKey::ParameterReplication,
    AttributeKey::IndicesAreSorted, AttributeKey::UniqueIndices,    AttributeKey::ControlPredecessors,
    AttributeKey::ConstrainLayout,  AttributeKey::Algorithm,        AttributeKey::IsStable};
/// Of the header all but what the entry's signature says, which goes where that changes.
constexpr AttributeKey idleHeaderKeys[] = {AttributeKey::IsScheduled,        AttributeKey::InputOutputAlias,
                                           AttributeKey::BufferDonor,        AttributeKey::AliasPassthroughParams,
                                           AttributeKey::FrontendAttributes, AttributeKey::AllowSpmdToParameters,
                                           AttributeKey::AllowSpmdToOutput,  AttributeKey::ReplicaCount,
                                           AttributeKey::NumPartitions,      AttributeKey::OriginRecoveryTable,
                                           AttributeKey::DebugAttributes,    AttributeKey::EntryComputationLayout};

/// Keys that occur, those of instructions first.
std::vector<std::pair<AttributeKey, bool>> idleAttributes(const HloModule &module) {
  std::set<AttributeKey> used;
  for (const HloComputation *computation : reachableComputations(module))
    for (const HloInstruction *instr : computation->instructions())
      for (const Attribute &attribute : instr->attributes())
        used.insert(attribute.key);
  std::vector<std::pair<AttributeKey, bool>> found;
  for (AttributeKey key : idleKeys)
    if (used.count(key))
      found.emplace_back(key, /*inHeader=*/false);
  for (AttributeKey key : idleHeaderKeys)
    if (module.find(key))
      found.emplace_back(key, /*inHeader=*/true);
  return found;
}

} // namespace

size_t countTargets(const HloModule &module) {
  const std::set<int64_t> sizes = sizesIn(module);
  return llvm::count_if(targets, [&](int64_t target) { return !sizes.empty() && target < *sizes.rbegin(); });
}

ModulePointer shrinkAll(ModulePointer module, const llvm::BitVector &places) {
  DiagnosticEngine unheard;
  ShrunkModule shrunk = shrinkModule(*module, targets[places.find_first()], unheard);
  return shrunk.sizes.empty() ? nullptr : std::move(shrunk.module);
}

size_t countSizes(const HloModule &module) { return sizesIn(module).size(); }
ModulePointer sizesToOne(ModulePointer module, const llvm::BitVector &places) {
  return resize(std::move(module), places, [](int64_t) { return int64_t(1); });
}
ModulePointer sizesToTwo(ModulePointer module, const llvm::BitVector &places) {
  return resize(std::move(module), places, [](int64_t) { return int64_t(2); });
}
ModulePointer halveSizes(ModulePointer module, const llvm::BitVector &places) {
  return resize(std::move(module), places, [](int64_t size) { return (size + 1) / 2; });
}

size_t countTypes(const HloModule &module) { return oddTypesIn(module).size(); }
ModulePointer simplifyTypes(ModulePointer module, const llvm::BitVector &places) {
  ModuleRenames renames;
  for (auto [i, type] : llvm::enumerate(oddTypesIn(*module)))
    if (places[unsigned(i)])
      renames.types[type] = plainer(type);
  return renameModule(*module, renames);
}

size_t countLayouts(const HloModule &module) {
  return llvm::any_of(reachableComputations(module), [](const HloComputation *computation) {
    return llvm::any_of(computation->instructions(), [](const HloInstruction *instr) { return hasOddLayout(*instr); });
  });
}

ModulePointer resetLayouts(ModulePointer module, const llvm::BitVector &) {
  for (HloComputation *computation : reachableComputations(*module)) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (hasOddLayout(*instr))
        editor.setShape(instr, instr->shape().withDefaultLayout());
    editor.finish();
  }
  dropSignature(*module);
  return module;
}

size_t countAttributes(const HloModule &module) {
  return idleAttributes(module).size() + !module.stackFrames().empty();
}

ModulePointer dropAttributes(ModulePointer module, const llvm::BitVector &places) {
  std::set<AttributeKey> dropped, droppedOfHeader;
  const auto idle = idleAttributes(*module);
  for (auto [i, key] : llvm::enumerate(idle))
    if (places[unsigned(i)])
      (key.second ? droppedOfHeader : dropped).insert(key.first);
  if (places.size() > idle.size() && places[unsigned(idle.size())])
    module->setStackFrames("");
  for (HloComputation *computation : reachableComputations(*module))
    for (HloInstruction *instr : computation->instructions()) {
      llvm::SmallVector<Attribute> kept;
      llvm::copy_if(instr->attributes(), std::back_inserter(kept),
                    [&](const Attribute &attribute) { return !dropped.count(attribute.key); });
      if (kept.size() < instr->attributes().size())
        module->arena().setAttributes(*instr, kept);
    }
  std::vector<Attribute> header(module->attributes());
  std::erase_if(header, [&](const Attribute &attribute) { return droppedOfHeader.count(attribute.key) > 0; });
  module->setAttributes(header);
  return module;
}

} // namespace hloc::reduction
