#pragma once
// Whole files in and out, and temporary folders. Errors come back as text; the caller decides what to report.

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hloc {

/// The bytes of `path`; nothing and `error` set ("No such file or directory") when it cannot be read.
std::optional<std::string> readFile(const std::string &path, std::string &error);
/// The same of standard input, also where there is no /dev/stdin.
std::optional<std::string> readStandardInput(std::string &error);

/// Writes `bytes` to `path`, replacing what was there. False and `error` set on failure.
bool writeFile(const std::string &path, llvm::StringRef bytes, std::string &error);

/// Like writeFile, but a reader sees either the old file or the whole new one, also with several writers at once: the
/// bytes go to a temporary file in the same folder, which is then renamed.
bool writeFileAtomically(const std::string &path, llvm::StringRef bytes, std::string &error);

/// Creates `path` and its parents. Fine if it exists.
bool createFolders(const std::string &path, std::string &error);

/// A fresh folder under TMPDIR (or /tmp), removed with its contents when this goes out of scope.
class TemporaryFolder {
public:
  static std::optional<TemporaryFolder> create(llvm::StringRef prefix, std::string &error);
  TemporaryFolder(TemporaryFolder &&other) noexcept : folder(std::move(other.folder)) { other.folder.clear(); }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  const std::string &path() const { return folder; }
  std::string file(llvm::StringRef name) const { return folder + "/" + name.str(); }

private:
  explicit TemporaryFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

} // namespace hloc
