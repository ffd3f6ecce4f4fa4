#include "hloc/support/Names.h"

#include "llvm/ADT/StringExtras.h"

namespace hloc {

std::string identifierOf(llvm::StringRef name) {
  std::string identifier;
  for (char c : name)
    identifier += llvm::isAlnum(c) ? c : '_';
  // ptxas takes names of instructions, but not these.
  bool reserved = identifier == "WARP_SZ" || identifier.find_first_not_of('_') == std::string::npos;
  if (reserved || llvm::isDigit(identifier.front()))
    identifier = "k_" + identifier;
  return identifier;
}

std::string fileNameOf(llvm::StringRef name) {
  std::string safe;
  for (char c : name)
    safe += llvm::isAlnum(c) || c == '_' || c == '-' || c == '.' ? c : '_';
  return safe.empty() || safe[0] == '.' ? "_" + safe : safe;
}

std::string UniqueNames::unique(llvm::StringRef name) {
  std::string result = name.str();
  for (unsigned i = 1; !taken.insert(result).second; ++i)
    result = name.str() + "_" + std::to_string(i);
  return result;
}

} // namespace hloc
