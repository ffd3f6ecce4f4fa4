#pragma once
// Which tiles of a contraction's sides the hardware can copy in bulk: those of a parameter that lies in memory as a
// matrix, or a batch of them, whose rows start at multiples of 16 bytes.

#include "hloc/fusion/ContractionPlan.h"

namespace hloc {

/// Of a side of the plan, with its tile; `factor`: the factorMap of its operand. Nothing: it cannot be copied so.
std::optional<TileMap> findTileMap(const ContractionPlan &plan, const ContractionSide &side, const IndexingMap &factor);

} // namespace hloc
