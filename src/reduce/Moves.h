#pragma once
// The moves: ways to make a module smaller, from those that may leave almost nothing to those that tidy up.
//
//   cut      %a = tanh(%p)  ROOT %b = add(%a, %p)     place 0 (%a):  %a = parameter(1)  ROOT %b = add(%a, %p)
//                                                     place 1 (%b):  ROOT %a = tanh(%p)
//
// A move finds its places in a module in an order that depends on its text alone, and applies to any set of them.

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/BitVector.h"

#include <optional>

namespace hloc::reduction {

using ModulePointer = std::unique_ptr<HloModule>;

/// Null if it is none.
ModulePointer parse(llvm::StringRef text);
/// Of a module that the verifier takes.
std::optional<std::string> printed(const HloModule &module);

struct Move {
  llvm::StringRef name;
  size_t (*count)(const HloModule &module);
  /// `places` has as many bits as there are places, one at least of them set. Null if there is nothing to be had. What
  /// it leaves unused the engine takes away.
  ModulePointer (*apply)(ModulePointer module, const llvm::BitVector &places);
  bool leavesParts = false; ///< also worth trying on all places but a part of them
  bool isOnce = false;      ///< its places are alternatives: one at a time
};

/// In the order in which they are tried.
llvm::ArrayRef<Move> moves();

// The moves, by file.
size_t countCuts(const HloModule &module); ///< Cuts.cpp: instructions of the entry -> parameters, or results gone
ModulePointer cut(ModulePointer module, const llvm::BitVector &places);
size_t countResults(const HloModule &module); ///< elements of the entry's result
ModulePointer dropResults(ModulePointer module, const llvm::BitVector &places);

size_t countCalls(const HloModule &module); ///< Control.cpp: fusions and calls -> what they call
ModulePointer inlineCallees(ModulePointer module, const llvm::BitVector &places);
size_t countLoops(const HloModule &module); ///< whiles -> their body, once
ModulePointer unrollLoops(ModulePointer module, const llvm::BitVector &places);
ModulePointer dropLoops(ModulePointer module, const llvm::BitVector &places); ///< whiles -> what they begin with
size_t countBranches(const HloModule &module); ///< branches of conditionals -> the conditional
ModulePointer takeBranches(ModulePointer module, const llvm::BitVector &places);
size_t countCarried(const HloModule &module); ///< elements of loops' states that nothing but the body's result reads
ModulePointer dropCarried(ModulePointer module, const llvm::BitVector &places);

size_t countBypasses(const HloModule &module); ///< Values.cpp: instructions -> an operand of their shape
ModulePointer bypassByFirst(ModulePointer module, const llvm::BitVector &places);
ModulePointer bypassByLast(ModulePointer module, const llvm::BitVector &places);
size_t countInner(const HloModule &module); ///< instructions of fusions and calls -> parameters of these
ModulePointer feedInner(ModulePointer module, const llvm::BitVector &places);
size_t countComputed(const HloModule &module); ///< instructions of called computations -> zeros, or ones
ModulePointer replaceByZeros(ModulePointer module, const llvm::BitVector &places);
ModulePointer replaceByOnes(ModulePointer module, const llvm::BitVector &places);
size_t countEqualParameters(const HloModule &module); ///< parameters -> an earlier one of their shape
ModulePointer mergeParameters(ModulePointer module, const llvm::BitVector &places);
size_t countOddLiterals(const HloModule &module); ///< constants -> zeros, or ones
ModulePointer zeroLiterals(ModulePointer module, const llvm::BitVector &places);
ModulePointer unitLiterals(ModulePointer module, const llvm::BitVector &places);

size_t countTargets(const HloModule &module); ///< Forms.cpp: all sizes at once; places are how small
ModulePointer shrinkAll(ModulePointer module, const llvm::BitVector &places);
size_t countSizes(const HloModule &module); ///< each size -> 1, 2, its half
ModulePointer sizesToOne(ModulePointer module, const llvm::BitVector &places);
ModulePointer sizesToTwo(ModulePointer module, const llvm::BitVector &places);
ModulePointer halveSizes(ModulePointer module, const llvm::BitVector &places);
size_t countTypes(const HloModule &module); ///< element types -> a plainer one
ModulePointer simplifyTypes(ModulePointer module, const llvm::BitVector &places);
size_t countLayouts(const HloModule &module); ///< layouts -> the default
ModulePointer resetLayouts(ModulePointer module, const llvm::BitVector &places);
size_t countAttributes(const HloModule &module); ///< attributes that may be left out, by their keys
ModulePointer dropAttributes(ModulePointer module, const llvm::BitVector &places);
size_t countNames(const HloModule &module); ///< Names.cpp: names -> short ones; once, at the end
ModulePointer shortenNames(ModulePointer module, const llvm::BitVector &places);

/// Header attributes about the parameters and results of the entry, which have become others.
void dropSignature(HloModule &module);
/// What nothing reads goes: instructions, parameters of the entry and of fusions and calls, computations.
void sweep(HloModule &module);

} // namespace hloc::reduction
