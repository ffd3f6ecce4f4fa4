#pragma once
// The counter-based generators of HLO: Philox4x32-10 and Threefry2x32-20 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3").

#include <array>
#include <cstdint>

namespace hloc::interp {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);

} // namespace hloc::interp
