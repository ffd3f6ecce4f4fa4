#include "hloc/reduce/Suspects.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Names = std::vector<std::string>;

Names without(const Names &names, size_t begin, size_t end) {
  Names rest(names.begin(), names.begin() + std::ptrdiff_t(begin));
  rest.insert(rest.end(), names.begin() + std::ptrdiff_t(end), names.end());
  return rest;
}

/// Halves first, then smaller parts, as long as all is well without what is left.
Names smallest(Names names, WithoutThese isWell) {
  for (size_t chunk = names.size() / 2; chunk; chunk /= 2)
    for (size_t begin = 0; begin < names.size() && names.size() > 1;) {
      Names rest = without(names, begin, std::min(begin + chunk, names.size()));
      if (!rest.empty() && isWell({rest}).front())
        names = std::move(rest);
      else
        begin += chunk;
    }
  return names;
}

} // namespace

Blame findBlame(llvm::ArrayRef<std::string> suspects, WithoutThese isWell) {
  Blame blame;
  std::vector<Names> alone;
  for (const std::string &name : suspects)
    alone.push_back({name});
  for (auto [name, isEnough] : llvm::zip(suspects, isWell(alone)))
    if (isEnough)
      blame.alsoHide.push_back(name);
  if (!blame.alsoHide.empty()) {
    blame.guilty = {blame.alsoHide.back()};
    blame.alsoHide.pop_back();
  } else if (Names all = suspects; all.size() > 1 && isWell({all}).front()) {
    blame.guilty = smallest(std::move(all), isWell);
  }
  return blame;
}

} // namespace hloc
