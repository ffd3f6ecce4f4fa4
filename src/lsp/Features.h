#pragma once
// What can be asked of a document. Each writes one value, as the protocol has it; null where there is nothing to say.

#include "Json.h"

#include <string>
#include <vector>

namespace hloc::lsp {

void writeDiagnostics(Document &document, Out &out);

void hover(Document &document, uint32_t offset, Out &out);

void definition(Document &document, uint32_t offset, Out &out);
void references(Document &document, uint32_t offset, bool withDefinition, Out &out);
void highlights(Document &document, uint32_t offset, Out &out);
void prepareRename(Document &document, uint32_t offset, Out &out);
/// Why the name cannot be had, if it cannot; nothing is written then. Else empty.
std::string rename(Document &document, uint32_t offset, llvm::StringRef name, Out &out);

void completion(Document &document, uint32_t offset, Out &out);
void outline(Document &document, Out &out);
void foldingRanges(Document &document, Out &out);
/// Of the operands in `range` and of instructions whose shapes are not written.
void inlayHints(Document &document, SourceRange range, Out &out);

/// The names of the kinds of semantic tokens, in the order of their numbers.
json::Array semanticTokenTypes();
void semanticTokens(Document &document, SourceRange range, Out &out);

/// Blanks and ends of lines between tokens that are others; nothing else is touched, so that comments, literals and
/// values stay as they are written. None if a string does not end in its line.
struct TextEdit {
  SourceRange range;
  std::string text;
};
std::vector<TextEdit> formattingEdits(const TextScan &scan, unsigned indentation);
/// Those inside `range`. Very many become one, which editors do not send back one by one.
void formatting(Document &document, SourceRange range, unsigned indentation, Out &out);

} // namespace hloc::lsp
