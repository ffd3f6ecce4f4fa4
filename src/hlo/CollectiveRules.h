#pragma once
// Rules of collectives that depend on how many devices take part.

#include "ShapeInferenceContext.h"

namespace hloc {

/// collective_c6 and the second half of collective_c5, of any collective.
bool checkGroups(InferenceContext &c);

/// collective_c7: `whole` is the dimension gathered or before it is scattered, `part` one device's share of it.
bool checkShards(InferenceContext &c, int64_t whole, int64_t part);

/// collective_c8, of an all-to-all.
bool checkSplit(InferenceContext &c);

} // namespace hloc
