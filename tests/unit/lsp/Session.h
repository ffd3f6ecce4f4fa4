#pragma once
// A client in the same process: all that it says lies ready, all that it is answered is kept.

#include "Samples.h"

#include "hloc/lsp/Server.h"

#include "llvm/Support/JSON.h"

#include <deque>

namespace hloc {

namespace json = llvm::json;

class Session : public lsp::Channel {
public:
  Status read(std::string &into, size_t most, int milliseconds) override {
    if (pending.empty())
      return Status::End;
    if (isPause(pending.front())) { // nothing comes as long as the server has something to do
      if (milliseconds < 0 || milliseconds > 10)
        pending.pop_front();
      return Status::Nothing;
    }
    into += pending.front();
    pending.pop_front();
    return Status::Data;
  }
  bool write(llvm::StringRef bytes) override {
    output += bytes;
    return true;
  }

  void say(json::Object message) {
    message["jsonrpc"] = "2.0";
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(message));
    raw("Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  }
  void raw(std::string bytes) { pending.push_back(std::move(bytes)); }
  void notify(llvm::StringRef method, json::Value params) {
    say(json::Object{{"method", method}, {"params", std::move(params)}});
  }
  /// The id.
  int64_t request(llvm::StringRef method, json::Value params) {
    say(json::Object{{"id", ++lastId}, {"method", method}, {"params", std::move(params)}});
    return lastId;
  }
  /// Until the server has nothing to do.
  void pause() { pending.push_back(pauseMark); }
  void begin() {
    request("initialize", json::Object{{"capabilities", json::Object()}});
    notify("initialized", json::Object());
  }
  void end() {
    request("shutdown", nullptr);
    notify("exit", nullptr);
  }
  void open(llvm::StringRef text, llvm::StringRef uri = "file:///t.hlo") {
    notify("textDocument/didOpen",
           json::Object{
               {"textDocument", json::Object{{"uri", uri}, {"version", 1}, {"languageId", "hlo"}, {"text", text}}}});
  }
  static json::Object position(int64_t line, int64_t character) {
    return json::Object{{"line", line}, {"character", character}};
  }
  /// `needle` of `text`, `behind` characters behind its start.
  static json::Object at(llvm::StringRef text, llvm::StringRef needle, size_t behind = 0) {
    const llvm::StringRef before = text.take_front(text.find(needle) + behind);
    return json::Object{
        {"textDocument", json::Object{{"uri", "file:///t.hlo"}}},
        {"position", position(int64_t(before.count('\n')), int64_t(before.size() - (before.rfind('\n') + 1)))}};
  }
  static json::Object document() { return json::Object{{"textDocument", json::Object{{"uri", "file:///t.hlo"}}}}; }
  void change(json::Array changes, int64_t version = 2) {
    notify("textDocument/didChange",
           json::Object{{"textDocument", json::Object{{"uri", "file:///t.hlo"}, {"version", version}}},
                        {"contentChanges", std::move(changes)}});
  }

  int run(lsp::BackgroundCompiler *compiler = nullptr, const lsp::ServerOptions &options = {}) {
    const int code = lsp::serve(*this, compiler, options);
    llvm::StringRef rest = output;
    while (!rest.empty()) {
      size_t length = 0;
      rest.consume_front("Content-Length: ");
      rest.consumeInteger(10, length);
      rest.consume_front("\r\n\r\n");
      answers.push_back(llvm::cantFail(json::parse(rest.take_front(length))));
      rest = rest.drop_front(length);
    }
    return code;
  }

  /// Of a request; null if there is none.
  const json::Object *answer(int64_t id) const {
    for (const json::Value &answer : answers)
      if (answer.getAsObject()->getInteger("id") == id)
        return answer.getAsObject();
    return nullptr;
  }
  const json::Value &result(int64_t id) const {
    static const json::Value none = "no result";
    const json::Object *found = answer(id);
    const json::Value *value = found ? found->get("result") : nullptr;
    return value ? *value : none;
  }
  int64_t errorOf(int64_t id) const {
    const json::Object *found = answer(id);
    const json::Object *error = found ? found->getObject("error") : nullptr;
    return error ? error->getInteger("code").value_or(1) : 0;
  }
  std::vector<const json::Object *> notifications(llvm::StringRef method) const {
    std::vector<const json::Object *> found;
    for (const json::Value &answer : answers)
      if (answer.getAsObject()->getString("method") == method)
        found.push_back(answer.getAsObject()->getObject("params"));
    return found;
  }
  static std::string text(const json::Value &value) {
    std::string out;
    llvm::raw_string_ostream(out) << value;
    return out;
  }

private:
  static constexpr const char *pauseMark = "(pause)";
  static bool isPause(const std::string &bytes) { return bytes == pauseMark; }

  std::deque<std::string> pending;
  std::string output;
  std::vector<json::Value> answers;
  int64_t lastId = 0;
};

} // namespace hloc
