#include "hloc/support/Suggestion.h"

namespace hloc {

llvm::StringRef nearestName(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names) {
  // What it costs is a product of all three lengths; longer lists and names are not typed by hand.
  if (names.size() > 2000 || wanted.size() > 100)
    return "";
  llvm::StringRef best;
  unsigned bestDistance = std::max<unsigned>(2, unsigned(wanted.size() / 4)) + 1;
  for (llvm::StringRef name : names) {
    unsigned distance = wanted.edit_distance(name, true, bestDistance);
    bool sameDistance = distance == bestDistance && !best.empty();
    // As many changes as half the letters make too many names of it.
    if (distance * 2 > wanted.size() || (distance >= bestDistance && !(sameDistance && name < best)))
      continue;
    bestDistance = distance;
    best = name;
  }
  return best;
}

std::string suggestion(llvm::StringRef near) { return near.empty() ? "" : "; did you mean `" + near.str() + "`?"; }

} // namespace hloc
