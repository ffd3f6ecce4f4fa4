#include "hloc/codegen/CubinCache.h"

#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace hloc {

namespace {

// A file is `hloc-cubin 1`, a newline, 64 hexadecimal digits over what follows, a newline; then a line
// `<number of entries> <size of the cubin>`, a line `<name> <six numbers>` an entry, and the cubin.
constexpr llvm::StringLiteral magic = "hloc-cubin 1\n";
constexpr size_t digestLength = 64;

std::string digest(llvm::StringRef bytes) {
  llvm::BLAKE3 hash;
  hash.update(bytes);
  auto result = hash.final();
  return llvm::toHex(llvm::ArrayRef<uint8_t>(result.data(), result.size()), /*LowerCase=*/true);
}

std::string serialize(const Cubin &cubin) {
  std::string body = fmt::format("{} {}\n", cubin.resources.size(), cubin.bytes.size());
  for (const auto &[name, r] : cubin.resources)
    body += fmt::format("{} {} {} {} {} {} {}\n", name, r.registers, r.spillStoreBytes, r.spillLoadBytes, r.stackBytes,
                        r.sharedBytes, r.barriers);
  body += cubin.bytes;
  return magic.str() + digest(body) + "\n" + body;
}

/// The next field up to `end`, which is consumed.
llvm::StringRef field(llvm::StringRef &text, char end) {
  auto [head, tail] = text.split(end);
  text = tail;
  return head;
}

std::optional<Cubin> deserialize(llvm::StringRef text) {
  if (!text.consume_front(magic) || text.size() <= digestLength || text[digestLength] != '\n')
    return std::nullopt;
  llvm::StringRef sum = text.take_front(digestLength);
  text = text.drop_front(digestLength + 1);
  if (digest(text) != sum)
    return std::nullopt;
  Cubin cubin;
  size_t entries = 0, size = 0;
  if (field(text, ' ').getAsInteger(10, entries) || field(text, '\n').getAsInteger(10, size))
    return std::nullopt;
  for (size_t i = 0; i < entries; ++i) {
    auto &[name, r] = cubin.resources.emplace_back();
    name = field(text, ' ').str();
    for (uint32_t *number : {&r.registers, &r.spillStoreBytes, &r.spillLoadBytes, &r.stackBytes, &r.sharedBytes})
      if (field(text, ' ').getAsInteger(10, *number))
        return std::nullopt;
    if (field(text, '\n').getAsInteger(10, r.barriers))
      return std::nullopt;
  }
  if (text.size() != size)
    return std::nullopt;
  cubin.bytes = text.str();
  cubin.fromCache = true;
  return cubin;
}

} // namespace

const KernelResources *Cubin::find(llvm::StringRef entry) const {
  for (const auto &[name, found] : resources)
    if (name == entry)
      return &found;
  return nullptr;
}

static std::string folderOf(const Environment &environment) {
  auto get = [&](const char *name) { return environment(name).value_or(""); };
  if (!get("HLOC_NO_CACHE").empty())
    return "";
  if (std::string folder = get("HLOC_CACHE_DIR"); !folder.empty())
    return folder;
  if (std::string folder = get("XDG_CACHE_HOME"); !folder.empty())
    return folder + "/hloc";
  if (std::string home = get("HOME"); !home.empty())
    return home + "/.cache/hloc";
  return "";
}

/// `2G`; nothing for what is no such number, or one beyond 64 bits.
static std::optional<uint64_t> bytesOf(llvm::StringRef text) {
  constexpr llvm::StringLiteral units = "KMGT";
  const size_t unit = text.empty() ? llvm::StringRef::npos : units.find(llvm::toUpper(text.back()));
  const unsigned shift = unit == llvm::StringRef::npos ? 0 : 10 * (unsigned(unit) + 1);
  uint64_t number = 0;
  if ((shift ? text.drop_back() : text).getAsInteger(10, number) || number > ~uint64_t(0) >> shift)
    return std::nullopt;
  return number << shift;
}

CacheSettings CacheSettings::of(const Environment &environment, std::string &problem) {
  CacheSettings settings{folderOf(environment)};
  const std::string limit = environment("HLOC_CACHE_LIMIT").value_or("");
  if (limit.empty())
    return settings;
  if (std::optional<uint64_t> bytes = bytesOf(limit))
    settings.limit = *bytes;
  else
    problem = fmt::format("HLOC_CACHE_LIMIT is `{}`, which is no size such as 512M or 2G", limit);
  return settings;
}

