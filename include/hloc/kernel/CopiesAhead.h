#pragma once
// How much of a round trip to memory passes while a warp does other things: copies that began so many rounds of a loop
// before they are waited for have had these rounds to come.

#include <algorithm>

namespace hloc {

/// Of memory that is busy; other round trips that estimates are about are those of one that is not. 785 ns at an H200's
/// full bandwidth (gpu-benches), where pointer chases take 650 clocks, 355 ns.
inline constexpr double tripsOfBusyMemory = 2;

/// Instructions for as long as the tensor core that all products of a warp are made on, a quarter of a
/// multiprocessor's, makes one of m16n8k16: 2048 multiply-adds at 240 to 320 a clock.
inline constexpr double turnOfMma = 2, multiplyAddsOfMma = 2048;

/// The same of products of warpgroups: for as long as all tensor cores of a multiprocessor make so many multiply-adds
/// of 16-bit factors, 2048 a clock on an H100's data sheet, where an instruction that is waited for takes 4.
inline double turnsOfGroups(double products) {
  constexpr double ofClock = 2048, clocksOfInstruction = 4;
  return products / ofClock / clocksOfInstruction;
}

/// Round trips to memory that pass in the time of instructions which depend on each other and round trips to shared
/// memory.
inline double tripsInTime(double chainInstructions, double sharedRoundTrips) {
  constexpr double ofInstruction = 0.006, ofSharedTrip = 0.05;
  return chainInstructions * ofInstruction + sharedRoundTrips * ofSharedTrip;
}

/// Round trips to memory that are left to wait for, where each of `ahead` rounds has passed so many.
inline double tripsBehindCopies(double ahead, double tripsOfRound) {
  return std::max(0.0, tripsOfBusyMemory / ahead - tripsOfRound);
}

} // namespace hloc
