#pragma once
// What bytes without a value are: memory that nobody wrote, places beyond a slice, lanes that are not there.

#include "hloc/emulator/Emulator.h"

namespace hloc::emulator {

/// Fills `bytes` bytes that lie at `place`, which is any number that differs from place to place: `otherwise`, or what
/// EmulatorOptions::undefinedByte and undefinedSeed say.
void fillUndefined(const EmulatorOptions &options, uint64_t place, void *data, uint64_t bytes, uint8_t otherwise);

} // namespace hloc::emulator
