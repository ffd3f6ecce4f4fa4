#pragma once
// The language server: HLO text in an editor, by the Language Server Protocol 3.17. It is one thread that answers one
// message after another; what it prints goes through a Channel, and compilations run beside it.
//
//   int code = lsp::serve(channel, compiler, {});      // 0 after `shutdown` and `exit`, else 1
//
// Any bytes may come: what is no message, or none that makes sense, is answered with an error or passed over.

#include "hloc/lsp/KernelReport.h"

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <memory>
#include <string>

namespace hloc::lsp {

/// Where messages come from and go to.
class Channel {
public:
  enum class Status { Data, Nothing, End };
  virtual ~Channel() = default;
  /// Appends what has arrived, at most `most` bytes; waits for `milliseconds`, for as long as it takes if negative.
  virtual Status read(std::string &into, size_t most, int milliseconds) = 0;
  /// False once nobody reads.
  virtual bool write(llvm::StringRef bytes) = 0;
};

/// Compiles one text at a time, beside the server.
class BackgroundCompiler {
public:
  virtual ~BackgroundCompiler() = default;
  /// Gives up what it is at.
  virtual void start(std::shared_ptr<const SourceFile> file) = 0;
  virtual void stop() = 0;
  /// What has come of it, once; a report that refuses if it crashed or took too long.
  virtual std::optional<KernelReport> poll() = 0;
};

struct ServerOptions {
  size_t maxMessageBytes = size_t(64) << 20;   ///< a longer one ends the server
  size_t maxDocumentBytes = size_t(256) << 20; ///< a document that grows larger is no longer looked at
  size_t maxCompiledBytes = size_t(256) << 10; ///< larger texts are not compiled for hovers
  int quietMilliseconds = 400;                 ///< without an edit, before a text is compiled
};

/// `compiler`: null, kernels are never known. The exit code of the process.
int serve(Channel &channel, BackgroundCompiler *compiler, const ServerOptions &options);

} // namespace hloc::lsp
