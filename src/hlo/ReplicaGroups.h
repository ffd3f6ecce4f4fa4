#pragma once
// What a `replica_groups` text says about the groups: `{{0,1},{2,3}}`, `[2,4]<=[8]`, `[4,2]<=[2,4]T(1,0)`, `mesh[...]`.

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hloc {

struct ReplicaGroups {
  bool none = false; ///< `{}`: one group of all
  bool differInSize = false;
  std::optional<int64_t> size; ///< of every group; nothing if they differ, if there is none, or of a mesh
};

/// Nothing if a group is empty, the devices are not 0, 1, ... or one appears twice, or the text has none of these
/// forms; `why` says which.
std::optional<ReplicaGroups> readReplicaGroups(llvm::StringRef text, std::string &why);

} // namespace hloc
