#pragma once

#include "hloc/hlo/Opcode.h"

namespace hloc::lsp {

/// What an opcode does, in a line without a final period.
llvm::StringRef meaning(Opcode opcode);
/// How the value of an attribute is written, by an example: `{0,1}`, `true|false`.
std::string valueForm(AttributeKey key, AttributeGrammar grammar);

} // namespace hloc::lsp
