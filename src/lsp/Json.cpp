#include "Json.h"

#include <algorithm>

namespace hloc::lsp {

void write(Out &out, Position position) {
  out.object([&] {
    out.attribute("line", int64_t(position.line));
    out.attribute("character", int64_t(position.character));
  });
}

void write(Out &out, const TextLines &lines, SourceRange range) {
  out.object([&] {
    out.attributeBegin("start");
    write(out, lines.positionOf(range.begin));
    out.attributeEnd();
    out.attributeBegin("end");
    write(out, lines.positionOf(range.end));
    out.attributeEnd();
  });
}

void writeRange(Out &out, llvm::StringRef key, const TextLines &lines, SourceRange range) {
  out.attributeBegin(key);
  write(out, lines, range);
  out.attributeEnd();
}

void writeLocation(Out &out, const Document &document, SourceRange range) {
  out.object([&] {
    out.attribute("uri", textValue(document.uri()));
    writeRange(out, "range", document.lines(), range);
  });
}

std::optional<Position> readPosition(const json::Value *value) {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  const std::optional<int64_t> line = object ? object->getInteger("line") : std::nullopt;
  const std::optional<int64_t> character = object ? object->getInteger("character") : std::nullopt;
  if (!line || !character || *line < 0 || *character < 0)
    return std::nullopt;
  constexpr int64_t most = none - 1;
  return Position{uint32_t(std::min(*line, most)), uint32_t(std::min(*character, most))};
}

std::optional<SourceRange> readRange(const TextLines &lines, const json::Value *value) {
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    return std::nullopt;
  const std::optional<Position> start = readPosition(object->get("start")), end = readPosition(object->get("end"));
  if (!start || !end)
    return std::nullopt;
  const uint32_t a = lines.offsetOf(*start), b = lines.offsetOf(*end);
  return SourceRange{std::min(a, b), std::max(a, b)};
}

} // namespace hloc::lsp
