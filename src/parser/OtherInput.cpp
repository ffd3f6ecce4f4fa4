#include "hloc/parser/OtherInput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

constexpr llvm::StringLiteral fromJax = "jax gives HLO by `jax.jit(f).lower(...).as_text(\"hlo\")`";
/// As far as dialects, keys and control characters are looked for: they are near the beginning, or not there.
constexpr size_t farEnough = 1 << 16;

bool contains(llvm::StringRef text, llvm::ArrayRef<llvm::StringLiteral> words) {
  return llvm::any_of(words, [&](llvm::StringRef word) { return text.take_front(farEnough).contains(word); });
}

bool startsWith(llvm::StringRef text, llvm::ArrayRef<llvm::StringLiteral> starts) {
  return llvm::any_of(starts, [&](llvm::StringRef start) { return text.starts_with(start); });
}

bool isMlirBytecode(llvm::StringRef text) { return text.starts_with("ML\xEFR"); }

bool isStableHlo(llvm::StringRef text) {
  return startsWith(text, {"#loc", "#map", "module", "func.func", "\"builtin.module\""}) &&
         contains(text, {"stablehlo.", "mhlo.", "func.func", "builtin.module"});
}

/// `name: "m"`, `id: 3`: the first field of a message. Signatures have shapes behind their colons.
bool isTextProtobuf(llvm::StringRef text) {
  llvm::StringRef key = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  llvm::StringRef value = text.drop_front(key.size());
  return !key.empty() && value.consume_front(":") && !value.ltrim().empty() &&
         (value.ltrim()[0] == '"' || llvm::isDigit(value.ltrim()[0]));
}

/// Without blanks and comments in front, as HLO, PTX and LLVM IR have them.
llvm::StringRef beginning(llvm::StringRef text) {
  for (;;) {
    text = text.ltrim();
    if (!text.starts_with("//"))
      return text;
    text = text.drop_until([](char c) { return c == '\n'; });
  }
}

} // namespace

std::string otherMlir(llvm::StringRef text) {
  if (isMlirBytecode(text))
    return (contains(text, {"stablehlo", "mhlo"}) ? "this is MLIR bytecode of StableHLO, not HLO text; "
                                                  : "this is MLIR bytecode, not text; ") +
           fromJax.str();
  if (isStableHlo(beginning(text)) && contains(text, {"stablehlo.", "mhlo."}))
    return "this is StableHLO, not HLO text; " + fromJax.str();
  return "";
}

std::string otherInput(llvm::StringRef text) {
  if (std::string mlir = otherMlir(text); !mlir.empty())
    return mlir;
  if (text.starts_with("\x7F"
                       "ELF"))
    return "this is an ELF file, such as a cubin or a program, not HLO text";
  if (startsWith(text, {"\x1F\x8B", "PK\x03\x04", "\x28\xB5\x2F\xFD",
                        "\xFD"
                        "7zXZ",
                        "BZh"}))
    return "this is a compressed file; unpack it first";
  if (startsWith(text, {"\xFF\xFE", "\xFE\xFF"}))
    return "this is text in UTF-16; HLO text is read in UTF-8";
  llvm::StringRef first = beginning(text);
  auto isControl = [](char c) { return (c >= 0 && c < ' ' && !llvm::isSpace(c)) || c == '\x7F'; };
  if (!startsWith(first, {"HloModule", "ENTRY"}) && llvm::any_of(text.take_front(64), isControl))
    return "this is binary, not HLO text; of a serialized HloModuleProto, "
           "`jaxlib._hlo.HloModule.from_serialized_hlo_module_proto(bytes).to_string()` gives the text";
  if (isStableHlo(first))
    return "this is StableHLO, not HLO text; " + fromJax.str();
  if (startsWith(first, {"{ lambda", "{ \xCE\xBB"}))
    return "this is a jaxpr, not HLO text; " + fromJax.str();
  if (startsWith(first, {".version", ".target"}))
    return "this is PTX, not HLO text; it is read from a file `.ptx`, or with --input-format=ptx";
  if (startsWith(first, {"; ModuleID", "define ", "source_filename", "target datalayout", "target triple"}))
    return "this is LLVM IR, not HLO text; it is read from a file `.ll`, or with --input-format=llvm";
  if (first.starts_with("#"))
    return "`#` starts no HLO text; this looks like a text protobuf";
  if (isTextProtobuf(first))
    return "this looks like a text protobuf, not HLO text; " + fromJax.str();
  return "";
}

} // namespace hloc
