#pragma once
// Compiling for the language server in a process of its own: a fork, so that the text needs no file and the child is
// this very program. What it says comes back through a pipe; it is ended when it takes too long or is no longer wanted.

#include "hloc/lsp/Server.h"

#include <chrono>
#include <sys/types.h>

namespace hloc {

/// The process that uses it must have one thread: a child begins with that one alone.
class KernelChild : public lsp::BackgroundCompiler {
public:
  KernelChild(lsp::KernelRequest request, ToolchainOptions tools, double seconds)
      : request(std::move(request)), tools(std::move(tools)), seconds(seconds) {}
  ~KernelChild() override { end(); }

  void start(std::shared_ptr<const SourceFile> file) override;
  void stop() override { end(); }
  std::optional<lsp::KernelReport> poll() override;

private:
  using Clock = std::chrono::steady_clock;
  [[noreturn]] void compile(std::shared_ptr<const SourceFile> file, int pipe) const;
  lsp::KernelReport finish();
  void end();

  lsp::KernelRequest request;
  ToolchainOptions tools;
  double seconds; ///< that a compilation may take
  pid_t child = -1;
  int pipe = -1; ///< from the child
  std::string output;
  Clock::time_point deadline;
};

} // namespace hloc
