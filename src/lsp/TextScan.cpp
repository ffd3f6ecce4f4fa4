#include "TextScan.h"

#include "Scanner.h"

#include "hloc/hlo/Opcode.h"

#include <algorithm>

namespace hloc::lsp {

TextScan scanText(llvm::StringRef text) { return Scanner(text).scan(); }

std::optional<AttributeGrammar> grammarOf(llvm::StringRef key, llvm::StringRef opcode) {
  const std::optional<AttributeKey> known = parseAttributeKey(key);
  if (!known)
    return std::nullopt;
  if (const std::optional<Opcode> code = parseOpcode(opcode))
    for (const AttributeSpec &spec : attributeSpecs(*code))
      if (spec.key == *known)
        return spec.grammar;
  return grammar(*known);
}

uint32_t TextScan::tokenAt(uint32_t offset) const {
  auto after = std::upper_bound(tokens.begin(), tokens.end(), offset,
                                [](uint32_t at, const ScannedToken &token) { return at < token.begin; });
  if (after == tokens.begin())
    return none;
  auto found = after - 1;
  const bool isBehindWord = found->begin == offset && found->kind == TokenKind::Punctuation &&
                            found != tokens.begin() && (found - 1)->end == offset &&
                            (found - 1)->kind != TokenKind::Punctuation;
  if (isBehindWord)
    --found;
  return offset <= found->end ? uint32_t(found - tokens.begin()) : none;
}

const NameUse *TextScan::useAt(uint32_t offset) const {
  auto after = std::upper_bound(uses.begin(), uses.end(), offset,
                                [](uint32_t at, const NameUse &use) { return at < use.name.begin; });
  if (after != uses.end() && after->name.begin == offset + 1 && text[offset] == '%')
    return &*after;
  if (after == uses.begin())
    return nullptr;
  --after;
  return offset <= after->name.end ? &*after : nullptr;
}

uint32_t TextScan::instructionAt(uint32_t offset) const {
  auto after = std::upper_bound(instructions.begin(), instructions.end(), offset,
                                [](uint32_t at, const NamedInstruction &one) { return at < one.range.begin; });
  // Those before it that end before `offset` have been followed by it, unless it stands inside of them.
  for (unsigned tries = 0; after != instructions.begin() && tries < 1000; ++tries)
    if ((--after)->range.end >= offset)
      return uint32_t(after - instructions.begin());
  return none;
}

uint32_t TextScan::computationAt(uint32_t offset) const {
  auto after = std::upper_bound(computations.begin(), computations.end(), offset,
                                [](uint32_t at, const NamedComputation &one) { return at < one.range.begin; });
  for (unsigned tries = 0; after != computations.begin() && tries < 1000; ++tries)
    if ((--after)->range.end >= offset && after->open < offset)
      return uint32_t(after - computations.begin());
  return none;
}

} // namespace hloc::lsp
