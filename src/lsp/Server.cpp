#include "Server.h"

#include "llvm/Support/raw_ostream.h"

namespace hloc::lsp {

int serve(Channel &channel, BackgroundCompiler *compiler, const ServerOptions &options) {
  return Server(channel, compiler, options).run();
}

//===--- the loop -----------------------------------------------------------------------------------------------===//

int Server::run() {
  while (state != State::Ended) {
    receive(queue.empty() ? patience() : 0);
    if (!queue.empty()) {
      const Message message = std::move(queue.front());
      queue.pop_front();
      handle(message);
    } else if (isOver) {
      break;
    } else {
      workOnDebts();
    }
  }
  if (compiler)
    compiler->stop();
  return code;
}

/// Reads what is there, so that it is known of a request whether it is still wanted. `milliseconds` is how long to wait
/// for the first of it.
void Server::receive(int milliseconds) {
  constexpr size_t chunk = size_t(1) << 20, mostMessages = 64;
  while (!isOver && queue.size() < mostMessages) {
    const Channel::Status status = channel.read(reader.buffer(), chunk, milliseconds);
    if (status == Channel::Status::Nothing)
      return;
    if (status == Channel::Status::End)
      isOver = true;
    while (std::optional<Message> message = reader.next())
      enqueue(std::move(*message));
    milliseconds = 0;
  }
}

static std::string textOf(const json::Value &id) {
  std::string text;
  llvm::raw_string_ostream(text) << id;
  return text;
}

void Server::enqueue(Message message) {
  const json::Object *object = message.value.getAsObject();
  const json::Object *params = object ? object->getObject("params") : nullptr;
  const json::Value *id = params ? params->get("id") : nullptr;
  if (!object || object->getString("method") != llvm::StringRef("$/cancelRequest") || !id) {
    queue.push_back(std::move(message));
    return;
  }
  for (const Message &waiting : queue) { // what is not in the queue has been answered
    const json::Object *request = waiting.value.getAsObject();
    const json::Value *itsId = request ? request->get("id") : nullptr;
    if (itsId && *itsId == *id)
      cancelled.insert(textOf(*id));
  }
}

bool Server::isReady(const OpenDocument &open) const {
  // Large texts wait for a pause, so that not every letter costs as much.
  constexpr Milliseconds cheap(50), longest(500);
  const Milliseconds wait = open.cost <= cheap ? Milliseconds(0) : std::min(open.cost, longest);
  return std::chrono::steady_clock::now() - open.changedAt >= wait;
}

/// How long to wait for a message, in milliseconds: -1 for as long as it takes.
int Server::patience() const {
  constexpr int soon = 10, often = 30;
  bool owesKernels = false;
  for (const auto &[uri, open] : documents) {
    if (open.owesDiagnostics)
      return isReady(open) ? 0 : soon;
    owesKernels |= open.owesKernels;
  }
  return owesKernels || !compiled.empty() ? often : -1;
}

void Server::workOnDebts() {
  for (auto &[uri, open] : documents)
    if (open.owesDiagnostics && isReady(open))
      return publishDiagnostics(open);
  takeKernels();
  for (auto &[uri, open] : documents)
    if (open.owesKernels && !open.owesDiagnostics && compiled.empty() &&
        std::chrono::steady_clock::now() - open.changedAt >= Milliseconds(options.quietMilliseconds))
      return lookForKernels(open);
}

void Server::publishDiagnostics(OpenDocument &open) {
  const Time begin = std::chrono::steady_clock::now();
  open.owesDiagnostics = false;
  std::string body;
  llvm::raw_string_ostream os(body);
  Out out(os);
  out.object([&] {
    out.attribute("jsonrpc", "2.0");
    out.attribute("method", "textDocument/publishDiagnostics");
    out.attributeObject("params", [&] {
      out.attribute("uri", textValue(open.document.uri()));
      out.attribute("version", open.document.version());
      out.attributeBegin("diagnostics");
      writeDiagnostics(open.document, out);
      out.attributeEnd();
    });
  });
  sendText(body);
  open.cost = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
}

void Server::lookForKernels(OpenDocument &open) {
  open.owesKernels = false;
  Document &document = open.document;
  if (!compiler) {
    document.whyNoKernels = "nothing is compiled in the background";
  } else if (document.text().size() > options.maxCompiledBytes) {
    document.whyNoKernels = "texts of more than " + std::to_string(options.maxCompiledBytes >> 10) +
                            " KiB are not compiled in the background";
  } else if (!document.analysis().isRight()) {
    document.whyNoKernels = "the text has errors";
  } else {
    document.whyNoKernels = "it is being compiled";
    compiled = document.uri();
    compiler->start(document.analysis().file);
  }
}

void Server::takeKernels() {
  if (compiled.empty())
    return;
  std::optional<KernelReport> report = compiler->poll();
  if (!report)
    return;
  if (auto found = documents.find(compiled); found != documents.end())
    found->second.document.kernels = std::move(report);
  compiled.clear();
}

//===--- messages -----------------------------------------------------------------------------------------------===//

void Server::send(json::Object message) {
  message["jsonrpc"] = "2.0";
  sendText(textOf(json::Value(std::move(message))));
}

void Server::sendText(llvm::StringRef body) { isOver |= !channel.write(frame(body)); }

void Server::notify(llvm::StringRef method, json::Value params) {
  send(json::Object{{"method", method}, {"params", std::move(params)}});
}

void Server::fail(const Id &id, ErrorCode error, llvm::StringRef message) {
  send(json::Object{{"id", id}, {"error", json::Object{{"code", int64_t(error)}, {"message", textValue(message)}}}});
}

void Server::handle(const Message &message) {
  if (!message.problem.empty()) {
    fail(nullptr, ParseError, message.problem);
    isOver |= message.isFatal;
    return;
  }
  const json::Object *object = message.value.getAsObject();
  const json::Value *id = object ? object->get("id") : nullptr;
  const bool hasId = id && (id->kind() == json::Value::Number || id->kind() == json::Value::String);
  const std::optional<llvm::StringRef> method = object ? object->getString("method") : std::nullopt;
  if (!method) {
    const bool isResponse = hasId && (object->get("result") || object->get("error"));
    if (!isResponse) // we ask for nothing
      fail(hasId ? *id : Id(nullptr), InvalidRequest, "no request");
    return;
  }
  static const json::Object noParams;
  const json::Object *params = object->getObject("params");
  if (!id)
    handleNotification(*method, params ? *params : noParams);
  else if (!hasId)
    fail(nullptr, InvalidRequest, "an id is a number or a string");
  else
    handleCall(*method, params ? *params : noParams, *id);
}

void Server::handleCall(llvm::StringRef method, const json::Object &params, const Id &id) {
  const bool hasToBe = method == "initialize" || method == "shutdown";
  if (cancelled.erase(textOf(id)) && !hasToBe)
    return fail(id, RequestCancelled, "cancelled");
  if (state == State::Fresh && method != "initialize")
    return fail(id, ServerNotInitialized, "`initialize` comes first");
  if (state == State::ShutDown || (state == State::Running && method == "initialize"))
    return fail(id, InvalidRequest, state == State::ShutDown ? "the server is shut down" : "initialized already");
  Answer answer;
  if (method == "initialize") {
    answer = initialize(params);
  } else if (method == "shutdown") {
    state = State::ShutDown;
    code = 0;
  } else if (Handler handler = findHandler(method)) {
    OpenDocument *open = find(params);
    answer =
        open ? (this->*handler)(*open, params) : Answer{.code = InvalidParams, .problem = "there is no such document"};
  } else {
    return fail(id, MethodNotFound, ("`" + method.take_front(100) + "` is not known").str());
  }
  if (answer.problem.empty())
    sendText("{\"jsonrpc\":\"2.0\",\"id\":" + textOf(id) + ",\"result\":" + answer.result + "}");
  else
    fail(id, answer.code, answer.problem);
}

void Server::handleNotification(llvm::StringRef method, const json::Object &params) {
  if (method == "exit")
    state = State::Ended;
  if (state != State::Running)
    return;
  if (method == "textDocument/didOpen")
    didOpen(params);
  else if (method == "textDocument/didChange")
    didChange(params);
  else if (method == "textDocument/didClose")
    didClose(params);
}

static json::Object capabilities(Encoding encoding) {
  constexpr const char *names[] = {"utf-8", "utf-16", "utf-32"};
  enum { Incremental = 2 };
  json::Object tokens{{"legend", json::Object{{"tokenTypes", semanticTokenTypes()}, {"tokenModifiers", json::Array()}}},
                      {"full", true},
                      {"range", true}};
  return json::Object{{"positionEncoding", names[size_t(encoding)]},
                      {"textDocumentSync", json::Object{{"openClose", true}, {"change", int64_t(Incremental)}}},
                      {"hoverProvider", true},
                      {"definitionProvider", true},
                      {"referencesProvider", true},
                      {"documentHighlightProvider", true},
                      {"renameProvider", json::Object{{"prepareProvider", true}}},
                      {"completionProvider", json::Object{{"triggerCharacters", json::Array{"%", "(", ",", "=", "{"}}}},
                      {"documentSymbolProvider", true},
                      {"foldingRangeProvider", true},
                      {"inlayHintProvider", true},
                      {"semanticTokensProvider", std::move(tokens)},
                      {"documentFormattingProvider", true},
                      {"documentRangeFormattingProvider", true}};
}

Server::Answer Server::initialize(const json::Object &params) {
  const json::Object *client = params.getObject("capabilities");
  const json::Object *general = client ? client->getObject("general") : nullptr;
  if (const json::Array *offered = general ? general->getArray("positionEncodings") : nullptr)
    for (const json::Value &one : *offered) { // the client's first choice that we have
      const llvm::StringRef name = one.getAsString().value_or("");
      if (name != "utf-8" && name != "utf-16" && name != "utf-32")
        continue;
      encoding = name == "utf-8" ? Encoding::Utf8 : name == "utf-16" ? Encoding::Utf16 : Encoding::Utf32;
      break;
    }
  state = State::Running;
  return {textOf(json::Object{{"capabilities", capabilities(encoding)},
                              {"serverInfo", json::Object{{"name", "hloc"}, {"version", HLOC_VERSION}}}})};
}

void Server::forget(const std::string &uri, llvm::StringRef why) {
  enum { Error = 1 };
  documents.erase(uri);
  notify("window/showMessage", json::Object{{"type", int64_t(Error)}, {"message", textValue(why)}});
}

void Server::didOpen(const json::Object &params) {
  const json::Object *item = params.getObject("textDocument");
  const std::optional<llvm::StringRef> uri = item ? item->getString("uri") : std::nullopt;
  const std::optional<llvm::StringRef> text = item ? item->getString("text") : std::nullopt;
  if (!uri || !text)
    return;
  const std::string name = uri->str();
  documents.erase(name);
  if (text->size() > options.maxDocumentBytes)
    return forget(name, "hloc does not look at " + name + ": it is too large");
  documents.try_emplace(name, name, item->getInteger("version").value_or(0), text->str(), encoding);
}

/// False if the document is too large then.
bool Server::applyChange(Document &document, const json::Value &change) {
  const json::Object *object = change.getAsObject();
  const std::optional<llvm::StringRef> text = object ? object->getString("text") : std::nullopt;
  if (!text)
    return true;
  if (const json::Value *where = object->get("range")) {
    const std::optional<SourceRange> range = readRange(document.lines(), where);
    if (!range)
      return true;
    if (document.text().size() - (range->end - range->begin) + text->size() > options.maxDocumentBytes)
      return false;
    document.replace(range->begin, range->end, *text);
    return true;
  }
  if (text->size() > options.maxDocumentBytes)
    return false;
  document.replaceAll(text->str());
  return true;
}

void Server::didChange(const json::Object &params) {
  OpenDocument *open = find(params);
  const json::Array *changes = params.getArray("contentChanges");
  if (!open || !changes)
    return;
  const std::string uri = open->document.uri();
  for (const json::Value &change : *changes)
    if (!applyChange(open->document, change))
      return forget(uri, "hloc does not look at " + uri + " any more: it is too large");
  open->document.setVersion(params.getObject("textDocument")->getInteger("version").value_or(0));
  open->changedAt = std::chrono::steady_clock::now();
  open->owesDiagnostics = open->owesKernels = true;
  open->document.whyNoKernels = "it has changed just now";
  if (compiled == uri) {
    compiler->stop();
    compiled.clear();
  }
}

void Server::didClose(const json::Object &params) {
  OpenDocument *open = find(params);
  if (!open)
    return;
  const std::string uri = open->document.uri();
  documents.erase(uri);
  notify("textDocument/publishDiagnostics", json::Object{{"uri", textValue(uri)}, {"diagnostics", json::Array()}});
}

} // namespace hloc::lsp
