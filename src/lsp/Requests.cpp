// Requests about documents: from their parameters to a feature and back.

#include "Server.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc::lsp {

Server::Handler Server::findHandler(llvm::StringRef method) {
  static const std::map<llvm::StringRef, Handler> handlers = {
      {"textDocument/hover", &Server::answerHover},
      {"textDocument/definition", &Server::answerDefinition},
      {"textDocument/references", &Server::answerReferences},
      {"textDocument/documentHighlight", &Server::answerHighlights},
      {"textDocument/prepareRename", &Server::answerPrepareRename},
      {"textDocument/rename", &Server::answerRename},
      {"textDocument/completion", &Server::answerCompletion},
      {"textDocument/documentSymbol", &Server::answerOutline},
      {"textDocument/foldingRange", &Server::answerFoldingRanges},
      {"textDocument/inlayHint", &Server::answerInlayHints},
      {"textDocument/semanticTokens/full", &Server::answerSemanticTokens},
      {"textDocument/semanticTokens/range", &Server::answerSemanticTokens},
      {"textDocument/formatting", &Server::answerFormatting},
      {"textDocument/rangeFormatting", &Server::answerFormatting},
  };
  auto found = handlers.find(method);
  return found == handlers.end() ? nullptr : found->second;
}

OpenDocument *Server::find(const json::Object &params) {
  const json::Object *id = params.getObject("textDocument");
  const std::optional<llvm::StringRef> uri = id ? id->getString("uri") : std::nullopt;
  auto found = uri ? documents.find(uri->str()) : documents.end();
  return found == documents.end() ? nullptr : &found->second;
}

static std::optional<uint32_t> offsetIn(const Document &document, const json::Object &params) {
  const std::optional<Position> position = readPosition(params.get("position"));
  return position ? std::optional(document.lines().offsetOf(*position)) : std::nullopt;
}

/// The one value that `feature` writes.
static std::string written(llvm::function_ref<void(Out &)> feature) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Out out(os);
  feature(out);
  return text;
}

Server::Answer Server::atPosition(OpenDocument &open, const json::Object &params,
                                  void (*feature)(Document &, uint32_t, Out &)) {
  const std::optional<uint32_t> offset = offsetIn(open.document, params);
  if (!offset)
    return {.code = InvalidParams, .problem = "there is no position"};
  return {written([&](Out &out) { feature(open.document, *offset, out); })};
}

Server::Answer Server::answerHover(OpenDocument &open, const json::Object &params) {
  takeKernels();
  return atPosition(open, params, hover);
}
Server::Answer Server::answerDefinition(OpenDocument &open, const json::Object &params) {
  return atPosition(open, params, definition);
}
Server::Answer Server::answerHighlights(OpenDocument &open, const json::Object &params) {
  return atPosition(open, params, highlights);
}
Server::Answer Server::answerPrepareRename(OpenDocument &open, const json::Object &params) {
  return atPosition(open, params, prepareRename);
}
Server::Answer Server::answerCompletion(OpenDocument &open, const json::Object &params) {
  return atPosition(open, params, completion);
}

Server::Answer Server::answerReferences(OpenDocument &open, const json::Object &params) {
  const std::optional<uint32_t> offset = offsetIn(open.document, params);
  if (!offset)
    return {.code = InvalidParams, .problem = "there is no position"};
  const json::Object *context = params.getObject("context");
  const bool withDefinition = context && context->getBoolean("includeDeclaration").value_or(false);
  return {written([&](Out &out) { references(open.document, *offset, withDefinition, out); })};
}

Server::Answer Server::answerRename(OpenDocument &open, const json::Object &params) {
  const std::optional<uint32_t> offset = offsetIn(open.document, params);
  const std::optional<llvm::StringRef> name = params.getString("newName");
  if (!offset || !name)
    return {.code = InvalidParams, .problem = "there is no position or no name"};
  Answer answer{.code = RequestFailed};
  answer.result = written([&](Out &out) { answer.problem = rename(open.document, *offset, *name, out); });
  return answer;
}

Server::Answer Server::answerOutline(OpenDocument &open, const json::Object &) {
  return {written([&](Out &out) { outline(open.document, out); })};
}
Server::Answer Server::answerFoldingRanges(OpenDocument &open, const json::Object &) {
  return {written([&](Out &out) { foldingRanges(open.document, out); })};
}

/// `range`, or the whole text.
static SourceRange rangeOf(const Document &document, const json::Object &params) {
  return readRange(document.lines(), params.get("range")).value_or(SourceRange{0, uint32_t(document.text().size())});
}

Server::Answer Server::answerInlayHints(OpenDocument &open, const json::Object &params) {
  return {written([&](Out &out) { inlayHints(open.document, rangeOf(open.document, params), out); })};
}
Server::Answer Server::answerSemanticTokens(OpenDocument &open, const json::Object &params) {
  return {written([&](Out &out) { semanticTokens(open.document, rangeOf(open.document, params), out); })};
}

Server::Answer Server::answerFormatting(OpenDocument &open, const json::Object &params) {
  const json::Object *style = params.getObject("options");
  constexpr int64_t usual = 2, widest = 8;
  const int64_t width = std::clamp<int64_t>(style ? style->getInteger("tabSize").value_or(usual) : usual, 1, widest);
  const SourceRange range = rangeOf(open.document, params);
  return {written([&](Out &out) { formatting(open.document, range, unsigned(width), out); })};
}

} // namespace hloc::lsp
