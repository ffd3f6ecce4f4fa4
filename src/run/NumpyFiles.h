#pragma once
// Arguments and results of a run as numpy's .npz files.
//
// A file holds one array for each leaf, no more and no less, named in one of these ways: by number, as --outputs writes
// them (`0`, `1`, ...); as numpy.savez(file, a, b) names them (`arr_0`, `arr_1`, ...); arguments also by the names of
// the entry parameters. Leaves of tuples are counted through; named, they are `p.0`, `p.1.0`, ...

#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Literal.h"
#include "hloc/support/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace hloc {

/// One way of naming all leaves, and what it is called in messages.
struct ArrayNames {
  std::string scheme;
  std::vector<std::string> names; ///< by leaf
};

/// By leaf, which of `found` it is, if those are exactly the names of one scheme, in any order. Else nothing, with
/// `error` naming what is missing, what is too many and what there is.
std::optional<std::vector<size_t>> matchArrays(llvm::ArrayRef<std::string> found, llvm::ArrayRef<ArrayNames> schemes,
                                               std::string &error);

/// One literal for each entry parameter; nothing after a diagnostic.
std::optional<std::vector<Literal>> readArguments(const std::string &fileName, const HloModule &module,
                                                  DiagnosticEngine &diagnostics);
/// A result of the entry computation; nothing after a diagnostic.
std::optional<Literal> readResult(const std::string &fileName, const HloModule &module, DiagnosticEngine &diagnostics);
/// False after a diagnostic.
bool writeResult(const std::string &fileName, const Literal &result, DiagnosticEngine &diagnostics);

} // namespace hloc
