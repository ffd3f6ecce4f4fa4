#pragma once
// Literals as numpy arrays: what a dtype description stands for.
//
// numpy's own types as usual (`<f4`, `|b1`, `<c8`). bf16, f8, f6, f4 and integers of 1, 2 and 4 bits are written by the
// names of ml_dtypes (`bfloat16`, `int4`), which numpy.load understands where ml_dtypes is imported. They are also read
// from the raw bytes that numpy.save makes of them (`<V2`, `<V1`; `<f1` is float8_e5m2), narrow integers from int8 and
// uint8. A literal's bytes are the array's bytes in C order.

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
