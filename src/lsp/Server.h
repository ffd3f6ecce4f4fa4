#pragma once
// The messages of a session: what is open, what is still to be said of it, what is asked. Server.cpp has the loop and
// the life of a session, Requests.cpp what is answered from documents.

#include "Features.h"
#include "Messages.h"

#include "hloc/lsp/Server.h"

#include "llvm/ADT/StringMap.h"

#include <chrono>
#include <deque>
#include <map>
#include <set>

namespace hloc::lsp {

/// A document with what the server still owes to it.
struct OpenDocument {
  using Time = std::chrono::steady_clock::time_point;
  OpenDocument(std::string uri, int64_t version, std::string text, Encoding encoding)
      : document(std::move(uri), version, std::move(text), encoding) {}

  Document document;
  Time changedAt = std::chrono::steady_clock::now();
  bool owesDiagnostics = true;
  bool owesKernels = true;
  std::chrono::milliseconds cost{0}; ///< of the last diagnostics
};

class Server {
public:
  Server(Channel &channel, BackgroundCompiler *compiler, const ServerOptions &options)
      : channel(channel), compiler(compiler), options(options), reader(options.maxMessageBytes) {}

  int run();

private:
  using Id = json::Value;
  using Time = OpenDocument::Time;
  using Milliseconds = std::chrono::milliseconds;
  enum class State { Fresh, Running, ShutDown, Ended };
  struct Answer {
    std::string result = "null"; ///< JSON
    ErrorCode code = InternalError;
    std::string problem = {}; ///< empty: there is a result
  };

  // --- the loop
  void receive(int milliseconds);
  void enqueue(Message message);
  int patience() const;
  /// One thing that can wait for a time without messages.
  void workOnDebts();
  void publishDiagnostics(OpenDocument &open);
  void lookForKernels(OpenDocument &open);
  void takeKernels();
  bool isReady(const OpenDocument &open) const;

  // --- messages
  void handle(const Message &message);
  void handleCall(llvm::StringRef method, const json::Object &params, const Id &id);
  void handleNotification(llvm::StringRef method, const json::Object &params);
  void send(json::Object message);
  void sendText(llvm::StringRef body);
  void notify(llvm::StringRef method, json::Value params);
  void fail(const Id &id, ErrorCode code, llvm::StringRef message);
  Answer initialize(const json::Object &params);
  void didOpen(const json::Object &params);
  void didChange(const json::Object &params);
  void didClose(const json::Object &params);
  void forget(const std::string &uri, llvm::StringRef why);
  bool applyChange(Document &document, const json::Value &change);

  // --- Requests.cpp
  using Handler = Answer (Server::*)(OpenDocument &, const json::Object &);
  static Handler findHandler(llvm::StringRef method);
  OpenDocument *find(const json::Object &params);
  Answer answerHover(OpenDocument &, const json::Object &);
  Answer answerDefinition(OpenDocument &, const json::Object &);
  Answer answerReferences(OpenDocument &, const json::Object &);
  Answer answerHighlights(OpenDocument &, const json::Object &);
  Answer answerPrepareRename(OpenDocument &, const json::Object &);
  Answer answerRename(OpenDocument &, const json::Object &);
  Answer answerCompletion(OpenDocument &, const json::Object &);
  Answer answerOutline(OpenDocument &, const json::Object &);
  Answer answerFoldingRanges(OpenDocument &, const json::Object &);
  Answer answerInlayHints(OpenDocument &, const json::Object &);
  Answer answerSemanticTokens(OpenDocument &, const json::Object &);
  Answer answerFormatting(OpenDocument &, const json::Object &);
  Answer atPosition(OpenDocument &, const json::Object &, void (*feature)(Document &, uint32_t, Out &));

  Channel &channel;
  BackgroundCompiler *compiler;
  ServerOptions options;
  MessageReader reader;
  std::deque<Message> queue;
  std::set<std::string> cancelled; ///< ids of requests in the queue
  std::map<std::string, OpenDocument> documents;
  std::string compiled; ///< uri of the document that is being compiled; empty: none is
  Encoding encoding = Encoding::Utf16;
  State state = State::Fresh;
  bool isOver = false; ///< nobody writes to us any more, or reads what we write
  int code = 1;
};

} // namespace hloc::lsp
