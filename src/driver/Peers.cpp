#include "Peers.h"

#include "Compile.h"
#include "SystemEnvironment.h"

#include "hloc/support/Subprocess.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace hloc {

namespace {

std::string withSuffix(llvm::StringRef path, llvm::StringRef suffix) {
  llvm::SmallString<128> result(path);
  llvm::sys::path::replace_extension(result, suffix);
  return std::string(result);
}

/// The description of a launch beside a file; empty if there is none.
std::string launchBeside(llvm::StringRef path) {
  for (const char *suffix : {".launch.json", ".json"})
    if (std::string launch = withSuffix(path, suffix); llvm::sys::fs::exists(launch))
      return launch;
  return "";
}

/// The end of what a program has said.
std::string lastLines(const ProcessResult &result) {
  llvm::StringRef said = llvm::StringRef(result.errors).trim();
  constexpr size_t most = 400;
  return result.describe() + (said.empty() ? "" : ": " + said.take_back(most).str());
}

} // namespace

std::vector<std::string> peersBeside(const std::string &hlo) {
  std::string ptx = withSuffix(hlo, ".ptx");
  if (!llvm::sys::fs::exists(ptx) || launchBeside(ptx).empty())
    return {};
  return {ptx};
}

std::optional<std::string> PeerFiles::newFolder() {
  std::optional<TemporaryFolder> folder = temporaryFolder("hloc-peer", diagnostics);
  if (!folder)
    return std::nullopt;
  folders.push_back(std::move(*folder));
  return folders.back().path();
}

std::optional<PeerProgram> PeerFiles::find(const std::string &peer, const std::string &hlo, const TargetInfo &target,
                                           const Toolchain &toolchain) {
  if (peer == "xla")
    return compileByXla(hlo, target);
  const llvm::StringRef suffix = llvm::sys::path::extension(peer);
  if (suffix != ".ptx" && suffix != ".cu") {
    diagnostics.report(DiagnosticKind::BadUsage, "--with=" + peer + " is no .ptx, no .cu, nor `hloc:OPTIONS` or `xla`");
    return std::nullopt;
  }
  std::string launch = launchBeside(peer);
  if (!llvm::sys::fs::exists(peer) || launch.empty()) {
    diagnostics.report(DiagnosticKind::UnreadableFile,
                       llvm::sys::fs::exists(peer)
                           ? "how `" + peer + "` is launched is not known: there is no " + withSuffix(peer, ".json") +
                                 ", nor " + withSuffix(peer, ".launch.json")
                           : "cannot read `" + peer + "`: No such file or directory");
    return std::nullopt;
  }
  if (suffix == ".cu")
    return compileCuda(peer, launch, target, toolchain);
  return PeerProgram{peer, launch};
}

std::optional<PeerProgram> PeerFiles::compileCuda(const std::string &source, const std::string &launch,
                                                  const TargetInfo &target, const Toolchain &toolchain) {
  // nvcc is beside ptxas in a toolkit; what scripts/setup unpacks has none.
  std::string nvcc = "nvcc";
  if (toolchain.has(Tool::Ptxas))
    if (std::string beside = (llvm::sys::path::parent_path(toolchain.find(Tool::Ptxas).path) + "/nvcc").str();
        llvm::sys::fs::can_execute(beside))
      nvcc = beside;
  std::optional<std::string> folder = newFolder();
  if (!folder)
    return std::nullopt;
  const std::string ptx = *folder + "/peer.ptx";
  const ProcessResult made = runProcess({nvcc, "-ptx", "-arch=" + target.name, "-o", ptx, source});
  if (!made.succeeded()) {
    diagnostics.report(made.started ? DiagnosticKind::PeerFailed : DiagnosticKind::MissingTool,
                       "nvcc does not compile `" + source + "`: " + lastLines(made));
    return std::nullopt;
  }
  return PeerProgram{ptx, launch};
}

/// What HLOC_XLA_PEER names, or the script of the source tree or the installation that this program is of.
static std::string xlaPeer() {
  if (std::optional<std::string> named = systemEnvironment("HLOC_XLA_PEER"))
    return *named;
  static const int here = 0;
  const std::string self = llvm::sys::fs::getMainExecutable(nullptr, const_cast<int *>(&here));
  for (const char *place : {"/../share/hloc/peers/xla", "/../../../scripts/peers/xla"})
    if (std::string path = (llvm::sys::path::parent_path(self) + place).str(); llvm::sys::fs::can_execute(path))
      return path;
  return "";
}

std::optional<PeerProgram> PeerFiles::compileByXla(const std::string &hlo, const TargetInfo &target) {
  const std::string program = xlaPeer();
  if (program.empty()) {
    diagnostics.report(DiagnosticKind::MissingTool, "--with=xla needs the program that HLOC_XLA_PEER names")
        .note("the source tree has it, scripts/peers/xla; its --help says what that needs");
    return std::nullopt;
  }
  std::optional<std::string> folder = newFolder();
  if (!folder)
    return std::nullopt;
  const ProcessResult made = runProcess({program, hlo, *folder + "/peer", "--target=" + target.name});
  if (!made.succeeded()) {
    diagnostics.report(made.started ? DiagnosticKind::PeerFailed : DiagnosticKind::MissingTool,
                       "XLA does not compile `" + hlo + "`: " + lastLines(made));
    return std::nullopt;
  }
  return PeerProgram{*folder + "/peer.ptx", *folder + "/peer.json"};
}

} // namespace hloc
