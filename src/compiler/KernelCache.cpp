#include "compiler/KernelCache.h"

#include "hloc/codegen/Toolchain.h"

#include "hloc/support/BuildId.h"

#include "fmt/format.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"

namespace hloc {

namespace {

/// Size and time of a file; empty if there is none.
std::string identityOf(const std::string &path) {
  llvm::sys::fs::file_status status;
  if (path.empty() || llvm::sys::fs::status(path, status) || !llvm::sys::fs::is_regular_file(status))
    return "";
  return fmt::format("{} {}", status.getSize(), status.getLastModificationTime().time_since_epoch().count());
}

} // namespace

KernelCache::KernelCache(const CompilerOptions &options, const Toolchain &toolchain, const TargetInfo &target)
    : files(options.cache) {
  const std::string program = buildId(); // which other hosts share
  if (options.cache.folder.empty() || options.lineInfo || !options.disabled.empty() || program.empty())
    return;
  const std::string &libdevice = toolchain.find(Tool::Libdevice).path;
  circumstances = fmt::format("program {}, LLVM {}, target {}, level {}, libdevice {} {}", program, LLVM_VERSION_STRING,
                              target.name, options.optimizationLevel, libdevice, identityOf(libdevice));
}

std::string KernelCache::keyOf(llvm::StringRef emitted) const {
  if (circumstances.empty())
    return "";
  return CubinCache::key({"ptx", circumstances, emitted});
}

std::optional<std::string> KernelCache::load(const std::string &key) const {
  if (key.empty())
    return std::nullopt;
  std::optional<Cubin> found = files.load(key);
  return found ? std::optional(std::move(found->bytes)) : std::nullopt;
}

void KernelCache::store(const std::string &key, const std::string &ptx) const {
  if (key.empty())
    return;
  Cubin file;
  file.bytes = ptx;
  files.store(key, file);
}

} // namespace hloc
