#include "ReplicaGroups.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <set>

namespace hloc {

namespace {

/// Takes `token` from the front, after blanks and comments.
bool take(llvm::StringRef &rest, llvm::StringRef token) {
  for (rest = rest.ltrim(); rest.starts_with("/*") || rest.starts_with("//"); rest = rest.ltrim())
    rest = rest.starts_with("/*") ? rest.split("*/").second : rest.split('\n').second;
  return rest.consume_front(token);
}

/// `{1,2}`, with these brackets.
std::optional<llvm::SmallVector<int64_t>> takeList(llvm::StringRef &rest, llvm::StringRef open, llvm::StringRef close) {
  llvm::SmallVector<int64_t> values;
  if (!take(rest, open))
    return std::nullopt;
  while (!take(rest, close)) {
    int64_t value = 0;
    if ((!values.empty() && !take(rest, ",")) || !take(rest, "") || rest.consumeInteger(10, value) || value < 0)
      return std::nullopt;
    values.push_back(value);
  }
  return values;
}

std::optional<ReplicaGroups> readLists(llvm::StringRef rest, std::string &why) {
  ReplicaGroups groups;
  std::set<int64_t> seen;
  auto wrong = [&](const std::string &reason) {
    why = reason;
    return std::nullopt;
  };
  take(rest, "{");
  for (bool first = true; !take(rest, "}"); first = false) {
    auto devices = first || take(rest, ",") ? takeList(rest, "{", "}") : std::nullopt;
    if (!devices)
      return wrong("it is no list of groups");
    if (devices->empty())
      return wrong("a group is empty");
    for (int64_t device : *devices)
      if (!seen.insert(device).second)
        return wrong("device " + std::to_string(device) + " appears twice");
    groups.differInSize |= !first && groups.size != int64_t(devices->size());
    groups.size = int64_t(devices->size());
  }
  int64_t next = 0;
  for (int64_t device : seen)
    if (device != next++)
      return wrong("device " + std::to_string(next - 1) + " is in no group");
  groups.none = seen.empty();
  if (groups.differInSize)
    groups.size = std::nullopt;
  return groups;
}

int64_t product(llvm::ArrayRef<int64_t> sizes) {
  uint64_t all = 1;
  for (int64_t size : sizes)
    all = llvm::SaturatingMultiply<uint64_t>(all, uint64_t(size));
  return int64_t(std::min<uint64_t>(all, INT64_MAX));
}

/// [groups,size]<=[devices in a box]T(order of its sides): all devices from 0 on, each once.
std::optional<ReplicaGroups> readIota(llvm::StringRef rest, std::string &why) {
  auto wrong = [&](const char *reason) {
    why = reason;
    return std::nullopt;
  };
  auto groups = takeList(rest, "[", "]");
  bool arrow = groups && take(rest, "<=");
  auto box = arrow ? takeList(rest, "[", "]") : std::nullopt;
  if (!box || groups->size() != 2)
    return wrong("it is not of the form [groups,size]<=[devices]");
  llvm::SmallVector<int64_t> order;
  if (take(rest, "T")) {
    auto written = takeList(rest, "(", ")");
    if (!written)
      return wrong("`T` is followed by no order of dimensions");
    order = *written;
  } else if (box->size() == 1) {
    order = {0};
  }
  llvm::sort(order);
  bool permutation = order.size() == box->size() && rest.trim().empty();
  for (size_t i = 0; permutation && i < order.size(); ++i)
    permutation = order[i] == int64_t(i);
  if (!permutation)
    return wrong("`T` is no order of the dimensions of the devices");
  if (product(*groups) == 0)
    return wrong("a group is empty");
  if (product(*groups) != product(*box))
    return wrong("groups and devices differ in number");
  ReplicaGroups made;
  made.size = (*groups)[1];
  return made;
}

} // namespace

std::optional<ReplicaGroups> readReplicaGroups(llvm::StringRef text, std::string &why) {
  if (text.starts_with("mesh"))
    return ReplicaGroups();
  return text.starts_with("[") ? readIota(text, why) : readLists(text, why);
}

} // namespace hloc
