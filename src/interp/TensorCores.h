#pragma once
// How far from exact sums of products are that tensor cores make.
//
// They take c and the products of 4 to 16 of k, cut off what is below so many bits of the largest of them, add up, and
// cut that to as many bits (src/emulator/CollectiveMultiply.cpp). What is cut off a term points against the term: less
// than a unit of the last bit, half of one on average.
//
//   bf16[64,4096] x bf16[4096,64]   24 bits, those of an f32
//   f8 x f8                         14 bits, as sm_89 and wgmma have it
//   f32 x f32                       not made there, but for an algorithm that names narrower factors, which has these
//                                   rounded or as several pieces
//   f32 x bf16                      24 bits; the f32 as three pieces, which have its bits down to 2^-133

#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Literal.h"
#include "interp/BoundedValue.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace hloc::interp {

class TensorCores {
public:
  /// Of a dot or convolution with so many terms a sum.
  TensorCores(const HloInstruction &instr, double terms);

  bool mayMultiply() const { return kept != 0; }
  /// Of a partial sum.
  unsigned bits() const { return kept; }

  using Product = llvm::function_ref<llvm::FailureOr<Literal>(const Literal &, const Literal &)>;
  /// What is cut off sums of products of `a` and `b`, besides roundings of that size. `magnitude`: sums of magnitudes.
  llvm::FailureOr<Literal> cut(const Literal &sums, const Literal &a, const Literal &b, const Literal &magnitude,
                               Product product) const;

  /// How far off a factor may be, of its magnitude, where narrower ones are multiplied; 0: it is itself.
  static double narrowing(const HloInstruction &instr);
  /// What factors may be instead: as far off as their rounding; as far as their rest, if each is several. The same
  /// bounds, if they are themselves.
  static BoundsPtr asFactor(const HloInstruction &instr, const BoundsPtr &bounds);

private:
  unsigned kept;
  double terms;
};

} // namespace hloc::interp
