#pragma once
// The rules of the algebraic simplifier, a table a file, a row a rule. Each keeps every bit of the result, but for the
// payloads of NaNs; those that change floats beyond that are in fastMathRules() and applied only where they are named.
//
// They agree on an order: a rule gives a value that is already there, or fewer elements are computed, or data moves
// fewer times or nearer to where it comes from, or an op becomes a cheaper one.

#include "Rewriter.h"

namespace hloc {

llvm::ArrayRef<RewriteRule> arithmeticRules(); ///< SimplifyArithmetic.cpp
llvm::ArrayRef<RewriteRule> logicRules();      ///< SimplifyLogic.cpp: and, or, compare, select
llvm::ArrayRef<RewriteRule> conversionRules(); ///< SimplifyConversions.cpp: convert, complex, copy, bitcast
llvm::ArrayRef<RewriteRule> movementRules();   ///< SimplifyMovement.cpp
llvm::ArrayRef<RewriteRule> slicingRules();    ///< SimplifySlices.cpp: slices, pads, concatenates

/// SimplifyFloats.cpp: those that HloPassOptions::fastMath names are applied, after the others.
llvm::ArrayRef<RewriteRule> fastMathRules();

/// Of all tables but the last.
std::vector<RewriteRule> algebraicRules();

} // namespace hloc
