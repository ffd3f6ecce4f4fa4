#pragma once

#include "hloc/hlo/Printer.h"

namespace hloc {

/// Is the value the default, which XLA leaves out of the text? Such an attribute says the same as its absence.
bool isOmitted(const HloInstruction &instr, const Attribute &attribute);

/// `, dimensions={0}`: nothing where the value is the default and XLA leaves it out.
void printAttribute(const HloInstruction &instr, const Attribute &attribute, llvm::raw_ostream &os,
                    const PrintOptions &options);

/// The value alone. `grammar` decides the form.
void printValue(AttributeKey key, AttributeGrammar grammar, const AttributeValue &value, llvm::raw_ostream &os,
                const PrintOptions &options);

} // namespace hloc
