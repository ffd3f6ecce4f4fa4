#include "Document.h"

#include "hloc/hlo/Verifier.h"

namespace hloc::lsp {

Document::Document(std::string uri, int64_t version, std::string text, Encoding encoding)
    : documentUri(std::move(uri)), documentVersion(version), encoding(encoding), textLines(std::move(text), encoding) {}

void Document::changed() {
  scanned.reset();
  analysed.reset();
  kernels.reset();
}

void Document::replace(uint32_t begin, uint32_t end, llvm::StringRef with) {
  changed();
  textLines.replace(begin, end, with);
}

void Document::replaceAll(std::string text) {
  changed();
  textLines = TextLines(std::move(text), encoding);
}

const TextScan &Document::scan() {
  if (!scanned)
    scanned = std::make_unique<TextScan>(scanText(text()));
  return *scanned;
}

const Analysis &Document::analysis() {
  if (analysed)
    return *analysed;
  analysed = std::make_unique<Analysis>();
  Analysis &made = *analysed;
  made.file = std::make_shared<const SourceFile>(documentUri, text().str());
  made.read = readHloModule(made.file, made.diagnostics);
  if (made.read.isRight)
    verify(*made.read.module, made.diagnostics);
  auto add = [&](const HloComputation &computation) {
    for (const HloInstruction *instr : computation.instructions())
      if (instr->range().isValid()) // of those that the parser makes beside it, the last one is what is written
        made.instructionAt[instr->range().begin] = instr;
  };
  if (made.read.module)
    for (const auto &computation : made.read.module->computations())
      add(*computation);
  for (const auto &computation : made.read.broken)
    add(*computation);
  return made;
}

const HloInstruction *Document::parsed(uint32_t instruction) {
  const HloInstruction *instr = analysis().instructionAt.lookup(scan().instructions[instruction].nameToken);
  return instr && instr->name() == scan().slice(scan().instructions[instruction].name) ? instr : nullptr;
}

std::string Document::shapeOf(uint32_t instruction, bool withLayout) {
  if (const HloInstruction *instr = parsed(instruction))
    return instr->shape().toString(withLayout);
  return scan().slice(scan().instructions[instruction].shape).str();
}

} // namespace hloc::lsp
