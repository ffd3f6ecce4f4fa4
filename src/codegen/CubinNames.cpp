#include "CubinNames.h"

#include "hloc/support/Check.h"

#include "llvm/BinaryFormat/ELF.h"

#include <cstring>
#include <optional>

namespace hloc {

namespace {

template <typename Record> std::optional<Record> readAt(llvm::StringRef bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Record))
    return std::nullopt;
  Record record;
  std::memcpy(&record, bytes.data() + offset, sizeof record);
  return record;
}

/// `bytes[begin, end)` is a sequence of strings, each ended by a zero byte.
void renameInStrings(std::string &bytes, size_t begin, size_t end, llvm::StringRef from, llvm::StringRef to) {
  for (size_t start = begin; start < end;) {
    size_t stop = std::min(bytes.find('\0', start), end);
    std::string name = bytes.substr(start, stop - start);
    for (size_t at = name.find(from.str()); at != std::string::npos; at = name.find(from.str(), at + to.size()))
      name.replace(at, from.size(), to.str());
    name.resize(stop - start, '\0');
    bytes.replace(start, stop - start, name);
    start = stop + 1;
  }
}

} // namespace

bool renameInElf(std::string &elf, llvm::StringRef from, llvm::StringRef to) {
  HLOC_CHECK(to.size() <= from.size(), "names in an ELF file cannot grow in place");
  using namespace llvm::ELF;
  auto header = readAt<Elf64_Ehdr>(elf, 0);
  if (!header || !header->checkMagic() || header->getFileClass() != ELFCLASS64 ||
      header->getDataEncoding() != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr))
    return false;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    auto section = readAt<Elf64_Shdr>(elf, header->e_shoff + uint64_t(i) * sizeof(Elf64_Shdr));
    if (!section)
      return false;
    if (section->sh_type != SHT_STRTAB)
      continue;
    if (section->sh_offset > elf.size() || section->sh_size > elf.size() - section->sh_offset)
      return false;
    renameInStrings(elf, section->sh_offset, section->sh_offset + section->sh_size, from, to);
  }
  return true;
}

} // namespace hloc
