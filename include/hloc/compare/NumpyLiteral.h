#pragma once
// Literals as numpy arrays: what a dtype description stands for.
//
// numpy's own types as usual (`<f4`, `|b1`, `<c8`); bf16, f8, f6, f4 as the raw bytes ml_dtypes leaves in files (`|V2`,
// `|V1`); 2- and 4-bit integers as one byte each. A literal's bytes are the array's bytes in C order.

#include "hloc/hlo/Literal.h"

#include <optional>

namespace hloc {

/// What an array of this element type is written as.
std::string numpyDescr(ElementType type);

/// The literal of the wanted shape; nothing and `error` set if type or dimensions do not fit. 0-d and 1-element arrays
/// fit scalars. Predicates are normalised to 0 and 1, sub-byte integers to their width.
std::optional<Literal> literalFromNumpy(llvm::StringRef descr, llvm::ArrayRef<int64_t> dims,
                                        llvm::ArrayRef<uint8_t> bytes, const Shape &shape, std::string &error);

} // namespace hloc
