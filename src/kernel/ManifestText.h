#pragma once
// Shared by printing and parsing a manifest: the words for enumerators, and the check of the whole.

#include "hloc/kernel/Manifest.h"

#include "llvm/ADT/StringRef.h"

namespace hloc::manifest_text {

inline llvm::StringRef name(KernelParameter::Role role) {
  switch (role) {
  case KernelParameter::Role::Input:
    return "input";
  case KernelParameter::Role::Output:
    return "output";
  case KernelParameter::Role::Temporary:
    return "temporary";
  }
  return "";
}

inline llvm::StringRef name(ProofProperty property) { return text(property); }
inline llvm::StringRef name(ProofVerdict verdict) { return text(verdict); }

inline llvm::StringRef name(ModuleBuffer::Kind kind) {
  switch (kind) {
  case ModuleBuffer::Kind::Parameter:
    return "parameter";
  case ModuleBuffer::Kind::Result:
    return "result";
  case ModuleBuffer::Kind::Temporary:
    return "temporary";
  case ModuleBuffer::Kind::Constant:
    return "constant";
  }
  return "";
}

/// The word for what a step does.
llvm::StringRef kindOf(const Step &step);
/// An action of the kind with that word, with nothing in it; false if there is no such kind.
bool setKind(llvm::StringRef kind, Step &step);

/// The enumerator among 0..last that is called `text`.
template <typename Enum> bool parse(llvm::StringRef text, Enum last, Enum &value) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name(static_cast<Enum>(i)) == text) {
      value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

/// The parameter that points to the buffer that `map` is of; nothing if the kernel has none.
std::optional<size_t> findPointer(const KernelSpec &kernel, const KernelParameter &map);

/// What makes a well-formed manifest unusable, with its JSON path: indices out of range, slices that leave their
/// buffer, arguments that do not fit the kernel. Empty: nothing.
std::string findContradiction(const Manifest &manifest);
std::string checkSlice(const Manifest &manifest, const BufferSlice &slice);
/// The same of steps, which are those of the manifest or inside them.
std::string checkSteps(const Manifest &manifest, const Steps &steps, const std::string &path);

} // namespace hloc::manifest_text
