#include "hloc/support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace hloc {

namespace {

std::string errnoText() { return std::strerror(errno); }

/// Writes all of `bytes` and closes `fd` whatever happens.
bool writeAndClose(int fd, llvm::StringRef bytes, std::string &error) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      error = errnoText();
      ::close(fd);
      return false;
    }
    bytes = bytes.drop_front(static_cast<size_t>(written));
  }
  // Full disks and quotas may only show when the file is closed.
  if (::close(fd) != 0) {
    error = errnoText();
    return false;
  }
  return true;
}

} // namespace

std::optional<std::string> readFile(const std::string &path, std::string &error) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = buffer.getError().message();
    return std::nullopt;
  }
  return (*buffer)->getBuffer().str();
}

std::optional<std::string> readStandardInput(std::string &error) {
  ::lseek(STDIN_FILENO, 0, SEEK_SET); // where it is a file, all of it; elsewhere this does nothing
  auto buffer = llvm::MemoryBuffer::getSTDIN();
  if (!buffer) {
    error = buffer.getError().message();
    return std::nullopt;
  }
  return (*buffer)->getBuffer().str();
}

bool writeFile(const std::string &path, llvm::StringRef bytes, std::string &error) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    error = errnoText();
    return false;
  }
  return writeAndClose(fd, bytes, error);
}

bool writeFileAtomically(const std::string &path, llvm::StringRef bytes, std::string &error) {
  llvm::SmallString<256> temporary;
  int fd = -1;
  if (std::error_code code = llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%.tmp", fd, temporary)) {
    error = code.message();
    return false;
  }
  std::string name(temporary.str());
  if (writeAndClose(fd, bytes, error)) {
    if (::rename(name.c_str(), path.c_str()) == 0)
      return true;
    error = errnoText();
  }
  ::unlink(name.c_str());
  return false;
}

bool createFolders(const std::string &path, std::string &error) {
  if (std::error_code code = llvm::sys::fs::create_directories(path)) {
    error = code.message();
    return false;
  }
  return true;
}

std::optional<TemporaryFolder> TemporaryFolder::create(llvm::StringRef prefix, std::string &error) {
  llvm::SmallString<256> path;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory(prefix, path)) {
    error = code.message();
    return std::nullopt;
  }
  return TemporaryFolder(std::string(path.str()));
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

} // namespace hloc
