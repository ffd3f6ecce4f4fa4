#include "hloc/codegen/Toolchain.h"

#include "hloc/support/Diagnostics.h"
#include "hloc/support/DynamicLibrary.h"
#include "hloc/support/Subprocess.h"

#include "fmt/format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unistd.h>

namespace hloc {

namespace {

/// Tools that are files of a toolkit, not programs.
bool isFile(Tool tool) { return tool == Tool::Libdevice || tool == Tool::NvJitLink; }

/// The newest `libnvJitLink.so` with a version in `folder`, or the one without.
std::string libraryIn(const std::string &folder) {
  std::string best;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::path::filename(it->path()).starts_with("libnvJitLink.so") && it->path() > best)
      best = it->path();
  return best.empty() ? folder + "/libnvJitLink.so" : best;
}

std::string thisExecutable() {
  char buffer[4096];
  ssize_t length = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  return length > 0 ? std::string(buffer, static_cast<size_t>(length)) : "";
}

std::string join(llvm::StringRef folder, llvm::StringRef rest) {
  return folder.ends_with("/") ? (folder + rest).str() : (folder + "/" + rest).str();
}

/// Where `tool` is in a folder laid out like a CUDA toolkit.
std::vector<std::string> placesIn(const std::string &folder, Tool tool) {
  if (tool == Tool::Libdevice)
    return {join(folder, "nvvm/libdevice/libdevice.10.bc")};
  if (tool == Tool::NvJitLink)
    return {libraryIn(join(folder, "lib64")), libraryIn(join(folder, "lib"))};
  return {join(folder, "bin/" + toolName(tool).str())};
}

/// The folders in `parent` whose names start with `prefix`, by descending name: `cuda-13.0` before `cuda-12.8`.
std::vector<std::string> subfolders(const std::string &parent, llvm::StringRef prefix) {
  std::vector<std::string> found;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(parent, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::path::filename(it->path()).starts_with(prefix) && llvm::sys::fs::is_directory(it->path()))
      found.push_back(it->path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<std::string> defaultUsualFolders() {
  std::vector<std::string> folders = {"/usr/local/cuda"};
  for (const std::string &folder : subfolders("/usr/local", "cuda-"))
    folders.push_back(folder);
  folders.insert(folders.end(), {"/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"});
  return folders;
}

/// A folder laid out like a CUDA toolkit, and how we came to look at it. Empty: its variable is not set.
struct Root {
  std::string source;
  std::string folder;
};

/// Looks for one tool, writing down every step.
class Search {
public:
  Search(Tool tool, ToolSearch &result) : tool(tool), result(result) {}

  bool done() const { return result.found(); }
  void skip(const std::string &source, const std::string &why) { result.tried.push_back({source, why}); }

  bool tryFile(const std::string &source, const std::string &path) {
    result.tried.push_back({source, path});
    bool usable = isFile(tool) ? llvm::sys::fs::is_regular_file(path) : llvm::sys::fs::can_execute(path);
    if (usable) {
      result.path = path;
      result.source = source;
    }
    return usable;
  }
  bool tryRoot(const Root &root) {
    if (root.folder.empty()) {
      skip(root.source, "not set");
      return false;
    }
    for (const std::string &path : placesIn(root.folder, tool))
      if (tryFile(root.source, path))
        return true;
    return false;
  }

private:
  Tool tool;
  ToolSearch &result;
};

/// All places besides the options, in the order of Toolchain::discover.
class Places {
public:
  explicit Places(const ToolchainOptions &options)
      : options(options),
        environment(options.environment ? options.environment : [](const std::string &) { return std::nullopt; }),
        executable(options.executable.empty() ? thisExecutable() : options.executable) {}

  void run(Search &search, Tool tool) const {
    for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (auto folder = environment(variable))
        search.tryRoot({variable, *folder});
      else
        search.skip(variable, "not set");
      if (search.done())
        return;
    }
    searchPath(search, tool);
    for (const Root &root : roots()) {
      if (search.done())
        return;
      search.tryRoot(root);
    }
  }

  /// Folders laid out like a toolkit, those of the environment first.
  std::vector<std::string> toolkits() const {
    std::vector<std::string> folders;
    for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
      folders.push_back(environment(variable).value_or(""));
    for (const Root &root : roots())
      folders.push_back(root.folder);
    return folders;
  }

private:
  void searchPath(Search &search, Tool tool) const {
    llvm::SmallVector<llvm::StringRef> folders;
    std::string path = environment("PATH").value_or("");
    llvm::StringRef(path).split(folders, ':', -1, /*KeepEmpty=*/false);
    std::string program = isFile(tool) ? "ptxas" : toolName(tool).str();
    for (llvm::StringRef folder : folders) {
      std::string file = join(folder, program);
      if (!llvm::sys::fs::can_execute(file))
        continue;
      if (!isFile(tool)) {
        search.tryFile("PATH", file);
        return;
      }
      llvm::SmallString<256> real;
      if (!llvm::sys::fs::real_path(file, real))
        search.tryRoot({"PATH", llvm::sys::path::parent_path(llvm::sys::path::parent_path(real)).str()});
      return;
    }
    search.skip("PATH", fmt::format("no `{}` in its {} folders", program, folders.size()));
  }

  std::vector<Root> roots() const {
    std::vector<Root> result;
    for (const std::string &folder : options.usualFolders ? *options.usualFolders : defaultUsualFolders())
      result.push_back({"usual folder", folder});
    for (const std::string &folder : unpackedFolders())
      addPackages(result, "scripts/setup", folder);
    if (auto environmentFolder = environment("VIRTUAL_ENV"))
      for (const std::string &python : subfolders(join(*environmentFolder, "lib"), "python"))
        addPackages(result, "VIRTUAL_ENV", join(python, "site-packages/nvidia"));
    else
      result.push_back({"VIRTUAL_ENV", ""});
    // <environment>/bin/hloc, be the environment active or not.
    const llvm::StringRef prefix = llvm::sys::path::parent_path(llvm::sys::path::parent_path(executable));
    for (const std::string &python : subfolders(join(prefix, "lib"), "python"))
      addPackages(result, "this program's Python environment", join(python, "site-packages/nvidia"));
    return result;
  }

  /// Where scripts/setup unpacks wheels: in the source tree hloc was built in, else in the user's data folder.
  std::vector<std::string> unpackedFolders() const {
    std::vector<std::string> folders;
    // <repository>/build/<preset>/bin/hloc, or <prefix>/bin/hloc with <prefix>/share/hloc/nvidia.
    std::string folder = llvm::sys::path::parent_path(executable).str();
    for (int up = 0; up < 4 && folder.size() > 1; ++up) {
      folder = llvm::sys::path::parent_path(folder).str();
      for (const char *below : {".deps/nvidia", "share/hloc/nvidia"})
        if (std::string candidate = join(folder, below); llvm::sys::fs::is_directory(candidate))
          folders.push_back(candidate);
    }
    if (auto data = environment("XDG_DATA_HOME"))
      folders.push_back(join(*data, "hloc/nvidia"));
    else if (auto home = environment("HOME"))
      folders.push_back(join(*home, ".local/share/hloc/nvidia"));
    return folders;
  }

  /// NVIDIA's Python packages share a folder `nvidia` with a toolkit-like folder each: `cu13`, or `cuda_nvcc` earlier.
  static void addPackages(std::vector<Root> &roots, const std::string &source, const std::string &folder) {
    std::vector<std::string> packages = subfolders(folder, "cu");
    for (const std::string &package : packages)
      roots.push_back({source, package});
    if (packages.empty())
      roots.push_back({source, folder});
  }

  const ToolchainOptions &options;
  Environment environment;
  std::string executable;
};

} // namespace

llvm::StringRef toolName(Tool tool) {
  switch (tool) {
  case Tool::Ptxas:
    return "ptxas";
  case Tool::NvJitLink:
    return "nvjitlink";
  case Tool::Fatbinary:
    return "fatbinary";
  case Tool::Nvdisasm:
    return "nvdisasm";
  case Tool::Libdevice:
    return "libdevice";
  }
  return "";
}

llvm::StringRef withoutTool(Tool tool) {
  switch (tool) {
  case Tool::Ptxas:
    return "without it there are no cubins, register counts or spill reports; PTX, which the CUDA driver also takes, "
           "and the emulator work";
  case Tool::NvJitLink:
    return "without it ptxas assembles, in a process of its own and all kernels of a module as one file";
  case Tool::Fatbinary:
    return "without it there is no `--emit=fatbin`; PTX and one cubin per target work";
  case Tool::Nvdisasm:
    return "without it machine code cannot be listed; everything else works";
  case Tool::Libdevice:
    return "without it kernels that call its math functions are refused; all other kernels compile";
  }
  return "";
}

Toolchain Toolchain::discover(const ToolchainOptions &options) {
  Toolchain toolchain;
  Places places(options);
  for (Tool tool : allTools) {
    Search search(tool, toolchain.searches[static_cast<size_t>(tool)]);
    if (tool == Tool::NvJitLink && !DynamicLibrary::canOpen()) {
      search.skip("this program", "linked statically, it opens no libraries");
      continue;
    }
    std::string file = tool == Tool::Ptxas ? options.ptxas : tool == Tool::Libdevice ? options.libdevice : "";
    if (!file.empty()) {
      search.tryFile("--" + toolName(tool).str(), file);
      continue;
    }
    if (!options.cudaPath.empty() && search.tryRoot({"--cuda-path", options.cudaPath}))
      continue;
    places.run(search, tool);
  }
  return toolchain;
}

std::vector<std::string> Toolchain::libraryFolders(const ToolchainOptions &options) {
  std::vector<std::string> toolkits = Places(options).toolkits(), folders;
  toolkits.insert(toolkits.begin(), options.cudaPath);
  for (const std::string &toolkit : toolkits)
    for (const char *below : {"lib64", "lib"})
      if (std::string folder = toolkit.empty() ? "" : join(toolkit, below); llvm::sys::fs::is_directory(folder))
        folders.push_back(std::move(folder));
  return folders;
}

void Toolchain::reportMissing(Tool tool, llvm::StringRef neededFor, DiagnosticEngine &diagnostics) const {
  Diagnostic &report = diagnostics.report(
      DiagnosticKind::MissingTool, fmt::format("{} not found, needed for {}", toolName(tool).str(), neededFor.str()));
  for (const auto &[source, place] : find(tool).tried)
    report.note(fmt::format("looked at {}: {}", source, place));
  report.note(withoutTool(tool).str());
  report.note(fmt::format(
      "`pip install hloc[cuda]` or, in a clone, `scripts/setup` fetches it; {} names an installed one",
      tool == Tool::Ptxas || tool == Tool::Libdevice ? "`--" + toolName(tool).str() + "=FILE`" : "`--cuda-path=DIR`"));
}

std::string Toolchain::describe() const {
  std::string text;
  for (Tool tool : allTools) {
    const ToolSearch &search = find(tool);
    if (search.found()) {
      std::string version = tool == Tool::Ptxas ? ptxasVersion(search.path) : "";
      bool isWrong = tool == Tool::Ptxas && version.empty();
      text += fmt::format("{}: {} (from {}{}){}\n", toolName(tool).str(), search.path, search.source,
                          version.empty() ? "" : ", version " + version,
                          isWrong ? ", which is none: it does not answer --version as ptxas does" : "");
      continue;
    }
    text += fmt::format("{}: not found\n", toolName(tool).str());
    for (const auto &[source, place] : search.tried)
      text += fmt::format("  looked at {}: {}\n", source, place);
    text += fmt::format("  {}\n", withoutTool(tool).str());
  }
  return text;
}

static std::string askForVersion(const std::string &ptxas) {
  ProcessResult result = runProcess({ptxas, "--version"}, std::chrono::seconds(10));
  if (!result.succeeded())
    return "";
  // "Cuda compilation tools, release 13.0, V13.0.88"
  llvm::StringRef rest(result.output);
  size_t at = rest.rfind(", V");
  if (at == llvm::StringRef::npos)
    return "";
  return rest.substr(at + 3).take_while([](char c) { return c == '.' || (c >= '0' && c <= '9'); }).str();
}

std::string ptxasVersion(const std::string &ptxas) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known; // by the file as it was asked
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(ptxas, status))
    return askForVersion(ptxas);
  auto time = status.getLastModificationTime().time_since_epoch().count();
  std::lock_guard lock(mutex);
  auto [version, isNew] = known.try_emplace(fmt::format("{} {} {}", status.getSize(), time, ptxas));
  if (isNew)
    version->second = askForVersion(ptxas);
  return version->second;
}

} // namespace hloc
