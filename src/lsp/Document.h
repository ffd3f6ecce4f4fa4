#pragma once
// One open text and what is known of it. All of it is made anew after an edit, when it is asked for: reading two
// megabytes takes some twenty milliseconds, less than a bookkeeping of what an edit changes would be worth
// (decisions/0029).

#include "TextLines.h"
#include "TextScan.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/lsp/KernelReport.h"
#include "hloc/parser/Parser.h"

namespace hloc::lsp {

/// A text as the parser and the verifier see it.
struct Analysis {
  std::shared_ptr<const SourceFile> file;
  DiagnosticEngine diagnostics;
  ReadModule read;
  llvm::DenseMap<uint32_t, const HloInstruction *> instructionAt; ///< by the offset of its name, with `%`
  bool isRight() const { return read.isRight && !diagnostics.hasErrors(); }
};

class Document {
public:
  Document(std::string uri, int64_t version, std::string text, Encoding encoding);

  const std::string &uri() const { return documentUri; }
  int64_t version() const { return documentVersion; }
  const TextLines &lines() const { return textLines; }
  llvm::StringRef text() const { return textLines.text(); }

  void replace(uint32_t begin, uint32_t end, llvm::StringRef with);
  void replaceAll(std::string text);
  void setVersion(int64_t version) { documentVersion = version; }

  const TextScan &scan();
  const Analysis &analysis();
  /// Of the instruction at this index of scan(); null if it has errors, or what it uses has.
  const HloInstruction *parsed(uint32_t instruction);
  /// Its shape as parsed, or as it is written; empty if it is neither.
  std::string shapeOf(uint32_t instruction, bool withLayout);

  /// What is known of its kernels; nothing as long as that is nothing.
  std::optional<KernelReport> kernels;
  /// Why they are not known, for people.
  std::string whyNoKernels = "they are not looked for";

private:
  void changed();

  std::string documentUri;
  int64_t documentVersion;
  Encoding encoding;
  TextLines textLines;
  std::unique_ptr<TextScan> scanned;
  std::unique_ptr<Analysis> analysed;
};

} // namespace hloc::lsp
