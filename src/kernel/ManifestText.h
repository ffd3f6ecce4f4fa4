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

inline llvm::StringRef name(ModuleStep::Kind kind) {
  switch (kind) {
  case ModuleStep::Kind::Launch:
    return "launch";
  case ModuleStep::Kind::Copy:
    return "copy";
  }
  return "";
}

/// The enumerator among 0..last that is called `text`.
template <typename Enum> bool parse(llvm::StringRef text, Enum last, Enum &value) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name(static_cast<Enum>(i)) == text) {
      value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

/// What makes a well-formed manifest unusable, with its JSON path: indices out of range, slices that leave their
/// buffer, arguments that do not fit the kernel. Empty: nothing.
std::string findContradiction(const Manifest &manifest);

} // namespace hloc::manifest_text
