#include "hloc/support/BuildId.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdint>
#include <link.h>

namespace hloc {

namespace {

/// A note of the linker's: lengths of name and content, kind, both of them padded to four bytes.
std::string idInNotes(const char *notes, size_t size) {
  constexpr size_t padding = 3;
  while (size >= sizeof(ElfW(Nhdr))) {
    const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes);
    const size_t name = sizeof(ElfW(Nhdr)), content = name + ((note->n_namesz + padding) & ~padding);
    const size_t end = content + ((note->n_descsz + padding) & ~padding);
    if (end > size)
      return "";
    if (note->n_type == NT_GNU_BUILD_ID && llvm::StringRef(notes + name, note->n_namesz) == llvm::StringRef("GNU\0", 4))
      return llvm::toHex(llvm::StringRef(notes + content, note->n_descsz), /*LowerCase=*/true);
    notes += end;
    size -= end;
  }
  return "";
}

/// Stops at the part of the process that has this function in it.
int findThisPart(dl_phdr_info *part, size_t, void *data) {
  const auto here = reinterpret_cast<uintptr_t>(&findThisPart);
  bool isThis = false;
  for (int i = 0; i < part->dlpi_phnum; ++i) {
    const uintptr_t begin = part->dlpi_addr + part->dlpi_phdr[i].p_vaddr;
    isThis |= part->dlpi_phdr[i].p_type == PT_LOAD && here >= begin && here - begin < part->dlpi_phdr[i].p_memsz;
  }
  for (int i = 0; isThis && i < part->dlpi_phnum; ++i)
    if (const ElfW(Phdr) &segment = part->dlpi_phdr[i]; segment.p_type == PT_NOTE)
      if (std::string id =
              idInNotes(reinterpret_cast<const char *>(part->dlpi_addr + segment.p_vaddr), segment.p_memsz);
          !id.empty())
        *static_cast<std::string *>(data) = std::move(id);
  return isThis;
}

} // namespace

std::string buildId() {
  std::string id;
  dl_iterate_phdr(findThisPart, &id);
  return id;
}

} // namespace hloc
