#include "hloc/codegen/Ptx.h"

#include "hloc/support/Diagnostics.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace hloc {

namespace {

bool isIdentifierCharacter(char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; }

/// The first line that starts with `directive`, without it: `8.0` for `.version`. Empty if there is none.
llvm::StringRef directiveValue(llvm::StringRef ptx, llvm::StringRef directive) {
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    line = line.trim();
    if (line.consume_front(directive) && !line.empty() && (line.front() == ' ' || line.front() == '\t'))
      return line.trim();
    ptx = rest;
  }
  return "";
}

/// Everything after the `.address_size` line, without `.file` directives, which are collected in `files`.
std::string bodyOf(llvm::StringRef ptx, std::vector<std::string> &files) {
  llvm::StringRef rest = ptx.substr(ptx.find(".address_size")).split('\n').second;
  std::string body;
  while (!rest.empty()) {
    auto [line, after] = rest.split('\n');
    rest = after;
    if (!line.trim().starts_with(".file")) {
      body += line;
      body += '\n';
    } else if (std::string file = line.trim().str(); !llvm::is_contained(files, file)) {
      files.push_back(file);
    }
  }
  return llvm::StringRef(body).trim('\n').str();
}

unsigned parseVersion(llvm::StringRef text) {
  auto [major, minor] = text.split('.');
  unsigned high = 0, low = 0;
  if (major.getAsInteger(10, high) || minor.getAsInteger(10, low))
    return 0;
  return high * 10 + low;
}

} // namespace

std::vector<std::string> ptxEntries(llvm::StringRef ptx) {
  std::vector<std::string> entries;
  for (size_t at = ptx.find(".entry"); at != llvm::StringRef::npos; at = ptx.find(".entry", at + 1)) {
    llvm::StringRef name = ptx.substr(at + 6);
    if (name.empty() || !llvm::isSpace(name.front()))
      continue;
    name = name.ltrim().take_while(isIdentifierCharacter);
    if (!name.empty())
      entries.push_back(name.str());
  }
  return entries;
}

unsigned ptxVersionOf(llvm::StringRef ptx) { return parseVersion(directiveValue(ptx, ".version")); }

llvm::StringRef ptxTargetOf(llvm::StringRef ptx) {
  return directiveValue(ptx, ".target").take_until([](char c) { return c == ',' || c == ' ' || c == '/'; });
}

llvm::FailureOr<std::string> mergePtx(llvm::ArrayRef<std::string> parts, DiagnosticEngine &diagnostics) {
  if (parts.size() == 1)
    return parts.front();
  auto fail = [&](std::string message) {
    diagnostics.report(DiagnosticKind::Internal, std::move(message));
    return llvm::failure();
  };
  if (parts.empty())
    return fail("no PTX to join");
  llvm::StringRef target = directiveValue(parts.front(), ".target");
  llvm::StringRef addressSize = directiveValue(parts.front(), ".address_size");
  unsigned version = 0;
  llvm::StringSet<> entries;
  for (const std::string &part : parts) {
    unsigned own = ptxVersionOf(part);
    if (own == 0 || directiveValue(part, ".target") != target || directiveValue(part, ".address_size") != addressSize)
      return fail("PTX parts with different or missing `.version`, `.target` or `.address_size`");
    version = std::max(version, own);
    for (const std::string &entry : ptxEntries(part))
      if (!entries.insert(entry).second)
        return fail(fmt::format("two PTX kernels named `{}`", entry));
  }
  std::string merged = fmt::format(".version {}.{}\n.target {}\n.address_size {}\n", version / 10, version % 10,
                                   target.str(), addressSize.str());
  std::vector<std::string> files;
  std::string bodies;
  for (const std::string &part : parts)
    bodies += "\n" + bodyOf(part, files) + "\n";
  // `.loc 1 4 7` refers to a number, and every part numbers its files from one.
  if (files.size() > 1)
    return fail("PTX parts with line information of different files");
  for (const std::string &file : files)
    merged += file + "\n";
  return merged + bodies;
}

namespace {

/// Whether the occurrence of the entry's name between `before` and `after` (both within one line of code) means the
/// entry. Entries may be called like instructions (`add`, `ret`), so an identifier alone proves nothing.
bool meansEntry(llvm::StringRef before, llvm::StringRef after) {
  return after.starts_with("_param_") || after.starts_with("__") || before.rtrim().ends_with(".entry");
}

/// The same in a comment: `-- Begin function add`, `@add`, `.globl add`.
bool meansEntryInComment(llvm::StringRef before) {
  return before.ends_with("@") || before.rtrim().ends_with(" function") || before.rtrim().ends_with(".globl");
}

void renameInLine(llvm::StringRef line, llvm::StringRef name, llvm::StringRef replacement, std::string &result) {
  size_t comment = std::min(line.find("//"), line.size());
  std::optional<size_t> done; // the end of what was replaced last
  for (size_t at = line.find(name); at != llvm::StringRef::npos; at = line.find(name, at + name.size())) {
    llvm::StringRef before = line.take_front(at), after = line.drop_front(at + name.size());
    // Shared memory is called `add__add__shared_0`.
    bool twice = done && line.slice(*done, at) == "__";
    bool begins = before.empty() || !isIdentifierCharacter(before.back()) || twice;
    bool whole = after.empty() || !isIdentifierCharacter(after.front());
    if (!begins || !(meansEntry(before, after) || (whole && at >= comment && meansEntryInComment(before))))
      continue;
    result += line.slice(done.value_or(0), at);
    result += replacement;
    done = at + name.size();
  }
  result += line.drop_front(done.value_or(0));
}

} // namespace

std::string renamePtxEntry(llvm::StringRef ptx, llvm::StringRef name, llvm::StringRef replacement) {
  if (name.empty())
    return ptx.str();
  std::string result;
  result.reserve(ptx.size());
  while (!ptx.empty()) {
    size_t end = ptx.find('\n');
    size_t length = end == llvm::StringRef::npos ? ptx.size() : end + 1;
    renameInLine(ptx.take_front(length), name, replacement, result);
    ptx = ptx.drop_front(length);
  }
  return result;
}

} // namespace hloc
