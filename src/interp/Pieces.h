#pragma once
// Elementwise modules, interpreted a piece of their arrays at a time: what their ops compute on the way takes the
// memory of a piece, not of a whole array, and the pieces go to all cores.

#include "hloc/interp/Interpreter.h"

namespace hloc::interp {

/// Elements of a piece: few enough for its values to stay near the core, and many for what is done once for each.
inline constexpr int64_t elementsOfPiece = 1 << 15;

/// Is the module worth it? Then isElementwise() holds of it, and the arguments have the parameters' shapes.
bool isInterpretedInPieces(const HloModule &module, llvm::ArrayRef<Literal> arguments);

/// Bit for bit what the whole entry gives at once. Fails without a word: the interpretation at once says why.
llvm::FailureOr<Literal> interpretInPieces(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                           const InterpreterOptions &options);

} // namespace hloc::interp
