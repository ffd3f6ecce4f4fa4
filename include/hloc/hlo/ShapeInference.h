#pragma once
// Shape inference: the result shape of an instruction from its operands, attributes and called computations.
//
//   add(f32[4], f32[4])                                  -> f32[4]
//   reduce(f32[2,3], f32[]), dimensions={1}, to_apply=sum -> f32[2]
//   broadcast(f32[], dimensions={})                      -> needs a declared shape, which fixes the dimensions
//
// The input is untrusted: contradictory attributes give an error, never an index out of range or an overflow. The rules
// are those of src/hlo/SEMANTICS.md; the verifier runs the same functions and compares with the declared shape.

#include "hloc/hlo/HloComputation.h"

#include <optional>
#include <string>

namespace hloc {

/// The shape `spec` must have; nothing, and `error` set (a diagnostic message without location), where the operands or
/// attributes break a rule. `spec.shape` is the declared shape; the empty tuple of a default InstructionSpec stands for
/// "omitted". It is read only where a part of the result is the author's choice: all of it for parameter, constant,
/// iota, fusion with callee aside, custom-call; the element type for convert, dot and convolution; the sizes for
/// broadcast, reshape and bitcast. Layouts: elementwise results take the operand's, others the default.
std::optional<Shape> inferShape(const InstructionSpec &spec, std::string &error);

/// Whether operands of this type can be compared in this order: compare's `type=`.
bool suitsComparison(ComparisonType order, ElementType operands);

} // namespace hloc
