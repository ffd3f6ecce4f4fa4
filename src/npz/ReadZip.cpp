#include "npz/Zip.h"

#include "llvm/Support/Endian.h"

#include <zlib.h>

#include <algorithm>

namespace hloc::npz {

namespace {

using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

/// Deflate cannot expand more than this; a directory that claims more lies.
constexpr uint64_t maxExpansion = 1032;

struct Entry {
  llvm::StringRef name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t compressedSize = 0, size = 0, headerOffset = 0;
};

class Reader {
public:
  Reader(llvm::StringRef file, std::string &error, uint64_t maxBytes) : file(file), error(error), room(maxBytes) {}

  std::optional<std::vector<ZipMember>> read() {
    uint64_t offset = 0, count = 0;
    if (!findDirectory(offset, count))
      return std::nullopt;
    std::vector<ZipMember> members;
    for (uint64_t i = 0; i < count; ++i) {
      Entry entry;
      std::string contents;
      if (!readEntry(offset, entry) || !readContents(entry, contents))
        return std::nullopt;
      members.push_back({entry.name.str(), std::move(contents)});
    }
    return members;
  }

private:
  bool fail(const std::string &what) {
    error = what;
    return false;
  }
  bool has(uint64_t offset, uint64_t bytes) const { return offset <= file.size() && bytes <= file.size() - offset; }
  bool signature(uint64_t offset, uint64_t bytes, llvm::StringRef mark) const {
    return has(offset, bytes) && file.substr(offset, 4) == mark;
  }
  const char *at(uint64_t offset) const { return file.data() + offset; }

  /// The directory's place is written at the end of the file, before a comment of at most 64 KiB.
  bool findDirectory(uint64_t &offset, uint64_t &count) {
    size_t end = file.rfind("PK\5\6");
    if (end == llvm::StringRef::npos || !has(end, 22) || file.size() - end > 22 + 65535)
      return fail("not a zip archive");
    count = read16le(at(end + 10));
    offset = read32le(at(end + 16));
    if (end >= 20 && signature(end - 20, 20, "PK\6\7")) {
      uint64_t end64 = read64le(at(end - 20 + 8));
      if (!signature(end64, 56, "PK\6\6"))
        return fail("the zip64 directory is damaged");
      count = read64le(at(end64 + 32));
      offset = read64le(at(end64 + 48));
    }
    return count <= file.size() / 46 || fail("the zip directory is damaged");
  }

  bool readEntry(uint64_t &offset, Entry &entry) {
    if (!signature(offset, 46, "PK\1\2"))
      return fail("the zip directory is damaged");
    entry.flags = read16le(at(offset + 8));
    entry.method = read16le(at(offset + 10));
    entry.crc = read32le(at(offset + 16));
    entry.compressedSize = read32le(at(offset + 20));
    entry.size = read32le(at(offset + 24));
    entry.headerOffset = read32le(at(offset + 42));
    uint64_t nameSize = read16le(at(offset + 28)), extraSize = read16le(at(offset + 30));
    uint64_t commentSize = read16le(at(offset + 32));
    if (!has(offset + 46, nameSize + extraSize + commentSize))
      return fail("the zip directory is damaged");
    entry.name = file.substr(offset + 46, nameSize);
    readZip64Extra(file.substr(offset + 46 + nameSize, extraSize), entry);
    offset += 46 + nameSize + extraSize + commentSize;
    return true;
  }

  /// Fields that are all ones in the entry follow here, in this order, 8 bytes each.
  static void readZip64Extra(llvm::StringRef extra, Entry &entry) {
    while (extra.size() >= 4) {
      size_t size = std::min<size_t>(read16le(extra.data() + 2), extra.size() - 4);
      llvm::StringRef field = extra.substr(4, size);
      if (read16le(extra.data()) == 1)
        for (uint64_t *value : {&entry.size, &entry.compressedSize, &entry.headerOffset})
          if (*value == 0xFFFFFFFF && field.size() >= 8) {
            *value = read64le(field.data());
            field = field.drop_front(8);
          }
      extra = extra.drop_front(4 + size);
    }
  }

  bool readContents(const Entry &entry, std::string &contents) {
    if (entry.flags & 1)
      return fail("encrypted zip members are not supported");
    if (!signature(entry.headerOffset, 30, "PK\3\4"))
      return fail("a zip member's header is damaged");
    uint64_t start =
        entry.headerOffset + 30 + read16le(at(entry.headerOffset + 26)) + read16le(at(entry.headerOffset + 28));
    if (!has(start, entry.compressedSize))
      return fail("a zip member is cut off");
    uint64_t most = entry.method == 0 ? entry.compressedSize : (entry.compressedSize + 1) * maxExpansion;
    if (entry.size > most || entry.size > room)
      return fail("a zip member claims an impossible size");
    room -= entry.size;
    llvm::StringRef data = file.substr(start, entry.compressedSize);
    if (entry.method == 0 && entry.size == entry.compressedSize)
      contents = data.str();
    else if (entry.method != 8 || !inflateAll(data, entry.size, contents))
      return fail("a zip member cannot be decompressed");
    uint32_t crc = uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(contents.data()), contents.size()));
    return crc == entry.crc || fail("a zip member's checksum is wrong");
  }

  static bool inflateAll(llvm::StringRef data, uint64_t size, std::string &contents) {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      return false;
    contents.resize(size);
    uint64_t in = 0, out = 0;
    int status = Z_OK;
    while (status == Z_OK) {
      // zlib counts in 32 bits.
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data() + in));
      stream.avail_in = uInt(std::min<uint64_t>(data.size() - in, 1u << 30));
      stream.next_out = reinterpret_cast<Bytef *>(contents.data() + out);
      stream.avail_out = uInt(std::min<uint64_t>(size - out, 1u << 30));
      uInt inBefore = stream.avail_in, outBefore = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      in += inBefore - stream.avail_in;
      out += outBefore - stream.avail_out;
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END && out == size;
  }

  llvm::StringRef file;
  std::string &error;
  uint64_t room; ///< bytes the remaining members may take
};

} // namespace

std::optional<std::vector<ZipMember>> readZip(llvm::StringRef file, std::string &error, uint64_t maxBytes) {
  return Reader(file, error, maxBytes).read();
}

} // namespace hloc::npz
