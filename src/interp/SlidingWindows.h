#pragma once
// Windows of many elements without going through each: along one dimension at a time, in three ops an element whatever
// the size of the window.
//
//   x:         a  b  c | d  e  f | g            blocks as long as the window, 3
//   up to:     a ab abc| d de def| g            within a block, from its begin
//   from:    abc bc  c |def ef f | g            and to its end
//   b c d  =  from(b) op upTo(d)                each window meets two blocks at most
//
// For ops that may be carried out in any order.

#include "hloc/hlo/Attribute.h"
#include "interp/ScalarFunction.h"

namespace hloc::interp {

/// Whether windows are so large that it is worth while, and none is dilated.
bool areLargeWindows(const Window &window);

/// The elements that each window meets, combined: floats by adding them up in f64, if `sumsFloats` says so, all else by
/// the function of two parameters of the operand's type. Nothing is meant by the result where `meetsNothing`.
Literal combineWindows(const Literal &operand, const Window &window, llvm::ArrayRef<int64_t> resultDims,
                       ScalarFunction &function, bool sumsFloats);

/// Does the window of result `index` lie over padding alone?
bool meetsNothing(const Window &window, llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> operandDims);

} // namespace hloc::interp
