#pragma once
// Code that a compiler laid out behind what follows it, back in its place. The lowest block with waiting lanes runs
// first (README.md), so lanes in such code would meet the others only after these have gone on, through barriers too. A
// GPU makes lanes that parted meet where their paths do.
//
//   @%p bra RARE;             @%p bra RARE;
//   bra JOIN;                 bra JOIN;
//   JOIN: bar.sync 0;   ->    RARE: add.u32 %r1, %r1, 1;
//   ret;                      bra JOIN;
//   RARE: add ...;            JOIN: bar.sync 0;
//   bra JOIN;                 ret;
//
// The same where a loop was rotated, so that it begins in its middle:
//
//   bra BEGIN;                     bra BEGIN;
//   JOIN: bar.sync 0;       ->     BEGIN: @%p bra JOIN;
//   @%q bra BEGIN;                 add.u32 %r1, %r1, 1;
//   ret;                           bra JOIN;
//   BEGIN: @%p bra JOIN;           JOIN: bar.sync 0;
//   add.u32 %r1, %r1, 1;           @%q bra BEGIN;
//   bra JOIN;                      ret;

#include "Program.h"

namespace hloc::emulator {

/// Instructions change places, and with them the targets of branches; what each thread executes stays the same.
void restoreCodeOrder(Kernel &kernel);

} // namespace hloc::emulator
