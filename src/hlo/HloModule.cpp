#include "hloc/hlo/HloModule.h"

#include "hloc/support/Check.h"

#include "llvm/ADT/DenseSet.h"
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

HloArena::~HloArena() {
  operandLists.clear(bytes);
  attributeLists.clear(bytes);
}

template <typename T> llvm::MutableArrayRef<T> HloArena::copyList(Lists<T> &lists, llvm::ArrayRef<T> list) {
  if (list.empty())
    return {};
  T *copy = lists.allocate(Lists<T>::Capacity::get(list.size()), bytes);
  std::uninitialized_copy(list.begin(), list.end(), copy);
  return llvm::MutableArrayRef<T>(copy, list.size());
}

template <typename T> void HloArena::recycleList(Lists<T> &lists, llvm::ArrayRef<T> list) {
  if (!list.empty())
    lists.deallocate(Lists<T>::Capacity::get(list.size()), const_cast<T *>(list.data()));
}

HloInstruction *HloArena::newInstruction(llvm::ArrayRef<HloInstruction *> operands,
                                         llvm::ArrayRef<Attribute> attributes) {
  HloInstruction *instr;
  if (unusedInstructions.empty()) {
    instr = new (instructions.Allocate()) HloInstruction();
    ++numInstructions;
  } else {
    instr = unusedInstructions.back();
    unusedInstructions.pop_back();
  }
  instr->operandList = copyList(operandLists, operands);
  instr->attributeList = copyList(attributeLists, attributes);
  return instr;
}

void HloArena::setAttributes(HloInstruction &instr, llvm::ArrayRef<Attribute> attributes) {
  llvm::MutableArrayRef<Attribute> copy = copyList(attributeLists, attributes);
  recycleList<Attribute>(attributeLists, instr.attributeList);
  instr.attributeList = copy;
}

void HloArena::recycle(HloInstruction *instr) {
  recycleList<HloInstruction *>(operandLists, instr->operandList);
  recycleList<Attribute>(attributeLists, instr->attributeList);
  *instr = HloInstruction(); // lets go of the shape
  unusedInstructions.push_back(instr);
}

HloModule::HloModule(llvm::StringRef name, std::shared_ptr<HloArena> arena) : sharedArena(std::move(arena)) {
  moduleName = sharedArena->save(name);
}

HloComputation *HloModule::findComputation(llvm::StringRef name) const { return computationOfName.lookup(name); }

bool HloModule::isScheduled() const {
  const AttributeValue *value = find(AttributeKey::IsScheduled);
  return value && std::get<bool>(*value);
}

HloComputation *HloModule::addComputation(llvm::StringRef name) { return addComputation(makeComputation(name)); }

std::unique_ptr<HloComputation> HloModule::makeComputation(llvm::StringRef name) {
  return std::unique_ptr<HloComputation>(new HloComputation(*this, sharedArena->save(name)));
}

HloComputation *HloModule::addComputation(std::unique_ptr<HloComputation> computation) {
  computationOfName.try_emplace(computation->name(), computation.get());
  computationList.push_back(std::move(computation));
  return computationList.back().get();
}

HloComputation *HloModule::addComputationBefore(const HloComputation &caller, llvm::StringRef name) {
  // From the back: it is the entry that gets most of them, and that stands last.
  auto behind = std::find_if(computationList.rbegin(), computationList.rend(),
                             [&](const auto &each) { return each.get() == &caller; });
  HLOC_CHECK(behind != computationList.rend(), "the caller belongs to another module");
  auto at = computationList.insert(std::prev(behind.base()), makeComputation(name));
  computationOfName.try_emplace((*at)->name(), at->get());
  return at->get();
}

size_t HloModule::eraseUnreachable() {
  std::vector<HloComputation *> reachable = reachableComputations(*this);
  llvm::DenseSet<const HloComputation *> kept(reachable.begin(), reachable.end());
  size_t before = computationList.size();
  llvm::erase_if(computationList, [&](const std::unique_ptr<HloComputation> &computation) {
    if (kept.contains(computation.get()))
      return false;
    for (HloInstruction *instr : computation->instructions())
      sharedArena->recycle(instr);
    if (findComputation(computation->name()) == computation.get())
      computationOfName.erase(computation->name());
    return true;
  });
  return before - computationList.size();
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
