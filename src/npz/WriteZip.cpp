#include "npz/Zip.h"

#include <zlib.h>

#include <algorithm>

namespace hloc::npz {

namespace {

void put(std::string &out, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    out += char(value >> (8 * i));
}

constexpr uint64_t escape = 0xFFFFFFFF; ///< "see the zip64 fields"
uint64_t narrow(uint64_t value) { return std::min(value, escape); }

/// What local header and directory entry share: version to extraction sizes, name length.
void putCommon(std::string &out, const ZipMember &member, uint32_t crc, size_t extraSize) {
  bool large = member.contents.size() >= escape;
  put(out, large ? 45 : 20, 2); // version needed
  put(out, 0, 2);               // flags
  put(out, 0, 2);               // stored
  put(out, 0x00210000, 4);      // 1980-01-01, the first date zip knows
  put(out, crc, 4);
  put(out, narrow(member.contents.size()), 4);
  put(out, narrow(member.contents.size()), 4);
  put(out, member.name.size(), 2);
  put(out, extraSize, 2);
}

std::string localHeader(const ZipMember &member, uint32_t crc) {
  std::string extra;
  if (member.contents.size() >= escape) {
    put(extra, 1, 2);
    put(extra, 16, 2);
    put(extra, member.contents.size(), 8);
    put(extra, member.contents.size(), 8);
  }
  std::string out = "PK\3\4";
  putCommon(out, member, crc, extra.size());
  return out + member.name + extra;
}

std::string directoryEntry(const ZipMember &member, uint32_t crc, uint64_t offset) {
  std::string extra, fields;
  if (member.contents.size() >= escape) {
    put(fields, member.contents.size(), 8);
    put(fields, member.contents.size(), 8);
  }
  if (offset >= escape)
    put(fields, offset, 8);
  if (!fields.empty()) {
    put(extra, 1, 2);
    put(extra, fields.size(), 2);
    extra += fields;
  }
  std::string out = "PK\1\2";
  put(out, 45, 2); // version made by
  putCommon(out, member, crc, extra.size());
  put(out, 0, 2); // comment
  put(out, 0, 2); // disk
  put(out, 0, 2); // internal attributes
  put(out, 0, 4); // external attributes
  put(out, narrow(offset), 4);
  return out + member.name + extra;
}

void putEnd(std::string &out, uint64_t count, uint64_t directoryStart, uint64_t directorySize) {
  if (directoryStart >= escape || count >= 0xFFFF) {
    uint64_t end64 = out.size();
    out += "PK\6\6";
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8); // disks
    put(out, count, 8);
    put(out, count, 8);
    put(out, directorySize, 8);
    put(out, directoryStart, 8);
    out += "PK\6\7";
    put(out, 0, 4);
    put(out, end64, 8);
    put(out, 1, 4);
  }
  out += "PK\5\6";
  put(out, 0, 4); // disks
  put(out, std::min<uint64_t>(count, 0xFFFF), 2);
  put(out, std::min<uint64_t>(count, 0xFFFF), 2);
  put(out, narrow(directorySize), 4);
  put(out, narrow(directoryStart), 4);
  put(out, 0, 2); // comment
}

} // namespace

std::string writeZip(llvm::ArrayRef<ZipMember> members) {
  std::string out, directory;
  for (const ZipMember &member : members) {
    auto crc = uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(member.contents.data()), member.contents.size()));
    directory += directoryEntry(member, crc, out.size());
    out += localHeader(member, crc);
    out += member.contents;
  }
  uint64_t directoryStart = out.size();
  out += directory;
  putEnd(out, members.size(), directoryStart, directory.size());
  return out;
}

} // namespace hloc::npz
