#pragma once
// How often a loop goes round, where that does not depend on memory or on parameters: what its exit compares is
// followed through the loop, round by round.
//
//   $L:  add.s32 %r1, %r1, 4;  setp.lt.s32 %p1, %r1, 64;  @%p1 bra $L;      from %r1 = 0: 16 rounds

#include "lint/LaneValues.h"

#include <optional>

namespace hloc::lint {

/// Of the first active lane of `values`, which are those with which it comes to the loop. Nothing if the text does not
/// tell. Of several exits, the first.
std::optional<double> roundsOf(const KernelCode &code, uint32_t loop, LaneValues values);

/// In how many rounds, from the first on, the branch at the end of a block inside the loop is not taken, if it is in
/// one later; as copies are skipped that nobody would wait for. Nothing if the text does not tell, or it never is.
std::optional<double> roundsBeforeTaken(const KernelCode &code, uint32_t loop, uint32_t block, LaneValues values);

} // namespace hloc::lint
