#include "NvJitLink.h"

#include "hloc/support/DynamicLibrary.h"

#include "fmt/format.h"

#include <map>
#include <memory>
#include <mutex>

namespace hloc {

namespace {

std::string readLog(void *handle, int (*size)(void *, size_t *), int (*text)(void *, char *)) {
  size_t length = 0;
  if (size(handle, &length) != 0 || length == 0)
    return "";
  std::string log(length, '\0');
  if (text(handle, log.data()) != 0)
    return "";
  return log.substr(0, log.find('\0')); // the size counts the zero byte
}

} // namespace

const NvJitLink *NvJitLink::load(const std::string &path, std::string &error) {
  struct Loaded {
    std::unique_ptr<NvJitLink> library;
    std::string error;
  };
  static std::mutex mutex;
  static std::map<std::string, Loaded> loaded;
  std::lock_guard lock(mutex);
  auto [it, isNew] = loaded.try_emplace(path);
  Loaded &entry = it->second;
  if (isNew) {
    DynamicLibrary file({path});
    std::unique_ptr<NvJitLink> library(new NvJitLink());
    entry.error = file.error();
    auto find = [&](auto &function, const char *name) {
      function = file.function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
      if (!function && entry.error.empty())
        entry.error = fmt::format("{} has no function {}", path, name);
    };
    find(library->create, "nvJitLinkCreate");
    find(library->destroy, "nvJitLinkDestroy");
    find(library->addData, "nvJitLinkAddData");
    find(library->complete, "nvJitLinkComplete");
    find(library->cubinSize, "nvJitLinkGetLinkedCubinSize");
    find(library->cubinBytes, "nvJitLinkGetLinkedCubin");
    find(library->errorLogSize, "nvJitLinkGetErrorLogSize");
    find(library->errorLog, "nvJitLinkGetErrorLog");
    find(library->infoLogSize, "nvJitLinkGetInfoLogSize");
    find(library->infoLog, "nvJitLinkGetInfoLog");
    find(library->versionOf, "nvJitLinkVersion");
    if (entry.error.empty())
      entry.library = std::move(library);
  }
  error = entry.error;
  return entry.library.get();
}

ProcessResult NvJitLink::run(llvm::ArrayRef<NvJitLinkInput> inputs, llvm::ArrayRef<std::string> options,
                             std::string &cubin) const {
  ProcessResult result;
  result.started = true;
  std::vector<const char *> arguments;
  for (const std::string &option : options)
    arguments.push_back(option.c_str());
  Handle handle = nullptr;
  result.exitCode = create(&handle, uint32_t(arguments.size()), arguments.data());
  if (result.exitCode != 0 || !handle) {
    result.exitCode = result.exitCode ? result.exitCode : 1;
    result.errors = fmt::format("ptxas fatal   : nvJitLink {} takes no {}", version(), fmt::join(options, " "));
    return result;
  }
  for (const NvJitLinkInput &input : inputs) {
    // PTX is a string with its zero byte.
    std::string text = input.bytes.str();
    size_t size = text.size() + (input.kind == NvJitLinkInput::Ptx ? 1 : 0);
    if (result.exitCode == 0)
      result.exitCode = addData(handle, input.kind, text.c_str(), size, "kernel");
  }
  if (result.exitCode == 0)
    result.exitCode = complete(handle);
  result.output = readLog(handle, infoLogSize, infoLog);
  result.errors = readLog(handle, errorLogSize, errorLog);
  size_t size = 0;
  if (result.exitCode == 0)
    result.exitCode = cubinSize(handle, &size);
  cubin.assign(size, '\0');
  if (result.exitCode == 0)
    result.exitCode = cubinBytes(handle, cubin.data());
  destroy(&handle);
  return result;
}

std::string NvJitLink::version() const {
  unsigned major = 0, minor = 0;
  return versionOf(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : "";
}

} // namespace hloc
