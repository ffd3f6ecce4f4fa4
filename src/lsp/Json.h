#pragma once
// The protocol's values in JSON. Answers are written, not built: an object of llvm's takes some kilobytes, and an
// answer may have a hundred thousand.

#include "Document.h"

#include "llvm/Support/JSON.h"

namespace hloc::lsp {

namespace json = llvm::json;

/// A text for a client: always UTF-8.
inline json::Value textValue(llvm::StringRef text) {
  return json::isUTF8(text) ? json::Value(text.str()) : json::Value(json::fixUTF8(text));
}

using Out = json::OStream;

void write(Out &out, Position position);
void write(Out &out, const TextLines &lines, SourceRange range);
/// As an attribute of an object.
void writeRange(Out &out, llvm::StringRef key, const TextLines &lines, SourceRange range);
/// { uri, range }
void writeLocation(Out &out, const Document &document, SourceRange range);

/// Of an object that has one; nothing otherwise, or if it is out of range.
std::optional<Position> readPosition(const json::Value *value);
/// In bytes, begin <= end.
std::optional<SourceRange> readRange(const TextLines &lines, const json::Value *value);

} // namespace hloc::lsp
