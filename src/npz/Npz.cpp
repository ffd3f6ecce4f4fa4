#include "hloc/npz/Npz.h"

#include "npz/Zip.h"

namespace hloc {

std::optional<std::vector<NpzArray>> readNpz(llvm::StringRef file, std::string &error, uint64_t maxBytes) {
  std::optional<std::vector<npz::ZipMember>> members = npz::readZip(file, error, maxBytes);
  if (!members)
    return std::nullopt;
  std::vector<NpzArray> arrays;
  for (npz::ZipMember &member : *members) {
    std::optional<NpzArray> array = readNpy(member.contents, error);
    if (!array) {
      error = "`" + member.name + "`: " + error;
      return std::nullopt;
    }
    array->name = member.name;
    if (llvm::StringRef(array->name).ends_with(".npy"))
      array->name.resize(array->name.size() - 4);
    std::string().swap(member.contents); // one copy of the data at a time
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

std::string writeNpz(llvm::ArrayRef<NpzArray> arrays) {
  std::vector<npz::ZipMember> members;
  for (const NpzArray &array : arrays)
    members.push_back({array.name + ".npy", writeNpy(array)});
  return npz::writeZip(members);
}

} // namespace hloc
