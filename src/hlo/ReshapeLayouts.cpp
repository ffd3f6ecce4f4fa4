#include "hloc/hlo/ReshapeLayouts.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {
namespace {

using Dims = llvm::SmallVector<int64_t, 6>;

/// Dimensions of both arrays with the same product, as few as there are: f32[6,4] and f32[2,3,4] have {0}, {0, 1} and
/// {1}, {2}. Those of size 1 are in none.
struct DimsGroup {
  Dims from, to;
};

llvm::SmallVector<DimsGroup> groupsOf(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<DimsGroup> groups;
  size_t nextFrom = 0, nextTo = 0;
  auto take = [](llvm::ArrayRef<int64_t> sizes, size_t &next, Dims &dims) {
    const int64_t size = sizes[next];
    if (size != 1)
      dims.push_back(int64_t(next));
    ++next;
    return size;
  };
  while (nextFrom < from.size() || nextTo < to.size()) {
    DimsGroup group;
    int64_t ofFrom = nextFrom < from.size() ? take(from, nextFrom, group.from) : 1;
    int64_t ofTo = nextTo < to.size() ? take(to, nextTo, group.to) : 1;
    while (ofFrom != ofTo) {
      if (ofFrom < ofTo ? nextFrom == from.size() : nextTo == to.size())
        return {}; // no reshape
      if (ofFrom < ofTo)
        ofFrom *= take(from, nextFrom, group.from);
      else
        ofTo *= take(to, nextTo, group.to);
    }
    if (ofFrom != 1)
      groups.push_back(std::move(group));
  }
  return groups;
}

/// Major to minor, without those of size 1.
Dims orderOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> minorToMajor) {
  Dims order;
  for (int64_t dim : llvm::reverse(minorToMajor))
    if (dims[size_t(dim)] != 1)
      order.push_back(dim);
  return order;
}

} // namespace

std::optional<Dims> layoutBeforeReshape(llvm::ArrayRef<int64_t> dims, const Shape &to) {
  if (to.numElements() == 0)
    return defaultMinorToMajor(unsigned(dims.size()));
  const llvm::SmallVector<DimsGroup> groups = groupsOf(dims, to.dims());
  const Dims order = orderOf(to.dims(), to.minorToMajor());
  Dims majorToMinor;
  for (auto [dim, size] : llvm::enumerate(dims))
    if (size == 1)
      majorToMinor.push_back(int64_t(dim));
  for (size_t at = 0; at < order.size();) {
    const DimsGroup *group = llvm::find_if(groups, [&](const DimsGroup &one) { return one.to.front() == order[at]; });
    if (group == groups.end() || order.size() - at < group->to.size() ||
        llvm::ArrayRef<int64_t>(order).slice(at, group->to.size()) != llvm::ArrayRef<int64_t>(group->to))
      return std::nullopt;
    llvm::append_range(majorToMinor, group->from);
    at += group->to.size();
  }
  std::reverse(majorToMinor.begin(), majorToMinor.end());
  return majorToMinor;
}

bool reshapeKeepsOrder(const Shape &from, const Shape &to) {
  const std::optional<Dims> before = layoutBeforeReshape(from.dims(), to);
  return before &&
         (from.numElements() == 0 || orderOf(from.dims(), *before) == orderOf(from.dims(), from.minorToMajor()));
}

} // namespace hloc
