#pragma once
// Marks that hloc puts on instructions for who reads them later, kernels and reference alike: `name="value"` among the
// frontend attributes, which other readers of HLO pass on.

#include "hloc/hlo/HloInstruction.h"

namespace hloc {

/// `mark`: `name="value"`.
inline bool hasFrontendMark(const HloInstruction &instr, llvm::StringRef mark) {
  const llvm::StringRef attributes = instr.string(AttributeKey::FrontendAttributes);
  for (size_t at = attributes.find(mark); at != llvm::StringRef::npos; at = attributes.find(mark, at + 1))
    if (llvm::StringRef before = attributes.take_front(at).rtrim(); before.ends_with("{") || before.ends_with(","))
      return true;
  return false;
}

} // namespace hloc
