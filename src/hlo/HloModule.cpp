#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace hloc {

llvm::StringRef HloArena::save(llvm::StringRef text) {
  if (text.empty() || (source && text.data() >= source->text().begin() && text.end() <= source->text().end()))
    return text;
  char *copy = static_cast<char *>(bytes.Allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return llvm::StringRef(copy, text.size());
}

HloModule::HloModule(llvm::StringRef name, std::shared_ptr<HloArena> arena) : sharedArena(std::move(arena)) {
  moduleName = sharedArena->save(name);
}

HloComputation *HloModule::findComputation(llvm::StringRef name) const {
  for (const std::unique_ptr<HloComputation> &computation : computationList)
    if (computation->name() == name)
      return computation.get();
  return nullptr;
}

bool HloModule::isScheduled() const {
  const AttributeValue *value = find(AttributeKey::IsScheduled);
  return value && std::get<bool>(*value);
}

HloComputation *HloModule::addComputation(llvm::StringRef name) { return addComputation(makeComputation(name)); }

std::unique_ptr<HloComputation> HloModule::makeComputation(llvm::StringRef name) {
  return std::unique_ptr<HloComputation>(new HloComputation(*this, sharedArena->save(name)));
}

HloComputation *HloModule::addComputation(std::unique_ptr<HloComputation> computation) {
  computationList.push_back(std::move(computation));
  return computationList.back().get();
}

const AttributeValue *HloModule::find(AttributeKey key) const {
  for (const Attribute &attribute : headerAttributes)
    if (attribute.key == key)
      return &attribute.value;
  return nullptr;
}

void HloModule::setAttributes(llvm::ArrayRef<Attribute> attributes) {
  headerAttributes.assign(attributes.begin(), attributes.end());
  llvm::sort(headerAttributes, [](const Attribute &a, const Attribute &b) { return a.key < b.key; });
}

} // namespace hloc
