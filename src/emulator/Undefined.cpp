#include "Undefined.h"

#include <cstring>

namespace hloc::emulator {

namespace {

uint64_t mix(uint64_t x) { // the finalizer of SplitMix64
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// The word at a place: of odd seeds any bits, of even ones numbers that are likely to mean something.
uint32_t wordAt(uint64_t seed, uint64_t place) {
  constexpr uint32_t telling[] = {0, 1, 2, 3, 0xffffffff, 0x3f800000, 0xbf800000, 0x3f803f80};
  const uint64_t hash = mix(seed * 0x9e3779b97f4a7c15 + place / 4);
  return seed % 2 ? uint32_t(hash) : telling[hash % std::size(telling)];
}

} // namespace

void fillUndefined(const EmulatorOptions &options, uint64_t place, void *data, uint64_t bytes, uint8_t otherwise) {
  if (bytes == 0) // an empty buffer has no memory
    return;
  if (!options.undefinedSeed) {
    std::memset(data, options.undefinedByte.value_or(otherwise), bytes);
    return;
  }
  auto *out = static_cast<uint8_t *>(data);
  for (uint64_t i = 0; i < bytes;) {
    const uint32_t word = wordAt(options.undefinedSeed, place + i);
    for (uint64_t part = (place + i) % 4; part < 4 && i < bytes; ++part, ++i)
      out[i] = uint8_t(word >> (8 * part));
  }
}

} // namespace hloc::emulator
