#pragma once
// NVIDIA's programs and files that hloc uses where they are: ptxas, nvJitLink, fatbinary, nvdisasm, libdevice. None is
// needed to build hloc. Discovery remembers every place it looked, for `--doctor` and for the message when one is
// missing.

#include "hloc/support/Environment.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace hloc {

class DiagnosticEngine;

enum class Tool { Ptxas, NvJitLink, Fatbinary, Nvdisasm, Libdevice };
inline constexpr std::array<Tool, 5> allTools = {Tool::Ptxas, Tool::NvJitLink, Tool::Fatbinary, Tool::Nvdisasm,
                                                 Tool::Libdevice};

/// `ptxas`, `nvjitlink`, `fatbinary`, `nvdisasm`, `libdevice`.
llvm::StringRef toolName(Tool tool);
/// What hloc cannot do without it and what still works, one sentence.
llvm::StringRef withoutTool(Tool tool);

struct ToolchainOptions {
  std::string cudaPath;    ///< `--cuda-path=DIR`: looked at first, and nothing else is if the tool is there
  std::string ptxas;       ///< `--ptxas=FILE`
  std::string libdevice;   ///< `--libdevice=FILE`
  Environment environment; ///< CUDA_HOME, PATH, ...; null: nothing is set
  /// Overridable for tests: where hloc itself is, and the folders CUDA is usually installed in.
  std::string executable;                               ///< default: this program
  std::optional<std::vector<std::string>> usualFolders; ///< default: /usr/local/cuda and the like
};

/// Where a tool was found and where it was looked for.
struct ToolSearch {
  std::string path;                                       ///< empty: not found
  std::string source;                                     ///< `--cuda-path`, `CUDA_HOME`, `PATH`, `scripts/setup`, ...
  std::vector<std::pair<std::string, std::string>> tried; ///< (source, path or "not set"), in order

  bool found() const { return !path.empty(); }
};

class Toolchain {
public:
  /// Order: the options, CUDA_HOME, CUDA_PATH, PATH (for libdevice and nvJitLink: beside the ptxas on PATH), the usual
  /// folders, what scripts/setup unpacked, the `nvidia` packages of an active Python environment. A file named by an
  /// option that is not there is not replaced by another.
  static Toolchain discover(const ToolchainOptions &options);

  const ToolSearch &find(Tool tool) const { return searches[static_cast<size_t>(tool)]; }
  bool has(Tool tool) const { return find(tool).found(); }

  /// Folders of libraries in all of these places that are there, in that order: of `lib64` and `lib` of toolkits, and
  /// of the `nvidia` packages, which have a folder for each library.
  static std::vector<std::string> libraryFolders(const ToolchainOptions &options);

  /// `MissingTool` with notes: what was looked for, where, and what works without it.
  void reportMissing(Tool tool, llvm::StringRef neededFor, DiagnosticEngine &diagnostics) const;

  /// Text of `--doctor`: a line `ptxas: /usr/local/cuda/bin/ptxas (from CUDA_HOME, 13.0.88)` or `ptxas: not found` a
  /// tool, followed, if it is missing, by the places looked at and what works without it.
  std::string describe() const;

private:
  std::array<ToolSearch, allTools.size()> searches;
};

/// `13.0.88` of a ptxas; empty if it cannot be run. Starts a process.
std::string ptxasVersion(const std::string &ptxas);

} // namespace hloc
