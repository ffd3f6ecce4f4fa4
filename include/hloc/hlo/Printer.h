#pragma once
// HloModule -> text that parses to an equal module.

#include "hloc/hlo/HloModule.h"

#include <string>

namespace llvm {
class raw_ostream;
}

namespace hloc {

struct PrintOptions {
  /// Names with `%`, signatures, metadata, control predecessors: what dumps look like. Otherwise the short form.
  bool full = true;
  /// Constants of more than 10 elements are printed whole; otherwise as `{...}`, which cannot be read back.
  bool largeConstants = true;
};

/// Computations in module order, except that callees always come first, so that the text reads back; instructions in
/// computation order, attributes in the order of Attributes.def; attributes that have their default value are left out
/// where XLA does so.
void printHlo(const HloModule &module, llvm::raw_ostream &os, const PrintOptions &options);
void printHlo(const HloInstruction &instr, llvm::raw_ostream &os, const PrintOptions &options);
/// The text of a module with the default options.
std::string hloText(const HloModule &module);

/// A literal as in `constant(...)`.
void printLiteral(const Literal &literal, llvm::raw_ostream &os);

/// Same computations, names, instructions, shapes with layouts, attributes (a default value is like none), literals
/// (bit for bit). On a difference, `why` says where.
bool equalModules(const HloModule &a, const HloModule &b, std::string &why);

} // namespace hloc
