#pragma once
// HloModule: computations, header attributes, and the arena that owns everything they point to.

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/Literal.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/ArrayRecycler.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hloc {

/// Owns names, lists, literals and windows of one or more modules: a transformed module shares its source's arena, so
/// that attributes and literals are copied by reference.
///
/// Instructions and their operand and attribute lists go back when an HloEditor erases them, and are used again: what
/// passes replace does not add up. Names, literals, windows and the values of attributes stay as long as the arena.
class HloArena {
public:
  HloArena() = default;
  ~HloArena();
  HloArena(const HloArena &) = delete;
  HloArena &operator=(const HloArena &) = delete;

  llvm::StringRef save(llvm::StringRef text);
  template <typename T> llvm::MutableArrayRef<T> saveList(llvm::ArrayRef<T> list) {
    if (list.empty())
      return {};
    if constexpr (std::is_trivially_destructible_v<T>) {
      T *copy = static_cast<T *>(bytes.Allocate(sizeof(T) * list.size(), alignof(T)));
      std::uninitialized_copy(list.begin(), list.end(), copy);
      return llvm::MutableArrayRef<T>(copy, list.size());
    } else {
      auto owned = std::make_shared<std::vector<T>>(list.begin(), list.end());
      objects.push_back(owned);
      return *owned;
    }
  }
  template <typename T> const T *saveObject(T object) {
    auto owned = std::make_shared<T>(std::move(object));
    objects.push_back(owned);
    return owned.get();
  }
  /// With lists of these lengths, which only the instruction refers to.
  HloInstruction *newInstruction(llvm::ArrayRef<HloInstruction *> operands, llvm::ArrayRef<Attribute> attributes);
  void setAttributes(HloInstruction &instr, llvm::ArrayRef<Attribute> attributes);
  /// Nothing may refer to `instr` any more.
  void recycle(HloInstruction *instr);
  /// Bytes taken for instructions, lists and texts; what was given back still counts. Literals and the like do not.
  size_t numBytes() const { return bytes.getBytesAllocated() + numInstructions * sizeof(HloInstruction); }
  /// The text that SourceRanges and unescaped StringRefs of the modules point into.
  std::shared_ptr<const SourceFile> source;

private:
  template <typename T> using Lists = llvm::ArrayRecycler<T, alignof(T)>;
  template <typename T> llvm::MutableArrayRef<T> copyList(Lists<T> &lists, llvm::ArrayRef<T> list);
  template <typename T> void recycleList(Lists<T> &lists, llvm::ArrayRef<T> list);

  llvm::BumpPtrAllocator bytes;
  llvm::SpecificBumpPtrAllocator<HloInstruction> instructions;
  size_t numInstructions = 0;
  std::vector<HloInstruction *> unusedInstructions;
  Lists<HloInstruction *> operandLists;
  Lists<Attribute> attributeLists;
  std::vector<std::shared_ptr<const void>> objects;
};

class HloModule {
public:
  explicit HloModule(llvm::StringRef name, std::shared_ptr<HloArena> arena = std::make_shared<HloArena>());
  HloModule(const HloModule &) = delete;
  HloModule &operator=(const HloModule &) = delete;

  llvm::StringRef name() const { return moduleName; }
  HloArena &arena() const { return *sharedArena; }
  const std::shared_ptr<HloArena> &arenaPointer() const { return sharedArena; }
  const std::shared_ptr<const SourceFile> &source() const { return sharedArena->source; }

  /// Callees before callers; the entry need not be last.
  llvm::ArrayRef<std::unique_ptr<HloComputation>> computations() const { return computationList; }
  HloComputation *entry() const { return entryComputation; }
  HloComputation *findComputation(llvm::StringRef name) const;
  bool isScheduled() const;
  /// Was the text headerless, so that the entry is itself the body of one fusion (emitter fixtures)?
  bool headerless() const { return withoutHeader; }

  /// The name must be new; it is copied.
  HloComputation *addComputation(llvm::StringRef name);
  /// In two steps, for a computation whose callees are added while it is being made.
  std::unique_ptr<HloComputation> makeComputation(llvm::StringRef name);
  HloComputation *addComputation(std::unique_ptr<HloComputation> computation);
  /// In front of `caller`, where its callees belong. The name must be new.
  HloComputation *addComputationBefore(const HloComputation &caller, llvm::StringRef name);
  /// Removes what the entry does not call, directly or through others, with its instructions. How many?
  size_t eraseUnreachable();
  void setName(llvm::StringRef name) { moduleName = sharedArena->save(name); }
  void setEntry(HloComputation *entry) { entryComputation = entry; }
  void setHeaderless(bool value) { withoutHeader = value; }

  llvm::ArrayRef<Attribute> attributes() const { return headerAttributes; }
  const AttributeValue *find(AttributeKey key) const;
  void setAttributes(llvm::ArrayRef<Attribute> attributes); ///< values owned by the arena
  /// FileNames ... StackFrames tables between header and first computation, in canonical form; empty if absent.
  llvm::StringRef stackFrames() const { return stackFrameTables; }
  void setStackFrames(llvm::StringRef text) { stackFrameTables = text; }

private:
  llvm::StringRef moduleName;
  std::shared_ptr<HloArena> sharedArena;
  std::vector<std::unique_ptr<HloComputation>> computationList;
  llvm::DenseMap<llvm::StringRef, HloComputation *> computationOfName;
  std::vector<Attribute> headerAttributes;
  llvm::StringRef stackFrameTables;
  HloComputation *entryComputation = nullptr;
  bool withoutHeader = false;
};

/// A module of its own on the same arena: the computations reachable from the entry, callees first, the entry last.
/// Control predecessors are not copied: the order of the instructions is.
std::unique_ptr<HloModule> cloneModule(const HloModule &module);

/// Computations reachable from the entry, in module order (callees first), entry last.
std::vector<HloComputation *> reachableComputations(const HloModule &module);
/// The same by calls of those instructions alone that `follows` holds of.
std::vector<HloComputation *> reachableComputations(const HloModule &module,
                                                    llvm::function_ref<bool(const HloInstruction &)> follows);

} // namespace hloc