std::string CubinCache::key(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::BLAKE3 hash;
  for (llvm::StringRef part : parts) {
    hash.update(fmt::format("{}:", part.size()));
    hash.update(part);
  }
  auto result = hash.final();
  return llvm::toHex(llvm::ArrayRef<uint8_t>(result.data(), result.size()), /*LowerCase=*/true);
}

std::string CubinCache::fileOf(const std::string &key) const {
  return folder + "/cubin/" + key.substr(0, 2) + "/" + key.substr(2);
}

std::optional<Cubin> CubinCache::load(const std::string &key) const {
  std::string error;
  std::optional<std::string> text = folder.empty() ? std::nullopt : readFile(fileOf(key), error);
  return text ? deserialize(*text) : std::nullopt;
}

void CubinCache::store(const std::string &key, const Cubin &cubin) const {
  if (folder.empty())
    return;
  std::string file = fileOf(key), error;
  if (createFolders(file.substr(0, file.rfind('/')), error))
    writeFileAtomically(file, serialize(cubin), error);
  if (llvm::StringRef(key).starts_with("000"))
    prune();
}

namespace {

struct Entry {
  llvm::sys::TimePoint<> time;
  std::string path;
  uint64_t bytes;
};

std::vector<Entry> entriesIn(const std::string &folder) {
  std::vector<Entry> entries;
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(folder + "/cubin", code), end; it != end && !code;
       it.increment(code)) {
    llvm::sys::fs::file_status status;
    if (!llvm::sys::fs::status(it->path(), status) && llvm::sys::fs::is_regular_file(status))
      entries.push_back({status.getLastModificationTime(), it->path(), status.getSize()});
  }
  return entries;
}

std::string shown(llvm::sys::TimePoint<> time) {
  return llvm::formatv("{0:%Y-%m-%d %H:%M:%S}", llvm::sys::toUtcTime(llvm::sys::toTimeT(time))).str();
}

} // namespace

CacheContents CubinCache::contents() const {
  CacheContents contents;
  std::vector<Entry> entries = entriesIn(folder);
  for (const Entry &entry : entries) {
    std::string error;
    const std::optional<std::string> text = readFile(entry.path, error);
    const std::optional<Cubin> stored = text ? deserialize(*text) : std::nullopt;
    // Machine code has resources of its entries.
    const bool isText = stored && stored->resources.empty();
    (isText ? contents.numTexts : contents.numCubins) += 1;
    (isText ? contents.textBytes : contents.cubinBytes) += entry.bytes;
  }
  auto [first, last] = std::minmax_element(entries.begin(), entries.end(),
                                           [](const Entry &a, const Entry &b) { return a.time < b.time; });
  if (!entries.empty()) {
    contents.oldest = shown(first->time);
    contents.newest = shown(last->time);
  }
  return contents;
}

void CubinCache::prune() const {
  std::vector<Entry> entries = entriesIn(folder);
  uint64_t total = 0;
  for (const Entry &entry : entries)
    total += entry.bytes;
  if (total <= limit)
    return;
  llvm::sort(entries,
             [](const Entry &a, const Entry &b) { return a.time != b.time ? a.time < b.time : a.path < b.path; });
  for (const Entry &entry : entries) {
    if (total <= limit / 4 * 3)
      return;
    // Another process may be pruning too; what is gone is gone.
    llvm::sys::fs::remove(entry.path);
    total -= entry.bytes;
  }
}

std::string CubinCache::ptxasVersion(const std::string &path) const {
  llvm::sys::fs::file_status status;
  if (folder.empty() || llvm::sys::fs::status(path, status))
    return hloc::ptxasVersion(path);
  auto time = status.getLastModificationTime().time_since_epoch().count();
  std::string id = key({"ptxas", path, fmt::format("{} {}", status.getSize(), time)});
  std::string file = folder + "/tools/" + id, error;
  if (std::optional<std::string> known = readFile(file, error); known && llvm::StringRef(*known).ends_with("\n"))
    return llvm::StringRef(*known).drop_back().str();
  std::string version = hloc::ptxasVersion(path);
  if (!version.empty() && createFolders(folder + "/tools", error))
    writeFileAtomically(file, version + "\n", error);
  return version;
}

} // namespace hloc
