#pragma once
// Some fusions of a module as a module of their own, to be compiled and run without the rest.
//
//   ENTRY e { p = f32[8] parameter(0)  a = f32[8] fusion(p), calls=f  b = f32[8] fusion(a), calls=g
//             ROOT c = f32[8] fusion(b, p), calls=h }
//   b alone:       ENTRY e.1 { a = f32[8] parameter(0)  ROOT b = f32[8] fusion(a), calls=g }
//   a and b:       ENTRY e.1 { p = f32[8] parameter(0)  a = f32[8] fusion(p), calls=f  ROOT b = f32[8] fusion(a),
//   calls=g } b and c:       the results are those that something else reads, here c alone

#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloModule.h"

#include <memory>
#include <string>

namespace hloc {

struct ExtractedFusion {
  const HloInstruction *fusion;
  std::string name; ///< that it is to have; empty: its own
};

/// `module` is in normal form; the fusions, one at least, and those of `inPlace` are of one computation. What the
/// fusions read and do not compute themselves become parameters, in the order in which they are read and with the names
/// they have; constants that they read stay, and tuple elements and bitcasts between them. Results are the values of
/// those fusions that something outside reads: one, or a tuple in the order of the computation. Header attributes about
/// the entry's parameters and results go; where `inPlace` says that a result takes the place of what is now a
/// parameter, it takes it by `input_output_alias`.
std::unique_ptr<HloModule> extractFusions(const HloModule &module, llvm::ArrayRef<ExtractedFusion> fusions,
                                          llvm::ArrayRef<InPlaceOutput> inPlace = {});

} // namespace hloc
