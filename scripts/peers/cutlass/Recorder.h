#pragma once
// What a host program tells the fake CUDA runtime (FakeRuntime.cpp) beside its calls: which memory is a parameter of
// the HLO and which is its result. Everything else that it allocates is scratch.
#include <cstddef>

extern "C" {
/// Memory that parameter `number` of the HLO fills.
void *parameterMemory(int number, size_t bytes);
/// Memory of the result; `index` is that of its leaf in a tuple, -1 where the result is an array.
void *resultMemory(int index, size_t bytes);
}
